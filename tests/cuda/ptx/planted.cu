/* SPDX-License-Identifier: Apache-2.0 */
/* A small kernel that uses what ptx.cuh has, for test_planted.py: y = 2^-|x w^T| for x (16, 16)
   and w (8, 16), through shared memory, asynchronous copies, ldmatrix and mma. */
#include "kernels/cuda/ptx.cuh"

struct planted_args {
    const void *x, *w;
    float *y; /* (16, 8) */
};

extern "C" __global__ void __launch_bounds__(32, 1) planted(KERNEL_ARGS(planted_args, a)) {
    uint8_t *rows = dynamic_shared<uint8_t>(); /* x, then w; 32 bytes a row */
    const int lane = int(threadIdx.x);
    pdl_wait();
    copy_async_16(rows + 16 * lane, static_cast<const uint8_t *>(a.x) + 16 * lane, true);
    const bool of_w = lane < 16;
    copy_async_16(rows + 512 + 16 * lane, static_cast<const uint8_t *>(a.w) + (of_w ? 16 * lane : 0), of_w);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    uint32_t x[4], w[4];
    ldmatrix_x4(x, rows + 32 * (lane % 16) + 16 * (lane / 16));
    ldmatrix_x4(w, rows + 512 + 32 * (lane % 8) + 16 * (lane / 8 % 2));
    float y[4] = {};
    mma_bf16(y, x[0], x[1], x[2], x[3], w[0], w[1]);
    for (int i = 0; i < 4; i++)
        a.y[(lane / 4 + 8 * (i / 2)) * 8 + lane % 4 * 2 + i % 2] = exp2_fast(-fabsf(y[i]));
    pdl_launch();
}
