/* SPDX-License-Identifier: Apache-2.0 */
/* The data of knee.gp and scaling.gp: one table per curve, its fit, and the words beside it. */
#include "plots/scripts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "plots/gnuplot.h"
#include "plots/views.h"

enum { CURVES_MOST = 8 };

static void cell(struct text *t, double v, char end) {
    if (isfinite(v))
        text_printf(t, "%.17g%c", v, end);
    else
        text_printf(t, "NaN%c", end);
}

static int write_curve(const struct curve *c, const char *stem, int32_t number, struct gnuplot *g,
                       struct err *err) {
    struct text t = {0};
    char name[40];
    text_puts(&t, "x\ty\ty_lo\ty_hi\tt\tt_lo\tt_hi\n");
    for (int32_t i = 0; i < c->n; i++) {
        const double row[] = {c->x[i], c->y[i],    c->lo[i],  c->hi[i],
                              c->t[i], c->t_lo[i], c->t_hi[i]};
        for (int k = 0; k < 7; k++) cell(&t, row[k], k < 6 ? '\t' : '\n');
    }
    snprintf(name, sizeof name, "%s%d.tsv", stem, number);
    int rc = gnuplot_file(g, name, t.data, t.len, err);
    text_free(&t);
    return rc;
}

static void element(struct text *t, const char *array, int32_t i, double v) {
    char name[60];
    snprintf(name, sizeof name, "%s[%d]", array, i);
    script_number(t, name, v);
}

static void words(struct text *t, const char *array, int32_t i, const char *v) {
    char name[60];
    snprintf(name, sizeof name, "%s[%d]", array, i);
    script_text(t, name, v);
}

/* "kv bytes allocated" says its unit. */
static void write_y_label(const struct curves *v, const char *name, struct text *s) {
    const bool said = !strcmp(v->y_unit, "byte") && strstr(v->y_name, "bytes");
    struct text t = {0};
    text_printf(&t, *v->y_unit && !said ? "%s, %s" : "%s", v->y_name, v->y_unit);
    script_text(s, name, t.data);
    text_free(&t);
}

static void interval_words(struct text *t, double v, double lo, double hi) {
    char a[32], b[32], c[32];
    text_puts(t, format_number(a, sizeof a, v, 3));
    if (isfinite(lo) && isfinite(hi))
        text_printf(t, " [%s, %s]", format_number(b, sizeof b, lo, 3),
                    format_number(c, sizeof c, hi, 3));
}

static int write_shared(const struct curves *v, struct gnuplot *g, struct text *s,
                        struct err *err) {
    int32_t n = v->n < CURVES_MOST ? v->n : CURVES_MOST;
    struct text t = {0};
    int rc = 0;
    script_number(s, "n", n);
    text_printf(s, "array name[%d]\n", n);
    for (int32_t i = 0; i < n && !rc; i++) {
        words(s, "name", i + 1, v->curve[i].name);
        rc = write_curve(&v->curve[i], "curve", i + 1, g, err);
    }
    script_text(s, "x_label", v->x_name);
    write_y_label(v, "y_label", s);
    script_axis(s, "x", "x", &v->x);
    int32_t marks = 0;
    text_puts(s, "array mark_x[3]\narray mark_name[3]\n");
    for (int32_t i = 0; i < v->n_marks; i++) {
        if (!(v->mark[i].x > v->x.lo && v->mark[i].x < v->x.hi)) continue;
        element(s, "mark_x", ++marks, v->mark[i].x);
        words(s, "mark_name", marks, v->mark[i].name);
    }
    script_number(s, "n_marks", marks);
    t.len = 0;
    if (v->n > n) text_printf(&t, "%d more curves are left out", v->n - n);
    if (v->left_out.len) text_printf(&t, "%sleft out: %s", t.len ? "; " : "", v->left_out.data);
    script_text(s, "note", t.len ? t.data : "");
    text_free(&t);
    return rc;
}

