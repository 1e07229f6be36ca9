/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop on the fake device, whose clock is virtual: what is asserted is equal to the
 * nanosecond. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "harness/loop.h"
#include "results/table.h"

struct rig { /* one visit of `null` on `fake` */
    struct arena *arena;
    struct point *point;
    struct measure_params measure;
    struct device *device;
    struct sample_log log;
    struct tables *out;
    int fd;
};

/* keys: "device.noise=0.05", "workload.marks=3", "measure.precision=0.02", ... ends with NULL. */
static void rig_open(struct rig *r, const char *const *keys) {
    struct facts facts = {0};
    struct err err = {0};
    *r = (struct rig){.arena = arena_create()};
    option_defaults(measure_options, &r->measure, r->arena);
    facts_set(&facts, "workload.name", "null", "", "");
    facts_set(&facts, "device.kind", "fake", "", "");
    for (; *keys; keys++) {
        const char *equals = strchr(*keys, '=');
        char *key = arena_textn(r->arena, *keys, (size_t)(equals - *keys));
        if (!strncmp(key, "measure.", 8)) {
            const struct option *o = option_find(measure_options, key + 8);
            assert_non_null(o);
            assert_int_equal(option_parse(o, equals + 1, &r->measure, r->arena, &err), 0);
        } else {
            facts_set(&facts, key, equals + 1, "", "");
        }
    }
    r->point = arena_alloc(r->arena, sizeof *r->point);
    int code = point_parse(r->point, &facts, r->arena, NULL, &err);
    if (code) fail_msg("%s", err.text);
    r->point->label = "";
    assert_int_equal(device_open(&r->device, r->point->device, r->point->device_params, &err), 0);
    assert_int_equal(sample_log_create(&r->fd, &r->log, &err), 0);
    r->out = tables_create();
    facts_free(&facts);
}

static void rig_close(struct rig *r) {
    tables_close(&r->out);
    sample_log_unmap(&r->log);
    close(r->fd);
    device_close(&r->device);
    facts_free(&r->point->facts);
    arena_close(&r->arena);
}

static void rig_visit(struct rig *r, double share_s, bool first) {
    struct visit_request request = {.point = r->point,
                                    .measure = &r->measure,
                                    .first = first,
                                    .share_ns = (int64_t)(share_s * 1e9)};
    struct run_store store = {0};
    loop_visit(&request, r->device, &store, &r->log, r->out);
}

static const char *text_of(const struct rig *r, const char *column) {
    const struct table *t = tables_peek(r->out, "visits");
    return table_text(t, table_rows(t) - 1, column);
}

static void test_exact_times(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=1500 us", NULL});
    rig_visit(&r, 1, true);
    assert_string_equal(text_of(&r, "state"), "ok");
    assert_string_equal(text_of(&r, "steady"), "yes");
    assert_true(r.log.head->samples >= 20);
    for (int64_t i = 0; i < r.log.head->samples; i++) {
        assert_int_equal(r.log.sample[i].wall_ns, 1500000);
        assert_int_equal(r.log.sample[i].batch, 1);
        assert_int_equal(r.log.sample[i].labels, 0);
    }
    assert_non_null(strstr(text_of(&r, "why_stopped"), "precision"));
    rig_close(&r);
}

/* Slow first executions and a slow first stretch of time belong to the warm-up, are stored, and are
 * not samples. */
