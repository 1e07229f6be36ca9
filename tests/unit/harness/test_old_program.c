/* SPDX-License-Identifier: Apache-2.0 */
/* The program of an older revision: built with the definitions that its result holds, in a worktree
 * that is gone afterwards, also after Ctrl-C. A cmake of our own stands in for the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/old_program.h"
#include "tests/support/synthetic.h"

static char folder[64], revision[64];

static void shell(const char *command) {
    const int status = system(command); /* NOLINT: a fixed command */
    if (status) fail_msg("%s: %d", command, status);
}

/* First line of what a command says. */
static void ask(const char *command, char *line, int size) {
    FILE *f = popen(command, "r"); /* NOLINT: a fixed command */
    assert_non_null(f);
    *line = 0;
    if (fgets(line, size, f)) line[strcspn(line, "\n")] = 0;
    pclose(f);
}

static int make_checkout(void **state) {
    (void)state;
    char path[4096];
    snprintf(folder, sizeof folder, "/tmp/bench-old-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder)) return -1;
    shell(
        "mkdir protocols bin && echo x > protocols/x.toml && git init -q . && git add protocols && "
        "git -c user.name=t -c user.email=t@t -c commit.gpgsign=false commit -qm t");
    ask("git rev-parse HEAD", revision, sizeof revision);
    /* Writes its words down; a build makes a program that says which words those were. */
    shell("printf '%s\\n' '#!/bin/sh' 'case $1 in -S) printf \"%s\\n\" \"$@\" > words ;;' '*) "
          "echo $$ > pid; [ ! -e slow ] || sleep 30; cp words \"$2/bench\" ;; esac' > bin/cmake && "
          "sed -i 's|words|'\"$PWD\"'/words|g; s|slow|'\"$PWD\"'/slow|; s|> pid|> '\"$PWD\"'/pid|; "
          "s|cp |mkdir -p \"$2\"; cp |' bin/cmake && chmod +x bin/cmake");
    snprintf(path, sizeof path, "%s/bin:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("BENCH_DATA", folder, 1);
    return 0;
}

static int remove_checkout(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command); /* NOLINT: our own folder */
}

static struct tables *result(const char *command, const char *dirty) {
    struct tables *ts = tables_create();
    synthetic_environment(ts, "build.digest", "0123456789abcdef", "");
    synthetic_environment(ts, "build.revision", revision, "");
    synthetic_environment(ts, "build.dirty", dirty, "");
    synthetic_environment(ts, "build.type", "Debug", "");
    if (*command) synthetic_environment(ts, "build.command", command, "");
    return ts;
}

static bool said(const char *word) {
    char *words = NULL;
    size_t n = 0;
    struct text line = {0};
    text_printf(&line, "%s\n", word);
    assert_int_equal(file_read("words", 100000, &words, &n, NULL), 0);
    const bool found = strstr(words, line.data) != NULL;
    free(words);
    text_free(&line);
    return found;
}

static void no_worktree_is_left(void) {
    char line[200];
    ask("git worktree list | wc -l", line, sizeof line);
    assert_string_equal(line, "1");
}

static void built_as_it_was(void **state) {
    (void)state;
    struct err err = {0};
    struct old_program p;
    struct tables *ts = result("cmake -S . -B build -DCMAKE_BUILD_TYPE=Release "
                               "-DCMAKE_C_FLAGS='-g -DX=1' -DCMAKE_PROJECT_INCLUDE=/tmp/evil.cmake "
                               "&& cmake --build build --target bench",
                               "no");
    assert_int_equal(old_program_find(ts, true, &p, &err), 0);
    assert_true(file_exists(p.binary));
    assert_true(said("-DCMAKE_BUILD_TYPE=Release") && said("-DCMAKE_C_FLAGS=-g -DX=1"));
    assert_false(said("-DCMAKE_PROJECT_INCLUDE=/tmp/evil.cmake")); /* what could run things */
    no_worktree_is_left();
    char *binary = must_text(p.binary);
    old_program_free(&p);
    assert_false(file_exists(binary));
    free(binary);
    tables_close(&ts);
    ts = result("", "no"); /* of an older result the type is known */
    assert_int_equal(old_program_find(ts, true, &p, &err), 0);
    assert_true(said("-DCMAKE_BUILD_TYPE=Debug"));
    old_program_free(&p);
    tables_close(&ts);
}

static void what_would_help(void **state) {
    (void)state;
    struct err err = {0};
    struct old_program p;
    struct tables *ts = result("cmake -S . -B build -DBENCH_CUDA=on", "yes");
    assert_int_equal(old_program_find(ts, true, &p, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "no revision holds"));
    assert_non_null(strstr(err.text, "it was built by cmake -S . -B build -DBENCH_CUDA=on;"));
    tables_close(&ts);
}

/* Whoever asks to stop while it is built: everything that was started ends, nothing is left. */
static void interrupted(void **state) {
    (void)state;
    char line[64];
    struct err err = {0};
    struct old_program p;
    shell("touch slow && rm -f pid");
    struct tables *ts = result("", "no");
    const pid_t self = getpid(), killer = fork();
    if (killer == 0) {
        for (int i = 0; i < 2000 && !file_exists("pid"); i++) usleep(5000);
        usleep(20000);
        kill(self, SIGINT);
        _exit(0);
    }
    assert_int_equal(old_program_find(ts, true, &p, &err), ERR_INTERRUPTED);
    waitpid(killer, NULL, 0);
    assert_null(p.binary);
    no_worktree_is_left();
    ask("kill -0 $(cat pid) 2>&1 || echo gone", line, sizeof line);
    assert_non_null(strstr(line, "o such process"));
    tables_close(&ts);
    shell("rm slow");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_as_it_was),
        cmocka_unit_test(what_would_help),
        cmocka_unit_test(interrupted),
    };
    return cmocka_run_group_tests(tests, make_checkout, remove_checkout);
}
