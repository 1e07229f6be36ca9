/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's sums: one term per op of the forward pass, in its order. */
#include "workloads/model/ledger.h"

#include "kernels/quant.h"

/* The residual stream and logits are f32; what ops hand to each other has a type of its own. */
static const double exact_size = sizeof(float);

struct matrix_bytes ledger_matrix(const struct model_config *config, int64_t rows, int64_t cols) {
    const struct weight_format *format = model_weight_format(&config->params);
    struct weight_spec spec = {.what = "",
                               .rows = rows,
                               .cols = cols,
                               .type = format->type,
                               .scale = format->scale,
                               .group = model_group(&config->params)};
    return (struct matrix_bytes){.payload = quant_payload_bytes(&spec),
                                 .scales = quant_scale_bytes(&spec)};
}

static void add(struct matrix_bytes *sum, struct matrix_bytes part) {
    sum->payload += part.payload;
    sum->scales += part.scales;
}

struct matrix_bytes ledger_layer_weights(const struct model_config *config) {
    const struct model_shape *s = &config->shape;
    int64_t q = s->n_q * s->d_h, kv = s->n_kv * s->d_h;
    struct matrix_bytes sum = ledger_matrix(config, q, s->d_model);
    add(&sum, ledger_matrix(config, kv, s->d_model));
    add(&sum, ledger_matrix(config, kv, s->d_model));
    add(&sum, ledger_matrix(config, s->d_model, q));
    add(&sum, ledger_matrix(config, s->d_ff, s->d_model));
    add(&sum, ledger_matrix(config, s->d_ff, s->d_model));
    add(&sum, ledger_matrix(config, s->d_model, s->d_ff));
    return sum;
}

int64_t ledger_vector_bytes(const struct model_shape *s) {
    int64_t n = (2 * s->n_layers + 1) * s->d_model +
                (s->qkv_bias ? s->n_layers * (s->n_q + 2 * s->n_kv) * s->d_h : 0);
    return n * (int64_t)sizeof(float);
}

int64_t ledger_pairs(int64_t rows, int64_t kv_len, int64_t window) {
    /* A row at position p sees min(p + 1, window) positions; the rows' p + 1 are kv_len - rows + 1
     * ... kv_len. */
    int64_t first = kv_len - rows + 1, growing = kv_len;
    if (window > 0 && kv_len > window) growing = window;
    int64_t n = growing >= first ? growing - first + 1 : 0; /* rows whose view still grows */
    return n * first + n * (n - 1) / 2 + (rows - n) * window;
}

int64_t ledger_positions(int64_t prompt, int64_t tokens, bool cached) {
    if (tokens < 1) return 0;
    return cached ? prompt + tokens - 1 : tokens * prompt + tokens * (tokens - 1) / 2;
}

/* Rows of all sequences, and what their attention does. */
struct gathered {
    double rows, pairs, kv_read;
};

static struct gathered gather(const struct model_config *config, const struct ledger_part *parts,
                              int n) {
    struct gathered sum = {0};
    int64_t window = config->params.window;
    for (int i = 0; i < n; i++) {
        const struct ledger_part *part = &parts[i];
        /* Once per sequence and step, as a fused kernel can: all positions that any of its rows
         * sees. */
        int64_t reach = window > 0 && part->kv_len > window + part->rows - 1
                            ? window + part->rows - 1
                            : part->kv_len;
        sum.rows += (double)(part->n_seq * part->rows);
        sum.pairs += (double)part->n_seq * (double)ledger_pairs(part->rows, part->kv_len, window);
        sum.kv_read += (double)(part->n_seq * reach);
    }
    return sum;
}

