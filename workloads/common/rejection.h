/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling rule of speculation (Leviathan, Kalman & Matias 2023; Chen et al. 2023; seeds E46):
   what the draft p proposes comes out as the target q would have drawn it. All in double. */
#ifndef WORKLOADS_COMMON_REJECTION_H
#define WORKLOADS_COMMON_REJECTION_H
#include <stdint.h>

/* p (n) = softmax(logits / temperature), temperature > 0. */
void rejection_softmax(const float *logits, int64_t n, double temperature, double *p);
/* The id at which the running sum of the weights (n), over their sum, first exceeds u in [0, 1):
   never one of weight 0. Where there is no weight above 0 at all: 0. */
int32_t rejection_draw(const double *weights, int64_t n, double u);
/* The chance that a drafted token stays: min(1, q(x) / p(x)). */
double rejection_keeps(double p, double q);
/* What is drawn from where it does not: out (n) = (q - p) where that is above 0, normalised; q
   where p = q, when nothing is ever rejected. out may be q. */
void rejection_residual(const double *p, const double *q, int64_t n, double *out);
/* The chance that a draft from p stays: sum of min(p, q). */
double rejection_acceptance(const double *p, const double *q, int64_t n);
/* The distribution of the token that comes out, by enumerating drafts: out (n), which is q. */
void rejection_output(const double *p, const double *q, int64_t n, double *out);

#endif
