/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's functions, and the descriptors of one product: what can be made, and tested, without a
 * GPU. */
#ifndef KERNELS_CUDA_LT_DESC_H
#define KERNELS_CUDA_LT_DESC_H
#include <stdbool.h>
#include <stdint.h>

#include "kernels/dtype.h"

struct err;

#if !defined BENCH_SIMT && __has_include(<cublasLt.h>)
#define CUDA_LT_HEADER 1
#include <cublasLt.h>

struct lt_api {
    __typeof__(cublasLtCreate) *create;
    __typeof__(cublasLtDestroy) *destroy;
    __typeof__(cublasLtGetVersion) *version;
    __typeof__(cublasLtMatmul) *matmul;
    __typeof__(cublasLtMatmulDescCreate) *desc_create;
    __typeof__(cublasLtMatmulDescDestroy) *desc_destroy;
    __typeof__(cublasLtMatmulDescSetAttribute) *desc_set;
    __typeof__(cublasLtMatmulDescGetAttribute) *desc_get;
    __typeof__(cublasLtMatrixLayoutCreate) *layout_create;
    __typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
    __typeof__(cublasLtMatrixLayoutGetAttribute) *layout_get;
    __typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
    __typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
    __typeof__(cublasLtMatmulPreferenceGetAttribute) *preference_get;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *heuristic;
    __typeof__(cublasLtMatmulAlgoConfigGetAttribute) *algo_get;
};
/* From $BENCH_CUBLASLT, else the loader's path, the toolkit's folder, or what pip put into
 * build/toolkit. ERR_UNSUPPORTED: none of them, and where it was looked for. */
int lt_load(struct lt_api *, struct err *);

struct lt_shape {                   /* y (m, n) = x (m, k) w (n, k)^T, all row-major */
    int64_t m, n, k, ldx, ldw, ldy; /* elements from row to row */
    enum dtype in, out;             /* of x and w; of y: the same or f32 */
    uint32_t x_align, y_align;      /* bytes, up to LT_ALIGN, which w has */
    int64_t room_bytes;
};
enum { LT_ALIGN = 256 };
uint32_t lt_alignment(const void *); /* the largest power of two that divides it, up to LT_ALIGN */
/* The library counts columns first: a row-major matrix is its transpose. So y^T (n, m) = (w^T)^T
   x^T with w^T (k, n) transposed and x^T (k, m) as it is. */
struct lt_problem {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulPreference_t preference;
};
bool lt_problem_open(const struct lt_api *, struct lt_problem *, const struct lt_shape *);
void lt_problem_close(const struct lt_api *, struct lt_problem *);
#endif

#endif
