/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of rope_append, attention and kv_copy_block against ref: every cache layout and type,
 * mixed steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "tests/support/op_rig.h"

enum layout { CONTIGUOUS, RING, PAGED, PAGED_WINDOW, N_LAYOUTS };
static const char *const layout_names[] = {"contiguous", "ring", "paged", "paged + window"};
enum { MOST_SEQ = 6, SPLIT = 512 };

struct cache_case {
    enum layout layout;
    enum dtype activation;
    struct kv kv; /* shape only: addresses are per device */
    int32_t n_q, units, n_table;
    int32_t *table; /* (n_seq, table_stride), or NULL */
    void *k, *v;    /* host content of the cache, units of it */
    float *k_scale, *v_scale;
    size_t bytes, slots; /* of k; scales */
    struct op_step step;
    float *rows; /* qkv or q */
    struct rope rope;
    int32_t slack; /* how much more than the case needs is planned */
    int64_t gap;   /* behind each row of the tensors */
};

/* Random content everywhere, also where no token is: reading a wrong slot shows. */
static void *content(struct op_rig *rig, const struct kv *kv, size_t n, size_t slots,
                     float **scale) {
    size_t size = (size_t)dtype_bits(kv->type) / 8;
    unsigned char *data = must_alloc(n * size + 1);
    *scale = must_alloc(slots * sizeof **scale + 1);
    for (size_t i = 0; i < n; i++) {
        if (kv->type == DT_I8)
            data[i] = (unsigned char)(signed char)op_int(rig, -127, 127);
        else
            dtype_store(data, kv->type, (int64_t)i, op_real(rig));
    }
    for (size_t i = 0; i < slots; i++) (*scale)[i] = 0.005f + 0.01f * fabsf(op_real(rig));
    return data;
}

/* Sequences own shuffled units; full blocks before any append may be shared with the sequence
 * before. */
static void make_table(struct op_rig *rig, struct cache_case *c) {
    const struct step *h = &c->step.host;
    int32_t stride = 0, next = 0;
    for (int32_t s = 0; s < h->n_seq; s++) {
        int32_t blocks = (h->kv_len[s] + c->kv.block - 1) / c->kv.block;
        if (blocks > stride) stride = blocks;
    }
    stride += op_int(rig, 0, 2);
    c->kv.table_stride = stride;
    c->n_table = h->n_seq * stride;
    c->units = c->n_table + op_int(rig, 0, 3);
    int32_t *order = arena_alloc(rig->arena, (size_t)c->units * 4 + 4);
    for (int32_t i = 0; i < c->units; i++) order[i] = i;
    random_shuffle(random_key(rig->seed, rig->draw++), order, c->units);
    c->table = arena_alloc(rig->arena, (size_t)c->n_table * 4 + 4);
    for (int32_t i = 0; i < c->n_table; i++) c->table[i] = order[next++];
    for (int32_t s = 1; s < h->n_seq; s++) {
        int32_t a = c->step.before[s - 1] / c->kv.block, b = c->step.before[s] / c->kv.block;
        int32_t shared = op_int(rig, 0, a < b ? a : b);
        for (int32_t i = 0; i < shared; i++)
            c->table[s * stride + i] = c->table[(s - 1) * stride + i];
    }
}

struct heads {
    int32_t n_q, n_kv, d_h;
};

