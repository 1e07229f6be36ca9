/* SPDX-License-Identifier: Apache-2.0 */
/* Noise, detectable change and false alarms of a comparison of a program with itself. */
#include "results/calibration.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/evalue.h"
#include "results/pairs.h"
#include "results/stats.h"

#define POWER 0.95
#define TRIM  0.2
enum { MOST_ROUNDS = 100000, SEED = 1 };

const double calibration_seconds[3] = {30, 60, 90};

/* Seconds of a row and round, set-up and all: between the ends of the first and the last visit. */
static double seconds_of(const struct tables *ts) {
    const struct table *visits = tables_peek(ts, "visits");
    const int64_t pairs = table_rows(tables_peek(ts, "pairs"));
    double first = INFINITY, last = -INFINITY;
    for (int64_t i = 0; i < table_rows(visits); i++) {
        const double t = table_real(visits, i, "t0");
        first = t < first ? t : first;
        last = t > last ? t : last;
    }
    return pairs > 1 && last > first ? (last - first) / (double)(pairs - 1) : (double)NAN;
}

/* Mean variance of y that the quadruples of its visits explain. */
static double within(const struct tables *ts, int64_t a) {
    const struct table *quads = tables_peek(ts, "quads");
    double sum = 0, *d = must_alloc(((size_t)table_rows(quads) + 1) * sizeof *d);
    size_t n = 0, visits = 0;
    for (int64_t r = 0; r <= table_rows(quads); r++) {
        const bool end = r == table_rows(quads) ||
                         (n && table_int(quads, r, "quad") == 0); /* of a visit's quadruples */
        if (end && n) {
            const double error = evalue_trimmed_error(d, n, TRIM);
            if (isfinite(error)) sum += error * error, visits++;
            n = 0;
        }
        if (r == table_rows(quads) || table_int(quads, r, "a") != a) continue;
        d[n++] = evalue_quadruple(table_real(quads, r, "a1"), table_real(quads, r, "b1"),
                                  table_real(quads, r, "b2"), table_real(quads, r, "a2"));
    }
    free(d);
    return visits ? sum / (double)visits : (double)NAN;
}

static double change(const struct gate_settings *s, double spread, double rounds, double bound) {
    if (rounds < EVALUE_LEAST) return INFINITY;
    const size_t n = rounds < (double)s->rounds ? (size_t)rounds : (size_t)s->rounds;
    return (1 + s->tolerance) * exp(evalue_detectable(n, bound, POWER) * spread) - 1;
}

static void judge_row(struct calibration *c, size_t i, const struct gate_settings *s,
                      double bound) {
    struct calibration_row *r = &c->rows[i];
    for (int k = 0; k < 3; k++)
        r->detectable[k] =
            change(s, r->s, calibration_seconds[k] / (c->seconds * (double)c->n), bound);
    r->at_limit = change(s, r->s, (double)s->rounds, bound);
    r->to_halve = evalue_rounds_for(evalue_detectable((size_t)s->rounds, bound, POWER) / 2, bound,
                                    POWER, MOST_ROUNDS);
}

/* Which points of side a took turns. */
static size_t timed_rows(const struct tables *ts, const struct gate_settings *s, int64_t *points) {
    const int64_t n = table_rows(tables_peek(ts, "points")) / 2;
    int64_t *row = must_alloc(((size_t)n + 1) * sizeof *row);
    size_t rows = 0;
    pairs_rows(ts, s, row);
    for (int64_t a = 0; a < n; a++)
        if (row[a] >= 0) points[rows++] = a;
    free(row);
    return rows;
}

