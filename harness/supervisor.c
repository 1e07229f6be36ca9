/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: starts workers, orders visits, keeps what comes back or what a dead worker left.
 */
#include "harness/supervisor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "harness/child.h"
#include "harness/progress.h"
#include "harness/sample_log.h"
#include "harness/schedule.h"
#include "harness/snapshot.h"
#include "harness/worker.h"
#include "results/table.h"

#define SLOW_CLOCK 0.9 /* of the run's best, or of the other side's: the visit is throttled */

struct supervisor {
    struct supervision *s;
    const struct protocol *protocol;
    struct child_memory memory;
    struct child child;
    int64_t started; /* workers */
    struct budget budget;
    struct progress progress;
    double best_clock;
    double earlier_s; /* what a resumed run had taken before */
    int64_t began_ns;
    bool virtual_clock; /* all points on one: their time is the budget's time */
};

static double fraction_of(const struct supervisor *v, int64_t now_extra_ns) {
    return (double)(v->budget.elapsed_ns + now_extra_ns) /
           (double)(v->budget.budget_ns > 0 ? v->budget.budget_ns : 1);
}

struct waiting {
    struct supervisor *v;
    const struct scheduled *at;
};
static void show_waiting(void *ctx, int64_t waited_ns) {
    const struct waiting *w = ctx;
    struct supervisor *v = w->v;
    double left = (double)(v->budget.budget_ns - v->budget.elapsed_ns - waited_ns) * 1e-9;
    progress_show(&v->progress, w->at->round, v->budget.rounds,
                  v->protocol->points[w->at->point].label, fraction_of(v, waited_ns),
                  left > 0 ? left : 0);
}

static void add_word(struct table *t, int64_t row, const char *column, const char *separator,
                     const char *word) {
    struct text all = {0};
    const char *before = table_text(t, row, column);
    text_printf(&all, "%s%s%s", before, *before ? separator : "", word);
    table_set_text(t, row, column, all.data);
    text_free(&all);
}

static double value_named(const struct table *values, const char *metric) {
    double v = NAN;
    for (int64_t i = 0; i < table_rows(values); i++)
        if (!strcmp(table_text(values, i, "metric"), metric)) v = table_real(values, i, "value");
    return v;
}

static void throttled(struct sample_log *log, struct table *visits, const char *reason) {
    for (int64_t i = 0; i < table_rows(visits); i++) {
        add_word(visits, i, "flags", " ", "throttled");
        add_word(visits, i, "reason", "; ", reason);
    }
    for (int64_t i = 0; i < log->head->samples; i++) log->sample[i].labels |= LABEL_THROTTLED;
}

static void set_ratio(struct table *visits, double ratio) {
    for (int64_t i = 0; isfinite(ratio) && i < table_rows(visits); i++)
        table_set_f64(visits, i, "clock_ratio", ratio);
}

void supervisor_note_clock(double *best, struct sample_log *log, struct tables *out) {
    struct table *values = tables_get(out, "values"), *visits = tables_get(out, "visits");
    const double rate = value_named(values, "clock_rate"),
                 slowed = value_named(values, "nvml.slowed");
    char reason[120] = "";
    if (rate > *best) *best = rate;
    const double ratio = rate / *best;
    set_ratio(visits, rate > 0 ? ratio : (double)NAN);
    if (slowed > 0)
        snprintf(reason, sizeof reason,
                 "throttled: the GPU named a power or heat limit during the samples");
    else if (ratio < SLOW_CLOCK)
        snprintf(reason, sizeof reason, "throttled: the clock is at %.0f %% of the run's best",
                 100 * ratio);
    if (*reason) throttled(log, visits, reason);
}

