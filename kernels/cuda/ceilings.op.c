/* SPDX-License-Identifier: Apache-2.0 */
/* copy, read, triad and fma_peak of the CUDA device. They need no plan and no room. */
#include <stddef.h>

#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launches.h"

bool cuda_ceilings_supports(const struct op_case *c, const char **kernel_or_reason) {
    switch (c->activation) {
    case DT_F32: *kernel_or_reason = "16 bytes a load; f32 multiply-adds"; return true;
    case DT_F16: *kernel_or_reason = "mma.sync m16n8k16 of f16, sums in f32"; return true;
    case DT_BF16: *kernel_or_reason = "mma.sync m16n8k16 of bf16, sums in f32"; return true;
    default: *kernel_or_reason = "multiply-adds are of f32, f16 or bf16"; return false;
    }
}

int64_t cuda_ceilings_room(const struct gpu *gpu, const struct step_bounds *bounds) {
    (void)gpu, (void)bounds;
    return 0;
}

static void run(struct cuda *c, enum ceiling which, enum dtype type, int64_t amount,
                struct ceilings_args args) {
    struct launch l;
    ceilings_plan(&c->gpu, which, type, amount, &l);
    args.n = which == CEILING_FMA ? ceilings_steps(type, amount) : amount / CEILING_PAGE;
    if (l.card) cuda_launched(c, &l, ceilings_launch(&l, c->stream, c->params.pdl, &args));
}

static bool whole_pages(struct cuda *c, int64_t bytes) {
    return cuda_expects(c, bytes % CEILING_PAGE == 0, "ceilings: whole pages of 4096 bytes only");
}

void cuda_copy(struct device *device, void *to, const void *from, int64_t bytes) {
    struct cuda *c = cuda_of(device);
    if (whole_pages(c, bytes))
        run(c, CEILING_COPY, DT_F32, bytes, (struct ceilings_args){.to = to, .from = from});
}

void cuda_read(struct device *device, const void *from, int64_t bytes, float *sink) {
    struct cuda *c = cuda_of(device);
    const struct ceilings_args args = {.from = from, .sink = sink, .summand = 0x5eed5eedu};
    if (whole_pages(c, bytes)) run(c, CEILING_READ, DT_F32, bytes, args);
}

void cuda_triad(struct device *device, float *a, const float *b, const float *c, float s,
                int64_t n) {
    const int64_t bytes = n * (int64_t)sizeof(float);
    const struct ceilings_args args = {.to = a, .from = b, .more = c, .factor = f32_bits(s)};
    if (whole_pages(cuda_of(device), bytes))
        run(cuda_of(device), CEILING_TRIAD, DT_F32, bytes, args);
}

void cuda_fma_peak(struct device *device, enum dtype type, int64_t flops) {
    struct cuda *c = cuda_of(device);
    const bool tensor = type == DT_F16 || type == DT_BF16;
    const struct ceilings_args args = {.factor = f32_bits(0.5f),
                                       .summand = tensor ? 0x7fc0deadu : f32_bits(1.0f)};
    if (!cuda_expects(c, tensor || type == DT_F32, "fma_peak: f32, f16 or bf16") ||
        !cuda_expects(c, flops % CEILING_FLOPS == 0,
                      "fma_peak: whole multiples of 2^22 flops only"))
        return;
    run(c, CEILING_FMA, type, flops, args);
}
