/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides in turns: rounds of fresh workers, rows in shuffled order, until all is decided. */
#include "harness/pair.h"

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
#include "base/random.h"
#include "base/text.h"
#include "harness/pair_parts.h"
#include "harness/snapshot.h"
#include "results/evalue.h"
#include "results/pairs.h"
#include "results/table.h"

const char *const side_names[N_SIDES] = {"a", "b"};

bool pair_coin(struct pair *p) { return random_at(p->key, p->draws++) >> 63; }

const struct point *pair_point(const struct pair *p, int side, int64_t row) {
    return &p->p->side[side]->points[row];
}

int64_t pair_index(const struct pair *p, int side, int64_t row) {
    return row + (side == SIDE_B ? p->n : 0);
}

int64_t pair_elapsed_ns(const struct pair *p) {
    return p->virtual_clock ? p->spent_ns : clock_ns() - p->began_ns;
}

void pair_show(struct pair *p, int64_t round, const char *what) {
    const double budget = (double)p->budget_ns, spent = (double)pair_elapsed_ns(p);
    const double by_rounds = (double)round / (double)p->limit, by_time = spent / budget;
    progress_show(&p->progress, round, p->limit, what, by_rounds > by_time ? by_rounds : by_time,
                  budget > spent ? (budget - spent) * 1e-9 : 0);
}
int pair_start_sides(struct pair *p, int first, struct err *err) {
    int code = 0;
    for (int i = 0; !code && i < N_SIDES; i++) {
        struct child *child = &p->side[i ? !first : first].child;
        if (!child_runs(child)) code = child_start(child, p->started++, p->p->no_isolate, err);
        const char *named = p->p->named[i ? !first : first];
        if (code && named) err_prefix(err, "%s", named);
    }
    return code;
}

void pair_end_sides(struct pair *p, bool kill_them) {
    for (int i = 0; i < N_SIDES; i++) child_end(&p->side[i].child, kill_them);
}

/* Whether a row is to be measured in the next round. */
static bool is_open(const struct pair *p, int64_t i) {
    if (p->gone[i] || p->row[i] < 0) return false;
    return !p->gate || p->p->rounds || gate_open(p->gate, (size_t)p->row[i]);
}

static size_t count_open(const struct pair *p) {
    size_t open = 0;
    for (int64_t i = 0; i < p->n; i++) open += is_open(p, i);
    return open;
}

/* The open rows in seeded order; those that share weights follow each other. */
struct draw {
    int64_t row;
    uint64_t block, within;
};
static int by_draw(const void *x, const void *y) {
    const struct draw *a = x, *b = y;
    if (a->block != b->block) return a->block < b->block ? -1 : 1;
    return a->within < b->within ? -1 : a->within > b->within;
}

static struct draw *shuffled(struct pair *p, int64_t round, size_t *n) {
    struct draw *draws = must_alloc((size_t)(p->n + 1) * sizeof *draws);
    const uint64_t key = random_key(p->key, (uint64_t)round + 1);
    *n = 0;
    for (int64_t i = 0; i < p->n; i++) {
        if (!is_open(p, i)) continue;
        const uint64_t weights = pair_point(p, SIDE_A, i)->weights_key ^
                                 random_mix(pair_point(p, SIDE_B, i)->weights_key);
        draws[(*n)++] = (struct draw){
            .row = i, .block = random_mix(key ^ weights), .within = random_at(key, (uint64_t)i)};
    }
    qsort(draws, *n, sizeof *draws, by_draw);
    return draws;
}

static void judge(struct pair *p) {
    gate_close(&p->gate);
    p->gate = pairs_gate(p->p->kept, p->p->settings);
    pairs_rows(p->p->kept, p->p->settings, p->row);
}

static int one_round(struct pair *p, int64_t round, size_t *rows, struct err *err) {
    const int first = pair_coin(p) ? SIDE_B : SIDE_A;
    struct draw *draws = shuffled(p, round, rows);
    int code = *rows ? pair_start_sides(p, first, err) : 0;
    for (size_t i = 0; i < *rows && !code && !stop_asked(); i++) {
        if (pair_elapsed_ns(p) > p->budget_ns)
            break; /* one row may take longer than was planned for all */
        code = pair_visit(p, draws[i].row, round, (int64_t)i, first, err);
    }
    free(draws);
    pair_end_sides(p, code != 0 || stop_asked());
    return code;
}

/* What was spent, and which budget would have been enough: of the least rounds that decide
 * anything, else just more. */
