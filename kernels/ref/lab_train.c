/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops of training: plain loops, sums in f64, results rounded where an op ends. */
#include "kernels/lab_train.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

static void ref_product(struct device *device, const struct lab_product *p) {
    ((struct ref *)device)->counts.linear += p->rows * p->cols * p->depth;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->cols; j++) {
            double sum = p->start ? (double)p->start[i * p->cols + j] : 0;
            if (p->bias) sum += (double)p->bias[j];
            for (int64_t k = 0; k < p->depth; k++)
                sum += (double)p->a[i * p->a_row + k * p->a_step] *
                       (double)p->b[k * p->b_row + j * p->b_step];
            p->c[i * p->cols + j] = (float)sum;
        }
}

static void ref_norm(struct device *device, const struct lab_norm *n) {
    (void)device;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *x = n->x + r * n->cols;
        double squares = 0;
        for (int64_t c = 0; n->delta && c < n->cols; c++)
            n->sum[r * n->cols + c] = x[c] + n->delta[r * n->cols + c];
        if (n->delta) x = n->sum + r * n->cols;
        for (int64_t c = 0; c < n->cols; c++) squares += (double)x[c] * (double)x[c];
        const double inverse = 1 / sqrt(squares / (double)n->cols + (double)n->eps);
        n->inverse[r] = (float)inverse;
        for (int64_t c = 0; c < n->cols; c++)
            n->y[r * n->cols + c] = (float)((double)x[c] * inverse * (double)n->gain[c]);
    }
}

static void ref_norm_back(struct device *device, const struct lab_norm_back *n) {
    (void)device;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *dy = n->dy + r * n->cols, *x = n->x + r * n->cols;
        float *dx = n->dx + r * n->cols;
        const double inverse = (double)n->inverse[r];
        double sum = 0;
        for (int64_t c = 0; c < n->cols; c++)
            sum += (double)dy[c] * (double)n->gain[c] * (double)x[c];
        for (int64_t c = 0; c < n->cols; c++) {
            const double d = inverse * (double)dy[c] * (double)n->gain[c] -
                             (double)x[c] * inverse * inverse * inverse * sum / (double)n->cols;
            dx[c] = (float)(d + (n->start ? (double)n->start[r * n->cols + c] : 0));
        }
    }
    for (int64_t c = 0; c < n->cols; c++) {
        double sum = 0;
        for (int64_t r = 0; r < n->rows; r++)
            sum += (double)n->dy[r * n->cols + c] * (double)n->x[r * n->cols + c] *
                   (double)n->inverse[r];
        n->dgain[c] = (float)sum;
    }
}

static void ref_rope(struct device *device, const struct lab_rope *rope) {
    (void)device;
    const int32_t d = rope->d_h;
    for (int64_t r = 0; r < rope->rows; r++)
        for (int32_t i = 0; i < d / 2; i++) {
            const double position = (double)(r % rope->tokens);
            const double angle = position * pow((double)rope->base, -2.0 * i / d);
            const float c = (float)cos(angle), s = (float)(rope->back ? -sin(angle) : sin(angle));
            const int32_t first = rope->style == ROPE_HALVES ? i : 2 * i;
            const int32_t second = rope->style == ROPE_HALVES ? i + d / 2 : 2 * i + 1;
            for (int32_t h = 0; h < rope->heads; h++) {
                float *head = rope->x + r * rope->stride + (int64_t)h * d;
                const float x = head[first], y = head[second];
                head[first] = x * c - y * s;
                head[second] = x * s + y * c;
            }
        }
}

