/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a run and of a comparison, printed before anything is measured. */
#include "harness/dry_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/page.h"
#include "harness/schedule.h"
#include "results/evalue.h"

/* Rough and said to be: the ledger at rates of an ordinary machine. */
static const double bandwidth = 15e9, flop_rate = 80e9;
enum { WARM_TURNS = 5 }; /* untimed executions of a side before its turns */

/* What an execution waits for. */
static double wait_s(const struct plan *plan) {
    double bytes = 0;
    for (int c = 0; c < N_CLASSES; c++) bytes += plan->wait.bytes[c];
    return fmax((double)plan->wait_ns * 1e-9,
                fmax(bytes / bandwidth, plan->wait.flops / flop_rate));
}

static double once_s(const struct plan *plan) {
    return fmax(wait_s(plan), fmax(plan_flops(plan) / flop_rate, plan_bytes(plan) / bandwidth));
}

static double prepare_s(const struct plan *plan) {
    double bytes = 0;
    for (int c = 0; c < N_CLASSES; c++) bytes += plan->prepare.bytes[c];
    return fmax(plan->prepare.flops / flop_rate, bytes / bandwidth);
}

/* Of all rounds, or the budget, whichever is less. */
static double estimate_s(const struct protocol *p) {
    double total = 0, rounds = (double)schedule_rounds(p);
    for (size_t i = 0; i < p->n_points; i++) {
        const struct plan *plan = &p->points[i].plan;
        const double once = once_s(plan);
        bool exact = p->points[i].workload->flags & WORK_ONCE;
        total +=
            exact ? once
                  : prepare_s(plan) +
                        rounds *
                            fmax(0.4, (double)(p->measure.warmups + p->measure.min_samples) * once);
    }
    double budget = (double)p->measure.budget_ns * 1e-9;
    return total < budget ? total : budget;
}

static void question(const struct protocol *p, struct text *out) {
    const char *left_out = facts_get(&p->facts, "protocol.left_out", "");
    struct text line = {0};
    text_printf(&line, "%s%s%s", p->title, *p->question ? " · " : "", p->question);
    page_wrap(out, 0, line.data);
    text_puts(out, "\n");
    text_free(&line);
    if (!*left_out) return;
    page_wrap(out, 0, "left out, with what speaks of it:");
    page_wrap(out, 0, left_out);
    text_puts(out, "\n");
}

/* Arrivals in steps of this machine: only a guess says how long they last. */
static void say_waits(const struct protocol *p, struct text *out) {
    char wait[40], most[40];
    struct text line = {0};
    for (size_t i = 0; i < p->n_points && !line.len; i++) {
        const struct point *point = &p->points[i];
        const double seconds = wait_s(&point->plan);
        if (point->device->has & DEV_VIRTUAL_CLOCK ||
            seconds * 1e9 <= (double)p->measure.timeout_ns)
            continue;
        text_printf(
            &line,
            "%s%s%s may wait for its last arrival about %s (steps at 15 GB/s and 80 "
            "GFLOP/s), longer than measure.timeout = %s: its visits may end without a number",
            point->case_name, *point->case_name ? " " : "",
            *point->label || *point->case_name ? point->label : "the point",
            format_time(wait, sizeof wait, seconds * 1e9),
            format_time(most, sizeof most, (double)p->measure.timeout_ns));
    }
    if (line.len) {
        page_wrap(out, 0, line.data);
        text_puts(out, "\n");
    }
    text_free(&line);
}

void dry_run_head(const struct protocol *p, struct text *out) {
    char seconds[40];
    int64_t rounds = schedule_rounds(p);
    double estimate = estimate_s(p);
    snprintf(seconds, sizeof seconds, estimate < 1 ? "in less than a second" : "≈ ");
    if (estimate >= 1) format_time(seconds + strlen(seconds), 30, estimate * 1e9);
    question(p, out);
    say_waits(p, out);
    text_printf(out, "%zu point%s × %" PRId64 " round%s %s\n", p->n_points,
                p->n_points == 1 ? "" : "s", rounds, rounds == 1 ? "" : "s", seconds);
}

/* How wide the labels of the plan are, within what leaves room for the numbers. */
static size_t label_width(const struct protocol *p) {
    size_t most = 3;
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        size_t width = utf8_width(point->case_name) + 1 + utf8_width(point->label);
        if (width > most) most = width;
    }
    return most < 60 ? most : 60;
}

static void plan_line(struct text *out, size_t width, const char *const *cells) {
    const size_t columns[] = {2, 10, 22, 24 + width, 36 + width, 48 + width};
    for (int i = 0; i < 6; i++) {
        text_pad(out, columns[i]);
        text_printf(out, "%s%s", cells[i], i < 5 ? "  " : "\n");
    }
}

