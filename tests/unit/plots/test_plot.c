/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: every kind becomes SVG and PNG that say what they should; what cannot be drawn is
 * refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "plots/plot.h"
#include "plots/views.h"
#include "results/analysis.h"
#include "results/summary.h"
#include "tests/support/synthetic.h"

static char folder[64], scripts[1024];
static bool have_gnuplot;

static const char *in_folder(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void meta(struct tables *ts, const char *key, const char *value) {
    struct table *t = tables_get(ts, "meta");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static void finish(struct tables *ts) {
    struct err err = {0};
    meta(ts, "title", "A protocol");
    meta(ts, "question", "What's the knee of {this} machine_x?"); /* quotes and markup are text */
    meta(ts, "created", "2026-11-29T18:30:12Z");
    synthetic_environment(ts, "cpu.model", "A processor", "");
    assert_int_equal(summary_compute(ts, &err), 0);
    assert_int_equal(analyses_run(ts, &err), 0);
}

/* One decode sweep with ceilings and an allocation log: all kinds suit it. */
static struct tables *everything(int rounds) {
    struct tables *ts = tables_create();
    for (int batch = 1; batch <= 32; batch *= 2) {
        char label[40];
        snprintf(label, sizeof label, "batch=%d", batch);
        int64_t p = synthetic_point(ts, "", label, 2e9 * batch, 1e9);
        synthetic_key(ts, p, "workload.batch", batch);
        synthetic_rounds(ts, p, rounds, fmax(50, 10 * batch), 0.01, 3);
    }
    table_set_text(tables_get(ts, "points"), 0, "effective", "cpu isa=avx2 threads=2");
    synthetic_ceiling(ts, "read", "", "byte/s", 1 << 28, 20e9, 4);
    synthetic_ceiling(ts, "fma", "f32", "FLOP/s", 0, 200e9, 4);
    struct table *m = tables_get(ts, "memory");
    static const struct {
        int64_t t, bytes;
        const char *class, *phase;
    } log[] = {{0, 1000000000, "weight", "prepare"},
               {1000000, 4000000, "kv", "prepare"},
               {2000000, 9000000, "activation", "decode"},
               {3000000, -9000000, "activation", "decode"},
               {4000000, -4000000, "kv", "decode"}};
    for (size_t i = 0; i < sizeof log / sizeof *log; i++) {
        int64_t row = table_add(m, 1);
        table_set_i64(m, row, "visit", 0);
        table_set_i64(m, row, "t_ns", log[i].t);
        table_set_i64(m, row, "bytes", log[i].bytes);
        table_set_text(m, row, "class", log[i].class);
        table_set_text(m, row, "phase", log[i].phase);
    }
    synthetic_fact(ts, "analysis.0.kind", "scaling");
    synthetic_fact(ts, "analysis.0.x", "workload.batch");
    synthetic_fact(ts, "analysis.1.kind", "knee");
    synthetic_fact(ts, "analysis.1.x", "workload.batch");
    finish(ts);
    return ts;
}

static char *read_all(const char *path, size_t *len) {
    char *data = NULL;
    struct err err = {0};
    if (file_read(path, 64 << 20, &data, len, &err)) fail_msg("%s", err.text);
    return data;
}

static void assert_picture(const char *stem, const char *const *parts) {
    char path[300];
    size_t len;
    snprintf(path, sizeof path, "%s.svg", stem);
    char *svg = read_all(path, &len);
    assert_non_null(strstr(svg, "<svg"));
    assert_non_null(strstr(svg, "</svg>"));
    for (; *parts; parts++)
        if (!strstr(svg, *parts)) fail_msg("%s lacks '%s'", path, *parts);
    free(svg);
    snprintf(path, sizeof path, "%s.png", stem);
    char *png = read_all(path, &len);
    assert_true(len > 5000);
    assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
    free(png);
    unlink(path);
    snprintf(path, sizeof path, "%s.svg", stem);
    unlink(path);
}

static void kinds_are_in_the_protocols_order(void **state) {
    (void)state;
    struct tables *ts = everything(4);
    const char *const *kinds = plot_kinds(ts);
    static const char *const wanted[] = {"scaling", "knee", "roofline", "memory", "samples", NULL};
    for (int i = 0; i < 6; i++) {
        if (!wanted[i])
            assert_null(kinds[i]);
        else
            assert_string_equal(kinds[i], wanted[i]);
    }
    tables_close(&ts);
    ts = everything(4); /* most rows counted, none declared: memory is what it is about */
    for (int i = 0; i < 7; i++) synthetic_point(ts, "cache", "counted", 0, 0);
    struct table *facts = tables_get(ts, "protocol");
    for (int64_t r = 0; r < table_rows(facts); r++)
        if (!strncmp(table_text(facts, r, "key"), "analysis.", 9))
            table_set_text(facts, r, "value", "equal");
    finish(ts);
    assert_string_equal(plot_kinds(ts)[0], "memory");
    tables_close(&ts);
    ts = tables_create();
    assert_null(plot_kinds(ts)[0]);
    tables_close(&ts);
}

/* A working-set sweep of ceilings is drawn as bandwidth, without the cases beside it. */
static void ceilings_show_their_levels(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct curves v;
    struct err err = {0};
    for (int i = 0; i < 6; i++) {
        double bytes = 1e4 * (1 << i);
        char label[40];
        snprintf(label, sizeof label, "bytes=%d", i);
        int64_t p = synthetic_point(ts, i < 5 ? "levels" : "copies", label, 0, bytes);
        table_set_text(tables_get(ts, "points"), p, "workload", "ceiling");
        synthetic_key(ts, p, "workload.bytes", (int64_t)bytes);
        synthetic_rounds(ts, p, 5, bytes / (i < 3 ? 80e9 : 20e9) * 1e3, 0.001, 7);
    }
    finish(ts);
    if (curves_read(ts, "scaling", &v, &err)) fail_msg("%s", err.text);
    assert_string_equal(v.y_name, "bandwidth");
    assert_string_equal(v.y_unit, "byte/s");
    assert_int_equal(v.n, 1);
    assert_int_equal(v.curve[0].n, 5);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(v.curve[0].y[i] / (i < 3 ? 80e9 : 20e9) - 1) < 0.02);
    curves_free(&v);
    tables_close(&ts);
}

/* Where `levels` is asked for, caches are marked on the axis, and curves that only numbers tell
 * apart have their key beside it. */
static void levels_are_marked(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct curves v;
    struct err err = {0};
    for (int i = 0; i < 12; i++) {
        const double bytes = 16384.0 * (1 << (2 * (i / 2)));
        char label[60];
        snprintf(label, sizeof label, "bytes=%d threads=%d", i, i % 2 + 1);
        int64_t p = synthetic_point(ts, "read", label, 0, bytes);
        table_set_text(tables_get(ts, "points"), p, "workload", "ceiling");
        table_set_text(tables_get(ts, "points"), p, "effective", "cpu threads=1");
        table_column(tables_get(ts, "points"), "workload.bytes", COL_I64, "byte", "");
        synthetic_key(ts, p, "workload.bytes", (int64_t)bytes);
        synthetic_key(ts, p, "device.threads", i % 2 + 1);
        synthetic_rounds(ts, p, 5, bytes / 20e9 * 1e3, 0.001, 7);
    }
    synthetic_environment(ts, "cpu.l1_bytes", "49152", "byte");
    synthetic_environment(ts, "cpu.l2_bytes", "2097152", "byte");
    synthetic_fact(ts, "analysis.0.kind", "levels");
    finish(ts);
    assert_string_equal(plot_kinds(ts)[0], "scaling");
    if (curves_read(ts, "scaling", &v, &err)) fail_msg("%s", err.text);
    assert_int_equal(v.n, 2);
    assert_string_equal(v.curve[0].name, "threads 1");
    assert_string_equal(v.y_name, "bandwidth");
    assert_int_equal(v.n_marks, 2);
    assert_string_equal(v.mark[0].name, "L1 48 KiB");
    assert_true(v.mark[1].x == 2097152.0);
    curves_free(&v);
    tables_close(&ts);
}

/* Speed over that of one thread, beside what would be in proportion. */
static void speedups_are_drawn(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct curves v;
    struct err err = {0};
    for (int threads = 1; threads <= 4; threads *= 2) {
        char label[40];
        snprintf(label, sizeof label, "threads=%d", threads);
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "device.threads", threads);
        synthetic_rounds(ts, p, 5, 10 + 30.0 / threads, 0.001, 7);
    }
    synthetic_fact(ts, "analysis.0.kind", "speedup");
    finish(ts);
    if (curves_read(ts, "scaling", &v, &err)) fail_msg("%s", err.text);
    assert_int_equal(v.n, 2);
    assert_string_equal(v.y_name, "speedup");
    assert_true(fabs(v.curve[0].y[2] - 40 / 17.5) < 0.01);
    assert_true(v.curve[0].lo[2] < v.curve[0].y[2] && v.curve[0].hi[2] > v.curve[0].y[2]);
    assert_string_equal(v.curve[1].name, "in proportion");
    assert_true(v.curve[1].y[2] == 4);
    curves_free(&v);
    tables_close(&ts);
}

