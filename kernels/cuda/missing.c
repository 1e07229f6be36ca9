/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose kernels are not written yet: they say no. */
#include "kernels/cuda/cuda.h"

#define NONE(name)                                                                                 \
    bool cuda_##name##_supports(const struct op_case *c, const char **reason) {                    \
        (void)c;                                                                                   \
        *reason = "cuda has no kernel for " #name " yet";                                          \
        return false;                                                                              \
    }                                                                                              \
    int64_t cuda_##name##_room(const struct gpu *gpu, const struct step_bounds *bounds) {          \
        (void)gpu, (void)bounds;                                                                   \
        return 0;                                                                                  \
    }                                                                                              \
    cudaError_t name##_load(void) { return cudaSuccess; }
#define SAYS_NO(device, name) cuda_expects(cuda_of(device), false, #name " has no kernel yet")

#ifndef HAVE_embed
NONE(embed)
void cuda_embed(struct device *d, struct tensor *x, const struct weight *w, const struct step *s) {
    (void)x, (void)w, (void)s;
    SAYS_NO(d, embed);
}
#endif
#ifndef HAVE_add_norm
NONE(add_norm)
void cuda_add_norm(struct device *d, struct tensor *y, struct tensor *residual,
                   const struct tensor *delta, const float *gain, float eps) {
    (void)y, (void)residual, (void)delta, (void)gain, (void)eps;
    SAYS_NO(d, add_norm);
}
#endif
#ifndef HAVE_linear
NONE(linear)
void cuda_linear(struct device *d, struct tensor *y, const struct tensor *x, const struct weight *w,
                 const float *bias, enum epilogue e) {
    (void)y, (void)x, (void)w, (void)bias, (void)e;
    SAYS_NO(d, linear);
}
#endif
#ifndef HAVE_rope_append
NONE(rope_append)
void cuda_rope_append(struct device *d, struct tensor *q, const struct kv *kv,
                      const struct tensor *qkv, const struct step *s, const struct rope *rope) {
    (void)q, (void)kv, (void)qkv, (void)s, (void)rope;
    SAYS_NO(d, rope_append);
}
#endif
#ifndef HAVE_attention
NONE(attention)
void cuda_attention(struct device *d, struct tensor *o, const struct tensor *q, const struct kv *kv,
                    const struct step *s, float scale) {
    (void)o, (void)q, (void)kv, (void)s, (void)scale;
    SAYS_NO(d, attention);
}
#endif
#ifndef HAVE_gather_rows
NONE(gather_rows)
void cuda_gather_rows(struct device *d, struct tensor *y, const struct tensor *x,
                      const struct step *s) {
    (void)y, (void)x, (void)s;
    SAYS_NO(d, gather_rows);
}
#endif
#ifndef HAVE_select
NONE(select)
void cuda_select(struct device *d, struct step *s, const struct tensor *logits,
                 const struct sampler *sampler) {
    (void)s, (void)logits, (void)sampler;
    SAYS_NO(d, select);
}
#endif
#ifndef HAVE_advance
NONE(advance)
void cuda_advance(struct device *d, const struct step *from, struct step *to,
                  const struct sampler *sampler) {
    (void)from, (void)to, (void)sampler;
    SAYS_NO(d, advance);
}
#endif
#ifndef HAVE_kv_copy_block
NONE(kv_copy_block)
void cuda_kv_copy_block(struct device *d, const struct kv *kv, int32_t from, int32_t to) {
    (void)kv, (void)from, (void)to;
    SAYS_NO(d, kv_copy_block);
}
#endif
#ifndef HAVE_ceilings
NONE(ceilings)
void cuda_copy(struct device *d, void *to, const void *from, int64_t bytes) {
    (void)to, (void)from, (void)bytes;
    SAYS_NO(d, copy);
}
void cuda_read(struct device *d, const void *from, int64_t bytes, float *sink) {
    (void)from, (void)bytes, (void)sink;
    SAYS_NO(d, read);
}
void cuda_triad(struct device *d, float *a, const float *b, const float *c, float s, int64_t n) {
    (void)a, (void)b, (void)c, (void)s, (void)n;
    SAYS_NO(d, triad);
}
void cuda_fma_peak(struct device *d, enum dtype type, int64_t flops) {
    (void)type, (void)flops;
    SAYS_NO(d, fma_peak);
}
#endif
#ifndef HAVE_pack
int64_t cuda_pack_tile_bytes(const struct cuda_weight *w) {
    return TILE_ROWS * w->padded_cols * dtype_bits(w->head.type) / 8;
}
void cuda_pack_tile(const struct cuda_weight *w, const void *rows16, void *out) {
    (void)w, (void)rows16, (void)out;
}
#endif
