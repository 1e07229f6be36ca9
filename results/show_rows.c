/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows: swept keys, times, rates, shares of the ceilings, witness; one grid for each
 * case and workload. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/rows.h"
#include "results/show.h"
#include "results/show_parts.h"
#include "results/summary.h"

enum priority {
    PRIORITY_KEY = 100,
    PRIORITY_STATE = 95,
    PRIORITY_TIME = 90,
    PRIORITY_RATE = 85,
    PRIORITY_VALUE_ALONE = 80, /* of rows that have no time */
    PRIORITY_PART = 76,
    PRIORITY_MBU = 74,
    PRIORITY_WITNESS = 72,
    PRIORITY_BOUND = 70,
    PRIORITY_MFU = 68,
    PRIORITY_GAIN = 66,
    PRIORITY_LATENCY = 65,
    PRIORITY_PHASE = 60,
    PRIORITY_TOKEN = 58,
    PRIORITY_BOUND_ALL = 54, /* the same in every row */
    CONSTANT_LESS = 25,      /* a number that is the same in every row */
    PRIORITY_VALUE = 50,     /* and falling with the order of declaration */
};
#define SMALL_SHARE 0.02
#define THEORY      " \xc2\xb7 theory: from formulas, nothing was measured"
enum { TIMED_MOST = 4 }; /* phases that are shown with their times, more of them by their shares */

struct group {
    const struct tables *ts;
    const struct table *points, *summary;
    const char *only_case, *workload;
    int64_t *point; /* (rows) */
    int64_t rows;
    struct grid *grid;
    struct arena *arena;
};

static double part(const struct group *g, int64_t row, const char *name) {
    return row < 0 ? (double)NAN : table_real(g->summary, row, name);
}

/* ---- keys */

/* Byte and ns columns in their nearest units; anything else as it is. */
static const char *key_cell(const struct group *g, int64_t point, size_t column) {
    const struct column *c = table_column_at(g->points, column);
    double v = table_real(g->points, point, c->name);
    char buf[64] = "";
    struct text t = {0};
    if (!isnan(v) && !strcmp(c->unit, "byte"))
        text_puts(&t, format_bytes_iec(buf, sizeof buf, v));
    else if (!isnan(v) && !strcmp(c->unit, "ns"))
        text_puts(&t, format_time(buf, sizeof buf, v));
    else
        table_cell(g->points, point, column, &t);
    const char *cell = arena_text(g->arena, t.data ? t.data : "");
    text_free(&t);
    return cell;
}

/* How many columns of keys tell rows apart; *numeric: the only one is a number. */
static int add_keys(struct group *g, bool *numeric) {
    int varying = 0;
    *numeric = false;
    for (size_t k = 0; k < table_columns(g->points); k++) {
        const struct column *def = table_column_at(g->points, k);
        if (!rows_swept(g->ts, k)) continue;
        const char *first = key_cell(g, g->point[0], k);
        bool differs = false, any = *first;
        for (int64_t r = 1; r < g->rows && !differs; r++) {
            const char *cell = key_cell(g, g->point[r], k);
            differs = strcmp(first, cell) != 0;
            any = any || *cell;
        }
        if (!any || (!differs && g->rows > 1)) continue;
        struct grid_column *c =
            grid_add(g->grid, rows_short(def->name), PRIORITY_KEY, def->type == COL_TEXT);
        for (int64_t r = 0; c && r < g->rows; r++) {
            c->cell[r] = key_cell(g, g->point[r], k);
            if (!*c->cell[r]) c->cell[r] = "-";
        }
        *numeric = def->type != COL_TEXT;
        varying++;
    }
    if (!varying) {
        struct grid_column *c = grid_add(g->grid, "row", PRIORITY_KEY, true);
        for (int64_t r = 0; r < g->rows; r++) {
            const char *label = table_text(g->points, g->point[r], "label");
            c->cell[r] = *label ? label : g->workload;
        }
    }
    if (varying != 1) *numeric = false;
    return varying;
}

/* ---- numbers */

struct scale {
    const char *unit;
    double factor;
};

