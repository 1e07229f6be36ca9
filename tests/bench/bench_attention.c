/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of attention on the CPU device: of decode bytes of K and V a second, as a share
   of the read ceiling measured in turns with it; of prompts arithmetic likewise as a share of the
   peak. Not a test: prints numbers for a person. Usage: bench_attention [isa [threads [rounds [KiB
   of K and V [shape]]]]] A shape is the number of one below, or its own:
   TYPE,n_q,n_kv,d_h,context,batch[,block[,tokens]], in blocks of a shuffled table if so many
   positions are given (0: one piece), `tokens` of each sequence at the end of its context. 0 KiB: K
   and V of one layer again and again, and no read between, as far as caches hold them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/option.h"
#include "base/random.h"
#include "kernels/device.h"

enum {
    READ_BYTES = 128 << 20,
    CACHE_BYTES = 96 << 20,
    READ_LEAST = 256 << 10,
    READ_MOST = 16 << 20,
    PEAK_FLOPS = 1 << 30,
    MOST_SAMPLES = 1 << 16
};
static int64_t cache_bytes = CACHE_BYTES;

struct shape {
    enum dtype type;
    int32_t n_q, n_kv, d_h, context, batch;
    int32_t block;  /* positions in a block; 0: not paged */
    int32_t tokens; /* of each sequence; 0: one */
};

/* Of a 135 M model, a 7 B model without and with grouped heads, and the extremes of grouping. */
static const struct shape shapes[] = {
    {DT_BF16, 9, 3, 64, 16, 1, 0, 1},      {DT_BF16, 9, 3, 64, 256, 1, 0, 1},
    {DT_BF16, 9, 3, 64, 1024, 1, 0, 1},    {DT_BF16, 9, 3, 64, 4096, 1, 0, 1},
    {DT_BF16, 9, 3, 64, 1024, 8, 0, 1},    {DT_BF16, 32, 32, 128, 256, 1, 0, 1},
    {DT_BF16, 32, 32, 128, 4096, 1, 0, 1}, {DT_BF16, 32, 8, 128, 1024, 1, 0, 1},
    {DT_BF16, 40, 5, 64, 1024, 1, 0, 1},   {DT_BF16, 64, 8, 128, 4096, 1, 0, 1},
    {DT_F32, 32, 32, 128, 1024, 1, 0, 1},  {DT_F16, 32, 32, 128, 1024, 1, 0, 1},
    {DT_I8, 32, 32, 128, 1024, 1, 0, 1},   {DT_BF16, 20, 20, 80, 1024, 1, 0, 1},
};

static struct device *device;
static char *read_from;

static void *room(int64_t bytes) {
    void *p = device_alloc(device, (size_t)bytes, MEM_OTHER, "bench");
    if (p == NULL) exit(1);
    return p;
}

