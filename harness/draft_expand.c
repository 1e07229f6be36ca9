/* SPDX-License-Identifier: Apache-2.0 */
/* Cases and axes to points, and the files that they name (shapes of models, data sheets of devices)
 * to their keys. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "harness/sheet.h"
#include "results/table.h"
#include "workloads/model/model.h"

enum {
    MOST_PROBLEMS = 100
}; /* beyond that nobody reads on, and a sweep could repeat them for ever */

/* --- shapes and sheets --- */

enum data_file { DATA_SHAPE, DATA_SHEET };
static const struct {
    const char *folder, *key, *noun;
} data_files[] = {{"models", "model.shape", "shape"}, {"devices", "workload.sheet", "sheet"}};

static bool plain_name(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n && !name[n] && name[0] != '.' && n <= 64;
}

char *draft_data(struct draft *d, const char *file, size_t most, size_t *len, struct err *err) {
    char path[PATH_MAX], *data = NULL;
    const struct tables *stored = d->request->stored;
    const struct table *files = stored ? tables_peek(stored, "files") : NULL;
    const char *ours = data_folder("protocols");
    for (int64_t i = 0; files && i < table_rows(files); i++) {
        if (strcmp(table_text(files, i, "path"), file)) continue;
        data = must_text(table_text(files, i, "text"));
        *len = strlen(data);
        return data;
    }
    const char *folders[] = {d->folder, ours};
    for (size_t i = 0; i < 2; i++) {
        int n = folders[i] ? snprintf(path, sizeof path, "%s/%s", folders[i], file) : -1;
        if (n < 0 || (size_t)n >= sizeof path || !file_exists(path)) continue;
        return file_read(path, most, &data, len, err) ? NULL : data;
    }
    return NULL;
}

static void unknown_file(struct draft *d, enum data_file kind, const char *name,
                         const char *origin) {
    struct names names = {0};
    struct text list = {0};
    char path[PATH_MAX];
    const char *folders[] = {d->folder, data_folder("protocols")};
    for (size_t i = 0; i < 2; i++) {
        if (!folders[i]) continue;
        snprintf(path, sizeof path, "%s/%s", folders[i], data_files[kind].folder);
        names_of_folder(&names, path, ".toml");
    }
    names_sort(&names);
    names_join(&names, &list);
    const char *near = names_nearest(&names, name);
    problem_at(d->problems, draft_place(origin), NULL,
               "%s%s: no %s is called '%.64s'%s%s%s (there are %s)",
               strchr(origin, ':') ? "" : "--set ", data_files[kind].key, data_files[kind].noun,
               name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data);
    names_free(&names);
    text_free(&list);
}

void draft_remember_file(struct protocol *p, const char *path, const char *text) {
    void *made = arena_alloc(p->arena, (p->n_files + 1) * sizeof *p->files);
    if (p->n_files) memcpy(made, p->files, p->n_files * sizeof *p->files);
    p->files = made;
    p->files[p->n_files].path = path;
    p->files[p->n_files++].text = text;
}

static void shape_settings(struct draft *d, struct shape_file *shape, const char *file,
                           const struct toml_entry *entries, size_t n) {
    struct names allowed = {0};
    names_add_options(&allowed, shape_options, "");
    for (size_t i = 0; i < n; i++) {
        const struct toml_entry *e = &entries[i];
        const char *origin = arena_printf(d->arena, "%s:%d:%d", file, e->key_line, e->key_col);
        if (!option_find(shape_options, e->path)) {
            draft_unknown(d, origin, e->path, file, &allowed);
            continue;
        }
        struct setting *s = draft_grow(d->arena, &shape->settings.items, &shape->settings.n,
                                       &shape->settings.cap, sizeof *s);
        *s = (struct setting){.key = arena_printf(d->arena, "shape.%s", e->path),
                              .origin = origin,
                              .value = e->text,
                              .kind = e->kind};
    }
    names_free(&allowed);
}

/* A sheet's figure is a table with the key `value`; `kind` and `from` are for readers. */
static void sheet_settings(struct draft *d, struct shape_file *sheet, const char *file,
                           const struct toml_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct toml_entry *e = &entries[i];
        const char *dot = strchr(e->path, '.');
        if (!dot || strcmp(dot, ".value")) continue;
        struct setting *s = draft_grow(d->arena, &sheet->settings.items, &sheet->settings.n,
                                       &sheet->settings.cap, sizeof *s);
        *s = (struct setting){
            .key = arena_printf(d->arena, "workload.%.*s", (int)(dot - e->path), e->path),
            .origin = arena_printf(d->arena, "%s:%d:%d", file, e->key_line, e->key_col),
            .value = e->text,
            .kind = e->kind};
    }
}