/* A second metric of the same rows: behind the curves, each with the one that it belongs to. */
static void what_was_predicted_stands_beside(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct curves v;
    struct err err = {0};
    for (int k = 0; k < 6; k++) {
        char label[40];
        const int kind = 10 + k / 3, x = 1 << k % 3;
        snprintf(label, sizeof label, "kind=%d n=%d", kind, x);
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "workload.n", x);
        synthetic_key(ts, p, "workload.kind", kind);
        synthetic_rounds(ts, p, 5, 10.0 * x, 0.001, 7);
        if (kind == 11) table_set_f64(tables_get(ts, "points"), p, "peak_bytes", 100.0 * x);
    }
    synthetic_fact(ts, "analysis.0.kind", "curve");
    synthetic_fact(ts, "analysis.0.x", "workload.n");
    synthetic_fact(ts, "analysis.0.beside", "peak_bytes");
    finish(ts);
    if (curves_read(ts, "scaling", &v, &err)) fail_msg("%s", err.text);
    assert_int_equal(v.n, 3); /* only one of the two has it */
    assert_int_equal(v.curve[0].of + v.curve[1].of, 0);
    assert_string_equal(v.curve[1].name, "kind 11");
    assert_int_equal(v.curve[2].of, 2);
    assert_int_equal(v.curve[2].n, 3);
    assert_string_equal(v.curve[2].name, "peak bytes");
    assert_true(v.curve[2].y[2] == 400);
    curves_free(&v);
    tables_close(&ts);
}

