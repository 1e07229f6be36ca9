/* SPDX-License-Identifier: Apache-2.0 */
/* Probes during a visit: read at their moments, differences and last values, costs; and by the
 * measuring loop on a real device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "harness/look.h"
#include "harness/loop.h"
#include "probes/probe.h"
#include "results/table.h"
#include "tests/support/near.h"

/* Three scripted probes; 'reads' and 'open' look at them from outside. */
static int opened, closed, sample_reads, block_reads, visit_reads;
static double counter; /* what moves */

static int script_open(void *self, struct err *err) {
    (void)err;
    assert_int_equal(*(int *)self, 0); /* zeroed */
    *(int *)self = 42;
    opened++;
    return 0;
}
static int script_refuse(void *self, struct err *err) {
    (void)self;
    return err_set(err, ERR_UNSUPPORTED, "never");
}
static void sample_read(void *self, double *v) {
    assert_int_equal(*(int *)self, 42);
    sample_reads++;
    v[0] = counter;
    v[1] = counter / 2;
    v[2] = (double)NAN;
}
static void block_read(void *self, double *v) {
    (void)self;
    block_reads++;
    v[0] = counter;
    v[1] = 7;
    v[2] = (double)NAN;
}
static void visit_read(void *self, double *v) {
    (void)self;
    int64_t until = clock_ns() + 2000000;
    while (clock_ns() < until) {}
    visit_reads++;
    v[0] = counter;
    v[1] = (double)visit_reads;
    v[2] = (double)NAN;
}
static void script_close(void *self) {
    assert_int_equal(*(int *)self, 42);
    closed++;
}
static void never_read(void *self, double *v) {
    (void)self;
    (void)v;
    fail_msg("%s", "read without being open");
}
static const struct channel channels[] = {
    {"moved", "", "difference", 1}, {"last", "", "value", 0}, {"blank", "", "never", 1}, {0}};
static const struct channel no_channels[] = {{0}};
static const struct probe of_samples = {"s",         "",          PROBE_SAMPLE, channels,
                                        sizeof(int), script_open, sample_read,  script_close},
                          of_blocks = {"b",         "",          PROBE_BLOCK, channels,
                                       sizeof(int), script_open, block_read,  script_close},
                          of_visits = {"v",         "",          PROBE_VISIT, channels,
                                       sizeof(int), script_open, visit_read,  script_close},
                          refused = {"r",           "",         PROBE_VISIT, channels, sizeof(int),
                                     script_refuse, never_read, NULL},
                          listed = {"l",         "",          PROBE_VISIT, no_channels,
                                    sizeof(int), script_open, never_read,  NULL};
static const struct probe *const scripted[] = {&of_samples, &refused, &of_blocks,
                                               &of_visits,  &listed,  NULL};

struct kept {
    int n;
    char name[64][48];
    double value[64];
};
static void keep(void *ctx, const char *name, double value) {
    struct kept *k = ctx;
    assert_true(k->n < 64);
    strncpy(k->name[k->n], name, 47);
    k->value[k->n++] = value;
}
static double kept(const struct kept *k, const char *name) {
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->name[i], name)) return k->value[i];
    return (double)NAN;
}

static int begin(void **state) {
    (void)state;
    opened = closed = sample_reads = block_reads = visit_reads = 0;
    counter = 100;
    return 0;
}

static void before_and_after(void **state) {
    (void)state;
    struct kept k = {0};
    struct look *look = look_open(scripted, false);
    assert_int_equal(opened, 2); /* not the one around samples, not what has no channel */
    counter = 130;
    double cost = look_close(&look, keep, &k);
    assert_null(look);
    assert_int_equal(closed, 2);
    assert_int_equal(sample_reads, 0);
    assert_int_equal(block_reads, 2);
    assert_int_equal(visit_reads, 2);
    assert_near(kept(&k, "b.moved"), 30, 0);
    assert_near(kept(&k, "b.last"), 7, 0);
    assert_near(kept(&k, "v.moved"), 30, 0);
    assert_near(kept(&k, "v.last"), 2, 0);
    assert_true(isnan(kept(&k, "v.blank"))); /* what was not read is not kept */
    assert_true(isnan(kept(&k, "s.moved")));
    assert_true(kept(&k, "v.read_ns") >= 2000000); /* each costs what it costs */
    assert_true(kept(&k, "b.read_ns") < 1000000);
    assert_true(cost >= 4000000);
    assert_int_equal(k.n, 6);
    assert_near(look_close(&look, keep, &k), 0, 0); /* closing nothing is safe */
}

/* Only what moves inside the samples counts. */
static void around_samples(void **state) {
    (void)state;
    struct kept k = {0};
    struct look *look = look_open(scripted, true);
    assert_int_equal(opened, 3);
    for (int i = 0; i < 10; i++) {
        look_before(look);
        counter += 3;
        look_after(look);
        counter += 1000; /* a reset between samples */
    }
    look_close(&look, keep, &k);
    assert_int_equal(sample_reads, 20);
    assert_int_equal(closed, 3);
    assert_near(kept(&k, "s.moved"), 30, 0);
    assert_near(kept(&k, "s.last"), (counter - 1000) / 2, 0);
    assert_near(kept(&k, "v.moved"), 10030, 0);
}

