/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other tools: what is refused, with which words, and what the rows become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "results/import.h"
#include "results/rows.h"
#include "results/summary.h"
#include "tests/support/german.h"
#include "tests/support/result_example.h"

#define TEST(more)                                                                                 \
    "{\"build_commit\":\"b1\",\"backends\":\"CPU\",\"model_type\":\"m\",\"n_threads\":2,"          \
    "\"n_gpu_layers\":0,\"n_prompt\":64,\"n_gen\":0" more "}"
#define RUN(more) "{\"benchmarks\":[{\"name\":\"a\"" more "}]}"

static int read_as(struct import *im, const char *document, size_t len, const char *format,
                   struct text *lost, struct err *err) {
    const struct importer *i = format ? importer_find(format) : NULL;
    *err = (struct err){0};
    return import_document(im, "x.json", document, len, i, lost, err);
}

static struct tables *rows_of(const char *document) {
    struct import *im = import_create();
    struct tables *ts = tables_create();
    struct text lost = {0};
    struct err err = {0};
    if (read_as(im, document, strlen(document), NULL, &lost, &err)) fail_msg("%s", err.text);
    import_tables(im, "0", ts);
    assert_int_equal(summary_compute(ts, &err), 0);
    import_close(&im);
    text_free(&lost);
    return ts;
}

static const struct {
    const char *document, *format, *why;
} refused[] = {
    {"", NULL, "x.json: it is empty"},
    {" \n\t", NULL, "it is empty"},
    {"{", NULL, "line 1, column 1: this is no JSON"},
    {"[\n {\"a\": 1,}]", NULL, "line 2, column"},
    {"[NaN]", NULL, "line 1, column 2: this is no JSON"},
    {"[Infinity]", NULL, "this is no JSON"},
    {"{\"a\":1} x", NULL, "line 1, column 9: this is no JSON"},
    {"{\"a\":1}\n[2]", NULL, "line 2, column 1: this is no JSON"},
    {"[1] [2]", NULL, "line 1, column 5: this is no JSON"},
    {"[\"\xff\"]", NULL, "this is no UTF-8 text"},
    {"| model | size |", NULL, "it is no JSON; what can be imported is what Google Benchmark"},
    {"\x89HDF\r\n", NULL, "it is a result file already (bench show)"},
    {"BMRF\1", NULL, "it is a journal (bench import-journal)"},
    {"[]", NULL, "of no format that can be imported (there are gbench, llama-bench)"},
    {"{}", NULL, "of no format"},
    {"3", NULL, "it is no JSON; what"},
    {"[1]", "llama-bench", "[0] is no object"},
    {"{}", "llama-bench", "[0] has no n_prompt: a number is needed"},
    {"[" TEST(",\"avg_ns\":1") ",7]", NULL, "[1] is no object"},
    {TEST(",\"avg_ts\":1,\"n_depth\":1.5"), NULL, "[0].n_depth is 1.5: a whole number"},
    {TEST(",\"avg_ts\":1,\"n_depth\":-1"), NULL, "[0].n_depth is -1: a number of tokens"},
    {TEST(",\"avg_ts\":1,\"model_size\":1e300"), NULL, "[0].model_size is 1e+300: a whole number"},
    {TEST(",\"avg_ts\":1,\"model_size\":9007199254740994"), NULL, "of at most 2^53"},
    {TEST(",\"avg_ts\":1,\"main_gpu\":\"x\""), NULL, "[0].main_gpu is x: a finite number"},
    {TEST(",\"avg_ts\":1e999"), NULL, "[0].avg_ts is"},
    {TEST(",\"avg_ts\":-5"), NULL, "neither samples_ns nor a positive avg_ns or avg_ts"},
    {TEST(",\"avg_ns\":0"), NULL, "neither samples_ns nor a positive avg_ns or avg_ts"},
    {TEST(",\"avg_ts\":1,\"samples_ns\":[5,0]"), NULL, "[0].samples_ns[1]: whole nanoseconds"},
    {TEST(",\"avg_ts\":1,\"samples_ns\":[\"5\"]"), NULL, "[0].samples_ns[0]: whole nanoseconds"},
    {TEST(",\"avg_ns\":900,\"samples_ns\":[500,600]"), NULL,
     "avg_ns is 900, but its samples_ns give 550"},
    {TEST(",\"avg_ts\":7,\"samples_ns\":[1000000]"), NULL,
     "avg_ts is 7, but its samples_ns give 64000"},
    {"{\"n_prompt\":0,\"n_gen\":0,\"avg_ts\":1}", NULL, "reads no token and generates none"},
    {"[" TEST(",\"avg_ns\":5") "," TEST(",\"avg_ns\":5") "]", NULL, "[1]: 'pp64' comes twice"},
    {"{\"benchmarks\":{}}", "gbench", "there is no array 'benchmarks'"},
    {"{\"benchmarks\":[3]}", NULL, "benchmarks[0] is no object"},
    {"{\"benchmarks\":[{}]}", NULL, "benchmarks[0] has no name: text is needed"},
    {"{\"benchmarks\":[{\"name\":\"\"}]}", NULL, "benchmarks[0] has an empty name"},
    {RUN(""), NULL, "benchmarks[0] has no real_time: a number is needed"},
    {RUN(",\"real_time\":null"), NULL, "benchmarks[0].real_time is null: a finite number"},
    {RUN(",\"real_time\":1e400"), NULL, "benchmarks[0].real_time is"},
    {RUN(",\"real_time\":-1"), NULL, "benchmarks[0].real_time is negative"},
    {RUN(",\"real_time\":1,\"time_unit\":\"h\""), NULL, "time_unit is 'h': ns, us, ms or s"},
    {RUN(",\"real_time\":1,\"run_type\":\"odd\""), NULL,
     "run_type is 'odd': iteration or aggregate"},
    {RUN(",\"real_time\":1,\"iterations\":0.5"), NULL, "benchmarks[0].iterations is 0.5: a whole"},
};

