/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: cut at every byte it gives all whole visits, and nothing else is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "results/journal.h"

static char folder[] = "/tmp/bench-journal-XXXXXX";
static char path[64], other[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.journal", folder);
    snprintf(other, sizeof other, "%s/cut.journal", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static void meta(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static struct tables *head(void) {
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "points");
    table_add(t, 2);
    for (int64_t p = 0; p < 2; p++) {
        table_set_i64(t, p, "point", p);
        table_set_text(t, p, "label", p ? "b" : "a");
    }
    meta(ts, "title", "T");
    meta(ts, "complete", "");
    return ts;
}

/* A visit of point 1 with an update of its row. */
static struct tables *visit(int64_t id) {
    struct tables *ts = tables_create();
    struct table *v = tables_get(ts, "visits"), *s = tables_get(ts, "samples"),
                 *p = tables_get(ts, "points");
    table_add(v, 1);
    table_set_i64(v, 0, "visit", id);
    table_add(s, 3);
    for (int64_t i = 0; i < 3; i++) table_set_i64(s, i, "wall_ns", id * 10 + i);
    table_add(p, 1);
    table_set_i64(p, 0, "point", 1);
    table_set_text(p, 0, "effective", id ? "cpu" : "ref");
    table_set_f64(p, 0, "peak_bytes", (double)id);
    return ts;
}

static void append(struct journal *j, enum journal_kind kind, struct tables *ts) {
    struct err err = {0};
    assert_int_equal(journal_append(j, kind, ts, &err), 0);
    tables_close(&ts);
}

static void write_three_visits(void) {
    struct journal *j = NULL;
    struct err err = {0};
    unlink(path);
    assert_int_equal(journal_create(&j, path, &err), 0);
    append(j, JOURNAL_HEAD, head());
    for (int64_t i = 0; i < 3; i++) append(j, JOURNAL_VISIT, visit(i));
    struct tables *end = tables_create();
    meta(end, "complete", "yes");
    append(j, JOURNAL_END, end);
    journal_close(&j);
    assert_null(j);
    journal_close(&j);
}

static void reads_what_was_written(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct err err = {0};
    int64_t visits = -1;
    int torn = -1;
    write_three_visits();
    assert_int_equal(journal_read(path, ts, &visits, &torn, &err), 0);
    assert_int_equal(visits, 3);
    assert_int_equal(torn, 0);
    struct table *p = tables_get(ts, "points");
    assert_int_equal(table_rows(p), 2); /* updates are merged, not appended */
    assert_string_equal(table_text(p, 1, "label"), "b");
    assert_string_equal(table_text(p, 1, "effective"), "cpu");
    assert_true(table_real(p, 1, "peak_bytes") == 2);
    assert_string_equal(table_text(p, 0, "effective"), "");
    assert_int_equal(table_rows(tables_get(ts, "samples")), 9);
    assert_int_equal(table_int(tables_get(ts, "samples"), 7, "wall_ns"), 21);
    assert_int_equal(table_rows(tables_get(ts, "meta")), 2);
    assert_string_equal(tables_meta(ts, "complete"), "yes");
    tables_close(&ts);
}

static void copy_cut(const char *data, size_t n) {
    FILE *f = fopen(other, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* kill -9 and power cuts: whatever is missing at the end, all visits before stay, and resume goes
 * on from there. */
static void every_cut(void **state) {
    (void)state;
    char *data;
    size_t len, last_visits = 0;
    struct err err = {0};
    write_three_visits();
    assert_int_equal(file_read(path, 1 << 20, &data, &len, &err), 0);
    for (size_t cut = 0; cut <= len; cut += cut > len - 30 ? 1 : 23) {
        copy_cut(data, cut);
        struct tables *ts = tables_create();
        int64_t visits = 0;
        int torn = 0;
        int code = journal_read(other, ts, &visits, &torn, &err);
        if (code) {
            assert_int_equal(code, ERR_INPUT);
            assert_int_equal(last_visits, 0);
        } else {
            assert_true((size_t)visits >= last_visits);
            last_visits = (size_t)visits;
            assert_int_equal(table_rows(tables_get(ts, "samples")), 3 * visits);
            struct journal *j = NULL;
            assert_int_equal(journal_resume(&j, other, &err), 0);
            append(j, JOURNAL_VISIT, visit(9));
            journal_close(&j);
            tables_close(&ts);
            ts = tables_create();
            int64_t more = 0;
            assert_int_equal(journal_read(other, ts, &more, &torn, &err), 0);
            assert_int_equal(more, visits + 1);
            assert_int_equal(torn, 0);
        }
        tables_close(&ts);
    }
    assert_int_equal(last_visits, 3);
    free(data);
}

static void zeros_at_the_end(void **state) {
    (void)state;
    char *data;
    size_t len;
    struct err err = {0};
    struct tables *ts = tables_create();
    int64_t visits;
    int torn = 0;
    write_three_visits();
    assert_int_equal(file_read(path, 1 << 20, &data, &len, &err), 0);
    data = realloc(data, len + 9000);
    memset(data + len, 0, 9000);
    copy_cut(data, len + 9000);
    assert_int_equal(journal_read(other, ts, &visits, &torn, &err), 0);
    assert_int_equal(visits, 3);
    assert_int_equal(torn, 1);
    tables_close(&ts);
    free(data);
}

/* Damage before the end is no torn end: cutting there would throw away good visits. */
static void damage_in_the_middle(void **state) {
    (void)state;
    char *data;
    size_t len;
    struct err err = {0};
    struct journal *j = NULL;
    write_three_visits();
    assert_int_equal(file_read(path, 1 << 20, &data, &len, &err), 0);
    data[len / 2] = (char)(data[len / 2] ^ 4);
    copy_cut(data, len);
    struct tables *ts = tables_create();
    assert_int_equal(journal_read(other, ts, NULL, NULL, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "damaged at byte"));
    assert_int_equal(journal_resume(&j, other, &err), ERR_INPUT);
    struct stat st;
    assert_int_equal(stat(other, &st), 0);
    assert_int_equal(st.st_size, len);
    tables_close(&ts);
    free(data);
}

static void what_is_no_journal(void **state) {
    (void)state;
    struct err err = {0};
    struct journal *j = NULL;
    struct tables *ts = tables_create();
    copy_cut("", 0);
    assert_int_equal(journal_read(other, ts, NULL, NULL, &err), ERR_INPUT);
    copy_cut("title = \"a protocol, not a journal\"\n", 36);
    assert_int_equal(journal_read(other, ts, NULL, NULL, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "is no journal"));
    assert_int_equal(journal_resume(&j, other, &err), ERR_INPUT);
    assert_int_equal(journal_read("/nonexistent/x.journal", ts, NULL, NULL, &err), ERR_SYSTEM);
    assert_int_equal(journal_read(folder, ts, NULL, NULL, &err), ERR_INPUT);
    unlink(path); /* a visit before the head */
    assert_int_equal(journal_create(&j, path, &err), 0);
    append(j, JOURNAL_VISIT, visit(0));
    journal_close(&j);
    assert_int_equal(journal_read(path, ts, NULL, NULL, &err), ERR_INPUT);
    tables_close(&ts);
}

static void one_writer(void **state) {
    (void)state;
    struct err err = {0};
    struct journal *j = NULL, *k = NULL;
    unlink(path);
    assert_int_equal(journal_create(&j, path, &err), 0);
    append(j, JOURNAL_HEAD, head());
    assert_int_equal(journal_resume(&k, path, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "another process"));
    assert_null(k);
    assert_int_equal(journal_create(&k, path, &err), ERR_SYSTEM); /* it exists */
    assert_null(k);
    journal_close(&j);
    assert_int_equal(journal_resume(&k, path, &err), 0);
    journal_close(&k);
    assert_int_equal(journal_create(&k, "/nonexistent/folder/x", &err), ERR_SYSTEM);
}

/* A full disk, by a limit on the file's size: the failed frame is cut off, and there is room again
 * later. */
static void full_disk(void **state) {
    (void)state;
    struct err err = {0};
    struct journal *j = NULL;
    struct stat st;
    struct rlimit old, small;
    unlink(path);
    assert_int_equal(journal_create(&j, path, &err), 0);
    append(j, JOURNAL_HEAD, head());
    assert_int_equal(stat(path, &st), 0);
    off_t before = st.st_size;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)before + 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct tables *v = visit(1);
    int code = journal_append(j, JOURNAL_VISIT, v, &err);
    tables_close(&v);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(code, ERR_SYSTEM);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, before);
    append(j, JOURNAL_VISIT, visit(2));
    journal_close(&j);
    struct tables *ts = tables_create();
    int64_t visits;
    int torn;
    assert_int_equal(journal_read(path, ts, &visits, &torn, &err), 0);
    assert_int_equal(visits, 1);
    assert_int_equal(torn, 0);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(zeros_at_the_end),
        cmocka_unit_test(damage_in_the_middle),
        cmocka_unit_test(what_is_no_journal),
        cmocka_unit_test(one_writer),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
