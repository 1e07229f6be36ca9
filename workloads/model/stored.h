/* SPDX-License-Identifier: Apache-2.0 */
/* Element types that files of models store, and what their bytes mean. The block formats are those
   of GGUF, as its reference implementation (ggml-quants.c, dequantize_row_*) defines them. */
#ifndef WORKLOADS_MODEL_STORED_H
#define WORKLOADS_MODEL_STORED_H
#include <stdint.h>

enum stored {
    STORED_F32,
    STORED_F16,
    STORED_BF16,
    STORED_Q4_0,
    STORED_Q4_1,
    STORED_Q5_0,
    STORED_Q5_1,
    STORED_Q8_0,
    STORED_Q2_K,
    STORED_Q3_K,
    STORED_Q4_K,
    STORED_Q5_K,
    STORED_Q6_K,
    N_STORED
};

struct stored_type {
    const char *name; /* as its format spells it: "Q4_K" */
    int block, bytes; /* elements of a block, and the bytes that they take */
    /* Blocks to their values (n_blocks * block), each the exact product and sum rounded once to
       f32. */
    void (*decode)(const uint8_t *bytes, int64_t n_blocks, float *out);
    const char *nearest; /* the weight format of ours that holds it with the least loss... */
    int group;           /* ...and its group, or 0 */
};
extern const struct stored_type stored_types[N_STORED];

/* A GGUF type number as an enum stored, or -1; *name: what it is called, or NULL if it is unknown. */
int stored_of_gguf(uint32_t type, const char **name);
/* A safetensors dtype word as an enum stored, or -1. */
int stored_of_word(const char *dtype);
/* "F32, F16, ...": what is read. */
#define STORED_READ_GGUF                                                                           \
    "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K and Q6_K"
#define STORED_READ_WORDS "F32, F16 and BF16"

#endif