/* One unit for a column, by its smallest value, so that no cell needs more than a few digits. */
static struct scale scale_of(const char *unit, double smallest) {
    static const struct {
        const char *unit, *shown;
        double least, factor;
    } scales[] = {
        {"ms", "s", 1e4, 1e-3},           {"ms", "ms", 0.1, 1},
        {"ms", "\xc2\xb5s", 1e-4, 1e3},   {"ms", "ns", 0, 1e6},
        {"byte/s", "GB/s", 1e8, 1e-9},    {"byte/s", "MB/s", 1e5, 1e-6},
        {"FLOP/s", "GFLOP/s", 1e8, 1e-9}, {"FLOP/s", "MFLOP/s", 1e5, 1e-6},
    };
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (!strcmp(scales[i].unit, unit) && smallest >= scales[i].least)
            return (struct scale){scales[i].shown, scales[i].factor};
    return (struct scale){unit, 1};
}

static const char *number_cell(const struct group *g, const char *unit, double v, bool exact) {
    char buf[64];
    if (!isfinite(v)) return "-";
    if (exact && floor(v) == v && fabs(v) < 1e15)
        return arena_text(g->arena, format_thousands(buf, sizeof buf, (int64_t)v));
    if (!strcmp(unit, "byte")) return arena_text(g->arena, format_bytes_iec(buf, sizeof buf, v));
    return arena_text(g->arena, format_number(buf, sizeof buf, v, 4));
}

/* A column of one metric; false if no row has it. name: what the head says before the unit. */
static bool add_metric(struct group *g, const char *metric, const char *name, int priority,
                       bool interval) {
    double smallest = INFINITY, largest = 0;
    int64_t some = -1;
    bool exact = rows_exact(g->ts, metric); /* and whole: shown to the last digit */
    for (int64_t r = 0; r < g->rows; r++) {
        int64_t row = summary_row(g->ts, g->point[r], metric);
        double v = part(g, row, "mean");
        if (isnan(v)) continue;
        exact = exact && floor(v) == v;
        some = row;
        smallest = fmin(smallest, fabs(v));
        largest = fmax(largest, fabs(v));
    }
    if (some < 0) return false;
    if (largest <= 0 && g->rows > 1 && priority <= PRIORITY_VALUE_ALONE)
        return true; /* zeros say nothing here */
    if (largest <= smallest && g->rows > 1 && priority <= PRIORITY_VALUE_ALONE)
        priority -= CONSTANT_LESS;
    const char *unit = table_text(g->summary, some, "unit");
    struct scale scale = exact ? (struct scale){unit, 1} : scale_of(unit, smallest);
    bool bare = !exact && !strcmp(unit, "byte"); /* the unit stands in the cells */
    bool said = strlen(scale.unit) > 2 && strstr(name, scale.unit); /* "kv_bytes byte" */
    const char *head = *name && *scale.unit && strcmp(scale.unit, "1") && !bare && !said
                           ? arena_printf(g->arena, "%s %s", name, scale.unit)
                       : *name ? arena_text(g->arena, name)
                               : arena_text(g->arena, scale.unit);
    struct grid_column *c = grid_add(g->grid, head, priority, false);
    for (int64_t r = 0; c && r < g->rows; r++) {
        int64_t row = summary_row(g->ts, g->point[r], metric);
        double mean = part(g, row, "mean") * scale.factor;
        double half = (part(g, row, "ci_hi") - part(g, row, "ci_lo")) / 2 * scale.factor;
        char buf[64];
        if (interval && isfinite(mean) && isfinite(half))
            c->cell[r] = arena_text(g->arena, format_interval(buf, sizeof buf, mean, half));
        else
            c->cell[r] = number_cell(g, unit, mean, exact);
    }
    return true;
}

/* Times a number against the first row that has one. */
static void add_ratio(struct group *g, const char *metric, const char *head, int priority) {
    double base = (double)NAN;
    int64_t have = 0;
    for (int64_t r = 0; r < g->rows; r++) {
        double v = part(g, summary_row(g->ts, g->point[r], metric), "mean");
        if (v > 0 && isnan(base)) base = v;
        have += v > 0;
    }
    if (have < 2) return;
    struct grid_column *c = grid_add(g->grid, head, priority, false);
    for (int64_t r = 0; c && r < g->rows; r++) {
        double v = part(g, summary_row(g->ts, g->point[r], metric), "mean") / base;
        c->cell[r] = isfinite(v)
                         ? arena_printf(g->arena, v < 1000 ? "%.*f" : "%.*e", v < 9.95 ? 2 : 1, v)
                         : "-";
    }
}

