/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the lab ops on latents and on chosen blocks: devices that have them against ref, in all
 * types, mixed steps and odd sizes; and the same bits for every number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/lab.h"
#include "kernels/lab_latent.h"
#include "tests/support/op_rig.h"

enum { MOST_SEQ = 4 };
static const enum dtype types[] = {DT_F32, DT_F32, DT_F16, DT_BF16};

static bool has_lab(const struct op_target *target) {
    return target->device->lab && target->device->lab->latent;
}

/* Targets that differ in threads only. */
static const struct op_target *with_other_threads(const struct op_rig *rig, int t) {
    const char *name = rig->targets[t].name, *threads = strstr(name, " threads=");
    const size_t n = threads ? (size_t)(threads - name) : strlen(name);
    for (int i = 0; i < t; i++)
        if (!strncmp(rig->targets[i].name, name, n) && rig->targets[i].name[n] == ' ')
            return &rig->targets[i];
    return NULL;
}

/* ---- latents */

struct latent_case {
    enum dtype activation;
    struct latent_cache cache; /* shape only */
    int32_t n_q, d_h, units;
    int64_t gap;
    struct op_step step;
    struct rope rope;
    float *x, *rows, *wk, *wv; /* rows: content of the cache, of all sequences and one more */
};
struct latent_outputs {
    float *q, *rows, *o[3]; /* absorbed, rebuilt, absorbed with room */
};

static void make_latent(struct op_rig *rig, struct latent_case *c) {
    int32_t before[MOST_SEQ], rows[MOST_SEQ], n_seq = op_int(rig, 1, MOST_SEQ);
    for (int32_t s = 0; s < n_seq; s++) {
        before[s] = op_int(rig, 0, 40);
        rows[s] = op_int(rig, 0, 4) == 0 && s > 0 ? 0 : op_int(rig, 1, 3);
    }
    *c = (struct latent_case){.activation = OP_PICK(rig, types)};
    op_step_make(rig, &c->step, n_seq, before, rows, 100);
    c->n_q = OP_PICK(rig, ((const int32_t[]){1, 2, 3, 5, 8}));
    c->d_h = OP_PICK(rig, ((const int32_t[]){1, 2, 7, 16, 24}));
    c->cache =
        (struct latent_cache){.type = OP_PICK(rig, types),
                              .latent = OP_PICK(rig, ((const int32_t[]){1, 3, 15, 16, 17, 32, 70})),
                              .rotary = OP_PICK(rig, ((const int32_t[]){0, 2, 6, 8, 16})),
                              .capacity = c->step.host.most_kv + op_int(rig, 0, 3)};
    c->rope = (struct rope){.base = OP_PICK(rig, ((const float[]){10000, 500})),
                            .style = op_int(rig, 0, 1) ? ROPE_PAIRS : ROPE_HALVES};
    c->units = n_seq + op_int(rig, 0, 1);
    c->gap = OP_PICK(rig, ((const int32_t[]){0, 0, 3}));
    const int32_t width = c->cache.latent + c->cache.rotary;
    const int64_t weights = (int64_t)c->n_q * c->d_h * c->cache.latent;
    c->x = op_reals(rig,
                    (int64_t)c->step.host.n_row * (c->n_q * (c->d_h + c->cache.rotary) + width), 1);
    c->rows = op_reals(rig, (int64_t)c->units * c->cache.capacity * width, 1);
    c->wk = op_reals(rig, weights, 0.5f);
    c->wv = op_reals(rig, weights, 0.5f);
}

static void *packed(struct op_target *target, enum dtype type, const float *values, int64_t n,
                    bool may_change) {
    const size_t bytes = (size_t)n * (size_t)dtype_bits(type) / 8;
    unsigned char *image = must_alloc(bytes + 1);
    for (int64_t i = 0; i < n; i++) dtype_store(image, type, i, values[i]);
    void *memory = may_change ? op_inout(target, bytes, image) : op_buffer(target, bytes, image);
    free(image);
    return memory;
}

