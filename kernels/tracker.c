/* SPDX-License-Identifier: Apache-2.0 */
/* The account of device memory: a log of events, the live set by address, and its peak. */
#include "kernels/tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"

const char *const memory_class_names[N_CLASSES + 1] = {
    [MEM_WEIGHT] = "weight",         [MEM_SCALE] = "scale",   [MEM_KV] = "kv",
    [MEM_ACTIVATION] = "activation", [MEM_LOGITS] = "logits", [MEM_WORKSPACE] = "workspace",
    [MEM_STATE] = "state",           [MEM_OTHER] = "other",
};

struct live { /* one allocation; address NULL: free slot */
    const void *address;
    struct memory_event event; /* as it was logged */
    int64_t order;             /* of allocation, so that a new account lists them as they came */
};

struct tracker {
    struct memory_event *log;
    size_t n_log, cap_log;
    struct live
        *table; /* open addressing, linear probing; cap is a power of two, at most half full */
    size_t n_live, cap;
    int64_t total, by_class[N_CLASSES];
    int64_t peak, peak_by_class[N_CLASSES];
    char peak_site[sizeof((struct memory_event *)0)->site];
    int peak_phase, phase;
    bool aside;
    int64_t count, order;
};

struct tracker *tracker_create(void) {
    struct tracker *t = must_alloc(sizeof *t);
    t->cap = 64;
    t->table = must_alloc(t->cap * sizeof *t->table);
    t->phase = t->peak_phase = -1;
    return t;
}

void tracker_close(struct tracker **t) {
    if (!*t) return;
    free((*t)->log);
    free((*t)->table);
    free(*t);
    *t = NULL;
}

static size_t home_of(const struct tracker *t, const void *address) {
    return (size_t)(((uintptr_t)address >> 4) * (uintptr_t)0x9e3779b97f4a7c15u >> 20) &
           (t->cap - 1);
}

/* The slot that holds the address, or the free one where it would go. */
static size_t slot_of(const struct tracker *t, const void *address) {
    size_t i = home_of(t, address);
    while (t->table[i].address && t->table[i].address != address) i = (i + 1) & (t->cap - 1);
    return i;
}

static void grow(struct tracker *t) {
    struct live *old = t->table;
    size_t n = t->cap;
    t->cap *= 2;
    t->table = must_alloc(t->cap * sizeof *t->table);
    for (size_t i = 0; i < n; i++)
        if (old[i].address) t->table[slot_of(t, old[i].address)] = old[i];
    free(old);
}

static void append(struct tracker *t, const struct memory_event *event) {
    if (t->n_log == t->cap_log) {
        t->cap_log = t->cap_log ? t->cap_log * 2 : 64;
        t->log = must_realloc(t->log, t->cap_log * sizeof *t->log);
    }
    t->log[t->n_log++] = *event;
}

static void new_peak(struct tracker *t, const char *site, int phase) {
    t->peak = t->total;
    memcpy(t->peak_by_class, t->by_class, sizeof t->peak_by_class);
    memcpy(t->peak_site, site, strlen(site) + 1);
    t->peak_phase = phase;
}

void tracker_add(struct tracker *t, const void *address, size_t bytes, enum memory_class class_of,
                 const char *site) {
    if (!address) return;
    tracker_remove(t, address); /* the same address twice: its release went unseen */
    struct memory_event event = {.t_ns = clock_ns(),
                                 .bytes = (int64_t)bytes,
                                 .class_of = (int32_t)class_of,
                                 .phase = t->aside ? TRACKER_ASIDE : t->phase};
    strncpy(event.site, site ? site : "", sizeof event.site - 1);
    if (2 * (t->n_live + 1) > t->cap) grow(t);
    t->table[slot_of(t, address)] = (struct live){address, event, t->order++};
    t->n_live++;
    append(t, &event);
    t->count++;
    t->total += event.bytes;
    t->by_class[class_of] += event.bytes;
    if (t->total > t->peak && !t->aside) new_peak(t, event.site, t->phase);
}

size_t tracker_remove(struct tracker *t, const void *address) {
    size_t i = slot_of(t, address), mask = t->cap - 1;
    if (!address || !t->table[i].address) return 0;
    struct memory_event event = t->table[i].event;
    t->total -= event.bytes;
    t->by_class[event.class_of] -= event.bytes;
    event.bytes = -event.bytes;
    event.t_ns = clock_ns();
    event.phase = t->aside ? TRACKER_ASIDE : t->phase;
    append(t, &event);
    t->n_live--;
    /* Closes the gap: whoever probed past this slot moves back. */
    for (size_t j = (i + 1) & mask; t->table[j].address; j = (j + 1) & mask) {
        if (((j - home_of(t, t->table[j].address)) & mask) < ((j - i) & mask)) continue;
        t->table[i] = t->table[j];
        i = j;
    }
    t->table[i].address = NULL;
    return (size_t)-event.bytes;
}

void tracker_phase(struct tracker *t, int phase) { t->phase = phase; }

void tracker_aside(struct tracker *t, bool aside) { t->aside = aside; }

static int by_order(const void *a, const void *b) {
    int64_t x = (*(struct live *const *)a)->order, y = (*(struct live *const *)b)->order;
    return x < y ? -1 : x > y;
}

void tracker_reset(struct tracker *t) {
    struct live **live = must_alloc((t->n_live + 1) * sizeof *live);
    size_t n = 0;
    for (size_t i = 0; i < t->cap; i++)
        if (t->table[i].address) live[n++] = &t->table[i];
    qsort(live, n, sizeof *live, by_order);
    t->n_log = 0;
    t->count = 0;
    int64_t now = clock_ns();
    for (size_t i = 0; i < n; i++) {
        live[i]->event.t_ns = now;
        live[i]->event.phase = -1; /* before any phase of this account */
        append(t, &live[i]->event);
    }
    new_peak(t, n ? live[n - 1]->event.site : "", -1);
    free(live);
}

int64_t tracker_live(const struct tracker *t, int class_of) {
    return class_of < 0 ? t->total : t->by_class[class_of];
}

int64_t tracker_peak(const struct tracker *t, int64_t *by_class, const char **site, int *phase) {
    if (by_class) memcpy(by_class, t->peak_by_class, sizeof t->peak_by_class);
    if (site) *site = t->peak_site;
    if (phase) *phase = t->peak_phase;
    return t->peak;
}

int64_t tracker_count(const struct tracker *t) { return t->count; }

size_t tracker_live_count(const struct tracker *t) { return t->n_live; }

const struct memory_event *tracker_log(const struct tracker *t, size_t *n) {
    *n = t->n_log;
    return t->log;
}
