/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of matrix products on the CPU device: for each type of weights and number of rows
   the time over the longer of its two bounds, bytes at `read` and FLOPs at `fma_peak`, both taken
   in the same turn. Not a test: prints numbers for a person. Usage: bench_linear [isa [threads
   [type [rows cols]]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/option.h"
#include "kernels/device.h"

enum { MOST_ROWS = 512, TURNS = 15, READ_BYTES = 256 << 20 };

static void row(void *ctx, int64_t r, float *out) {
    uint32_t state = (uint32_t)r * 2654435761u + 12345u;
    for (int64_t i = 0; i < *(const int64_t *)ctx; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(int32_t)state * 1e-11f;
    }
}

static void fail(const struct err *err) {
    fprintf(stderr, "bench_linear: %s\n", err->text);
    exit(1);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int main(int argc, char **argv) {
    static const int32_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 31, 32, 64, 128, 512};
    enum { N_MS = sizeof ms / sizeof *ms };
    struct err err = {0};
    struct arena *arena = arena_create();
    const struct device_kind *kind = device_kind_find("cpu");
    void *params = arena_alloc(arena, kind->params_size);
    option_defaults(kind->params, params, arena);
    if (argc > 1 && option_parse(option_find(kind->params, "isa"), argv[1], params, arena, &err))
        fail(&err);
    if (option_parse(option_find(kind->params, "threads"), argc > 2 ? argv[2] : "1", params, arena,
                     &err))
        fail(&err);
    struct device *device;
    if (device_open(&device, kind, params, &err)) fail(&err);
    const int64_t rows = argc > 5 ? atoll(argv[4]) : 9728, cols = argc > 5 ? atoll(argv[5]) : 896;
    struct step_bounds bounds = {MOST_ROWS, MOST_ROWS, MOST_ROWS,     MOST_ROWS,     64, 1,
                                 1,         64,        (int32_t)cols, (int32_t)rows, 64};
    if (device->kind->plan(device, &bounds, &err)) fail(&err);
    char *buffer = device_alloc(device, READ_BYTES, MEM_OTHER, "bench");
    float *x = device_alloc(device, (size_t)(MOST_ROWS * cols * 4), MEM_OTHER, "bench");
    float *y = device_alloc(device, (size_t)(MOST_ROWS * rows * 4), MEM_OTHER, "bench");
    for (int64_t i = 0; i < MOST_ROWS * cols; i++) x[i] = (float)(i % 17) * 0.1f;
    for (const struct weight_format *f = weight_formats; f->name; f++) {
        if (argc > 3 && strcmp(argv[3], "all") != 0 && strcmp(argv[3], f->name) != 0) continue;
        const struct weight_spec spec = {.what = "bench",
                                         .rows = rows,
                                         .cols = cols,
                                         .type = f->type,
                                         .scale = f->scale,
                                         .group = f->scale == SCALE_GROUP ? 128 : 0};
        const struct row_source source = {.row = row, .ctx = (void *)&cols};
        /* As many copies as read_bytes holds, taken in turn: none waits in a cache. */
        struct weight *w[64];
        int n = 0;
        int64_t bytes = 0;
        for (; n < 64 && bytes < READ_BYTES; n++) {
            if (kind->pack(device, &w[n], &spec, 1, &source, &err)) break;
            bytes += w[n]->bytes + w[n]->scale_bytes;
        }
        if (n == 0) {
            printf("%-12s skipped: %s\n", f->name, err.text);
            err = (struct err){0};
            continue;
        }
        for (int i = 0; i < N_MS; i++) {
            int64_t time = INT64_MAX, read = INT64_MAX, peak = INT64_MAX;
            const int64_t peak_flops = 1 << 26;
            for (int turn = 0; turn < TURNS; turn++) {
                float sink;
                int64_t from = clock_ns();
                device->ops->read(device, buffer, READ_BYTES, &sink);
                read = least(read, clock_ns() - from);
                from = clock_ns();
                device->ops->fma_peak(device, DT_F32, peak_flops);
                peak = least(peak, clock_ns() - from);
                struct tensor in = {x, DT_F32, ms[i], (int32_t)cols, cols},
                              out = {y, DT_F32, ms[i], (int32_t)rows, rows};
                from = clock_ns();
                const int calls = ms[i] < 16 ? n : 1 + 64 / ms[i];
                for (int c = 0; c < calls; c++)
                    device->ops->linear(device, &out, &in, w[c % n], NULL, EPI_NONE);
                time = least(time, (clock_ns() - from) / calls);
            }
            const double by_bytes = (double)(bytes / n) * (double)read / READ_BYTES;
            const double flops = 2.0 * (double)ms[i] * (double)rows * (double)cols;
            const double by_flops = flops * (double)peak / (double)peak_flops;
            printf("%-12s M %3d  %8.3f ms  bytes %5.1f %%  FLOPs %5.1f %%  bound %5.1f %%\n",
                   f->name, ms[i], (double)time * 1e-6, 100 * by_bytes / (double)time,
                   100 * by_flops / (double)time,
                   100 * (by_bytes > by_flops ? by_bytes : by_flops) / (double)time);
            fflush(stdout);
        }
        for (int c = 0; c < n; c++) kind->unpack(device, &w[c]);
    }
    device_close(&device);
    arena_close(&arena);
    return 0;
}
