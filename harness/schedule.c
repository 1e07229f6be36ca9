/* SPDX-License-Identifier: Apache-2.0 */
/* Which point is visited when, and for how long. */
#include "harness/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"

enum { ROUNDS = 8, LEAST_ROUNDS = 5 };
#define LEAST_SHARE_NS 20000000
#define QUICK_NS       1500000000 /* of a visit under --quick, set-up included */

static bool is_once(const struct point *p) { return p->workload->flags & WORK_ONCE; }
static bool is_ceiling(const struct point *p) { return p->workload->flags & WORK_CEILING; }

int64_t schedule_rounds(const struct protocol *p) {
    if (p->measure.quick || p->measure.profile) return 1;
    bool timed = false;
    for (size_t i = 0; i < p->n_points; i++) timed = timed || !is_once(&p->points[i]);
    if (!timed) return 1;
    return p->measure.rounds ? p->measure.rounds : ROUNDS;
}

/* Points of one block share device and weights: changing them is dear and must not happen twice a
 * round. */
static uint64_t block_of(const struct point *p) {
    uint64_t key = p->weights_key;
    for (size_t i = 0; i < p->facts.n; i++) {
        const struct fact *f = &p->facts.items[i];
        if (strncmp(f->key, "device.", 7)) continue;
        for (const char *c = f->key; *c; c++) key = random_mix(key + (unsigned char)*c);
        for (const char *c = f->value; *c; c++) key = random_mix(key + (unsigned char)*c);
    }
    return key;
}

struct draw {
    int32_t point;
    bool ceiling;
    uint64_t block, beside,
        within; /* beside: those with one second model are a block in the block */
};

static int by_draw(const void *a, const void *b) {
    const struct draw *x = a, *y = b;
    if (x->ceiling != y->ceiling) return x->ceiling ? -1 : 1;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    if (x->beside != y->beside) return x->beside < y->beside ? -1 : 1;
    if (x->within != y->within) return x->within < y->within ? -1 : 1;
    return x->point - y->point;
}

struct scheduled *schedule_round(const struct protocol *p, int64_t round, int64_t *n) {
    uint64_t key = random_key((uint64_t)p->measure.seed, (uint64_t)round + 0x5c4ed);
    struct draw *draws = must_alloc((p->n_points + 1) * sizeof *draws);
    struct scheduled *visits = must_alloc((p->n_points + 1) * sizeof *visits);
    int32_t m = 0;
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        if (is_once(point) && round > 0) continue;
        draws[m].point = (int32_t)i;
        draws[m].ceiling = is_ceiling(point);
        draws[m].block = random_mix(key ^ block_of(point));
        draws[m].beside = random_mix(key ^ point->beside_key);
        draws[m].within = random_at(key, i);
        m++;
    }
    if (p->measure.order == ORDER_SHUFFLED) qsort(draws, (size_t)m, sizeof *draws, by_draw);
    int64_t first = -1, timed = 0;
    for (int32_t i = 0; i < m; i++) {
        const struct point *point = &p->points[draws[i].point];
        visits[i] = (struct scheduled){.visit = round * ((int64_t)p->n_points + 1) + i,
                                       .round = round,
                                       .position = i,
                                       .point = draws[i].point};
        if (is_once(point) || is_ceiling(point)) continue;
        if (first < 0) first = draws[i].point;
        timed++;
    }
    if (timed > 1 &&
        !p->measure
             .profile) { /* drift within the round shows as a difference between its two ends */
        visits[m] = (struct scheduled){.visit = round * ((int64_t)p->n_points + 1) + m,
                                       .round = round,
                                       .position = m,
                                       .point = first,
                                       .control = true};
        m++;
    }
    free(draws);
    *n = m;
    return visits;
}

void budget_begin(struct budget *b, const struct protocol *p) {
    *b = (struct budget){.budget_ns = p->measure.budget_ns,
                         .rounds = schedule_rounds(p),
                         .fixed_rounds = p->measure.rounds > 0};
    int64_t glance =
        (int64_t)(p->n_points + 1) * QUICK_NS; /* a first look is no place to spend a budget */
    if (p->measure.quick && glance < b->budget_ns) b->budget_ns = glance;
}

int64_t budget_share(const struct budget *b, int64_t visits_left) {
    int64_t setup = b->last_done ? b->last_setup_ns / b->last_done
                    : b->done    ? b->setup_ns / b->done
                                 : b->budget_ns / (2 * (visits_left + 1));
    int64_t left = b->budget_ns - b->elapsed_ns;
    int64_t share = (left > 0 ? left : 0) / (visits_left > 0 ? visits_left : 1) - setup;
    return share > LEAST_SHARE_NS ? share : LEAST_SHARE_NS;
}

void budget_spent(struct budget *b, int64_t visit_ns, int64_t sampled_ns) {
    b->elapsed_ns += visit_ns;
    b->setup_ns += visit_ns > sampled_ns ? visit_ns - sampled_ns : 0;
    b->done++;
}

bool budget_another(struct budget *b, int64_t rounds_done, int64_t round_ns) {
    int64_t left = b->budget_ns - b->elapsed_ns;
    /* The first round's set-up also makes what later ones only read (a prefilled context, plain
     * results): half of it is a guess at the second's, and no reason yet to plan fewer. */
    int64_t next_ns = rounds_done == 1 ? round_ns - b->setup_ns / 2 : round_ns;
    if (next_ns < round_ns / 2) next_ns = round_ns / 2; /* set-ups of what does not come again */
    b->last_done = b->done;
    b->last_setup_ns = b->setup_ns;
    b->done = b->setup_ns = 0;
    if (rounds_done >= b->rounds) return false;
    if (next_ns > left) {
        snprintf(
            b->note, sizeof b->note,
            "budget: %" PRId64 " of %" PRId64 " rounds; the last took %.1f s, %.1f s were left",
            rounds_done, b->rounds, (double)round_ns * 1e-9, (double)(left > 0 ? left : 0) * 1e-9);
        return false;
    }
    int64_t fits = rounds_done + left / (next_ns > 0 ? next_ns : 1);
    if (!b->fixed_rounds && rounds_done > 1 && fits < b->rounds)
        b->rounds = fits > LEAST_ROUNDS ? fits : LEAST_ROUNDS;
    return true;
}