/* heads NULL: drawn too. */
static void make_case(struct op_rig *rig, struct cache_case *c, enum layout layout,
                      enum dtype activation, enum dtype kv_type, int32_t most_before,
                      const struct heads *given) {
    static const int32_t heads[][2] = {{1, 1},  {2, 1},  {4, 4}, {6, 2},  {7, 1},  {8, 2},
                                       {14, 2}, {16, 2}, {9, 3}, {12, 1}, {16, 1}, {20, 1}};
    /* Half types meet heads that tensor cores take, and some that they do not. */
    static const int32_t head_sizes[] = {2, 2, 6, 8, 16, 32, 64, 64, 80, 128},
                         half_sizes[] = {6, 16, 64, 64, 64, 80, 96, 128, 128, 128, 160, 256};
    static const int32_t blocks[] = {1, 3, 8, 16, 32};
    const bool half = activation != DT_F32;
    const int32_t *h = OP_PICK(rig, heads);
    int32_t before[MOST_SEQ], rows[MOST_SEQ], n_seq = op_int(rig, 1, MOST_SEQ);
    bool windowed = layout == RING || layout == PAGED_WINDOW;
    int32_t window = windowed ? OP_PICK(rig, ((const int32_t[]){1, 2, 3, 5, 16, 33, 64, 1000})) : 0;
    int32_t kind = op_int(rig, 0, 2); /* decode, prefill, both */
    for (int32_t s = 0; s < n_seq; s++) {
        bool decode = kind == 0 || (kind == 2 && s % 2 == 0);
        rows[s] = decode ? 1 : OP_PICK(rig, ((const int32_t[]){1, 2, 3, 5, 9, 17, 24, 97, 140}));
        if (s > 0 && op_int(rig, 0, 15) == 0) rows[s] = 0; /* it waits */
        switch (op_int(rig, 0, most_before < SPLIT ? 3 : 4)) {
        case 0: before[s] = decode ? op_int(rig, 0, 20) : 0; break;
        case 1: before[s] = op_int(rig, 0, 20); break;
        case 2: before[s] = op_int(rig, 0, most_before); break;
        case 3: /* the new rows, or where their windows begin, lie across a multiple of 32, where
                   chunks and blocks end */
            before[s] = 32 * op_int(rig, 1, most_before / 32) - op_int(rig, 0, rows[s]);
            if (windowed && op_int(rig, 0, 2) > 0) before[s] += window - 1;
            break;
        default: /* all that is seen just fills what one block of threads may take, or nearly */
            before[s] = SPLIT * op_int(rig, 1, 2) + op_int(rig, -1, 1) - rows[s];
        }
        if (before[s] < 0) before[s] = 0;
    }
    *c = (struct cache_case){.layout = layout, .activation = activation, .n_q = h[0]};
    c->kv = (struct kv){.type = kv_type, .n_kv = h[1], .window = window};
    c->kv.d_h = half ? OP_PICK(rig, half_sizes) : OP_PICK(rig, head_sizes);
    op_step_make(rig, &c->step, n_seq, before, rows, 100);
    c->units = n_seq + op_int(rig, 0, 1);
    if (given) {
        c->n_q = given->n_q;
        c->kv.n_kv = given->n_kv;
        c->kv.d_h = given->d_h;
    }
    if (layout == CONTIGUOUS) c->kv.block = c->step.host.most_kv + op_int(rig, 0, 9);
    if (layout == RING) c->kv.block = c->kv.window + c->step.host.most_q - 1 + op_int(rig, 0, 2);
    if (layout == PAGED || layout == PAGED_WINDOW) {
        c->kv.block = OP_PICK(rig, blocks);
        make_table(rig, c);
    }
    if (op_int(rig, 0, 2) == 0) c->step.host.most_kv += 5; /* it is only a bound */
    c->slots = (size_t)c->units * (size_t)c->kv.n_kv * (size_t)c->kv.block;
    size_t n = c->slots * (size_t)c->kv.d_h;
    c->bytes = n * (size_t)dtype_bits(kv_type) / 8;
    c->k = content(rig, &c->kv, n, c->slots, &c->k_scale);
    c->v = content(rig, &c->kv, n, c->slots, &c->v_scale);
    c->gap = OP_PICK(rig, ((const int32_t[]){0, 0, 4, 9})) * (half ? 2 : 1); /* 8: 16 bytes */
    c->slack = OP_PICK(rig, ((const int32_t[]){0, 0, 1, 3}));
    c->rope.style = op_int(rig, 0, 1) ? ROPE_PAIRS : ROPE_HALVES;
    c->rope.base = OP_PICK(rig, ((const float[]){10000, 1e6f, 500000}));
    /* Drawn apart: which cases follow does not depend on it, and these launch every kernel of cuda.
     */
    const uint64_t draw = rig->draw;
    rig->draw += UINT64_C(1) << 40;
    if (op_int(rig, 0, 2) == 0) {
        float *factor = arena_alloc(rig->arena, (size_t)c->kv.d_h / 2 * sizeof *factor);
        for (int32_t i = 0; i < c->kv.d_h / 2; i++) factor[i] = 0.5f + fabsf(op_real(rig)) * 4;
        c->rope.factor = factor;
        c->rope.magnify = op_int(rig, 0, 1) ? 1.25f : 0;
    }
    rig->draw = draw;
}

