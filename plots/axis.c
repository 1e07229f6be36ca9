/* SPDX-License-Identifier: Apache-2.0 */
/* Nice numbers: 1-2-5 steps, on straight and on logarithmic axes. */
#include "plots/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static char *label(char buf[32], double v, double short_from) {
    static const char *const suffix[] = {"", " k", " M", " G", " T", " P"};
    double size = fabs(v);
    size_t s = 0;
    if (size >= short_from)
        while (size >= 999.5 && s < 5) size /= 1e3, v /= 1e3, s++;
    if (fabs(v - round(v)) <= 1e-6 * size && size < 1e6)
        snprintf(buf, 32, "%.0f%s", round(v) + 0.0, suffix[s]);
    else if (size >= 1e-3 && size < 1e4)
        snprintf(buf, 32, s ? "%.3g%s" : "%.4g%s", v, suffix[s]);
    else
        snprintf(buf, 32, "%.2g%s", v, suffix[s]);
    for (char *c = buf; *c; c++) /* a decimal comma of the user's locale has no place here */
        if (*c == ',') *c = '.';
    return buf;
}

char *axis_label(char buf[32], double v) { return label(buf, v, 1e4); }

static double three_digits(double v) {
    if (!(v > 0)) return v;
    const double unit = pow(10, floor(log10(v)) - 2);
    return round(v / unit) * unit;
}

char *axis_tick_label(const struct axis *a, int i, char buf[32]) {
    double most = 0;
    bool whole = true, cut = false; /* cut: three digits would lose some, as 16.4 k of 16384 does */
    for (int k = 0; k < a->n_ticks; k++) {
        const double v = fabs(a->tick[k]);
        most = fmax(most, v);
        whole = whole && v == floor(v);
        cut = cut || fabs(v - three_digits(v)) > 1e-9 * v;
    }
    return label(buf, a->tick[i], most < 1e4 ? 1e4 : whole && cut && most < 1e6 ? 1e6 : 1e3);
}

static void add_tick(struct axis *a, double v) {
    double room = 1e-9 * (a->log ? v : a->hi - a->lo);
    if (a->n_ticks < AXIS_MOST_TICKS && v >= a->lo - room && v <= a->hi + room)
        a->tick[a->n_ticks++] = v;
}

static void straight_ticks(struct axis *a, int wanted) {
    double raw = (a->hi - a->lo) / wanted, unit = pow(10, floor(log10(raw)));
    double step = raw / unit <= 1.5 ? 1 : raw / unit <= 3 ? 2 : raw / unit <= 7 ? 5 : 10;
    step *= unit;
    a->n_ticks = 0;
    for (double i = ceil(a->lo / step - 1e-9); i * step <= a->hi * (1 + 1e-12) + 1e-9 * step; i++) {
        if (a->n_ticks == AXIS_MOST_TICKS) break;
        add_tick(a, i * step);
    }
}

/* Too many ticks give way to a coarser set, too few to a finer one. */
static void log_ticks(struct axis *a) {
    static const double sets[3][7] = {{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}};
    static const int sizes[3] = {1, 3, 7};
    double from = floor(log10(a->lo)), to = ceil(log10(a->hi)), decades = log10(a->hi / a->lo);
    int set = decades > 3.5 ? 0 : decades > 0.85 ? 1 : 2;
    double stride = fmax(1, ceil(decades / 10));
    a->n_ticks = 0;
    if (decades < 0.25) {
        straight_ticks(a, 4);
        return;
    }
    for (double d = from; d <= to; d += stride)
        for (int i = 0; i < sizes[set]; i++) add_tick(a, sets[set][i] * pow(10, d));
}

void axis_fit(struct axis *a, const double *v, size_t n, bool log, bool from_zero) {
    double lo = INFINITY, hi = -INFINITY;
    *a = (struct axis){0, 1, log, 0, {0}, false};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]) || (log && v[i] <= 0)) continue;
        lo = fmin(lo, v[i]);
        hi = fmax(hi, v[i]);
    }
    a->used = lo <= hi;
    if (!a->used) {
        lo = log ? 1 : 0;
        hi = log ? 10 : 1;
    }
    if (log) {
        double margin = fmax(pow(hi / lo, 0.06), 1.05);
        if (hi / lo < 1.3) margin = 1.3;
        a->lo = fmax(lo / margin, 1e-300);
        a->hi = fmin(hi * margin, 1e300);
        log_ticks(a);
        return;
    }
    if (from_zero) lo = fmin(lo, 0);
    double span = hi - lo, room = 0.06 * span;
    if (!(span > 1e-12 * fmax(fabs(lo), fabs(hi)))) room = fmax(0.1 * fabs(hi), 1e-6);
    a->lo = from_zero && lo >= 0 ? 0 : lo - room;
    a->hi = hi + room;
    straight_ticks(a, 5);
}

double axis_place(const struct axis *a, double v) {
    if (!isfinite(v) || (a->log && v <= 0)) return (double)NAN;
    if (a->log) return log(v / a->lo) / log(a->hi / a->lo);
    return (v - a->lo) / (a->hi - a->lo);
}

void axis_ticks_at(struct axis *a, const double *v, size_t n) {
    double last = -1;
    struct axis made = *a;
    made.n_ticks = 0;
    for (size_t i = 0; i < n; i++) {
        double at = axis_place(a, v[i]);
        if (!isfinite(at)) continue;
        if (made.n_ticks && at < last + 0.055) {
            /* Where two fall together the later one stands only at the end of the axis. */
            if (i + 1 == n && made.n_ticks > 1 && at > last) made.tick[made.n_ticks - 1] = v[i];
            continue;
        }
        if (made.n_ticks == AXIS_MOST_TICKS) return; /* too many: the usual ones stay */
        made.tick[made.n_ticks++] = v[i];
        last = at;
    }
    if (made.n_ticks) *a = made;
}

bool axis_wants_log(const double *v, size_t n) {
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        if (v[i] <= 0) return false;
        lo = fmin(lo, v[i]);
        hi = fmax(hi, v[i]);
    }
    return lo < hi && hi / lo >= 7;
}
