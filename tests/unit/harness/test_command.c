/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: flags in every form, mistakes, and the help that the table gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"

static const struct flag flags[] = {
    {"--set", NULL, "KEY=VALUE", "What", "changes a key", true},
    {"--output", "-o", "FILE", "Output", "where to", false},
    {"--quick", NULL, NULL, "What", "less", false},
    {0},
};
static const struct command command = {
    .name = "try", .usage = "FILE", .brief = "tries", .group = "G", .flags = flags};

static int parse(struct arguments *a, const char *const *words) {
    char *argv[160];
    int n = 0;
    for (; words[n]; n++) argv[n] = (char *)words[n];
    argv[n] = NULL;
    return command_parse(&command, n, argv, a);
}
#define PARSE(a, ...) parse((a), (const char *const[]){"try", __VA_ARGS__, NULL})

static void every_form(void **state) {
    (void)state;
    struct arguments a;
    const char *sets[4];
    assert_int_equal(
        PARSE(&a, "one", "--set", "a=1", "--set=b=2", "-o", "out", "--quick", "--", "-x", "--set"),
        0);
    assert_int_equal(a.n_words, 3);
    assert_string_equal(a.words[0], "one");
    assert_string_equal(a.words[1], "-x");
    assert_string_equal(a.words[2], "--set");
    assert_int_equal(arguments_of(&a, "--set", sets, 4), 2);
    assert_string_equal(sets[0], "a=1");
    assert_string_equal(sets[1], "b=2");
    assert_int_equal(arguments_of(&a, "--set", sets, 1), 1);
    assert_string_equal(argument(&a, "--set"), "b=2");
    assert_string_equal(argument(&a, "--output"), "out");
    assert_string_equal(argument(&a, "--quick"), "");
    assert_int_equal(PARSE(&a, "-", "--output="), 0);
    assert_string_equal(a.words[0], "-");
    assert_string_equal(argument(&a, "--output"), "");
    assert_null(argument(&a, "--quick"));
}

static void mistakes(void **state) {
    (void)state;
    struct arguments a;
    assert_int_equal(PARSE(&a, "--sett", "x"), EXIT_USAGE);
    assert_int_equal(PARSE(&a, "-z"), EXIT_USAGE);
    assert_int_equal(PARSE(&a, "--set"), EXIT_USAGE);
    assert_int_equal(PARSE(&a, "--quick=yes"), EXIT_USAGE);
    assert_int_equal(PARSE(&a, "-o", "a", "--output", "b"), EXIT_USAGE);
    assert_int_equal(PARSE(&a, "-oout"), EXIT_USAGE);
}

static void too_many(void **state) {
    (void)state;
    struct arguments a;
    const char *words[160] = {"try"};
    for (int i = 1; i <= 64; i++) words[i] = "w";
    assert_int_equal(parse(&a, words), 0);
    assert_int_equal(a.n_words, 64);
    words[65] = "w";
    assert_int_equal(parse(&a, words), EXIT_USAGE);
    for (int i = 1; i <= 129; i++) words[i] = "--set=k=v";
    assert_int_equal(parse(&a, words), EXIT_USAGE);
    words[129] = NULL;
    assert_int_equal(parse(&a, words), 0);
    assert_int_equal(a.n_given, 128);
}

static void help_by_purpose(void **state) {
    (void)state;
    struct text t = {0};
    command_describe(&command, &t);
    assert_string_equal(t.data, "bench try FILE\n"
                                "  tries\n"
                                "\n"
                                "What\n"
                                "  --set KEY=VALUE    changes a key (may be repeated)\n"
                                "  --quick            less\n"
                                "\n"
                                "Output\n"
                                "  -o, --output FILE  where to\n");
    text_free(&t);
}

static void exits(void **state) {
    (void)state;
    static const struct {
        int code, exit_code;
    } rows[] = {{ERR_INPUT, 2},  {ERR_SYSTEM, 2}, {ERR_UNSUPPORTED, 2}, {ERR_INTERNAL, 2},
                {ERR_MEMORY, 3}, {ERR_DEVICE, 3}, {ERR_TIMEOUT, 3},     {ERR_INTERRUPTED, 130}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        err_set(&err, rows[i].code, "x");
        assert_int_equal(command_fail(&err), rows[i].exit_code);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),      cmocka_unit_test(mistakes), cmocka_unit_test(too_many),
        cmocka_unit_test(help_by_purpose), cmocka_unit_test(exits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
