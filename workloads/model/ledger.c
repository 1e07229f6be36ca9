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

static void add_matrices(struct work *work, double times, struct matrix_bytes bytes) {
    work->bytes[MEM_WEIGHT] += times * (double)bytes.payload;
    work->bytes[MEM_SCALE] += times * (double)bytes.scales;
}

/* values: in the activations' type; exact: of the residual stream, in f32. */
static void add_values(struct work *work, const struct model_config *config, double values,
                       double exact) {
    work->bytes[MEM_ACTIVATION] += dtype_bits(config->activation) / 8 * values + exact_size * exact;
}

void ledger_step_parts(struct work *parts, const struct model_config *config,
                       const struct ledger_part *sequences, int n, int64_t n_out) {
    const struct model_shape *s = &config->shape;
    const struct gathered sum = gather(config, sequences, n);
    const int64_t q_rows = s->n_q * s->d_h, kv_rows = s->n_kv * s->d_h;
    const double layers = (double)s->n_layers, d = (double)s->d_model, f = (double)s->d_ff,
                 out = (double)n_out, rows = sum.rows, any_out = n_out > 0 ? 1 : 0;
    const double q = (double)q_rows, kv = (double)kv_rows, vocab = (double)s->vocab;
    int64_t scale_bytes;
    const double token_bytes =
        (double)model_kv_bytes_per_token(config, &scale_bytes); /* E09: all layers, K and V */
    struct work *w;

    w = &parts[PART_EMBED]; /* only rows asked for are read */
    add_matrices(w, rows, ledger_matrix(config, 1, s->d_model));
    add_values(w, config, 0, rows * d);

    w = &parts[PART_NORM]; /* delta, x; the stream in and out; layer 0 has no delta and only reads
                            */
    w->bytes[MEM_WEIGHT] += layers * 2 * d * exact_size;
    add_values(w, config, rows * ((2 * layers - 1) * d + layers * 2 * d),
               rows * ((2 * layers - 1) * d + layers * 2 * d));

    /* E25 and E27: 2 FLOP per weight and row. */
    w = &parts[PART_QKV];
    w->flops += layers * rows * 2 * d * (q + 2 * kv);
    add_matrices(w, layers, ledger_matrix(config, q_rows, s->d_model));
    add_matrices(w, 2 * layers, ledger_matrix(config, kv_rows, s->d_model));
    w->bytes[MEM_WEIGHT] += s->qkv_bias ? layers * (q + 2 * kv) * exact_size : 0;
    add_values(w, config, layers * rows * (d + q + 2 * kv), 0);

    w = &parts[PART_ROPE]; /* K and V leave as cache */
    w->bytes[MEM_KV] += rows * token_bytes;
    w->bytes[MEM_SCALE] += rows * (double)scale_bytes;
    add_values(w, config, layers * rows * (2 * q + 2 * kv), 0);

    w = &parts[PART_ATTENTION]; /* E28 by pairs: q k^T and p v, 2 d_h each, for every query head */
    w->flops += layers * 4 * q * sum.pairs;
    w->bytes[MEM_KV] += sum.kv_read * token_bytes;
    w->bytes[MEM_SCALE] += sum.kv_read * (double)scale_bytes;
    add_values(w, config, layers * rows * 2 * q, 0);

    w = &parts[PART_OUT];
    w->flops += layers * rows * 2 * q * d;
    add_matrices(w, layers, ledger_matrix(config, s->d_model, q_rows));
    add_values(w, config, layers * rows * (q + d), 0);

    w = &parts[PART_MLP];
    w->flops += layers * rows * 2 * 3 * d * f;
    add_matrices(w, 2 * layers, ledger_matrix(config, s->d_ff, s->d_model));
    add_matrices(w, layers, ledger_matrix(config, s->d_model, s->d_ff));
    add_values(w, config, layers * rows * ((d + f) + (f + d)), 0);

    w = &parts[PART_HEAD]; /* the last addition; gather, last norm, the head's x; logits */
    w->flops += out * 2 * d * vocab;
    add_matrices(w, any_out, ledger_matrix(config, s->vocab, s->d_model));
    w->bytes[MEM_WEIGHT] += d * exact_size;
    add_values(w, config, any_out * rows * d + out * 2 * d, any_out * rows * 2 * d + out * 3 * d);
    w->bytes[MEM_LOGITS] += exact_size * out * vocab;

    parts[PART_SELECT].bytes[MEM_LOGITS] += exact_size * out * vocab;
}

void ledger_step(struct work *work, const struct model_config *config,
                 const struct ledger_part *sequences, int n, int64_t n_out) {
    struct work parts[N_PARTS] = {0};
    ledger_step_parts(parts, config, sequences, n, n_out);
    for (int p = 0; p < N_PARTS; p++) ledger_add(work, &parts[p], 1);
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
