/* SPDX-License-Identifier: Apache-2.0 */
/* The transformer: a model (weights, immutable) and sessions on it (one timeline of sequences
   each). Nothing allocates on the device after session_create and inputs_create; what they allocate
   is known beforehand to the byte. */
#ifndef WORKLOADS_MODEL_TRANSFORMER_H
#define WORKLOADS_MODEL_TRANSFORMER_H
#include "workloads/model/cache.h"
#include "workloads/model/model.h"

struct layer {
    struct weight *qkv;           /* ((n_q + 2 n_kv) d_h, d_model) */
    struct weight *o;             /* (d_model, n_q d_h) */
    struct weight *gate_up;       /* (2 d_ff, d_model) */
    struct weight *down;          /* (d_model, d_ff) */
    const float *norm_1, *norm_2; /* (d_model) */
    const float *bias;            /* ((n_q + 2 n_kv) d_h), or NULL */
};
struct model {
    struct device *device;
    struct model_config config;
    struct weight *embedding, *head; /* (vocab, d_model); one and the same if tied */
    struct layer *layers;            /* (n_layers) */
    const float *norm_last;          /* (d_model) */
    float *vectors;                  /* norms and biases, in device memory */
    float *rope_factor;              /* (d_h / 2) of the file, on the host; or NULL */
    struct file_rows *rows;          /* while weights are read from a file; else NULL */
};
/* Whether the device has every op that this configuration needs: 0, or ERR_UNSUPPORTED with its
 * reason. */
int model_supported(struct device *, const struct model_config *, struct err *);

struct session_spec {
    struct cache_spec cache;
    int32_t most_rows; /* of one step, all sequences */
    int32_t most_out;  /* rows of one step whose logits are wanted, at least 1 */
};
struct session {
    struct model *model;
    struct model_config
        config; /* of the point: weights as the model's, cache and rotation its own */
    struct session_spec spec;
    struct cache *cache;
    int32_t *len;       /* (n_seq) tokens resident */
    int32_t *ids;       /* (n_seq) room for sampled ids on the host */
    struct step decode; /* one row a sequence, in device memory */
    void *decode_memory, *decode_host;
    const int32_t *in_decode; /* (n_seq) 1: has a row in decode; the host's copy */
    struct sampler sampler;   /* greedy; end_id: -1 unless set */
    struct rope rope;
    float *rope_factor; /* (d_h / 2) what rope.factor points to */
    void (*on_part)(void *ctx,
                    enum step_part); /* called before each op with what it belongs to; or NULL */
    void *part_ctx;
    struct tensor residual, x; /* (most_rows, d_model) */
    struct tensor qkv;         /* (most_rows, (n_q + 2 n_kv) d_h) */
    struct tensor q, mixed;    /* (most_rows, n_q d_h) queries; what attention made of the values */
    struct tensor delta;       /* (most_rows, d_model) what a half layer adds */
    struct tensor hidden;      /* (most_rows, d_ff) */
    struct tensor last;        /* (most_out, d_model) */
    struct tensor logits;      /* (most_out, vocab) */
};
/* Adds what session_create allocates to bytes (N_CLASSES): the ledger's live set beside the
 * weights. */
void session_bytes(const struct model_config *, const struct session_spec *, int64_t *bytes);
int session_create(struct session **, struct model *, const struct model_config *,
                   const struct session_spec *, struct err *);
void session_close(struct session **);
/* Tells the device this session's bounds again, after another one was created and used. */
int session_plan(struct session *, struct err *);

/* Sets the tokens resident in a sequence (back, or on after cache_load) and gives back blocks
 * beyond. */
void session_set_length(struct session *, int32_t seq, int32_t len);
/* Sequence `to` goes on from all that `from` holds, in its blocks (paged caches only); whoever
 * writes first into a block that both read copies it. */
void session_share(struct session *, int32_t from, int32_t to);
/* The decode step starts over: sequence s feeds tokens[s] at position len[s]; tokens NULL: an
 * advance will say. */
void session_start(struct session *, const int32_t *tokens);
/* From here on only n sequences decode, seqs by rising number: row i feeds tokens[i]. The others
 * keep their length and cost nothing. */
void session_narrow(struct session *, int32_t n, const int32_t *seqs, const int32_t *tokens);

/* Steps made on the host beforehand and kept in device memory: prompts, chunks, mixed steps. */
struct span {
    int32_t seq, begin, rows;
    const int32_t *tokens; /* (rows) */
    int out;               /* rows whose logits are wanted: 0 none, 1 the last, 2 all */
};
struct inputs;
int64_t inputs_bytes(int32_t n_seq, int32_t n_steps, int32_t n_rows,
                     int32_t n_out); /* sums over all steps */
int inputs_create(struct inputs **, struct session *, int32_t n_steps, int32_t n_rows,
                  int32_t n_out, struct err *);
void inputs_close(struct inputs **);
void inputs_clear(struct inputs *);
/* One more step of n spans, by rising seq. More than was asked for at creation: ERR_INTERNAL. */
int inputs_add(struct inputs *, const struct span *, int32_t n, struct err *);
/* Steps of a prompt: `rows` tokens from position begin on, in chunks (0: one step); tokens[s *
 * stride + i]. */
int inputs_prompt(struct inputs *, const int32_t *tokens, int32_t stride, int32_t begin,
                  int32_t rows, int32_t chunk, bool every_row, struct err *);
void inputs_upload(struct inputs *);
int32_t inputs_steps(const struct inputs *);
struct step *inputs_step(struct inputs *, int32_t i);

/* One step: makes room in the cache, runs the forward pass, moves the lengths. Logits of n_out rows
 * are in session->logits. */
int session_run(struct session *, struct inputs *, int32_t i, struct err *);
int session_decode(struct session *, struct err *);
/* A whole decode step, with selection and advance: one recorded unit where the device can. */
int session_step(struct session *, struct err *);
/* The forward pass alone: at most nine ops a layer, written once for all devices. */
void session_forward(struct session *, const struct step *);

/* A view of out row o alone: select, advance and next then touch nothing else. */
struct step step_out(const struct step *, int32_t o);
/* step->next from the logits, greedily; then into the decode step. */
void session_select(struct session *, struct step *);
void session_select_row(struct session *, struct step *view, int32_t o); /* of step_out(step, o) */
void session_advance(struct session *, const struct step *from);
struct tensor session_logits(const struct session *, const struct step *); /* (n_out, vocab) */
/* Copies step->next (n_out) to the host; waits for it. */
void session_next(struct session *, const struct step *, int32_t *next);

#endif