static float *unpacked(struct op_target *target, enum dtype type, const void *memory, int64_t n) {
    const size_t bytes = (size_t)n * (size_t)dtype_bits(type) / 8;
    unsigned char *image = must_alloc(bytes + 1);
    float *values = must_alloc(sizeof *values * (size_t)n + 1);
    op_download(target, image, memory, bytes);
    for (int64_t i = 0; i < n; i++) values[i] = dtype_load(image, type, i);
    free(image);
    return values;
}

static struct latent_outputs run_latent(struct op_rig *rig, struct op_target *target,
                                        const struct latent_case *c) {
    const struct lab_latent *lab = target->device->lab->latent;
    const struct step *h = &c->step.host;
    const int32_t width = c->cache.latent + c->cache.rotary,
                  q_cols = c->n_q * (c->d_h + c->cache.rotary);
    const int64_t weights = (int64_t)c->n_q * c->d_h * c->cache.latent;
    const int64_t kept = (int64_t)c->units * c->cache.capacity * width;
    const struct step_bounds bounds = {.n_seq = h->n_seq,
                                       .n_row = h->n_row,
                                       .n_out = h->n_out,
                                       .most_q = h->most_q,
                                       .most_kv = h->most_kv,
                                       .n_q = c->n_q,
                                       .n_kv = 1,
                                       .d_h = c->d_h > width ? c->d_h : width,
                                       .d_model = 8,
                                       .d_ff = 8,
                                       .vocab = 8};
    struct latent_outputs out;
    op_plan(rig, target, &bounds);
    const struct step on = op_step_on(target, &c->step);
    struct latent_cache cache = c->cache;
    cache.rows = packed(target, cache.type, c->rows, kept, true);
    struct latent_heads heads = {c->n_q, c->d_h, packed(target, DT_F32, c->wk, weights, false),
                                 packed(target, DT_F32, c->wv, weights, false), NULL};
    float *room = op_buffer(target, 2 * sizeof *room * (size_t)(h->n_row * c->n_q * width), NULL);
    const struct tensor x = op_tensor(target, c->activation, h->n_row, q_cols + width,
                                      q_cols + width + c->gap, c->x, false);
    struct tensor q =
        op_tensor(target, c->activation, h->n_row, q_cols, q_cols + c->gap, NULL, true);
    lab->append(target->device, &q, &cache, &heads, &x, &on, &c->rope);
    out.q = op_values(rig, target, &q);
    out.rows = unpacked(target, cache.type, cache.rows, kept);
    for (int i = 0; i < 3; i++) {
        heads.room = i == 2 ? room : NULL;
        const int32_t cols = c->n_q * c->d_h;
        struct tensor o =
            op_tensor(target, c->activation, h->n_row, cols, cols + c->gap, NULL, true);
        lab->attention(target->device, &o, &q, &cache, &heads, &on,
                       (float)(1 / sqrt((double)(c->d_h + cache.rotary))),
                       i == 1 ? LATENT_REBUILT : LATENT_ABSORBED);
        out.o[i] = op_values(rig, target, &o);
    }
    op_release(rig, target);
    return out;
}

static void free_outputs(struct latent_outputs *out) {
    free(out->q);
    free(out->rows);
    free(out->o[0]);
    free(out->o[1]);
    free(out->o[2]);
}

static float step_of(enum dtype type) { return type == DT_F32 ? 0 : op_ulp(type); }

