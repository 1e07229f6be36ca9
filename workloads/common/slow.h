/* SPDX-License-Identifier: Apache-2.0 */
/* One op's witness: rows computed alone, and sampled outputs against a slow computation in double
 * on the host. */
#ifndef WORKLOADS_COMMON_SLOW_H
#define WORKLOADS_COMMON_SLOW_H
#include "kernels/device.h"
#include "workloads/workload.h"

/* ERR_MEMORY names `what`. */
int tensor_create(struct tensor *, struct device *, enum dtype, int64_t rows, int64_t cols,
                  const char *what, struct err *);
struct tensor tensor_row(struct tensor, int64_t row);
/* out (cols), on the host; waits. */
void tensor_download(struct device *, const struct tensor *, int64_t row, float *out);

/* A row of the fast path against the same row computed alone: the same bits where the witness's
   contract is exact, else within `tolerance` of the row's largest value. position: of its first
   value. */
void witness_row(struct witness *, const float *fast, const float *alone, int64_t n,
                 int64_t position, double tolerance);

/* What the sampled outputs add up to. Errors are root mean squares over the root mean square of
   what should have come out. */
struct slow {
    int64_t n;
    double error, value;         /* sums of squares: device - exact; exact */
    double departure, unrounded; /* exact - original; original */
    int64_t beyond;              /* position of the first output beyond what is allowed; -1 */
    double beyond_by;            /* its error */
};
void slow_begin(struct slow *);
/* exact: from the values that the device has; original: from those before they were rounded to
   their format; allowed: largest |device - exact|. A NaN is beyond. */
void slow_add(struct slow *, double device, double exact, double original, double allowed,
              int64_t position);
double slow_kernel_error(const struct slow *); /* NAN if nothing was sampled */
double slow_format_error(const struct slow *);
/* An output beyond what is allowed breaks the contract, whatever it is. */
void slow_judge(const struct slow *, struct witness *);
/* softmax(q k^T scale) v over n positions: q (d_h), k and v (n, d_h); out (d_h); spread (d_h), or
 * NULL: root of the sum of squared terms. */
void slow_attention(const float *q, const float *k, const float *v, int32_t n, int32_t d_h,
                    double scale, double *out, double *spread);
/* What a device may add to an output of attention: sums in f32; beside 16 bits in the cache it may
   round queries and probabilities to them, beside int8 queries to 8 bits; then the output to its
   type. */
double slow_attention_allowed(enum dtype kv, enum dtype out, double spread, double value);
/* Whether the device computes at all: a virtual one does not, and has no such errors. */
bool slow_applies(const struct device *);

#define SLOW_METRICS                                                                               \
    {"format_error", "",                                                                           \
     "Root mean square of exact - original over that of original, of sampled outputs: a slow "     \
     "computation in double from the values as they are stored, and from those before they were "  \
     "rounded to their format: what the format costs, whatever the device.",                       \
     BETTER_LOWER, true},                                                                          \
    {                                                                                              \
        "kernel_error", "",                                                                        \
            "Root mean square of device - exact over that of exact, of the same outputs: what "    \
            "the device's arithmetic adds.",                                                       \
            BETTER_LOWER, false                                                                    \
    }

#endif
