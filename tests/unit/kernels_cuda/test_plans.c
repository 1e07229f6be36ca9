/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the CUDA ops, without CUDA: every op over every model, batch and length stays within the
   limits of the device and of its card, covers all work, and no card is there for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/text.h"
#include "harness/names.h"
#include "harness/protocol.h"
#include "harness/toml.h"
#include "kernels/cuda/add_norm.h"
#include "kernels/cuda/advance.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/embed.h"
#include "kernels/cuda/gather_rows.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/kv_copy_block.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rope_append.h"
#include "kernels/cuda/select.h"
#include "kernels/cuda/synth.h"
#include "workloads/model/model.h"

static const struct gpu *const gpus[] = {&gpu_h200, &gpu_a100};
static const enum dtype floats[] = {DT_BF16, DT_F16, DT_F32};
static const enum dtype caches[] = {DT_BF16, DT_F16, DT_F32, DT_I8};
static const int32_t batches[] = {1, 2, 3, 8, 16, 17, 32, 63, 64, 65, 256, 1024, 70000};
enum { MOST_SEQ = 65535 }; /* of attention, whose op says so */
static const int32_t lengths[] = {1, 2, 17, 512, 2048, 32768, 131072};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static char what[200]; /* the shape at hand */
static long n_plans;

/* ---- which cards were taken ---- */

enum { MOST_CARDS = 200 };
static const struct card *taken[MOST_CARDS];
static int n_taken;

static void take(const struct card *card) {
    for (int i = 0; i < n_taken; i++)
        if (taken[i] == card) return;
    assert_in_range(n_taken, 0, MOST_CARDS - 1);
    taken[n_taken++] = card;
}

static bool is_taken(const struct card *card) {
    for (int i = 0; i < n_taken; i++)
        if (taken[i] == card) return true;
    return false;
}

/* ---- what every launch must be ---- */

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s: %s: %s", what, l->card ? l->card->name : "no card", #condition);         \
    } while (0)

static double threads_of(const struct launch *l) {
    return (double)l->grid[0] * l->grid[1] * l->grid[2] * l->card->threads;
}

static void check(const struct gpu *gpu, const struct launch *l) {
    HOLDS(l->card != NULL);
    const struct card *c = l->card;
    n_plans++;
    take(c);
    HOLDS(l->grid[0] >= 1 && l->grid[0] <= INT32_MAX);
    HOLDS(l->grid[1] >= 1 && l->grid[1] <= 65535);
    HOLDS(l->grid[2] >= 1 && l->grid[2] <= 65535);
    HOLDS(l->shared_bytes <= (uint32_t)c->smem);
    HOLDS(c->smem <= gpu->smem_block);
    HOLDS(l->bytes > 0 || l->flops > 0);
    HOLDS(l->bytes >= 0 && l->flops >= 0 && l->bytes < 1e18 && l->flops < 1e21);
}

static void cards_are_possible(void **state) {
    (void)state;
    int n = 0;
    for (const struct card_table *t = cuda_card_tables; t->op; t++) {
        assert_true(t->n > 0);
        for (int i = 0; i < t->n; i++, n++) {
            const struct launch of = {.card = &t->cards[i]}, *l = &of;
            const struct card *c = l->card;
            snprintf(what, sizeof what, "%s", t->op);
            HOLDS(c->threads >= 32 && c->threads <= 1024 && c->threads % 32 == 0);
            HOLDS(c->min_blocks >= 1 && c->min_blocks * c->threads <= 1536);
            HOLDS(c->regs_max >= 16 && c->regs_max <= 255);
            HOLDS(c->regs_max * c->threads * c->min_blocks <= 65536);
            HOLDS((int64_t)(c->smem + 1024) * c->min_blocks <= gpu_a100.smem_block + 1024);
            HOLDS(c->proof && *c->proof);
            for (const struct card_table *u = cuda_card_tables; u->op; u++)
                for (int j = 0; j < u->n; j++)
                    HOLDS(&u->cards[j] == c || strcmp(u->cards[j].name, c->name) != 0);
        }
    }
    assert_in_range(n, 1, MOST_CARDS);
}

/* ---- models ---- */

