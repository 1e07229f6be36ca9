/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on the host: the sources of kernels/cuda compile with g++ or clang++ against this header,
   and every CUDA thread becomes a fiber. Values, bounds, barriers, masks and (with g++'s
   ThreadSanitizer) races of the source are checked; nvcc, ptxas and time are not. Included by
   launch.cuh when BENCH_SIMT is defined. Every failure names kernel, block, thread and seed, and
   ends the process with exit status 97.

   Environment:
     SIMT_SEED=N     schedule: 0 (default) blocks, warps and lanes in order, and asynchronous copies
                     land as late as they may; 1 all reversed, and copies land at once; from 2 on a
                     random order, redrawn at each barrier, copies late (even) or at once (odd)
     SIMT_BLOCKS=N   run only the first, the last and random blocks, N in all, of each launch
     SIMT_STATS=FILE at exit, a line for each kernel: see stats_write in simt.cpp

   Compile with -DBENCH_SIMT -fno-strict-aliasing -ffp-contract=off. Strict aliasing would break the
   vector punning that nvcc allows; contraction would make another value of a * b + c. For
   ThreadSanitizer use g++: clang 14's runtime has 256 slots for threads and silently misses races
   of larger blocks; compile the emulator's own files with -fno-sanitize=thread -DSIMT_TSAN. */
#ifndef TESTS_CUDA_SIMT_SIMT_H
#define TESTS_CUDA_SIMT_SIMT_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <driver_types.h>
#include <vector_functions.h>

#ifdef __SANITIZE_THREAD__
#define SIMT_TSAN
#endif

/* Static shared memory is one copy, since one block runs at a time. clang lets all of it lie in one
   section, so that it can be filled with NaN before each block; g++ cannot mix that of templates
   and of plain functions in one section. */
#undef __shared__
#ifdef __clang__
#define __shared__ static __attribute__((section("simt_shared")))
#else
#define __shared__ static
#endif
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

namespace simt {

/* ---- what a launch is ---- */

enum { MOST_THREADS = 1024, WARP = 32, MOST_SHARED = 227 * 1024, SHARED_WITHOUT_LEAVE = 48 * 1024 };

struct launch_record {
    const char *name;
    void (*call)(void (*kernel)(), const void *args); // runs one thread of the kernel
    void (*kernel)();
    std::vector<unsigned char> args; // the kernel's one argument, a plain struct
    dim3 grid, block;
    size_t shared_bytes;
    bool pdl; // may begin before its predecessor has ended
};

/* Checks a launch as the driver would, then runs it at once, or leaves it to `take` (a runtime that
   defers work). */
cudaError_t submit(const struct launch_record &, cudaStream_t);
/* Makes the kernel known: launches that need more than 48 KiB of shared memory, and launches during
   a capture, must have been loaded. */
cudaError_t load(const char *name, void (*kernel)(), int32_t shared_bytes);
void run(const struct launch_record &); // all blocks, one after another

template <class Args>
cudaError_t launch(const char *name, void (*kernel)(Args), dim3 grid, dim3 block,
                   size_t shared_bytes, cudaStream_t stream, bool pdl, const Args &args) {
    static_assert(std::is_trivially_copyable<Args>::value, "a kernel takes one plain struct");
    struct launch_record l = {};
    l.name = name;
    l.kernel = reinterpret_cast<void (*)()>(kernel);
    l.call = [](void (*k)(), const void *a) {
        reinterpret_cast<void (*)(Args)>(k)(*static_cast<const Args *>(a));
    };
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(&args);
    l.args.assign(bytes, bytes + sizeof args);
    l.grid = grid;
    l.block = block;
    l.shared_bytes = shared_bytes;
    l.pdl = pdl;
    return submit(l, stream);
}
template <class Args>
cudaError_t load(const char *name, void (*kernel)(Args), int32_t shared_bytes) {
    return load(name, reinterpret_cast<void (*)()>(kernel), shared_bytes);
}

/* ---- what a runtime hangs in ---- */

struct runtime_hooks {
    cudaError_t (*take)(const struct launch_record &, cudaStream_t); // instead of running at once
    void (*prologue_begin)(const struct launch_record &); // before a block of a pdl launch begins
    void (*prologue_end)(void);                           // it waits for its predecessors, or ended
    bool (*is_device_memory)(const void *, size_t bytes);
    bool (*may_change)(const void *); // by kernels that this one need not wait for
    bool (*fault)(uintptr_t);         // at no device memory: whether the access may be tried again
    std::vector<size_t> (*choose)(const struct launch_record &, size_t n); // blocks to run, of n
};
extern struct runtime_hooks hooks; // absent ones are nullptr

void set_seed(unsigned); // instead of SIMT_SEED
unsigned seed(void);
bool kernel_is_loaded(void (*kernel)());
/* The words before a failure's site: "kernel NAME block (x, y, z) thread T of N, seed S", or "host
   code" outside a kernel. */
const char *where(void);
bool in_kernel(void);

struct counters { // of all launches so far
    uint64_t launches, blocks, threads, switches, barriers, warp_operations;
    uint64_t ldmatrix_ideal, ldmatrix_actual; // cycles of shared memory
};
extern struct counters counters;

/* ---- what a thread is ---- */

struct site {
    const char *file;
    int line;
};
#if defined(__clang__) || defined(__GNUC__)
inline struct site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
}
#endif

