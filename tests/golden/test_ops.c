/* SPDX-License-Identifier: Apache-2.0 */
/* ops_golden.txt, made by ops_golden.py in float64 NumPy, against conversions, quantization and the
 * ops of every device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/support/op_rig.h"

/* ---- the file ---- */

enum { LONGEST = 2000 };
static char *file, *at; /* the text, and the line after the last that was read */
static struct op_rig rig;

static void rewind_to(const char *name) {
    char line[120];
    snprintf(line, sizeof line, "case %s\n", name);
    at = strstr(file, line);
    if (!at) fail_msg("ops_golden.txt has no case '%s'", name);
    at += strlen(line);
}

/* The words after the array's name: the case's arrays are read in the order of the file. */
static int words(const char *name, char *out[LONGEST], char *line, size_t size) {
    char *end = strchr(at, '\n');
    if (!end || (size_t)(end - at) >= size || strncmp(at, name, strlen(name)) != 0 ||
        at[strlen(name)] != ' ')
        fail_msg("array '%s' expected, found '%.30s'", name, at);
    snprintf(line, size, "%.*s", (int)(end - at), at);
    at = end + 1;
    int n = 0;
    strtok(line, " ");
    for (char *w; n < LONGEST && (w = strtok(NULL, " ")) != NULL; n++) out[n] = w;
    return n;
}

static char line[40000], *word[LONGEST];

static int numbers(const char *name, double *out) {
    int n = words(name, word, line, sizeof line);
    for (int i = 0; i < n; i++)
        if (!parse_f64(word[i], &out[i])) fail_msg("'%s' in array %s", word[i], name);
    return n;
}

static int floats(const char *name, float *out) {
    static double v[LONGEST];
    int n = numbers(name, v);
    for (int i = 0; i < n; i++) out[i] = (float)v[i];
    return n;
}

static double number(const char *name) {
    double v[LONGEST];
    assert_int_equal(numbers(name, v), 1);
    return v[0];
}

static void expect_close(const char *what, const float *got, const float *want, int n, double rtol,
                         double atol) {
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= rtol * fabs((double)want[i]) + atol))
            fail_msg("%s[%d] = %.9g, golden %.9g", what, i, (double)got[i], (double)want[i]);
}

/* ---- conversions ---- */

static uint64_t fnv(uint64_t h, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) h = (h ^ (value >> (8 * i) & 0xff)) * 0x100000001b3u;
    return h;
}

struct hashing { /* compares blocks of values with the golden hashes, so that a mismatch says where
                  */
    int block, bytes, n, i;
    uint64_t h;
};
static void hash_begin(struct hashing *s, const char *name, int block, int bytes) {
    rewind_to(name);
    *s = (struct hashing){block, bytes, words("fnv", word, line, sizeof line), 0,
                          0xcbf29ce484222325u};
}
static void hash_check(const struct hashing *s, int block) {
    assert_in_range(block, 0, s->n - 1);
    if (strtoull(word[block], NULL, 16) != s->h)
        fail_msg("values %d ... %d differ from the golden ones", block * s->block, s->i - 1);
}
static void hash_add(struct hashing *s, uint32_t value) {
    s->h = fnv(s->h, value, s->bytes);
    if (++s->i % s->block) return;
    hash_check(s, s->i / s->block - 1);
    s->h = 0xcbf29ce484222325u;
}
static void hash_end(struct hashing *s) {
    if (s->i % s->block) hash_check(s, s->i / s->block);
    assert_int_equal((s->i + s->block - 1) / s->block, s->n);
}

static uint32_t one_nan(uint32_t v, uint32_t exponent, uint32_t mantissa, uint32_t quiet) {
    return (v & exponent) == exponent && (v & mantissa) ? quiet : v;
}
static uint32_t to_f16(float f) { return one_nan(f16_from_f32(f), 0x7c00, 0x3ff, 0x7e00); }
static uint32_t to_bf16(float f) { return one_nan(bf16_from_f32(f), 0x7f80, 0x7f, 0x7fc0); }

