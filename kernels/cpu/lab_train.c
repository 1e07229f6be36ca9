/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of training on all threads: plain C in pieces of 16 values that a compiler vectorises. Who
   computes a value, and in which order it is summed, does not depend on the number of threads. */
#include "kernels/lab_train.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

enum {
    LANES = 16,      /* values at once */
    DEPTH = 256,     /* depth of a piece of b that is laid out beside each other: 16 KiB */
    PIECE_ROWS = 32, /* rows of c that one such piece serves */
    SPAN = 4096,     /* values that a thread takes at once of what has no rows */
};

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

#define AT_ONCE for (int j = 0; j < LANES; j++)

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

static void over(struct device *device, int64_t n, pool_fn *fn, const void *job) {
    pool_run(cpu_of(device)->pool, n, 1, 1, fn, (void *)(uintptr_t)job);
}

/* ---- products ---- */

/* b's columns j0 ... j0 + 15 of `depth` rows from p0 on, one row after the other, with 0 beyond. */
static void lay_out(float *panel, const struct lab_product *p, int64_t p0, int64_t depth,
                    int64_t j0) {
    const int64_t n = smaller(LANES, p->cols - j0);
    const float *b = p->b + p0 * p->b_row + j0 * p->b_step;
    if (n < LANES) memset(panel, 0, sizeof *panel * (size_t)(depth * LANES));
    if (p->b_step == 1) {
        for (int64_t k = 0; k < depth; k++)
            memcpy(panel + k * LANES, b + k * p->b_row, sizeof *b * (size_t)n);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < depth; k++) panel[k * LANES + j] = b[j * p->b_step + k * p->b_row];
}

/* sums (2, LANES) += two rows of a times the panel; arrays of sums would stay in memory. */
static void two_rows(float *sums, const float *panel, const float *a0, const float *a1,
                     int64_t step, int64_t depth) {
    four *to = (four *)sums;
    four s0 = to[0], s1 = to[1], s2 = to[2], s3 = to[3];
    four t0 = to[4], t1 = to[5], t2 = to[6], t3 = to[7];
    for (int64_t k = 0; k < depth; k++) {
        const float x = a0[k * step], y = a1[k * step];
        const four *b = (const four *)(panel + k * LANES);
        s0 += x * b[0], s1 += x * b[1], s2 += x * b[2], s3 += x * b[3];
        t0 += y * b[0], t1 += y * b[1], t2 += y * b[2], t3 += y * b[3];
    }
    to[0] = s0, to[1] = s1, to[2] = s2, to[3] = s3;
    to[4] = t0, to[5] = t1, to[6] = t2, to[7] = t3;
}

static void begin_row(float *sums, const struct lab_product *p, int64_t i, int64_t j0, int64_t n) {
    for (int64_t j = 0; j < n; j++)
        sums[j] = (p->start ? p->start[i * p->cols + j0 + j] : 0) + (p->bias ? p->bias[j0 + j] : 0);
}

