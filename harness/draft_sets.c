/* SPDX-License-Identifier: Apache-2.0 */
/* --set KEY=VALUE: settings that go before the file's, and axes that are replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "harness/draft.h"
#include "workloads/model/model.h"

/* "[1, 2, 4]", "1,2,4", "bf16": the texts between the commas. */
static struct axis_value *parse_list(struct arena *arena, const char *text, size_t *n) {
    char *copy = arena_text(arena, text), *p = copy + strspn(copy, " ");
    size_t len = strlen(p), cap = 0;
    struct axis_value *items = NULL;
    *n = 0;
    while (len && p[len - 1] == ' ') p[--len] = 0;
    if (len > 1 && *p == '[' && p[len - 1] == ']') {
        p[len - 1] = 0;
        p++;
        p += strspn(p, " ");
        if (!*p) return NULL;
    }
    for (char *item; (item = strsep(&p, ","));) {
        item += strspn(item, " \"'");
        for (size_t k = strlen(item); k && strchr(" \"'", item[k - 1]); k--) item[k - 1] = 0;
        struct axis_value *v = draft_grow(arena, &items, n, &cap, sizeof *v);
        *v = (struct axis_value){item, "--set"};
    }
    return items;
}

static void axis_keys(const struct draft *d, struct names *names) {
    for (size_t c = 0; c <= d->n_cases; c++) {
        const struct scope *scope = c < d->n_cases ? &d->cases[c] : &d->top;
        for (size_t i = 0; i < scope->axes.n; i++)
            for (size_t k = 0; k < scope->axes.items[i].n_keys; k++)
                names_add(names, scope->axes.items[i].keys[k].key);
    }
}

static void replace_axis(struct draft *d, const char *key, const char *value) {
    size_t n = 0, found = 0;
    struct axis_value *items = parse_list(d->arena, value, &n);
    if (!n) {
        problem_at(d->problems, "", NULL, "--set sweep.%s: the list is empty", key);
        return;
    }
    for (size_t c = 0; c <= d->n_cases; c++) {
        struct scope *scope = c < d->n_cases ? &d->cases[c] : &d->top;
        for (size_t i = 0; i < scope->axes.n; i++)
            for (size_t k = 0; k < scope->axes.items[i].n_keys; k++) {
                struct axis_key *a = &scope->axes.items[i].keys[k];
                if (strcmp(a->key, key)) continue;
                a->items = items;
                a->n = n;
                a->origin = "--set";
                found++;
            }
    }
    if (found) return;
    struct names names = {0};
    struct text list = {0};
    axis_keys(d, &names);
    names_join(&names, &list);
    const char *near = names_nearest(&names, key);
    problem_at(d->problems, "", NULL,
               "--set sweep.%.100s: this protocol has no such axis%s%s%s (its axes: %s)", key,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
}

static void put(struct draft *d, struct settings *to, const char *key, const char *value) {
    struct setting *s = draft_grow(d->arena, &to->items, &to->n, &to->cap, sizeof *s);
    *s = (struct setting){.key = key,
                          .origin = "--set",
                          .value = value,
                          .value_origin = "--set",
                          .kind = TOML_STRING};
}

/* What comes without a section is looked for in all of them: "batch" is near to "workload.batch".
 */
static void unknown_set(struct draft *d, const char *key) {
    struct names names = {0};
    const char *near = NULL;
    const struct setting *name = settings_find(&d->top.settings, "workload.name");
    const struct workload *w = name ? workload_find(name->value) : NULL;
    if (w) names_add_options(&names, w->params, "workload.");
    for (size_t i = 0; i < d->n_cases; i++) {
        name = settings_find(&d->cases[i].settings, "workload.name");
        w = name ? workload_find(name->value) : NULL;
        if (w) names_add_options(&names, w->params, "workload.");
    }
    names_add_options(&names, model_options, "model.");
    names_add_options(&names, measure_options, "measure.");
    names_add_options(&names, gate_options, "gate.");
    names_add(&names, "device.kind");
    for (size_t i = 0; i < names.n && !near; i++)
        if (!strcmp(strchr(names.items[i], '.') + 1, key)) near = names.items[i];
    if (!near) near = names_nearest(&names, key);
    problem_at(
        d->problems, "", NULL,
        "--set: unknown key '%.100s'%s%s%s (keys begin with workload., model., shape., device., "
        "measure., gate. or sweep.)",
        key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    names_free(&names);
}

static void apply_set(struct draft *d, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        problem_at(d->problems, "", NULL, "--set '%.100s': KEY=VALUE is needed", text);
        return;
    }
    if (!utf8_valid(text, strlen(text))) {
        problem_at(d->problems, "", NULL, "--set: the text is not UTF-8");
        return;
    }
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p >= 0x20 && *p != 0x7f) continue;
        problem_at(d->problems, "", NULL, "--set: the text has a control character");
        return;
    }
    size_t n = (size_t)(equals - text);
    while (n && text[n - 1] == ' ') n--;
    const char *key = arena_textn(d->arena, text, n);
    const char *value = arena_text(d->arena, equals + 1 + strspn(equals + 1, " "));
    if (!strncmp(key, "sweep.", 6))
        replace_axis(d, key + 6, value);
    else if (!strncmp(key, "measure.", 8))
        put(d, &d->measure, key, value);
    else if (!strncmp(key, "gate.", 5))
        put(d, &d->gate, key, value);
    else if (!strncmp(key, "workload.", 9) || !strncmp(key, "model.", 6) ||
             !strncmp(key, "shape.", 6) || !strncmp(key, "device.", 7))
        put(d, &d->sets, key, value);
    else if (!strcmp(key, "title"))
        d->protocol->title = value;
    else if (!strcmp(key, "question"))
        d->protocol->question = value;
    else
        unknown_set(d, key);
}

void draft_sets(struct draft *d) {
    for (size_t i = 0; i < d->request->n_sets; i++) {
        apply_set(d, d->request->sets[i]);
        char key[32];
        snprintf(key, sizeof key, "set.%zu", i);
        facts_set(&d->protocol->facts, key, d->request->sets[i], "", "--set");
    }
}
