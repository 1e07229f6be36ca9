/* SPDX-License-Identifier: Apache-2.0 */
/* What `make bench-gate` (gate_rates.py) does with rounds: records them, and judges gates that are
   drawn from them by the very functions that judge live ones. Not a test: prints a line of JSON.
     record PROTOCOL ROUNDS SEED OUT PROGRAM [KEY=VALUE ...]
     judge  GATES SEED TOLERANCE ONE ALL FILE...   ONE, ALL: relative slowdown put on one row or on
                                                   all of them
     spread FILE...
     peers  GATES LAG SLOWDOWN FILE...             rules of others on the same samples
     bound  EVENTS TRIALS                          of Clopper and Pearson, at 95 % */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "harness/pair_run.h"
#include "results/calibration.h"
#include "results/evalue.h"
#include "results/pairs.h"
#include "results/stats.h"
#include "results/store.h"

enum { ROWS = 20, KINDS_MOST = ROWS, SETS_MOST = 32, REPETITIONS = 9 };

/* Of a normal's standard deviation over its median absolute deviation. */
#define NORMAL 1.4826

static void fail(const struct err *err) {
    fprintf(stderr, "bench_gate: %s\n", err->text);
    exit(1);
}
static int64_t integer(const char *text) {
    int64_t v = 0;
    if (parse_i64(text, &v) && v >= 0) return v;
    fprintf(stderr, "bench_gate: '%s' is no number of things\n", text);
    exit(2);
}

/* --- recording --- */

static int say_nothing(void *ctx, struct gate *g, const struct tables *ts, bool *shown,
                       struct err *err) {
    (void)ctx, (void)g, (void)ts, (void)err;
    *shown = true;
    return 0;
}

/* As `bench ab`, but so many rounds of every row, whatever is decided. */
static int record(int argc, char **argv) {
    const char *sets[SETS_MOST];
    char seed[40];
    struct pair_request r = {
        .protocol = {.path = argv[0], .sets = sets, .n_sets = 1},
        .rounds = integer(argv[1]),
        .out = argv[3],
        .binary = {argv[4], argv[4]},
        .quiet = true,
        .judge = say_nothing,
    };
    snprintf(seed, sizeof seed, "measure.seed=%" PRId64, integer(argv[2]));
    sets[0] = seed;
    for (int i = 5; i < argc && r.protocol.n_sets < SETS_MOST; i++)
        sets[r.protocol.n_sets++] = argv[i];
    return pair_main(&r);
}

/* --- what was recorded --- */

static void copy_row(struct table *to, const struct table *from, int64_t row) {
    const int64_t at = table_add(to, 1);
    for (size_t i = 0; i < table_columns(from); i++) {
        const struct column *c = table_column_at(from, i);
        if (c->type == COL_I64) table_set_i64(to, at, c->name, table_int(from, row, c->name));
        if (c->type == COL_F64) table_set_f64(to, at, c->name, table_real(from, row, c->name));
        if (c->type == COL_TEXT) table_set_text(to, at, c->name, table_text(from, row, c->name));
    }
}

/* All files as one comparison of many rounds: those of a file follow those of the one before. */
static struct tables *read_all(char **files, int n) {
    static const char *const wanted[] = {"meta", "protocol", "points", "pairs", "quads", NULL};
    static const char *const grown[] = {"pairs", "quads"};
    struct tables *all = NULL;
    struct err err = {0};
    int64_t rounds = 0;
    for (int i = 0; i < n; i++) {
        struct tables *one = NULL;
        if (store_read(&one, files[i], wanted, &err)) fail(&err);
        const struct table *pairs = tables_peek(one, "pairs");
        int64_t most = 0;
        for (int64_t r = 0; r < table_rows(pairs); r++) {
            const int64_t round = table_int(pairs, r, "round");
            most = round >= most ? round + 1 : most;
        }
        for (size_t t = 0; i && t < 2; t++) {
            const struct table *from = tables_peek(one, grown[t]);
            struct table *to = tables_get(all, grown[t]);
            for (int64_t r = 0; r < table_rows(from); r++) {
                copy_row(to, from, r);
                table_set_i64(to, table_rows(to) - 1, "round",
                              rounds + table_int(from, r, "round"));
            }
        }
        rounds += most;
        if (i)
            tables_close(&one);
        else
            all = one;
    }
    return all;
}

