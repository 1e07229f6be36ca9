/* SPDX-License-Identifier: Apache-2.0 */
/* What show prints: every row, no number where there is none, 100 columns, the same under any
 * locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "results/show.h"
#include "tests/support/german.h"
#include "tests/support/result_example.h"

static char *shown(const struct tables *ts, const struct show_options *o) {
    struct text out = {0};
    show_tables(ts, o, &out);
    assert_true(utf8_valid(out.data, out.len));
    return text_take(&out);
}

static void has(const char *text, const char *what) {
    if (!strstr(text, what)) fail_msg("'%s' is not in:\n%s", what, text);
}

static void has_not(const char *text, const char *what) {
    if (strstr(text, what)) fail_msg("'%s' is in:\n%s", what, text);
}

/* The line that begins (after spaces) with these words, in a buffer of its own. */
static char *line_of(const char *text, const char *begin) {
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
        const char *word = line + strspn(line, " ");
        if (!strncmp(word, begin, strlen(begin))) return strndup(line, strcspn(line, "\n"));
    }
    fail_msg("no line begins with '%s' in:\n%s", begin, text);
    return NULL;
}

static void whole_table(void **state) {
    (void)state;
    struct tables *ts = result_example();
    table_set_text(tables_get(ts, "points"), 1, "odd/name%", ""); /* one key, a number: ratios */
    char *text = shown(ts, NULL), *line;
    has(text, "Example \xe2\x80\x94 one \xc2\xb7 Does it read back?\n");
    has(text, "Example CPU");
    has(text, "4 points \xc3\x97 1 round");
    has(text, "read 20.00 \xc2\xb1 0.07 GB/s"); /* t(9) 0.1 / sqrt(10) */
    has(text, "ceilings (ceiling)");
    line = line_of(text, "batch ");
    for (const char *const *head =
             (const char *const[]){"time ms", "token/s",
                                   "\xc3\x97"
                                   "1",
                                   "latency \xc3\x97", "kv_bytes", "MBU", "witness", "state", NULL};
         *head; head++)
        has(line, *head);
    free(line);
    line = line_of(text, "1 ");
    has(line, "50.0 \xc2\xb1 0.8");
    has(line, "20.00");
    has(line, "93 %");
    has(line, "12,582,912");
    has(line, "exact");
    free(line);
    line = line_of(text, "2 ");
    has(line, "1.96"); /* 39.2 over 19.999 */
    has(line, "degraded");
    free(line);
    line = line_of(text, "4 "); /* oom: a state, and dashes only */
    has(line, "oom");
    for (const char *s = strchr(line, '4') + 1; *s && *s != 'o'; s++)
        assert_true(*s == ' ' || *s == '-');
    free(line);
    has(text, "knee       B* = 9.250");
    has(text, "throughput, batch 16 over 1: 6 (measured); here -");
    has(text, "batch=4: oom \xc2\xb7 26.03 GB asked, 24.1 GB there");
    has_not(text, "nan");
    has_not(text, "inf");
    has_not(text, "incomplete");
    has_not(text, "\033");
    free(text);
    tables_close(&ts);
}

/* Numbers of a row that has none do not return through a ratio or a zero. */
static void fits_its_width(void **state) {
    (void)state;
    struct tables *ts = result_example();
    for (int width = 40; width <= 100; width += 5) {
        char *text = shown(ts, &(struct show_options){.width = width}), *copy = strdup(text),
             *rest = copy;
        for (char *line; (line = strsep(&rest, "\n"));)
            if (utf8_width(line) > (size_t)width)
                fail_msg("%zu columns of %d: %s", utf8_width(line), width, line);
        if (width < 60) has(text, " found");
        has(text, "degraded"); /* the state is never dropped */
        free(copy);
        free(text);
    }
    tables_close(&ts);
}

/* A second row with this many bytes of cache. */
static void more_kv_bytes(struct tables *ts, double bytes) {
    struct table *t = tables_get(ts, "summary");
    const int64_t r = table_add(t, 1);
    table_set_i64(t, r, "point", 2);
    table_set_text(t, r, "metric", "kv_bytes");
    table_set_text(t, r, "unit", "byte");
    table_set_f64(t, r, "mean", bytes);
}

