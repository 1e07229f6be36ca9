/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-benchmark of the CPU device: its ceilings, and the ops of a 0.5B decoder as shares of them.
   Not a test: prints numbers for a person. Usage: bench_cpu [isa [threads [layers [weights
   [activations]]]]], types of which are f32 or bf16 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "kernels/device.h"

enum {
    D = 896,
    N_Q = 14,
    N_KV = 2,
    D_H = 64,
    D_FF = 4864,
    VOCAB = 151936,
    MOST_ROWS = 512,
    CONTEXT = 1024,
    BATCH = 64
};
static int64_t read_bytes; /* beyond all caches */

struct layer {
    struct weight *qkv, *o, *gate_up, *down;
};

struct model {
    struct device *device;
    int n_layers;
    struct layer *layers;
    struct weight *head;
    float *x, *norm, *qkv, *q, *att, *ff, *logits, *gain;
    struct kv kv;
    struct step step;
    double weight_bytes, flops_per_row;
    enum dtype activation;
};

static void row(void *ctx, int64_t r, float *out) {
    uint32_t state = (uint32_t)r * 2654435761u + 12345u;
    for (int64_t i = 0; i < *(const int64_t *)ctx; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(int32_t)state * 1e-11f;
    }
}

static void fail(const struct err *err) {
    fprintf(stderr, "bench_cpu: %s\n", err->text);
    exit(1);
}

static struct weight *pack(struct model *m, int64_t rows, int64_t rows2, int64_t cols,
                           enum dtype type) {
    struct err err = {0};
    struct weight *w;
    struct weight_spec parts[2] = {{.what = "bench", .rows = rows, .cols = cols, .type = type},
                                   {.what = "bench", .rows = rows2, .cols = cols, .type = type}};
    struct row_source sources[2] = {{.row = row, .ctx = &cols}, {.row = row, .ctx = &cols}};
    if (m->device->kind->pack(m->device, &w, parts, rows2 > 0 ? 2 : 1, sources, &err)) fail(&err);
    m->weight_bytes += (double)w->bytes;
    m->flops_per_row += 2.0 * (double)w->rows * (double)cols;
    return w;
}

static void *room(struct model *m, int64_t bytes) {
    void *p = device_alloc(m->device, (size_t)bytes, MEM_OTHER, "bench");
    if (p == NULL) exit(1);
    return p;
}

static void make(struct model *m, int n_layers, enum dtype type) {
    struct err err = {0};
    struct step_bounds bounds = {BATCH, MOST_ROWS, BATCH, MOST_ROWS, CONTEXT, N_Q,
                                 N_KV,  D_H,       D,     D_FF,      VOCAB,   m->activation};
    if (m->device->kind->plan(m->device, &bounds, &err)) fail(&err);
    m->n_layers = n_layers;
    m->layers = must_alloc((size_t)n_layers * sizeof *m->layers);
    const int64_t begin = clock_ns();
    for (int i = 0; i < n_layers; i++)
        m->layers[i] = (struct layer){pack(m, (N_Q + 2 * N_KV) * D_H, 0, D, type),
                                      pack(m, D, 0, N_Q * D_H, type), pack(m, D_FF, D_FF, D, type),
                                      pack(m, D, 0, D_FF, type)};
    m->head = pack(m, VOCAB, 0, D, type);
    printf("pack       %.2f s for %.3f GB\n", (double)(clock_ns() - begin) * 1e-9,
           m->weight_bytes * 1e-9);
    m->x = room(m, MOST_ROWS * D * 4);
    m->norm = room(m, MOST_ROWS * D * 4);
    m->qkv = room(m, MOST_ROWS * (N_Q + 2 * N_KV) * D_H * 4);
    m->q = room(m, MOST_ROWS * D * 4);
    m->att = room(m, MOST_ROWS * D * 4);
    m->ff = room(m, MOST_ROWS * D_FF * 4);
    m->logits = room(m, (int64_t)BATCH * VOCAB * 4);
    m->gain = room(m, D * 4);
    for (int i = 0; i < D; i++) m->gain[i] = 1.0f;
    m->kv = (struct kv){.type = DT_BF16, .n_kv = N_KV, .d_h = D_H, .block = CONTEXT};
    m->kv.k = room(m, (int64_t)BATCH * N_KV * CONTEXT * D_H * 2);
    m->kv.v = room(m, (int64_t)BATCH * N_KV * CONTEXT * D_H * 2);
    int32_t *ints = room(m, 8 * (MOST_ROWS + 1) * 4);
    struct step *s = &m->step;
    s->token = ints, s->pos = ints + 600, s->seq = ints + 1200, s->q_begin = ints + 1800;
    s->kv_len = ints + 2400, s->out_row = ints + 3000;
    s->next = room(m, 4096), s->alive = room(m, 4096), s->rng = room(m, 4096);
}

