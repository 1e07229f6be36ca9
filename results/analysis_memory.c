/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's log replayed: the peak, its moment and who is alive then (seed E61, rule R13). */
#include "results/analysis.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/rows.h"

enum { NAMES_MOST = 512, NAMED = 4, ROWS_KEPT = 20000 };

struct memory_params {
    const char *where;
};
struct live { /* bytes by name: class or site */
    int n;
    const char *name[NAMES_MOST];
    double bytes[NAMES_MOST];
};
struct replay {
    double total, peak, sum; /* sum: of all allocations, one after the other */
    int64_t at, allocations; /* at: row of the log */
    struct live classes, sites, at_peak, sites_at_peak;
};

/* What finds no room counts as the last name, so that sums hold. */
static void add(struct live *l, const char *name, double bytes) {
    int k = 0;
    while (k < l->n && strcmp(l->name[k], name)) k++;
    if (k == NAMES_MOST) l->name[--k] = "others";
    if (k == l->n) l->name[l->n++] = name;
    l->bytes[k] += bytes;
}

/* A peak is reached by an allocation; what the witness holds beside the measured work makes none.
 */
static void replay(const struct table *log, int64_t first, int64_t end, struct replay *r) {
    for (int64_t i = first; i < end; i++) {
        const int64_t change = table_int(log, i, "bytes");
        if (change == I64_NONE) continue;
        const char *site = table_text(log, i, "site");
        r->total += (double)change;
        add(&r->classes, table_text(log, i, "class"), (double)change);
        add(&r->sites, *site ? site : "(no name)", (double)change);
        if (change <= 0 || !strcmp(table_text(log, i, "phase"), "witness")) continue;
        r->sum += (double)change;
        r->allocations++;
        if (r->total <= r->peak) continue;
        r->peak = r->total;
        r->at = i;
        r->at_peak = r->classes;
        r->sites_at_peak = r->sites;
    }
}

/* The largest ones: "weight 27.1 MB, kv 1.2 MB". */
static void largest(const struct live *l, struct text *t) {
    bool taken[NAMES_MOST] = {false};
    for (int k = 0; k < NAMED; k++) {
        int best = -1;
        char size[40];
        for (int i = 0; i < l->n; i++)
            if (!taken[i] && l->bytes[i] > 0 && (best < 0 || l->bytes[i] > l->bytes[best]))
                best = i;
        if (best < 0) break;
        taken[best] = true;
        text_printf(t, "%s%.40s %s", k ? ", " : "", l->name[best],
                    format_bytes_si(size, sizeof size, l->bytes[best]));
    }
}

static void write_row(struct tables *ts, const char *only_case, int64_t point, int64_t first,
                      int64_t end) {
    const struct table *log = tables_peek(ts, "memory"), *points = tables_peek(ts, "points");
    struct replay r = {.at = -1};
    struct text name = {0}, alive = {0};
    char unit[40];
    const char *label = table_text(points, point, "label");
    replay(log, first, end, &r);
    const double allocator = table_real(points, point, "peak_bytes");
    const bool cut = end - first >= ROWS_KEPT, equal = fabs(r.peak - allocator) < 0.5;
    const double ms =
        r.at < 0 ? 0 : (double)(table_int(log, r.at, "t_ns") - table_int(log, first, "t_ns")) / 1e6;
    text_printf(&name, "%s%speak", label, *label ? ": " : "");
    struct finding f = {"memory", only_case, name.data, r.peak, NAN, NAN, "byte", NULL};
    if (!cut && isfinite(allocator)) f.verdict = equal ? "ok" : "failed";
    largest(&r.at_peak, &alive);
    text_puts(&alive, "; largest: ");
    largest(&r.sites_at_peak, &alive);
    analysis_found(ts, &f, "%s; at %.2f ms in %s; alive: %s",
                   cut                    ? "not judged: the log was cut"
                   : !isfinite(allocator) ? "not judged: the allocator's peak was not kept"
                   : equal                ? "replayed, the log gives the allocator's peak"
                                          : "the log does not give the allocator's peak",
                   ms, r.at < 0 ? "no phase" : table_text(log, r.at, "phase"), alive.data);
    name.len = 0;
    text_printf(&name, "%s%sall allocations", label, *label ? ": " : "");
    f = (struct finding){"memory", only_case, name.data, r.sum, NAN, NAN, "byte", NULL};
    analysis_found(ts, &f, "%" PRId64 " of them, %.2f times the peak of %s%s", r.allocations,
                   r.peak > 0 ? r.sum / r.peak : 0, format_bytes_si(unit, sizeof unit, r.peak),
                   r.sum > r.peak ? ": a sum is no peak" : "");
    text_free(&name);
    text_free(&alive);
}

/* The first stretch of the log that is a visit's of that point: events of a visit stand together.
 */
static bool stretch_of(const struct tables *ts, int64_t point, int64_t *first, int64_t *end) {
    const struct table *log = tables_peek(ts, "memory"), *visits = tables_peek(ts, "visits");
    const int64_t *visit = table_see_i64(log, "visit"), rows = table_rows(log);
    for (int64_t v = 0; v < table_rows(visits); v++) {
        if (table_int(visits, v, "point") != point) continue;
        const int64_t id = table_int(visits, v, "visit");
        for (*first = 0; *first < rows && visit[*first] != id;) ++*first;
        for (*end = *first; *end < rows && visit[*end] == id;) ++*end;
        if (*end > *first) return true;
    }
    return false;
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct memory_params *p = params;
    const struct table *points = tables_peek(ts, "points");
    int64_t found = 0, first, end;
    (void)err;
    for (int64_t point = 0; point < table_rows(points); point++) {
        if (!rows_usable(ts, point) || !rows_match(ts, point, p->where)) continue;
        if (*only_case && strcmp(only_case, table_text(points, point, "case"))) continue;
        if (!stretch_of(ts, point, &first, &end)) continue;
        write_row(ts, only_case, point, first, end);
        found++;
    }
    if (!found) {
        const struct finding f = {"memory", only_case, "timeline", NAN, NAN, NAN, "", NULL};
        analysis_found(ts, &f, "not computed: no row has a log of allocations");
    }
    return 0;
}

static const struct option options[] = {
    {"where", NULL, OPT_TEXT, 0, offsetof(struct memory_params, where), "", 0, 0, NULL, "",
     "only rows that meet this condition"},
    {0},
};

const struct analysis analysis_memory = {
    .name = "memory",
    .brief = "the allocator's log replayed: the peak to the byte, and who is alive at it",
    .params = options,
    .params_size = sizeof(struct memory_params),
    .run = run,
};
