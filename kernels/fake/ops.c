/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device's ops: bookkeeping is real, arithmetic is a cost on the virtual clock. */
#include <string.h>

#include "base/random.h"
#include "kernels/fake/fake.h"

/* The longer of arithmetic and traffic, plus the launch (the roofline as a clock). Queued, the host
 * pays for the launch alone, and an op begins when the one before it is done. */
static void spend(struct device *device, double flops, double bytes) {
    struct fake *fake = (struct fake *)device;
    double a = flops / fake->params.flops, b = bytes / fake->params.bandwidth;
    const double cost = (a > b ? a : b) * 1e9;
    fake->now_ns += (double)fake->params.launch_ns + (fake->params.queued ? 0 : cost);
    if (!fake->params.queued) return;
    fake->busy_ns = (fake->busy_ns > fake->now_ns ? fake->busy_ns : fake->now_ns) + cost;
}

static double tensor_bytes(const struct tensor *t) {
    return t ? (double)t->rows * t->cols * dtype_bits(t->type) / 8 : 0;
}

static void embed(struct device *device, struct tensor *x, const struct weight *w,
                  const struct step *step) {
    (void)step;
    spend(device, 0, tensor_bytes(x) + (double)x->rows * (double)w->cols * dtype_bits(w->type) / 8);
}

static void add_norm(struct device *device, struct tensor *y, struct tensor *residual,
                     const struct tensor *delta, const float *gain, float eps) {
    (void)gain, (void)eps;
    spend(device, 4.0 * residual->rows * residual->cols,
          tensor_bytes(residual) + tensor_bytes(delta) + tensor_bytes(y));
}

static void linear(struct device *device, struct tensor *y, const struct tensor *x,
                   const struct weight *w, const float *bias, enum epilogue epilogue) {
    (void)bias, (void)epilogue;
    spend(device, 2.0 * x->rows * (double)w->rows * (double)w->cols,
          (double)(w->bytes + w->scale_bytes) + tensor_bytes(x) + tensor_bytes(y));
}

/* Of a layer: keys and values, and of codes a scale for each head of both. */
static double kv_token_bytes(const struct kv *kv) {
    const double scale = kv->k_scale != NULL ? sizeof(float) : 0;
    return 2.0 * kv->n_kv * (kv->d_h * dtype_bits(kv->type) / 8.0 + scale);
}

static void rope_append(struct device *device, struct tensor *q, const struct kv *kv,
                        const struct tensor *qkv, const struct step *step,
                        const struct rope *rope) {
    (void)rope;
    spend(device, 3.0 * q->rows * q->cols,
          tensor_bytes(qkv) + tensor_bytes(q) + step->n_row * kv_token_bytes(kv));
}

static void attention(struct device *device, struct tensor *o, const struct tensor *q,
                      const struct kv *kv, const struct step *step, float scale) {
    (void)scale;
    double flops = 0, bytes = tensor_bytes(q) + tensor_bytes(o);
    for (int32_t s = 0; s < step->n_seq; s++) {
        double rows = step->q_begin[s + 1] - step->q_begin[s], len = step->kv_len[s];
        if (!(rows > 0)) continue;
        if (kv->window && len > kv->window) len = kv->window;
        flops += 4.0 * rows * len * q->cols;
        bytes += len * kv_token_bytes(kv);
    }
    spend(device, flops, bytes);
}

static void gather_rows(struct device *device, struct tensor *y, const struct tensor *x,
                        const struct step *step) {
    (void)x, (void)step;
    spend(device, 0, 2 * tensor_bytes(y));
}

/* Tokens are a function of sequence key and position, so that every path through the same positions
 * agrees. */
static void select_token(struct device *device, struct step *step, const struct tensor *logits,
                         const struct sampler *sampler) {
    struct fake *fake = (struct fake *)device;
    for (int32_t o = 0; o < step->n_out; o++) {
        int32_t row = step->out_row[o], s = step->seq[row];
        step->next[o] = (int32_t)random_below(step->rng[s] + 1, (uint64_t)step->pos[row],
                                              (uint32_t)logits->cols);
        if (sampler->end_id >= 0 && step->pos[row] == fake->params.end_at)
            step->next[o] = sampler->end_id;
    }
    spend(device, 0, tensor_bytes(logits));
}

static void advance(struct device *device, const struct step *from, struct step *to,
                    const struct sampler *sampler) {
    for (int32_t o = 0; o < from->n_out; o++) {
        int32_t s = from->seq[from->out_row[o]], row = to->q_begin[s];
        int32_t len = from->kv_len[s];
        to->token[row] = from->next[o];
        to->pos[row] = len;
        to->kv_len[s] = len + 1;
        to->alive[s] = from->alive[s] && from->next[o] != sampler->end_id;
    }
    spend(device, 0, 0);
}

static void kv_copy_block(struct device *device, const struct kv *kv, int32_t from, int32_t to) {
    (void)from, (void)to;
    spend(device, 0, 4.0 * kv->n_kv * kv->block * kv->d_h * dtype_bits(kv->type) / 8);
}

static void copy(struct device *device, void *to, const void *from, int64_t bytes) {
    (void)to, (void)from;
    spend(device, 0, 2.0 * (double)bytes);
}

static void read_bytes(struct device *device, const void *from, int64_t bytes, float *sink) {
    (void)from;
    *sink = 0;
    spend(device, 0, (double)bytes);
}

static void triad(struct device *device, float *a, const float *b, const float *c, float s,
                  int64_t n) {
    (void)a, (void)b, (void)c, (void)s;
    spend(device, 2.0 * (double)n, 12.0 * (double)n);
}

static void fma_peak(struct device *device, enum dtype type, int64_t flops) {
    (void)type;
    spend(device, (double)flops, 0);
}

const struct ops fake_ops = {
    .embed = embed,
    .add_norm = add_norm,
    .linear = linear,
    .rope_append = rope_append,
    .attention = attention,
    .gather_rows = gather_rows,
    .select = select_token,
    .advance = advance,
    .kv_copy_block = kv_copy_block,
    .copy = copy,
    .read = read_bytes,
    .triad = triad,
    .fma_peak = fma_peak,
};
