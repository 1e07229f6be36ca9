/* SPDX-License-Identifier: Apache-2.0 */
/* What test_shapes.cpp's cases share: arrays whose values follow from their places, which blocks
   run, and whether what they wrote is right and nothing else was. */
#ifndef TESTS_CUDA_SHAPES_RIG_H
#define TESTS_CUDA_SHAPES_RIG_H
#include "kernels/cuda/launch.cuh"

#include <functional>
#include <memory>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "kernels/device.h"
}
#include "base/random.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/frag.cuh"
#include "tests/cuda/simt/sparse.h"

using simt::launch_record;
using simt::sparse_array;

/* The cases: each counts what is wrong. */
void embeds(void);
void add_norms(void);
void gathers(void);
void selects(void);
void ceilings(void);
void streamed_products(void);
void products_of_models(void);
void products_of_many_rows(void);
void products_by_slabs(void);
void products_with_ends(void);
void appends(void);
void decodes(void);
void plain_attention(void);
void prefills(void);
void copies_of_units(void);
void too_many_sequences(void);
void synthetic_weights(void);

/* ---- values ---- */

double number(enum dtype, uint64_t bits);
simt::element_bits *values_of(enum dtype, uint64_t salt), *scales_of(enum dtype);

/* An array of a type, its values by their places or, for what ops write (salt 0), all NaN. */
struct array : sparse_array {
    enum dtype type;
    bool is_nan; /* as made; codes are as ops may write them too */
    array(const char *name, enum dtype t, int64_t n, uint64_t salt)
        : sparse_array(name, n, int(dtype_bits(t)) / 8, values_of(t, salt), salt), type(t),
          is_nan(salt == 0 && t != DT_I8) {}
    /* Scales of weights or of a cache. */
    array(const char *name, enum dtype t, int64_t n)
        : sparse_array(name, n, int(dtype_bits(t)) / 8, scales_of(t), 13), type(t), is_nan(false) {}
    double at(int64_t i) const { return number(type, made(i)); }
};
struct tensor tensor_of(const array &, int64_t rows, int64_t cols, int64_t stride);

/* ---- which blocks run ---- */

int64_t draw(int64_t n); /* 0 ... n-1 */

typedef std::vector<size_t> blocks;
/* The first, the last, `more` others and those that are named. */
blocks some_of(size_t n, int more, const blocks &named = {});
extern std::function<blocks(const launch_record &, size_t n)> chosen;
blocks all_of(size_t n);
void choose_some(int more);

/* ---- what they wrote ---- */

extern int n_wrong;
extern int64_t n_written;
extern double worst; /* error, of what is allowed */
extern const char *case_now;
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Values of a group of neighbours: false, nothing may be written there. */
typedef std::function<bool(int64_t group, double *values)> truth;

struct bar {
    double relative, absolute;
};
static const double HALF_A_STEP = 0x1.01p-8; /* of bf16, and room for a double's other rounding */

/* Compares the groups in which anything was written: one in `every`, and those at the ends of what
   was written without a gap. The first and the last of all must be among them; a group of what was
   NaN must be whole. */
void compare(const array &out, int64_t group, const struct bar &, int every, int64_t first,
             int64_t last, const truth &expected);

/* ---- the device ---- */

extern struct device *device;
void open_device(void);
struct model {
    int32_t d_model, n_q, n_kv, d, d_ff, vocab;
};
static const struct model m13b = {5120, 40, 40, 128, 13824, 32000},
                          m7b = {4096, 32, 8, 128, 14336, 32000},
                          llama = {2048, 32, 8, 64, 8192, 128256},
                          seed = {896, 14, 2, 64, 4864, 151936};
/* Workspace; what an op does not need of the bounds may be small. */
void plan_for(const struct model &, int64_t n_seq, int64_t n_row, int64_t n_out, int64_t most_kv);
void run(void);

/* A step's arrays: `each` rows of every sequence, at the end of their lengths. */
struct rows {
    std::vector<int32_t> token, pos, seq, q_begin, kv_len, out_row, next;
    std::vector<uint64_t> rng;
    struct step step;

    rows(int64_t n_seq, int64_t each, const std::function<int32_t(int64_t)> &length);
    void outputs(const std::vector<int32_t> &rows);
};

static const int64_t CONTEXT = 32768, BATCH = 16, ALL_ROWS = BATCH * CONTEXT;

/* ---- weights ---- */

struct big_weight {
    struct cuda_weight w;
    std::unique_ptr<array> data, scales;
    bool is_rounded = false; /* to bf16, as products of many rows have them */

    big_weight(enum dtype, enum scale, int group, int64_t rows, int64_t cols,
               bool interleaved = false);
    const struct weight *head() const { return &w.head; }
    double at(int64_t row, int64_t col) const; /* of data */

  private:
    int nibble(int64_t tile, int64_t col, int place) const;
};

/* Wider than any model's here, whose weights all stay below 2^31 values. */
static const int64_t WIDE_ROWS = 300000, WIDE_COLS = 8192;
static const struct weight_kind {
    enum dtype type;
    enum scale scale;
    int group;
    enum dtype x;
} weight_kinds[] = {
    {DT_BF16, SCALE_NONE, 0, DT_BF16},  {DT_F16, SCALE_NONE, 0, DT_F16},
    {DT_F32, SCALE_NONE, 0, DT_F32},    {DT_I8, SCALE_ROW, 0, DT_BF16},
    {DT_I8, SCALE_GROUP, 64, DT_BF16},  {DT_I4, SCALE_GROUP, 128, DT_BF16},
    {DT_NF4, SCALE_GROUP, 64, DT_BF16},
};

#endif