static void latent_case(struct op_rig *rig) {
    struct latent_case c;
    make_latent(rig, &c);
    const struct step *h = &c.step.host;
    const int32_t width = c.cache.latent + c.cache.rotary;
    const int64_t n_q = (int64_t)h->n_row * c.n_q * (c.d_h + c.cache.rotary),
                  n_rows = (int64_t)c.units * c.cache.capacity * width,
                  n_o = (int64_t)h->n_row * c.n_q * c.d_h;
    struct latent_outputs all[OP_TARGETS] = {0}, want = run_latent(rig, &rig->ref, &c);
    op_case_name(rig,
                 "latent %s, cache %s, %d + %d values, %d heads of %d, %d rows of %d, longest %d",
                 dtype_names[c.activation], dtype_names[c.cache.type], c.cache.latent,
                 c.cache.rotary, c.n_q, c.d_h, h->n_row, h->n_seq, h->most_kv);
    /* A query that rounds the other way in 16 bits moves a sharp softmax; the cache's too. */
    const float loose = 3e-5f + 8 * (step_of(c.activation) + step_of(c.cache.type));
    op_compare(rig, &rig->ref, "rebuilt of absorbed", want.o[1], want.o[0], n_o,
               step_of(c.activation) + 1e-6f, 1e-6f);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!has_lab(target)) continue;
        struct latent_outputs *got = &all[t];
        *got = run_latent(rig, target, &c);
        op_compare(rig, target, "q", got->q, want.q, n_q, 1e-5f + step_of(c.activation), 3e-6f);
        op_compare(rig, target, "rows", got->rows, want.rows, n_rows, 1e-5f + step_of(c.cache.type),
                   3e-6f);
        op_compare(rig, target, "absorbed", got->o[0], want.o[0], n_o, loose, loose);
        op_compare(rig, target, "rebuilt", got->o[1], want.o[1], n_o, loose, loose);
        op_compare(rig, target, "absorbed, with room", got->o[2], want.o[2], n_o, loose, loose);
        const struct op_target *other = with_other_threads(rig, t);
        if (!other) continue;
        const struct latent_outputs *first = &all[other - rig->targets];
        op_equal(rig, target, "rows, other threads", got->rows, first->rows, (size_t)n_rows * 4);
        op_equal(rig, target, "absorbed, other threads", got->o[0], first->o[0], (size_t)n_o * 4);
        op_equal(rig, target, "rebuilt, other threads", got->o[1], first->o[1], (size_t)n_o * 4);
        op_equal(rig, target, "with room, other threads", got->o[2], first->o[2], (size_t)n_o * 4);
    }
    for (int t = 0; t < rig->n_targets; t++) free_outputs(&all[t]);
    free_outputs(&want);
    free(c.x);
    free(c.rows);
    free(c.wk);
    free(c.wv);
}

void op_check_latent(struct op_rig *rig) {
    for (int i = 0; i < 120; i++)
        if (!op_enough(rig)) latent_case(rig);
}

/* ---- blocks */

struct blocks_case {
    enum dtype activation, mean_type;
    struct kv kv; /* shape only */
    int32_t n_q, most, n_blocks, units;
    int32_t *table;
    float *q, *k, *means; /* means: garbage before they are made */
    struct op_step step;
    int64_t gap;
};
struct blocks_outputs {
    float *means, *scores;
    int32_t *table, *pos, *len;
};

static void make_blocks(struct op_rig *rig, struct blocks_case *c) {
    int32_t before[MOST_SEQ], rows[MOST_SEQ], n_seq = op_int(rig, 1, MOST_SEQ);
    *c = (struct blocks_case){.activation = OP_PICK(rig, types), .mean_type = OP_PICK(rig, types)};
    c->kv = (struct kv){.type = OP_PICK(rig, types),
                        .n_kv = op_int(rig, 1, 3),
                        .d_h = OP_PICK(rig, ((const int32_t[]){2, 6, 16, 34})),
                        .block = OP_PICK(rig, ((const int32_t[]){1, 2, 5, 16}))};
    c->n_q = c->kv.n_kv * op_int(rig, 1, 4);
    for (int32_t s = 0; s < n_seq; s++) {
        before[s] = op_int(rig, 0, 20 * c->kv.block);
        rows[s] = s > 0 && op_int(rig, 0, 5) == 0 ? 0 : 1; /* it waits */
    }
    op_step_make(rig, &c->step, n_seq, before, rows, 100);
    c->n_blocks = (c->step.host.most_kv + c->kv.block - 1) / c->kv.block + op_int(rig, 0, 2);
    c->most = op_int(rig, 1, c->n_blocks);
    c->kv.table_stride = c->n_blocks;
    c->units = n_seq * c->n_blocks;
    c->table = must_alloc(sizeof *c->table * (size_t)c->units);
    for (int32_t i = 0; i < c->units; i++) c->table[i] = i;
    random_shuffle(random_key(rig->seed, rig->draw++), c->table, c->units);
    c->gap = OP_PICK(rig, ((const int32_t[]){0, 0, 3}));
    c->q = op_reals(rig, (int64_t)c->step.host.n_row * c->n_q * c->kv.d_h, 1);
    c->k = op_reals(rig, (int64_t)c->units * c->kv.n_kv * c->kv.block * c->kv.d_h, 1);
    c->means = op_reals(rig, (int64_t)c->units * c->kv.n_kv * c->kv.d_h, 1);
}

