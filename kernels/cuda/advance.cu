/* SPDX-License-Identifier: Apache-2.0 */
/* What a step sampled becomes the next step's input, in device memory. */
#include "kernels/cuda/advance.h"

#include "kernels/cuda/advance.card.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/table.cuh"

/* Outputs belong to different sequences, so no two threads meet, also where both steps are one. */
static __device__ __forceinline__ void advance(const advance_args &a, int o) {
    pdl_launch();
    pdl_wait();
    if (o >= a.n_out) return;
    const int32_t s = a.seq[a.out_row[o]], row = a.q_begin[s], token = a.next[o];
    const int32_t length = a.from_kv_len[s];
    a.token[row] = token;
    a.pos[row] = length;
    a.kv_len[s] = length + 1;
    a.alive[s] &= token != a.end_id;
}

#define KERNEL(name, type, d, threads, min_blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct advance_args, a)) {                                                \
        advance(a, int(blockIdx.x * threads + threadIdx.x));                                       \
    }
ADVANCE_CARDS(KERNEL)
KERNEL_TABLE(advance, ADVANCE_CARDS)
