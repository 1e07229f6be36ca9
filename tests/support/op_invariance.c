/* SPDX-License-Identifier: Apache-2.0 */
/* Batch invariance, where a device promises it: a row's bits alone, in any batch, split and thread
 * count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "tests/support/op_rig.h"

enum { MOST = 300 }; /* rows of the largest batch */
static const int32_t batches[] = {1, 2, 3, 5, 7, 9, 17, 33, 65, 150};

/* The targets that must agree: same kind, same options but threads. */
static size_t family(const struct op_target *target) {
    const char *threads = strstr(target->name, " threads=");
    return threads ? (size_t)(threads - target->name) : strlen(target->name);
}

static bool related(const struct op_target *a, const struct op_target *b) {
    return family(a) == family(b) && strncmp(a->name, b->name, family(a)) == 0;
}

/* The first target of its family gave the expected bits, the others are held against them. */
static const struct op_target *first_of(const struct op_rig *rig, int t) {
    for (int i = 0; i < t; i++)
        if (related(&rig->targets[i], &rig->targets[t])) return &rig->targets[i];
    return NULL;
}

static bool promises(const struct op_target *target) {
    return target->device->kind->has & DEV_BATCH_INVARIANT;
}

/* ---- linear ---- */

struct source {
    const float *w;
    int64_t cols;
};

static void source_row(void *ctx, int64_t r, float *out) {
    const struct source *s = ctx;
    memcpy(out, s->w + r * s->cols, (size_t)s->cols * sizeof *out);
}

struct product {
    struct weight_spec spec;
    const float *w, *x;
    int32_t out, in;
    enum epilogue epilogue;
    enum dtype activation;
};

static float *product_rows(struct op_rig *rig, struct op_target *target, const struct product *p,
                           const struct weight *weight, int32_t first, int32_t rows) {
    struct tensor x =
        op_tensor(target, p->activation, rows, p->in, p->in, p->x + (int64_t)first * p->in, false);
    struct tensor y = op_tensor(target, DT_F32, rows, p->out, p->out, NULL, true);
    target->device->ops->linear(target->device, &y, &x, weight, NULL, p->epilogue);
    return op_values(rig, target, &y);
}

/* Returns the (MOST, out) outputs of the largest batch; every smaller batch must repeat its rows.
 */
static float *product_run(struct op_rig *rig, struct op_target *target, const struct product *p) {
    struct source source = {p->w, p->in};
    struct row_source rows = {.row = source_row, .ctx = &source};
    struct weight *weight = op_pack(rig, target, &p->spec, 1, &rows);
    if (!weight) return NULL;
    float *all = product_rows(rig, target, p, weight, 0, MOST);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        int32_t n = batches[b], first = op_int(rig, 0, MOST - n);
        float *some = product_rows(rig, target, p, weight, first, n);
        op_case_name(rig, "invariance of linear %s %s, %s%s, N %d K %d: rows %d ... %d of %d alone",
                     dtype_names[p->spec.type], scale_names[p->spec.scale],
                     dtype_names[p->activation], p->spec.input == DT_I8 ? " by codes" : "", p->out,
                     p->in, first, first + n - 1, MOST);
        op_equal(rig, target, "y", some, all + (int64_t)first * p->out,
                 (size_t)n * (size_t)p->out * 4);
        free(some);
    }
    target->device->kind->unpack(target->device, &weight);
    op_release(rig, target);
    return all;
}

/* y is f32, in which no bit is hidden. */
static void product_of(struct op_rig *rig, const struct weight_format *format,
                       enum dtype activation, enum epilogue epilogue, int32_t out, int32_t in,
                       int group, enum dtype input) {
    if (op_enough(rig)) return;
    int64_t rows = epilogue == EPI_SWIGLU ? 2 * (int64_t)out : out;
    if (format->scale != SCALE_GROUP) group = 0;
    float *w = op_reals(rig, rows * in, 1), *x = op_reals(rig, (int64_t)MOST * in, 1);
    struct product p = {{"op test", rows, in, format->type, format->scale, group, input},
                        w,
                        x,
                        out,
                        in,
                        epilogue,
                        activation};
    const struct op_case ask = {.weight = format->type,
                                .scale = format->scale,
                                .group = group,
                                .input = input,
                                .activation = activation,
                                .epilogue = epilogue};
    float *kept[OP_TARGETS] = {0};
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!promises(target) || !op_supported(rig, target, OP_LINEAR, &ask)) continue;
        kept[t] = product_run(rig, target, &p);
        const struct op_target *first = first_of(rig, t);
        op_case_name(rig, "invariance of linear %s %s%s, N %d K %d: threads",
                     dtype_names[format->type], scale_names[format->scale],
                     input == DT_I8 ? " by codes" : "", out, in);
        if (first && kept[first - rig->targets] && kept[t])
            op_equal(rig, target, first->name, kept[t], kept[first - rig->targets],
                     (size_t)MOST * (size_t)out * 4);
    }
    for (int t = 0; t < rig->n_targets; t++) free(kept[t]);
    free(w);
    free(x);
}

