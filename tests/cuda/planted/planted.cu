// SPDX-License-Identifier: Apache-2.0
// A kernel for each mistake that a detector of tests/cuda/simt must find, and right ones beside
// them: planted NAME runs NAME under 8 schedules. It says "disagree" and exits with 3 if the
// results differ or hold a NaN: a sign of a mistake that needs no reference.
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/ptx.cuh"

enum { THREADS = 128 };

struct planted_args {
    const float *in;
    float *out;
};
#define KERNEL(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS) name(KERNEL_ARGS(struct planted_args, a))

// Sum over the block in two steps, as norms do; the barriers are the mistake's.
template <bool FIRST, bool SECOND> __device__ float block_sum(float v, float *room) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    if (FIRST) __syncthreads();
    float sum = 0;
    for (int w = 0; w < THREADS / 32; w++) sum += room[w];
    if (SECOND) __syncthreads();
    return sum;
}
template <bool FIRST, bool SECOND> __device__ void norm_twice(const struct planted_args &a) {
    float *room = dynamic_shared<float>();
    float v = a.in[threadIdx.x];
    for (int round = 0; round < 2; round++) v = 1 + v / block_sum<FIRST, SECOND>(v, room);
    a.out[threadIdx.x] = v;
}
KERNEL(right_norm) { norm_twice<true, true>(a); }
KERNEL(norm_first_barrier_gone) { norm_twice<false, true>(a); }
KERNEL(norm_second_barrier_gone) { norm_twice<true, false>(a); }

// Neighbours exchange through shared memory.
KERNEL(right_exchange) {
    float *s = dynamic_shared<float>();
    const unsigned t = threadIdx.x;
    s[t] = a.in[t];
    __syncwarp();
    a.out[t] = s[t ^ 1];
}
KERNEL(exchange_without_syncwarp) {
    float *s = dynamic_shared<float>();
    const unsigned t = threadIdx.x;
    s[t] = a.in[t];
    a.out[t] = s[t ^ 1];
}
KERNEL(exchange_ordered_by_shuffle) { // a shuffle is no fence
    float *s = dynamic_shared<float>();
    const unsigned t = threadIdx.x;
    s[t] = a.in[t];
    const float other = __shfl_xor_sync(0xffffffffu, a.in[t], 1);
    a.out[t] = s[t ^ 1] + 0 * other;
}
KERNEL(shared_never_written) {
    __shared__ float s[THREADS];
    const unsigned t = threadIdx.x;
    if (t & 1) s[t] = a.in[t];
    __syncthreads();
    a.out[t] = s[t ^ 1];
}
KERNEL(dynamic_shared_never_written) {
    float *s = dynamic_shared<float>();
    const unsigned t = threadIdx.x;
    if (t & 1) s[t] = a.in[t];
    __syncthreads();
    a.out[t] = s[t ^ 1];
}

KERNEL(shuffle_in_a_branch) {
    float v = a.in[threadIdx.x];
    if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(0xffffffffu, v, 8);
    a.out[threadIdx.x] = v;
}
KERNEL(shuffle_outside_its_mask) {
    a.out[threadIdx.x] = __shfl_sync(0x0000ffffu, a.in[threadIdx.x], 0);
}
KERNEL(shuffle_meets_vote) {
    float v = a.in[threadIdx.x];
    if (threadIdx.x % 2)
        v = __shfl_sync(0xffffffffu, v, 0);
    else
        v = float(__any_sync(0xffffffffu, v > 0));
    a.out[threadIdx.x] = v;
}

KERNEL(static_shared_overrun) {
    __shared__ float s[THREADS];
    s[threadIdx.x + 1] = a.in[threadIdx.x];
    __syncthreads();
    a.out[threadIdx.x] = s[threadIdx.x];
}
KERNEL(dynamic_shared_overrun) {
    float *s = dynamic_shared<float>();
    s[threadIdx.x] = a.in[threadIdx.x];
    if (threadIdx.x == 0) s[2 * THREADS] = 0;
    __syncthreads();
    a.out[threadIdx.x] = s[threadIdx.x];
}
KERNEL(global_overrun) { a.out[threadIdx.x + 4] = a.in[threadIdx.x]; }
KERNEL(misaligned_load) {
    const float4 v = *reinterpret_cast<const float4 *>(a.in + 1);
    a.out[threadIdx.x] = v.x;
}
KERNEL(misaligned_load_wrapped) {
    a.out[threadIdx.x] = __uint_as_float(load_stream_16(a.in + 1).x);
}
KERNEL(constant_load_of_what_is_written) { // the read-only path may keep what it read
    const uint4 v = load_stream_16(a.in + threadIdx.x / 4 * 4);
    __syncwarp();
    const_cast<float *>(a.in)[threadIdx.x] += 1.0f;
    a.out[threadIdx.x] = __uint_as_float(v.x);
}
KERNEL(global_load_of_shared) {
    a.out[threadIdx.x] = __uint_as_float(load_16(dynamic_shared<float>()).x);
}

