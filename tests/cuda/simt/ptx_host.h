/* SPDX-License-Identifier: Apache-2.0 */
/* Twins of the wrappers of kernels/cuda/ptx.cuh, written from the PTX ISA's fragment tables
   (sections "Matrix Fragments for mma.m16n8k16" and "ldmatrix"), not from the kernels' reading of
   them. Included by ptx.cuh when BENCH_SIMT is defined. */
#ifndef TESTS_CUDA_SIMT_PTX_HOST_H
#define TESTS_CUDA_SIMT_PTX_HOST_H
#include <float.h>

#include "tests/cuda/simt/simt.h"

namespace simt {

struct mma {
    float c[4];
    uint32_t a[4], b[2];
};
operation mma_bf16_operation, mma_f16_operation;
struct ldmatrix {
    const void *row; // that this lane names
    uint32_t r[4];
};
operation ldmatrix_operation, ldmatrix_trans_operation;

inline void mma_by(operation *op, float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                   uint32_t b0, uint32_t b1, struct site s) {
    struct mma m = {{c[0], c[1], c[2], c[3]}, {a0, a1, a2, a3}, {b0, b1}};
    warp_operation(~0u, s, op, &m, false);
    for (int i = 0; i < 4; i++) c[i] = m.c[i];
}
inline void ldmatrix_by(operation *op, uint32_t (&r)[4], const void *row, struct site s) {
    expect_shared(row, 16, s, "ldmatrix");
#ifdef SIMT_TSAN // the lane that names a row is the one that reads it
    for (int i = 0; i < 4; i++) (void)static_cast<const volatile uint32_t *>(row)[i];
#endif
    struct ldmatrix m = {row, {}};
    warp_operation(~0u, s, op, &m, false);
    for (int i = 0; i < 4; i++) r[i] = m.r[i];
}
inline void copy_now(const struct async_copy &c) {
    uint4 v = {0, 0, 0, 0};
    if (c.from) v = *static_cast<const uint4 *>(c.from);
    *static_cast<uint4 *>(c.to) = v;
}
inline void copies_land(int groups_kept) {
    struct lane &l = *current;
    int kept = 0;
    for (int i = 0; i < l.n_copies; i++) {
        if (l.copies[i].group < l.copy_group - groups_kept)
            copy_now(l.copies[i]);
        else
            l.copies[kept++] = l.copies[i];
    }
    l.n_copies = kept;
}

} // namespace simt

inline void mma_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                     uint32_t b1, SIMT_HERE) {
    ::simt::mma_by(::simt::mma_bf16_operation, c, a0, a1, a2, a3, b0, b1, s);
}
inline void mma_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1, SIMT_HERE) {
    ::simt::mma_by(::simt::mma_f16_operation, c, a0, a1, a2, a3, b0, b1, s);
}
inline void ldmatrix_x4(uint32_t (&r)[4], const void *row, SIMT_HERE) {
    ::simt::ldmatrix_by(::simt::ldmatrix_operation, r, row, s);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row, SIMT_HERE) {
    ::simt::ldmatrix_by(::simt::ldmatrix_trans_operation, r, row, s);
}

/* Hardware may do a copy at once or as late as the wait that covers it. Both are played: late shows
   a missing wait (the poison is read), at once shows a stage that is still being read. */
inline void copy_async_16(void *to, const void *from, bool ok, SIMT_HERE) {
    ::simt::expect_shared(to, 16, s, "copy_async_16");
    if (ok) ::simt::expect_global(from, 16, s, "copy_async_16");
    struct ::simt::lane &l = *::simt::current;
    const struct ::simt::async_copy c = {to, ok ? from : nullptr, l.copy_group};
    if (!::simt::copies_land_late) {
        ::simt::copy_now(c);
        return;
    }
    if (l.n_copies == int(sizeof l.copies / sizeof l.copies[0]))
        ::simt::fail(s, "more than %d asynchronous copies of one thread under way", l.n_copies);
    l.copies[l.n_copies++] = c;
}
inline void copy_async_commit() { ::simt::current->copy_group++; }
template <int N> inline void copy_async_wait() { ::simt::copies_land(N); }

inline uint4 load_stream_16(const void *p, SIMT_HERE) {
    ::simt::expect_global(p, 16, s, "load_stream_16");
    ::simt::expect_constant(p, s);
    return *static_cast<const uint4 *>(p);
}
inline uint4 load_once_16(const void *p, SIMT_HERE) {
    ::simt::expect_global(p, 16, s, "load_once_16");
    return *static_cast<const uint4 *>(p);
}
inline uint4 load_16(const void *p, SIMT_HERE) {
    ::simt::expect_global(p, 16, s, "load_16");
    return *static_cast<const uint4 *>(p);
}
inline void store_16(void *p, uint4 v, SIMT_HERE) {
    ::simt::expect_global(p, 16, s, "store_16");
    *static_cast<uint4 *>(p) = v;
}
inline void store_8(void *p, uint2 v, SIMT_HERE) {
    ::simt::expect_global(p, 8, s, "store_8");
    *static_cast<uint2 *>(p) = v;
}
inline void store_4(void *p, uint32_t v, SIMT_HERE) {
    ::simt::expect_global(p, 4, s, "store_4");
    *static_cast<uint32_t *>(p) = v;
}
inline float exp2_fast(float x) {
    const float y = exp2f(x);
    return y < FLT_MIN ? 0.0f : y; // subnormal results are flushed; NaN stays
}
template <int TABLE> inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d = 0;
    for (int i = 0; i < 8; i++)
        if (TABLE >> i & 1) d |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return d;
}
inline void pdl_wait(SIMT_HERE) { ::simt::grid_wait(s); }
inline void pdl_launch() {}

#endif
