/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops on latent caches, and on blocks chosen from a paged one. */
#include <float.h>
#include <math.h>

#include "kernels/ref/ref.h"
#include "kernels/lab_latent.h"

static double cached(const struct latent_cache *c, int64_t row, int32_t i) {
    return (double)dtype_load(c->rows, c->type, row + i);
}

static bool fits(struct device *device, const struct tensor *q, const struct latent_cache *c,
                 const struct latent_heads *heads) {
    return ref_expects(device, latent_fits(q, c, heads),
                       "latent: queries, heads and the cache do not fit");
}

static void append(struct device *device, struct tensor *q, const struct latent_cache *c,
                   const struct latent_heads *heads, const struct tensor *x,
                   const struct step *step, const struct rope *rope) {
    const int32_t width = heads->d_h + c->rotary, kept = c->latent + c->rotary;
    float values[LATENT_MOST];
    if (!fits(device, q, c, heads) ||
        !ref_expects(device, x->cols == q->cols + kept, "latent append: x does not fit"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        const int32_t p = step->pos[r];
        for (int32_t h = 0; h < heads->n_q; h++) {
            for (int32_t i = 0; i < width; i++)
                values[i] = dtype_load(x->data, x->type, r * x->stride + h * width + i);
            ref_rotate(values + heads->d_h, c->rotary, p, rope);
            for (int32_t i = 0; i < width; i++)
                dtype_store(q->data, q->type, r * q->stride + h * width + i, values[i]);
        }
        for (int32_t i = 0; i < kept; i++)
            values[i] = dtype_load(x->data, x->type, r * x->stride + q->cols + i);
        ref_rotate(values + c->latent, c->rotary, p, rope);
        for (int32_t i = 0; i < kept; i++)
            dtype_store(c->rows, c->type, latent_row(c, step->seq[r], p) + i, values[i]);
    }
}

/* One head of one row. w: its W_K, then its W_V, (d_h, latent) each. */
struct head {
    struct ref *ref;
    const struct latent_cache *cache;
    const float *q, *wk, *wv;
    int32_t d_h, s, p;
    double scale;
};

/* Scores become weights that add up to 1. */
static void softmax(double *scores, int32_t n) {
    double most = -INFINITY, sum = 0;
    for (int32_t t = 0; t < n; t++) most = fmax(most, scores[t]);
    for (int32_t t = 0; t < n; t++) sum += scores[t] = exp(scores[t] - most);
    for (int32_t t = 0; t < n; t++) scores[t] /= sum;
}

static double rotary_score(const struct head *h, int64_t row) {
    double sum = 0;
    for (int32_t i = 0; i < h->cache->rotary; i++)
        sum += (double)h->q[h->d_h + i] * cached(h->cache, row, h->cache->latent + i);
    return sum;
}

/* The query takes W_K in once; W_V is applied to the weighted sum of latents. */
static void absorbed(const struct head *h, double *scores, float *out) {
    const struct latent_cache *c = h->cache;
    const int32_t n = c->latent, d = h->d_h;
    double taken[LATENT_MOST] = {0}, mean[LATENT_MOST] = {0};
    for (int32_t i = 0; i < d; i++)
        for (int32_t j = 0; j < n; j++)
            taken[j] += (double)h->q[i] * (double)h->wk[(int64_t)i * n + j];
    for (int32_t t = 0; t <= h->p; t++) {
        const int64_t row = latent_row(c, h->s, t);
        double sum = rotary_score(h, row);
        for (int32_t j = 0; j < n; j++) sum += taken[j] * cached(c, row, j);
        scores[t] = sum * h->scale;
    }
    softmax(scores, h->p + 1);
    for (int32_t t = 0; t <= h->p; t++)
        for (int32_t j = 0; j < n; j++) mean[j] += scores[t] * cached(c, latent_row(c, h->s, t), j);
    for (int32_t i = 0; i < d; i++) {
        double sum = 0;
        for (int32_t j = 0; j < n; j++) sum += (double)h->wv[(int64_t)i * n + j] * mean[j];
        out[i] = (float)sum;
    }
    h->ref->counts.attention += 2 * (int64_t)d * n + (h->p + (int64_t)1) * (2 * n + c->rotary);
}

/* Value i of what a head rebuilds from a token's latent. */
static double rebuild(const struct head *h, const float *w, int64_t row, int32_t i) {
    const int32_t n = h->cache->latent;
    double sum = 0;
    for (int32_t j = 0; j < n; j++) sum += (double)w[(int64_t)i * n + j] * cached(h->cache, row, j);
    h->ref->counts.attention += n;
    return sum;
}

static void rebuilt(const struct head *h, double *scores, float *out) {
    double sums[LATENT_MOST] = {0};
    for (int32_t t = 0; t <= h->p; t++) {
        const int64_t row = latent_row(h->cache, h->s, t);
        double sum = rotary_score(h, row);
        for (int32_t i = 0; i < h->d_h; i++) sum += (double)h->q[i] * rebuild(h, h->wk, row, i);
        scores[t] = sum * h->scale;
    }
    softmax(scores, h->p + 1);
    for (int32_t t = 0; t <= h->p; t++)
        for (int32_t i = 0; i < h->d_h; i++)
            sums[i] += scores[t] * rebuild(h, h->wv, latent_row(h->cache, h->s, t), i);
    for (int32_t i = 0; i < h->d_h; i++) out[i] = (float)sums[i];
    h->ref->counts.attention += (h->p + (int64_t)1) * (2 * h->d_h + h->cache->rotary);
}

static void attention(struct device *device, struct tensor *o, const struct tensor *q,
                      const struct latent_cache *c, const struct latent_heads *heads,
                      const struct step *step, float scale, enum latent_form form) {
    const int32_t width = heads->d_h + c->rotary;
    float query[LATENT_MOST], out[LATENT_MOST];
    if (!fits(device, q, c, heads) || !ref_expects(device, o->cols == heads->n_q * heads->d_h,
                                                   "latent attention: o does not fit"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        struct head head = {.ref = (struct ref *)device,
                            .cache = c,
                            .q = query,
                            .d_h = heads->d_h,
                            .s = step->seq[r],
                            .p = step->pos[r],
                            .scale = (double)scale};
        for (int32_t h = 0; h < heads->n_q; h++) {
            double *scores = ref_room(head.ref, head.p + (int64_t)1);
            head.wk = heads->k + (int64_t)h * heads->d_h * c->latent;
            head.wv = heads->v + (int64_t)h * heads->d_h * c->latent;
            for (int32_t i = 0; i < width; i++)
                query[i] = dtype_load(q->data, q->type, r * q->stride + h * width + i);
            (form == LATENT_ABSORBED ? absorbed : rebuilt)(&head, scores, out);
            for (int32_t i = 0; i < heads->d_h; i++)
                dtype_store(o->data, o->type, r * o->stride + h * heads->d_h + i, out[i]);
        }
    }
}

/* ---- blocks */

static void summarize(struct device *device, const struct block_means *m, const struct kv *kv,
                      const struct step *step) {
    if (!ref_expects(device, kv->table && kv->type != DT_I8, "summarize: a paged cache of floats"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        const int32_t s = step->seq[r], p = step->pos[r], block = p / kv->block;
        const int32_t n = p % kv->block + 1;
        const int64_t unit = kv->table[(int64_t)s * kv->table_stride + block];
        for (int32_t h = 0; h < kv->n_kv; h++)
            for (int32_t i = 0; i < kv->d_h; i++) {
                const int64_t from = (unit * kv->n_kv + h) * kv->block;
                const int64_t to = ((int64_t)s * m->most + block) * kv->n_kv + h;
                double sum = 0;
                for (int32_t o = 0; o < n; o++)
                    sum += (double)dtype_load(kv->k, kv->type, (from + o) * kv->d_h + i);
                dtype_store(m->means, m->type, to * kv->d_h + i, (float)(sum / n));
            }
    }
}

static float block_score(const struct block_means *m, const struct tensor *q, const struct kv *kv,
                         int32_t r, int64_t block) {
    const int32_t n_q = q->cols / kv->d_h, group = n_q / kv->n_kv;
    double sum = 0;
    for (int32_t h = 0; h < n_q; h++)
        for (int32_t i = 0; i < kv->d_h; i++)
            sum +=
                (double)dtype_load(q->data, q->type, r * q->stride + h * kv->d_h + i) *
                (double)dtype_load(m->means, m->type, (block * kv->n_kv + h / group) * kv->d_h + i);
    return sum > -(double)FLT_MAX ? (float)sum : -FLT_MAX;
}

static void choose(struct device *device, const struct block_choice *choice,
                   const struct block_means *m, const struct tensor *q, const struct kv *kv,
                   const struct step *step) {
    if (!ref_expects(device, kv->table && choice->most > 0 && q->cols % (kv->n_kv * kv->d_h) == 0,
                     "choose: a paged cache, and one block or more"))
        return;
    for (int32_t r = 0; r < step->n_row; r++) {
        const int32_t s = step->seq[r], newest = step->pos[r] / kv->block;
        float *scores = m->scores + (int64_t)s * m->most;
        for (int32_t b = 0; b < newest; b++)
            scores[b] = block_score(m, q, kv, r, (int64_t)s * m->most + b);
        ((struct ref *)device)->counts.attention += (int64_t)newest * q->cols;
        block_take(choice, m, kv, step, r);
    }
}

const struct lab_latent ref_lab_latent = {
    .append = append, .attention = attention, .summarize = summarize, .choose = choose};
