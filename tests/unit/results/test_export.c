/* SPDX-License-Identifier: Apache-2.0 */
/* Exports read back by readers written here from the standards: RFC 4180, strict JSON, GitHub
 * tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "results/export.h"
#include "tests/support/german.h"
#include "tests/support/result_example.h"
#include "tests/support/synthetic.h"

static char *exported(const struct tables *ts, const char *format, char **lost_lines) {
    const struct exporter *e = exporter_find(format);
    struct text out = {0}, lost = {0};
    struct err err = {0};
    assert_non_null(e);
    assert_string_equal(e->name, format);
    assert_int_equal(exporter_write(e, ts, NULL, &out, &lost, &err), 0);
    assert_true(utf8_valid(out.data, out.len));
    char *said = text_take(&lost);
    if (lost_lines)
        *lost_lines = said;
    else
        free(said);
    return text_take(&out);
}

/* ---- a reader of csv and tsv: cells of all lines, all lines equally long */

enum { LINES = 64, CELLS = 64 };
struct sheet {
    char *cell[LINES][CELLS];
    int lines, width;
};

static void sheet_free(struct sheet *s) {
    for (int i = 0; i < s->lines; i++)
        for (int k = 0; k < s->width; k++) free(s->cell[i][k]);
}

static void take(struct sheet *s, int *cells, struct text *cell) {
    assert_true(s->lines < LINES && *cells < CELLS);
    s->cell[s->lines][(*cells)++] = text_take(cell);
}

static void end_of_line(struct sheet *s, int *cells) {
    if (!s->lines) s->width = *cells;
    assert_int_equal(*cells, s->width);
    s->lines++;
    *cells = 0;
}

static void read_csv(const char *p, struct sheet *s) {
    struct text cell = {0};
    int cells = 0;
    *s = (struct sheet){.lines = 0};
    while (*p) {
        if (*p == '"') {
            for (p++; *p != '"' || p[1] == '"'; p++) {
                assert_true(*p);
                text_add(&cell, p, 1);
                if (*p == '"') p++;
            }
            p++;
            assert_true(*p == ',' || *p == '\r');
        } else {
            while (*p != ',' && *p != '\r') {
                assert_true(*p && *p != '"' && *p != '\n'); /* those must be quoted */
                text_add(&cell, p++, 1);
            }
        }
        take(s, &cells, &cell);
        if (*p++ == ',') continue;
        assert_int_equal(*p++, '\n');
        end_of_line(s, &cells);
    }
    assert_int_equal(cells, 0); /* the last line is ended too */
}

static void read_tsv(const char *p, struct sheet *s) {
    struct text cell = {0};
    int cells = 0;
    *s = (struct sheet){.lines = 0};
    for (; *p; p++) {
        if (*p == '\t' || *p == '\n') {
            take(s, &cells, &cell);
            if (*p == '\n') end_of_line(s, &cells);
        } else if (*p == '\\') {
            p++;
            char c = *p == 't' ? '\t' : *p == 'n' ? '\n' : *p == 'r' ? '\r' : '\\';
            text_add(&cell, &c, 1);
        } else {
            text_add(&cell, p, 1);
        }
    }
    assert_int_equal(cells, 0);
}

static int column_of(const struct sheet *s, const char *name) {
    for (int k = 0; k < s->width; k++)
        if (!strcmp(s->cell[0][k], name)) return k;
    fail_msg("no column %s", name);
    return -1;
}

static const char *at(const struct sheet *s, int line, const char *name) {
    return s->cell[line][column_of(s, name)];
}

static void check_sheet(const struct sheet *s, const struct tables *ts) {
    const struct table *t = tables_peek(ts, "summary"), *points = tables_peek(ts, "points");
    assert_int_equal(s->lines, 1 + table_rows(t) + 1); /* one line for the point without numbers */
    for (int64_t r = 0; r < table_rows(t); r++) {
        int line = (int)r + 1;
        int64_t p = table_int(t, r, "point");
        double v;
        assert_int_equal(atoi(at(s, line, "point")), p);
        assert_string_equal(at(s, line, "metric"), table_text(t, r, "metric"));
        assert_string_equal(at(s, line, "reason"), table_text(points, p, "reason"));
        assert_string_equal(at(s, line, "odd/name%"), table_text(points, p, "odd/name%"));
        assert_true(parse_f64(at(s, line, "mean"), &v) &&
                    v == table_real(t, r, "mean")); /* to the bit */
        if (isnan(table_real(t, r, "ci_lo")))
            assert_string_equal(at(s, line, "ci_lo"), "");
        else
            assert_true(parse_f64(at(s, line, "ci_lo"), &v) && v == table_real(t, r, "ci_lo"));
    }
    int last = s->lines - 1;
    assert_string_equal(at(s, last, "state"), "oom");
    assert_string_equal(at(s, last, "reason"), "26.03 GB asked, 24.1 GB there");
    for (int k = column_of(s, "metric"); k < s->width; k++)
        assert_string_equal(s->cell[last][k], "");
}