static void product_piece(const struct lab_product *p, int64_t i0, int64_t j0) {
    float panel[DEPTH * LANES], sums[PIECE_ROWS * LANES] = {0};
    const int64_t rows = smaller(PIECE_ROWS, p->rows - i0), cols = smaller(LANES, p->cols - j0);
    for (int64_t i = 0; i < rows; i++) begin_row(sums + i * LANES, p, i0 + i, j0, cols);
    for (int64_t p0 = 0; p0 < p->depth; p0 += DEPTH) {
        const int64_t depth = smaller(DEPTH, p->depth - p0);
        lay_out(panel, p, p0, depth, j0);
        for (int64_t i = 0; i < rows; i += 2) { /* an odd last row is done twice, into room */
            const float *a = p->a + (i0 + i) * p->a_row + p0 * p->a_step;
            two_rows(sums + i * LANES, panel, a, i + 1 < rows ? a + p->a_row : a, p->a_step, depth);
        }
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(p->c + (i0 + i) * p->cols + j0, sums + i * LANES, sizeof *sums * (size_t)cols);
}

static void product_pieces(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_product *p = ctx;
    const int64_t across = pieces(p->cols, LANES);
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        product_piece(p, i / across * PIECE_ROWS, i % across * LANES);
}

static void cpu_product(struct device *device, const struct lab_product *p) {
    over(device, pieces(p->rows, PIECE_ROWS) * pieces(p->cols, LANES), product_pieces, p);
}

/* ---- rows ---- */

/* Sums in 16 strands, whose halves are added up at the end. */
static float gather(float *strands) {
    for (int j = 0; j < 8; j++) strands[j] += strands[j + 8];
    for (int j = 0; j < 4; j++) strands[j] += strands[j + 4];
    return (strands[0] + strands[2]) + (strands[1] + strands[3]);
}

static float dot(const float *a, const float *b, int64_t n) {
    float s[LANES];
    four *to = (four *)s, s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const four *x = (const four *)(a + i), *y = (const four *)(b + i);
        s0 += x[0] * y[0], s1 += x[1] * y[1], s2 += x[2] * y[2], s3 += x[3] * y[3];
    }
    to[0] = s0, to[1] = s1, to[2] = s2, to[3] = s3;
    for (int64_t j = 0; i + j < n; j++) s[j] += a[i + j] * b[i + j];
    return gather(s);
}

static float dot_of_three(const float *restrict a, const float *restrict b, const float *restrict c,
                          int64_t n) {
    float s[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) AT_ONCE s[j] += a[i + j] * b[i + j] * c[i + j];
    for (int64_t j = 0; i + j < n; j++) s[j] += a[i + j] * b[i + j] * c[i + j];
    return gather(s);
}

static float row_sum(const float *a, int64_t n) {
    float s[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) AT_ONCE s[j] += a[i + j];
    for (int64_t j = 0; i + j < n; j++) s[j] += a[i + j];
    return gather(s);
}

/* EXPRESSION of i for i = 0 ... n - 1, sixteen at once. */
#define EACH(n, expression)                                                                        \
    do {                                                                                           \
        const int64_t each_n = (n);                                                                \
        int64_t each = 0;                                                                          \
        for (; each + LANES <= each_n; each += LANES)                                              \
            for (int lane = 0; lane < LANES; lane++) {                                             \
                const int64_t i = each + lane;                                                     \
                expression;                                                                        \
            }                                                                                      \
        for (int64_t i = each; i < each_n; i++) expression;                                        \
    } while (0)

static void add_to(float *restrict y, float x, const float *restrict a, int64_t n) {
    EACH(n, y[i] += x * a[i]);
}

static void norm_row(float *restrict y, const float *restrict x, const float *restrict gain,
                     float inverse, int64_t n) {
    EACH(n, y[i] = x[i] * inverse * gain[i]);
}

static void add_rows(float *restrict y, const float *restrict a, const float *restrict b,
                     int64_t n) {
    EACH(n, y[i] = a[i] + b[i]);
}

static void norm_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_norm *n = ctx;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const float *x = n->x + r * n->cols;
        if (n->delta) {
            add_rows(n->sum + r * n->cols, x, n->delta + r * n->cols, n->cols);
            x = n->sum + r * n->cols;
        }
        n->inverse[r] = 1 / sqrtf(dot(x, x, n->cols) / (float)n->cols + n->eps);
        norm_row(n->y + r * n->cols, x, n->gain, n->inverse[r], n->cols);
    }
}

static void cpu_norm(struct device *device, const struct lab_norm *n) {
    pool_run(cpu_of(device)->pool, n->rows, 1 + 4096 / (n->cols + 1), 1, norm_rows,
             (void *)(uintptr_t)n);
}

