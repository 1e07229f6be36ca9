/* SPDX-License-Identifier: Apache-2.0 */
/* Curves through few points: straight lines, their bend, and the physical hinge of a roofline. */
#ifndef RESULTS_FIT_H
#define RESULTS_FIT_H
#include <stdbool.h>
#include <stddef.h>

/* y = a + b x by least squares; false below two distinct x. */
bool fit_line(const double *x, const double *y, size_t n, double *a, double *b);
/* The coefficient of x^2 (x centred) of the least-squares parabola; NAN below three distinct x. */
double fit_bend(const double *x, const double *y, size_t n);

/* t(x) = level + slope * max(0, x - knee) = max(level, c0 + c1 x): the time of a step whose weights
   are read once (level) until the arithmetic of x items takes longer. Squares of relative errors
   are least, because the noise of times is a share of them. */
struct hinge {
    double level, knee, slope; /* units of t, of x, of t per x; slope >= 0 */
    double error;              /* root mean square of the relative errors */
    double error_line;         /* the same for a straight line: what remains if there is no hinge */
    double error_flat;         /* the same for a constant */
};
enum hinge_place {
    HINGE_NONE,   /* fewer than four points, or a value that is not positive */
    HINGE_INSIDE, /* at least one point on the plateau and two on the slope */
    HINGE_BELOW,  /* a straight line from the first point on: the plateau ends before the range */
    HINGE_ABOVE,  /* a plateau, or only the last point above it: the range ends before the slope is
                     known */
};
/* x ascending, distinct, positive. The fields are set unless HINGE_NONE. */
enum hinge_place fit_hinge(const double *x, const double *t, size_t n, struct hinge *);
/* Level and slope for a knee that is known already. */
void fit_hinge_at(const double *x, const double *t, size_t n, double knee, struct hinge *);

#endif