static void refusals_say_where(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct import *im = import_create();
        struct text lost = {0};
        struct err err;
        int code = read_as(im, refused[i].document, strlen(refused[i].document), refused[i].format,
                           &lost, &err);
        if (code != ERR_INPUT || !strstr(err.text, refused[i].why) ||
            strncmp(err.text, "x.json: ", 8) || strchr(err.text, '\n'))
            fail_msg("%s: '%s', not '%s'", refused[i].document, err.text, refused[i].why);
        import_close(&im);
        text_free(&lost);
    }
}

static void nothing_beyond_the_end(void **state) {
    (void)state;
    static const char document[] = "[1,2]\0 garbage";
    struct import *im = import_create();
    struct text lost = {0};
    struct err err;
    assert_int_equal(read_as(im, document, sizeof document - 1, NULL, &lost, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "line 1, column 6"));
    assert_int_equal(import_store(im, "/nowhere/x.h5", "0", &err), ERR_INPUT);
    import_close(&im);
    text_free(&lost);
}

/* Nesting that would take all of the stack, and a number of members. */
static void deep(void **state) {
    (void)state;
    struct text t = {0};
    struct import *im = import_create();
    struct text lost = {0};
    struct err err;
    for (int i = 0; i < 100000; i++) text_puts(&t, "[");
    assert_int_equal(read_as(im, t.data, t.len, NULL, &lost, &err), ERR_INPUT);
    import_close(&im);
    text_free(&lost);
    text_free(&t);
}

static void check_llama(void) {
    struct tables *ts = rows_of(TEST(
        ",\"cpu_strict\":false,\"type_k\":\"f16\",\"poll\":0,\"model_size\":9007199254740992,"
        "\"model_filename\":\"/a/b.gguf\",\"avg_ts\":27.851851851851851,\"samples_ns\":[2000000000,"
        "2700000000]"));
    const struct table *p = tables_peek(ts, "points"), *facts = tables_peek(ts, "protocol");
    const char *size = "";
    assert_int_equal(table_rows(p), 1);
    assert_string_equal(table_text(p, 0, "label"), "pp64");
    assert_string_equal(table_text(p, 0, "effective"), "CPU threads=2");
    assert_int_equal(rows_threads(ts, 0), 2);
    assert_string_equal(table_text(p, 0, "cell"),
                        "test.backends=CPU test.model_filename=b.gguf test.model_type=m "
                        "test.n_gen=0 test.n_gpu_layers=0 test.n_prompt=64 test.n_threads=2 "
                        "test.poll=0 workload.name=llama-bench");
    for (int64_t r = 0; r < table_rows(facts); r++) {
        assert_string_equal(table_text(facts, r, "origin"), "imported from llama-bench");
        if (!strcmp(table_text(facts, r, "key"), "test.model_size"))
            size = table_text(facts, r, "value");
    }
    assert_string_equal(size, "9007199254740992");
    assert_true(fabs(summary_get(ts, 0, "time", "mean") - 2350) < 1e-9);
    assert_true(fabs(summary_get(ts, 0, "time", "stddev") - 494.97474683058327) < 1e-9);
    assert_true(fabs(summary_get(ts, 0, "prefill_rate", "mean") - 64 / 2.35) < 1e-9);
    tables_close(&ts);
}