static void product_case(struct op_rig *rig, const struct weight_format *format,
                         enum epilogue epilogue, int32_t out, int32_t in, int group) {
    product_of(rig, format, DT_F32, epilogue, out, in, group, DT_F32);
}

/* ---- attention ---- */

enum { SEQS = 3 };

struct heads {
    int32_t n_q, n_kv, d_h;
};

/* How the cache is laid out: the same bits again. */
enum layout { CONTIGUOUS, RING, PAGED, SMALL_PAGES, N_LAYOUTS };
static const char *const layout_names[] = {"contiguous", "a ring", "paged", "in small pages"};

static int32_t width_of(const struct heads *h) { return (h->n_q + 2 * h->n_kv) * h->d_h; }

/* Long enough that a device splits one sequence among its threads; the test of the test needs no
 * such length. */
static int32_t tokens(const struct op_rig *rig) { return rig->quiet ? 40 : 300; }

/* The cache of n sequences, empty. Pages lie in no order. */
static struct kv make_cache(struct op_rig *rig, struct op_target *target, enum dtype type,
                            const struct heads *h, enum layout layout, int32_t n) {
    const int32_t length = tokens(rig);
    struct kv kv = {.type = type, .n_kv = h->n_kv, .d_h = h->d_h, .block = length};
    int32_t units = n;
    if (layout == RING) {
        kv.window = length;
        kv.block = 2 * length;
    } else if (layout != CONTIGUOUS) {
        kv.block = layout == PAGED ? 16 : 5;
        kv.table_stride = (length + kv.block - 1) / kv.block;
        units = n * kv.table_stride;
        int32_t *table = arena_alloc(rig->arena, (size_t)units * sizeof *table);
        for (int32_t i = 0; i < units; i++) table[i] = i;
        random_shuffle(random_key(rig->seed, rig->draw++), table, units);
        kv.table = op_buffer(target, (size_t)units * sizeof *table, table);
    }
    const size_t values = (size_t)units * (size_t)h->n_kv * (size_t)kv.block * (size_t)h->d_h;
    const size_t size = (size_t)dtype_bits(type) / 8, scales = values / (size_t)h->d_h * 4;
    void *zero = must_alloc(values * size + scales);
    kv.k = op_inout(target, values * size, zero);
    kv.v = op_inout(target, values * size, zero);
    if (type == DT_I8) kv.k_scale = op_inout(target, scales, zero);
    if (type == DT_I8) kv.v_scale = op_inout(target, scales, zero);
    free(zero);
    return kv;
}

/* Pushes tokens of all sequences through rope_append and attention in pieces of `piece` rows,
   sequences [first, first + n) together, and writes o (SEQS, length, n_q * d_h). */
static void flow(struct op_rig *rig, struct op_target *target, enum dtype kv_type,
                 enum dtype activation, const struct heads *h, enum layout layout, const float *qkv,
                 int32_t first, int32_t n, int32_t piece, float *o) {
    struct device *device = target->device;
    const int32_t length = tokens(rig);
    const int32_t width = width_of(h), q_cols = h->n_q * h->d_h;
    const struct kv kv = make_cache(rig, target, kv_type, h, layout, n);
    const struct rope rope = {.base = 10000, .style = ROPE_HALVES};
    int held = target->n_buffers; /* the cache stays, the rest goes after each step */
    for (int32_t at = 0; at < length; at += piece) {
        int32_t rows = length - at < piece ? length - at : piece, before[SEQS], counts[SEQS];
        for (int32_t s = 0; s < n; s++) before[s] = at, counts[s] = rows;
        struct op_step step;
        op_step_make(rig, &step, n, before, counts, 10);
        float *x = must_alloc((size_t)(n * rows) * (size_t)width * 4);
        for (int32_t s = 0; s < n; s++)
            memcpy(x + (int64_t)s * rows * width,
                   qkv + ((int64_t)(first + s) * length + at) * width,
                   (size_t)rows * (size_t)width * 4);
        struct step on = op_step_on(target, &step);
        struct tensor in = op_tensor(target, activation, n * rows, width, width, x, false);
        struct tensor q = op_tensor(target, activation, n * rows, q_cols, q_cols, NULL, true);
        struct tensor out = op_tensor(target, DT_F32, n * rows, q_cols, q_cols, NULL, true);
        device->ops->rope_append(device, &q, &kv, &in, &on, &rope);
        device->ops->attention(device, &out, &q, &kv, &on, 0.125f);
        float *got = op_values(rig, target, &out);
        for (int32_t s = 0; s < n; s++)
            memcpy(o + ((int64_t)(first + s) * length + at) * q_cols,
                   got + (int64_t)s * rows * q_cols, (size_t)rows * (size_t)q_cols * 4);
        free(got);
        free(x);
        while (target->n_buffers > held)
            device_free(device, target->buffers[--target->n_buffers].base);
    }
    op_release(rig, target);
}

