/* SPDX-License-Identifier: Apache-2.0 */
/* What a visit tells: its state and flags with reasons, and its rows. */
#include "harness/visit.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/range.h"
#include "harness/head.h"
#include "harness/kernel_rows.h"
#include "harness/watch.h"
#include "kernels/device.h"
#include "probes/common/kernel_trace.h"
#include "results/stats.h"
#include "results/table.h"

enum { MEMORY_ROWS_MOST = 20000 };
#define STOLEN_SHARE 0.05 /* of the machine's time: disturbed */

void visit_state(struct visit *v, const char *state, const char *fmt, ...) {
    if (v->state[0]) return; /* the first cause stands */
    snprintf(v->state, sizeof v->state, "%s", state);
    char sentence[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (v->reason.len) text_puts(&v->reason, "; ");
    text_puts(&v->reason, sentence);
}

void visit_flag(struct visit *v, const char *flag, const char *fmt, ...) {
    text_printf(&v->flags, "%s%s", v->flags.len ? " " : "", flag);
    char sentence[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    text_printf(&v->reason, "%s%s: %s", v->reason.len ? "; " : "", flag, sentence);
}

void visit_error(struct visit *v, const struct err *err) {
    const char *state = err->code == ERR_MEMORY        ? "oom"
                        : err->code == ERR_UNSUPPORTED ? "skipped"
                                                       : "failed";
    visit_state(v, state, "%s", err->text[0] ? err->text : "no reason given");
}

/* A phase of the workload, or what surrounds its executions. */
static const char *phase_name(const struct visit *v, int phase) {
    return phase >= 0               ? v->workload->phases[phase].name
           : phase == TRACKER_ASIDE ? "witness"
                                    : "set-up";
}

void visit_memory_rows(struct visit *v, struct tables *out) {
    struct table *t = tables_get(out, "memory");
    size_t n;
    const struct memory_event *log = tracker_log(v->device->tracker, &n);
    if (v->request->round > 0 || v->request->control) return;
    if (n > MEMORY_ROWS_MOST) n = MEMORY_ROWS_MOST;
    int64_t zero = n ? log[0].t_ns : 0, at = table_add(t, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        int64_t row = at + (int64_t)i;
        table_set_i64(t, row, "visit", v->request->visit);
        table_set_i64(t, row, "t_ns", log[i].t_ns - zero);
        table_set_i64(t, row, "bytes", log[i].bytes);
        table_set_text(t, row, "class", memory_class_names[log[i].class_of]);
        table_set_text(t, row, "site", log[i].site);
        table_set_text(t, row, "phase", phase_name(v, log[i].phase));
    }
}

void visit_value(struct visit *v, struct tables *out, const char *name, double value) {
    struct table *t = tables_get(out, "values");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", v->request->visit);
    table_set_text(t, row, "metric", name);
    table_set_f64(t, row, "value", value);
}

void visit_range_rows(struct visit *v, struct tables *out) {
    const struct range_event *events;
    size_t lost;
    int unbalanced;
    size_t n = range_recorded(&events, &lost, &unbalanced);
    struct table *t = tables_get(out, "ranges");
    int64_t at = table_add(t, (int64_t)n), zero = n ? events[0].begin_ns : 0;
    for (size_t i = 0; i < n; i++) {
        if (events[i].begin_ns < zero) zero = events[i].begin_ns;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t row = at + (int64_t)i;
        table_set_i64(t, row, "visit", v->request->visit);
        table_set_text(t, row, "name", events[i].name);
        table_set_i64(t, row, "t0_ns", events[i].begin_ns - zero);
        table_set_i64(t, row, "t1_ns", events[i].end_ns - zero);
        table_set_i64(t, row, "depth", events[i].depth);
    }
    if (lost)
        visit_flag(v, "ranges_lost", "%zu ranges beyond the first %d were not kept", lost,
                   RANGES_MOST);
}

void visit_kernel_rows(struct visit *v, struct tables *out) {
    const struct range_event *ranges;
    const struct kernel_event *kernels;
    size_t lost;
    int unbalanced;
    size_t n_ranges = range_recorded(&ranges, &lost, &unbalanced);
    size_t n = kernel_trace_stop(&kernels, &lost);
    kernel_rows(tables_get(out, "kernels"), v->request->visit, ranges, n_ranges, kernels, n);
    if (lost) visit_flag(v, "kernels_untraced", "%zu records were lost", lost);
    kernel_trace_free();
}

void visit_point_row(struct visit *v, struct tables *out, int64_t peak, const char *site,
                     int phase) {
    struct table *t = tables_get(out, "points");
    int64_t row = table_add(t, 1);
    struct facts facts = {0};
    v->device->kind->describe(v->device, &facts);
    struct text effective = {0};
    text_puts(&effective, v->device->kind->name);
    static const char *const shown[] = {"device.isa",    "device.threads",     "device.pinning",
                                        "device.linear", "device.attention",   "device.graph",
                                        "device.pdl",    "device.gemm_library"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct fact *f = facts_find(&facts, shown[i]);
        if (f) text_printf(&effective, " %s=%s", f->key + strlen("device."), f->value);
    }
    const struct point *point = v->request->point;
    if (point->has_model && model_binding(&point->config) != DT_F32)
        text_printf(&effective, " activation=%s", dtype_names[model_binding(&point->config)]);
    const char *wanted = facts_get(&point->facts, "device.isa", "auto");
    const char *got = facts_get(&facts, "device.isa", wanted);
    if (strcmp(wanted, "auto") && strcmp(wanted, got))
        visit_flag(v, "fell_back", "isa %s was asked for, %s ran", wanted, got);
    table_set_i64(t, row, "point", v->request->point->index);
    table_set_text(t, row, "effective", effective.data);
    table_set_f64(t, row, "peak_bytes", (double)peak);
    table_set_text(t, row, "peak_site", site ? site : "");
    table_set_text(t, row, "peak_phase", peak > 0 ? phase_name(v, phase) : "");
    if (v->witnessed) {
        char hash[17];
        table_set_text(t, row, "contract", contract_names[v->witness.contract]);
        table_set_text(t, row, "witness",
                       !strcmp(v->state, "wrong")              ? "wrong"
                       : v->witness.contract == CONTRACT_NONE  ? "none"
                       : v->witness.identical                  ? "exact"
                       : v->witness.contract == CONTRACT_LOSSY ? "lossy"
                                                               : "close");
        if (v->witness.first_difference >= 0)
            table_set_i64(t, row, "first_difference", v->witness.first_difference);
        table_set_f64(t, row, "max_logit_error", v->witness.max_error);
        table_set_text(t, row, "output_hash", hash_text(hash, v->witness.hash));
        table_set_text(t, row, "plain_hash", hash_text(hash, v->witness.plain_hash));
        table_set_text(t, row, "witness_note", v->witness.note);
    }
    text_free(&effective);
    facts_free(&facts);
}

bool visit_plan(const struct visit *v, struct plan *real) {
    struct work work[MAX_PHASES] = {{0}};
    *real = v->request->point->plan;
    if (!v->workload->worked || !v->workload->worked(v->self, work)) return false;
    memcpy(real->work, work, sizeof work);
    return true;
}

void visit_work_rows(struct visit *v, struct tables *out) {
    const struct point *point = v->request->point;
    struct plan real;
    if (!visit_plan(v, &real)) return;
    struct table *t = tables_get(out, "points");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "point", point->index);
    head_ledger(t, row, &real);
    head_phases(out, point, &real);
}

void visit_row(struct visit *v, struct tables *out, const struct watch *a, const struct watch *b,
               double probe_cost) {
    const struct visit_request *r = v->request;
    int64_t n = v->log->head->samples;
    struct table *t = tables_get(out, "visits");
    int64_t row = table_add(t, 1);
    double wall = (double)(b->wall_ns - a->wall_ns),
           ticks = (double)(b->total_ticks - a->total_ticks);
    double steal =
        a->total_ticks >= 0 && ticks > 0 ? (double)(b->steal_ticks - a->steal_ticks) / ticks : NAN;
    if (steal > STOLEN_SHARE && !v->virtual_clock) /* which nobody steals from */
        visit_flag(v, "disturbed", "%.1f %% of the machine's time was stolen", 100 * steal);
    else if (n > 0 && (double)v->disturbed > r->measure->disturbed * (double)n)
        visit_flag(v, "disturbed",
                   "threads waited for a core in %" PRId64 " of %" PRId64 " samples", v->disturbed,
                   n);
    if (!v->steady && !v->state[0] && n)
        visit_flag(v, "not_steady", "still changing after %" PRId64 " warm-ups",
                   (int64_t)v->log->head->warmups);
    if (v->log->head->lost)
        visit_flag(v, "log_full", "%" PRId64 " records were not kept", (int64_t)v->log->head->lost);
    table_set_i64(t, row, "visit", r->visit);
    table_set_i64(t, row, "point", r->point->index);
    table_set_i64(t, row, "round", r->round);
    table_set_i64(t, row, "position", r->position);
    table_set_i64(t, row, "control", r->control);
    table_set_i64(t, row, "worker", r->worker);
    table_set_f64(t, row, "seconds", (double)(visit_now(v) - v->begin_ns) * 1e-9);
    table_set_i64(t, row, "warmups", v->log->head->warmups);
    table_set_i64(t, row, "samples", n);
    table_set_i64(t, row, "batch", v->batch);
    table_set_text(t, row, "steady", v->steady ? "yes" : "no");
    table_set_text(t, row, "why_stopped", v->why_stopped);
    table_set_text(t, row, "state", v->state[0] ? v->state : "ok");
    table_set_text(t, row, "flags", v->flags.data ? v->flags.data : "");
    table_set_text(t, row, "reason", v->reason.data ? v->reason.data : "");
    table_set_f64(t, row, "lag1", v->x_n ? stats_lag1(v->x, (size_t)v->x_n) : NAN);
    table_set_f64(t, row, "half_width", v->half_width);
    table_set_i64(t, row, "ctx_switches", b->involuntary - a->involuntary);
    table_set_f64(t, row, "cpu_share", wall > 0 ? (double)(b->cpu_ns - a->cpu_ns) / wall : NAN);
    table_set_f64(t, row, "steal_share", steal);
    table_set_i64(t, row, "page_faults", b->faults - a->faults);
    table_set_f64(t, row, "rss_peak", b->rss_peak >= 0 ? (double)b->rss_peak : NAN);
    table_set_f64(t, row, "probe_cost", n > 0 ? probe_cost / (double)n : NAN);
    if (v->witnessed) {
        char hash[17];
        table_set_text(t, row, "output_hash", hash_text(hash, v->witness.hash));
    }
}