static void test_slow_start(void **state) {
    (void)state;
    static const char *const scripts[][4] = {
        {"device.slow_first=3", "device.time=1 ms", NULL},
        {"device.slow_for=150 ms", "device.time=1 ms", NULL},
        {"device.slow_first=3", "device.time=200 ms", NULL},
        {"device.slow_for=150 ms", "device.time=1 ms", "device.noise=0.01", NULL},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct rig r;
        rig_open(&r, scripts[i]);
        rig_visit(&r, 10, true);
        assert_string_equal(text_of(&r, "state"), "ok");
        assert_string_equal(text_of(&r, "steady"), "yes");
        double typical = (double)r.log.warmup[r.log.head->warmups - 1];
        assert_true(r.log.head->warmups >= 5);
        assert_true((double)r.log.warmup[0] > 2 * typical); /* the slow ones are kept, as warm-up */
        for (int64_t k = 0; k < r.log.head->samples; k++)
            assert_true((double)r.log.sample[k].wall_ns < 1.5 * typical);
        assert_int_equal(table_int(tables_peek(r.out, "visits"), 0, "warmups"),
                         r.log.head->warmups);
        rig_close(&r);
    }
}

/* Noise that more samples do not average away: the visit ends early and says so; it does not run
 * out its share. */
static void test_noise_floor(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.noise=0.05", "device.time=1 ms",
                                       "device.drift=0.0002", "measure.precision=0.0001", NULL});
    rig_visit(&r, 1000, false);
    assert_non_null(strstr(text_of(&r, "why_stopped"), "noise floor"));
    assert_true(r.log.head->samples < 100000); /* the share would allow a million */
    rig_close(&r);
}

static void test_share_ends(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.noise=0.2", "device.time=10 ms",
                                       "measure.precision=0.0001", NULL});
    rig_visit(&r, 2, true);
    assert_non_null(strstr(text_of(&r, "why_stopped"), "share of the budget"));
    double spent = (double)r.log.head->spent_ns * 1e-9;
    assert_true(spent >= 1.9 &&
                spent <= 2.0 + 0.03); /* the share and at most about one execution more */
    rig_close(&r);
}

/* A share of nothing still gives the least that a row needs. */
static void test_least(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=100 ms", NULL});
    rig_visit(&r, 0, true);
    assert_int_equal(r.log.head->samples, r.measure.min_samples);
    assert_int_equal(r.log.head->warmups, r.measure.warmups);
    rig_close(&r);
    rig_open(&r, (const char *const[]){"device.time=3 s", NULL}); /* long executions: two of each */
    rig_visit(&r, 1, true);
    assert_int_equal(r.log.head->warmups, 2);
    assert_int_equal(r.log.head->samples, 2);
    rig_close(&r);
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every sample beyond 1.5 times the quartiles' distance is labelled, no other, and none is dropped.
 */
static void test_outliers_are_labelled(void **state) {
    (void)state;
    enum { N = 401 }; /* quartiles are samples: 100 and 300 of the sorted ones */
    double sorted[N];
    int64_t outside = 0;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.noise=0.2", "device.time=1 ms",
                                       "measure.stop=samples", "measure.samples=401", NULL});
    rig_visit(&r, 1, true);
    assert_int_equal(r.log.head->samples, N);
    for (int i = 0; i < N; i++) sorted[i] = (double)r.log.sample[i].wall_ns;
    qsort(sorted, N, sizeof *sorted, by_time);
    double reach = 1.5 * (sorted[300] - sorted[100]);
    for (int i = 0; i < N; i++) {
        double x = (double)r.log.sample[i].wall_ns;
        bool out = x < sorted[100] - reach || x > sorted[300] + reach;
        assert_int_equal(r.log.sample[i].labels, out ? LABEL_OUTLIER : 0);
        outside += out;
    }
    assert_in_range(outside, 1, 40);
    rig_close(&r);
}

static void test_clock_stands_still(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.resolution=0", NULL});
    rig_visit(&r, 1, true);
    assert_string_equal(text_of(&r, "state"), "failed");
    assert_non_null(strstr(text_of(&r, "reason"), "clock unresolved"));
    rig_close(&r);
}

/* Slow enough to be seen at first, too short for this clock afterwards: zeros are no numbers. */
static void test_clock_stands_still_later(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.resolution=1 s", "device.time=1 us",
                                       "device.slow_first=1", "device.slow_factor=1e6",
                                       "measure.stop=samples", "measure.samples=5", NULL});
    rig_visit(&r, 1, true);
    assert_string_equal(text_of(&r, "state"), "failed");
    assert_non_null(strstr(text_of(&r, "reason"), "clock unresolved: all 5 samples"));
    rig_close(&r);
}

