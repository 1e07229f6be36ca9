/* SPDX-License-Identifier: Apache-2.0 */
/* What each case takes from the top, from itself and from --set; whatever nobody takes is a
 * mistake. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/text.h"
#include "harness/draft.h"
#include "workloads/model/model.h"

static bool in_section(const char *key, const char *section) {
    size_t n = strlen(section);
    return !strncmp(key, section, n) && key[n] == '.';
}
static bool is_name(const char *key) {
    return !strcmp(key, "workload.name") || !strcmp(key, "device.kind");
}

static bool has_model(const struct plan_case *c) {
    return c->workload && c->workload->flags & WORK_MODEL;
}

const struct option *case_option(const struct plan_case *c, const char *key) {
    const char *rest = strchr(key, '.');
    if (!rest) return NULL;
    rest++;
    if (in_section(key, "workload"))
        return c->workload ? option_find(c->workload->params, rest) : NULL;
    if (in_section(key, "model")) return has_model(c) ? option_find(model_options, rest) : NULL;
    if (in_section(key, "shape")) return has_model(c) ? option_find(shape_options, rest) : NULL;
    if (in_section(key, "device")) return c->device ? option_find(c->device->params, rest) : NULL;
    return NULL;
}

static void add_keys(struct names *names, const struct option *table, const char *prefix,
                     bool sweepable) {
    for (const struct option *o = table; o && o->key; o++) {
        char key[160];
        if (sweepable && !(o->flags & OPT_SWEEP)) continue;
        snprintf(key, sizeof key, "%s%s", prefix, o->key);
        names_add(names, key);
    }
}

void case_keys(const struct plan_case *c, struct names *names, bool sweepable) {
    if (c->workload) add_keys(names, c->workload->params, "workload.", sweepable);
    if (has_model(c)) {
        add_keys(names, model_options, "model.", sweepable);
        add_keys(names, shape_options, "shape.", sweepable);
    }
    if (c->device) add_keys(names, c->device->params, "device.", sweepable);
}

/* --- names of workload and device --- */

static const struct setting *pick(const struct draft *d, const struct scope *scope,
                                  const char *key) {
    const struct setting *s = settings_find(&d->sets, key);
    if (!s) s = settings_find(&scope->settings, key);
    if (!s) s = settings_find(&d->top.settings, key);
    return s;
}

static void find_workload(struct draft *d, struct plan_case *c) {
    const struct setting *name = pick(d, c->scope, "workload.name");
    struct names names = {0};
    struct text list = {0};
    if (name) {
        c->workload_name = name->value;
        c->workload_origin = name->value_origin;
        c->workload = name->kind == TOML_STRING ? workload_find(name->value) : NULL;
        if (c->workload) return;
    }
    for (const struct workload *const *w = all_workloads; *w; w++) names_add(&names, (*w)->name);
    names_join(&names, &list);
    const char *near = name ? names_nearest(&names, name->value) : NULL;
    if (name)
        problem_at(d->problems, draft_place(name->value_origin), NULL,
                   "%sno workload is called '%.60s'%s%s%s (there are %s)",
                   strchr(name->origin, ':') ? "" : "--set workload.name: ", name->value,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    else
        problem_at(d->problems, c->scope->origin ? c->scope->origin : "", NULL,
                   "workload.name is missing; there are %s", list.data);
    c->bad = true;
    names_free(&names);
    text_free(&list);
}

static void find_device(struct draft *d, struct plan_case *c) {
    const struct setting *kind = pick(d, c->scope, "device.kind");
    const char *name = kind ? kind->value : "auto";
    struct err err = {0};
    const char *colon = strchr(name, ':');
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)(colon ? colon - name : 63), name);
    c->device = point_device_kind(bare, &err);
    if (c->device && colon) { /* "cuda:1" is short for kind and index */
        if (!option_find(c->device->params, "index")) {
            err_set(&err, ERR_INPUT, "%s has no numbered devices", c->device->name);
            c->device = NULL;
        } else {
            struct setting *s =
                draft_grow(d->arena, &d->sets.items, &d->sets.n, &d->sets.cap, sizeof *s);
            *s = (struct setting){.key = "device.index",
                                  .origin = kind->origin,
                                  .value = colon + 1,
                                  .value_origin = kind->value_origin,
                                  .kind = TOML_STRING};
        }
    }
    if (c->device) return;
    problem_at(d->problems, kind ? draft_place(kind->value_origin) : "", NULL, "%s", err.text);
    c->bad = true;
}