static struct tables *divided(void) {
    static const char *const names[] = {"embed", "qkv", "attention", "mlp", "select"};
    static const double shares[] = {0.004, 0.2, 0.3, 0.49, 0.006};
    struct tables *ts = tables_create();
    for (int i = 0; i < 4; i++) {
        char label[60];
        snprintf(label, sizeof label, "context=%d split=%s", 64 << (i / 2),
                 i % 2 ? "parts" : "whole");
        int64_t p = synthetic_point(ts, "", label, 0, 0);
        synthetic_key(ts, p, "workload.context", 64 << (i / 2));
        synthetic_word(ts, p, "workload.split", i % 2 ? "parts" : "whole");
        synthetic_rounds(ts, p, 5, 10 + i / 2, 0.001, 7);
        if (i % 2) synthetic_parts(ts, p, names, shares, 5);
    }
    synthetic_fact(ts, "analysis.0.kind", "parts");
    finish(ts);
    return ts;
}

static void parts_are_stacked(void **state) {
    (void)state;
    struct tables *ts = divided();
    struct shares v;
    struct err err = {0};
    assert_string_equal(plot_kinds(ts)[0], "parts");
    if (shares_read(ts, &v, &err)) fail_msg("%s", err.text);
    assert_int_equal(v.n, 2);
    assert_int_equal(v.n_parts, 4); /* embed and select are small */
    static const char *const wanted[] = {"mlp", "attention", "qkv", "other"};
    static const double shares[] = {0.49, 0.3, 0.2, 0.01};
    for (int k = 0; k < 4; k++) {
        assert_string_equal(v.part[k], wanted[k]);
        assert_true(fabs(v.row[1].ms[k] / v.row[1].sum - shares[k]) < 0.001);
    }
    assert_string_equal(v.x_name, "context");
    assert_string_equal(v.row[1].label, "128");
    assert_true(fabs(v.row[1].whole / 11 - 1) < 0.01 && fabs(v.row[1].sum / 11 - 1) < 0.01);
    shares_free(&v);
    struct text t = {0};
    assert_int_equal(plot_ascii(ts, "parts", 80, 20, &t, &err), 0);
    assert_non_null(strstr(t.data, "# mlp  = attention"));
    text_free(&t);
    if (have_gnuplot) {
        char stem[200];
        static const char *const parts[] = {"attention", "undivided", "49 %", "time, ms", NULL};
        snprintf(stem, sizeof stem, "%s", in_folder("parts"));
        if (plot_draw(ts, "parts", "the file.h5", stem, scripts, &err)) fail_msg("%s", err.text);
        assert_picture(stem, parts);
    }
    tables_close(&ts);
    ts = everything(2); /* no row is divided */
    assert_int_equal(shares_read(ts, &v, &err), ERR_UNSUPPORTED);
    shares_free(&v);
    tables_close(&ts);
}