static const char assumed[] =
    "the ledger at an assumed 15 GB/s and 80 GFLOP/s, at most the budget, without starting workers "
    "and making weights; traffic is exact, memory is without the device's workspace)";

static void points(const struct protocol *p, const bool *chosen, struct text *out) {
    const size_t width = label_width(p);
    plan_line(out, width,
              (const char *const[]){"point", "workload", "row", "memory", "traffic", "GFLOP"});
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        char number[24], memory[40], traffic[40], flops[40];
        struct text label = {0};
        double held = (double)(plan_live_bytes(&point->plan) + point->plan.host_bytes);
        if (chosen && !chosen[i]) continue;
        snprintf(number, sizeof number, "%5zu", i);
        text_printf(&label, "%s%s%s", point->case_name, *point->case_name ? " " : "", point->label);
        plan_line(out, width,
                  (const char *const[]){
                      number, point->workload->name, label.data,
                      format_bytes_si(memory, sizeof memory, held),
                      format_bytes_si(traffic, sizeof traffic, plan_bytes(&point->plan)),
                      format_number(flops, sizeof flops, plan_flops(&point->plan) * 1e-9, 4)});
        text_free(&label);
    }
}

void dry_run(const struct protocol *p, struct text *out) {
    struct text note = {0};
    dry_run_head(p, out);
    text_printf(&note, "(time: %s", assumed);
    page_wrap(out, 0, note.data);
    text_puts(out, "\n\n");
    points(p, NULL, out);
    text_free(&note);
}

/* --- both sides --- */

/* Of one round of all rows: both sides prepared and warm, then turns. */
static double round_s(const struct dry_pair *d, size_t *rows) {
    double sum = 0;
    *rows = 0;
    for (size_t i = 0; i < d->side[SIDE_A]->n_points; i++) {
        double one = 0, both = 0;
        if (!d->chosen[i]) continue;
        for (int side = 0; side < N_SIDES; side++) {
            const struct plan *plan = &d->side[side]->points[i].plan;
            one += 2 * once_s(plan); /* a quadruple has two turns of each side */
            both += prepare_s(plan) + WARM_TURNS * once_s(plan);
        }
        ++*rows;
        sum += both;
        if (d->side[SIDE_A]->points[i].workload->flags & WORK_ONCE) continue; /* takes no turns */
        sum += fmax(PAIR_VISIT_NS * 1e-9, PAIR_LEAST_QUADS * one);
    }
    return sum;
}

static void say_rounds(const struct dry_pair *d, struct text *out) {
    const double budget = (double)d->side[SIDE_A]->measure.budget_ns * 1e-9;
    char least[40], most[40], given[40];
    size_t rows;
    const double round = round_s(d, &rows);
    text_printf(out, "%zu row%s × 2 sides in turns, ", rows, rows == 1 ? "" : "s");
    if (d->rounds) {
        text_printf(out, "%" PRId64 " rounds ≈ %s\n", d->rounds,
                    format_time(most, sizeof most, 1e9 * (double)d->rounds * round));
        return;
    }
    text_printf(
        out, "%d to %" PRId64 " rounds ≈ %s to %s\n", EVALUE_LEAST, d->settings->rounds,
        format_time(least, sizeof least, 1e9 * fmin(budget, EVALUE_LEAST * round)),
        format_time(most, sizeof most, 1e9 * fmin(budget, (double)d->settings->rounds * round)));
    if (EVALUE_LEAST * round <= budget) return;
    struct text line = {0};
    text_printf(&line,
                "measure.budget = %s may be too short for %d rounds, the least that decide: about "
                "%s are needed",
                format_time(given, sizeof given, 1e9 * budget), EVALUE_LEAST,
                format_time(least, sizeof least, 1e9 * EVALUE_LEAST * round));
    page_wrap(out, 0, line.data);
    text_puts(out, "\n");
    text_free(&line);
}

void dry_run_pair(const struct dry_pair *d, struct text *out) {
    struct text note = {0};
    question(d->side[SIDE_A], out);
    say_rounds(d, out);
    text_printf(&note, "(a row that is decided stops; time of a round: 0.4 s a row, or %s",
                assumed);
    page_wrap(out, 0, note.data);
    text_puts(out, "\n");
    text_free(&note);
    for (int side = 0; side < N_SIDES; side++) {
        text_printf(out, "\nside %s: ", side_names[side]);
        page_wrap(out, 8, d->words[side]);
        text_puts(out, "\n");
        points(d->side[side], d->chosen, out);
    }
}
