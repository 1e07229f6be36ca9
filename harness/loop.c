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
#include "harness/batch.h"
#include "harness/look.h"
#include "harness/visit.h"
#include "harness/watch.h"
#include "kernels/device.h"
#include "probes/common/kernel_trace.h"
#include "probes/probe.h"
#include "results/stats.h"
#include "results/table.h"

enum { WINDOW_MOST = 4096, UNMOVED_MOST = 1000, UNIT_MOST = 100000 };
#define LONG_NS    1000000000 /* an execution over 1 s: two warm-ups, two samples are enough */
#define WARM_NS    200000000  /* least warm-up of a first visit: clocks and caches settle in time */
#define BLOCK_NS   5000000    /* disturbance is looked at once per so much sampling */
#define UNIT_NS    100000     /* short executions are warmed in units of this length */
#define WAIT_SHARE 0.02       /* of a block's wall time spent waiting for a core: disturbed */

/* Runs `batch` executions between two synchronisations; the time between the two clock reads, or -1
 * if something failed. */
static int64_t execute(struct visit *v, int64_t batch) {
    const struct workload *w = v->workload;
    const struct device_kind *kind = v->device->kind;
    struct err err; /* not zeroed as a whole: that alone takes 30 ns */
    err.code = 0;
    err.text[0] = 0;
    if (w->reset) w->reset(v->self);
    if (v->request->measure->cold && kind->evict) kind->evict(v->device);
    if (kind->sync(v->device, &err)) goto failed; /* what came before must not enter */
    run_begin(&v->run, 0);
    if (kind->expect)
        kind->expect(v->device, plan_flops(&v->request->point->plan),
                     plan_bytes(&v->request->point->plan));
    if (v->each) look_before(v->each);
    if (kind->span) kind->span(v->device, SPAN_BEGIN);
    int64_t t0 = visit_now(v);
    v->run.begin_ns = t0;
    for (int64_t i = 0; i < batch; i++) w->execute(v->self);
    if (kind->span) kind->span(v->device, SPAN_END);
    int code = kind->sync(v->device, &err);
    int64_t t1 = visit_now(v);
    if (v->each) look_after(v->each);
    run_end(&v->run);
    if (code) goto failed;
    v->device_ns = kind->span         ? kind->span(v->device, SPAN_READ)
                   : v->virtual_clock ? t1 - t0
                                      : I64_NONE;
    if (v->run.failed) {
        visit_state(v, "failed", "%s", v->run.failure);
        return -1;
    }
    return t1 - t0;
failed:
    run_end(&v->run);
    visit_error(v, &err);
    return -1;
}

/* A workload that marks, resets or waits is timed execution by execution; so is anything on a
 * scripted clock. */
static bool may_batch(const struct visit *v) {
    const struct workload *w = v->workload;
    return v->request->point->plan.most_marks == 0 && !w->reset &&
           !(w->flags & (WORK_WAITS | WORK_ALLOCATES)) && !v->device->kind->expect &&
           !v->request->measure->cold;
}

static int64_t log_warmup(struct visit *v, int64_t wall_ns) {
    struct sample_head *head = v->log->head;
    int64_t n = head->warmups;
    if (n < LOG_MOST_WARMUPS) {
        v->log->warmup[n] = wall_ns;
        head->warmups = n + 1;
    } else {
        head->lost++;
    }
    return n + 1;
}

static int64_t time_batch(void *ctx, int64_t k) {
    struct visit *v = ctx;
    int64_t t = execute(v, k);
    if (t >= 0) log_warmup(v, t / k);
    return t;
}

static void find_batch(struct visit *v, int64_t first_ns) {
    v->batch = 1;
    if (!may_batch(v)) return;
    switch (batch_find(time_batch, v, first_ns, v->resolution_ns, &v->batch)) {
    case BATCH_UNMOVED:
        visit_state(v, "failed", "clock unresolved: %d executions took no time on it",
                    BATCH_UNMOVED_MOST);
        break;
    case BATCH_TOO_SHORT:
        visit_flag(v, "too_fast", "%" PRId64 " executions take less than %d clock steps",
                   BATCH_MOST, BATCH_STEPS);
        break;
    case BATCH_FOUND:
    case BATCH_FAILED: break;
    }
}

/* One row of warm-up: executions until they make UNIT_NS together, so that short ones do not fill
 * the log. Their mean in ns, or -1. unit: how many may be timed as one. */
static int64_t warm_unit(struct visit *v, int64_t unit) {
    int64_t sum = 0, executions = 0;
    do {
        int64_t t = execute(v, unit);
        if (t < 0) return -1;
        sum += t;
        executions += unit;
    } while (sum > 0 && sum < UNIT_NS && executions < UNIT_MOST);
    return sum / executions;
}

