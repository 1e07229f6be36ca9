/* SPDX-License-Identifier: Apache-2.0 */
/* Where batching stops paying: a hinge through step times, the knee that the measured ridge
 * predicts, and the cause. */
#include "results/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/fit.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"

struct knee_params {
    const char *x, *y, *by;
    double gain;
};

#define NUM(v) rows_number((char[32]){0}, v, 3)

/* One group's data: ms per step of x items, by row and by round. */
struct curve {
    const struct rows_group *g;
    const char *x, *suffix; /* short name of x; " GROUP" or "" */
    int64_t n_rounds;
    double *t;    /* (n): mean over rounds, ms; NAN: none */
    double *each; /* (n, n_rounds); NAN: none */
};

struct knee {
    bool found;
    double at, lo, hi; /* in x */
    int64_t inside;    /* rounds whose own hinge lies inside the range */
    struct hinge hinge;
    char why[200]; /* found is false: what the times do instead */
};

static void found(struct tables *ts, const char *only_case, const struct curve *c, const char *name,
                  double value, double lo, double hi, const char *unit, const char *verdict,
                  const char *text) {
    char full[160];
    snprintf(full, sizeof full, "%s%s", name, c ? c->suffix : "");
    struct finding f = {"knee", only_case, full, value, lo, hi, unit, verdict};
    analysis_found(ts, &f, "%s", text);
}

static void curve_read(const struct rounds *r, bool rate, struct curve *c, struct arena *arena) {
    int32_t n = c->g->n;
    c->n_rounds = r->n_rounds;
    c->t = arena_alloc(arena, (size_t)n * sizeof *c->t);
    c->each = arena_alloc(arena, (size_t)n * (size_t)(r->n_rounds + 1) * sizeof *c->each);
    for (int32_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (int64_t k = 0; k < r->n_rounds; k++) {
            double v = rounds_get(r, c->g->point[i], r->rounds[k]);
            double t = rate ? 1e3 * c->g->x[i] / v : v;
            if (!(t > 0 && isfinite(t))) t = (double)NAN;
            c->each[i * r->n_rounds + k] = t;
            if (isfinite(t)) sum += t, count++;
        }
        c->t[i] = count > 0 ? sum / count : (double)NAN;
    }
}

/* The points of one round (or, at -1, of the means) that have a time. */
static size_t points_of(const struct curve *c, int64_t round, double *x, double *t) {
    size_t n = 0;
    for (int32_t i = 0; i < c->g->n; i++) {
        double v = round < 0 ? c->t[i] : c->each[i * c->n_rounds + round];
        if (!isfinite(v) || !(c->g->x[i] > 0)) continue;
        x[n] = c->g->x[i];
        t[n++] = v;
    }
    return n;
}

/* The hinge must beat a straight line by more than its one more parameter of each round explains:
   the F test of the pooled fits. It errs on the side of the line: of lines with 5 % of noise, six
   points and seven rounds 95 % stay below 1.7 (simulated), where the quantile is 2.5. */
static bool better_than_line(double line, double hinge, double fits, double df) {
    if (!(df >= 1)) return hinge < 0.2 * line;
    return (line - hinge) / fits > stats_f95(fits, df) * hinge / df + 1e-12;
}