static void attention_case(struct op_rig *rig, enum dtype kv_type, enum dtype activation,
                           const struct heads *h) {
    if (op_enough(rig)) return;
    const int32_t length = tokens(rig);
    const struct op_case ask = {.activation = activation, .kv = kv_type};
    const struct step_bounds bounds = {.n_seq = SEQS,
                                       .n_row = SEQS * length,
                                       .n_out = SEQS,
                                       .most_q = length,
                                       .most_kv = length,
                                       .n_q = h->n_q,
                                       .n_kv = h->n_kv,
                                       .d_h = h->d_h,
                                       .d_model = h->n_q * h->d_h,
                                       .d_ff = 4 * h->n_q * h->d_h,
                                       .vocab = 10,
                                       .activation = activation};
    static const int32_t pieces[] = {1, 7, 32, 64};
    size_t bytes = (size_t)SEQS * (size_t)length * (size_t)(h->n_q * h->d_h) * 4;
    float *qkv = op_reals(rig, (int64_t)SEQS * length * width_of(h), 1), *kept[OP_TARGETS] = {0},
          *other = must_alloc(bytes);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!promises(target) || !op_supported(rig, target, OP_ATTENTION, &ask) ||
            !op_supported(rig, target, OP_ROPE_APPEND, &ask))
            continue;
        op_plan(rig, target, &bounds);
        kept[t] = must_alloc(bytes);
        flow(rig, target, kv_type, activation, h, CONTIGUOUS, qkv, 0, SEQS, length, kept[t]);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            op_case_name(
                rig,
                "invariance of attention, cache %s, %d q heads, %d kv heads of %d: %d sequences in pieces of %d",
                dtype_names[kv_type], h->n_q, h->n_kv, h->d_h, SEQS, pieces[i]);
            flow(rig, target, kv_type, activation, h, CONTIGUOUS, qkv, 0, SEQS, pieces[i], other);
            op_equal(rig, target, "o", other, kept[t], bytes);
        }
        op_case_name(
            rig,
            "invariance of attention, cache %s, %d q heads, %d kv heads of %d: each sequence alone",
            dtype_names[kv_type], h->n_q, h->n_kv, h->d_h);
        for (int32_t s = 0; s < SEQS; s++)
            flow(rig, target, kv_type, activation, h, CONTIGUOUS, qkv, s, 1, s == 0 ? 1 : 32,
                 other);
        op_equal(rig, target, "o", other, kept[t], bytes);
        for (int layout = CONTIGUOUS + 1; layout < N_LAYOUTS; layout++) {
            const struct op_case laid = {.activation = activation,
                                         .kv = kv_type,
                                         .paged = layout >= PAGED,
                                         .window = layout == RING};
            if (!op_supported(rig, target, OP_ATTENTION, &laid) ||
                !op_supported(rig, target, OP_ROPE_APPEND, &laid))
                continue;
            op_case_name(rig,
                         "invariance of attention, cache %s, %d q heads, %d kv heads of %d: %s",
                         dtype_names[kv_type], h->n_q, h->n_kv, h->d_h, layout_names[layout]);
            flow(rig, target, kv_type, activation, h, (enum layout)layout, qkv, 0, SEQS, 24, other);
            op_equal(rig, target, "o", other, kept[t], bytes);
        }
        const struct op_target *first = first_of(rig, t);
        op_case_name(rig,
                     "invariance of attention, cache %s, %d q heads, %d kv heads of %d: threads",
                     dtype_names[kv_type], h->n_q, h->n_kv, h->d_h);
        if (first && kept[first - rig->targets])
            op_equal(rig, target, first->name, kept[t], kept[first - rig->targets], bytes);
    }
    for (int t = 0; t < rig->n_targets; t++) free(kept[t]);
    free(other);
    free(qkv);
}

