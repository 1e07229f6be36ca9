/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of stored runs: means of logarithms, the spread within and between runs, an interval. */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/gate_parts.h"
#include "results/stats.h"

void gate_side_add(struct gate_side *side, const double *values, size_t n) {
    double *logs = must_alloc((n + 1) * sizeof *logs);
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (values[i] > 0 && isfinite(values[i])) logs[m++] = log(values[i]);
    if (m) {
        /* Runs weigh the same: between them lies more than within. Welford's step keeps the
           spread of their means, in `between` as a sum of squares until it is asked for. */
        const double mean = stats_mean(logs, m), s = stats_stddev(logs, m);
        const double k = (double)++side->runs, d = mean - side->mean;
        const double squares = side->runs > 2 ? side->between * side->between * (k - 2) : 0;
        side->mean += d / k;
        side->between =
            side->runs > 1 ? sqrt((squares + d * (mean - side->mean)) / (k - 1)) : (double)NAN;
        const double own = m > 1 ? s * s / (double)m : 0;
        side->variance = (side->variance * (k - 1) * (k - 1) + own) / (k * k);
        side->df += m > 1 ? (double)(m - 1) : 0;
        side->rounds += m;
    }
    free(logs);
}

#define REFUTED 1e-3 /* chance below which runs contradict what is said of their spread */

/* Whether the runs of a side lie farther apart than runs with this standard deviation do (known
   with so many degrees of freedom): F test of the variance of their means, which has the spread of
   rounds within runs in it. */
static bool refutes(const struct gate_side *side, double spread, double df) {
    const double n = (double)side->runs, d = n - 1;
    if (side->runs < 2) return false;
    const double f = side->between * side->between / (spread * spread + side->variance * n);
    return stats_beta(df / (df + d * f), df / 2, d / 2) < REFUTED; /* P(F > f) */
}

/* Says so where the runs of one side contradict the spread that would be taken for both. */
static bool contradicted(const struct gate *g, const struct gate_row *r, struct text *t) {
    const struct gate_side *a = &r->old_side, *b = &r->new_side;
    const bool known = r->between > 0;
    const double spread = known ? r->between : g->settings.between_run;
    const double df = known ? r->between_df : 1e6; /* stated: as if for certain */
    char seen[32], said[32];
    if ((a->runs > 1 && b->runs > 1) || !(spread > 0)) return false;
    const struct gate_side *side = refutes(a, spread, df) ? a : refutes(b, spread, df) ? b : NULL;
    if (!side) return false;
    text_printf(t,
                "between-run spread unknown: the runs of the %s side differ by %s %%, more than "
                "the %s %% that %s",
                side == a ? "old" : "new", format_number(seen, sizeof seen, 100 * side->between, 2),
                format_number(said, sizeof said, 100 * spread, 2),
                known ? "were found before" : "gate.between_run states");
    return true;
}

/* Standard error of ln(new/old) and its degrees of freedom; NAN where it cannot be known. */
static double stored_error(const struct gate *g, const struct gate_row *r, double *df,
                           bool *unknown) {
    const struct gate_side *a = &r->old_side, *b = &r->new_side;
    const double within = a->variance + b->variance, stated = g->settings.between_run;
    const double shares = 1 / (double)a->runs + 1 / (double)b->runs;
    const double welch =
        within * within /
        (a->variance * a->variance / fmax(a->df, 1) + b->variance * b->variance / fmax(b->df, 1));
    *unknown = false;
    if (a->runs > 1 && b->runs > 1) { /* the runs themselves are the sample (Welch 1947) */
        const double va = a->between * a->between / (double)a->runs;
        const double vb = b->between * b->between / (double)b->runs;
        const double v = va + vb;
        *df = v * v / (va * va / (double)(a->runs - 1) + vb * vb / (double)(b->runs - 1));
        if (!(v > 0)) *df = (double)(a->runs + b->runs - 2);
        return sqrt(v);
    }
    if (r->between > 0) { /* its runs' means have the spread within runs in them */
        *df = r->between_df;
        return sqrt(fmax(r->between * r->between * shares, within));
    }
    if (stated > 0) {
        const double v = within + stated * stated * shares;
        *df = within > 0 ? fmin(welch * v * v / (within * within), 1e6) : 1e6; /* normal, nearly */
        return sqrt(v);
    }
    *unknown = g->kind == GATE_STORED;
    *df = within > 0 ? welch : a->df + b->df;
    return a->df > 0 && b->df > 0 ? sqrt(within) : (double)NAN;
}

void gate_judge_stored(struct gate *g, struct gate_row *r, double bound) {
    const struct gate_settings *s = &g->settings;
    const double sign = gate_sign(g, r), z = sign * (r->new_side.mean - r->old_side.mean);
    const double side = g->kind == GATE_COMPARE ? 0.975 : 1 - exp(-bound) / 2;
    double df = 1;
    bool unknown;
    struct text t = {0};
    const double error = stored_error(g, r, &df, &unknown);
    const double q = stats_t_quantile(side, fmax(df, 1)), lo = z - q * error, hi = z + q * error;
    const double pass =
        g->kind == GATE_COMPARE ? hi : z + error * stats_t_quantile(0.99, fmax(df, 1));
    r->rounds = r->old_side.rounds < r->new_side.rounds ? r->old_side.rounds : r->new_side.rounds;
    r->verdict = GATE_UNDECIDED;
    r->s = error;
    r->ratio = exp(sign * z);
    r->lo = exp(sign > 0 ? lo : -hi);
    r->hi = exp(sign > 0 ? hi : -lo);
    if (contradicted(g, r, &t)) {
        r->between_unknown = true;
    } else if (unknown) {
        r->between_unknown = true;
        text_puts(&t, "between-run spread unknown");
    } else if (isnan(error)) {
        text_puts(&t, "one round has no interval");
    } else {
        r->detectable =
            (1 + s->tolerance) * exp((q + stats_t_quantile(GATE_POWER, fmax(df, 1))) * error) - 1;
        if (lo > log1p(s->tolerance))
            r->verdict = GATE_SLOWER;
        else if (hi < log1p(-s->tolerance))
            r->verdict = GATE_FASTER;
        else if (pass < log1p(s->detect))
            r->verdict = GATE_PASS;
        else if (g->kind == GATE_STORED && r->detectable > s->detect)
            r->verdict = GATE_BLIND;
        gate_say(s, g->kind, r, sign, lo, hi, &t);
    }
    gate_finish(g, r, &t);
}
