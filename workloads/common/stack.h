/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of attention blocks that decodes one token of each sequence: norm, projections, cache,
 * attention, projection back into the residual stream; no MLP. How its layers keep what they have
 * seen is what differs (seeds E11, E16-E18). */
#ifndef WORKLOADS_COMMON_STACK_H
#define WORKLOADS_COMMON_STACK_H
#include "kernels/lab_latent.h"
#include "workloads/model/cache.h"
#include "workloads/workload.h"

/* What layers keep. Each field is a variant of the cache, and what it is compared with. */
struct stack_spec {
    int64_t n_seq, length;  /* S: tokens of each sequence, the one of this step among them */
    int64_t n_kv, repeats;  /* KV heads that are kept; so many neighbours are copies of one */
    int64_t latent, rotary; /* latent > 0: one latent and rotary key instead (E17) */
    int64_t share;          /* so many neighbouring layers have the first one's K and V (E18) */
    bool copied;            /* share: but each keeps a copy */
    int64_t window, local;  /* so many layers see the last `window` tokens (E18) */
    bool masked;            /* local layers keep all tokens, and do not look */
    int64_t block, blocks;  /* blocks > 0: so many blocks of `block` tokens are looked at (E18) */
    enum latent_form form;  /* latent: how its attention is computed */
};
struct stack;                   /* opaque */
enum { STACK_FILL_ROWS = 256 }; /* that are projected together while caches are filled, about */

/* The layer whose K and V layer l keeps, or has a copy of. */
static inline int64_t stack_owner(const struct stack_spec *spec, int64_t l) {
    return l - l % spec->share;
}
/* Local layers lie evenly between the others; the last layer is one of them. */
static inline bool stack_is_local(const struct stack_spec *spec, int64_t n_layers, int64_t l) {
    return spec->window > 0 && (l + 1) * spec->local / n_layers > l * spec->local / n_layers;
}
static inline int64_t stack_n_blocks(const struct stack_spec *spec) {
    return (spec->length + spec->block - 1) / spec->block;
}
/* Of the q projection of a layer, and of the other one: K and V, or the latent and rotary key. */
static inline int64_t stack_q_cols(const struct stack_spec *spec, const struct model_shape *s) {
    return s->n_q * (s->d_h + (spec->latent ? spec->rotary : 0));
}
static inline int64_t stack_kv_cols(const struct stack_spec *spec, const struct model_shape *s) {
    return spec->latent ? spec->latent + spec->rotary : 2 * spec->n_kv * s->d_h;
}
static inline int64_t stack_room_bytes(const struct stack_spec *spec, const struct model_shape *s) {
    return 2 * spec->n_seq * s->n_q * (spec->latent + spec->rotary) * (int64_t)sizeof(float);
}
/* The model whose full-length, or ring, caches these are. */
struct model_config stack_cache_config(const struct stack_spec *, const struct model_config *,
                                       bool ring);
struct cache_spec stack_cache_spec(const struct stack_spec *);

/* By formula (theory.h), not as the caches count: K and V or latents of all sequences and layers,
   with blocks the means of their keys; scales of int8 apart. */
double stack_kv_bytes(const struct stack_spec *, const struct model_config *);
/* Tokens that all layers of one sequence look at together, in one step. */
int64_t stack_tokens_seen(const struct stack_spec *, const struct model_config *);
/* Multiply-adds of scores, weighted sums, absorbing and choosing, of one step of all sequences. */
double stack_attention_macs(const struct stack_spec *, const struct model_config *);
/* One step: FLOPs, and bytes by class. */
void stack_work(struct work *, const struct stack_spec *, const struct model_config *);
/* What stack_create leaves allocated, by class (N_CLASSES, added to). */
void stack_bytes(const struct stack_spec *, const struct model_config *, int64_t *bytes);
/* Filling the caches: its FLOPs, and the activations that live meanwhile. */
double stack_fill_flops(const struct stack_spec *, const struct model_config *);
int64_t stack_fill_bytes(const struct stack_spec *, const struct model_config *);

/* Weights, caches filled with S - 1 tokens (projections of seeded states, through the device's own
   ops), and the step. Seeds decide all of it: two stacks with the same one differ only in what
   their specs say. ERR_MEMORY, ERR_UNSUPPORTED. */
int stack_create(struct stack **, struct device *, const struct model_config *,
                 const struct stack_spec *, uint64_t seed, struct err *);
void stack_close(struct stack **);
/* Tells the device this stack's bounds again, after another one was created. */
int stack_plan(struct stack *, struct err *);
/* One step of all sequences at position S - 1: the same each time. */
void stack_run(struct stack *);
/* Bytes of the caches by the device's tracker, as they were made: MEM_KV, and MEM_SCALE. */
int64_t stack_allocated(const struct stack *, enum memory_class);

struct device *stack_device(const struct stack *);
const struct model_config *stack_config(const struct stack *);
/* What the last layer's attention took and gave: (n_seq, ...), valid after stack_run. */
const struct tensor *stack_queries(const struct stack *);
const struct tensor *stack_mixed(const struct stack *);
/* The last layer's cache, and the step over it, as attention got them: those of chosen blocks. */
const struct kv *stack_seen(const struct stack *, const struct step **);
float stack_scale(const struct stack *);
/* The last layer's attention in a form of its latent, into o. */
void stack_latent(const struct stack *, struct tensor *o, enum latent_form);
const struct latent_cache *stack_latent_cache(const struct stack *);
const struct latent_heads *stack_latent_heads(const struct stack *);

#endif