static void fit_curve(const struct curve *c, double *x, double *t, struct knee *k) {
    double *logs = must_alloc((size_t)(c->n_rounds + 1) * sizeof *logs);
    double line = 0, hinge = 0, df = 0, fits = 0;
    struct hinge h;
    for (int64_t r = 0; r < c->n_rounds; r++) {
        size_t n = points_of(c, r, x, t);
        enum hinge_place place = fit_hinge(x, t, n, &h);
        if (place == HINGE_NONE) continue;
        line += h.error_line * h.error_line * (double)n;
        hinge += h.error * h.error * (double)n;
        df += (double)n - 3;
        fits++;
        if (place == HINGE_INSIDE) logs[k->inside++] = log(h.knee);
    }
    size_t n = points_of(c, -1, x, t);
    enum hinge_place place = fit_hinge(x, t, n, &k->hinge);
    double growth = n ? t[n - 1] / t[0] : (double)NAN;
    k->at = k->lo = k->hi = (double)NAN;
    if (n < 4)
        snprintf(k->why, sizeof k->why, "%zu rows have a time; a hinge needs four", n);
    else if (place == HINGE_NONE)
        snprintf(k->why, sizeof k->why, "%s or a time is not positive", c->x);
    else if (place == HINGE_ABOVE)
        snprintf(k->why, sizeof k->why,
                 "a step at %s %s takes %s times the one at %s: the range ends before the knee",
                 c->x, NUM(x[n - 1]), NUM(growth), NUM(x[0]));
    else if (place == HINGE_BELOW)
        snprintf(k->why, sizeof k->why,
                 "time grows along a line from %s %s on: a plateau, if any, ends before the range",
                 c->x, NUM(x[0]));
    else if (!better_than_line(line, hinge, fits, df))
        snprintf(k->why, sizeof k->why,
                 "a hinge fits no better than a straight line (errors %s and %s %%)",
                 NUM(100 * k->hinge.error), NUM(100 * k->hinge.error_line));
    else
        k->found = true;
    if (k->found) {
        k->at = k->hinge.knee;
        if (2 * k->inside >= c->n_rounds && k->inside >= 2) /* else no interval can be trusted */
            rows_log_interval(logs, (size_t)k->inside, &k->at, &k->lo, &k->hi);
        fit_hinge_at(x, t, n, k->at, &k->hinge); /* B* = (t_mem - c0) / c1, whoever checks */
    }
    free(logs);
}

/* The ledger of a row: of the phase that NAME_rate or NAME_time names, else of the whole execution.
 */
static void ledger(const struct tables *ts, int64_t point, const char *y, double *flops,
                   double *bytes) {
    const struct table *phases = tables_peek(ts, "phases"), *points = tables_peek(ts, "points");
    const int64_t *of = table_see_i64(phases, "point");
    size_t len = strlen(y) > 5 ? strlen(y) - 5 : 0;
    *flops = table_real(points, point, "flops");
    *bytes = table_real(points, point, "bytes");
    if (!len || (strcmp(y + len, "_rate") && strcmp(y + len, "_time"))) return;
    for (int64_t i = 0; i < table_rows(phases); i++) {
        if (of[i] != point) continue;
        const char *name = table_text(phases, i, "name");
        if (strlen(name) != len || memcmp(name, y, len)) continue;
        *flops = table_real(phases, i, "flops");
        *bytes = table_real(phases, i, "bytes");
    }
}

struct prediction {
    double at;              /* x where flops/peak = bytes/bandwidth; NAN outside the range */
    double peak, bandwidth; /* FLOP/s, byte/s; NAN: not measured */
    double first, last;     /* balance at both ends: time of arithmetic over time of traffic */
    double plateau, slope; /* share of bandwidth reached on the plateau, of the peak on the slope */
    const char *type;
};

