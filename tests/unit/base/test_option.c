/* SPDX-License-Identifier: Apache-2.0 */
/* Options: every type is read, bounded, refused with a sentence, written back, and helped with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/text.h"
#include "tests/support/german.h"

struct params {
    int64_t batch, any, memory, budget, negative;
    double rate, free;
    int type;
    const char *name, *needed;
    bool fast;
    struct ints lengths;
};
#define AT(field) offsetof(struct params, field)
static const char *const types[] = {"bf16", "f16", "f32", NULL};
static const struct option table[] = {
    {"batch", "batch_size", OPT_INT, OPT_SWEEP, AT(batch), "2", 1, 4096, NULL, "tokens",
     "Sequences."},
    {"any", NULL, OPT_INT, 0, AT(any), "0x10", 0, 0, NULL, "", "Any."},
    {"memory", NULL, OPT_BYTES, 0, AT(memory), "64 MiB", 1024, 1 << 30, NULL, "", "Memory."},
    {"budget", NULL, OPT_TIME, 0, AT(budget), "90 s", 1000, INFINITY, NULL, "", "Time."},
    {"negative", NULL, OPT_INT, 0, AT(negative), "-1", -INFINITY, -1, NULL, "", "Below zero."},
    {"rate", NULL, OPT_REAL, 0, AT(rate), "0.5", 0, 1, NULL, "", "A share."},
    {"free", NULL, OPT_REAL, 0, AT(free), "1e-3", 0, 0, NULL, "", "Any number."},
    {"type", NULL, OPT_WORD, 0, AT(type), "f16", 0, 0, types, "", "Type."},
    {"name", NULL, OPT_TEXT, 0, AT(name), "", 0, 0, NULL, "", "Name."},
    {"needed", NULL, OPT_TEXT, 0, AT(needed), NULL, 0, 0, NULL, "", "Must be given."},
    {"fast", NULL, OPT_FLAG, 0, AT(fast), "true", 0, 0, NULL, "", "Fast."},
    {"lengths", NULL, OPT_INTS, OPT_SWEEP, AT(lengths), "[1, 2, 4]", 1, 100, NULL, "", "Lengths."},
    {0},
};

static struct arena *arena;
static struct params params;

static int make(void **state) {
    (void)state;
    (void)state;
    arena = arena_create();
    memset(&params, 0x5a, sizeof params); /* whatever was there must not shine through */
    option_defaults(table, &params, arena);
    return 0;
}

static int drop(void **state) {
    (void)state;
    (void)state;
    arena_close(&arena);
    return 0;
}

static char *formatted(const char *key) {
    struct text t = {0};
    option_format(option_find(table, key), &params, &t);
    char *s = arena_text(arena, t.data ? t.data : "");
    text_free(&t);
    return s;
}

static void defaults_are_read(void **state) {
    (void)state;
    assert_int_equal(params.batch, 2);
    assert_int_equal(params.any, 16);
    assert_int_equal(params.memory, 64 << 20);
    assert_int_equal(params.budget, 90000000000);
    assert_int_equal(params.negative, -1);
    assert_true(params.rate == 0.5);
    assert_true(params.free == 1e-3);
    assert_int_equal(params.type, 1);
    assert_string_equal(params.name, "");
    assert_string_equal(params.needed, "");
    assert_true(params.fast);
    assert_int_equal(params.lengths.n, 3);
    assert_int_equal(params.lengths.v[2], 4);
}

/* "5 %" and 0.05 are one value; what is written back reads as the same. */
static void shares_are_percents(void **state) {
    (void)state;
    static const struct option share = {.key = "share", .type = OPT_REAL, .max = 1, .unit = "%"};
    static const char *const good[] = {"5 %", "5%", "0.05", "5e-2"};
    static const char *const bad[] = {"%", "5 % %", "five %", "", "5 percent", "nan %"};
    double v;
    struct text t = {0};
    struct err err = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (option_parse(&share, good[i], &v, arena, &err)) fail_msg("%s", good[i]);
        assert_true(fabs(v - 0.05) < 1e-15);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(option_parse(&share, bad[i], &v, arena, &err), ERR_INPUT);
    assert_int_equal(option_parse(&share, "101 %", &v, arena, &err), ERR_INPUT);
    assert_string_equal(err.text, "101 % is outside 0 % \xe2\x80\xa6 100 %");
    option_allowed(&share, &t);
    assert_string_equal(t.data, "share, as \"5 %\" or 0.05, 0 % \xe2\x80\xa6 100 %");
    text_free(&t);
}

static void keys_have_former_names(void **state) {
    (void)state;
    assert_ptr_equal(option_find(table, "batch"), &table[0]);
    assert_ptr_equal(option_find(table, "batch_size"), &table[0]);
    assert_null(option_find(table, "batc"));
    assert_null(option_find(table, ""));
    assert_null(option_find(NULL, "batch"));
    static const struct option renamed[] = {{.key = "new", .was = "x"}, {.key = "x"}, {0}};
    assert_ptr_equal(option_find(renamed, "x"),
                     &renamed[1]); /* a living key before a former name */
}