static void test_drift_is_not_steady(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=10 ms", "device.drift=0.05",
                                       "measure.warmup_budget=3 s", NULL});
    rig_visit(&r, 4, true);
    assert_string_equal(text_of(&r, "steady"), "no");
    assert_non_null(strstr(text_of(&r, "flags"), "not_steady"));
    assert_string_equal(text_of(&r, "state"), "ok"); /* flagged, with numbers */
    assert_true(r.log.head->samples > 0);
    rig_close(&r);
}

/* 5 ms of eviction before every sample add nothing to any. */
static void test_reset_adds_nothing(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=1 ms", "device.reset_time=5 ms",
                                       "measure.cold=true", NULL});
    rig_visit(&r, 1, true);
    assert_true(r.log.head->samples >= 5);
    for (int64_t i = 0; i < r.log.head->samples; i++)
        assert_int_equal(r.log.sample[i].wall_ns, 1000000);
    rig_close(&r);
}

static void test_failure_is_never_a_number(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=100 ms", "device.fail_at=8",
                                       "measure.samples=20", "measure.stop=samples", NULL});
    rig_visit(&r, 60, true);
    assert_string_equal(text_of(&r, "state"), "failed");
    assert_non_null(strstr(text_of(&r, "reason"), "execution 8"));
    int64_t n = r.log.head->samples;
    assert_true(n >= 1);
    assert_true(r.log.sample[n - 1].labels & LABEL_FAILED);
    for (int64_t i = 0; i < n - 1; i++) assert_int_equal(r.log.sample[i].wall_ns, 100000000);
    /* Nothing sticks: the next visit on the same device is whole. */
    rig_visit(&r, 1, false);
    assert_string_equal(text_of(&r, "state"), "ok");
    rig_close(&r);
}

static void test_fixed_samples(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=1 ms", "measure.stop=samples",
                                       "measure.samples=37", NULL});
    rig_visit(&r, 0.001, true);
    assert_int_equal(r.log.head->samples, 37);
    rig_close(&r);
}

static void test_marks_are_kept(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"workload.marks=3", "measure.stop=samples",
                                       "measure.samples=11", NULL});
    rig_visit(&r, 1, true);
    assert_int_equal(r.log.head->samples, 11);
    assert_int_equal(r.log.head->marks, 33);
    sample_log_tables(&r.log, 7, r.out);
    const struct table *t = tables_peek(r.out, "marks");
    assert_int_equal(table_rows(t), 33);
    assert_int_equal(table_int(t, 32, "visit"), 7);
    assert_int_equal(table_int(t, 32, "sample"), 10);
    rig_close(&r);
}

/* A workload whose plan promises no allocation, and which allocates all the same. */
struct greedy_self {
    struct device *device;
};
static int greedy_prepare(void *self, const void *params, const struct model_config *config,
                          struct run *run, struct err *err) {
    (void)params, (void)config, (void)err;
    ((struct greedy_self *)self)->device = run_device(run);
    return 0;
}
static void greedy_execute(void *self) {
    struct device *device = ((struct greedy_self *)self)->device;
    device_free(device, device_alloc(device, 4096, MEM_OTHER, "hidden"));
}
static void test_broken_promise(void **state) {
    (void)state;
    static const struct phase phases[] = {{"greed", "execution"}, {0}};
    static const struct workload greedy = {.name = "greedy",
                                           .phases = phases,
                                           .self_size = sizeof(struct greedy_self),
                                           .prepare = greedy_prepare,
                                           .execute = greedy_execute};
    struct rig r;
    rig_open(&r, (const char *const[]){"measure.stop=samples", "measure.samples=7", NULL});
    r.point->workload = &greedy;
    r.point->plan.peak_bytes = 0;
    rig_visit(&r, 1, true);
    assert_string_equal(text_of(&r, "state"), "failed");
    assert_non_null(strstr(text_of(&r, "reason"), "7 allocations"));
    r.point->plan.peak_bytes = -1; /* nothing promised, nothing broken */
    rig_visit(&r, 1, false);
    assert_string_equal(text_of(&r, "state"), "ok");
    rig_close(&r);
}