static double dot(const float *a, const float *b, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void ref_attend(struct device *device, const struct lab_attend *a) {
    const int64_t width = (a->n_q + 2 * a->n_kv) * (int64_t)a->d_h, tokens = a->tokens;
    const int32_t d = a->d_h, group = a->n_q / a->n_kv;
    for (int64_t row = 0; row < a->sequences * a->n_q * tokens; row++) {
        const int64_t t = row % tokens, head = row / tokens % a->n_q, s = row / tokens / a->n_q;
        const float *q = a->qkv + (s * tokens + t) * width + head * d;
        const float *k = a->qkv + s * tokens * width + (a->n_q + head / group) * d;
        float *p = a->p + row * tokens, *o = a->o + ((s * tokens + t) * a->n_q + head) * d;
        double most = -INFINITY, total = 0;
        for (int64_t j = 0; j <= t; j++)
            most = fmax(most, dot(q, k + j * width, d) * (double)a->scale);
        for (int64_t j = 0; j <= t; j++)
            total += exp(dot(q, k + j * width, d) * (double)a->scale - most);
        for (int64_t j = 0; j < tokens; j++)
            p[j] = j > t ? 0
                         : (float)(exp(dot(q, k + j * width, d) * (double)a->scale - most) / total);
        const float *v = k + (int64_t)a->n_kv * d;
        for (int32_t i = 0; i < d; i++) {
            double sum = 0;
            for (int64_t j = 0; j <= t; j++) sum += (double)p[j] * (double)v[j * width + i];
            o[i] = (float)sum;
        }
        ((struct ref *)device)->counts.attention += 2 * (t + 1) * d;
    }
}

/* ds of query row t, head h, sequence s and key j: what the softmax passes on. o is not looked at:
   the sum over the row is taken from p. */
static double ds_of(const struct lab_attend_back *a, int64_t s, int64_t h, int64_t t, int64_t j,
                    double sum) {
    const int64_t width = (a->n_q + 2 * a->n_kv) * (int64_t)a->d_h, kv = h / (a->n_q / a->n_kv);
    const float *d_o = a->d_o + ((s * a->tokens + t) * a->n_q + h) * a->d_h;
    const float *v = a->qkv + (s * a->tokens + j) * width + (a->n_q + a->n_kv + kv) * a->d_h;
    return (double)a->p[((s * a->n_q + h) * a->tokens + t) * a->tokens + j] *
           (dot(d_o, v, a->d_h) - sum);
}

static void ref_attend_back(struct device *device, const struct lab_attend_back *a) {
    const int64_t width = (a->n_q + 2 * a->n_kv) * (int64_t)a->d_h, tokens = a->tokens;
    const int32_t d = a->d_h, group = a->n_q / a->n_kv;
    double dq[REF_MOST_HEAD];
    /* Sums over query rows and the heads of a group go into floats, one key head at a time. */
    for (int64_t row = 0; row < a->sequences * tokens; row++)
        memset(a->dqkv + row * width, 0, sizeof(float) * (size_t)width);
    if (!ref_expects(device, d <= REF_MOST_HEAD, "attend_back: the head is too wide")) return;
    for (int64_t row = 0; row < a->sequences * a->n_q * tokens; row++) {
        const int64_t t = row % tokens, h = row / tokens % a->n_q, s = row / tokens / a->n_q;
        const int64_t kv = h / group, at = s * tokens;
        const float *p = a->p + row * tokens, *d_o = a->d_o + ((at + t) * a->n_q + h) * d;
        double sum = 0;
        for (int64_t j = 0; j <= t; j++) sum += ds_of(a, s, h, t, j, 0);
        memset(dq, 0, sizeof dq);
        for (int64_t j = 0; j <= t; j++) {
            const double ds = ds_of(a, s, h, t, j, sum) * (double)a->scale;
            const float *k = a->qkv + (at + j) * width + (a->n_q + kv) * d;
            const float *q = a->qkv + (at + t) * width + h * d;
            float *dk = a->dqkv + (at + j) * width + (a->n_q + kv) * d, *dv = dk + a->n_kv * d;
            for (int32_t i = 0; i < d; i++) {
                dq[i] += ds * (double)k[i];
                dk[i] = (float)((double)dk[i] + ds * (double)q[i]);
                dv[i] = (float)((double)dv[i] + (double)p[j] * (double)d_o[i]);
            }
        }
        for (int32_t i = 0; i < d; i++) a->dqkv[(at + t) * width + h * d + i] = (float)dq[i];
        ((struct ref *)device)->counts.attention += 4 * (t + 1) * d;
    }
}

static void ref_swiglu(struct device *device, float *y, const float *gate_up, int64_t rows,
                       int64_t cols) {
    (void)device;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double gate = (double)gate_up[2 * r * cols + c];
            y[r * cols + c] =
                (float)(gate / (1 + exp(-gate)) * (double)gate_up[(2 * r + 1) * cols + c]);
        }
}

/* silu' = s (1 + gate (1 - s)), s the sigmoid. */
static void ref_swiglu_back(struct device *device, float *d_gate_up, const float *dy,
                            const float *gate_up, int64_t rows, int64_t cols) {
    (void)device;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double gate = (double)gate_up[2 * r * cols + c];
            const double up = (double)gate_up[(2 * r + 1) * cols + c];
            const double s = 1 / (1 + exp(-gate)), d = (double)dy[r * cols + c];
            d_gate_up[2 * r * cols + c] = (float)(d * up * s * (1 + gate * (1 - s)));
            d_gate_up[(2 * r + 1) * cols + c] = (float)(d * gate * s);
        }
}

