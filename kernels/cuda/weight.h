/* SPDX-License-Identifier: Apache-2.0 */
/* How a weight lies in the CUDA device's memory: plain C, no CUDA header. */
#ifndef KERNELS_CUDA_WEIGHT_H
#define KERNELS_CUDA_WEIGHT_H
#include "kernels/device.h"

/* Floats: row-major, cols padded to PAD_COLS with zeros, rows to 16. A weight of two stacked parts
   (gate, up of SwiGLU) interleaves them by 8 rows: tile j holds rows 8j ... 8j + 7 of part 0, then
   of part 1. Quantized: in the order of mma fragments, see frag.cuh. */
enum { PAD_COLS = 64, TILE_ROWS = 16 };
struct cuda_weight {
    struct weight head;
    void *data;
    void *scales; /* (padded_rows, groups): f32 per row, where a tensor's one scale stands at each
                     of its rows, so that no kernel asks for parts; f16 per group, as stored by
                     quant.h. Rows in the order of data; 0 for padding */
    int64_t padded_rows, padded_cols;
    int64_t groups;       /* scales of a row: 1 for tensor and row */
    int64_t part_rows[2]; /* rows of each part; [1] = 0 for one part */
    int n_parts;
    bool interleaved; /* two equal parts, by 8 rows */
};

#endif