int script_knee(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct curves v;
    struct text t = {0};
    int rc = curves_read(ts, "knee", &v, err);
    if (!rc) rc = write_shared(&v, g, s, err);
    if (rc) goto out;
    script_axis(s, "rate", "y", &v.y);
    script_axis(s, "time", "y", &v.t);
    script_text(s, "t_unit", v.t_unit);
    static const char *const arrays[] = {"level",   "c0",      "c1",   "knee",
                                         "knee_lo", "knee_hi", "ridge"};
    int32_t n = v.n < CURVES_MOST ? v.n : CURVES_MOST;
    for (int k = 0; k < 7; k++) text_printf(s, "array %s[%d]\n", arrays[k], n);
    text_printf(s, "array knee_words[%d]\narray ridge_words[%d]\narray right[%d]\n", n, n, n);
    for (int32_t i = 0; i < n; i++) {
        const struct curve *c = &v.curve[i];
        const double values[] = {c->level,   c->c0,      c->c1,       c->knee,
                                 c->knee_lo, c->knee_hi, c->predicted};
        for (int k = 0; k < 7; k++) element(s, arrays[k], i + 1, values[k]);
        t.len = 0;
        if (isfinite(c->knee)) {
            text_puts(&t, "B* = ");
            interval_words(&t, c->knee, c->knee_lo, c->knee_hi);
            if (*c->name) text_printf(&t, " (%.40s)", c->name);
        }
        words(s, "knee_words", i + 1, t.len ? t.data : "");
        t.len = 0;
        if (isfinite(c->predicted)) {
            text_puts(&t, "ridge predicts ");
            interval_words(&t, c->predicted, NAN, NAN);
        }
        words(s, "ridge_words", i + 1, t.len ? t.data : "");
        /* Words stand on the side of the mark that has more room. */
        element(s, "right", i + 1, axis_place(&v.x, isfinite(c->knee) ? c->knee : v.x.lo) < 0.6);
    }
out:
    text_free(&t);
    curves_free(&v);
    return rc;
}

/* ---- where the legend stands */

struct box {
    double x0, x1, y0, y1; /* shares of the panel */
};

static bool hits(const struct box *b, double x, double y) {
    return x > b->x0 && x < b->x1 && y > b->y0 && y < b->y1;
}

/* How much of the curves lies in a box: their marks, intervals and the lines between. */
static int covered(const struct curves *v, const struct box *b) {
    enum { STEPS = 40 };
    int n = 0;
    for (int32_t g = 0; g < v->n && g < CURVES_MOST; g++) {
        const struct curve *c = &v->curve[g];
        for (int32_t i = 0; i < c->n; i++) {
            const double x = axis_place(&v->x, c->x[i]), y = axis_place(&v->y, c->y[i]);
            const double lo = axis_place(&v->y, c->lo[i]), hi = axis_place(&v->y, c->hi[i]);
            const double before = i ? axis_place(&v->x, c->x[i - 1]) : x;
            const double from = i ? axis_place(&v->y, c->y[i - 1]) : y;
            for (int s = 0; s <= STEPS; s++) {
                const double at = (double)s / STEPS;
                n += hits(b, before + at * (x - before), from + at * (y - from));
                n += hits(b, x, lo + at * (hi - lo));
            }
        }
    }
    return n;
}

/* Curves of their own, of those that are drawn; what stands beside one comes behind all of them. */
static int32_t own_curves(const struct curves *v) {
    int32_t n = 0;
    while (n < v->n && n < CURVES_MOST && !v->curve[n].of) n++;
    return n;
}

/* Letters of the widest line of the legend. */
static size_t legend_letters(const struct curves *v) {
    size_t most = 0;
    for (int32_t g = 0; g < v->n && g < CURVES_MOST; g++) {
        const struct curve *c = &v->curve[g];
        const size_t law = isfinite(c->exponent) ? utf8_width(v->x_name) + 24 : 0;
        if (utf8_width(c->name) + law > most) most = utf8_width(c->name) + law;
    }
    return most;
}

/* The first corner without a curve; "": none. A line of the legend is 0.044 of a whole picture
   high, a letter 0.0105 wide. */
