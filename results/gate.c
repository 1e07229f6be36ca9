/* SPDX-License-Identifier: Apache-2.0 */
/* From rounds or stored intervals to verdicts, the line over all rows and one exit code. */
#include "results/gate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/evalue.h"
#include "results/gate_parts.h"
#include "results/rows.h"
#include "results/show_parts.h"
#include "results/stats.h"

const char *const gate_verdict_names[N_GATE_VERDICTS] = {
    "pass", "faster", "slower", "undecided", "blind", "incomparable", "missing", "new", "state"};

enum {
    MOST_ROUNDS = 100000, /* beyond which nobody waits */
    GAIN_ROUNDS = 12      /* in which a row that passes may show that it is faster */
};

double gate_alpha(const struct gate_settings *s, int repeats) {
    return ldexp(s->alpha, -repeats - 1);
}

int gate_check(const struct gate_settings *s, size_t rows, int repeats, struct err *err) {
    if (!(s->tolerance < s->detect))
        return err_set(
            err, ERR_INPUT,
            "gate.tolerance = %g %% is not below gate.detect = %g %%: a change that must "
            "be seen has to lie beyond what is tolerated",
            100 * s->tolerance, 100 * s->detect);
    if (rows_check(s->rows, err)) return err_prefix(err, "gate.rows");
    const double alpha = gate_alpha(s, repeats);
    const size_t least = evalue_least_rounds(evalue_ln_bound(alpha, (int64_t)rows + 1));
    if (rows && s->rounds < (int64_t)least)
        return err_set(err, ERR_INPUT,
                       "gate.rounds = %lld can decide nothing: %zu rows at gate.alpha = %g need at "
                       "least %zu rounds in attempt %d",
                       (long long)s->rounds, rows, s->alpha, least, repeats + 1);
    return 0;
}

/* --- rows --- */

struct gate *gate_create(enum gate_kind kind, const struct gate_settings *settings, int repeats) {
    struct gate *g = must_alloc(sizeof *g);
    g->arena = arena_create();
    g->kind = kind;
    g->settings = *settings;
    g->settings.metric = arena_text(g->arena, settings->metric);
    g->settings.rows = arena_text(g->arena, settings->rows);
    g->repeats = repeats;
    g->geometric = g->factor_bound = (double)NAN;
    return g;
}

void gate_close(struct gate **g) {
    if (!*g) return;
    for (size_t i = 0; i < (*g)->n_rows; i++) {
        free((*g)->rows[i].y);
        free((*g)->rows[i].means);
    }
    free((*g)->all.y);
    free((*g)->all.means);
    free((*g)->rows);
    free((*g)->notes);
    arena_close(&(*g)->arena);
    free(*g);
    *g = NULL;
}

static const char *kept(struct gate *g, const char *text) {
    return arena_text(g->arena, text ? text : "");
}

/* One line, and nothing that a terminal would obey: files may say anything. */
static const char *plain(struct gate *g, const char *text) {
    struct text t = {0};
    text_add(&t, "", 0);
    show_plain(&t, text ? text : "");
    const char *copy = arena_text(g->arena, t.data);
    text_free(&t);
    return copy;
}

size_t gate_add(struct gate *g, const struct gate_row *row) {
    if (g->n_rows == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 32;
        g->rows = must_realloc(g->rows, g->cap * sizeof *g->rows);
    }
    struct gate_row *r = &g->rows[g->n_rows];
    *r = *row;
    r->name = plain(g, row->name);
    r->cell = kept(g, row->cell);
    r->metric = plain(g, row->metric);
    r->unit = plain(g, row->unit);
    r->state = plain(g, row->state);
    r->flags = plain(g, row->flags);
    if (g->repeats)
        r->flags =
            arena_printf(g->arena, "%s%sretried %d", r->flags, *r->flags ? " " : "", g->repeats);
    r->incomparable = kept(g, row->incomparable);
    r->why = plain(g, row->why);
    r->reason = "";
    r->y = r->means = NULL;
    r->n = r->cap = 0;
    return g->n_rows++;
}

