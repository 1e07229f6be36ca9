/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of every level against plain arithmetic in double: functions, conversions,
 * panels, tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "kernels/cpu/cpu.h"

static const struct cpu_kernels *levels[N_ISAS];
static int n_levels;
static uint64_t key, draw;

static float real(float most) { return (float)(random_unit(key, draw++) * 2 - 1) * most; }

static void reals(float *v, int64_t n, float most) {
    for (int64_t i = 0; i < n; i++) v[i] = real(most);
}

#define near(level, what, got, want, relative)                                                     \
    do {                                                                                           \
        const double g = (double)(got), w = (double)(want);                                        \
        if (!(fabs(g - w) <= (relative)*fabs(w)))                                                  \
            fail_msg("%s: %s: %.9g, expected %.9g", (level)->name, what, g, w);                    \
    } while (0)

/* Both halves; the maximum. */
static float softmax(const struct cpu_kernels *level, float *s, int64_t n, int64_t lo, int64_t hi,
                     float *sum) {
    const float max = level->mask(s, n, lo, hi);
    *sum = level->exps(s, n, max);
    return max;
}

/* The exponential, seen through softmax: every value beside a maximum of 0. */
static void exponential_is_within_two_ulp(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++) {
        float worst = 0;
        for (int round = 0; round < 4000; round++) {
            float x[16], s[16], sum;
            double total = 0;
            reals(x, 16, round % 2 ? 43.5f : 1.0f);
            for (int i = 0; i < 16; i++) x[i] = round % 2 ? x[i] - 43.5f : -fabsf(x[i]);
            x[round % 16] = 0;
            memcpy(s, x, sizeof s);
            assert_true(softmax(levels[l], s, 16, 0, 16, &sum) == 0.0f);
            for (int i = 0; i < 16; i++) {
                const double want = exp((double)x[i]);
                const float error = (float)(fabs((double)s[i] - want) / want);
                if (error > worst) worst = error;
                total += want;
            }
            near(levels[l], "sum", sum, total, 1e-6);
        }
        if (!(worst <= 2 * 0x1p-23f))
            fail_msg("%s: worst error %g", levels[l]->name, (double)worst);
    }
}

static void softmax_sees_only_its_range(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++)
        for (int64_t n = 16; n <= 64; n += 16)
            for (int64_t lo = 0; lo <= n; lo += 5)
                for (int64_t hi = 0; hi <= n; hi += 7) {
                    float s[64], x[64], sum, max = -INFINITY;
                    reals(x, n, 5.0f);
                    for (int64_t i = 0; i < n; i++)
                        if (i < lo || i >= hi)
                            x[i] = i % 2 ? NAN : 1e30f; /* must not be looked at */
                    memcpy(s, x, sizeof s);
                    for (int64_t i = lo; i < hi; i++) max = x[i] > max ? x[i] : max;
                    const float got = softmax(levels[l], s, n, lo, hi, &sum);
                    assert_true(got == max);
                    double total = 0;
                    for (int64_t i = 0; i < n; i++) {
                        const double want = i < lo || i >= hi ? 0 : exp((double)(x[i] - max));
                        near(levels[l], "weight", s[i], want, 3e-7);
                        total += want;
                    }
                    near(levels[l], "sum", sum, total, 1e-6);
                }
}

static void joining_parts_is_one_softmax(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++)
        for (int n = 1; n < 40; n += 3) {
            float o[64] = {0}, m = -INFINITY, total = 0, part[3][64], part_m[3], part_l[3];
            double want[64] = {0}, sum = 0, max = -INFINITY;
            for (int p = 0; p < 3; p++) {
                reals(part[p], n, 1.0f);
                part_m[p] = p == 1 ? -INFINITY : real(20.0f); /* the second part saw no position */
                part_l[p] = p == 1 ? 0 : 1.5f;
                max = fmax(max, (double)part_m[p]);
            }
            for (int p = 0; p < 3; p++) {
                levels[l]->join(o, &m, &total, part[p], part_m[p], part_l[p], n);
                if (p == 1) continue;
                const double by = exp((double)part_m[p] - max);
                for (int i = 0; i < n; i++) want[i] += (double)part[p][i] * by;
                sum += 1.5 * by;
            }
            assert_true((double)m == max);
            near(levels[l], "sum", total, sum, 1e-6);
            for (int i = 0; i < n; i++) assert_true(fabs((double)o[i] - want[i]) < 1e-6);
            assert_true(o[n] == 0.0f);
        }
}