/* --- settings --- */

static void take(struct draft *d, struct plan_case *c, struct setting *s) {
    struct setting **at = NULL;
    s->used = true;
    for (size_t i = 0; i < c->n_settings; i++)
        if (!strcmp(c->settings[i]->key, s->key)) at = &c->settings[i];
    if (!at) at = draft_grow(d->arena, &c->settings, &c->n_settings, &c->cap_settings, sizeof *at);
    *at = s;
}

/* Whether the text is one that the option's parser takes; else the sentence, with its place. */
static bool check_value(struct draft *d, const struct option *o, const char *key,
                        enum toml_kind kind, const char *text, const char *origin,
                        const char *before) {
    void *scratch = arena_alloc(d->arena, o->offset + 64);
    struct err err = {0};
    const char *set = strchr(origin, ':') ? "" : "--set ";
    if (kind == TOML_TABLE || kind == TOML_OTHER)
        err_set(&err, ERR_INPUT, "one value is needed");
    else if (kind == TOML_ARRAY && o->type != OPT_INTS)
        err_set(&err, ERR_INPUT, "takes one value; several are an axis: [[sweep]] %s = %.200s", key,
                text);
    else
        option_parse(o, text, scratch, d->arena, &err);
    if (!err.code) return true;
    problem_at(d->problems, draft_place(origin), NULL, "%s%s%s: %s", set, before, key, err.text);
    return false;
}

static void check_settings(struct draft *d, struct plan_case *c) {
    for (size_t i = 0; i < c->n_settings; i++) {
        struct setting *s = c->settings[i];
        const struct option *o = case_option(c, s->key);
        if (!o || s->bad) continue;
        s->bad = !check_value(d, o, s->key, s->kind, s->value, s->value_origin, "");
        if (s->bad && !o->def) c->bad = true; /* its absence would be told as another mistake */
    }
}

/* A key that the device has not, but another kind has. */
static const char *kind_with(const char *key) {
    for (const struct device_kind *const *k = all_devices; *k; k++)
        if (option_find((*k)->params, key)) return (*k)->name;
    return NULL;
}

/* --set model.file has a shape of its own: the protocol's is left behind. */
static bool other_shape(const struct draft *d, const char *key) {
    const struct setting *file = settings_find(&d->sets, "model.file");
    return file && *file->value && (in_section(key, "shape") || !strcmp(key, "model.shape"));
}

/* The file's keys of another device kind are left behind where the kind was not chosen in the file:
 * by --device, or by what this machine has. */
static bool left_behind(const struct draft *d, const struct plan_case *c, const char *key) {
    if (other_shape(d, key)) return true;
    if (!in_section(key, "device") || is_name(key) || !c->device || case_option(c, key))
        return false;
    const bool chosen_here = !settings_find(&d->sets, "device.kind") &&
                             (settings_find(&c->scope->settings, "device.kind") ||
                              settings_find(&d->top.settings, "device.kind"));
    return !chosen_here && kind_with(key + strlen("device."));
}

bool draft_left_behind(const struct draft *d, const char *key) {
    for (size_t i = 0; i < d->n_plans; i++)
        if (!left_behind(d, &d->plans[i], key)) return false;
    return true;
}

static void note_left_behind(struct draft *d, const struct plan_case *c, const char *key) {
    struct text all = {0};
    const char *before = facts_get(&d->protocol->facts, "protocol.left_out", "");
    char one[200];
    if (other_shape(d, key))
        snprintf(one, sizeof one, "%s (the shape is that of model.file)", key);
    else
        snprintf(one, sizeof one, "%s (%s has no such option)", key, c->device->name);
    if (!strstr(before, one)) {
        text_printf(&all, "%s%s%s", before, *before ? ", " : "", one);
        facts_set(&d->protocol->facts, "protocol.left_out", all.data, "", "");
    }
    text_free(&all);
}

