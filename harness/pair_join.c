/* SPDX-License-Identifier: Apache-2.0 */
/* Two protocols as one: the same rows twice, a's and then b's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/pair.h"

int pair_match(const struct protocol *a, const struct protocol *b, struct err *err) {
    if (a->n_points != b->n_points)
        return err_set(err, ERR_INPUT,
                       "side a has %zu rows and side b has %zu: both need the same rows",
                       a->n_points, b->n_points);
    for (size_t i = 0; i < a->n_points; i++) {
        const struct point *x = &a->points[i], *y = &b->points[i];
        if (!strcmp(x->case_name, y->case_name) && !strcmp(x->label, y->label)) continue;
        return err_set(err, ERR_INPUT, "row %zu is '%s%s%s' on side a and '%s%s%s' on side b", i,
                       x->case_name, *x->case_name ? " " : "", x->label, y->case_name,
                       *y->case_name ? " " : "", y->label);
    }
    return 0;
}

/* Analyses and published figures speak of one side's rows. */
static void copy_facts(struct facts *to, const struct facts *from) {
    for (size_t i = 0; i < from->n; i++) {
        const struct fact *f = &from->items[i];
        if (strncmp(f->key, "analysis.", 9) && strncmp(f->key, "published.", 10))
            facts_set(to, f->key, f->value, f->unit, f->origin);
    }
}

/* What really judges, wherever it came from. */
static void gate_facts(struct facts *facts, const struct gate_settings *settings) {
    for (const struct option *o = gate_options; o->key; o++) {
        char key[80];
        struct text value = {0};
        snprintf(key, sizeof key, "gate.%s", o->key);
        text_add(&value, "", 0);
        option_format(o, settings, &value);
        if (strcmp(facts_get(facts, key, ""), value.data))
            facts_set(facts, key, value.data, "", "command line");
        text_free(&value);
    }
}

struct protocol *pair_join(const struct protocol *a, const struct protocol *b,
                           const struct gate_settings *settings) {
    struct protocol *p = must_alloc(sizeof *p);
    const size_t n = a->n_points;
    *p = *a; /* borrows names, files and swept keys */
    p->facts = (struct facts){0};
    copy_facts(&p->facts, &a->facts);
    gate_facts(&p->facts, settings);
    p->points = must_alloc((2 * n + 1) * sizeof *p->points);
    p->n_points = 2 * n;
    for (size_t i = 0; i < 2 * n; i++) {
        p->points[i] = i < n ? a->points[i] : b->points[i - n];
        p->points[i].index = (int64_t)i;
        p->points[i].side = side_names[i < n ? SIDE_A : SIDE_B];
    }
    return p;
}

void pair_join_free(struct protocol **p) {
    if (!*p) return;
    facts_free(&(*p)->facts);
    free((*p)->points);
    free(*p);
    *p = NULL;
}