static void predict(const struct tables *ts, const struct curve *c, const char *y,
                    const struct knee *k, struct prediction *p) {
    const struct rows_group *g = c->g;
    double upper, before = (double)NAN, flops, bytes, f0, b0, f1 = NAN, b1;
    *p = (struct prediction){NAN, NAN, NAN, NAN, NAN, NAN, NAN, ""};
    p->peak = rows_peak(ts, g->point[0], &p->type);
    summary_ceiling(ts, "bandwidth", p->type, &p->bandwidth, &upper);
    if (!(p->peak > 0 && p->bandwidth > 0)) return;
    for (int32_t i = 0; i < g->n; i++) {
        ledger(ts, g->point[i], y, &flops, &bytes);
        double balance = log(flops / p->peak / (bytes / p->bandwidth));
        if (!isfinite(balance)) return;
        if (i == 0) p->first = exp(balance);
        if (i && before <= 0 && balance > 0 && !isfinite(p->at)) {
            double share = before < 0 ? before / (before - balance) : 0;
            p->at = exp(log(g->x[i - 1]) + share * (log(g->x[i]) - log(g->x[i - 1])));
        }
        before = balance;
        p->last = exp(balance);
    }
    if (!k->found) return;
    /* Steps inside one execution cancel: times, bytes and FLOPs are all of one execution or all of
       one phase, and the measured time of x[0] says how many steps that is. */
    ledger(ts, g->point[0], y, &f0, &b0);
    ledger(ts, g->point[g->n - 1], y, &f1, &b1);
    double items = (f1 - f0) / (g->x[g->n - 1] - g->x[0]);
    double steps = 1, t0 = summary_get(ts, g->point[0], "time", "mean");
    size_t len = strlen(y);
    if (len > 5 && !strcmp(y + len - 5, "_rate")) {
        char name[80];
        snprintf(name, sizeof name, "%.*s_time", (int)(len - 5), y);
        double phase = summary_get(ts, g->point[0], name, "mean");
        if (isfinite(phase)) t0 = phase;
        if (isfinite(t0) && c->t[0] > 0) steps = fmax(1, round(t0 / c->t[0]));
    }
    p->plateau = b0 / p->bandwidth / (steps * k->hinge.level / 1e3);
    p->slope = items / p->peak / (steps * k->hinge.slope / 1e3);
}

/* Caches that the keys and values or the activations of the knee's rows cross: named only where
 * facts tell. */
static void other_cause(const struct tables *ts, const struct curve *c, const struct knee *k,
                        struct text *t) {
    const struct table *points = tables_peek(ts, "points");
    static const char *const levels[] = {"cpu.l2_bytes", "cpu.l3_bytes"};
    static const char *const columns[] = {"bytes_kv", "bytes_activation"};
    static const char *const words[] = {"keys and values", "activations"};
    for (size_t l = 0; l < 2; l++) {
        int64_t size;
        if (!parse_bytes(rows_environment(ts, levels[l]), &size) || size <= 0) continue;
        for (size_t w = 0; w < 2; w++)
            for (int32_t i = 1; i < c->g->n; i++) {
                double a = table_real(points, c->g->point[i - 1], columns[w]);
                double b = table_real(points, c->g->point[i], columns[w]);
                if (!(a <= (double)size && b > (double)size)) continue;
                if (c->g->x[i] < k->at / 2 || c->g->x[i - 1] > k->at * 2) continue;
                text_printf(t, "; the %s outgrow the L%d cache between %s %s and %s", words[w],
                            (int)l + 2, c->x, NUM(c->g->x[i - 1]), NUM(c->g->x[i]));
                return;
            }
    }
    for (int32_t i = 0; i < c->g->n; i++)
        if (rows_flagged(ts, c->g->point[i], "disturbed")) {
            text_puts(t, "; some rows were disturbed: threads may have waited for their cores");
            return;
        }
}

static void write_cause(struct tables *ts, const char *only_case, const struct curve *c,
                        const struct knee *k, const struct prediction *p) {
    struct text t = {0};
    if (!k->found) return;
    if (!(p->peak > 0 && p->bandwidth > 0)) {
        text_puts(&t, "unknown: this run measured no ceilings");
    } else {
        bool near = isfinite(p->at) && k->at < 2 * p->at && p->at < 2 * k->at;
        if (near)
            text_puts(&t, "bandwidth \xe2\x86\x92 compute");
        else if (isfinite(p->at))
            text_printf(&t, "not the ridge, which predicts %s", NUM(p->at));
        else
            text_printf(&t, "not the ridge, which lies %s the range",
                        p->last < 1 ? "above" : "below");
        text_printf(&t, ": the plateau reaches %s %% of the bandwidth, the slope %s %% of the peak",
                    NUM(100 * p->plateau), NUM(100 * p->slope));
        if (!near && p->slope < 0.5)
            text_puts(&t, "; items cost more than their arithmetic: kernels or threads");
        else if (!near && p->plateau < 0.5)
            text_puts(&t, "; a step costs more than its bytes: overhead, not bandwidth");
        if (!near) other_cause(ts, c, k, &t);
    }
    found(ts, only_case, c, "cause", NAN, NAN, NAN, "", NULL, t.data);
    text_free(&t);
}

