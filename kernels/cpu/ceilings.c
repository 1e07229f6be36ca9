/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's ceilings, as this device's threads and instructions reach them. */
#include <stdatomic.h>

#include "kernels/cpu/cpu.h"

enum { PIECE = 64 << 10, PIECES = 8, PEAK_PIECE = 1 << 22 };

struct stream {
    const struct cpu_kernels *kernels;
    char *to;
    const char *from, *from2;
    int64_t bytes;
    float s;
    int past_caches;
    _Atomic uint32_t sum;
};

static int64_t piece_bytes(const struct stream *job, int64_t begin, int64_t end) {
    return (end * PIECE < job->bytes ? end * PIECE : job->bytes) - begin * PIECE;
}

static void read_pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    struct stream *job = ctx;
    (void)thread;
    atomic_fetch_add(&job->sum,
                     job->kernels->read(job->from + begin * PIECE, piece_bytes(job, begin, end)));
}

static void copy_pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    struct stream *job = ctx;
    (void)thread;
    job->kernels->copy(job->to + begin * PIECE, job->from + begin * PIECE,
                       piece_bytes(job, begin, end), job->past_caches);
}

static void triad_pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    struct stream *job = ctx;
    const int64_t at = begin * PIECE;
    (void)thread;
    job->kernels->triad((float *)(job->to + at), (const float *)(job->from + at),
                        (const float *)(job->from2 + at), job->s,
                        piece_bytes(job, begin, end) / (int64_t)sizeof(float), job->past_caches);
}

/* Pieces small enough to share out, large enough that claiming one (tens of ns) is nothing; each
   thread's part stays the same from call to call, so a working set that fits its own caches is
   served from there. */
static void run_stream(struct cpu *cpu, struct stream *job, int64_t moved, pool_fn *fn) {
    const int64_t caches = cpu->topology.l3_bytes > 0 ? cpu->topology.l3_bytes : 32 << 20;
    job->kernels = cpu->kernels;
    job->past_caches = moved > caches;
    pool_run(cpu->pool, (job->bytes + PIECE - 1) / PIECE, PIECES, 0, fn, job);
}

void cpu_copy(struct device *device, void *to, const void *from, int64_t bytes) {
    struct stream job = {.to = to, .from = from, .bytes = bytes};
    run_stream(cpu_of(device), &job, 2 * bytes, copy_pieces);
}

void cpu_read(struct device *device, const void *from, int64_t bytes, float *sink) {
    struct stream job = {.from = from, .bytes = bytes};
    run_stream(cpu_of(device), &job, bytes, read_pieces);
    /* Every bit of the sum counts, and whatever the bytes were the float is a finite whole number.
     */
    *sink = (float)(atomic_load(&job.sum) * 0x9e3779b1u >> 8);
}

void cpu_triad(struct device *device, float *a, const float *b, const float *c, float s,
               int64_t n) {
    const int64_t bytes = n * (int64_t)sizeof(float);
    struct stream job = {
        .to = (char *)a, .from = (const char *)b, .from2 = (const char *)c, .s = s, .bytes = bytes};
    run_stream(cpu_of(device), &job, 3 * bytes, triad_pieces);
}

struct peak {
    float (*peak)(int64_t flops);
    uint32_t (*codes)(int64_t flops); /* or NULL */
    _Atomic uint32_t sink;
};

static void peak_pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    struct peak *job = ctx;
    const int64_t flops = (end - begin) * PEAK_PIECE;
    (void)thread;
    atomic_fetch_xor(&job->sink,
                     job->codes != NULL ? job->codes(flops) : f32_bits(job->peak(flops)));
}

void cpu_fma_peak(struct device *device, enum dtype type, int64_t flops) {
    struct cpu *cpu = cpu_of(device);
    const struct cpu_kernels *kernels = cpu->kernels;
    const bool pairs = type == DT_BF16 && kernels->pairs_peak != NULL;
    struct peak job = {.peak = pairs ? kernels->pairs_peak : kernels->fma_peak,
                       .codes = type == DT_I8 ? cpu->codes->peak : NULL};
    if (!cpu_expects(cpu, type == DT_F32 || type == DT_F16 || type == DT_BF16 || type == DT_I8,
                     "fma_peak: this device multiplies floats and int8 only"))
        return;
    pool_run(cpu->pool, flops / PEAK_PIECE, 8, 1, peak_pieces, &job);
}
