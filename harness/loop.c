/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop: warm up until steady, sample until known well enough, check the output,
 * report. */
#include "harness/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/range.h"
#include "harness/look.h"
#include "harness/visit.h"
#include "harness/watch.h"
#include "kernels/device.h"
#include "probes/common/kernel_trace.h"
#include "probes/probe.h"
#include "results/stats.h"
#include "results/table.h"

#define BLOCK_NS   5000000 /* disturbance is looked at once per so much sampling */
#define WAIT_SHARE 0.02    /* of a block's wall time spent waiting for a core: disturbed */

static void keep_marks(struct visit *v, int64_t sample) {
    struct sample_head *head = v->log->head;
    int64_t n = head->marks;
    for (int64_t i = 0; i < v->run.n_marks; i++) {
        const struct mark_record *m = &v->run.marks[i];
        if (n >= LOG_MOST_MARKS) {
            head->lost++;
            continue;
        }
        v->log->mark[n++] = (struct sample_mark){m->t_ns, (int32_t)sample, m->mark, m->who, m->n};
    }
    atomic_store_explicit(&head->marks, n, memory_order_release);
}

/* Labels the samples of the open block, if its threads waited for a core, and begins the next. */
static void close_block(struct visit *v) {
    struct watch after;
    struct block *block = &v->block;
    const int64_t to = v->log->head->samples;
    watch_quick(&after);
    int64_t wall = after.wall_ns - block->watch.wall_ns;
    bool disturbed =
        after.wait_ns >= 0 && block->watch.wait_ns >= 0
            ? (double)(after.wait_ns - block->watch.wait_ns) > WAIT_SHARE * (double)wall
            : after.involuntary > block->watch.involuntary;
    if (disturbed && !v->virtual_clock) {
        for (int64_t i = block->from; i < to; i++) v->log->sample[i].labels |= LABEL_DISTURBED;
        v->disturbed += to - block->from;
    }
    *block = (struct block){.from = to, .since_ns = clock_ns(), .watch = after};
}

static void open_block(struct visit *v) {
    v->block = (struct block){.since_ns = clock_ns()};
    watch_quick(&v->block.watch);
}

/* One sample, with its marks; false if it failed (negative time): it stays in the file, labelled,
 * never among the numbers. */
static bool keep_sample(struct visit *v, int64_t t, int64_t executions) {
    struct sample_head *head = v->log->head;
    const int64_t n = head->samples;
    if (t < 0) {
        v->log->sample[n] = (struct sample_record){0, I64_NONE, executions, LABEL_FAILED};
        head->samples = n + 1;
        snprintf(v->why_stopped, sizeof v->why_stopped, "failed at sample %" PRId64, n);
        return false;
    }
    v->log->sample[n] = (struct sample_record){t, v->device_ns, executions, 0};
    if (v->run.n_marks) keep_marks(v, n);
    atomic_store_explicit(&head->samples, n + 1, memory_order_release);
    if (v->each) look_block(v->each, v->end_ns);
    if (!v->virtual_clock && v->end_ns - v->block.since_ns >= BLOCK_NS) close_block(v);
    return true;
}

/* Nothing is dropped; what lies far outside of the visit's own spread is labelled. */
static void label_outliers(struct visit *v) {
    int64_t n = v->x_n;
    if (n < 4) return;
    int64_t *labels = must_alloc((size_t)n * sizeof *labels);
    stats_outliers(v->x, (size_t)n, (double)v->resolution_ns / (double)v->batch, labels);
    for (int64_t i = 0; i < n; i++)
        if (labels[i]) v->log->sample[i].labels |= LABEL_OUTLIER;
    free(labels);
}

/* The warm-up may have been slow enough to be seen, and the samples not. */
static void check_resolved(struct visit *v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (v->log->sample[i].wall_ns != 0) return;
    if (n && !v->state[0])
        visit_state(v, "failed", "clock unresolved: all %" PRId64 " samples took no time on it", n);
}

