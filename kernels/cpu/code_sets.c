/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions multiply codes, of those that this build and this machine have. */
#include <stddef.h>

#include "kernels/cpu/code_kernels.h"

struct set {
    const struct cpu_code_kernels *kernels;
    enum isa isa;
    bool dot; /* whether isa_has_int8_dot must hold */
};

/* By level, the better one of a level last. */
static const struct set sets[] = {
    {&cpu_codes_scalar, ISA_SCALAR, false},
#ifdef BENCH_CPU_AVX2
    {&cpu_codes_avx2, ISA_AVX2, false},
#endif
#ifdef BENCH_CPU_AVX512
    {&cpu_codes_avx512, ISA_AVX512, false}, {&cpu_codes_vnni, ISA_AVX512, true},
#endif
#ifdef BENCH_CPU_AMX
    {&cpu_codes_amx, ISA_AMX, false},
#endif
#ifdef BENCH_CPU_NEON
    {&cpu_codes_neon, ISA_NEON, false},     {&cpu_codes_dotprod, ISA_NEON, true},
#endif
};
enum { N_SETS = sizeof sets / sizeof *sets };

const struct cpu_code_kernels *cpu_code_kernels_of(enum isa isa) {
    const struct cpu_code_kernels *best = NULL;
    for (int i = 0; i < N_SETS; i++)
        if (sets[i].isa == isa && (!sets[i].dot || isa_has_int8_dot(isa))) best = sets[i].kernels;
    return best;
}

int cpu_code_kernels_all(const struct cpu_code_kernels *out[CODE_SETS]) {
    const enum isa best = isa_best();
    int n = 0;
    for (int i = 0; i < N_SETS; i++)
        if (sets[i].isa <= best && (!sets[i].dot || isa_has_int8_dot(sets[i].isa)))
            out[n++] = sets[i].kernels;
    return n;
}
