/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's log replayed: how much of each class is live after every event of one visit. */
#include "plots/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "results/rows.h"

enum { MOMENTS_MOST = 4000 };

/* What the witness holds beside the measured work makes no peak. */
static bool counts(const struct table *log, int64_t row) {
    return strcmp(table_text(log, row, "phase"), "witness") != 0;
}

/* Notes a class in seen (CLASSES_MOST); how many there are now. */
static int note_class(const char **seen, int n, const char *name) {
    for (int k = 0; k < n; k++)
        if (!strcmp(seen[k], name)) return n;
    if (n < CLASSES_MOST) seen[n++] = name;
    return n;
}

/* What the protocol asks for is a row that its first analysis `memory` speaks of. */
static bool asked_for(const struct tables *ts, int64_t visit) {
    const struct table *visits = tables_peek(ts, "visits"), *points = tables_peek(ts, "points");
    const int64_t number = declared_analysis(ts, "memory");
    if (number < 0) return true;
    const char *only_case = declared_key(ts, number, "case");
    for (int64_t i = 0; i < table_rows(visits); i++) {
        const int64_t point = table_int(visits, i, "point");
        if (table_int(visits, i, "visit") != visit || point < 0 || point >= table_rows(points))
            continue;
        return (!*only_case || !strcmp(only_case, table_text(points, point, "case"))) &&
               rows_match(ts, point, declared_key(ts, number, "where"));
    }
    return false;
}

/* The visit that has most kinds of memory to show, and of those the one whose live set climbs
 * highest; -1 if there is no event. Events of a visit stand together, in order. */
static int64_t telling_visit(const struct tables *ts, int64_t *first, int64_t *end) {
    const struct table *log = tables_peek(ts, "memory");
    const int64_t *visit = table_see_i64(log, "visit"), *bytes = table_see_i64(log, "bytes");
    int64_t rows = table_rows(log), best = -1;
    double highest = -1;
    int most = 0;
    for (int64_t i = 0; i < rows;) {
        double live = 0, peak = 0;
        int64_t from = i;
        const char *seen[CLASSES_MOST];
        int classes = 0;
        for (; i < rows && visit[i] == visit[from]; i++) {
            if (bytes[i] != I64_NONE) live += (double)bytes[i];
            if (!counts(log, i)) continue;
            peak = fmax(peak, live);
            classes = note_class(seen, classes, table_text(log, i, "class"));
        }
        if (classes < most || (classes == most && peak <= highest)) continue;
        if (asked_for(ts, visit[from])) {
            most = classes;
            highest = peak;
            best = visit[from];
            *first = from;
            *end = i;
        }
    }
    return best;
}

static int32_t class_of(struct timeline *v, const char *name) {
    for (int32_t c = 0; c < v->n_classes; c++)
        if (!strcmp(v->class[c], name)) return c;
    if (v->n_classes < CLASSES_MOST) {
        v->class[v->n_classes] = arena_text(v->arena, *name ? name : "other");
        return v->n_classes++;
    }
    return CLASSES_MOST - 1;
}

static void open_phase(struct timeline *v, const char *name, double ms) {
    struct timeline_phase *last = v->n_phases ? &v->phase[v->n_phases - 1] : NULL;
    if (last && !strcmp(last->name, name)) {
        last->to_ms = ms;
        return;
    }
    if (last) last->to_ms = ms;
    if (v->n_phases == (int32_t)(sizeof v->phase / sizeof *v->phase)) return;
    v->phase[v->n_phases++] = (struct timeline_phase){arena_text(v->arena, name), ms, ms};
}

/* Of many events that fall into one stretch of time only the state with the largest total is kept,
   so that no peak is lost to the width of a picture. */
static void read_events(const struct table *log, int64_t first, int64_t end, struct timeline *v) {
    const int64_t *t = table_see_i64(log, "t_ns"), *bytes = table_see_i64(log, "bytes");
    double live[CLASSES_MOST] = {0}, total = 0, kept_total = -1;
    int64_t bins = end - first < MOMENTS_MOST ? 0 : MOMENTS_MOST, bin = -1;
    double begin = (double)t[first], span = (double)t[end - 1] - begin;
    size_t most = (size_t)(bins ? bins + 2 : end - first + 1);
    v->ms = arena_alloc(v->arena, most * sizeof *v->ms);
    v->live = arena_alloc(v->arena, most * CLASSES_MOST * sizeof *v->live);
    for (int64_t i = first; i < end; i++) {
        int32_t c = class_of(v, table_text(log, i, "class"));
        double ms = ((double)t[i] - begin) / 1e6;
        if (bytes[i] != I64_NONE) live[c] += (double)bytes[i], total += (double)bytes[i];
        int64_t in = bins && span > 0 ? (int64_t)((double)(bins - 1) * (ms * 1e6 / span)) : i;
        bool fresh = !bins || in != bin;
        if (fresh || total >= kept_total) {
            if (fresh) v->n++;
            v->ms[v->n - 1] = ms;
            memcpy(v->live + (v->n - 1) * CLASSES_MOST, live, sizeof live);
            kept_total = total;
            bin = in;
        }
        if (total > v->peak && counts(log, i)) v->peak = total, v->peak_ms = ms;
        open_phase(v, table_text(log, i, "phase"), ms);
        v->end_ms = ms;
    }
}

int timeline_read(const struct tables *ts, struct timeline *v, struct err *err) {
    const struct table *log = tables_peek(ts, "memory"), *visits = tables_peek(ts, "visits");
    int64_t first = 0, end = 0;
    *v = (struct timeline){.arena = arena_create(), .row = ""};
    int64_t visit = telling_visit(ts, &first, &end);
    if (end <= first)
        return err_set(err, ERR_UNSUPPORTED, "no memory plot: no allocation was recorded");
    read_events(log, first, end, v);
    for (int64_t i = 0; i < table_rows(visits); i++)
        if (table_int(visits, i, "visit") == visit)
            v->row = arena_text(v->arena, table_text(tables_peek(ts, "points"),
                                                     table_int(visits, i, "point"), "label"));
    if (!(v->peak > 0))
        return err_set(err, ERR_UNSUPPORTED, "no memory plot: nothing was ever live");
    if (!(v->end_ms > 0)) v->end_ms = 1e-3; /* all at once: still a picture */
    return 0;
}

void timeline_free(struct timeline *v) {
    if (v->arena) arena_close(&v->arena);
}
