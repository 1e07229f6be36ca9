/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a program in Python, beside the tests, writes into a new folder at test time. */
#ifndef TESTS_GOLDEN_MADE_FILES_H
#define TESTS_GOLDEN_MADE_FILES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static inline const char *made_files_root(void) {
    const char *root = getenv("SOURCE_DIR");
    return root ? root : ".";
}

/* The interpreter; exit 77 where there is none. */
static inline const char *made_files_python(void) {
    const char *python = getenv("BENCH_PYTHON");
    if (!python || !*python) {
        print_message("SKIPPED: python3 with numpy is missing\n");
        exit(77);
    }
    return python;
}

/* folder: a template of mkdtemp. */
static inline int made_files_write(char *folder, const char *python, const char *program) {
    char command[3000];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "'%s' '%s/tests/golden/%s' %s", python, made_files_root(),
             program, folder);
    assert_int_equal(system(command), 0);
    return 0;
}

static inline int made_files_remove(const char *folder) {
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

#endif