static void unknown_setting(struct draft *d, const struct plan_case *c, const struct setting *s) {
    struct names allowed = {0};
    char where[160];
    const char *key = strchr(s->key, '.') + 1, *other = kind_with(key);
    const char *table =
        c->scope != &d->top && settings_find(&c->scope->settings, s->key) ? "case." : "";
    int n = (int)strcspn(s->key, ".");
    if (!strcmp(s->key, "workload.name")) {
        problem_at(d->problems, draft_place(s->origin), NULL,
                   "workload.name is not used: each case names a workload of its own");
        return;
    }
    snprintf(where, sizeof where, "[%s%.*s]", table, n, s->key);
    if (in_section(s->key, "workload") && c->workload) {
        snprintf(where, sizeof where, "[%sworkload] of %s", table, c->workload->name);
        names_add(&allowed, "name");
        add_keys(&allowed, c->workload->params, "", false);
    } else if (in_section(s->key, "device") && c->device) {
        if (other) {
            problem_at(d->problems, draft_place(s->origin), NULL,
                       "%s%s is not used: it belongs to %s, and device.kind is %s",
                       strchr(s->origin, ':') ? "" : "--set ", s->key, other, c->device->name);
            return;
        }
        snprintf(where, sizeof where, "[%sdevice] of %s", table, c->device->name);
        names_add(&allowed, "kind");
        add_keys(&allowed, c->device->params, "", false);
    } else if (in_section(s->key, "model")) {
        add_keys(&allowed, model_options, "", false);
    } else if (in_section(s->key, "shape")) {
        add_keys(&allowed, shape_options, "", false);
    }
    draft_unknown(d, s->origin, key, where, &allowed);
    names_free(&allowed);
}

/* A setting of the protocol itself. */
static void take_of_file(struct draft *d, struct plan_case *c, struct setting *s) {
    if (other_shape(d, s->key)) {
        s->used = true;
        if (in_section(s->key, "shape")) note_left_behind(d, c, s->key);
        return;
    }
    take(d, c, s);
}

/* [model] or [shape] where no workload takes a model. Marks its keys, so that they are told once.
 */
static void unused_model(struct draft *d, struct scope *scope, const char *who) {
    for (size_t i = 0; i < scope->settings.n; i++) {
        struct setting *s = &scope->settings.items[i];
        if (in_section(s->key, "model") || in_section(s->key, "shape")) s->used = true;
    }
    if (scope->model_origin)
        problem_at(d->problems, scope->model_origin, NULL, "[model] is not used: %s", who);
    if (scope->shape_origin)
        problem_at(d->problems, scope->shape_origin, NULL, "[shape] is not used: %s", who);
}

/* Whether the case takes keys of this section from the top: not if it names another workload or
 * device. */
static bool inherits(const struct draft *d, const struct scope *scope, const char *key) {
    const char *name = in_section(key, "workload") ? "workload.name"
                       : in_section(key, "device") ? "device.kind"
                                                   : NULL;
    if (!name) return true;
    const struct setting *own = settings_find(&scope->settings, name);
    const struct setting *top = settings_find(&d->top.settings, name);
    return !own || !top || !strcmp(own->value, top->value);
}

static bool own_axis(const struct scope *scope, const char *key) {
    for (size_t i = 0; i < scope->axes.n; i++)
        for (size_t k = 0; k < scope->axes.items[i].n_keys; k++)
            if (!strcmp(scope->axes.items[i].keys[k].key, key)) return true;
    return false;
}

