/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that outlive a worker: found again by name and size, given out as ready only while their
 * digest holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/snapshot.h"

static void test_second_worker_sees_it(void **state) {
    (void)state;
    struct err err = {0};
    struct snapshot *a = NULL, *b = NULL;
    int fd = -1;
    bool ready = true;
    assert_int_equal(snapshot_create(&fd, 1 << 20, &err), 0);
    assert_int_equal(snapshot_open(&a, fd, &err), 0);
    char *piece = snapshot_piece(a, "kv 0", 1000, &ready);
    assert_non_null(piece);
    assert_false(ready);
    memset(piece, 'x', 1000);
    snapshot_ready(a, "kv 0");
    snapshot_close(&a);

    assert_int_equal(snapshot_open(&b, fd, &err), 0);
    char *again = snapshot_piece(b, "kv 0", 1000, &ready);
    assert_true(ready);
    assert_int_equal(again[999], 'x');
    assert_non_null(snapshot_piece(b, "kv 1", 1000, &ready)); /* another name is another piece */
    assert_false(ready);
    assert_ptr_not_equal(snapshot_piece(b, "kv 0", 2000, &ready),
                         again); /* another size is not the same thing */
    assert_false(ready);
    snapshot_close(&b);
    snapshot_close(&b);
    close(fd);
}

static void test_spoiled_and_unfinished(void **state) {
    (void)state;
    struct err err = {0};
    struct snapshot *s = NULL;
    int fd = -1;
    bool ready;
    assert_int_equal(snapshot_create(&fd, 1 << 20, &err), 0);
    assert_int_equal(snapshot_open(&s, fd, &err), 0);
    char *piece = snapshot_piece(s, "a", 64, &ready);
    memset(piece, 1, 64);
    snapshot_piece(s, "a", 64, &ready);
    assert_false(ready); /* its worker died before it was done */
    snapshot_ready(s, "a");
    snapshot_piece(s, "a", 64, &ready);
    assert_true(ready);
    piece[63] ^= 1;
    snapshot_piece(s, "a", 64, &ready);
    assert_false(ready); /* somebody wrote over it */
    snapshot_ready(s, "unknown");
    snapshot_close(&s);
    close(fd);
}

static void test_no_room(void **state) {
    (void)state;
    struct err err = {0};
    struct snapshot *s = NULL;
    int fd = -1;
    bool ready;
    assert_int_equal(snapshot_create(&fd, 16384, &err), 0);
    assert_int_equal(snapshot_open(&s, fd, &err), 0);
    assert_null(snapshot_piece(s, "huge", SIZE_MAX - 10, &ready));
    assert_null(snapshot_piece(s, "large", 20000, &ready));
    assert_non_null(snapshot_piece(s, "fits", 8192, &ready));
    assert_null(snapshot_piece(s, "next", 16384, &ready));
    snapshot_close(&s);
    close(fd);
}

/* Bytes of this process's snapshots that it could write. */
static size_t writable(void) {
    char line[512];
    size_t sum = 0, begin, end;
    FILE *f = fopen("/proc/self/maps", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strstr(line, "bench-snapshot") && strstr(line, " rw") &&
            sscanf(line, "%zx-%zx", &begin, &end) == 2)
            sum += end - begin;
    fclose(f);
    return sum;
}

/* A stray write finds nothing but the directory and what is being filled. */
static void test_only_what_is_filled_can_be_written(void **state) {
    (void)state;
    const size_t room = (size_t)64 << 20, bytes = (size_t)4 << 20;
    struct err err = {0};
    struct snapshot *a = NULL, *b = NULL;
    int fd = -1;
    bool ready;
    assert_int_equal(snapshot_create(&fd, room, &err), 0);
    assert_int_equal(snapshot_open(&a, fd, &err), 0);
    const size_t directory = writable();
    assert_true(directory > 0 && directory < (size_t)1 << 20);
    char *piece = snapshot_piece(a, "w", bytes, &ready);
    assert_int_equal(writable(), directory + bytes);
    memset(piece, 1, bytes);
    snapshot_ready(a, "w");
    assert_non_null(snapshot_find(a, "w", bytes));
    assert_int_equal(writable(), directory);
    assert_int_equal(snapshot_open(&b, fd, &err), 0); /* another worker, before it looks for it */
    assert_int_equal(writable(), 2 * directory);
    snapshot_close(&a);
    snapshot_close(&b);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_worker_sees_it),
        cmocka_unit_test(test_spoiled_and_unfinished),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_only_what_is_filled_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