/* A larger visit of one kind of memory tells less than one with three. */
static void memory_shows_the_telling_visit(void **state) {
    (void)state;
    struct tables *ts = everything(1);
    struct timeline v;
    struct err err = {0};
    struct table *m = tables_get(ts, "memory");
    int64_t row = table_add(m, 2);
    for (int64_t i = 0; i < 2; i++) {
        table_set_i64(m, row + i, "visit", 1);
        table_set_i64(m, row + i, "t_ns", i);
        table_set_i64(m, row + i, "bytes", i ? -5000000000 : 5000000000);
        table_set_text(m, row + i, "class", "kv");
    }
    if (timeline_read(ts, &v, &err)) fail_msg("%s", err.text);
    assert_true(v.peak < 2e9 && v.n_classes == 3);
    timeline_free(&v);
    tables_close(&ts);
}

static void every_kind_is_drawn(void **state) {
    (void)state;
    if (!have_gnuplot) skip();
    struct tables *ts = everything(4);
    static const struct {
        const char *kind, *parts[8];
    } cases[] = {
        {"knee", {"B* = ", "ridge predicts 5", "throughput, batch/s", "time of a step, ms", NULL}},
        {"scaling", {"batch^", "time, ms", NULL}},
        {"roofline", {"FLOP/byte", "memory 20", "fma f32: 200 G", "batch=1", NULL}},
        {"memory",
         {"peak 1.013 GB in decode", "live, GB", "live without weight, MB", "activation", NULL}},
        {"samples", {"batch=32: ", "round 1", "time / median", NULL}},
    };
    static const char *const page[] = {
        "What's the knee of {this} machine_x?", "A protocol",
        "A processor \xc2\xb7 2 threads \xc2\xb7 the file.h5 \xc2\xb7 2026-11-29 18:30", NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        const char *parts[12];
        size_t n = 0;
        for (; cases[i].parts[n]; n++) parts[n] = cases[i].parts[n];
        /* SVG escapes the quote or not, by version: the words around it are enough. */
        parts[n++] = "s the knee of {this} machine_x?";
        parts[n++] = page[1];
        parts[n++] = page[2];
        parts[n] = NULL;
        if (plot_draw(ts, cases[i].kind, "results/the file.h5", in_folder("a name"), scripts, &err))
            fail_msg("%s: %s", cases[i].kind, err.text);
        assert_picture(in_folder("a name"), parts);
    }
    tables_close(&ts);
}

/* Two metrics of the same rows: each panel has its own exponent. */
static void memory_stands_below_time(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    struct curves v;
    struct err err = {0};
    for (int i = 0; i < 5; i++) {
        const double tokens = 128 << i;
        int64_t p = synthetic_point(ts, "one", i ? "row" : "first", 0, 1);
        synthetic_key(ts, p, "workload.tokens", (int64_t)tokens);
        synthetic_rounds(ts, p, 5, 1e-4 * tokens * tokens, 0.001, 7);
        for (int64_t visit = 5 * p; visit < 5 * p + 5; visit++) {
            const int64_t row = table_add(tables_get(ts, "values"), 1);
            table_set_i64(tables_get(ts, "values"), row, "visit", visit);
            table_set_text(tables_get(ts, "values"), row, "metric", "peak_bytes");
            table_set_f64(tables_get(ts, "values"), row, "value", 64 * tokens);
        }
    }
    static const char *const ys[] = {"time", "peak_bytes", "time"};
    static const char *const cases[] = {"one", "one", "two"};
    for (int i = 0; i < 3; i++) {
        char key[40];
        snprintf(key, sizeof key, "analysis.%d.kind", i);
        synthetic_fact(ts, key, "scaling");
        snprintf(key, sizeof key, "analysis.%d.x", i);
        synthetic_fact(ts, key, "workload.tokens");
        snprintf(key, sizeof key, "analysis.%d.y", i);
        synthetic_fact(ts, key, ys[i]);
        snprintf(key, sizeof key, "analysis.%d.case", i);
        synthetic_fact(ts, key, cases[i]);
    }
    finish(ts);
    assert_int_equal(curves_below(ts, 0), 1);
    assert_int_equal(curves_below(ts, 1), -1);
    assert_int_equal(curves_below(ts, -1), -1);
    if (curves_read(ts, "scaling", &v, &err)) fail_msg("%s", err.text);
    assert_true(v.n == 1 && fabs(v.curve[0].exponent - 2) < 0.01);
    curves_free(&v);
    if (curves_read_of(ts, "scaling", 1, &v, &err)) fail_msg("%s", err.text);
    assert_string_equal(v.y_unit, "byte");
    assert_true(v.n == 1 && fabs(v.curve[0].exponent - 1) < 1e-9);
    assert_true(fabs(v.curve[0].prefactor - 64) < 1e-6);
    curves_free(&v);
    if (have_gnuplot) {
        static const char *const parts[] = {"tokens^2", "tokens^1", "peak bytes", "time, ms", NULL};
        if (plot_draw(ts, "scaling", "results/the file.h5", in_folder("two"), scripts, &err))
            fail_msg("%s", err.text);
        assert_picture(in_folder("two"), parts);
    }
    tables_close(&ts);
}

