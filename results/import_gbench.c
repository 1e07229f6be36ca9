/* SPDX-License-Identifier: Apache-2.0 */
/* Google Benchmark's JSON: a run name is a row, a repetition a visit whose time was reported. A run
 * of which only aggregates were written keeps mean, median and deviation as given. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/import.h"
#include "results/table.h"

enum kind { ITERATION, AGGREGATE, OTHER }; /* OTHER: fits of complexity */
enum { ARGUMENTS_MOST = 16 };

struct entry {
    const cJSON *o;
    int index; /* in benchmarks */
    const char *run_name, *family, *arguments, *aggregate;
    enum kind kind;
    bool shared;         /* its family has other arguments too */
    struct entry **same; /* in the order of names: all entries of its run name, by index */
    size_t n_same;
};
struct reading {
    struct import *im;
    struct arena *arena;
    struct entry *entries; /* in the document's order */
    size_t n;
    const char *build;
    size_t n_other, n_given, n_mean;
};

static const cJSON *get(const cJSON *o, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static bool knows(const cJSON *document) {
    return cJSON_IsObject(document) && cJSON_IsArray(get(document, "benchmarks"));
}

static const char *text_of(const cJSON *o, const char *name, const char *otherwise) {
    const cJSON *v = get(o, name);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

/* ---- names */

static bool ends_in(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

/* Files from before there was a run_type tell by the name's end. */
static void old_kind(struct reading *r, struct entry *e, const char *name) {
    static const char *const ends[] = {"mean", "median", "stddev", "cv", "BigO", "RMS"};
    char end[16];
    e->kind = ITERATION;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(end, sizeof end, "_%s", ends[i]);
        if (!ends_in(name, end)) continue;
        e->run_name = arena_textn(r->arena, name, strlen(name) - strlen(end));
        e->aggregate = ends[i];
        e->kind = i < 4 ? AGGREGATE : OTHER;
    }
}

static bool is_argument(const char *s, size_t n) {
    size_t i = 0, word = 0;
    while (i < n && (s[i] == '-' || (s[i] >= '0' && s[i] <= '9'))) i++;
    if (n && i == n) return true;
    while (word < n && s[word] != ':') word++;
    if (word && word + 1 < n && s[word + 1] != ':') return true;
    return (n == 9 && !strncmp(s, "real_time", n)) ||
           ((n == 12 || n == 11) &&
            (!strncmp(s, "process_time", n) || !strncmp(s, "manual_time", n)));
}

/* "BM_copy/64/threads:2": the family up to its first argument; the first part is none. */
static void split_name(struct reading *r, struct entry *e) {
    const char *s = strchr(e->run_name, '/');
    while (s) {
        size_t n = strcspn(s + 1, "/");
        if (is_argument(s + 1, n)) break;
        s = strchr(s + 1, '/');
    }
    e->family = s ? arena_textn(r->arena, e->run_name, (size_t)(s - e->run_name)) : e->run_name;
    e->arguments = s ? s + 1 : "";
}

static int read_entry(struct reading *r, struct entry *e, struct err *err) {
    char where[40];
    const char *name = "", *type = text_of(e->o, "run_type", NULL);
    snprintf(where, sizeof where, "benchmarks[%d]", e->index);
    if (!cJSON_IsObject(e->o)) return err_set(err, ERR_INPUT, "%s is no object", where);
    if (import_text(e->o, "name", where, &name, err)) return err->code;
    e->run_name = text_of(e->o, "run_name", name);
    e->aggregate = text_of(e->o, "aggregate_name", "");
    if (!type)
        old_kind(r, e, name);
    else if (!strcmp(type, "iteration"))
        e->kind = ITERATION;
    else if (!strcmp(type, "aggregate"))
        e->kind = get(e->o, "real_time") ? AGGREGATE : OTHER;
    else
        return err_set(err, ERR_INPUT, "%s.run_type is '%.60s': iteration or aggregate is needed",
                       where, type);
    if (!*e->run_name) return err_set(err, ERR_INPUT, "%s has an empty name", where);
    split_name(r, e);
    return 0;
}

static int by_name(const void *a, const void *b) {
    const struct entry *p = *(struct entry *const *)a, *q = *(struct entry *const *)b;
    int c = strcmp(p->family, q->family);
    if (!c) c = strcmp(p->run_name, q->run_name);
    return c ? c : p->index - q->index;
}

/* A family of one run needs no table of its own. */
static void sort_entries(struct reading *r) {
    struct entry **sorted = arena_alloc(r->arena, (r->n + 1) * sizeof *sorted);
    for (size_t i = 0; i < r->n; i++) sorted[i] = &r->entries[i];
    qsort(sorted, r->n, sizeof *sorted, by_name);
    for (size_t i = 0, end; i < r->n; i = end) {
        for (end = i + 1; end < r->n && !strcmp(sorted[end]->family, sorted[i]->family);) end++;
        for (size_t k = i; k < end; k++)
            sorted[k]->shared = strcmp(sorted[i]->run_name, sorted[end - 1]->run_name) != 0;
    }
    for (size_t i = 0, end; i < r->n; i = end) {
        for (end = i + 1; end < r->n && !strcmp(sorted[end]->run_name, sorted[i]->run_name);) end++;
        sorted[i]->same = sorted + i; /* of the first of them */
        sorted[i]->n_same = end - i;
    }
}

/* ---- rows */

static size_t argument_keys(struct reading *r, const struct entry *e, struct import_key *keys) {
    size_t n = 0, unnamed = 0;
    for (const char *s = e->arguments; *s && n < ARGUMENTS_MOST;) {
        size_t len = strcspn(s, "/"), word = strcspn(s, ":/");
        const char *key = NULL, *value = arena_textn(r->arena, s, len);
        int64_t whole;
        if (word < len && word < 60) {
            key = arena_textn(r->arena, s, word);
            value = arena_textn(r->arena, s + word + 1, len - word - 1);
        } else if (parse_i64(value, &whole)) {
            key = arena_printf(r->arena, "arg%zu", ++unnamed);
        }
        if (key && strcmp(key, "run_name") && strcmp(key, "label") && strcmp(key, "threads"))
            keys[n++] = (struct import_key){key, value,
                                            IMPORT_AXIS | IMPORT_NAMED |
                                                (parse_i64(value, &whole) ? IMPORT_WHOLE : 0u)};
        s += len + (s[len] == '/');
    }
    return n;
}

static int point_of(struct reading *r, const struct entry *e, int64_t *point, struct err *err) {
    struct import_key keys[ARGUMENTS_MOST + 3];
    int64_t threads = I64_NONE;
    char where[40];
    snprintf(where, sizeof where, "benchmarks[%d]", e->index);
    if (get(e->o, "threads") && import_whole(e->o, "threads", where, &threads, err))
        return err->code;
    size_t n = 0;
    keys[n++] = (struct import_key){"run_name", e->run_name, IMPORT_IDENTITY};
    if (threads > 0)
        keys[n++] = (struct import_key){"threads", arena_printf(r->arena, "%" PRId64, threads),
                                        IMPORT_AXIS | IMPORT_WHOLE | IMPORT_NAMED};
    if (cJSON_IsString(get(e->o, "label")))
        keys[n++] = (struct import_key){"label", text_of(e->o, "label", ""), 0};
    n += argument_keys(r, e, keys + n);
    struct import_test test = {
        .workload = "gbench",
        .case_name = e->shared ? e->family : "",
        .label = e->shared && *e->arguments ? e->arguments : e->run_name,
        .effective = "", /* what it ran on is not said */
        .build = r->build,
        .keys = keys,
        .n_keys = n,
    };
    return import_point(r->im, &test, point, err) ? err_prefix(err, "%s", where) : 0;
}

/* ---- numbers */

static int unit_of(const struct entry *e, const char *where, double *per_ms, struct err *err) {
    static const struct {
        const char *name;
        double per_ms;
    } units[] = {{"ns", 1e6}, {"us", 1e3}, {"ms", 1}, {"s", 1e-3}};
    const char *unit = text_of(e->o, "time_unit", "ns");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        *per_ms = units[i].per_ms;
        if (!strcmp(unit, units[i].name)) return 0;
    }
    return err_set(err, ERR_INPUT, "%s.time_unit is '%.20s': ns, us, ms or s is needed", where,
                   unit);
}

static int times_of(const struct entry *e, double *real, double *cpu, struct err *err) {
    char where[40];
    double per_ms = 1;
    snprintf(where, sizeof where, "benchmarks[%d]", e->index);
    int code = unit_of(e, where, &per_ms, err);
    if (!code) code = import_number(e->o, "real_time", where, real, err);
    *cpu = (double)NAN;
    if (!code && get(e->o, "cpu_time")) code = import_number(e->o, "cpu_time", where, cpu, err);
    if (!code && !(*real >= 0)) code = err_set(err, ERR_INPUT, "%s.real_time is negative", where);
    *real /= per_ms;
    *cpu /= per_ms;
    return code;
}

static void counters(struct reading *r, const struct entry *e, int64_t visit) {
    static const char *const own[] = {"family_index", "per_family_instance_index",
                                      "repetitions",  "repetition_index",
                                      "threads",      "iterations",
                                      "real_time",    "cpu_time",
                                      "time"};
    const cJSON *v;
    cJSON_ArrayForEach(v, e->o) {
        bool counter = cJSON_IsNumber(v) && isfinite(v->valuedouble) && *v->string;
        for (size_t i = 0; counter && i < sizeof own / sizeof *own; i++)
            counter = strcmp(v->string, own[i]) != 0;
        if (!counter) continue;
        const char *unit = !strcmp(v->string, "bytes_per_second")   ? "byte/s"
                           : !strcmp(v->string, "items_per_second") ? "item/s"
                                                                    : "";
        import_value(r->im, visit, v->string, unit, v->valuedouble);
    }
}

static int read_iteration(struct reading *r, const struct entry *e, struct err *err) {
    int64_t point, visit, iterations = I64_NONE;
    double real = 0, cpu = 0;
    char where[40];
    snprintf(where, sizeof where, "benchmarks[%d]", e->index);
    if (point_of(r, e, &point, err)) return err->code;
    bool failed = cJSON_IsTrue(get(e->o, "error_occurred")) || cJSON_IsTrue(get(e->o, "skipped"));
    if (!failed && times_of(e, &real, &cpu, err)) return err->code;
    if (!failed && get(e->o, "iterations") &&
        import_whole(e->o, "iterations", where, &iterations, err))
        return err->code;
    if (import_visit(r->im, point, iterations, &visit, err)) return err_prefix(err, "%s", where);
    if (failed) {
        import_failure(r->im, visit,
                       text_of(e->o, "error_message", text_of(e->o, "skip_message", "skipped")));
        return 0;
    }
    import_value(r->im, visit, "time", "ms", real);
    if (isfinite(cpu)) import_value(r->im, visit, "cpu_time", "ms", cpu);
    counters(r, e, visit);
    return 0;
}

static int64_t count_of(const struct entry *e) {
    struct err ignored = {0};
    int64_t n = I64_NONE;
    if (import_whole(e->o, "repetitions", "", &n, &ignored) || n < 1) return I64_NONE;
    return n;
}

/* All entries of one run name. */
static int read_aggregates(struct reading *r, const struct entry *of, struct err *err) {
    struct entry **sorted = of->same;
    const size_t n = of->n_same;
    struct import_given g[2] = {
        {"time", "ms", I64_NONE, (double)NAN, (double)NAN, (double)NAN},
        {"cpu_time", "ms", I64_NONE, (double)NAN, (double)NAN, (double)NAN}};
    const struct entry *first = NULL;
    for (size_t i = 0; i < n; i++) {
        double real = 0, cpu = 0;
        if (sorted[i]->kind == ITERATION) return 0; /* they are recomputed */
        if (sorted[i]->kind != AGGREGATE || !strcmp(sorted[i]->aggregate, "cv")) continue;
        if (times_of(sorted[i], &real, &cpu, err)) return err->code;
        if (!first) first = sorted[i];
        size_t place =
            !strcmp(sorted[i]->aggregate, "mean")     ? offsetof(struct import_given, mean)
            : !strcmp(sorted[i]->aggregate, "median") ? offsetof(struct import_given, median)
            : !strcmp(sorted[i]->aggregate, "stddev") ? offsetof(struct import_given, stddev)
                                                      : 0;
        if (!place) continue;
        *(double *)((char *)&g[0] + place) = real;
        *(double *)((char *)&g[1] + place) = cpu;
    }
    if (!first) return 0;
    int64_t point;
    if (point_of(r, first, &point, err)) return err->code;
    if (!isfinite(g[0].mean)) {
        r->n_mean++;
        return 0;
    }
    g[0].n = g[1].n = count_of(first);
    r->n_given++;
    return import_given(r->im, point, g, isfinite(g[1].mean) ? 2 : 1, err);
}

/* ---- the document */

static int read_context(struct reading *r, const cJSON *context, struct err *err) {
    /* Facts of the machine and of how it was built; the others belong to the moment. */
    static const char *const machine[] = {"host_name",           "num_cpus", "cpu_model",
                                          "cpu_scaling_enabled", "caches",   "aslr_enabled",
                                          "library_build_type"};
    const cJSON *v;
    int code = 0;
    cJSON_ArrayForEach(v, context) {
        struct text value = {0};
        bool lasting = false;
        for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
            lasting = lasting || !strcmp(v->string, machine[i]);
        import_any(v, &value);
        code = import_environment(
            r->im, arena_printf(r->arena, "%scontext.%.100s", lasting ? "" : "moment.", v->string),
            value.data, cJSON_IsString(v) ? "" : "json", lasting, err);
        if (!strcmp(v->string, "num_cpus"))
            import_environment(r->im, "cpu.cores", value.data, "logical CPUs", false, NULL);
        if (!strcmp(v->string, "cpu_model"))
            import_environment(r->im, "cpu.model", value.data, "", false, NULL);
        text_free(&value);
        if (code) return code;
    }
    import_created(r->im, text_of(context, "date", ""));
    r->build = text_of(context, "bench_revision", "");
    return 0;
}

static void say(const struct reading *r, struct text *lost) {
    if (r->n_other)
        text_printf(lost, "gbench: %zu fit%s of complexity left out\n", r->n_other,
                    r->n_other == 1 ? "" : "s");
    if (r->n_given)
        text_printf(lost, "gbench: %zu run%s without repetitions: aggregates only\n", r->n_given,
                    r->n_given == 1 ? "" : "s");
    if (r->n_mean)
        text_printf(lost, "gbench: %zu run%s with neither repetitions nor a mean: no numbers\n",
                    r->n_mean, r->n_mean == 1 ? "" : "s");
}

static int read(const cJSON *document, struct import *im, struct text *lost, struct err *err) {
    const cJSON *list = get(document, "benchmarks"), *o;
    struct reading r = {.im = im, .arena = arena_create(), .build = ""};
    r.entries = arena_alloc(r.arena, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *r.entries);
    int code = cJSON_IsArray(list) ? read_context(&r, get(document, "context"), err)
                                   : err_set(err, ERR_INPUT, "there is no array 'benchmarks'");
    for (o = cJSON_IsArray(list) ? list->child : NULL; o && !code; o = o->next) {
        struct entry *e = &r.entries[r.n];
        *e = (struct entry){.o = o, .index = (int)r.n++};
        code = read_entry(&r, e, err);
    }
    if (!code) sort_entries(&r);
    for (size_t i = 0; i < r.n && !code; i++) {
        if (r.entries[i].kind == ITERATION) code = read_iteration(&r, &r.entries[i], err);
        r.n_other += r.entries[i].kind == OTHER;
    }
    for (size_t i = 0; i < r.n && !code; i++)
        if (r.entries[i].same) code = read_aggregates(&r, &r.entries[i], err);
    if (!code) say(&r, lost);
    arena_close(&r.arena);
    return code;
}

const struct importer importer_gbench = {
    .name = "gbench",
    .brief = "what Google Benchmark writes with --benchmark_format=json or to --benchmark_out",
    .knows = knows,
    .read = read,
};
