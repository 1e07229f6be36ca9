/* SPDX-License-Identifier: Apache-2.0 */
/* Executions between two clock reads, and those before the first sample: until they are steady. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/range.h"
#include "harness/batch.h"
#include "harness/look.h"
#include "harness/visit.h"
#include "kernels/device.h"
#include "results/stats.h"
#include "results/table.h"

enum { WINDOW_MOST = 4096, UNMOVED_MOST = 1000, UNIT_MOST = 100000, TURNS_WARMUPS = 5 };
#define WARM_NS 200000000 /* least warm-up of a first visit: clocks and caches settle in time */
#define UNIT_NS 100000    /* short executions are warmed in units of this length */

int64_t visit_execute(struct visit *v, int64_t batch) {
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
    v->end_ns = t1;
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

bool visit_may_batch(const struct visit *v) {
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
    int64_t t = visit_execute(v, k);
    if (t >= 0) log_warmup(v, t / k);
    return t;
}

static void find_batch(struct visit *v, int64_t first_ns) {
    v->batch = 1;
    if (!visit_may_batch(v)) return;
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
        int64_t t = visit_execute(v, unit);
        if (t < 0) return -1;
        sum += t;
        executions += unit;
    } while (sum > 0 && sum < UNIT_NS && executions < UNIT_MOST);
    return sum / executions;
}

void visit_warm_up(struct visit *v) {
    const struct measure_params *m = v->request->measure;
    v->log->head->stage = STAGE_WARMUP;
    range_push(RANGE_PHASE, "warm-up", 0);
    int64_t first_ns = visit_execute(v, 1), begin = visit_now(v) - (first_ns > 0 ? first_ns : 0);
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
    if (v->request->turns) { /* what is not yet steady is the same on both sides, and cancels */
        if (least < TURNS_WARMUPS && first_ns <= LONG_NS) least = TURNS_WARMUPS;
        least_ns = 0;
    }
    int64_t most_ns =
        m->warmup_ns < v->request->share_ns / 2 ? m->warmup_ns : v->request->share_ns / 2;
    if (least_ns > most_ns) least_ns = most_ns;
    int64_t host_ns = clock_ns(); /* a virtual clock may stand all but still while we do not */
    double *window = must_alloc(WINDOW_MOST * sizeof *window); /* the last units, newest last */
    int64_t n_window = 0, unit = v->batch, next_test = least;
    if (visit_may_batch(v) && first_ns >= 0 && first_ns < UNIT_NS) {
        int64_t t = visit_execute(v, unit);
        if (t > 0 && t < UNIT_NS) unit = unit * UNIT_NS / t + 1;
    }
    v->typical_ns = first_ns;
    v->steady = !v->request->first || v->request->turns || least <= 1 || first_ns > LONG_NS;
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
