/* SPDX-License-Identifier: Apache-2.0 */
/* The data of memory.gp (live bytes by class over time), samples.gp (the run's sequence and its
 * distribution) and warmup.gp (first executions). */
#include "plots/scripts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "plots/gnuplot.h"
#include "plots/views.h"

/* ---- memory */

static double byte_unit(double most, const char **name) {
    static const char *const names[] = {"byte", "kB", "MB", "GB", "TB"};
    int i = 0;
    double unit = 1;
    while (i < 4 && most / unit >= 1000) unit *= 1e3, i++;
    *name = names[i];
    return unit;
}

/* Largest class first: it lies at the bottom of the stack. */
static void sort_classes(const struct timeline *v, int32_t order[CLASSES_MOST],
                         double most[CLASSES_MOST]) {
    for (int32_t c = 0; c < v->n_classes; c++) {
        most[c] = 0;
        for (int64_t i = 0; i < v->n; i++) most[c] = fmax(most[c], v->live[i * CLASSES_MOST + c]);
        int32_t at = c;
        for (; at > 0 && most[order[at - 1]] < most[c]; at--) order[at] = order[at - 1];
        order[at] = c;
    }
}

/* Steps: every moment once with what was live before it, once with what is live after. Columns: the
   stack from the bottom (sum1 ...), and without its lowest class (rest2 ...). */
static int write_timeline(const struct timeline *v, const int32_t *order, double unit,
                          double rest_unit, struct gnuplot *g, struct err *err) {
    struct text t = {0};
    text_puts(&t, "ms");
    for (int32_t c = 1; c <= v->n_classes; c++) text_printf(&t, "\tsum%d\trest%d", c, c);
    text_puts(&t, "\n");
    for (int64_t k = 0; k < 2 * v->n + 1; k++) {
        int64_t i = (k - 1) / 2, at = k / 2; /* state after moment i, drawn at moment `at` */
        if (at == v->n) i = v->n - 1;
        double ms = at < v->n ? v->ms[at] : v->end_ms, sum = 0, rest = 0;
        text_printf(&t, "%.17g", ms);
        for (int32_t c = 0; c < v->n_classes; c++) {
            double live = k ? v->live[i * CLASSES_MOST + order[c]] : 0;
            sum += live;
            rest += c ? live : 0;
            text_printf(&t, "\t%.17g\t%.17g", sum / unit, rest / rest_unit);
        }
        text_puts(&t, "\n");
    }
    int rc = gnuplot_file(g, "timeline.tsv", t.data, t.len, err);
    text_free(&t);
    return rc;
}

static void peak_words(const struct timeline *v, struct text *t) {
    char size[40];
    const char *phase = "";
    for (int32_t p = 0; p < v->n_phases; p++)
        if (v->peak_ms >= v->phase[p].from_ms && v->peak_ms <= v->phase[p].to_ms)
            phase = v->phase[p].name;
    text_printf(t, "peak %s%s%s", format_bytes_si(size, sizeof size, v->peak), *phase ? " in " : "",
                phase);
}

/* Names of phases wide enough to hold them. */
static void write_phases(const struct timeline *v, struct text *s) {
    char name[40];
    struct text list = {0};
    int n = 0;
    for (int32_t p = 0; p < v->n_phases; p++) {
        const struct timeline_phase *ph = &v->phase[p];
        double to = p + 1 < v->n_phases ? v->phase[p + 1].from_ms : v->end_ms;
        n++;
        snprintf(name, sizeof name, "phase_from[%d]", n);
        script_number(&list, name, ph->from_ms);
        snprintf(name, sizeof name, "phase[%d]", n);
        bool fits = (to - ph->from_ms) / v->end_ms > 0.011 * (double)(utf8_width(ph->name) + 1);
        script_text(&list, name, fits ? ph->name : "");
    }
    script_number(s, "n_phases", n);
    text_printf(s, "array phase[%d]\narray phase_from[%d]\n%s", n ? n : 1, n ? n : 1,
                list.data ? list.data : "");
    text_free(&list);
}

int script_memory(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct timeline v;
    struct text t = {0};
    int32_t order[CLASSES_MOST] = {0};
    double most[CLASSES_MOST] = {0}, rest = 0, highest = 0; /* highest: the witness's, too */
    int rc = timeline_read(ts, &v, err);
    if (rc) goto out;
    sort_classes(&v, order, most);
    for (int64_t i = 0; i < v.n; i++) {
        double all = 0;
        for (int32_t c = 0; c < v.n_classes; c++) all += v.live[i * CLASSES_MOST + c];
        highest = fmax(highest, all);
        rest = fmax(rest, all - v.live[i * CLASSES_MOST + order[0]]);
    }
    const char *unit_name, *rest_name;
    double unit = byte_unit(highest, &unit_name), rest_unit = byte_unit(rest, &rest_name);
    rc = write_timeline(&v, order, unit, rest_unit, g, err);
    script_number(s, "n", v.n_classes);
    text_printf(s, "array name[%d]\n", v.n_classes);
    for (int32_t c = 0; c < v.n_classes; c++) {
        char name[40];
        snprintf(name, sizeof name, "name[%d]", c + 1);
        script_text(s, name, v.class[order[c]]);
    }
    script_text(s, "unit", unit_name);
    script_text(s, "rest_unit", rest_name);
    script_text(s, "row", v.row);
    script_number(s, "end", v.end_ms);
    script_number(s, "peak", v.peak / unit);
    script_number(s, "peak_at", v.peak_ms);
    script_number(s, "rest", rest / rest_unit);
    /* Weights beside which nothing else can be seen: a second panel leaves them out. */
    script_number(s, "panels", v.n_classes > 1 && rest > 0 && rest < 0.25 * v.peak ? 2 : 1);
    peak_words(&v, &t);
    script_text(s, "peak_words", t.data);
    struct axis x, y;
    const double ends[] = {0, v.end_ms}, tops[] = {0, fmax(1.15 * v.peak, highest) / unit};
    const double rests[] = {0, rest / rest_unit * 1.08};
    axis_fit(&x, ends, 2, false, true);
    x.lo = 0, x.hi = v.end_ms;
    script_axis(s, "x", "x", &x);
    axis_fit(&y, tops, 2, false, true);
    script_axis(s, "y", "y", &y);
    axis_fit(&y, rests, 2, false, true);
    script_axis(s, "rest", "y", &y);
    write_phases(&v, s);
out:
    text_free(&t);
    timeline_free(&v);
    return rc;
}

