/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of two workers: equal bytes lie on the same pages, different ones never, two copies of
 * one worker neither; nobody can write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/sharing.h"
#include "harness/snapshot.h"

enum { BYTES = 3 << 20 };

struct worker { /* as far as weights go */
    struct sharing_store *store;
    struct device *device;
};
static int fd = -1;

static void open_worker(struct worker *w) {
    struct err err = {0};
    assert_int_equal(sharing_open(&w->store, fd, &err), 0);
    assert_int_equal(device_open(&w->device, device_kind_find("ref"), NULL, &err), 0);
    w->device->sharing = sharing_of(w->store);
}
static void close_worker(struct worker *w) {
    device_close(&w->device);
    sharing_close(&w->store);
}

static int setup(void **state) {
    (void)state;
    struct err err = {0};
    return snapshot_create(&fd, 64 << 20, &err);
}
static int teardown(void **state) {
    (void)state;
    return close(fd);
}

/* What a device's pack does. *packed: whether it had to. */
static unsigned char *pack(struct worker *w, const char *what, int fill, bool *packed) {
    unsigned char *p = device_packed(w->device, BYTES, MEM_WEIGHT, what);
    *packed = p == NULL;
    if (p) return p;
    p = device_alloc(w->device, BYTES, MEM_WEIGHT, what);
    memset(p, fill, BYTES);
    return device_share(w->device, p, BYTES, MEM_WEIGHT, what);
}

static void names_and_bytes(void **state) {
    (void)state;
    struct worker a, b;
    bool packed;
    char at_a[17], at_b[17];
    open_worker(&a);
    open_worker(&b);
    sharing_place(a.store, a.device, at_a);
    assert_string_equal(at_a, "none");
    sharing_model(a.store, 7);
    sharing_model(b.store, 7);
    unsigned char *x = pack(&a, "layer 0 q", 1, &packed);
    assert_true(packed);
    assert_int_equal((uintptr_t)x % (2 << 20), 0);
    unsigned char *y = pack(&b, "layer 0 q", 99, &packed);
    assert_false(packed); /* by its name */
    assert_int_equal(y[BYTES - 1], 1);
    assert_int_equal((uintptr_t)y % (2 << 20), 0);
    sharing_place(a.store, a.device, at_a);
    sharing_place(b.store, b.device, at_b);
    assert_string_equal(at_a, at_b);
    assert_int_equal(tracker_live(a.device->tracker, MEM_WEIGHT), BYTES);
    /* The same bytes under another name, and without one: packed, and then the same pages. */
    sharing_model(b.store, 0);
    device_free(b.device, y);
    y = pack(&b, "other", 1, &packed);
    assert_true(packed);
    sharing_place(b.store, b.device, at_b);
    assert_string_equal(at_a, at_b);
    device_free(b.device, y);
    /* Other bytes are another place. */
    y = pack(&b, "other", 2, &packed);
    assert_true(packed);
    sharing_place(b.store, b.device, at_b);
    assert_string_not_equal(at_a, at_b);
    assert_string_not_equal(at_b, "private");
    device_free(b.device, y);
    device_free(a.device, x);
    assert_int_equal(tracker_live(a.device->tracker, -1), 0);
    close_worker(&a);
    close_worker(&b);
}

static void another_model(void **state) {
    (void)state;
    struct worker a;
    bool packed;
    open_worker(&a);
    sharing_model(a.store, 1);
    unsigned char *x = pack(&a, "layer 0 q", 3, &packed);
    assert_true(packed);
    sharing_model(a.store, 2);
    unsigned char *y = pack(&a, "layer 0 q", 4, &packed);
    assert_true(packed);
    assert_int_equal(y[0], 4);
    device_free(a.device, x);
    device_free(a.device, y);
    close_worker(&a);
}

/* Copies that take turns so that none is warm must stay copies; the other worker has them too. */
static void copies_stay_copies(void **state) {
    (void)state;
    struct worker a, b;
    bool packed;
    char at_a[17], at_b[17];
    open_worker(&a);
    open_worker(&b);
    unsigned char *x[2], *y[2];
    for (int i = 0; i < 2; i++) x[i] = pack(&a, "copy", 5, &packed);
    for (int i = 0; i < 2; i++) y[i] = pack(&b, "copy", 5, &packed);
    assert_ptr_not_equal(x[0], x[1]);
    assert_ptr_not_equal(y[0], y[1]);
    sharing_place(a.store, a.device, at_a);
    sharing_place(b.store, b.device, at_b);
    assert_string_equal(at_a, at_b);
    for (int i = 0; i < 2; i++) {
        device_free(a.device, x[i]);
        device_free(b.device, y[i]);
    }
    close_worker(&a);
    close_worker(&b);
}

static void nobody_writes(void **state) {
    (void)state;
    struct worker a;
    bool packed;
    int status = 0;
    open_worker(&a);
    unsigned char *x = pack(&a, "mine", 6, &packed);
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *(volatile unsigned char *)x = 7;
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_false(WIFEXITED(status) &&
                 WEXITSTATUS(status) == 0); /* a sanitizer makes an exit of it */
    device_free(a.device, x);
    close_worker(&a);
}

static void no_room(void **state) {
    (void)state;
    struct worker a;
    struct err err = {0};
    bool packed;
    char at[17];
    close(fd);
    assert_int_equal(snapshot_create(&fd, 1 << 20, &err), 0);
    open_worker(&a);
    unsigned char *x = pack(&a, "large", 8, &packed);
    assert_true(packed);
    x[0] = 9; /* its own */
    sharing_place(a.store, a.device, at);
    assert_string_equal(at, "private");
    device_free(a.device, x);
    close_worker(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(another_model, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_stay_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(no_room, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