/* --- gates drawn from it --- */

struct tally {
    int64_t verdicts[N_GATE_VERDICTS]; /* of rows */
    int64_t all[N_GATE_VERDICTS];      /* of the lines over all rows */
    int64_t gates, red, found, others, rounds, exits[6];
    int64_t slowed[KINDS_MOST], seen[KINDS_MOST]; /* by kind of the row that was slowed */
};
struct draw {
    const struct gate *recorded;
    const struct gate_settings *settings;
    double one, all; /* ln of what is put on a row */
    uint64_t key, at;
};

static struct gate *empty_gate(const struct draw *d, const size_t *kind) {
    struct gate *g = gate_create(GATE_LIVE, d->settings, 0);
    for (size_t i = 0; i < ROWS; i++) {
        const struct gate_row *r = &d->recorded->rows[kind[i]];
        const struct gate_row row = {.name = r->name,
                                     .metric = r->metric,
                                     .unit = r->unit,
                                     .better = r->better,
                                     .in_old = true,
                                     .in_new = true,
                                     .old_value = (double)NAN,
                                     .new_value = (double)NAN};
        gate_add(g, &row);
    }
    return g;
}

/* As many rows of each kind, each from a round of its own on; a coin for each round of the gate
   swaps the labels of its workers, thus of all rows. Rounds go on as in a live gate: a row that is
   decided takes no part, and the verdicts are asked for after each. */
static struct gate *draw_gate(struct draw *d, size_t *slowed) {
    size_t kind[ROWS], start[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        kind[i] = i % d->recorded->n_rows;
        start[i] = random_below(d->key, d->at++, (uint32_t)d->recorded->rows[kind[i]].n);
    }
    *slowed = random_below(d->key, d->at++, ROWS);
    struct gate *g = empty_gate(d, kind);
    for (size_t round = 0; round < (size_t)d->settings->rounds; round++) {
        const double sign = random_at(d->key, d->at++) >> 63 ? -1 : 1;
        for (size_t i = 0; i < ROWS; i++) {
            const struct gate_row *r = &d->recorded->rows[kind[i]];
            const size_t from = (start[i] + round) % r->n;
            const double more = d->all + (i == *slowed ? d->one : 0);
            if ((round && !gate_open(g, i)) || isnan(r->y[from])) continue;
            gate_round(g, i, round, sign * r->y[from] + more, sign * r->means[from] + more);
        }
        gate_judge(g);
        if (gate_done(g)) break;
    }
    return g;
}

static void count(struct tally *t, const struct gate *g, size_t slowed, size_t kinds) {
    size_t rounds = 0;
    bool others = false;
    for (size_t i = 0; i < g->n_rows; i++) {
        const bool slower = g->rows[i].verdict == GATE_SLOWER;
        t->verdicts[g->rows[i].verdict]++;
        if (i == slowed) t->slowed[i % kinds]++, t->seen[i % kinds] += slower, t->found += slower;
        others = others || (slower && i != slowed);
        rounds = g->rows[i].n > rounds ? g->rows[i].n : rounds;
    }
    t->all[g->all.verdict]++;
    t->others += others;
    t->red += gate_exit(g) == 1;
    t->exits[gate_exit(g)]++;
    t->rounds += (int64_t)rounds;
    t->gates++;
}

static void list(const char *name, const int64_t *n) {
    printf(", \"%s\": {", name);
    for (int v = 0; v <= GATE_BLIND; v++)
        printf("%s\"%s\": %" PRId64, v ? ", " : "", gate_verdict_names[v], n[v]);
    printf("}");
}

