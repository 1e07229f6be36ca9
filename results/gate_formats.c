/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's verdicts for machines: strict JSON and JUnit XML. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/gate.h"

const char *const gate_formats[] = {"text", "md", "json", "junit", NULL};

void gate_write(const struct gate *g, const char *format, struct text *out) {
    if (!strcmp(format, "md"))
        gate_markdown(g, out);
    else if (!strcmp(format, "json"))
        gate_json(g, out);
    else if (!strcmp(format, "junit"))
        gate_junit(g, out);
    else
        gate_text(g, out);
}

/* --- JSON --- */

static void number(struct text *out, const char *key, double v) {
    char buf[40];
    text_printf(out, ", \"%s\": %s", key, isfinite(v) ? format_exact(buf, sizeof buf, v) : "null");
}

static void member(struct text *out, const char *key, const char *value) {
    text_printf(out, ", \"%s\": ", key);
    text_json(out, value ? value : "");
}

static void json_row(const struct gate_row *r, struct text *out) {
    text_puts(out, "{\"row\": ");
    text_json(out, r->name);
    member(out, "cell", r->cell);
    member(out, "metric", r->metric);
    member(out, "unit", r->unit);
    member(out, "verdict", gate_word(r));
    member(out, "reason", r->reason);
    member(out, "flags", r->flags);
    text_printf(out, ", \"exact\": %s", r->exact ? "true" : "false");
    number(out, "old", r->old_value);
    number(out, "new", r->new_value);
    number(out, "ratio", r->ratio);
    number(out, "lo", r->lo);
    number(out, "hi", r->hi);
    number(out, "detectable", r->detectable);
    number(out, "s", r->s);
    text_printf(out, ", \"rounds\": %zu", r->rounds);
    if (r->would_take)
        text_printf(out, ", \"would_take\": %zu", r->would_take);
    else
        text_puts(out, ", \"would_take\": null");
    text_printf(out, ", \"shape_changed\": %s", r->shape_changed ? "true" : "false");
    if (r->n) { /* what the verdict was made of */
        text_puts(out, ", \"y\": [");
        for (size_t i = 0; i < r->n; i++) {
            char buf[40];
            text_printf(out, "%s%s", i ? ", " : "",
                        isfinite(r->y[i]) ? format_exact(buf, sizeof buf, r->y[i]) : "null");
        }
        text_puts(out, "]");
    }
    text_puts(out, "}");
}

void gate_json(const struct gate *g, struct text *out) {
    static const char *const kinds[] = {"ab", "gate", "compare"};
    const struct gate_settings *s = &g->settings;
    struct text line = {0};
    gate_verdict_line(g, &line);
    text_printf(out, "{\n  \"format\": 1, \"kind\": \"%s\", \"exit\": %d", kinds[g->kind],
                gate_exit(g));
    member(out, "verdict", line.data);
    member(out, "title", g->title);
    member(out, "old", g->old_name);
    member(out, "new", g->new_name);
    text_puts(out, ",\n  \"settings\": {\"metric\": ");
    text_json(out, *s->metric ? s->metric : "time");
    member(out, "rows", s->rows);
    number(out, "tolerance", s->tolerance);
    number(out, "detect", s->detect);
    number(out, "max_blind", s->max_blind);
    number(out, "between_run", s->between_run > 0 ? s->between_run : (double)NAN);
    number(out, "alpha", s->alpha);
    text_printf(out, ", \"rounds\": %lld, \"strict\": %s}", (long long)s->rounds,
                s->strict ? "true" : "false");
    text_printf(out, ",\n  \"attempt\": %d", g->repeats + 1);
    number(out, "alpha_of_attempt", gate_alpha(s, g->repeats));
    number(out, "level", gate_level(g));
    number(out, "geometric_mean", g->geometric);
    text_printf(out, ", \"geometric_rows\": %zu, \"exact_equal\": %zu", g->n_geometric, g->n_equal);
    text_puts(out, ",\n  \"rows\": [");
    for (size_t i = 0; i < g->n_rows; i++) {
        text_puts(out, i ? ",\n    " : "\n    ");
        json_row(&g->rows[i], out);
    }
    text_puts(out, g->n_rows ? "\n  ]" : "]");
    if (g->has_all) {
        text_puts(out, ",\n  \"all\": ");
        json_row(&g->all, out);
    }
    text_puts(out, ",\n  \"notes\": [");
    for (size_t i = 0; i < g->n_notes; i++) {
        text_puts(out, i ? ", " : "");
        text_json(out, g->notes[i]);
    }
    text_puts(out, "]\n}\n");
    text_free(&line);
}

