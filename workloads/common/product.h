/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a layer on their own, over weights that no cache keeps: what `gemm` and `gemv` share.
 */
#ifndef WORKLOADS_COMMON_PRODUCT_H
#define WORKLOADS_COMMON_PRODUCT_H
#include "workloads/common/slow.h"
#include "workloads/model/model.h"

enum product_matrix {
    PRODUCT_QKV,
    PRODUCT_OUT,
    PRODUCT_GATE_UP,
    PRODUCT_DOWN,
    PRODUCT_HEAD,
    PRODUCT_MLP
};
extern const char *const product_matrix_words[];
struct product_params {
    int64_t m, n, k, rotate; /* n, k: 0: the matrix's own */
    int matrix;
    bool gpu; /* no option: a launch and a wait cost more than a product */
};
struct product_self {
    struct run *run;
    struct device *device;
    struct product_params params;
    struct model_config config;
    int32_t n_copies, next;        /* the copy whose turn it is */
    struct weight **first, **down; /* (n_copies) the matrix, or gate and up; mlp: what follows */
    struct tensor x, hidden, y;
    struct slow slow;
};

#define PRODUCT_OPTION(field)                                                                      \
    .offset = offsetof(struct product_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
/* The keys that both have, behind `m`; ends the table. */
#define PRODUCT_OPTIONS                                                                            \
    {.key = "matrix",                                                                              \
     .type = OPT_WORD,                                                                             \
     PRODUCT_OPTION(matrix),                                                                       \
     .def = "gate_up",                                                                             \
     .words = product_matrix_words,                                                                \
     .unit = "",                                                                                   \
     .help = "Which matrix of model.shape: qkv (stacked), out, gate_up (stacked, with SwiGLU), "   \
             "down, head; mlp: gate_up, then down."},                                              \
        {.key = "n",                                                                               \
         .type = OPT_INT,                                                                          \
         PRODUCT_OPTION(n),                                                                        \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 1 << 20,                                                                           \
         .unit = "values",                                                                         \
         .help = "N: outputs of a row (of gate_up: of each half; of mlp: between its halves); 0: " \
                 "as the shape has it."},                                                          \
        {.key = "k",                                                                               \
         .type = OPT_INT,                                                                          \
         PRODUCT_OPTION(k),                                                                        \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 1 << 20,                                                                           \
         .unit = "values",                                                                         \
         .help = "K: inputs of a row; 0: as the shape has it."},                                   \
        {.key = "rotate",                                                                          \
         .type = OPT_BYTES,                                                                        \
         PRODUCT_OPTION(rotate),                                                                   \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 0x1p42,                                                                            \
         .unit = "",                                                                               \
         .help = "Weights in turn: as many copies of the matrix as fill this, 4096 at most, so "   \
                 "that each product finds its own gone from the caches; 0: 256 MiB, or twice all " \
                 "caches of the last level; 1 B: one, as warm as they keep it."},                  \
    {                                                                                              \
        0                                                                                          \
    }
extern const struct metric product_metrics[];

void product_adapt(void *params, const struct device_kind *);
void product_check(const void *params, const struct model_config *, struct problems *);
/* item_is_byte: phase 0's items are bytes, else FLOPs. */
void product_plan(const struct product_params *, const struct model_config *, bool item_is_byte,
                  struct plan *);
/* What a product may add to an exact sum whose squared terms add up to spread^2: six deviations of
   independent roundings: of a sum in f32; beside 16-bit weights also of the activations to 16 bits,
   beside integers to 8 of the row's largest, as instructions want them. */
double product_sum_allowed(const struct weight_spec *, double spread);
double product_rounding(enum dtype activation); /* of an output, relative */
/* Whether a device multiplies with such a weight (ERR_UNSUPPORTED; format: what it is called), and
   the bounds of m rows from k values to n. */
int product_supported(struct device *, const struct weight_spec *, const char *format,
                      enum dtype activation, enum epilogue, struct err *);
struct step_bounds product_bounds(int64_t m, int64_t k, int64_t n, enum dtype activation);
int product_prepare(void *self, const void *params, const struct model_config *, struct run *,
                    struct err *);
void product_execute(void *self);
int product_witness(void *self, struct witness *, struct err *);
void product_report(void *self, struct values *);
void product_dispose(void *self);

#endif
