/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of matrix products on the CPU device by type of weights: bytes of weights a
   second as a share of the read ceiling, FLOPs a second as a share of the peak, both measured in
   turns with the products. Not a test: prints numbers for a person. Usage: bench_weights [isa
   [threads [format [rounds]]]]; `all` is every format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/option.h"
#include "kernels/device.h"

enum {
    ROWS = 2048, /* of a matrix: a part of those of a 7 B model, so that samples are short */
    COLS = 4096,
    MOST_M = 512,
    MOST_ROUNDS = 1 << 10,
    MOST_MATRICES = 256,
    READ_BYTES = 16 << 20, /* of a sample */
    PEAK_FLOPS = 1 << 27,
};
/* What samples of products and of the ceiling go around: more than a cache holds. */
static const int64_t around_bytes = (int64_t)512 << 20;
static const double flops_of_a_line = 3e11; /* then fewer rounds do */

struct format {
    const char *name;
    enum dtype type;
    enum scale scale;
    int group;
    enum dtype input;
};
static const struct format formats[] = {
    {"f32", DT_F32, SCALE_NONE, 0, DT_F32},         {"bf16", DT_BF16, SCALE_NONE, 0, DT_F32},
    {"int8", DT_I8, SCALE_ROW, 0, DT_F32},          {"int8-tensor", DT_I8, SCALE_TENSOR, 0, DT_F32},
    {"int8-g128", DT_I8, SCALE_GROUP, 128, DT_F32}, {"int8-g32", DT_I8, SCALE_GROUP, 32, DT_F32},
    {"int4-row", DT_I4, SCALE_ROW, 0, DT_F32},      {"int4-g128", DT_I4, SCALE_GROUP, 128, DT_F32},
    {"int4-g32", DT_I4, SCALE_GROUP, 32, DT_F32},   {"nf4-g64", DT_NF4, SCALE_GROUP, 64, DT_F32},
    {"w8a8", DT_I8, SCALE_ROW, 0, DT_I8},           {"w8a8-g128", DT_I8, SCALE_GROUP, 128, DT_I8},
    {"w4a8-row", DT_I4, SCALE_ROW, 0, DT_I8},       {"w4a8-g128", DT_I4, SCALE_GROUP, 128, DT_I8},
    {"w4a8-g32", DT_I4, SCALE_GROUP, 32, DT_I8},
};
static const int sizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 512};

struct rig {
    struct device *device;
    char *buffer; /* (around_bytes) */
    int64_t at;   /* in it, of the next sample */
    float *x, *y;
    struct weight *matrices[MOST_MATRICES];
    int n_matrices, next;
};

static void fail(const struct err *err) {
    fprintf(stderr, "bench_weights: %s\n", err->text);
    exit(1);
}

/* Some values in no order; what they are does not matter to time. */
static void row(void *ctx, int64_t r, float *out) {
    const float *values = ctx;
    memcpy(out, values + r % 61 * 16, COLS * sizeof *out);
}

static void make_matrices(struct rig *rig, const struct format *f, const float *values) {
    struct err err = {0};
    const struct weight_spec spec = {"bench", ROWS, COLS, f->type, f->scale, f->group, f->input};
    const struct row_source source = {.row = row, .ctx = (void *)(uintptr_t)values};
    const int64_t begin = clock_ns();
    int64_t bytes = 0;
    for (rig->n_matrices = 0; bytes < around_bytes && rig->n_matrices < MOST_MATRICES;) {
        struct weight **w = &rig->matrices[rig->n_matrices++];
        if (rig->device->kind->pack(rig->device, w, &spec, 1, &source, &err)) fail(&err);
        bytes += (*w)->bytes + (*w)->scale_bytes;
    }
    const double ns = (double)(clock_ns() - begin);
    printf("%-11s %d matrices of %d x %d, %.0f MB, packed at %.0f M weights/s\n", f->name,
           rig->n_matrices, ROWS, COLS, (double)bytes * 1e-6,
           1e3 * ROWS * COLS * rig->n_matrices / ns);
}

static double read_rate(struct rig *rig) {
    float sink;
    const int64_t t = clock_ns();
    rig->device->ops->read(rig->device, rig->buffer + rig->at, READ_BYTES, &sink);
    rig->at = (rig->at + READ_BYTES) % around_bytes;
    return (double)READ_BYTES / (double)(clock_ns() - t);
}

static double peak_rate(struct rig *rig, enum dtype type) {
    const int64_t t = clock_ns();
    rig->device->ops->fma_peak(rig->device, type, PEAK_FLOPS);
    return (double)PEAK_FLOPS / (double)(clock_ns() - t);
}

