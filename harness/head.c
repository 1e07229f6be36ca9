/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a journal: protocol, machine, points with their ledger, phases and metrics. */
#include "harness/head.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "gen/build_info.h"
#include "probes/probe.h"
#include "results/summary.h"

enum { POINTS_IN_FULL = 1000 }; /* of further points only what differs from the defaults is kept */

void head_meta(struct tables *tables, const char *key, const char *value) {
    struct table *t = tables_get(tables, "meta");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "key", key);
    table_set_text(t, row, "value", value);
}

static void facts_rows(struct tables *tables, const char *scope, const struct facts *facts,
                       bool defaults) {
    struct table *t = tables_get(tables, "protocol");
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        if (!defaults && !strcmp(f->origin, "default")) continue;
        int64_t row = table_add(t, 1);
        table_set_text(t, row, "scope", scope);
        table_set_text(t, row, "key", f->key);
        table_set_text(t, row, "value", f->value);
        table_set_text(t, row, "unit", f->unit);
        table_set_text(t, row, "origin", f->origin);
    }
}

static void swept_cell(struct table *t, int64_t row, const struct swept_key *key,
                       const char *value) {
    int64_t i;
    double f;
    switch (key->type) {
    case OPT_INT:
        if (parse_i64(value, &i)) table_set_i64(t, row, key->key, i);
        break;
    case OPT_BYTES:
        if (parse_bytes(value, &i)) table_set_i64(t, row, key->key, i);
        break;
    case OPT_TIME:
        if (parse_time(value, &i)) table_set_i64(t, row, key->key, i);
        break;
    case OPT_REAL:
        if (parse_f64(value, &f)) table_set_f64(t, row, key->key, f);
        break;
    default: table_set_text(t, row, key->key, value);
    }
}

static void swept_columns(const struct protocol *p, struct table *t) {
    for (size_t i = 0; i < p->n_swept; i++) {
        enum option_type type = p->swept[i].type;
        bool whole = type == OPT_INT || type == OPT_BYTES || type == OPT_TIME;
        const char *unit = type == OPT_BYTES ? "byte" : type == OPT_TIME ? "ns" : p->swept[i].unit;
        table_column(t, p->swept[i].key,
                     whole              ? COL_I64
                     : type == OPT_REAL ? COL_F64
                                        : COL_TEXT,
                     unit ? unit : "", "swept key");
    }
}

void head_phases(struct tables *tables, const struct point *p, const struct plan *plan) {
    struct table *t = tables_get(tables, "phases");
    for (int i = 0; i < MAX_PHASES && p->workload->phases[i].name; i++) {
        const struct work *work = &plan->work[i];
        double bytes = 0;
        for (int c = 0; c < N_CLASSES; c++) bytes += work->bytes[c];
        int64_t row = table_add(t, 1), token = 0;
        for (const struct mark *m = p->workload->marks; m && m->name; m++) {
            if (m->phase == i && !strcmp(m->name, "token")) token = 1;
        }
        table_set_i64(t, row, "point", p->index);
        table_set_i64(t, row, "phase", i);
        table_set_text(t, row, "name", p->workload->phases[i].name);
        table_set_text(t, row, "item", p->workload->phases[i].item);
        table_set_f64(t, row, "items", work->items);
        table_set_f64(t, row, "flops", work->flops);
        table_set_f64(t, row, "bytes", bytes);
        table_set_i64(t, row, "marks", token);
    }
}

void head_ledger(struct table *points, int64_t row, const struct plan *plan) {
    char name[40];
    table_set_f64(points, row, "flops", plan_flops(plan));
    table_set_f64(points, row, "bytes", plan_bytes(plan));
    for (int c = 0; c < N_CLASSES; c++) {
        double bytes = 0;
        for (int k = 0; k < MAX_PHASES; k++) bytes += plan->work[k].bytes[c];
        snprintf(name, sizeof name, "bytes_%s", memory_class_names[c]);
        table_set_f64(points, row, name, bytes);
    }
}

static void requested_text(const struct point *p, struct text *out) {
    text_puts(out, p->device->name);
    static const char *const keys[] = {"device.isa", "device.threads", "model.type",
                                       "model.kv_type", "model.layout"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct fact *f = facts_find(&p->facts, keys[i]);
        if (f) text_printf(out, " %s=%s", strchr(f->key, '.') + 1, f->value);
    }
}

static void point_rows(const struct protocol *p, struct tables *tables) {
    struct table *t = tables_get(tables, "points");
    swept_columns(p, t);
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        int64_t row = table_add(t, 1);
        char hash[17];
        struct text requested = {0};
        requested_text(point, &requested);
        table_set_i64(t, row, "point", point->index);
        table_set_text(t, row, "case", point->case_name);
        table_set_text(t, row, "label", point->label);
        table_set_text(t, row, "cell", point->cell);
        table_set_text(t, row, "hash", hash_text(hash, point->cell_hash));
        if (point->side) table_set_text(t, row, "side", point->side);
        table_set_text(t, row, "workload", point->workload->name);
        table_set_text(t, row, "device", point->device->name);
        table_set_text(t, row, "basis", point->plan.theory ? "theory" : "");
        table_set_text(t, row, "requested", requested.data);
        table_set_f64(t, row, "live_bytes", (double)plan_live_bytes(&point->plan));
        if (point->has_model) {
            int64_t scales = 0, weights = model_weight_bytes(&point->config, &scales);
            table_set_i64(t, row, "model_parameters", model_parameters(&point->config.shape));
            table_set_i64(t, row, "model_bytes", weights + scales);
        }
        table_set_text(t, row, "binding", dtype_names[point->plan.binding_type]);
        head_ledger(t, row, &point->plan);
        for (size_t k = 0; k < p->n_swept; k++) {
            const struct fact *f = facts_find(&point->facts, p->swept[k].key);
            if (f) swept_cell(t, row, &p->swept[k], f->value);
        }
        text_free(&requested);
        head_phases(tables, point, &point->plan);
        char scope[24];
        snprintf(scope, sizeof scope, "%lld", (long long)point->index);
        facts_rows(tables, scope, &point->facts, i < POINTS_IN_FULL);
    }
}

