/* SPDX-License-Identifier: Apache-2.0 */
/* Weights come to be on the device: by their recipe where that is known (engine_synth.c), else rows
   are made and quantized by several threads into pinned memory, tile after tile in the order of the
   kernels, and copied while the next ones are made. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "kernels/cuda/engine.h"

enum { MOST_THREADS = 16, VALUES_A_THREAD = 1 << 18 };

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static bool is_float(enum dtype type) {
    return type == DT_F32 || type == DT_F16 || type == DT_BF16;
}

struct packing { /* one weight */
    const struct cuda_weight *w;
    const struct weight_spec *parts;
    const struct row_source *sources;
    int n_parts;
    const float *absmax; /* (n_parts) of SCALE_TENSOR */
    int64_t tile_bytes;
    char *scales; /* the host's copy of w->scales, or NULL */
};

/* Which row of which part is row i of a tile; false: padding. */
static bool row_of(const struct packing *p, int64_t tile, int i, int *part, int64_t *row) {
    const struct cuda_weight *w = p->w;
    if (w->interleaved) {
        *part = i / 8;
        *row = tile * 8 + i % 8;
        return *row < w->part_rows[*part];
    }
    *row = tile * TILE_ROWS + i;
    for (*part = 0; *part < p->n_parts; (*part)++) {
        if (*row < p->parts[*part].rows) return true;
        *row -= p->parts[*part].rows;
    }
    return false;
}

static void keep_scales(const struct packing *p, int64_t row, const float *scales) {
    const struct cuda_weight *w = p->w;
    if (w->head.scale != SCALE_GROUP) {
        ((float *)(void *)p->scales)[row] = scales[0];
        return;
    }
    uint16_t *to = (uint16_t *)(void *)p->scales + row * w->groups;
    const int64_t n = quant_groups(&p->parts[0]);
    for (int64_t g = 0; g < n; g++) to[g] = f16_from_f32(scales[g]);
}

struct scratch { /* of one thread */
    float *row, *scales;
    void *rows; /* (TILE_ROWS, padded_cols) codes or floats, as cuda_pack_tile takes them */
};

/* Row i of a tile into s->rows; the packing knows what padded columns hold. */
static void make_row(const struct packing *p, const struct scratch *s, int64_t tile, int i) {
    const struct cuda_weight *w = p->w;
    const bool floats = is_float(w->head.type);
    float *values = floats ? (float *)s->rows + i * w->padded_cols : s->row;
    int8_t *codes = (int8_t *)s->rows + i * w->padded_cols;
    int part;
    int64_t row;
    if (row_of(p, tile, i, &part, &row)) {
        p->sources[part].row(p->sources[part].ctx, row, values);
        if (floats) return;
        quant_row(&p->parts[part], values, p->absmax[part], codes, s->scales);
        keep_scales(p, tile * TILE_ROWS + i, s->scales);
    } else if (floats) {
        memset(values, 0, (size_t)w->padded_cols * sizeof *values);
    } else {
        memset(codes, w->head.type == DT_NF4 ? 7 : 0, (size_t)w->padded_cols); /* 7 means 0 */
    }
}

struct share { /* of one thread: tiles first, first + step, ... of n */
    const struct packing *packing;
    int64_t tile, first, step, n;
    char *to;
};

static void *run_share(void *share) {
    const struct share *share_ = share;
    const struct packing *p = share_->packing;
    const struct cuda_weight *w = p->w;
    const size_t cols = (size_t)w->padded_cols;
    const size_t value = is_float(w->head.type) ? sizeof(float) : 1;
    const struct scratch s = {.row = must_alloc(cols * sizeof(float)),
                              .scales = must_alloc((size_t)(w->groups + 1) * sizeof(float)),
                              .rows = must_alloc(TILE_ROWS * cols * value)};
    for (int64_t i = share_->first; i < share_->n; i += share_->step) {
        for (int r = 0; r < TILE_ROWS; r++) make_row(p, &s, share_->tile + i, r);
        cuda_pack_tile(w, s.rows, share_->to + i * p->tile_bytes);
    }
    free(s.row);
    free(s.scales);
    free(s.rows);
    return NULL;
}

