/* SPDX-License-Identifier: Apache-2.0 */
/* The data of roofline.gp: rows by group, roofs, and labels placed so that none covers another. */
#include "plots/scripts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "plots/gnuplot.h"
#include "plots/views.h"

enum { GROUPS_MOST = 8 };
/* The drawing area of roofline.gp in units of one character's width and height. */
#define WIDE  69.0
#define HIGH  26.0
#define SHAPE 1.82 /* a line is so many characters high */

struct box {
    double x0, y0, x1, y1; /* characters */
};
struct boxes {
    struct box *b;
    size_t n, room;
};

static bool overlaps(const struct boxes *all, struct box b) {
    for (size_t i = 0; i < all->n; i++) {
        const struct box *o = &all->b[i];
        if (b.x0 < o->x1 && o->x0 < b.x1 && b.y0 < o->y1 && o->y0 < b.y1) return true;
    }
    return false;
}

static void occupy(struct boxes *all, struct box b) {
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        all->b = must_realloc(all->b, all->room * sizeof *all->b);
    }
    all->b[all->n++] = b;
}

static void label(struct text *t, const char *words, double x, double y, const char *how) {
    text_puts(t, "set label '");
    for (const char *c = words; *c; c++) text_printf(t, *c == '\'' ? "''" : "%c", *c);
    text_printf(t, "' at %.17g,%.17g %s front\n", x, y, how);
}

/* Above, below, right or left of its point, the first that is free; a label without a place is left
   out: the points of a group are in order anyhow. */