static const struct settings *data_settings(struct draft *d, enum data_file kind, const char *name,
                                            const char *origin) {
    for (size_t i = 0; i < d->n_shapes; i++)
        if (!strcmp(d->shapes[i].folder, data_files[kind].folder) &&
            !strcmp(d->shapes[i].name, name))
            return d->shapes[i].found ? &d->shapes[i].settings : NULL;
    struct shape_file *shape =
        draft_grow(d->arena, &d->shapes, &d->n_shapes, &d->cap_shapes, sizeof *shape);
    struct err err = {0};
    size_t len = 0, n = 0;
    struct toml_entry *entries = NULL;
    const char *file = arena_printf(d->arena, "%s/%s.toml", data_files[kind].folder, name);
    char *text = plain_name(name) ? draft_data(d, file, TOML_MOST_BYTES, &len, &err) : NULL;
    *shape = (struct shape_file){.name = name, .folder = data_files[kind].folder};
    if (!text && !err.code) {
        unknown_file(d, kind, name, origin);
        return NULL;
    }
    if (err.code || toml_read(text, len, file, d->arena, &entries, &n, &err) ||
        (kind == DATA_SHEET && sheet_check(entries, n, file, &err))) {
        problem_at(d->problems, "", NULL, "%s", err.text);
        free(text);
        return NULL;
    }
    draft_remember_file(d->protocol, file, arena_textn(d->arena, text, len));
    free(text);
    (kind == DATA_SHAPE ? shape_settings : sheet_settings)(d, shape, file, entries, n);
    shape->found = true;
    return &shape->settings;
}

/* --- points --- */

static size_t axis_length(const struct draft *d, const struct axis *axis) {
    size_t n = axis->keys[0].n;
    return d->request->quick && n > 3 ? 3 : n;
}

/* --quick takes the first, the middle and the last value. */
static size_t axis_index(const struct draft *d, const struct axis *axis, size_t digit) {
    size_t n = axis->keys[0].n;
    if (!d->request->quick || n <= 3) return digit;
    return digit == 0 ? 0 : digit == 1 ? n / 2 : n - 1;
}

size_t case_digit(const struct draft *d, const struct plan_case *c, size_t point, size_t axis) {
    for (size_t i = c->n_axes; i-- > axis + 1;) point /= axis_length(d, c->axes[i]);
    return axis_index(d, c->axes[axis], point % axis_length(d, c->axes[axis]));
}

static const struct axis_value *swept_value(const struct draft *d, const struct plan_case *c,
                                            size_t point, const char *key) {
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            if (!strcmp(c->axes[i]->keys[k].key, key))
                return &c->axes[i]->keys[k].items[case_digit(d, c, point, i)];
    return NULL;
}

const char *draft_named(const struct draft *d, const struct plan_case *c, size_t point,
                        const char *key, const char **origin) {
    const struct axis_value *v = swept_value(d, c, point, key);
    const char *name = v ? v->text : NULL;
    *origin = v ? v->origin : "";
    for (size_t i = 0; i < c->n_settings && !v; i++)
        if (!strcmp(c->settings[i]->key, key)) {
            name = c->settings[i]->value;
            *origin = c->settings[i]->value_origin;
        }
    return name;
}

/* The figures of a data sheet that the workload has keys for; false if the sheet is not there. */
static bool sheet_facts(struct draft *d, const struct plan_case *c, size_t point,
                        struct facts *facts) {
    const char *origin, *name = draft_named(d, c, point, "workload.sheet", &origin);
    if (!name || !*name || !case_option(c, "workload.sheet")) return true;
    const struct settings *sheet = data_settings(d, DATA_SHEET, name, origin);
    for (size_t i = 0; sheet && i < sheet->n; i++)
        if (case_option(c, sheet->items[i].key))
            facts_set(facts, sheet->items[i].key, sheet->items[i].value, "",
                      sheet->items[i].origin);
    return sheet;
}

/* All that is set for the point, by the case and by its axes. */
static void set_facts(const struct draft *d, const struct plan_case *c, size_t point,
                      struct facts *facts) {
    for (size_t i = 0; i < c->n_settings; i++) {
        const struct setting *s = c->settings[i];
        const char *value = s->value;
        if (s->bad) continue;
        if (!strcmp(s->key, "device.kind")) value = c->device->name;
        facts_set(facts, s->key, value, "", s->origin);
    }
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++) {
            const struct axis_key *key = &c->axes[i]->keys[k];
            const struct axis_value *v = &key->items[case_digit(d, c, point, i)];
            facts_set(facts, key->key, v->text, "", v->origin);
        }
}

