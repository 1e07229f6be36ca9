/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: slots, a queue in order of arrival, and blocks that are counted. */
#include "workloads/common/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

const char *const policy_words[] = {"static", "continuous", NULL};
const char *const prefill_words[] = {"together", "apart", NULL};

struct place {       /* a slot */
    int32_t request; /* NEVER: free */
    int32_t fed;     /* tokens of its text that are resident */
    int32_t goal;    /* tokens of its text when it was admitted: it reads until they are resident */
    int32_t blocks;  /* held */
};
struct scheduler {
    const struct request *trace;
    int32_t n;
    struct scheduler_spec spec;
    struct served *served;    /* (n) */
    struct place *places;     /* (slots) */
    struct run_of_rows *runs; /* (slots) of the present step */
    int32_t *by_age;          /* (active) their slots, in order of admission */
    int32_t *waiting;         /* (slots) that lost their place; all are older than `next` */
    int32_t n_runs, n_waiting, next, active;
    int32_t top; /* no slot from here on is taken */
    int64_t free_blocks;
    struct schedule_sums sums;
};

static int32_t blocks_of(const struct scheduler *s, int64_t tokens) {
    return (int32_t)((tokens + s->spec.block - 1) / s->spec.block);
}

static bool bounded(const struct scheduler *s) { return s->spec.pool > 0; }

struct scheduler *scheduler_create(const struct request *trace, int32_t n,
                                   const struct scheduler_spec *spec) {
    struct scheduler *s = must_alloc(sizeof *s);
    s->trace = trace;
    s->n = n;
    s->spec = *spec;
    if (s->spec.slots > n) s->spec.slots = n ? n : 1; /* more are never taken */
    /* A static group that reads and writes together begins together. */
    if (s->spec.prefill_batch <= 0 || s->spec.prefill_batch > s->spec.slots ||
        (spec->policy == POLICY_STATIC && spec->prefill == PREFILL_TOGETHER))
        s->spec.prefill_batch = s->spec.slots;
    s->served = must_alloc(sizeof *s->served * ((size_t)n + 1));
    s->places = must_alloc(sizeof *s->places * (size_t)s->spec.slots);
    s->runs = must_alloc(sizeof *s->runs * (size_t)s->spec.slots);
    s->by_age = must_alloc(sizeof *s->by_age * (size_t)s->spec.slots);
    s->waiting = must_alloc(sizeof *s->waiting * (size_t)s->spec.slots);
    scheduler_restart(s);
    return s;
}

void scheduler_close(struct scheduler **out) {
    struct scheduler *s = *out;
    if (!s) return;
    free(s->served);
    free(s->places);
    free(s->runs);
    free(s->by_age);
    free(s->waiting);
    free(s);
    *out = NULL;
}

void scheduler_restart(struct scheduler *s) {
    for (int32_t i = 0; i < s->n; i++)
        s->served[i] =
            (struct served){.admitted = NEVER, .first = NEVER, .last = NEVER, .returned = NEVER};
    for (int32_t i = 0; i < s->spec.slots; i++) s->places[i] = (struct place){.request = NEVER};
    s->n_runs = s->n_waiting = s->next = s->active = s->top = 0;
    s->free_blocks = bounded(s) ? s->spec.pool : INT64_MAX;
    s->sums = (struct schedule_sums){0};
}

const struct served *scheduler_served(const struct scheduler *s) { return s->served; }
const struct schedule_sums *scheduler_sums(const struct scheduler *s) { return &s->sums; }

int32_t scheduler_in_slot(const struct scheduler *s, int32_t slot) {
    return slot < s->top ? s->places[slot].request : NEVER;
}

/* ---- places and blocks */

static void hold(struct scheduler *s, struct place *p, int32_t blocks) {
    if (bounded(s)) s->free_blocks -= blocks - p->blocks;
    p->blocks = blocks;
}

static void leave(struct scheduler *s, struct place *p) {
    const int32_t slot = (int32_t)(p - s->places);
    int32_t i = --s->active, last = s->by_age[i];
    while (last != slot) { /* the youngest is found at once */
        const int32_t before = s->by_age[--i];
        s->by_age[i] = last;
        last = before;
    }
    hold(s, p, 0);
    p->request = NEVER;
    while (s->top && s->places[s->top - 1].request == NEVER) s->top--;
}

/* There is one: the lowest. */
static struct place *free_place(struct scheduler *s) {
    int32_t i = s->active == s->top ? s->top : 0;
    while (i < s->top && s->places[i].request != NEVER) i++;
    if (i == s->top) s->top++;
    return &s->places[i];
}

