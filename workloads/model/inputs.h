/* SPDX-License-Identifier: Apache-2.0 */
/* How the arrays of a step lie in one piece of memory; the inside of inputs. */
#ifndef WORKLOADS_MODEL_INPUTS_H
#define WORKLOADS_MODEL_INPUTS_H
#include "workloads/model/transformer.h"

size_t step_bytes(int32_t n_seq, int32_t n_row, int32_t n_out); /* a multiple of 8 */
/* Points the arrays of a step into memory of step_bytes and sets its counts. */
void step_place(struct step *, void *memory, int32_t n_seq, int32_t n_row, int32_t n_out);
/* The last `tokens` rows of each of n_seq sequences that hold `context` tokens: for attention
   alone. Their arrays lie in *memory, which the caller frees; NULL after ERR_MEMORY. */
int step_at_end(struct device *, struct step *, void **memory, int32_t n_seq, int32_t tokens,
                int32_t context, struct err *);
/* Of the same: whether the device has it beside such a cache (ERR_UNSUPPORTED), and its bounds. */
int attention_supported(struct device *, const struct model_config *, struct err *);
struct step_bounds attention_bounds(const struct model_config *, int64_t n_seq, int64_t tokens,
                                    int64_t context);
const int32_t *inputs_kv_len(const struct inputs *, int32_t i); /* (n_seq) the host's copy */

#endif