static void odd_data_is_drawn_or_refused(void **state) {
    (void)state;
    if (!have_gnuplot) skip();
    static const char *const none[] = {NULL};
    for (int odd = 0; odd < 4; odd++) {
        struct tables *ts = tables_create();
        for (int i = 0; i < 3; i++) {
            int64_t p = synthetic_point(ts, "", "row", odd == 2 ? 0 : 1e-3, 1);
            synthetic_key(ts, p, "workload.n", odd == 3 ? 7 : i); /* from 0; or all the same */
            if (odd == 1)
                synthetic_visit(ts, p, 0, 0, 1, 0, 1); /* no time at all */
            else
                synthetic_rounds(ts, p, 1, 5, 0, 1); /* identical values */
        }
        synthetic_ceiling(ts, "read", "", "byte/s", 1, 1, 1);
        synthetic_ceiling(ts, "fma", "f32", "FLOP/s", 1, 1, 1);
        synthetic_fact(ts, "analysis.0.kind", "knee");
        synthetic_fact(ts, "analysis.0.x", "workload.n");
        synthetic_fact(ts, "analysis.1.kind", "scaling");
        synthetic_fact(ts, "analysis.1.x", "workload.n");
        finish(ts);
        static const char *const kinds[] = {"knee", "scaling", "roofline", "memory", "samples"};
        for (int k = 0; k < 5; k++) {
            struct err err = {0};
            struct text t = {0};
            int rc =
                plot_draw(ts, kinds[k], "results/the file.h5", in_folder("odd"), scripts, &err);
            if (rc && rc != ERR_UNSUPPORTED) fail_msg("%d %s: %s", odd, kinds[k], err.text);
            if (!rc) assert_picture(in_folder("odd"), none);
            assert_int_equal(plot_ascii(ts, kinds[k], 80, 16, &t, &err), rc);
            text_free(&t);
        }
        tables_close(&ts);
    }
}

static void nothing_to_draw_has_a_reason(void **state) {
    (void)state;
    struct tables *ts = tables_create();
    static const char *const kinds[] = {"knee",   "scaling",  "roofline", "memory", "samples",
                                        "nosuch", "../style", "style",    ""};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct err err = {0};
        struct text t = {0};
        assert_int_equal(
            plot_draw(ts, kinds[k], "results/the file.h5", in_folder("none"), scripts, &err),
            ERR_UNSUPPORTED);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(plot_ascii(ts, kinds[k], 80, 16, &t, &err), ERR_UNSUPPORTED);
        text_free(&t);
    }
    assert_false(file_exists(in_folder("none.svg")));
    struct err err = {0};
    assert_int_equal(
        plot_draw(ts, "knee", "results/the file.h5", in_folder("none"), "/no/such/folder", &err),
        ERR_UNSUPPORTED);
    tables_close(&ts);
}