static void gather_settings(struct draft *d, struct plan_case *c) {
    /* --device replaces the file's section. Without it a setting of another kind is a mistake. */
    const bool replaced = settings_find(&d->sets, "device.kind") != NULL;
    for (size_t i = 0; c->scope != &d->top && i < d->top.settings.n; i++) {
        struct setting *s = &d->top.settings.items[i];
        if (!c->workload && in_section(s->key, "workload")) s->used = true;
        if (!inherits(d, c->scope, s->key)) continue;
        if (own_axis(c->scope, s->key)) { /* the case's own axis replaces it */
            s->used = true;
            continue;
        }
        if (is_name(s->key) || case_option(c, s->key)) take_of_file(d, c, s);
    }
    if (!has_model(c) && c->workload && (c->scope->model_origin || c->scope->shape_origin) &&
        c->scope != &d->top) {
        char who[120];
        snprintf(who, sizeof who, "workload '%s' takes no model", c->workload->name);
        unused_model(d, c->scope, who);
    }
    for (size_t i = 0; i < c->scope->settings.n; i++) {
        struct setting *s = &c->scope->settings.items[i];
        if (is_name(s->key) || case_option(c, s->key))
            take_of_file(d, c, s);
        else if ((!c->workload && !in_section(s->key, "device")) ||
                 (!c->device && in_section(s->key, "device")))
            s->used = true; /* who cannot be found cannot be asked */
        else if (replaced && left_behind(d, c, s->key))
            s->used = true;
        else if (c->scope != &d->top && !s->used)
            unknown_setting(d, c, s);
    }
    for (size_t i = 0; i < d->sets.n; i++) {
        struct setting *s = &d->sets.items[i];
        if (is_name(s->key) || case_option(c, s->key)) take(d, c, s);
    }
    for (size_t i = 0; replaced && i < d->top.settings.n; i++)
        if (left_behind(d, c, d->top.settings.items[i].key)) d->top.settings.items[i].used = true;
}

/* --- axes --- */

static bool own_setting(const struct plan_case *c, const char *key) {
    return settings_find(&c->scope->settings, key) != NULL;
}

static bool applies(const struct plan_case *c, const struct axis *axis) {
    for (size_t k = 0; k < axis->n_keys; k++)
        if (!case_option(c, axis->keys[k].key) || own_setting(c, axis->keys[k].key)) return false;
    return axis->n_keys > 0;
}

static const struct axis_key *swept(const struct plan_case *c, const char *key) {
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            if (!strcmp(c->axes[i]->keys[k].key, key)) return &c->axes[i]->keys[k];
    return NULL;
}

static void unknown_axis(struct draft *d, const struct plan_case *c, const struct axis_key *key) {
    struct names allowed = {0};
    if (is_name(key->key)) {
        problem_at(d->problems, draft_place(key->origin), NULL,
                   "%s cannot be swept: several of them are [[case]]s", key->key);
        return;
    }
    case_keys(c, &allowed, true);
    draft_unknown(d, key->origin, key->key, "[[sweep]]", &allowed);
    names_free(&allowed);
}

/* The values that parse; those that do not are told and left out, so that the rest can be checked.
 */
static void check_values(struct draft *d, struct plan_case *c, struct axis *axis,
                         struct axis_key *key, const struct option *o) {
    size_t good = 0;
    for (size_t i = 0; i < key->n; i++) {
        if (problems_count(d->problems) > 100 ||
            check_value(d, o, key->key, TOML_STRING, key->items[i].text, key->items[i].origin,
                        strchr(key->items[i].origin, ':') ? "[[sweep]] " : "sweep."))
            key->items[good++] = key->items[i];
    }
    if (good < key->n && (axis->n_keys > 1 || !good)) c->bad = true;
    key->n = good;
}

static bool check_axis_key(struct draft *d, struct plan_case *c, struct axis *axis,
                           struct axis_key *key) {
    const struct option *o = case_option(c, key->key);
    if (!o) {
        if (c->workload && c->device) unknown_axis(d, c, key);
        return false;
    }
    if (!(o->flags & OPT_SWEEP)) {
        problem_at(d->problems, draft_place(key->origin), NULL, "%s cannot be swept", key->key);
        return false;
    }
    const struct axis_key *twice = swept(c, key->key);
    if (twice) {
        problem_at(d->problems, draft_place(key->origin), NULL, "%s is swept twice (also at %s)",
                   key->key, twice->origin);
        return false;
    }
    check_values(d, c, axis, key, o);
    return true;
}

static const char *line_of(const char *origin) { /* "file:12:3": "line 12" is enough beside it */
    const char *colon = strchr(origin, ':');
    return colon ? colon + 1 : origin;
}

