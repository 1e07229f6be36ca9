/* SPDX-License-Identifier: Apache-2.0 */
/* Google Benchmark's JSON. A visit is one repetition: its mean time per execution; the aggregates
 * are those of the repetitions. A row without numbers has an error and no time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "results/export.h"
#include "results/foreign.h"
#include "results/rows.h"
#include "results/stats.h"
#include "results/summary.h"

struct repetitions {    /* of one row */
    double *real, *cpu; /* (n) ns an execution; cpu NAN where unknown */
    int64_t *iterations;
    size_t n;
};
struct gbench {
    struct foreign f;
    struct text *out;
    bool begun, no_cpu, single;
    int64_t *values, n_values; /* by visit: its first row in the table `values`, or -1 */
};

/* ---- context */

static void member(struct text *out, const char *name) {
    text_puts(out, ",\n    ");
    text_json(out, name);
    text_puts(out, ": ");
}

static void text_member(struct text *out, const char *name, const char *value) {
    if (!*value || !strcmp(value, "unknown")) return;
    member(out, name);
    text_json(out, value);
}

static void caches(const struct tables *ts, struct text *out) {
    bool any = false;
    for (int level = 1; level <= 3; level++) {
        char key[32];
        int64_t bytes;
        snprintf(key, sizeof key, "cpu.l%d_bytes", level);
        if (!parse_i64(rows_environment(ts, key), &bytes) || bytes <= 0) continue;
        if (!any) member(out, "caches");
        text_printf(out, "%s\n      {\"type\": \"%s\", \"level\": %d, \"size\": %" PRId64 "}",
                    any ? "," : "[", level == 1 ? "Data" : "Unified", level, bytes);
        any = true;
    }
    if (any) text_puts(out, "\n    ]");
}

/* What an import found in the context block; a value that was no text stands as its JSON. */
static bool imported_context(const struct tables *ts, struct text *out) {
    const struct table *t = tables_peek(ts, "environment");
    bool any = false;
    for (int64_t r = 0; r < table_rows(t); r++) {
        const char *key = table_text(t, r, "key"), *value = table_text(t, r, "value");
        if (!strncmp(key, "moment.", 7)) key += 7;
        if (strncmp(key, "context.", 8) || !strcmp(key, "context.date")) continue;
        cJSON *json = strcmp(table_text(t, r, "unit"), "json") ? NULL : cJSON_Parse(value);
        char *strict = json ? cJSON_PrintUnformatted(json) : NULL;
        member(out, key + 8);
        if (strict)
            text_puts(out, strict);
        else
            text_json(out, value);
        cJSON_free(strict);
        cJSON_Delete(json);
        any = true;
    }
    return any;
}

static void context(const struct tables *ts, struct text *out) {
    const char *governor = rows_environment(ts, "cpu.governor"), *date = tables_meta(ts, "created");
    const char *imported = rows_environment(ts, "moment.context.date");
    double v;
    text_puts(out, "{\n  \"context\": {\n    \"date\": ");
    text_json(out, *imported ? imported : date);
    if (!imported_context(ts, out)) {
        text_puts(out, ",\n    \"executable\": \"bench\"");
        if (parse_f64(rows_environment(ts, "cpu.cores"), &v)) {
            member(out, "num_cpus");
            foreign_number(out, v);
        }
        if (*governor && strcmp(governor, "unknown")) {
            member(out, "cpu_scaling_enabled");
            text_puts(out, strcmp(governor, "performance") ? "true" : "false");
        }
        caches(ts, out);
        if (parse_f64(rows_environment(ts, "load.1min"), &v)) {
            member(out, "load_avg");
            text_puts(out, "[");
            foreign_number(out, v);
            text_puts(out, "]");
        }
        const char *type = rows_environment(ts, "build.type");
        if (*type)
            text_member(out, "library_build_type", strcmp(type, "Debug") ? "release" : "debug");
        text_member(out, "bench_version", tables_meta(ts, "tool_version"));
        text_member(out, "bench_revision", rows_environment(ts, "build.revision"));
        text_member(out, "cpu_model", rows_environment(ts, "cpu.model"));
        text_puts(out, ",\n    \"json_schema_version\": 1");
    }
    text_puts(out, "\n  },\n  \"benchmarks\": [");
}

/* ---- names */

