/* SPDX-License-Identifier: Apache-2.0 */
/* From tables to pictures: what suits a result, its data and settings as files, one run of gnuplot
 * for SVG and PNG. */
#include "plots/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "plots/gnuplot.h"
#include "plots/scripts.h"
#include "plots/views.h"
#include "results/rows.h"

static const struct {
    const char *name;
    int (*prepare)(const struct tables *, struct gnuplot *, struct text *, struct err *);
} kinds[] = {
    {"knee", script_knee},         {"scaling", script_scaling},   {"parts", script_parts},
    {"roofline", script_roofline}, {"memory", script_memory},     {"samples", script_samples},
    {"warmup", script_warmup},     {"tradeoff", script_tradeoff},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool curves_suit(const struct tables *ts, const char *kind) {
    struct curves v;
    bool ok = !curves_read(ts, kind, &v, NULL);
    curves_free(&v);
    return ok;
}

static bool suits(const struct tables *ts, const char *kind, bool knee) {
    bool ok = false;
    if (!strcmp(kind, "knee") || !strcmp(kind, "tradeoff"))
        return declared_analysis(ts, kind) >= 0 && curves_suit(ts, kind);
    if (!strcmp(kind, "scaling"))
        return (!knee || curves_analysis(ts, kind) >= 0) && curves_suit(ts, kind);
    if (!strcmp(kind, "parts")) {
        struct shares v;
        ok = !shares_read(ts, &v, NULL);
        shares_free(&v);
    }
    if (!strcmp(kind, "roofline")) {
        struct roofs v;
        ok = !roofs_read(ts, &v, NULL);
        roofs_free(&v);
    } else if (!strcmp(kind, "memory")) {
        ok = table_rows(tables_peek(ts, "memory")) > 0;
    } else if (!strcmp(kind, "samples")) {
        ok = table_rows(tables_peek(ts, "samples")) > 0;
    } else if (!strcmp(kind, "warmup")) {
        struct beginning_view v;
        ok = !beginning_view_read(ts, &v, NULL);
        beginning_view_free(&v);
    }
    return ok;
}

/* Rows that were counted, not timed, and memory is what they tell. */
static bool about_memory(const struct tables *ts) {
    int64_t rows = table_rows(tables_peek(ts, "points")), timed = 0;
    for (int64_t i = 0; i < rows; i++) timed += isfinite(rows_metric(ts, i, "time"));
    return 2 * timed < rows;
}

/* The number of the analysis that asks for such a picture, or -1. */
static int64_t asked_by(const struct tables *ts, const char *kind) {
    if (!strcmp(kind, "memory") || !strcmp(kind, "warmup")) return declared_analysis(ts, kind);
    return curves_analysis(ts, kind);
}

/* What the protocol asks for goes first, then memory where most rows have no time, then the order
 * of the list. */
const char *const *plot_kinds(const struct tables *ts) {
    static const char *found[N_KINDS + 1];
    bool fits[N_KINDS], taken[N_KINDS] = {false};
    int n = 0;
    for (int k = 0; k < N_KINDS; k++) fits[k] = suits(ts, kinds[k].name, k > 0 && fits[0]);
    for (int64_t best = 0; n < N_KINDS;) {
        int which = -1;
        for (int k = 0; k < N_KINDS; k++) {
            int64_t number = fits[k] && !taken[k] ? asked_by(ts, kinds[k].name) : -1;
            if (number >= 0 && (which < 0 || number < best)) best = number, which = k;
        }
        if (which < 0) break;
        taken[which] = true;
        found[n++] = kinds[which].name;
    }
    for (int k = 0; k < N_KINDS; k++)
        if (fits[k] && !taken[k] && !strcmp(kinds[k].name, "memory") && about_memory(ts)) {
            taken[k] = true;
            found[n++] = kinds[k].name;
        }
    for (int k = 0; k < N_KINDS; k++)
        if (fits[k] && !taken[k]) found[n++] = kinds[k].name;
    found[n] = NULL;
    return found;
}

/* ---- whole tables, for scripts of one's own */

/* One line a row, one column a tab; what would end a cell becomes a space, what is no number NaN.
 */
static int write_table(const struct table *t, const char *name, struct gnuplot *g,
                       struct err *err) {
    struct text out = {0}, cell = {0};
    char file[80];
    size_t columns = table_columns(t);
    for (size_t c = 0; c < columns; c++)
        text_printf(&out, "%s%s", c ? "\t" : "", table_column_at(t, c)->name);
    text_puts(&out, "\n");
    for (int64_t r = 0; r < table_rows(t); r++) {
        for (size_t c = 0; c < columns; c++) {
            if (c) text_puts(&out, "\t");
            cell.len = 0;
            table_cell(t, r, c, &cell);
            bool text = table_column_at(t, c)->type == COL_TEXT;
            if (!cell.len) text_puts(&cell, text ? "-" : "NaN");
            for (size_t i = 0; i < cell.len; i++)
                if (strchr("\t\n\r\"", cell.data[i])) cell.data[i] = ' ';
            text_add(&out, cell.data, cell.len);
        }
        text_puts(&out, "\n");
    }
    snprintf(file, sizeof file, "%.60s.tsv", name);
    int rc = gnuplot_file(g, file, out.data, out.len, err);
    text_free(&out);
    text_free(&cell);
    return rc;
}

static int write_tables(const struct tables *ts, bool all, struct gnuplot *g, struct err *err) {
    static const char *const small[] = {"points",   "phases", "summary",
                                        "ceilings", "fits",   "published"};
    size_t n;
    const char *const *names = tables_names(&n);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        bool wanted = all && strcmp(names[i], "files");
        for (size_t k = 0; k < sizeof small / sizeof *small; k++)
            wanted = wanted || !strcmp(names[i], small[k]);
        if (wanted) rc = write_table(tables_peek(ts, names[i]), names[i], g, err);
    }
    return rc;
}

