/* SPDX-License-Identifier: Apache-2.0 */
/* What a training step keeps, moves and computes, by formula. */
#include "workloads/common/trainer.h"

#include "kernels/lab_train.h"
#include "workloads/model/theory.h"

void trainer_defaults(struct trainer_spec *spec) {
    spec->rate = 1e-3f;
    spec->beta1 = 0.9f;
    spec->beta2 = 0.999f;
    spec->eps = 1e-8f;
    spec->decay = 0.01f;
}

static void add(struct trainer_tensor *tensors, int *n, const char *what, int64_t layer,
                int64_t rows, int64_t cols) {
    const struct trainer_tensor *last = *n ? &tensors[*n - 1] : NULL;
    tensors[(*n)++] =
        (struct trainer_tensor){.what = what,
                                .layer = layer,
                                .rows = rows,
                                .cols = cols,
                                .offset = last ? last->offset + last->rows * last->cols : 0,
                                .decays = rows > 1};
}

int trainer_tensors(const struct model_shape *s, struct trainer_tensor *t) {
    const int64_t q = s->n_q * s->d_h, qkv = q + 2 * s->n_kv * s->d_h, d = s->d_model;
    int n = 0;
    add(t, &n, "embedding", -1, s->vocab, d);
    if (!s->tied) add(t, &n, "head", -1, s->vocab, d);
    for (int64_t l = 0; l < s->n_layers; l++) {
        add(t, &n, "norm 1", l, 1, d);
        add(t, &n, "qkv", l, qkv, d);
        if (s->qkv_bias) add(t, &n, "bias", l, 1, qkv);
        add(t, &n, "o", l, d, q);
        add(t, &n, "norm 2", l, 1, d);
        add(t, &n, "gate and up", l, 2 * s->d_ff, d);
        add(t, &n, "down", l, d, s->d_ff);
    }
    add(t, &n, "last norm", -1, 1, d);
    return n;
}

/* ---- memory ---- */

struct moment {
    int64_t saved, logits, temporary;
};

static void see(struct trainer_memory *m, struct moment now) {
    const int64_t sum = now.saved + now.logits + now.temporary;
    if (sum <= m->step_peak) return;
    m->step_peak = sum;
    m->at_peak[MEM_ACTIVATION] = now.saved;
    m->at_peak[MEM_LOGITS] = now.logits;
    m->at_peak[MEM_WORKSPACE] = now.temporary;
}

void trainer_memory(const struct trainer_spec *spec, struct trainer_memory *m) {
    const struct model_shape *s = &spec->shape;
    const int64_t rows = spec->batch * spec->tokens, d = s->d_model, f = s->d_ff;
    const int64_t q = s->n_q * s->d_h, qkv = q + 2 * s->n_kv * s->d_h, n = s->n_layers;
    const int64_t segment = spec->segment < n ? spec->segment : n;
    *m = (struct trainer_memory){
        .parameters = model_parameters(s),
        .entry = 4 * rows * d,
        .attention = 4 * spec->batch * s->n_q * spec->tokens * spec->tokens,
        .head = 4 * rows * (2 * d + 1),
        .logits = 4 * rows * s->vocab,
        .temporary = 4 * (rows * (2 * d + 3 * f + q + qkv) + LAB_PARTS * d),
    };
    /* Two norms and what the first half adds up to; queries, keys, values; what attention makes of
       them; gate, up and their product; two reciprocal roots. */
    m->layer = 4 * rows * (3 * d + qkv + q + 3 * f + 2) + m->attention;
    const int64_t c = m->entry, a = m->layer,
                  n_segments = segment ? (n + segment - 1) / segment : 0;
    m->kept = segment ? n_segments * c : n * (c + a);
    m->model = segment ? checkpoint_peak((double)n, (double)segment, (double)c, (double)(c + a))
                       : (double)m->kept;
    /* The forward pass in each segment: entries so far, its last layer, that one's input (unless
       it is the entry) and output. */
    for (int64_t i = 0; i < n_segments; i++) {
        const int64_t layers = i + 1 < n_segments ? segment : n - i * segment;
        see(m, (struct moment){.saved = (i + 1) * c + (layers > 1 ? c : 0) + a + c});
    }
    see(m, (struct moment){m->kept + m->head, m->logits, m->temporary});
    /* The backward pass of each segment: its own and earlier entries, all that its layers save. */
    for (int64_t i = 0; i < n_segments; i++) {
        const int64_t layers = i + 1 < n_segments ? segment : n - i * segment;
        see(m, (struct moment){(i + 1) * c + layers * a + (layers - 1) * c, 0, m->temporary});
    }
}

/* ---- FLOPs and traffic ---- */

/* A product: operands of so many values each. */
static void product(struct work *w, double rows, double cols, double depth) {
    w->flops += 2 * rows * cols * depth;
    w->bytes[MEM_ACTIVATION] += 4 * rows * (cols + depth);
}

struct sizes {
    double rows, d, f, q, kv, qkv, scores, pairs, matrices, vectors;
};

