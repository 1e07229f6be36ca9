/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: what the engine owns and every op uses. The same sources make the device `cuda`
   over the CUDA runtime and, in test builds, `cuda-emu` over a stand-in of it on the host
   (BENCH_SIMT). */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H
#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "base/err.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/weight.h"
#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_params { /* keys of [device] */
    int64_t index;   /* which GPU */
    bool graph;      /* steps are captured once and replayed */
    bool pdl;        /* programmatic dependent launch */
    int gemm;        /* who multiplies more than 64 rows: auto, own, cublaslt */
};

struct cuda_room { /* workspace of one op, from plan() */
    void *data;
    int64_t bytes;
    uint64_t holds; /* what an op keeps in it from step to step, in the op's own code; 0: nothing */
};

struct cuda {
    struct device base;
    struct cuda_params params;
    struct gpu gpu;
    cudaStream_t stream;
    struct err failed; /* the first failure since the last sync */
    struct step_bounds bounds;
    struct cuda_room *room;     /* (N_OPS) of the plan that holds */
    bool recording;             /* between graph begin and end: nothing may allocate or wait */
    int64_t launches;           /* since opening: an exact metric */
    struct cuda_engine *engine; /* what only engine.c knows */
};
static inline struct cuda *cuda_of(struct device *d) { return (struct cuda *)d; }

/* Remembers the first failure for sync; returns whether `holds`. */
bool cuda_expects(struct cuda *, bool holds, const char *sentence);
/* After each launch: counts it, and remembers a failure under the kernel's name. */
void cuda_launched(struct cuda *, const struct launch *, cudaError_t);
/* The length that grids are made for: most_kv, or its power-of-two bucket (from 256 up) where steps
 * are recorded. */
int32_t cuda_bucket(const struct cuda *, int32_t most_kv);

/* Every op NAME has, in its own files:
     NAME.h       its argument struct(s), shape, plan and launch declarations (C and C++)
     NAME.card.h  the cards; NAME.plan.c the table `const struct card NAME_cards[]`, shape ->
   launch: plain C, no CUDA header NAME.cu      the kernels, `cudaError_t NAME_launch(const struct
   launch *, cudaStream_t, bool pdl, const struct NAME_args *)` and `cudaError_t NAME_load(void)`
   (every instantiation), both extern "C" NAME.op.c    `cuda_NAME`: the op of ops.h;
   `cuda_NAME_supports(const struct op_case *, const char **)` (kernel or reason, static text);
   `int64_t cuda_NAME_room(const struct gpu *, const struct step_bounds *)`: workspace bytes */
#define CUDA_OP(name)                                                                              \
    bool cuda_##name##_supports(const struct op_case *, const char **kernel_or_reason);            \
    int64_t cuda_##name##_room(const struct gpu *, const struct step_bounds *);
CUDA_OP(embed)
CUDA_OP(add_norm)
CUDA_OP(
    linear) /* M <= 64 in linear.*, more in gemm.* (own) and lt.c (cuBLASLt); cuda_linear chooses */
CUDA_OP(rope_append)
CUDA_OP(attention) /* decode and prefill forms */
CUDA_OP(gather_rows)
CUDA_OP(select)
CUDA_OP(advance)
CUDA_OP(kv_copy_block)
CUDA_OP(ceilings) /* copy, read, triad, fma_peak */
#undef CUDA_OP

void cuda_embed(struct device *, struct tensor *x, const struct weight *, const struct step *);
void cuda_add_norm(struct device *, struct tensor *y, struct tensor *residual,
                   const struct tensor *delta, const float *gain, float eps);
void cuda_linear(struct device *, struct tensor *y, const struct tensor *x, const struct weight *,
                 const float *bias, enum epilogue);
void cuda_rope_append(struct device *, struct tensor *q, const struct kv *,
                      const struct tensor *qkv, const struct step *, const struct rope *);
void cuda_attention(struct device *, struct tensor *o, const struct tensor *q, const struct kv *,
                    const struct step *, float scale);
void cuda_gather_rows(struct device *, struct tensor *y, const struct tensor *x,
                      const struct step *);
void cuda_select(struct device *, struct step *, const struct tensor *logits,
                 const struct sampler *);
void cuda_advance(struct device *, const struct step *from, struct step *to,
                  const struct sampler *);
void cuda_kv_copy_block(struct device *, const struct kv *, int32_t from, int32_t to);
void cuda_copy(struct device *, void *to, const void *from, int64_t bytes);
void cuda_read(struct device *, const void *from, int64_t bytes, float *sink);
void cuda_triad(struct device *, float *a, const float *b, const float *c, float s, int64_t n);
void cuda_fma_peak(struct device *, enum dtype, int64_t flops);

/* Packing: host codes into the device's order (frag.cuh); used by the engine's pack(). rows16: 16
   consecutive rows in the order of data, each padded_cols apart: int8_t codes as quant_row gives
   them, or float values of the unquantized types; what stands behind head.cols is not read. out:
   cuda_pack_tile_bytes. Any thread. Owned by linear. */
int64_t cuda_pack_tile_bytes(const struct cuda_weight *);
void cuda_pack_tile(const struct cuda_weight *, const void *rows16, void *out);

#ifdef __cplusplus
}
#endif
#endif