void supervisor_note_clocks(double *best, struct sample_log *const log[2],
                            struct tables *const out[2]) {
    double rate[2], slowed[2];
    for (int side = 0; side < 2; side++) {
        const struct table *values = tables_get(out[side], "values");
        rate[side] = value_named(values, "clock_rate");
        slowed[side] = value_named(values, "nvml.slowed");
        if (rate[side] > *best) *best = rate[side];
    }
    for (int side = 0; side < 2; side++) {
        struct table *visits = tables_get(out[side], "visits");
        char reason[120] = "";
        set_ratio(visits, rate[side] > 0 ? rate[side] / *best : (double)NAN);
        if (slowed[side] > 0 && !(slowed[!side] > 0))
            snprintf(reason, sizeof reason,
                     "throttled: the GPU named a power or heat limit during the samples of this "
                     "side alone");
        else if (rate[side] < SLOW_CLOCK * rate[!side])
            snprintf(reason, sizeof reason,
                     "throttled: the clock is at %.0f %% of the other side's",
                     100 * rate[side] / rate[!side]);
        if (*reason) throttled(log[side], visits, reason);
    }
}

/* Seconds since the run began; a resumed run goes on where its journal ends, a virtual clock is the
 * sum of its visits. */
static double seconds_of_run(const struct supervisor *v) {
    return v->earlier_s +
           1e-9 * (double)(v->virtual_clock ? v->budget.elapsed_ns : clock_ns() - v->began_ns);
}

static double end_of_visits(const struct tables *earlier) {
    const struct table *t = earlier ? tables_peek(earlier, "visits") : NULL;
    double end = 0;
    for (int64_t i = 0; t && i < table_rows(t); i++) {
        double at = table_real(t, i, "t0") + table_real(t, i, "seconds");
        if (at > end) end = at; /* not where it is no number */
    }
    return end;
}

static int visit(struct supervisor *v, const struct scheduled *at, int64_t visits_left,
                 struct err *err) {
    const struct point *point = &v->protocol->points[at->point];
    if (!child_runs(&v->child)) {
        int code = child_start(&v->child, v->started++, v->s->no_isolate, err);
        if (code) return code;
    }
    struct visit_order order = {.visit = at->visit,
                                .round = at->round,
                                .position = at->position,
                                .control = at->control,
                                .worker = v->child.number,
                                .share_ns = budget_share(&v->budget, visits_left)};
    struct facts request = {0};
    struct tables *out = tables_create();
    struct answer answer = {0};
    int code = 0;
    int64_t began_ns = clock_ns();
    double t0 = seconds_of_run(v);
    visit_pack(&request, &order, &v->protocol->measure, point);
    progress_show(&v->progress, at->round, v->budget.rounds, point->label, fraction_of(v, 0),
                  (double)(v->budget.budget_ns - v->budget.elapsed_ns) * 1e-9);
    if (v->child.inside) {
        code = worker_visit(v->child.inside, &request, out, err);
    } else {
        /* so that a worker that dies at once leaves nothing of the visit before */
        sample_log_begin(&v->memory.log, at->visit);
        const struct patience patience = {.timeout_ns = v->protocol->measure.timeout_ns,
                                          .show = show_waiting,
                                          .ctx = &(struct waiting){v, at}};
        code = child_ask(&v->child, MESSAGE_VISIT, &request, &patience, &answer, err);
        if (!code && answer.body)
            code = tables_unpack(out, answer.body, answer.len, err);
        else if (!code && *answer.state)
            child_row(&v->child, &order, at->point, &answer, out);
        if (answer.kind == MESSAGE_LAST) child_end(&v->child, false); /* the next has a fresh one */
    }
    if (stop_asked() && table_rows(tables_get(out, "visits")) == 0)
        goto out; /* given up: resume measures it again */
    if (!code) {
        struct table *visits = tables_get(out, "visits");
        for (int64_t i = 0; i < table_rows(visits); i++) table_set_f64(visits, i, "t0", t0);
        supervisor_note_clock(&v->best_clock, &v->memory.log, out);
        sample_log_tables(&v->memory.log, at->visit, out);
        code = journal_append(v->s->journal, JOURNAL_VISIT, out, err);
        double seconds = table_real(visits, 0, "seconds");
        int64_t took =
            v->virtual_clock && seconds >= 0 ? (int64_t)(seconds * 1e9) : clock_ns() - began_ns;
        budget_spent(&v->budget, took, v->memory.log.head->spent_ns);
    }
out:
    free(answer.body);
    facts_free(&request);
    tables_close(&out);
    return code;
}

