/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes of level amx once more, over tile registers in memory: the same source. */
#define TILES_HEADER  "tests/support/tile_registers.h"
#define OTHER_CODES   cpu_codes_scalar
#define OTHER_FLOATS  cpu_kernels_scalar
#define cpu_codes_amx memory_codes_amx
#include "kernels/cpu/amx/codes.c" /* NOLINT: under another name */
