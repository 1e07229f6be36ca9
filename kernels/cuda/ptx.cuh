/* SPDX-License-Identifier: Apache-2.0 */
/* The only inline PTX. Each wrapper has a twin for the host in tests/cuda/simt/ptx_host.h, written
   from the PTX ISA's own tables; both are compared with maps of a third origin,
   tests/golden/frag_maps.tsv. Fragments of m16n8k16, g = lane / 4, t = lane % 4: A (16 x 16): a0 =
   (g, 2t..), a1 = (g + 8, 2t..), a2 = (g, 2t + 8..), a3 = (g + 8, 2t + 8..), two columns each; B
   (16 x 8):  b0 = rows (2t..) of column g, b1 = rows (2t + 8..);   C (16 x 8): c0, c1 = (g, 2t..),
   c2, c3 = (g + 8, 2t..). */
#ifndef KERNELS_CUDA_PTX_CUH
#define KERNELS_CUDA_PTX_CUH
#include "kernels/cuda/launch.cuh"

#ifdef BENCH_SIMT
#include "tests/cuda/simt/ptx_host.h"
#else
/* c += a b: bf16 or f16 operands, f32 sums. */
__device__ __forceinline__ void mma_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                         uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                        uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
/* Four 8 x 8 matrices of 16-bit elements from shared memory; lanes 8i ... 8i + 7 name the rows of
   matrix i, 16-byte aligned. Register i of lane l: row l / 4, columns 2 (l % 4) and the next;
   transposed: column l / 4, rows 2 (l % 4) and the next. */
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(uint32_t(__cvta_generic_to_shared(row)))
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(uint32_t(__cvta_generic_to_shared(row)))
                 : "memory");
}
/* 16 bytes to shared memory behind the program's back; zeros where !ok, and then `from` is not
 * read. */
__device__ __forceinline__ void copy_async_16(void *to, const void *from, bool ok) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                     uint32_t(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(ok ? 16 : 0)
                 : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> /* until at most N of this thread's groups are under way */
__device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
/* 16 bytes read once and never written in this step: weights and old cache entries only. */
__device__ __forceinline__ uint4 load_stream_16(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
/* 16 bytes read once that an earlier kernel may have written, this step even: the cache. */
__device__ __forceinline__ uint4 load_once_16(const void *p) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}
/* 16 bytes that this step's kernels wrote. */
__device__ __forceinline__ uint4 load_16(const void *p) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}
__device__ __forceinline__ void store_16(void *p, uint4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}
__device__ __forceinline__ void store_8(void *p, uint2 v) {
    asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ void store_4(void *p, uint32_t v) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ float exp2_fast(
    float x) { /* 2^x, relative error 2^-22 (PTX ISA: ex2.approx.ftz.f32) */
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
template <int TABLE> /* any function of three bits, bit by bit */
__device__ __forceinline__ uint32_t logic3(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return d;
}
/* Before the first read or write of anything that an earlier kernel of the stream touches; weights
 * alone may be read before. */
__device__ __forceinline__ void pdl_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* The next kernel may start (it still waits for this one's end in its pdl_wait). */
__device__ __forceinline__ void pdl_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

/* Two floats, rounded to nearest even, as a pair (low half first). */
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
    __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}
__device__ __forceinline__ uint32_t pack_f16(float low, float high) {
    __half2 v = __floats2half2_rn(low, high);
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}
/* Exact. */
__device__ __forceinline__ float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

#endif