static void warm_up(struct visit *v) {
    const struct measure_params *m = v->request->measure;
    v->log->head->stage = STAGE_WARMUP;
    range_push(RANGE_PHASE, "warm-up", 0);
    int64_t first_ns = execute(v, 1), begin = visit_now(v) - (first_ns > 0 ? first_ns : 0);
    if (first_ns < 0) goto out;
    int64_t n = log_warmup(v, first_ns);
    find_batch(v, first_ns);
    if (v->state[0]) goto out;
    /* A step that is recorded runs as it is, is recorded, and only then is what will be measured.
     */
    const int64_t again = v->device->kind->replay ? 2 : 1;
    int64_t least = m->profile           ? 1
                    : first_ns > LONG_NS ? 2
                    : v->request->first  ? m->warmups
                                         : again;
    int64_t least_ns = m->profile || !v->request->first || first_ns > LONG_NS ? 0 : WARM_NS;
    int64_t most_ns =
        m->warmup_ns < v->request->share_ns / 2 ? m->warmup_ns : v->request->share_ns / 2;
    if (least_ns > most_ns) least_ns = most_ns;
    int64_t host_ns = clock_ns(); /* a virtual clock may stand all but still while we do not */
    double *window = must_alloc(WINDOW_MOST * sizeof *window); /* the last units, newest last */
    int64_t n_window = 0, unit = v->batch, next_test = least;
    if (may_batch(v) && first_ns >= 0 && first_ns < UNIT_NS) {
        int64_t t = execute(v, unit);
        if (t > 0 && t < UNIT_NS) unit = unit * UNIT_NS / t + 1;
    }
    v->typical_ns = first_ns;
    v->steady = !v->request->first || least <= 1 || first_ns > LONG_NS;
    while (!v->state[0]) {
        int64_t elapsed = visit_now(v) - begin;
        bool enough = n >= least && elapsed >= least_ns;
        if (enough && v->steady) break;
        if ((elapsed > most_ns || clock_ns() - host_ns > most_ns) && n >= least) break;
        if (elapsed == 0 && n >= UNMOVED_MOST) {
            visit_state(v, "failed", "clock unresolved: %d executions took no time on it",
                        UNMOVED_MOST);
            break;
        }
        int64_t t = warm_unit(v, unit);
        if (t < 0) break;
        n = log_warmup(v, t);
        if (n_window == WINDOW_MOST)
            memmove(window, window + WINDOW_MOST / 2, sizeof *window * (size_t)(n_window /= 2));
        window[n_window++] = (double)t;
        v->typical_ns = t;
        if (n >= next_test && visit_now(v) - begin >= least_ns) {
            double difference;
            size_t tail = (size_t)(n_window > 8 ? (n_window + 1) / 2 : n_window < 4 ? n_window : 4);
            v->steady =
                v->steady || stats_steady(window + (size_t)n_window - tail, tail, &difference);
            next_test = n + (n / 4 > 1 ? n / 4 : 1);
        }
    }
    free(window);
out:
    range_pop();
    v->spent_ns += visit_now(v) - begin;
}

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

/* Labels the samples of a block whose threads waited for a core; returns the moment from which the
 * next block counts. */
