/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that choose the next token and move a step on. */
#include <math.h>

#include "base/random.h"
#include "kernels/ref/ref.h"

void ref_select(struct device *device, struct step *step, const struct tensor *logits,
                const struct sampler *sampler) {
    (void)device;
    for (int32_t o = 0; o < step->n_out; o++) {
        int32_t row = step->out_row[o], best = 0;
        uint64_t key = step->rng ? step->rng[step->seq[row]] : 0;
        double most = -INFINITY;
        for (int32_t id = 0; id < logits->cols; id++) {
            double v = (double)dtype_load(logits->data, logits->type, o * logits->stride + id);
            if (sampler->temperature > 0) {
                double u = random_unit(key, ((uint64_t)step->pos[row] << 32) + (uint64_t)id);
                v = v / (double)sampler->temperature - log(-log(u + 0x1p-54));
            }
            if (v > most) {
                most = v;
                best = id;
            }
        }
        step->next[o] = best;
    }
}

void ref_advance(struct device *device, const struct step *from, struct step *to,
                 const struct sampler *sampler) {
    (void)device;
    for (int32_t o = 0; o < from->n_out; o++) {
        int32_t s = from->seq[from->out_row[o]], row = to->q_begin[s];
        int32_t length = from->kv_len[s]; /* before it is raised: the two steps may be one */
        to->token[row] = from->next[o];
        to->pos[row] = length;
        to->kv_len[s] = length + 1;
        to->alive[s] &= from->next[o] != sampler->end_id;
    }
}
