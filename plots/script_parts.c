/* SPDX-License-Identifier: Apache-2.0 */
/* The data of parts.gp: bars of divided rows from the bottom, shares to print into them, undivided
 * rows. */
#include "plots/scripts.h"

#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "plots/gnuplot.h"
#include "plots/views.h"

#define LEGIBLE 0.045 /* of the axis: as high as a number */

static void cell(struct text *t, double v, char end) {
    if (isfinite(v))
        text_printf(t, "%.17g%c", v, end);
    else
        text_printf(t, "NaN%c", end);
}

static int write_rows(const struct shares *v, struct gnuplot *g, struct err *err) {
    struct text t = {0};
    text_puts(&t, "x\twhole\tlo\thi");
    for (int32_t k = 1; k <= v->n_parts; k++) text_printf(&t, "\tsum%d", k);
    text_puts(&t, "\n");
    for (int32_t i = 0; i < v->n; i++) {
        const struct shares_row *row = &v->row[i];
        double sum = 0;
        cell(&t, i + 1, '\t');
        cell(&t, row->whole, '\t');
        cell(&t, row->whole_lo, '\t');
        cell(&t, row->whole_hi, v->n_parts ? '\t' : '\n');
        for (int32_t k = 0; k < v->n_parts; k++) {
            sum += row->ms[k];
            cell(&t, sum, k + 1 < v->n_parts ? '\t' : '\n');
        }
    }
    int rc = gnuplot_file(g, "parts.tsv", t.data, t.len, err);
    text_free(&t);
    return rc;
}

/* Shares where they can be read. */
static int write_labels(const struct shares *v, struct gnuplot *g, struct err *err) {
    struct text t = {0};
    text_puts(&t, "x\ty\tshare\n");
    for (int32_t i = 0; i < v->n; i++) {
        const struct shares_row *row = &v->row[i];
        double below = 0;
        for (int32_t k = 0; k < v->n_parts; k++) {
            if (row->ms[k] > LEGIBLE * (v->y.hi - v->y.lo))
                text_printf(&t, "%d\t%.17g\t%.0f %%\n", (int)i + 1, below + row->ms[k] / 2,
                            100 * row->ms[k] / row->sum);
            below += row->ms[k];
        }
    }
    int rc = gnuplot_file(g, "shares.tsv", t.data, t.len, err);
    text_free(&t);
    return rc;
}

int script_parts(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct shares v;
    char name[40];
    bool whole = false;
    int rc = shares_read(ts, &v, err);
    if (!rc) rc = write_rows(&v, g, err);
    if (!rc) rc = write_labels(&v, g, err);
    if (rc) goto out;
    script_number(s, "n", v.n_parts);
    script_number(s, "n_rows", v.n);
    text_printf(s, "array name[%d]\narray label[%d]\n", v.n_parts, v.n);
    for (int32_t k = 0; k < v.n_parts; k++) {
        snprintf(name, sizeof name, "name[%d]", (int)k + 1);
        script_text(s, name, v.part[k]);
    }
    for (int32_t i = 0; i < v.n; i++) {
        snprintf(name, sizeof name, "label[%d]", (int)i + 1);
        script_text(s, name, v.row[i].label);
        whole = whole || isfinite(v.row[i].whole);
    }
    script_number(s, "whole", whole);
    script_text(s, "x_label", v.x_name);
    script_text(s, "t_unit", v.t_unit);
    script_axis(s, "y", "y", &v.y);
out:
    shares_free(&v);
    return rc;
}