static void swiglu_and_norm_are_right_at_any_length(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++)
        for (int n = 1; n < 70; n++) {
            float gate[80], up[80], y[80] = {0}, residual[80], gain[80];
            reals(gate, n, 30.0f);
            reals(up, n, 3.0f);
            levels[l]->swiglu(y, gate, up, n);
            for (int i = 0; i < n; i++) {
                const double z = (double)gate[i];
                near(levels[l], "swiglu", y[i], z / (1 + exp(-z)) * (double)up[i], 1e-6);
            }
            assert_true(y[n] == 0.0f);
            reals(residual, n, 2.0f);
            reals(gain, n, 2.0f);
            double mean = 0, summed[80];
            for (int i = 0; i < n; i++) {
                summed[i] = (double)(float)(residual[i] + up[i]);
                mean += summed[i] * summed[i] / n;
            }
            levels[l]->add_norm(y, residual, up, gain, 1e-5f, n);
            for (int i = 0; i < n; i++) {
                assert_true((double)residual[i] == summed[i]);
                near(levels[l], "norm", y[i], summed[i] / sqrt(mean + 1e-5) * (double)gain[i],
                     1e-6);
            }
            assert_true(y[n] == 0.0f);
        }
}

static void silu_keeps_its_limits(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++) {
        const float gate[5] = {1e30f, -1e4f, NAN, 0.0f, 90.0f}, up[5] = {1, 1, 1, 1, 1};
        float y[5];
        levels[l]->swiglu(y, gate, up, 5);
        assert_true(y[0] == 1e30f);
        assert_true(fabsf(y[1]) < 1e-30f);
        assert_true(isnan(y[2]));
        assert_true(y[3] == 0.0f);
        assert_true(y[4] == 90.0f);
    }
}

/* All 2^16 codes one way; and back from floats around and between them, subnormals, infinities and
 * NaN among them. */
static void conversions_are_those_of_dtype(void **state) {
    (void)state;
    static uint16_t code[1 << 16], back[1 << 16];
    static float wide[1 << 16], between[1 << 16];
    for (int i = 0; i < 1 << 16; i++) code[i] = (uint16_t)i;
    for (int l = 0; l < n_levels; l++)
        for (int type = DT_F16; type <= DT_BF16; type++) {
            levels[l]->widen[type](wide, code, 1 << 16);
            for (int i = 0; i < 1 << 16; i++) {
                const float want = type == DT_F16 ? f16_to_f32(code[i]) : bf16_to_f32(code[i]);
                if (isnan(want) ? !isnan(wide[i]) : f32_bits(want) != f32_bits(wide[i]))
                    fail_msg("%s: %s code %d", levels[l]->name, dtype_names[type], i);
            }
            for (int shift = 0; shift < 5; shift++) {
                static const uint32_t steps[5] = {0, 1, 0x1000, 0x8000, 0x0fff};
                for (int i = 0; i < 1 << 16; i++)
                    between[i] = f32_from_bits(f32_bits(wide[i]) + steps[shift]);
                levels[l]->narrow[type](back, between, 1 << 16);
                for (int i = 0; i < 1 << 16; i++) {
                    const uint16_t want =
                        type == DT_F16 ? f16_from_f32(between[i]) : bf16_from_f32(between[i]);
                    const float a = type == DT_F16 ? f16_to_f32(back[i]) : bf16_to_f32(back[i]);
                    if (isnan(between[i]) ? !isnan(a) : want != back[i])
                        fail_msg("%s: %s of %a: %x, expected %x", levels[l]->name,
                                 dtype_names[type], (double)between[i], back[i], want);
                }
            }
        }
}

