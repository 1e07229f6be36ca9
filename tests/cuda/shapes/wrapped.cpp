/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' own sources with int32_t where they say int64_t; what they include keeps its own.
   Compiled with -fwrapv: overflow shall wrap, as it does on the device. */
#include "tests/cuda/shapes/wrapped.h"

#include <math.h>
#include <string.h>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_plain.card.h"
#include "kernels/cuda/codes.cuh"
#include "kernels/cuda/embed.card.h"
#include "kernels/cuda/embed.h"
#include "kernels/cuda/rope_append.card.h"
#include "kernels/cuda/rope_append.h"
#include "kernels/cuda/table.cuh"

#undef KERNEL_TABLE
#define KERNEL_TABLE(...)
#define int64_t         int32_t
#define embed_rows      wrapped_embed_rows
#define rope_append_512 wrapped_rope_append_512
#define rope_append_any wrapped_rope_append_any
#define attention_plain wrapped_attention_plain
#include "kernels/cuda/embed.cu"
#undef KERNEL
#include "kernels/cuda/rope_append.cu"
#undef KERNEL
#include "kernels/cuda/attention_plain.cu"

void (*wrapped_kernel(const char *name))() {
    if (!strcmp(name, "embed_rows")) return reinterpret_cast<void (*)()>(wrapped_embed_rows);
    if (!strcmp(name, "rope_append_512"))
        return reinterpret_cast<void (*)()>(wrapped_rope_append_512);
    if (!strcmp(name, "attention_plain"))
        return reinterpret_cast<void (*)()>(wrapped_attention_plain);
    return nullptr;
}
