/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons with a kept program as a series: new over anchor, in which the machine cancels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "harness/history_runs.h"
#include "tests/support/gate_settings.h"
#include "tests/support/synthetic.h"

enum { NIGHTS = 14, ROUNDS = 4 };

static void meta(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    const int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

/* One night: the machine is `machine` times as slow, the program `change` times the anchor. */
static struct tables *night(int day, const char *anchor, double machine, double change) {
    struct tables *ts = tables_create();
    struct table *pairs = tables_get(ts, "pairs");
    char created[40];
    snprintf(created, sizeof created, "2026-02-%02dT01:00:00Z", day + 1);
    meta(ts, "created", created);
    if (anchor) meta(ts, "side_a", anchor);
    synthetic_point(ts, "", "batch=1", 1, 1);
    synthetic_point(ts, "", "batch=1", 1, 1);
    for (int64_t k = 0; anchor && k < ROUNDS; k++) {
        const int64_t row = table_add(pairs, 1);
        const double y =
            log(change) + 0.001 * random_normal(random_key(1, (uint64_t)day), (uint64_t)k);
        table_set_i64(pairs, row, "a", 0);
        table_set_i64(pairs, row, "b", 1);
        table_set_i64(pairs, row, "round", k);
        table_set_i64(pairs, row, "quads", 9);
        table_set_f64(pairs, row, "y", y);
        table_set_f64(pairs, row, "mean", y);
        table_set_f64(pairs, row, "a_ns", 1e6 * machine);
        table_set_f64(pairs, row, "b_ns", 1e6 * machine * exp(y));
        table_set_text(pairs, row, "state", "ok");
    }
    return ts;
}

static void put(struct gate_files *f, const char *name, struct tables *ts) {
    f->items = must_realloc(f->items, (f->n + 1) * sizeof *f->items);
    f->items[f->n++] = (struct sides_file){must_text(name), ts};
}

static bool noted(const struct runs_set *s, const char *sentence) {
    for (size_t i = 0; i < s->n_notes; i++)
        if (strstr(s->notes[i], sentence)) return true;
    return false;
}

static void a_step_against_the_anchor(void **state) {
    (void)state;
    const struct gate_settings settings = gate_defaults();
    struct gate_files files = {0};
    struct runs_set set;
    struct err err = {0};
    for (int i = 0; i < NIGHTS; i++) /* machines that differ by far more than the step */
        put(&files, "night.h5", night(i, "binary 1", i % 3 + 1, i < NIGHTS / 2 ? 1 : 1.06));
    put(&files, "run.h5", night(0, NULL, 1, 1));
    put(&files, "other.h5", night(0, "binary 2", 1, 1));
    assert_int_equal(runs_read(&set, &files, &settings, NULL, 0, NULL, &err), 0);
    assert_int_equal(set.n_runs, NIGHTS);
    assert_int_equal(set.n_rows, 1);
    const struct runs_row *r = &set.rows[0];
    assert_true(fabs(r->value[0] - 1) < 0.002 && fabs(r->value[NIGHTS - 1] - 1.06) < 0.002);
    assert_int_equal(r->n_steps, 1);
    assert_int_equal(r->steps[0].at, NIGHTS / 2);
    assert_true(fabs(r->steps[0].change - log(1.06)) < 0.002);
    assert_true(runs_regressed(&set, r));
    assert_true(noted(&set, "run.h5 (no comparison)"));
    assert_true(noted(&set, "other.h5 (its side a is another: binary 2)"));
    assert_true(noted(&set, "anchor: binary 1"));
    runs_free(&set);
    struct gate_settings flops = settings;
    flops.metric = "flops";
    assert_int_equal(runs_read(&set, &files, &flops, NULL, 0, NULL, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "compares times in turns"));
    runs_free(&set);
    gate_files_free(&files);
}

/* Where the newest is a run, comparisons are no runs of it: their rows stand there twice. */
static void runs_take_no_comparisons(void **state) {
    (void)state;
    struct gate_settings settings = gate_defaults();
    struct gate_files files = {0};
    struct runs_set set;
    struct err err = {0};
    settings.direction = GATE_LOWER;
    struct tables *run = night(9, NULL, 1, 1);
    put(&files, "night.h5", night(0, "binary 1", 1, 1));
    put(&files, "run.h5", run);
    assert_int_equal(runs_read(&set, &files, &settings, NULL, 0, NULL, &err), ERR_INPUT);
    assert_true(noted(&set, "night.h5 (a comparison of two sides)"));
    assert_int_equal(set.n_runs, 1);
    runs_free(&set);
    gate_files_free(&files);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Lines that would accept nothing are mistakes, with their place. */
static void accepted_lists_are_read(void **state) {
    static const struct {
        const char *text, *said; /* NULL: taken */
    } cases[] = {
        {"", NULL},
        {"# none\n\n2026-02-08\tbatch=1\twhy\n2026-02-08\t*\twhy", NULL},
        {"# none\n2026-02-08 batch=1 why\n", ":2:1: a line is DAY, ROW (or *) and WHY with tabs"},
        {"2026-13-08\t*\twhy\n", ":1:1: a line is"},
        {"day\trow\twhy\n", ":1:1: a line is"},
        {"2026-02-08\t*", ":1:1: a line is"},
        {"2026-2-8\t*\twhy", ":1:1: a line is"},
    };
    const struct gate_settings settings = gate_defaults();
    char path[] = "/tmp/accepted.XXXXXX";
    const int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate_files files = {0};
        struct runs_set set;
        struct err err = {0};
        put(&files, "night.h5", night(0, "binary 1", 1, 1));
        write_file(path, cases[i].text);
        const int code = runs_read(&set, &files, &settings, NULL, 0, path, &err);
        if (code != (cases[i].said ? ERR_INPUT : 0)) fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].said && !strstr(err.text, cases[i].said)) fail_msg("%s", err.text);
        runs_free(&set);
        gate_files_free(&files);
    }
    unlink(path);
}

static void a_copy_is_no_second_run(void **state) {
    const struct gate_settings settings = gate_defaults();
    char folder[] = "/tmp/copies.XXXXXX", path[3][40];
    struct gate_files files = {0};
    struct runs_set set;
    struct err err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d.h5", folder, i);
        write_file(path[i], i == 1 ? "another" : "the one"); /* 2 is a copy of 0 */
        put(&files, path[i], night(0, "binary 1", 1, 1));
    }
    assert_int_equal(runs_read(&set, &files, &settings, NULL, 0, NULL, &err), 0);
    assert_int_equal(set.n_runs, 2);
    assert_true(noted(&set, "2.h5 (the same result as "));
    runs_free(&set);
    gate_files_free(&files);
    for (int i = 0; i < 3; i++) unlink(path[i]);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_against_the_anchor),
        cmocka_unit_test(runs_take_no_comparisons),
        cmocka_unit_test(accepted_lists_are_read),
        cmocka_unit_test(a_copy_is_no_second_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