static void add_share(struct group *g, const char *metric, const char *head, int priority) {
    bool any = false;
    for (int64_t r = 0; r < g->rows && !any; r++)
        any = isfinite(part(g, summary_row(g->ts, g->point[r], metric), "mean"));
    struct grid_column *c = any ? grid_add(g->grid, head, priority, false) : NULL;
    for (int64_t r = 0; c && r < g->rows; r++) {
        double v = 100 * part(g, summary_row(g->ts, g->point[r], metric), "mean");
        c->cell[r] = isfinite(v) ? arena_printf(g->arena, "%.*f %%", v < 9.95 ? 1 : 0, v) : "-";
    }
}

/* A text column of points; only if it says something else than `dull` somewhere. */
static void add_word(struct group *g, const char *column, const char *head, const char *dull,
                     int priority) {
    bool any = false, same = g->rows > 1;
    const char *first = table_text(g->points, g->point[0], column);
    for (int64_t r = 0; r < g->rows; r++) {
        const char *word = table_text(g->points, g->point[r], column);
        any = any || (*word && strcmp(word, dull));
        same = same && (!*word || !strcmp(word, first)); /* a skipped row has none */
    }
    if (same && priority == PRIORITY_BOUND) priority = PRIORITY_BOUND_ALL;
    struct grid_column *c = any ? grid_add(g->grid, head, priority, true) : NULL;
    if (c && !strcmp(column, "state")) c->warns = true;
    for (int64_t r = 0; c && r < g->rows; r++) {
        const char *word = table_text(g->points, g->point[r], column);
        c->cell[r] = *word ? word : "-";
    }
}

/* ---- which columns */

struct phase_names {
    const char *name[16];
    int n;
};

/* In the order in which the points of the group declare them. */
static void phases_of(const struct group *g, struct phase_names *p) {
    const struct table *t = tables_peek(g->ts, "phases");
    p->n = 0;
    for (int64_t i = 0; i < table_rows(t) && p->n < 16; i++) {
        int64_t point = table_int(t, i, "point");
        if (point < 0 || point >= table_rows(g->points)) continue;
        if (strcmp(table_text(g->points, point, "workload"), g->workload)) continue;
        const char *name = table_text(t, i, "name");
        bool seen = false;
        for (int k = 0; k < p->n; k++) seen = seen || !strcmp(p->name[k], name);
        if (!seen) p->name[p->n++] = name;
    }
}

/* One token an execution: its TTFT is the time again. */
static void add_tokens(struct group *g, int priority) {
    bool several = false;
    for (int64_t r = 0; r < g->rows && !several; r++)
        several = summary_row(g->ts, g->point[r], "itl") >= 0;
    if (!several) return;
    add_metric(g, "ttft", "ttft", priority, false);
    add_metric(g, "itl", "itl", priority, false);
}

static bool has_phase(const struct phase_names *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->name[i], name)) return true;
    return false;
}

/* Whether requests come and go: then what each of them saw is what is asked for. */
static bool serves(const struct phase_names *p) { return has_phase(p, "wait"); }

/* Or a plain way stands beside another in each execution: then what the workload reports is. */
static bool reports(const struct phase_names *p) { return serves(p) || has_phase(p, "plain"); }

/* Whether any row spent its time in more than one phase; else a phase is the whole time again. */
static bool rows_with_several(const struct group *g, const struct phase_names *p) {
    char name[96];
    for (int64_t r = 0; r < g->rows; r++) {
        int ran = 0;
        for (int i = 0; i < p->n; i++) {
            snprintf(name, sizeof name, "%.80s_time", p->name[i]);
            ran += summary_row(g->ts, g->point[r], name) >= 0;
        }
        if (ran > 1) return true;
    }
    return false;
}

/* Each part's share of the row's parts together: many parts have no room for times. */
static void add_part_shares(struct group *g, const struct phase_names *phases) {
    char name[96];
    double *sum = arena_alloc(g->arena, (size_t)g->rows * sizeof *sum);
    for (int64_t r = 0; r < g->rows; r++) {
        int parts = 0;
        for (int i = 0; i < phases->n; i++) {
            snprintf(name, sizeof name, "%.80s_time", phases->name[i]);
            const double v = part(g, summary_row(g->ts, g->point[r], name), "mean");
            sum[r] += isfinite(v) ? v : 0;
            parts += isfinite(v);
        }
        if (parts < 2) sum[r] = (double)NAN; /* undivided */
    }
    for (int i = 0; i < phases->n; i++) {
        double most = -1;
        snprintf(name, sizeof name, "%.80s_time", phases->name[i]);
        for (int64_t r = 0; r < g->rows; r++)
            most = fmax(most, part(g, summary_row(g->ts, g->point[r], name), "mean") / sum[r]);
        const int priority = most < SMALL_SHARE ? PRIORITY_VALUE - 1 : PRIORITY_PART;
        struct grid_column *c =
            most >= 0 ? grid_add(g->grid, phases->name[i], priority, false) : NULL;
        for (int64_t r = 0; c && r < g->rows; r++) {
            const double v = 100 * part(g, summary_row(g->ts, g->point[r], name), "mean") / sum[r];
            c->cell[r] = isfinite(v) ? arena_printf(g->arena, "%.*f %%", v < 9.95 ? 1 : 0, v) : "-";
        }
    }
}