/* Tokens of its text that a request has: those it feeds when it begins, or begins again. */
static int32_t text_of(const struct scheduler *s, int32_t request) {
    return s->trace[request].prompt + s->served[request].tokens;
}

static void admit(struct scheduler *s, int32_t request, int32_t blocks, int64_t now) {
    struct place *p = free_place(s);
    *p = (struct place){.request = request, .goal = text_of(s, request)};
    hold(s, p, blocks);
    s->by_age[s->active++] = (int32_t)(p - s->places);
    if (s->served[request].admitted == NEVER) s->served[request].admitted = now;
}

static bool reads(const struct place *p) { return p->fed < p->goal; }

/* Those that still read their prompts. */
static int32_t readers(const struct scheduler *s) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->top; i++) n += s->places[i].request != NEVER && reads(&s->places[i]);
    return n;
}

static bool finished(const struct scheduler *s, int32_t request) {
    return s->served[request].tokens == s->trace[request].output;
}

/* Those longer than the whole pool are refused when their turn comes. */
static void refuse(struct scheduler *s) {
    while (bounded(s) && s->next < s->n &&
           blocks_of(s, request_most(&s->trace[s->next])) > s->spec.pool) {
        s->served[s->next++].refused = true;
        s->sums.refused++;
    }
}

/* The request that waits longest, or NEVER; *arrival: when the next one comes. */
static int32_t first_waiting(struct scheduler *s, int64_t now, int64_t *arrival) {
    int32_t first = NEVER;
    for (int32_t i = 0; i < s->n_waiting; i++)
        if (first == NEVER || s->waiting[i] < first) first = s->waiting[i];
    if (first != NEVER) return first;
    refuse(s);
    if (s->next == s->n) return NEVER;
    *arrival = s->trace[s->next].arrival;
    return *arrival <= now ? s->next : NEVER;
}

static void take_from_queue(struct scheduler *s, int32_t request) {
    if (request == s->next) {
        s->next++;
        return;
    }
    for (int32_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i] == request) s->waiting[i] = s->waiting[--s->n_waiting];
}

/* ---- static groups */

/* The next group takes its places, or *until says when its last member arrives. */
static bool take_group(struct scheduler *s, int64_t now, int64_t *until) {
    int32_t prompt = 0, output = 0, most = 0, n = 0;
    refuse(s);
    for (int32_t i = s->next; i < s->n && n < s->spec.slots; i++) {
        const struct request *r = &s->trace[i];
        /* Padding is resident too: room for the longest prompt and the longest output. */
        if (r->prompt > prompt) prompt = r->prompt;
        if (r->output > output) output = r->output;
        const int32_t need = blocks_of(s, (int64_t)prompt + output - 1);
        if (bounded(s) && n && (int64_t)need * (n + 1) > s->spec.pool) break;
        most = need;
        n++;
    }
    if (!n) return false;
    const int64_t last = s->trace[s->next + n - 1].arrival;
    if (last > now) {
        *until = last;
        return false;
    }
    while (n--) admit(s, s->next++, most, now);
    return true;
}

static bool group_ended(const struct scheduler *s) {
    for (int32_t i = 0; i < s->top; i++)
        if (s->places[i].request != NEVER && !finished(s, s->places[i].request)) return false;
    return true;
}

/* ---- continuous */

/* Whoever came last loses its place until `need` blocks are free, the asking one included. */
static bool make_room(struct scheduler *s, const struct place *asking, int64_t need) {
    while (s->free_blocks < need) {
        struct place *youngest = &s->places[s->by_age[s->active - 1]];
        const bool itself = youngest == asking;
        s->served[youngest->request].preempted++;
        s->sums.preempted++;
        s->waiting[s->n_waiting++] = youngest->request;
        leave(s, youngest);
        if (itself) return false;
    }
    return true;
}

/* Room for the token that each of those in flight feeds next, the oldest first. */
static bool grow(struct scheduler *s) {
    const int64_t before = s->sums.preempted;
    for (int32_t i = 0; i < s->active; i++) {
        struct place *p = &s->places[s->by_age[i]];
        const int32_t need = blocks_of(s, reads(p) ? p->goal : p->fed + 1);
        if (need > p->blocks && make_room(s, p, need - p->blocks)) hold(s, p, need);
    }
    return s->sums.preempted > before;
}

static void admit_waiting(struct scheduler *s, int64_t now, int64_t *until) {
    /* Whoever reads in pieces goes on before another begins. */
    for (int32_t n = readers(s); n < s->spec.prefill_batch && s->active < s->spec.slots; n++) {
        const int32_t r = first_waiting(s, now, until);
        if (r == NEVER) return;
        const int32_t need = blocks_of(s, text_of(s, r));
        if (need > s->free_blocks) return;
        take_from_queue(s, r);
        admit(s, r, need, now);
    }
}