static void free_case(struct cache_case *c) {
    free(c->k);
    free(c->v);
    free(c->k_scale);
    free(c->v_scale);
    free(c->rows);
}

static void name_case(struct op_rig *rig, const char *op, const struct cache_case *c) {
    const struct step *h = &c->step.host;
    op_case_name(
        rig,
        "%s %s, cache %s %s block %d window %d, %d q heads, %d kv heads of %d, %d rows of %d sequences, longest %d",
        op, dtype_names[c->activation], dtype_names[c->kv.type], layout_names[c->layout],
        c->kv.block, c->kv.window, c->n_q, c->kv.n_kv, c->kv.d_h, h->n_row, h->n_seq, h->most_kv);
}

static struct op_case question(const struct cache_case *c) {
    return (struct op_case){.activation = c->activation,
                            .kv = c->kv.type,
                            .paged = c->kv.table_stride > 0,
                            .window = c->kv.window > 0};
}

static struct step_bounds bounds_of(const struct cache_case *c) {
    const struct step *h = &c->step.host;
    const int32_t more = c->slack;
    return (struct step_bounds){.n_seq = h->n_seq + more,
                                .n_row = h->n_row + more,
                                .n_out = h->n_out + more,
                                .most_q = h->most_q + more,
                                .most_kv = h->most_kv + 50 * more,
                                .n_q = c->n_q * (1 + more),
                                .n_kv = c->kv.n_kv * (1 + more),
                                .d_h = c->kv.d_h + 2 * more,
                                .d_model = c->n_q * (1 + more) * (c->kv.d_h + 2 * more),
                                .d_ff = 4 * c->n_q * c->kv.d_h,
                                .vocab = 100};
}

static struct kv cache_on(struct op_target *target, const struct cache_case *c, bool may_change) {
    struct kv kv = c->kv;
    kv.k = may_change ? op_inout(target, c->bytes, c->k) : op_buffer(target, c->bytes, c->k);
    kv.v = may_change ? op_inout(target, c->bytes, c->v) : op_buffer(target, c->bytes, c->v);
    if (kv.type == DT_I8) {
        kv.k_scale = op_inout(target, c->slots * 4, c->k_scale);
        kv.v_scale = op_inout(target, c->slots * 4, c->v_scale);
    }
    if (c->table) kv.table = op_buffer(target, (size_t)c->n_table * 4, c->table);
    return kv;
}

/* The cache as floats: (slots, d_h), dequantized. */
static float *cache_values(struct op_target *target, const struct cache_case *c, const void *data,
                           const float *scale) {
    size_t n = c->slots * (size_t)c->kv.d_h;
    unsigned char *image = must_alloc(c->bytes + 1);
    float *scales = must_alloc(c->slots * 4 + 1), *values = must_alloc(n * sizeof *values + 1);
    op_download(target, image, data, c->bytes);
    if (scale) op_download(target, scales, scale, c->slots * 4);
    for (size_t i = 0; i < n; i++)
        values[i] = scale ? (float)(int8_t)image[i] * scales[i / (size_t)c->kv.d_h]
                          : dtype_load(image, c->kv.type, (int64_t)i);
    free(image);
    free(scales);
    return values;
}

/* ---- rope_append ---- */

struct appended {
    float *q, *k, *v;
};

static struct appended append_run(struct op_rig *rig, struct op_target *target,
                                  const struct cache_case *c) {
    struct device *device = target->device;
    struct step_bounds bounds = bounds_of(c);
    op_plan(rig, target, &bounds);
    struct step on = op_step_on(target, &c->step);
    struct kv kv = cache_on(target, c, true);
    int32_t width = (c->n_q + 2 * kv.n_kv) * kv.d_h;
    struct tensor qkv =
        op_tensor(target, c->activation, on.n_row, width, width + c->gap, c->rows, false);
    struct tensor q = op_tensor(target, c->activation, on.n_row, c->n_q * kv.d_h,
                                c->n_q * kv.d_h + c->gap, NULL, true);
    device->ops->rope_append(device, &q, &kv, &qkv, &on, &c->rope);
    struct appended a = {op_values(rig, target, &q), cache_values(target, c, kv.k, kv.k_scale),
                         cache_values(target, c, kv.v, kv.v_scale)};
    op_release(rig, target);
    return a;
}