[[noreturn]] void fail(struct site, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct async_copy {
    void *to;
    const void *from; // nullptr: zeros
    int group;
};
struct lane { // what kernels read of it; the rest is the scheduler's
    uint3 thread;
    unsigned index; // in the block
    struct async_copy copies[256];
    int n_copies, copy_group;
};
extern struct lane *current;
extern uint3 block_now;
extern dim3 block_size, grid_size;
extern unsigned char *dynamic_memory;
extern bool copies_land_late;

/* One operation over the lanes of a warp or block: args[l] is what lane l handed over, nullptr
   where it takes no part. It runs once, when all have arrived. */
typedef void operation(void **args, unsigned mask);
/* ordered: what was before is seen by all after (a barrier; a shuffle is none). */
void warp_operation(unsigned mask, struct site, operation *, void *arg, bool ordered);
void block_operation(struct site, operation *, void *arg);
void grid_wait(struct site); // for the predecessors of a pdl launch

/* Address checks of wrappers that name the state space. */
void expect_shared(const void *, size_t bytes, struct site, const char *who);
void expect_global(const void *, size_t bytes, struct site, const char *who);
/* What is read through the read-only path must not change until the kernel ends: neither by itself,
   nor, where it may start early, by kernels before it. */
void expect_constant(const void *, struct site);

struct shuffle {
    uint64_t in, out;
    int from; // lane, or -1: keeps its own
};
operation shuffle_operation;
struct vote {
    bool in;
    unsigned out; // lanes that said yes
};
operation vote_operation;
struct reduce {
    int64_t in, out;
    int kind; // 0 add, 1 min, 2 max
};
operation reduce_operation;
struct block_vote {
    bool in;
    int yes; // threads of the block that said yes
};
operation block_vote_operation;

template <class T> T shuffle_from(unsigned mask, T v, int from, struct site s) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    struct shuffle a = {0, 0, from};
    memcpy(&a.in, &v, sizeof v);
    warp_operation(mask, s, shuffle_operation, &a, false);
    T out;
    memcpy(static_cast<void *>(&out), &a.out, sizeof out);
    return out;
}
inline int lane_in_warp() { return int(current->index) & 31; }
inline int segment(int width) { return lane_in_warp() & ~(width - 1); }
inline unsigned ballot(unsigned mask, bool p, struct site s) {
    struct vote a = {p, 0};
    warp_operation(mask, s, vote_operation, &a, false);
    return a.out;
}
inline int64_t reduce_over(unsigned mask, int64_t v, int kind, struct site s) {
    struct reduce a = {v, 0, kind};
    warp_operation(mask, s, reduce_operation, &a, false);
    return a.out;
}
inline int block_count(bool p, struct site s) {
    struct block_vote a = {p, 0};
    block_operation(s, block_vote_operation, &a);
    return a.yes;
}
template <class T> struct same { typedef T type; };

} // namespace simt