static void fail(const struct err *err) {
    fprintf(stderr, "bench_attention: %s\n", err->text);
    exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* Nanoseconds a byte, of a part of the buffer that was not read lately. */
static double read_ns(int64_t bytes) {
    static int64_t at;
    float sink;
    if (bytes < READ_LEAST) bytes = READ_LEAST;
    if (bytes > READ_MOST) bytes = READ_MOST;
    bytes = bytes / 4096 * 4096;
    if (at + bytes > READ_BYTES) at = 0;
    const int64_t t = clock_ns();
    device->ops->read(device, read_from + at, bytes, &sink);
    at += bytes;
    return (double)(clock_ns() - t) / (double)bytes;
}

/* Nanoseconds a FLOP at the peak. */
static double peak_ns(void) {
    const int64_t t = clock_ns();
    device->ops->fma_peak(device, DT_F32, PEAK_FLOPS);
    return (double)(clock_ns() - t) / (double)PEAK_FLOPS;
}

/* Small values of the type everywhere, none of them subnormal. */
static void fill(void *to, enum dtype type, int64_t n) {
    if (type == DT_I8) {
        memset(to, 3, (size_t)n);
        return;
    }
    const int64_t size = dtype_bits(type) / 8;
    for (int64_t i = 0; i < n && i < 4096; i++)
        dtype_store(to, type, i, 0.01f * (float)(i % 37 - 18));
    for (int64_t at = 4096; at < n; at += 4096)
        memcpy((char *)to + at * size, to, (size_t)((n - at < 4096 ? n - at : 4096) * size));
}

static void measure(const struct shape *s, int rounds) {
    struct err err = {0};
    const int32_t q_cols = s->n_q * s->d_h, tokens = s->tokens > 1 ? s->tokens : 1,
                  rows = s->batch * tokens;
    struct step_bounds bounds = {.n_seq = s->batch,
                                 .n_row = rows,
                                 .n_out = s->batch,
                                 .most_q = tokens,
                                 .most_kv = s->context,
                                 .n_q = s->n_q,
                                 .n_kv = s->n_kv,
                                 .d_h = s->d_h,
                                 .d_model = q_cols,
                                 .d_ff = q_cols,
                                 .vocab = 10};
    if (device->kind->plan(device, &bounds, &err)) fail(&err);
    const int32_t block = s->block > 0 ? s->block : s->context,
                  blocks = (s->context + block - 1) / block, units = s->batch * blocks;
    const int64_t values = (int64_t)units * s->n_kv * block * s->d_h,
                  bytes = values * dtype_bits(s->type) / 8;
    int n_layers =
        (int)(cache_bytes / (2 * bytes)); /* one after another: none is still in a cache */
    if (n_layers > 2000) n_layers = 2000;
    int32_t *table = room(units * (int64_t)sizeof *table);
    for (int32_t i = 0; i < units; i++) table[i] = i;
    random_shuffle(random_key(1, 1), table, units);
    if (n_layers < 1) n_layers = 1;
    char *k = room(n_layers * bytes), *v = room(n_layers * bytes);
    float *scales = room((values / s->d_h) * 4), *q = room((int64_t)rows * q_cols * 4),
          *o = room((int64_t)rows * q_cols * 4);
    fill(k, s->type, n_layers * values);
    fill(v, s->type, n_layers * values);
    fill(q, DT_F32, (int64_t)rows * q_cols);
    for (int64_t i = 0; i < values / s->d_h; i++) scales[i] = 0.01f;
    int32_t *pos = room(rows * (int64_t)sizeof *pos), *seq = room(rows * (int64_t)sizeof *seq),
            begin[65], length[64];
    for (int32_t i = 0; i < rows; i++) {
        pos[i] = s->context - tokens + i % tokens;
        seq[i] = i / tokens;
    }
    for (int32_t i = 0; i <= s->batch; i++) begin[i] = i * tokens;
    for (int32_t i = 0; i < s->batch; i++) length[i] = s->context;
    const struct step step = {.n_seq = s->batch,
                              .n_row = rows,
                              .most_q = tokens,
                              .most_kv = s->context,
                              .pos = pos,
                              .seq = seq,
                              .q_begin = begin,
                              .kv_len = length};
    struct tensor in = {q, DT_F32, rows, q_cols, q_cols}, out = {o, DT_F32, rows, q_cols, q_cols};
    static double attention[MOST_SAMPLES], bound[MOST_SAMPLES];
    /* In turns and each for a short time, so that medians survive a machine that others use too. */
    const double pairs = (double)s->batch * tokens * (s->context - (tokens - 1) / 2.0),
                 work = tokens > 1 ? 4.0 * pairs * q_cols : 2.0 * (double)bytes;
    int n = 0;
    for (int r = -1; r < rounds; r++)
        for (int i = 0; i < n_layers && n < MOST_SAMPLES; i++) {
            const struct kv kv = {.type = s->type,
                                  .n_kv = s->n_kv,
                                  .d_h = s->d_h,
                                  .block = block,
                                  .table = s->block > 0 ? table : NULL,
                                  .table_stride = blocks,
                                  .k = k + i * bytes,
                                  .v = v + i * bytes,
                                  .k_scale = s->type == DT_I8 ? scales : NULL,
                                  .v_scale = s->type == DT_I8 ? scales : NULL};
            bound[n] = tokens > 1                  ? peak_ns()
                       : cache_bytes > 0 || n == 0 ? read_ns(2 * bytes)
                                                   : bound[0];
            const int64_t t = clock_ns();
            device->ops->attention(device, &out, &in, &kv, &step, 0.125f);
            attention[n] = (double)(clock_ns() - t) / work;
            if (r >= 0) n++;
        }
    if (device->kind->sync(device, &err)) fail(&err);
    const double ns = median(attention, n), ceiling = median(bound, n);
    printf(
        "%-5s %2d q %2d kv of %3d, context %5d, batch %d, tokens %4d, block %5d: %6.2f %s of %6.2f, %5.1f %%, %8.1f us each; at best %6.2f of %6.2f\n",
        dtype_names[s->type], s->n_q, s->n_kv, s->d_h, s->context, s->batch, tokens, block, 1 / ns,
        tokens > 1 ? "GFLOP/s" : "GB/s", 1 / ceiling, 100 * ceiling / ns, ns * work * 1e-3,
        1 / attention[n / 20], 1 / bound[n / 20]);
    fflush(stdout);
    device_free(device, table);
    device_free(device, k);
    device_free(device, v);
    device_free(device, scales);
    device_free(device, q);
    device_free(device, o);
    device_free(device, pos);
    device_free(device, seq);
}

/* TYPE,n_q,n_kv,d_h,context,batch[,block[,tokens]] */
static bool parse_shape(const char *text, struct shape *s) {
    char type[8];
    if (sscanf(text, "%7[^,],%d,%d,%d,%d,%d,%d,%d", type, &s->n_q, &s->n_kv, &s->d_h, &s->context,
               &s->batch, &s->block, &s->tokens) < 6)
        return false;
    for (int t = 0; t < N_DTYPES; t++)
        if (strcmp(type, dtype_names[t]) == 0) {
            s->type = (enum dtype)t;
            return true;
        }
    return false;
}

int main(int argc, char **argv) {
    struct err err = {0};
    struct arena *arena = arena_create();
    const struct device_kind *kind = device_kind_find("cpu");
    void *params = must_alloc(kind->params_size);
    option_defaults(kind->params, params, arena);
    if (argc > 1 && option_parse(option_find(kind->params, "isa"), argv[1], params, arena, &err))
        fail(&err);
    if (argc > 2 &&
        option_parse(option_find(kind->params, "threads"), argv[2], params, arena, &err))
        fail(&err);
    if (device_open(&device, kind, params, &err)) fail(&err);
    int rounds = argc > 3 ? atoi(argv[3]) : 15;
    if (argc > 4) cache_bytes = (int64_t)atoi(argv[4]) << 10;
    read_from = room(READ_BYTES);
    memset(read_from, 1, READ_BYTES);
    const size_t n = sizeof shapes / sizeof *shapes, only = argc > 5 ? (size_t)atoi(argv[5]) : n;
    struct shape own = {0};
    if (argc > 5 && parse_shape(argv[5], &own))
        measure(&own, rounds);
    else
        for (size_t i = 0; i < n; i++)
            if (only >= n || i == only) measure(&shapes[i], rounds);
    device_free(device, read_from);
    device_close(&device);
    arena_close(&arena);
    free(params);
    return 0;
}
