/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes of a program's file are changes of the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/same_program.h"

/* They stand in this program's file as they do here. */
static const char *volatile revision = "revision:0123456789abcdef0123456789abcdef01234567";
static const char *volatile longer = "longer:fedcba9876543210fedcba9876543210fedcba987";
static const char *volatile word = "a word of same_program's test";
static const char path[] = "same_program_test.copy";

static char *data;
static size_t n;

static char *find(const char *text) {
    char *at = memmem(data, n, text, strlen(text));
    assert_non_null(at);
    return at;
}

/* Whether this program with one byte changed is still this program. */
static bool same_with(char *at, char byte) {
    const char before = *at;
    *at = byte;
    assert_int_equal(file_write(path, data, n, NULL), 0);
    *at = before;
    const bool same = same_program(NULL, path);
    assert_int_equal(same_program(path, NULL), same);
    return same;
}

static void only_the_revision_may_differ(void **state) {
    (void)state;
    assert_int_equal(file_read("/proc/self/exe", (size_t)1 << 30, &data, &n, NULL), 0);
    char *digits = find(revision) + strlen("revision:");
    assert_true(same_with(digits, *digits)); /* a copy */
    assert_true(same_with(digits, 'f'));
    assert_true(same_with(digits + 39, 'f'));
    assert_false(same_with(digits, 'g'));                           /* no digit */
    assert_false(same_with(digits - 1, 'f'));                       /* more digits */
    assert_false(same_with(find(longer) + strlen("longer:"), '0')); /* 41 digits are no revision */
    assert_false(same_with(find(word), 'b'));
    const uintptr_t code = (uintptr_t)&same_program;
    unsigned char head[64];
    memcpy(head, (const void *)code, sizeof head);
    char *body = memmem(data, n, head, sizeof head);
    if (body) assert_false(same_with(body + 8, (char)(body[8] + 1))); /* code */
}

static void what_is_not_loaded_may_differ(void **state) {
    (void)state;
    char *longer_file = malloc(n + 1);
    assert_non_null(longer_file);
    memcpy(longer_file, data, n);
    longer_file[n] = '\n';
    assert_int_equal(file_write(path, longer_file, n + 1, NULL), 0);
    assert_true(same_program(NULL, path));
    free(longer_file);
}

/* Files that are cut anywhere, lie about themselves or are something else: no crash, not the same.
 */
static void bad_files(void **state) {
    (void)state;
    Elf64_Ehdr head;
    for (size_t keep = 0; keep < n; keep = keep < 128 ? keep + 1 : 2 * keep) {
        assert_int_equal(file_write(path, data, keep, NULL), 0);
        assert_false(same_program(NULL, path));
    }
    memcpy(&head, data, sizeof head);
    char *sections = data + head.e_shoff;
    for (size_t i = 0; i < sizeof(Elf64_Shdr) * 3; i++) same_with(sections + i, (char)0xff);
    for (size_t i = 0; i < sizeof head; i++) same_with(data + i, (char)0xff);
    assert_false(same_program(NULL, "/bin/sh"));
    assert_false(same_program("no/such", "no/such"));
    assert_int_equal(file_write(path, "#!/bin/sh\n", 10, NULL), 0);
    assert_true(same_program(path, path)); /* one file, whatever it is */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_revision_may_differ),
        cmocka_unit_test(what_is_not_loaded_may_differ),
        cmocka_unit_test(bad_files),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    free(data);
    return failed;
}