// One buffer, used in each round.
template <bool SECOND> __device__ void ring(const struct planted_args &a) {
    float *s = dynamic_shared<float>();
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        s[threadIdx.x] = a.in[threadIdx.x] + float(i);
        __syncthreads();
        sum += s[(threadIdx.x + 32) % THREADS];
        if (SECOND) __syncthreads();
    }
    a.out[threadIdx.x] = sum;
}
KERNEL(right_ring) { ring<true>(a); }
KERNEL(ring_with_one_barrier) { ring<false>(a); }

KERNEL(right_count) {
    float *s = dynamic_shared<float>();
    if (threadIdx.x == 0) s[0] = 0;
    __syncthreads();
    atomicAdd(&s[0], 1.0f);
    __syncthreads();
    a.out[threadIdx.x] = s[0];
}
KERNEL(count_not_atomic) {
    float *s = dynamic_shared<float>();
    if (threadIdx.x == 0) s[0] = 0;
    __syncthreads();
    s[0] += 1.0f;
    __syncthreads();
    a.out[threadIdx.x] = s[0];
}

KERNEL(barrier_count_differs_by_warp) {
    for (unsigned i = 0; i <= threadIdx.x / 64; i++) __syncthreads();
    a.out[threadIdx.x] = a.in[threadIdx.x];
}
KERNEL(half_block_skips_a_barrier) {
    if (threadIdx.x < 64) __syncthreads();
    a.out[threadIdx.x] = a.in[threadIdx.x];
}
KERNEL(different_barriers_meet) {
    if (threadIdx.x < 64)
        __syncthreads();
    else
        __syncthreads();
    a.out[threadIdx.x] = a.in[threadIdx.x];
}

// Two stages of asynchronous copies; four rounds, each warp reads what another warp copied.
template <int LEFT_AT_WAIT, bool BARRIER_BEFORE_REUSE>
__device__ void copies(const struct planted_args &a) {
    float *s = dynamic_shared<float>(); // 2 stages of 4 floats a thread of the first warp
    const unsigned t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < 5; i++) {
        if (i < 4 && t < 32) copy_async_16(s + i % 2 * THREADS + 4 * t, a.in + 4 * t, i != 1);
        copy_async_commit();
        if (i == 0) continue;
        copy_async_wait<LEFT_AT_WAIT>();
        __syncthreads();
        sum = 2 * sum + s[(i + 1) % 2 * THREADS + t];
        if (BARRIER_BEFORE_REUSE) __syncthreads();
    }
    a.out[t] = sum;
}
KERNEL(right_copies) { copies<1, true>(a); }
KERNEL(copy_wait_too_weak) { copies<2, true>(a); }
KERNEL(copy_stage_reused_early) { copies<1, false>(a); }

#ifdef BENCH_SIMT
static const struct {
    const char *name;
    void (*kernel)(struct planted_args);
} kernels[] = {
#define ROW(name)                                                                                  \
    { #name, name }
    ROW(right_norm),
    ROW(norm_first_barrier_gone),
    ROW(norm_second_barrier_gone),
    ROW(right_exchange),
    ROW(exchange_without_syncwarp),
    ROW(exchange_ordered_by_shuffle),
    ROW(shared_never_written),
    ROW(dynamic_shared_never_written),
    ROW(shuffle_in_a_branch),
    ROW(shuffle_outside_its_mask),
    ROW(shuffle_meets_vote),
    ROW(static_shared_overrun),
    ROW(dynamic_shared_overrun),
    ROW(global_overrun),
    ROW(misaligned_load),
    ROW(misaligned_load_wrapped),
    ROW(constant_load_of_what_is_written),
    ROW(global_load_of_shared),
    ROW(right_ring),
    ROW(ring_with_one_barrier),
    ROW(right_count),
    ROW(count_not_atomic),
    ROW(barrier_count_differs_by_warp),
    ROW(half_block_skips_a_barrier),
    ROW(different_barriers_meet),
    ROW(right_copies),
    ROW(copy_wait_too_weak),
    ROW(copy_stage_reused_early),
};

static bool schedules_agree(void (*kernel)(struct planted_args), const char *name) {
    float *in = static_cast<float *>(aligned_alloc(16, THREADS * sizeof(float)));
    float *out = static_cast<float *>(malloc(THREADS * sizeof(float)));
    float first[THREADS];
    bool agree = true;
    for (int i = 0; i < THREADS; i++) in[i] = float(i + 1);
    for (unsigned seed = 0; seed < 8; seed++) {
        simt::set_seed(seed);
        simt::launch(name, kernel, dim3(1), dim3(THREADS), 2 * THREADS * sizeof(float), nullptr,
                     false, planted_args{in, out});
        for (int i = 0; i < THREADS; i++) {
            if (seed == 0) first[i] = out[i];
            if (!(out[i] == first[i])) agree = false;
        }
    }
    free(in);
    free(out);
    return agree;
}
int main(int argc, char **argv) {
    for (const auto &k : kernels) {
        if (argc < 2)
            puts(k.name);
        else if (strcmp(k.name, argv[1]) == 0) {
            const bool agree = schedules_agree(k.kernel, k.name);
            puts(agree ? "agree" : "disagree");
            return agree ? 0 : 3;
        }
    }
    return argc < 2 ? 0 : 2;
}
#endif
