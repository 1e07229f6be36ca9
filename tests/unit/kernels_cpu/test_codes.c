/* SPDX-License-Identifier: Apache-2.0 */
/* Products of codes by every set of instructions that this machine has, also where its level
   prefers another: against plain sums, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/cpu/cpu.h"
#include "tests/support/op_amx.h"

enum { MOST_PANELS = 5, MOST_ROWS = 67, GUARD = 0x7fc12345 };
static const struct cpu_code_kernels *sets[CODE_SETS];
static int n_sets;
static uint64_t key, draw;

static int pick(int low, int high) {
    return low + (int)random_below(key, draw++, (uint32_t)(high - low + 1));
}

struct sums { /* one tile, on the host */
    enum dtype type;
    int m, n_panels, k, group; /* group 0: one sum */
    int8_t *x, *w;             /* (m, k), (16 n_panels, k) */
    uint16_t *scales;          /* (n_panels, groups, 16) */
};

static int word_of(enum dtype type) { return type == DT_I8 ? WORD_INT8 : WORD_INT4; }
static int span(const struct sums *s) { return s->group ? s->group : s->k; }
static int groups(const struct sums *s) { return (s->k + span(s) - 1) / span(s); }
static int words_of(const struct sums *s, int n) {
    return (n + word_of(s->type) - 1) / word_of(s->type);
}
static int words(const struct sums *s) {
    return (groups(s) - 1) * words_of(s, span(s)) + words_of(s, s->k - (groups(s) - 1) * span(s));
}

/* What the tile and `finish` make of row r and column c; scale: of the row. */
static float plain(const struct sums *s, int r, int c, float by, float scale) {
    float total = 0;
    for (int g = 0; g < groups(s); g++) {
        int32_t sum = 0;
        for (int i = g * span(s); i < s->k && i < (g + 1) * span(s); i++)
            sum += s->x[r * s->k + i] * s->w[c * s->k + i];
        if (!s->group) return (float)sum * by * scale;
        total += (float)sum * f16_to_f32(s->scales[(c / 16 * groups(s) + g) * 16 + c % 16]);
    }
    return total * scale;
}

static void put_code(const struct sums *s, const struct cpu_code_kernels *set, char *panels, int c,
                     int i) {
    const int g = i / span(s), in_group = i % span(s), code = s->w[c * s->k + i];
    const int64_t place = g * words_of(s, span(s)) + in_group / word_of(s->type);
    char *at = panels + ((int64_t)(c / 16) * words(s) + place) * 64 + c % 16 * 4;
    const int b = in_group % word_of(s->type);
    if (s->type == DT_I8)
        at[b] = (char)(code ^ set->flip);
    else
        at[b % 4] = (char)(at[b % 4] | (code + 8) << (b / 4 * 4));
}

static int32_t *run(const struct sums *s, const struct cpu_code_kernels *set, const float *by,
                    const float *scales, int ldc) {
    const int64_t row = (int64_t)words(s) * set->word_bytes[s->type];
    char *panels = must_alloc((size_t)s->n_panels * (size_t)words(s) * 64);
    char *x = must_alloc((size_t)(s->m * row));
    int32_t *start = must_alloc((size_t)(s->m * groups(s)) * sizeof *start);
    int32_t *c = must_alloc((size_t)(s->m * ldc) * sizeof *c);
    for (int i = 0; i < s->m * ldc; i++) c[i] = GUARD;
    for (int n = 0; n < 16 * s->n_panels; n++)
        for (int i = 0; i < s->k; i++) put_code(s, set, panels, n, i);
    for (int r = 0; r < s->m; r++)
        for (int g = 0; g < groups(s); g++) {
            const int8_t *from = s->x + r * s->k + g * span(s);
            const int n = s->k - g * span(s) < span(s) ? s->k - g * span(s) : span(s);
            set->arrange[s->type](x + r * row +
                                      (int64_t)g * words_of(s, span(s)) * set->word_bytes[s->type],
                                  from, n);
            for (int i = 0; i < n; i++) start[r * groups(s) + g] -= set->bias[s->type] * from[i];
        }
    struct code_tile t = {.c = c,
                          .x = x,
                          .panels = panels,
                          .start = set->bias[s->type] ? start : NULL,
                          .ldc = ldc,
                          .ldx = row,
                          .step = (int64_t)words(s) * 64,
                          .start_step = groups(s),
                          .words = words(s),
                          .m = s->m,
                          .n_panels = s->n_panels,
                          .scales = s->group ? s->scales : NULL,
                          .scales_step = groups(s) * 16,
                          .group = words_of(s, span(s)),
                          .ahead = panels,
                          .ahead_panel = 64,
                          .ahead_step = 64};
    /* One sum may also be made in two pieces. */
    const int64_t cut = s->group ? 0 : t.words / 3;
    if (cut > 0) {
        t.words = cut;
        set->tile[s->type](&t);
        t.x += cut * set->word_bytes[s->type];
        t.panels += cut * 64;
        t.words = words(s) - cut;
        t.add = 1;
        t.start = NULL;
    }
    set->tile[s->type](&t);
    for (int r = 0; r < s->m; r++)
        set->finish(c + r * ldc, s->group ? NULL : by, scales[r], 16 * s->n_panels);
    free(panels);
    free(x);
    free(start);
    return c;
}