int calibration_of(const struct tables *const *sittings, size_t n, const struct gate_settings *s,
                   struct calibration *c, struct err *err) {
    const struct tables *ts = sittings[0];
    *c = (struct calibration){0};
    for (size_t k = 0; k < n; k++)
        if (!pairs_there(sittings[k]))
            return err_set(err, ERR_INPUT,
                           "this is no comparison: bench gate --calibrate makes one");
    struct gate *g = pairs_gate(ts, s);
    int64_t *points = must_alloc((g->n_rows + 1) * sizeof *points), *per_row = NULL;
    double *y = NULL, *levels = must_alloc((n + 1) * sizeof *levels);
    c->n = timed_rows(ts, s, points);
    c->rows = must_alloc((c->n + 1) * sizeof *c->rows);
    c->seconds = seconds_of(ts);
    const double bound = gate_ln_bound(g);
    size_t rounds = 0, least = SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) rounds = g->rows[i].n > rounds ? g->rows[i].n : rounds;
    y = must_alloc((c->n * rounds + 1) * sizeof *y);
    per_row = must_alloc((c->n + 1) * sizeof *per_row);
    for (size_t i = 0; i < c->n; i++) {
        const struct gate_row *row = &g->rows[i];
        struct calibration_row *r = &c->rows[i];
        double *own = y + i * rounds, *known = must_alloc((rounds + 1) * sizeof *known);
        size_t m = 0;
        for (size_t k = 0; k < rounds; k++) {
            own[k] = k < row->n ? row->y[k] : (double)NAN;
            if (!isnan(own[k])) known[m++] = own[k];
        }
        snprintf(r->name, sizeof r->name, "%s", row->name);
        r->rounds = m;
        least = m < least ? m : least;
        r->s = stats_stddev(known, m);
        const double rest = r->s * r->s - within(ts, points[i]);
        r->workers = rest > 0 ? sqrt(rest) : 0;
        for (size_t k = 0; k < n; k++) levels[k] = pairs_level(sittings[k], points[i]);
        r->sittings = n > 1 ? stats_stddev(levels, n) : (double)NAN;
        judge_row(c, i, s, bound);
        free(known);
    }
    int code = 0;
    if (!c->n || least < EVALUE_LEAST) {
        code = err_set(err, ERR_INPUT, "%zu rounds are too few to calibrate from; %d are wanted",
                       c->n ? least : (size_t)0, CALIBRATION_ROUNDS);
    } else {
        double lo;
        c->alarms = evalue_false_alarms(y, c->n, rounds, log1p(s->tolerance), log1p(s->detect),
                                        bound, (size_t)s->rounds, CALIBRATION_DRAWS, SEED, per_row);
        evalue_clopper_pearson(c->alarms, CALIBRATION_DRAWS, 0.95, &lo, &c->bound);
        for (size_t i = 0; i < c->n; i++) c->rows[i].alarms = per_row[i];
    }
    free(levels);
    free(per_row);
    free(y);
    free(points);
    gate_close(&g);
    return code;
}

void calibration_free(struct calibration *c) {
    free(c->rows);
    *c = (struct calibration){0};
}

static const char *percent(char buf[24], double v) {
    if (!isfinite(v) || v > 9.995) return "-";
    snprintf(buf, 24, "%.*f %%", v < 0.0995 ? 2 : 1, 100 * v);
    return buf;
}

bool calibration_text(const struct calibration *c, const struct gate_settings *s,
                      struct text *out) {
    size_t name = 3;
    bool seen = true, sat = false;
    char buf[24];
    for (size_t i = 0; i < c->n; i++) {
        const size_t w = utf8_width(c->rows[i].name);
        name = w > name && w <= 30 ? w : name;
        sat = sat || isfinite(c->rows[i].sittings);
    }
    const size_t at[] = {name + 4,  name + 12, name + 21, name + 30,
                         name + 39, name + 48, name + 59, name + 69};
    static const char *const heads[] = {"s",    "workers", "30 s",   "60 s",
                                        "90 s", "limit",   "halved", "sittings"};
    text_puts(out, "\n  row");
    for (size_t k = 0; k < 7 + (size_t)sat; k++) text_pad(out, at[k]), text_puts(out, heads[k]);
    text_puts(out, "\n");
    for (size_t i = 0; i < c->n; i++) {
        const struct calibration_row *r = &c->rows[i];
        struct text line = {0};
        text_printf(&line, "  %s%s", r->name, utf8_width(r->name) > name ? "\n" : "");
        text_add(out, line.data, line.len);
        text_free(&line);
        text_pad(out, at[0]), text_puts(out, percent(buf, r->s));
        text_pad(out, at[1]), text_puts(out, percent(buf, r->workers));
        for (size_t k = 0; k < 3; k++)
            text_pad(out, at[2 + k]), text_puts(out, percent(buf, r->detectable[k]));
        text_pad(out, at[5]), text_puts(out, percent(buf, r->at_limit));
        text_pad(out, at[6]);
        if (r->to_halve) text_printf(out, "%zu", r->to_halve);
        if (sat) text_pad(out, at[7]), text_puts(out, percent(buf, r->sittings));
        text_puts(out, "\n");
        seen = seen && r->at_limit <= s->detect;
    }
    text_printf(
        out,
        "  s: spread of a round's ratio; workers: of it between workers; then the change that "
        "is detected\n  with 95 %% power in that time, at the limit of %lld rounds, and the "
        "rounds that halve it;\n  a row and round takes %.2f s\n",
        (long long)s->rounds, c->seconds);
    text_printf(
        out,
        "  false alarms: %lld of %d gates with labels swapped at random; at most %.3g %% at "
        "97.5 %%\n",
        (long long)c->alarms, CALIBRATION_DRAWS, 100 * c->bound);
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].at_limit > s->detect)
            text_printf(out, "  %s: gate.detect = %g %% is below the %s that %lld rounds can see\n",
                        c->rows[i].name, 100 * s->detect, percent(buf, c->rows[i].at_limit),
                        (long long)s->rounds);
    return seen;
}