static void test_f16_to_f32(void **state) {
    (void)state;
    struct hashing s;
    hash_begin(&s, "f16 to f32, all", 1024, 4);
    for (uint32_t h = 0; h < 65536; h++)
        hash_add(&s, one_nan(f32_bits(f16_to_f32((uint16_t)h)), 0x7f800000, 0x7fffff, 0x7fc00000));
    hash_end(&s);
}

static void test_f32_to_f16(void **state) {
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        struct hashing s;
        hash_begin(&s, sign ? "f32 to f16, edges negated" : "f32 to f16, edges", 3072, 2);
        for (uint32_t h = 0; h < 0x7c00; h++) {
            float low = f16_to_f32((uint16_t)h),
                  high = h == 0x7bff ? 65536 : f16_to_f32((uint16_t)(h + 1));
            float tie = (low + high) / 2;
            const float x[3] = {nextafterf(tie, -1), tie, nextafterf(tie, 1e9f)};
            for (int i = 0; i < 3; i++) hash_add(&s, to_f16(sign ? -x[i] : x[i]));
        }
        hash_end(&s);
    }
    struct hashing s;
    uint64_t state64 = 2024;
    hash_begin(&s, "f32 to f16, random", 3072, 2);
    for (int i = 0; i < 65536; i++) {
        state64 = state64 * 6364136223846793005u + 1442695040888963407u;
        hash_add(&s, to_f16(f32_from_bits((uint32_t)(state64 >> 32))));
    }
    hash_end(&s);
}

static void test_f32_to_bf16(void **state) {
    (void)state;
    struct hashing s;
    uint64_t state64 = 77;
    hash_begin(&s, "f32 to bf16, random", 3072, 2);
    for (int i = 0; i < 65536; i++) {
        state64 = state64 * 6364136223846793005u + 1442695040888963407u;
        hash_add(&s, to_bf16(f32_from_bits((uint32_t)(state64 >> 32))));
    }
    hash_end(&s);
    hash_begin(&s, "f32 to bf16, ties", 3072, 2);
    for (uint32_t h = 0; h < 65536; h++)
        for (uint32_t low = 0x7fff; low <= 0x8001; low++)
            hash_add(&s, to_bf16(f32_from_bits(h << 16 | low)));
    hash_end(&s);
}

/* ---- quantization ---- */

static void test_nf4_levels(void **state) {
    (void)state;
    float levels[LONGEST];
    rewind_to("nf4 levels");
    assert_int_equal(floats("levels", levels), 16);
    for (int i = 0; i < 16; i++) assert_true(nf4_levels[i] == levels[i]);
}

static void quant_case(const char *name) {
    static float w[LONGEST], scales[LONGEST], values[LONGEST], got_scales[LONGEST];
    static double codes[LONGEST];
    int8_t got[LONGEST];
    rewind_to(name);
    struct weight_spec spec = {.what = name, .rows = 1, .type = (enum dtype)(int)number("kind")};
    spec.group = (int)number("group");
    spec.scale = spec.group ? SCALE_GROUP : SCALE_ROW;
    spec.cols = floats("w", w);
    assert_int_equal(numbers("codes", codes), spec.cols);
    int n = floats("scales", scales);
    assert_int_equal(n, quant_groups(&spec));
    assert_int_equal(floats("values", values), spec.cols);
    quant_row(&spec, w, 0, got, got_scales);
    for (int i = 0; i < n; i++) assert_true(got_scales[i] == scales[i]);
    for (int i = 0; i < spec.cols; i++) {
        if (got[i] != (int)codes[i])
            fail_msg("%s: code %d is %d, golden %d", name, i, got[i], (int)codes[i]);
        got_scales[i] = quant_value(&spec, got[i], scales[spec.group ? i / spec.group : 0]);
    }
    expect_close("value", got_scales, values, (int)spec.cols, 2e-7, 1e-12);
    quant_roundtrip(&spec, w, 0);
    expect_close("roundtrip", w, values, (int)spec.cols, 2e-7, 1e-12);
}

static void test_quantization(void **state) {
    (void)state;
    static const char *const names[] = {
        "quant e32 int8",          "quant e32 int4",         "quant e36 block",
        "quant int8 groups of 16", "quant int8 row",         "quant int4 groups of 16",
        "quant int4 row",          "quant nf4 groups of 16", "quant nf4 row"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) quant_case(names[i]);
}

