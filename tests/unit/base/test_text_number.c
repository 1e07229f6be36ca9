/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: what is read, what is refused, what is written; each test also under a decimal comma. */
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
#include "base/text.h"
#include "tests/support/german.h"

/* Every table is checked twice. */
static void under_both_locales(void (*check)(void)) {
    check();
    if (!german_begin()) {
        print_message("SKIPPED: no decimal comma to be had from this C library\n");
        return;
    }
    check();
    german_end();
}

static void check_integers(void) {
    static const struct {
        const char *text;
        bool ok;
        int64_t v;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+12", true, 12},
        {"1_000_000", true, 1000000},
        {"0x1F", true, 31},
        {"0xdead_beef", true, 0xdeadbeef},
        {"-0x10", true, -16},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+-1", false, 0},
        {"--1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"_1", false, 0},
        {"1_", false, 0},
        {"1__0", false, 0},
        {"0x", false, 0},
        {"0x_1", false, 0},
        {"0xg", false, 0},
        {"12a", false, 0},
        {"1,000", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t v = 77;
        bool ok = parse_i64(rows[i].text, &v);
        if (ok != rows[i].ok || v != (ok ? rows[i].v : 77)) /* a refusal leaves it alone */
            fail_msg("'%s': %d %lld", rows[i].text, ok, (long long)v);
    }
    uint64_t u;
    assert_true(parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    assert_true(parse_u64("0xFFFFFFFFFFFFFFFF", &u) && u == UINT64_MAX);
    assert_false(parse_u64("18446744073709551616", &u));
    assert_false(parse_u64("0x10000000000000000", &u));
    assert_false(parse_u64("", &u));
    assert_false(parse_u64("0x", &u));
    assert_false(parse_u64("-1", &u));
    assert_false(parse_u64("+1", &u));
}

static void reads_integers(void **state) {
    (void)state;
    under_both_locales(check_integers);
}

static void check_reals(void) {
    static const struct {
        const char *text;
        bool ok;
        double v;
    } rows[] = {
        {"0", true, 0},
        {"1.5", true, 1.5},
        {"-.25", true, -0.25},
        {"5.", true, 5},
        {"+1e3", true, 1000},
        {"1E-2", true, 0.01},
        {"1_000.5", true, 1000.5},
        {"0.1", true, 0.1},
        {"1.7976931348623157e308", true, 1.7976931348623157e308},
        {"5e-324", true, 5e-324},
        {"1e999", false, 0},
        {"inf", false, 0},
        {"nan", false, 0},
        {"0x1p3", false, 0},
        {"", false, 0},
        {".", false, 0},
        {"-", false, 0},
        {"e3", false, 0},
        {"1e", false, 0},
        {"1e+", false, 0},
        {"1,5", false, 0},
        {"1.5 ", false, 0},
        {" 1.5", false, 0},
        {"1.5.2", false, 0},
        {"1_", false, 0},
        {"_1", false, 0},
        {"1._5", false, 0},
        {"1__0", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = 77;
        bool ok = parse_f64(rows[i].text, &v);
        if (ok != rows[i].ok || v != (ok ? rows[i].v : 77))
            fail_msg("'%s': %d %g", rows[i].text, ok, v);
    }
    char digits[500];
    memset(digits, '1', sizeof digits - 1);
    digits[sizeof digits - 1] = 0;
    digits[1] = '.';
    double v;
    assert_true(parse_f64(digits, &v) && v > 1.11 && v < 1.12);
}

static void reads_reals(void **state) {
    (void)state;
    under_both_locales(check_reals);
}

static void check_quantities(void) {
    enum { NO = -1 };
    static const struct {
        const char *text;
        int64_t bytes, ns;
    } rows[] = {
        {"0", 0, 0},
        {"64", 64, NO}, /* a bare time is refused: of what unit? */
        {"1_024", 1024, NO},
        {"4096 B", 4096, NO},
        {"4096B", 4096, NO},
        {"1.5 GB", 1500000000, NO},
        {"2 GiB", (int64_t)2 << 30, NO},
        {"64 MiB", (int64_t)64 << 20, NO},
        {"1 kB", 1000, NO},
        {"1 KB", 1000, NO},
        {"1 KiB", 1024, NO},
        {"0.5 KiB", 512, NO},
        {"3 MB", 3000000, NO},
        {"2 TB", 2000000000000, NO},
        {"1 TiB", (int64_t)1 << 40, NO},
        {"1 PB", 1000000000000000, NO},
        {"1 PiB", (int64_t)1 << 50, NO},
        {"9007199254740993 B", 9007199254740993, NO}, /* no double holds it */
        {"9223372036854775807", INT64_MAX, NO},
        {"9223372036854775808", NO, NO},
        {"9000 PiB", NO, NO}, /* too much */
        {"9000.5 PiB", NO, NO},
        {"1.5", NO, NO},
        {"0.3 B", NO, NO}, /* would round to nothing */
        {"-1 MB", NO, NO},
        {"-1", NO, NO},
        {"1 mb", NO, NO},
        {"1 GBs", NO, NO},
        {"1 G", NO, NO},
        {"1,5 GB", NO, NO},
        {"GB", NO, NO},
        {"", NO, NO},
        {"64 ", NO, NO},
        {" 64 B", NO, NO},
        {"64 B ", NO, NO},
        {"1e3", 1000, NO},
        {"0x10 B", NO, NO},
        {"inf B", NO, NO},
        {"90 s", NO, 90000000000},
        {"250 ms", NO, 250000000},
        {"10 us", NO, 10000},
        {"10 \xc2\xb5s", NO, 10000},
        {"10 \xce\xbcs", NO, 10000},
        {"5 ns", NO, 5},
        {"5ns", NO, 5},
        {"2 min", NO, 120000000000},
        {"1 h", NO, 3600000000000},
        {"1.5 s", NO, 1500000000},
        {"0.1 s", NO, 100000000},
        {"0 s", NO, 0},
        {"0.1 ns", NO, NO},
        {"-5 s", NO, NO},
        {"3000000 h", NO, NO}, /* beyond 292 years */
        {"5 m", NO, NO},
        {"5 S", NO, NO},
        {"5 minutes", NO, NO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = NO, ns = NO;
        bool bytes_ok = parse_bytes(rows[i].text, &bytes), ns_ok = parse_time(rows[i].text, &ns);
        if (bytes_ok != (rows[i].bytes != NO) || ns_ok != (rows[i].ns != NO) ||
            (bytes_ok && bytes != rows[i].bytes) || (ns_ok && ns != rows[i].ns))
            fail_msg("'%s': %lld bytes, %lld ns", rows[i].text, (long long)bytes, (long long)ns);
    }
}

static void reads_quantities(void **state) {
    (void)state;
    under_both_locales(check_quantities);
}

static void check_formats(void) {
    char b[64];
    static const struct {
        double v;
        const char *si, *iec, *time, *three;
    } rows[] = {
        {0, "0 B", "0 B", "0 ns", "0"},
        {512, "512 B", "512 B", "512.0 ns", "512"},
        {999, "999 B", "999 B", "999.0 ns", "999"},
        {1000, "1.000 kB", "1000 B", "1.00 \xc2\xb5s", "1000"},
        {1024, "1.024 kB", "1.000 KiB", "1.02 \xc2\xb5s", "1024"},
        {53.1, "53.1 B", "53.1 B", "53.1 ns", "53.1"},
        {9.996, "10.0 B", "10.0 B", "10.0 ns", "10.0"},
        {0.5, "0.5 B", "0.5 B", "0.50 ns", "0.500"},
        {53.1e6, "53.10 MB", "50.64 MiB", "53.1 ms", "53100000"},
        {999999, "1.000 MB", "976.6 KiB", "1.00 ms", "999999"},
        {26.03e9, "26.03 GB", "24.24 GiB", "26.0 s", "26030000000"},
        {1073741823, "1.074 GB", "1.000 GiB", "1.07 s", "1073741823"},
        {5.4e12, "5.400 TB", "4.911 TiB", "90.0 min", "5400000000000"},
        {7.2e12, "7.200 TB", "6.548 TiB", "2.00 h", "7200000000000"},
        {4e15, "4.000 PB", "3.553 PiB", "1111.1 h", "4.00e+15"},
        {-2048, "-2.048 kB", "-2.000 KiB", "-2.05 \xc2\xb5s", "-2048"},
        {NAN, "-", "-", "-", "-"},
        {INFINITY, "-", "-", "-", "-"},
        {-INFINITY, "-", "-", "-", "-"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(format_bytes_si(b, sizeof b, rows[i].v), rows[i].si);
        assert_string_equal(format_bytes_iec(b, sizeof b, rows[i].v), rows[i].iec);
        assert_string_equal(format_time(b, sizeof b, rows[i].v), rows[i].time);
        assert_string_equal(format_number(b, sizeof b, rows[i].v, 3), rows[i].three);
    }
    assert_string_equal(format_number(b, sizeof b, 0.0012345, 3), "0.00123");
    assert_string_equal(format_number(b, sizeof b, 1.25e-7, 2), "1.2e-07");
    assert_string_equal(format_number(b, sizeof b, 1e15, 3), "1.00e+15");
    assert_string_equal(format_number(b, sizeof b, 1e-5, 2), "0.000010");
    assert_string_equal(format_number(b, sizeof b, 9.9996, 4), "10.00");
    assert_string_equal(format_number(b, sizeof b, 1.5, 0), "2");
    assert_string_equal(format_number(b, sizeof b, 999999999999999.0, 3), "999999999999999");
    assert_string_equal(format_thousands(b, sizeof b, 0), "0");
    assert_string_equal(format_thousands(b, sizeof b, 999), "999");
    assert_string_equal(format_thousands(b, sizeof b, -1000), "-1,000");
    assert_string_equal(format_thousands(b, sizeof b, 1234567), "1,234,567");
    assert_string_equal(format_thousands(b, sizeof b, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_string_equal(format_bytes_si(b, 5, 26.03e9), "26.0"); /* at most size bytes */
}

static void formats_numbers(void **state) {
    (void)state;
    under_both_locales(check_formats);
}

#define PM " \xc2\xb1 "
static void check_intervals(void) {
    static const struct {
        double mean, half;
        const char *text;
    } rows[] = {
        {53.1234, 0.8, "53.1" PM "0.8"},
        {19.84, 1.1, "19.8" PM "1.1"},
        {191.04, 2.1, "191.0" PM "2.1"},
        {187.4, 5, "187" PM "5"},
        {53.1234, 0.3541, "53.12" PM "0.35"},
        {53.1234, 0.3561, "53.1" PM "0.4"},
        {1, 0.00123, "1.0000" PM "0.0012"},
        {10, 3.55, "10" PM "4"},
        {1234.5, 123.4, "1234" PM "123"},
        {-5.5, 0.25, "-5.50" PM "0.25"},
        {53, 0, "53" PM "0"},
        {53.125, NAN, "53.12"}, /* no interval known: none is shown, and no 0 */
        {53.125, INFINITY, "53.12"},
        {NAN, 0.5, "-"},
        {INFINITY, 0.5, "-"},
    };
    char b[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(format_interval(b, sizeof b, rows[i].mean, rows[i].half), rows[i].text);
}

static void formats_intervals(void **state) {
    (void)state;
    under_both_locales(check_intervals);
}

static void check_exact(void) {
    char b[64];
    assert_string_equal(format_exact(b, sizeof b, 0.1), "0.1");
    assert_string_equal(format_exact(b, sizeof b, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(format_exact(b, sizeof b, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(format_exact(b, sizeof b, -2.5), "-2.5");
    assert_string_equal(format_exact(b, sizeof b, 1e300), "1e+300");
    assert_string_equal(format_exact(b, sizeof b, NAN), "");
    assert_string_equal(format_exact(b, sizeof b, INFINITY), "");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = random_at(random_key(1, 2), i);
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        if (!parse_f64(format_exact(b, sizeof b, v), &back) || memcmp(&v, &back, sizeof v))
            fail_msg("%a became '%s'", v, b);
    }
}

static void exact_text_reads_back(void **state) {
    (void)state;
    under_both_locales(check_exact);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers),    cmocka_unit_test(reads_reals),
        cmocka_unit_test(reads_quantities),  cmocka_unit_test(formats_numbers),
        cmocka_unit_test(formats_intervals), cmocka_unit_test(exact_text_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
