/* SPDX-License-Identifier: Apache-2.0 */
/* The same pictures with characters: a canvas, two axes, and curves made of '_', '-' and "'" for
 * thirds of a line. */
#include "plots/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "plots/axis.h"
#include "plots/views.h"

enum { NARROWEST = 30, LOWEST = 7, TICKS_LEFT = 8 }; /* columns for y ticks */
static const char signs[] = "ox+*#@%&";

struct canvas {
    int w, h; /* of the plotting area */
    char *cell;
};

/* The name of x stands to the right of its ticks. */
static void canvas_open(struct canvas *c, int width, int height, const char *x_name) {
    int name = (int)utf8_width(x_name) + 3;
    c->w = width - TICKS_LEFT - 2 - (name < width / 3 ? name : width / 3);
    c->h = height - 3; /* title above, axis and ticks below */
    c->cell = must_alloc((size_t)c->w * (size_t)c->h);
    memset(c->cell, ' ', (size_t)c->w * (size_t)c->h);
}

static bool inside(const struct canvas *c, int x, int y) {
    return x >= 0 && x < c->w && y >= 0 && y < c->h;
}

static void put(struct canvas *c, int x, int y, char ch, bool over) {
    if (inside(c, x, y) && (over || c->cell[y * c->w + x] == ' ')) c->cell[y * c->w + x] = ch;
}

/* Places in 0 ... 1 to columns and (downward) rows. */
static int column_of(const struct canvas *c, double place) {
    if (!(place > -1e3 && place < 1e3)) return -1; /* NAN, or far outside */
    return (int)floor(place * (c->w - 1) + 0.5);
}

static double height_of(const struct canvas *c, double place) { return (1 - place) * (c->h - 1); }

static void put_point(struct canvas *c, double px, double py, char ch) {
    if (!isfinite(px) || !isfinite(py) || fabs(py) > 1e3) return;
    put(c, column_of(c, px), (int)floor(height_of(c, py) + 0.5), ch, true);
}

/* A row has three heights of ink. */
static void put_ink(struct canvas *c, int x, double py) {
    double y = height_of(c, py), row = floor(y + 0.5), part = y - row;
    if (!isfinite(y) || fabs(row) > 1e3) return;
    put(c, x, (int)row, part < -1.0 / 6 ? '\'' : part > 1.0 / 6 ? '_' : '-', false);
}

static void put_line(struct canvas *c, double x0, double y0, double x1, double y1) {
    int from = column_of(c, x0), to = column_of(c, x1);
    if (from < 0 || to < 0 || !isfinite(y0) || !isfinite(y1)) return;
    for (int x = from + 1; x < to; x++)
        put_ink(c, x, y0 + (y1 - y0) * (x - from) / (double)(to - from));
    /* Where it climbs faster than it advances the gaps are filled upright. */
    for (int x = from; x < to; x++) {
        double a = height_of(c, y0 + (y1 - y0) * (x - from) / (double)(to - from));
        double b = height_of(c, y0 + (y1 - y0) * (x + 1 - from) / (double)(to - from));
        if (!(fabs(a) < 1e3 && fabs(b) < 1e3)) continue;
        int lo = (int)floor(fmin(a, b) + 0.5), hi = (int)floor(fmax(a, b) + 0.5);
        for (int y = lo + 1; y < hi; y++) put(c, x, y, '|', false);
    }
}

/* Cuts a line to `width` columns (never within a character) and drops blanks at its end. */
static void add_line(struct text *out, const char *line, int width) {
    size_t n = 0;
    int columns = 0;
    for (; line[n]; n++) {
        if (((unsigned char)line[n] & 0xc0) == 0x80) continue;
        if (columns++ == width) break;
    }
    while (n && line[n - 1] == ' ') n--;
    text_add(out, line, n);
    text_puts(out, "\n");
}

/* ' 160 |': the label of the tick that falls on this row. */
static void y_tick(const struct canvas *c, const struct axis *a, int row,
                   char out[TICKS_LEFT + 1]) {
    char label[32] = "";
    for (int i = 0; i < a->n_ticks; i++)
        if ((int)floor(height_of(c, axis_place(a, a->tick[i])) + 0.5) == row)
            axis_tick_label(a, i, label);
    snprintf(out, TICKS_LEFT + 1, "%*.*s", TICKS_LEFT, TICKS_LEFT, label);
}