/* Tiles from `tile` on into pinned memory, by as many threads as are worth it. */
static void pack_tiles(const struct packing *p, int64_t tile, int64_t n, char *to) {
    struct share shares[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int64_t worth = n * TILE_ROWS * p->w->padded_cols / VALUES_A_THREAD,
            cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t n_threads = worth < cpus ? worth : cpus;
    if (n_threads > MOST_THREADS) n_threads = MOST_THREADS;
    if (n_threads > n) n_threads = n;
    if (n_threads < 1) n_threads = 1;
    bool runs[MOST_THREADS] = {false};
    for (int i = 0; i < (int)n_threads; i++) {
        shares[i] = (struct share){p, tile, i, n_threads, n, to};
        runs[i] = i > 0 && pthread_create(&threads[i], NULL, run_share, &shares[i]) == 0;
    }
    for (int i = 0; i < (int)n_threads; i++)
        if (!runs[i]) run_share(&shares[i]);
    for (int i = 0; i < (int)n_threads; i++)
        if (runs[i]) pthread_join(threads[i], NULL);
}

static void send_tiles(struct cuda *c, const struct packing *p) {
    const int64_t tiles = p->w->padded_rows / TILE_ROWS, most = STAGE_BYTES / p->tile_bytes;
    for (int64_t tile = 0, n; tile < tiles; tile += n) {
        n = tiles - tile < most ? tiles - tile : most;
        const size_t bytes = (size_t)(n * p->tile_bytes);
        char *staged = cuda_stage(c, bytes);
        pack_tiles(p, tile, n, staged);
        cuda_send(c, (char *)p->w->data + tile * p->tile_bytes, staged, bytes);
    }
}

/* Rows that only the host can make, quantized here. */
static void send_rows(struct cuda *c, const struct cuda_weight *w, const struct weight_spec *parts,
                      int n, const struct row_source *sources) {
    float *absmax = must_alloc((size_t)n * sizeof *absmax);
    struct packing packing = {.w = w,
                              .parts = parts,
                              .sources = sources,
                              .n_parts = n,
                              .absmax = absmax,
                              .tile_bytes = cuda_pack_tile_bytes(w)};
    for (int i = 0; i < n && w->head.scale == SCALE_TENSOR; i++)
        absmax[i] = quant_absmax(&parts[i], &sources[i]);
    /* The scale of padding is 0, so that it means 0 whatever its code. */
    if (w->head.scale_bytes) packing.scales = must_alloc((size_t)w->head.scale_bytes);
    send_tiles(c, &packing);
    if (packing.scales)
        cuda_upload(&c->base, w->scales, packing.scales, (size_t)w->head.scale_bytes);
    free(packing.scales);
    free(absmax);
}

static void set_size(struct cuda_weight *w, const struct weight_spec *parts, int n) {
    int64_t rows = 0;
    w->n_parts = n;
    w->interleaved = n == 2 && parts[0].rows == parts[1].rows;
    for (int i = 0; i < n; i++) {
        if (i < 2) w->part_rows[i] = parts[i].rows;
        rows += parts[i].rows;
    }
    w->head.rows = rows;
    w->padded_rows = w->interleaved ? 2 * round_up(parts[0].rows, 8) : round_up(rows, TILE_ROWS);
    w->padded_cols = round_up(parts[0].cols, PAD_COLS);
    if (parts[0].scale != SCALE_NONE) w->groups = 1;
    if (parts[0].scale == SCALE_GROUP)
        w->groups = round_up(w->padded_cols, parts[0].group) / parts[0].group;
    w->head.bytes = w->padded_rows * w->padded_cols * dtype_bits(parts[0].type) / 8;
    w->head.scale_bytes =
        w->padded_rows * w->groups *
        (int64_t)(parts[0].scale == SCALE_GROUP ? sizeof(uint16_t) : sizeof(float));
}

static int check(const struct weight_spec *parts, int n, struct err *err) {
    const struct op_case c = {.weight = parts[0].type,
                              .scale = parts[0].scale,
                              .group = parts[0].group,
                              .input = parts[0].input,
                              .activation = parts[0].type == DT_F32   ? DT_F32
                                            : parts[0].type == DT_F16 ? DT_F16
                                                                      : DT_BF16};
    const char *reason = NULL;
    if (!cuda_linear_supports(&c, &reason))
        return err_set(err, ERR_UNSUPPORTED, "cuda: %s: %s", parts[0].what, reason);
    for (int i = 1; i < n; i++)
        if (parts[i].cols != parts[0].cols || parts[i].type != parts[0].type ||
            parts[i].scale != parts[0].scale || parts[i].group != parts[0].group)
            return err_set(err, ERR_INTERNAL,
                           "cuda: %s and %s differ in columns or type and cannot be stacked",
                           parts[0].what, parts[i].what);
    return 0;
}

int cuda_pack(struct device *device, struct weight **weight, const struct weight_spec *parts, int n,
              const struct row_source *sources, struct err *err) {
    struct cuda *c = cuda_of(device);
    *weight = NULL;
    int code = check(parts, n, err);
    if (code) return code;
    struct cuda_weight *w = must_alloc(sizeof *w);
    w->head = (struct weight){.cols = parts[0].cols,
                              .type = parts[0].type,
                              .scale = parts[0].scale,
                              .group = parts[0].group};
    set_size(w, parts, n);
    *weight = &w->head;
    w->data = device_alloc(device, (size_t)w->head.bytes, MEM_WEIGHT, parts[0].what);
    if (w->head.scale_bytes)
        w->scales = device_alloc(device, (size_t)w->head.scale_bytes, MEM_SCALE, parts[0].what);
    const int64_t tile_bytes = cuda_pack_tile_bytes(w);
    if (!w->data || (w->head.scale_bytes && !w->scales))
        code = err_set(err, ERR_MEMORY, "cuda: no memory for %s (%lld bytes)", parts[0].what,
                       (long long)w->head.bytes + w->head.scale_bytes);
    else if (tile_bytes > STAGE_BYTES)
        code = err_set(err, ERR_UNSUPPORTED, "cuda: %s: %lld columns are too many", parts[0].what,
                       (long long)parts[0].cols);
    if (code) {
        cuda_unpack(device, weight);
        return code;
    }
    if (cuda_synth_knows(n, sources)) {
        code = cuda_synth(c, w, parts, n, sources, err);
        if (code) cuda_unpack(device, weight);
        return code;
    }
    send_rows(c, w, parts, n, sources);
    return 0;
}

void cuda_unpack(struct device *device, struct weight **weight) {
    struct cuda_weight *w = (struct cuda_weight *)*weight;
    if (!w) return;
    device_free(device, w->data);
    device_free(device, w->scales);
    free(w);
    *weight = NULL;
}
