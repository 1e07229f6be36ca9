/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads that compute: any values that pass their checks give numbers, at once; and what ref
   counts is what formulas say for other shapes than the seeds'. */
#include "base/clock.h"
#include "base/random.h"
#include "tests/unit/workloads/drive.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

static struct arena *arena;
static struct device *ref;
#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* One value of an option: its least, its largest, one drawn between, or next to nothing. */
static void draw(const struct option *o, void *params, uint64_t key, uint64_t i) {
    const uint32_t kind = random_below(key, 2 * i, 5);
    const double share = kind == 0 ? 0 : kind == 1 ? 1 : pow(random_unit(key, 2 * i + 1), 8);
    const bool tiny = kind == 4 && o->type == OPT_REAL && o->min == 0;
    const double v = tiny ? 1e-300 : o->min + share * (o->max - o->min);
    char text[64];
    int words = 0;
    if (o->type == OPT_TEXT || kind == 3) return; /* as it is */
    while (o->words && o->words[words]) words++;
    if (o->type == OPT_WORD)
        snprintf(text, sizeof text, "%s", o->words[random_below(key, 2 * i + 1, (uint32_t)words)]);
    else if (o->type == OPT_FLAG)
        snprintf(text, sizeof text, "%s", kind ? "true" : "false");
    else if (o->type == OPT_REAL)
        snprintf(text, sizeof text, "%.17g", v);
    else
        snprintf(text, sizeof text, "%lld%s", (long long)v, o->type == OPT_TIME ? " ns" : "");
    struct err err = {0};
    if (option_parse(o, text, params, arena, &err)) fail_msg("%s=%s: %s", o->key, text, err.text);
}

static void draw_all(const struct option *table, void *params, uint64_t key) {
    uint64_t i = 0;
    for (const struct option *o = table; o->key; o++) draw(o, params, key, i++);
}

static bool accepted(const struct workload *w, const void *params,
                     const struct model_config *config) {
    struct problems *problems = problems_create();
    model_check(config, problems);
    if (w->check && !problems_count(problems)) w->check(params, config, problems);
    const bool good = !problems_count(problems);
    problems_close(&problems);
    return good;
}

static void extremes(void **state) {
    int computed = 0, workloads = 0;
    (void)state;
    for (const struct workload *const *at = all_workloads; *at; at++) {
        const struct workload *w = *at;
        if (!w->compute) continue;
        workloads++;
        assert_int_equal(w->flags & WORK_ONCE, WORK_ONCE);
        for (uint64_t trial = 0; trial < 200; trial++) {
            struct model_config config = drive_config("7b", arena);
            struct values v = {0};
            void *params = arena_alloc(arena, w->params_size);
            option_defaults(w->params, params, arena);
            draw_all(w->params, params, random_key(trial, 1));
            if (trial % 2) draw_all(shape_options, &config.shape, random_key(trial, 2));
            if (trial % 2) draw_all(model_options, &config.params, random_key(trial, 3));
            if (!accepted(w, params, &config)) continue;
            const int64_t begin = clock_ns();
            w->compute(params, &config, &v);
            assert_true(clock_ns() - begin < 20000000000); /* a loaded machine's, not forever */
            for (int i = 0; i < v.n; i++)
                if (isinf(v.items[i].v)) fail_msg("%s: %s is infinite", w->name, v.items[i].name);
            computed++;
        }
    }
    assert_true(workloads >= 6);
    assert_true(computed > 100 * workloads / 2);
}

/* Every metric that a workload declares is reported or NAN, and none besides. */
static void only_declared_metrics(void **state) {
    (void)state;
    for (const struct workload *const *at = all_workloads; *at; at++) {
        const struct workload *w = *at;
        if (!w->compute) continue;
        const struct model_config config = drive_config("13b", arena);
        struct values v = {0};
        void *params = arena_alloc(arena, w->params_size);
        option_defaults(w->params, params, arena);
        w->compute(params, &config, &v);
        for (int i = 0; i < v.n; i++) {
            bool found = false;
            for (const struct metric *m = w->metrics; m->name; m++)
                found = found || !strcmp(m->name, v.items[i].name);
            if (!found) fail_msg("%s reports %s undeclared", w->name, v.items[i].name);
        }
    }
}

static bool refused(const char *workload, const char *shape, const char *settings) {
    const struct workload *w = workload_find(workload);
    const struct model_config config = drive_config(shape, arena);
    void *params = arena_alloc(arena, w->params_size);
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, ";", arena);
    return !accepted(w, params, &config);
}