/* dx may hold what it is added to. */
static void norm_back_row(float *restrict dx, bool add, float *restrict dgain,
                          const float *restrict dy, const float *restrict x,
                          const float *restrict gain, float inverse, float turn, int64_t n) {
    if (add)
        EACH(n, dx[i] += inverse * (dy[i] * gain[i]) - turn * x[i]);
    else
        EACH(n, dx[i] = inverse * (dy[i] * gain[i]) - turn * x[i]);
    EACH(n, dgain[i] += dy[i] * (x[i] * inverse));
}

static void norm_back_parts(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_norm_back *n = ctx;
    const int64_t cols = n->cols;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        float *dgain = n->parts + part * cols;
        memset(dgain, 0, sizeof *dgain * (size_t)cols);
        for (int64_t r = n->rows * part / LAB_PARTS; r < n->rows * (part + 1) / LAB_PARTS; r++) {
            const float *dy = n->dy + r * cols, *x = n->x + r * cols, inverse = n->inverse[r];
            const float sum = dot_of_three(dy, n->gain, x, cols);
            const float turn = inverse * inverse * inverse * (sum / (float)cols);
            if (n->start && n->start != n->dx)
                memcpy(n->dx + r * cols, n->start + r * cols, sizeof *n->dx * (size_t)cols);
            norm_back_row(n->dx + r * cols, n->start != NULL, dgain, dy, x, n->gain, inverse, turn,
                          cols);
        }
    }
}

static void cpu_norm_back(struct device *device, const struct lab_norm_back *n) {
    over(device, LAB_PARTS, norm_back_parts, n);
    memset(n->dgain, 0, sizeof *n->dgain * (size_t)n->cols);
    for (int64_t part = 0; part < LAB_PARTS; part++)
        add_to(n->dgain, 1, n->parts + part * n->cols, n->cols);
}

static void rope_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_rope *rope = ctx;
    const int32_t d = rope->d_h, half = d / 2;
    const int32_t apart = rope->style == ROPE_HALVES ? half : 1, stride = 1 + (apart == 1);
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        for (int32_t i = 0; i < half; i++) {
            const double angle = (double)(r % rope->tokens) * pow((double)rope->base, -2.0 * i / d);
            const float c = (float)cos(angle), s = (float)(rope->back ? -sin(angle) : sin(angle));
            float *at = rope->x + r * rope->stride + (rope->style == ROPE_HALVES ? i : stride * i);
            for (int32_t h = 0; h < rope->heads; h++, at += d) {
                const float x = at[0], y = at[apart];
                at[0] = x * c - y * s;
                at[apart] = x * s + y * c;
            }
        }
}

static void cpu_rope(struct device *device, const struct lab_rope *rope) {
    pool_run(cpu_of(device)->pool, rope->rows, 16, 1, rope_rows, (void *)(uintptr_t)rope);
}

/* ---- attention ---- */

static void attend_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_attend *a = ctx;
    const int64_t d = a->d_h, width = (a->n_q + 2 * a->n_kv) * d, tokens = a->tokens;
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        const int64_t t = row % tokens, head = row / tokens % a->n_q, s = row / tokens / a->n_q;
        const float *q = a->qkv + (s * tokens + t) * width + head * d;
        const float *k = a->qkv + s * tokens * width + (a->n_q + head / (a->n_q / a->n_kv)) * d;
        const float *v = k + a->n_kv * d;
        float *p = a->p + row * tokens, *o = a->o + ((s * tokens + t) * a->n_q + head) * d;
        float most = -INFINITY;
        for (int64_t j = 0; j <= t; j++) {
            p[j] = dot(q, k + j * width, d) * a->scale;
            most = fmaxf(most, p[j]);
        }
        for (int64_t j = 0; j <= t; j++) p[j] = expf(p[j] - most);
        const float share = 1 / row_sum(p, t + 1);
        memset(p + t + 1, 0, sizeof *p * (size_t)(tokens - t - 1));
        memset(o, 0, sizeof *o * (size_t)d);
        for (int64_t j = 0; j <= t; j++) {
            p[j] *= share;
            add_to(o, p[j], v + j * width, d);
        }
    }
}