/* Warm-up runs what is measured: the same state, parameters and place, and every execution is
 * accounted for. */
struct same_self {
    const void *params;
    int64_t depth;
};
static struct {
    const void *self, *params;
    int64_t executions, others;
} same_seen;
static int same_prepare(void *self, const void *params, const struct model_config *config,
                        struct run *run, struct err *err) {
    (void)config, (void)run, (void)err;
    *(struct same_self *)self = (struct same_self){params, 7};
    same_seen.self = self;
    same_seen.params = params;
    same_seen.executions = same_seen.others = 0;
    return 0;
}
static void same_execute(void *self) {
    const struct same_self *s = self;
    same_seen.executions++;
    same_seen.others += self != same_seen.self || s->params != same_seen.params || s->depth != 7;
}
static void test_warm_up_is_the_measured_shape(void **state) {
    (void)state;
    static const struct phase phases[] = {{"same", "execution"}, {0}};
    static const struct workload same = {.name = "same",
                                         .phases = phases,
                                         .self_size = sizeof(struct same_self),
                                         .prepare = same_prepare,
                                         .execute = same_execute};
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=60 ms", "measure.stop=samples",
                                       "measure.samples=9", NULL});
    r.point->workload = &same;
    rig_visit(&r, 5, true);
    assert_string_equal(text_of(&r, "state"), "ok");
    assert_int_equal(same_seen.others, 0);
    assert_int_equal(same_seen.executions, r.log.head->warmups + r.log.head->samples);
    rig_close(&r);
}

/* A million samples: every one is kept, in a time that grows with their number only. */
static int poor_prepare(void *self, const void *params, const struct model_config *config,
                        struct run *run, struct err *err) {
    (void)self, (void)params, (void)config, (void)run;
    return err_set(err, ERR_MEMORY, "no memory for weights");
}
static int broken_sync(struct device *device, struct err *err) {
    (void)device;
    return err_set(err, ERR_DEVICE, "a kernel touched what is not there");
}

/* No memory is a state of its own, unless the device failed before. */
static void test_a_broken_device_is_not_out_of_memory(void **state) {
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        struct rig r;
        rig_open(&r, (const char *const[]){"device.time=1 ms", NULL});
        const struct workload *null = r.point->workload;
        struct device_kind kind = *r.device->kind;
        const struct device_kind *whole = r.device->kind;
        struct workload poor = *null;
        poor.prepare = poor_prepare;
        poor.dispose = NULL;
        r.point->workload = &poor;
        if (broken) kind.sync = broken_sync;
        r.device->kind = &kind;
        rig_visit(&r, 1, true);
        assert_string_equal(text_of(&r, "state"), broken ? "failed" : "oom");
        assert_string_equal(text_of(&r, "reason"), broken ? "a kernel touched what is not there"
                                                          : "no memory for weights");
        r.device->kind = whole;
        r.point->workload = null;
        rig_close(&r);
    }
}

static bool never(struct device *device, const struct step_id *id) {
    (void)device, (void)id;
    return false;
}

/* Where steps are recorded at their second time, a later visit warms up twice too. */
static void test_recording_is_no_sample(void **state) {
    (void)state;
    for (int records = 0; records < 2; records++) {
        struct rig r;
        rig_open(&r, (const char *const[]){"device.time=1 ms", NULL});
        struct device_kind kind = *r.device->kind;
        const struct device_kind *whole = r.device->kind;
        if (records) kind.replay = never;
        r.device->kind = &kind;
        rig_visit(&r, 1, false);
        assert_int_equal(r.log.head->warmups, 1 + records);
        r.device->kind = whole;
        rig_close(&r);
    }
}