static void llama_bench(void **state) {
    (void)state;
    check_llama();
    if (!german_begin()) skip();
    check_llama();
    german_end();
}

static void gbench(void **state) {
    (void)state;
    struct tables *ts = rows_of(
        "{\"context\":{\"num_cpus\":4},\"benchmarks\":["
        "{\"name\":\"f/8\",\"real_time\":1.5,\"time_unit\":\"us\",\"iterations\":7,\"hits\":3},"
        "{\"name\":\"f/8\",\"real_time\":2.5,\"time_unit\":\"us\",\"iterations\":9,\"hits\":5},"
        "{\"name\":\"f/8_mean\",\"real_time\":9,\"time_unit\":\"us\"},"
        "{\"name\":\"f/16/key:v\",\"real_time\":4,\"cpu_time\":8,\"time_unit\":\"ms\"},"
        "{\"name\":\"g::h\",\"error_occurred\":true,\"error_message\":\"no, \\\"luck\\\"\"},"
        "{\"name\":\"s_mean\",\"real_time\":1,\"time_unit\":\"s\",\"repetitions\":3},"
        "{\"name\":\"s_stddev\",\"real_time\":0.5,\"time_unit\":\"s\"},"
        "{\"name\":\"f_BigO\",\"real_coefficient\":1}]}");
    const struct table *p = tables_peek(ts, "points");
    assert_int_equal(table_rows(p), 4);
    assert_string_equal(table_text(p, 0, "case"), "f");
    assert_string_equal(table_text(p, 0, "label"), "8");
    assert_int_equal(table_int(p, 1, "test.arg1"), 16);
    assert_string_equal(table_text(p, 1, "test.key"), "v");
    assert_true(fabs(summary_get(ts, 0, "time", "mean") - 2e-3) < 1e-15);
    assert_true(summary_get(ts, 0, "time", "n_rounds") == 2 || summary_row(ts, 0, "time") >= 0);
    assert_true(summary_get(ts, 0, "hits", "mean") == 4);
    assert_true(summary_get(ts, 1, "cpu_time", "mean") == 8);
    assert_true(isnan(summary_get(ts, 1, "time", "stddev"))); /* one value has none */
    assert_string_equal(table_text(p, 2, "label"), "g::h");
    assert_string_equal(table_text(p, 2, "state"), "failed");
    assert_string_equal(table_text(p, 2, "reason"), "no, \"luck\"");
    assert_int_equal(summary_row(ts, 2, "time"), -1);
    assert_string_equal(table_text(p, 3, "flags"), "aggregates");
    assert_true(summary_get(ts, 3, "time", "mean") == 1000);
    assert_true(summary_get(ts, 3, "time", "stddev") == 500);
    assert_int_equal(table_int(tables_peek(ts, "summary"), summary_row(ts, 3, "time"), "n"), 3);
    tables_close(&ts);
}

/* Names may be anything: they reach the file as they are. */
static void hostile_names(void **state) {
    (void)state;
    struct text document = {0};
    text_puts(&document, "{\"benchmarks\":[{\"name\":");
    text_json(&document, HOSTILE);
    text_puts(&document, ",\"real_time\":1}]}");
    struct tables *ts = rows_of(document.data);
    assert_string_equal(table_text(tables_peek(ts, "points"), 0, "label"), HOSTILE);
    tables_close(&ts);
    text_free(&document);
}

static void every_importer(void **state) {
    (void)state;
    for (const struct importer *const *i = all_importers; *i; i++) {
        assert_true(*(*i)->name && *(*i)->brief);
        assert_ptr_equal(importer_find((*i)->name), *i);
    }
    assert_null(importer_find("no such"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_say_where),
        cmocka_unit_test(nothing_beyond_the_end),
        cmocka_unit_test(deep),
        cmocka_unit_test(llama_bench),
        cmocka_unit_test(gbench),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(every_importer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