static void write_prediction(struct tables *ts, const char *only_case, const struct curve *c,
                             const struct prediction *p) {
    char text[300];
    if (!(p->peak > 0 && p->bandwidth > 0))
        snprintf(text, sizeof text,
                 "no prediction: this run measured no bandwidth or no peak of %s",
                 *p->type ? p->type : "the binding type");
    else if (!isfinite(p->first))
        snprintf(text, sizeof text, "no prediction: a row has no ledger");
    else if (isfinite(p->at))
        snprintf(text, sizeof text,
                 "where the ledger's FLOPs at %s GFLOP/s take as long as its bytes at %s GB/s "
                 "(ridge %s FLOP/byte)",
                 NUM(p->peak / 1e9), NUM(p->bandwidth / 1e9), NUM(p->peak / p->bandwidth));
    else
        snprintf(text, sizeof text,
                 "outside the range: arithmetic takes %s times as long as traffic at %s %s, "
                 "%s times at %s",
                 NUM(p->first), c->x, NUM(c->g->x[0]), NUM(p->last), NUM(c->g->x[c->g->n - 1]));
    found(ts, only_case, c, "B* predicted", p->at, NAN, NAN, c->x, NULL, text);
}

static void write_knee(struct tables *ts, const char *only_case, const struct curve *c,
                       const struct knee *k, const char *left_out) {
    struct text t = {0};
    if (k->found) {
        text_printf(&t, "a step takes %s ms up to %s %s and %s ms more for each %s beyond",
                    NUM(k->hinge.level), c->x, NUM(k->at), NUM(k->hinge.slope), c->x);
        if (!isfinite(k->lo))
            text_printf(&t, "; no interval: %lld of %lld rounds bend inside the range",
                        (long long)k->inside, (long long)c->n_rounds);
    } else {
        text_printf(&t, "no knee: %s", k->why);
    }
    if (*left_out) text_printf(&t, "; left out: %s", left_out);
    found(ts, only_case, c, "B*", k->at, k->lo, k->hi, c->x, NULL, t.data);
    text_free(&t);
    if (!k->found) return;
    double c0 = k->hinge.level - k->hinge.slope * k->hinge.knee;
    char unit[80];
    snprintf(unit, sizeof unit, "ms/%s", c->x);
    found(ts, only_case, c, "t_mem", k->hinge.level, NAN, NAN, "ms", NULL,
          "t = max(t_mem, c0 + c1 x): the plateau");
    found(ts, only_case, c, "c0", c0, NAN, NAN, "ms", NULL, "the slope's line at 0");
    found(ts, only_case, c, "c1", k->hinge.slope, NAN, NAN, unit, NULL,
          "each item beyond the knee");
}

/* The first doubling of x that gains less than `gain` in throughput x/t; other steps are counted as
 * parts of one. */
static void write_doubling(struct tables *ts, const char *only_case, const struct curve *c,
                           double least) {
    char text[300] = "every doubling in the range gains more";
    double at = (double)NAN;
    int32_t before = -1;
    for (int32_t i = 0; i < c->g->n; i++) {
        if (!isfinite(c->t[i]) || !(c->g->x[i] > 0)) continue;
        if (before >= 0) {
            double step = c->g->x[i] / c->g->x[before];
            double whole = step * c->t[before] / c->t[i];
            double gain = pow(whole, 1 / log2(step)) - 1;
            if (gain < least) {
                at = c->g->x[before];
                snprintf(text, sizeof text, "%s %s \xe2\x86\x92 %s: throughput \xc3\x97%s", c->x,
                         NUM(at), NUM(c->g->x[i]), NUM(whole));
                break;
            }
        }
        before = i;
    }
    char name[80];
    snprintf(name, sizeof name, "last doubling that gains %s %%", NUM(100 * least));
    found(ts, only_case, c, name, at, NAN, NAN, c->x, NULL, text);
}

