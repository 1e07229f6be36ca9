/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by tiles that keeps one number a row (kernels/lab_flash.h): products by the level's own
   tiles of registers, whose sums run in one order whatever the threads are.

   Forward: a piece is a tile of queries, and goes over the keys that they see. Backward: where
   there are as many heads as threads, a piece is a head: each tile of keys stays while all queries
   go by, five products a pair of tiles. With fewer heads than threads, pieces are tiles of keys and
   then tiles of queries, which compute scores twice: seven products, the same bits. */
#include "kernels/cpu/lab_flash.h"

#include <math.h>
#include <string.h>

enum { NAIVE_TILE = 64 };

/* ---- shared with the naive ops ---- */

static int64_t room_of(const struct flash *f) {
    const int64_t rows = flash_whole(f->rows), columns = f->columns, width = f->width;
    const int64_t side = width > f->line ? width : f->line;
    return 3 * rows * width + 4 * columns * width + 2 * (int64_t)f->a->d_h * (f->line + PANEL) +
           2 * rows * f->line + columns * (rows + PANEL) + PANEL * side + flash_whole(f->a->keys) +
           2 * rows + 64 * PANEL; /* a gap: threads share no lines */
}

static struct flash flash_of(struct cpu *cpu, const struct lab_attention *a, bool naive) {
    struct flash f = {.cpu = cpu, .a = a};
    f.rows = flash_least(naive ? NAIVE_TILE : a->rows, a->queries);
    f.columns = flash_least(naive ? NAIVE_TILE : a->columns, a->keys);
    f.width = flash_whole(a->d_h);
    f.line = flash_whole(f.columns);
    f.n_rows = (a->queries + f.rows - 1) / f.rows;
    f.n_columns = (a->keys + f.columns - 1) / f.columns;
    f.room_floats = (room_of(&f) + PANEL - 1) / PANEL * PANEL;
    return f;
}

static float *take(float **at, int64_t n) {
    float *here = *at;
    *at += (n + PANEL - 1) / PANEL * PANEL;
    return here;
}

struct flash_room flash_room(const struct flash *f, int thread) {
    const int64_t rows = flash_whole(f->rows), columns = f->columns, width = f->width;
    const int64_t turned = (int64_t)f->a->d_h * (f->line + PANEL);
    float *at = f->a->room + thread * f->room_floats;
    struct flash_room r;
    r.q = take(&at, rows * width), r.d_o = take(&at, rows * width), r.o = take(&at, rows * width);
    r.k = take(&at, columns * width), r.v = take(&at, columns * width);
    r.dk = take(&at, columns * width), r.dv = take(&at, columns * width);
    r.kt = take(&at, turned), r.vt = take(&at, turned);
    r.s = take(&at, rows * f->line), r.ds = take(&at, rows * f->line);
    r.turned = take(&at, columns * (rows + PANEL));
    r.pad = take(&at, PANEL * (width > f->line ? width : f->line));
    r.row = take(&at, f->a->keys);
    r.m = take(&at, rows), r.l = take(&at, rows);
    return r;
}

bool flash_begin(struct flash *f, struct device *device, const struct lab_attention *a, bool naive,
                 bool backward) {
    const char *refused = lab_attention_refused(a, naive, backward);
    if (!refused && !a->room) refused = "flash: no room for tiles";
    if (!cpu_expects(cpu_of(device), !refused, refused)) return false;
    *f = flash_of(cpu_of(device), a, naive);
    return true;
}

void flash_run(const struct flash *f, int64_t items, int64_t grain, pool_fn *fn, void *job) {
    const struct lab_attention *a = f->a;
    /* Less than a dispatch costs: the caller alone. */
    const double macs = (double)a->n_seq * a->heads * a->queries * a->keys * a->d_h;
    pool_run(f->cpu->pool, items, grain, macs < 8192 ? items : 1, fn, job);
}

void flash_product(const struct flash *f, float *c, int64_t ldc, const float *x, int64_t ldx,
                   int32_t m, int64_t k, const float *w, int64_t ldw, int32_t columns, bool add) {
    const struct cpu_kernels *kernels = f->cpu->kernels;
    const int32_t n = (m + kernels->rows - 1) / kernels->rows;
    struct tile t = {.ldc = ldc,
                     .ldx = ldx,
                     .k = k,
                     .panels = w,
                     .k_step = ldw * (int64_t)sizeof *w,
                     .step = PANEL * (int64_t)sizeof *w,
                     .n_panels = (columns + PANEL - 1) / PANEL,
                     .add = add,
                     .ahead = w};
    for (int32_t i = 0; i < n; i++) {
        const int32_t r0 = cpu_tile_row(m, i, n, kernels), r1 = cpu_tile_row(m, i + 1, n, kernels);
        t.m = r1 - r0;
        t.x = x + r0 * ldx;
        t.c = c + r0 * ldc;
        kernels->tile[DT_F32](&t);
    }
}