static void csv_round_trip(void **state) {
    (void)state;
    struct tables *ts = result_example();
    struct sheet s;
    char *lost, *text = exported(ts, "csv", &lost);
    read_csv(text, &s);
    check_sheet(&s, ts);
    assert_string_equal(at(&s, 2, "odd/name%"), HOSTILE);
    assert_non_null(strstr(lost, "csv has no place for fits"));
    sheet_free(&s);
    free(lost);
    free(text);
    tables_close(&ts);
}

static void tsv_round_trip(void **state) {
    (void)state;
    struct tables *ts = result_example();
    struct sheet s;
    char *text = exported(ts, "tsv", NULL);
    read_tsv(text, &s);
    check_sheet(&s, ts);
    assert_string_equal(at(&s, 2, "odd/name%"), HOSTILE);
    sheet_free(&s);
    free(text);
    tables_close(&ts);
}

/* ---- json */

/* cJSON reads more than JSON; what it must not see is looked for beside it. */
static cJSON *read_json(const char *text) {
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, true);
    if (!json) fail_msg("no JSON near: %.60s", end);
    bool in_text = false;
    for (const char *s = text; *s; s++) {
        if (in_text && *s == '\\') {
            s++;
            continue;
        }
        if (*s == '"') in_text = !in_text;
        assert_true(!in_text || (unsigned char)*s >= 0x20);
        /* inf, nan, +1, .5: outside texts only null, true and false have letters, but for exponents
         */
        if (!in_text && *s == 'n' && strncmp(s, "null", 4)) fail_msg("%.20s", s);
        if (!in_text && (*s == 'N' || *s == 'I' || *s == 'i')) fail_msg("%.20s", s);
    }
    return json;
}

static const cJSON *get(const cJSON *o, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!found) fail_msg("no member %s", name);
    return found;
}

static void json_holds_everything(void **state) {
    (void)state;
    struct tables *ts = result_example();
    char *text = exported(ts, "json", NULL);
    cJSON *json = read_json(text);
    assert_true(get(json, "format")->valuedouble == 1);
    assert_string_equal(get(get(json, "meta"), "title")->valuestring, "Example \xe2\x80\x94 one");
    const cJSON *points = get(json, "points");
    assert_int_equal(cJSON_GetArraySize(points), 4);
    const cJSON *p = cJSON_GetArrayItem(points, 1), *time = get(get(p, "metrics"), "time");
    assert_string_equal(get(p, "odd/name%")->valuestring, HOSTILE);
    assert_true(get(p, "workload.batch")->valuedouble == 1);
    assert_true(cJSON_IsNull(get(cJSON_GetArrayItem(points, 0), "workload.batch")));
    assert_true(get(time, "mean")->valuedouble == 50.001);
    assert_string_equal(get(time, "unit")->valuestring, "ms");
    assert_true(cJSON_IsNull(get(time, "p99")));
    assert_non_null(strstr(get(time, "null_reason")->valuestring, "p99"));
    const cJSON *kv = get(get(p, "metrics"), "kv_bytes");
    assert_true(cJSON_IsNull(get(kv, "ci_lo")) && cJSON_IsNull(get(kv, "stddev")));
    assert_non_null(strstr(get(kv, "null_reason")->valuestring, "ci: one round"));
    p = cJSON_GetArrayItem(points, 2);
    assert_string_equal(get(p, "reason")->valuestring, HOSTILE);
    p = cJSON_GetArrayItem(points, 3);
    assert_string_equal(get(p, "state")->valuestring, "oom");
    assert_int_equal(cJSON_GetArraySize(get(p, "metrics")), 0);
    assert_true(get(cJSON_GetArrayItem(get(json, "fits"), 0), "value")->valuedouble == 9.25);
    assert_true(cJSON_IsNull(get(cJSON_GetArrayItem(get(json, "published"), 0), "ours")));
    assert_string_equal(get(cJSON_GetArrayItem(get(json, "environment"), 1), "unit")->valuestring,
                        "byte");
    assert_int_equal(cJSON_GetArraySize(get(json, "ceilings")), 1);
    cJSON_Delete(json);
    free(text);
    tables_close(&ts);
}