static void close_block(struct visit *v, int64_t from, int64_t to, struct watch *before) {
    struct watch after;
    watch_quick(&after);
    int64_t wall = after.wall_ns - before->wall_ns;
    bool disturbed = after.wait_ns >= 0 && before->wait_ns >= 0
                         ? (double)(after.wait_ns - before->wait_ns) > WAIT_SHARE * (double)wall
                         : after.involuntary > before->involuntary;
    if (disturbed && !v->virtual_clock) {
        for (int64_t i = from; i < to; i++) v->log->sample[i].labels |= LABEL_DISTURBED;
        v->disturbed += to - from;
    }
    *before = after;
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
    int64_t begin = visit_now(v), next_test = 20, block_from = 0, n = 0, end = begin;
    double quarter = NAN;
    int64_t quarter_n = 5;
    struct watch watch;
    watch_quick(&watch);
    int64_t block_ns = clock_ns();
    while (!v->state[0]) {
        range_push(RANGE_SAMPLE, "sample", n);
        int64_t t = execute(v, v->batch);
        range_pop();
        if (t < 0) { /* stays in the file, labelled; never among the numbers */
            v->log->sample[n] = (struct sample_record){0, I64_NONE, v->batch, LABEL_FAILED};
            head->samples = n + 1;
            snprintf(v->why_stopped, sizeof v->why_stopped, "failed at sample %" PRId64, n);
            break;
        }
        v->log->sample[n] = (struct sample_record){t, v->device_ns, v->batch, 0};
        if (v->run.n_marks) keep_marks(v, n);
        atomic_store_explicit(&head->samples, ++n, memory_order_release);
        end = v->run.begin_ns + t;
        if (v->each) look_block(v->each, end);
        if (!v->virtual_clock && end - block_ns >= BLOCK_NS) {
            close_block(v, block_from, n, &watch);
            block_from = n;
            block_ns = clock_ns();
        }
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
    if (block_from < n) close_block(v, block_from, n, &watch);
    check_resolved(v, n);
    v->half_width = half_width_now(v);
    label_outliers(v);
    v->spent_ns += end - begin;
    head->spent_ns = v->spent_ns;
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
    if (!(executions > 0) || !(joules > 0)) return;
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
    int64_t t = execute(v, 1);
    if (t >= 0) keep_marks(v, 0);
    snprintf(v->why_stopped, sizeof v->why_stopped, "one execution");
}

void loop_visit(const struct visit_request *request, struct device *device,
                const struct run_store *store, struct sample_log *log, struct tables *out) {
    const struct point *point = request->point;
    const struct workload *w = point->workload;
    struct visit v = {.request = request,
                      .workload = w,
                      .device = device,
                      .log = log,
                      .batch = 1,
                      .half_width = NAN};
    struct err err = {0};
    struct values values = {0};
    struct watch before, after;
    struct look *look = NULL;
    bool traced = false;
    char name[80];
    snprintf(name, sizeof name, "%s %s %08x", w->name, point->label,
             (unsigned)(point->cell_hash & 0xffffffffu));
    v.virtual_clock = device->kind->has & DEV_VIRTUAL_CLOCK;
    v.resolution_ns = v.virtual_clock ? 1 : clock_resolution_ns();
    v.begin_ns = visit_now(&v);
    v.self = must_alloc(w->self_size ? w->self_size : 1);
    v.run = (struct run){.device = device,
                         .workload = w,
                         .store = *store,
                         .phase = -1,
                         .seed = (uint64_t)request->measure->seed};
    v.run.most_marks = point->plan.most_marks + MAX_PHASES;
    v.run.marks = must_alloc((size_t)v.run.most_marks * sizeof *v.run.marks);
    sample_log_begin(log, request->visit);
    if (request->measure->profile) range_record(RANGES_MOST);
    range_push(RANGE_VISIT, name, point->index);
    tracker_reset(device->tracker);

    log->head->stage = STAGE_PREPARE;
    watch_read(&before);
    v.prepared = w->prepare(v.self, point->params, point->has_model ? &point->config : NULL, &v.run,
                            &err) == 0;
    double probe_cost = 0;
    if (!v.prepared) {
        struct err earlier = {
            0}; /* a broken device gives no memory either: that was not the cause */
        if (device->kind->sync(device, &earlier)) err = earlier;
        visit_error(&v, &err);
    } else if (w->flags & WORK_ONCE) {
        execute_once(&v);
        check_witness(&v, false);
    } else {
        warm_up(&v);
        check_witness(&v, false);
        watch_read(&before);
        if (!v.virtual_clock) look = look_open(all_probes, request->measure->sample_probes);
        v.each = request->measure->sample_probes ? look : NULL;
        if (request->measure->profile && (device->kind->has & DEV_GPU)) {
            traced = kernel_trace_start(&err) == 0;
            if (!traced) visit_flag(&v, "kernels_untraced", "%s", err.text);
        }
        int64_t allocations = tracker_count(device->tracker);
        if (device->kind->report) device->kind->report(device, 0, NULL, NULL);
        sample(&v);
        v.each = NULL;
        allocations = tracker_count(device->tracker) - allocations;
        if (point->plan.peak_bytes == 0 && allocations)
            visit_state(&v, "failed",
                        "%" PRId64 " allocations during the samples; the plan promises none",
                        allocations);
        probe_cost = look_close(&look, keep_value, &(struct keeper){&v, out});
        if (!v.state[0]) keep_device(&v, out);
    }
    watch_read(&after);
    if (v.prepared && !(w->flags & WORK_ONCE)) check_witness(&v, true);
    if (v.prepared && !v.state[0] && w->report) w->report(v.self, &values);
    if (v.prepared && !v.state[0]) visit_work_rows(&v, out);
    for (int i = 0; i < v.run.n_flags; i++)
        visit_flag(&v, v.run.flags[i].flag, "%s", v.run.flags[i].reason);
    int64_t by_class[N_CLASSES];
    const char *site = NULL;
    int phase = -1;
    int64_t peak = tracker_peak(device->tracker, by_class, &site, &phase);
    visit_memory_rows(&v, out);
    for (int i = 0; i < values.n; i++)
        visit_value(&v, out, values.items[i].name, values.items[i].v);
    if (v.prepared && !v.state[0]) {
        visit_value(&v, out, "peak_bytes", (double)peak);
        visit_value(&v, out, "peak_beyond_weights",
                    (double)(peak - by_class[MEM_WEIGHT] - by_class[MEM_SCALE]));
        if (!v.virtual_clock) visit_value(&v, out, "clock_rate", watch_clock_rate());
    }
    range_pop();
    if (request->measure->profile) visit_range_rows(&v, out);
    if (traced) visit_kernel_rows(&v, out);
    visit_point_row(&v, out, peak, site, phase);
    visit_row(&v, out, &before, &after, probe_cost);
    if (w->dispose) w->dispose(v.self);
    log->head->stage = STAGE_IDLE;
    free(v.self);
    free(v.run.marks);
    free(v.x);
    text_free(&v.flags);
    text_free(&v.reason);
}