/* Panels of every type and odd lengths: what goes in comes out where kernels.h says. */
static void panels_are_laid_out_as_said(void **state) {
    (void)state;
    static float rows[16 * 50];
    for (int l = 0; l < n_levels; l++)
        for (int64_t k = 1; k < 50; k++) {
            for (int i = 0; i < 16 * 50; i++) rows[i] = (float)(i % 251); /* exact in every type */
            for (int type = 0; type < FLOAT_TYPES; type++) {
                static float panel[16 * 50 + 16];
                const uint16_t *half = (const uint16_t *)panel;
                levels[l]->pack[type](panel, rows, 50, k);
                for (int64_t c = 0; c < k; c++)
                    for (int64_t r = 0; r < 16; r++) {
                        const int64_t pair = c / 2 * 2 * 16 + 2 * r + c % 2;
                        const float got = type == DT_F32   ? panel[c * 16 + r]
                                          : type == DT_F16 ? f16_to_f32(half[c * 16 + r])
                                                           : bf16_to_f32(half[pair]);
                        if (got != rows[r * 50 + c])
                            fail_msg("%s: %s row %d column %d of %d", levels[l]->name,
                                     dtype_names[type], (int)r, (int)c, (int)k);
                    }
            }
        }
}

enum { MOST_K = 67, PANELS = 5 };

/* Tiles of every height, number of panels and odd length: against double, and bit for bit the same
   as row by row, panel by panel, with the sum over k cut in two. */
static void tiles_are_right_and_the_same_bits_in_any_cut(void **state) {
    (void)state;
    static float x[12 * 80], w[PANELS * 16 * MOST_K], c[12 * 100], one[12 * 100];
    static float panels[PANELS * 16 * (MOST_K + 1)];
    for (int l = 0; l < n_levels; l++)
        for (int type = 0; type < FLOAT_TYPES; type++)
            for (int m = 1; m <= levels[l]->rows; m++)
                for (int n = 1; n <= PANELS; n++) {
                    const int64_t k = 1 + random_below(key, draw++, MOST_K), cut = k / 2 / 2 * 2;
                    const enum dtype as = (enum dtype)type;
                    const int64_t step = cpu_columns_bytes(as, k);
                    reals(x, 12 * 80, 1.0f);
                    for (int i = 0; i < PANELS * 16 * MOST_K; i++)
                        w[i] = (float)(i * 7 % 33 - 16) / 16;
                    for (int p = 0; p < n; p++)
                        levels[l]->pack[type]((char *)panels + p * step, w + p * 16 * k, k, k);
                    struct tile t = {.c = c,
                                     .x = x,
                                     .panels = panels,
                                     .ldc = 100,
                                     .ldx = 80,
                                     .k = k,
                                     .k_step = cpu_columns_bytes(as, cpu_word_columns(as)),
                                     .step = step,
                                     .m = m,
                                     .n_panels = n,
                                     .ahead = panels};
                    for (int i = 0; i < 12 * 100; i++) c[i] = 77.0f;
                    levels[l]->panels[type](&t);
                    for (int r = 0; r < m; r++)
                        for (int j = 0; j < 100; j++) {
                            double want = j < n * 16 ? 0 : 77;
                            for (int64_t i = 0; i < k && j < n * 16; i++)
                                want += (double)x[r * 80 + i] * (double)w[j * k + i];
                            if (fabs((double)c[r * 100 + j] - want) > 1e-4)
                                fail_msg("%s: %s %d rows %d panels: %g, expected %g",
                                         levels[l]->name, dtype_names[type], m, n,
                                         (double)c[r * 100 + j], want);
                        }
                    for (int r = 0; r < m; r++)
                        for (int p = 0; p < n; p++) {
                            struct tile u = {.c = one + r * 100 + p * 16,
                                             .x = x + r * 80,
                                             .ldc = 100,
                                             .ldx = 80,
                                             .panels = (char *)panels + p * step,
                                             .k = cut,
                                             .k_step = cpu_columns_bytes(as, cpu_word_columns(as)),
                                             .step = step,
                                             .m = 1,
                                             .n_panels = 1,
                                             .ahead = panels};
                            levels[l]->panels[type](&u);
                            u.x += cut,
                                u.panels = (const char *)u.panels + cpu_columns_bytes(as, cut),
                                u.k = k - cut, u.add = 1;
                            levels[l]->panels[type](&u);
                            assert_memory_equal(u.c, c + r * 100 + p * 16, 16 * sizeof *c);
                        }
                }
}