static void test_errors_of_e32(void **state) {
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4) {
        static float w[LONGEST], x[LONGEST];
        double lost = 0, all = 0;
        rewind_to(bits == 8 ? "quant e32 int8" : "quant e32 int4");
        number("kind"), number("group");
        int n = floats("w", w);
        memcpy(x, w, sizeof x);
        const struct weight_spec spec = {"e32",        1, n,     bits == 8 ? DT_I8 : DT_I4,
                                         SCALE_TENSOR, 0, DT_F32};
        quant_roundtrip(&spec, x, 1.4f);
        for (int i = 0; i < n; i++) {
            lost += pow((double)w[i] - (double)x[i], 2);
            all += pow((double)w[i], 2);
        }
        rewind_to(bits == 8 ? "error e32 int8" : "error e32 int4");
        assert_true(fabs(sqrt(lost / all) - number("error")) < 1e-7);
    }
}

static void test_kv_int8(void **state) {
    (void)state;
    static float x[LONGEST];
    static double codes[LONGEST];
    int8_t got[LONGEST];
    rewind_to("quant kv");
    int n = floats("x", x);
    float scale = quant_kv(x, n, got);
    assert_true(fabs((double)scale / number("scale") - 1) < 1e-7);
    assert_int_equal(numbers("codes", codes), n);
    for (int i = 0; i < n; i++) assert_int_equal(got[i], (int)codes[i]);
}

static void test_bytes(void **state) {
    (void)state;
    double v[LONGEST];
    rewind_to("bytes");
    int n = numbers("rows", v);
    assert_true(n >= 6 && n % 6 == 0);
    for (int i = 0; i < n; i += 6) {
        const struct weight_spec spec = {"bytes",
                                         (int64_t)v[i],
                                         (int64_t)v[i + 1],
                                         v[i + 2] > 4 ? DT_I8 : DT_I4,
                                         SCALE_GROUP,
                                         (int)v[i + 3],
                                         DT_F32};
        assert_int_equal(quant_payload_bytes(&spec), (int64_t)v[i + 4]);
        assert_int_equal(quant_scale_bytes(&spec), (int64_t)v[i + 5]);
    }
}

/* ---- ops ---- */

struct rows {
    const float *w;
    int64_t cols;
};
static void source_row(void *ctx, int64_t r, float *out) {
    const struct rows *s = ctx;
    memcpy(out, s->w + r * s->cols, (size_t)s->cols * sizeof *out);
}

typedef void (*check_on)(struct op_target *);

/* ref must pass; other devices where they say that they can. */
static void on_all(enum op op, const struct op_case *ask, check_on check) {
    assert_true(op_supported(&rig, &rig.ref, op, ask));
    check(&rig.ref);
    for (int t = 0; t < rig.n_targets; t++)
        if (op_supported(&rig, &rig.targets[t], op, ask)) check(&rig.targets[t]);
    assert_int_equal(rig.failures, 0);
}

static float a[LONGEST], b[LONGEST], c[LONGEST], d[LONGEST], e[LONGEST];
static double shape[LONGEST];

static void linear_on(struct op_target *target, const float *bias, int parts, const float *want) {
    int32_t m = (int32_t)shape[0], n = (int32_t)shape[1], k = (int32_t)shape[2];
    const struct weight_spec specs[2] = {{"golden", n, k, DT_F32, SCALE_NONE, 0, DT_F32},
                                         {"golden", n, k, DT_F32, SCALE_NONE, 0, DT_F32}};
    struct rows first = {b, k}, second = {c, k};
    struct row_source sources[2] = {{.row = source_row, .ctx = &first},
                                    {.row = source_row, .ctx = &second}};
    struct weight *w = op_pack(&rig, target, specs, parts, sources);
    assert_non_null(w);
    struct tensor x = op_tensor(target, DT_F32, m, k, k, a, false),
                  y = op_tensor(target, DT_F32, m, n, n, NULL, true);
    target->device->ops->linear(target->device, &y, &x, w,
                                bias ? op_buffer(target, (size_t)n * 4, bias) : NULL,
                                parts == 2 ? EPI_SWIGLU : EPI_NONE);
    float *got = op_values(&rig, target, &y);
    expect_close(target->name, got, want, m * n, 1e-5, 2e-6);
    free(got);
    target->device->kind->unpack(target->device, &w);
    op_release(&rig, target);
}