static void extreme_numbers(void **state) {
    (void)state;
    static const double values[] = {
        0,        -0.0,      1e-320, 5e-324, 1.7976931348623157e308, 0.1, 1.0 / 3,
        INFINITY, -INFINITY, NAN,    1e15,   123456789012345678.0};
    struct tables *ts = tables_create();
    struct table *t = tables_get(ts, "summary"), *points = tables_get(ts, "points");
    table_add(points, 1);
    table_set_i64(points, 0, "point", 0);
    int n = sizeof values / sizeof *values;
    for (int i = 0; i < n; i++) {
        char name[20];
        table_add(t, 1);
        snprintf(name, sizeof name, "m%d", i);
        table_set_i64(t, i, "point", 0);
        table_set_text(t, i, "metric", name);
        table_set_f64(t, i, "mean", values[i]);
    }
    char *text = exported(ts, "json", NULL), *csv = exported(ts, "csv", NULL);
    cJSON *json = read_json(text);
    struct sheet s;
    read_csv(csv, &s);
    const cJSON *metrics = get(cJSON_GetArrayItem(get(json, "points"), 0), "metrics");
    for (int i = 0; i < n; i++) {
        const cJSON *mean = get(cJSON_GetArrayItem(metrics, i), "mean");
        const char *cell = at(&s, i + 1, "mean");
        if (isfinite(values[i])) {
            assert_true(mean->valuedouble == values[i]);
            assert_true(strtod(cell, NULL) == values[i]);
        } else {
            assert_true(cJSON_IsNull(mean));
            assert_string_equal(cell, "");
        }
    }
    sheet_free(&s);
    cJSON_Delete(json);
    free(text);
    free(csv);
    tables_close(&ts);
}

/* ---- md */

static int count(const char *line, char c) { /* bars that are not escaped */
    int n = 0;
    for (const char *s = line; *s; s++) {
        if (*s == '\\' && s[1])
            s++;
        else
            n += *s == c;
    }
    return n;
}

static void md_is_a_table(void **state) {
    (void)state;
    struct tables *ts = result_example();
    char *lost, *text = exported(ts, "md", &lost), *copy = strdup(text), *rest = copy;
    int bars = 0, rows = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line != '|') {
            bars = 0;
            continue;
        }
        if (!bars) bars = count(line, '|');
        assert_int_equal(count(line, '|'), bars);
        rows++;
    }
    assert_int_equal(rows, 2 + 1 + 2 + 3);
    assert_non_null(strstr(text, "## Example \xe2\x80\x94 one"));
    assert_non_null(strstr(text, "50.0 \xc2\xb1 0.8"));
    assert_non_null(strstr(text, "a,b \"c\" d\\|e"));
    assert_non_null(strstr(text, "| oom |"));
    assert_non_null(strstr(lost, "percentiles"));
    free(copy);
    free(lost);
    free(text);
    tables_close(&ts);
}

static void nothing_at_all(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    for (const struct exporter *const *e = all_exporters; *e; e++) {
        struct text out = {0}, lost = {0};
        struct err err = {0};
        assert_true(*(*e)->name && *(*e)->brief);
        assert_ptr_equal(exporter_find((*e)->name), *e);
        assert_int_equal(exporter_write(*e, ts, NULL, &out, &lost, &err), 0);
        assert_non_null(out.data); /* a format of lines has none, but is a text */
        text_free(&out);
        text_free(&lost);
    }
    assert_null(exporter_find("no such"));
    char *text = exported(ts, "json", NULL);
    cJSON *json = read_json(text);
    assert_int_equal(cJSON_GetArraySize(get(json, "points")), 0);
    cJSON_Delete(json);
    free(text);
    tables_close(&ts);
}

/* A result whose rows every format of a language model's tests can hold, and whose names none of
 * them can be careless with. */
static struct tables *language_model(void) {
    struct tables *ts = tables_create();
    int64_t p = synthetic_point(ts, HOSTILE, "batch=1", 1e6, 1e6);
    struct table *points = tables_get(ts, "points"), *facts = tables_get(ts, "protocol");
    static const char *const given[][2] = {{"model.shape", HOSTILE},   {"model.type", "bf16"},
                                           {"model.kv_type", "it's"},  {"workload.batch", "1"},
                                           {"workload.prompt", "8"},   {"workload.tokens", "3"},
                                           {"workload.mode", "cached"}};
    table_set_text(points, p, "workload", "generate");
    table_set_i64(points, p, "model_bytes", 4611686018427387905);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int64_t row = table_add(facts, 1);
        table_set_text(facts, row, "scope", "0");
        table_set_text(facts, row, "key", given[i][0]);
        table_set_text(facts, row, "value", given[i][1]);
    }
    static const char *const parts[] = {"prefill", "decode"};
    static const double shares[] = {0.5, 0.5};
    synthetic_rounds(ts, p, 2, 1.5, 0.01, 7);
    synthetic_parts(ts, p, parts, shares, 2);
    struct table *phases = tables_get(ts, "phases");
    table_set_i64(phases, 1, "marks", 1);
    return ts;
}

