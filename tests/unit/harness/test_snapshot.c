/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that outlive a worker: found again by name and size, given out as ready only while their
 * digest holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_worker_sees_it),
        cmocka_unit_test(test_spoiled_and_unfinished),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