/* Which visits a resumed journal holds (n flags), or NULL. */
static bool *visits_done(const struct tables *earlier, int64_t n) {
    if (!earlier) return NULL;
    const struct table *t = tables_peek(earlier, "visits");
    const int64_t *visit = table_see_i64(t, "visit");
    bool *done = must_alloc((size_t)n);
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (visit[i] >= 0 && visit[i] < n) done[visit[i]] = true;
    }
    return done;
}

/* Whether everything planned was measured, counting what a resumed journal holds. */
static int rounds(struct supervisor *v, struct err *err) {
    int64_t most = v->budget.rounds * ((int64_t)v->protocol->n_points + 1);
    bool *held = visits_done(v->s->earlier, most);
    int code = 0;
    for (int64_t r = 0; r < v->budget.rounds && !stop_asked(); r++) {
        int64_t n, before_ns = v->budget.elapsed_ns,
                   once_ns = 0; /* of visits that do not come again */
        struct scheduled *visits = schedule_round(v->protocol, r, &n);
        bool any = false;
        for (int64_t i = 0; i < n && !code && !stop_asked(); i++) {
            if (held && held[visits[i].visit]) continue;
            any = true;
            const int64_t visit_ns = v->budget.elapsed_ns;
            code = visit(v, &visits[i], (n - i) + (v->budget.rounds - r - 1) * n, err);
            if (v->protocol->points[visits[i].point].workload->flags & WORK_ONCE)
                once_ns += v->budget.elapsed_ns - visit_ns;
        }
        free(visits);
        if (code) break;
        if (v->protocol->measure.fresh == FRESH_ROUND) child_end(&v->child, false);
        if (stop_asked()) break;
        int64_t round_ns = v->budget.elapsed_ns - before_ns;
        if (any && !v->progress.terminal)
            progress_line(&v->progress,
                          "  round %" PRId64 "/%" PRId64 " done: %" PRId64 " visits in %.1f s",
                          r + 1, v->budget.rounds, n, (double)round_ns * 1e-9);
        if (any && !budget_another(&v->budget, r + 1, round_ns - once_ns)) break;
    }
    free(held);
    v->s->complete = !stop_asked() && !code;
    snprintf(v->s->why_ended, sizeof v->s->why_ended, "%s",
             stop_asked()        ? "interrupted"
             : v->budget.note[0] ? v->budget.note
                                 : "all planned rounds");
    return code;
}

int supervise(struct supervision *s, struct err *err) {
    struct supervisor v = {.s = s,
                           .protocol = s->protocol,
                           .memory = {.log_fd = -1, .snapshot_fd = -1, .weights_fd = -1},
                           .child = {.fd = -1, .memory = &v.memory}};
    struct stop_watch *stop = stop_watch();
    int64_t room = memory_limit() / 4;
    v.virtual_clock = true;
    for (size_t i = 0; i < s->protocol->n_points; i++) {
        if (!(s->protocol->points[i].device->has & DEV_VIRTUAL_CLOCK)) v.virtual_clock = false;
    }
    budget_begin(&v.budget, s->protocol);
    v.began_ns = clock_ns();
    v.earlier_s = end_of_visits(s->earlier);
    progress_begin(&v.progress, s->quiet);
    int code = sample_log_create(&v.memory.log_fd, &v.memory.log, err);
    if (!code)
        code =
            snapshot_create(&v.memory.snapshot_fd, room > 0 ? (size_t)room : (size_t)1 << 30, err);
    if (!code) code = rounds(&v, err);
    child_end(&v.child, code != 0 || stop_asked());
    progress_end(&v.progress);
    s->interrupted = stop_asked();
    if (stop_asked() && code == ERR_INTERRUPTED) code = 0;
    sample_log_unmap(&v.memory.log);
    if (v.memory.log_fd >= 0) close(v.memory.log_fd);
    if (v.memory.snapshot_fd >= 0) close(v.memory.snapshot_fd);
    stop_unwatch(&stop);
    return code;
}
