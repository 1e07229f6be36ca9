/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's first words: of another version it is refused by name, and one that never speaks is
 * not waited for. This program is that worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/facts.h"
#include "base/frame.h"
#include "base/text.h"
#include "harness/child.h"
#include "harness/snapshot.h"
#include "harness/worker.h"

static void open_memory(struct child_memory *m) {
    struct err err = {0};
    m->weights_fd = -1;
    assert_int_equal(sample_log_create(&m->log_fd, &m->log, &err), 0);
    assert_int_equal(snapshot_create(&m->snapshot_fd, 4096, &err), 0);
}
static void close_memory(struct child_memory *m) {
    sample_log_unmap(&m->log);
    close(m->log_fd);
    close(m->snapshot_fd);
}

static void start(const char *binary, const char *says, struct err *err) {
    struct child_memory memory;
    open_memory(&memory);
    struct child child = {.fd = -1, .memory = &memory, .binary = binary};
    setenv("CHILD_SAYS", says, 1);
    child_start(&child, 0, false, err);
    child_end(&child, true);
    close_memory(&memory);
}

static void another_version(void **state) {
    (void)state;
    struct err err = {0};
    start("/proc/self/exe", "1", &err);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "/proc/self/exe (revision 0123abc) speaks version 1"));
    assert_non_null(strstr(err.text, "rebuild"));
}

static void no_worker(void **state) {
    (void)state;
    struct err err = {0};
    start("/bin/true", "", &err);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "/bin/true did not start as a worker"));
    err = (struct err){0};
    start("/no/such/program", "", &err);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "/no/such/program"));
}

/* What the worker says when it is asked out of order is no measurement, and no reason to die. */
static void out_of_order(void **state) {
    (void)state;
    struct child_memory memory;
    struct err err = {0};
    struct answer answer;
    struct facts turn = {0};
    const struct patience patience = {.timeout_ns = 5000000000};
    open_memory(&memory);
    struct child child = {.fd = -1, .memory = &memory};
    assert_int_equal(child_start(&child, 0, true, &err), 0);
    facts_set(&turn, "turn.executions", "1", "", "");
    assert_int_equal(child_ask(&child, MESSAGE_TURN, &turn, &patience, &answer, &err),
                     ERR_INTERNAL);
    free(answer.body);
    assert_int_equal(child_ask(&child, MESSAGE_CLOSE, &turn, &patience, &answer, &err),
                     ERR_INTERNAL);
    free(answer.body);
    facts_free(&turn);
    child_end(&child, false);
    close_memory(&memory);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "worker")) {
        struct facts hello = {0};
        struct text body = {0};
        facts_set(&hello, "message.version", getenv("CHILD_SAYS"), "", "");
        facts_set(&hello, "build.revision", "0123abc", "", "");
        facts_pack(&body, &hello);
        frame_write(10, MESSAGE_HELLO, body.data, body.len, NULL);
        for (;;) pause();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version),
        cmocka_unit_test(no_worker),
        cmocka_unit_test(out_of_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