/* ---- a step */

static void add_run(struct scheduler *s, int32_t slot, struct batch *b) {
    struct place *p = &s->places[slot];
    const bool padding = finished(s, p->request);
    struct run_of_rows *run = &s->runs[b->n++];
    *run = (struct run_of_rows){.request = p->request,
                                .slot = slot,
                                .begin = p->fed,
                                .rows = reads(p) ? p->goal - p->fed : 1,
                                .padding = padding};
    if (s->spec.chunk > 0 && run->rows > s->spec.chunk) {
        run->rows = s->spec.chunk;
        run->partial = true;
    }
    b->rows += run->rows;
    b->reading += reads(p);
    if (run->rows > b->most_rows) b->most_rows = run->rows;
}

/* Apart: prompts alone while there are any; of a static group in batches. */
static void fill_batch(struct scheduler *s, struct batch *b) {
    *b = (struct batch){.runs = s->runs};
    const bool only_reading = s->spec.prefill == PREFILL_APART && readers(s);
    for (int32_t i = 0; i < s->top; i++) {
        const struct place *p = &s->places[i];
        if (p->request == NEVER || (only_reading && !reads(p))) continue;
        if (reads(p) && b->reading == s->spec.prefill_batch) continue;
        add_run(s, i, b);
    }
    s->n_runs = b->n;
}

static void count_idle(struct scheduler *s, int64_t now) {
    int64_t arrival;
    if (s->active == s->spec.slots || first_waiting(s, now, &arrival) == NEVER) return;
    s->sums.idle_slots += s->spec.slots - s->active;
    s->sums.idle_steps++;
}

static void count_step(struct scheduler *s, const struct batch *b, int64_t now) {
    struct schedule_sums *sums = &s->sums;
    sums->steps++;
    sums->reading_steps += b->reading > 0;
    sums->runs += b->n;
    sums->rows += b->rows;
    sums->padded_rows += (int64_t)b->n * b->most_rows;
    if (s->active > sums->most_runs) sums->most_runs = s->active;
    for (int32_t i = 0; i < b->n; i++) {
        const struct run_of_rows *run = &b->runs[i];
        const int64_t end = run->begin + run->rows;
        if (run->padding)
            sums->padding += run->rows;
        else
            sums->pairs +=
                end * (end + 1) / 2 - (int64_t)run->begin * (run->begin + (int64_t)1) / 2;
    }
    count_idle(s, now);
}

enum act scheduler_next(struct scheduler *s, int64_t now, struct batch *b, int64_t *until) {
    int64_t when = NEVER;
    if (s->spec.policy == POLICY_STATIC) {
        if (!s->active) take_group(s, now, &when);
    } else if (!bounded(s) || !grow(s)) {
        admit_waiting(s, now, &when);
    }
    if (!s->active) {
        /* Nobody is in flight: all blocks are free, so whoever waits was admitted. */
        if (when == NEVER) return ACT_END;
        *until = when;
        return ACT_WAIT;
    }
    fill_batch(s, b);
    count_step(s, b, now);
    return ACT_RUN;
}

static void count_resident(struct scheduler *s) {
    int64_t blocks = 0;
    for (int32_t i = 0; i < s->top; i++) {
        const struct place *p = &s->places[i];
        if (p->request == NEVER) continue;
        const int32_t fit = blocks_of(s, p->fed);
        s->sums.tokens += p->fed;
        blocks += p->blocks > fit ? p->blocks : fit;
    }
    s->sums.blocks += blocks;
    if (blocks > s->sums.most_blocks) s->sums.most_blocks = blocks;
}

static void give_back(struct scheduler *s, struct place *p, int64_t now) {
    s->served[p->request].returned = now;
    leave(s, p);
}

void scheduler_done(struct scheduler *s, int64_t now) {
    for (int32_t i = 0; i < s->n_runs; i++) {
        const struct run_of_rows *run = &s->runs[i];
        struct served *r = &s->served[run->request];
        s->places[run->slot].fed = run->begin + run->rows;
        if (run->padding || run->partial) continue;
        if (!r->tokens++)
            r->first = now;
        else if (now - r->last > r->longest)
            r->longest = now - r->last;
        r->last = now;
    }
    count_resident(s);
    const bool each = s->spec.policy == POLICY_CONTINUOUS, all = !each && group_ended(s);
    for (int32_t i = 0; i < s->top; i++) {
        struct place *p = &s->places[i];
        if (p->request != NEVER && (all || (each && finished(s, p->request)))) give_back(s, p, now);
    }
}
