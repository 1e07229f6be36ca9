/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's table for people: as text of at most 100 columns, and as a GitHub table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/gate.h"
#include "results/show_parts.h"

enum { PAGE = 100, MOST_NAME = 34 };

static const char *ratio_text(char buf[32], double v) {
    if (!isfinite(v)) return "-";
    if (v >= 1e6 || v < 1e-3) return format_number(buf, 32, v, 4);
    struct text t = {0}; /* a point in every locale */
    text_printf(&t, "%.*f", v < 9.9995 ? 3 : v < 99.95 ? 1 : 0, v);
    snprintf(buf, 32, "%s", t.data);
    text_free(&t);
    return buf;
}

static void interval_text(const struct gate_row *r, struct text *t) {
    char lo[32], hi[32];
    if (isnan(r->lo) || isnan(r->hi) || r->exact)
        text_puts(t, r->exact && r->verdict <= GATE_SLOWER ? "exact" : "-");
    else if (isinf(r->hi))
        text_puts(t, "-"); /* too few rounds to bound anything */
    else
        text_printf(t, "[%s, %s]", ratio_text(lo, r->lo), ratio_text(hi, r->hi));
}

static const char *value_text(char buf[32], double v) {
    return isfinite(v) ? format_number(buf, 32, v, 4) : "-";
}

static void level_text(const struct gate *g, struct text *t) {
    text_printf(t, "%.4g %% interval", 100 * gate_level(g));
}

/* What every unit of the table shares, or "". */
static const char *common_unit(const struct gate *g) {
    const char *unit = NULL;
    for (size_t i = 0; i < g->n_rows; i++) {
        if (g->rows[i].exact) continue;
        if (unit && strcmp(unit, g->rows[i].unit)) return "";
        unit = g->rows[i].unit;
    }
    return unit ? unit : "";
}

/* "row, in ms" */
static void head_text(const struct gate *g, struct text *t) {
    const char *unit = g->kind == GATE_LIVE ? "" : common_unit(g);
    text_printf(t, "row%s%s", *unit ? ", in " : "", unit);
}

struct layout { /* display columns where each begins */
    size_t ratio, interval, old, new, rounds, verdict, reason;
    bool values;
};

static struct layout layout_of(const struct gate *g) {
    struct text head = {0};
    head_text(g, &head);
    size_t name = head.len > 8 ? head.len : 8;
    text_free(&head);
    for (size_t i = 0; i < g->n_rows; i++) {
        const size_t w = utf8_width(g->rows[i].name);
        if (w <= MOST_NAME && w > name) name = w;
    }
    struct layout l = {.values = g->kind != GATE_LIVE};
    l.old = 2 + name + 2;
    l.new = l.old + (l.values ? 10 : 0);
    l.ratio = l.new + (l.values ? 10 : 0);
    l.interval = l.ratio + 9;
    for (size_t i = 0; i < g->n_rows; i++) {
        char buf[32];
        const size_t end = l.ratio + strlen(ratio_text(buf, g->rows[i].ratio)) + 2;
        if (end > l.interval) l.interval = end;
    }
    l.rounds = l.interval + 18;
    l.verdict = l.rounds + 8;
    l.reason = l.verdict + 11;
    return l;
}

static void put_row(const struct gate_row *r, const struct layout *l, struct text *out) {
    char buf[32];
    struct text line = {0};
    text_printf(&line, "  %s", r->name);
    if (utf8_width(line.data) + 2 > l->old) { /* a long name has a line of its own */
        text_wrap(out, 2, PAGE, r->name);
        text_puts(out, "\n");
        line.len = 0;
        text_add(&line, "", 0);
    }
    if (l->values) {
        text_pad(&line, l->old);
        text_puts(&line, value_text(buf, r->old_value));
        text_pad(&line, l->new);
        text_puts(&line, value_text(buf, r->new_value));
    }
    text_pad(&line, l->ratio);
    text_puts(&line, ratio_text(buf, r->ratio));
    text_pad(&line, l->interval);
    interval_text(r, &line);
    text_puts(&line, " ");
    text_pad(&line, l->rounds);
    if (r->rounds) text_printf(&line, "%zu", r->rounds);
    text_pad(&line, l->verdict);
    text_puts(&line, gate_word(r));
    if (*r->reason) {
        /* beside the verdict where it fits, else below */
        const size_t at =
            utf8_width(line.data) + 2 > l->reason ? utf8_width(line.data) + 2 : l->reason;
        if (at + utf8_width(r->reason) <= PAGE) {
            text_pad(&line, at);
            text_puts(&line, r->reason);
        } else {
            text_puts(&line, "\n");
            text_wrap(&line, l->old < 20 ? l->old : 20, PAGE, r->reason);
        }
    }
    text_add(out, line.data, line.len);
    text_puts(out, "\n");
    text_free(&line);
}

