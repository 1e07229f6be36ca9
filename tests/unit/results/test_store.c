/* SPDX-License-Identifier: Apache-2.0 */
/* The result file: what is written is read, format 1 for ever, and no broken file does more than be
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "results/journal.h"
#include "results/store.h"
#include "tests/support/result_example.h"

static char folder[] = "/tmp/bench-store-XXXXXX";
static char path[64], other[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.h5", folder);
    snprintf(other, sizeof other, "%s/b.h5", folder);
    return 0;
}

/* Without the syncing of file_write: hundreds of these. */
static void put(const char *bytes, size_t n) {
    FILE *f = fopen(other, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder); /* fails where something half-written was left */
}

static char *bytes_of_example(size_t *n) {
    struct tables *ts = result_example();
    struct err err = {0};
    char *bytes;
    assert_int_equal(store_write(ts, path, &err), 0);
    tables_close(&ts);
    assert_int_equal(file_read(path, 1 << 24, &bytes, n, &err), 0);
    return bytes;
}

static void round_trip(void **state) {
    (void)state;
    struct tables *ts = result_example(), *back = NULL;
    struct err err = {0};
    assert_int_equal(store_write(ts, path, &err), 0);
    assert_int_equal(store_read(&back, path, NULL, &err), 0);
    tables_same(ts, back);
    tables_same(back, ts);
    tables_close(&back);
    assert_int_equal(store_write(ts, path, &err), 0); /* over an existing one */
    tables_close(&ts);
    ts = tables_create(); /* and nothing at all */
    assert_int_equal(store_write(ts, path, &err), 0);
    assert_int_equal(store_read(&back, path, NULL, &err), 0);
    tables_same(ts, back);
    tables_close(&back);
    tables_close(&ts);
}

static void long_texts(void **state) {
    (void)state;
    struct tables *ts = tables_create(), *back = NULL;
    struct table *t = tables_get(ts, "files"), *m = tables_get(ts, "meta");
    struct err err = {0};
    size_t n = 256 * 1024;
    char *text = must_alloc(n + 1);
    for (size_t i = 0; i < n; i++) text[i] = (char)('a' + random_below(1, i, 26));
    table_add(t, 2);
    table_set_text(t, 0, "text", text);
    table_set_text(t, 1, "text", "short");
    table_add(m, 1);
    table_set_text(m, 0, "key", "question");
    table_set_text(m, 0, "value", text); /* more than an attribute holds: cut, not refused */
    assert_int_equal(store_write(ts, path, &err), 0);
    assert_int_equal(store_read(&back, path, NULL, &err), 0);
    assert_string_equal(table_text(tables_get(back, "files"), 0, "text"), text);
    assert_string_equal(table_text(tables_get(back, "files"), 1, "text"), "short");
    assert_int_equal(strncmp(tables_meta(back, "question"), text, 60000), 0);
    free(text);
    tables_close(&back);
    tables_close(&ts);
}

static void only_what_is_wanted(void **state) {
    (void)state;
    const char *const what[] = {"points", NULL};
    struct tables *back = NULL;
    struct err err = {0};
    size_t n;
    free(bytes_of_example(&n));
    assert_int_equal(store_read(&back, path, what, &err), 0);
    assert_int_equal(table_rows(tables_get(back, "points")), 4);
    assert_int_equal(table_rows(tables_get(back, "samples")), 0);
    assert_string_equal(tables_meta(back, "complete"), "yes");
    tables_close(&back);
}

