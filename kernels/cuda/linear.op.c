/* SPDX-License-Identifier: Apache-2.0 */
/* linear of the CUDA device: who multiplies, and what must be made in workspace before and after.
 */
#include "kernels/cuda/linear.h"

#include <stddef.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/lt.h"

/* ---- what is supported --------------------------------------------------------------------- */

static bool is_quantized(enum dtype type) {
    return type == DT_I8 || type == DT_I4 || type == DT_NF4;
}

static const char *refusal(const struct op_case *c) {
    const int group = c->scale == SCALE_GROUP ? c->group : 0;
    if (c->input != DT_F32) return "products with int8 inputs have no kernel here";
    if (is_quantized(c->weight)) {
        if (c->activation != DT_BF16) return "quantized weights take bf16 activations";
        if (group != 0 && group != 32 && group != 64 && group != 128)
            return "groups of weights are 32, 64 or 128";
        return NULL;
    }
    if (c->weight != DT_F32 && c->weight != DT_F16 && c->weight != DT_BF16)
        return "weights are f32, f16, bf16, int8, int4 or nf4";
    return c->activation == c->weight ? NULL : "activations have the type of their float weights";
}

bool cuda_linear_supports(const struct op_case *c, const char **kernel_or_reason) {
    const char *refused = refusal(c);
    *kernel_or_reason = refused                   ? refused
                        : c->weight == DT_F32     ? "f32 multiply-adds, or cuBLASLt from 65 rows on"
                        : is_quantized(c->weight) ? "streamed mma.sync; from 65 rows on as bf16"
                                                  : "streamed mma.sync; gemm from 65 rows on";
    return !refused;
}

/* ---- workspace --------------------------------------------------------------------------------
 */

enum {
    MOST_SLAB = 24 << 20, /* bytes of weights made bf16 at a time */
    MOST_SUMS = 64 << 20, /* bytes of f32 sums that wait for SwiGLU */
    PAD_ROWS = 512,       /* rows of x that are padded at a time, where a model's widths need it */
    F32_ROWS = 65535 * 8  /* rows of x beside f32 weights in one launch: the grid's second side */
};

struct rooms { /* bytes; they lie in this order */
    int64_t pad, slab, sums;
};

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static struct rooms rooms_for(const struct step_bounds *b) {
    const int64_t heads = (int64_t)b->n_q * b->d_h, rows = most(b->n_row, b->n_out);
    const int64_t cols = round_up(most(most(b->d_model, b->d_ff), heads), PAD_COLS);
    const int64_t gate_up = 2 * round_up(b->d_ff, 8);
    const int64_t outs = round_up(
        most(most(b->vocab, gate_up), most(b->d_model, heads + 2 * (int64_t)b->n_kv * b->d_h)),
        GEMM_TILE);
    const bool odd = (b->d_model | b->d_ff | (int32_t)heads) % PAD_COLS != 0;
    struct rooms r = {.pad = least(rows, odd ? PAD_ROWS : FEW_ROWS) * cols * 4};
    if (rows > FEW_ROWS) r.slab = least(MOST_SLAB, outs * cols * 2);
    r.slab = rows > FEW_ROWS ? most(r.slab, GEMM_TILE * cols * 2) : 0;
    r.sums = least(rows * gate_up * 4, most(MOST_SUMS, FEW_ROWS * gate_up * 4));
    r.pad = round_up(r.pad, 256);
    r.slab = round_up(r.slab, 256);
    return r;
}

int64_t cuda_linear_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu;
    const struct rooms r = rooms_for(bounds);
    return r.pad + r.slab + r.sums;
}

cudaError_t linear_load(void) {
    cudaError_t e = linear_own_load();
    if (!e) e = gemm_load();
    if (!e) e = slab_load();
    return e;
}

/* ---- one product ---------------------------------------------------------------------------- */

