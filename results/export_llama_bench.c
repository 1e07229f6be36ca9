/* SPDX-License-Identifier: Apache-2.0 */
/* llama-bench's five formats. A row is one of its tests: pp, tg or pp+tg of one sequence. Times and
 * rates follow its definitions: whole ns, 1e9 (n_prompt + n_gen) / ns of each execution, their
 * mean and deviation. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/export.h"
#include "results/foreign.h"
#include "results/llama_fields.h"
#include "results/rows.h"
#include "results/stats.h"

struct llama_row {
    const char *value[N_LLAMA_FIELDS]; /* in the arena; NULL: none */
    double *ns, *ts;                   /* (n) whole ns, token/s */
    size_t n;
    double mean_ts, stddev_ts;
};
struct llama {
    struct foreign f;
    struct arena *arena;
    struct llama_row *rows;
    size_t n;
    size_t n_single, n_batched, n_neutral, n_gpu; /* rows of which something is said */
    bool generates;
};

static size_t place(const char *name) { return (size_t)(llama_field_find(name) - llama_fields); }

static void set(struct llama *l, struct llama_row *r, const char *name, const char *value) {
    if (value) r->value[place(name)] = arena_text(l->arena, value);
}

static void set_whole(struct llama *l, struct llama_row *r, const char *name, int64_t v) {
    if (v != I64_NONE) r->value[place(name)] = arena_printf(l->arena, "%" PRId64, v);
}

static void set_real(struct llama *l, struct llama_row *r, const char *name, double v) {
    char buf[40];
    if (isfinite(v)) set(l, r, name, format_exact(buf, sizeof buf, v));
}

/* ---- what a row is */

static const char *known(const char *fact) { return strcmp(fact, "unknown") ? fact : ""; }

/* Of a row of bench's own. */
static void settings(struct llama *l, struct llama_row *r, int64_t point) {
    const struct foreign *f = &l->f;
    const char *revision = known(rows_environment(f->ts, "build.revision"));
    const char *shape = foreign_fact(f, point, "model.shape"),
               *type = foreign_fact(f, point, "model.type"),
               *kv = foreign_fact(f, point, "model.kv_type");
    bool cuda = foreign_ran(f, point, "cuda");
    bool host = foreign_ran(f, point, "cpu") || foreign_ran(f, point, "ref");
    if (*revision) r->value[0] = arena_printf(l->arena, "%.8s", revision);
    set(l, r, "cpu_info", known(rows_environment(f->ts, "cpu.model")));
    set(l, r, "gpu_info", cuda ? known(rows_environment(f->ts, "gpu.name")) : "");
    set(l, r, "backends", cuda ? "CUDA" : host ? "CPU" : table_text(f->points, point, "device"));
    r->value[place("model_type")] =
        arena_printf(l->arena, "%s %s", shape ? shape : "unknown", type ? type : "");
    set_whole(l, r, "model_size", table_int(f->points, point, "model_bytes"));
    set_whole(l, r, "model_n_params", table_int(f->points, point, "model_parameters"));
    set_whole(l, r, "n_threads", rows_threads(f->ts, point));
    set(l, r, "type_k", kv);
    set(l, r, "type_v", kv);
    set(l, r, "n_gpu_layers", cuda ? "-1" : "0"); /* all of them, none of them */
    set(l, r, "split_mode", "none");
    set(l, r, "load_mode", "none");
    set(l, r, "use_mmap", "false");
    int64_t chunk = foreign_int(f, point, "workload.chunk");
    if (chunk > 0) { /* else a prompt is one step */
        set_whole(l, r, "n_batch", chunk);
        set_whole(l, r, "n_ubatch", chunk);
    }
    set(l, r, "test_time", tables_meta(f->ts, "created"));
    l->n_neutral++;
    l->n_gpu += cuda && !r->value[place("gpu_info")][0];
}

