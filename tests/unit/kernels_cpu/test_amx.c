/* SPDX-License-Identifier: Apache-2.0 */
/* Level amx where its registers are in memory: these against exact arithmetic, products of all
   shapes against sums, and what a device does where the registers are missing or wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/random.h"
#include "kernels/cpu/cpu.h"
#include "tests/support/op_amx.h"

static void columns_of(const char *hex, uint16_t *out) {
    for (int i = 0; i < 32; i++) {
        char digits[5] = {0};
        memcpy(digits, hex + 4 * i, 4);
        out[i] = (uint16_t)strtoul(digits, NULL, 16);
    }
}

static void registers_compute_as_the_manual_says(void **state) {
    (void)state;
    char path[512], x[160], w[160], c[16], result[16];
    snprintf(path, sizeof path, "%s/tests/golden/tile_golden.tsv",
             getenv("SOURCE_DIR") ? getenv("SOURCE_DIR") : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int n = 0;
    for (; fscanf(f, "%159s %159s %15s %15s", x, w, c, result) == 4; n++) {
        uint16_t a[32], b[32];
        columns_of(x, a);
        columns_of(w, b);
        const float got = memory_amx_one(f32_from_bits((uint32_t)strtoul(c, NULL, 16)), a, b);
        if (strcmp(result, "nan") == 0) {
            assert_true(isnan(got));
            continue;
        }
        const float want = f32_from_bits((uint32_t)strtoul(result, NULL, 16));
        if (!(got == want)) fail_msg("row %d: %a, not %a", n + 1, (double)got, (double)want);
    }
    fclose(f);
    assert_int_equal(n, 400);
}

enum { MOST_ROWS = 75, MOST_COLS = 1100, GAP = 3 };

/* x, panels and c have poison around them: NaN to whoever reads it, another pattern to whoever
   writes it. */
static void product_of(int m, int n_panels, int64_t k) {
    const int64_t ldx = k + GAP, ldc = n_panels * PANEL + GAP, words = (k + 1) / 2;
    const size_t n_x = (size_t)(m * ldx), n_c = (size_t)(m * ldc);
    const size_t step = (size_t)words * PANEL * 4 + 64, w_bytes = (size_t)n_panels * step;
    uint16_t *x = must_alloc(2 * n_x + 1);
    float *c = must_alloc(4 * n_c + 1);
    char *panels = must_alloc(w_bytes);
    const uint64_t key = random_key(5, (uint64_t)(m * 100000 + n_panels * 10000 + k));
    uint64_t at = 0;
    memset(x, 0xff, 2 * n_x);
    memset(c, 0xff, 4 * n_c);
    memset(panels, 0xff, w_bytes);
    for (int i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++)
            x[i * ldx + j] = bf16_from_f32((float)random_below(key, at++, 41) - 20);
    for (int p = 0; p < n_panels; p++)
        for (int64_t j = 0; j < 2 * words; j++)
            for (int lane = 0; lane < PANEL; lane++) {
                const float v = j < k ? (float)random_below(key, at++, 41) - 20 : 0;
                ((uint16_t *)(void *)(panels + (size_t)p * step))[j / 2 * 32 + 2 * lane + j % 2] =
                    bf16_from_f32(v);
            }
    memory_amx_product(&(struct pairs){.c = c,
                                       .x = x,
                                       .panels = panels,
                                       .ldc = ldc,
                                       .ldx = ldx,
                                       .k = k,
                                       .step = (int64_t)step,
                                       .m = m,
                                       .n_panels = n_panels});
    for (int i = 0; i < m; i++)
        for (int64_t j = 0; j < ldc; j++) {
            const float got = c[i * ldc + j];
            float want = 0;
            if (j >= n_panels * PANEL) {
                assert_int_equal(f32_bits(got), 0xffffffff);
                continue;
            }
            const uint16_t *w =
                (const uint16_t *)(const void *)(panels + (size_t)(j / PANEL) * step);
            for (int64_t kk = 0; kk < k; kk++)
                want += bf16_to_f32(x[i * ldx + kk]) *
                        bf16_to_f32(w[kk / 2 * 32 + 2 * (j % PANEL) + kk % 2]);
            if (!(got == want))
                fail_msg("M %d, %d panels, K %lld: (%d, %lld) is %g, not %g", m, n_panels,
                         (long long)k, i, (long long)j, (double)got, (double)want);
        }
    free(x);
    free(c);
    free(panels);
}