static void check_swept_and_set(struct draft *d, struct plan_case *c) {
    for (size_t i = 0; i < c->n_settings; i++) {
        const struct setting *s = c->settings[i];
        const struct axis_key *key = swept(c, s->key);
        if (!key) continue;
        if (strchr(s->origin, ':'))
            problem_at(d->problems, s->origin, NULL, "%s is set here and swept (line %.*s)", s->key,
                       (int)strcspn(line_of(key->origin), ":"), line_of(key->origin));
        else
            problem_at(
                d->problems, "", NULL,
                "--set %s: the key is swept by sweep.%s (%s); --set sweep.%s=[%s] replaces the axis",
                s->key, s->key, key->origin, s->key, s->value);
        c->bad = true;
    }
}

static void check_lengths(struct draft *d, struct plan_case *c, const struct axis *axis) {
    for (size_t k = 1; k < axis->n_keys; k++) {
        if (axis->keys[k].n == axis->keys[0].n) continue;
        c->bad = true;
        problem_at(d->problems, draft_place(axis->keys[k].origin), NULL,
                   "keys of one [[sweep]] advance together: %s has %zu values, %s has %zu",
                   axis->keys[0].key, axis->keys[0].n, axis->keys[k].key, axis->keys[k].n);
    }
}

static void note_beyond(struct draft *d, const struct plan_case *c, const struct axis_key *key,
                        int64_t most) {
    const char *before = facts_get(&d->protocol->facts, "protocol.left_out", "");
    struct text all = {0};
    char one[200];
    snprintf(one, sizeof one, "%.100s beyond %" PRId64 " (all that %s has here)", key->key, most,
             c->device->name);
    if (!strstr(before, one)) {
        text_printf(&all, "%s%s%s", before, *before ? ", " : "", one);
        facts_set(&d->protocol->facts, "protocol.left_out", all.data, "", "");
    }
    text_free(&all);
}

/* An axis of the file over more than this machine has ends with all of it: of 1, 2, 4, 8 threads
   six cores leave 1, 2, 4, 6. What --set asks for is asked for. */
static struct axis *within_machine(struct draft *d, struct plan_case *c, struct axis *axis) {
    const struct axis_key *key = &axis->keys[0];
    const char *option = in_section(key->key, "device") ? key->key + strlen("device.") : NULL;
    int64_t v, most = 0;
    if (axis->n_keys == 1 && option && c->device && c->device->most && strchr(key->origin, ':'))
        most = c->device->most(option);
    size_t n = 0;
    while (most > 0 && n < key->n && parse_i64(key->items[n].text, &v) && v <= most) n++;
    if (most <= 0 || n == key->n || !parse_i64(key->items[n].text, &v)) return axis;
    struct axis *copy = arena_alloc(d->arena, sizeof *copy);
    *copy = *axis;
    copy->n_keys = copy->cap = 1;
    copy->keys = arena_alloc(d->arena, sizeof *copy->keys);
    copy->keys[0] = *key;
    copy->keys[0].items = arena_alloc(d->arena, (n + 1) * sizeof *key->items);
    memcpy(copy->keys[0].items, key->items, (n + 1) * sizeof *key->items);
    const bool has = n > 0 && parse_i64(key->items[n - 1].text, &v) && v == most;
    if (!has) copy->keys[0].items[n].text = arena_printf(d->arena, "%" PRId64, most);
    copy->keys[0].n = n + !has;
    axis->used = true;
    note_beyond(d, c, key, most);
    return copy;
}

/* The axis without the keys that are left behind: itself, a copy, or NULL where none remains. */
static struct axis *remaining(struct draft *d, struct plan_case *c, struct axis *axis) {
    struct axis *copy = NULL;
    size_t n = 0;
    for (size_t k = 0; k < axis->n_keys; k++)
        if (left_behind(d, c, axis->keys[k].key))
            note_left_behind(d, c, axis->keys[k].key);
        else
            n++;
    if (n == axis->n_keys) return axis;
    axis->used = true;
    if (!n) return NULL;
    copy = arena_alloc(d->arena, sizeof *copy);
    *copy = *axis;
    copy->keys = arena_alloc(d->arena, n * sizeof *copy->keys);
    copy->n_keys = copy->cap = 0;
    for (size_t k = 0; k < axis->n_keys; k++)
        if (!left_behind(d, c, axis->keys[k].key)) copy->keys[copy->n_keys++] = axis->keys[k];
    copy->cap = copy->n_keys;
    return copy;
}