static void x_ticks(const struct canvas *c, const struct axis *a, char *line, size_t size) {
    int free_from = 0, last = TICKS_LEFT + 2 + c->w;
    memset(line, ' ', size);
    for (int i = 0; i < a->n_ticks; i++) {
        char label[32];
        axis_tick_label(a, i, label);
        int n = (int)strlen(label);
        int at = TICKS_LEFT + 2 + column_of(c, axis_place(a, a->tick[i])) - n / 2;
        if (at < free_from || at + n > last + 1 || at + n >= (int)size) continue;
        memcpy(line + at, label, (size_t)n);
        free_from = at + n + 1;
    }
    line[last + 1] = 0;
}

static void canvas_write(const struct canvas *c, const struct axis *x, const struct axis *y,
                         const char *title, const char *x_name, int width, struct text *out) {
    struct text line = {0};
    text_printf(&line, "%*s%s", 2, "", title);
    while ((int)utf8_width(line.data) > width) { /* whole entries of the legend go, from the end */
        char *last = NULL;
        for (char *at = line.data + 2; (at = strstr(at, "  ")); at++) last = at;
        if (!last) break;
        *last = 0;
    }
    add_line(out, line.data, width);
    for (int r = 0; r < c->h; r++) {
        char tick[TICKS_LEFT + 1];
        y_tick(c, y, r, tick);
        line.len = 0;
        text_printf(&line, "%s |%.*s", tick, c->w, c->cell + r * c->w);
        add_line(out, line.data, width);
    }
    line.len = 0;
    text_printf(&line, "%*s+", TICKS_LEFT + 1, "");
    for (int i = 0; i < c->w; i++) {
        bool tick = false;
        for (int k = 0; k < x->n_ticks; k++) tick |= column_of(c, axis_place(x, x->tick[k])) == i;
        text_puts(&line, tick ? "'" : "-");
    }
    add_line(out, line.data, width);
    char *ticks = must_alloc((size_t)width + 64);
    x_ticks(c, x, ticks, (size_t)width + 32);
    line.len = 0;
    text_printf(&line, "%s  %s", ticks, x_name);
    add_line(out, line.data, width);
    free(ticks);
    text_free(&line);
}

/* ---- kinds */

static void legend(struct text *t, char sign, const char *name) {
    if (*name) text_printf(t, "  %c %s", sign, name);
}

static int ascii_curves(const struct tables *ts, const char *kind, int width, int height,
                        struct text *out, struct err *err) {
    struct curves v;
    struct canvas c = {0};
    struct text title = {0};
    int rc = curves_read(ts, kind, &v, err);
    if (rc) goto out;
    canvas_open(&c, width, height, v.x_name);
    text_printf(&title, "%s%s%s", v.y_name, *v.y_unit ? ", " : "", v.y_unit);
    for (int32_t g = 0; g < v.n; g++) {
        const struct curve *k = &v.curve[g];
        char sign = signs[g % (int)(sizeof signs - 1)];
        legend(&title, sign, k->name);
        for (int32_t i = 0; i < k->n; i++)
            put_point(&c, axis_place(&v.x, k->x[i]), axis_place(&v.y, k->y[i]), sign);
    }
    for (int32_t g = 0; g < v.n; g++) {
        const struct curve *k = &v.curve[g];
        for (int32_t i = 1; i < k->n; i++)
            put_line(&c, axis_place(&v.x, k->x[i - 1]), axis_place(&v.y, k->y[i - 1]),
                     axis_place(&v.x, k->x[i]), axis_place(&v.y, k->y[i]));
    }
    if (v.n == 1 && isfinite(v.curve[0].knee)) {
        char number[32];
        int x = column_of(&c, axis_place(&v.x, v.curve[0].knee));
        for (int y = 0; y < c.h; y++) put(&c, x, y, ':', false);
        text_printf(&title, "   : B* = %s",
                    format_number(number, sizeof number, v.curve[0].knee, 3));
    }
    for (int32_t i = 0; i < v.n_marks; i++) {
        int x = column_of(&c, axis_place(&v.x, v.mark[i].x));
        for (int y = 0; y < c.h; y++) put(&c, x, y, ':', false);
        text_printf(&title, "%s%s", i ? ", " : "   : ", v.mark[i].name);
    }
    canvas_write(&c, &v.x, &v.y, title.data, v.x_name, width, out);
out:
    free(c.cell);
    text_free(&title);
    curves_free(&v);
    return rc;
}