static void gnuplot_may_be_missing_or_broken(void **state) {
    (void)state;
    struct tables *ts = everything(2);
    char *path = strdup(getenv("PATH"));
    struct err err = {0};
    setenv("PATH", "/nonexistent", 1);
    assert_int_equal(plot_draw(ts, "knee", "results/the file.h5", in_folder("none"), scripts, &err),
                     ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "gnuplot is not installed"));

    FILE *f = fopen(in_folder("gnuplot"), "w");
    fputs("#!/bin/sh\necho\necho '\"main.gp\" line 3: it is not my day' >&2\necho more\nexit 1\n",
          f);
    fclose(f);
    chmod(in_folder("gnuplot"), 0755);
    setenv("PATH", folder, 1);
    assert_int_equal(plot_draw(ts, "knee", "results/the file.h5", in_folder("none"), scripts, &err),
                     ERR_SYSTEM);
    assert_non_null(strstr(err.text, "line 3: it is not my day"));
    assert_null(strstr(err.text, "more"));

    f = fopen(in_folder("gnuplot"), "w");
    fputs("#!/bin/sh\nexit 0\n", f); /* says nothing and makes nothing */
    fclose(f);
    assert_int_equal(plot_draw(ts, "knee", "results/the file.h5", in_folder("none"), scripts, &err),
                     ERR_SYSTEM);
    assert_non_null(strstr(err.text, "made no plot.svg"));
    assert_false(file_exists(in_folder("none.svg")));
    unlink(in_folder("gnuplot"));
    setenv("PATH", path, 1);
    free(path);
    tables_close(&ts);
}

static void a_script_of_ones_own_gets_whole_tables(void **state) {
    (void)state;
    if (!have_gnuplot) skip();
    struct tables *ts = everything(2);
    struct err err = {0};
    char from[1200];
    size_t len;
    snprintf(from, sizeof from, "%s/style.gp", scripts);
    char *style = read_all(from, &len);
    assert_int_equal(file_write(in_folder("style.gp"), style, len, &err), 0);
    free(style);
    static const char mine[] =
        "plot 'points.tsv' using (column('workload.batch')):(column('flops')) title 'whole', "
        "'samples.tsv' using (column('order')):(column('wall_ns'))\n";
    assert_int_equal(file_write(in_folder("my_own.gp"), mine, strlen(mine), &err), 0);
    if (plot_draw(ts, "my_own", "results/the file.h5", in_folder("own"), folder, &err))
        fail_msg("%s", err.text);
    static const char *const parts[] = {"whole", "A protocol", NULL};
    assert_picture(in_folder("own"), parts);
    unlink(in_folder("my_own.gp"));
    unlink(in_folder("style.gp"));
    tables_close(&ts);
}

/* Four workers whose first three executions take ten times as long; every other kind is left to
 * those that are older. */
static void warm_ups_are_drawn(void **state) {
    struct tables *ts = everything(4);
    struct table *w = tables_get(ts, "warmup");
    struct text t = {0};
    struct err err = {0};
    static const char *const parts[] = {"time / what it settles at", "batch=1: ", "execution since",
                                        NULL};
    (void)state;
    for (int visit = 0; visit < 4; visit++)
        for (int i = 0; i < 20; i++) {
            const int64_t row = table_add(w, 1);
            table_set_i64(w, row, "visit", visit);
            table_set_i64(w, row, "order", i);
            table_set_i64(w, row, "wall_ns", i < 3 ? 500000000 : 50000000);
        }
    synthetic_fact(ts, "analysis.2.kind", "warmup");
    const char *const *kinds = plot_kinds(ts);
    assert_string_equal(kinds[2], "warmup"); /* in the order in which they are declared */
    struct beginning_view v;
    assert_int_equal(beginning_view_read(ts, &v, &err), 0);
    assert_int_equal(v.n_rows, 6);
    assert_true(fabs(v.row[0].middle[2] - 10) < 0.5 && fabs(v.row[0].middle[3] - 1) < 0.05);
    assert_true(v.row[0].warmups == 20 && v.row[1].warmups == 0 && v.row[0].at[0] == 1);
    beginning_view_free(&v);
    for (int width = 30; width <= 110; width += 16)
        for (int height = 7; height <= 24; height += 5) {
            t.len = 0;
            assert_int_equal(plot_ascii(ts, "warmup", width, height, &t, &err), 0);
            assert_non_null(strstr(t.data, "time / settled"));
        }
    text_free(&t);
    if (have_gnuplot) {
        if (plot_draw(ts, "warmup", "r.h5", in_folder("warm"), scripts, &err))
            fail_msg("%s", err.text);
        assert_picture(in_folder("warm"), parts);
    }
    tables_close(&ts);
}