void flash_turn(const struct flash *f, const struct flash_room *room, float *out, int64_t apart,
                const float *in, int64_t ld, int32_t rows, int32_t n) {
    const struct cpu_kernels *kernels = f->cpu->kernels;
    int32_t r = 0;
    for (; r + PANEL <= rows; r += PANEL, in += PANEL * ld)
        kernels->transpose(out + r, apart, in, ld, n, in, in);
    if (r == rows) return;
    memset(room->pad, 0, sizeof *room->pad * (size_t)(PANEL * n));
    for (int32_t i = 0; i < rows - r; i++)
        memcpy(room->pad + i * n, in + i * ld, sizeof *in * (size_t)n);
    kernels->transpose(out + r, apart, room->pad, n, n, room->pad, room->pad);
}

void flash_load(const struct flash *f, float *to, const float *from, int64_t stride, int32_t n,
                float by) {
    for (int32_t i = 0; i < n; i++, to += f->width, from += stride)
        f->cpu->kernels->scale(to, from, by, f->a->d_h);
}

static int64_t room_bytes(struct device *device, const struct lab_attention *a) {
    struct cpu *cpu = cpu_of(device);
    const struct flash naive = flash_of(cpu, a, true), tiled = flash_of(cpu, a, false);
    const int64_t most =
        naive.room_floats > tiled.room_floats ? naive.room_floats : tiled.room_floats;
    return most * pool_threads(cpu->pool) * (int64_t)sizeof *a->room;
}

/* ---- a pair of tiles ---- */

struct span { /* of a tile: its first row, and how many */
    int32_t at, n;
};

static struct span tile_of(int32_t i, int32_t size, int32_t all) {
    return (struct span){i * size, flash_least(size, all - i * size)};
}
static struct span queries_of(const struct flash *f, int64_t i) {
    return tile_of((int32_t)i, f->rows, f->a->queries);
}
static struct span keys_of(const struct flash *f, int64_t j) {
    return tile_of((int32_t)j, f->columns, f->a->keys);
}

/* How many of a tile's keys query i sees. */
static int32_t visible(const struct flash *f, int32_t i, struct span keys) {
    const int32_t seen = lab_keys_seen(f->a, i) - keys.at;
    return seen < 0 ? 0 : flash_least(seen, keys.n);
}

static bool meets(const struct flash *f, struct span queries, struct span keys) {
    return visible(f, queries.at + queries.n - 1, keys) > 0;
}

/* ---- forward ---- */

/* E55: takes a row's scores of a tile in; afterwards they are exp(s - m), and o fits the new m. */
static void online(const struct flash *f, const struct flash_room *room, int32_t r, int32_t seen,
                   int32_t n) {
    const struct cpu_kernels *kernels = f->cpu->kernels;
    float *s = room->s + (int64_t)r * f->line, *o = room->o + (int64_t)r * f->width;
    const float old = room->m[r];
    float most = kernels->mask(s, flash_whole(n), 0, seen);
    if (!(most > -INFINITY) && flash_any_nan(s, seen)) most = NAN; /* mask may pass over it */
    const float m = isnan(most) || most > old ? most : old;
    /* -inf: nothing was seen yet, and all that follows stays zero. */
    const float by = m == old || m == -INFINITY ? 1.0f : expf(old - m);
    if (by != 1.0f) kernels->scale(o, o, by, f->width);
    room->l[r] = room->l[r] * by + kernels->exps(s, flash_whole(n), m);
    room->m[r] = m;
}

static void forward_tile(const struct flash *f, const struct flash_room *room, int64_t pair,
                         struct span queries, struct span keys) {
    const struct lab_attention *a = f->a;
    const int32_t m = queries.n, n = keys.n, apart = f->line + PANEL;
    const float *k = flash_at(f, a->k, pair, a->keys, keys.at),
                *v = flash_at(f, a->v, pair, a->keys, keys.at);
    int64_t stride = a->v->stride;
    flash_turn(f, room, room->kt, apart, k, a->k->stride, n, a->d_h);
    flash_product(f, room->s, f->line, room->q, f->width, m, a->d_h, room->kt, apart, n, false);
    for (int32_t r = 0; r < m; r++) online(f, room, r, visible(f, queries.at + r, keys), n);
    if (a->d_h != f->width) { /* else the last panel would reach past the row */
        flash_load(f, room->v, v, stride, n, 1.0f);
        v = room->v;
        stride = f->width;
    }
    flash_product(f, room->o, f->width, room->s, f->line, m, n, v, stride, f->width, true);
}

