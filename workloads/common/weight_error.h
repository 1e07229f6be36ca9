/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's matrices lose to their format: ||w^ - w|| / ||w|| of each, by the packers' own
   codes (seeds E33). */
#ifndef WORKLOADS_COMMON_WEIGHT_ERROR_H
#define WORKLOADS_COMMON_WEIGHT_ERROR_H
#include "workloads/model/model.h"

struct weight_error {
    int64_t matrices;   /* projections: q, k, v, o, gate, up, down of each layer */
    double mean, worst; /* over these */
    double embedding;   /* of the embedding, which a tied head shares */
    double bits;        /* of a weight of all matrices, scales included (E35) */
};
/* Reads each matrix once, twice where one scale spans it. */
int weight_error_of(const struct model_config *, struct weight_error *, struct err *);

#endif