static void cpu_attend(struct device *device, const struct lab_attend *a) {
    pool_run(cpu_of(device)->pool, a->sequences * a->n_q * a->tokens, 8, 1, attend_rows,
             (void *)(uintptr_t)a);
}

/* The whole group of one key head: its sums have one order. */
static void attend_back_group(const struct lab_attend_back *a, int64_t s, int64_t kv) {
    const int64_t d = a->d_h, width = (a->n_q + 2 * a->n_kv) * d, tokens = a->tokens;
    const int64_t group = a->n_q / a->n_kv, at = s * tokens * width + (a->n_q + kv) * d;
    const float *k = a->qkv + at, *v = k + a->n_kv * d;
    float *dk = a->dqkv + at, *dv = dk + a->n_kv * d;
    for (int64_t t = 0; t < tokens; t++) {
        memset(dk + t * width, 0, sizeof *dk * (size_t)d);
        memset(dv + t * width, 0, sizeof *dv * (size_t)d);
    }
    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
        for (int64_t t = 0; t < tokens; t++) {
            const int64_t row = s * tokens + t;
            const float *q = a->qkv + row * width + h * d, *d_o = a->d_o + (row * a->n_q + h) * d;
            const float *p = a->p + ((s * a->n_q + h) * tokens + t) * tokens;
            const float sum = dot(d_o, a->o + (row * a->n_q + h) * d, d); /* of p dp */
            float *dq = a->dqkv + row * width + h * d;
            memset(dq, 0, sizeof *dq * (size_t)d);
            for (int64_t j = 0; j <= t; j++) {
                const float ds = p[j] * (dot(d_o, v + j * width, d) - sum) * a->scale;
                add_to(dq, ds, k + j * width, d);
                add_to(dk + j * width, ds, q, d);
                add_to(dv + j * width, p[j], d_o, d);
            }
        }
}

static void attend_back_groups(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct lab_attend_back *a = ctx;
    (void)thread;
    for (int64_t i = begin; i < end; i++) attend_back_group(a, i / a->n_kv, i % a->n_kv);
}

static void cpu_attend_back(struct device *device, const struct lab_attend_back *a) {
    over(device, a->sequences * a->n_kv, attend_back_groups, a);
}

/* ---- the rest ---- */

struct swiglu {
    float *y;
    const float *dy, *gate_up;
    int64_t cols;
};

static void swiglu_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct swiglu *job = ctx;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const float *gate = job->gate_up + 2 * r * job->cols, *up = gate + job->cols;
        float *y = job->y + r * job->cols;
        for (int64_t c = 0; c < job->cols; c++) y[c] = gate[c] / (1 + expf(-gate[c])) * up[c];
    }
}

static void cpu_swiglu(struct device *device, float *y, const float *gate_up, int64_t rows,
                       int64_t cols) {
    struct swiglu job = {.y = y, .gate_up = gate_up, .cols = cols};
    pool_run(cpu_of(device)->pool, rows, 1 + SPAN / (cols + 1), 1, swiglu_rows, &job);
}

static void swiglu_back_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct swiglu *job = ctx;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const float *gate = job->gate_up + 2 * r * job->cols, *up = gate + job->cols;
        const float *dy = job->dy + r * job->cols;
        float *d_gate = job->y + 2 * r * job->cols, *d_up = d_gate + job->cols;
        for (int64_t c = 0; c < job->cols; c++) {
            const float s = 1 / (1 + expf(-gate[c]));
            d_gate[c] = dy[c] * up[c] * s * (1 + gate[c] * (1 - s));
            d_up[c] = dy[c] * gate[c] * s;
        }
    }
}

