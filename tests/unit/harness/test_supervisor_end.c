/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that does not end after its last visit must not keep the run: this program is that
 * worker, as the supervisor starts itself anew. */
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

#include "base/clock.h"
#include "base/err.h"
#include "harness/head.h"
#include "harness/supervisor.h"
#include "harness/worker.h"
#include "results/table.h"

static const char text[] = "title = \"T\"\n[workload]\nname = \"null\"\n[device]\nkind = \"fake\"\n"
                           "[measure]\nrounds = 1\nstop = \"samples\"\nsamples = 2\nwarmups = 0\n"
                           "budget = \"1 min\"\n";

/* The clock of this process runs, and Ctrl-C comes while the supervisor waits for the worker. */
static void stop_soon(int seconds) {
    pid_t parent = getpid();
    if (fork() == 0) {
        sleep((unsigned)seconds);
        kill(parent, SIGINT);
        _exit(0);
    }
}

static double supervise_once(struct supervision *s) {
    char path[] = "/tmp/bench-end-XXXXXX";
    struct err err = {0};
    struct problems *problems = problems_create();
    struct protocol_request request = {.path = "t.toml", .text = text};
    struct protocol *protocol = NULL;
    struct journal *journal = NULL;
    struct facts none = {0};
    struct tables *head = tables_create();
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(protocol_load(&protocol, &request, problems, &err), 0);
    assert_non_null(protocol);
    head_tables(protocol, &none, head);
    assert_int_equal(journal_create(&journal, path, &err), 0);
    assert_int_equal(journal_append(journal, JOURNAL_HEAD, head, &err), 0);
    *s = (struct supervision){.protocol = protocol, .journal = journal, .quiet = true};
    int64_t began = clock_ns();
    assert_int_equal(supervise(s, &err), 0);
    double seconds = (double)(clock_ns() - began) * 1e-9;
    int64_t visits = 0;
    journal_close(&journal);
    assert_int_equal(journal_read(path, NULL, &visits, NULL, &err), 0);
    assert_true(visits >= 1);
    unlink(path);
    tables_close(&head);
    protocol_close(&protocol);
    problems_close(&problems);
    return seconds;
}

static void interrupted_while_it_hangs(void **state) {
    (void)state;
    struct supervision s;
    stop_soon(2);
    assert_true(supervise_once(&s) < 8); /* not even the patience that it has otherwise */
    assert_true(s.interrupted);
}

static void ended_after_a_while(void **state) {
    (void)state;
    struct supervision s;
    double seconds = supervise_once(&s);
    assert_true(seconds > 5 && seconds < 60);
    assert_true(s.complete);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "worker")) {
        worker_main(10, 11, 12, -1);
        for (;;) pause();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupted_while_it_hangs),
        cmocka_unit_test(ended_after_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