static void one_form_a_column(void **state) {
    (void)state;
    struct tables *ts = result_example();
    more_kv_bytes(ts, 25165824);
    char *text = shown(ts, NULL);
    has(text, "12,582,912");
    has(text, "25,165,824");
    free(text);
    tables_close(&ts);
    ts = result_example();
    more_kv_bytes(ts, 25165824.5); /* not whole: no separators in some rows alone */
    text = shown(ts, NULL);
    has(text, "12.00 MiB");
    has(text, "24.00 MiB");
    has_not(text, "12,582,912");
    free(text);
    tables_close(&ts);
}

/* What binds a row goes before what the workload reports, also where it is the same in all. */
static void bound_stays(void **state) {
    (void)state;
    struct tables *ts = result_example();
    more_kv_bytes(ts, 25165824);
    for (int64_t p = 1; p < 4; p++)
        table_set_text(tables_get(ts, "points"), p, "bound", "bandwidth");
    int with = 0, without = 0;
    for (int width = 40; width <= 100; width++) {
        char *text = shown(ts, &(struct show_options){.width = width});
        char *line = line_of(text, "batch ");
        const bool bound = strstr(line, "bound"), kv = strstr(line, "kv_bytes");
        assert_true(bound || !kv);
        with += bound && !kv;
        without += !bound;
        free(line);
        free(text);
    }
    assert_true(with > 0 && without > 0);
    tables_close(&ts);
}

/* Theirs as printed; ours may have been rounded to it, and then that is said. */
static void published_as_printed(void **state) {
    (void)state;
    struct tables *ts = result_example();
    struct table *t = tables_get(ts, "published");
    table_set_f64(t, 0, "theirs", 8.02);
    table_set_f64(t, 0, "ours", 8.0213);
    table_set_text(t, 0, "verdict", "equal");
    char *text = shown(ts, NULL);
    has(text, ": 8.02 (measured); here 8.021: equal, rounded\n");
    free(text);
    table_set_f64(t, 0, "theirs", 12288);
    table_set_f64(t, 0, "ours", 12288);
    text = shown(ts, NULL);
    has(text, ": 12288 (measured); here 12288: equal\n");
    free(text);
    table_set_f64(t, 0, "ours", 12288.25);
    table_set_text(t, 0, "verdict", "differs");
    text = shown(ts, NULL);
    has(text, ": 12288 (measured); here 12288.25: DIFFERS\n");
    free(text);
    tables_close(&ts);
}

/* A file may hold anything: nothing in it moves the cursor or breaks a line of the table. */
static void control_characters(void **state) {
    (void)state;
    struct tables *ts = result_example();
    table_set_text(tables_get(ts, "meta"), 1, "value",
                   "\033[2J\xc2\x9b"
                   "1mred\r");
    table_set_text(tables_get(ts, "points"), 2, "state", "deg\033[31mraded");
    char *text = shown(ts, NULL), *line = line_of(text, "1  a,b \"c\" d|e f\\");
    has(line, "50.0");
    free(line);
    for (const char *s = text; *s; s++) assert_true(*s == '\n' || (unsigned char)*s >= 0x20);
    has_not(text, "\xc2\x9b");
    free(text);
    tables_close(&ts);
}

static void one_metric(void **state) {
    (void)state;
    struct tables *ts = result_example();
    char *text = shown(ts, &(struct show_options){.metric = "decode_rate"}), *line;
    has(text, "decode_rate, token/s");
    line = line_of(text, "1 ");
    has(line, "9,000");
    has(line, "[19.699, 20.299]");
    free(line);
    line = line_of(text, "2 ");
    has(line, "39.20");
    has_not(line, "[");
    free(line);
    free(text);
    text = shown(ts, &(struct show_options){.metric = "decode_rat"});
    has(text, "did you mean 'decode_rate'?");
    free(text);
    tables_close(&ts);
}

static void facts_and_colour(void **state) {
    (void)state;
    struct tables *ts = result_example();
    char *text = shown(ts, &(struct show_options){.facts = true, .colour = true});
    has(text, "measure.budget");
    has(text, "cpu.l3_bytes");
    has(text, "33554432 byte (example.toml:3:1)");
    has(text, "\033[31moom\033[0m");
    free(text);
    tables_close(&ts);
}