static double product_ns(struct rig *rig, int m) {
    const struct tensor x = {rig->x, DT_F32, m, COLS, COLS};
    struct tensor y = {rig->y, DT_F32, m, ROWS, ROWS};
    const int64_t t = clock_ns();
    rig->device->ops->linear(rig->device, &y, &x, rig->matrices[rig->next], NULL, EPI_NONE);
    rig->next = (rig->next + 1) % rig->n_matrices;
    return (double)(clock_ns() - t);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* Medians of ratios of neighbours in time: samples are short, so that what else runs on the machine
   disturbs some and not all. */
static void measure(struct rig *rig, const char *name, int m, int most_rounds) {
    static double of_read[MOST_ROUNDS], of_peak[MOST_ROUNDS], time[MOST_ROUNDS];
    static double reads[MOST_ROUNDS], peaks[MOST_ROUNDS];
    const double bytes = (double)(rig->matrices[0]->bytes + rig->matrices[0]->scale_bytes);
    const double flops = 2.0 * m * ROWS * COLS;
    int n = (int)(flops_of_a_line / flops) + 5;
    if (n > most_rounds) n = most_rounds;
    for (int i = 0; i < n; i++) {
        reads[i] = read_rate(rig), peaks[i] = peak_rate(rig, rig->matrices[0]->input),
        time[i] = product_ns(rig, m);
        of_read[i] = bytes / time[i] / reads[i];
        of_peak[i] = flops / time[i] / peaks[i];
    }
    printf("%-11s M %3d  %9.3f ms  of read %6.1f %%  of peak %6.1f %%  (read %.1f GB/s, peak %.0f "
           "GFLOP/s, %d rounds)\n",
           name, m, median(time, n) * 1e-6, 100 * median(of_read, n), 100 * median(of_peak, n),
           median(reads, n), median(peaks, n), n);
    fflush(stdout);
}

static void of_format(struct rig *rig, const struct format *f, const float *values, int rounds) {
    struct err err = {0};
    make_matrices(rig, f, values);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        measure(rig, f->name, sizes[i], rounds);
    if (rig->device->kind->sync(rig->device, &err)) fail(&err);
    for (int i = 0; i < rig->n_matrices; i++)
        rig->device->kind->unpack(rig->device, &rig->matrices[i]);
    rig->next = 0;
}

static void *room(struct rig *rig, int64_t bytes) {
    void *p = device_alloc(rig->device, (size_t)bytes, MEM_OTHER, "bench");
    if (p == NULL) exit(1);
    memset(p, 1, (size_t)bytes);
    return p;
}

static void option(const char *key, const char *value, void *params, struct arena *arena) {
    struct err err = {0};
    const struct option *known = option_find(device_kind_find("cpu")->params, key);
    if (option_parse(known, value, params, arena, &err)) fail(&err);
}

int main(int argc, char **argv) {
    struct err err = {0};
    struct arena *arena = arena_create();
    const struct device_kind *kind = device_kind_find("cpu");
    void *params = must_alloc(kind->params_size);
    struct rig rig = {0};
    static float values[COLS + 61 * 16];
    const char *only = argc > 3 ? argv[3] : "all";
    int rounds = argc > 4 ? atoi(argv[4]) : 200;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    option_defaults(kind->params, params, arena);
    if (argc > 1) option("isa", argv[1], params, arena);
    if (argc > 2) option("threads", argv[2], params, arena);
    if (device_open(&rig.device, kind, params, &err)) fail(&err);
    const struct step_bounds bounds = {.n_seq = 1,
                                       .n_row = MOST_M,
                                       .n_out = 1,
                                       .most_q = MOST_M,
                                       .most_kv = 1,
                                       .n_q = 1,
                                       .n_kv = 1,
                                       .d_h = 2,
                                       .d_model = COLS,
                                       .d_ff = ROWS,
                                       .vocab = 2};
    if (kind->plan(rig.device, &bounds, &err)) fail(&err);
    rig.buffer = room(&rig, around_bytes);
    rig.x = room(&rig, (int64_t)MOST_M * COLS * 4);
    rig.y = room(&rig, (int64_t)MOST_M * ROWS * 4);
    uint32_t state = 12345;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 1e-11f;
    }
    for (int i = 0; i < MOST_M * COLS; i++) rig.x[i] = values[i % COLS];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(only, "all") == 0 || strcmp(only, formats[i].name) == 0)
            of_format(&rig, &formats[i], values, rounds);
    device_free(rig.device, rig.buffer);
    device_free(rig.device, rig.x);
    device_free(rig.device, rig.y);
    device_close(&rig.device);
    arena_close(&arena);
    free(params);
    return 0;
}