static void free_appended(struct appended *a) {
    free(a->q);
    free(a->k);
    free(a->v);
}

static void append_case(struct op_rig *rig, enum layout layout, enum dtype activation,
                        enum dtype kv_type) {
    if (op_enough(rig)) return;
    struct cache_case c;
    make_case(rig, &c, layout, activation, kv_type, 600, NULL);
    c.rows = op_reals(rig, (int64_t)c.step.host.n_row * (c.n_q + 2 * c.kv.n_kv) * c.kv.d_h, 1);
    static const char *const called[2][2] = {{"rope_append halves", "rope_append halves, scaled"},
                                             {"rope_append pairs", "rope_append pairs, scaled"}};
    name_case(rig, called[c.rope.style == ROPE_PAIRS][c.rope.factor != NULL], &c);
    const struct op_case ask = question(&c);
    op_supported(rig, &rig->ref, OP_ROPE_APPEND, &ask);
    struct appended want = append_run(rig, &rig->ref, &c);
    int64_t n_q = (int64_t)c.step.host.n_row * c.n_q * c.kv.d_h, n_kv = (int64_t)c.slots * c.kv.d_h;
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_ROPE_APPEND, &ask)) continue;
        struct appended got = append_run(rig, target, &c);
        float kv_rtol = kv_type == DT_F32 ? 0 : kv_type == DT_I8 ? 1e-5f : op_ulp(kv_type);
        float step = kv_type == DT_I8 ? 4.0f / 127 : 0; /* a code may round the other way */
        op_compare(rig, target, "q", got.q, want.q, n_q,
                   1e-5f + (activation == DT_F32 ? 0 : op_ulp(activation)), 3e-6f);
        op_compare(rig, target, "k", got.k, want.k, n_kv, 1e-5f + kv_rtol, 3e-6f + step);
        /* v is only rounded: the same bits, also wherever nothing was appended. */
        op_equal(rig, target, "v", got.v, want.v, (size_t)n_kv * 4);
        free_appended(&got);
    }
    free_appended(&want);
    free_case(&c);
}

static const enum dtype activations[] = {DT_F32, DT_F32, DT_F16, DT_BF16};
static const enum dtype kv_types[] = {DT_F32, DT_F16, DT_BF16, DT_I8};

void op_check_rope_append(struct op_rig *rig) {
    for (int layout = 0; layout < N_LAYOUTS; layout++)
        for (size_t k = 0; k < 4; k++)
            for (int i = 0; i < (layout == CONTIGUOUS ? 30 : 20); i++)
                append_case(rig, (enum layout)layout, activations[i % 4], kv_types[k]);
}

/* ---- attention ---- */

/* Where position p of sequence s would lie, or -1. */
static int64_t slot_of(const struct cache_case *c, int32_t s, int32_t head, int32_t p) {
    const struct kv *kv = &c->kv;
    const int32_t len = c->step.host.kv_len[s];
    int64_t unit = s;
    if (p < 0 || p > len) return -1;
    if (!c->table && (kv->window > 0 ? p == len || p < len - kv->block : p >= kv->block)) return -1;
    if (c->table && p / kv->block >= (len + kv->block - 1) / kv->block) return -1;
    if (c->table) unit = c->table[s * kv->table_stride + p / kv->block];
    return (unit * kv->n_kv + head) * kv->block + p % kv->block;
}

/* Makes the key of position p one that query head h of row r finds far above all others: so it
   shows in o whether just this key was seen, which in a mean of hundreds it would not. */