struct product {
    struct cuda *c;
    const struct cuda_weight *w;
    const float *bias;
    bool gates;  /* SwiGLU */
    bool swiglu; /* to be done by the kernel that multiplies: its columns are interleaved */
    bool apart;  /* SwiGLU or bias comes after: products are f32 sums, columns as the weight's rows
                    lie */
    bool many;   /* rows, of all of x */
    struct rooms rooms;
};

static char *room_of(const struct product *p, int64_t offset) {
    return (char *)p->c->room[OP_LINEAR].data + offset;
}
static int64_t size_of(enum dtype type) { return dtype_bits(type) / 8; }

static int32_t group_shift(const struct cuda_weight *w) {
    if (w->head.scale != SCALE_GROUP) return 0;
    return w->head.group == 32 ? 5 : w->head.group == 64 ? 6 : 7;
}

static struct linear_out out_of(const struct product *p, const struct tensor *y) {
    const int32_t half = p->w->interleaved && !p->apart ? (int32_t)p->w->part_rows[0] : 0;
    return (struct linear_out){.y = y->data,
                               .bias = p->apart ? NULL : p->bias,
                               .stride = y->stride,
                               .type = (int32_t)y->type,
                               .cols = y->cols,
                               .half = half,
                               .swiglu = p->swiglu,
                               .pairs = y->stride % 2 == 0 && half % 2 == 0 &&
                                        (uintptr_t)y->data % (size_t)(2 * size_of(y->type)) == 0};
}

static void stream(const struct product *p, const struct tensor *y, const struct tensor *x) {
    const struct cuda_weight *w = p->w;
    struct cuda *c = p->c;
    const struct linear_args args = {.w = w->data,
                                     .scales = w->scales,
                                     .x = x->data,
                                     .out = out_of(p, y),
                                     .x_stride = x->stride,
                                     .m = x->rows,
                                     .cols = (int32_t)w->padded_cols,
                                     .tiles = (int32_t)(w->padded_rows / TILE_ROWS),
                                     .groups = (int32_t)w->groups,
                                     .group_shift = group_shift(w)};
    const struct linear_shape shape = {.weight = w->head.type,
                                       .m = x->rows,
                                       .tiles = args.tiles,
                                       .cols = args.cols,
                                       .groups = args.groups,
                                       .group_shift = args.group_shift,
                                       .y_type = y->type,
                                       .y_cols = y->cols,
                                       .swiglu = p->swiglu};
    struct launch l;
    linear_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, linear_launch(&l, c->stream, c->params.pdl, &args));
}

/* Rows [first, first + rows) of the weight, which lie row-major at `data`. */
static void multiply_own(const struct product *p, const struct tensor *y, const struct tensor *x,
                         const void *data, int64_t first, int64_t rows) {
    struct cuda *c = p->c;
    const struct gemm_shape shape = {.type = x->type,
                                     .m = x->rows,
                                     .rows = (int32_t)rows,
                                     .cols = (int32_t)p->w->padded_cols,
                                     .y_type = y->type,
                                     .swiglu = p->swiglu};
    const struct gemm_args args = {.x = x->data,
                                   .w = data,
                                   .out = out_of(p, y),
                                   .x_stride = x->stride,
                                   .m = x->rows,
                                   .cols = shape.cols,
                                   .rows = shape.rows,
                                   .first_row = (int32_t)first,
                                   .m_tiles = (x->rows + GEMM_TILE - 1) / GEMM_TILE,
                                   .n_tiles = (shape.rows + GEMM_TILE - 1) / GEMM_TILE};
    struct launch l;
    gemm_plan(&c->gpu, &shape, &l);
    if (l.card) cuda_launched(c, &l, gemm_launch(&l, c->stream, c->params.pdl, &args));
}

/* The same by cuBLASLt, which writes columns as the weight's rows lie. */
static bool multiply_lt(const struct product *p, const struct tensor *y, const struct tensor *x,
                        const void *data, int64_t first, int64_t rows) {
    if (p->swiglu || (p->w->interleaved && !p->apart) || !cuda_lt_available(p->c)) return false;
    struct cuda_weight w = *p->w;
    struct tensor part = *y;
    w.data = (void *)(uintptr_t)data;
    w.head.type = x->type;
    part.data = (char *)y->data + first * size_of(y->type);
    part.cols = (int32_t)least(rows, y->cols - first);
    if (part.cols <= 0) return true;
    return cuda_lt_linear(p->c, &part, x, &w);
}