/* log(t_b / t_a) over the rounds that have both; the count. */
static size_t log_ratios(const struct curve *c, int32_t a, int32_t b, double *out) {
    size_t n = 0;
    for (int64_t r = 0; r < c->n_rounds; r++) {
        double v = log(c->each[b * c->n_rounds + r] / c->each[a * c->n_rounds + r]);
        if (isfinite(v)) out[n++] = v;
    }
    return n;
}

/* E19: throughput never falls by more than noise up to the knee, and latency rises over the range.
 */
static void check_order(struct tables *ts, const char *only_case, const struct curve *c,
                        const struct knee *k) {
    double *logs = must_alloc((size_t)(c->n_rounds + 1) * sizeof *logs);
    double end = k->found ? k->at : c->g->x[c->g->n - 1], value, lo, hi;
    int32_t pairs = 0, first = -1, last = -1, before = -1;
    for (int32_t i = 1; i < c->g->n; i++) pairs += c->g->x[i] <= end;
    const char *verdict = "none";
    char text[200] = "no two rows have rounds in common";
    double worst = (double)NAN;
    for (int32_t i = 0; i < c->g->n; i++) {
        if (!isfinite(c->t[i])) continue;
        if (first < 0) first = i;
        last = i;
        if (before >= 0 && c->g->x[i] <= end) {
            double step = c->g->x[i] / c->g->x[before];
            size_t n = log_ratios(c, before, i, logs);
            if (n >= 2) {
                /* Many pairs are looked at: each at a level that leaves 5 % for all. */
                double half = stats_t_quantile(1 - 0.025 / pairs, (double)n - 1) *
                              stats_stddev(logs, n) / sqrt((double)n);
                double gain = log(step) - stats_mean(logs, n);
                bool falls = gain + half < 0;
                if (strcmp(verdict, "failed")) verdict = falls ? "failed" : "ok";
                if (!(exp(gain) > worst)) {
                    worst = exp(gain);
                    snprintf(text, sizeof text, "least step: %s %s \xe2\x86\x92 %s, \xc3\x97%s",
                             c->x, NUM(c->g->x[before]), NUM(c->g->x[i]), NUM(worst));
                }
            }
        }
        before = i;
    }
    if (pairs > 0)
        found(ts, only_case, c, "throughput rises up to the knee", worst, NAN, NAN, "", verdict,
              text);
    if (first >= 0 && last > first) {
        rows_log_interval(logs, log_ratios(c, first, last, logs), &value, &lo, &hi);
        verdict = lo > 1 ? "ok" : hi < 1 ? "failed" : "none";
        snprintf(text, sizeof text, "step time at %s %s over %s", c->x, NUM(c->g->x[last]),
                 NUM(c->g->x[first]));
        found(ts, only_case, c, "latency rises", value, lo, hi, "", verdict, text);
    }
    free(logs);
}

static double variance_share(const struct tables *ts, int64_t point, const char *metric) {
    double s = summary_get(ts, point, metric, "stddev") / summary_get(ts, point, metric, "mean");
    return isfinite(s) ? s * s : 0;
}

/* E19: throughput gain = items gain / latency gain in every row. Rate and time are two metrics with
   their own paths from the samples; the mean of a ratio differs from the ratio of means by the
   share of the variance. */