static void gather_axes(struct draft *d, struct plan_case *c) {
    bool own = c->scope->axes.n || c->scope == &d->top;
    struct axes *axes = own ? &c->scope->axes : &d->top.axes;
    for (size_t i = 0; i < axes->n; i++) {
        struct axis *axis = remaining(d, c, &axes->items[i]);
        bool good = true;
        if (!axis || (!own && !applies(c, axis))) continue;
        if (axis->n_keys) axis = within_machine(d, c, axis);
        if (!c->workload) axis->used = true;
        if (own && !axis->named)
            problem_at(d->problems, axis->origin, NULL, "the [[sweep]] has no key");
        axis->used = true;
        check_lengths(d, c, axis);
        for (size_t k = 0; k < axis->n_keys; k++)
            good = check_axis_key(d, c, axis, &axis->keys[k]) && good;
        if (!good || !axis->n_keys) {
            c->bad = true;
            continue;
        }
        struct axis **at = draft_grow(d->arena, &c->axes, &c->n_axes, &c->cap_axes, sizeof *at);
        *at = axis;
    }
}

/* --- what nobody took --- */

static const struct plan_case *asked(const struct draft *d, const struct setting *s) {
    for (size_t i = 0; i < d->n_plans; i++) /* the case that would have taken it */
        if (d->plans[i].workload && inherits(d, d->plans[i].scope, s->key)) return &d->plans[i];
    return &d->plans[0];
}

static void unused(struct draft *d) {
    bool any_model = false, any_bad = false;
    struct names names = {0};
    for (size_t i = 0; i < d->n_plans; i++) {
        any_model |= has_model(&d->plans[i]);
        any_bad |= !d->plans[i].workload;
        case_keys(&d->plans[i], &names, true);
    }
    if (!any_model && !any_bad)
        unused_model(d, &d->top,
                     d->n_plans > 1 ? "no case has a workload that takes a model"
                                    : "this workload takes no model");
    for (size_t i = 0; i < d->top.settings.n; i++) {
        const struct setting *s = &d->top.settings.items[i];
        if (!s->used && !any_bad) unknown_setting(d, asked(d, s), s);
    }
    for (size_t i = 0; i < d->sets.n; i++) {
        const struct setting *s = &d->sets.items[i];
        if (s->used || any_bad) continue;
        if (!any_model && (in_section(s->key, "model") || in_section(s->key, "shape")))
            problem_at(d->problems, "", NULL,
                       "--set %s is not used: no workload here takes a model", s->key);
        else
            unknown_setting(d, asked(d, s), s);
    }
    for (size_t i = 0; d->n_cases && i < d->top.axes.n; i++) {
        const struct axis *axis = &d->top.axes.items[i];
        if (axis->used || any_bad) continue;
        for (size_t k = 0; k < axis->n_keys; k++)
            if (!names_have(&names, axis->keys[k].key))
                draft_unknown(d, axis->keys[k].origin, axis->keys[k].key, "[[sweep]]", &names);
        if (axis->n_keys && names_have(&names, axis->keys[0].key))
            problem_at(d->problems, axis->origin, NULL, "no case uses this [[sweep]]");
    }
    names_free(&names);
}

void draft_cases(struct draft *d) {
    d->n_plans = d->n_cases ? d->n_cases : 1;
    d->plans = arena_alloc(d->arena, d->n_plans * sizeof *d->plans);
    for (size_t i = 0; i < d->n_plans; i++) {
        struct plan_case *c = &d->plans[i];
        c->scope = d->n_cases ? &d->cases[i] : &d->top;
        find_workload(d, c);
        find_device(d, c);
    }
    for (size_t i = 0; i < d->n_plans; i++) {
        struct plan_case *c = &d->plans[i];
        gather_settings(d, c);
        gather_axes(d, c);
        check_settings(d, c);
        check_swept_and_set(d, c);
    }
    unused(d);
}