static double half_width_now(struct visit *v) {
    int64_t n = v->log->head->samples;
    if (n > v->x_cap) {
        v->x_cap = n + n / 2;
        v->x = must_realloc(v->x, (size_t)v->x_cap * sizeof *v->x);
    }
    for (; v->x_n < n; v->x_n++) {
        const struct sample_record *s = &v->log->sample[v->x_n];
        v->x[v->x_n] = (double)s->wall_ns / (double)s->batch;
    }
    return stats_batch_means(v->x, (size_t)n);
}

/* Tested at n = 20 * 1.25^k only: whether the visit knows enough, or cannot come to know. */
static bool known(struct visit *v, int64_t n, double *quarter, int64_t *quarter_n) {
    double precision = v->request->measure->precision;
    v->half_width = half_width_now(v);
    if (v->half_width <= precision) {
        snprintf(v->why_stopped, sizeof v->why_stopped,
                 "precision: half width %.2f %% is within %.2f %% at n = %" PRId64,
                 100 * v->half_width, 100 * precision, n);
        return true;
    }
    if (n >= 4 * *quarter_n) { /* four times the samples should halve it; where they do not, noise
                                  has a floor */
        if (*quarter_n >= 80 && v->half_width > 0.8 * *quarter) {
            snprintf(v->why_stopped, sizeof v->why_stopped,
                     "noise floor: half width %.2f %% at n = %" PRId64
                     " was %.2f %% at n = %" PRId64 "; %.2f %% is out of reach",
                     100 * v->half_width, n, 100 * *quarter, *quarter_n, 100 * precision);
            return true;
        }
        *quarter = v->half_width;
        *quarter_n = n;
    }
    return false;
}

static void end_samples(struct visit *v) {
    const int64_t n = v->log->head->samples;
    if (v->block.from < n) close_block(v);
    check_resolved(v, n);
    v->half_width = half_width_now(v);
    label_outliers(v);
    v->log->head->spent_ns = v->spent_ns;
}

static void sample(struct visit *v) {
    const struct measure_params *m = v->request->measure;
    struct sample_head *head = v->log->head;
    head->stage = STAGE_SAMPLE;
    int64_t most = m->max_samples < LOG_MOST_SAMPLES ? m->max_samples : LOG_MOST_SAMPLES;
    int64_t least = m->min_samples < most ? m->min_samples : most;
    bool fixed = m->stop == STOP_SAMPLES;
    if (v->typical_ns > LONG_NS && least > 2) least = 2;
    if (fixed) least = most = m->samples < LOG_MOST_SAMPLES ? m->samples : LOG_MOST_SAMPLES;
    if (m->profile) least = most = 1, fixed = true;
    int64_t share = v->request->share_ns, left = share > v->spent_ns ? share - v->spent_ns : 0;
    int64_t begin = visit_now(v), next_test = 20, n = 0, end = begin;
    double quarter = NAN;
    int64_t quarter_n = 5;
    open_block(v);
    while (!v->state[0]) {
        range_push(RANGE_SAMPLE, "sample", n);
        int64_t t = visit_execute(v, v->batch);
        range_pop();
        if (!keep_sample(v, t, v->batch)) break;
        n = head->samples;
        end = v->end_ns;
        if (n >= most) {
            snprintf(v->why_stopped, sizeof v->why_stopped, "%s: n = %" PRId64,
                     fixed ? "samples" : "most samples", n);
            break;
        }
        if (!fixed && n >= least && end - begin >= left) {
            snprintf(v->why_stopped, sizeof v->why_stopped,
                     "share of the budget: %.2f s of %.2f s used at n = %" PRId64,
                     (double)(v->spent_ns + end - begin) * 1e-9, (double)share * 1e-9, n);
            break;
        }
        if (n >= next_test) {
            head->permille = left > 0 ? 1000 * (end - begin) / left : 1000;
            if (!fixed && n >= least && known(v, n, &quarter, &quarter_n)) break;
            while (next_test <= n) next_test += next_test / 4;
        }
    }
    v->spent_ns += end - begin;
    end_samples(v);
}