/* ---- the language ---- */

#define threadIdx (::simt::current->thread)
#define blockIdx  (::simt::block_now)
#define blockDim  (::simt::block_size)
#define gridDim   (::simt::grid_size)

static constexpr int warpSize = 32;

template <class T> inline T *dynamic_shared() {
    return reinterpret_cast<T *>(::simt::dynamic_memory);
}

#define SIMT_HERE struct ::simt::site s = ::simt::here()

inline void __syncthreads(SIMT_HERE) { ::simt::block_operation(s, nullptr, nullptr); }
inline int __syncthreads_count(int p, SIMT_HERE) { return ::simt::block_count(p != 0, s); }
inline int __syncthreads_or(int p, SIMT_HERE) { return ::simt::block_count(p != 0, s) > 0; }
inline int __syncthreads_and(int p, SIMT_HERE) { return ::simt::block_count(p == 0, s) == 0; }
inline void __syncwarp(unsigned mask = ~0u, SIMT_HERE) {
    ::simt::warp_operation(mask, s, nullptr, nullptr, true);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32, SIMT_HERE) {
    return ::simt::shuffle_from(mask, v, ::simt::segment(width) + (from & (width - 1)), s);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32, SIMT_HERE) {
    const int from = ::simt::lane_in_warp() ^ with;
    return ::simt::shuffle_from(mask, v, from < ::simt::segment(width) + width ? from : -1, s);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, SIMT_HERE) {
    const int from = ::simt::lane_in_warp() + int(by);
    return ::simt::shuffle_from(mask, v, from < ::simt::segment(width) + width ? from : -1, s);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, SIMT_HERE) {
    const int from = ::simt::lane_in_warp() - int(by);
    return ::simt::shuffle_from(mask, v, from >= ::simt::segment(width) ? from : -1, s);
}
inline unsigned __ballot_sync(unsigned mask, int p, SIMT_HERE) {
    return ::simt::ballot(mask, p != 0, s);
}
inline int __any_sync(unsigned mask, int p, SIMT_HERE) {
    return ::simt::ballot(mask, p != 0, s) != 0;
}
inline int __all_sync(unsigned mask, int p, SIMT_HERE) {
    return ::simt::ballot(mask, p == 0, s) == 0;
}
#define SIMT_REDUCE(name, kind)                                                                    \
    inline int name(unsigned mask, int v, SIMT_HERE) {                                             \
        return int(::simt::reduce_over(mask, v, kind, s));                                         \
    }                                                                                              \
    inline unsigned name(unsigned mask, unsigned v, SIMT_HERE) {                                   \
        return unsigned(::simt::reduce_over(mask, v, kind, s));                                    \
    }
SIMT_REDUCE(__reduce_add_sync, 0)
SIMT_REDUCE(__reduce_min_sync, 1)
SIMT_REDUCE(__reduce_max_sync, 2)
#undef SIMT_REDUCE

/* Relaxed, as on the device: they order nothing around them. */
#define SIMT_ATOMIC(name, new_value)                                                               \
    template <class T> T name(T *p, typename ::simt::same<T>::type v) {                            \
        T old, to;                                                                                 \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                                  \
        do {                                                                                       \
            to = new_value;                                                                        \
        } while (                                                                                  \
            !__atomic_compare_exchange(p, &old, &to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));  \
        return old;                                                                                \
    }