/* Of a row that an import brought. */
static void imported(struct llama *l, struct llama_row *r, int64_t point) {
    const struct table *facts = tables_peek(l->f.ts, "protocol");
    for (int64_t i = l->f.first[point]; i < l->f.first[point] + l->f.n[point]; i++) {
        const char *key = table_text(facts, i, "key");
        const struct llama_field *field =
            strncmp(key, "test.", 5) ? NULL : llama_field_find(key + 5);
        if (field) r->value[field - llama_fields] = table_text(facts, i, "value");
    }
}

/* ---- times */

static bool executions(struct llama *l, struct llama_row *r, int64_t point, double tokens) {
    r->n = foreign_times(&l->f, point);
    r->ns = arena_alloc(l->arena, (r->n + 1) * sizeof *r->ns);
    r->ts = arena_alloc(l->arena, (r->n + 1) * sizeof *r->ts);
    for (size_t i = 0; i < r->n; i++) {
        r->ns[i] = nearbyint(l->f.times.x[i]);
        if (!(r->ns[i] >= 1) || r->ns[i] > 0x1p53) return false;
        r->ts[i] = 1e9 * tokens / r->ns[i];
    }
    if (!r->n) return true;
    r->mean_ts = stats_mean(r->ts, r->n);
    r->stddev_ts = stats_stddev(r->ts, r->n);
    double stddev = stats_stddev(r->ns, r->n);
    set_whole(l, r, "avg_ns", (int64_t)nearbyint(stats_mean(r->ns, r->n)));
    r->value[place("stddev_ns")] = NULL;
    r->value[place("stddev_ts")] = NULL;
    if (isfinite(stddev)) set_whole(l, r, "stddev_ns", (int64_t)nearbyint(stddev));
    set_real(l, r, "avg_ts", r->mean_ts);
    set_real(l, r, "stddev_ts", r->stddev_ts);
    l->n_single += r->n == 1;
    return true;
}

/* Aggregates that an import brought without samples. */
static bool given(struct llama_row *r) {
    const char *mean = r->value[place("avg_ts")], *stddev = r->value[place("stddev_ts")];
    r->stddev_ts = (double)NAN;
    if (stddev && !parse_f64(stddev, &r->stddev_ts)) r->stddev_ts = (double)NAN;
    return mean && parse_f64(mean, &r->mean_ts);
}

static void read_row(struct llama *l, int64_t point) {
    struct foreign_test t;
    if (!foreign_test(&l->f, point, &t)) return;
    if (t.batch != 1 || t.odd) {
        foreign_leave(&l->f, point,
                      t.odd ? t.odd : "of several sequences (llama-batched-bench has them)");
        return;
    }
    struct llama_row *r = &l->rows[l->n];
    const char *own = table_text(l->f.points, point, "workload");
    if (strcmp(own, "llama-bench"))
        settings(l, r, point);
    else
        imported(l, r, point);
    set_whole(l, r, "n_prompt", t.n_prompt);
    set_whole(l, r, "n_gen", t.n_gen);
    set_whole(l, r, "n_depth", t.n_depth);
    for (size_t i = 0; i < N_LLAMA_FIELDS; i++)
        if (!r->value[i] && strcmp(own, "llama-bench")) r->value[i] = llama_fields[i].usual;
    if (!executions(l, r, point, (double)(t.n_prompt + t.n_gen))) {
        foreign_leave(&l->f, point, "with executions of less than a nanosecond");
    } else if (!r->n && !given(r)) {
        foreign_leave(&l->f, point, "without a time");
    } else {
        l->n++;
        l->generates = l->generates || !strcmp(own, "generate");
        l->n_batched += foreign_batched(&l->f, point);
        return;
    }
    *r = (struct llama_row){.n = 0};
}

/* ---- csv, json, jsonl, sql */

