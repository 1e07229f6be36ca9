/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of level amx as the compiler made them: where the processor has them not, each
   is a fault (SIGILL), whose handler does in memory what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>

#include "base/arena.h"
#include "base/random.h"
#include "tests/support/op_amx.h"
#include "tests/support/tile_registers.h"

static const struct cpu_kernels *level;
static bool trapped;
static long n_trapped;

/* ---- one instruction: VEX of three bytes, map 0F38 ---- */

struct decoded {
    int prefix, opcode, mod, reg, rm, other; /* prefix: 0 none, 1 66, 2 F3, 3 F2; other: vvvv */
    unsigned char *address;                  /* of mod < 3 */
    int64_t stride;                          /* of an index, which tiles do not multiply */
    int bytes;
};

static uint64_t general(const ucontext_t *u, int n) {
    static const int place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)u->uc_mcontext.gregs[place[n]];
}

static bool decode(const ucontext_t *u, struct decoded *d) {
    const unsigned char *at = (const unsigned char *)(uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    if (at[0] != 0xc4 || (at[1] & 31) != 2 || (at[2] & 0x84) != 0) return false;
    const int index_high = at[1] & 0x40 ? 0 : 8, base_high = at[1] & 0x20 ? 0 : 8;
    *d = (struct decoded){.prefix = at[2] & 3, .opcode = at[3], .mod = at[4] >> 6, .bytes = 5};
    d->reg = at[4] >> 3 & 7;
    d->rm = at[4] & 7;
    d->other = 15 - (at[2] >> 3 & 15);
    if ((at[1] & 0x80) == 0) return false; /* there is no ninth tile */
    if (d->mod == 3) return true;
    uint64_t address;
    if (d->rm == 4) {
        const unsigned char sib = at[5];
        const int index = (sib >> 3 & 7) + index_high, base = (sib & 7) + base_high;
        d->bytes++;
        if (d->mod == 0 && (sib & 7) == 5) return false; /* no base: no compiler makes it here */
        address = general(u, base);
        if (index != 4) d->stride = (int64_t)(general(u, index) << (sib >> 6));
    } else {
        if (d->mod == 0 && d->rm == 5) return false; /* from rip on: neither */
        address = general(u, d->rm + base_high);
    }
    int32_t offset = 0;
    if (d->mod == 1) offset = (int8_t)at[d->bytes];
    if (d->mod == 2) memcpy(&offset, at + d->bytes, sizeof offset);
    d->bytes += d->mod == 1 ? 1 : d->mod == 2 ? 4 : 0;
    d->address = (unsigned char *)(uintptr_t)(address + (uint64_t)(int64_t)offset);
    return true;
}

static bool perform(const struct decoded *d) {
    enum { NONE, OPERAND, F3, F2 };
    const bool memory = d->mod < 3;
    if (d->opcode == 0x49 && d->prefix == NONE && memory && d->reg == 0) {
        struct tile_config config;
        memcpy(&config, d->address, sizeof config);
        tiles_configure(&config);
    } else if (d->opcode == 0x49 && d->prefix == NONE && !memory && d->reg == 0 && d->rm == 0) {
        tiles_release();
    } else if (d->opcode == 0x49 && d->prefix == F2 && !memory && d->rm == 0) {
        tile_zero(d->reg);
    } else if (d->opcode == 0x4b && d->prefix == F2 && memory && d->rm == 4) {
        tile_load(d->reg, d->address, d->stride);
    } else if (d->opcode == 0x4b && d->prefix == F3 && memory && d->rm == 4) {
        tile_store(d->reg, d->address, d->stride);
    } else if (d->opcode == 0x5c && d->prefix == F3 && !memory && d->other < 8) {
        tile_multiply_bf16(d->reg, d->rm, d->other);
    } else if (d->opcode == 0x5e && d->prefix == F2 && !memory && d->other < 8) {
        tile_multiply_i8(d->reg, d->rm, d->other);
    } else {
        return false;
    }
    return true;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    struct decoded d;
    (void)number, (void)info;
    if (!decode(u, &d) || !perform(&d)) abort();
    u->uc_mcontext.gregs[REG_RIP] += d.bytes;
    n_trapped++;
}

/* ---- tests ---- */

/* In each: cmocka has a handler of its own around it. */
static void catch_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    if (trapped) sigaction(SIGILL, &action, NULL);
    n_trapped = 0;
}