static void compare(const struct sums *s) {
    float by[16 * MOST_PANELS], scales[MOST_ROWS];
    const int columns = 16 * s->n_panels, ldc = columns + pick(0, 1) * 3;
    assert_true(s->m <= MOST_ROWS);
    for (int i = 0; i < columns; i++) by[i] = (float)pick(1, 1 << 20) * 0x1p-24f;
    for (int i = 0; i < s->m; i++) scales[i] = (float)pick(1, 1 << 20) * 0x1p-22f;
    for (int k = 0; k < n_sets; k++) {
        int32_t *c = run(s, sets[k], by, scales, ldc);
        for (int r = 0; r < s->m; r++)
            for (int n = 0; n < ldc; n++) {
                const uint32_t want =
                    n < columns ? f32_bits(plain(s, r, n, by[n], scales[r])) : GUARD;
                if ((uint32_t)c[r * ldc + n] != want)
                    fail_msg("%s %s, %d x %d panels, k %d, group %d: (%d, %d) is %g, not %g",
                             sets[k]->name, dtype_names[s->type], s->m, s->n_panels, s->k, s->group,
                             r, n, (double)f32_from_bits((uint32_t)c[r * ldc + n]),
                             (double)f32_from_bits(want));
            }
        free(c);
    }
}

/* extreme: codes at the ends of their ranges, in all combinations of signs. */
static void tiles_of(enum dtype type, int m, int n_panels, int k, int group, bool extreme) {
    struct sums s = {.type = type, .m = m, .n_panels = n_panels, .k = k, .group = group};
    const int low = type == DT_I8 ? -128 : -8, high = type == DT_I8 ? 127 : 7;
    s.x = must_alloc((size_t)(m * k));
    s.w = must_alloc((size_t)(16 * n_panels * k));
    s.scales = must_alloc((size_t)(n_panels * groups(&s) * 16) * sizeof *s.scales);
    for (int i = 0; i < m * k; i++)
        s.x[i] = (int8_t)(extreme ? i / k % 2 ? 127 : -127 : pick(-127, 127));
    for (int i = 0; i < 16 * n_panels * k; i++)
        s.w[i] = (int8_t)(extreme ? i / k % 2 ? high : low : pick(low, high));
    for (int i = 0; i < n_panels * groups(&s) * 16; i++)
        s.scales[i] = f16_from_f32((float)pick(1, 1000) * 1e-4f);
    compare(&s);
    free(s.x);
    free(s.w);
    free(s.scales);
}

static void all_sets_agree_with_plain_sums(void **state) {
    static const int lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 257};
    (void)state;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int m = 1; m <= 2; m++)
                for (int group = 0; group <= 40; group += 5)
                    tiles_of(t ? DT_I4 : DT_I8, m, pick(1, MOST_PANELS), lengths[i],
                             group < lengths[i] ? group : 0, false);
}

static void rows_of_tiles_and_ends_of_ranges(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int m = 1; m <= 2; m++) {
            tiles_of(t ? DT_I4 : DT_I8, m, 2, 4096, 0, true);
            tiles_of(t ? DT_I4 : DT_I8, m, 5, 300, 128, true);
            tiles_of(t ? DT_I4 : DT_I8, m, 1, QUANT_INPUT_COLS, 0, true);
        }
    for (int k = 0; k < n_sets; k++) { /* sets with higher tiles, alone */
        const struct cpu_code_kernels *all[CODE_SETS];
        const int n = n_sets;
        memcpy(all, sets, sizeof all);
        sets[0] = all[k], n_sets = 1;
        for (int m = 3; m <= all[k]->rows && m <= 36; m++)
            for (int t = 0; t < 2; t++)
                for (int p = 1; p <= MOST_PANELS; p++) {
                    tiles_of(t ? DT_I4 : DT_I8, m, p, 70, p % 2 ? 32 : 0, false);
                    tiles_of(t ? DT_I4 : DT_I8, m, p, 70, p % 2 ? 32 : 0, true);
                }
        for (int t = 0; t < 2 && all[k]->rows >= MOST_ROWS; t++) /* and several blocks of k */
            for (int m = 16; m <= MOST_ROWS; m += 17)
                for (int group = 0; group <= 2100; group += 1050) {
                    tiles_of(t ? DT_I4 : DT_I8, m, 3, 2203, group, false);
                    tiles_of(t ? DT_I4 : DT_I8, m, 3, 2203, group ? 1024 : 0, true);
                }
        memcpy(sets, all, sizeof all);
        n_sets = n;
    }
}

static void peaks_return(void **state) {
    (void)state;
    for (int k = 0; k < n_sets; k++) {
        sets[k]->peak(1 << 22);
        sets[k]->peak(256);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_sets_agree_with_plain_sums),
                                       cmocka_unit_test(rows_of_tiles_and_ends_of_ranges),
                                       cmocka_unit_test(peaks_return)};
    key = random_key(1, 5);
    n_sets = cpu_code_kernels_all(sets);
    sets[n_sets++] = &memory_codes_amx;
    for (int k = 0; k < n_sets; k++) print_message("%s\n", sets[k]->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