/* After warm-up and again after the samples: the contract, and that nothing drifted in between. */
static void check_witness(struct visit *v, bool again) {
    struct err err = {0};
    struct witness w = {.first_difference = -1, .max_error = NAN};
    if (!v->workload->witness || v->state[0]) return;
    v->log->head->stage = STAGE_WITNESS;
    tracker_aside(v->device->tracker, true); /* its own sessions are no part of the row's peak */
    int code = v->workload->witness(v->self, &w, &err);
    tracker_aside(v->device->tracker, false);
    if (code) {
        visit_error(v, &err);
        return;
    }
    if (w.contract != CONTRACT_NONE && !w.holds) {
        visit_state(v, "wrong",
                    "the contract '%s' failed%s: first difference at %" PRId64
                    ", largest logit error %.3g (%s)",
                    contract_names[w.contract], again ? " after the samples" : "",
                    w.first_difference, w.max_error, w.note);
    } else if (again && v->witnessed && w.hash != v->hash_before) {
        visit_state(v, "wrong", "the output changed during the samples (%s)", w.note);
    }
    v->hash_before = w.hash;
    v->witness = w;
    v->witnessed = true;
}

struct keeper {
    struct visit *visit;
    struct tables *out;
};
/* Of the samples of a visit, for one execution and for each of its tokens. */
static void keep_energy(const struct keeper *k, const char *execution, const char *token,
                        double joules) {
    const struct visit *v = k->visit;
    double executions = (double)v->log->head->samples * (double)v->batch, tokens = 0;
    struct plan real;
    visit_plan(v, &real);
    for (int p = 0; p < MAX_PHASES && v->workload->phases[p].name; p++)
        if (strstr(v->workload->phases[p].item, "token")) tokens += real.work[p].items;
    if (!(executions > 0) || !(joules > 0) || v->request->turns)
        return; /* in turns it is the other side's energy too */
    visit_value(k->visit, k->out, execution, joules / executions);
    if (tokens > 0) visit_value(k->visit, k->out, token, joules / executions / tokens);
}
static void keep_value(void *ctx, const char *name, double value) {
    const struct keeper *k = ctx;
    visit_value(k->visit, k->out, name, value);
    if (!strcmp(name, "nvml.energy")) keep_energy(k, "gpu_energy", "gpu_token_energy", value);
    if (!strcmp(name, "rapl.package_j")) keep_energy(k, "cpu_energy", "cpu_token_energy", value);
}

/* What the device says of the samples, and its own time beside the host's. */
static void keep_device(struct visit *v, struct tables *out) {
    const struct device_kind *kind = v->device->kind;
    const int64_t n = v->log->head->samples;
    double executions = 0, wall = 0, device = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct sample_record *s = &v->log->sample[i];
        if (s->labels & LABEL_FAILED) return;
        executions += (double)s->batch;
        wall += (double)s->wall_ns;
        device += (double)s->device_ns;
    }
    if (kind->report) kind->report(v->device, executions, keep_value, &(struct keeper){v, out});
    if (!kind->span || !n) return;
    visit_value(v, out, "device_time", device * 1e-6 / executions);
    visit_value(v, out, "beyond_device", (wall - device) * 1e-6 / executions);
}

/* One execution, exact or simulated: no warm-up and no time. */
static void execute_once(struct visit *v) {
    v->steady = true;
    v->batch = 1;
    v->log->head->stage = STAGE_SAMPLE;
    int64_t t = v->workload->execute ? visit_execute(v, 1) : -1;
    if (t >= 0) keep_marks(v, 0);
    snprintf(v->why_stopped, sizeof v->why_stopped,
             v->workload->execute ? "one execution" : "nothing to execute");
}