static void cpu_swiglu_back(struct device *device, float *d_gate_up, const float *dy,
                            const float *gate_up, int64_t rows, int64_t cols) {
    struct swiglu job = {.y = d_gate_up, .dy = dy, .gate_up = gate_up, .cols = cols};
    pool_run(cpu_of(device)->pool, rows, 1 + SPAN / (cols + 1), 1, swiglu_back_rows, &job);
}

struct table {
    float *loss, *rows; /* logits, or the table's gradient */
    const float *dx;
    const int32_t *token;
    int64_t n_rows, cols;
    float scale;
};

static void cross_entropy_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct table *job = ctx;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        float *row = job->rows + r * job->cols, most = -INFINITY;
        const float target = row[job->token[r]];
        for (int64_t c = 0; c < job->cols; c++) most = fmaxf(most, row[c]);
        for (int64_t c = 0; c < job->cols; c++) row[c] = expf(row[c] - most);
        const float total = row_sum(row, job->cols), share = job->scale / total;
        job->loss[r] = logf(total) + (most - target);
        EACH(job->cols, row[i] *= share);
        row[job->token[r]] -= job->scale;
    }
}

static void cpu_cross_entropy(struct device *device, float *loss, float *logits,
                              const int32_t *target, int64_t rows, int64_t cols, float scale) {
    struct table job = {
        .loss = loss, .rows = logits, .token = target, .cols = cols, .scale = scale};
    for (int64_t r = 0; r < rows; r++)
        if (!cpu_expects(cpu_of(device), target[r] >= 0 && target[r] < cols,
                         "cross_entropy: no such token"))
            return;
    pool_run(cpu_of(device)->pool, rows, 1 + SPAN / (cols + 1), 1, cross_entropy_rows, &job);
}

static void cpu_embed_table(struct device *device, float *x, const float *table,
                            const int32_t *token, int64_t rows, int64_t cols) {
    (void)device;
    for (int64_t r = 0; r < rows; r++)
        memcpy(x + r * cols, table + token[r] * cols, sizeof *x * (size_t)cols);
}

/* Rows of one id come in their order: threads share the columns. */
static void embed_back_columns(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct table *job = ctx;
    const int64_t c = begin * LANES, n = smaller(end * LANES, job->cols) - c;
    (void)thread;
    for (int64_t r = 0; r < job->n_rows; r++)
        add_to(job->rows + job->token[r] * job->cols + c, 1, job->dx + r * job->cols + c, n);
}

static void cpu_embed_back(struct device *device, float *d_table, const float *dx,
                           const int32_t *token, int64_t rows, int64_t cols) {
    struct table job = {.rows = d_table, .dx = dx, .token = token, .n_rows = rows, .cols = cols};
    pool_run(cpu_of(device)->pool, pieces(cols, LANES), 8, 1, embed_back_columns, &job);
}

struct adamw {
    struct lab_adamw a;
    float left1, left2; /* 1 - beta^step */
};

static void adamw_span(float *restrict w, float *restrict m, float *restrict v,
                       const float *restrict g, const struct adamw *job, int64_t n) {
    const float b1 = job->a.beta1, b2 = job->a.beta2, rate = job->a.rate, eps = job->a.eps;
    const float decay = job->a.decay, left1 = job->left1, left2 = job->left2;
    EACH(n, {
        m[i] = b1 * m[i] + (1 - b1) * g[i];
        v[i] = b2 * v[i] + (1 - b2) * (g[i] * g[i]);
        w[i] -= rate * (decay * w[i] + m[i] / left1 / (sqrtf(v[i] / left2) + eps));
    });
}

static void adamw_spans(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct adamw *job = ctx;
    const int64_t at = begin * SPAN, n = smaller(end * SPAN, job->a.n) - at;
    (void)thread;
    adamw_span(job->a.w + at, job->a.m + at, job->a.v + at, job->a.g + at, job, n);
}

