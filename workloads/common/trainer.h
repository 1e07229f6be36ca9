/* SPDX-License-Identifier: Apache-2.0 */
/* A training step of the built-in transformer in f32: forward pass, cross entropy, backward pass,
   AdamW; with activation checkpoints or without (seeds E51, E52, E54). Every piece of memory goes
   through the device's account, by class:

     weights     MEM_WEIGHT      4 P
     gradients   MEM_OTHER       4 P
     AdamW       MEM_STATE       8 P, and token ids and losses
     saved       MEM_ACTIVATION  what the backward pass needs of the forward pass
     logits      MEM_LOGITS      which become their own gradient
     temporary   MEM_WORKSPACE   gradients of activations

   The first three are made once, the others within a step. */
#ifndef WORKLOADS_COMMON_TRAINER_H
#define WORKLOADS_COMMON_TRAINER_H
#include <stdint.h>

#include "workloads/model/model.h"
#include "workloads/workload.h"

enum train_phase { TRAIN_FORWARD, TRAIN_RECOMPUTE, TRAIN_BACKWARD, TRAIN_OPTIMIZER };

struct trainer_spec {
    struct model_shape shape;
    uint64_t seed;          /* of the weights, which are those of workloads/model/synth.h */
    int64_t batch, tokens;  /* sequences; positions of each that predict the next token */
    int64_t segment;        /* layers between two checkpoints; 0: everything is kept */
    float rate, beta1, beta2, eps, decay; /* AdamW's; matrices decay, gains and biases do not */
};
void trainer_defaults(struct trainer_spec *); /* rate 1e-3, 0.9, 0.999, 1e-8, 0.01 */

struct trainer_tensor { /* of the parameters, in their order */
    const char *what;
    int64_t layer, rows, cols, offset; /* layer -1: outside; offset into weights, and so on */
    bool decays;
};
enum { TRAINER_LAYER_TENSORS = 7 }; /* at most */
/* Fills `tensors` (TRAINER_LAYER_TENSORS n_layers + 3 of them) in order: embedding, head unless
   tied, then of each layer norm 1, qkv, bias if any, o, norm 2, gate and up, down; the last norm.
   Returns how many. */
int trainer_tensors(const struct model_shape *, struct trainer_tensor *tensors);

/* ---- by formula ---- */

struct trainer_memory {
    int64_t parameters;
    int64_t entry;     /* c: one residual tensor, 4 B T D (E52) */
    int64_t attention; /* one layer's softmax, 4 B n_q T^2 (E52) */
    int64_t layer;     /* what a layer saves beyond its entry */
    int64_t head;      /* what stands between the blocks and the logits: their output, its norm */
    int64_t logits;
    int64_t temporary;
    int64_t kept;      /* by the blocks, for long: n_layers (c + layer), or ceil(n_layers / K) c */
    int64_t step_peak; /* largest live total of a step beyond what is made once */
    int64_t at_peak[N_CLASSES]; /* the same by class */
    double model;      /* E54's: ceil(n_layers / K) c + K (c + layer), or kept without checkpoints */
};
void trainer_memory(const struct trainer_spec *, struct trainer_memory *);
/* work by phase (N_PHASES of enum train_phase): FLOPs of products and attention, 2 each
   multiply-add; bytes of each operand once as it enters or leaves an op. */
void trainer_work(const struct trainer_spec *, struct work *);

/* ---- for real ---- */

struct trainer;
/* tokens (batch, spec.tokens + 1), copied: position i predicts i + 1. ERR_MEMORY; ERR_UNSUPPORTED
   where the device cannot train. */
int trainer_open(struct trainer **, struct device *, const struct trainer_spec *,
                 const int32_t *tokens, struct err *);
void trainer_close(struct trainer **);
void trainer_restart(struct trainer *); /* initial weights, moments of zero, no step done */
void trainer_set_segment(struct trainer *, int64_t segment);
/* One step; on_phase is told of each change of phase, or NULL. A device without memory:
   ERR_MEMORY, and everything that the step allocated is given back. */
int trainer_step(struct trainer *, void (*on_phase)(void *ctx, int phase), void *ctx, struct err *);
/* Only the forward pass: logits (batch tokens, vocab) into out. */
int trainer_logits(struct trainer *, float *out, struct err *);

float *trainer_weights(struct trainer *); /* (P), in the order of trainer_tensors */
const float *trainer_gradients(const struct trainer *);
double trainer_loss(const struct trainer *); /* mean over all positions, nats, of the last step */
uint64_t trainer_hash(const struct trainer *); /* losses, gradients, weights, moments */

/* What the account gave, in the last step. */
struct trainer_given {
    int64_t parameters, gradients, optimizer; /* bytes */
    int64_t entry, attention;                 /* one residual tensor, one layer's softmax */
    int64_t kept;                             /* by the blocks, at the end of the forward pass */
    int64_t step_peak, at_peak[N_CLASSES];    /* beyond what was live before, and by class */
};
struct trainer_given trainer_given(const struct trainer *);

#endif
