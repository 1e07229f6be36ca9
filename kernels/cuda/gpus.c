/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of known GPUs, for plans where there is none. Shared memory of a block: CUDA C++
   Programming Guide, technical specifications per compute capability (8.0: 163 KB, 9.0: 227 KB). */
#include "kernels/cuda/kernel.h"

/* H200 SXM is a GH100 with the SMs and L2 of H100 SXM5 (NVIDIA H100 Tensor Core GPU Architecture
   whitepaper: 132 SMs, 50 MB of L2); only its memory differs (H200 data sheet). */
const struct gpu gpu_h200 = {
    .sm_count = 132, .cc = 90, .smem_block = 227 << 10, .l2_bytes = 50 << 20};

/* NVIDIA A100 Tensor Core GPU Architecture whitepaper: 108 SMs, 40 MB of L2. */
const struct gpu gpu_a100 = {
    .sm_count = 108, .cc = 80, .smem_block = 163 << 10, .l2_bytes = 40 << 20};
