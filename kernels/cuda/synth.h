/* SPDX-License-Identifier: Apache-2.0 */
/* synth: synthetic weights made on the device, the same bytes as packing makes of rows from the
   host. */
#ifndef KERNELS_CUDA_SYNTH_H
#define KERNELS_CUDA_SYNTH_H
#include <stdint.h>

#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SYNTH_PARTS = 3 }; /* q, k, v */
struct synth_part {       /* see base/synthetic.h */
    uint64_t key;
    float unit;
    int32_t tail;
    int32_t rows; /* 0: no such part */
};

struct synth_args {
    void *data, *scales; /* as struct cuda_weight has them; scales of padding are 0 already */
    struct synth_part part[SYNTH_PARTS];
    int32_t rows, cols;  /* padded */
    int32_t real_cols;   /* before padding */
    int32_t type;        /* of the weight */
    int32_t group;       /* columns of a scale; 0: one f32 per row */
    int32_t groups;      /* scales of a row */
    int32_t interleaved; /* two parts, by 8 rows */
    int32_t whole;       /* one scale for a whole part */
};

/* floats: values into data.
   maxima: absmax/qmax of each row into scales, or its absmax where the part has one scale.
   spread: from those the scale of the part, to each of its rows.
   codes: into data; scales come from there, or go there where they are those of groups. */
enum synth_task { TASK_FLOATS, TASK_MAXIMA, TASK_SPREAD, TASK_CODES };
extern const struct card synth_cards[]; /* one a task, in this order */
void synth_plan(const struct gpu *, enum synth_task, const struct synth_args *, struct launch *);

#ifdef __cplusplus
}
#endif
#endif
