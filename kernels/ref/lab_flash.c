/* SPDX-License-Identifier: Apache-2.0 */
/* Reference attention forward and backward, naive and by tiles: one head after the other in double.
 */
#include "kernels/ref/lab_flash.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/lab_flash.h"
#include "kernels/ref/ref.h"

static double dot(struct flash_head *h, const double *a, const double *b) {
    double sum = 0;
    for (int32_t c = 0; c < h->d_h; c++) sum += a[c] * b[c];
    h->macs += h->d_h;
    return sum;
}

static void add(struct flash_head *h, double *to, double by, const double *row) {
    for (int32_t c = 0; c < h->d_h; c++) to[c] += by * row[c];
    h->macs += h->d_h;
}

static bool sees(const struct flash_head *h, int32_t i, int32_t j) {
    return !h->causal || j <= i + h->keys - h->queries;
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* The larger, or NaN where either is. */
static double larger(double a, double b) { return isnan(a) || a > b ? a : b; }

/* exp(s - m) of a score beside the largest one; nothing counts where that is -inf. */
static double share(double s, double m) { return m == -INFINITY ? 0 : exp(s - m); }

/* ---- naive: the whole matrix, masked afterwards ---- */

void flash_head_naive_forward(struct flash_head *h) {
    const int64_t d = h->d_h;
    for (int32_t i = 0; i < h->queries; i++) {
        double *p = h->p + (int64_t)i * h->keys, m = -INFINITY, l = 0;
        for (int32_t j = 0; j < h->keys; j++) {
            p[j] = h->scale * dot(h, h->q + i * d, h->k + j * d);
            if (!sees(h, i, j)) p[j] = -INFINITY;
            m = larger(m, p[j]);
        }
        for (int32_t j = 0; j < h->keys; j++) l += p[j] = share(p[j], m);
        for (int32_t c = 0; c < d; c++) h->o[i * d + c] = 0;
        for (int32_t j = 0; j < h->keys; j++) {
            if (m > -INFINITY) p[j] /= l; /* else P is zero, or NaN */
            add(h, h->o + i * d, p[j], h->v + j * d);
        }
    }
}

void flash_head_naive_backward(struct flash_head *h) {
    const int64_t d = h->d_h;
    for (int32_t i = 0; i < h->queries; i++) {
        const double *p = h->p + (int64_t)i * h->keys;
        double *ds = h->ds + (int64_t)i * h->keys, sum = 0;
        for (int32_t j = 0; j < h->keys; j++) {
            ds[j] = dot(h, h->d_o + i * d, h->v + j * d);
            sum += p[j] * ds[j];
        }
        for (int32_t j = 0; j < h->keys; j++) {
            ds[j] = p[j] * (ds[j] - sum);
            add(h, h->dv + j * d, p[j], h->d_o + i * d);
            add(h, h->dq + i * d, h->scale * ds[j], h->k + j * d);
            add(h, h->dk + j * d, h->scale * ds[j], h->q + i * d);
        }
    }
}

/* ---- by tiles ---- */

/* Calls `one` for each tile of keys (from `j0` on) beside each of queries that sees any of it. */
static void each_tile(struct flash_head *h, bool keys_first, double *room,
                      void (*one)(struct flash_head *, int32_t i, int32_t j0, double *room)) {
    const int32_t tiles_i = (h->queries - 1) / h->rows + 1,
                  tiles_j = (h->keys - 1) / h->columns + 1;
    for (int64_t t = 0; t < (int64_t)tiles_i * tiles_j; t++) {
        const int64_t i0 = (keys_first ? t % tiles_i : t / tiles_j) * h->rows;
        const int64_t j0 = (keys_first ? t / tiles_i : t % tiles_j) * h->columns;
        const int32_t i1 = least((int32_t)i0 + least(h->rows, h->queries), h->queries);
        if (!sees(h, i1 - 1, (int32_t)j0)) continue;
        for (int32_t i = (int32_t)i0; i < i1; i++) one(h, i, (int32_t)j0, room);
    }
}

static int32_t tile_end(const struct flash_head *h, int32_t j0) {
    return h->columns < h->keys - j0 ? j0 + h->columns : h->keys;
}

/* E55: m and l of a row are in h->lse and h->d until all tiles are in. room: (columns). */
static void online(struct flash_head *h, int32_t i, int32_t j0, double *room) {
    const int64_t d = h->d_h;
    const int32_t n = tile_end(h, j0) - j0;
    double m = h->lse[i], *a = h->o + i * d;
    for (int32_t j = 0; j < n; j++) {
        room[j] = h->scale * dot(h, h->q + i * d, h->k + (j0 + j) * d);
        if (!sees(h, i, j0 + j)) room[j] = -INFINITY;
        m = larger(m, room[j]);
    }
    const double by = share(h->lse[i], m);
    h->d[i] *= by;
    for (int32_t c = 0; c < d; c++) a[c] *= by;
    for (int32_t j = 0; j < n; j++) {
        const double e = share(room[j], m);
        h->d[i] += e;
        add(h, a, e, h->v + (j0 + j) * d);
    }
    h->lse[i] = m;
    if (h->seen) h->seen(h->ctx, i, j0 / h->columns, m, h->d[i], a);
}

void flash_head_tiled_forward(struct flash_head *h) {
    const int64_t d = h->d_h;
    double *own = h->d ? NULL : must_alloc(sizeof *own * (size_t)h->queries);
    double *room = must_alloc(sizeof *room * (size_t)least(h->columns, h->keys));
    if (own) h->d = own;
    for (int32_t i = 0; i < h->queries; i++) {
        h->lse[i] = -INFINITY;
        h->d[i] = 0;
        for (int32_t c = 0; c < d; c++) h->o[i * d + c] = 0;
    }
    each_tile(h, false, room, online);
    for (int32_t i = 0; i < h->queries; i++) {
        if (h->lse[i] == -INFINITY) continue; /* it saw nothing: O = 0 */
        for (int32_t c = 0; c < d; c++) h->o[i * d + c] /= h->d[i];
        h->lse[i] += log(h->d[i]);
    }
    if (own) h->d = NULL;
    free(own);
    free(room);
}

/* E56: scores once more, P out of L. */
static void again(struct flash_head *h, int32_t i, int32_t j0, double *room) {
    const int64_t d = h->d_h;
    (void)room;
    for (int32_t j = j0; j < tile_end(h, j0); j++) {
        const double s = h->scale * dot(h, h->q + i * d, h->k + j * d);
        const double p = sees(h, i, j) ? share(s, h->lse[i]) : 0;
        const double ds = p * (dot(h, h->d_o + i * d, h->v + j * d) - h->d[i]);
        add(h, h->dv + j * d, p, h->d_o + i * d);
        add(h, h->dq + i * d, h->scale * ds, h->k + j * d);
        add(h, h->dk + j * d, h->scale * ds, h->q + i * d);
    }
}

void flash_head_tiled_backward(struct flash_head *h) {
    for (int32_t i = 0; i < h->queries; i++) {
        h->d[i] = 0;
        for (int32_t c = 0; c < h->d_h; c++)
            h->d[i] += h->o[(int64_t)i * h->d_h + c] * h->d_o[(int64_t)i * h->d_h + c];
    }
    each_tile(h, true, NULL, again);
}

/* ---- the ops: each head to double and back ---- */

struct place { /* of a head: its first row of queries and of keys, and its column */
    int64_t query, key, column, index;
};

static double *load(struct arena *arena, const struct tensor *t, int64_t row, int64_t column,
                    int32_t n, int32_t d) {
    double *to = arena_alloc(arena, sizeof *to * (size_t)n * (size_t)d);
    const float *from = t ? (const float *)t->data + row * t->stride + column : NULL;
    for (int32_t i = 0; from && i < n; i++)
        for (int32_t c = 0; c < d; c++) to[(int64_t)i * d + c] = (double)from[i * t->stride + c];
    return to;
}

static void store(struct tensor *t, int64_t row, int64_t column, const double *from, int32_t n,
                  int32_t d) {
    float *to = (float *)t->data + row * t->stride + column;
    for (int32_t i = 0; i < n; i++)
        for (int32_t c = 0; c < d; c++) to[i * t->stride + c] = (float)from[(int64_t)i * d + c];
}

static double *load_list(struct arena *arena, const float *from, int64_t index, int64_t n) {
    double *to = arena_alloc(arena, sizeof *to * (size_t)n);
    for (int64_t i = 0; from && i < n; i++) to[i] = (double)from[index * n + i];
    return to;
}

static void store_list(float *to, int64_t index, const double *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[index * n + i] = (float)from[i];
}

static void one_head(const struct lab_attention *a, const struct place *at, bool naive,
                     bool backward, void (*run)(struct flash_head *), struct op_counts *counts) {
    struct arena *arena = arena_create();
    const int32_t n = a->queries, keys = a->keys, d = a->d_h;
    const int64_t matrix = (int64_t)n * keys;
    struct flash_head h = {.queries = n,
                           .keys = keys,
                           .d_h = d,
                           .rows = a->rows,
                           .columns = a->columns,
                           .scale = (double)a->scale,
                           .causal = a->causal};
    h.q = load(arena, a->q, at->query, at->column, n, d);
    h.k = load(arena, a->k, at->key, at->column, keys, d);
    h.v = load(arena, a->v, at->key, at->column, keys, d);
    h.o = load(arena, backward && !naive ? a->o : NULL, at->query, at->column, n, d);
    h.d_o = load(arena, backward ? a->d_o : NULL, at->query, at->column, n, d);
    h.dq = load(arena, NULL, 0, 0, n, d);
    h.dk = load(arena, NULL, 0, 0, keys, d);
    h.dv = load(arena, NULL, 0, 0, keys, d);
    if (naive) h.p = load_list(arena, backward ? a->p : NULL, at->index, matrix);
    if (naive && backward) h.ds = load_list(arena, NULL, 0, matrix);
    if (!naive) h.lse = load_list(arena, backward ? a->lse : NULL, at->index, n);
    if (!naive) h.d = load_list(arena, NULL, 0, n);
    run(&h);
    counts->attention += h.macs;
    if (!backward) {
        store(a->o, at->query, at->column, h.o, n, d);
        store_list(naive ? a->p : a->lse, at->index, naive ? h.p : h.lse, naive ? matrix : n);
    } else {
        store(a->dq, at->query, at->column, h.dq, n, d);
        store(a->dk, at->key, at->column, h.dk, keys, d);
        store(a->dv, at->key, at->column, h.dv, keys, d);
        store_list(naive ? a->ds : a->d, at->index, naive ? h.ds : h.d, naive ? matrix : n);
    }
    arena_close(&arena);
}

static void all_heads(struct device *device, const struct lab_attention *a, bool naive,
                      bool backward, void (*run)(struct flash_head *)) {
    const char *refused = lab_attention_refused(a, naive, backward);
    if (!ref_expects(device, !refused, refused)) return;
    for (int32_t s = 0; s < a->n_seq; s++)
        for (int32_t h = 0; h < a->heads; h++) {
            const struct place at = {(int64_t)s * a->queries, (int64_t)s * a->keys,
                                     (int64_t)h * a->d_h, (int64_t)s * a->heads + h};
            one_head(a, &at, naive, backward, run, &((struct ref *)device)->counts);
        }
}

static int64_t room_bytes(struct device *device, const struct lab_attention *a) {
    (void)device, (void)a;
    return 0; /* doubles of one head on the host */
}

static void naive_forward(struct device *device, const struct lab_attention *a) {
    all_heads(device, a, true, false, flash_head_naive_forward);
}
static void naive_backward(struct device *device, const struct lab_attention *a) {
    all_heads(device, a, true, true, flash_head_naive_backward);
}
static void tiled_forward(struct device *device, const struct lab_attention *a) {
    all_heads(device, a, false, false, flash_head_tiled_forward);
}
static void tiled_backward(struct device *device, const struct lab_attention *a) {
    all_heads(device, a, false, true, flash_head_tiled_backward);
}

const struct lab_flash ref_lab_flash = {
    .room_bytes = room_bytes,
    .naive_forward = naive_forward,
    .naive_backward = naive_backward,
    .tiled_forward = tiled_forward,
    .tiled_backward = tiled_backward,
};
