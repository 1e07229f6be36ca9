/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that were given and decide nothing: they belong to a word of another key that no row has. */
#include <string.h>

#include "base/text.h"
#include "harness/draft.h"
#include "workloads/workload.h"

static const struct only *only_of(const struct plan_case *c, const char *key) {
    const struct only *o = c->workload ? c->workload->only : NULL;
    if (strncmp(key, "workload.", 9) != 0) return NULL;
    for (; o && o->key; o++)
        if (!strcmp(o->key, key + 9)) return o;
    return NULL;
}

static const char *word_at(const struct point *p, const struct only *o) {
    const struct option *of = option_find(p->workload->params, o->of);
    return of->words[*(const int *)((const char *)p->params + of->offset)];
}

static bool has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && !strncmp(at, word, n)) return true;
    return false;
}

/* Whether a setting or an axis (by its address) is the case's, and whether a row of it has the
 * word. */
static bool case_has(const struct plan_case *c, const void *who) {
    for (size_t i = 0; i < c->n_settings; i++)
        if (c->settings[i] == who) return true;
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            if (&c->axes[i]->keys[k] == who) return true;
    return false;
}

static bool case_uses(const struct draft *d, const struct plan_case *c, const struct only *o) {
    const struct point *points = d->protocol->points + c->first_point;
    for (size_t i = 0; i < c->n_points; i++)
        if (has_word(o->words, word_at(&points[i], o))) return true;
    return false;
}

/* By --set: then the file's other keys are left behind, as those of another device are. */
static bool chosen_outside(const struct plan_case *c, const struct only *o) {
    for (size_t i = 0; i < c->n_settings; i++)
        if (!strncmp(c->settings[i]->key, "workload.", 9) &&
            !strcmp(c->settings[i]->key + 9, o->of) && !strchr(c->settings[i]->origin, ':'))
            return true;
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            if (!strncmp(c->axes[i]->keys[k].key, "workload.", 9) &&
                !strcmp(c->axes[i]->keys[k].key + 9, o->of) &&
                !strchr(c->axes[i]->keys[k].origin, ':'))
                return true;
    return false;
}

/* "poisson or bursts" */
static void or_words(const char *words, struct text *t) {
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, " ");
        const char *rest = at + n + (at[n] == ' ');
        text_printf(t, "%s%.*s", at == words ? "" : *rest ? ", " : " or ", (int)n, at);
        at = rest;
    }
}

/* One that several cases have is told of at the first of them, and only if none uses it. */
static void look_at(struct draft *d, size_t first, const void *who, const char *key,
                    const char *origin) {
    const struct plan_case *c = &d->plans[first];
    const struct only *o = only_of(c, key);
    if (!o || !c->n_points) return;
    for (size_t i = 0; i < d->n_plans; i++) {
        const struct plan_case *other = &d->plans[i];
        if (other->bad || !case_has(other, who)) continue;
        const struct only *theirs = only_of(other, key);
        if (i < first || !theirs || case_uses(d, other, theirs)) return;
        if (strchr(origin, ':') && chosen_outside(other, theirs)) return;
    }
    struct text words = {0};
    or_words(o->words, &words);
    problem_at(d->problems, draft_place(origin), NULL,
               "%s%s is not used: it belongs to workload.%s = %s, and that is %s%s",
               strchr(origin, ':') ? "" : "--set ", key, o->of, words.data,
               word_at(&d->protocol->points[c->first_point], o), c->n_points > 1 ? " here" : "");
    text_free(&words);
}

void draft_idle(struct draft *d) {
    if (d->request->quick) return; /* the rows that it leaves out may have the word */
    for (size_t i = 0; i < d->n_plans; i++) {
        const struct plan_case *c = &d->plans[i];
        for (size_t k = 0; !c->bad && k < c->n_settings; k++)
            look_at(d, i, c->settings[k], c->settings[k]->key, c->settings[k]->origin);
        for (size_t a = 0; !c->bad && a < c->n_axes; a++)
            for (size_t k = 0; k < c->axes[a]->n_keys; k++)
                look_at(d, i, &c->axes[a]->keys[k], c->axes[a]->keys[k].key,
                        c->axes[a]->keys[k].origin);
    }
}