/* batch sequences with q rows each, ending at position `last`. */
static void set_step(struct model *m, int batch, int q, int last) {
    struct step *s = &m->step;
    s->n_seq = s->n_out = batch;
    s->n_row = batch * q;
    s->most_q = q;
    s->most_kv = last + 1;
    for (int b = 0; b < batch; b++) {
        s->q_begin[b] = b * q;
        s->kv_len[b] = last + 1;
        s->out_row[b] = (b + 1) * q - 1;
        for (int i = 0; i < q; i++) {
            s->seq[b * q + i] = b;
            s->pos[b * q + i] = last - q + 1 + i;
            s->token[b * q + i] = (b * 7919 + i * 104729) % VOCAB;
        }
    }
    s->q_begin[batch] = batch * q;
}

static struct tensor rows_of(const struct model *m, float *data, int rows, int cols) {
    const enum dtype type = data == m->logits || data == m->x ? DT_F32 : m->activation;
    return (struct tensor){.data = data, .type = type, .rows = rows, .cols = cols, .stride = cols};
}

enum { T_EMBED, T_NORM, T_QKV, T_ROPE, T_ATT, T_O, T_GATE_UP, T_DOWN, T_HEAD, T_SELECT, N_TIMES };
static const char *const time_names[N_TIMES] = {"embed", "norm",    "qkv",  "rope", "attention",
                                                "o",     "gate_up", "down", "head", "select"};

