/* SPDX-License-Identifier: Apache-2.0 */
/* What a stack's last layer gave, against the same by other ways. */
#include "workloads/common/stack_check.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/common/plain.h"

/* ---- against the full form */

/* All rows of the last layer's attention, on the host; malloc'ed. */
static float *all_rows(struct device *device, const struct tensor *t) {
    float *rows = must_alloc(sizeof *rows * (size_t)t->rows * (size_t)t->cols);
    for (int32_t r = 0; r < t->rows; r++)
        tensor_download(device, t, r, rows + (int64_t)r * t->cols);
    return rows;
}

static double relative_error(const float *got, const float *full, int64_t n) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)full[i];
        difference += d * d;
        size += (double)full[i] * (double)full[i];
    }
    return sqrt(difference / size);
}

int stack_check_full(struct stack_check *check, struct stack *stack, const struct stack_spec *full,
                     uint64_t seed, bool lossy, struct witness *w, struct err *err) {
    struct device *device = stack_device(stack);
    const struct tensor *mixed = stack_mixed(stack);
    const int64_t n = (int64_t)mixed->rows * mixed->cols;
    struct stack *other = NULL;
    int code = stack_create(&other, device, stack_config(stack), full, seed, err);
    if (!code) {
        stack_run(other);
        code = device->kind->sync(device, err);
    }
    if (!code) {
        float *got = all_rows(device, mixed), *want = all_rows(device, stack_mixed(other));
        if (lossy) w->contract = CONTRACT_LOSSY;
        for (int32_t r = 0; r < mixed->rows; r++)
            witness_row(w, got + (int64_t)r * mixed->cols, want + (int64_t)r * mixed->cols,
                        mixed->cols, (int64_t)r * mixed->cols,
                        plain_tolerance(stack_config(stack)));
        check->error = relative_error(got, want, n);
        if (lossy) w->holds = isfinite(check->error);
        free(got);
        free(want);
    }
    stack_close(&other);
    return code ? code : stack_plan(stack, err);
}

/* ---- two forms of a latent */

static double norm(const float *v, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)v[i] * (double)v[i];
    return sqrt(squares);
}

/* What is kept of one sequence: (length, latent + rotary), and W_K, W_V, on the host. */
struct kept {
    int32_t n, latent, rotary, d_h, n_q;
    float *rows, *k, *v;
    double c, key; /* largest norms of a latent and of a rotary key */
};

static struct kept read_kept(const struct stack *stack, int32_t seq) {
    const struct latent_cache *c = stack_latent_cache(stack);
    const struct latent_heads *heads = stack_latent_heads(stack);
    struct device *device = stack_device(stack);
    struct kept kept = {.n = c->capacity,
                        .latent = c->latent,
                        .rotary = c->rotary,
                        .d_h = heads->d_h,
                        .n_q = heads->n_q};
    const int64_t width = c->latent + c->rotary, size = dtype_bits(c->type) / 8;
    const int64_t weights = (int64_t)kept.n_q * kept.d_h * kept.latent;
    char *image = must_alloc((size_t)(width * size * kept.n));
    kept.rows = must_alloc(sizeof(float) * (size_t)(kept.n * width));
    kept.k = must_alloc(2 * sizeof(float) * (size_t)weights);
    kept.v = kept.k + weights;
    device->kind->download(device, image, (const char *)c->rows + seq * kept.n * width * size,
                           (size_t)(width * size * kept.n));
    device->kind->download(device, kept.k, heads->k, sizeof(float) * (size_t)weights);
    device->kind->download(device, kept.v, heads->v, sizeof(float) * (size_t)weights);
    for (int64_t i = 0; i < kept.n * width; i++) kept.rows[i] = dtype_load(image, c->type, i);
    for (int64_t t = 0; t < kept.n; t++) {
        kept.c = fmax(kept.c, norm(kept.rows + t * width, kept.latent));
        kept.key = fmax(kept.key, norm(kept.rows + t * width + kept.latent, kept.rotary));
    }
    free(image);
    return kept;
}

static void free_kept(struct kept *kept) {
    free(kept->rows);
    free(kept->k);
}

/* How far two orders of the same f32 sums may be apart in one output. Rounding errors of a sum are
   a random walk: of n terms whose squares add up to N^2, its deviation is u N sqrt(n / 2), u =
   2^-24. N of a score is about scale (|q_C| |W_K| |c| / sqrt(d_h latent) + |q_R| |k_R| /
   sqrt(rotary)), of a value |W_V row| |c| / sqrt(latent), and what a score errs by, its weight errs
   by relatively. Eight deviations of both forms, and the rounding of both outputs to their type. */