/* "case/decode/batch:16/context:64", as its own arguments look. */
static void plain_name(const struct foreign *f, int64_t point, struct text *out) {
    const char *imported = foreign_fact(f, point, "test.run_name");
    const char *name = table_text(f->points, point, "case"),
               *label = table_text(f->points, point, "label");
    if (imported && *imported) {
        text_puts(out, imported);
        return;
    }
    if (*name) text_printf(out, "%s/", name);
    text_puts(out, table_text(f->points, point, "workload"));
    if (*label) text_puts(out, "/");
    for (const char *s = label; *s; s++) text_add(out, *s == ' ' ? "/" : *s == '=' ? ":" : s, 1);
}

/* Two rows of one name would be repetitions of one another. */
static void run_name(const struct foreign *f, int64_t point, struct text *out) {
    int64_t same = 0;
    plain_name(f, point, out);
    bool imported = foreign_fact(f, point, "test.run_name") != NULL; /* once a cell */
    for (int64_t p = 0; p < point && !imported; p++) {
        struct text other = {0};
        if (!strcmp(table_text(f->points, p, "label"), table_text(f->points, point, "label"))) {
            plain_name(f, p, &other);
            same += !strcmp(other.data ? other.data : "", out->data ? out->data : "");
        }
        text_free(&other);
    }
    if (same) text_printf(out, "/row:%" PRId64, point);
    text_add(out, "", 0);
}

/* ---- repetitions */

/* What was reported of a visit stands together. */
static void index_values(struct gbench *g) {
    const struct table *t = tables_peek(g->f.ts, "values");
    const int64_t *of = table_see_i64(t, "visit");
    g->n_values = g->f.x.n_ids;
    g->values = must_alloc((size_t)(g->n_values + 1) * sizeof *g->values);
    for (int64_t v = 0; v < g->n_values; v++) g->values[v] = -1;
    for (int64_t i = table_rows(t) - 1; i >= 0; i--)
        if (of[i] >= 0 && of[i] < g->n_values) g->values[of[i]] = i;
}

/* The next row of the visit after `row`; row -1: the first; -1 at the end. */
static int64_t next_value(const struct gbench *g, int64_t visit, int64_t row) {
    const struct table *t = tables_peek(g->f.ts, "values");
    const int64_t *of = table_see_i64(t, "visit");
    if (row < 0) return visit >= 0 && visit < g->n_values ? g->values[visit] : -1;
    return row + 1 < table_rows(t) && of[row + 1] == visit ? row + 1 : -1;
}

/* Where a visit has no samples, what was reported of it. */
static double reported(const struct gbench *g, int64_t visit, const char *metric) {
    const struct table *t = tables_peek(g->f.ts, "values");
    for (int64_t i = -1; (i = next_value(g, visit, i)) >= 0;)
        if (!strcmp(table_text(t, i, "metric"), metric)) return table_real(t, i, "value") * 1e6;
    return (double)NAN;
}

static void repetition(struct gbench *g, const struct summary_visit *v, struct repetitions *r) {
    const struct table *samples = tables_peek(g->f.ts, "samples"),
                       *visits = tables_peek(g->f.ts, "visits");
    const int64_t *batch = table_see_i64(samples, "batch"),
                  *wall = table_see_i64(samples, "wall_ns"),
                  *labels = table_see_i64(samples, "labels");
    double sum = 0;
    int64_t n = 0, iterations = 0;
    for (int64_t i = v->first; i < v->first + v->n; i++) {
        if ((labels[i] != I64_NONE && (labels[i] & 8)) || wall[i] < 0 || batch[i] < 1) continue;
        sum += (double)wall[i] / (double)batch[i];
        iterations = batch[i] > INT64_MAX - iterations ? INT64_MAX : iterations + batch[i];
        n++;
    }
    int64_t id = table_int(visits, v->row, "visit");
    double real = n ? sum / (double)n : reported(g, id, "time");
    double cpu = n ? real * table_real(visits, v->row, "cpu_share") : reported(g, id, "cpu_time");
    if (!isfinite(real)) return;
    r->real[r->n] = real;
    r->cpu[r->n] = cpu;
    r->iterations[r->n++] = n ? iterations : table_int(visits, v->row, "batch");
}

/* ---- entries */

struct entry {
    const char *name, *suffix; /* suffix: "mean"; NULL: an iteration */
    int64_t point;
    size_t repetitions, index;
};