void ledger_step(struct work *work, const struct model_config *config,
                 const struct ledger_part *parts, int n, int64_t n_out) {
    const struct model_shape *s = &config->shape;
    struct gathered sum = gather(config, parts, n);
    double layers = (double)s->n_layers, d = (double)s->d_model, f = (double)s->d_ff,
           out = (double)n_out;
    double q = (double)(s->n_q * s->d_h), kv = (double)(s->n_kv * s->d_h), vocab = (double)s->vocab;

    /* E25 and E27: 2 FLOP per weight and row; E28 counted by pairs: q k^T and p v, 2 d_h each, for
     * every query head. */
    work->flops += layers * sum.rows * 2 * (d * (q + 2 * kv) + q * d + 3 * d * f);
    work->flops += layers * 4 * q * sum.pairs;
    work->flops += out * 2 * d * vocab;

    struct matrix_bytes layer = ledger_layer_weights(config),
                        head = ledger_matrix(config, s->vocab, s->d_model);
    struct matrix_bytes row =
        ledger_matrix(config, 1, s->d_model); /* of the embedding: only rows asked for are read */
    double any_out = n_out > 0 ? 1 : 0;
    work->bytes[MEM_WEIGHT] += layers * (double)layer.payload + sum.rows * (double)row.payload +
                               any_out * (double)head.payload + (double)ledger_vector_bytes(s);
    work->bytes[MEM_SCALE] += layers * (double)layer.scales + sum.rows * (double)row.scales +
                              any_out * (double)head.scales;

    int64_t scale_bytes;
    double token_bytes =
        (double)model_kv_bytes_per_token(config, &scale_bytes);    /* E09: all layers, K and V */
    work->bytes[MEM_KV] += (sum.rows + sum.kv_read) * token_bytes; /* appended, then read */
    work->bytes[MEM_SCALE] += (sum.rows + sum.kv_read) * (double)scale_bytes;

    double values =                               /* in the activations' type */
        (2 * layers - 1) * d                      /* first norm: delta, x; layer 0 has no delta */
        + layers * (d + q + 2 * kv)               /* q, k, v */
        + layers * (2 * q + 2 * kv)               /* rotation; K and V leave as cache */
        + layers * 2 * q                          /* attention */
        + layers * (q + d)                        /* o */
        + layers * 2 * d                          /* second norm: delta, x */
        + layers * (d + f) + layers * (f + d)     /* gate and up; down */
        + any_out * d;                            /* last addition, before a head: delta */
    double exact =                                /* the residual stream */
        d                                         /* embed: out */
        + (2 * layers - 1) * d                    /* first norm: in and out; layer 0 only reads */
        + layers * 2 * d                          /* second norm: in and out */
        + any_out * 2 * d;                        /* last addition: in and out */
    double out_values = 2 * d, out_exact = 3 * d; /* head's x out and in; gather, last norm's in */
    double size = dtype_bits(config->activation) / 8;
    work->bytes[MEM_ACTIVATION] += size * (sum.rows * values + out * out_values) +
                                   exact_size * (sum.rows * exact + out * out_exact);
    work->bytes[MEM_LOGITS] += exact_size * 2 * out * vocab; /* written, read by the selection */
}

void ledger_step_alike(struct work *work, const struct model_config *config, int64_t n_seq,
                       int64_t rows, int64_t kv_len, int64_t n_out) {
    struct ledger_part part = {.n_seq = n_seq, .rows = rows, .kv_len = kv_len};
    ledger_step(work, config, &part, 1, n_out);
}

void ledger_prompt(struct work *work, const struct model_config *config, int64_t n_seq,
                   int64_t begin, int64_t tokens, int64_t chunk, bool every_row) {
    if (chunk <= 0 || chunk > tokens) chunk = tokens;
    for (int64_t at = 0; at < tokens; at += chunk) {
        int64_t rows = tokens - at < chunk ? tokens - at : chunk;
        int64_t out = every_row ? rows : at + rows == tokens;
        ledger_step_alike(work, config, n_seq, rows, begin + at + rows, n_seq * out);
    }
}

void ledger_add(struct work *sum, const struct work *part, double times) {
    sum->flops += times * part->flops;
    for (int c = 0; c < N_CLASSES; c++) sum->bytes[c] += times * part->bytes[c];
}

/* Steps whose view still grows cost as much as the mean of the first and the last of them. */
static void add_growing(struct work *work, const struct model_config *config, int64_t n_seq,
                        int64_t context, int64_t steps) {
    struct work ends = {0};
    if (steps < 1) return;
    ledger_step_alike(&ends, config, n_seq, 1, context + 1, n_seq);
    ledger_step_alike(&ends, config, n_seq, 1, context + steps, n_seq);
    ledger_add(work, &ends, (double)steps / 2);
}

void ledger_decode(struct work *work, const struct model_config *config, int64_t n_seq,
                   int64_t context, int64_t steps) {
    const int64_t window = config->params.window;
    int64_t growing = window > 0 && window < context + steps ? window - context : steps;
    if (growing < 0) growing = 0;
    add_growing(work, config, n_seq, context, growing);
    add_growing(work, config, n_seq, context + growing, steps - growing); /* all alike */
}

struct block_cost ledger_gemm(int64_t b, int64_t d, int64_t f, double weight_size,
                              double activation_bytes) {
    double B = (double)b, D = (double)d, F = (double)f;
    return (struct block_cost){.flops = 2 * B * D * F,
                               .weight_bytes = weight_size * D * F,
                               .activation_bytes = activation_bytes * (B * D + B * F)};
}

struct block_cost ledger_mlp(int64_t b, int64_t t, int64_t d, int64_t f, double weight_size,
                             double activation_bytes) {
    /* E27 leaves out re-reading the two F-wide intermediates; with a fused gate our op does not
     * have them either. */
    double rows = (double)b * (double)t, D = (double)d, F = (double)f;
    return (struct block_cost){.flops = 6 * rows * D * F,
                               .weight_bytes = weight_size * 3 * D * F,
                               .activation_bytes =
                                   activation_bytes * (2 * rows * D + 2 * rows * F)};
}

struct block_cost ledger_attention(int64_t b, int64_t s, int64_t t, int64_t d, double kv_size,
                                   double activation_bytes) {
    /* E28: K and V both D wide (multi-head), no causal halving, each read once. */
    double B = (double)b, S = (double)s, T = (double)t, D = (double)d;
    return (struct block_cost){.flops = 4 * B * S * T * D,
                               .kv_bytes = kv_size * 2 * B * S * D,
                               .activation_bytes = activation_bytes * 2 * B * T * D};
}