/* What is accepted, with its canonical text, which must read back to the same text. */
static void check_reads_and_writes(void) {
    static const char *const rows[][3] = {
        {"batch", "4096", "4096"},
        {"batch_size", "1_000", "1000"},
        {"any", "-9223372036854775808", "-9223372036854775808"},
        {"any", "9223372036854775807", "9223372036854775807"},
        {"negative", "-1000000", "-1000000"},
        {"memory", "2048", "2 KiB"},
        {"memory", "1 GiB", "1 GiB"},
        {"memory", "1500 kB", "1500 kB"},
        {"memory", "2 MB", "2 MB"},
        {"memory", "1025", "1025 B"},
        {"budget", "120 s", "2 min"},
        {"budget", "1.5 s", "1500 ms"},
        {"budget", "7200 s", "2 h"},
        {"budget", "1001 ns", "1001 ns"},
        {"rate", "0.1", "0.1"},
        {"rate", "1", "1"},
        {"free", "-1e300", "-1e+300"},
        {"type", "f32", "f32"},
        {"type", "bf16", "bf16"},
        {"name", "a \"b\" \xc2\xb1", "a \"b\" \xc2\xb1"},
        {"name", "", ""},
        {"fast", "false", "false"},
        {"fast", "true", "true"},
        {"lengths", "3", "[3]"},
        {"lengths", "1,2,4", "[1, 2, 4]"},
        {"lengths", " [ 1 ,2, 100 ] ", "[1, 2, 100]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct option *o = option_find(table, rows[i][0]);
        struct err err = {0};
        if (option_parse(o, rows[i][1], &params, arena, &err))
            fail_msg("%s = %s: %s", rows[i][0], rows[i][1], err.text);
        char *once = formatted(rows[i][0]);
        assert_string_equal(once, rows[i][2]);
        assert_int_equal(option_parse(o, once, &params, arena, &err), 0);
        assert_string_equal(formatted(rows[i][0]), once);
    }
}

#define TO " \xe2\x80\xa6 "
/* What is refused, with the sentence; the field stays as it was. */
static void check_refusals(void) {
    static const char *const rows[][3] = {
        {"batch", "0", "0 is outside 1" TO "4096"},
        {"batch", "4097", "4097 is outside 1" TO "4096"},
        {"batch", "two", "'two' is not allowed here; allowed: integer 1" TO "4096"},
        {"batch", "", "'' is not allowed here; allowed: integer 1" TO "4096"},
        {"batch", "1.5", "'1.5' is not allowed here; allowed: integer 1" TO "4096"},
        {"any", "x", "'x' is not allowed here; allowed: integer"},
        {"negative", "0", "0 is above -1"},
        {"memory", "2 GiB", "2 GiB is outside 1 KiB" TO "1 GiB"},
        {"memory", "2 gb",
         "'2 gb' is not allowed here; allowed: bytes, as \"64 MiB\", 1 KiB" TO "1 GiB"},
        {"budget", "10 ns", "10 ns is below 1 us"},
        {"budget", "10", "'10' is not allowed here; allowed: time, as \"90 s\", at least 1 us"},
        {"rate", "1.5", "1.5 is outside 0" TO "1"},
        {"rate", "-0.1", "-0.1 is outside 0" TO "1"},
        {"rate", "0,5", "'0,5' is not allowed here; allowed: number 0" TO "1"},
        {"rate", "nan", "'nan' is not allowed here; allowed: number 0" TO "1"},
        {"type", "bf61", "'bf61' is not one of bf16, f16, f32; did you mean 'bf16'?"},
        {"type", "int4", "'int4' is not one of bf16, f16, f32"},
        {"type", "", "'' is not one of bf16, f16, f32"},
        {"fast", "yes", "'yes' is not one of false, true"},
        {"fast", "True", "'True' is not one of false, true; did you mean 'true'?"},
        {"name", "\xff", "the text is not UTF-8"},
        {"lengths", "[1, 200]", "200 is outside 1" TO "100"},
        {"lengths", "[]",
         "'[]' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "[ ]",
         "'[ ]' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "[1, 2",
         "'[1, 2' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "1,,2",
         "'1,,2' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "",
         "'' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "  ",
         "'  ' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "[",
         "'[' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "]",
         "']' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "[1]2]",
         "'[1]2]' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {"lengths", "[1, 2,]",
         "'[1, 2,]' is not allowed here; allowed: integers, as \"[1, 2, 4]\", each 1" TO "100"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *before = formatted(rows[i][0]);
        struct err err = {0};
        int code = option_parse(option_find(table, rows[i][0]), rows[i][1], &params, arena, &err);
        if (code != ERR_INPUT) fail_msg("%s = %s was taken", rows[i][0], rows[i][1]);
        assert_int_equal(err.code, ERR_INPUT);
        assert_string_equal(err.text, rows[i][2]);
        assert_string_equal(formatted(rows[i][0]), before);
    }
}

static void reads_and_writes(void **state) {
    (void)state;
    check_reads_and_writes();
    if (german_begin()) check_reads_and_writes();
    german_end();
}

static void refuses_with_a_sentence(void **state) {
    (void)state;
    check_refusals();
    if (german_begin()) check_refusals();
    german_end();
}

static void says_what_is_allowed(void **state) {
    (void)state;
    static const struct option real_from = {.type = OPT_REAL, .min = 0.5, .max = INFINITY};
    static const struct option real_to = {.type = OPT_REAL, .min = -INFINITY, .max = 1e300};
    static const struct {
        const struct option *option;
        const char *text;
    } rows[] = {
        {&table[0], "integer 1" TO "4096"},
        {&table[1], "integer"},
        {&table[2], "bytes, as \"64 MiB\", 1 KiB" TO "1 GiB"},
        {&table[3], "time, as \"90 s\", at least 1 us"},
        {&table[4], "integer, at most -1"},
        {&table[5], "number 0" TO "1"},
        {&table[6], "number"},
        {&table[7], "one of bf16, f16, f32"},
        {&table[8], "text"},
        {&table[10], "true or false"},
        {&table[11], "integers, as \"[1, 2, 4]\", each 1" TO "100"},
        {&real_from, "number, at least 0.5"},
        {&real_to, "number, at most 1e+300"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text t = {0};
        option_allowed(rows[i].option, &t);
        assert_string_equal(t.data, rows[i].text);
        text_free(&t);
    }
}

static void required_fields_start_at_zero(void **state) {
    (void)state;
    struct option required[sizeof table / sizeof *table];
    memcpy(required, table, sizeof table);
    for (struct option *o = required; o->key; o++) o->def = NULL;
    memset(&params, 0x5a, sizeof params);
    option_defaults(required, &params, arena);
    assert_int_equal(params.batch, 0);
    assert_int_equal(params.memory, 0);
    assert_int_equal(params.budget, 0);
    assert_true(params.rate == 0);
    assert_int_equal(params.type, 0);
    assert_string_equal(params.name, "");
    assert_false(params.fast);
    assert_int_equal(params.lengths.n, 0);
    assert_string_equal(formatted("type"), "bf16");
    params.type = 3; /* no such word: no crash */
    assert_string_equal(formatted("type"), "?");
    params.type = -1;
    assert_string_equal(formatted("type"), "?");
}

static void texts_outlive_their_source(void **state) {
    (void)state;
    char text[] = "mine";
    assert_int_equal(option_parse(option_find(table, "name"), text, &params, arena, NULL), 0);
    text[0] = 'X';
    assert_string_equal(params.name, "mine");
}

static void help_fits_a_page(void **state) {
    (void)state;
    static const struct option rows[] = {
        {"batch", NULL, OPT_INT, 0, AT(batch), "1", 1, 4096, NULL, "tokens",
         "How many sequences are decoded together in one step of the model, each with one new token "
         "at its own position."},
        {"needed", NULL, OPT_TEXT, 0, AT(needed), NULL, 0, 0, NULL, "", "Must be given."},
        {"name", NULL, OPT_TEXT, 0, AT(name), "", 0, 0, NULL, NULL, "Name."},
        {0},
    };
    struct text t = {0};
    option_help(rows, "workload.", &t);
    assert_string_equal(
        t.data,
        "  workload.batch   1           integer 1" TO
        "4096 tokens; How many sequences are decoded together in\n"
        "                               one step of the model, each with one new token at its own position.\n"
        "  workload.needed  (required)  text; Must be given.\n"
        "  workload.name    \"\"          text; Name.\n");
    for (char *line = strtok(t.data, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(utf8_width(line) <= 100);
    text_free(&t);
}

static void a_bad_default_is_our_own_mistake(void **state) {
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        static const struct option bad[] = {
            {"batch", NULL, OPT_INT, 0, AT(batch), "0", 1, 4096, NULL, "", ""}, {0}};
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        option_defaults(bad, &params, arena);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults_are_read, make, drop),
        cmocka_unit_test_setup_teardown(shares_are_percents, make, drop),
        cmocka_unit_test_setup_teardown(keys_have_former_names, make, drop),
        cmocka_unit_test_setup_teardown(reads_and_writes, make, drop),
        cmocka_unit_test_setup_teardown(refuses_with_a_sentence, make, drop),
        cmocka_unit_test_setup_teardown(says_what_is_allowed, make, drop),
        cmocka_unit_test_setup_teardown(required_fields_start_at_zero, make, drop),
        cmocka_unit_test_setup_teardown(texts_outlive_their_source, make, drop),
        cmocka_unit_test_setup_teardown(help_fits_a_page, make, drop),
        cmocka_unit_test_setup_teardown(a_bad_default_is_our_own_mistake, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