static void forward_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct flash *f = ctx;
    const struct lab_attention *a = f->a;
    const struct flash_room room = flash_room(f, thread);
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / f->n_rows;
        const struct span queries = queries_of(f, item % f->n_rows);
        float *o = flash_at(f, a->o, pair, a->queries, queries.at);
        float *lse = a->lse + pair * a->queries + queries.at;
        flash_load(f, room.q, flash_at(f, a->q, pair, a->queries, queries.at), a->q->stride,
                   queries.n, a->scale);
        memset(room.o, 0, sizeof *room.o * (size_t)queries.n * (size_t)f->width);
        for (int32_t r = 0; r < queries.n; r++) {
            room.m[r] = -INFINITY;
            room.l[r] = 0;
        }
        for (int64_t j = 0; j < f->n_columns && meets(f, queries, keys_of(f, j)); j++)
            forward_tile(f, &room, pair, queries, keys_of(f, j));
        for (int32_t r = 0; r < queries.n; r++) {
            const bool nothing = room.m[r] == -INFINITY;
            f->cpu->kernels->scale(o + r * a->o->stride, room.o + (int64_t)r * f->width,
                                   nothing ? 0.0f : 1.0f / room.l[r], a->d_h);
            lse[r] = nothing ? -INFINITY : room.m[r] + logf(room.l[r]);
        }
    }
}

static void tiled_forward(struct device *device, const struct lab_attention *a) {
    struct flash f;
    if (!flash_begin(&f, device, a, false, false)) return;
    flash_run(&f, (int64_t)a->n_seq * a->heads * f.n_rows, 1, forward_items, &f);
}

/* ---- backward ---- */

/* E56: D = rowsum(O * dO); and dQ begins at zero. Items are rows of pairs. */
static void begin_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct flash *f = ctx;
    const struct lab_attention *a = f->a;
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / a->queries, i = item % a->queries;
        const float *o = flash_at(f, a->o, pair, a->queries, i),
                    *d_o = flash_at(f, a->d_o, pair, a->queries, i);
        double sum = 0;
        for (int32_t c = 0; c < a->d_h; c++) sum += (double)o[c] * (double)d_o[c];
        a->d[item] = (float)sum;
        memset(flash_at(f, a->dq, pair, a->queries, i), 0, sizeof(float) * (size_t)a->d_h);
    }
}

/* ds = p * (ds - d), whole panels. In sixteens: only a loop of known length becomes vectors. */
static void gradient_of_scores(float *restrict ds, const float *restrict p, float d, int32_t n) {
    for (int32_t c = 0; c < n; c += PANEL)
        for (int32_t u = 0; u < PANEL; u++) ds[c + u] = p[c + u] * (ds[c + u] - d);
}

static void load_keys(const struct flash *f, const struct flash_room *room, int64_t pair,
                      struct span keys) {
    const struct lab_attention *a = f->a;
    const float *k = flash_at(f, a->k, pair, a->keys, keys.at),
                *v = flash_at(f, a->v, pair, a->keys, keys.at);
    const int32_t apart = f->line + PANEL;
    flash_turn(f, room, room->kt, apart, k, a->k->stride, keys.n, a->d_h);
    flash_turn(f, room, room->vt, apart, v, a->v->stride, keys.n, a->d_h);
    flash_load(f, room->k, k, a->k->stride, keys.n, 1.0f);
}

static void load_queries(const struct flash *f, const struct flash_room *room, int64_t pair,
                         struct span queries) {
    const struct lab_attention *a = f->a;
    flash_load(f, room->q, flash_at(f, a->q, pair, a->queries, queries.at), a->q->stride, queries.n,
               a->scale);
    flash_load(f, room->d_o, flash_at(f, a->d_o, pair, a->queries, queries.at), a->d_o->stride,
               queries.n, 1.0f);
}

enum sides { TO_KEYS = 1, TO_QUERIES = 2 }; /* which gradients a pair of tiles adds to */

/* P out of L, then dS; dV, dK and dQ get their shares. */
static void backward_tile(const struct flash *f, const struct flash_room *room, int64_t pair,
                          struct span queries, struct span keys, int sides) {
    const struct lab_attention *a = f->a;
    const struct cpu_kernels *kernels = f->cpu->kernels;
    const int32_t m = queries.n, n = keys.n, used = flash_whole(n), width = f->width;
    const int64_t apart = f->line + PANEL, high = flash_whole(f->rows) + PANEL;
    const int64_t first = pair * a->queries + queries.at;
    flash_product(f, room->s, f->line, room->q, width, m, a->d_h, room->kt, apart, n, false);
    flash_product(f, room->ds, f->line, room->d_o, width, m, a->d_h, room->vt, apart, n, false);
    for (int32_t r = 0; r < m; r++) {
        float *s = room->s + (int64_t)r * f->line;
        const int32_t seen = visible(f, queries.at + r, keys);
        if (seen < n) kernels->mask(s, used, 0, seen);
        kernels->exps(s, used, a->lse[first + r]);
        gradient_of_scores(room->ds + (int64_t)r * f->line, s, a->d[first + r], used);
    }
    if (sides & TO_KEYS) {
        flash_turn(f, room, room->turned, high, room->s, f->line, flash_whole(m), n);
        flash_product(f, room->dv, width, room->turned, high, n, m, room->d_o, width, width, true);
        flash_turn(f, room, room->turned, high, room->ds, f->line, flash_whole(m), n);
        flash_product(f, room->dk, width, room->turned, high, n, m, room->q, width, width, true);
    }
    if (sides & TO_QUERIES) {
        float *dq = flash_at(f, a->dq, pair, a->queries, queries.at);
        flash_product(f, room->o, width, room->ds, f->line, m, n, room->k, width, width, false);
        for (int32_t r = 0; r < m; r++, dq += a->dq->stride)
            kernels->add(dq, dq, room->o + (int64_t)r * width, a->d_h);
    }
}