/* All that the point is given, the keys of files first; false if such a file is not there. */
static bool point_facts(struct draft *d, const struct plan_case *c, size_t point,
                        struct facts *facts, const char **text) {
    struct facts own = {0};
    bool good = true;
    set_facts(d, c, point, &own);
    if (c->workload->flags & WORK_MODEL) {
        const char *origin = "", *name = NULL;
        good = draft_model_facts(d, c, point, &own, &name, &origin);
        const struct settings *shape =
            good && name ? data_settings(d, DATA_SHAPE, name, origin) : NULL;
        good = good && (!name || shape);
        for (size_t i = 0; shape && i < shape->n; i++)
            facts_set(facts, shape->items[i].key, shape->items[i].value, "",
                      shape->items[i].origin);
    }
    if (good && case_option(c, "workload.input"))
        good = draft_prompts(d, c, &own, text);
    else if (good && case_option(c, "workload.text_digest"))
        good = draft_text_facts(d, c, point, &own);
    good = good && sheet_facts(d, c, point, facts);
    if (good) facts_copy(facts, &own);
    facts_free(&own);
    return good;
}

/* "batch" unless another axis of the case has a key that ends so. */
static const char *short_key(const struct plan_case *c, const char *key) {
    const char *last = strrchr(key, '.') + 1;
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++) {
            const char *other = c->axes[i]->keys[k].key;
            if (strcmp(other, key) && !strcmp(strrchr(other, '.') + 1, last)) return key;
        }
    return last;
}

static void make_label(struct draft *d, const struct plan_case *c, struct point *p) {
    struct text label = {0}, cell = {0};
    text_add(&label, "", 0);
    text_puts(&cell, p->cell ? p->cell : "");
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++) {
            const char *key = c->axes[i]->keys[k].key, *value = facts_get(&p->facts, key, "");
            const struct option *o = case_option(c, key);
            text_printf(&label, "%s%s=%s", label.len ? " " : "", short_key(c, key), value);
            /* What is swept tells rows apart, whatever else it decides. */
            if (o && !(o->flags & OPT_IDENTITY)) text_printf(&cell, " %s=%s", key, value);
        }
    p->label = arena_text(d->arena, label.data);
    if (p->cell && strcmp(cell.data, p->cell)) {
        p->cell = arena_text(d->arena, cell.data);
        p->cell_hash = hash_bytes(cell.data, cell.len, 0);
    }
    text_free(&label);
    text_free(&cell);
}

static bool sweeps_as_stored(const struct plan_case *c) {
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            for (size_t v = 0; v < c->axes[i]->keys[k].n; v++)
                if (!strcmp(c->axes[i]->keys[k].key, "model.type") &&
                    !strcmp(c->axes[i]->keys[k].items[v].text, MODEL_AS_STORED))
                    return true;
    return false;
}

/* What a file's weights are stored as may be a type that the axis names besides: then one row is
   both. */
static bool has_already(const struct plan_case *c, const struct protocol *p,
                        const struct point *point) {
    if (!point->cell || !sweeps_as_stored(c)) return false;
    for (size_t i = c->first_point; i < p->n_points; i++)
        if (p->points[i].cell_hash == point->cell_hash && p->points[i].cell &&
            !strcmp(p->points[i].cell, point->cell))
            return true;
    return false;
}

static void expand_case(struct draft *d, struct plan_case *c, struct protocol *p) {
    c->first_point = p->n_points;
    for (size_t i = 0; i < c->n_points && problems_count(d->problems) < MOST_PROBLEMS; i++) {
        struct facts facts = {0};
        struct point *point = &p->points[p->n_points];
        *point =
            (struct point){.index = (int64_t)p->n_points, .case_name = c->scope->name, .label = ""};
        if (point_facts(d, c, i, &facts, &point->text)) {
            point_parse(point, &facts, d->arena, d->problems, NULL);
            make_label(d, c, point);
            p->n_points += !has_already(c, p, point);
        } else {
            c->bad = true;
        }
        facts_free(&facts);
    }
    if (!c->bad) c->n_points = p->n_points - c->first_point;
}