static int judge(int argc, char **argv) {
    struct arena *arena = arena_create();
    struct tables *tables = read_all(argv + 5, argc - 5);
    struct gate_settings settings;
    struct tally t = {.gates = 0};
    pairs_settings(tables, &settings, arena);
    struct gate *recorded = pairs_gate(tables, &settings);
    settings.tolerance = strtod(argv[2], NULL);
    struct draw d = {.recorded = recorded,
                     .settings = &settings,
                     .one = log1p(strtod(argv[3], NULL)),
                     .all = log1p(strtod(argv[4], NULL)),
                     .key = random_key((uint64_t)integer(argv[1]), 0x6a7e)};
    size_t recorded_rounds = 0;
    for (size_t i = 0; i < recorded->n_rows; i++)
        if (recorded->rows[i].n > recorded_rounds) recorded_rounds = recorded->rows[i].n;
    for (int64_t gates = integer(argv[0]); recorded_rounds && t.gates < gates;) {
        size_t slowed;
        struct gate *g = draw_gate(&d, &slowed);
        count(&t, g, slowed, recorded->n_rows);
        gate_close(&g);
    }
    printf("{\"recorded\": %zu, \"gates\": %" PRId64 ", \"rows\": %d, \"red\": %" PRId64
           ", \"found\": %" PRId64 ", \"others\": %" PRId64 ", \"rounds\": %" PRId64,
           recorded_rounds, t.gates, ROWS, t.red, t.found, t.others, t.rounds);
    list("verdicts", t.verdicts);
    list("all", t.all);
    printf(", \"exit5\": %" PRId64 ", \"kinds\": {", t.exits[5]);
    for (size_t i = 0; i < recorded->n_rows && i < KINDS_MOST; i++)
        printf("%s\"%s\": [%" PRId64 ", %" PRId64 "]", i ? ", " : "", recorded->rows[i].name,
               t.seen[i], t.slowed[i]);
    printf("}}\n");
    gate_close(&recorded);
    tables_close(&tables);
    arena_close(&arena);
    return 0;
}

/* --- between workers --- */

static int spread(int argc, char **argv) {
    struct arena *arena = arena_create();
    struct tables *tables = read_all(argv, argc);
    struct gate_settings settings;
    struct calibration c = {0};
    struct err err = {0};
    pairs_settings(tables, &settings, arena);
    if (calibration_of((const struct tables *const *)&tables, 1, &settings, &c, &err)) fail(&err);
    struct gate *g = pairs_gate(tables, &settings);
    printf("{\"rows\": [");
    for (size_t i = 0; i < c.n; i++) {
        const struct gate_row *r = &g->rows[i];
        double *y = must_alloc((r->n + 1) * sizeof *y);
        size_t n = 0;
        for (size_t k = 0; k < r->n; k++)
            if (!isnan(r->y[k])) y[n++] = r->y[k];
        printf(
            "%s{\"name\": \"%s\", \"pairs\": %zu, \"s\": %.6g, \"workers\": %.6g, \"usual\": %.6g}",
            i ? ", " : "", r->name, n, c.rows[i].s, c.rows[i].workers, NORMAL * stats_mad(y, n));
        free(y);
    }
    printf("]}\n");
    gate_close(&g);
    calibration_free(&c);
    tables_close(&tables);
    arena_close(&arena);
    return 0;
}

/* --- what others would have said --- */

struct samples { /* of one side in one round: ns of each turn, in the order taken */
    double *ns;
    size_t n;
};
static void keep(struct samples *s, double ns) {
    s->ns = must_realloc(s->ns, (s->n + 1) * sizeof *s->ns);
    s->ns[s->n++] = ns;
}

/* Means of so many parts of a visit, as a program reports that repeats itself; how many there are.
 */
static size_t repetitions(const struct samples *s, double factor, double out[REPETITIONS]) {
    const size_t n = s->n < REPETITIONS ? s->n : REPETITIONS;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = s->n * i / n, end = s->n * (i + 1) / n;
        out[i] = 0;
        for (size_t k = begin; k < end; k++) out[i] += factor * s->ns[k] / (double)(end - begin);
    }
    return n;
}

/* Two-sided Mann-Whitney U at 5 % by its normal approximation with correction for continuity, as
   SciPy's mannwhitneyu has it, which Google Benchmark's compare.py asks: whether b is significant
   and greater. */
static bool u_test(const double *a, size_t n, const double *b, size_t m) {
    const double size = (double)(n * m), mean = size / 2;
    double u = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++) u += b[k] > a[i] ? 1 : b[k] < a[i] ? 0 : 0.5;
    const double z = (u - mean - 0.5) / sqrt(size * (double)(n + m + 1) / 12);
    return z > 0 && erfc(z / sqrt(2)) < 0.05;
}

