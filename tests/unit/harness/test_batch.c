/* SPDX-License-Identifier: Apache-2.0 */
/* More executions than 32 bits count: found on a made-up clock, and carried whole from the sample's
 * record to every export. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/batch.h"
#include "harness/sample_log.h"
#include "results/export.h"
#include "results/journal.h"
#include "results/store.h"
#include "results/summary.h"
#include "tests/support/synthetic.h"

/* A clock of `step` ns: whatever runs takes at least one step, and one more in every `share`
 * executions. */
struct made_clock {
    int64_t step, share, fails_at, asked;
};
static int64_t time_of(void *ctx, int64_t k) {
    struct made_clock *c = ctx;
    c->asked = k;
    if (k >= c->fails_at) return -1;
    return c->step * (1 + (c->share ? k / c->share : 0));
}
static int64_t no_time(void *ctx, int64_t k) {
    (void)ctx, (void)k;
    return 0;
}

static enum batch_found find(int64_t step, int64_t share, int64_t *batch) {
    struct made_clock clock = {.step = step, .share = share, .fails_at = INT64_MAX};
    return batch_find(time_of, &clock, 0, step, batch);
}

static void counts_have_64_bits(void **state) {
    int64_t batch;
    (void)state;
    /* From clocks of a nanosecond to those of 10 ms: the count must not depend on the unit. */
    for (int64_t step = 1; step <= 10000000; step *= 10) {
        assert_int_equal(find(step, INT64_C(1) << 26, &batch), BATCH_FOUND);
        assert_true(batch > INT64_C(1) << 32 && batch <= INT64_C(1) << 33);
        assert_int_equal(find(step, INT64_C(1) << 33, &batch), BATCH_FOUND);
        assert_true(batch > INT64_C(1) << 39);
        assert_true(time_of(&(struct made_clock){step, INT64_C(1) << 33, INT64_MAX, 0}, batch) >=
                    BATCH_STEPS * step);
    }
}

static void searches_end(void **state) {
    int64_t batch = 0;
    struct made_clock clock = {.step = 1, .fails_at = INT64_C(1) << 35};
    (void)state;
    assert_int_equal(find(1, 0, &batch), BATCH_TOO_SHORT);
    assert_int_equal(batch, BATCH_MOST);
    assert_int_equal(batch_find(no_time, NULL, 0, 1, &batch), BATCH_UNMOVED);
    assert_int_equal(batch_find(time_of, &clock, 0, 1, &batch), BATCH_FAILED);
    assert_int_equal(clock.asked, INT64_C(1) << 35);
    assert_int_equal(batch_find(time_of, &clock, 100, 1, &batch), BATCH_FOUND);
    assert_int_equal(batch, 1);
    /* What takes 3 of 100 steps is done 34 times, not 64. */
    clock = (struct made_clock){.step = 1, .share = 1, .fails_at = INT64_MAX};
    assert_int_equal(batch_find(time_of, &clock, 2, 1, &batch), BATCH_FOUND);
    assert_true(batch >= 99 && batch <= 100);
}

#define MANY ((INT64_C(1) << 33) + 12345)

/* One visit of three samples of MANY executions, as worker and supervisor hand it on. */
static void one_visit(struct tables *out) {
    int fd;
    struct sample_log log;
    struct err err = {0};
    assert_int_equal(sample_log_create(&fd, &log, &err), 0);
    sample_log_begin(&log, 0);
    for (int64_t i = 0; i < 3; i++)
        log.sample[i] = (struct sample_record){(i + 1) * MANY / 1000, I64_NONE, MANY, 0};
    log.warmup[0] = 5 * MANY;
    log.head->samples = 3;
    log.head->warmups = 1;
    struct table *t = tables_get(out, "visits");
    int64_t row = table_add(t, 1);
    static const char *const zero[] = {"visit", "point", "round", "control", "worker"};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) table_set_i64(t, row, zero[i], 0);
    table_set_i64(t, row, "batch", MANY);
    table_set_i64(t, row, "samples", 3);
    table_set_text(t, row, "state", "ok");
    sample_log_tables(&log, 0, out);
    sample_log_unmap(&log);
    close(fd);
}

static void whole_path_has_64_bits(void **state) {
    char folder[] = "/tmp/bench-batch-XXXXXX", journal_path[64], h5[64];
    struct tables *head = tables_create(), *visit = tables_create(), *back = NULL;
    struct journal *journal = NULL;
    struct err err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(journal_path, sizeof journal_path, "%s/a.journal", folder);
    snprintf(h5, sizeof h5, "%s/a.h5", folder);
    synthetic_point(head, "", "empty", 1, 1);
    one_visit(visit);
    assert_int_equal(journal_create(&journal, journal_path, &err), 0);
    assert_int_equal(journal_append(journal, JOURNAL_HEAD, head, &err), 0);
    assert_int_equal(journal_append(journal, JOURNAL_VISIT, visit, &err), 0);
    journal_close(&journal);
    assert_int_equal(store_build(journal_path, h5, &err), 0);
    assert_int_equal(store_read(&back, h5, NULL, &err), 0);
    const struct table *t = tables_peek(back, "samples");
    assert_int_equal(table_rows(t), 3);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(table_int(t, i, "batch"), MANY);
        assert_int_equal(table_int(t, i, "wall_ns"), (i + 1) * MANY / 1000);
    }
    assert_int_equal(table_int(tables_peek(back, "visits"), 0, "batch"), MANY);
    assert_int_equal(table_int(tables_peek(back, "warmup"), 0, "wall_ns"), 5 * MANY);
    /* 1, 2 and 3 picoseconds. */
    assert_true(fabs(summary_get(back, 0, "time", "mean") - 2e-9) < 1e-15);
    assert_true(fabs(summary_get(back, 0, "time", "min") - 1e-9) < 1e-15);
    for (int i = 0; all_exporters[i]; i++) {
        struct text out = {0}, lost = {0};
        int code = exporter_write(all_exporters[i], back, NULL, &out, &lost, &err);
        const char *name = all_exporters[i]->name;
        const char *ms = !strcmp(name, "md")       ? "0.002000" /* ns, for people */
                         : !strcmp(name, "gbench") ? "\"real_time\": 0.00199999" /* ns */
                                                   : "e-09";
        /* Formats of language models have no place for the row, and say it. */
        if (code) assert_non_null(strstr(lost.data, "leaves out 1 row"));
        if (!code && !strstr(out.data, ms) && !strstr(out.data, "e-9"))
            fail_msg("%s lost the time:\n%s", all_exporters[i]->name, out.data);
        text_free(&out);
        text_free(&lost);
    }
    tables_close(&back);
    tables_close(&visit);
    tables_close(&head);
    unlink(journal_path);
    unlink(h5);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_have_64_bits),
                                       cmocka_unit_test(searches_end),
                                       cmocka_unit_test(whole_path_has_64_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