/* dK and dV of a tile of keys, and its share in dQ if `sides` say so. */
static void backward_keys(const struct flash *f, const struct flash_room *room, int64_t pair,
                          int64_t j, int sides) {
    const struct lab_attention *a = f->a;
    const struct span keys = keys_of(f, j);
    const size_t bytes = sizeof *room->dk * (size_t)keys.n * (size_t)f->width;
    load_keys(f, room, pair, keys);
    memset(room->dk, 0, bytes);
    memset(room->dv, 0, bytes);
    for (int64_t i = 0; i < f->n_rows; i++) {
        const struct span queries = queries_of(f, i);
        if (!meets(f, queries, keys)) continue;
        load_queries(f, room, pair, queries);
        backward_tile(f, room, pair, queries, keys, sides);
    }
    float *dk = flash_at(f, a->dk, pair, a->keys, keys.at),
          *dv = flash_at(f, a->dv, pair, a->keys, keys.at);
    for (int32_t c = 0; c < keys.n; c++) { /* of scaled queries: dK has its factor already */
        memcpy(dk + c * a->dk->stride, room->dk + (int64_t)c * f->width,
               sizeof *dk * (size_t)a->d_h);
        memcpy(dv + c * a->dv->stride, room->dv + (int64_t)c * f->width,
               sizeof *dv * (size_t)a->d_h);
    }
}

static void scale_queries(const struct flash *f, int64_t pair, struct span queries) {
    const struct lab_attention *a = f->a;
    float *dq = flash_at(f, a->dq, pair, a->queries, queries.at);
    for (int32_t r = 0; r < queries.n; r++, dq += a->dq->stride)
        f->cpu->kernels->scale(dq, dq, a->scale, a->d_h);
}

static void head_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct flash *f = ctx;
    const struct flash_room room = flash_room(f, thread);
    for (int64_t pair = begin; pair < end; pair++) {
        for (int64_t j = 0; j < f->n_columns; j++)
            backward_keys(f, &room, pair, j, TO_KEYS | TO_QUERIES);
        scale_queries(f, pair, (struct span){0, f->a->queries});
    }
}

static void keys_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct flash *f = ctx;
    const struct flash_room room = flash_room(f, thread);
    for (int64_t item = begin; item < end; item++)
        backward_keys(f, &room, item / f->n_columns, item % f->n_columns, TO_KEYS);
}

static void queries_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct flash *f = ctx;
    const struct flash_room room = flash_room(f, thread);
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / f->n_rows;
        const struct span queries = queries_of(f, item % f->n_rows);
        load_queries(f, &room, pair, queries);
        for (int64_t j = 0; j < f->n_columns && meets(f, queries, keys_of(f, j)); j++) {
            load_keys(f, &room, pair, keys_of(f, j));
            backward_tile(f, &room, pair, queries, keys_of(f, j), TO_QUERIES);
        }
        scale_queries(f, pair, queries);
    }
}

static void tiled_backward(struct device *device, const struct lab_attention *a) {
    struct flash f;
    if (!flash_begin(&f, device, a, false, true)) return;
    const int64_t pairs = (int64_t)a->n_seq * a->heads;
    flash_run(&f, pairs * a->queries, 64, begin_items, &f);
    if (pairs >= pool_threads(f.cpu->pool)) {
        flash_run(&f, pairs, 1, head_items, &f);
        return;
    }
    flash_run(&f, pairs * f.n_columns, 1, keys_items, &f);
    flash_run(&f, pairs * f.n_rows, 1, queries_items, &f);
}

const struct lab_flash cpu_lab_flash = {
    .room_bytes = room_bytes,
    .naive_forward = cpu_naive_forward,
    .naive_backward = cpu_naive_backward,
    .tiled_forward = tiled_forward,
    .tiled_backward = tiled_backward,
};