static const struct model_config *config_of(const struct point *point) {
    return point->has_model ? &point->config : NULL;
}

/* All that is before the first execution. */
static void begin(struct visit *v, const struct run_store *store) {
    const struct visit_request *request = v->request;
    const struct point *point = request->point;
    const struct workload *w = v->workload;
    struct err err = {0};
    char name[80];
    snprintf(name, sizeof name, "%s %s %08x", w->name, point->label,
             (unsigned)(point->cell_hash & 0xffffffffu));
    v->virtual_clock = v->device->kind->has & DEV_VIRTUAL_CLOCK;
    v->resolution_ns = v->virtual_clock ? 1 : clock_resolution_ns();
    v->begin_ns = visit_now(v);
    v->self = must_alloc(w->self_size ? w->self_size : 1);
    v->run = (struct run){.device = v->device,
                          .workload = w,
                          .store = *store,
                          .phase = -1,
                          .seed = (uint64_t)request->measure->seed};
    v->run.most_marks = point->plan.most_marks + MAX_PHASES;
    v->run.marks = must_alloc((size_t)v->run.most_marks * sizeof *v->run.marks);
    sample_log_begin(v->log, request->visit);
    if (request->measure->profile) range_record(RANGES_MOST);
    range_push(RANGE_VISIT, name, point->index);
    tracker_reset(v->device->tracker);
    v->log->head->stage = STAGE_PREPARE;
    watch_read(&v->before);
    v->prepared =
        !w->prepare || w->prepare(v->self, point->params, config_of(point), &v->run, &err) == 0;
    if (v->prepared) return;
    struct err earlier = {0}; /* a broken device gives no memory either: that was not the cause */
    if (v->device->kind->sync(v->device, &earlier)) err = earlier;
    visit_error(v, &err);
}

/* From here on what happens belongs to the samples. */
static void watch_samples(struct visit *v) {
    const struct measure_params *measure = v->request->measure;
    const struct device_kind *kind = v->device->kind;
    struct err err = {0};
    watch_read(&v->before);
    if (!v->virtual_clock) v->look = look_open(all_probes, measure->sample_probes);
    v->each = measure->sample_probes ? v->look : NULL;
    if (measure->profile && (kind->has & DEV_GPU)) {
        v->traced = kernel_trace_start(&err) == 0;
        if (!v->traced) visit_flag(v, "kernels_untraced", "%s", err.text);
    }
    v->allocations = tracker_count(v->device->tracker);
    if (kind->report) kind->report(v->device, 0, NULL, NULL);
}

static void unwatch_samples(struct visit *v, struct tables *out) {
    v->each = NULL;
    const int64_t allocations = tracker_count(v->device->tracker) - v->allocations;
    if (v->request->point->plan.peak_bytes == 0 && allocations)
        visit_state(v, "failed",
                    "%" PRId64 " allocations during the samples; the plan promises none",
                    allocations);
    v->probe_cost = look_close(&v->look, keep_value, &(struct keeper){v, out});
    if (!v->state[0]) keep_device(v, out);
}