/* Points of each case, bounded before any is made; false if there are too many. */
static bool count_points(struct draft *d, size_t *total) {
    *total = 0;
    for (size_t i = 0; i < d->n_plans; i++) {
        struct plan_case *c = &d->plans[i];
        c->n_points = !c->bad;
        for (size_t a = 0; a < c->n_axes && !c->bad; a++) {
            size_t n = axis_length(d, c->axes[a]);
            c->n_points = n && c->n_points > SIZE_MAX / 2 / n ? SIZE_MAX / 2 : c->n_points * n;
        }
        if (c->n_points > PROTOCOL_MOST_POINTS - *total) {
            problem_at(d->problems, c->n_axes ? draft_place(c->axes[0]->origin) : "", NULL,
                       "more than 100,000 points%s%s", *c->scope->name ? " up to case " : "",
                       c->scope->name);
            return false;
        }
        *total += c->n_points;
    }
    return true;
}

static void add_swept(struct draft *d, const struct plan_case *c, size_t *cap) {
    struct protocol *p = d->protocol;
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++) {
            const char *key = c->axes[i]->keys[k].key;
            const struct option *o = case_option(c, key);
            bool have = !o;
            for (size_t j = 0; j < p->n_swept; j++) have |= !strcmp(p->swept[j].key, key);
            if (have) continue;
            struct swept_key *s = draft_grow(d->arena, &p->swept, &p->n_swept, cap, sizeof *s);
            *s = (struct swept_key){key, o->type, o->unit ? o->unit : ""};
        }
}

static int by_cell(const void *a, const void *b) {
    const struct point *x = *(const struct point *const *)a, *y = *(const struct point *const *)b;
    int order = strcmp(x->cell ? x->cell : "", y->cell ? y->cell : "");
    return order ? order : x->index < y->index ? -1 : 1;
}

/* Two cases that differed by the shapes of their models measure the same where --set put one file
   in the place of both: the case tells them apart. */
static bool told_apart_by_case(struct draft *d, struct point *p, const struct point *before) {
    if (!draft_left_behind(d, "model.shape") || !strcmp(p->case_name, before->case_name))
        return false;
    p->cell = arena_printf(d->arena, "%s case=%s", p->cell, p->case_name);
    p->cell_hash = hash_bytes(p->cell, strlen(p->cell), 0);
    return true;
}

/* Rows are told apart by their cells alone, here and in every later comparison. */
static void check_cells(struct draft *d) {
    struct protocol *p = d->protocol;
    struct point **sorted = must_alloc((p->n_points + 1) * sizeof *sorted);
    for (size_t i = 0; i < p->n_points; i++) sorted[i] = &p->points[i];
    qsort(sorted, p->n_points, sizeof *sorted, by_cell);
    const char *cell = p->n_points ? sorted[0]->cell : NULL; /* of the one before, as it was */
    const char *left_out = facts_get(&p->facts, "protocol.left_out", "");
    for (size_t i = 1; i < p->n_points && problems_count(d->problems) < MOST_PROBLEMS; i++) {
        struct point *a = sorted[i - 1], *b = sorted[i];
        const bool same = cell && b->cell && !strcmp(cell, b->cell);
        cell = b->cell;
        if (!same || told_apart_by_case(d, b, a)) continue;
        const struct plan_case *c = &d->plans[0];
        for (size_t j = 0; j < d->n_plans; j++)
            if ((size_t)b->index >= d->plans[j].first_point && d->plans[j].n_points)
                c = &d->plans[j];
        const char *at = c->n_axes ? c->axes[c->n_axes - 1]->keys[0].origin : c->scope->origin;
        problem_at(d->problems, draft_place(at ? at : ""), NULL,
                   "two points are the same: %s%s%s and %s%s%s%s", a->case_name,
                   *a->case_name ? " " : "", *a->label ? a->label : "(no sweep)", b->case_name,
                   *b->case_name ? " " : "", *b->label ? b->label : "(no sweep)",
                   strstr(left_out, "the shape is that of model.file")
                       ? ": --set model.file has one shape, and the axis goes over several"
                       : "");
    }
    free(sorted);
}

void draft_expand(struct draft *d) {
    struct protocol *p = d->protocol;
    size_t total, cap = 0;
    if (!count_points(d, &total)) return;
    p->points = arena_alloc(d->arena, (total + 1) * sizeof *p->points);
    for (size_t i = 0; i < d->n_plans; i++) {
        if (d->plans[i].bad) continue;
        add_swept(d, &d->plans[i], &cap);
        expand_case(d, &d->plans[i], p);
    }
    check_cells(d);
}