static double of_scores(const struct kept *k, const float *q, int32_t head, double scale) {
    const int64_t d = k->d_h, n = k->latent;
    const double w = norm(k->k + head * d * n, d * n) / sqrt((double)(d * n));
    const double turned = k->rotary ? norm(q + d, k->rotary) * k->key / sqrt((double)k->rotary) : 0;
    return 8 * 0x1p-24 * sqrt((double)(d + n + k->rotary) / 2) * scale *
           (norm(q, d) * w * k->c + turned);
}

static double forms_allowed(const struct kept *k, int32_t head, int32_t i, double scores,
                            enum dtype type, double value) {
    const int64_t n = k->latent;
    const double v = norm(k->v + ((int64_t)head * k->d_h + i) * n, n) * k->c / sqrt((double)n);
    const double sums = 8 * 0x1p-24 * sqrt((double)(k->n + n) / 2 + 1);
    const double round = type == DT_F32 ? 0x1p-23 : type == DT_F16 ? 0x1p-10 : 0x1p-7;
    return 2 * v * (scores + sums) + round * fabs(value);
}

/* The largest difference of a row's outputs over what is allowed. */
static double part_of_allowed(const struct kept *k, const float *q, const float *got,
                              const float *want, double scale, enum dtype type) {
    const int32_t d = k->d_h;
    double most = 0;
    for (int32_t h = 0; h < k->n_q; h++) {
        const double scores = of_scores(k, q + (int64_t)h * (d + k->rotary), h, scale);
        for (int32_t i = 0; i < d; i++, got++, want++) {
            const double part = fabs((double)*got - (double)*want) /
                                forms_allowed(k, h, i, scores, type, (double)*want);
            if (!(part <= most)) most = part; /* a NaN stays */
        }
    }
    return most;
}

int stack_check_form(struct stack_check *check, struct stack *stack, enum latent_form other,
                     struct witness *w, struct err *err) {
    struct device *device = stack_device(stack);
    const struct tensor *mixed = stack_mixed(stack), *queries = stack_queries(stack);
    const int64_t n = (int64_t)mixed->rows * mixed->cols;
    struct tensor o = {0};
    int code = tensor_create(&o, device, mixed->type, mixed->rows, mixed->cols, "other form", err);
    if (!code) {
        stack_latent(stack, &o, other);
        code = device->kind->sync(device, err);
    }
    if (!code) {
        float *got = all_rows(device, mixed), *want = all_rows(device, &o),
              *q = all_rows(device, queries);
        w->contract = CONTRACT_CLOSE;
        check->part_of_allowed = 0;
        for (int32_t r = 0; r < mixed->rows; r++) {
            struct kept kept = read_kept(stack, r);
            const float *row = got + (int64_t)r * mixed->cols, *full = want + (row - got);
            witness_row(w, row, full, mixed->cols, row - got, INFINITY);
            const double part = part_of_allowed(&kept, q + (int64_t)r * queries->cols, row, full,
                                                (double)stack_scale(stack), mixed->type);
            if (!(part <= check->part_of_allowed)) check->part_of_allowed = part;
            free_kept(&kept);
        }
        w->holds = check->part_of_allowed <= 1;
        check->error = relative_error(got, want, n);
        free(got);
        free(want);
        free(q);
    }
    device_free(device, o.data);
    return code;
}

/* ---- sampled heads in double, from what is kept */

static void sample(struct stack_check *check, const struct stack *stack, int32_t head,
                   const float *k, const float *v, int32_t n, int32_t d, int32_t width,
                   const float *q, const float *o, enum dtype kv_type) {
    double *out = must_alloc(2 * sizeof *out * (size_t)width), *spread = out + width;
    slow_attention(q, k, v, n, width, (double)stack_scale(stack), out, spread);
    for (int32_t c = 0; c < d; c++)
        slow_add(&check->slow, (double)o[c], out[c], out[c],
                 slow_attention_allowed(kv_type, stack_mixed(stack)->type, spread[c], out[c]),
                 (int64_t)head * d + c);
    free(out);
}

