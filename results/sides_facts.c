/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of stored results: which must agree for their times to be compared, and which way of a
 * metric is better. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/sides_parts.h"

static bool is_prefix(const char *list, const char *key) {
    const size_t n = strlen(list);
    return !strncmp(list, key, n) && (!key[n] || key[n] == '.');
}

/* What belongs to the moment, or is what is being compared; of the command compiler, flags and type
   are facts of their own. */
static bool compared(const char *key) {
    static const char *const others[] = {"load",          "moment",         "memory.free_bytes",
                                         "build.version", "build.revision", "build.dirty",
                                         "build.digest",  "build.command"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_prefix(others[i], key)) return false;
    return true;
}

static bool crossed(const char *const *across, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (is_prefix(across[i], key)) return true;
    return false;
}

static void differs(struct matching *s, const char *key, const char *old, const char *new,
                    const struct matched_file *f) {
    struct text names = {0};
    if (!strcmp(old, new)) return;
    if (crossed(s->sides->across, s->sides->n_across, key)) {
        gate_note(s->gate, "compared across %s: %.80s, in %s %.80s", key, old, f->name, new);
        return;
    }
    gate_note(s->gate, "%s differs: %.80s, in %s %.80s (--across %s)", key, old, f->name, new, key);
    if (text_has_word(s->differ, key, strlen(key))) return;
    text_printf(&names, "%s%s%s", s->differ, *s->differ ? " " : "", key);
    s->differ = arena_text(s->arena, names.data);
    text_free(&names);
}

static bool has_key(const struct table *t, const char *key) {
    for (int64_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_text(t, i, "key"), key)) return true;
    return false;
}

/* A fact that one file does not know contradicts nothing: it is said. */
static void compare_environments(struct matching *s, const struct matched_file *a,
                                 const struct matched_file *b) {
    const struct table *x = tables_peek(a->tables, "environment");
    const struct table *y = tables_peek(b->tables, "environment");
    struct text absent = {0};
    for (int side = 0; side < 2; side++) {
        const struct table *t = side ? y : x, *other = side ? x : y;
        for (int64_t i = 0; i < table_rows(t); i++) {
            const char *key = table_text(t, i, "key");
            if (!compared(key)) continue;
            if (!has_key(other, key))
                text_printf(&absent, "%s%s", absent.len ? ", " : "", key);
            else if (!side)
                differs(s, key, table_text(t, i, "value"), rows_environment(b->tables, key), b);
        }
    }
    if (absent.len && absent.len < 300)
        gate_note(s->gate, "not known to one of the files, so not compared: %s", absent.data);
    text_free(&absent);
}

static void compare_protocols(struct matching *s, const struct matched_file *a,
                              const struct matched_file *b) {
    for (const struct sides_fact *f = s->sides->facts; f && f->key; f++) {
        const char *old = rows_fact(a->tables, f->key), *new = rows_fact(b->tables, f->key);
        differs(s, f->key, *old ? old : f->otherwise, *new ? new : f->otherwise, b);
    }
}

/* One round of few points, or one under a profiler, is compared with nothing, across nothing. */
static void refuse_modes(struct matching *s, const struct matched_file *f) {
    static const char *const modes[] = {"quick", "profile"};
    for (int i = 0; i < 2; i++) {
        if (strcmp(tables_meta(f->tables, modes[i]), "yes")) continue;
        gate_note(s->gate, "%s was made with --%s: its times are compared with nothing", f->name,
                  modes[i]);
        if (!text_has_word(s->differ, modes[i], strlen(modes[i])))
            s->differ =
                arena_printf(s->arena, "%s%s%s", s->differ, *s->differ ? " " : "", modes[i]);
    }
}

void sides_compare_facts(struct matching *s) {
    for (size_t i = 0; i < s->sides->n_old; i++) {
        refuse_modes(s, &s->old[i]);
        if (!i) continue;
        compare_environments(s, &s->old[0], &s->old[i]);
        compare_protocols(s, &s->old[0], &s->old[i]);
    }
    for (size_t i = 0; i < s->sides->n_new; i++) {
        refuse_modes(s, &s->new[i]);
        compare_environments(s, &s->old[0], &s->new[i]);
        compare_protocols(s, &s->old[0], &s->new[i]);
    }
}

bool sides_comparable(const struct tables *a, const struct tables *b,
                      const struct sides_fact *facts, const char *const *across, size_t n_across,
                      char *why, size_t size) {
    static const char *const modes[] = {"quick", "profile"};
    const struct table *x = tables_peek(a, "environment"), *y = tables_peek(b, "environment");
    for (int i = 0; i < 2; i++)
        if (!strcmp(tables_meta(b, modes[i]), "yes")) {
            snprintf(why, size, "made with --%s", modes[i]);
            return false;
        }
    for (int64_t i = 0; i < table_rows(x); i++) {
        const char *key = table_text(x, i, "key"), *old = rows_environment(b, key);
        if (!compared(key) || crossed(across, n_across, key) || !has_key(y, key)) continue;
        if (!strcmp(old, table_text(x, i, "value"))) continue;
        snprintf(why, size, "%s is %.80s", key, old);
        return false;
    }
    for (const struct sides_fact *f = facts; f && f->key; f++) {
        const char *x_value = rows_fact(a, f->key), *y_value = rows_fact(b, f->key);
        if (!*x_value) x_value = f->otherwise;
        if (!*y_value) y_value = f->otherwise;
        if (!strcmp(x_value, y_value) || crossed(across, n_across, f->key)) continue;
        snprintf(why, size, "%s is %.80s", f->key, y_value);
        return false;
    }
    return true;
}

bool sides_fact_known(const struct tables *ts, const struct sides_fact *facts, const char *name) {
    const struct table *t = tables_peek(ts, "environment");
    for (int64_t i = 0; i < table_rows(t); i++)
        if (is_prefix(name, table_text(t, i, "key"))) return true;
    for (const struct sides_fact *f = facts; f && f->key; f++)
        if (is_prefix(name, f->key)) return true;
    return false;
}

enum better sides_better(const struct tables *ts, const char *metric) {
    const struct table *t = tables_peek(ts, "metrics");
    const size_t n = strlen(metric);
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (strcmp(table_text(t, i, "name"), metric)) continue;
        const char *better = table_text(t, i, "better");
        return !strcmp(better, "lower")    ? BETTER_LOWER
               : !strcmp(better, "higher") ? BETTER_HIGHER
                                           : BETTER_NONE;
    }
    if (n > 5 && !strcmp(metric + n - 5, "_time")) return BETTER_LOWER; /* of a phase */
    return n > 5 && !strcmp(metric + n - 5, "_rate") ? BETTER_HIGHER : BETTER_NONE;
}