/* Codes and scales of one product, laid out as kernels.h says. */
struct coded {
    enum dtype type;
    int64_t k, group; /* group 0: no scales */
    float value[PANELS * 16][MOST_K], scale[PANELS * 16][MOST_K];
    unsigned char panels[PANELS * 64 * MOST_K];
    uint16_t scales[PANELS * 16 * MOST_K];
    float wide[PANELS * 16 * MOST_K];
};

static int64_t span(const struct coded *c) {
    return c->group > 0 && c->group < c->k ? c->group : c->k;
}
static int64_t groups(const struct coded *c) { return (c->k + span(c) - 1) / span(c); }
static int64_t panel_bytes(const struct coded *c) {
    return c->k / span(c) * cpu_columns_bytes(c->type, span(c)) +
           cpu_columns_bytes(c->type, c->k % span(c));
}

static void put_code(struct coded *c, int64_t row, int64_t k, int code) {
    unsigned char *at =
        c->panels + row / 16 * panel_bytes(c) + k / span(c) * cpu_columns_bytes(c->type, span(c));
    const int64_t lane = row % 16, i = k % span(c);
    if (c->type == DT_I8)
        at[i * 16 + lane] = (unsigned char)code;
    else
        at[i / 8 * 64 + lane * 4 + i % 8 / 2] |= (unsigned char)(code << i % 2 * 4);
}

static void make_codes(struct coded *c) {
    memset(c->panels, 0, sizeof c->panels);
    for (int64_t row = 0; row < PANELS * 16; row++)
        for (int64_t k = 0; k < c->k; k++) {
            const int code = (int)random_below(key, draw++, c->type == DT_I8 ? 256 : 16);
            put_code(c, row, k, code);
            c->value[row][k] = c->type == DT_I8   ? (float)(code - (code > 127 ? 256 : 0)) / 16
                               : c->type == DT_I4 ? (float)(code - 8)
                                                  : nf4_levels[code];
            if (k % span(c) == 0) {
                const int64_t at = (row / 16 * groups(c) + k / span(c)) * 16 + row % 16;
                c->scales[at] = f16_from_f32(real(1.0f));
                c->scale[row][k] = f16_to_f32(c->scales[at]);
            } else {
                c->scale[row][k] = c->scale[row][k - 1];
            }
        }
}

/* Tiles of codes, with scales of groups and without: against double; and the same bits row by row,
   panel by panel, and from floats. */