static const char *legend_place(const struct curves *v, double height) {
    static const char *const places[] = {"top left Left reverse", "top right Right noreverse",
                                         "bottom left Left reverse",
                                         "bottom right Right noreverse"};
    const int32_t own = own_curves(v), lines = own + (own < v->n && own < CURVES_MOST);
    const double wide = 0.09 + 0.0115 * (double)legend_letters(v);
    const double high = 0.03 + 0.046 * lines / height;
    for (int i = 0; i < 4 && high < 1 && wide < 1; i++) {
        const double x = i % 2 ? 1 - wide : 0, y = i < 2 ? 1 - high : 0;
        const struct box box = {x, x + wide, y, y + high};
        if (!covered(v, &box)) return places[i];
    }
    return "";
}

static void write_beside(const struct curves *v, struct text *s) {
    const int32_t n = v->n < CURVES_MOST ? v->n : CURVES_MOST;
    script_number(s, "own", own_curves(v));
    text_printf(s, "array of[%d]\n", n);
    for (int32_t i = 0; i < n; i++) element(s, "of", i + 1, v->curve[i].of);
}

/* The fitted law of each curve, in arrays whose names end in `which`. */
static void write_laws(const struct curves *v, const char *which, struct text *s) {
    static const char *const arrays[] = {"exponent", "prefactor", "from", "words"};
    const int32_t n = v->n < CURVES_MOST ? v->n : CURVES_MOST;
    char name[4][40];
    struct text t = {0};
    for (int k = 0; k < 4; k++) {
        snprintf(name[k], sizeof name[k], "%s%s", arrays[k], which);
        text_printf(s, "array %s[%d]\n", name[k], n);
    }
    for (int32_t i = 0; i < n; i++) {
        const struct curve *c = &v->curve[i];
        element(s, name[0], i + 1, c->exponent);
        element(s, name[1], i + 1, c->prefactor);
        element(s, name[2], i + 1, c->from);
        t.len = 0;
        text_puts(&t, c->name);
        if (isfinite(c->exponent)) {
            text_printf(&t, "%s%s^", *c->name ? ": ~ " : "~ ", v->x_name);
            interval_words(&t, c->exponent, c->exponent_lo, c->exponent_hi);
        }
        words(s, name[3], i + 1, t.len ? t.data : "");
    }
    text_free(&t);
}

/* The second panel: another metric of the same rows; and where the legends of both stand. */
static int write_below(const struct curves *above, const struct tables *ts, struct gnuplot *g,
                       struct text *s, struct err *err) {
    const int64_t number = curves_below(ts, curves_analysis(ts, "scaling"));
    struct curves v = {0};
    struct err none = {0}; /* without numbers there is no second panel */
    const bool drawn = number >= 0 && !curves_read_of(ts, "scaling", number, &v, &none);
    const int32_t n = own_curves(&v);
    int rc = 0;
    const char *place = legend_place(above, drawn ? 0.47 : 1),
               *place_below = drawn ? legend_place(&v, 0.47) : place;
    const bool beside = !*place || !*place_below; /* of both panels, then */
    script_number(s, "panels", drawn ? 2 : 1);
    script_text(s, "key_place", beside ? "" : place);
    script_text(s, "key_place_below", beside ? "" : place_below);
    script_number(s, "key_letters", (double)legend_letters(above));
    if (drawn) {
        script_number(s, "n_below", n);
        script_axis(s, "y_below", "y", &v.y);
        write_y_label(&v, "y_label_below", s);
        write_laws(&v, "_below", s);
        for (int32_t i = 0; i < n && !rc; i++)
            rc = write_curve(&v.curve[i], "below", i + 1, g, err);
    }
    curves_free(&v);
    return rc;
}

int script_scaling(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct curves v;
    int rc = curves_read(ts, "scaling", &v, err);
    if (!rc) rc = write_shared(&v, g, s, err);
    if (!rc) {
        script_axis(s, "y", "y", &v.y);
        write_laws(&v, "", s);
        write_beside(&v, s);
        rc = write_below(&v, ts, g, s, err);
    }
    curves_free(&v);
    return rc;
}