static void load(struct model_shape *shape, const char *path, struct arena *arena) {
    char *data = NULL;
    size_t len = 0, n = 0;
    struct toml_entry *entries = NULL;
    struct err err = {0};
    *shape = (struct model_shape){.name = path};
    option_defaults(shape_options, shape, arena);
    if (file_read(path, TOML_MOST_BYTES, &data, &len, &err) ||
        toml_read(data, len, path, arena, &entries, &n, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++) {
        const struct option *o = option_find(shape_options, entries[i].path);
        assert_non_null(o);
        if (option_parse(o, entries[i].text, shape, arena, &err)) fail_msg("%s", err.text);
    }
    free(data);
}

/* Calls `each` for every model of protocols/models. */
static void over_models(void (*each)(const struct gpu *, const struct model_shape *)) {
    struct arena *arena = arena_create();
    struct names files = {0};
    char path[PATH_MAX];
    const char *root = data_folder("protocols");
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/models", root);
    names_of_folder(&files, path, ".toml");
    assert_true(files.n >= 3);
    for (size_t i = 0; i < files.n; i++) {
        struct model_shape shape;
        snprintf(path, sizeof path, "%s/models/%s.toml", root, files.items[i]);
        load(&shape, path, arena);
        for (size_t g = 0; g < COUNT(gpus); g++) each(gpus[g], &shape);
    }
    names_free(&files);
    arena_close(&arena);
}

/* Rows of a step: decode, or prefill of the whole length, where that is a step at all. */
static int64_t rows_of(int32_t batch, int32_t length, bool prefill) {
    return prefill ? (int64_t)batch * length : batch;
}
enum { MOST_ROWS = 1 << 21 };

/* ---- the ops ---- */

static void add_norms(const struct gpu *gpu, const struct model_shape *m, int32_t rows) {
    for (size_t t = 0; t < COUNT(floats); t++) {
        for (int bits = 0; bits < 8; bits++) {
            struct launch of, *l = &of;
            const struct add_norm_shape s = {.rows = rows,
                                             .d = (int32_t)m->d_model,
                                             .type = floats[t],
                                             .delta = bits & 1,
                                             .y = bits & 2,
                                             .aligned = bits & 4};
            if (!s.delta && !s.y) continue;
            add_norm_plan(gpu, &s, l);
            check(gpu, l);
            HOLDS(l->grid[0] == (uint32_t)rows);
            HOLDS(l->card->d == 0 || s.d <= 8 * l->card->d * l->card->threads);
            HOLDS(l->bytes >= (double)rows * s.d * 4);
        }
    }
}

static void rope_appends(const struct gpu *gpu, const struct model_shape *m, int32_t rows) {
    for (size_t t = 0; t < COUNT(floats); t++) {
        for (size_t k = 0; k < COUNT(caches); k++) {
            for (int aligned = 0; aligned < 2; aligned++) {
                struct launch of, *l = &of;
                const struct rope_append_shape s = {.rows = rows,
                                                    .n_q = (int32_t)m->n_q,
                                                    .n_kv = (int32_t)m->n_kv,
                                                    .d = (int32_t)m->d_h,
                                                    .type = floats[t],
                                                    .kv_type = caches[k],
                                                    .aligned = aligned};
                const int32_t lanes = aligned ? s.d / 16 : 32;
                rope_append_plan(gpu, &s, l);
                check(gpu, l);
                HOLDS(threads_of(l) >= (double)rows * (s.n_q + 2 * s.n_kv) * lanes);
                HOLDS(l->card->d == 0 || s.d <= l->card->d);
                HOLDS((l->card->d > 0) == aligned);
            }
        }
    }
}

static void of_rows(const struct gpu *gpu, const struct model_shape *m) {
    for (size_t b = 0; b < COUNT(batches); b++) {
        for (size_t n = 0; n < COUNT(lengths); n++) {
            for (int prefill = 0; prefill < 2; prefill++) {
                const int64_t rows = rows_of(batches[b], lengths[n], prefill);
                if (rows > MOST_ROWS) continue;
                snprintf(what, sizeof what, "%s, %lld rows", m->name, (long long)rows);
                add_norms(gpu, m, (int32_t)rows);
                rope_appends(gpu, m, (int32_t)rows);
            }
        }
    }
}

static void add_norm_and_rope_append_fit(void **state) {
    (void)state;
    over_models(of_rows);
}

/* A head's table of turns at the longest context: beyond 2^31 bytes it must not wrap. */
static void turns_are_counted_in_64_bits(void **state) {
    (void)state;
    assert_true(rope_append_table_bytes(1 << 25, 128) == (int64_t)1 << 34);
}

static void of_outputs(const struct gpu *gpu, const struct model_shape *m) {
    for (size_t b = 0; b < COUNT(batches); b++) {
        struct launch of[2], *l = of;
        const int32_t n = batches[b], vocab = (int32_t)m->vocab;
        snprintf(what, sizeof what, "%s, %d outputs", m->name, n);
        const struct select_shape row = {.n_out = n, .vocab = vocab};
        const int64_t piece = select_piece(vocab);
        select_plan(gpu, &row, l);
        check(gpu, l);
        check(gpu, l + 1);
        HOLDS(l->grid[1] <= SELECT_PIECES && l->grid[1] * piece >= vocab);
        HOLDS((l->grid[1] - 1) * piece < vocab && piece % 4 == 0);
        HOLDS(select_room_bytes(n) >= (int64_t)l->grid[1] * n * 16);
        HOLDS(l[1].card->threads >= SELECT_PIECES);
        const struct advance_shape a = {.n_out = n};
        advance_plan(gpu, &a, l);
        check(gpu, l);
        HOLDS(threads_of(l) >= n);
        for (size_t t = 0; t < COUNT(floats); t++) {
            const struct gather_rows_shape g = {
                .rows = n, .row_bytes = m->d_model * dtype_bits(floats[t]) / 8};
            gather_rows_plan(gpu, &g, l);
            check(gpu, l);
            HOLDS(threads_of(l) * l->card->d >= (double)n * (double)g.row_bytes);
        }
    }
}

static void select_advance_and_gather_fit(void **state) {
    (void)state;
    over_models(of_outputs);
}

static void of_units(const struct gpu *gpu, const struct model_shape *m) {
    static const int32_t blocks[] = {1, 16, 32, 256};
    for (size_t b = 0; b < COUNT(blocks); b++) {
        for (size_t k = 0; k < COUNT(caches); k++) {
            struct launch of, *l = &of;
            const int64_t slots = m->n_kv * blocks[b];
            const struct kv_copy_block_shape u = {.bytes =
                                                      slots * m->d_h * dtype_bits(caches[k]) / 8,
                                                  .slots = caches[k] == DT_I8 ? slots : 0};
            snprintf(what, sizeof what, "%s, block of %d", m->name, blocks[b]);
            kv_copy_block_plan(gpu, &u, l);
            check(gpu, l);
            HOLDS(threads_of(l) * l->card->d >= 2.0 * (double)u.bytes);
            HOLDS(threads_of(l) >= 2.0 * (double)u.slots && l->grid[1] == 2);
        }
    }
}

static void kv_copy_block_fits(void **state) {
    (void)state;
    over_models(of_units);
}

static void of_attention(const struct gpu *gpu, const struct model_shape *m, int32_t batch,
                         int32_t length, bool prefill) {
    for (size_t t = 0; t < COUNT(floats); t++) {
        for (size_t k = 0; k < COUNT(caches); k++) {
            for (int bits = 0; bits < 4; bits++) {
                struct launch of, *l = &of;
                const struct attention_shape s = {.n_seq = batch,
                                                  .n_row = prefill ? batch * length : batch,
                                                  .most_q = prefill ? length : 1,
                                                  .most_kv = length,
                                                  .n_q = (int32_t)m->n_q,
                                                  .n_kv = (int32_t)m->n_kv,
                                                  .d = (int32_t)m->d_h,
                                                  .window = bits & 1 ? 512 : 0,
                                                  .q_type = floats[t],
                                                  .o_type = floats[t],
                                                  .kv_type = caches[k],
                                                  .aligned = bits & 2};
                snprintf(what, sizeof what, "%s, %d sequences, %d rows, length %d", m->name, batch,
                         s.n_row, length);
                if (!attention_is_fast(&s)) {
                    attention_plain_plan(gpu, &s, l);
                    check(gpu, l);
                    const bool split = l->grid[2] > 1;
                    attention_combine_plan(gpu, &s, l);
                    HOLDS((l->card != NULL) == split);
                    if (split) check(gpu, l);
                    continue;
                }
                attention_decode_plan(gpu, &s, l);
                if (l->card || s.most_q == 1) check(gpu, l);
                attention_prefill_plan(gpu, &s, l);
                if (l->card || s.most_q > attention_few(s.n_q, s.n_kv)) check(gpu, l);
                attention_combine_plan(gpu, &s, l);
                if (l->card || (s.most_q == 1 && attention_splits(&s) > 1)) check(gpu, l);
            }
        }
    }
}

static void of_contexts(const struct gpu *gpu, const struct model_shape *m) {
    for (size_t b = 0; b < COUNT(batches); b++)
        for (size_t n = 0; n < COUNT(lengths); n++)
            for (int prefill = 0; prefill < 2; prefill++)
                if (batches[b] <= MOST_SEQ && rows_of(batches[b], lengths[n], prefill) <= MOST_ROWS)
                    of_attention(gpu, m, batches[b], lengths[n], prefill);
}

static void attention_fits(void **state) {
    (void)state;
    over_models(of_contexts);
}

static const struct {
    enum dtype type;
    int32_t group;
} weights[] = {{DT_BF16, 0}, {DT_F16, 0},  {DT_F32, 0}, {DT_I8, 0},
               {DT_I8, 128}, {DT_I4, 128}, {DT_NF4, 64}};

/* One matrix of a model beside m rows: few stream the weight, many go tile by tile, through slabs
   where they are not stored as floats of 16 bits. */
static void of_matrix(const struct gpu *gpu, int32_t m, int64_t rows, int64_t cols, bool swiglu) {
    for (size_t w = 0; w < COUNT(weights); w++) {
        struct launch of, *l = &of;
        const enum dtype type = weights[w].type;
        const int32_t padded = (int32_t)((cols + 63) / 64 * 64), group = weights[w].group;
        const bool half = type == DT_BF16 || type == DT_F16, quantized = !half && type != DT_F32;
        const struct linear_shape few = {.weight = type,
                                         .m = m,
                                         .tiles = (int32_t)((rows + 15) / 16),
                                         .cols = padded,
                                         .groups = group       ? padded / group
                                                   : quantized ? 1
                                                               : 0,
                                         .group_shift = group == 128 ? 7
                                                        : group      ? 6
                                                                     : 0,
                                         .y_type = half ? type : DT_BF16,
                                         .y_cols = (int32_t)(swiglu ? rows / 2 : rows),
                                         .swiglu = swiglu};
        const double weight_bytes = (double)rows * (double)cols * dtype_bits(type) / 8;
        const double flops = 2.0 * m * (double)rows * (double)cols;
        snprintf(what, sizeof what, "%d rows times %lld x %lld of %s", m, (long long)rows,
                 (long long)cols, dtype_names[type]);
        linear_plan(gpu, &few, l);
        if (m <= FEW_ROWS || type == DT_F32) {
            check(gpu, l);
            HOLDS(l->bytes >= weight_bytes && l->flops >= flops);
            continue;
        }
        HOLDS(l->card == NULL);
        const struct gemm_shape many = {.type = type == DT_F16 ? DT_F16 : DT_BF16,
                                        .m = m,
                                        .rows = (int32_t)rows,
                                        .cols = padded,
                                        .y_type = few.y_type,
                                        .swiglu = swiglu};
        gemm_plan(gpu, &many, l);
        check(gpu, l);
        HOLDS((double)l->grid[0] * GEMM_TILE * GEMM_TILE >= (double)m * (double)rows);
        HOLDS(l->flops >= flops);
        struct slab_args slab = {.rows = few.tiles * 16,
                                 .cols = padded,
                                 .type = (int32_t)type,
                                 .from_cols = (int32_t)cols,
                                 .groups = few.groups,
                                 .out = {.cols = few.y_cols, .type = (int32_t)few.y_type}};
        if (quantized) {
            slab_plan(gpu, SLAB_DEQUANTIZE, &slab, l);
            check(gpu, l);
            HOLDS(threads_of(l) * 16 >= (double)slab.rows * padded); /* 32 columns a warp */
        }
        slab.rows = m;
        slab_plan(gpu, SLAB_PAD, &slab, l);
        if (half) check(gpu, l);
        slab_plan(gpu, SLAB_FINISH, &slab, l);
        check(gpu, l);
    }
}

/* Every value of a synthetic weight has a thread, eight a thread. */
static void of_synthetic(const struct gpu *gpu, int32_t rows, int32_t parts, int64_t cols) {
    for (size_t w = 0; w < COUNT(weights); w++) {
        struct launch of, *l = &of;
        const enum dtype type = weights[w].type;
        const bool quantized = type == DT_I8 || type == DT_I4 || type == DT_NF4;
        struct synth_args a = {.rows = (rows * parts + 15) / 16 * 16,
                               .cols = (int32_t)((cols + 63) / 64 * 64),
                               .real_cols = (int32_t)cols,
                               .type = (int32_t)type,
                               .group = weights[w].group,
                               .groups = 1};
        for (int32_t i = 0; i < parts; i++) a.part[i].rows = rows;
        if (a.group) a.groups = (a.cols + a.group - 1) / a.group;
        snprintf(what, sizeof what, "synthetic %d x %lld of %s", a.rows, (long long)cols,
                 dtype_names[type]);
        synth_plan(gpu, quantized ? TASK_CODES : TASK_FLOATS, &a, l);
        check(gpu, l);
        HOLDS(threads_of(l) * 8 >= (double)a.rows * a.cols);
        if (!quantized || a.group) continue;
        synth_plan(gpu, TASK_MAXIMA, &a, l);
        check(gpu, l);
        HOLDS(threads_of(l) / 16 == a.rows);
        synth_plan(gpu, TASK_SPREAD, &a, l);
        check(gpu, l);
        HOLDS(l->grid[0] == (uint32_t)parts);
    }
}

static void of_products(const struct gpu *gpu, const struct model_shape *m) {
    static const int32_t more[] = {2048, 32768};
    const int64_t q = m->n_q * m->d_h, kv = m->n_kv * m->d_h;
    of_synthetic(gpu, (int32_t)q, 3, m->d_model);
    of_synthetic(gpu, (int32_t)m->d_ff, 2, m->d_model);
    of_synthetic(gpu, (int32_t)m->d_model, 1, m->d_ff);
    of_synthetic(gpu, (int32_t)m->vocab, 1, m->d_model);
    for (size_t b = 0; b < COUNT(batches) + COUNT(more); b++) {
        const int32_t rows = b < COUNT(batches) ? batches[b] : more[b - COUNT(batches)];
        struct launch of, *l = &of;
        of_matrix(gpu, rows, q + 2 * kv, m->d_model, false);
        of_matrix(gpu, rows, m->d_model, q, false);
        of_matrix(gpu, rows, 2 * m->d_ff, m->d_model, true);
        of_matrix(gpu, rows, m->d_model, m->d_ff, false);
        if (rows <= 1024) of_matrix(gpu, rows, m->vocab, m->d_model, false);
        for (size_t w = 0; w < COUNT(weights); w++) {
            const struct embed_args a = {.vocab = (int32_t)m->vocab,
                                         .d = (int32_t)m->d_model,
                                         .weight = (int32_t)weights[w].type,
                                         .type = DT_F32,
                                         .group = weights[w].group};
            embed_plan(gpu, &a, rows, l);
            check(gpu, l);
            HOLDS(l->grid[0] == (uint32_t)rows);
        }
    }
}

static void products_and_embedding_fit(void **state) {
    (void)state;
    over_models(of_products);
}

/* ---- ceilings ---- */

static void ceilings_fill_the_machine(void **state) {
    (void)state;
    static const int64_t sizes[] = {4096, 12288, 1 << 20, (int64_t)3 << 30, (int64_t)1 << 36};
    struct launch of, *l = &of;
    for (size_t g = 0; g < COUNT(gpus); g++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            for (int which = CEILING_COPY; which <= CEILING_TRIAD; which++) {
                snprintf(what, sizeof what, "%lld bytes", (long long)sizes[i]);
                ceilings_plan(gpus[g], (enum ceiling)which, DT_F32, sizes[i], l);
                check(gpus[g], l);
                const int64_t pages = sizes[i] / CEILING_PAGE;
                const int64_t resident = (int64_t)gpus[g]->sm_count * l->card->min_blocks;
                HOLDS(l->grid[0] == (pages < resident ? pages : resident));
                HOLDS(l->card->threads * 16 == CEILING_PAGE);
            }
        }
    }
}