SIMT_ATOMIC(atomicAdd, old + v)
SIMT_ATOMIC(atomicMax, old > v ? old : v)
SIMT_ATOMIC(atomicMin, old < v ? old : v)
SIMT_ATOMIC(atomicExch, v)
SIMT_ATOMIC(atomicAnd, old &v)
SIMT_ATOMIC(atomicOr, old | v)
#undef SIMT_ATOMIC
template <class T>
T atomicCAS(T *p, typename ::simt::same<T>::type compare, typename ::simt::same<T>::type v) {
    __atomic_compare_exchange(p, &compare, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return compare;
}

/* Cache hints are hints. */
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldca(const T *p) { return *p; }
template <class T> T __ldlu(const T *p) { return *p; }
template <class T> T __ldcv(const T *p) { return *p; }
template <class T> void __stcs(T *p, typename ::simt::same<T>::type v) { *p = v; }
template <class T> void __stcg(T *p, typename ::simt::same<T>::type v) { *p = v; }
template <class T> void __stwb(T *p, typename ::simt::same<T>::type v) { *p = v; }
template <class T> void __stwt(T *p, typename ::simt::same<T>::type v) { *p = v; }

/* Bits. */
template <class To, class From> inline To simt_bits(From v) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    memcpy(&to, &v, sizeof to);
    return to;
}
inline float __uint_as_float(unsigned v) { return simt_bits<float>(v); }
inline float __int_as_float(int v) { return simt_bits<float>(v); }
inline unsigned __float_as_uint(float v) { return simt_bits<unsigned>(v); }
inline int __float_as_int(float v) { return simt_bits<int>(v); }
inline double __longlong_as_double(long long v) { return simt_bits<double>(v); }
inline long long __double_as_longlong(double v) { return simt_bits<long long>(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)(v)) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
    return r;
}
/* Byte i of the result is byte (selector >> 4i & 7) of y:x; with bit 3 set, its sign eight times.
 */
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const uint64_t both = uint64_t(y) << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = selector >> (4 * i) & 15;
        unsigned byte = unsigned(both >> (8 * (pick & 7))) & 255;
        if (pick & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return unsigned((uint64_t(high) << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return unsigned((uint64_t(high) << 32 | low) >> (by & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

/* Numbers. The fast forms are exact here; kernels' tolerances must allow for the device's error. */
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
#define __expf(x)    (::expf(x))
#define __exp10f(x)  (::exp10f(x))
#define __logf(x)    (::logf(x))
#define __log2f(x)   (::log2f(x))
#define __sinf(x)    (::sinf(x))
#define __cosf(x)    (::cosf(x))
#define __powf(x, y) (::powf(x, y))
inline void sincospif(float x, float *s, float *c) {
    *s = float(sin(double(x) * M_PI));
    *c = float(cos(double(x) * M_PI));
}
/* Conversions saturate and make 0 of NaN, which the host's do not. */
template <class To> inline To simt_saturate(double x) {
    if (x != x) return 0;
    const double low = double(std::numeric_limits<To>::min());
    const double high = double(std::numeric_limits<To>::max());
    return x <= low    ? std::numeric_limits<To>::min()
           : x >= high ? std::numeric_limits<To>::max()
                       : To(x);
}
inline int __float2int_rn(float x) { return simt_saturate<int>(nearbyint(double(x))); }
inline int __float2int_rz(float x) { return simt_saturate<int>(trunc(double(x))); }
inline int __float2int_rd(float x) { return simt_saturate<int>(floor(double(x))); }
inline int __float2int_ru(float x) { return simt_saturate<int>(ceil(double(x))); }
inline unsigned __float2uint_rn(float x) { return simt_saturate<unsigned>(nearbyint(double(x))); }
inline unsigned __float2uint_rz(float x) { return simt_saturate<unsigned>(trunc(double(x))); }
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __double2float_rn(double x) { return float(x); }
inline int __double2int_rn(double x) { return simt_saturate<int>(nearbyint(x)); }

using std::max;
using std::min;

#endif
