/* SPDX-License-Identifier: Apache-2.0 */
/* A row source cannot fail: the first fault is kept, later rows are zeros, and who packs asks. */
#include "workloads/model/file_rows.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/file.h"
#include "workloads/model/file_shape.h"
#include "workloads/model/stored.h"

struct file_rows {
    struct model_file *file;
    pthread_mutex_t lock; /* of fault */
    struct err fault;
    atomic_bool failed;
};

static void keep(struct file_rows *rows, const struct err *fault) {
    pthread_mutex_lock(&rows->lock);
    if (!rows->fault.code) rows->fault = *fault;
    pthread_mutex_unlock(&rows->lock);
    atomic_store(&rows->failed, true);
}

static void bad_value(const struct file_array *array, int64_t r, int64_t c, float v) {
    struct err fault = {0};
    const char *path = model_file_path(array->rows->file), *name = array->tensor->name;
    if (isfinite(v))
        err_set(&fault, ERR_INPUT,
                "%s: tensor '%.120s', row %lld, column %lld is %g, and model.type holds at most %g",
                path, name, (long long)r, (long long)c, (double)v, (double)array->most);
    else
        err_set(&fault, ERR_INPUT, "%s: tensor '%.120s', row %lld, column %lld is %s", path, name,
                (long long)r, (long long)c, v != v ? "not a number (NaN)" : "infinite");
    keep(array->rows, &fault);
}

static void row(void *ctx, int64_t r, float *out) {
    const struct file_array *array = ctx;
    struct file_rows *rows = array->rows;
    const int64_t cols = array->tensor->cols;
    struct err err = {0};
    /* Magnitudes lie in the order of their bits, NaNs above all: so compilers make vectors of it.
     */
    const int32_t most = (int32_t)f32_bits(array->most);
    int32_t beyond = 0;
    if (atomic_load_explicit(&rows->failed, memory_order_relaxed)) {
        memset(out, 0, (size_t)cols * sizeof *out);
        return;
    }
    if (model_file_row(rows->file, array->tensor, r, out, &err)) {
        keep(rows, &err);
        memset(out, 0, (size_t)cols * sizeof *out);
        return;
    }
    for (int64_t c = 0; c < cols; c++) beyond |= (int32_t)(f32_bits(out[c]) & 0x7fffffffu) > most;
    for (int64_t c = 0; c < cols && beyond; c++) {
        if (fabsf(out[c]) <= array->most) continue;
        bad_value(array, r, c, out[c]);
        break;
    }
}

/* The same without widening: finite halves are those whose exponent is not the last one. */
static void halves(void *ctx, int64_t r, uint16_t *out) {
    const struct file_array *array = ctx;
    struct file_rows *rows = array->rows;
    const int64_t cols = array->tensor->cols;
    struct err err = {0};
    int16_t beyond = 0;
    if (atomic_load_explicit(&rows->failed, memory_order_relaxed)) {
        memset(out, 0, (size_t)cols * sizeof *out);
        return;
    }
    if (model_file_row_bytes(rows->file, array->tensor, r, out, &err)) {
        keep(rows, &err);
        memset(out, 0, (size_t)cols * sizeof *out);
        return;
    }
    for (int64_t c = 0; c < cols; c++)
        beyond = (int16_t)(beyond | -((int16_t)(out[c] & 0x7fffu) > array->most_half));
    for (int64_t c = 0; c < cols && beyond; c++) {
        float v;
        if ((int16_t)(out[c] & 0x7fffu) <= array->most_half) continue;
        stored_types[array->tensor->stored].decode((const uint8_t *)(out + c), 1, &v);
        bad_value(array, r, c, v);
        break;
    }
}

struct row_source file_rows_source(struct file_rows *rows, struct file_array *array, int64_t layer,
                                   int kind, enum dtype type) {
    *array = (struct file_array){
        .rows = rows, .tensor = model_file_array(rows->file, layer, kind), .most = FLT_MAX};
    /* The largest that rounds to a finite value. */
    if (type == DT_F16) array->most = 65519.99609375f;
    if (type == DT_BF16) array->most = 0x1.fefffep127f;
    struct row_source source = {.row = row, .ctx = array};
    if (!array->tensor) return source;
    if (array->tensor->stored == STORED_F16) {
        array->most_half = 0x7bff;
        source.halves = halves;
        source.stored = DT_F16;
    }
    if (array->tensor->stored == STORED_BF16) {
        array->most_half = (int16_t)(f32_bits(array->most) >> 16); /* the last one not above it */
        source.halves = halves;
        source.stored = DT_BF16;
    }
    return source;
}

void file_rows_vector(struct file_rows *rows, int64_t layer, int kind, float *out) {
    struct file_array array;
    const struct row_source source = file_rows_source(rows, &array, layer, kind, DT_F32);
    source.row(source.ctx, 0, out);
}

int file_rows_factors(struct file_rows *rows, int64_t n, float *out, struct err *err) {
    const struct file_tensor *table = model_file_tensor(rows->file, ROPE_TENSOR);
    if (!table || table->rows != 1 || table->cols != n)
        return err_set(err, ERR_INPUT, "%s has no tensor '%s' of %lld elements",
                       model_file_path(rows->file), ROPE_TENSOR, (long long)n);
    int code = model_file_row(rows->file, table, 0, out, err);
    for (int64_t i = 0; i < n && !code; i++)
        if (!(out[i] >= 1e-6f && out[i] <= 1e6f))
            code =
                err_set(err, ERR_INPUT,
                        "%s: tensor '%s', column %lld is %g: angles are stretched by numbers from "
                        "1e-6 to 1e6",
                        model_file_path(rows->file), ROPE_TENSOR, (long long)i, (double)out[i]);
    return code;
}

int file_rows_fault(struct file_rows *rows, struct err *err) {
    pthread_mutex_lock(&rows->lock);
    const int code = rows->fault.code;
    if (code) err_set(err, code, "%s", rows->fault.text);
    pthread_mutex_unlock(&rows->lock);
    return code;
}

int file_rows_finish(struct file_rows *rows, struct err *err) {
    const int code = file_rows_fault(rows, err);
    return code ? code : model_file_unchanged(rows->file, err);
}

int file_rows_open(struct file_rows **out, const struct model_config *config, struct err *err) {
    const struct model_params *p = &config->params;
    struct file_rows *rows = must_alloc(sizeof *rows);
    pthread_mutex_init(&rows->lock, NULL);
    int code = model_file_open(&rows->file, p->file, err);
    if (!code && *p->digest && strcmp(p->digest, model_file_digest(rows->file)) != 0)
        code = err_set(err, ERR_INPUT,
                       "%s is another file than was planned with: its digest is %s, not %s",
                       p->file, model_file_digest(rows->file), p->digest);
    if (!code) code = model_file_fits(rows->file, &config->shape, err);
    *out = rows;
    if (code) file_rows_close(out);
    return code;
}

void file_rows_close(struct file_rows **out) {
    struct file_rows *rows = *out;
    if (!rows) return;
    model_file_close(&rows->file);
    pthread_mutex_destroy(&rows->lock);
    free(rows);
    *out = NULL;
}
