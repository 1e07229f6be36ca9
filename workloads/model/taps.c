/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a session's buffers at the moments when they hold what a matrix is about to read. */
#include "workloads/model/taps.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/device.h"

struct taps {
    struct session *session;
    void (*each)(void *ctx, const struct tapped *);
    void *ctx;
    int32_t first, rows; /* rows of earlier steps, and of this one */
    int32_t layer;       /* that is computed; -1: none yet */
    bool inside;         /* of a layer, behind its first norm */
    bool ended;          /* the last layer was told of */
    float *most[N_TAPS]; /* (n_layers, cols) */
    float *x, *delta;    /* (most_rows, widest) */
    void *image;         /* the same as the device has it */
};

int64_t tap_cols(const struct model_shape *shape, enum tap tap) {
    return tap == TAP_OUT    ? shape->n_q * shape->d_h
           : tap == TAP_DOWN ? shape->d_ff
                             : shape->d_model;
}

static void copy_out(struct taps *t, const struct tensor *from, float *to) {
    struct device *device = t->session->model->device;
    const int64_t n = (int64_t)t->rows * from->cols; /* a session's buffers have no gaps */
    device->kind->download(device, t->image, from->data,
                           (size_t)n * (size_t)(dtype_bits(from->type) / 8));
    for (int64_t i = 0; i < n; i++) to[i] = dtype_load(t->image, from->type, i);
}

/* x (rows, cols) is what flows at a tap. */
static void tell(struct taps *t, enum tap tap, int32_t cols) {
    float *most = t->most[tap] + (int64_t)t->layer * cols;
    for (int32_t r = 0; r < t->rows; r++)
        for (int32_t c = 0; c < cols; c++) {
            const float v = fabsf(t->x[(int64_t)r * cols + c]);
            if (!(v <= most[c]) && !isnan(most[c])) most[c] = v;
        }
    const struct tapped tapped = {tap, t->layer, t->first, t->rows, cols, t->x};
    if (t->each) t->each(t->ctx, &tapped);
}

static void tap(struct taps *t, enum tap which, const struct tensor *from) {
    copy_out(t, from, t->x);
    tell(t, which, from->cols);
}

/* Behind a layer: its product is still there, and the next norm has not yet added delta. */
static void layer_ends(struct taps *t) {
    const struct session *s = t->session;
    const int64_t n = (int64_t)t->rows * s->residual.cols;
    if (t->layer < 0 || t->ended) return;
    tap(t, TAP_DOWN, &s->hidden);
    copy_out(t, &s->residual, t->x);
    copy_out(t, &s->delta, t->delta);
    for (int64_t i = 0; i < n; i++) t->x[i] += t->delta[i];
    tell(t, TAP_RESIDUAL, s->residual.cols);
}

static void on_part(void *ctx, enum step_part part) {
    struct taps *t = ctx;
    const struct session *s = t->session;
    switch (part) {
    case PART_EMBED:
        t->layer = -1;
        t->inside = t->ended = false;
        break;
    case PART_NORM: /* two a layer */
        if (!t->inside) {
            layer_ends(t);
            t->layer++;
        }
        t->inside = !t->inside;
        break;
    case PART_QKV: tap(t, TAP_QKV, &s->x); break;
    case PART_OUT: tap(t, TAP_OUT, &s->mixed); break;
    case PART_MLP: tap(t, TAP_MLP, &s->x); break;
    case PART_HEAD:
        layer_ends(t);
        t->ended = true;
        break;
    default: break;
    }
}

void taps_open(struct taps **out, struct session *session,
               void (*each)(void *ctx, const struct tapped *), void *ctx) {
    const struct model_shape *shape = &session->config.shape;
    struct taps *t = must_alloc(sizeof *t);
    int64_t widest = 0;
    *t = (struct taps){.session = session, .each = each, .ctx = ctx, .layer = -1};
    for (int i = 0; i < N_TAPS; i++) {
        const int64_t cols = tap_cols(shape, (enum tap)i);
        t->most[i] = must_alloc(sizeof(float) * (size_t)(shape->n_layers * cols));
        if (cols > widest) widest = cols;
    }
    const size_t bytes = sizeof(float) * (size_t)(session->spec.most_rows * widest);
    t->x = must_alloc(bytes);
    t->delta = must_alloc(bytes);
    t->image = must_alloc(bytes);
    session->on_part = on_part;
    session->part_ctx = t;
    *out = t;
}

void taps_close(struct taps **out) {
    struct taps *t = *out;
    if (!t) return;
    t->session->on_part = NULL;
    t->session->part_ctx = NULL;
    for (int i = 0; i < N_TAPS; i++) free(t->most[i]);
    free(t->x);
    free(t->delta);
    free(t->image);
    free(t);
    *out = NULL;
}

int taps_run(struct taps *t, struct inputs *inputs, int32_t i, struct err *err) {
    struct device *device = t->session->model->device;
    const struct step *step = inputs_step(inputs, i);
    t->rows = step->n_row;
    int code = session_run(t->session, inputs, i, err);
    if (!code && !step->n_out) layer_ends(t); /* no head told of the end */
    t->first += t->rows;
    return code ? code : device->kind->sync(device, err);
}

const float *taps_most(const struct taps *t, enum tap tap) { return t->most[tap]; }
