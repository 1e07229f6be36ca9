/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with and without units, read and written the same under every locale. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* isdigit() and friends look at the locale; these do not. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

bool parse_u64(const char *s, uint64_t *out) {
    uint64_t base = 10, v = 0;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    }
    bool digit_before = false;
    for (; *s; s++) {
        if (*s == '_' && digit_before && hex_value(s[1]) < (int)base) {
            digit_before = false;
            continue;
        }
        uint64_t d = (uint64_t)hex_value(*s);
        if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
        digit_before = true;
    }
    if (!digit_before) return false;
    *out = v;
    return true;
}

bool parse_i64(const char *s, int64_t *out) {
    bool negative = *s == '-';
    uint64_t v;
    if (!parse_u64(s + (*s == '-' || *s == '+'), &v) || v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* How much of s is a decimal number: [sign] digits [. digits] [e [sign] digits], '_' between
 * digits. 0: none. */
static size_t decimal_length(const char *s) {
    const char *p = s + (*s == '-' || *s == '+');
    size_t digits = 0;
    for (int part = 0; part < 2; part++) {
        for (; is_digit(*p) || (*p == '_' && p > s && is_digit(p[-1]) && is_digit(p[1])); p++)
            digits++;
        if (part == 0 && *p == '.')
            p++;
        else
            break;
    }
    if (!digits) return 0;
    if (*p == 'e' || *p == 'E') {
        const char *e = p + 1 + (p[1] == '-' || p[1] == '+');
        if (is_digit(*e)) {
            while (is_digit(*e)) e++;
            p = e;
        }
    }
    return (size_t)(p - s);
}

static bool decimal_value(const char *s, size_t n, double *out) {
    struct text plain = {0};
    for (size_t i = 0; i < n; i++)
        if (s[i] != '_') text_add(&plain, s + i, 1);
    char *end = NULL;
    double v = plain.len ? strtod_l(plain.data, &end, text_locale()) : NAN;
    bool ok = plain.len && !*end && isfinite(v);
    text_free(&plain);
    if (ok) *out = v;
    return ok;
}

bool parse_f64(const char *s, double *out) {
    size_t n = decimal_length(s);
    return n && !s[n] && decimal_value(s, n, out);
}

struct unit {
    const char *name;
    int64_t factor;
};
static const struct unit byte_units[] = {
    {"B", 1},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"PB", 1000000000000000},
    {"KiB", (int64_t)1 << 10},
    {"MiB", (int64_t)1 << 20},
    {"GiB", (int64_t)1 << 30},
    {"TiB", (int64_t)1 << 40},
    {"PiB", (int64_t)1 << 50},
};
static const struct unit time_units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* micro sign */
    {"\xce\xbcs", 1000}, /* Greek mu */
    {"ms", 1000000},
    {"s", 1000000000},
    {"min", 60 * (int64_t)1000000000},
    {"h", 3600 * (int64_t)1000000000},
};

/* A number that is not negative, blanks, a unit. `bare`: a whole number needs no unit. Fractions
 * round to the nearest. */
static bool parse_quantity(const char *s, const struct unit *units, size_t n_units, bool bare,
                           int64_t *out) {
    size_t n = decimal_length(s);
    double v;
    if (!n || !decimal_value(s, n, &v) || v < 0) return false;
    const char *name = s + n + strspn(s + n, " ");
    int64_t factor = 0;
    for (size_t i = 0; i < n_units && !factor; i++)
        if (!strcmp(name, units[i].name)) factor = units[i].factor;
    if (!factor) {
        if (s[n] || !(v == 0 || (bare && v == floor(v)))) return false;
        factor = 1;
    }
    char whole[32]; /* whole numbers are exact beyond 2^53 too */
    int64_t i;
    if (n < sizeof whole) {
        memcpy(whole, s, n);
        whole[n] = 0;
        if (parse_i64(whole, &i)) return i >= 0 && !__builtin_mul_overflow(i, factor, out);
    }
    double scaled = round(v * (double)factor);
    if (!(scaled < 0x1p63) || (scaled == 0 && v != 0)) return false;
    *out = (int64_t)scaled;
    return true;
}

bool parse_bytes(const char *s, int64_t *bytes) {
    return parse_quantity(s, byte_units, sizeof byte_units / sizeof *byte_units, true, bytes);
}

bool parse_time(const char *s, int64_t *ns) {
    return parse_quantity(s, time_units, sizeof time_units / sizeof *time_units, false, ns);
}

/* snprintf under the C locale. */
__attribute__((format(printf, 3, 4))) static char *put(char *buf, size_t size, const char *fmt,
                                                       ...) {
    va_list args;
    va_start(args, fmt);
    text_vformat(buf, size, fmt, args);
    va_end(args);
    return buf;
}