/* --- JUnit --- */

/* Bytes of one UTF-8 character that XML 1.0 allows; 0: none is there. */
static size_t xml_character(const char *s) {
    const unsigned char c = (unsigned char)*s;
    char one[5] = {0};
    const size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return 0;
    for (size_t i = 0; i < n; i++) {
        if (!s[i]) return 0;
        one[i] = s[i];
    }
    if (!utf8_valid(one, n)) return 0;
    return strcmp(one, "\xef\xbf\xbe") && strcmp(one, "\xef\xbf\xbf") ? n : 0;
}

static void xml(struct text *out, const char *s) {
    while (*s) {
        const size_t n = xml_character(s);
        if (!n)
            text_puts(out, "\xef\xbf\xbd");
        else if (*s == '&')
            text_puts(out, "&amp;");
        else if (*s == '<')
            text_puts(out, "&lt;");
        else if (*s == '>')
            text_puts(out, "&gt;");
        else if (*s == '"')
            text_puts(out, "&quot;");
        else if (*s == '\'')
            text_puts(out, "&apos;");
        else if (n == 1 && (unsigned char)*s < 0x20)
            text_printf(out, "&#%d;", *s);
        else
            text_add(out, s, n);
        s += n ? n : 1;
    }
}

enum outcome { PASSED, FAILED, ERROR, SKIPPED };

/* Undecided rows fail only where they decide the exit code. */
static enum outcome outcome_of(enum gate_kind kind, int code, const struct gate_row *r) {
    switch (r->verdict) {
    case GATE_SLOWER: return kind == GATE_COMPARE ? PASSED : FAILED;
    case GATE_MISSING:
    case GATE_STATE:
    case GATE_INCOMPARABLE: return ERROR;
    case GATE_UNDECIDED:
    case GATE_BLIND: return code == 5 ? FAILED : SKIPPED;
    default: return PASSED;
    }
}

static void testcase(const struct gate_row *r, enum outcome o, struct text *out) {
    static const char *const elements[] = {"", "failure", "error", "skipped"};
    char buf[40];
    text_puts(out, "    <testcase name=\"");
    xml(out, r->name);
    text_puts(out, "\" classname=\"bench.");
    xml(out, *r->metric ? r->metric : "row");
    text_puts(out, "\" time=\"0\"");
    if (o == PASSED) {
        text_puts(out, "/>\n");
        return;
    }
    text_printf(out, ">\n      <%s message=\"", elements[o]);
    xml(out, gate_word(r));
    text_puts(out, ": ");
    xml(out, r->reason);
    text_puts(out, "\"");
    if (o != SKIPPED) {
        text_puts(out, " type=\"");
        xml(out, gate_word(r));
        text_puts(out, "\"");
    }
    text_puts(out, ">");
    if (isfinite(r->ratio))
        text_printf(out, "new/old %s, %zu rounds", format_number(buf, sizeof buf, r->ratio, 4),
                    r->rounds);
    text_printf(out, "</%s>\n    </testcase>\n", elements[o]);
}

void gate_junit(const struct gate *g, struct text *out) {
    const size_t tests = g->n_rows + (g->has_all ? 1 : 0);
    const int code = gate_exit(g);
    size_t n[4] = {0};
    char counts[200];
    for (size_t i = 0; i < tests; i++)
        n[outcome_of(g->kind, code, i < g->n_rows ? &g->rows[i] : &g->all)]++;
    snprintf(counts, sizeof counts,
             "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\"", tests,
             n[FAILED], n[ERROR], n[SKIPPED]);
    text_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"bench\" %s>\n",
                counts);
    text_puts(out, "  <testsuite name=\"");
    xml(out, g->title ? g->title : "bench");
    text_printf(out, "\" %s>\n", counts);
    for (size_t i = 0; i < tests; i++) {
        const struct gate_row *r = i < g->n_rows ? &g->rows[i] : &g->all;
        testcase(r, outcome_of(g->kind, code, r), out);
    }
    text_puts(out, "  </testsuite>\n</testsuites>\n");
}