/* All of it in one text, form by form. */
static char *all_forms(const struct tables *ts, const struct exporter *e) {
    struct text out = {0}, lost = {0};
    struct err err = {0};
    for (const char *const *as = e->as; as && *as; as++)
        exporter_write(e, ts, *as, &out, &lost, &err); /* some rows fit into none */
    exporter_write(e, ts, NULL, &out, &lost, &err);
    assert_true(utf8_valid(out.data, out.len));
    text_free(&lost);
    return text_take(&out);
}

static void any_locale(void **state) {
    (void)state;
    struct tables *examples[] = {result_example(), language_model()};
    bool german = false;
    for (size_t k = 0; k < 2; k++) {
        for (const struct exporter *const *e = all_exporters; *e; e++) {
            char *here = all_forms(examples[k], *e);
            german = german_begin();
            char *there = all_forms(examples[k], *e);
            german_end();
            assert_string_equal(here, there);
            free(there);
            free(here);
        }
        tables_close(&examples[k]);
    }
    if (!german) skip();
}

static void forms(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct text out = {0}, lost = {0};
    struct err err = {0};
    const struct exporter *e = exporter_find("llama-bench");
    assert_int_equal(exporter_write(e, ts, "jsno", &out, &lost, &err), ERR_INPUT);
    assert_string_equal(err.text,
                        "llama-bench has no form 'jsno'; did you mean 'json'? (it has json, "
                        "jsonl, csv, sql, md)");
    assert_int_equal(exporter_write(exporter_find("csv"), ts, "json", &out, &lost, &err),
                     ERR_INPUT);
    assert_string_equal(err.text, "csv has one form only: --as 'json' does not apply");
    assert_int_equal(out.len, 0);
    text_free(&out);
    text_free(&lost);
    tables_close(&ts);
}

