/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on the host, and how far they lie from what they should be. */
#include "workloads/common/slow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

int tensor_create(struct tensor *t, struct device *device, enum dtype type, int64_t rows,
                  int64_t cols, const char *what, struct err *err) {
    const size_t bytes = (size_t)(dtype_bits(type) / 8 * rows * cols);
    *t =
        (struct tensor){.type = type, .rows = (int32_t)rows, .cols = (int32_t)cols, .stride = cols};
    t->data = device_alloc(device, bytes, MEM_ACTIVATION, what);
    return t->data ? 0 : err_set(err, ERR_MEMORY, "no memory for %s (%zu bytes)", what, bytes);
}

struct tensor tensor_row(struct tensor t, int64_t row) {
    t.data = (char *)t.data + row * t.stride * (dtype_bits(t.type) / 8);
    t.rows = 1;
    return t;
}

void tensor_download(struct device *device, const struct tensor *t, int64_t row, float *out) {
    const size_t bytes = (size_t)t->cols * (size_t)(dtype_bits(t->type) / 8);
    void *image = must_alloc(bytes);
    device->kind->download(device, image, tensor_row(*t, row).data, bytes);
    for (int64_t i = 0; i < t->cols; i++) out[i] = dtype_load(image, t->type, i);
    free(image);
}

void witness_row(struct witness *w, const float *fast, const float *alone, int64_t n,
                 int64_t position, double tolerance) {
    double error = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)fast[i] - (double)alone[i]);
        if (f32_bits(fast[i]) != f32_bits(alone[i]) && w->first_difference < 0)
            w->first_difference = position + i;
        if (!(d <= error)) error = d; /* a NaN stays */
        most = fmax(most, fabs((double)alone[i]));
    }
    w->compared += n;
    w->identical = w->first_difference < 0;
    if (!(error <= w->max_error)) w->max_error = error;
    w->holds =
        w->holds && (w->contract == CONTRACT_EXACT ? w->identical : error <= tolerance * most);
    w->hash = hash_bytes(fast, sizeof *fast * (size_t)n, w->hash);
    w->plain_hash = hash_bytes(alone, sizeof *alone * (size_t)n, w->plain_hash);
}

void slow_begin(struct slow *slow) { *slow = (struct slow){.beyond = -1}; }

void slow_add(struct slow *slow, double device, double exact, double original, double allowed,
              int64_t position) {
    const double error = fabs(device - exact), departure = exact - original;
    slow->n++;
    slow->error += error * error;
    slow->value += exact * exact;
    slow->departure += departure * departure;
    slow->unrounded += original * original;
    if (error <= allowed || slow->beyond >= 0) return;
    slow->beyond = position;
    slow->beyond_by = error;
}

double slow_kernel_error(const struct slow *slow) {
    return slow->n ? sqrt(slow->error / slow->value) : (double)NAN;
}

double slow_format_error(const struct slow *slow) {
    return slow->n ? sqrt(slow->departure / slow->unrounded) : (double)NAN;
}

void slow_judge(const struct slow *slow, struct witness *w) {
    if (slow->beyond < 0) return;
    w->holds = w->identical = false;
    w->first_difference = slow->beyond;
    w->max_error = slow->beyond_by;
    snprintf(w->note, sizeof w->note, "an output against the slow computation of it on the host");
}

void slow_attention(const float *q, const float *k, const float *v, int32_t n, int32_t d_h,
                    double scale, double *out, double *spread) {
    double *p = must_alloc(sizeof *p * (size_t)n), most = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) {
        p[i] = 0;
        for (int32_t c = 0; c < d_h; c++) p[i] += (double)q[c] * (double)k[(int64_t)i * d_h + c];
        p[i] *= scale;
        most = fmax(most, p[i]);
    }
    for (int32_t i = 0; i < n; i++) sum += p[i] = exp(p[i] - most);
    for (int32_t c = 0; c < d_h; c++) {
        double total = 0, squares = 0;
        for (int32_t i = 0; i < n; i++) {
            const double term = p[i] / sum * (double)v[(int64_t)i * d_h + c];
            total += term;
            squares += term * term;
        }
        out[c] = total;
        if (spread) spread[c] = sqrt(squares);
    }
    free(p);
}

double slow_attention_allowed(enum dtype kv, enum dtype out, double spread, double value) {
    const double share = kv == DT_I8 ? 0.1 : kv == DT_F32 && out == DT_F32 ? 1e-4 : 0.05;
    const double round = out == DT_F32 ? 0x1p-22 : out == DT_F16 ? 0x1p-10 : 0x1p-7;
    return share * spread + round * fabs(value) + 1e-6;
}

bool slow_applies(const struct device *device) { return !(device->kind->has & DEV_VIRTUAL_CLOCK); }