static void check_identity(struct tables *ts, const char *only_case, const struct curve *c,
                           const char *y) {
    char time[80], text[200];
    size_t len = strlen(y);
    if (len < 6 || len > 70 || strcmp(y + len - 5, "_rate")) return;
    snprintf(time, sizeof time, "%.*s_time", (int)(len - 5), y);
    double base = (double)NAN, worst = 0, allowed = 0, v0 = 0;
    int32_t rows = 0, first = 0;
    for (int32_t i = 0; i < c->g->n; i++) {
        int64_t point = c->g->point[i];
        double product =
            summary_get(ts, point, y, "mean") * summary_get(ts, point, time, "mean") / c->g->x[i];
        double v = variance_share(ts, point, y) + variance_share(ts, point, time);
        if (!(product > 0)) continue;
        if (!isfinite(base)) {
            base = product;
            v0 = v;
            first = i;
            continue;
        }
        rows++;
        double off = fabs(product / base - 1), room = 1e-6 + 2 * (v + v0);
        if (off - room > worst - allowed || rows == 1) worst = off, allowed = room;
    }
    if (!rows) return;
    char off[32], room[32];
    snprintf(
        text, sizeof text,
        "throughput gain = items gain / latency gain in %d row%s against %s %s: off by at most "
        "%s, %s allowed",
        rows, rows == 1 ? "" : "s", c->x, NUM(c->g->x[first]),
        format_number(off, sizeof off, worst, 2), format_number(room, sizeof room, allowed, 2));
    found(ts, only_case, c, "product identity", worst, NAN, NAN, "",
          worst <= allowed ? "ok" : "failed", text);
}

static void run_group(struct tables *ts, const char *only_case, const void *params,
                      const struct rows_group *g, const struct rounds *r, const char *left_out) {
    const struct knee_params *p = params;
    struct curve c = {.g = g, .x = rows_short(p->x), .suffix = ""};
    if ((double)g->n * (double)r->n_rounds > 5e7) { /* no run of ours; a file may say anything */
        found(ts, only_case, &c, "B*", NAN, NAN, NAN, "", NULL, "no knee: too many visits");
        return;
    }
    struct arena *arena = arena_create();
    c.suffix = *g->name ? arena_printf(arena, " %s", g->name) : "";
    curve_read(r, rows_is_rate(rows_unit(ts, p->y)), &c, arena);
    double *x = arena_alloc(arena, (size_t)g->n * sizeof *x);
    double *t = arena_alloc(arena, (size_t)g->n * sizeof *t);
    struct knee k = {0};
    struct prediction forecast;
    fit_curve(&c, x, t, &k);
    predict(ts, &c, p->y, &k, &forecast);
    write_knee(ts, only_case, &c, &k, left_out);
    write_prediction(ts, only_case, &c, &forecast);
    write_cause(ts, only_case, &c, &k, &forecast);
    write_doubling(ts, only_case, &c, p->gain);
    check_order(ts, only_case, &c, &k);
    check_identity(ts, only_case, &c, p->y);
    arena_close(&arena);
}

static int run(const void *params, const char *only_case, struct tables *ts, struct err *err) {
    const struct knee_params *p = params;
    const struct finding none = {"knee", only_case, "B*", NAN, NAN, NAN, rows_short(p->x), NULL};
    (void)err;
    analysis_groups(ts, &(struct analysis_axes){p->x, p->y, p->by}, &none, "no knee", p, run_group);
    return 0;
}

static const struct option options[] = {
    {"x", NULL, OPT_TEXT, 0, offsetof(struct knee_params, x), NULL, 0, 0, NULL, "",
     "swept key whose items share a step, as workload.batch"},
    {"y", NULL, OPT_TEXT, 0, offsetof(struct knee_params, y), "time", 0, 0, NULL, "",
     "a time of one step, or a rate of x items per step"},
    {"by", NULL, OPT_TEXT, 0, offsetof(struct knee_params, by), "", 0, 0, NULL, "",
     "keys whose values tell curves apart; empty: every other swept key"},
    {"gain", NULL, OPT_REAL, 0, offsetof(struct knee_params, gain), "0.25", 0, 1, NULL, "",
     "least gain in throughput of a doubling that pays (the simple rule)"},
    {0},
};

const struct analysis analysis_knee = {
    .name = "knee",
    .brief = "where batching stops paying, its interval, the ridge's prediction, the cause",
    .params = options,
    .params_size = sizeof(struct knee_params),
    .run = run,
};
