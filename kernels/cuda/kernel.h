/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel declares (its card), and what a launch of it is: plain C, no CUDA header, so that
   plans, gates, lists and bounds are made on any machine. */
#ifndef KERNELS_CUDA_KERNEL_H
#define KERNELS_CUDA_KERNEL_H
#include <stdbool.h>
#include <stdint.h>

/* One instantiation of a kernel. OP.card.h lists them once, as
       #define OP_CARDS(CARD) CARD(name, type, d, threads, min_blocks, regs_max, smem, stages,
   stage_bytes, ldg128_min, hmma_min, local_pct, proof) ... The .cu makes each `extern "C"
   __global__` function of that name from it, with the launch bounds; OP.plan.c the table. */
struct card {
    const char *name;    /* of the function, in PTX and SASS too */
    const char *type;    /* of weights, cache or elements: "bf16", "int4", ... */
    int32_t d;           /* head size, or tiles of 8 tokens: the op's own size parameter */
    int32_t threads;     /* of a block */
    int32_t min_blocks;  /* resident blocks per SM that the launch bounds ask for */
    int32_t regs_max;    /* gate */
    int32_t smem;        /* most dynamic shared bytes of a launch */
    int32_t stages;      /* independent loads, or copy stages, in flight */
    int32_t stage_bytes; /* bytes of one stage of one block */
    int32_t ldg128_min;  /* 128-bit global loads that must be in the code */
    int32_t hmma_min;    /* tensor instructions that must be in the code */
    double local_pct;    /* most share of local-memory instructions, percent */
    const char *proof;   /* what shows that it is right: "emu, ptx" */
};
#define CARD_ROW(name, type, d, threads, min_blocks, regs_max, smem, stages, stage_bytes,          \
                 ldg128_min, hmma_min, local_pct, proof)                                           \
    {#name,  #type,       d,          threads,  min_blocks, regs_max, smem,                        \
     stages, stage_bytes, ldg128_min, hmma_min, local_pct,  proof},

/* The device's limits that a plan depends on; planned for `gpu_h200` where there is no device. */
struct gpu {
    int32_t sm_count, cc; /* 90: compute capability 9.0 */
    int32_t smem_block;   /* most dynamic shared bytes of a block (opt-in) */
    int64_t l2_bytes;
};
extern const struct gpu gpu_h200, gpu_a100;

struct launch {
    const struct card *card; /* NULL: nothing to launch */
    uint32_t grid[3];
    uint32_t shared_bytes;
    double bytes, flops; /* what it must move and compute, from shapes alone */
};

/* All cards, op after op, for `bench list kernels`, gates and bounds: generated from the tables of
 * the ops. */
struct card_table {
    const char *op;
    const struct card *cards;
    int n;
};
extern const struct card_table cuda_card_tables[]; /* ends with op NULL */

#endif