static void metric_row(struct tables *tables, const char *workload, const struct metric *m) {
    static const char *const better[] = {"none", "lower", "higher"};
    struct table *t = tables_get(tables, "metrics");
    int64_t row = table_add(t, 1);
    table_set_text(t, row, "workload", workload);
    table_set_text(t, row, "name", m->name);
    table_set_text(t, row, "unit", m->unit);
    table_set_text(t, row, "better", better[m->better]);
    table_set_i64(t, row, "exact", m->exact);
    table_set_text(t, row, "help", m->help);
}

/* What probes may report: declared for all workloads. */
static void probe_rows(struct tables *tables) {
    for (const struct probe *const *p = all_probes; *p; p++)
        for (const struct channel *c = (*p)->channels; c->name; c++) {
            char name[100];
            snprintf(name, sizeof name, "%s.%s", (*p)->name, c->name);
            struct metric m = {.name = name, .unit = c->unit, .help = c->help};
            metric_row(tables, "", &m);
        }
}

static void metric_rows(const struct protocol *p, struct tables *tables) {
    for (const struct metric *m = summary_metrics; m->name; m++) metric_row(tables, "", m);
    for (size_t i = 0; i < p->n_points; i++) {
        const struct workload *w = p->points[i].workload;
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = p->points[k].workload == w;
        for (const struct metric *m = seen ? NULL : w->metrics; m && m->name; m++)
            metric_row(tables, w->name, m);
    }
    probe_rows(tables);
}

static void environment_rows(struct tables *tables, const struct facts *environment) {
    struct table *t = tables_get(tables, "environment");
    for (size_t i = 0; i < environment->n; i++) {
        const struct fact *f = &environment->items[i];
        int64_t row = table_add(t, 1);
        table_set_text(t, row, "key", f->key);
        table_set_text(t, row, "value", f->value);
        table_set_text(t, row, "unit", f->unit);
        table_set_text(t, row, "origin", f->origin);
    }
}

void head_tables(const struct protocol *p, const struct facts *environment, struct tables *tables) {
    char date[32], number[32];
    head_meta(tables, "tool", "bench");
    head_meta(tables, "tool_version", BENCH_VERSION);
    head_meta(tables, "created", clock_rfc3339(date));
    snprintf(number, sizeof number, "%lld", (long long)p->measure.seed);
    head_meta(tables, "seed", number);
    head_meta(tables, "protocol_name", p->name);
    head_meta(tables, "title", p->title);
    head_meta(tables, "question", p->question);
    head_meta(tables, "quick", p->measure.quick ? "yes" : "no");
    head_meta(tables, "profile", p->measure.profile ? "yes" : "no");
    facts_rows(tables, "protocol", &p->facts, true);
    struct table *t = tables_get(tables, "files");
    for (size_t i = 0; i < p->n_files; i++) {
        char digest[17];
        int64_t row = table_add(t, 1);
        table_set_text(t, row, "path", p->files[i].path);
        table_set_text(t, row, "text", p->files[i].text);
        table_set_text(
            t, row, "digest",
            hash_text(digest, hash_bytes(p->files[i].text, strlen(p->files[i].text), 0)));
    }
    environment_rows(tables, environment);
    point_rows(p, tables);
    metric_rows(p, tables);
}

/* Facts that may differ between two sittings of one run: load and clocks of the moment. */
static bool momentary(const char *key) {
    static const char *const prefixes[] = {"load.", "moment.", "memory.free"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (!strncmp(key, prefixes[i], strlen(prefixes[i]))) return true;
    }
    return false;
}

static const char *find(const struct table *t, const char *scope, const char *key) {
    for (int64_t i = 0; i < table_rows(t); i++) {
        bool in_scope = !scope || !strcmp(table_text(t, i, "scope"), scope);
        if (in_scope && !strcmp(table_text(t, i, "key"), key)) return table_text(t, i, "value");
    }
    return NULL;
}

bool head_changed(const struct tables *then, const struct tables *now, char *sentence,
                  size_t size) {
    static const char *const names[] = {"environment", "protocol"};
    for (int k = 0; k < 2; k++) {
        const struct table *a = tables_peek(then, names[k]), *b = tables_peek(now, names[k]);
        for (int64_t i = 0; i < table_rows(b); i++) {
            const char *key = table_text(b, i, "key"), *value = table_text(b, i, "value");
            const char *scope = k ? table_text(b, i, "scope") : NULL;
            bool same_row = i < table_rows(a) && !strcmp(table_text(a, i, "key"), key) &&
                            (!scope || !strcmp(table_text(a, i, "scope"), scope));
            const char *old = same_row ? table_text(a, i, "value") : find(a, scope, key);
            if (momentary(key) || (old && !strcmp(old, value))) continue;
            snprintf(sentence, size, "%s was '%.120s' and is now '%.120s'", key, old ? old : "",
                     value);
            return true;
        }
    }
    return false;
}

int head_append_end(struct journal *journal, bool complete, const char *why_ended,
                    struct err *err) {
    struct tables *end = tables_create();
    head_meta(end, "complete", complete ? "yes" : "no");
    head_meta(end, "why_ended", why_ended);
    int code = journal_append(journal, JOURNAL_END, end, err);
    tables_close(&end);
    return code;
}