static void tiles_of_codes_are_right_and_the_same_bits_in_any_cut(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 8, 16, 40};
    static struct coded coded;
    static float x[12 * 80], c[12 * 100], one[12 * 100];
    for (int l = 0; l < n_levels; l++)
        for (int type = DT_I8; type <= DT_NF4; type++)
            for (int m = 1; m <= levels[l]->rows; m++)
                for (size_t g = 0; g < sizeof sizes / sizeof *sizes; g++) {
                    const int n = 1 + (int)random_below(key, draw++, PANELS);
                    coded.type = (enum dtype)type, coded.group = sizes[g];
                    coded.k = 1 + random_below(key, draw++, MOST_K);
                    const double unit = type == DT_I8 ? 16 : 1; /* of value */
                    const int64_t k = coded.k, step = panel_bytes(&coded);
                    make_codes(&coded);
                    reals(x, 12 * 80, 1.0f);
                    struct tile t = {
                        .c = c,
                        .x = x,
                        .panels = coded.panels,
                        .ldc = 100,
                        .ldx = 80,
                        .k = k,
                        .k_step = cpu_columns_bytes(coded.type, cpu_word_columns(coded.type)),
                        .step = step,
                        .m = m,
                        .n_panels = n,
                        .scales = coded.group > 0 ? coded.scales : NULL,
                        .scales_step = groups(&coded) * 16,
                        .group = span(&coded),
                        .ahead = coded.panels};
                    for (int i = 0; i < 12 * 100; i++) c[i] = NAN; /* not added to */
                    levels[l]->panels[type](&t);
                    for (int r = 0; r < m; r++)
                        for (int j = 0; j < 100; j++) {
                            double want = 0, most = 0;
                            for (int64_t i = 0; i < k && j < n * 16; i++) {
                                const double by = coded.group > 0 ? (double)coded.scale[j][i] : 1;
                                const double part =
                                    (double)x[r * 80 + i] * (double)coded.value[j][i] * unit * by;
                                want += part;
                                most += fabs(part);
                            }
                            const double got = (double)c[r * 100 + j];
                            if (j >= n * 16 ? !isnan(got) : !(fabs(got - want) <= 4e-6 * most))
                                fail_msg("%s: %s groups of %d, %d rows %d panels: %g, expected %g",
                                         levels[l]->name, dtype_names[type], (int)coded.group, m, n,
                                         got, want);
                        }
                    for (int p = 0; p < n; p++)
                        for (int64_t i = 0; i < k; i += span(&coded)) {
                            const int64_t some = k - i < span(&coded) ? k - i : span(&coded);
                            levels[l]->unpack[type](
                                coded.wide + (p * k + i) * 16,
                                coded.panels + p * step +
                                    i / span(&coded) * cpu_columns_bytes(coded.type, span(&coded)),
                                some);
                        }
                    struct tile u = t;
                    u.c = one, u.panels = coded.wide, u.k_step = 64, u.step = k * 64;
                    levels[l]->wide(&u);
                    for (int r = 0; r < m; r++)
                        assert_memory_equal(one + r * 100, c + r * 100, (size_t)n * 16 * sizeof *c);
                    for (int r = 0; r < m; r++)
                        for (int p = 0; p < n; p++) {
                            u = t;
                            u.m = u.n_panels = 1;
                            u.c = one, u.x = x + r * 80, u.panels = coded.panels + p * step;
                            if (t.scales != NULL) u.scales = t.scales + p * t.scales_step;
                            levels[l]->panels[type](&u);
                            assert_memory_equal(one, c + r * 100 + p * 16, 16 * sizeof *c);
                        }
                }
}

static int64_t bytes_of(enum dtype type) { return dtype_bits(type) / 8; }

static double cache_value(const void *data, enum dtype type, int64_t i) {
    return type == DT_I8 ? ((const int8_t *)data)[i] : (double)dtype_load(data, type, i);
}

/* Rows as a cache keeps them, of values that every type holds exactly. */
static void cache_rows(void *to, enum dtype type, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int value = (int)random_below(key, draw++, 255) - 127;
        if (type == DT_I8)
            ((int8_t *)to)[i] = (int8_t)value;
        else
            dtype_store(to, type, i, (float)value);
    }
}

enum { MOST_D = 144, POSITIONS = 5 * 16 };

/* Keys turned word by word, and values taken from where they lie: against double, and the bits of
   every row alone. */
static int most_rows(const struct cpu_kernels *kernels) {
    return kernels->rows > kernels->few ? kernels->rows : kernels->few;
}

