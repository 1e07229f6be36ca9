/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution may call: marks in order and within bounds, phases, the first failure, waiting;
 * and lists of values. */
#include "tests/unit/workloads/drive.h"

#include "base/clock.h"
#include "base/range.h"

static struct arena *arena;
static struct device *ref, *fake;

static const struct phase two[] = {{"first", "x"}, {"second", "y"}, {0}};
static const struct phase one[] = {{"only", "x"}, {0}};
static struct workload workload = {.name = "made up", .phases = two};

static struct run make(struct device *device, const struct phase *phases, struct mark_record *marks,
                       int64_t most) {
    workload.phases = phases;
    return (struct run){.device = device,
                        .workload = &workload,
                        .seed = 3,
                        .marks = marks,
                        .most_marks = most,
                        .phase = -1};
}

static void marks_keep_order_and_bounds(void **state) {
    struct mark_record marks[4];
    struct run run = make(ref, two, marks, 4);
    (void)state;
    run_begin(&run, device_now(ref));
    run_phase(&run, 1);
    run_mark(&run, 0, 7, 2);
    run_phase(&run, 0);
    run_mark(&run, 3, -1, 1);
    run_mark(&run, 3, -1, 1);
    run_mark(&run, 3, -1, 1);
    run_end(&run);
    assert_int_equal(run.n_marks, 4);
    assert_int_equal(run.lost_marks, 2);
    assert_int_equal(marks[0].mark, -2);
    assert_int_equal(marks[1].mark, 0);
    assert_int_equal(marks[1].who, 7);
    assert_int_equal(marks[1].n, 2);
    assert_int_equal(marks[2].mark, -1);
    for (int i = 0; i < 4; i++) assert_true(marks[i].t_ns >= (i ? marks[i - 1].t_ns : 0));
    run_begin(&run, device_now(ref)); /* starts anew */
    assert_int_equal(run.n_marks + run.lost_marks, 0);
    run_end(&run);
}

static void arrivals_are_where_they_were_meant(void **state) {
    struct mark_record marks[2];
    struct run run = make(ref, one, marks, 2);
    (void)state;
    run_begin(&run, device_now(ref));
    run_arrived(&run, 7, 123456789);
    run_mark(&run, 0, 7, 1);
    run_arrived(&run, 8, 5); /* no room: counted */
    run_end(&run);
    assert_int_equal(marks[0].t_ns, 123456789);
    assert_int_equal(marks[0].n, 0);
    assert_int_equal(marks[0].mark, 0);
    assert_int_equal(marks[0].who, 7);
    assert_int_equal(marks[1].n, 1);
    assert_int_equal(run.lost_marks, 1);
}

static void phases_reach_tracker_and_ranges(void **state) {
    struct mark_record marks[4];
    const struct range_event *events;
    const struct memory_event *log;
    size_t lost, n;
    int unbalanced;
    (void)state;
    range_record(16);
    tracker_reset(ref->tracker);
    struct run run = make(ref, two, marks, 4);
    run_begin(&run, device_now(ref));
    device_free(ref, device_alloc(ref, 64, MEM_OTHER, "outside"));
    run_phase(&run, 1);
    device_free(ref, device_alloc(ref, 64, MEM_OTHER, "inside"));
    run_end(&run);
    device_free(ref, device_alloc(ref, 64, MEM_OTHER, "after"));
    log = tracker_log(ref->tracker, &n);
    assert_int_equal(n, 6);
    assert_int_equal(log[0].phase, -1);
    assert_int_equal(log[2].phase, 1);
    assert_int_equal(log[4].phase, -1);
    struct run single = make(ref, one, marks, 4);
    run_begin(&single, device_now(ref));
    assert_int_equal(single.phase, 0); /* the only phase opens by itself and leaves no mark */
    assert_int_equal(single.n_marks, 0);
    run_end(&single);
    n = range_recorded(&events, &lost, &unbalanced);
    assert_int_equal(unbalanced, 0);
    assert_int_equal(n, 2);
    assert_string_equal(events[0].name, "second");
    assert_string_equal(events[1].name, "only");
}

static void first_failure_stays(void **state) {
    struct run run = make(ref, one, NULL, 0);
    (void)state;
    run_begin(&run, 0);
    run_fail(&run, "cause %d", 1);
    run_fail(&run, "consequence");
    run_end(&run);
    assert_true(run.failed);
    assert_string_equal(run.failure, "cause 1");
    run_begin(&run, 0);
    assert_false(run.failed);
    run_end(&run);
}