static void put_round(struct gate_row *r, size_t round, double y, double mean) {
    if (round >= r->cap) {
        const size_t cap = round < 32 ? 64 : 2 * round;
        r->y = must_realloc(r->y, cap * sizeof *r->y);
        r->means = must_realloc(r->means, cap * sizeof *r->means);
        r->cap = cap;
    }
    for (; r->n <= round; r->n++) r->y[r->n] = r->means[r->n] = NAN;
    r->y[round] = y;
    r->means[round] = mean;
}

void gate_round(struct gate *g, size_t row, size_t round, double y, double mean) {
    put_round(&g->rows[row], round, y, mean);
}

void gate_note(struct gate *g, const char *fmt, ...) {
    char sentence[2000];
    va_list args;
    va_start(args, fmt);
    text_vformat(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (g->n_notes == g->cap_notes) {
        g->cap_notes = g->cap_notes ? 2 * g->cap_notes : 8;
        g->notes = must_realloc(g->notes, g->cap_notes * sizeof *g->notes);
    }
    g->notes[g->n_notes++] = plain(g, sentence);
}

double gate_ln_bound(const struct gate *g) {
    size_t m = 0;
    for (size_t i = 0; i < g->n_rows; i++) m += !g->rows[i].exact;
    return evalue_ln_bound(gate_alpha(&g->settings, g->repeats), (int64_t)m + 1);
}

double gate_level(const struct gate *g) {
    return g->kind == GATE_COMPARE ? 0.95 : 1 - exp(-gate_ln_bound(g));
}

const char *gate_word(const struct gate_row *r) {
    const bool good = !*r->state || !strcmp(r->state, "ok") || !strcmp(r->state, "degraded");
    if (r->verdict == GATE_STATE) return good ? "no numbers" : r->state;
    if (r->exact && r->verdict == GATE_SLOWER) return "worse";
    if (r->exact && r->verdict == GATE_FASTER) return "better";
    return gate_verdict_names[r->verdict];
}

/* --- judging --- */

/* y counts as slower where the metric grows, or falls if more of it is better. */
double gate_sign(const struct gate *g, const struct gate_row *r) {
    if (g->settings.direction != GATE_AUTO && !r->exact)
        return g->settings.direction == GATE_HIGHER ? -1 : 1;
    return r->better == BETTER_HIGHER ? -1 : 1;
}

static void percent(struct text *t, double log_ratio) {
    text_printf(t, "%+.*f %%", fabs(expm1(log_ratio)) < 0.0995 ? 1 : 0, 100 * expm1(log_ratio));
}

/* "time 53.1 to 55.7 ms": what every reason about numbers begins with. */
static void numbers(const struct gate_row *r, struct text *t) {
    char a[32], b[32];
    text_printf(t, "%s", r->metric);
    if (isnan(r->old_value) || isnan(r->new_value)) return;
    text_printf(t, " %s to %s%s%s", format_number(a, sizeof a, r->old_value, r->exact ? 9 : 4),
                format_number(b, sizeof b, r->new_value, r->exact ? 9 : 4), *r->unit ? " " : "",
                r->unit);
}

void gate_finish(struct gate *g, struct gate_row *r, struct text *t) {
    if (*r->why && (r->verdict != GATE_PASS || !t->len))
        text_printf(t, "%s%s", t->len ? "; " : "", r->why);
    if (r->shape_changed) text_printf(t, "%sthe shape of the times changed", t->len ? "; " : "");
    const char *degraded = strcmp(r->state, "degraded") ? "" : "degraded";
    if (*r->flags || *degraded)
        text_printf(t, "%sflagged %s%s%s", t->len ? "; " : "", degraded,
                    *degraded && *r->flags ? " " : "", r->flags);
    r->reason = kept(g, t->data);
    text_free(t);
}

static bool has_flag(const struct gate_row *r, const char *flag) {
    return text_has_word(r->flags, flag, strlen(flag));
}

/* Where names are alike, the cell tells what was renamed. */
static void only(const struct gate_row *r, const char *side, struct text *t) {
    text_printf(t, "only %s has it%s%.200s", side, *r->cell ? ": " : "", r->cell);
}

/* Rows that are decided without a test. */
static bool settled(struct gate *g, struct gate_row *r) {
    struct text t = {0};
    const bool flagged =
        g->kind != GATE_COMPARE && (has_flag(r, "throttled") || has_flag(r, "fell_back"));
    const bool state = *r->state && strcmp(r->state, "ok") && strcmp(r->state, "degraded");
    r->ratio = r->new_value / r->old_value;
    if (!isfinite(r->ratio) || r->ratio <= 0) r->ratio = (double)NAN;
    r->lo = r->hi = r->detectable = r->s = (double)NAN;
    r->rounds = r->would_take = 0;
    r->shape_changed = r->between_unknown = r->no_change = false;
    if (state) {
        r->verdict = GATE_STATE;
        r->ratio = (double)NAN;
        if (!*r->why) text_puts(&t, "the row has no numbers to compare");
    } else if (r->in_old && r->in_new && flagged) {
        r->verdict = GATE_STATE;
        r->state = has_flag(r, "throttled") ? "throttled" : "fell_back";
        if (!*r->why) text_puts(&t, "such a row fails a gate");
    } else if (!r->in_new) {
        r->verdict = GATE_MISSING;
        only(r, g->old_name ? g->old_name : "the old side", &t);
    } else if (!r->in_old) {
        r->verdict = GATE_NEW;
        only(r, g->new_name ? g->new_name : "the new side", &t);
    } else if (*r->incomparable) {
        r->verdict = GATE_INCOMPARABLE;
        const size_t n = strlen(r->incomparable) > 60 ? strcspn(r->incomparable, " ") : 0;
        text_printf(&t, "facts differ: %.*s%s", n ? (int)n : 60, r->incomparable,
                    n ? " and others" : "");
    } else if (g->kind != GATE_LIVE && !r->exact && (!r->old_side.runs || !r->new_side.runs)) {
        r->verdict = GATE_STATE;
        r->ratio = (double)NAN;
        if (!r->old_side.runs && !r->new_side.runs)
            text_printf(&t, "neither side has a %s above 0", r->metric);
        else
            text_printf(&t, "%s has no %s above 0",
                        r->old_side.runs ? "the new side" : "the old side", r->metric);
    } else if (r->exact) {
        const bool equal = r->old_value <= r->new_value && r->old_value >= r->new_value;
        const bool grows = r->new_value > r->old_value;
        r->verdict = equal                                  ? GATE_PASS
                     : r->better == BETTER_NONE             ? GATE_SLOWER
                     : grows == (r->better == BETTER_LOWER) ? GATE_SLOWER
                                                            : GATE_FASTER;
        if (isnan(r->old_value) || isnan(r->new_value)) r->verdict = GATE_SLOWER;
        r->lo = r->hi = r->ratio;
        if (!equal) {
            numbers(r, &t);
            text_puts(&t, ": exact, tolerance 0");
        }
    } else {
        return false;
    }
    gate_finish(g, r, &t);
    return true;
}

/* The three questions at n rounds of z (slower is positive). */
static enum gate_verdict decide(const struct gate_settings *s, const struct evalue *e,
                                double bound) {
    const double slow = log1p(s->tolerance), fast = log1p(-s->tolerance), much = log1p(s->detect);
    if (e->mean > slow && evalue_ln(e, slow) >= bound) return GATE_SLOWER;
    if (e->mean < fast && evalue_ln(e, fast) >= bound) return GATE_FASTER;
    if (e->mean < much && evalue_ln(e, much) >= log(EVALUE_PASS)) return GATE_PASS;
    return GATE_UNDECIDED;
}

/* One more look: true if it is the last. A pass needs less evidence than a gain: a row that passes
   and seems faster is looked at on, but no later look makes it slower. */
static bool look(const struct gate_settings *s, const struct evalue *e, double bound,
                 enum gate_verdict *verdict) {
    const bool gains = e->mean < log1p(-s->tolerance);
    if (e->n < EVALUE_LEAST) return false;
    const enum gate_verdict now = decide(s, e, bound);
    if (*verdict == GATE_UNDECIDED)
        *verdict = now;
    else if (now == GATE_FASTER)
        *verdict = now;
    return *verdict == GATE_PASS ? !gains : *verdict != GATE_UNDECIDED;
}

static void say_undecided(const struct gate_settings *s, enum gate_kind kind, struct gate_row *r,
                          double sign, double lo, double hi, struct text *t) {
    if (r->verdict == GATE_BLIND) {
        text_printf(t, "too noisy: changes below ");
        percent(t, log1p(r->detectable));
        text_printf(t, " cannot be seen, %g %% must be", 100 * s->detect);
    } else if (r->rounds < EVALUE_LEAST && kind == GATE_LIVE) {
        text_printf(t, "%zu round%s of at least %d", r->rounds, r->rounds == 1 ? "" : "s",
                    EVALUE_LEAST);
    } else if (isfinite(lo) && isfinite(hi)) {
        percent(t, fmin(sign * lo, sign * hi));
        text_puts(t, " and ");
        percent(t, fmax(sign * lo, sign * hi));
        text_puts(t, " are both possible");
    } else {
        text_printf(t, "too few rounds for an interval");
    }
    if (r->would_take > r->rounds) text_printf(t, "; would take %zu rounds", r->would_take);
}

void gate_say(const struct gate_settings *s, enum gate_kind kind, struct gate_row *r, double sign,
              double lo, double hi, struct text *t) {
    const double edge = r->verdict == GATE_SLOWER ? lo : hi; /* of z: the one nearer to 0 */
    if (r->verdict == GATE_PASS) return;
    if (r->verdict != GATE_SLOWER && r->verdict != GATE_FASTER) {
        say_undecided(s, kind, r, sign, lo, hi, t);
        return;
    }
    numbers(r, t);
    text_puts(t, ": at least ");
    percent(t, sign * edge);
    text_printf(t, " by its interval, tolerance %g %%, %zu rounds", 100 * s->tolerance, r->rounds);
}

/* Rounds in all until a decision; of a row that passes and seems faster, until that is known. */
static size_t rounds_left(const struct gate_row *r, const struct gate_settings *s,
                          const struct evalue *e, double bound) {
    const double slow = log1p(s->tolerance), much = log1p(s->detect);
    if (r->verdict == GATE_PASS) {
        const double fast = log1p(-s->tolerance);
        return evalue_rounds_until(e, fast, -1, bound, GAIN_ROUNDS);
    }
    const size_t a = evalue_rounds_until(e, slow, 1, bound, MOST_ROUNDS);
    const size_t b = evalue_rounds_until(e, much, -1, log(EVALUE_PASS), MOST_ROUNDS);
    return !a || (b && b < a) ? b : a;
}

/* Equal code with equal settings has not changed, whatever the test found: where code and data lie
   in memory makes differences of some percent, and chance makes others. */
static void take_back(struct gate_row *r, struct text *t) {
    if (r->verdict != GATE_SLOWER && r->verdict != GATE_FASTER) return;
    r->verdict = GATE_UNDECIDED;
    r->no_change = true;
    text_puts(t, "; but both sides are the same machine code with the same settings: the "
                 "difference is one of memory layout or of this machine");
}

/* The rounds in which the row took part, up to the look that decided. */
static void judge_live(struct gate *g, struct gate_row *r, const struct gate_settings *s,
                       double bound, double factor) {
    const double sign = gate_sign(g, r);
    double *z = must_alloc((r->n + 1) * sizeof *z), *d = must_alloc((r->n + 1) * sizeof *d);
    struct text t = {0};
    struct evalue e = {0, NAN, NAN};
    double lo, hi;
    size_t n = 0;
    bool last = false;
    r->verdict = GATE_UNDECIDED;
    r->no_change = false;
    for (size_t i = 0; i < r->n && !last; i++) {
        if (isnan(r->y[i])) continue;
        z[n] = sign * r->y[i];
        d[n] = r->means[i] - r->y[i];
        e = evalue_of(z, ++n);
        last = look(s, &e, bound, &r->verdict);
    }
    r->rounds = n;
    r->s = e.s;
    evalue_interval(&e, bound, &lo, &hi);
    r->ratio = n ? exp(sign * e.mean) : (double)NAN;
    r->lo = exp(sign > 0 ? lo : -hi);
    r->hi = exp(sign > 0 ? hi : -lo);
    if (n >= 2) r->detectable = (1 + s->tolerance) * exp(factor * e.s) - 1;
    if (!last && n >= EVALUE_LEAST) {
        r->would_take = rounds_left(r, s, &e, bound);
        if (r->verdict == GATE_UNDECIDED && r->detectable > s->detect) r->verdict = GATE_BLIND;
    }
    if (n >= EVALUE_LEAST) { /* NAN where no plain means were given */
        const double error = fmax(stats_stddev(d, n), e.s) / sqrt((double)n);
        r->shape_changed = fabs(stats_mean(d, n)) > 3 * error;
    }
    gate_say(s, g->kind, r, sign, lo, hi, &t);
    if (g->same_code) take_back(r, &t);
    gate_finish(g, r, &t);
    free(z);
    free(d);
}

/* The line over all rows: of each round the trimmed mean over the rows that took part, where four
   in five of them did; it ends for good where rows that are decided have stopped. */
static void judge_all(struct gate *g, double bound, double factor) {
    struct gate_row *all = &g->all;
    size_t most = 0, rows = 0;
    double sign = 1;
    double *y = must_alloc((2 * g->n_rows + 1) * sizeof *y), *m = y + g->n_rows;
    for (size_t i = 0; i < g->n_rows; i++) {
        const struct gate_row *r = &g->rows[i];
        if (r->exact || r->verdict > GATE_BLIND) continue;
        most = r->n > most ? r->n : most;
        if (!rows++) sign = gate_sign(g, r);
    }
    all->n = 0;
    g->has_all = g->kind == GATE_LIVE && rows > 1;
    for (size_t k = 0; k < most && g->has_all; k++) {
        size_t n = 0;
        for (size_t i = 0; i < g->n_rows; i++) {
            const struct gate_row *r = &g->rows[i];
            if (r->exact || r->verdict > GATE_BLIND || k >= r->n || isnan(r->y[k])) continue;
            y[n] = gate_sign(g, r) * r->y[k];
            m[n++] = gate_sign(g, r) * r->means[k];
        }
        if (n * 5 < rows * 4 || !n) continue;
        const double mean = stats_mean(m, n), trimmed = evalue_trimmed_mean(y, n, 0.2);
        put_round(all, all->n, sign * trimmed, sign * mean); /* in the direction of the rows */
    }
    free(y);
    if (!g->has_all) return;
    all->name = "all rows";
    all->cell = all->state = all->flags = all->incomparable = all->why = all->unit = "";
    all->metric = "mean over rows";
    all->better = sign < 0 ? BETTER_HIGHER : BETTER_LOWER;
    all->old_value = all->new_value = (double)NAN;
    all->in_old = all->in_new = true;
    /* Its spread is that of a mean: it passes only where a common change of 2 tolerances (or of 0.4
       detect) is excluded, far below what one row can show. */
    struct gate_settings own = g->settings;
    own.detect = fmin(own.detect, fmax(2 * own.tolerance, 0.4 * own.detect));
    judge_live(g, all, &own, bound, factor);
    all->shape_changed = false;
}

void gate_judge(struct gate *g) {
    const double bound = gate_ln_bound(g);
    if (g->kind == GATE_LIVE && !(g->factor_bound >= bound && g->factor_bound <= bound)) {
        g->factor = evalue_detectable((size_t)g->settings.rounds, bound, GATE_POWER);
        g->factor_bound = bound;
    }
    const double factor = g->factor;
    double sum = 0;
    g->n_geometric = 0;
    for (size_t i = 0; i < g->n_rows; i++) {
        struct gate_row *r = &g->rows[i];
        if (settled(g, r)) continue;
        if (g->kind == GATE_LIVE)
            judge_live(g, r, &g->settings, bound, factor);
        else
            gate_judge_stored(g, r, bound);
        if (!isfinite(r->ratio)) continue;
        sum += log(r->ratio);
        g->n_geometric++;
    }
    g->geometric = g->n_geometric ? exp(sum / (double)g->n_geometric) : (double)NAN;
    judge_all(g, bound, factor);
}

static bool unsettled(const struct gate_row *r) {
    return r->verdict == GATE_UNDECIDED || r->verdict == GATE_BLIND;
}

/* Whether further rounds could settle it. */
static bool wants_more(const struct gate_row *r) { return unsettled(r) && !r->no_change; }

bool gate_open(const struct gate *g, size_t row) {
    const struct gate_row *r = &g->rows[row];
    if (r->exact || r->verdict > GATE_BLIND || r->n >= (size_t)g->settings.rounds) return false;
    if (r->verdict == GATE_PASS && r->would_take > r->rounds) return true;
    return wants_more(r) || (g->has_all && wants_more(&g->all));
}

bool gate_done(const struct gate *g) {
    for (size_t i = 0; i < g->n_rows; i++)
        if (gate_open(g, i)) return false;
    return true;
}

size_t gate_count(const struct gate *g, enum gate_verdict v) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_rows; i++) n += g->rows[i].verdict == v;
    return n;
}

