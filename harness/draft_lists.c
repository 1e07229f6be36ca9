/* SPDX-License-Identifier: Apache-2.0 */
/* [[analysis]] and [[published]]: parsed, checked against what the protocol has, written down as
 * facts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "harness/sections.h"
#include "results/analysis.h"
#include "results/summary.h"
#include "results/table.h"

/* --- names that analyses may use --- */

static void metric_names(const struct draft *d, struct names *names) {
    for (const struct metric *m = summary_metrics; m->name; m++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", m->name[0])) names_add(names, m->name);
    for (size_t i = 0; i < d->n_plans; i++) {
        const struct workload *w = d->plans[i].workload;
        if (!w) continue;
        for (const struct metric *m = w->metrics; m && m->name; m++) names_add(names, m->name);
        for (const struct phase *p = w->phases; p && p->name; p++) {
            char name[80];
            snprintf(name, sizeof name, "%s_time", p->name);
            names_add(names, name);
            snprintf(name, sizeof name, "%s_rate", p->name);
            names_add(names, name);
        }
    }
    for (const struct column *c = store_schema; c->table; c++)
        if (!strcmp(c->table, "points") &&
            (c->type == COL_F64 || !strcmp(c->name, "output_hash"))) /* equal compares text too */
            names_add(names, c->name);
}

static void key_names(const struct draft *d, struct names *names) {
    for (size_t i = 0; i < d->protocol->n_swept; i++) names_add(names, d->protocol->swept[i].key);
    for (size_t i = 0; i < d->n_plans; i++) case_keys(&d->plans[i], names, false);
    names_add(names, "case");
    names_add(names, "workload.name");
    names_add(names, "device.kind");
}

struct vocabulary {
    struct names metrics, keys, cases;
};

void draft_no_word(struct draft *d, const char *place, const char *what, const char *kind,
                   const char *word, const struct names *names) {
    const char *near = names_nearest(names, word);
    problem_at(d->problems, place, NULL, "%s: no %s is called '%.100s'%s%s%s", what, kind, word,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

void draft_check_keys(struct draft *d, const char *place, const char *what, const char *text,
                      const struct names *keys) {
    char *copy = arena_text(d->arena, text);
    for (char *item; (item = strsep(&copy, ","));) {
        item += strspn(item, " ");
        item[strcspn(item, "=<>! ")] = 0;
        if (*item && !names_have(keys, item)) draft_no_word(d, place, what, "key", item, keys);
    }
}

static bool is_word(const char *key, const char *list) { /* list: " x y metric " */
    char padded[64];
    snprintf(padded, sizeof padded, " %s ", key);
    return strstr(list, padded) != NULL;
}

/* An analysis runs along an axis: over a key that stands still there is nothing to fit. */
static void check_axis(struct draft *d, const struct setting *s) {
    struct names axes = {0};
    struct text list = {0};
    for (size_t i = 0; i < d->n_plans; i++)
        if (d->plans[i].bad)
            return; /* the axis may be that of a case whose mistakes are told already */
    for (size_t i = 0; i < d->protocol->n_swept; i++) names_add(&axes, d->protocol->swept[i].key);
    names_join(&axes, &list);
    if (!names_have(&axes, s->value))
        problem_at(d->problems, s->value_origin, NULL, "%s: %s is no axis of this protocol (%s%s)",
                   s->key, s->value, axes.n ? "its axes: " : "it has no [[sweep]]",
                   axes.n ? list.data : "");
    names_free(&axes);
    text_free(&list);
}

/* --- [[analysis]] --- */

/* Points have columns that no metric declares: a hash of what came out may be compared too. */
static bool is_column(const char *name) {
    for (const struct column *c = store_schema; c->table; c++)
        if (!strcmp(c->table, "points") && !strcmp(c->name, name)) return true;
    return false;
}

static void check_metric(struct draft *d, const char *key, const struct setting *s,
                         const char *name, const struct vocabulary *v) {
    if (!names_have(&v->metrics, name) && !is_column(name))
        draft_no_word(d, s->value_origin, key, "metric", name, &v->metrics);
}

/* "CASE:METRIC": of the row of another case. False: it has no colon. */
static bool check_companion(struct draft *d, const char *key, const struct setting *s,
                            const char *name, const struct vocabulary *v) {
    const char *colon = strchr(name, ':');
    if (!colon) return false;
    const char *other = arena_textn(d->arena, name, (size_t)(colon - name));
    if (!names_have(&v->cases, other))
        draft_no_word(d, s->value_origin, key, "case", other, &v->cases);
    else
        check_metric(d, key, s, colon + 1, v);
    return true;
}

static void check_metrics(struct draft *d, const char *key, const struct setting *s,
                          const struct vocabulary *v) {
    char *copy = arena_text(d->arena, s->value);
    for (char *item; (item = strsep(&copy, ", "));)
        if (*item && !check_companion(d, key, s, item, v)) check_metric(d, key, s, item, v);
}

/* Analyses name metrics and keys as text; by the names of these options we know which. */
static void check_reference(struct draft *d, const struct option *o, const struct setting *s,
                            const struct vocabulary *v) {
    if (o->type != OPT_TEXT || !*s->value) return;
    if (is_word(o->key, " y x ") && check_companion(d, o->key, s, s->value, v)) return;
    if (is_word(o->key, " y metric over_metric with below ")) {
        check_metric(d, o->key, s, s->value, v);
    } else if (is_word(o->key, " also ")) {
        check_metrics(d, o->key, s, v);
    } else if (is_word(o->key, " x by at over where ")) {
        if (!strcmp(o->key, "x") && names_have(&v->metrics, s->value)) return; /* y against it */
        draft_check_keys(d, s->value_origin, o->key, s->value, &v->keys);
        if (!strcmp(o->key, "x") && names_have(&v->keys, s->value)) check_axis(d, s);
    }
}

static void put_fact(struct draft *d, const char *list, size_t i, const char *key,
                     const char *value, const char *origin) {
    char full[200];
    snprintf(full, sizeof full, "%s.%zu.%s", list, i, key);
    facts_set(&d->protocol->facts, full, value, "", origin);
}

static void check_case(struct draft *d, const struct setting *s, const struct names *cases) {
    if (s && *s->value && !names_have(cases, s->value))
        draft_no_word(d, s->value_origin, "case", "case", s->value, cases);
}

static const struct analysis *find_analysis(struct draft *d, const struct declared *one) {
    const struct setting *kind = settings_find(&one->settings, "kind");
    const struct analysis *a = kind ? analysis_find(kind->value) : NULL;
    struct names names = {0};
    struct text list = {0};
    if (a) return a;
    for (const struct analysis *const *k = all_analyses; *k; k++) names_add(&names, (*k)->name);
    names_join(&names, &list);
    const char *near = kind ? names_nearest(&names, kind->value) : NULL;
    if (kind)
        problem_at(d->problems, kind->value_origin, NULL,
                   "no analysis is called '%.60s'%s%s%s (there are %s)", kind->value,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    else
        problem_at(d->problems, one->origin, NULL, "[[analysis]] needs a kind: one of %s",
                   list.data);
    names_free(&names);
    text_free(&list);
    return NULL;
}

static void parse_one(struct draft *d, const struct option *table, const char *where,
                      const struct setting *s, const struct vocabulary *v, void *params) {
    const struct option *o = option_find(table, s->key);
    struct err err = {0};
    if (!o) {
        struct names allowed = {0};
        if (!strncmp(where, "[[analysis]]", 12)) {
            names_add(&allowed, "kind");
            names_add(&allowed, "case");
        } else {
            names_add(&allowed, "at");
            names_add(&allowed, "over");
        }
        names_add_options(&allowed, table, "");
        draft_unknown(d, s->origin, s->key, where, &allowed);
        names_free(&allowed);
    } else if (s->kind == TOML_OTHER || (s->kind == TOML_ARRAY && o->type != OPT_INTS)) {
        problem_at(d->problems, s->value_origin, NULL, "%s takes one value", s->key);
    } else if ((o->type == OPT_REAL || o->type == OPT_INT) && s->kind == TOML_STRING &&
               strcmp(s->origin, "--set")) {
        problem_at(d->problems, s->value_origin, NULL, "%s takes a number, not text", s->key);
    } else if (option_parse(o, s->value, params, d->arena, &err)) {
        problem_at(d->problems, s->value_origin, NULL, "%s: %s", s->key, err.text);
    } else {
        check_reference(d, o, s, v);
    }
}

static void required(struct draft *d, const struct option *table, const char *where,
                     const struct declared *one) {
    for (const struct option *o = table; o && o->key; o++)
        if (!o->def && !settings_find(&one->settings, o->key))
            problem_at(d->problems, one->origin, NULL, "%s needs the key %s: %s", where, o->key,
                       o->help);
}

static void read_analysis(struct draft *d, size_t i, const struct vocabulary *v) {
    const struct declared *one = &d->analyses[i];
    const struct analysis *a = find_analysis(d, one);
    char where[100];
    if (!a) return;
    snprintf(where, sizeof where, "[[analysis]] %s", a->name);
    void *params = arena_alloc(d->arena, a->params_size + 1);
    for (size_t k = 0; k < one->settings.n; k++) {
        const struct setting *s = &one->settings.items[k];
        put_fact(d, "analysis", i, s->key, s->value, s->origin);
        if (!strcmp(s->key, "case"))
            check_case(d, s, &v->cases);
        else if (strcmp(s->key, "kind"))
            parse_one(d, a->params, where, s, v, params);
    }
    required(d, a->params, where, one);
    for (const struct option *o = a->params; o && o->key; o++)
        if (o->def && !settings_find(&one->settings, o->key))
            put_fact(d, "analysis", i, o->key, o->def, "default");
}

/* --- [[published]] --- */

/* Without `at` a figure stands beside the only row of its case. */
static void check_only_row(struct draft *d, const struct declared *one) {
    const struct setting *in_case = settings_find(&one->settings, "case");
    size_t n = 0;
    for (size_t k = 0; k < one->settings.n; k++) {
        const char *key = one->settings.items[k].key;
        if (!strcmp(key, "at") || !strncmp(key, "at.", 3)) return;
    }
    for (size_t i = 0; i < d->protocol->n_points; i++)
        if (!in_case || !strcmp(d->protocol->points[i].case_name, in_case->value)) n++;
    if (n > 1)
        problem_at(
            d->problems, one->origin, NULL,
            "[[published]] needs at = { KEY = VALUE }: it could stand beside any of %zu rows", n);
}

/* Numbers compare as numbers: 16 and "16" and 16.0 are one value. */
static bool point_has(const struct point *p, const char *key, const char *value) {
    const struct fact *f = facts_find(&p->facts, key);
    double a, b;
    if (!strcmp(key, "case")) return !strcmp(p->case_name, value);
    if (!f) return false;
    if (parse_f64(f->value, &a) && parse_f64(value, &b)) return a == b;
    return !strcmp(f->value, value);
}

/* `at` and `over` each name at least one row; an axis that was cut or replaced for this run may
 * have lost it. */
static void check_rows_named(struct draft *d, const struct declared *one, const char *prefix) {
    const struct setting *in_case = settings_find(&one->settings, "case"), *first = NULL;
    size_t n = strlen(prefix);
    if (d->request->quick || d->request->n_sets) return;
    for (size_t i = 0; i < d->n_plans; i++)
        if (d->plans[i].bad) return;
    for (size_t i = 0; i < d->protocol->n_points; i++) {
        const struct point *p = &d->protocol->points[i];
        bool all = !in_case || !strcmp(p->case_name, in_case->value);
        for (size_t k = 0; k < one->settings.n; k++) {
            const struct setting *s = &one->settings.items[k];
            if (strncmp(s->key, prefix, n)) continue;
            if (!first) first = s;
            all = all && point_has(p, s->key + n, s->value);
        }
        if (!first || all) return;
    }
    if (first)
        problem_at(d->problems, first->value_origin, NULL, "no row has %s = %s", first->key + n,
                   first->value);
}

/* Whether --set put another model in the place of the one that the figure is about: it stands
   beside ours then, and fails no run. */
static bool of_another_model(const struct draft *d, const struct declared *one) {
    const struct setting *in_case = settings_find(&one->settings, "case");
    bool model = false;
    for (size_t i = 0; i < d->protocol->n_points; i++) {
        const struct point *p = &d->protocol->points[i];
        model |= p->has_model && (!in_case || !strcmp(p->case_name, in_case->value));
    }
    for (size_t i = 0; model && i < d->sets.n; i++) {
        const char *key = d->sets.items[i].key;
        if (!strcmp(key, "model.file") || !strcmp(key, "model.shape") || !strncmp(key, "shape.", 6))
            return true;
    }
    return false;
}

static void read_published(struct draft *d, size_t i, const struct vocabulary *v) {
    const struct declared *one = &d->published[i];
    struct published_params params;
    option_defaults(published_options, &params, d->arena);
    for (size_t k = 0; k < one->settings.n; k++) {
        const struct setting *s = &one->settings.items[k];
        const char *dot = strchr(s->key, '.');
        bool where = !strncmp(s->key, "at.", 3) || !strncmp(s->key, "over.", 5) ||
                     !strcmp(s->key, "at") || !strcmp(s->key, "over");
        put_fact(d, "published", i, s->key, s->value, s->origin);
        if (where && dot)
            draft_check_keys(d, s->origin, "[[published]]", dot + 1, &v->keys);
        else if (where)
            draft_check_keys(d, s->value_origin, s->key, s->value, &v->keys);
        else
            parse_one(d, published_options, "[[published]]", s, v, &params);
    }
    check_case(d, settings_find(&one->settings, "case"), &v->cases);
    if (of_another_model(d, one)) put_fact(d, "published", i, "model", "another", "--set");
    check_only_row(d, one);
    check_rows_named(d, one, "at.");
    check_rows_named(d, one, "over.");
    required(d, published_options, "[[published]]", one);
}

/* Whether it speaks of a key that was left behind with the device: in the name of a setting
 * ("at.device.threads") or in the text of one ("device.threads=0, ..."). */
static bool is_left_behind(struct draft *d, const struct declared *one) {
    for (size_t i = 0; i < one->settings.n; i++) {
        const struct setting *s = &one->settings.items[i];
        const char *name = strchr(s->key, '.');
        if (name && draft_left_behind(d, name + 1)) return true;
        if (!is_word(s->key, " x by at over where ")) continue;
        char *copy = arena_text(d->arena, s->value);
        for (char *item; (item = strsep(&copy, ","));) {
            item += strspn(item, " ");
            item[strcspn(item, "=<>! ")] = 0;
            if (draft_left_behind(d, item)) return true;
        }
    }
    return false;
}

static size_t without_left_behind(struct draft *d, struct declared *list, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_left_behind(d, &list[i])) list[kept++] = list[i];
    return kept;
}

void draft_lists(struct draft *d) {
    struct vocabulary v = {{0}, {0}, {0}};
    for (size_t i = 0; i < d->n_plans; i++)
        if (!d->plans[i].workload) return; /* its metrics cannot be known */
    d->n_analyses = without_left_behind(d, d->analyses, d->n_analyses);
    d->n_published = without_left_behind(d, d->published, d->n_published);
    metric_names(d, &v.metrics);
    key_names(d, &v.keys);
    for (size_t i = 0; i < d->n_cases; i++) names_add(&v.cases, d->cases[i].name);
    for (size_t i = 0; i < d->n_analyses; i++) read_analysis(d, i, &v);
    for (size_t i = 0; i < d->n_published; i++) read_published(d, i, &v);
    draft_gate_names(d, &v.metrics, &v.keys);
    names_free(&v.metrics);
    names_free(&v.keys);
    names_free(&v.cases);
}