/* Every line of these is strict JSON; a name comes back as it was; all digits of an int stay. */
static void foreign_json_is_strict(void **state) {
    (void)state;
    struct tables *ts = language_model();
    static const struct {
        const char *format, *as;
        bool lines;
    } rows[] = {{"llama-bench", "json", false},
                {"llama-bench", "jsonl", true},
                {"gbench", NULL, false},
                {"vllm", "latency", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text out = {0}, lost = {0};
        struct err err = {0};
        assert_int_equal(
            exporter_write(exporter_find(rows[i].format), ts, rows[i].as, &out, &lost, &err), 0);
        char *rest = out.data;
        int n = 0;
        for (char *line = rows[i].lines ? strsep(&rest, "\n") : rest; line && *line; n++) {
            cJSON_Delete(read_json(line));
            line = rows[i].lines ? strsep(&rest, "\n") : NULL;
        }
        assert_int_equal(n, 1);
        text_free(&out);
        text_free(&lost);
    }
    char *text = exported(ts, "llama-bench", NULL);
    cJSON *json = read_json(text);
    const char *type = get(cJSON_GetArrayItem(json, 0), "model_type")->valuestring;
    assert_string_equal(type, HOSTILE " bf16");
    assert_non_null(strstr(text, "\"model_size\": 4611686018427387905"));
    cJSON_Delete(json);
    free(text);
    tables_close(&ts);
}

/* One execution has no deviation: null, and no '\xc2\xb1 0.00'. */
static void one_execution(void **state) {
    (void)state;
    struct tables *ts = language_model();
    table_cut(tables_get(ts, "visits"), 1);
    table_cut(tables_get(ts, "samples"), 1);
    table_cut(tables_get(ts, "marks"), 2);
    struct text out = {0}, lost = {0};
    struct err err = {0};
    const struct exporter *e = exporter_find("llama-bench");
    assert_int_equal(exporter_write(e, ts, "json", &out, &lost, &err), 0);
    assert_non_null(strstr(out.data, "\"stddev_ns\": null"));
    assert_non_null(strstr(out.data, "\"stddev_ts\": null"));
    assert_non_null(strstr(lost.data, "1 row of one execution has no deviation"));
    out.len = 0;
    assert_int_equal(exporter_write(e, ts, "md", &out, &lost, &err), 0);
    assert_non_null(strstr(out.data, "| pp8+tg2 |"));
    assert_null(strstr(out.data, "\xc2\xb1"));
    out.len = 0;
    assert_int_equal(exporter_write(e, ts, "sql", &out, &lost, &err), 0);
    assert_non_null(strstr(out.data, ", NULL);"));
    assert_non_null(strstr(out.data, "'it''s'"));
    text_free(&out);
    text_free(&lost);
    tables_close(&ts);
}

/* A bar in a name ends no cell. */
static void foreign_md_is_a_table(void **state) {
    (void)state;
    static const char *const formats[] = {"llama-bench", "llama-batched-bench"};
    struct tables *ts = language_model();
    for (size_t i = 0; i < 2; i++) {
        struct text out = {0}, lost = {0};
        struct err err = {0};
        assert_int_equal(exporter_write(exporter_find(formats[i]), ts, "md", &out, &lost, &err), 0);
        char *rest = out.data;
        int bars = 0, lines = 0;
        for (char *line; (line = strsep(&rest, "\n")) && *line == '|'; lines++) {
            if (!bars) bars = count(line, '|');
            assert_int_equal(count(line, '|'), bars);
        }
        assert_int_equal(lines, 3);
        text_free(&out);
        text_free(&lost);
    }
    tables_close(&ts);
}

/* Rows whose state lets them have no numbers have none in any format. */
static void no_state_no_number(void **state) {
    (void)state;
    static const char *const states[] = {"wrong", "skipped", "oom", "timeout", "failed"};
    for (size_t i = 0; i < 5; i++) {
        struct tables *ts = language_model();
        table_set_text(tables_get(ts, "points"), 0, "state", states[i]);
        for (const struct exporter *const *e = all_exporters; *e; e++) {
            for (const char *const *as = (*e)->as; as && *as; as++) {
                struct text out = {0}, lost = {0};
                struct err err = {0};
                assert_int_equal(exporter_write(*e, ts, *as, &out, &lost, &err), ERR_INPUT);
                assert_non_null(strstr(err.text, "no row of this result fits into"));
                assert_null(strstr(out.data, "bf16"));
                assert_non_null(strstr(lost.data, "leaves out 1 row"));
                text_free(&out);
                text_free(&lost);
            }
        }
        char *text = exported(ts, "gbench", NULL);
        cJSON *json = read_json(text);
        const cJSON *row = cJSON_GetArrayItem(get(json, "benchmarks"), 0);
        assert_true(cJSON_IsTrue(get(row, "error_occurred")));
        assert_null(cJSON_GetObjectItem(row, "real_time"));
        assert_null(cJSON_GetObjectItem(row, "iterations"));
        assert_null(cJSON_GetObjectItem(row, "cpu_time"));
        cJSON_Delete(json);
        free(text);
        tables_close(&ts);
    }
}

/* Of the points of a long run a file keeps only what differs from the defaults. */
static void defaults_of_a_long_run(void **state) {
    (void)state;
    struct tables *ts = language_model();
    struct table *facts = tables_get(ts, "protocol");
    for (int64_t r = 0; r < table_rows(facts); r++) table_set_text(facts, r, "origin", "default");
    int64_t p = synthetic_point(ts, "", "tokens=5", 1e6, 1e6), row = table_add(facts, 1);
    table_set_text(tables_get(ts, "points"), p, "workload", "generate");
    table_set_text(facts, row, "scope", "1");
    table_set_text(facts, row, "key", "workload.tokens");
    table_set_text(facts, row, "value", "5");
    table_set_text(facts, row, "origin", "p.toml:3:1");
    synthetic_rounds(ts, p, 2, 1.5, 0.01, 8);
    char *text = exported(ts, "llama-bench", NULL);
    cJSON *json = read_json(text);
    assert_int_equal(cJSON_GetArraySize(json), 2);
    const cJSON *second = cJSON_GetArrayItem(json, 1);
    assert_int_equal(get(second, "n_prompt")->valueint, 8);
    assert_int_equal(get(second, "n_gen")->valueint, 4);
    assert_string_equal(get(second, "type_k")->valuestring, "it's");
    cJSON_Delete(json);
    free(text);
    tables_close(&ts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_round_trip),
        cmocka_unit_test(tsv_round_trip),
        cmocka_unit_test(json_holds_everything),
        cmocka_unit_test(extreme_numbers),
        cmocka_unit_test(md_is_a_table),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(any_locale),
        cmocka_unit_test(forms),
        cmocka_unit_test(foreign_json_is_strict),
        cmocka_unit_test(one_execution),
        cmocka_unit_test(foreign_md_is_a_table),
        cmocka_unit_test(no_state_no_number),
        cmocka_unit_test(defaults_of_a_long_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