int gate_exit(const struct gate *g) {
    const bool all = g->has_all;
    size_t tested = 0, blind = 0, open = 0, unknown = 0, broken = 0;
    for (size_t i = 0; i < g->n_rows; i++) {
        const struct gate_row *r = &g->rows[i];
        tested += !r->exact && r->verdict <= GATE_BLIND;
        blind += r->verdict == GATE_BLIND;
        open += unsettled(r);
        unknown += r->between_unknown;
        broken += r->verdict == GATE_MISSING || r->verdict == GATE_STATE;
    }
    const bool slower = gate_count(g, GATE_SLOWER) || (all && g->all.verdict == GATE_SLOWER);
    if (slower && g->kind != GATE_COMPARE) return 1;
    if (broken || (!g->n_rows && !g->n_equal)) return 3;
    if (gate_count(g, GATE_INCOMPARABLE)) return 4;
    if (g->kind == GATE_COMPARE) return 0;
    if (unknown || (double)blind > g->settings.max_blind * (double)tested) return 5;
    if (g->settings.strict && (open || (all && unsettled(&g->all)))) return 5;
    return 0;
}

void gate_verdict_line(const struct gate *g, struct text *t) {
    static const enum gate_verdict order[] = {GATE_SLOWER,       GATE_STATE, GATE_MISSING,
                                              GATE_INCOMPARABLE, GATE_BLIND, GATE_UNDECIDED,
                                              GATE_FASTER,       GATE_NEW,   GATE_PASS};
    size_t said = 0;
    if (!g->n_rows && g->n_equal)
        text_printf(t, "%zu exact number%s equal", g->n_equal, g->n_equal == 1 ? "" : "s");
    else if (!g->n_rows)
        text_puts(t, "no rows");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const size_t n = gate_count(g, order[i]);
        if (!n) continue;
        if (!said++)
            text_printf(t, "%zu row%s ", n, n == 1 ? "" : "s");
        else
            text_printf(t, ", %zu ", n);
        text_puts(t, order[i] == GATE_STATE ? "without numbers" : gate_verdict_names[order[i]]);
    }
    if (g->has_all && g->all.verdict == GATE_SLOWER) text_puts(t, "; all rows together slower");
}