static void linear_plain(struct op_target *target) {
    linear_on(target, NULL, 1, d);
    linear_on(target, c, 1, e);
}

static void linear_swiglu(struct op_target *target) { linear_on(target, NULL, 2, d); }

static void test_linear(void **state) {
    (void)state;
    rewind_to("linear");
    numbers("shape", shape);
    floats("x", a), floats("w", b), floats("bias", c), floats("y", d), floats("y_bias", e);
    on_all(OP_LINEAR, &(struct op_case){.epilogue = EPI_NONE}, linear_plain);
    rewind_to("swiglu");
    numbers("shape", shape);
    floats("x", a), floats("gate", b), floats("up", c), floats("y", d);
    on_all(OP_LINEAR, &(struct op_case){.epilogue = EPI_SWIGLU}, linear_swiglu);
}

/* ---- products of codes ---- */

static struct weight_spec coded;

static void codes_on(struct op_target *target) {
    const int32_t m = (int32_t)shape[0], n = (int32_t)shape[1], k = (int32_t)shape[2];
    struct rows rows = {b, k};
    const struct row_source source = {.row = source_row, .ctx = &rows};
    struct weight *w = op_pack(&rig, target, &coded, 1, &source);
    assert_non_null(w);
    struct tensor x = op_tensor(target, DT_F32, m, k, k, a, false),
                  y = op_tensor(target, DT_F32, m, n, n, NULL, true);
    target->device->ops->linear(target->device, &y, &x, w, NULL, EPI_NONE);
    float *got = op_values(&rig, target, &y);
    expect_close(target->name, got, e, m * n, 0, 0); /* these very bits */
    free(got);
    target->device->kind->unpack(target->device, &w);
    op_release(&rig, target);
}

static void test_codes_by_codes(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const enum dtype type = i < 2 ? DT_I8 : DT_I4;
        const int group = i % 2 ? 16 : 0;
        char name[40];
        snprintf(name, sizeof name, "codes %s %d", dtype_names[type], group);
        rewind_to(name);
        numbers("shape", shape);
        floats("x", a), floats("w", b), floats("scales", c), floats("codes", d), floats("y", e);
        const int m = (int)shape[0], k = (int)shape[2];
        for (int r = 0; r < m; r++) {
            int8_t codes[LONGEST];
            assert_true(quant_input(a + r * k, k, codes) == c[r]);
            for (int j = 0; j < k; j++) assert_int_equal(codes[j], (int)d[r * k + j]);
        }
        coded = (struct weight_spec){
            "golden", (int64_t)shape[1], k, type, group ? SCALE_GROUP : SCALE_ROW, group, DT_I8};
        on_all(
            OP_LINEAR,
            &(struct op_case){.weight = type, .scale = coded.scale, .group = group, .input = DT_I8},
            codes_on);
    }
}

static void add_norm_on(struct op_target *target) {
    int32_t m = (int32_t)shape[0], n = (int32_t)shape[1];
    struct tensor residual = op_tensor(target, DT_F32, m, n, n, a, true),
                  delta = op_tensor(target, DT_F32, m, n, n, b, false),
                  y = op_tensor(target, DT_F32, m, n, n, NULL, true);
    target->device->ops->add_norm(target->device, &y, &residual, &delta,
                                  op_buffer(target, (size_t)n * 4, c), 1e-5f);
    float *got = op_values(&rig, target, &residual);
    expect_close("residual", got, d, m * n, 1e-6, 1e-6);
    free(got);
    got = op_values(&rig, target, &y);
    expect_close("y", got, e, m * n, 3e-6, 1e-7);
    free(got);
    op_release(&rig, target);
}

