/* SPDX-License-Identifier: Apache-2.0 */
/* llama-bench's json and jsonl: a test is a row, its samples_ns are executions; without them the
 * averages stay what was given. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/import.h"
#include "results/llama_fields.h"
#include "results/table.h"

static const cJSON *get(const cJSON *o, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static bool is_test(const cJSON *o) {
    return cJSON_IsObject(o) && get(o, "n_prompt") && get(o, "n_gen") &&
           (get(o, "avg_ns") || get(o, "avg_ts") || get(o, "samples_ns"));
}

static bool knows(const cJSON *document) {
    return is_test(document) || (cJSON_IsArray(document) && is_test(document->child));
}

/* ---- what a test is */

struct reading { /* of one entry */
    struct import *im;
    const cJSON *o;
    char where[32];
    int64_t n_prompt, n_gen, n_depth;
    struct import_key keys[N_LLAMA_FIELDS + 1];
    size_t n_keys;
    struct arena *arena;
};

/* A field's value as its type writes it: bool of an older version for what is an int now, and the
 * like. */
static const char *value_of(struct reading *r, const struct llama_field *f, const cJSON *v) {
    struct text t = {0};
    const char *value;
    if (cJSON_IsBool(v))
        text_puts(&t, f->type == LLAMA_INT ? cJSON_IsTrue(v) ? "1" : "0"
                      : cJSON_IsTrue(v)    ? "true"
                                           : "false");
    else
        import_any(v, &t);
    value = arena_text(r->arena, t.data);
    if (f->type == LLAMA_BOOL && !strcmp(value, "1")) value = "true";
    if (f->type == LLAMA_BOOL && !strcmp(value, "0")) value = "false";
    text_free(&t);
    return value;
}

/* Identity as llama.cpp's own comparison has it, but for the machine; a file lies elsewhere on
 * another machine: its folder is none of it. */
static void key_add(struct reading *r, const struct llama_field *f, const char *value) {
    static const char *const sizes[] = {"n_prompt", "n_gen", "n_depth"};
    const char *slash = strrchr(value, '/');
    unsigned flags = 0;
    /* A setting as usual is as if it were not there: files of versions that had none stay the same.
     */
    bool usual = f->role == LLAMA_SETTING && f->usual && !strcmp(value, f->usual);
    if ((f->role == LLAMA_SETTING || f->role == LLAMA_IDENTITY) && !usual)
        flags = IMPORT_IDENTITY | IMPORT_AXIS;
    if (f->type == LLAMA_INT) flags |= IMPORT_WHOLE;
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(f->name, sizes[i])) flags |= IMPORT_NAMED;
    if (!strcmp(f->name, "model_filename") && slash) value = slash + 1;
    r->keys[r->n_keys++] = (struct import_key){f->name, value, flags};
}

static int read_keys(struct reading *r, struct err *err) {
    for (const struct llama_field *f = llama_fields; f->name; f++) {
        const cJSON *v = get(r->o, f->name);
        int64_t whole;
        double real;
        if (!v || cJSON_IsNull(v)) continue;
        if (f->type == LLAMA_INT && !cJSON_IsBool(v) &&
            import_whole(r->o, f->name, r->where, &whole, err))
            return err->code;
        if (f->type == LLAMA_REAL && import_number(r->o, f->name, r->where, &real, err))
            return err->code;
        key_add(r, f, value_of(r, f, v));
    }
    return 0;
}

static int size_of(struct reading *r, const char *name, bool needed, int64_t *n, struct err *err) {
    *n = 0;
    if (!needed && !get(r->o, name)) return 0;
    if (import_whole(r->o, name, r->where, n, err)) return err->code;
    if (*n < 0 || *n > (int64_t)1 << 40)
        return err_set(err, ERR_INPUT, "%s.%s is %" PRId64 ": a number of tokens is needed",
                       r->where, name, *n);
    return 0;
}

static const char *text_of(struct reading *r, const char *name, const char *otherwise) {
    const cJSON *v = get(r->o, name);
    return cJSON_IsString(v) ? v->valuestring : otherwise;
}

static const char *label_of(struct reading *r) {
    struct text t = {0};
    if (r->n_prompt) text_printf(&t, "pp%" PRId64, r->n_prompt);
    if (r->n_gen) text_printf(&t, "%stg%" PRId64, t.len ? "+" : "", r->n_gen);
    if (r->n_depth) text_printf(&t, " @ d%" PRId64, r->n_depth);
    const char *label = arena_text(r->arena, t.data);
    text_free(&t);
    return label;
}

/* ---- its numbers */

static int disagrees(struct reading *r, const char *name, double said, double is, struct err *err) {
    char a[40], b[40];
    return err_set(err, ERR_INPUT, "%s.%s is %s, but its samples_ns give %s", r->where, name,
                   format_exact(a, sizeof a, said), format_exact(b, sizeof b, is));
}

