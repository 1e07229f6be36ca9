/* SPDX-License-Identifier: Apache-2.0 */
/* The one way a kernel is launched. Every kernel takes exactly one argument, a plain struct by
   value: a launch is then (card, grid, struct), which can be recorded, replayed in an interpreter
   and compared. Compiled by nvcc for the GPU, or by a host compiler with BENCH_SIMT, where
   tests/cuda/simt/simt.h stands for the device. Rules for kernels: dynamic shared memory only by
   dynamic_shared(), inline PTX only in ptx.cuh, no cooperative groups, no communication between
   blocks of one launch. */
#ifndef KERNELS_CUDA_LAUNCH_CUH
#define KERNELS_CUDA_LAUNCH_CUH
#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/kernel.h"

struct queue { /* where launches go */
    cudaStream_t stream;
    bool pdl; /* programmatic dependent launch: a kernel may start before its predecessor ends, and
                 then waits in pdl_wait() */
};

#ifdef BENCH_SIMT
#include "tests/cuda/simt/simt.h" /* __global__, threadIdx, __syncthreads, shuffles, dynamic_shared, simt::launch */
#define KERNEL_ARGS(type, name) const type name

template <class Args>
cudaError_t launch_kernel(void (*kernel)(Args), const struct launch &l, const struct queue &q,
                          const Args &args) {
    return simt::launch(l.card->name, kernel, dim3(l.grid[0], l.grid[1], l.grid[2]),
                        dim3(unsigned(l.card->threads)), l.shared_bytes, q.stream, q.pdl, args);
}
template <class Args> cudaError_t load_kernel(void (*kernel)(Args), const struct card &card) {
    return simt::load(card.name, kernel, card.smem);
}
#else
#define KERNEL_ARGS(type, name) const __grid_constant__ type name

template <class T> __device__ __forceinline__ T *dynamic_shared() {
    extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
    return reinterpret_cast<T *>(dynamic_shared_bytes);
}

template <class Args>
cudaError_t launch_kernel(void (*kernel)(Args), const struct launch &l, const struct queue &q,
                          const Args &args) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(l.grid[0], l.grid[1], l.grid[2]);
    config.blockDim = dim3(unsigned(l.card->threads));
    config.dynamicSmemBytes = l.shared_bytes;
    config.stream = q.stream;
    config.attrs = &attribute;
    config.numAttrs = q.pdl ? 1 : 0;
    Args copy = args;
    void *pointers[] = {&copy};
    return cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), pointers);
}
/* Loads the code and allows its shared memory; before anything is timed or captured. */
template <class Args> cudaError_t load_kernel(void (*kernel)(Args), const struct card &card) {
    cudaFuncAttributes attributes;
    cudaError_t e = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel));
    if (e == cudaSuccess && card.smem > 48 * 1024)
        e = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, card.smem);
    return e;
}
#endif

#endif
