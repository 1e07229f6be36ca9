/* SPDX-License-Identifier: Apache-2.0 */
/* One point: facts to parameters, checked and planned; the same in the supervisor and in a worker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/names.h"
#include "harness/protocol.h"

struct reading { /* of one point */
    struct point *point;
    const struct facts *given;
    struct arena *arena;
    struct problems *problems;
    bool failed; /* a value did not parse or was missing: checks and plan are left out */
};

double plan_flops(const struct plan *plan) {
    double sum = 0;
    for (int i = 0; i < MAX_PHASES; i++) sum += plan->work[i].flops;
    return sum;
}

double plan_bytes(const struct plan *plan) {
    double sum = 0;
    for (int i = 0; i < MAX_PHASES; i++)
        for (int c = 0; c < N_CLASSES; c++) sum += plan->work[i].bytes[c];
    return sum;
}

int64_t plan_live_bytes(const struct plan *plan) {
    int64_t sum = 0;
    for (int c = 0; c < N_CLASSES; c++) sum += plan->bytes[c];
    return sum;
}

/* 'auto' is asked for once: opening a GPU to see whether it is there takes long. */
static const struct device_kind *auto_kind(void) {
    static const struct device_kind *found;
    const struct device_kind *cuda = device_kind_find("cuda");
    if (!found && cuda) {
        struct arena *arena = arena_create();
        void *params = arena_alloc(arena, cuda->params_size + 1);
        struct device *device = NULL;
        struct err err = {0};
        option_defaults(cuda->params, params, arena);
        if (!device_open(&device, cuda, params, &err)) found = cuda;
        device_close(&device);
        arena_close(&arena);
    }
    if (!found) found = device_kind_find("cpu");
    if (!found) found = device_kind_find("ref");
    return found;
}