/* Keys or values of one head, (pos - from + 1, d_h). */
static float *read_head(struct device *device, const struct kv *kv, const int32_t *table,
                        bool values, int32_t head, int32_t from, int32_t pos) {
    const int64_t size = dtype_bits(kv->type) / 8 * (int64_t)kv->d_h;
    const float *scales = values ? kv->v_scale : kv->k_scale;
    char *image = must_alloc((size_t)size);
    float *out = must_alloc(sizeof *out * (size_t)(pos - from + 1) * (size_t)kv->d_h), *to = out;
    for (int32_t p = from; p <= pos; p++, to += kv->d_h) {
        const int64_t unit = table ? table[p / kv->block] : 0;
        const int64_t at = (unit * kv->n_kv + head) * kv->block + p % kv->block;
        float scale = 1;
        device->kind->download(device, image, (const char *)(values ? kv->v : kv->k) + at * size,
                               (size_t)size);
        if (scales) device->kind->download(device, &scale, scales + at, sizeof scale);
        for (int32_t i = 0; i < kv->d_h; i++)
            to[i] = scales ? (float)(signed char)image[i] * scale : dtype_load(image, kv->type, i);
    }
    free(image);
    return out;
}

/* The first and the last query head of the first sequence. */
static void sample_heads(struct stack_check *check, const struct stack *stack, const float *q,
                         const float *o) {
    struct device *device = stack_device(stack);
    const struct step *step;
    const struct kv *kv = stack_seen(stack, &step);
    const int32_t n_q = (int32_t)stack_config(stack)->shape.n_q, d = kv->d_h;
    int32_t pos, *table = NULL;
    device->kind->download(device, &pos, step->pos, sizeof pos);
    if (kv->table) {
        const size_t bytes = sizeof *table * (size_t)kv->table_stride;
        table = must_alloc(bytes);
        device->kind->download(device, table, kv->table, bytes);
    }
    const int32_t from = kv->window > 0 && pos >= kv->window ? pos - kv->window + 1 : 0;
    for (int32_t h = 0; h<n_q; h += n_q> 1 ? n_q - 1 : 1) {
        const int32_t kv_head = h / (n_q / kv->n_kv);
        float *k = read_head(device, kv, table, false, kv_head, from, pos);
        float *v = read_head(device, kv, table, true, kv_head, from, pos);
        sample(check, stack, h, k, v, pos - from + 1, d, d, q + (int64_t)h * d, o + (int64_t)h * d,
               kv->type);
        free(k);
        free(v);
    }
    free(table);
}

static void rebuild(const float *w, const float *c, int32_t d, int32_t n, float *out) {
    for (int32_t i = 0; i < d; i++) {
        double sum = 0;
        for (int32_t j = 0; j < n; j++) sum += (double)w[(int64_t)i * n + j] * (double)c[j];
        out[i] = (float)sum;
    }
}

/* K is what is rebuilt and the rotary key, V what is rebuilt and zeros. The lab's sums are f32. */
static void sample_latent(struct stack_check *check, const struct stack *stack, const float *q,
                          const float *o) {
    struct kept kept = read_kept(stack, 0);
    const int32_t d = kept.d_h, width = d + kept.rotary, row = kept.latent + kept.rotary;
    const size_t bytes = sizeof(float) * (size_t)kept.n * (size_t)width;
    float *k = must_alloc(2 * bytes), *v = k + (int64_t)kept.n * width;
    for (int32_t h = 0; h<kept.n_q; h += kept.n_q> 1 ? kept.n_q - 1 : 1) {
        const int64_t w = (int64_t)h * d * kept.latent;
        for (int64_t t = 0; t < kept.n; t++) {
            const float *c = kept.rows + t * row;
            rebuild(kept.k + w, c, d, kept.latent, k + t * width);
            rebuild(kept.v + w, c, d, kept.latent, v + t * width);
            for (int32_t i = 0; i < kept.rotary; i++) {
                k[t * width + d + i] = c[kept.latent + i];
                v[t * width + d + i] = 0;
            }
        }
        sample(check, stack, h, k, v, kept.n, d, width, q + (int64_t)h * width, o + (int64_t)h * d,
               DT_F32);
    }
    free(k);
    free_kept(&kept);
}

void stack_check_heads(struct stack_check *check, const struct stack *stack, struct witness *w) {
    float *q = all_rows(stack_device(stack), stack_queries(stack)),
          *o = all_rows(stack_device(stack), stack_mixed(stack));
    slow_begin(&check->slow);
    (stack_latent_cache(stack)->latent ? sample_latent : sample_heads)(check, stack, q, o);
    slow_judge(&check->slow, w);
    free(q);
    free(o);
}

uint64_t stack_hash(const struct stack *stack) {
    const struct tensor *mixed = stack_mixed(stack);
    float *o = all_rows(stack_device(stack), mixed);
    const uint64_t hash = hash_bytes(o, sizeof *o * (size_t)mixed->rows * (size_t)mixed->cols, 1);
    free(o);
    return hash;
}
