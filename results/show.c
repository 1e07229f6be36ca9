/* SPDX-License-Identifier: Apache-2.0 */
/* What a person reads of a result, from the question to the flags; the same words for run, resume
 * and show. */
#include "results/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "results/pairs.h"
#include "results/rows.h"
#include "results/show_parts.h"
#include "results/summary.h"

#define EQUAL_DIGITS 1e-12 /* ours and theirs are one number */
enum { NOTICES_MOST = 32, ODD_ROWS_MOST = 20, ROWS_NAMED = 4, COLUMN = 13 };

const char *const show_needs[] = {"protocol", "environment", "ceilings", "points",
                                  "phases",   "metrics",     "visits",   "summary",
                                  "fits",     "published",   "pairs",    NULL};

/* ---- head */

static void join(struct text *line, const char *separator, const char *word) {
    if (!*word) return;
    text_printf(line, "%s%s", line->len ? separator : "", word);
}

/* "cpu isa=avx2 threads=2 pinning=..." as "cpu avx2, 2 threads". */
static void device_words(const char *text, struct text *out) {
    size_t n = strcspn(text, " ");
    text_add(out, text, n);
    const char *isa = strstr(text, " isa="), *threads = strstr(text, " threads=");
    if (isa) {
        isa += strlen(" isa=");
        if (strncmp(isa, "auto", 4)) text_printf(out, " %.*s", (int)strcspn(isa, " "), isa);
    }
    if (threads) {
        long k = strtol(threads + strlen(" threads="), NULL, 10);
        if (k > 0) text_printf(out, ", %ld thread%s", k, k == 1 ? "" : "s");
    }
}

/* The last row is of the question itself: ceilings come first. A key that is swept is in the table.
 */
static void model_words(const struct tables *ts, int64_t point, struct text *out) {
    static const char *const keys[] = {"model.shape", "model.type"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct text value = {0};
        if (table_find(tables_peek(ts, "points"), keys[i]) < 0)
            rows_key_text(ts, point, keys[i], &value);
        if (value.len) join(out, " ", value.data);
        text_free(&value);
    }
}

static void machine_words(const struct tables *ts, struct text *out) {
    const char *model = rows_environment(ts, "cpu.model"),
               *cores = rows_environment(ts, "cpu.allowed");
    const char *hypervisor = rows_environment(ts, "virtual.hypervisor");
    double n;
    if (!*model || !strcmp(model, "unknown")) return;
    text_puts(out, model);
    if (!parse_f64(cores, &n)) cores = rows_environment(ts, "cpu.cores");
    if (parse_f64(cores, &n)) text_printf(out, ", %.0f core%s", n, n > 1 ? "s" : "");
    if (*hypervisor && strcmp(hypervisor, "none") && strcmp(hypervisor, "no") &&
        strcmp(hypervisor, "unknown"))
        text_puts(out, ", virtual machine");
}

static int64_t rounds_of(const struct tables *ts) {
    const struct table *visits = tables_peek(ts, "visits");
    const int64_t *round = table_see_i64(visits, "round");
    int64_t most = 0;
    for (int64_t r = 0; r < table_rows(visits); r++)
        if (round[r] >= most) most = round[r] + 1;
    return most;
}

void show_head(const struct tables *ts, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    const bool pairs = pairs_there(ts);
    int64_t n = table_rows(points) / (pairs ? 2 : 1), rounds = rounds_of(ts);
    const char *title = tables_meta(ts, "title"), *question = tables_meta(ts, "question");
    struct text line = {0}, part = {0};
    show_plain(out, *title ? title : tables_meta(ts, "protocol_name"));
    text_puts(out, *question ? " \xc2\xb7 " : "");
    show_plain(out, question);
    text_puts(out, "\n");
    if (n) {
        const char *ran = table_text(points, n - 1, "effective");
        model_words(ts, n - 1, &line);
        device_words(*ran ? ran : table_text(points, n - 1, "requested"), &part);
        join(&line, " \xc2\xb7 ", part.len ? part.data : "");
        part.len = 0;
    }
    machine_words(ts, &part);
    join(&line, " \xc2\xb7 ", part.len ? part.data : "");
    part.len = 0;
    text_printf(&part, "%lld %s%s", (long long)n, pairs ? "pair" : "point", n == 1 ? "" : "s");
    if (rounds)
        text_printf(&part, " \xc3\x97 %lld round%s", (long long)rounds, rounds == 1 ? "" : "s");
    join(&line, " \xc2\xb7 ", part.data);
    show_plain(out, line.data);
    text_puts(out, "\n");
    text_free(&line);
    text_free(&part);
}

