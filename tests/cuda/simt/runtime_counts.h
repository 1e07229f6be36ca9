/* SPDX-License-Identifier: Apache-2.0 */
/* The counts, for the runtime's own files to write. */
#ifndef TESTS_CUDA_SIMT_RUNTIME_COUNTS_H
#define TESTS_CUDA_SIMT_RUNTIME_COUNTS_H
#include "tests/cuda/simt/runtime.h"

extern struct simt_counts simt_counts_now;
namespace simt {
static struct simt_counts &counts = simt_counts_now;
}
#endif