static void place_label(const struct roofs *v, const struct roof_row *r, struct boxes *all,
                        struct text *t) {
    double px = axis_place(&v->x, r->intensity) * WIDE, py = axis_place(&v->y, r->rate) * HIGH;
    double w = (double)utf8_width(r->label) + 0.6;
    const struct {
        struct box b;
        const char *how;
    } tries[] = {
        {{px + 0.9, py - 0.5, px + 0.9 + w, py + 0.5}, "left offset character 1,0"},
        {{px - 0.9 - w, py - 0.5, px - 0.9, py + 0.5}, "right offset character -1,0"},
        {{px - w / 2, py + 0.5, px + w / 2, py + 1.5}, "center offset character 0,0.9"},
        {{px - w / 2, py - 1.5, px + w / 2, py - 0.5}, "center offset character 0,-0.9"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct box b = tries[i].b;
        if (b.x0 < 0 || b.x1 > WIDE || b.y0 < 0 || b.y1 > HIGH || overlaps(all, b)) continue;
        occupy(all, b);
        label(t, r->label, r->intensity, r->rate, tries[i].how);
        return;
    }
}

/* Marks on the lines, so that labels stay off them. */
static void occupy_line(const struct roofs *v, double bandwidth, double peak, struct boxes *all) {
    for (int i = 0; i <= 200; i++) {
        double x = exp(log(v->x.lo) + i / 200.0 * log(v->x.hi / v->x.lo));
        double px = axis_place(&v->x, x) * WIDE;
        double py = axis_place(&v->y, fmin(peak, bandwidth * x)) * HIGH;
        occupy(all, (struct box){px - 0.3, py - 0.2, px + 0.3, py + 0.2});
    }
}

/* Names of the flats stand beyond the right border, apart by a line at least, the highest where it
 * belongs. */
static void peak_labels(const struct roofs *v, struct text *t) {
    const struct roof *sorted[ROOFS_MOST];
    double above = INFINITY;
    char words[120], number[32];
    for (int32_t i = 0; i < v->n_peaks; i++) {
        int32_t at = i;
        for (; at > 0 && sorted[at - 1]->value < v->peak[i].value; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &v->peak[i];
    }
    for (int32_t i = 0; i < v->n_peaks; i++) {
        double py = fmin(axis_place(&v->y, sorted[i]->value) * HIGH, above - 1);
        above = py;
        snprintf(words, sizeof words, "%.60s: %s", sorted[i]->name,
                 axis_label(number, sorted[i]->value));
        label(t, words, v->x.hi, exp(log(v->y.lo) + py / HIGH * log(v->y.hi / v->y.lo)),
              "left offset character 0.6,0 font ',10'");
    }
}

/* Names of the slopes run along them. */
static void roof_labels(const struct roofs *v, struct boxes *all, struct text *t) {
    char words[120], number[32], how[80];
    double shape = log(v->x.hi / v->x.lo) / log(v->y.hi / v->y.lo); /* of the area in decades */
    double angle = atan(HIGH * SHAPE / WIDE * shape) * 180 / M_PI;
    for (int32_t i = 0; i < v->n_bandwidths; i++) {
        const struct roof *r = &v->bandwidth[i];
        double x = fmax(v->x.lo, v->y.lo / r->value) * pow(v->x.hi / v->x.lo, 0.04);
        snprintf(words, sizeof words, "%.60s %s GB/s", r->name,
                 format_number(number, sizeof number, r->value / 1e9, 3));
        snprintf(how, sizeof how, "left rotate by %.0f offset character -0.9,0.8", angle);
        label(t, words, x, x * r->value, how);
        double px = axis_place(&v->x, x) * WIDE, py = axis_place(&v->y, x * r->value) * HIGH;
        double w = (double)strlen(words) * cos(angle * M_PI / 180),
               up = tan(angle * M_PI / 180) / SHAPE;
        for (double k = 0; k < w; k += 1)
            occupy(all, (struct box){px + k - 0.5, py + k * up, px + k + 0.5, py + k * up + 1.5});
    }
    peak_labels(v, t);
}

static int write_groups(const struct roofs *v, struct gnuplot *g, struct text *s, int *n,
                        struct err *err) {
    struct text t = {0}, names = {0};
    int rc = 0;
    *n = 0;
    for (int32_t i = 0; i < v->n && !rc;) {
        int32_t end = i;
        char name[40];
        t.len = 0;
        text_puts(&t, "intensity\tgflops\n");
        for (; end < v->n && !strcmp(v->row[end].group, v->row[i].group); end++)
            text_printf(&t, "%.17g\t%.17g\n", v->row[end].intensity, v->row[end].rate);
        if (*n < GROUPS_MOST) {
            snprintf(name, sizeof name, "group%d.tsv", ++*n);
            rc = gnuplot_file(g, name, t.data, t.len, err);
            snprintf(name, sizeof name, "name[%d]", *n);
            script_text(&names, name, v->row[i].group);
        }
        i = end;
    }
    script_number(s, "n", *n);
    text_printf(s, "array name[%d]\n%s", *n, names.data ? names.data : "");
    text_free(&t);
    text_free(&names);
    return rc;
}

int script_roofline(const struct tables *ts, struct gnuplot *g, struct text *s, struct err *err) {
    struct roofs v;
    struct boxes all = {0};
    struct text labels = {0};
    char name[40];
    int n = 0, rc = roofs_read(ts, &v, err);
    if (rc) goto out;
    rc = write_groups(&v, g, s, &n, err);
    if (rc) goto out;
    script_axis(s, "x", "x", &v.x);
    script_axis(s, "y", "y", &v.y);
    script_number(s, "n_bandwidths", v.n_bandwidths);
    script_number(s, "n_peaks", v.n_peaks);
    text_printf(s, "array bandwidth[%d]\narray peak[%d]\n", ROOFS_MOST, v.n_peaks);
    for (int32_t i = v.n_bandwidths; i < ROOFS_MOST; i++) {
        snprintf(name, sizeof name, "bandwidth[%d]", i + 1);
        script_number(s, name, NAN);
    }
    double top = 0;
    for (int32_t i = 0; i < v.n_peaks; i++) {
        snprintf(name, sizeof name, "peak[%d]", i + 1);
        script_number(s, name, v.peak[i].value);
        top = fmax(top, v.peak[i].value);
    }
    for (int32_t i = 0; i < v.n_bandwidths; i++) {
        snprintf(name, sizeof name, "bandwidth[%d]", i + 1);
        script_number(s, name, v.bandwidth[i].value);
        occupy_line(&v, v.bandwidth[i].value, top, &all);
    }
    for (int32_t i = 0; i < v.n_peaks; i++)
        occupy_line(&v, v.bandwidth[0].value, v.peak[i].value, &all);
    script_number(s, "top", top);
    for (int32_t i = 0; i < v.n; i++) { /* the points themselves */
        double px = axis_place(&v.x, v.row[i].intensity) * WIDE;
        double py = axis_place(&v.y, v.row[i].rate) * HIGH;
        occupy(&all, (struct box){px - 0.6, py - 0.35, px + 0.6, py + 0.35});
    }
    roof_labels(&v, &all, &labels);
    for (int32_t i = 0; i < v.n; i++) /* ends of a group first: they say which way it runs */
        if (!i || i + 1 == v.n || strcmp(v.row[i].group, v.row[i - 1].group) ||
            strcmp(v.row[i].group, v.row[i + 1].group))
            place_label(&v, &v.row[i], &all, &labels);
    for (int32_t i = 1; i + 1 < v.n; i++)
        if (!strcmp(v.row[i].group, v.row[i - 1].group) &&
            !strcmp(v.row[i].group, v.row[i + 1].group))
            place_label(&v, &v.row[i], &all, &labels);
    rc = gnuplot_file(g, "labels.gp", labels.data ? labels.data : "", labels.len, err);
out:
    free(all.b);
    text_free(&labels);
    roofs_free(&v);
    return rc;
}