/* Breaks lines that are too long at the points between their parts, and a long part at spaces. */
static void show_head_wrapped(const struct tables *ts, size_t width, struct text *out) {
    static const char dot[] = " \xc2\xb7 ";
    struct text head = {0};
    show_head(ts, &head);
    for (char *at = head.data; at && *at;) {
        char *end = at + strcspn(at, "\n");
        struct text line = {0};
        const bool more = *end;
        *end = 0;
        while (*at) {
            char *next = strstr(at, dot), *from = at;
            at = next ? next + strlen(dot) : at + strlen(at);
            if (next) *next = 0;
            const size_t before = utf8_width(line.data ? line.data : "");
            if (before && before + 3 + utf8_width(from) > width) {
                text_printf(out, "%s\n", line.data);
                text_free(&line);
            } else if (before) {
                text_puts(&line, " \xc2\xb7");
            }
            text_wrap(&line, 0, width, from);
        }
        text_printf(out, "%s\n", line.data ? line.data : "");
        text_free(&line);
        at = more ? end + 1 : end;
    }
    text_free(&head);
}

/* ---- ceilings */

static void ceiling_words(const char *name, const char *unit, double value, double upper,
                          struct text *out) {
    char buf[64];
    double half = upper > value ? (upper - value) * 1e-9 : (double)NAN;
    text_printf(out, "%s%s %s G%s", out->len ? "   " : "", name,
                format_interval(buf, sizeof buf, value * 1e-9, half), unit);
}

static void show_ceilings(const struct tables *ts, int width, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    double read, read_upper, peak, upper, first_peak = (double)NAN;
    struct text line = {0};
    summary_ceiling(ts, "bandwidth", "", &read, &read_upper);
    if (read > 0) ceiling_words("read", "B/s", read, read_upper, &line);
    const char *seen[16];
    int n_seen = 0;
    for (int64_t p = 0; p <= table_rows(points) && n_seen < 16; p++) {
        const char *type = p < table_rows(points) ? table_text(points, p, "binding") : "f32";
        bool again = !*type;
        for (int i = 0; i < n_seen; i++) again = again || !strcmp(seen[i], type);
        if (again) continue;
        seen[n_seen++] = type;
        summary_ceiling(ts, "arithmetic", type, &peak, &upper);
        if (!(peak > 0)) continue;
        char name[80];
        snprintf(name, sizeof name, "peak %.60s", type);
        ceiling_words(name, "FLOP/s", peak, upper, &line);
        if (isnan(first_peak)) first_peak = peak;
    }
    if (read > 0 && first_peak > 0) {
        char buf[32];
        text_printf(&line, "   ridge %s FLOP/byte",
                    format_number(buf, sizeof buf, first_peak / read, 3));
    }
    if (line.len) {
        /* Three spaces between entries are meant: no wrapping unless it is too long. */
        text_puts(out, "\n");
        if (utf8_width(line.data) + COLUMN <= (size_t)(width > 0 ? width : 100))
            text_printf(out, "  ceilings   %s\n", line.data);
        else
            show_line(out, width, "ceilings", COLUMN, line.data);
    }
    text_free(&line);
}

/* ---- fits, published figures */

/* The sentence of a fit; where it has none, its number. */
static void fit_words(const struct table *t, int64_t r, struct text *line) {
    char a[40], b[40], c[40];
    double v = table_real(t, r, "value"), lo = table_real(t, r, "lo"), hi = table_real(t, r, "hi");
    const char *unit = table_text(t, r, "unit"), *text = table_text(t, r, "text");
    text_puts(line, table_text(t, r, "name"));
    if (isfinite(v)) text_printf(line, " = %s", format_number(a, sizeof a, v, 4));
    if (isfinite(lo) && isfinite(hi))
        text_printf(line, " [%s, %s]", format_number(b, sizeof b, lo, 4),
                    format_number(c, sizeof c, hi, 4));
    if (isfinite(v) && *unit && strcmp(unit, "1")) text_printf(line, " %s", unit);
    if (*text) text_printf(line, " \xc2\xb7 %s", text);
}