static int read_samples(struct reading *r, const cJSON *samples, int64_t point, struct err *err) {
    const cJSON *s;
    double sum = 0, rates = 0, said;
    int64_t n = 0, tokens = r->n_prompt + r->n_gen;
    cJSON_ArrayForEach(s, samples) {
        double ns = cJSON_IsNumber(s) ? s->valuedouble : (double)NAN;
        if (!(ns >= 1 && ns <= 0x1p53) || nearbyint(ns) < ns || nearbyint(ns) > ns)
            return err_set(err, ERR_INPUT,
                           "%s.samples_ns[%" PRId64
                           "]: whole nanoseconds from 1 to 2^53 are needed",
                           r->where, n);
        sum += ns;
        rates += 1e9 * (double)tokens / ns;
        n++;
    }
    if (cJSON_IsNumber(get(r->o, "avg_ns"))) { /* cut to a whole number there */
        said = get(r->o, "avg_ns")->valuedouble;
        if (!(fabs(said - sum / (double)n) <= 1 + 1e-6 * said))
            return disagrees(r, "avg_ns", said, sum / (double)n, err);
    }
    if (cJSON_IsNumber(get(r->o, "avg_ts"))) {
        said = get(r->o, "avg_ts")->valuedouble;
        if (!(fabs(said - rates / (double)n) <= 1e-6 + 1e-5 * said))
            return disagrees(r, "avg_ts", said, rates / (double)n, err);
    }
    int64_t visit;
    if (import_visit(r->im, point, 1, &visit, err)) return err_prefix(err, "%s", r->where);
    n = 0;
    cJSON_ArrayForEach(s, samples) import_sample(r->im, visit, n++, (int64_t)s->valuedouble);
    return 0;
}

/* Numbers that may be absent; the rate has its own deviation. */
static double number_of(struct reading *r, const char *name) {
    const cJSON *v = get(r->o, name);
    return cJSON_IsNumber(v) && isfinite(v->valuedouble) ? v->valuedouble : (double)NAN;
}

static int read_given(struct reading *r, int64_t point, const char *rate, struct err *err) {
    double ns = number_of(r, "avg_ns"), ts = number_of(r, "avg_ts");
    if (!(ns > 0) && !(ts > 0))
        return err_set(err, ERR_INPUT, "%s has neither samples_ns nor a positive avg_ns or avg_ts",
                       r->where);
    const struct import_given all[] = {
        {"time", "ms", I64_NONE, ns * 1e-6, number_of(r, "stddev_ns") * 1e-6, (double)NAN},
        {rate, "token/s", I64_NONE, ts, number_of(r, "stddev_ts"), (double)NAN}};
    size_t first = ns > 0 ? 0 : 1, n = ts > 0 ? 2 : 1;
    if (import_given(r->im, point, all + first, n - first, err))
        return err_prefix(err, "%s", r->where);
    return 0;
}

static int read_machine(struct reading *r, struct err *err) {
    static const char *const facts[][2] = {{"cpu_info", "cpu.model"}, {"gpu_info", "gpu.name"}};
    int code = 0;
    for (size_t i = 0; i < 2 && !code; i++) {
        const char *value = text_of(r, facts[i][0], "");
        if (*value) code = import_environment(r->im, facts[i][1], value, "", true, err);
        if (code) return err_prefix(err, "%s", r->where);
    }
    if (*text_of(r, "test_time", "")) import_created(r->im, text_of(r, "test_time", ""));
    return code;
}

static int read_test(struct reading *r, size_t *without, struct err *err) {
    const cJSON *samples = get(r->o, "samples_ns");
    char effective[120];
    int64_t point, threads = 0;
    int code = size_of(r, "n_prompt", true, &r->n_prompt, err);
    if (!code) code = size_of(r, "n_gen", true, &r->n_gen, err);
    if (!code) code = size_of(r, "n_depth", false, &r->n_depth, err);
    if (!code && r->n_prompt + r->n_gen == 0)
        code = err_set(err, ERR_INPUT, "%s reads no token and generates none", r->where);
    if (!code) code = read_keys(r, err);
    if (!code) code = read_machine(r, err);
    if (code) return code;
    const char *kind = !r->n_gen ? "prefill" : !r->n_prompt ? "decode" : "both";
    if (cJSON_IsNumber(get(r->o, "n_threads")))
        code = import_whole(r->o, "n_threads", r->where, &threads, err);
    snprintf(effective, sizeof effective, "%.60s", text_of(r, "backends", "llama.cpp"));
    if (threads > 0) {
        size_t n = strlen(effective);
        snprintf(effective + n, sizeof effective - n, " threads=%" PRId64, threads);
    }
    struct import_test test = {
        .workload = "llama-bench",
        .case_name = kind,
        .label = label_of(r),
        .effective = effective,
        .build = text_of(r, "build_commit", ""),
        .keys = r->keys,
        .n_keys = r->n_keys,
    };
    if (!code) code = import_point(r->im, &test, &point, err);
    if (code) return err_prefix(err, "%s", r->where);
    import_phase(r->im, point, kind, r->n_gen ? "token" : "prompt token",
                 (double)(r->n_prompt + r->n_gen));
    if (cJSON_IsArray(samples) && samples->child) return read_samples(r, samples, point, err);
    char rate[32];
    snprintf(rate, sizeof rate, "%s_rate", kind);
    ++*without;
    return read_given(r, point, rate, err);
}

static int read(const cJSON *document, struct import *im, struct text *lost, struct err *err) {
    const cJSON *o = cJSON_IsArray(document) ? document->child : document;
    size_t without = 0;
    int code = 0;
    for (int i = 0; o && !code; o = cJSON_IsArray(document) ? o->next : NULL, i++) {
        struct reading r = {.im = im, .o = o, .arena = arena_create()};
        snprintf(r.where, sizeof r.where, "[%d]", i);
        code = cJSON_IsObject(o) ? read_test(&r, &without, err)
                                 : err_set(err, ERR_INPUT, "%s is no object", r.where);
        arena_close(&r.arena);
    }
    if (!code && without)
        text_printf(lost,
                    "llama-bench: %zu test%s without samples_ns: averages only, flag aggregates\n",
                    without, without == 1 ? "" : "s");
    return code;
}

const struct importer importer_llama_bench = {
    .name = "llama-bench",
    .brief = "what llama.cpp's llama-bench writes with -o json or -o jsonl",
    .knows = knows,
    .read = read,
};