const struct device_kind *point_device_kind(const char *name, struct err *err) {
    struct names names = {0};
    struct text list = {0};
    const struct device_kind *kind = strcmp(name, "auto") ? device_kind_find(name) : auto_kind();
    if (kind) return kind;
    for (const struct device_absent *gone = all_devices_absent; gone->name; gone++)
        if (!strcmp(gone->name, name)) {
            err_set(err, ERR_INPUT, "device %s is not in this build: %s", name, gone->reason);
            return NULL;
        }
    names_add(&names, "auto");
    for (const struct device_kind *const *d = all_devices; *d; d++) names_add(&names, (*d)->name);
    names_join(&names, &list);
    const char *near = names_nearest(&names, name);
    err_set(err, ERR_INPUT, "no device is called '%.60s'%s%s%s (there are %s)", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
    return NULL;
}

/* The fact of an option, under its name of today or a former one. */
static const struct fact *fact_of(const struct facts *facts, const char *prefix,
                                  const struct option *o) {
    char key[160];
    snprintf(key, sizeof key, "%s%s", prefix, o->key);
    const struct fact *fact = facts_find(facts, key);
    if (!fact && o->was) {
        snprintf(key, sizeof key, "%s%s", prefix, o->was);
        fact = facts_find(facts, key);
    }
    return fact;
}

/* What is missing is told where its section begins, or its name stands. */
static void missing(struct reading *r, const char *prefix, const struct option *o,
                    const char *anchor) {
    struct text allowed = {0};
    const struct fact *at = facts_find(r->given, anchor);
    option_allowed(o, &allowed);
    problem_at(r->problems, at && strchr(at->origin, ':') ? at->origin : "", NULL,
               "%s%s is required: %s", prefix, o->key, allowed.data);
    text_free(&allowed);
    r->failed = true;
}

static void read_section(struct reading *r, const struct option *table, const char *prefix,
                         void *params, const char *anchor) {
    option_defaults(table, params, r->arena);
    for (const struct option *o = table; o && o->key; o++) {
        const struct fact *fact = fact_of(r->given, prefix, o);
        struct err err = {0};
        struct text key = {0}, value = {0};
        if (!fact && !o->def) {
            missing(r, prefix, o, anchor);
            continue;
        }
        if (fact && option_parse(o, fact->value, params, r->arena, &err)) {
            problem_at(r->problems, strchr(fact->origin, ':') ? fact->origin : "", NULL, "%s%s: %s",
                       prefix, o->key, err.text);
            r->failed = true;
            continue;
        }
        text_printf(&key, "%s%s", prefix, o->key);
        text_add(&value, "", 0);
        option_format(o, params, &value);
        facts_set(&r->point->facts, key.data, value.data, o->unit, fact ? fact->origin : "default");
        text_free(&key);
        text_free(&value);
    }
}

static const struct option no_options[] = {{0}};

/* Facts that no section of this point reads: a worker of another version, or an edited file. */
static void unknown_facts(struct reading *r) {
    for (size_t i = 0; i < r->given->n; i++) {
        const struct fact *f = &r->given->items[i];
        const char *dot = strchr(f->key, '.');
        const struct option *table = NULL;
        if (!strncmp(f->key, "workload.", 9) && r->point->workload)
            table = r->point->workload->params ? r->point->workload->params : no_options;
        else if (!strncmp(f->key, "model.", 6))
            table = r->point->has_model ? model_options : no_options;
        else if (!strncmp(f->key, "shape.", 6))
            table = r->point->has_model ? shape_options : no_options;
        else if (!strncmp(f->key, "device.", 7) && r->point->device)
            table = r->point->device->params ? r->point->device->params : no_options;
        if (!table || option_find(table, dot + 1) || !strcmp(f->key, "workload.name") ||
            !strcmp(f->key, "device.kind"))
            continue;
        problem_at(r->problems, strchr(f->origin, ':') ? f->origin : "", NULL, "unknown key '%s'",
                   f->key);
        r->failed = true;
    }
}

static void read_model(struct reading *r) {
    struct point *p = r->point;
    read_section(r, model_options, "model.", &p->config.params, "workload.name");
    /* A shape that could not be found has no keys: one sentence about that is enough. */
    if (!facts_find(r->given, "model.shape")) return;
    read_section(r, shape_options, "shape.", &p->config.shape, "model.shape");
    p->config.shape.name = p->config.params.shape;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Identity: what differs from the defaults among the options that decide which rows are the same.
 */
struct identity {
    char **items;
    size_t n;
};
static void identity_add(struct identity *id, const char *key, const char *value) {
    struct text line = {0};
    text_printf(&line, "%s=%s", key, value);
    id->items = must_realloc(id->items, (id->n + 1) * sizeof *id->items);
    id->items[id->n++] = text_take(&line);
}

static void identity_section(struct identity *id, const struct option *table, const char *prefix,
                             const void *params, size_t size, struct arena *arena) {
    void *plain = arena_alloc(arena, size + 1);
    option_defaults(table, plain, arena);
    for (const struct option *o = table; o && o->key; o++) {
        struct text ours = {0}, theirs = {0}, key = {0};
        if (!(o->flags & OPT_IDENTITY)) continue;
        text_add(&ours, "", 0);
        text_add(&theirs, "", 0);
        option_format(o, params, &ours);
        option_format(o, plain, &theirs);
        text_printf(&key, "%s%s", prefix, o->key);
        if (!o->def || strcmp(ours.data, theirs.data)) identity_add(id, key.data, ours.data);
        text_free(&ours);
        text_free(&theirs);
        text_free(&key);
    }
}

static void make_cell(struct point *p, struct arena *arena) {
    struct identity id = {0};
    struct text cell = {0};
    struct arena *scratch = arena_create();
    identity_add(&id, "workload.name", p->workload->name);
    identity_add(&id, "device.kind", p->device->name);
    identity_section(&id, p->workload->params, "workload.", p->params, p->workload->params_size,
                     scratch);
    identity_section(&id, p->device->params, "device.", p->device_params, p->device->params_size,
                     scratch);
    if (p->has_model) {
        identity_section(&id, model_options, "model.", &p->config.params, sizeof p->config.params,
                         scratch);
        identity_section(&id, shape_options, "shape.", &p->config.shape, sizeof p->config.shape,
                         scratch);
    }
    qsort(id.items, id.n, sizeof *id.items, by_text);
    for (size_t i = 0; i < id.n; i++) {
        text_printf(&cell, "%s%s", i ? " " : "", id.items[i]);
        free(id.items[i]);
    }
    free(id.items);
    arena_close(&scratch);
    p->cell = arena_text(arena, cell.data);
    p->cell_hash = hash_bytes(cell.data, cell.len, 0);
    text_free(&cell);
}

static uint64_t weights_key(const struct point *p, const struct model_config *config) {
    uint64_t key = model_key(config);
    for (size_t i = 0; i < p->facts.n; i++) {
        const struct fact *f = &p->facts.items[i];
        if (strncmp(f->key, "device.", 7)) continue;
        key = hash_bytes(f->key, strlen(f->key), key);
        key = hash_bytes(f->value, strlen(f->value), key);
    }
    return key ? key : 1;
}

static void check_and_plan(struct reading *r) {
    struct point *p = r->point;
    const struct model_config *config = p->has_model ? &p->config : NULL;
    size_t before = problems_count(r->problems);
    problems_scope(r->problems, &p->facts);
    if (config) model_check(config, r->problems);
    if (problems_count(r->problems) == before && p->workload->check)
        p->workload->check(p->params, config, r->problems);
    problems_scope(r->problems, NULL);
    if (problems_count(r->problems) != before) r->failed = true;
    memset(&p->plan, 0, sizeof p->plan);
    p->plan.peak_bytes = -1;
    p->plan.binding_type = DT_F32;
    if (!r->failed && p->workload->plan) p->workload->plan(p->params, config, &p->plan);
    if (p->workload->compute) p->plan.theory = true;
}

static void find_workload(struct reading *r) {
    const struct fact *name = facts_find(r->given, "workload.name");
    struct names names = {0};
    struct text list = {0};
    r->point->workload = name ? workload_find(name->value) : NULL;
    if (r->point->workload) {
        facts_set(&r->point->facts, "workload.name", name->value, "", name->origin);
        return;
    }
    r->failed = true;
    for (const struct workload *const *w = all_workloads; *w; w++) names_add(&names, (*w)->name);
    names_join(&names, &list);
    const char *near = name ? names_nearest(&names, name->value) : NULL;
    if (name)
        problem_at(r->problems, strchr(name->origin, ':') ? name->origin : "", NULL,
                   "no workload is called '%.60s'%s%s%s (there are %s)", name->value,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    else
        problem_at(r->problems, "", NULL, "workload.name is required: one of %s", list.data);
    names_free(&names);
    text_free(&list);
}

static void find_device(struct reading *r) {
    const struct fact *kind = facts_find(r->given, "device.kind");
    struct err err = {0};
    r->point->device = point_device_kind(kind ? kind->value : "auto", &err);
    if (!r->point->device) {
        problem_at(r->problems, kind && strchr(kind->origin, ':') ? kind->origin : "", NULL, "%s",
                   err.text);
        r->failed = true;
        return;
    }
    /* What runs, not 'auto': a result must say it, and a worker must not decide again. */
    facts_set(&r->point->facts, "device.kind", r->point->device->name, "",
              kind ? kind->origin : "default");
}

/* The first mistake as an error, for callers that report no more. */
static int first_problem(const struct problems *problems, struct err *err) {
    struct text all = {0};
    problems_print(problems, &all);
    int n = (int)strcspn(all.data, "\n");
    err_set(err, ERR_INPUT, "%.*s", n, all.data);
    text_free(&all);
    return ERR_INPUT;
}

int point_parse(struct point *p, const struct facts *facts, struct arena *arena,
                struct problems *problems, struct err *err) {
    struct problems *own = problems ? NULL : problems_create();
    struct reading r = {
        .point = p, .given = facts, .arena = arena, .problems = problems ? problems : own};
    int code = 0;
    facts_free(&p->facts);
    p->case_name = p->case_name ? p->case_name : "";
    p->label = p->label ? p->label : "";
    find_workload(&r);
    if (p->workload) {
        p->has_model = p->workload->flags & WORK_MODEL;
        p->params = arena_alloc(arena, p->workload->params_size + 1);
        read_section(&r, p->workload->params, "workload.", p->params, "workload.name");
        if (p->has_model) read_model(&r);
    }
    find_device(&r);
    if (p->has_model && p->device)
        p->config.activation = model_activation(&p->config.params, p->device);
    if (p->workload && p->device && p->workload->adapt) p->workload->adapt(p->params, p->device);
    if (p->device) {
        p->device_params = arena_alloc(arena, p->device->params_size + 1);
        read_section(&r, p->device->params, "device.", p->device_params, "device.kind");
    }
    unknown_facts(&r);
    if (!r.failed) check_and_plan(&r);
    if (!r.failed) {
        make_cell(p, arena);
        struct model_config other;
        const bool second = p->workload->beside && p->has_model &&
                            p->workload->beside(p->params, &p->config, &other);
        p->weights_key = p->has_model ? weights_key(p, &p->config) : 0;
        p->beside_key = second ? weights_key(p, &other) : 0;
    }
    if (r.failed)
        code = own ? first_problem(own, err) : err_set(err, ERR_INPUT, "the point has mistakes");
    problems_close(&own);
    return code;
}