static void show_fits(const struct tables *ts, const struct show_options *o, struct text *out) {
    const struct table *t = tables_peek(ts, "fits");
    const char *before = "", *case_before = "";
    for (int64_t r = 0; r < table_rows(t); r++) {
        const char *analysis = table_text(t, r, "analysis"), *verdict = table_text(t, r, "verdict");
        const char *only_case = table_text(t, r, "case");
        if (!strcmp(analysis, "published")) continue;
        bool again = !strcmp(analysis, before) && !strcmp(only_case, case_before);
        struct text line = {0};
        if (!again && *only_case) text_printf(&line, "%s: ", only_case);
        if (!strcmp(verdict, "failed")) text_puts(&line, "FAILED ");
        fit_words(t, r, &line);
        if (!*before) text_puts(out, "\n");
        show_line(out, o->width, again ? "" : analysis, COLUMN, line.data);
        text_free(&line);
        before = analysis;
        case_before = only_case;
    }
}

/* Theirs as it was printed, with no digit more; ours may have been rounded to it. */
static void show_published(const struct tables *ts, const struct show_options *o,
                           struct text *out) {
    const struct table *t = tables_peek(ts, "published");
    for (int64_t r = 0; r < table_rows(t); r++) {
        char a[40], b[40];
        const char *source = table_text(t, r, "source"), *verdict = table_text(t, r, "verdict");
        double ours = table_real(t, r, "ours"), theirs = table_real(t, r, "theirs");
        struct text line = {0};
        text_printf(&line, "%s: %s", table_text(t, r, "what"), format_exact(a, sizeof a, theirs));
        const bool differs = !strcmp(verdict, "differs"); /* by a digit that four may not show */
        const bool same =
            !strcmp(verdict, "equal") && fabs(ours - theirs) <= EQUAL_DIGITS * fabs(theirs);
        text_printf(&line, " (%s%s%s); here %s%s", table_text(t, r, "kind"), *source ? ", " : "",
                    source,
                    !isfinite(ours) ? "-"
                    : differs       ? format_exact(b, sizeof b, ours)
                    : same          ? format_exact(b, sizeof b, theirs)
                                    : format_number(b, sizeof b, ours, 4),
                    differs ? ": DIFFERS" : "");
        if (!strcmp(verdict, "beside") && !strcmp(table_text(t, r, "kind"), "exact"))
            text_puts(&line, ", of another model");
        if (!strcmp(verdict, "equal")) text_puts(&line, same ? ": equal" : ": equal, rounded");
        if (!r) text_puts(out, "\n");
        show_line(out, o->width, r ? "" : "published", COLUMN, line.data);
        text_free(&line);
    }
}

/* ---- what to know before believing a row */

static void row_name(const struct table *points, int64_t p, struct text *out) {
    const char *only_case = table_text(points, p, "case"), *label = table_text(points, p, "label");
    text_printf(out, "%s%s%s", only_case, *only_case && *label ? " " : "", label);
    if (!*only_case && !*label) text_puts(out, table_text(points, p, "workload"));
}

/* --quick flags every row: said once below, not a hundred times here. */
static void without_quick(struct text *out, const char *list, const char *separator) {
    size_t gap = strlen(separator);
    for (const char *at = list; *at;) {
        const char *end = strstr(at, separator);
        size_t n = end ? (size_t)(end - at) : strlen(at);
        bool quick = !strncmp(at, "quick", 5) && (n == 5 || at[5] == ':');
        if (!quick && out->len) text_puts(out, separator);
        if (!quick) text_add(out, at, n);
        at += n + (end ? gap : 0);
    }
}

/* What the reason says of one flag: "flag: sentence", up to where another flag of the row begins.
 */