/* One forward step; times (or NULL) gathers ns per kind of op. */
static void forward(struct model *m, int64_t *times) {
    struct device *d = m->device;
    const struct ops *ops = d->ops;
    const int n = m->step.n_row;
    struct tensor x = rows_of(m, m->x, n, D), norm = rows_of(m, m->norm, n, D),
                  q = rows_of(m, m->q, n, D), att = rows_of(m, m->att, n, D),
                  ff = rows_of(m, m->ff, n, D_FF),
                  qkv = rows_of(m, m->qkv, n, (N_Q + 2 * N_KV) * D_H),
                  out = rows_of(m, m->norm, m->step.n_out, D),
                  gathered = rows_of(m, m->x, m->step.n_out, D),
                  logits = rows_of(m, m->logits, m->step.n_out, VOCAB);
    const struct rope rope = {.base = 1e6f};
    const struct sampler greedy = {.end_id = -1};
    int64_t t = times != NULL ? clock_ns() : 0;
#define TIMED(kind, call)                                                                          \
    do {                                                                                           \
        call;                                                                                      \
        if (times != NULL) {                                                                       \
            const int64_t now = clock_ns();                                                        \
            times[kind] += now - t;                                                                \
            t = now;                                                                               \
        }                                                                                          \
    } while (0)
    TIMED(T_EMBED, ops->embed(d, &x, m->head, &m->step));
    for (int i = 0; i < m->n_layers; i++) {
        TIMED(T_NORM, ops->add_norm(d, &norm, &x, i > 0 ? &att : NULL, m->gain, 1e-6f));
        TIMED(T_QKV, ops->linear(d, &qkv, &norm, m->layers[i].qkv, NULL, EPI_NONE));
        TIMED(T_ROPE, ops->rope_append(d, &q, &m->kv, &qkv, &m->step, &rope));
        TIMED(T_ATT, ops->attention(d, &att, &q, &m->kv, &m->step, 0.125f));
        TIMED(T_O, ops->linear(d, &norm, &att, m->layers[i].o, NULL, EPI_NONE));
        TIMED(T_NORM, ops->add_norm(d, &q, &x, &norm, m->gain, 1e-6f));
        TIMED(T_GATE_UP, ops->linear(d, &ff, &q, m->layers[i].gate_up, NULL, EPI_SWIGLU));
        TIMED(T_DOWN, ops->linear(d, &att, &ff, m->layers[i].down, NULL, EPI_NONE));
    }
    TIMED(T_NORM, ops->gather_rows(d, &gathered, &x, &m->step));
    TIMED(T_NORM, ops->add_norm(d, &out, &gathered, NULL, m->gain, 1e-6f));
    TIMED(T_HEAD, ops->linear(d, &logits, &out, m->head, NULL, EPI_NONE));
    TIMED(T_SELECT, ops->select(d, &m->step, &logits, &greedy));
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

static double read_rate(struct model *m, const char *buffer) {
    float sink;
    const int64_t t = clock_ns();
    m->device->ops->read(m->device, buffer, read_bytes, &sink);
    return (double)read_bytes / (double)(clock_ns() - t);
}

static double peak_rate(struct model *m) {
    const int64_t flops = (int64_t)1 << (m->activation == DT_F32 ? 31 : 34), t = clock_ns();
    m->device->ops->fma_peak(m->device, m->activation, flops);
    return (double)flops / (double)(clock_ns() - t);
}

static void print_times(const int64_t *times, int n) {
    printf("          ");
    for (int i = 0; i < N_TIMES; i++)
        printf(" %s %.2f", time_names[i], (double)times[i] * 1e-6 / n);
    printf(" ms\n");
}

/* Ceiling and step taken in turns, so that the ratio survives a machine that others use too. */
static void measure(struct model *m, const char *buffer, const char *what, int batch, int q,
                    int last, int rounds) {
    double bandwidth[64], rate[64], mbu[64], mfu[64];
    int64_t times[N_TIMES] = {0};
    struct err err = {0};
    set_step(m, batch, q, last);
    forward(m, NULL);
    for (int i = 0; i < rounds; i++) {
        const double read = read_rate(m, buffer), peak = peak_rate(m);
        const int64_t t = clock_ns();
        forward(m, times);
        const double ns = (double)(clock_ns() - t);
        const double flops =
            m->flops_per_row * m->step.n_row - 2.0 * D * VOCAB * (m->step.n_row - m->step.n_out);
        bandwidth[i] = read;
        rate[i] = ns;
        mbu[i] = m->weight_bytes / ns / read;
        mfu[i] = flops / ns / peak;
    }
    if (m->device->kind->sync(m->device, &err)) fail(&err);
    const double ns = median(rate, rounds);
    printf(
        "%-10s B %2d q %3d ctx %4d: %8.2f ms  %7.3f ms/row  MBU %5.1f %%  MFU %5.1f %%  (read %.1f GB/s)\n",
        what, batch, q, last + 1, ns * 1e-6, ns * 1e-6 / (batch * q), 100 * median(mbu, rounds),
        100 * median(mfu, rounds), median(bandwidth, rounds));
    print_times(times, rounds);
}

int main(int argc, char **argv) {
    struct err err = {0};
    struct arena *arena = arena_create();
    const struct device_kind *kind = device_kind_find("cpu");
    void *params = must_alloc(kind->params_size);
    struct model m = {0};
    struct facts facts = {0};
    option_defaults(kind->params, params, arena);
    if (argc > 1 && option_parse(option_find(kind->params, "isa"), argv[1], params, arena, &err))
        fail(&err);
    if (argc > 2 &&
        option_parse(option_find(kind->params, "threads"), argv[2], params, arena, &err))
        fail(&err);
    if (device_open(&m.device, kind, params, &err)) fail(&err);
    kind->describe(m.device, &facts);
    for (size_t i = 0; i < facts.n; i++)
        printf("%s = %s %s\n", facts.items[i].key, facts.items[i].value, facts.items[i].unit);
    m.activation = argc > 5 && strcmp(argv[5], "bf16") == 0 ? DT_BF16 : DT_F32;
    read_bytes = device_beyond_caches(kind);
    char *buffer = room(&m, read_bytes), *other = room(&m, read_bytes);
    memset(buffer, 1, read_bytes);
    for (int i = 0; i < 3; i++) {
        int64_t t = clock_ns();
        m.device->ops->copy(m.device, other, buffer, read_bytes);
        const double copy = 2.0 * (double)read_bytes / (double)(clock_ns() - t);
        t = clock_ns();
        m.device->ops->triad(m.device, (float *)other, (float *)buffer,
                             (float *)buffer + read_bytes / 8, 3.0f, read_bytes / 8);
        const double triad = 1.5 * (double)read_bytes / (double)(clock_ns() - t);
        printf("ceilings   read %.1f copy %.1f triad %.1f GB/s, peak %.1f GFLOP/s\n",
               read_rate(&m, buffer), copy, triad, peak_rate(&m));
    }
    make(&m, argc > 3 ? atoi(argv[3]) : 24,
         argc > 4 && strcmp(argv[4], "f32") == 0 ? DT_F32 : DT_BF16);
    measure(&m, buffer, "decode", 1, 1, 63, 15);
    static const int batches[] = {2, 3, 4, 6, 7, 8, 9, 16, 17, 31, 32};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        measure(&m, buffer, "decode", batches[i], 1, 63, 5);
    measure(&m, buffer, "decode", 1, 1, 1023, 7);
    measure(&m, buffer, "prefill", 1, 64, 63, 3);
    measure(&m, buffer, "prefill", 1, 512, 511, 3);
    device_close(&m.device);
    arena_close(&arena);
    facts_free(&facts);
    free(params);
    free(m.layers);
    return 0;
}