static void blocks_at_most_once_a_millisecond(void **state) {
    (void)state;
    struct kept k = {0};
    struct look *look = look_open(scripted, true);
    int64_t begin_ns = clock_ns(), now;
    do {
        now = clock_ns();
        look_block(look, now);
    } while (now - begin_ns < 20000000);
    int reads = block_reads - 1;
    look_close(&look, keep, &k);
    assert_in_range(reads, 1, 20);
    assert_int_equal(visit_reads, 2); /* others are left alone */
    assert_int_equal(sample_reads, 0);
    assert_near(kept(&k, "b.moved"), 0, 0);
}

/* Every record of the build can be listed and documented. */
static void records_are_complete(void **state) {
    (void)state;
    int n = 0;
    for (const struct probe *const *p = all_probes; *p; p++, n++) {
        assert_true((*p)->name && *(*p)->name && (*p)->brief && *(*p)->brief);
        assert_true((*p)->open && (*p)->read && (*p)->channels);
        int c = 0;
        for (; (*p)->channels[c].name; c++) {
            assert_true((*p)->channels[c].unit && strlen((*p)->channels[c].help) > 10);
            for (int d = 0; d < c; d++)
                assert_string_not_equal((*p)->channels[c].name, (*p)->channels[d].name);
        }
        assert_true(c <= 16); /* what a look has room for */
        for (const struct probe *const *q = all_probes; q != p; q++)
            assert_string_not_equal((*p)->name, (*q)->name);
    }
    assert_true(n >= 7);
}

/* One visit of a spinning loop on a real device. */
static void visit(bool sample_probes, struct tables *out, int64_t *samples) {
    struct arena *arena = arena_create();
    struct facts facts = {0};
    struct err err = {0};
    struct measure_params measure = {0};
    struct point *point = arena_alloc(arena, sizeof *point);
    struct device *device = NULL;
    struct sample_log log;
    int fd;
    option_defaults(measure_options, &measure, arena);
    measure.sample_probes = sample_probes;
    measure.stop = STOP_SAMPLES;
    measure.samples = 200;
    facts_set(&facts, "workload.name", "null", "", "");
    facts_set(&facts, "workload.spin", "100 us", "", "");
    facts_set(&facts, "device.kind", "ref", "", "");
    if (point_parse(point, &facts, arena, NULL, &err)) fail_msg("%s", err.text);
    point->label = "";
    assert_int_equal(device_open(&device, point->device, point->device_params, &err), 0);
    assert_int_equal(sample_log_create(&fd, &log, &err), 0);
    struct visit_request request = {
        .point = point, .measure = &measure, .first = true, .share_ns = 1000000000};
    struct run_store store = {0};
    loop_visit(&request, device, &store, &log, out);
    *samples = table_int(tables_peek(out, "visits"), 0, "samples");
    assert_string_equal(table_text(tables_peek(out, "visits"), 0, "state"), "ok");
    sample_log_unmap(&log);
    close(fd);
    device_close(&device);
    facts_free(&point->facts);
    facts_free(&facts);
    arena_close(&arena);
}

static double value_of(const struct tables *out, const char *metric) {
    const struct table *t = tables_peek(out, "values");
    for (int64_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_text(t, i, "metric"), metric)) return table_real(t, i, "value");
    return (double)NAN;
}

static void the_loop_looks(void **state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct tables *out = tables_create();
        int64_t samples;
        visit(on, out, &samples);
        assert_int_equal(samples, 200);
        double user = value_of(out, "process.user_s") + value_of(out, "process.system_s");
        assert_true(user > 0.005 && user < 10); /* 200 samples of 0.1 ms */
        assert_true(value_of(out, "clocks.lowest_ghz") <= value_of(out, "clocks.measured_ghz"));
        assert_true(value_of(out, "process.read_ns") > 0);
        double cost = table_real(tables_peek(out, "visits"), 0, "probe_cost");
        assert_true(cost > 0 && cost * 200 >= value_of(out, "process.read_ns"));
        /* rapl may be there too, but only clocks is on every machine */
        double rest = 2 * (value_of(out, "process.read_ns") + value_of(out, "machine.read_ns"));
        double reads = (cost * 200 - rest) / value_of(out, "clocks.read_ns");
        if (on)
            assert_true(reads > 4); /* between the samples too */
        else if (isnan(value_of(out, "rapl.read_ns")))
            assert_near(reads, 2, 1e-6);
        if (!on) assert_true(isnan(value_of(out, "perf.cycles"))); /* nobody asked for it */
        tables_close(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(before_and_after, begin),
        cmocka_unit_test_setup(around_samples, begin),
        cmocka_unit_test_setup(blocks_at_most_once_a_millisecond, begin),
        cmocka_unit_test(records_are_complete),
        cmocka_unit_test(the_loop_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