static void multiply_rows(const struct product *p, const struct tensor *y, const struct tensor *x,
                          const void *data, int64_t first, int64_t rows) {
    if (!multiply_lt(p, y, x, data, first, rows)) multiply_own(p, y, x, data, first, rows);
}

/* Quantized weights become bf16, as many rows at a time as the slab takes. */
static void multiply_slabs(const struct product *p, const struct tensor *y,
                           const struct tensor *x) {
    const struct cuda_weight *w = p->w;
    struct cuda *c = p->c;
    char *slab = room_of(p, p->rooms.pad);
    const int64_t room = p->rooms.slab / (w->padded_cols * 2) / GEMM_TILE * GEMM_TILE;
    if (!cuda_expects(c, room > 0, "linear: more rows or columns than were planned for")) return;
    const int64_t row_bytes = w->padded_cols * dtype_bits(w->head.type) / 8;
    const int64_t scale_bytes = w->groups * (group_shift(w) ? 2 : 4);
    for (int64_t first = 0; first < w->padded_rows; first += room) {
        const int64_t rows = least(room, w->padded_rows - first);
        const struct slab_args args = {.from = (const char *)w->data + first * row_bytes,
                                       .scales = (const char *)w->scales + first * scale_bytes,
                                       .to = slab,
                                       .rows = (int32_t)rows,
                                       .cols = (int32_t)w->padded_cols,
                                       .type = (int32_t)w->head.type,
                                       .groups = (int32_t)w->groups,
                                       .group_shift = group_shift(w)};
        struct launch l;
        slab_plan(&c->gpu, SLAB_DEQUANTIZE, &args, &l);
        cuda_launched(c, &l, slab_launch(&l, c->stream, c->params.pdl, &args));
        multiply_rows(p, y, x, slab, first, rows);
    }
}

static void multiply(const struct product *p, const struct tensor *y, const struct tensor *x) {
    const enum dtype type = p->w->head.type;
    if (!p->many)
        stream(p, y, x);
    else if (is_quantized(type))
        multiply_slabs(p, y, x);
    else if (type != DT_F32)
        multiply_rows(p, y, x, p->w->data, 0, p->w->padded_rows);
    else if (!multiply_lt(p, y, x, p->w->data, 0, p->w->padded_rows))
        stream(p, y, x);
}

/* ---- around it --------------------------------------------------------------------------------
 */

/* Kernels read 16 bytes of x at a time, to the padded end of its rows. */
static bool fits(const struct product *p, const struct tensor *x) {
    return ((uintptr_t)x->data | (uintptr_t)(x->stride * size_of(x->type))) % 16 == 0 &&
           x->cols == p->w->padded_cols && x->stride < 1 << 24;
}

static struct tensor padded(const struct product *p, const struct tensor *x) {
    struct cuda *c = p->c;
    struct tensor to = {.data = room_of(p, 0),
                        .type = x->type,
                        .rows = x->rows,
                        .cols = (int32_t)p->w->padded_cols,
                        .stride = p->w->padded_cols};
    const struct slab_args args = {.from = x->data,
                                   .to = to.data,
                                   .from_stride = x->stride,
                                   .rows = x->rows,
                                   .cols = to.cols,
                                   .type = (int32_t)x->type,
                                   .from_cols = x->cols};
    struct launch l;
    slab_plan(&c->gpu, SLAB_PAD, &args, &l);
    cuda_launched(c, &l, slab_launch(&l, c->stream, c->params.pdl, &args));
    return to;
}