static void head(struct gbench *g, const struct entry *e) {
    struct text *out = g->out;
    int64_t threads = foreign_int(&g->f, e->point, "test.threads");
    struct text name = {0};
    text_printf(&name, "%s%s%s", e->name, e->suffix ? "_" : "", e->suffix ? e->suffix : "");
    text_puts(out, g->begun ? ",\n    {\"name\": " : "\n    {\"name\": ");
    g->begun = true;
    text_json(out, name.data);
    text_printf(out, ", \"family_index\": %" PRId64 ", \"per_family_instance_index\": 0", e->point);
    text_puts(out, ", \"run_name\": ");
    text_json(out, e->name);
    text_printf(out, ", \"run_type\": \"%s\"", e->suffix ? "aggregate" : "iteration");
    if (e->repetitions) text_printf(out, ", \"repetitions\": %zu", e->repetitions);
    if (e->repetitions && !e->suffix) text_printf(out, ", \"repetition_index\": %zu", e->index);
    text_printf(out, ", \"threads\": %" PRId64,
                threads > 0 ? threads : rows_threads(g->f.ts, e->point));
    if (e->suffix)
        text_printf(out, ", \"aggregate_name\": \"%s\", \"aggregate_unit\": \"%s\"", e->suffix,
                    strcmp(e->suffix, "cv") ? "time" : "percentage");
    text_free(&name);
}

/* A reader needs a cpu_time: 0 where it is not known, which is said. */
static void times(struct gbench *g, int64_t iterations, double real, double cpu) {
    if (iterations != I64_NONE) text_printf(g->out, ", \"iterations\": %" PRId64, iterations);
    text_puts(g->out, ", \"real_time\": ");
    foreign_number(g->out, real);
    text_puts(g->out, ", \"cpu_time\": ");
    foreign_number(g->out, isfinite(cpu) ? cpu : 0);
    text_puts(g->out, ", \"time_unit\": \"ns\"");
    g->no_cpu = g->no_cpu || !isfinite(cpu);
}

static void counter(struct text *out, const char *name, double v) {
    if (!isfinite(v)) return;
    text_puts(out, ", ");
    text_json(out, name);
    text_puts(out, ": ");
    foreign_number(out, v);
}

/* Bytes of the ledger, items of a row that has one phase, and what an import found. */
static void counters(struct gbench *g, int64_t point, double real) {
    const struct table *phases = tables_peek(g->f.ts, "phases");
    double bytes = table_real(g->f.points, point, "bytes");
    int64_t first = g->f.x.point_phases[point], n = g->f.x.point_phases[point + 1] - first;
    double items = n == 1 ? table_real(phases, g->f.x.phase_row[first], "items") : 0;
    if (!(real > 0)) return;
    if (bytes > 0) counter(g->out, "bytes_per_second", bytes * 1e9 / real);
    if (items > 0) counter(g->out, "items_per_second", items * 1e9 / real);
}

/* What the file of an imported row had beside the times of a repetition. */
static void imported_counters(struct gbench *g, int64_t visit) {
    const struct table *t = tables_peek(g->f.ts, "values");
    for (int64_t i = -1; (i = next_value(g, visit, i)) >= 0;) {
        const char *metric = table_text(t, i, "metric");
        if (strcmp(metric, "time") && strcmp(metric, "cpu_time"))
            counter(g->out, metric, table_real(t, i, "value"));
    }
}

static void label(struct gbench *g, int64_t point) {
    const char *flags = table_text(g->f.points, point, "flags");
    const char *imported = foreign_fact(&g->f, point, "test.label");
    if (imported) flags = imported;
    if (!*flags) return;
    text_puts(g->out, ", \"label\": ");
    text_json(g->out, flags);
}

static double cv(double stddev, double mean) { return mean > 0 ? stddev / mean : (double)NAN; }

static double median(const double *x, size_t n) {
    double *copy = must_alloc((n + 1) * sizeof *copy);
    memcpy(copy, x, n * sizeof *x);
    double v = stats_quantile(copy, n, 0.5);
    free(copy);
    return v;
}

