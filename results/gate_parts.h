/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways of judging a row share: rounds of one sitting (gate.c), stored runs
 * (gate_stored.c). */
#ifndef RESULTS_GATE_PARTS_H
#define RESULTS_GATE_PARTS_H
#include "results/gate.h"

#define GATE_POWER 0.95 /* of what is called detectable */
/* +1 where the metric grows when it gets slower, else -1: z = sign * ln(new/old). */
double gate_sign(const struct gate *, const struct gate_row *);
/* The sentence for a verdict; lo and hi bound z. */
void gate_say(const struct gate_settings *, enum gate_kind, struct gate_row *, double sign,
              double lo, double hi, struct text *);
/* Makes the sentence, with what the caller and the flags say, the row's reason; frees the text. */
void gate_finish(struct gate *, struct gate_row *, struct text *);
/* The interval of a row of stored runs, and its verdict. */
void gate_judge_stored(struct gate *, struct gate_row *, double ln_bound);

#endif