/* Equal results make equal files: nothing of the moment is in them but what the tables say. */
static void same_bytes(void **state) {
    (void)state;
    size_t n, m;
    char *a = bytes_of_example(&n), *b = bytes_of_example(&m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* The file of format 1 that is committed; with REFRESH_GOLDEN set it is written anew instead. */
static void golden_file(void **state) {
    (void)state;
    char golden[1000], command[2200];
    struct tables *ts = result_example(), *back = NULL;
    struct err err = {0};
    size_t n;
    snprintf(golden, sizeof golden, "%s/tests/golden/result_v1.h5.gz", getenv("SOURCE_DIR"));
    if (getenv("REFRESH_GOLDEN")) {
        free(bytes_of_example(&n));
        snprintf(command, sizeof command, "gzip -9nc '%s' > '%s'", path, golden);
        assert_int_equal(system(command), 0);
    }
    snprintf(command, sizeof command, "gzip -dc '%s' > '%s'", golden, other);
    assert_int_equal(system(command), 0);
    assert_int_equal(store_read(&back, other, NULL, &err), 0);
    tables_same(ts, back);
    tables_close(&back);
    tables_close(&ts);
}

static void refused(const char *file, const char *because) {
    struct tables *back = NULL;
    struct err err = {0};
    assert_int_equal(store_read(&back, file, NULL, &err), ERR_INPUT);
    assert_null(back);
    if (!strstr(err.text, because)) fail_msg("'%s' does not say '%s'", err.text, because);
    assert_non_null(strstr(err.text, file));
    assert_null(strchr(err.text, '\n'));
}

static void foreign_files(void **state) {
    (void)state;
    refused("/nonexistent/a.h5", "cannot open");
    refused(folder, "is no file");
    refused("/dev/null", "is no file");
    put("", 0);
    refused(other, "is no HDF5 file");
    put("title = \"a protocol\"\n", 21);
    refused(other, "is no HDF5 file");
    put("\x89HDF\r\n\x1a\n and then nothing", 26);
    refused(other, "HDF5");
}

static void truncated_files(void **state) {
    (void)state;
    size_t n;
    char *bytes = bytes_of_example(&n);
    for (size_t i = 1; i < 24; i++) {
        put(bytes, n * i / 24);
        refused(other, "");
    }
    put(bytes, n - 1);
    refused(other, "");
    free(bytes);
}

static size_t find(const char *bytes, size_t n, const char *what, size_t len, size_t from) {
    const char *at = memmem(bytes + from, n - from, what, len);
    assert_non_null(at);
    return (size_t)(at - bytes);
}

/* One number, one letter, one attribute: noticed by its hash. */
static void edited_files(void **state) {
    (void)state;
    size_t n;
    char *bytes = bytes_of_example(&n);
    double mean = 50.001;
    size_t at = find(bytes, n, (char *)&mean, sizeof mean, 0);
    mean = 40.001;
    memcpy(bytes + at, &mean, sizeof mean);
    put(bytes, n);
    refused(other, "edited or rotten");
    mean = 50.001;
    memcpy(bytes + at, &mean, sizeof mean);
    at = find(bytes, n, "24.1 GB", 7, 0);
    bytes[at] = '3';
    put(bytes, n);
    refused(other, "/points/reason");
    bytes[at] = '2';
    at = find(bytes, n, "Does it read", 12, 0);
    bytes[at] = 'd';
    put(bytes, n);
    refused(other, "edited or rotten");
    free(bytes);
}

/* Whatever flips: the same tables, or one sentence; never a signal of ours, never silence. */
static void flipped_bits(void **state) {
    (void)state;
    size_t n, read = 0;
    char *bytes = bytes_of_example(&n);
    struct tables *ts = result_example();
    for (uint64_t i = 0; i < 400; i++) {
        /* Half of them in the first pages, where the library's own structures lie. */
        size_t at = random_below(7, i, (uint32_t)(i % 2 ? n : 4096));
        char old = bytes[at];
        struct tables *back = NULL;
        struct err err = {0};
        bytes[at] = (char)(old ^ (1 << random_below(8, i, 8)));
        put(bytes, n);
        int code = store_read(&back, other, NULL, &err);
        assert_true(code == 0 || (code == ERR_INPUT && *err.text && !back));
        if (back) read++;
        /* A flip in a help or an unused byte is none of ours; numbers are never silently others. */
        for (int64_t r = 0; back && r < table_rows(tables_get(back, "summary")); r++)
            assert_true(table_real(tables_get(back, "summary"), r, "mean") ==
                        table_real(tables_get(ts, "summary"), r, "mean"));
        tables_close(&back);
        bytes[at] = old;
    }
    assert_true(read < 400);
    tables_close(&ts);
    free(bytes);
}

static void newer_format(void **state) {
    (void)state;
    size_t n;
    char *bytes = bytes_of_example(&n);
    /* Behind the attribute's name: its type, its scalar dataspace (1 and seven zeros), the number.
     */
    size_t at = find(bytes, n, "format\0", 7, 0);
    at = find(bytes, n, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16, at) + 8;
    bytes[at] = 2;
    put(bytes, n);
    refused(other, "reads up to 1");
    free(bytes);
}

static void unwritable(void **state) {
    (void)state;
    struct tables *ts = result_example();
    struct err err = {0};
    struct rlimit old, small;
    assert_int_equal(store_write(ts, "/nonexistent/folder/a.h5", &err), ERR_SYSTEM);
    assert_true(*err.text);
    /* A full disk: the old file stays as it was, nothing half-written lies beside it. */
    unlink(other);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int code = store_write(ts, other, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(code, ERR_SYSTEM);
    assert_false(file_exists(other));
    tables_close(&ts);
}

static void build_from_a_journal(void **state) {
    (void)state;
    struct tables *ts = result_example(), *back = NULL;
    struct journal *j = NULL;
    struct err err = {0};
    unlink(other);
    assert_int_equal(journal_create(&j, other, &err), 0);
    assert_int_equal(journal_append(j, JOURNAL_HEAD, ts, &err), 0);
    journal_close(&j);
    assert_int_equal(store_build(other, path, &err), 0);
    assert_int_equal(store_read(&back, path, NULL, &err), 0);
    assert_int_equal(table_rows(tables_get(back, "samples")), 9006);
    assert_true(table_rows(tables_get(back, "summary")) > 4);
    assert_int_equal(store_build("/nonexistent/x.journal", path, &err), ERR_SYSTEM);
    tables_close(&back);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),          cmocka_unit_test(long_texts),
        cmocka_unit_test(only_what_is_wanted), cmocka_unit_test(same_bytes),
        cmocka_unit_test(golden_file),         cmocka_unit_test(foreign_files),
        cmocka_unit_test(truncated_files),     cmocka_unit_test(edited_files),
        cmocka_unit_test(flipped_bits),        cmocka_unit_test(newer_format),
        cmocka_unit_test(unwritable),          cmocka_unit_test(build_from_a_journal),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