static void add_times(struct group *g, bool one_number) {
    struct phase_names phases;
    phases_of(g, &phases);
    if (!add_metric(g, "time", "time", PRIORITY_TIME, true)) return;
    int rates = 0;
    bool several = rows_with_several(g, &phases);
    const char *last = NULL;
    char name[96], head[96];
    for (int i = 0; i < phases.n; i++) {
        bool any = false;
        snprintf(name, sizeof name, "%.80s_rate", phases.name[i]);
        for (int64_t r = 0; r < g->rows && !any; r++)
            any = summary_row(g->ts, g->point[r], name) >= 0;
        rates += any;
    }
    if (phases.n > TIMED_MOST) {
        add_part_shares(g, &phases);
        several = false;
    }
    for (int i = 0; i < phases.n && several; i++) {
        snprintf(name, sizeof name, "%.80s_time", phases.name[i]);
        add_metric(g, name, phases.name[i], PRIORITY_PHASE, false);
    }
    for (int i = 0; i < phases.n; i++) {
        snprintf(name, sizeof name, "%.80s_rate", phases.name[i]);
        snprintf(head, sizeof head, "%.80s", rates > 1 ? phases.name[i] : "");
        if (add_metric(g, name, head, reports(&phases) ? PRIORITY_PHASE : PRIORITY_RATE, false))
            last = phases.name[i];
    }
    if (!strcmp(g->workload, "ceiling")) return;
    if (one_number && last) {
        snprintf(name, sizeof name, "%.80s_rate", last);
        add_ratio(g, name,
                  "\xc3\x97"
                  "1",
                  PRIORITY_GAIN);
    }
    if (one_number) add_ratio(g, "time", "latency \xc3\x97", PRIORITY_LATENCY);
    add_tokens(g, serves(&phases) ? PRIORITY_RATE : PRIORITY_TOKEN);
}

/* Whether it is the bound of another metric's interval: NAME_lo or NAME_hi. */
static bool is_bound(const struct group *g, const char *name) {
    const size_t n = strlen(name);
    if (n < 4 || (strcmp(name + n - 3, "_lo") && strcmp(name + n - 3, "_hi"))) return false;
    const char *of = arena_printf(g->arena, "%.*s", (int)n - 3, name);
    for (int64_t r = 0; r < g->rows; r++)
        if (summary_row(g->ts, g->point[r], of) >= 0) return true;
    return false;
}

/* What the workload itself reports, in the order of its declaration. */
static void add_values(struct group *g, bool alone) {
    const struct table *t = tables_peek(g->ts, "metrics");
    struct phase_names phases;
    phases_of(g, &phases);
    int priority = alone              ? PRIORITY_VALUE_ALONE
                   : reports(&phases) ? PRIORITY_WITNESS - 1
                                      : PRIORITY_VALUE;
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (strcmp(table_text(t, i, "workload"), g->workload)) continue;
        const char *name = table_text(t, i, "name");
        if (is_bound(g, name)) continue; /* show --metric has them */
        if (add_metric(g, name, name, priority, false) && priority > PRIORITY_VALUE - 40)
            priority--;
    }
}

/* What an analysis reads from the rows of another case stands beside these: speed beside quality.
 */
static void add_companions(struct group *g) {
    char key[80];
    for (int number = 0; number < 1000; number++) {
        snprintf(key, sizeof key, "analysis.%d.kind", number);
        const char *kind = rows_fact(g->ts, key);
        if (!*kind) return;
        snprintf(key, sizeof key, "analysis.%d.case", number);
        if (strcmp(kind, "tradeoff") || strcmp(rows_fact(g->ts, key), g->only_case)) continue;
        snprintf(key, sizeof key, "analysis.%d.x", number);
        const char *x = rows_fact(g->ts, key), *colon = strchr(x, ':');
        if (!colon) continue;
        add_metric(g, x, "", PRIORITY_RATE, false);
        add_share(g, arena_printf(g->arena, "%.*s:mbu", (int)(colon - x), x), "MBU", PRIORITY_MBU);
        return;
    }
}