static int ascii_roofline(const struct tables *ts, int width, int height, struct text *out,
                          struct err *err) {
    struct roofs v;
    struct canvas c = {0};
    struct text title = {0};
    double top = 0;
    int32_t group = -1;
    int rc = roofs_read(ts, &v, err);
    if (rc) goto out;
    canvas_open(&c, width, height, "FLOP/byte");
    text_puts(&title, "FLOP/s   / roofs");
    for (int32_t i = 0; i < v.n_peaks; i++) top = fmax(top, v.peak[i].value);
    for (int32_t i = 0; i < v.n; i++) {
        bool fresh = !i || strcmp(v.row[i].group, v.row[i - 1].group);
        char sign = signs[(group + fresh) % (int)(sizeof signs - 1)];
        group += fresh;
        if (fresh) legend(&title, sign, v.row[i].group);
        put_point(&c, axis_place(&v.x, v.row[i].intensity), axis_place(&v.y, v.row[i].rate), sign);
    }
    for (int x = 0; x < c.w; x++) {
        double intensity = exp(log(v.x.lo) + x / (double)(c.w - 1) * log(v.x.hi / v.x.lo));
        double roof = v.bandwidth[0].value * intensity, py = axis_place(&v.y, fmin(roof, top));
        if (roof < top)
            put(&c, x, (int)floor(height_of(&c, py) + 0.5), '/', false);
        else
            put_ink(&c, x, py);
    }
    canvas_write(&c, &v.x, &v.y, title.data, "FLOP/byte", width, out);
out:
    free(c.cell);
    text_free(&title);
    roofs_free(&v);
    return rc;
}

static const char fill[] = "#=+:.o%*"; /* of classes */

/* One bar a row, as long as its time. */
static int ascii_parts(const struct tables *ts, int width, int height, struct text *out,
                       struct err *err) {
    struct shares v;
    struct text line = {0};
    size_t label = 0;
    double most = 0;
    int rc = shares_read(ts, &v, err);
    if (rc) goto out;
    for (int32_t i = 0; i < v.n; i++) {
        const size_t w = utf8_width(v.row[i].label);
        label = w > label ? w : label;
        most = fmax(most, v.row[i].sum);
    }
    label = label < (size_t)width / 3 ? label : (size_t)width / 3;
    const int room = width - (int)label - 14; /* the bar's; its number stands behind */
    text_printf(&line, "  time, %s%s%s", v.t_unit, *v.x_name ? ", by " : "", v.x_name);
    for (int32_t k = 0; k < v.n_parts; k++) legend(&line, fill[k], v.part[k]);
    add_line(out, line.data, width);
    for (int32_t i = 0; i < v.n && i < height - 1; i++) {
        double sum = 0, drawn = 0;
        char number[32];
        line.len = 0;
        text_printf(&line, "  %.*s", (int)label, v.row[i].label);
        text_pad(&line, label + 3);
        text_puts(&line, "|");
        for (int32_t k = 0; k < v.n_parts; k++) {
            sum += v.row[i].ms[k];
            for (; drawn + 0.5 < sum / most * room; drawn++) text_add(&line, &fill[k], 1);
        }
        text_printf(&line, " %s", format_number(number, sizeof number, v.row[i].sum, 3));
        add_line(out, line.data, width);
    }
out:
    text_free(&line);
    shares_free(&v);
    return rc;
}

/* A class beside which nothing else could be seen is left out of the picture; -1 if there is none.
 */
static int32_t giant_class(const struct timeline *v, double *rest) {
    for (int32_t k = 0; k < v->n_classes; k++) {
        *rest = 0;
        for (int64_t i = 0; i < v->n; i++) {
            double others = 0;
            for (int32_t o = 0; o < v->n_classes; o++)
                others += o == k ? 0 : v->live[i * CLASSES_MOST + o];
            *rest = fmax(*rest, others);
        }
        if (*rest > 0 && *rest < 0.25 * v->peak) return k;
    }
    *rest = v->peak;
    return -1;
}

/* Each column shows the fullest moment of its stretch of time. */
static void fill_memory(const struct timeline *v, int32_t without, const struct axis *y,
                        struct canvas *c) {
    int64_t at = 0;
    for (int x = 0; x < c->w; x++) {
        double until = v->end_ms * (x + 1) / (double)c->w;
        int64_t best = at;
        double most = -1;
        for (int64_t i = at; i < v->n && (i == at || v->ms[i] <= until); i++) {
            double sum = 0;
            for (int32_t k = 0; k < v->n_classes; k++)
                sum += k == without ? 0 : v->live[i * CLASSES_MOST + k];
            if (sum > most) most = sum, best = i;
            if (v->ms[i] <= until) at = i;
        }
        double below = 0;
        for (int32_t k = 0; k < v->n_classes; k++) {
            if (k == without) continue;
            double above = below + v->live[best * CLASSES_MOST + k];
            for (int r = 0; r < c->h; r++) {
                double middle = y->hi * (1 - (r + 0.5) / c->h);
                if (middle > below && middle <= above) put(c, x, r, fill[k], true);
            }
            below = above;
        }
    }
}