static void csv_cell(struct text *out, const char *value) {
    text_puts(out, "\"");
    for (const char *s = value ? value : ""; *s; s++)
        text_add(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    text_puts(out, "\"");
}

static void write_csv(const struct llama *l, struct text *out) {
    for (size_t i = 0; i < N_LLAMA_FIELDS - 1; i++)
        text_printf(out, "%s%s", i ? "," : "", llama_fields[i].name);
    text_puts(out, "\n");
    for (size_t k = 0; k < l->n; k++) {
        for (size_t i = 0; i < N_LLAMA_FIELDS - 1; i++) {
            if (i) text_puts(out, ",");
            csv_cell(out, l->rows[k].value[i]);
        }
        text_puts(out, "\n");
    }
}

/* Numbers of an edited file may be anything: what is none is null. */
static void number(struct text *out, const char *value, const char *none) {
    int64_t whole;
    double v;
    if (parse_i64(value, &whole))
        foreign_whole(out, whole); /* all its digits */
    else if (parse_f64(value, &v))
        foreign_number(out, v);
    else
        text_puts(out, none);
}

static bool is_true(const char *value) { return !strcmp(value, "true") || !strcmp(value, "1"); }

static void json_value(struct text *out, const struct llama_field *field, const char *value) {
    if (!value)
        text_puts(out, "null");
    else if (field->type == LLAMA_TEXT)
        text_json(out, value);
    else if (field->type == LLAMA_BOOL)
        text_puts(out, is_true(value) ? "true" : "false");
    else
        number(out, value, "null");
}

static void json_list(struct text *out, const double *x, size_t n) {
    text_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        if (i) text_puts(out, ", ");
        foreign_number(out, x[i]);
    }
    text_puts(out, "]");
}

static void json_row(struct text *out, const struct llama_row *r, const char *separator) {
    for (size_t i = 0; i < N_LLAMA_FIELDS; i++) {
        if (llama_fields[i].role == LLAMA_SETTING && !r->value[i]) continue; /* not in its file */
        text_printf(out, "\"%s\": ", llama_fields[i].name);
        json_value(out, &llama_fields[i], r->value[i]);
        text_puts(out, separator);
    }
    if (r->n) {
        text_puts(out, "\"samples_ns\": ");
        json_list(out, r->ns, r->n);
        text_printf(out, "%s\"samples_ts\": ", separator);
        json_list(out, r->ts, r->n);
    } else {
        out->len -= strlen(separator);
        out->data[out->len] = 0;
    }
}

static void write_json(const struct llama *l, struct text *out) {
    text_puts(out, "[");
    for (size_t k = 0; k < l->n; k++) {
        text_puts(out, k ? ",\n  {\n    " : "\n  {\n    ");
        json_row(out, &l->rows[k], ",\n    ");
        text_puts(out, "\n  }");
    }
    text_puts(out, "\n]\n");
}

static void write_jsonl(const struct llama *l, struct text *out) {
    text_add(out, "", 0);
    for (size_t k = 0; k < l->n; k++) {
        text_puts(out, "{");
        json_row(out, &l->rows[k], ", ");
        text_puts(out, "}\n");
    }
}

static void sql_value(struct text *out, const struct llama_field *field, const char *value) {
    if (!value) {
        text_puts(out, "NULL");
    } else if (field->type == LLAMA_TEXT) {
        text_puts(out, "'");
        for (const char *s = value; *s; s++)
            text_add(out, *s == '\'' ? "''" : s, *s == '\'' ? 2 : 1);
        text_puts(out, "'");
    } else if (field->type == LLAMA_BOOL) {
        text_puts(out, is_true(value) ? "1" : "0");
    } else {
        number(out, value, "NULL");
    }
}