static int broken_sync(struct device *device, struct err *err) {
    (void)device;
    return err_set(err, ERR_DEVICE, "broken");
}

static void a_mark_waits_for_the_device(void **state) {
    struct mark_record marks[1];
    const struct device_kind *kept = ref->kind;
    struct device_kind kind = *kept;
    (void)state;
    kind.sync = broken_sync;
    ref->kind = &kind;
    struct run run = make(ref, one, marks, 1);
    run_begin(&run, 0);
    run_mark(&run, 0, 0, 1);
    run_end(&run);
    ref->kind = kept;
    assert_true(run.failed);
    assert_string_equal(run.failure, "broken");
}

static void waiting_ends_in_time(void **state) {
    struct run run = make(ref, one, NULL, 0);
    (void)state;
    run_begin(&run, device_now(ref));
    run_wait(&run, 2000000);
    int64_t now = run_now(&run);
    assert_true(now >= 2000000);
    run_wait(&run, 1000000); /* past already */
    assert_true(run_now(&run) - now < 1000000000);
    run_end(&run);
    if (!fake) skip();
    struct run virtual_run = make(fake, one, NULL, 0);
    int64_t host = clock_ns();
    run_begin(&virtual_run, device_now(fake));
    run_wait(&virtual_run, (int64_t)3600 * 1000000000);
    assert_int_equal(run_now(&virtual_run), (int64_t)3600 * 1000000000);
    run_end(&virtual_run);
    assert_true(clock_ns() - host < 1000000000); /* an hour of a virtual clock costs nothing */
}

static void without_a_store(void **state) {
    struct run run = make(ref, one, NULL, 0);
    struct model *model = NULL;
    struct err err = {0};
    bool ready = true;
    (void)state;
    assert_int_equal(run_model(&run, &model, &err), ERR_INTERNAL);
    assert_null(run_snapshot(&run, "key", 8, &ready));
    assert_false(ready);
    run_snapshot_ready(&run, "key");
}

static void workloads_are_found(void **state) {
    (void)state;
    assert_ptr_equal(workload_find("null")->execute != NULL, 1);
    assert_null(workload_find("nul"));
    assert_null(contract_names[4]);
    assert_string_equal(contract_names[CONTRACT_EXACT], "exact");
    for (int i = 0; all_workloads[i]; i++) {
        const struct workload *w = all_workloads[i];
        assert_non_null(w->name);
        assert_non_null(w->brief);
        assert_non_null(w->help);
        /* What computes needs nothing else. */
        assert_true(w->compute ? w->flags & WORK_ONCE : w->plan && w->prepare && w->execute);
        assert_non_null(w->phases[0].name);
        assert_ptr_equal(workload_find(w->name), w);
        for (const struct option *o = w->params; o && o->key; o++) {
            assert_non_null(o->help);
            assert_non_null(o->unit);
            size_t n = strlen(o->help);
            assert_int_equal(o->help[n - 1], '.');
        }
        for (const struct metric *m = w->metrics; m && m->name; m++) {
            assert_non_null(m->unit);
            assert_non_null(m->help);
        }
        /* What a user asks first: the question, and what lies inside the timing. */
        assert_non_null(strstr(w->help, "Question: "));
        assert_true(strstr(w->help, "Inside the timing: ") || w->flags & WORK_ONCE);
    }
}

static void values_replace_and_stop(void **state) {
    struct values v = {0};
    (void)state;
    assert_true(isnan(values_get(&v, "a")));
    values_set(&v, "a", 1);
    values_set(&v, "b", 2);
    values_set(&v, "a", 3);
    assert_int_equal(v.n, 2);
    assert_true(values_get(&v, "a") == 3);
    for (int i = 0; i < 2 * VALUES_MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        values_set(&v, name, i);
    }
    assert_int_equal(v.n, VALUES_MOST);
    assert_true(values_get(&v, "b") == 2);
    assert_true(isnan(values_get(&v, "v127")));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks_keep_order_and_bounds),
                                       cmocka_unit_test(arrivals_are_where_they_were_meant),
                                       cmocka_unit_test(phases_reach_tracker_and_ranges),
                                       cmocka_unit_test(first_failure_stays),
                                       cmocka_unit_test(a_mark_waits_for_the_device),
                                       cmocka_unit_test(waiting_ends_in_time),
                                       cmocka_unit_test(without_a_store),
                                       cmocka_unit_test(workloads_are_found),
                                       cmocka_unit_test(values_replace_and_stop)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    fake = drive_open("fake", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    device_close(&fake);
    arena_close(&arena);
    return failed;
}
