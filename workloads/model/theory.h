/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of the seeds that predict without running: the ledger of decode, capacity, shapes of the
   cache, training memory, speculation. Theory, and labelled so. All in double: whole numbers are
   exact up to 2^53, and nothing overflows. */
#ifndef WORKLOADS_MODEL_THEORY_H
#define WORKLOADS_MODEL_THEORY_H
#include "workloads/model/model.h"

/* Weights of the matrices alone, embedding and head among them (E29: norms and biases left out). */
double theory_matrix_parameters(const struct model_shape *);
/* Bytes of one weight in model.type, its share of a group's scale among them (E35); scales of
   tensors and rows are too few to count. */
double theory_weight_bytes(const struct model_config *);

/* E29, E30, E49, E50: a decode step of B sequences reads all weights and all caches once, and
   nothing else takes time. */
struct serving {
    double weight_bytes;   /* matrices and their scales */
    double kv_token_bytes; /* K, V and scales of a resident token, all layers */
    double kv_tokens;      /* resident tokens of one sequence: S, or min(S, window) */
    double bandwidth;      /* byte/s; 0: unknown */
    double card_bytes;     /* memory of the device; 0: unknown */
    double reserve_bytes;  /* of it, for everything else */
};
static inline double serving_sequence(const struct serving *s) {
    return s->kv_token_bytes * s->kv_tokens;
}
static inline double serving_memory(const struct serving *s, double batch) {
    return s->weight_bytes + batch * serving_sequence(s);
}
/* Seconds of a step; NAN without a bandwidth. */
double serving_step(const struct serving *, double batch);
/* Tokens of all requests together that fit beside weights and reserve; 0 where these do not fit;
 * NAN without a card. */
double serving_resident(const struct serving *);
/* Sequences of kv_tokens each that fit: the largest batch, or concurrent users. */
double serving_users(const struct serving *);
/* The largest batch whose step takes at most `seconds`, of those that fit (where a card is given).
 */
double serving_users_within(const struct serving *, double seconds);

/* E17, E18: what one layer keeps of a token, and how many tokens it keeps. */
enum kv_method { KV_HEADS, KV_LATENT, KV_SHARED, KV_WINDOW, N_KV_METHODS };
extern const char
    *const kv_method_names[N_KV_METHODS + 1]; /* heads, latent, shared, window, NULL */
struct kv_layout {
    enum kv_method method;
    double latent, rotary; /* latent: values of c, and of the rotary key that is kept apart */
    double share;          /* shared: neighbouring layers with one K and V */
    double window,
        local_layers; /* window: layers that keep min(S, window) tokens; the rest keep S */
};
/* Elements of one token in a layer that keeps it: 2 n_kv d_h, or latent + rotary. */
double kv_elements(const struct kv_layout *, const struct model_shape *);
/* Elements of one sequence of `length` tokens in all layers. */
double kv_sequence_elements(const struct kv_layout *, const struct model_shape *, double length);

/* E54: peak of N layers in segments of K: ceil(N / K) entries of c bytes, and one segment of K
   layers that save a bytes each. */
double checkpoint_peak(double layers, double segment, double entry, double saved);
/* The segment (1 ... layers) with the lowest peak; the smaller of equals. */
double checkpoint_best(double layers, double entry, double saved);

/* E44: tokens of a verification pass, the target's own among them: sum of alpha^i, i = 0 ... gamma.
 */
double speculation_tokens(double alpha, int64_t gamma);
/* E45: tokens of a pass over its cost in steps of the target, gamma c + 1. */
double speculation_speedup(double alpha, int64_t gamma, double cost);
/* The draft cost at which that is `speedup`: (tokens / speedup - 1) / gamma; NAN without drafts. */
double speculation_cost(double alpha, int64_t gamma, double speedup);
/* The acceptance at which speculation neither wins nor loses; 1 if it cannot win (gamma c >=
 * gamma). */
double speculation_break_even(int64_t gamma, double cost);
/* The draft length up to `most` with the highest speed-up; 0: do not speculate. */
int64_t speculation_best(double alpha, double cost, int64_t most);

/* E48: probabilities p (n) at temperature t, softmax(ln p / t), over these n alone. Zeros stay
 * zeros. */
void temperature_apply(const double *p, int n, double t, double *out);

#endif