static void write_sql(const struct llama *l, struct text *out) {
    static const char *const types[] = {"TEXT", "INTEGER", "INTEGER", "REAL"};
    text_puts(out, "CREATE TABLE IF NOT EXISTS llama_bench (\n");
    for (size_t i = 0; i < N_LLAMA_FIELDS - 1; i++)
        text_printf(out, "  %s %s%s\n", llama_fields[i].name, types[llama_fields[i].type],
                    i + 2 < N_LLAMA_FIELDS ? "," : "");
    text_puts(out, ");\n\n");
    for (size_t k = 0; k < l->n; k++) {
        text_puts(out, "INSERT INTO llama_bench (");
        for (size_t i = 0; i < N_LLAMA_FIELDS - 1; i++)
            text_printf(out, "%s%s", i ? ", " : "", llama_fields[i].name);
        text_puts(out, ") VALUES (");
        for (size_t i = 0; i < N_LLAMA_FIELDS - 1; i++) {
            if (i) text_puts(out, ", ");
            sql_value(out, &llama_fields[i], l->rows[k].value[i]);
        }
        text_puts(out, ");\n");
    }
}

/* ---- md */

static void md_cell(struct text *out, const char *value) {
    text_puts(out, " ");
    for (const char *s = value; *s; s++) {
        if (*s == '|' || *s == '\\') text_puts(out, "\\");
        text_add(out, (unsigned char)*s < ' ' ? " " : s, 1);
    }
    text_puts(out, " |");
}

static const char *or_none(const char *value) { return value ? value : "-"; }

/* 12.3 MiB, 7.1 GiB; 270.9 M, 6.7 B. */
static void md_scaled(struct text *out, const char *value, double small, const char *small_unit,
                      double large, const char *large_unit) {
    double v;
    if (!value || !parse_f64(value, &v)) {
        md_cell(out, "-");
        return;
    }
    struct text t = {0};
    text_printf(&t, "%.2f %s", v / (v < large ? small : large),
                v < large ? small_unit : large_unit);
    md_cell(out, t.data);
    text_free(&t);
}

static void md_test(struct text *out, const struct llama_row *r) {
    const char *prompt = r->value[place("n_prompt")], *gen = r->value[place("n_gen")],
               *depth = r->value[place("n_depth")];
    struct text t = {0};
    if (strcmp(prompt, "0")) text_printf(&t, "pp%s", prompt);
    if (strcmp(gen, "0")) text_printf(&t, "%stg%s", t.len ? "+" : "", gen);
    if (strcmp(depth, "0")) text_printf(&t, " @ d%s", depth);
    md_cell(out, t.data);
    t.len = 0;
    text_printf(&t, "%.2f", r->mean_ts);
    if (isfinite(r->stddev_ts)) text_printf(&t, " \xc2\xb1 %.2f", r->stddev_ts);
    md_cell(out, t.data);
    text_free(&t);
}

/* Settings in which the rows differ have a column each, as there; but not what a test's own size
 * decides. */
static bool md_differs(const struct llama *l, size_t i) {
    static const char *const own[] = {"model_filename", "n_threads", "n_prompt",
                                      "n_gen",          "n_depth",   "model_type",
                                      "backends",       "n_batch",   "n_ubatch"};
    enum llama_role role = llama_fields[i].role;
    if (role != LLAMA_SETTING && role != LLAMA_IDENTITY) return false;
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (!strcmp(llama_fields[i].name, own[k])) return false;
    const char *usual = or_none(llama_fields[i].usual);
    for (size_t k = 1; k < l->n; k++) {
        const char *a = l->rows[0].value[i], *b = l->rows[k].value[i];
        if (strcmp(a ? a : usual, b ? b : usual)) return true;
    }
    return false;
}

