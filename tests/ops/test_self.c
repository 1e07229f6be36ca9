/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: timeout 300
   The test of the op tests: a device with one wrong habit at a time must be caught by the check
 * that is meant to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/op_rig.h"

enum { HELD = 64 }; /* elements of a row that a wrong op may look at */

static void *leaked;                  /* by embed_leaks; main frees it after the check */
static const struct device_kind *ref; /* the right one, whose functions the wrong ones call */
static struct device_kind wrong_kind;
static struct ops wrong_ops;

static float *at(const struct tensor *t, int32_t r, int32_t c) {
    return (float *)t->data + r * t->stride + c;
}

static const struct ops *right(struct device *device) {
    static const struct ops *ops;
    if (!ops) {
        struct device *d = NULL;
        if (device_open(&d, ref, NULL, NULL)) abort();
        ops = d->ops;
        device_close(&d);
    }
    (void)device;
    return ops;
}

static bool f32(const struct tensor *t) { return t->type == DT_F32; }

/* ---- wrong habits ---- */

static void linear_last_off(struct device *d, struct tensor *y, const struct tensor *x,
                            const struct weight *w, const float *bias, enum epilogue e) {
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(y)) *at(y, y->rows - 1, y->cols - 1) *= 1.001f;
}

static void linear_no_tail(struct device *d, struct tensor *y, const struct tensor *x,
                           const struct weight *w, const float *bias, enum epilogue e) {
    float held = f32(y) ? *at(y, 0, y->cols - 1) : 0;
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(y)) *at(y, 0, y->cols - 1) = held; /* never written */
}

static void linear_beyond(struct device *d, struct tensor *y, const struct tensor *x,
                          const struct weight *w, const float *bias, enum epilogue e) {
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(y)) *at(y, y->rows - 1, (int32_t)y->stride) = 0; /* one element behind the end */
}

static void linear_gap(struct device *d, struct tensor *y, const struct tensor *x,
                       const struct weight *w, const float *bias, enum epilogue e) {
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(y) && y->stride > y->cols) *at(y, 0, y->cols) = 0;
}

static void linear_spoils_x(struct device *d, struct tensor *y, const struct tensor *x,
                            const struct weight *w, const float *bias, enum epilogue e) {
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(x)) *at(x, 0, 0) += 1;
}

static void linear_forgets_bias(struct device *d, struct tensor *y, const struct tensor *x,
                                const struct weight *w, const float *bias, enum epilogue e) {
    (void)bias;
    right(d)->linear(d, y, x, w, NULL, e);
}

static void linear_by_batch(struct device *d, struct tensor *y, const struct tensor *x,
                            const struct weight *w, const float *bias, enum epilogue e) {
    right(d)->linear(d, y, x, w, bias, e);
    if (f32(y) && y->rows > 7) /* the last bit, in larger batches only */
        for (int32_t r = 0; r < y->rows; r++)
            *at(y, r, 0) = f32_from_bits(f32_bits(*at(y, r, 0)) ^ 1);
}

static void norm_without_eps(struct device *d, struct tensor *y, struct tensor *residual,
                             const struct tensor *delta, const float *gain, float eps) {
    (void)eps;
    right(d)->add_norm(d, y, residual, delta, gain, 0);
}

static void rope_other_style(struct device *d, struct tensor *q, const struct kv *kv,
                             const struct tensor *qkv, const struct step *step,
                             const struct rope *rope) {
    struct rope other = *rope;
    other.style = ROPE_HALVES;
    right(d)->rope_append(d, q, kv, qkv, step, &other);
}

static void rope_not_scaled(struct device *d, struct tensor *q, const struct kv *kv,
                            const struct tensor *qkv, const struct step *step,
                            const struct rope *rope) {
    struct rope other = *rope;
    other.factor = NULL;
    right(d)->rope_append(d, q, kv, qkv, step, &other);
}