static void reason_of(const char *reason, const char *flag, struct text *out) {
    size_t n = strlen(flag);
    for (const char *at = reason; at && *at;) {
        const char *end = strstr(at, "; ");
        bool ours = !strncmp(at, flag, n) && at[n] == ':';
        bool inner = out->len && !memchr(at, ':', end ? (size_t)(end - at) : strlen(at));
        if (!ours && !inner && out->len) return;
        if (ours || inner) {
            const char *from = ours ? at + n + 1 : at;
            while (*from == ' ') from++;
            if (out->len) text_puts(out, "; ");
            text_add(out, from, end ? (size_t)(end - from) : strlen(from));
        }
        at = end ? end + 2 : NULL;
    }
}

struct notice { /* one state or flag, and the rows that have it */
    struct text word, why, rows;
    int64_t n;
};

static void notice_free(struct notice *n) {
    text_free(&n->word);
    text_free(&n->why);
    text_free(&n->rows);
}

/* The row goes to the notice of that word (and reason, where `same_reason` counts), or opens it;
 * the first row's reason stands for all. False if there is no room. */
static bool notice_add(struct notice *notices, int *n, int most, const char *word,
                       const struct table *points, int64_t p, const char *why, bool same_reason) {
    int at = 0;
    while (at < *n && (strcmp(notices[at].word.data, word) ||
                       (same_reason && strcmp(notices[at].why.data, why))))
        at++;
    if (at == most) return false;
    struct notice *to = &notices[at];
    if (at == *n) {
        text_puts(&to->word, word);
        text_add(&to->why, why, strlen(why));
        (*n)++;
    }
    if (to->n++ >= ROWS_NAMED) return true;
    if (to->n > 1) text_puts(&to->rows, ", ");
    row_name(points, p, &to->rows);
    return true;
}

static void notices_of_row(struct notice *notices, int *n, const struct table *points, int64_t p) {
    struct text flags = {0};
    without_quick(&flags, table_text(points, p, "flags"), " ");
    for (const char *at = flags.data; at && *at;) {
        size_t len = strcspn(at, " ");
        struct text flag = {0}, why = {0};
        text_add(&flag, at, len);
        reason_of(table_text(points, p, "reason"), flag.data, &why);
        notice_add(notices, n, NOTICES_MOST, flag.data, points, p, why.data ? why.data : "", false);
        text_free(&flag);
        text_free(&why);
        at += len + (at[len] == ' ');
    }
    text_free(&flags);
}

static void show_states(const struct tables *ts, const struct show_options *o, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    struct notice odd[ODD_ROWS_MOST] = {0};
    int n = 0;
    int64_t more = 0;
    for (int64_t p = 0; p < table_rows(points); p++) {
        const char *state = table_text(points, p, "state");
        struct text reason = {0};
        if (!*state || !strcmp(state, "ok")) continue;
        without_quick(&reason, table_text(points, p, "reason"), "; ");
        more += !notice_add(odd, &n, ODD_ROWS_MOST, state, points, p,
                            reason.data ? reason.data : "", true);
        text_free(&reason);
    }
    if (n) text_puts(out, "\n");
    for (int i = 0; i < n; i++) {
        struct text line = {0};
        text_puts(&line, odd[i].rows.data);
        if (odd[i].n > ROWS_NAMED)
            text_printf(&line, " and %lld more", (long long)(odd[i].n - ROWS_NAMED));
        text_printf(&line, ": %s", odd[i].word.data);
        if (odd[i].why.len) text_printf(&line, " \xc2\xb7 %s", odd[i].why.data);
        show_line(out, o->width, i ? "" : "states", COLUMN, line.data);
        text_free(&line);
        notice_free(&odd[i]);
    }
    if (more) {
        char sentence[80];
        snprintf(sentence, sizeof sentence, "and %lld more rows that are not ok", (long long)more);
        show_line(out, o->width, "", COLUMN, sentence);
    }
}