static void put_title(const struct gate *g, struct text *out) {
    if (g->title) show_plain(out, g->title);
    if (g->title && g->question && *g->question) {
        text_puts(out, " \xc2\xb7 ");
        show_plain(out, g->question);
    }
    if (g->title) text_puts(out, "\n");
    if (!g->old_name || !g->new_name) return;
    text_puts(out, "old  ");
    show_plain(out, g->old_name);
    text_puts(out, "\nnew  ");
    show_plain(out, g->new_name);
    text_puts(out, "\n");
}

static void footer_lines(const struct gate *g, struct text *out) {
    const struct gate_settings *s = &g->settings;
    struct text t = {0};
    char a[32], b[32];
    text_printf(&t, "tolerance %g %%, detect %g %%", 100 * s->tolerance, 100 * s->detect);
    if (g->kind != GATE_COMPARE)
        text_printf(&t, " \xc2\xb7 false alarms of all rows together \xe2\x89\xa4 %g %%",
                    100 * gate_alpha(s, g->repeats));
    if (g->kind != GATE_COMPARE && g->repeats)
        text_printf(&t, " \xc2\xb7 attempt %d", g->repeats + 1);
    if (g->kind != GATE_LIVE && s->between_run > 0)
        text_printf(&t, " \xc2\xb7 spread between runs %g %%: stated, not measured",
                    100 * s->between_run);
    if (g->n_geometric > 1)
        text_printf(&t, " \xc2\xb7 geometric mean of %zu ratios %s", g->n_geometric,
                    ratio_text(a, g->geometric));
    double widest = 0;
    for (size_t i = 0; i < g->n_rows; i++)
        if (g->rows[i].verdict <= GATE_BLIND && g->rows[i].detectable > widest)
            widest = g->rows[i].detectable;
    if (g->kind == GATE_LIVE && widest > 0 && isfinite(widest))
        text_printf(&t, " \xc2\xb7 detectable here in %lld rounds: %s %%", (long long)s->rounds,
                    format_number(b, sizeof b, 100 * widest, 2));
    if (g->n_equal) text_printf(&t, " \xc2\xb7 %zu exact numbers equal", g->n_equal);
    text_puts(out, "  ");
    text_wrap(out, 2, PAGE, t.data);
    text_puts(out, "\n");
    text_free(&t);
    text_notes(out, PAGE, (const char *const *)g->notes, g->n_notes);
}

void gate_text(const struct gate *g, struct text *out) {
    const struct layout l = layout_of(g);
    put_title(g, out);
    if (out->len) text_puts(out, "\n");
    text_puts(out, "  ");
    head_text(g, out);
    if (l.values) {
        text_pad(out, l.old);
        text_puts(out, "old");
        text_pad(out, l.new);
        text_puts(out, "new");
    }
    text_pad(out, l.ratio);
    text_puts(out, "new/old");
    text_pad(out, l.interval);
    level_text(g, out);
    text_pad(out, l.rounds);
    text_puts(out, "rounds");
    text_pad(out, l.verdict);
    text_puts(out, "verdict\n");
    for (size_t i = 0; i < g->n_rows; i++) put_row(&g->rows[i], &l, out);
    if (g->has_all) put_row(&g->all, &l, out);
    footer_lines(g, out);
    gate_verdict_line(g, out);
    text_puts(out, "\n");
}

/* A cell of a GitHub table: one line, no bar of its own. */
static void cell(struct text *out, const char *s) {
    text_puts(out, "| ");
    for (; *s; s++) {
        if (*s == '|' || *s == '\\' || *s == '<' || *s == '`' || *s == '*' || *s == '_')
            text_puts(out, "\\");
        text_add(out, (unsigned char)*s < 0x20 ? " " : s, 1);
    }
    text_puts(out, " ");
}

static void markdown_row(const struct gate_row *r, struct text *out) {
    char buf[32];
    struct text t = {0};
    cell(out, r->name);
    interval_text(r, &t);
    cell(out, value_text(buf, r->old_value));
    cell(out, value_text(buf, r->new_value));
    cell(out, ratio_text(buf, r->ratio));
    cell(out, t.data);
    snprintf(buf, sizeof buf, "%zu", r->rounds);
    cell(out, r->rounds ? buf : "-");
    cell(out, gate_word(r));
    cell(out, r->reason);
    text_puts(out, "|\n");
    text_free(&t);
}

void gate_markdown(const struct gate *g, struct text *out) {
    struct text lines = {0};
    text_puts(out, "## ");
    gate_verdict_line(g, out);
    text_puts(out, "\n\n| row | old ");
    text_printf(out, "%s%s| new | new/old | ", common_unit(g), *common_unit(g) ? " " : "");
    level_text(g, out);
    text_puts(out, " | rounds | verdict | reason |\n|---|--:|--:|--:|---|--:|---|---|\n");
    for (size_t i = 0; i < g->n_rows; i++) markdown_row(&g->rows[i], out);
    if (g->has_all) markdown_row(&g->all, out);
    text_puts(out, "\n");
    footer_lines(g, &lines);
    for (char *rest = lines.data, *line; (line = strsep(&rest, "\n"));)
        if (*line) text_printf(out, "%s  \n", line + strspn(line, " "));
    text_free(&lines);
}