static void rope_not_magnified(struct device *d, struct tensor *q, const struct kv *kv,
                               const struct tensor *qkv, const struct step *step,
                               const struct rope *rope) {
    struct rope other = *rope;
    other.magnify = 0;
    right(d)->rope_append(d, q, kv, qkv, step, &other);
}

static void rope_no_table(struct device *d, struct tensor *q, const struct kv *kv,
                          const struct tensor *qkv, const struct step *step,
                          const struct rope *rope) {
    struct kv other = *kv; /* the first block's address for all; stays inside the cache */
    int32_t table[HELD] = {0};
    if (kv->table) other.table = table, other.table_stride = 0;
    if (kv->table && step->most_kv > kv->block * HELD) return;
    right(d)->rope_append(d, q, &other, qkv, step, rope);
}

static void attention_no_window(struct device *d, struct tensor *o, const struct tensor *q,
                                const struct kv *kv, const struct step *step, float scale) {
    struct kv other = *kv;
    other.window = 0;
    right(d)->attention(d, o, q, &other, step, scale);
}

static void attention_wrong_scale(struct device *d, struct tensor *o, const struct tensor *q,
                                  const struct kv *kv, const struct step *step, float scale) {
    right(d)->attention(d, o, q, kv, step, scale * 1.01f);
}

static void attention_by_batch(struct device *d, struct tensor *o, const struct tensor *q,
                               const struct kv *kv, const struct step *step, float scale) {
    right(d)->attention(d, o, q, kv, step, scale);
    if (f32(o) && step->most_q > 1) *at(o, 0, 0) = f32_from_bits(f32_bits(*at(o, 0, 0)) ^ 1);
}

static void gather_first(struct device *d, struct tensor *y, const struct tensor *x,
                         const struct step *step) {
    struct step other = *step;
    other.n_out = 1; /* the others are never written */
    right(d)->gather_rows(d, y, x, &other);
}

static void select_last_of_ties(struct device *d, struct step *step, const struct tensor *logits,
                                const struct sampler *sampler) {
    right(d)->select(d, step, logits, sampler);
    for (int32_t o = 0; o < step->n_out && !(sampler->temperature > 0); o++)
        for (int32_t i = 0; i < logits->cols; i++)
            if (*at(logits, o, i) >= *at(logits, o, step->next[o])) step->next[o] = i;
}

static void select_by_row(struct device *d, struct step *step, const struct tensor *logits,
                          const struct sampler *sampler) {
    struct step other = *step;
    int32_t pos[HELD] = {0}; /* noise that does not depend on the position */
    if (step->n_row <= HELD) other.pos = pos;
    right(d)->select(d, &other, logits, sampler);
}

static void advance_ignores_end(struct device *d, const struct step *from, struct step *to,
                                const struct sampler *sampler) {
    (void)sampler;
    const struct sampler other = {.end_id = -1};
    right(d)->advance(d, from, to, &other);
}

static void copy_block_k_only(struct device *d, const struct kv *kv, int32_t from, int32_t to) {
    struct kv other = *kv;
    other.v = other.k;
    other.v_scale = other.k_scale;
    right(d)->kv_copy_block(d, &other, from, to);
}

static void copy_short(struct device *d, void *to, const void *from, int64_t bytes) {
    right(d)->copy(d, to, from, bytes - 1);
}

static void triad_minus(struct device *d, float *a, const float *b, const float *c, float s,
                        int64_t n) {
    right(d)->triad(d, a, b, c, -s, n);
}

static void read_nothing(struct device *d, const void *from, int64_t bytes, float *sink) {
    (void)d, (void)from, (void)bytes, (void)sink;
}

static void embed_leaks(struct device *d, struct tensor *x, const struct weight *w,
                        const struct step *step) {
    right(d)->embed(d, x, w, step);
    if (!leaked) leaked = device_alloc(d, 64, MEM_OTHER, "leak of the test");
}

/* ---- the table ---- */

struct habit {
    const char *name;
    void (*check)(struct op_rig *);
    struct ops ops; /* only what is wrong */
};