/* ---- add_norm ---- */

static void norm_case(struct op_rig *rig, int32_t d) {
    const struct op_case ask = {.activation = DT_F32};
    float *x = op_reals(rig, (int64_t)MOST * d, 1), *gain = op_reals(rig, d, 1),
          *kept[OP_TARGETS] = {0};
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!promises(target) || !op_supported(rig, target, OP_ADD_NORM, &ask)) continue;
        for (int b = -1; b < (int)(sizeof batches / sizeof *batches); b++) {
            int32_t n = b < 0 ? MOST : batches[b], first = op_int(rig, 0, MOST - n);
            struct tensor residual =
                op_tensor(target, DT_F32, n, d, d, x + (int64_t)first * d, true);
            struct tensor y = op_tensor(target, DT_F32, n, d, d, NULL, true);
            target->device->ops->add_norm(target->device, &y, &residual, NULL,
                                          op_buffer(target, (size_t)d * 4, gain), 1e-6f);
            float *some = op_values(rig, target, &y);
            op_case_name(rig, "invariance of add_norm, d %d: %d rows from %d", d, n, first);
            if (b >= 0)
                op_equal(rig, target, "y", some, kept[t] + (int64_t)first * d,
                         (size_t)n * (size_t)d * 4);
            if (b < 0)
                kept[t] = some;
            else
                free(some);
            op_release(rig, target);
        }
        const struct op_target *first = first_of(rig, t);
        op_case_name(rig, "invariance of add_norm, d %d: threads", d);
        if (first && kept[first - rig->targets])
            op_equal(rig, target, first->name, kept[t], kept[first - rig->targets],
                     (size_t)MOST * (size_t)d * 4);
    }
    for (int t = 0; t < rig->n_targets; t++) free(kept[t]);
    free(x);
    free(gain);
}

void op_check_invariance(struct op_rig *rig) {
    static const enum dtype kv_types[] = {DT_F32, DT_F16, DT_BF16, DT_I8};
    /* A group of one, and heads that fill no whole vectors, each with half of the types: scalar
     * code takes its time. */
    static const struct heads usual = {6, 2, 64}, single = {2, 2, 128}, odd = {9, 1, 40};
    for (size_t i = 0; i < 4; i++) attention_case(rig, kv_types[i], DT_F32, &usual);
    for (size_t i = 0; i < 4 && !rig->quiet; i++) {
        attention_case(rig, kv_types[i], DT_F32, i < 2 ? &odd : &single);
        if (i > 0) attention_case(rig, kv_types[i], i == 1 ? DT_F16 : DT_BF16, &single);
    }
    op_plan_dense(rig);
    static const int32_t shapes[][2] = {{1, 64},    {3, 1},     {17, 33},  {64, 64},
                                        {129, 127}, {320, 896}, {65, 1200}};
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            product_case(rig, f, EPI_NONE, shapes[i][0], shapes[i][1], 32);
        product_case(rig, f, EPI_SWIGLU, 96, 192, 32);
        product_case(rig, f, EPI_SWIGLU, 37, 65, 32);
        /* bf16 by bf16 has kernels of its own. */
        for (size_t i = 0; f->type == DT_BF16 && i < sizeof shapes / sizeof *shapes; i++)
            product_of(rig, f, DT_BF16, EPI_NONE, shapes[i][0], shapes[i][1], 0, DT_F32);
        for (int a = DT_F16; a <= DT_BF16 && !rig->quiet; a++) {
            product_of(rig, f, (enum dtype)a, EPI_NONE, 129, 127, 32, DT_F32);
            product_of(rig, f, (enum dtype)a, EPI_NONE, 65, 1200, 32, DT_F32);
            product_of(rig, f, (enum dtype)a, EPI_SWIGLU, 37, 320, 32, DT_F32);
        }
        if (f->type == DT_I8 || f->type == DT_I4) {
            product_of(rig, f, DT_F32, EPI_NONE, 65, 1200, 32, DT_I8);
            product_of(rig, f, DT_F32, EPI_NONE, 20, 4500, 128, DT_I8);
            product_of(rig, f, DT_F32, EPI_SWIGLU, 37, 129, 32, DT_I8);
        }
        if (f->scale != SCALE_GROUP) continue;
        product_case(rig, f, EPI_SWIGLU, 21, 1100, 7);
        product_case(rig, f, EPI_NONE, 33, 1200, 128);
        product_case(rig, f, EPI_NONE, 35, 2300, 1100); /* more than a device takes at once */
    }
    norm_case(rig, 896);
    norm_case(rig, 65);
}
