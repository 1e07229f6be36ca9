/* SPDX-License-Identifier: Apache-2.0 */
/* Caches that workload kv_variants really allocates and runs over: against variants_golden.tsv,
   where a program counted one by one, and against the seeds' records. */
#include "tests/golden/seed_records.h"
#include "workloads/workload.h"

static struct arena *arena;
static struct device *ref;

#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* One step of a narrow stack, on the device that counts; the bytes by the allocator are those by
   formula, and so are the multiply-adds. */
static struct values ran(const char *model, const char *shape, const char *kv_type,
                         const char *settings) {
    struct model_config config = drive_config(model, arena);
    struct drive drive;
    struct err err = {0};
    drive_set(shape_options, &config.shape, "d_model", "8", arena);
    drive_settings(shape_options, &config.shape, shape, " ", arena);
    drive_model(&config, "kv_type", kv_type, arena);
    drive_open_run(&drive, ref, &config, arena);
    if (drive_prepare(&drive, "kv_variants", settings, &err))
        fail_msg("%s %s: %s", shape, settings, err.text);
    drive_execute(&drive);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    if (values_get(&values, "kv_bytes") != values_get(&values, "kv_bytes_allocated"))
        fail_msg("%s %s: %g bytes by formula, %g by the allocator", shape, settings,
                 values_get(&values, "kv_bytes"), values_get(&values, "kv_bytes_allocated"));
    assert_true(values_get(&values, "attention_macs") ==
                values_get(&values, "attention_macs_counted"));
    return values;
}

static void counted_one_by_one(void **state) {
    const char *root = getenv("SOURCE_DIR");
    char path[1000], *text, *rest;
    struct err err = {0};
    size_t len;
    int lines = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/variants_golden.tsv", root ? root : ".");
    if (file_read(path, 1 << 16, &text, &len, &err)) fail_msg("%s", err.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *part[6], *at = line;
        for (int i = 0; i < 6; i++) {
            part[i] = at;
            at = strchr(at, '\t');
            if (at) *at++ = 0;
        }
        const struct values values = ran("tiny", part[0], part[1], part[2]);
        double layers, expected[3];
        assert_int_equal(sscanf(part[0], "n_layers=%lf", &layers), 1);
        for (int i = 0; i < 3; i++) assert_int_equal(sscanf(part[3 + i], "%lf", &expected[i]), 1);
        const double got[] = {values_get(&values, "kv_bytes_allocated"),
                              round(values_get(&values, "tokens_seen") * layers),
                              values_get(&values, "attention_macs_counted")};
        for (int i = 0; i < 3; i++)
            if (got[i] != expected[i])
                fail_msg("%s %s: number %d is %.17g, expected %.17g", part[0], part[2], i, got[i],
                         expected[i]);
        lines++;
    }
    free(text);
    assert_int_equal(lines, 42);
}

/* ---- the seeds' records */

static double per_token(const char *model, long long n_kv, const char *kv_type) {
    const struct values values =
        ran(model, TEXT("n_kv=%lld", n_kv), kv_type, "variant=gqa length=3 batch=2");
    return values_get(&values, "kv_token_allocated");
}

static bool one(const struct record *r) {
    static const char *const primer[] = {"f16", "f32", "int8", "f16"};
    const int id = 100 * r->family + r->n;
    if (id == 903) {
        const struct values values = ran("seed-0.5b", "", "f16", "variant=gqa length=295");
        expect(r, values_get(&values, "kv_bytes_allocated"));
    } else if (id == 901 || id == 1101 || id == 1106 || (id >= 1108 && id <= 1111)) {
        expect(r, per_token("seed-0.5b", (long long)whole(r, "kv_heads"), "f16"));
    } else if (id == 1105) {
        expect(r, per_token("seed-0.5b", 14, "f16") / per_token("seed-0.5b", 2, "f16"));
    } else if (id == 1201) {
        expect(r, per_token("7b", (long long)whole(r, "kv_heads"), "f16"));
    } else if (id >= 1301 && id <= 1304) {
        expect(r,
               4096 * 0x1p-30 * per_token("7b", (long long)whole(r, "kv_heads"), primer[r->n - 1]));
    } else if (id == 1402 || (id >= 1603 && id <= 1610)) {
        expect(r, per_token("13b", (long long)whole(r, "K"), "bf16"));
    } else if (id == 1401 || id == 1403) {
        expect(r, 1024 * per_token("13b", (long long)whole(r, "K"), "bf16"));
    } else if (id == 1601) {
        expect(r, per_token("13b", 40, "bf16") / per_token("13b", 8, "bf16"));
    } else if (r->family == 17 && r->n != 6) {
        static const char *const metrics[] = {"token_elements", "token_elements", "smaller",
                                              "kv_token_allocated", "kv_token_allocated"};
        const struct values values = ran("13b", "n_layers=1 n_q=128 n_kv=128", "bf16",
                                         TEXT("length=2 latent=512 rotary=64 variant=%s",
                                              r->n == 1 || r->n == 4 ? "mha" : "latent"));
        expect(r, values_get(&values, metrics[r->n - 1]));
    } else if (r->family == 18 && has(r, "g")) {
        const struct values values = ran(
            "7b", "", "f16", TEXT("variant=shared length=2 share=%lld", (long long)whole(r, "g")));
        expect(r, values_get(&values, "kv_token_allocated"));
    } else {
        return false;
    }
    return true;
}

static void records(void **state) {
    static const struct product products[] = {{9, one},  {11, one}, {12, one}, {13, one}, {14, one},
                                              {16, one}, {17, one}, {18, one}, {0}};
    (void)state;
    assert_int_equal(each_record(products), 34);
}

/* E18: a ring holds min(S, W) tokens; window and lengths a 128th of the records', heads an eighth.
 */
static void rings(void **state) {
    static const struct {
        const char *length;
        double bytes;
    } cases[] = {{"4", 134217728}, {"16", 536870912}, {"64", 738197504}, {"512", 2617245696}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct values values =
            ran("7b", "n_q=8 d_h=16", "f16",
                TEXT("variant=window window=16 local_layers=28 length=%s", cases[i].length));
        assert_true(values_get(&values, "kv_bytes_allocated") == cases[i].bytes / 2048);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counted_one_by_one),
                                       cmocka_unit_test(records), cmocka_unit_test(rings)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