/* The second look at the output, and the rows. */
static void end(struct visit *v, struct tables *out) {
    const struct workload *w = v->workload;
    struct values values = {0};
    struct watch after;
    watch_read(&after);
    if (v->prepared && !(w->flags & WORK_ONCE)) check_witness(v, true);
    if (v->prepared && !v->state[0] && w->report) w->report(v->self, &values);
    if (v->prepared && !v->state[0] && w->compute)
        w->compute(v->request->point->params, config_of(v->request->point), &values);
    if (v->prepared && !v->state[0]) visit_work_rows(v, out);
    for (int i = 0; i < v->run.n_flags; i++)
        visit_flag(v, v->run.flags[i].flag, "%s", v->run.flags[i].reason);
    int64_t by_class[N_CLASSES];
    const char *site = NULL;
    int phase = -1;
    int64_t peak = tracker_peak(v->device->tracker, by_class, &site, &phase);
    visit_memory_rows(v, out);
    for (int i = 0; i < values.n; i++) visit_value(v, out, values.items[i].name, values.items[i].v);
    if (v->prepared && !v->state[0]) {
        visit_value(v, out, "peak_bytes", (double)peak);
        visit_value(v, out, "peak_beyond_weights",
                    (double)(peak - by_class[MEM_WEIGHT] - by_class[MEM_SCALE]));
        if (!v->virtual_clock) visit_value(v, out, "clock_rate", watch_clock_rate());
    }
    range_pop();
    if (v->request->measure->profile) visit_range_rows(v, out);
    if (v->traced) visit_kernel_rows(v, out);
    visit_point_row(v, out, peak, site, phase);
    visit_row(v, out, &v->before, &after, v->probe_cost);
    if (w->dispose) w->dispose(v->self);
    v->log->head->stage = STAGE_IDLE;
    free(v->self);
    free(v->run.marks);
    free(v->x);
    text_free(&v->flags);
    text_free(&v->reason);
}

static struct visit visit_of(const struct visit_request *request, struct device *device,
                             struct sample_log *log) {
    return (struct visit){.request = request,
                          .workload = request->point->workload,
                          .device = device,
                          .log = log,
                          .batch = 1,
                          .half_width = NAN};
}

void loop_visit(const struct visit_request *request, struct device *device,
                const struct run_store *store, struct sample_log *log, struct tables *out) {
    struct visit v = visit_of(request, device, log);
    begin(&v, store);
    if (v.prepared && (v.workload->flags & WORK_ONCE)) {
        execute_once(&v);
        check_witness(&v, false);
    } else if (v.prepared) {
        visit_warm_up(&v);
        check_witness(&v, false);
        watch_samples(&v);
        sample(&v);
        unwatch_samples(&v, out);
    }
    end(&v, out);
}

struct visit *loop_open(const struct visit_request *request, struct device *device,
                        const struct run_store *store, struct sample_log *log) {
    struct visit *v = must_alloc(sizeof *v);
    *v = visit_of(request, device, log);
    begin(v, store);
    if (!v->prepared) return v;
    if (v->workload->flags & WORK_ONCE) {
        execute_once(v);
        check_witness(v, false);
        return v;
    }
    visit_warm_up(v);
    check_witness(v, false);
    watch_samples(v);
    log->head->stage = STAGE_SAMPLE;
    open_block(v);
    return v;
}

int64_t loop_turn(struct visit *v, int64_t executions) {
    const int64_t step = visit_may_batch(v) ? executions : 1;
    int64_t sum = 0, device_ns = 0;
    if (v->state[0] || v->log->head->samples >= LOG_MOST_SAMPLES) return -1;
    range_push(RANGE_SAMPLE, "sample", v->log->head->samples);
    for (int64_t i = 0; i < executions && sum >= 0; i += step) {
        const int64_t t = visit_execute(v, step);
        sum = t < 0 ? -1 : sum + t;
        device_ns = v->device_ns == I64_NONE ? I64_NONE : device_ns + v->device_ns;
    }
    v->device_ns = device_ns;
    range_pop();
    if (sum > 0) v->spent_ns += sum;
    return keep_sample(v, sum, executions) ? sum : -1;
}

void loop_close(struct visit **visit, struct tables *out) {
    struct visit *v = *visit;
    if (!v) return;
    if (v->prepared && !(v->workload->flags & WORK_ONCE)) {
        if (!v->why_stopped[0])
            snprintf(v->why_stopped, sizeof v->why_stopped, "turns: n = %" PRId64,
                     (int64_t)v->log->head->samples);
        end_samples(v);
        unwatch_samples(v, out);
    }
    end(v, out);
    free(v);
    *visit = NULL;
}