static void fma_peak_computes_exactly_what_it_says(void **state) {
    (void)state;
    static const int64_t millions[] = {1, 2, 3, 17, 1000, 250000};
    struct launch of, *l = &of;
    for (size_t g = 0; g < COUNT(gpus); g++) {
        for (size_t t = 0; t < COUNT(floats); t++) {
            for (size_t i = 0; i < COUNT(millions); i++) {
                const int64_t flops = millions[i] * CEILING_FLOPS;
                ceilings_plan(gpus[g], CEILING_FMA, floats[t], flops, l);
                snprintf(what, sizeof what, "%lld flops", (long long)flops);
                check(gpus[g], l);
                /* A step: a multiply-add of each thread and chain, or 16 x 8 x 16 of each warp.
                 */
                const int64_t units =
                    floats[t] == DT_F32 ? l->card->threads : l->card->threads / 32;
                const int64_t each = floats[t] == DT_F32 ? 2 : 2 * 16 * 8 * 16;
                HOLDS(ceilings_steps(floats[t], flops) * units * l->card->d * each == flops);
                HOLDS(l->flops == (double)flops);
            }
        }
    }
}

static void nothing_to_do_is_no_launch(void **state) {
    (void)state;
    struct launch l[2];
    add_norm_plan(&gpu_h200, &(struct add_norm_shape){.d = 64, .y = true}, l);
    assert_null(l->card);
    rope_append_plan(&gpu_h200, &(struct rope_append_shape){.n_q = 1, .n_kv = 1, .d = 64}, l);
    assert_null(l->card);
    gather_rows_plan(&gpu_h200, &(struct gather_rows_shape){.row_bytes = 64}, l);
    assert_null(l->card);
    advance_plan(&gpu_h200, &(struct advance_shape){0}, l);
    assert_null(l->card);
    kv_copy_block_plan(&gpu_h200, &(struct kv_copy_block_shape){0}, l);
    assert_null(l->card);
    synth_plan(&gpu_h200, TASK_CODES, &(struct synth_args){.cols = 64}, l);
    assert_null(l->card);
    select_plan(&gpu_h200, &(struct select_shape){.vocab = 10}, l);
    assert_null(l[0].card);
    assert_null(l[1].card);
    ceilings_plan(&gpu_h200, CEILING_COPY, DT_F32, 0, l);
    assert_null(l->card);
}