static void aggregates(struct gbench *g, const struct entry *of, const struct repetitions *r) {
    struct entry e = *of;
    double mean = stats_mean(r->real, r->n), cpu = stats_mean(r->cpu, r->n);
    double stddev = stats_stddev(r->real, r->n), cpu_stddev = stats_stddev(r->cpu, r->n);
    const struct {
        const char *name;
        double real, cpu;
    } rows[] = {{"mean", mean, cpu},
                {"median", median(r->real, r->n), median(r->cpu, r->n)},
                {"stddev", stddev, cpu_stddev},
                {"cv", cv(stddev, mean), cv(cpu_stddev, cpu)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        e.suffix = rows[i].name;
        if (!isfinite(rows[i].real)) continue;
        head(g, &e);
        times(g, (int64_t)r->n, rows[i].real, rows[i].cpu);
        label(g, e.point);
        text_puts(g->out, "}");
    }
}

/* Aggregates of an import without repetitions; false if there are none. */
static bool given(struct gbench *g, const struct entry *of) {
    static const char *const names[] = {"mean", "median", "stddev", "cv"};
    double v[4], cpu[4];
    for (int i = 0; i < 3; i++) {
        v[i] = summary_get(g->f.ts, of->point, "time", names[i]) * 1e6;
        cpu[i] = summary_get(g->f.ts, of->point, "cpu_time", names[i]) * 1e6;
    }
    v[3] = cv(v[2], v[0]);
    cpu[3] = cv(cpu[2], cpu[0]);
    int64_t row = summary_row(g->f.ts, of->point, "time");
    if (row < 0 || !isfinite(v[0])) return false;
    struct entry e = *of;
    int64_t n = table_int(tables_peek(g->f.ts, "summary"), row, "n");
    e.repetitions = n > 0 ? (size_t)n : 0;
    for (int i = 0; i < 4; i++) {
        if (!isfinite(v[i])) continue;
        e.suffix = names[i];
        head(g, &e);
        times(g, n, v[i], cpu[i]);
        label(g, e.point);
        text_puts(g->out, "}");
    }
    return true;
}

/* No time at all; another unit than that of rows with times keeps compare.py from pairing them. */
static void failure(struct gbench *g, const struct entry *e) {
    struct text why = {0};
    const char *reason = table_text(g->f.points, e->point, "reason");
    bool own = strcmp(table_text(g->f.points, e->point, "workload"), "gbench") != 0;
    if (own || !*reason)
        text_printf(&why, "%s%s", table_text(g->f.points, e->point, "state"), *reason ? ": " : "");
    text_puts(&why, reason);
    head(g, e);
    text_puts(g->out, ", \"error_occurred\": true, \"error_message\": ");
    text_json(g->out, why.data);
    text_puts(g->out, ", \"time_unit\": \"s\"}");
    text_free(&why);
}

static void row(struct gbench *g, int64_t point) {
    struct text name = {0};
    run_name(&g->f, point, &name);
    struct entry e = {.name = name.data, .point = point};
    if (!rows_usable(g->f.ts, point)) {
        failure(g, &e);
        text_free(&name);
        return;
    }
    int64_t n;
    const struct summary_visit *v = summary_visits(&g->f.x, point, &n);
    struct repetitions r = {.n = 0};
    r.real = must_alloc((size_t)(n + 1) * sizeof *r.real);
    r.cpu = must_alloc((size_t)(n + 1) * sizeof *r.cpu);
    r.iterations = must_alloc((size_t)(n + 1) * sizeof *r.iterations);
    int64_t *visit = must_alloc((size_t)(n + 1) * sizeof *visit);
    for (int64_t i = 0; i < n; i++) {
        if (!v[i].counts) continue;
        visit[r.n] = table_int(tables_peek(g->f.ts, "visits"), v[i].row, "visit");
        repetition(g, &v[i], &r);
    }
    e.repetitions = r.n;
    for (e.index = 0; e.index < r.n; e.index++) {
        head(g, &e);
        times(g, r.iterations[e.index], r.real[e.index], r.cpu[e.index]);
        counters(g, point, r.real[e.index]);
        if (!strcmp(table_text(g->f.points, point, "workload"), "gbench"))
            imported_counters(g, visit[e.index]);
        label(g, point);
        text_puts(g->out, "}");
    }
    g->single = g->single || r.n == 1;
    if (r.n > 1) aggregates(g, &e, &r);
    if (!r.n && !given(g, &e)) foreign_leave(&g->f, point, "without a time");
    free(r.real);
    free(r.cpu);
    free(r.iterations);
    free(visit);
    text_free(&name);
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    struct gbench g = {.out = out};
    (void)as;
    foreign_open(&g.f, ts, "gbench");
    index_values(&g);
    context(ts, out);
    for (int64_t p = 0; p < g.f.n_points; p++) row(&g, p);
    text_puts(out, g.begun ? "\n  ]\n}\n" : "]\n}\n");
    if (g.no_cpu)
        text_puts(lost, "gbench: cpu_time is 0 where it was not measured: readers need one\n");
    if (g.single)
        text_puts(lost, "gbench: rows of one round have no mean, median, stddev and cv\n");
    if (g.begun)
        text_puts(lost, "gbench has no place for single executions and for metrics that are no "
                        "time, bytes or items a second; json has\n");
    free(g.values);
    return foreign_close(&g.f, g.begun, lost, err);
}

const struct exporter exporter_gbench = {
    .name = "gbench",
    .brief = "Google Benchmark's JSON, one repetition a round; its compare.py reads it",
    .write = write,
};