static void check_all(struct op_rig *rig) {
    op_check_linear(rig);
    op_check_embed(rig);
    op_check_add_norm(rig);
    op_check_gather(rig);
    op_check_rope_append(rig);
    op_check_attention(rig);
    op_check_kv_copy_block(rig);
    op_check_select(rig);
    op_check_advance(rig);
    op_check_ceilings(rig);
}

static const struct habit habits[] = {
    {"nothing", check_all, {0}}, /* must not be reported */
    {"linear: last element 0.1 % off", op_check_linear, {.linear = linear_last_off}},
    {"linear: an element not written", op_check_linear, {.linear = linear_no_tail}},
    {"linear: writes behind y", op_check_linear, {.linear = linear_beyond}},
    {"linear: writes between rows", op_check_linear, {.linear = linear_gap}},
    {"linear: changes x", op_check_linear, {.linear = linear_spoils_x}},
    {"linear: forgets the bias", op_check_linear, {.linear = linear_forgets_bias}},
    {"linear: last bit depends on the batch", op_check_invariance, {.linear = linear_by_batch}},
    {"add_norm: no eps", op_check_add_norm, {.add_norm = norm_without_eps}},
    {"rope_append: one style", op_check_rope_append, {.rope_append = rope_other_style}},
    {"rope_append: not scaled", op_check_rope_append, {.rope_append = rope_not_scaled}},
    {"rope_append: not magnified", op_check_rope_append, {.rope_append = rope_not_magnified}},
    {"rope_append: one block", op_check_rope_append, {.rope_append = rope_no_table}},
    {"attention: no window", op_check_attention, {.attention = attention_no_window}},
    {"attention: scale 1 % off", op_check_attention, {.attention = attention_wrong_scale}},
    {"attention: last bit depends on the split",
     op_check_invariance,
     {.attention = attention_by_batch}},
    {"gather_rows: only one", op_check_gather, {.gather_rows = gather_first}},
    {"select: highest id of a tie", op_check_select, {.select = select_last_of_ties}},
    {"select: position ignored", op_check_select, {.select = select_by_row}},
    {"advance: end token ignored", op_check_advance, {.advance = advance_ignores_end}},
    {"kv_copy_block: K twice", op_check_kv_copy_block, {.kv_copy_block = copy_block_k_only}},
    {"copy: one byte short", op_check_ceilings, {.copy = copy_short}},
    {"triad: sign", op_check_ceilings, {.triad = triad_minus}},
    {"read: nothing", op_check_ceilings, {.read = read_nothing}},
    {"embed: leaks", op_check_embed, {.embed = embed_leaks}},
};

static int wrong_open(struct device **device, const void *params, struct err *err) {
    int code = ref->open(device, params, err);
    if (!code) (*device)->ops = &wrong_ops;
    return code;
}

#define TAKE(op) wrong_ops.op = h->ops.op ? h->ops.op : base->op

int main(void) {
    int missed = 0;
    ref = device_kind_find("ref");
    const struct ops *base = right(NULL);
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        const struct habit *h = &habits[i];
        static struct op_rig rig;
        TAKE(embed), TAKE(add_norm), TAKE(linear), TAKE(rope_append), TAKE(attention),
            TAKE(gather_rows);
        TAKE(select), TAKE(advance), TAKE(kv_copy_block), TAKE(copy), TAKE(read), TAKE(triad),
            TAKE(fma_peak);
        wrong_kind = *ref;
        wrong_kind.name = "wrong";
        wrong_kind.open = wrong_open;
        op_rig_open_one(&rig, &wrong_kind);
        h->check(&rig);
        device_free(rig.targets[0].device, leaked);
        leaked = NULL;
        long failures = op_rig_close(&rig);
        bool caught = failures > 0;
        printf("%s: %ld failures\n", h->name, failures);
        if (caught == (i == 0)) {
            printf("FAILED: '%s' was %s\n", h->name, caught ? "reported" : "missed");
            missed++;
        }
    }
    return missed ? 1 : 0;
}
