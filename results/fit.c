/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares for lines, parabolas and hinges; the hinge's knee is searched, the rest is linear.
 */
#include "results/fit.h"

#include <math.h>

bool fit_line(const double *x, const double *y, size_t n, double *a, double *b) {
    double mx = 0, my = 0, sxx = 0, sxy = 0;
    *a = *b = (double)NAN;
    if (n < 2) return false;
    for (size_t i = 0; i < n; i++) {
        mx += x[i] / (double)n;
        my += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        sxx += (x[i] - mx) * (x[i] - mx);
        sxy += (x[i] - mx) * (y[i] - my);
    }
    if (!(sxx > 0)) return false;
    *b = sxy / sxx;
    *a = my - *b * mx;
    return isfinite(*a) && isfinite(*b);
}

double fit_bend(const double *x, const double *y, size_t n) {
    double m = 0, p2 = 0, p3 = 0, top = 0, num = 0, den = 0;
    if (n < 3) return (double)NAN;
    for (size_t i = 0; i < n; i++) m += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        double p = x[i] - m;
        p2 += p * p;
        p3 += p * p * p;
        top = fmax(top, p * p);
    }
    if (!(p2 > 0)) return (double)NAN;
    /* (x - m)^2 made orthogonal to 1 and x: what y has along the rest is the bend alone. */
    for (size_t i = 0; i < n; i++) {
        double p = x[i] - m, z = p * p - p2 / (double)n - p3 / p2 * p;
        num += z * y[i];
        den += z * z;
    }
    return den > 1e-18 * top * top ? num / den : (double)NAN;
}

/* The best level and slope for a knee, in relative errors: y = 1 against columns 1/t and max(0, x -
 * knee)/t. */
static double hinge_at(const double *x, const double *t, size_t n, double knee, double *level,
                       double *slope) {
    double a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
    for (size_t i = 0; i < n; i++) {
        double u = 1 / t[i], v = fmax(0, x[i] - knee) / t[i];
        a11 += u * u;
        a12 += u * v;
        a22 += v * v;
        b1 += u;
        b2 += v;
    }
    double det = a11 * a22 - a12 * a12;
    *level = b1 / a11;
    *slope = 0;
    if (det > 1e-14 * a11 * a22) {
        double l = (b1 * a22 - b2 * a12) / det, s = (a11 * b2 - a12 * b1) / det;
        if (s > 0) {
            *level = l;
            *slope = s;
        }
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double e = (*level + *slope * fmax(0, x[i] - knee)) / t[i] - 1;
        sum += e * e;
    }
    return sum;
}

/* Straight lines that fall are lines too: the slope may have either sign here. */
static double line_error(const double *x, const double *t, size_t n) {
    double a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double u = 1 / t[i], v = x[i] / t[i];
        a11 += u * u, a12 += u * v, a22 += v * v, b1 += u, b2 += v;
    }
    double det = a11 * a22 - a12 * a12;
    double a = (b1 * a22 - b2 * a12) / det, b = (a11 * b2 - a12 * b1) / det;
    for (size_t i = 0; i < n; i++) {
        double e = (a + b * x[i]) / t[i] - 1;
        sum += e * e;
    }
    return sum;
}

enum hinge_place fit_hinge(const double *x, const double *t, size_t n, struct hinge *h) {
    enum { STEPS = 400 };
    double level, slope;
    *h = (struct hinge){(double)NAN, (double)NAN, (double)NAN,
                        (double)NAN, (double)NAN, (double)NAN};
    if (n < 4) return HINGE_NONE;
    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0 && isfinite(x[i]) && t[i] > 0 && isfinite(t[i])) ||
            (i && !(x[i] > x[i - 1])))
            return HINGE_NONE;

    /* Beyond the last point but one only one point is on the slope, and knee and slope cannot be
     * told apart. */
    double lo = log(x[0]), hi = log(x[n - 2]), best = INFINITY, at = lo;
    double step = (hi - lo) / STEPS;
    for (int i = 0; i <= STEPS; i++) {
        double k = i == STEPS ? hi : lo + i * step;
        double e = hinge_at(x, t, n, exp(k), &level, &slope);
        if (e < best) {
            best = e;
            at = k;
        }
    }
    double left = fmax(lo, at - step), right = fmin(hi, at + step), golden = 0.6180339887498949;
    for (int i = 0; i < 60; i++) {
        double p = right - golden * (right - left), q = left + golden * (right - left);
        if (hinge_at(x, t, n, exp(p), &level, &slope) < hinge_at(x, t, n, exp(q), &level, &slope))
            right = q;
        else
            left = p;
    }
    at = (left + right) / 2;
    h->knee = exp(at);
    double e = hinge_at(x, t, n, h->knee, &h->level, &h->slope), count = (double)n;
    h->error = sqrt(e / count);
    h->error_line = sqrt(line_error(x, t, n) / count);
    h->error_flat = sqrt(hinge_at(x, t, n, x[n - 1], &level, &slope) / count);
    if (!(h->slope * (x[n - 1] - h->knee) > 1e-9 * h->level)) return HINGE_ABOVE;
    double width = (hi - lo) * 1e-3;
    if (at <= lo + width) return HINGE_BELOW;
    if (at >= hi - width) return HINGE_ABOVE;
    return HINGE_INSIDE;
}

void fit_hinge_at(const double *x, const double *t, size_t n, double knee, struct hinge *h) {
    h->knee = knee;
    h->error = sqrt(hinge_at(x, t, n, knee, &h->level, &h->slope) / (double)n);
}