static void test_add_norm(void **state) {
    (void)state;
    rewind_to("add_norm");
    numbers("shape", shape);
    floats("residual", a), floats("delta", b), floats("gain", c);
    assert_true(number("eps") == 1e-5);
    floats("sum", d), floats("y", e);
    on_all(OP_ADD_NORM, &(struct op_case){.activation = DT_F32}, add_norm_on);
}

static struct rope rope;
static int32_t position;

/* One row of one sequence: two query heads, one key and one value of 8, appended at the cache's
 * last slot. */
static void rope_on(struct op_target *target) {
    int32_t begin[2] = {0, 1}, length = position + 1, zero = 0, one = 1;
    uint64_t key = 0;
    struct step step = {.n_seq = 1, .n_row = 1, .n_out = 1, .most_q = 1, .most_kv = length};
    step.token = op_inout(target, 4, &zero), step.pos = op_inout(target, 4, &position);
    step.seq = op_buffer(target, 4, &zero), step.q_begin = op_buffer(target, 8, begin);
    step.kv_len = op_inout(target, 4, &length), step.out_row = op_buffer(target, 4, &zero);
    step.next = op_inout(target, 4, &zero), step.alive = op_inout(target, 4, &one);
    step.rng = op_buffer(target, 8, &key);
    struct kv kv = {.n_kv = 1, .d_h = 8, .block = position + 1};
    size_t bytes = (size_t)kv.block * 8 * 4;
    kv.k = op_buffer(target, bytes, NULL), kv.v = op_buffer(target, bytes, NULL);
    struct tensor qkv = op_tensor(target, DT_F32, 1, 32, 32, a, false),
                  q = op_tensor(target, DT_F32, 1, 16, 16, NULL, true);
    const struct step_bounds bounds = {1, 1, 1, 1, length, 2, 1, 8, 16, 16, 16, DT_F32};
    op_plan(&rig, target, &bounds);
    target->device->ops->rope_append(target->device, &q, &kv, &qkv, &step, &rope);
    float *got = op_values(&rig, target, &q), k[8], v[8];
    op_download(target, k, (char *)kv.k + bytes - 32, 32);
    op_download(target, v, (char *)kv.v + bytes - 32, 32);
    expect_close("q", got, b, 16, 1e-6, 1e-6);
    expect_close("k", k, c, 8, 1e-6, 1e-6);
    assert_memory_equal(v, d, 32);
    free(got);
    op_release(&rig, target);
}

static void test_rope(void **state) {
    (void)state;
    static const int32_t positions[] = {0, 1, 7, 599, 131071};
    for (int style = 0; style < 2; style++) {
        for (int i = 0; i < 5; i++) {
            char name[60];
            snprintf(name, sizeof name, "rope %s at %d", style ? "pairs" : "halves", positions[i]);
            rewind_to(name);
            rope.style = number("style") != 0 ? ROPE_PAIRS : ROPE_HALVES;
            position = (int32_t)number("position");
            rope.base = (float)number("base");
            assert_int_equal(position, positions[i]);
            assert_int_equal(floats("x", a), 32);
            floats("q", b), floats("k", c), floats("v", d);
            on_all(OP_ROPE_APPEND, &(struct op_case){.kv = DT_F32}, rope_on);
        }
    }
}

