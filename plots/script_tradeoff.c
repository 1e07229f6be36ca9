/* SPDX-License-Identifier: Apache-2.0 */
/* The data of tradeoff.gp: a point a row, with its name beside it. */
#include "plots/scripts.h"

#include <math.h>

#include "base/err.h"
#include "plots/gnuplot.h"
#include "plots/views.h"
#include "results/rows.h"

static void add_label(struct text *s, const char *variable, const char *name, const char *unit) {
    struct text t = {0};
    text_printf(&t, *unit ? "%s, %s" : "%s", name, unit);
    script_text(s, variable, t.data);
    text_free(&t);
}

/* What is not above 0 has no place on an axis of logarithms: it is named below. */
static void add_point(const struct curves *v, const struct curve *c, struct text *points,
                      struct text *below) {
    for (int32_t i = 0; i < c->n; i++) {
        if (v->y.log && !(c->y[i] > 0)) {
            text_printf(below, "%s%s", below->len ? ", " : "not drawn, at 0: ", c->name);
            continue;
        }
        const double low = v->y.log && !(c->lo[i] > 0) ? v->y.lo : c->lo[i];
        const bool left = axis_place(&v->x, c->x[i]) > 0.75;
        text_printf(points, "%.17g\t%.17g\t%.17g\t%.17g\t%s\t%s\n", c->x[i], c->y[i], low, c->hi[i],
                    left ? "-" : c->name, left ? c->name : "-");
    }
}

int script_tradeoff(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct curves v;
    struct text points = {0}, below = {0};
    int rc = curves_read(ts, "tradeoff", &v, err);
    if (!rc) {
        text_puts(&points, "x\ty\ty_lo\ty_hi\tright\tleft\n");
        for (int32_t i = 0; i < v.n; i++) add_point(&v, &v.curve[i], &points, &below);
        if (v.left_out.len)
            text_printf(&below, "%sleft out: %s", below.len ? "; " : "", v.left_out.data);
        add_label(s, "x_label", v.x_name,
                  rows_unit(ts, declared_key(ts, declared_analysis(ts, "tradeoff"), "x")));
        add_label(s, "y_label", v.y_name, v.y_unit);
        script_axis(s, "x", "x", &v.x);
        script_axis(s, "y", "y", &v.y);
        script_text(s, "note", below.len ? below.data : "");
        rc = gnuplot_file(g, "tradeoff.tsv", points.data, points.len, err);
    }
    text_free(&points);
    text_free(&below);
    curves_free(&v);
    return rc;
}
