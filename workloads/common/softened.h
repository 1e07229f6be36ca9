/* SPDX-License-Identifier: Apache-2.0 */
/* A distribution of next tokens at a temperature, and whether drawn tokens are drawn from it. */
#ifndef WORKLOADS_COMMON_SOFTENED_H
#define WORKLOADS_COMMON_SOFTENED_H
#include <stdbool.h>
#include <stdint.h>

struct softened {
    double entropy;        /* bits */
    double top, third;     /* the likeliest token's probability; the third likeliest's, 0: none */
    double mass;           /* of the likeliest k */
    double log_ratio;      /* ln(top / third) at this temperature; NAN without a third */
    double log_ratio_1;    /* the same of the logits, that is at temperature 1 */
    double first, log_sum; /* the largest logit; ln of the sum of exp((logit - first) / T) */
};
enum { SOFTENED_MOST_K = 1024 };
/* p (n) = softmax(logits / temperature), in double (seed E48). A logit that is a NaN is out of the
   question, as select has it; where there is no finite one at all every field is NAN and p is 0. k
   is 1 ... SOFTENED_MOST_K. */
void softened_of(const float *logits, int32_t n, double temperature, int32_t k, double *p,
                 struct softened *);

/* -log2 of the probability of a token with that logit: finite where p itself vanishes. */
double softened_bits(const struct softened *, float logit, double temperature);

struct drawn {
    double statistic; /* Pearson's: sum of (seen - expected)^2 / expected over the cells */
    int32_t cells;    /* ids by falling probability, joined until each is expected often enough */
    double chance; /* of a statistic as large or larger; 1 with one cell; NAN: an impossible id */
};
/* ids (n_drawn) against probabilities p (n). Each cell is expected at least 5 times, and at least
   one in 32 of the draws. The chance by Wilson and Hilferty's (1931) normal approximation of chi
   square. */
void drawn_of(const double *p, int32_t n, const int32_t *ids, int32_t n_drawn, struct drawn *);

#endif