/* Last: a card that no shape above has taken is dead code on the device. */
static void every_card_is_taken(void **state) {
    (void)state;
    /* Heads that no model of ours has. */
    static const struct model_shape odd[] = {
        {.name = "small odd heads", .d_model = 400, .n_q = 5, .n_kv = 1, .d_h = 80, .vocab = 77},
        {.name = "large heads", .d_model = 8200, .n_q = 8, .n_kv = 4, .d_h = 256, .vocab = 77}};
    for (size_t i = 0; i < COUNT(odd); i++) of_contexts(&gpu_h200, &odd[i]);
    for (const struct card_table *t = cuda_card_tables; t->op; t++) {
        for (int i = 0; i < t->n; i++)
            if (!is_taken(&t->cards[i])) fail_msg("no plan takes %s", t->cards[i].name);
    }
    printf("%ld plans, %d cards taken\n", n_plans, n_taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_possible),
        cmocka_unit_test(add_norm_and_rope_append_fit),
        cmocka_unit_test(turns_are_counted_in_64_bits),
        cmocka_unit_test(select_advance_and_gather_fit),
        cmocka_unit_test(kv_copy_block_fits),
        cmocka_unit_test(attention_fits),
        cmocka_unit_test(products_and_embedding_fit),
        cmocka_unit_test(ceilings_fill_the_machine),
        cmocka_unit_test(fma_peak_computes_exactly_what_it_says),
        cmocka_unit_test(nothing_to_do_is_no_launch),
        cmocka_unit_test(every_card_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