/* Decimals that leave `digits` significant digits of v after rounding, within 0 ... 17. */
static int decimals_for(double v, int digits) {
    char e[40];
    put(e, sizeof e, "%.*e", digits > 1 ? digits - 1 : 0,
        v); /* 9.99 rounds up before we look at it */
    int decimals = digits - 1 - atoi(strchr(e, 'e') + 1);
    return decimals < 0 ? 0 : decimals;
}

char *format_number(char *buf, size_t size, double v, int digits) {
    if (!isfinite(v)) return put(buf, size, "-");
    digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
    if (v == 0) return put(buf, size, "0");
    if (fabs(v) >= 1e15 || fabs(v) < 1e-5) return put(buf, size, "%.*e", digits - 1, v);
    return put(buf, size, "%.*f", decimals_for(v, digits), v);
}

char *format_exact(char *buf, size_t size, double v) {
    if (!isfinite(v)) return put(buf, size, "%s", "");
    char full[40];
    for (int digits = 15; digits <= 17; digits++) {
        put(full, sizeof full, "%.*g", digits, v);
        if (strtod_l(full, NULL, text_locale()) == v) break;
    }
    return put(buf, size, "%s", full);
}

static double round_to_4(double v) {
    char text[40];
    return strtod_l(put(text, sizeof text, "%.3e", v), NULL, text_locale());
}

static char *format_bytes(char *buf, size_t size, double bytes, double step,
                          const char *const *names) {
    if (!isfinite(bytes)) return put(buf, size, "-");
    int unit = 0;
    for (; fabs(bytes) >= step && unit < 5; unit++) bytes /= step;
    /* What rounds up to a whole next unit is shown in it: 1.000 MB, never 1000 kB. */
    if (unit && unit < 5 && round_to_4(fabs(bytes)) >= step) {
        bytes /= step;
        unit++;
    }
    if (!unit) return put(buf, size, bytes == floor(bytes) ? "%.0f B" : "%.1f B", bytes);
    return put(buf, size, "%.*f %s", decimals_for(bytes, 4), bytes, names[unit]);
}

char *format_bytes_si(char *buf, size_t size, double bytes) {
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    return format_bytes(buf, size, bytes, 1000, names);
}

char *format_bytes_iec(char *buf, size_t size, double bytes) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return format_bytes(buf, size, bytes, 1024, names);
}

char *format_time(char *buf, size_t size, double ns) {
    static const struct {
        const char *name;
        double ns, below; /* used while the rounded value is below this */
    } units[] = {{"ns", 1, 1000},  {"\xc2\xb5s", 1e3, 1000}, {"ms", 1e6, 1000},
                 {"s", 1e9, 1000}, {"min", 60e9, 120},       {"h", 3600e9, INFINITY}};
    if (!isfinite(ns)) return put(buf, size, "-");
    if (ns == 0) return put(buf, size, "0 ns");
    size_t u = 0;
    while (fabs(ns) / units[u].ns + 0.05 >= units[u].below) u++;
    double v = ns / units[u].ns;
    int decimals = fabs(v) < 9.995 ? 2 : 1;
    return put(buf, size, fabs(v) < 1e15 ? "%.*f %s" : "%.*e %s", decimals, v, units[u].name);
}

char *format_thousands(char *buf, size_t size, int64_t v) {
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    char full[32], *p = full + sizeof full;
    *--p = 0;
    int n = 0;
    do {
        if (n && n % 3 == 0) *--p = ',';
        *--p = (char)('0' + rest % 10);
        rest /= 10;
        n++;
    } while (rest);
    if (v < 0) *--p = '-';
    return put(buf, size, "%s", p);
}

/* Two digits of the half width where they start below 3.55, else one: the Particle Data Group's
 * rule. */
char *format_interval(char *buf, size_t size, double mean, double half) {
    if (!isfinite(mean) || !isfinite(half) || half < 0) return format_number(buf, size, mean, 4);
    if (fmax(fabs(mean), half) >= 1e15 || (half > 0 && half < 1e-12))
        return put(buf, size, "%.6g \xc2\xb1 %.2g", mean, half);
    if (half == 0) return put(buf, size, "%.6g \xc2\xb1 0", mean);
    char e[40];
    put(e, sizeof e, "%.2e", half);
    int two = e[0] < '3' || (e[0] == '3' && (e[2] < '5' || (e[2] == '5' && e[3] < '5')));
    int decimals = two - atoi(strchr(e, 'e') + 1);
    decimals = decimals < 0 ? 0 : decimals;
    return put(buf, size, "%.*f \xc2\xb1 %.*f", decimals, mean, decimals, half);
}