/* Whether no row was measured: then the title says it instead of a column. */
static bool all_theory(const struct group *g) {
    for (int64_t r = 0; r < g->rows; r++)
        if (!*table_text(g->points, g->point[r], "basis")) return false;
    return true;
}

static void group_columns(struct group *g) {
    bool numeric;
    add_keys(g, &numeric);
    int before = g->grid->n;
    add_times(g, numeric);
    bool timed = g->grid->n > before;
    if (!timed) { /* simulated: tokens have times, the row has none */
        add_tokens(g, PRIORITY_TOKEN);
    }
    add_values(g, !timed);
    add_companions(g);
    add_share(g, "mbu", "MBU", PRIORITY_MBU);
    add_share(g, "mfu", "MFU", PRIORITY_MFU);
    add_word(g, "bound", "bound", "", PRIORITY_BOUND);
    add_word(g, "witness", "witness", "none", PRIORITY_WITNESS);
    if (!all_theory(g)) add_word(g, "basis", "basis", "", PRIORITY_STATE);
    add_word(g, "state", "state", "ok", PRIORITY_STATE);
}

/* ---- groups */

struct groups {
    struct arena *arena;
    struct group *item;
    size_t n, cap;
};

static struct group *group_of(struct groups *all, const struct tables *ts, int64_t point) {
    const struct table *points = tables_peek(ts, "points");
    const char *only_case = table_text(points, point, "case");
    const char *workload = table_text(points, point, "workload");
    for (size_t i = all->n; i-- > 0;) /* rows of a case stand together: usually the last */
        if (!strcmp(all->item[i].only_case, only_case) && !strcmp(all->item[i].workload, workload))
            return &all->item[i];
    if (all->n == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 8;
        all->item = must_realloc(all->item, all->cap * sizeof *all->item);
    }
    struct group *g = &all->item[all->n++];
    *g = (struct group){.ts = ts,
                        .points = points,
                        .summary = tables_peek(ts, "summary"),
                        .only_case = only_case,
                        .workload = workload,
                        .arena = all->arena};
    return g;
}

static void groups_find(struct groups *all, const struct tables *ts) {
    int64_t n = table_rows(tables_peek(ts, "points"));
    for (int64_t p = 0; p < n; p++) group_of(all, ts, p)->rows++;
    for (size_t i = 0; i < all->n; i++) {
        struct group *g = &all->item[i];
        g->point = arena_alloc(all->arena, (size_t)g->rows * sizeof *g->point);
        g->rows = 0;
    }
    for (int64_t p = 0; p < n; p++) {
        struct group *g = group_of(all, ts, p);
        g->point[g->rows++] = p;
    }
}

static void group_title(const struct groups *all, const struct group *g, struct text *out) {
    const bool theory = all_theory(g);
    text_puts(out, "\n");
    if (all->n < 2 && !theory) return;
    const char *name = *g->only_case ? g->only_case : g->workload;
    text_printf(out, "  %s", name);
    if (strcmp(name, g->workload)) text_printf(out, " (%s)", g->workload);
    if (theory) text_puts(out, THEORY);
    text_puts(out, "\n");
}

void show_rows(const struct tables *ts, const struct show_options *o, struct text *out) {
    struct groups all = {.arena = arena_create()};
    groups_find(&all, ts);
    for (size_t i = 0; i < all.n; i++) {
        struct group *g = &all.item[i];
        struct grid grid = {.arena = all.arena, .rows = g->rows};
        g->grid = &grid;
        group_columns(g);
        group_title(&all, g, out);
        grid_print(&grid, o, out);
    }
    free(all.item);
    arena_close(&all.arena);
}

/* Under a table: each row that is not ok, or is flagged, with its reason. */
static void markdown_reasons(const struct group *g, struct text *out) {
    bool any = false;
    for (int64_t r = 0; r < g->rows; r++) {
        const char *label = table_text(g->points, g->point[r], "label");
        const char *words[] = {table_text(g->points, g->point[r], "state"),
                               table_text(g->points, g->point[r], "flags"),
                               table_text(g->points, g->point[r], "reason")};
        if (!*words[2]) continue;
        text_puts(out, any ? "- " : "\n- ");
        show_plain(out, *label ? label : g->workload);
        for (int i = 0; i < 3; i++) {
            if (!*words[i] || (i == 0 && !strcmp(words[i], "ok"))) continue;
            text_puts(out, i == 2 ? " · " : ", ");
            show_plain(out, words[i]);
        }
        text_puts(out, "\n");
        any = true;
    }
}