static void say_budget(struct pair *p, int64_t rounds, int64_t spent_ns, int64_t last_ns) {
    char *why = p->p->why_ended;
    const size_t size = sizeof p->p->why_ended;
    const double left = (double)(p->budget_ns > spent_ns ? p->budget_ns - spent_ns : 0) * 1e-9;
    int n = snprintf(why, size,
                     "budget: %" PRId64 " of %" PRId64
                     " rounds; the last took %.1f s, %.1f s were left; ",
                     rounds, p->limit, (double)last_ns * 1e-9, left);
    if (n < 0 || (size_t)n >= size) return;
    const int64_t more = EVALUE_LEAST - rounds;
    const double tens = ceil((double)(spent_ns + (more > 0 ? more : 0) * last_ns) * 1e-10);
    if (more > 0)
        snprintf(why + n, size - (size_t)n,
                 "%d rounds, the least that decide, need --set measure.budget=\"%.0f s\"",
                 EVALUE_LEAST, 10 * tens);
    else
        snprintf(why + n, size - (size_t)n, "a larger measure.budget decides more rows");
}

static int all_rounds(struct pair *p, struct err *err) {
    char *why = p->p->why_ended;
    const size_t size = sizeof p->p->why_ended;
    int code = 0;
    int64_t round = 0, last_ns = 0;
    snprintf(why, size, "all planned rounds");
    for (; round < p->limit && !code; round++) {
        const int64_t before = pair_elapsed_ns(p);
        size_t rows = 0;
        if (round && before + last_ns > p->budget_ns) {
            say_budget(p, round, before, last_ns);
            break;
        }
        code = one_round(p, round, &rows, err);
        if (code || stop_asked()) break;
        judge(p);
        const size_t open = count_open(p);
        last_ns = pair_elapsed_ns(p) - before;
        if (rows) last_ns = last_ns * (int64_t)open / (int64_t)rows;
        if (!p->progress.terminal)
            progress_line(&p->progress,
                          "  round %" PRId64 "/%" PRId64 " done: %zu of %" PRId64 " rows open",
                          round + 1, p->limit, open, p->n);
        if (!open) {
            snprintf(why, size, "decided after %" PRId64 " rounds", round + 1);
            break;
        }
    }
    if (stop_asked()) snprintf(why, size, "interrupted");
    return code;
}

static int share_memory(struct pair *p, struct err *err) {
    const int64_t limit = memory_limit();
    const size_t room = limit > 0 ? (size_t)limit / 4 : (size_t)1 << 30;
    int code = 0;
    for (int i = 0; !code && i < N_SIDES; i++) {
        struct child_memory *m = &p->side[i].memory;
        code = sample_log_create(&m->log_fd, &m->log, err);
        /* What a side keeps for its later workers may differ between two builds. */
        if (!code) code = snapshot_create(&m->snapshot_fd, room, err);
    }
    if (!code) code = snapshot_create(&p->side[SIDE_A].memory.weights_fd, 2 * room, err);
    p->side[SIDE_B].memory.weights_fd = p->side[SIDE_A].memory.weights_fd;
    return code;
}

static void free_memory(struct pair *p) {
    if (p->side[SIDE_A].memory.weights_fd >= 0) close(p->side[SIDE_A].memory.weights_fd);
    for (int i = 0; i < N_SIDES; i++) {
        struct child_memory *m = &p->side[i].memory;
        sample_log_unmap(&m->log);
        if (m->log_fd >= 0) close(m->log_fd);
        if (m->snapshot_fd >= 0) close(m->snapshot_fd);
    }
}

int pair_rounds(struct pairing *pairing, struct err *err) {
    const struct measure_params *measure = &pairing->side[SIDE_A]->measure;
    struct pair *p = must_alloc(sizeof *p);
    *p = (struct pair){.p = pairing,
                       .n = (int64_t)pairing->side[SIDE_A]->n_points,
                       .limit = pairing->rounds ? pairing->rounds : pairing->settings->rounds,
                       .budget_ns = pairing->rounds ? INT64_MAX / 2 : measure->budget_ns,
                       .key = random_key((uint64_t)measure->seed, 0xab),
                       .virtual_clock = true};
    p->gone = must_alloc((size_t)p->n + 1);
    p->row = must_alloc(((size_t)p->n + 1) * sizeof *p->row);
    pairs_rows(pairing->kept, pairing->settings, p->row);
    for (int i = 0; i < N_SIDES; i++) {
        p->side[i].memory =
            (struct child_memory){.log_fd = -1, .snapshot_fd = -1, .weights_fd = -1};
        p->side[i].child =
            (struct child){.fd = -1, .memory = &p->side[i].memory, .binary = pairing->binary[i]};
        for (int64_t r = 0; r < p->n; r++)
            if (!(pair_point(p, i, r)->device->has & DEV_VIRTUAL_CLOCK)) p->virtual_clock = false;
    }
    struct stop_watch *stop = stop_watch();
    progress_begin(&p->progress, pairing->quiet);
    p->began_ns = clock_ns();
    int code = share_memory(p, err);
    if (!code) code = all_rounds(p, err);
    pairing->interrupted = stop_asked();
    if (pairing->interrupted && code == ERR_INTERRUPTED) code = 0;
    progress_end(&p->progress);
    free_memory(p);
    stop_unwatch(&stop);
    gate_close(&p->gate);
    free(p->gone);
    free(p->row);
    free(p);
    return code;
}
