/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: FLOPs, traffic by class and live bytes of the transformer's steps, from shapes alone.
   Theory, and labelled so: one multiply-add is 2 FLOP; norms, rotations, softmax and the gate's
   exponential are not counted; each operand of an op is charged once as it enters or leaves the op,
   wherever caches would keep it. */
#ifndef WORKLOADS_MODEL_LEDGER_H
#define WORKLOADS_MODEL_LEDGER_H
#include "workloads/model/model.h"
#include "workloads/workload.h"

struct matrix_bytes {
    int64_t payload, scales;
};
struct matrix_bytes ledger_matrix(const struct model_config *, int64_t rows, int64_t cols);
struct matrix_bytes ledger_layer_weights(
    const struct model_config *); /* the seven matrices of a layer */
int64_t ledger_vector_bytes(
    const struct model_shape *); /* norms and biases of the whole model, f32 */

struct ledger_part {     /* sequences that do the same in a step */
    int64_t n_seq, rows; /* sequences; rows of each */
    int64_t kv_len;      /* tokens resident in each once its rows are appended */
};
/* Adds one step of `n` parts with `n_out` rows of logits to work (flops and bytes; items are the
 * caller's). */
void ledger_step(struct work *, const struct model_config *, const struct ledger_part *, int n,
                 int64_t n_out);
/* The same by parts of the step (N_PARTS), which add up to it. */
void ledger_step_parts(struct work *parts, const struct model_config *, const struct ledger_part *,
                       int n, int64_t n_out);
/* Adds one step of n_seq sequences alike, `rows` each. */
void ledger_step_alike(struct work *, const struct model_config *, int64_t n_seq, int64_t rows,
                       int64_t kv_len, int64_t n_out);
/* Adds a prompt of `tokens` per sequence in chunks of `chunk` rows a sequence (0: one step), after
   `begin` resident tokens; logits of the last row of each sequence, or of all rows. */
void ledger_prompt(struct work *, const struct model_config *, int64_t n_seq, int64_t begin,
                   int64_t tokens, int64_t chunk, bool every_row);
/* Adds `steps` decode steps of n_seq sequences that hold `context` tokens before the first. */
void ledger_decode(struct work *, const struct model_config *, int64_t n_seq, int64_t context,
                   int64_t steps);

/* sum += times * part, FLOPs and bytes; items are the caller's. */
void ledger_add(struct work *sum, const struct work *part, double times);

/* Causal pairs (row, position it attends to) of `rows` consecutive rows that end at kv_len tokens;
 * window 0: none. */
int64_t ledger_pairs(int64_t rows, int64_t kv_len, int64_t window);

/* Positions pushed through the model by one sequence (E01): with the cache P + n - 1, without n P +
 * n (n - 1) / 2. */
int64_t ledger_positions(int64_t prompt, int64_t tokens, bool cached);

/* Models of one block (E25, E27, E28), with the element sizes in bytes named: weight, activation,
   cache. With all of them 2 these are the seeds' formulas. */
struct block_cost {
    double flops, weight_bytes, activation_bytes, kv_bytes;
};
struct block_cost ledger_gemm(int64_t b, int64_t d, int64_t f, double weight_size,
                              double activation_size);
struct block_cost ledger_mlp(int64_t b, int64_t t, int64_t d, int64_t f, double weight_size,
                             double activation_size);
struct block_cost ledger_attention(int64_t b, int64_t s, int64_t t, int64_t d, double kv_size,
                                   double activation_size);
static inline double ledger_bytes(struct block_cost c) {
    return c.weight_bytes + c.activation_bytes + c.kv_bytes;
}
static inline double ledger_intensity(struct block_cost c) { return c.flops / ledger_bytes(c); }

/* E26: the intensity at which peak arithmetic and bandwidth take the same time; what a kernel of
   intensity I can reach; the rows at which a (d x f) product in 2-byte elements reaches the ridge.
 */
static inline double ledger_ridge(double peak_flops, double bandwidth) {
    return peak_flops / bandwidth;
}
static inline double ledger_attainable(double intensity, double peak_flops, double bandwidth) {
    return intensity * bandwidth < peak_flops ? intensity * bandwidth : peak_flops;
}
static inline double ledger_ridge_rows(double ridge, double d, double f) {
    return ridge / (1 - ridge * (1 / d + 1 / f));
}

#endif