static void plant(struct cache_case *c, int32_t r, int32_t h, int32_t p) {
    const int32_t d = c->kv.d_h, s = c->step.host.seq[r];
    const int64_t at = slot_of(c, s, h / (c->n_q / c->kv.n_kv), p);
    const float *q = c->rows + ((int64_t)r * c->n_q + h) * d;
    float key[256], norm = 1e-6f;
    if (at < 0) return;
    for (int32_t i = 0; i < d; i++) norm += q[i] * q[i];
    for (int32_t i = 0; i < d; i++) key[i] = q[i] * 25 * sqrtf((float)d) / norm;
    if (c->kv.type == DT_I8)
        c->k_scale[at] = quant_kv(key, d, (int8_t *)c->k + at * d);
    else
        for (int32_t i = 0; i < d; i++) dtype_store(c->k, c->kv.type, at * d + i, key[i]);
}

/* At the ends of what a row sees, and where blocks, tiles and splits may meet. */
static void plant_at_edges(struct op_rig *rig, struct cache_case *c) {
    const struct step *step = &c->step.host;
    for (int32_t i = 0; i < 12; i++) {
        const int32_t r = op_int(rig, 0, step->n_row - 1), h = op_int(rig, 0, c->n_q - 1);
        const int32_t last = step->pos[r], len = step->kv_len[step->seq[r]];
        const int32_t low = c->kv.window > 0 && last >= c->kv.window ? last - c->kv.window + 1 : 0;
        const int32_t first = low / 16 * 16, edge = OP_PICK(rig, ((const int32_t[]){16, 64, 512}));
        switch (op_int(rig, 0, 4)) {
        case 0: plant(c, r, h, last + op_int(rig, 0, 1)); break;
        case 1: plant(c, r, h, low - op_int(rig, 0, 1)); break;
        case 2: plant(c, r, h, len - op_int(rig, 0, 1)); break;
        case 3: plant(c, r, h, first + edge + op_int(rig, -1, 0)); break;
        default: plant(c, r, h, last / edge * edge + op_int(rig, -1, 0));
        }
    }
}

/* Tensor cores take the weights of a mean rounded to the activations' type, which moves the mean by
   at most half a step of the largest value. */
static float weight_loss(const struct cache_case *c) {
    const int64_t n = (int64_t)c->slots * c->kv.d_h;
    float most = 0;
    if (c->activation == DT_F32) return 0;
    for (int64_t i = 0; i < n; i++) {
        const float v = c->kv.type == DT_I8 ? ((int8_t *)c->v)[i] * c->v_scale[i / c->kv.d_h]
                                            : dtype_load(c->v, c->kv.type, i);
        most = fmaxf(most, fabsf(v));
    }
    return most * op_ulp(c->activation) / 2;
}

static float *attention_run(struct op_rig *rig, struct op_target *target,
                            const struct cache_case *c) {
    struct device *device = target->device;
    struct step_bounds bounds = bounds_of(c);
    op_plan(rig, target, &bounds);
    struct step on = op_step_on(target, &c->step);
    struct kv kv = cache_on(target, c, false);
    int32_t width = c->n_q * kv.d_h;
    struct tensor q =
        op_tensor(target, c->activation, on.n_row, width, width + c->gap, c->rows, false);
    struct tensor o = op_tensor(target, c->activation, on.n_row, width, width + c->gap, NULL, true);
    device->ops->attention(device, &o, &q, &kv, &on, 1 / sqrtf((float)kv.d_h));
    float *values = op_values(rig, target, &o);
    op_release(rig, target);
    return values;
}

static void attention_case(struct op_rig *rig, enum layout layout, enum dtype activation,
                           enum dtype kv_type, int32_t most_before, const struct heads *heads) {
    if (op_enough(rig)) return;
    struct cache_case c;
    do { /* ref is slow: no more than about 10 ms of it */
        make_case(rig, &c, layout, activation, kv_type, most_before, heads);
        if ((int64_t)c.step.host.n_row * c.n_q * c.step.host.most_kv * c.kv.d_h < 2000000) break;
        free_case(&c);
    } while (true);
    /* Sharp and flat softmaxes; the first row very sharp, so that a missing maximum overflows. */
    c.rows = op_reals(rig, (int64_t)c.step.host.n_row * c.n_q * c.kv.d_h,
                      OP_PICK(rig, ((const float[]){0.3f, 1, 4})));
    for (int32_t i = 0; i < c.n_q * c.kv.d_h; i++) c.rows[i] *= 40;
    if (op_int(rig, 0, 2) > 0) plant_at_edges(rig, &c);
    name_case(rig, "attention", &c);
    const struct op_case ask = question(&c);
    op_supported(rig, &rig->ref, OP_ATTENTION, &ask);
    float *want = attention_run(rig, &rig->ref, &c);
    int64_t n = (int64_t)c.step.host.n_row * c.n_q * c.kv.d_h, first = (int64_t)c.n_q * c.kv.d_h;
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_ATTENTION, &ask)) continue;
        float *got = attention_run(rig, target, &c);
        float rtol = 2e-5f + (activation == DT_F32 ? 0 : op_ulp(activation)),
              loss = weight_loss(&c);
        /* Scores of the sharp row are large, and so is what rounding leaves of them in the
         * exponent. */
        op_compare(rig, target, "o of the sharp row", got, want, first, rtol, 2e-3f + loss);
        op_compare(rig, target, "o", got + first, want + first, n - first, rtol, 3e-5f + loss);
        free(got);
    }
    free(want);
    free_case(&c);
}