/* ---- samples */

static int write_row(const struct sequence_row *r, int32_t number, struct gnuplot *g,
                     struct err *err) {
    struct text t = {0};
    char name[40];
    text_puts(&t, "place\tratio\tshare\tsorted\n");
    for (int64_t i = 0; i < r->n; i++)
        text_printf(&t, "%.17g\t%.17g\t%.17g\t%.17g\n", r->at[i], r->ratio[i],
                    ((double)i + 0.5) / (double)r->n, r->sorted[i]);
    snprintf(name, sizeof name, "row%d.tsv", number);
    int rc = gnuplot_file(g, name, t.data, t.len, err);
    text_free(&t);
    return rc;
}

int script_samples(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct sequence v;
    struct text t = {0};
    char name[60], time[40];
    int rc = sequence_read(ts, &v, err);
    if (rc) goto out;
    script_number(s, "n", v.n_rows);
    text_printf(s, "array name[%d]\n", v.n_rows);
    for (int32_t i = 0; i < v.n_rows && !rc; i++) {
        t.len = 0;
        text_printf(&t, "%.40s%s%s", v.row[i].label, *v.row[i].label ? ": " : "",
                    format_time(time, sizeof time, v.row[i].median_ms * 1e6));
        snprintf(name, sizeof name, "name[%d]", i + 1);
        script_text(s, name, t.data);
        rc = write_row(&v.row[i], i + 1, g, err);
    }
    script_axis(s, "y", "y", &v.y);
    script_number(s, "last", v.last);
    script_number(s, "n_rounds", v.n_rounds);
    text_printf(s, "array round[%d]\n", v.n_rounds ? v.n_rounds : 1);
    for (int32_t i = 0; i < v.n_rounds; i++) {
        snprintf(name, sizeof name, "round[%d]", i + 1);
        script_number(s, name, v.round_from[i]);
    }
    t.len = 0;
    if (v.n_left) text_printf(&t, "%d of %d rows", v.n_rows, v.n_rows + v.n_left);
    script_text(s, "note", t.len ? t.data : "");
out:
    text_free(&t);
    sequence_free(&v);
    return rc;
}

/* ---- warm-up */

static int write_columns(const double *x, const double *y, int32_t n, const char *file,
                         struct gnuplot *g, struct err *err) {
    struct text t = {0};
    text_puts(&t, "execution\tratio\n");
    for (int32_t i = 0; i < n; i++) text_printf(&t, "%.17g\t%.17g\n", x[i], y[i]);
    int rc = gnuplot_file(g, file, t.data, t.len, err);
    text_free(&t);
    return rc;
}

int script_warmup(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct beginning_view v;
    struct text t = {0};
    char name[60], time[40];
    int rc = beginning_view_read(ts, &v, err);
    if (rc) goto out;
    script_number(s, "n", v.n_rows);
    text_printf(s, "array name[%d]\narray ends[%d]\n", v.n_rows, v.n_rows);
    for (int32_t i = 0; i < v.n_rows && !rc; i++) {
        const struct beginning_row *r = &v.row[i];
        t.len = 0;
        text_printf(&t, "%.50s%s%s", r->label, *r->label ? ": " : "",
                    format_time(time, sizeof time, r->level_ms * 1e6));
        snprintf(name, sizeof name, "name[%d]", i + 1);
        script_text(s, name, t.data);
        snprintf(name, sizeof name, "ends[%d]", i + 1);
        script_number(s, name, r->warmups);
        snprintf(name, sizeof name, "middle%d.tsv", i + 1);
        rc = write_columns(r->at, r->middle, r->n, name, g, err);
        snprintf(name, sizeof name, "all%d.tsv", i + 1);
        if (!rc) rc = write_columns(r->all_at, r->all, r->n_all, name, g, err);
    }
    script_axis(s, "x", "x", &v.x);
    script_axis(s, "y", "y", &v.y);
    t.len = 0;
    if (v.n_left) text_printf(&t, "%d of %d rows", v.n_rows, v.n_rows + v.n_left);
    script_text(s, "note", t.len ? t.data : "");
out:
    text_free(&t);
    beginning_view_free(&v);
    return rc;
}