static void *words(struct op_target *target, int32_t *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = -1;
    return op_inout(target, sizeof *to * (size_t)n, to);
}

static struct blocks_outputs run_blocks(struct op_rig *rig, struct op_target *target,
                                        const struct blocks_case *c) {
    const struct lab_latent *lab = target->device->lab->latent;
    const struct step *h = &c->step.host;
    const int64_t keys = (int64_t)c->units * c->kv.n_kv * c->kv.block * c->kv.d_h,
                  means = (int64_t)c->units * c->kv.n_kv * c->kv.d_h;
    const struct step_bounds bounds = {h->n_seq,   h->n_row, h->n_out,   h->most_q,
                                       h->most_kv, c->n_q,   c->kv.n_kv, c->kv.d_h,
                                       8,          8,        8,          DT_F32};
    struct blocks_outputs out = {.scores = must_alloc(sizeof *out.scores * (size_t)c->units),
                                 .table =
                                     must_alloc(sizeof *out.table * (size_t)(h->n_seq * c->most)),
                                 .pos = must_alloc(sizeof *out.pos * (size_t)h->n_row + 1),
                                 .len = must_alloc(sizeof *out.len * (size_t)h->n_seq)};
    op_plan(rig, target, &bounds);
    const struct step on = op_step_on(target, &c->step);
    struct kv kv = c->kv;
    kv.k = packed(target, kv.type, c->k, keys, false);
    kv.table = op_buffer(target, sizeof *c->table * (size_t)c->units, c->table);
    const struct block_means m = {
        c->mean_type, c->n_blocks, packed(target, c->mean_type, c->means, means, true),
        op_inout(target, sizeof *out.scores * (size_t)c->units, out.scores)};
    const struct block_choice choice = {
        c->most, words(target, out.table, h->n_seq * (int64_t)c->most),
        words(target, out.pos, h->n_row), words(target, out.len, h->n_seq)};
    const struct tensor q = op_tensor(target, c->activation, h->n_row, c->n_q * kv.d_h,
                                      c->n_q * kv.d_h + c->gap, c->q, false);
    lab->summarize(target->device, &m, &kv, &on);
    lab->choose(target->device, &choice, &m, &q, &kv, &on);
    out.means = unpacked(target, m.type, m.means, means);
    op_download(target, out.scores, m.scores, sizeof *out.scores * (size_t)c->units);
    op_download(target, out.table, choice.table, sizeof *out.table * (size_t)(h->n_seq * c->most));
    op_download(target, out.pos, choice.pos, sizeof *out.pos * (size_t)h->n_row);
    op_download(target, out.len, choice.kv_len, sizeof *out.len * (size_t)h->n_seq);
    op_release(rig, target);
    return out;
}

static void free_blocks(struct blocks_outputs *out) {
    free(out->means);
    free(out->scores);
    free(out->table);
    free(out->pos);
    free(out->len);
}

static bool in_table(const int32_t *table, int32_t n, int32_t unit) {
    for (int32_t i = 0; i < n; i++)
        if (table[i] == unit) return true;
    return false;
}