static int ascii_memory(const struct tables *ts, int width, int height, struct text *out,
                        struct err *err) {
    struct timeline v;
    struct canvas c = {0};
    struct text title = {0};
    struct axis x, y;
    char size[40];
    int rc = timeline_read(ts, &v, err);
    if (rc) goto out;
    canvas_open(&c, width, height, "ms");
    double rest;
    int32_t without = giant_class(&v, &rest);
    const double ends[] = {0, v.end_ms}, tops[] = {0, rest};
    axis_fit(&x, ends, 2, false, true);
    x.hi = v.end_ms;
    axis_fit(&y, tops, 2, false, true);
    fill_memory(&v, without, &y, &c);
    text_puts(&title, "live byte");
    if (without >= 0) text_printf(&title, " without %s", v.class[without]);
    text_printf(&title, ", peak %s", format_bytes_si(size, sizeof size, v.peak));
    for (int32_t k = 0; k < v.n_classes; k++)
        if (k != without) legend(&title, fill[k], v.class[k]);
    canvas_write(&c, &x, &y, title.data, "ms", width, out);
out:
    free(c.cell);
    text_free(&title);
    timeline_free(&v);
    return rc;
}

/* The distribution: which share of a row's executions took at most so many times its median. */
static int ascii_samples(const struct tables *ts, int width, int height, struct text *out,
                         struct err *err) {
    struct sequence v;
    struct canvas c = {0};
    struct text title = {0};
    struct axis y;
    int rc = sequence_read(ts, &v, err);
    if (rc) goto out;
    canvas_open(&c, width, height, "time / median");
    const double shares[] = {0, 100};
    axis_fit(&y, shares, 2, false, true);
    y.hi = 100;
    text_puts(&title, "% of executions");
    for (int32_t i = 0; i < v.n_rows; i++) {
        const struct sequence_row *r = &v.row[i];
        legend(&title, signs[i], r->label);
        int64_t stride = r->n / (4 * c.w) + 1;
        for (int64_t k = 0; k < r->n; k += stride)
            put_point(&c, axis_place(&v.y, r->sorted[k]),
                      axis_place(&y, 100 * ((double)k + 0.5) / (double)r->n), signs[i]);
    }
    canvas_write(&c, &v.y, &y, title.data, "time / median", width, out);
out:
    free(c.cell);
    text_free(&title);
    sequence_free(&v);
    return rc;
}

/* Medians over the visits, joined. */
static int ascii_warmup(const struct tables *ts, int width, int height, struct text *out,
                        struct err *err) {
    struct beginning_view v;
    struct canvas c = {0};
    struct text title = {0};
    int rc = beginning_view_read(ts, &v, err);
    if (rc) goto out;
    canvas_open(&c, width, height, "execution");
    text_puts(&title, "time / settled");
    for (int32_t i = 0; i < v.n_rows; i++) {
        const struct beginning_row *r = &v.row[i];
        legend(&title, signs[i], r->label);
        for (int32_t k = 0; k < r->n; k++) {
            const double px = axis_place(&v.x, r->at[k]), py = axis_place(&v.y, r->middle[k]);
            if (k)
                put_line(&c, axis_place(&v.x, r->at[k - 1]), axis_place(&v.y, r->middle[k - 1]), px,
                         py);
            put_point(&c, px, py, signs[i]);
        }
    }
    canvas_write(&c, &v.x, &v.y, title.data, "execution", width, out);
out:
    free(c.cell);
    text_free(&title);
    beginning_view_free(&v);
    return rc;
}

int plot_ascii(const struct tables *ts, const char *kind, int width, int height, struct text *out,
               struct err *err) {
    if (width > 400) width = 400;
    if (height > 200) height = 200;
    if (width < NARROWEST || height < LOWEST)
        return err_set(err, ERR_UNSUPPORTED, "no plot fits in %d columns and %d lines", width,
                       height);
    if (!strcmp(kind, "knee") || !strcmp(kind, "scaling") || !strcmp(kind, "tradeoff"))
        return ascii_curves(ts, kind, width, height, out, err);
    if (!strcmp(kind, "parts")) return ascii_parts(ts, width, height, out, err);
    if (!strcmp(kind, "roofline")) return ascii_roofline(ts, width, height, out, err);
    if (!strcmp(kind, "memory")) return ascii_memory(ts, width, height, out, err);
    if (!strcmp(kind, "samples")) return ascii_samples(ts, width, height, out, err);
    if (!strcmp(kind, "warmup")) return ascii_warmup(ts, width, height, out, err);
    return err_set(err, ERR_UNSUPPORTED, "there is no plot named '%.60s'", kind);
}