static void products_are_right(void **state) {
    (void)state;
    if (level == NULL) skip();
    catch_faults();
    assert_true(cpu_pairs_right(level->pairs));
    if (trapped) assert_true(n_trapped > 500);
    n_trapped = 0;
    assert_true(cpu_codes_right(cpu_code_kernels_of(ISA_AMX)));
    if (trapped) assert_true(n_trapped > 200);
}

/* Numbers of all sizes: the instructions come in the order in which the source says them. */
static void products_are_those_of_registers_in_memory(void **state) {
    (void)state;
    if (level == NULL || !trapped) skip();
    catch_faults();
    static const int shapes[][3] = {/* rows, panels, columns */
                                    {1, 4, 70},  {7, 5, 33},   {16, 3, 64},  {17, 2, 31},
                                    {32, 4, 64}, {33, 5, 545}, {63, 1, 513}, {80, 4, 100}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int m = shapes[i][0], n_panels = shapes[i][1], k = shapes[i][2];
        const size_t words = (size_t)(k + 1) / 2, n_c = (size_t)(m * n_panels * PANEL);
        uint16_t *x = must_alloc((size_t)(m * k) * 2),
                 *w = must_alloc((size_t)n_panels * words * 64);
        float *got = must_alloc(n_c * 4), *want = must_alloc(n_c * 4);
        const uint64_t key = random_key(3, i);
        for (int j = 0; j < m * k; j++)
            x[j] = bf16_from_f32((float)random_unit(key, (uint64_t)j) - 0.5f);
        for (size_t j = 0; j < (size_t)n_panels * words * 32; j++)
            w[j] = bf16_from_f32((float)random_unit(key + 1, j) - 0.5f);
        for (size_t p = 0; p < (size_t)n_panels && k % 2 == 1; p++)
            for (size_t lane = 0; lane < PANEL; lane++)
                w[(p * words + words - 1) * 32 + 2 * lane + 1] = 0;
        struct pairs pairs = {.c = got,
                              .x = x,
                              .panels = w,
                              .ldc = n_panels * PANEL,
                              .ldx = k,
                              .k = k,
                              .step = (int64_t)words * 64,
                              .m = m,
                              .n_panels = n_panels};
        level->pairs(&pairs);
        pairs.c = want;
        memory_amx_product(&pairs);
        assert_memory_equal(got, want, n_c * 4);
        free(x);
        free(w);
        free(got);
        free(want);
    }
}

/* The peak does as many products as it says, on whole tiles. */
static void the_peak_multiplies_as_often_as_it_says(void **state) {
    (void)state;
    enum { PRODUCT = 1 << 14, AROUND = 20 }; /* configured, loaded, stored, released */
    if (level == NULL || !trapped) skip();
    catch_faults();
    for (int n = 1; n < 10; n++) {
        n_trapped = 0;
        const float sum = level->pairs_peak((int64_t)n * PRODUCT);
        assert_true(sum == memory_amx_peak((int64_t)n * PRODUCT));
        assert_in_range(n_trapped, n, n + AROUND);
    }
}

int main(void) {
    level = cpu_kernels_of(ISA_AMX);
    trapped = topology_tiles() != NULL;
    if (level == NULL) printf("this build has no level amx\n");
    if (level != NULL && isa_best() < ISA_AVX512) { /* which lies between the tiles' instructions */
        printf("skipped: no AVX-512 here, of which such code is full\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(products_are_those_of_registers_in_memory),
        cmocka_unit_test(the_peak_multiplies_as_often_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    printf("skipped: AMX is for x86-64\n");
    return 77;
}
#endif