static void cpu_adamw(struct device *device, const struct lab_adamw *a) {
    struct adamw job = {.a = *a,
                        .left1 = (float)(1 - pow((double)a->beta1, (double)a->step)),
                        .left2 = (float)(1 - pow((double)a->beta2, (double)a->step))};
    over(device, pieces(a->n, SPAN), adamw_spans, &job);
}

/* ---- nodes of a graph without fusion ---- */

struct map {
    enum lab_map map;
    float *y;
    const float *a, *b;
    int64_t rows, cols;
    float constant;
};

static void map_row(enum lab_map map, float *restrict y, const float *restrict a,
                    const float *restrict b, float of_row, float constant, int64_t n) {
    switch (map) {
    case MAP_ADD: EACH(n, y[i] = a[i] + b[i]); break;
    case MAP_MULTIPLY:
    case MAP_SCALE_COLS: EACH(n, y[i] = a[i] * b[i]); break;
    case MAP_SCALE_ROWS: EACH(n, y[i] = a[i] * of_row); break;
    case MAP_SQUARE: EACH(n, y[i] = a[i] * a[i]); break;
    case MAP_SQUARE_BACK: EACH(n, y[i] = 2 * a[i] * b[i]); break;
    case MAP_SIGMOID: EACH(n, y[i] = 1 / (1 + expf(-a[i]))); break;
    case MAP_SIGMOID_BACK: EACH(n, y[i] = b[i] * (a[i] * (1 - a[i]))); break;
    case MAP_RSQRT: EACH(n, y[i] = 1 / sqrtf(a[i] + constant)); break;
    case MAP_RSQRT_BACK: EACH(n, y[i] = -0.5f * b[i] * (a[i] * a[i] * a[i])); break;
    case MAP_SPREAD: EACH(n, y[i] = of_row * constant); break;
    case MAP_ROW_MEAN: *y = row_sum(a, n) / (float)n; break;
    case MAP_ROW_SUM: *y = row_sum(a, n); break;
    default: break;
    }
}

static void map_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct map *job = ctx;
    const bool to_rows = job->map == MAP_ROW_MEAN || job->map == MAP_ROW_SUM;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * job->cols;
        const bool spread = job->map == MAP_SPREAD, by_row = job->map == MAP_SCALE_ROWS;
        const float *b =
            job->b == NULL || by_row || job->map == MAP_SCALE_COLS ? job->b : job->b + at;
        map_row(job->map, job->y + (to_rows ? r : at), spread ? job->a : job->a + at, b,
                spread   ? job->a[r]
                : by_row ? job->b[r]
                         : 0,
                job->constant, job->cols);
    }
}

static void map_columns(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct map *job = ctx;
    const int64_t c = begin * LANES, n = smaller(end * LANES, job->cols) - c;
    (void)thread;
    memset(job->y + c, 0, sizeof *job->y * (size_t)n);
    for (int64_t r = 0; r < job->rows; r++) add_to(job->y + c, 1, job->a + r * job->cols + c, n);
}

static void cpu_map(struct device *device, enum lab_map map, float *y, const float *a,
                    const float *b, int64_t rows, int64_t cols, float constant) {
    struct map job = {map, y, a, b, rows, cols, constant};
    if (map == MAP_COL_SUM)
        pool_run(cpu_of(device)->pool, pieces(cols, LANES), 16, 1, map_columns, &job);
    else
        pool_run(cpu_of(device)->pool, rows, 1 + SPAN / (cols + 1), 1, map_rows, &job);
}

const struct lab_train cpu_lab_train = {
    .product = cpu_product,
    .norm = cpu_norm,
    .norm_back = cpu_norm_back,
    .rope = cpu_rope,
    .attend = cpu_attend,
    .attend_back = cpu_attend_back,
    .swiglu = cpu_swiglu,
    .swiglu_back = cpu_swiglu_back,
    .cross_entropy = cpu_cross_entropy,
    .embed = cpu_embed_table,
    .embed_back = cpu_embed_back,
    .adamw = cpu_adamw,
    .map = cpu_map,
};