/* y = SwiGLU of sums, or with bias; their columns are the weight's rows as they lie. */
static void finish(const struct product *p, const struct tensor *y, const struct tensor *sums) {
    struct cuda *c = p->c;
    struct slab_args args = {.from = sums->data,
                             .out = out_of(p, y),
                             .from_stride = sums->stride,
                             .rows = y->rows,
                             .cols = p->w->interleaved ? sums->cols : y->cols,
                             .up = p->gates && !p->w->interleaved ? y->cols : 0};
    args.out.bias = p->bias;
    args.out.swiglu = p->gates;
    args.out.half = p->w->interleaved ? (int32_t)p->w->part_rows[0] : 0;
    struct launch l;
    slab_plan(&c->gpu, SLAB_FINISH, &args, &l);
    cuda_launched(c, &l, slab_launch(&l, c->stream, c->params.pdl, &args));
}

static struct tensor rows_of(const struct tensor *t, int32_t first, int32_t rows) {
    struct tensor part = *t;
    part.data = (char *)t->data + first * t->stride * size_of(t->type);
    part.rows = rows;
    return part;
}

static bool expected(struct cuda *c, const struct tensor *y, const struct tensor *x,
                     const struct weight *w, const float *bias, bool swiglu) {
    const struct op_case ask = {
        .weight = w->type, .scale = w->scale, .group = w->group, .activation = x->type};
    const int64_t rows = swiglu ? 2 * (int64_t)y->cols : y->cols;
    return cuda_expects(c, x->cols == w->cols && rows == w->rows && x->rows == y->rows,
                        "linear: x, y and the weight do not fit") &&
           cuda_expects(c, refusal(&ask) == NULL, "linear: no kernel for these types") &&
           cuda_expects(c, y->type == x->type || y->type == DT_F32,
                        "linear: y has the type of x, or f32") &&
           cuda_expects(c, !swiglu || bias == NULL, "linear: SwiGLU takes no bias");
}

void cuda_linear(struct device *device, struct tensor *y, const struct tensor *x,
                 const struct weight *weight, const float *bias, enum epilogue epilogue) {
    struct cuda *c = cuda_of(device);
    const struct cuda_weight *w = (const struct cuda_weight *)weight;
    const bool swiglu = epilogue == EPI_SWIGLU;
    if (!expected(c, y, x, weight, bias, swiglu) || x->rows == 0 || y->cols == 0) return;
    struct product p = {.c = c,
                        .w = w,
                        .bias = bias,
                        .gates = swiglu,
                        .many = x->rows > FEW_ROWS,
                        .rooms = rooms_for(&c->bounds)};
    /* SwiGLU and bias apart from the product: where gate and up are not interleaved, or cuBLASLt
       multiplies. Interleaved parts without them are for our kernels, which know where their rows
       belong. */
    const bool lt = p.many && cuda_lt_available(c);
    p.apart = swiglu ? !w->interleaved || lt : bias && lt;
    p.swiglu = swiglu && !p.apart;
    struct tensor sums = {.type = DT_F32,
                          .cols = (int32_t)(w->interleaved ? w->padded_rows : w->head.rows),
                          .stride = round_up(w->padded_rows, 4)};
    if (p.apart) sums.data = room_of(&p, p.rooms.pad + p.rooms.slab);
    const bool pads = !fits(&p, x);
    int64_t pass = x->rows;
    if (pads) pass = least(pass, p.rooms.pad / (w->padded_cols * size_of(x->type)));
    if (weight->type == DT_F32) pass = least(pass, F32_ROWS);
    if (p.apart) pass = least(pass, p.rooms.sums / (sums.stride * 4));
    if (!cuda_expects(c, pass > 0, "linear: more rows or columns than were planned for")) return;
    for (int32_t first = 0; first < x->rows; first += (int32_t)pass) {
        const int32_t rows = (int32_t)least(pass, x->rows - first);
        struct tensor from = rows_of(x, first, rows);
        const struct tensor to = rows_of(y, first, rows);
        if (pads) from = padded(&p, &from);
        sums.rows = rows;
        multiply(&p, p.apart ? &sums : &to, &from);
        if (p.apart) finish(&p, &to, &sums);
    }
}