void show_markdown(const struct tables *ts, struct text *out) {
    struct groups all = {.arena = arena_create()};
    groups_find(&all, ts);
    for (size_t i = 0; i < all.n; i++) {
        struct group *g = &all.item[i];
        struct grid grid = {.arena = all.arena, .rows = g->rows};
        g->grid = &grid;
        group_columns(g);
        if (all.n > 1 || all_theory(g))
            text_printf(out, "\n### %s%s\n", *g->only_case ? g->only_case : g->workload,
                        all_theory(g) ? THEORY : "");
        text_puts(out, "\n");
        grid_print_markdown(&grid, out);
        markdown_reasons(g, out);
    }
    free(all.item);
    arena_close(&all.arena);
}

/* ---- one metric in full */

static bool group_metric(struct group *g, const char *metric) {
    static const struct {
        const char *part, *head;
        int priority;
    } parts[] = {{"n", "n", 80},        {"n_rounds", "rounds", 60},
                 {"mean", "mean", 90},  {"", "95 % interval", 85},
                 {"stddev", "sd", 75},  {"median", "median", 70},
                 {"mad", "mad", 40},    {"min", "min", 65},
                 {"p90", "p90", 50},    {"p95", "p95", 45},
                 {"p99", "p99", 55},    {"max", "max", 64},
                 {"lag1", "lag-1", 30}, {"drift", "drift", 35}};
    bool numeric, any = false;
    for (int64_t r = 0; r < g->rows && !any; r++)
        any = summary_row(g->ts, g->point[r], metric) >= 0;
    if (!any) return false;
    add_keys(g, &numeric);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        struct grid_column *c = grid_add(g->grid, parts[k].head, parts[k].priority, false);
        for (int64_t r = 0; c && r < g->rows; r++) {
            int64_t row = summary_row(g->ts, g->point[r], metric);
            double lo = part(g, row, "ci_lo"), hi = part(g, row, "ci_hi");
            char a[64], b[64];
            if (*parts[k].part)
                c->cell[r] = number_cell(g, "", part(g, row, parts[k].part), k < 2);
            else
                c->cell[r] = isfinite(lo) ? arena_printf(g->arena, "[%s, %s]",
                                                         format_number(a, sizeof a, lo, 5),
                                                         format_number(b, sizeof b, hi, 5))
                                          : "-";
        }
    }
    add_word(g, "state", "state", "ok", PRIORITY_STATE);
    return true;
}

/* The metrics that there are, once each. */
static void list_metrics(const struct tables *ts, const char *wanted, struct text *out) {
    const struct table *t = tables_peek(ts, "summary");
    const char *names[256];
    size_t n = 0;
    struct text line = {0};
    for (int64_t r = 0; r < table_rows(t) && n < 256; r++) {
        const char *name = table_text(t, r, "metric");
        bool seen = false;
        for (size_t i = 0; i < n && !seen; i++) seen = !strcmp(names[i], name);
        if (!seen) names[n++] = name;
    }
    const char *near = text_nearest(wanted, names, n);
    text_printf(&line, "no row has a metric '%s'", wanted);
    if (near) text_printf(&line, "; did you mean '%s'?", near);
    text_puts(&line, n ? " There are:" : " There are none.");
    for (size_t i = 0; i < n; i++) text_printf(&line, "%s %s", i ? "," : "", names[i]);
    show_line(out, 0, "", 2, line.data);
    text_free(&line);
}

void show_metric(const struct tables *ts, const struct show_options *o, struct text *out) {
    struct groups all = {.arena = arena_create()};
    bool any = false;
    groups_find(&all, ts);
    for (size_t i = 0; i < all.n; i++) {
        struct group *g = &all.item[i];
        struct grid grid = {.arena = all.arena, .rows = g->rows};
        g->grid = &grid;
        if (!group_metric(g, o->metric)) continue;
        const char *unit = "";
        for (int64_t r = 0; r < g->rows && !*unit; r++) {
            int64_t row = summary_row(g->ts, g->point[r], o->metric);
            if (row >= 0) unit = table_text(g->summary, row, "unit");
        }
        if (!any) text_printf(out, "\n  %s%s%s\n", o->metric, *unit ? ", " : "", unit);
        group_title(&all, g, out);
        grid_print(&grid, o, out);
        any = true;
    }
    if (!any) list_metrics(ts, o->metric, out);
    free(all.item);
    arena_close(&all.arena);
}