static void write_md(const struct llama *l, struct text *out) {
    bool column[N_LLAMA_FIELDS];
    for (size_t i = 0; i < N_LLAMA_FIELDS; i++) column[i] = md_differs(l, i);
    text_puts(out, "| model | size | params | backend | threads |");
    for (size_t i = 0; i < N_LLAMA_FIELDS; i++)
        if (column[i]) text_printf(out, " %s |", llama_fields[i].name);
    text_puts(out, " test | t/s |\n| --- | ---: | ---: | --- | ---: |");
    for (size_t i = 0; i < N_LLAMA_FIELDS; i++)
        if (column[i]) text_puts(out, llama_fields[i].type ? " ---: |" : " --- |");
    text_puts(out, " ---: | ---: |\n");
    for (size_t k = 0; k < l->n; k++) {
        const struct llama_row *r = &l->rows[k];
        text_puts(out, "|");
        md_cell(out, or_none(r->value[place("model_type")]));
        md_scaled(out, r->value[place("model_size")], 0x1p20, "MiB", 0x1p30, "GiB");
        md_scaled(out, r->value[place("model_n_params")], 1e6, "M", 1e9, "B");
        md_cell(out, or_none(r->value[place("backends")]));
        md_cell(out, or_none(r->value[place("n_threads")]));
        for (size_t i = 0; i < N_LLAMA_FIELDS; i++)
            if (column[i]) md_cell(out, or_none(r->value[i]));
        md_test(out, r);
        text_puts(out, "\n");
    }
    if (l->n)
        text_printf(out, "\nbuild: %s (%s)\n", or_none(l->rows[0].value[0]),
                    or_none(l->rows[0].value[1]));
}

/* ---- all */

static void say(const struct llama *l, bool with_samples, struct text *lost) {
    if (l->generates)
        text_puts(lost, "llama-bench: generating n tokens is ppP+tg(n - 1), as the first token "
                        "comes with the prompt of P\n");
    if (l->n_single)
        text_printf(lost, "llama-bench: %zu row%s of one execution ha%s no deviation\n",
                    l->n_single, l->n_single == 1 ? "" : "s", l->n_single == 1 ? "s" : "ve");
    if (l->n_batched)
        text_puts(lost, "llama-bench: where a sample holds several executions, their mean stands "
                        "for it\n");
    if (l->n_neutral)
        text_puts(lost, "llama-bench: what bench has not is as llama-bench has it by itself or "
                        "empty: build_number, model_filename, n_batch and n_ubatch of prompts "
                        "in one step, cpu_mask, cpu_strict, poll, "
                        "n_cpu_moe, main_gpu, no_kv_offload, flash_attn, devices, tensor_split, "
                        "tensor_buft_overrides, embeddings, no_op_offload, no_host, fit_target, "
                        "fit_min_ctx\n");
    if (l->n_gpu) text_puts(lost, "llama-bench: gpu_info is empty: the result does not name it\n");
    if (l->n)
        text_printf(lost,
                    "llama-bench has no place for rounds, flags, witness and all metrics but "
                    "token/s%s; json has\n",
                    with_samples ? "" : ", nor this form for executions");
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    static const struct {
        const char *as;
        void (*write)(const struct llama *, struct text *);
        bool samples;
    } forms[] = {{"json", write_json, true},
                 {"jsonl", write_jsonl, true},
                 {"csv", write_csv, false},
                 {"sql", write_sql, false},
                 {"md", write_md, false}};
    struct llama l = {.arena = arena_create()};
    foreign_open(&l.f, ts, "llama-bench");
    l.rows = arena_alloc(l.arena, (size_t)(l.f.n_points + 1) * sizeof *l.rows);
    for (int64_t p = 0; p < l.f.n_points; p++) read_row(&l, p);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].as, as)) continue;
        forms[i].write(&l, out);
        say(&l, forms[i].samples, lost);
    }
    int code = foreign_close(&l.f, l.n, lost, err);
    arena_close(&l.arena);
    return code;
}

static const char *const forms[] = {"json", "jsonl", "csv", "sql", "md", NULL};
const struct exporter exporter_llama_bench = {
    .name = "llama-bench",
    .brief = "tests pp, tg and pp+tg of one sequence, as llama.cpp's llama-bench writes them",
    .as = forms,
    .write = write,
};