static void what_went_wrong_is_said(void **state) {
    (void)state;
    struct tables *ts = result_example();
    struct table *meta = tables_get(ts, "meta"), *fits = tables_get(ts, "fits");
    table_set_text(meta, 3, "value", "no"); /* complete */
    int64_t r = table_add(meta, 2);
    table_set_text(meta, r, "key", "why_ended");
    table_set_text(meta, r, "value", "interrupted after 3 of 8 visits");
    table_set_text(meta, r + 1, "key", "control_drift");
    table_set_text(meta, r + 1, "value", "+4.0 % within rounds, over 5: drifting");
    table_set_text(fits, 0, "verdict", "failed");
    char *text = shown(ts, NULL);
    has(text, "incomplete");
    has(text, "interrupted after 3 of 8 visits");
    has(text, "+4.0 % within rounds");
    has(text, "FAILED B* = 9.250");
    free(text);
    tables_close(&ts);
}

static void nothing_at_all(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    char *text = shown(ts, &(struct show_options){.facts = true});
    has(text, "0 points");
    free(text);
    text = shown(ts, &(struct show_options){.metric = "time"});
    has(text, "There are none.");
    free(text);
    tables_close(&ts);
}

/* Rows of the same fate are named together; of many different ones some are shown, the rest is
 * counted. */
static void many_flags_are_cut_short(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "points");
    char label[40];
    table_add(t, 300);
    for (int64_t p = 0; p < 300; p++) {
        snprintf(label, sizeof label, "row=%lld", (long long)p);
        table_set_text(t, p, "label", label);
        table_set_text(t, p, "workload", "decode");
        table_set_text(t, p, "state", p % 2 ? "failed" : "ok");
        table_set_text(t, p, "flags", p % 2 ? "" : "quick disturbed");
        table_set_text(t, p, "reason", p % 2 ? "because" : "quick: one; disturbed: noise");
    }
    char *text = shown(ts, NULL);
    has(text, "row=1, row=3, row=5, row=7 and 146 more: failed \xc2\xb7 because\n");
    has(text, "disturbed: 150 of 300 rows (row=0, row=2, row=4, row=6, ...) \xc2\xb7 noise\n");
    has_not(text, "quick");
    free(text);
    for (int64_t p = 0; p < 300; p++) {
        snprintf(label, sizeof label, "because %lld", (long long)p);
        table_set_text(t, p, "reason", label);
    }
    text = shown(ts, NULL);
    has(text, "and 130 more rows that are not ok"); /* 20 reasons are shown */
    free(text);
    tables_close(&ts);
}

/* A run that its budget ended is whole, and says how many rounds it got. */
static void budget_is_said(void **state) {
    (void)state;
    struct tables *ts = result_example();
    static const char *const rows[][2] = {
        {"complete", "yes"}, {"why_ended", "budget: 3 of 8 rounds; the last took 9 s"}};
    char *before = shown(ts, NULL);
    has_not(before, "budget: 3 of 8");
    free(before);
    for (int i = 0; i < 2; i++) {
        struct table *meta = tables_get(ts, "meta");
        int64_t row = table_add(meta, 1);
        table_set_text(meta, row, "key", rows[i][0]);
        table_set_text(meta, row, "value", rows[i][1]);
    }
    char *text = shown(ts, NULL);
    has(text, "rounds     budget: 3 of 8 rounds; the last took 9 s");
    free(text);
    tables_close(&ts);
}

static void any_locale(void **state) {
    (void)state;
    struct tables *ts = result_example();
    char *here = shown(ts, NULL);
    if (!german_begin()) {
        free(here);
        tables_close(&ts);
        skip();
    }
    char *there = shown(ts, NULL);
    german_end();
    assert_string_equal(here, there);
    free(here);
    free(there);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_table),
        cmocka_unit_test(fits_its_width),
        cmocka_unit_test(one_form_a_column),
        cmocka_unit_test(bound_stays),
        cmocka_unit_test(published_as_printed),
        cmocka_unit_test(one_metric),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(facts_and_colour),
        cmocka_unit_test(what_went_wrong_is_said),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(many_flags_are_cut_short),
        cmocka_unit_test(any_locale),
        cmocka_unit_test(budget_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