static void unwritable_place_is_an_error(void **state) {
    (void)state;
    if (!have_gnuplot) skip();
    struct tables *ts = everything(2);
    struct err err = {0};
    assert_int_not_equal(
        plot_draw(ts, "knee", "results/the file.h5", "/proc/no/such/place", scripts, &err), 0);
    assert_true(err.code != 0 && err.code != ERR_UNSUPPORTED);
    tables_close(&ts);
}

static void ascii_keeps_its_bounds(void **state) {
    (void)state;
    struct tables *ts = everything(3);
    static const char *const kinds[] = {"knee", "scaling", "roofline", "memory", "samples"};
    for (int k = 0; k < 5; k++)
        for (int width = 20; width <= 100; width += 8)
            for (int height = 4; height <= 24; height += 5) {
                struct text t = {0};
                struct err err = {0};
                int rc = plot_ascii(ts, kinds[k], width, height, &t, &err);
                if (width < 30 || height < 7) {
                    assert_int_equal(rc, ERR_UNSUPPORTED);
                    assert_int_equal(t.len, 0);
                    continue;
                }
                assert_int_equal(rc, 0);
                int lines = 0, column = 0;
                for (size_t i = 0; i < t.len; i++) {
                    if (t.data[i] == '\n') {
                        assert_true(i == 0 || t.data[i - 1] != ' ');
                        lines++;
                        column = 0;
                    } else if (((unsigned char)t.data[i] & 0xc0) != 0x80 && ++column > width) {
                        fail_msg("%s at %d x %d: line %d is too long", kinds[k], width, height,
                                 lines);
                    }
                }
                assert_int_equal(lines, height);
                text_free(&t);
            }
    tables_close(&ts);
}

static void ascii_shows_the_curve(void **state) {
    (void)state;
    struct tables *ts = everything(3);
    struct text t = {0};
    struct err err = {0};
    assert_int_equal(plot_ascii(ts, "knee", 96, 14, &t, &err), 0);
    assert_non_null(strstr(t.data, "throughput, batch/s"));
    assert_non_null(strstr(t.data, "B* = "));
    assert_non_null(strstr(t.data, "  batch\n"));
    int points = 0;
    for (const char *c = strchr(t.data, '\n'); (c = strchr(c + 1, 'o'));) points++;
    assert_int_equal(points, 6);
    /* It climbs from the left below to the right above: the first line of ink holds the last point.
     */
    const char *last = strrchr(t.data, '+'), *low = last;
    while (low > t.data && *low != 'o') low--; /* the lowest point is the first of the sweep */
    const char *line = low;
    while (line > t.data && line[-1] != '\n') line--;
    assert_true(low - line < 20);
    text_free(&t);
    assert_int_equal(plot_ascii(ts, "memory", 96, 14, &t, &err), 0);
    assert_non_null(strstr(t.data, "without weight"));
    assert_non_null(strstr(t.data, "peak 1.013 GB"));
    text_free(&t);
    tables_close(&ts);
}

static int set_up(void **state) {
    (void)state;
    const char *source = getenv("SOURCE_DIR");
    snprintf(folder, sizeof folder, "/tmp/bench-test-plot-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(scripts, sizeof scripts, "%s/plots", source ? source : ".");
    have_gnuplot = !system("command -v gnuplot >/dev/null 2>&1");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(folder); /* fails if a test, or plot_draw, left something behind */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_in_the_protocols_order),
        cmocka_unit_test(ceilings_show_their_levels),
        cmocka_unit_test(levels_are_marked),
        cmocka_unit_test(speedups_are_drawn),
        cmocka_unit_test(what_was_predicted_stands_beside),
        cmocka_unit_test(parts_are_stacked),
        cmocka_unit_test(memory_shows_the_telling_visit),
        cmocka_unit_test(every_kind_is_drawn),
        cmocka_unit_test(memory_stands_below_time),
        cmocka_unit_test(odd_data_is_drawn_or_refused),
        cmocka_unit_test(nothing_to_draw_has_a_reason),
        cmocka_unit_test(gnuplot_may_be_missing_or_broken),
        cmocka_unit_test(a_script_of_ones_own_gets_whole_tables),
        cmocka_unit_test(warm_ups_are_drawn),
        cmocka_unit_test(unwritable_place_is_an_error),
        cmocka_unit_test(ascii_keeps_its_bounds),
        cmocka_unit_test(ascii_shows_the_curve),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
