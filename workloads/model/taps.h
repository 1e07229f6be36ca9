/* SPDX-License-Identifier: Apache-2.0 */
/* What flows through the forward pass: the input of each matrix of a layer and the residual stream
   behind it, looked at between the ops of an untimed run. Taps listen where parts of a step are
   told of (session.on_part), so that a session without them tests nothing more than before, and
   copy what an op left from device memory: no op is dispatched for them, on any device. */
#ifndef WORKLOADS_MODEL_TAPS_H
#define WORKLOADS_MODEL_TAPS_H
#include "workloads/model/transformer.h"

enum tap {
    TAP_QKV,      /* behind attention's norm: input of q, k and v */
    TAP_OUT,      /* what attention made of the values: input of o */
    TAP_MLP,      /* behind the second norm: input of gate and up */
    TAP_DOWN,     /* silu(gate) up: input of down */
    TAP_RESIDUAL, /* the residual stream behind the layer */
    N_TAPS
};
int64_t tap_cols(const struct model_shape *, enum tap);

struct tapped { /* what one step left at one place */
    enum tap tap;
    int32_t layer, first, rows, cols; /* first: rows that earlier steps had */
    const float *x;                   /* (rows, cols) */
};
struct taps;
/* From here on the session is listened to; nobody else may (on_part). `each`, or NULL, is called in
   the order of the forward pass. Allocates on the host only. */
void taps_open(struct taps **, struct session *, void (*each)(void *ctx, const struct tapped *),
               void *ctx);
void taps_close(struct taps **); /* NULL inside is safe; the session is as before */
/* session_run, listened to. Waits for the device. */
int taps_run(struct taps *, struct inputs *, int32_t i, struct err *);
/* (n_layers, tap_cols) the largest magnitude of each dimension over all rows so far; a NaN stays.
 */
const float *taps_most(const struct taps *, enum tap);

#endif