static void caches_are_multiplied_as_they_are_stored(void **state) {
    (void)state;
    static float q[12 * MOST_D], w[12 * POSITIONS], rows[POSITIONS * MOST_D], c[12 * MOST_D],
        one[MOST_D];
    static word panels[POSITIONS * MOST_D];
    static const int64_t sizes[] = {4, 16, 20, 64, 80, 128, MOST_D};
    for (int l = 0; l < n_levels; l++)
        for (int type = 0; type < CACHE_TYPES; type++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (int m = 1; m <= most_rows(levels[l]); m++) {
                    const int64_t d = sizes[i], row = d * bytes_of((enum dtype)type);
                    const int n = 1 + (int)random_below(key, draw++, 5);
                    reals(q, 12 * MOST_D, 1.0f);
                    reals(w, 12 * POSITIONS, 1.0f);
                    cache_rows(rows, (enum dtype)type, POSITIONS * d);
                    for (int p = 0; p < n; p++)
                        levels[l]->transpose(panels + p * 16, n * 16,
                                             (const char *)rows + p * 16 * row, row / 4, row / 4,
                                             rows, rows);
                    struct tile t = {.c = c,
                                     .ldc = MOST_D,
                                     .x = q,
                                     .ldx = MOST_D,
                                     .k = d,
                                     .k_step = n * 64,
                                     .step = 64,
                                     .panels = panels,
                                     .m = m,
                                     .n_panels = n,
                                     .ahead = panels,
                                     .ahead_step = 64};
                    levels[l]->keys[type](&t);
                    for (int r = 0; r < m; r++)
                        for (int p = 0; p < 16 * n; p++) {
                            double want = 0;
                            for (int64_t j = 0; j < d; j++)
                                want += (double)q[r * MOST_D + j] *
                                        cache_value(rows, (enum dtype)type, p * d + j);
                            if (fabs((double)c[r * MOST_D + p] - want) > 2e-2)
                                fail_msg("%s: %s keys of %d, row %d: %g, expected %g",
                                         levels[l]->name, dtype_names[type], (int)d, r,
                                         (double)c[r * MOST_D + p], want);
                        }
                    t.c = one, t.x = q + (m - 1) * MOST_D, t.m = 1;
                    levels[l]->keys[type](&t);
                    assert_memory_equal(one, c + (m - 1) * MOST_D, 16 * (size_t)n * sizeof *c);
                    if (d % 16 != 0) continue;
                    t = (struct tile){.c = c,
                                      .ldc = MOST_D,
                                      .x = w,
                                      .ldx = POSITIONS,
                                      .k = 1 + random_below(key, draw++, POSITIONS),
                                      .k_step = row,
                                      .step = 16 * bytes_of((enum dtype)type),
                                      .panels = rows,
                                      .m = m,
                                      .n_panels = (int)d / 16,
                                      .ahead = rows};
                    levels[l]->tile[type](&t);
                    t.c = one, t.x = w + (m - 1) * POSITIONS, t.m = 1;
                    levels[l]->tile[type](&t);
                    assert_memory_equal(one, c + (m - 1) * MOST_D, (size_t)d * sizeof *c);
                    if (type == DT_BF16)
                        levels[l]->scale_woven(one, c + (m - 1) * MOST_D, 1.0f, d);
                    else
                        levels[l]->scale(one, c + (m - 1) * MOST_D, 1.0f, d);
                    for (int64_t j = 0; j < d; j++) {
                        double want = 0;
                        for (int64_t p = 0; p < t.k; p++)
                            want += (double)w[(m - 1) * POSITIONS + p] *
                                    cache_value(rows, (enum dtype)type, p * d + j);
                        if (fabs((double)one[j] - want) > 2e-2)
                            fail_msg("%s: %s values of %d, %d rows: %g, expected %g",
                                     levels[l]->name, dtype_names[type], (int)d, m, (double)one[j],
                                     want);
                    }
                }
}

static void multiplying_and_scaling_stop_where_told(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++)
        for (int n = 1; n < 50; n++) {
            float x[64], by[64], y[65] = {0};
            reals(x, 64, 2.0f);
            reals(by, 64, 2.0f);
            const float one = 1.0f;
            uint16_t row[64];
            float c[64];
            for (int i = 0; i < 64; i++) row[i] = bf16_from_f32((float)i);
            const struct tile t = {.c = c,
                                   .x = &one,
                                   .k = 1,
                                   .step = 32,
                                   .panels = row,
                                   .m = 1,
                                   .n_panels = (n + 15) / 16,
                                   .ahead = row};
            levels[l]->tile[DT_BF16](&t);
            levels[l]->scale_woven(y, c, 0.5f, n);
            for (int i = 0; i < n; i++) assert_true(y[i] == (float)i * 0.5f);
            assert_true(y[n] == 0.0f);
            memcpy(y, x, sizeof x);
            levels[l]->multiply(y, by, n);
            for (int i = 0; i < 64; i++) assert_true(y[i] == (i < n ? x[i] * by[i] : x[i]));
        }
}

