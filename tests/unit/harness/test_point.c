/* SPDX-License-Identifier: Apache-2.0 */
/* Points from facts, as a worker gets them: defaults filled in, everything checked, first mistake
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "harness/protocol.h"

struct made {
    struct arena *arena;
    struct point p;
    struct err err;
    int code;
};

/* Facts as "key=value" words; with_shape adds those of a small transformer. */
static struct made make(const char *const *words, bool with_shape) {
    static const char *const shape[] = {"model.shape=small", "shape.n_layers=2", "shape.d_model=64",
                                        "shape.n_q=4",       "shape.n_kv=2",     "shape.d_h=16",
                                        "shape.d_ff=160",    "shape.vocab=288",  NULL};
    struct made m = {.arena = arena_create()};
    struct facts facts = {0};
    for (int pass = with_shape ? 0 : 1; pass < 2; pass++) {
        for (const char *const *w = pass ? words : shape; *w; w++) {
            const char *equals = strchr(*w, '=');
            char key[64] = {0};
            memcpy(key, *w, (size_t)(equals - *w));
            facts_set(&facts, key, equals + 1, "", "t.toml:1:1");
        }
    }
    m.code = point_parse(&m.p, &facts, m.arena, NULL, &m.err);
    facts_free(&facts);
    return m;
}
static void made_close(struct made *m) {
    facts_free(&m->p.facts);
    arena_close(&m->arena);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void defaults_and_origins(void **state) {
    (void)state;
    struct made m =
        make(WORDS("workload.name=null", "workload.marks=3", "device.kind=fake"), false);
    if (m.code) fail_msg("%s", m.err.text);
    assert_string_equal(m.p.workload->name, "null");
    assert_string_equal(m.p.device->name, "fake");
    assert_false(m.p.has_model);
    assert_int_equal(m.p.weights_key, 0);
    assert_int_equal(m.p.plan.most_marks, 3);
    assert_string_equal(facts_find(&m.p.facts, "workload.marks")->origin, "t.toml:1:1");
    assert_string_equal(facts_find(&m.p.facts, "workload.spin")->origin, "default");
    assert_string_equal(facts_find(&m.p.facts, "device.time")->value, "1 ms");
    assert_string_equal(m.p.case_name, "");
    assert_string_equal(m.p.label, "");
    made_close(&m);
}

static void auto_is_resolved(void **state) {
    (void)state;
    struct made m = make(WORDS("workload.name=null"), false);
    assert_int_equal(m.code, 0);
    const char *kind = facts_get(&m.p.facts, "device.kind", "");
    assert_true(!strcmp(kind, "cpu") || !strcmp(kind, "cuda"));
    assert_string_equal(m.p.device->name, kind);
    made_close(&m);
}

/* What a point's own facts say makes the same point again: that is how a worker gets it. */
static void facts_make_the_same_point(void **state) {
    (void)state;
    struct made a =
        make(WORDS("workload.name=decode", "workload.batch=4", "device.kind=ref"), true);
    if (a.code) fail_msg("%s", a.err.text);
    struct made b = {.arena = arena_create()};
    struct text packed = {0};
    struct facts carried = {0};
    facts_pack(&packed, &a.p.facts);
    assert_int_equal(facts_unpack(&carried, packed.data, packed.len, NULL), 0);
    assert_int_equal(point_parse(&b.p, &carried, b.arena, NULL, &b.err), 0);
    assert_string_equal(a.p.cell, b.p.cell);
    assert_true(a.p.cell_hash == b.p.cell_hash);
    assert_true(a.p.weights_key == b.p.weights_key && a.p.weights_key);
    assert_true(facts_hash(&a.p.facts) == facts_hash(&b.p.facts));
    assert_memory_equal(&a.p.plan, &b.p.plan, sizeof a.p.plan);
    text_free(&packed);
    facts_free(&carried);
    made_close(&a);
    made_close(&b);
}

static void weights_are_shared_by_what_they_depend_on(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"workload.batch=2", "same"},   {"model.kv_type=f16", "same"},
        {"workload.context=9", "same"}, {"model.type=f32", "other"},
        {"model.seed=2", "other"},      {"shape.d_ff=96", "other"},
        {"device.kind=fake", "other"},
    };
    struct made a = make(WORDS("workload.name=decode", "device.kind=ref"), true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made b = make(WORDS("workload.name=decode", "device.kind=ref", rows[i][0]), true);
        if (b.code) fail_msg("%s", b.err.text);
        if ((a.p.weights_key == b.p.weights_key) != !strcmp(rows[i][1], "same"))
            fail_msg("%s: expected %s", rows[i][0], rows[i][1]);
        assert_true(strcmp(a.p.cell, b.p.cell) != 0);
        made_close(&b);
    }
    made_close(&a);
}

static void first_mistake(void **state) {
    (void)state;
    static const struct {
        const char *words[4], *part;
    } rows[] = {
        {{"workload.name=nul"}, "no workload is called 'nul'; did you mean 'null'?"},
        {{"device.kind=ref"}, "workload.name is required"},
        {{"workload.name=null", "workload.mark=1"}, "unknown key 'workload.mark'"},
        {{"workload.name=null", "workload.marks=-1"}, "workload.marks: -1 is outside"},
        {{"workload.name=null", "device.kind=gpu"}, "no device is called 'gpu'"},
        {{"workload.name=null", "model.type=f32"}, "unknown key 'model.type'"},
        {{"workload.name=decode", "device.kind=ref"}, "model.shape is required"},
        {{"workload.name=decode", "model.shape=x", "shape.d_h=4"}, "is required: integer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = make(rows[i].words, false);
        assert_int_equal(m.code, ERR_INPUT);
        if (!strstr(m.err.text, rows[i].part))
            fail_msg("'%s' not in '%s'", rows[i].part, m.err.text);
        made_close(&m);
    }
    struct made m = make(WORDS("workload.name=decode", "device.kind=ref", "shape.n_kv=3"), true);
    assert_int_equal(m.code, ERR_INPUT);
    assert_non_null(strstr(m.err.text, "3 KV heads do not divide 4 query heads"));
    made_close(&m);
}

static void sums_of_a_plan(void **state) {
    (void)state;
    struct plan plan = {0};
    plan.work[0].flops = 3;
    plan.work[MAX_PHASES - 1].flops = 4;
    plan.work[0].bytes[0] = 5;
    plan.work[1].bytes[N_CLASSES - 1] = 6;
    plan.prepare.flops = 100;
    plan.bytes[0] = 7;
    plan.bytes[N_CLASSES - 1] = 8;
    plan.host_bytes = 1000;
    assert_true(plan_flops(&plan) == 7);
    assert_true(plan_bytes(&plan) == 11);
    assert_int_equal(plan_live_bytes(&plan), 15);
}

static void machine(void **state) {
    (void)state;
    assert_true(memory_limit() > 1 << 20);
    assert_non_null(data_folder("protocols"));
    assert_null(data_folder("no such folder"));
    setenv("BENCH_DATA", "/nowhere", 1);
    assert_null(data_folder("protocols"));
    unsetenv("BENCH_DATA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_origins),
        cmocka_unit_test(auto_is_resolved),
        cmocka_unit_test(facts_make_the_same_point),
        cmocka_unit_test(weights_are_shared_by_what_they_depend_on),
        cmocka_unit_test(first_mistake),
        cmocka_unit_test(sums_of_a_plan),
        cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