static void products_of_all_shapes_are_exact_on_whole_numbers(void **state) {
    (void)state;
    static const int rows[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 49, 64, MOST_ROWS};
    static const int64_t cols[] = {0,  1,  2,  3,   31,  32,  33,  63,       64,
                                   65, 96, 97, 511, 512, 513, 545, MOST_COLS};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int n_panels = 1; n_panels <= PAIR_PANELS; n_panels += n_panels < 5 ? 1 : 6)
            for (size_t j = 0; j < sizeof cols / sizeof *cols; j++)
                if (cols[j] < 200 || n_panels % 2 == 1) product_of(rows[i], n_panels, cols[j]);
}

/* ---- what the device must notice ---- */

static void forgets_the_last_column(const struct pairs *p) {
    struct pairs less = *p;
    less.k--;
    memory_amx_product(&less);
}

static void swaps_panels(const struct pairs *p) {
    struct pairs other = *p;
    other.panels = (const char *)p->panels + p->step;
    other.step = -p->step;
    other.n_panels = 2;
    memory_amx_product(p);
    memory_amx_product(&other);
}

static void does_nothing(const struct pairs *p) { (void)p; }

static void drops_a_row(const struct pairs *p) {
    struct pairs less = *p;
    less.m--;
    if (less.m > 0) memory_amx_product(&less);
}

static void has_no_infinity(const struct pairs *p) {
    memory_amx_product(p);
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n_panels * PANEL; j++)
            if (!isfinite(p->c[i * p->ldc + j])) p->c[i * p->ldc + j] = 0;
}

static void forgets_the_last_word(const struct code_tile *t) {
    struct code_tile less = *t;
    less.words--;
    memory_codes_amx.tile[DT_I8](&less);
}

static void adds_nothing(const struct code_tile *t) {
    if (!t->add) memory_codes_amx.tile[DT_I8](t);
}

static void wrong_products_are_noticed(void **state) {
    (void)state;
    assert_true(cpu_pairs_right(memory_amx_product));
    assert_false(cpu_pairs_right(forgets_the_last_column));
    assert_false(cpu_pairs_right(swaps_panels));
    assert_false(cpu_pairs_right(does_nothing));
    assert_false(cpu_pairs_right(drops_a_row));
    assert_false(cpu_pairs_right(has_no_infinity));
    struct cpu_code_kernels wrong = memory_codes_amx;
    assert_true(cpu_codes_right(&wrong));
    wrong.tile[DT_I8] = forgets_the_last_word;
    assert_false(cpu_codes_right(&wrong));
    wrong.tile[DT_I8] = adds_nothing;
    assert_false(cpu_codes_right(&wrong));
}

/* Runs, or says why not; what a device keeps beside bf16 weights follows. */
static void the_level_runs_or_says_why_not(void **state) {
    (void)state;
    struct arena *arena = arena_create();
    struct cpu_params params;
    struct device *device = NULL;
    struct err err = {0};
    option_defaults(device_cpu.params, &params, arena);
    assert_int_equal(
        option_parse(option_find(device_cpu.params, "isa"), "amx", &params, arena, &err), 0);
    params.threads = 1;
    const char *reason = topology_tiles();
    const int code = device_open(&device, &device_cpu, &params, &err);
    const bool runs = code == 0;
    if (cpu_kernels_of(ISA_AMX) == NULL) reason = "this build has no such level";
    assert_true(runs == (reason == NULL));
    if (!runs) {
        assert_int_equal(code, ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, reason));
    }
    assert_int_equal(device_activation(&device_cpu, DT_BF16), runs ? DT_BF16 : DT_F32);
    assert_int_equal(device_activation(&device_cpu, DT_F32), DT_F32);
    assert_int_equal(device_activation(&device_cpu, DT_I8), DT_F32);
    printf("level amx: %s\n", runs ? "runs" : err.text);
    device_close(&device);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_compute_as_the_manual_says),
        cmocka_unit_test(products_of_all_shapes_are_exact_on_whole_numbers),
        cmocka_unit_test(wrong_products_are_noticed),
        cmocka_unit_test(the_level_runs_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