static bool five_percent(const double *a, size_t n, const double *b, size_t m) {
    return stats_mean(b, m) > 1.05 * stats_mean(a, n);
}

/* Old is side a of a round, new side b of the LAG-th round after it: 0 is in turns with it, 1 some
   seconds later, as programs are mostly compared. */
static int peers(int argc, char **argv) {
    struct tables *tables = read_all(argv + 3, argc - 3);
    const struct table *points = tables_peek(tables, "points"),
                       *quads = tables_peek(tables, "quads");
    const size_t kinds = (size_t)table_rows(points) / 2, lag = (size_t)integer(argv[1]);
    const double factor = 1 + strtod(argv[2], NULL);
    size_t rounds = 0;
    for (int64_t q = 0; q < table_rows(quads); q++)
        rounds = (size_t)table_int(quads, q, "round") >= rounds
                     ? (size_t)table_int(quads, q, "round") + 1
                     : rounds;
    struct samples *all = must_alloc((kinds * rounds * 2 + 1) * sizeof *all);
    memset(all, 0, (kinds * rounds * 2 + 1) * sizeof *all);
    for (int64_t q = 0; q < table_rows(quads); q++) {
        const size_t at =
            (size_t)table_int(quads, q, "a") * rounds + (size_t)table_int(quads, q, "round");
        keep(&all[2 * at], table_real(quads, q, "a1"));
        keep(&all[2 * at], table_real(quads, q, "a2"));
        keep(&all[2 * at + 1], table_real(quads, q, "b1"));
        keep(&all[2 * at + 1], table_real(quads, q, "b2"));
    }
    int64_t by_row[2] = {0}, by_gate[2] = {0}, rows = 0;
    const int64_t gates = integer(argv[0]);
    const uint64_t key = random_key(1, 0x9ee5);
    uint64_t at = 0;
    for (int64_t g = 0; g < gates; g++) {
        bool any[2] = {false, false};
        for (size_t i = 0; i < ROWS; i++) {
            const size_t round = random_below(key, at++, (uint32_t)rounds), kind = i % kinds;
            const bool swapped = random_at(key, at++) >> 63;
            const struct samples *from = all + 2 * kind * rounds;
            double old[REPETITIONS], new[REPETITIONS];
            const size_t n = repetitions(&from[2 * round + swapped], 1, old);
            const size_t m =
                repetitions(&from[2 * ((round + lag) % rounds) + !swapped], factor, new);
            const bool said[2] = {u_test(old, n, new, m), n && m && five_percent(old, n, new, m)};
            for (int k = 0; k < 2; k++) by_row[k] += said[k], any[k] = any[k] || said[k];
            rows++;
        }
        for (int k = 0; k < 2; k++) by_gate[k] += any[k];
    }
    printf("{\"rows\": %" PRId64 ", \"gates\": %" PRId64 ", \"u_rows\": %" PRId64
           ", \"u_gates\": %" PRId64 ", \"plain_rows\": %" PRId64 ", \"plain_gates\": %" PRId64
           "}\n",
           rows, gates, by_row[0], by_gate[0], by_row[1], by_gate[1]);
    for (size_t i = 0; i < 2 * kinds * rounds; i++) free(all[i].ns);
    free(all);
    tables_close(&tables);
    return 0;
}

static int bound(int argc, char **argv) {
    double lo, hi;
    (void)argc;
    evalue_clopper_pearson(integer(argv[0]), integer(argv[1]), 0.95, &lo, &hi);
    printf("[%.6g, %.6g]\n", lo, hi);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int least;
        int (*run)(int, char **);
    } parts[] = {{"record", 5, record},
                 {"judge", 6, judge},
                 {"spread", 1, spread},
                 {"peers", 4, peers},
                 {"bound", 2, bound}};
    for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(argv[1], parts[i].name) && argc - 2 >= parts[i].least)
            return parts[i].run(argc - 2, argv + 2);
    fprintf(stderr, "bench_gate: see gate_rates.py for its words\n");
    return 2;
}