static void ref_cross_entropy(struct device *device, float *loss, float *logits,
                              const int32_t *target, int64_t rows, int64_t cols, float scale) {
    for (int64_t r = 0; r < rows; r++) {
        float *row = logits + r * cols;
        double most = -INFINITY, total = 0;
        if (!ref_expects(device, target[r] >= 0 && target[r] < cols,
                         "cross_entropy: no such token"))
            return;
        for (int64_t c = 0; c < cols; c++) most = fmax(most, (double)row[c]);
        for (int64_t c = 0; c < cols; c++) total += exp((double)row[c] - most);
        loss[r] = (float)(most + log(total) - (double)row[target[r]]);
        for (int64_t c = 0; c < cols; c++)
            row[c] =
                (float)((exp((double)row[c] - most) / total - (c == target[r])) * (double)scale);
    }
}

static void ref_embed_table(struct device *device, float *x, const float *table,
                            const int32_t *token, int64_t rows, int64_t cols) {
    (void)device;
    for (int64_t r = 0; r < rows; r++)
        memcpy(x + r * cols, table + token[r] * cols, sizeof *x * (size_t)cols);
}

static void ref_embed_back(struct device *device, float *d_table, const float *dx,
                           const int32_t *token, int64_t rows, int64_t cols) {
    (void)device;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) d_table[token[r] * cols + c] += dx[r * cols + c];
}

static void ref_adamw(struct device *device, const struct lab_adamw *a) {
    (void)device;
    const double b1 = (double)a->beta1, b2 = (double)a->beta2;
    const double left1 = 1 - pow(b1, (double)a->step), left2 = 1 - pow(b2, (double)a->step);
    for (int64_t i = 0; i < a->n; i++) {
        const double g = (double)a->g[i];
        a->m[i] = (float)(b1 * (double)a->m[i] + (1 - b1) * g);
        a->v[i] = (float)(b2 * (double)a->v[i] + (1 - b2) * g * g);
        const double turn =
            (double)a->m[i] / left1 / (sqrt((double)a->v[i] / left2) + (double)a->eps);
        a->w[i] = (float)((double)a->w[i] -
                          (double)a->rate * ((double)a->decay * (double)a->w[i] + turn));
    }
}

static double mapped(enum lab_map map, double a, double b, double constant) {
    switch (map) {
    case MAP_ADD: return a + b;
    case MAP_MULTIPLY:
    case MAP_SCALE_ROWS:
    case MAP_SCALE_COLS: return a * b;
    case MAP_SQUARE: return a * a;
    case MAP_SQUARE_BACK: return 2 * a * b;
    case MAP_SIGMOID: return 1 / (1 + exp(-a));
    case MAP_SIGMOID_BACK: return b * a * (1 - a);
    case MAP_RSQRT: return 1 / sqrt(a + constant);
    case MAP_RSQRT_BACK: return -b * a * a * a / 2;
    case MAP_SPREAD: return a * constant;
    default: return (double)NAN;
    }
}

static void reduce(enum lab_map map, float *y, const float *a, int64_t rows, int64_t cols) {
    const int64_t n = map == MAP_COL_SUM ? cols : rows, terms = map == MAP_COL_SUM ? rows : cols;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < terms; j++)
            sum += (double)(map == MAP_COL_SUM ? a[j * cols + i] : a[i * cols + j]);
        y[i] = (float)(map == MAP_ROW_MEAN ? sum / (double)cols : sum);
    }
}

static void ref_map(struct device *device, enum lab_map map, float *y, const float *a,
                    const float *b, int64_t rows, int64_t cols, float constant) {
    (void)device;
    if (map == MAP_ROW_MEAN || map == MAP_ROW_SUM || map == MAP_COL_SUM) {
        reduce(map, y, a, rows, cols);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const int64_t i = r * cols + c;
            const int64_t j = map == MAP_SCALE_ROWS ? r : map == MAP_SCALE_COLS ? c : i;
            y[i] = (float)mapped(map, (double)a[map == MAP_SPREAD ? r : i], b ? (double)b[j] : 0,
                                 (double)constant);
        }
}

const struct lab_train ref_lab_train = {
    .product = ref_product,
    .norm = ref_norm,
    .norm_back = ref_norm_back,
    .rope = ref_rope,
    .attend = ref_attend,
    .attend_back = ref_attend_back,
    .swiglu = ref_swiglu,
    .swiglu_back = ref_swiglu_back,
    .cross_entropy = ref_cross_entropy,
    .embed = ref_embed_table,
    .embed_back = ref_embed_back,
    .adamw = ref_adamw,
    .map = ref_map,
};
