/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's first words: of another version it is refused by name, and one that never speaks is
 * not waited for. This program is that worker. */
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

/* Programs that are no bench end in many ways; each is told. */
static void ends_before_a_word(void **state) {
    (void)state;
    static const struct {
        const char *says, *told;
    } ways[] = {
        {"exit", "did not start as a worker (it exited with 7): it is no bench"},
        {"signal", "did not start as a worker (it was ended by signal 11, "},
        {"garbage", "did not start as a worker (what it says is no greeting)"},
        {"half", "did not start as a worker (what it says is no greeting)"},
        {"sample", "did not start as a worker (what it says is no greeting)"},
        {"nonsense", "speaks version 0 of the workers' messages"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct err err = {0};
        start("/proc/self/exe", ways[i].says, &err);
        assert_int_equal(err.code, ERR_INPUT);
        if (!strstr(err.text, ways[i].told)) fail_msg("%s: %s", ways[i].says, err.text);
    }
    struct err err = {0}; /* of our own program there is nothing to say about a bench */
    start(NULL, "exit", &err);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_string_equal(err.text, "a worker of this program did not start (it exited with 7)");
}

/* What another program prints is no result of ours. */
static void its_output_is_no_data(void **state) {
    (void)state;
    struct err err = {0};
    char got[16] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    start("/proc/self/exe", "print", &err);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(read(ends[0], got, sizeof got - 1), 0);
    close(ends[0]);
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

static void end_early(const char *says) {
    const struct rlimit none = {0, 0};
    if (!strcmp(says, "exit")) _exit(7);
    if (!strcmp(says, "print")) {
        if (write(STDOUT_FILENO, "data\n", 5) == 5) _exit(0);
        _exit(1);
    }
    if (!strcmp(says, "signal")) {
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (!strcmp(says, "garbage") || !strcmp(says, "half")) { /* no frame; a frame's first bytes */
        const char *bytes =
            *says == 'g' ? "Segmentation fault, or so, but said politely" : "BMRF\1";
        if (write(10, bytes, strlen(bytes)) > 0) _exit(0);
        _exit(1);
    }
    if (!strcmp(says, "sample")) {
        frame_write(10, MESSAGE_SAMPLE, "x", 1, NULL);
        _exit(0);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "worker")) {
        struct facts hello = {0};
        struct text body = {0};
        end_early(getenv("CHILD_SAYS"));
        facts_set(&hello, "message.version", getenv("CHILD_SAYS"), "", "");
        facts_set(&hello, "build.revision", "0123abc", "", "");
        facts_pack(&body, &hello);
        frame_write(10, MESSAGE_HELLO, body.data, body.len, NULL);
        for (;;) pause();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version),    cmocka_unit_test(no_worker),
        cmocka_unit_test(ends_before_a_word), cmocka_unit_test(its_output_is_no_data),
        cmocka_unit_test(out_of_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