/* ---- settings that all scripts share */

void script_text(struct text *out, const char *name, const char *value) {
    text_printf(out, "%s = '", name);
    for (const char *c = value; *c; c++) {
        if (*c == '\'') text_puts(out, "'");
        char one = (unsigned char)*c < ' ' ? ' ' : *c;
        text_add(out, &one, 1);
    }
    text_puts(out, "'\n");
}

void script_number(struct text *out, const char *name, double value) {
    if (isfinite(value))
        text_printf(out, "%s = %.17g\n", name, value);
    else
        text_printf(out, "%s = NaN\n", name);
}

void script_axis(struct text *out, const char *name, const char *letter, const struct axis *a) {
    char label[32], variable[40];
    struct text t = {0};
    for (int bare = 0; bare < 2; bare++) {
        t.len = 0;
        text_printf(&t, "set %srange [%.17g:%.17g]; set %stics (", letter, a->lo, a->hi, letter);
        for (int i = 0; i < a->n_ticks; i++)
            text_printf(&t, "%s\"%s\" %.17g", i ? ", " : "",
                        bare ? "" : axis_tick_label(a, i, label), a->tick[i]);
        text_printf(&t, "); %sset logscale %s", a->log ? "" : "un", letter);
        snprintf(variable, sizeof variable, bare ? "bare_%.20s" : "axis_%.20s", name);
        script_text(out, variable, t.data);
    }
    text_free(&t);
}

static const char *meta(const struct tables *ts, const char *key) {
    const struct table *t = tables_peek(ts, "meta");
    for (int64_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_text(t, i, "key"), key)) return table_text(t, i, "value");
    return rows_fact(ts, key);
}

/* "cpu isa=avx2 threads=2": what ran; else the cores that were there. */
static void add_threads(const struct tables *ts, struct text *t) {
    const struct table *points = tables_peek(ts, "points");
    const char *cores = rows_environment(ts, "cpu.allowed");
    int least = 0, most = 0;
    for (int64_t i = 0; i < table_rows(points); i++) {
        const char *at = strstr(table_text(points, i, "effective"), "threads=");
        int threads = at ? atoi(at + strlen("threads=")) : 0;
        if (threads > most) most = threads;
        if (threads > 0 && (!least || threads < least)) least = threads;
    }
    if (least < most)
        text_printf(t, " \xc2\xb7 %d to %d threads", least, most);
    else if (most > 0)
        text_printf(t, " \xc2\xb7 %d thread%s", most, most == 1 ? "" : "s");
    else if (*cores)
        text_printf(t, " \xc2\xb7 %s cores", cores);
}

/* Whether no row was measured, so that no machine had a part in them. */
static bool all_theory(const struct tables *ts) {
    const struct table *points = tables_peek(ts, "points");
    for (int64_t i = 0; i < table_rows(points); i++)
        if (!*table_text(points, i, "basis")) return false;
    return table_rows(points) > 0;
}

