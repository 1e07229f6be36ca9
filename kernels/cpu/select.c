/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the next token: segments of ids by all threads, joined in order, so that ties go to the
 * lowest id. */
#include <math.h>

#include "base/random.h"
#include "kernels/cpu/cpu.h"

struct choice {
    struct cpu *cpu;
    const struct step *step;
    const struct tensor *logits;
    double temperature;
    int64_t first;             /* row of the logits that the pieces begin with */
    int64_t segment, segments; /* ids of a piece; pieces of a row */
};

/* The largest of v = logit / temperature - log(-log(u + 2^-54)) over ids begin ... end-1, exactly
   as the reference computes it. Most ids cannot win and cost no logarithm: v > best needs -log(u) <
   exp(-t), t = best - logit / temperature, while -log(u) >= 1 - u and exp(-t) <= 1 / (1 + t + t^2 /
   2) for t > 0. */
static int32_t sample(const struct choice *job, int64_t o, int64_t begin, int64_t end,
                      double *most) {
    const struct step *step = job->step;
    const float *logit = (const float *)job->logits->data + o * job->logits->stride;
    const int32_t row = step->out_row[o];
    const uint64_t key = step->rng != NULL ? step->rng[step->seq[row]] : 0,
                   counter = (uint64_t)step->pos[row] << 32;
    double best = -INFINITY;
    int32_t id = -1;
    for (int64_t i = begin; i < end; i++) {
        const double scaled = (double)logit[i] / job->temperature, t = best - scaled;
        const double u = random_unit(key, counter + (uint64_t)i) + 0x1p-54;
        /* The margin is far beyond every rounding for logits up to 1e12. */
        if (t > 0 && (1 - u) * (1 + t + t * t / 2) > 1 + 1e-3) continue;
        const double v = scaled - log(-log(u));
        if (v > best) {
            best = v;
            id = (int32_t)i;
        }
    }
    *most = best;
    return id;
}

static int32_t greedy(const struct choice *job, int64_t o, int64_t begin, int64_t end,
                      double *most) {
    const float *logit = (const float *)job->logits->data + o * job->logits->stride;
    const int64_t i = begin + job->cpu->kernels->argmax(logit + begin, end - begin);
    *most = (double)logit[i];
    return logit[i] > -INFINITY ? (int32_t)i : -1; /* false for NaN too */
}

static void pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct choice *job = ctx;
    struct cpu *cpu = job->cpu;
    const int64_t cols = job->logits->cols;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t o = job->first + i / job->segments;
        const int64_t from = i % job->segments * job->segment;
        const int64_t to = from + job->segment < cols ? from + job->segment : cols;
        cpu->best_id[i] = job->temperature > 0 ? sample(job, o, from, to, &cpu->best[i])
                                               : greedy(job, o, from, to, &cpu->best[i]);
    }
}

/* The best of a row's pieces, in order; 0 where no logit is a number above -inf. */
static int32_t join(const struct cpu *cpu, int64_t from, int64_t to) {
    double best = -INFINITY;
    int32_t id = 0;
    for (int64_t i = from; i < to; i++) {
        if (cpu->best_id[i] < 0 || !(cpu->best[i] > best)) continue;
        best = cpu->best[i];
        id = cpu->best_id[i];
    }
    return id;
}

void cpu_select(struct device *device, struct step *step, const struct tensor *logits,
                const struct sampler *sampler) {
    struct cpu *cpu = cpu_of(device);
    struct choice job = {.cpu = cpu,
                         .step = step,
                         .logits = logits,
                         .temperature = (double)sampler->temperature,
                         .segment = SELECT_SEGMENT};
    if (!cpu_expects(cpu, logits->type == DT_F32, "select: logits are f32")) return;
    while (logits->cols / job.segment >= SELECT_PIECES) job.segment *= 2;
    job.segments = (logits->cols + job.segment - 1) / job.segment;
    if (job.segments == 0) return;
    const int64_t rows = SELECT_PIECES / job.segments;
    for (; job.first < step->n_out; job.first += rows) {
        const int64_t left = step->n_out - job.first, n = left < rows ? left : rows;
        pool_run(cpu->pool, n * job.segments, 1, job.temperature > 0 ? 1 : 2, pieces, &job);
        for (int64_t o = 0; o < n; o++)
            step->next[job.first + o] = join(cpu, o * job.segments, (o + 1) * job.segments);
    }
}