static struct sizes sizes_of(const struct trainer_spec *spec) {
    const struct model_shape *s = &spec->shape;
    const double batch = (double)spec->batch, t = (double)spec->tokens, heads = (double)s->n_q;
    struct sizes z = {.rows = batch * t,
                      .d = (double)s->d_model,
                      .f = (double)s->d_ff,
                      .q = heads * (double)s->d_h,
                      .kv = (double)(s->n_kv * s->d_h),
                      .scores = batch * heads * t * t,
                      .pairs = batch * heads * t * (t + 1) / 2};
    z.qkv = z.q + 2 * z.kv;
    z.matrices = z.d * (z.qkv + z.q + 3 * z.f);
    z.vectors = 2 * z.d + (s->qkv_bias ? z.qkv : 0);
    return z;
}

static void values(struct work *w, double n) { w->bytes[MEM_ACTIVATION] += 4 * n; }

static void forward_layer(struct work *w, const struct trainer_spec *spec, const struct sizes *z,
                          bool output) {
    product(w, z->rows, z->qkv, z->d);
    product(w, z->rows, z->d, z->q);
    product(w, z->rows, 2 * z->f, z->d);
    w->flops += 4 * z->pairs * (double)spec->shape.d_h;
    values(w, z->rows * z->d);                         /* the residual stream enters the sum */
    values(w, 2 * z->rows * (2 * z->d) + 2 * z->rows); /* two norms */
    values(w, 2 * z->rows * (z->q + z->kv));           /* rotation, in place */
    values(w, z->rows * (z->qkv + z->q) + z->scores);  /* attention */
    values(w, 3 * z->rows * z->f);                     /* swiglu */
    w->bytes[MEM_WEIGHT] += 4 * (z->matrices + z->vectors - (output ? 0 : z->d * z->f));
    if (!output) return;
    product(w, z->rows, z->d, z->f);
    values(w, z->rows * z->d);
}

/* Of each matrix, the gradients of its input and of itself. */
static void both(struct work *w, double rows, double out, double in) {
    product(w, rows, in, out);
    product(w, rows, in, out);
    w->bytes[MEM_WEIGHT] += 4 * out * in;
    w->bytes[MEM_OTHER] += 4 * out * in;
}

static void backward_layer(struct work *w, const struct trainer_spec *spec, const struct sizes *z) {
    both(w, z->rows, z->d, z->f);
    both(w, z->rows, 2 * z->f, z->d);
    both(w, z->rows, z->d, z->q);
    both(w, z->rows, z->qkv, z->d);
    w->flops += 8 * z->pairs * (double)spec->shape.d_h;
    values(w, 5 * z->rows * z->f);                        /* swiglu */
    values(w, 2 * (4 * z->rows * z->d + z->rows));        /* norms, added to what comes down */
    values(w, 2 * z->rows * (z->q + z->qkv) + z->scores); /* attention */
    values(w, 2 * z->rows * (z->q + z->kv));              /* rotation */
    if (spec->shape.qkv_bias) values(w, z->rows * z->qkv);
    w->bytes[MEM_WEIGHT] += 4 * 2 * z->d;
    w->bytes[MEM_OTHER] += 4 * z->vectors;
}

static void ends(struct work *forward, struct work *backward, const struct trainer_spec *spec,
                 const struct sizes *z) {
    const double vocab = (double)spec->shape.vocab, logits = 4 * z->rows * vocab;
    forward->bytes[MEM_WEIGHT] += 4 * (z->rows * z->d + z->d + vocab * z->d);
    values(forward, z->rows * z->d + 2 * z->rows * z->d + z->rows + z->rows * z->d);
    forward->flops += 2 * z->rows * vocab * z->d;
    forward->bytes[MEM_LOGITS] += logits;
    forward->bytes[MEM_STATE] += 4 * z->rows; /* token ids */
    backward->flops += 4 * z->rows * vocab * z->d;
    backward->bytes[MEM_LOGITS] += 4 * logits; /* in and out, then two products */
    backward->bytes[MEM_STATE] += 4 * 3 * z->rows;
    backward->bytes[MEM_WEIGHT] += 4 * (vocab * z->d + z->d);
    values(backward, 2 * z->rows * z->d + 3 * z->rows * z->d + z->rows + z->rows * z->d);
    backward->bytes[MEM_OTHER] += 4 * (vocab * z->d + z->d + 2 * z->rows * z->d);
    if (!spec->shape.tied) backward->bytes[MEM_OTHER] += 4 * vocab * z->d; /* zeros */
}

void trainer_work(const struct trainer_spec *spec, struct work *work) {
    const struct sizes z = sizes_of(spec);
    const int64_t n = spec->shape.n_layers;
    const double parameters = (double)model_parameters(&spec->shape);
    for (int64_t l = 0; l < n; l++) {
        forward_layer(&work[TRAIN_FORWARD], spec, &z, true);
        if (spec->segment) /* a segment's last output is not needed again */
            forward_layer(&work[TRAIN_RECOMPUTE], spec, &z,
                          (l + 1) % spec->segment != 0 && l + 1 < n);
        backward_layer(&work[TRAIN_BACKWARD], spec, &z);
    }
    ends(&work[TRAIN_FORWARD], &work[TRAIN_BACKWARD], spec, &z);
    work[TRAIN_OPTIMIZER].bytes[MEM_WEIGHT] = 8 * parameters;
    work[TRAIN_OPTIMIZER].bytes[MEM_OTHER] = 4 * parameters;
    work[TRAIN_OPTIMIZER].bytes[MEM_STATE] = 16 * parameters;
    work[TRAIN_FORWARD].items = z.rows; /* a token is trained once, whatever is done with it */
}