static void test_million(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r,
             (const char *const[]){"device.time=1 us", "device.noise=0.5", "measure.stop=samples",
                                   "measure.samples=1000000", "measure.max_samples=1000000", NULL});
    rig_visit(&r, 1, false);
    assert_int_equal(r.log.head->samples, 1000000);
    sample_log_tables(&r.log, 0, r.out);
    assert_int_equal(table_rows(tables_peek(r.out, "samples")), 1000000);
    rig_close(&r);
}

/* The real clock: a spin of 2 ms can never come out shorter, and short executions are batched to be
 * resolved. */
static void test_real_clock(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.kind=ref", "workload.spin=2 ms",
                                       "measure.stop=samples", "measure.samples=5", NULL});
    rig_visit(&r, 1, true);
    assert_string_equal(text_of(&r, "state"), "ok");
    for (int64_t i = 0; i < 5; i++) assert_true(r.log.sample[i].wall_ns >= 2000000);
    rig_close(&r);
    rig_open(&r, (const char *const[]){"device.kind=ref", "measure.stop=samples",
                                       "measure.samples=50", NULL});
    rig_visit(&r, 1, true);
    assert_true(r.log.sample[0].batch > 1);
    assert_true(r.log.sample[0].wall_ns > 0);
    rig_close(&r);
}

/* Samples one by one, as they are asked for; a failure is no sample, and the rows are those of a
 * visit. */
static void test_turns(void **state) {
    (void)state;
    struct rig r;
    rig_open(&r, (const char *const[]){"device.time=1500 us", "device.fail_at=13", NULL});
    struct visit_request request = {.point = r.point,
                                    .measure = &r.measure,
                                    .first = true,
                                    .turns = true,
                                    .share_ns = 400000000};
    struct run_store store = {0};
    struct visit *v = loop_open(&request, r.device, &store, &r.log);
    assert_int_equal(r.log.head->warmups, 5); /* executions 0 ... 4 */
    assert_int_equal(r.log.head->samples, 0);
    assert_int_equal(loop_turn(v, 1), 1500000);
    assert_int_equal(loop_turn(v, 4), 6000000);
    assert_int_equal(loop_turn(v, 2), 3000000);
    assert_int_equal(loop_turn(v, 3), -1); /* the second of these fails */
    assert_int_equal(loop_turn(v, 1), -1); /* and none comes after it */
    loop_close(&v, r.out);
    assert_null(v);
    assert_string_equal(text_of(&r, "state"), "failed");
    assert_non_null(strstr(text_of(&r, "reason"), "as scripted"));
    assert_int_equal(r.log.sample[1].wall_ns, 6000000);
    assert_int_equal(r.log.sample[1].batch, 4);
    assert_int_equal(r.log.sample[1].device_ns, 6000000); /* of all four */
    assert_int_equal(r.log.sample[2].labels, 0);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_exact_times),
        cmocka_unit_test(test_slow_start),
        cmocka_unit_test(test_noise_floor),
        cmocka_unit_test(test_share_ends),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_outliers_are_labelled),
        cmocka_unit_test(test_clock_stands_still),
        cmocka_unit_test(test_clock_stands_still_later),
        cmocka_unit_test(test_drift_is_not_steady),
        cmocka_unit_test(test_reset_adds_nothing),
        cmocka_unit_test(test_failure_is_never_a_number),
        cmocka_unit_test(test_fixed_samples),
        cmocka_unit_test(test_marks_are_kept),
        cmocka_unit_test(test_broken_promise),
        cmocka_unit_test(test_warm_up_is_the_measured_shape),
        cmocka_unit_test(test_a_broken_device_is_not_out_of_memory),
        cmocka_unit_test(test_recording_is_no_sample),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_real_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