static void argmax_takes_the_first_of_the_largest(void **state) {
    (void)state;
    static float x[5000];
    for (int l = 0; l < n_levels; l++)
        for (int round = 0; round < 300; round++) {
            const int64_t n = 1 + random_below(key, draw++, 5000);
            for (int64_t i = 0; i < n; i++) x[i] = (float)random_below(key, draw++, 300);
            if (round % 3 == 0)
                for (int64_t i = 0; i < n; i += 3) x[i] = NAN;
            if (round % 5 == 0)
                for (int64_t i = 0; i < n; i++) x[i] = -INFINITY;
            int64_t want = -1;
            for (int64_t i = 0; i < n; i++)
                if (!isnan(x[i]) && (want < 0 || x[i] > x[want])) want = i;
            assert_int_equal(levels[l]->argmax(x, n), want < 0 ? 0 : want);
        }
}

static void rotation_keeps_length_and_angle(void **state) {
    (void)state;
    for (int l = 0; l < n_levels; l++)
        for (int half = 1; half < 40; half++) {
            float in[80], out[80], cosine[40], sine[40];
            reals(in, 2 * half, 1.0f);
            for (int i = 0; i < half; i++) {
                cosine[i] = cosf((float)i);
                sine[i] = sinf((float)i);
            }
            levels[l]->rope_halves(out, in, cosine, sine, half);
            for (int i = 0; i < half; i++) {
                const double a = (double)in[i], b = (double)in[half + i];
                assert_true(fabs((double)out[i] - (a * cos(i) - b * sin(i))) < 1e-6);
                assert_true(fabs((double)out[half + i] - (a * sin(i) + b * cos(i))) < 1e-6);
            }
        }
}

int main(void) {
    for (int isa = 0; isa <= (int)isa_best(); isa++)
        if (cpu_kernels_of((enum isa)isa) != NULL)
            levels[n_levels++] = cpu_kernels_of((enum isa)isa);
    for (int i = 0; i < n_levels; i++) printf("level %s\n", levels[i]->name);
    key = random_key(11, 3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_is_within_two_ulp),
        cmocka_unit_test(softmax_sees_only_its_range),
        cmocka_unit_test(joining_parts_is_one_softmax),
        cmocka_unit_test(swiglu_and_norm_are_right_at_any_length),
        cmocka_unit_test(silu_keeps_its_limits),
        cmocka_unit_test(conversions_are_those_of_dtype),
        cmocka_unit_test(panels_are_laid_out_as_said),
        cmocka_unit_test(tiles_are_right_and_the_same_bits_in_any_cut),
        cmocka_unit_test(tiles_of_codes_are_right_and_the_same_bits_in_any_cut),
        cmocka_unit_test(caches_are_multiplied_as_they_are_stored),
        cmocka_unit_test(multiplying_and_scaling_stop_where_told),
        cmocka_unit_test(argmax_takes_the_first_of_the_largest),
        cmocka_unit_test(rotation_keeps_length_and_angle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