/* All rows of one sequence in one prefill; the cache is filled by hand. */
static void attention_on(struct op_target *target) {
    int32_t n = (int32_t)shape[0], n_q = (int32_t)shape[1], n_kv = (int32_t)shape[2],
            width = (int32_t)shape[3];
    int32_t window = (int32_t)shape[4], before = 0;
    struct op_step host;
    op_step_make(&rig, &host, 1, &before, &n, 10);
    struct step step = op_step_on(target, &host);
    struct kv kv = {
        .n_kv = n_kv, .d_h = width, .window = window, .block = window ? window + n - 1 : n};
    size_t bytes = (size_t)(n_kv * kv.block * width) * 4;
    float *k = calloc(1, bytes), *v = calloc(1, bytes);
    for (int32_t t = 0; t < n; t++)
        for (int32_t h = 0; h < n_kv; h++)
            for (int32_t i = 0; i < width; i++) {
                k[(h * kv.block + t % kv.block) * width + i] = b[(t * n_kv + h) * width + i];
                v[(h * kv.block + t % kv.block) * width + i] = c[(t * n_kv + h) * width + i];
            }
    kv.k = op_buffer(target, bytes, k), kv.v = op_buffer(target, bytes, v);
    free(k), free(v);
    const struct step_bounds bounds = {1,    n,     1,           n,           n,  n_q,
                                       n_kv, width, n_q * width, n_q * width, 10, DT_F32};
    op_plan(&rig, target, &bounds);
    struct tensor q = op_tensor(target, DT_F32, n, n_q * width, n_q * width, a, false);
    struct tensor o = op_tensor(target, DT_F32, n, n_q * width, n_q * width, NULL, true);
    target->device->ops->attention(target->device, &o, &q, &kv, &step, 1 / sqrtf((float)width));
    float *got = op_values(&rig, target, &o);
    expect_close("o", got, d, n * n_q * width, 3e-6, 3e-6);
    free(got);
    op_release(&rig, target);
}

static void test_attention(void **state) {
    (void)state;
    static const char *const names[] = {"attention window 0", "attention window 1",
                                        "attention window 4"};
    for (int i = 0; i < 3; i++) {
        rewind_to(names[i]);
        numbers("shape", shape);
        floats("q", a), floats("k", b), floats("v", c), floats("o", d);
        on_all(OP_ATTENTION, &(struct op_case){.kv = DT_F32, .window = shape[4] > 0}, attention_on);
    }
}

static struct sampler sampler;

static void select_on(struct op_target *target) {
    int32_t n = (int32_t)shape[0], vocab = (int32_t)shape[1], before[16] = {0}, ones[16] = {0},
            got[16];
    assert_int_equal(n, 16);
    for (int32_t s = 0; s < n; s++) before[s] = 1000 * s + 3, ones[s] = 1;
    struct op_step host;
    op_step_make(&rig, &host, n, before, ones, vocab);
    for (int32_t s = 0; s < n; s++) host.host.rng[s] = random_key((uint64_t)shape[2], (uint64_t)s);
    struct step step = op_step_on(target, &host);
    struct tensor logits = op_tensor(target, DT_F32, n, vocab, vocab, a, false);
    target->device->ops->select(target->device, &step, &logits, &sampler);
    op_download(target, got, step.next, (size_t)n * 4);
    for (int32_t s = 0; s < n; s++)
        if (got[s] != (int32_t)b[s])
            fail_msg("%s: row %d: token %d, golden %g", target->name, s, got[s], (double)b[s]);
    op_release(&rig, target);
}

static void test_select(void **state) {
    (void)state;
    static const char *const names[] = {"select 0", "select 0.25", "select 0.7", "select 1.5"};
    op_plan_dense(&rig); /* attention planned for steps of one output */
    for (int i = 0; i < 4; i++) {
        rewind_to(names[i]);
        numbers("shape", shape);
        sampler = (struct sampler){.temperature = (float)number("temperature"), .end_id = -1};
        shape[2] = number("seed");
        floats("logits", a), floats("ids", b);
        on_all(OP_SELECT, &(struct op_case){.activation = DT_F32}, select_on);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_to_f32),   cmocka_unit_test(test_f32_to_f16),
        cmocka_unit_test(test_f32_to_bf16),  cmocka_unit_test(test_nf4_levels),
        cmocka_unit_test(test_quantization), cmocka_unit_test(test_errors_of_e32),
        cmocka_unit_test(test_kv_int8),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_add_norm),
        cmocka_unit_test(test_rope),         cmocka_unit_test(test_attention),
        cmocka_unit_test(test_select),       cmocka_unit_test(test_codes_by_codes),
    };
    const char *source = getenv("SOURCE_DIR");
    char path[4096];
    size_t len;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/tests/golden/ops_golden.txt", source ? source : ".");
    if (file_read(path, 1 << 20, &file, &len, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    static const char *const threads[] = {"1", NULL};
    op_rig_open(&rig, threads);
    op_plan_dense(&rig);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    long broken = op_rig_close(&rig);
    free(file);
    return failed || broken ? 1 : 0;
}