/* The score of a block by the definition, from means as the device has them. */
static double score(const struct blocks_case *c, const float *means, int32_t r, int32_t s,
                    int32_t b) {
    double sum = 0;
    for (int32_t h = 0; h < c->n_q; h++)
        for (int32_t i = 0; i < c->kv.d_h; i++) {
            const int64_t at =
                ((int64_t)s * c->n_blocks + b) * c->kv.n_kv + h / (c->n_q / c->kv.n_kv);
            float q = c->q[((int64_t)r * c->n_q + h) * c->kv.d_h + i], stored = 0;
            dtype_store(&stored, c->activation, 0, q);
            sum +=
                (double)dtype_load(&stored, c->activation, 0) * (double)means[at * c->kv.d_h + i];
        }
    return sum;
}

/* Every block that is chosen scores at least as high as every one that is not; ascending; the
   newest last; as many as there may be. */
static void check_choice(struct op_rig *rig, struct op_target *target, const struct blocks_case *c,
                         const struct blocks_outputs *got) {
    const struct step *h = &c->step.host;
    for (int32_t r = 0; r < h->n_row; r++) {
        const int32_t s = h->seq[r], p = h->pos[r], newest = p / c->kv.block;
        const int32_t n = newest + 1 < c->most ? newest + 1 : c->most;
        const int32_t *units = c->table + (int64_t)s * c->n_blocks,
                      *table = got->table + (int64_t)s * c->most;
        double least = INFINITY, best = -INFINITY;
        int32_t before = -1, found = 0;
        for (int32_t b = 0; b < newest; b++) {
            const double v = score(c, got->means, r, s, b);
            if (in_table(table, n, units[b])) {
                least = fmin(least, v);
                for (int32_t i = 0; i < n; i++)
                    if (table[i] == units[b] && i > before) before = i, found++;
            } else {
                best = fmax(best, v);
            }
        }
        if (found != n - 1) op_fail(rig, target, "%d blocks in order, expected %d", found, n - 1);
        if (table[n - 1] != units[newest]) op_fail(rig, target, "the newest block is not the last");
        if (!(best <= least + 1e-3))
            op_fail(rig, target, "a block of %g is left out for one of %g", best, least);
        if (got->pos[r] != (n - 1) * c->kv.block + p % c->kv.block ||
            got->len[s] != got->pos[r] + 1)
            op_fail(rig, target, "position %d of %d chosen tokens", got->pos[r], got->len[s]);
    }
}

static void blocks_case(struct op_rig *rig) {
    struct blocks_case c;
    make_blocks(rig, &c);
    const struct step *h = &c.step.host;
    struct blocks_outputs all[OP_TARGETS] = {0}, want = run_blocks(rig, &rig->ref, &c);
    const int64_t means = (int64_t)c.units * c.kv.n_kv * c.kv.d_h;
    op_case_name(rig,
                 "%d of %d blocks of %d, %s cache, %s means, %d heads over %d of %d, %d rows of %d",
                 c.most, c.n_blocks, c.kv.block, dtype_names[c.kv.type], dtype_names[c.mean_type],
                 c.n_q, c.kv.n_kv, c.kv.d_h, h->n_row, h->n_seq);
    check_choice(rig, &rig->ref, &c, &want);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!has_lab(target)) continue;
        all[t] = run_blocks(rig, target, &c);
        op_compare(rig, target, "means", all[t].means, want.means, means,
                   1e-5f + step_of(c.mean_type), 1e-6f);
        check_choice(rig, target, &c, &all[t]);
        const struct op_target *other = with_other_threads(rig, t);
        if (!other) continue;
        const struct blocks_outputs *first = &all[other - rig->targets];
        op_equal(rig, target, "means, other threads", all[t].means, first->means,
                 (size_t)means * 4);
        op_equal(rig, target, "scores, other threads", all[t].scores, first->scores,
                 (size_t)c.units * 4);
        op_equal(rig, target, "choice, other threads", all[t].table, first->table,
                 (size_t)(h->n_seq * c.most) * 4);
    }
    for (int t = 0; t < rig->n_targets; t++) free_blocks(&all[t]);
    free_blocks(&want);
    free(c.table);
    free(c.q);
    free(c.k);
    free(c.means);
}

void op_check_blocks(struct op_rig *rig) {
    for (int i = 0; i < 150; i++)
        if (!op_enough(rig)) blocks_case(rig);
}