void op_check_attention(struct op_rig *rig) {
    for (int layout = 0; layout < N_LAYOUTS; layout++)
        for (size_t k = 0; k < 4; k++)
            for (int i = 0; i < (layout == CONTIGUOUS ? 60 : 40); i++)
                attention_case(rig, (enum layout)layout, activations[i % 4], kv_types[k], 600,
                               NULL);
    /* Heads of odd sizes, and groups of many query heads. */
    static const struct heads heads[] = {
        {3, 3, 1},   {16, 1, 3},  {5, 1, 7},  {8, 2, 40},  {12, 1, 64}, {9, 3, 64},
        {16, 2, 64}, {5, 5, 80},  {6, 1, 80}, {4, 4, 128}, {4, 2, 128}, {16, 1, 128},
        {2, 1, 256}, {3, 1, 256}, {90, 1, 8}, {96, 1, 16}, {95, 1, 34},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int layout = 0; layout < N_LAYOUTS; layout++)
            for (size_t k = 0; k < 4; k++)
                attention_case(rig, (enum layout)layout, DT_F32, kv_types[k], 300, &heads[i]);
}

/* ---- kv_copy_block ---- */

static void copy_block_on(struct op_rig *rig, struct op_target *target, const struct cache_case *c,
                          int32_t from, int32_t to) {
    struct device *device = target->device;
    struct kv kv = cache_on(target, c, true);
    size_t unit = c->bytes / (size_t)c->units, scales = c->slots / (size_t)c->units * 4;
    device->ops->kv_copy_block(device, &kv, from, to);
    const void *host[4] = {c->k, c->v, c->k_scale, c->v_scale},
               *on[4] = {kv.k, kv.v, kv.k_scale, kv.v_scale};
    for (int i = 0; i < (kv.type == DT_I8 ? 4 : 2); i++) {
        size_t all = i < 2 ? c->bytes : c->slots * 4, one = i < 2 ? unit : scales;
        unsigned char *got = must_alloc(all), *want = must_alloc(all);
        op_download(target, got, on[i], all);
        memcpy(want, host[i], all);
        memcpy(want + (size_t)to * one, (const char *)host[i] + (size_t)from * one, one);
        op_equal(rig, target, i % 2 ? "v" : "k", got, want, all);
        free(got);
        free(want);
    }
    op_release(rig, target);
}

void op_check_kv_copy_block(struct op_rig *rig) {
    for (int i = 0; i < 40; i++) {
        struct cache_case c;
        make_case(rig, &c, PAGED, DT_F32, kv_types[i % 4], 60, NULL);
        if (c.units > 1) {
            int32_t from = op_int(rig, 0, c.units - 1),
                    to = (from + op_int(rig, 1, c.units - 1)) % c.units;
            name_case(rig, "kv_copy_block", &c);
            const struct op_case ask = question(&c);
            op_supported(rig, &rig->ref, OP_KV_COPY_BLOCK, &ask);
            copy_block_on(rig, &rig->ref, &c, from, to);
            for (int t = 0; t < rig->n_targets; t++)
                if (op_supported(rig, &rig->targets[t], OP_KV_COPY_BLOCK, &ask))
                    copy_block_on(rig, &rig->targets[t], &c, from, to);
        }
        free_case(&c);
    }
}