/* Each flag once, with the rows that carry it. */
static void show_flags(const struct tables *ts, const struct show_options *o, struct text *out) {
    const struct table *points = tables_peek(ts, "points");
    struct notice notices[NOTICES_MOST] = {0};
    int n = 0;
    int64_t rows = table_rows(points);
    for (int64_t p = 0; p < rows; p++) notices_of_row(notices, &n, points, p);
    if (n) text_puts(out, "\n");
    for (int i = 0; i < n; i++) {
        struct text line = {0};
        text_printf(&line, "%s: %lld of %lld rows (%s%s)", notices[i].word.data,
                    (long long)notices[i].n, (long long)rows, notices[i].rows.data,
                    notices[i].n > ROWS_NAMED ? ", ..." : "");
        if (notices[i].why.len) text_printf(&line, " \xc2\xb7 %s", notices[i].why.data);
        show_line(out, o->width, i ? "" : "flags", COLUMN, line.data);
        text_free(&line);
        notice_free(&notices[i]);
    }
}

static void show_run(const struct tables *ts, const struct show_options *o, struct text *out) {
    const char *drift = tables_meta(ts, "control_drift"), *quick = tables_meta(ts, "quick");
    const char *why = tables_meta(ts, "why_ended");
    if (strstr(drift, "drifting")) show_line(out, o->width, "drift", COLUMN, drift);
    if (!strcmp(quick, "yes"))
        show_line(out, o->width, "quick", COLUMN,
                  "one round of few points: for a look, never to be compared");
    if (!strcmp(tables_meta(ts, "profile"), "yes"))
        show_line(out, o->width, "profile", COLUMN,
                  "one pass under a profiler: its times are never to be compared");
    bool whole = strcmp(tables_meta(ts, "complete"), "no") != 0;
    struct text broken = {0};
    summary_broken(ts, &broken);
    if (broken.len) show_line(out, o->width, "incomplete", COLUMN, broken.data);
    text_free(&broken);
    if (!whole)
        show_line(out, o->width, "incomplete", COLUMN, *why ? why : "the run ended early");
    else if (!strncmp(why, "budget", 6)) /* every row has numbers, from fewer rounds than planned */
        show_line(out, o->width, "rounds", COLUMN, why);
}

static void show_facts(const struct tables *ts, const struct show_options *o, struct text *out) {
    static const char *const names[] = {"protocol", "environment"};
    for (int k = 0; k < 2; k++) {
        const struct table *t = tables_peek(ts, names[k]);
        text_printf(out, "\n  %s\n", names[k]);
        for (int64_t r = 0; r < table_rows(t); r++) {
            const char *scope = table_text(t, r, "scope"), *unit = table_text(t, r, "unit");
            const char *origin = table_text(t, r, "origin");
            if (*scope && strcmp(scope, "protocol")) continue;
            struct text line = {0};
            text_printf(&line, "%s%s%s", table_text(t, r, "value"), *unit ? " " : "", unit);
            if (*origin && strcmp(origin, "default")) text_printf(&line, " (%s)", origin);
            show_line(out, o->width, table_text(t, r, "key"), 32, line.data);
            text_free(&line);
        }
    }
}

/* Of a comparison: the same table as when it was measured. */
static void show_verdicts(const struct tables *ts, struct text *out) {
    struct gate *gate = pairs_gate_of_file(ts);
    gate_write(gate, "text", out);
    gate_close(&gate);
}

void show_tables(const struct tables *ts, const struct show_options *options, struct text *out) {
    struct show_options o = options ? *options : (struct show_options){0};
    if (o.colour) text_puts(out, "\033[1m");
    show_head_wrapped(ts, o.width > 0 ? (size_t)o.width : 100, out);
    if (o.colour) text_puts(out, "\033[0m");
    if (pairs_there(ts) && !o.metric) {
        show_verdicts(ts, out);
        show_states(ts, &o, out);
        show_run(ts, &o, out);
        if (o.facts) show_facts(ts, &o, out);
        return;
    }
    show_ceilings(ts, o.width, out);
    if (o.metric) {
        show_metric(ts, &o, out);
    } else {
        show_rows(ts, &o, out);
        show_fits(ts, &o, out);
        show_published(ts, &o, out);
    }
    show_states(ts, &o, out);
    show_flags(ts, &o, out);
    show_run(ts, &o, out);
    if (o.facts) show_facts(ts, &o, out);
}
