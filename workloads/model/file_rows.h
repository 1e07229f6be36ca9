/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a model's file on their way into packed weights: by any thread, without a staged copy. */
#ifndef WORKLOADS_MODEL_FILE_ROWS_H
#define WORKLOADS_MODEL_FILE_ROWS_H
#include "kernels/quant.h"
#include "workloads/model/model.h"

struct file_rows; /* opaque: an open file, and the first fault that a row had */
struct file_array {
    struct file_rows *rows;
    const struct file_tensor *tensor;
    float most;        /* magnitudes beyond it cannot be held */
    int16_t most_half; /* the bits of the largest stored half that can be */
};

/* Opens config->params.file, which must have the digest and the shape that the config says. */
int file_rows_open(struct file_rows **, const struct model_config *, struct err *);
void file_rows_close(struct file_rows **); /* NULL inside is safe */
/* The array of a layer (enum synth_kind), or with layer -1 outside of layers, to be packed as
   elements of a type. *array must live as long as the source. */
struct row_source file_rows_source(struct file_rows *, struct file_array *array, int64_t layer,
                                   int kind, enum dtype type);
/* A vector of n floats. */
void file_rows_vector(struct file_rows *, int64_t layer, int kind, float *out);
/* The n factors of rotary angles, all above zero. */
int file_rows_factors(struct file_rows *, int64_t n, float *out, struct err *);
/* What went wrong since the file was opened: it lost its end, a NaN, an infinity or a value that
   the type does not hold, with tensor, row and column. 0: nothing. */
int file_rows_fault(struct file_rows *, struct err *);
/* The same, and whether the file is still the one that was opened. */
int file_rows_finish(struct file_rows *, struct err *);

#endif
