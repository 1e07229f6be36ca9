/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: codes, sentences, prefixes, and what happens at the buffer's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "tests/support/german.h"

static void sets_code_and_sentence(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, ERR_INPUT, "found %d, allowed: %s", 7, "1"), ERR_INPUT);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.text, "found 7, allowed: 1");
    assert_int_equal(err_prefix(&err, "file %s", "a.toml"), ERR_INPUT);
    assert_string_equal(err.text, "file a.toml: found 7, allowed: 1");
}

static void names_the_errno(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(err_system(&err, ENOENT, "cannot open '%s'", "x"), ERR_SYSTEM);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_string_equal(err.text, "cannot open 'x': No such file or directory");
}

static void takes_no_error_to_write_to(void **state) {
    (void)state;
    assert_int_equal(err_set(NULL, ERR_DEVICE, "%s", "lost"), ERR_DEVICE);
    assert_int_equal(err_system(NULL, EIO, "%s", "lost"), ERR_SYSTEM);
    assert_int_equal(err_prefix(NULL, "%s", "lost"), 0);
}

static void long_sentences_are_cut(void **state) {
    (void)state;
    char longer[3000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    struct err err = {0};
    size_t most = sizeof err.text - 1;
    err_set(&err, ERR_INPUT, "%s", longer);
    assert_int_equal(strlen(err.text), most);
    err_system(&err, ENOENT, "%s", longer);
    assert_int_equal(strlen(err.text), most);
    err_prefix(&err, "%s", "front");
    assert_int_equal(strlen(err.text), most);
    assert_memory_equal(err.text, "front: xxx", 10);
    err_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.text), most);
}

static void says_the_same_under_any_locale(void **state) {
    (void)state;
    if (!german_begin()) skip();
    struct err err = {0};
    err_set(&err, ERR_INPUT, "%.2f", 1.25);
    german_end();
    assert_string_equal(err.text, "1.25");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_code_and_sentence),         cmocka_unit_test(names_the_errno),
        cmocka_unit_test(takes_no_error_to_write_to),     cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(says_the_same_under_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