static void write_settings(const struct tables *ts, const char *result, struct text *out) {
    struct text t = {0};
    const char *question = meta(ts, "question"), *title = meta(ts, "title");
    const char *model = rows_environment(ts, "cpu.model"), *created = meta(ts, "created");
    const char *slash = strrchr(result, '/');
    script_text(out, "question", *question ? question : title);
    /* Long questions are set smaller rather than cut. */
    size_t width = utf8_width(*question ? question : title);
    script_number(out, "question_size", width > 95 ? 11 : width > 75 ? 13 : 15);
    if (all_theory(ts)) {
        text_puts(&t, "theory: from formulas, nothing was measured");
    } else {
        text_puts(&t, *model ? model : "unknown machine");
        add_threads(ts, &t);
    }
    text_printf(&t, " \xc2\xb7 %s", slash ? slash + 1 : result);
    if (*created) text_printf(&t, " \xc2\xb7 %.16s", created);
    if (!strcmp(meta(ts, "quick"), "yes")) text_puts(&t, " \xc2\xb7 quick: not comparable");
    for (char *c = t.data; *c; c++)
        if (*c == 'T' && c > t.data && c[-1] >= '0' && c[-1] <= '9' && c[1] >= '0' && c[1] <= '9')
            *c = ' '; /* RFC 3339 for people */
    script_text(out, "footer", t.data);
    text_free(&t);
    text_puts(&t, *question && strcmp(question, title) ? title : "");
    script_text(out, "subject", t.data ? t.data : "");
    text_free(&t);
}

/* Each format is one pass over the same scripts. */
static void write_main(const char *folder, const char *kind, struct text *out) {
    static const struct {
        const char *terminal, *file;
    } formats[] = {
        {"svg noenhanced size 960,680 dynamic font 'DejaVu Sans,Helvetica,Arial,12' "
         "background rgb 'white'",
         "plot.svg"},
        {"pngcairo noenhanced size 1920,1360 font 'DejaVu Sans,12' fontscale 2 linewidth 2 "
         "pointscale 2 background rgb 'white'",
         "plot.png"},
    };
    for (size_t i = 0; i < 2; i++) {
        text_printf(out, "reset\nload 'settings.gp'\nset terminal %s\nset output '%s'\n",
                    formats[i].terminal, formats[i].file);
        static const char *const parts[] = {"style", NULL};
        for (size_t p = 0; p < 2; p++) {
            struct text path = {0};
            text_printf(&path, "%s/%s.gp", folder, parts[p] ? parts[p] : kind);
            text_puts(out, "load '");
            for (const char *c = path.data; *c; c++) text_printf(out, *c == '\'' ? "''" : "%c", *c);
            text_puts(out, "'\n");
            text_free(&path);
        }
        text_puts(out, "unset output\n");
    }
}

static bool plain_name(const char *kind) {
    return *kind && strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(kind) &&
           strlen(kind) < 60 && strcmp(kind, "style");
}

int plot_draw(const struct tables *ts, const char *kind, const char *result, const char *stem,
              const char *scripts, struct err *err) {
    struct gnuplot *g = NULL;
    struct text settings = {0}, main = {0}, path = {0};
    char *folder = NULL;
    int rc = 0, k = 0;
    if (!plain_name(kind))
        return err_set(err, ERR_UNSUPPORTED, "there is no plot named '%.60s'", kind);
    folder = scripts ? realpath(scripts, NULL) : NULL;
    text_printf(&path, "%s/%s.gp", folder ? folder : "", kind);
    if (!folder || !file_exists(path.data)) {
        rc = err_set(err, ERR_UNSUPPORTED, "there is no script for a plot named '%s'", kind);
        goto out;
    }
    rc = gnuplot_open(&g, err);
    if (rc) goto out;
    while (k < N_KINDS && strcmp(kinds[k].name, kind)) k++;
    write_settings(ts, result, &settings);
    if (k < N_KINDS) rc = kinds[k].prepare(ts, g, &settings, err);
    if (!rc) rc = write_tables(ts, k == N_KINDS, g, err);
    if (rc) goto out;
    write_main(folder, kind, &main);
    rc = gnuplot_file(g, "settings.gp", settings.data, settings.len, err);
    if (!rc) rc = gnuplot_file(g, "main.gp", main.data, main.len, err);
    if (!rc) rc = gnuplot_run(g, "main.gp", err);
    for (int i = 0; i < 2 && !rc; i++) {
        path.len = 0;
        text_printf(&path, "%s.%s", stem, i ? "png" : "svg");
        rc = gnuplot_take(g, i ? "plot.png" : "plot.svg", path.data, err);
    }
out:
    gnuplot_close(&g);
    free(folder);
    text_free(&settings);
    text_free(&main);
    text_free(&path);
    return rc;
}