static void refusals(void **state) {
    (void)state;
    assert_true(refused("op_counts", "13b", "tokens=4096;mode=full"));
    assert_false(refused("op_counts", "13b", "tokens=4096;mode=full;count=false"));
    assert_true(refused("one_head", "tiny", "context=131072;width=4096;mode=recompute"));
    assert_false(refused("one_head", "tiny", "context=131072;mode=cached"));
    assert_true(refused("speculation", "tiny", "passes=10000000;draft=4096"));
    static const char *const lists[] = {"",         "0.5,",     ",0.5",      "0.5 0.2", "x",
                                        "0.2, 0.5", "0.6, 0.6", "0.5, -0.1", "0.5, 0",  "1.5",
                                        "nan",      "0.5,,0.2", "0.5"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!refused("temperature", "tiny", TEXT("probabilities=%s", lists[i])))
            fail_msg("'%s' was taken", lists[i]);
    assert_false(refused("temperature", "tiny", "probabilities=0.5,0.25;second=2"));
}

/* ---- what ref executes */

static struct values counted(const char *workload, const char *shape, const char *model,
                             const char *settings) {
    struct model_config config = drive_config("tiny", arena);
    struct drive drive;
    struct err err = {0};
    drive_settings(shape_options, &config.shape, shape, " ", arena);
    drive_settings(model_options, &config.params, model, " ", arena);
    drive_open_run(&drive, ref, &config, arena);
    if (drive_prepare(&drive, workload, settings, &err)) fail_msg("%s", err.text);
    drive_execute(&drive);
    const struct values v = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    return v;
}

static void counts(void **state) {
    static const char *const shapes[] = {"n_layers=1 n_q=1 n_kv=1 d_h=64",
                                         "n_layers=3 n_q=4 n_kv=2 d_h=6", "n_q=6 n_kv=1 d_h=2"};
    static const char *const models[] = {"kv_type=f32", "kv_type=int8 layout=paged block=3",
                                         "kv_type=f16"};
    static const char *const modes[] = {"cached", "triangle", "full"};
    (void)state;
    for (int s = 0; s < 3; s++)
        for (int m = 0; m < 3; m++) {
            const struct values v =
                counted("op_counts", shapes[s], models[s], TEXT("tokens=9 mode=%s", modes[m]));
            assert_true(values_get(&v, "macs") > 0);
            assert_true(values_get(&v, "macs") == values_get(&v, "macs_counted"));
        }
    static const char *const formats[] = {"type=f32", "type=int8 activation=int8", "type=int4",
                                          "type=bf16 window=5"};
    for (int f = 0; f < 4; f++)
        for (int m = 0; m < 2; m++) {
            const struct values v = counted(
                "generate", "d_ff=96 n_kv=1", formats[f],
                TEXT("prompt=3 tokens=5 batch=2 mode=%s logits=all", m ? "recompute" : "cached"));
            assert_true(values_get(&v, "macs") > 0);
            assert_true(values_get(&v, "macs") == values_get(&v, "macs_counted"));
        }
}

/* ---- formulas at their edges */

static void edges(void **state) {
    const struct serving s = {.weight_bytes = 100,
                              .kv_token_bytes = 3,
                              .kv_tokens = 7,
                              .bandwidth = 50,
                              .card_bytes = 163,
                              .reserve_bytes = 0};
    struct serving full = s, blind = s;
    (void)state;
    assert_true(serving_resident(&s) == 21 && serving_users(&s) == 3); /* exactly full */
    full.reserve_bytes = 1;
    assert_true(serving_resident(&full) == 20 && serving_users(&full) == 2);
    full.reserve_bytes = 64; /* the weights do not fit */
    assert_true(serving_resident(&full) == 0 && serving_users(&full) == 0);
    blind.bandwidth = blind.card_bytes = 0;
    assert_true(isnan(serving_step(&blind, 1)) && isnan(serving_users(&blind)));
    assert_true(serving_users_within(&s, 142.0 / 50) == 2); /* 100 + 2 x 21 bytes */
    assert_true(serving_users_within(&s, 1) == 0);
    assert_true(serving_users_within(&s, 1e9) == 3); /* no more than fit */
    assert_true(speculation_tokens(0, 5) == 1 && speculation_tokens(1, 5) == 6);
    assert_true(speculation_tokens(0.5, 0) == 1 && speculation_speedup(0.5, 0, 9) == 1);
    assert_true(isnan(speculation_cost(0.5, 0, 1)) && speculation_cost(1, 4, 1) == 1);
    assert_true(fabs(speculation_cost(0.9, 8, speculation_speedup(0.9, 8, 0.1)) - 0.1) < 1e-15);
    assert_true(speculation_break_even(4, 2) == 1); /* a draft dearer than the target */
    assert_true(speculation_break_even(4, 0) < 1e-9 && speculation_best(0, 0.1, 32) == 0);
    assert_true(checkpoint_best(1, 1, 1) == 1 && checkpoint_peak(5, 2, 10, 1) == 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extremes), cmocka_unit_test(only_declared_metrics),
        cmocka_unit_test(refusals), cmocka_unit_test(counts), cmocka_unit_test(edges)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
