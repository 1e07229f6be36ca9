/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of theory.h. */
#include "workloads/model/theory.h"

#include <math.h>

const char *const kv_method_names[N_KV_METHODS + 1] = {"heads", "latent", "shared", "window", NULL};

double theory_matrix_parameters(const struct model_shape *s) {
    const double d = (double)s->d_model, q = (double)(s->n_q * s->d_h);
    const double kv = (double)(s->n_kv * s->d_h), f = (double)s->d_ff;
    return (s->tied ? 1 : 2) * (double)s->vocab * d +
           (double)s->n_layers * (2 * d * q + 2 * d * kv + 3 * d * f);
}

double theory_weight_bytes(const struct model_config *config) {
    const int group = model_group(&config->params);
    return ((double)dtype_bits(model_weight_format(&config->params)->type) +
            (group ? 16.0 / group : 0)) /
           8;
}

double serving_step(const struct serving *s, double batch) {
    return s->bandwidth > 0 ? serving_memory(s, batch) / s->bandwidth : (double)NAN;
}

static double whole(double v) { return v > 0 ? floor(v) : 0; }

static double spare(const struct serving *s) {
    return s->card_bytes > 0 ? s->card_bytes - s->reserve_bytes - s->weight_bytes : (double)NAN;
}

double serving_resident(const struct serving *s) {
    return isnan(spare(s)) ? (double)NAN : whole(spare(s) / s->kv_token_bytes);
}

double serving_users(const struct serving *s) {
    return isnan(spare(s)) ? (double)NAN : whole(spare(s) / serving_sequence(s));
}

double serving_users_within(const struct serving *s, double seconds) {
    const double fit = serving_users(s);
    if (!(s->bandwidth > 0)) return (double)NAN;
    const double fast = whole((seconds * s->bandwidth - s->weight_bytes) / serving_sequence(s));
    return fit < fast ? fit : fast;
}

double kv_elements(const struct kv_layout *l, const struct model_shape *s) {
    return l->method == KV_LATENT ? l->latent + l->rotary : 2 * (double)(s->n_kv * s->d_h);
}

double kv_sequence_elements(const struct kv_layout *l, const struct model_shape *s, double length) {
    const double layers = (double)s->n_layers, token = kv_elements(l, s);
    if (l->method == KV_SHARED) return token * ceil(layers / l->share) * length;
    if (l->method != KV_WINDOW) return token * layers * length;
    const double local = l->local_layers < layers ? l->local_layers : layers;
    return token * (local * (length < l->window ? length : l->window) + (layers - local) * length);
}

double checkpoint_peak(double layers, double segment, double entry, double saved) {
    return ceil(layers / segment) * entry + segment * saved;
}

double checkpoint_best(double layers, double entry, double saved) {
    double best = 1;
    for (double k = 2; k <= layers; k++)
        if (checkpoint_peak(layers, k, entry, saved) < checkpoint_peak(layers, best, entry, saved))
            best = k;
    return best;
}

double speculation_tokens(double alpha, int64_t gamma) {
    double sum = 1, power = 1;
    for (int64_t i = 1; i <= gamma; i++) sum += power *= alpha;
    return sum;
}

double speculation_speedup(double alpha, int64_t gamma, double cost) {
    return speculation_tokens(alpha, gamma) / ((double)gamma * cost + 1);
}

double speculation_cost(double alpha, int64_t gamma, double speedup) {
    return gamma ? (speculation_tokens(alpha, gamma) / speedup - 1) / (double)gamma : (double)NAN;
}

double speculation_break_even(int64_t gamma, double cost) {
    double low = 0, high = 1; /* the speed-up grows with alpha */
    if (!gamma) return (double)NAN;
    if (speculation_speedup(low, gamma, cost) >= 1) return 0;
    if (speculation_speedup(high, gamma, cost) < 1) return 1;
    for (int i = 0; i < 64; i++) {
        const double middle = (low + high) / 2;
        if (speculation_speedup(middle, gamma, cost) < 1)
            low = middle;
        else
            high = middle;
    }
    return high;
}

int64_t speculation_best(double alpha, double cost, int64_t most) {
    int64_t best = 0;
    double speed = 1;
    for (int64_t gamma = 1; gamma <= most; gamma++) {
        const double s = speculation_speedup(alpha, gamma, cost);
        if (s > speed) speed = s, best = gamma;
    }
    return best;
}

void temperature_apply(const double *p, int n, double t, double *out) {
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, log(p[i]) / t);
    for (int i = 0; i < n; i++) sum += out[i] = p[i] > 0 ? exp(log(p[i]) / t - most) : 0;
    for (int i = 0; i < n; i++) out[i] /= sum;
}
