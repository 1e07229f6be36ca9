/* SPDX-License-Identifier: Apache-2.0 */
/* [measure] and [gate]: parsed, checked, written down as facts. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "harness/sections.h"
#include "results/rows.h"

/* --- [measure] --- */

/* The last setting of a key that the user gave: --set goes before the file. */
static const struct setting *given(const struct draft *d, const char *key) {
    char full[80];
    snprintf(full, sizeof full, "measure.%s", key);
    return settings_find(&d->measure, full);
}

static void unused_rule(struct draft *d, const char *key, const char *rule, const char *active) {
    const struct setting *s = given(d, key), *stop = given(d, "stop");
    char where[64] = "the default";
    if (!s) return;
    if (stop && strchr(stop->origin, ':'))
        snprintf(where, sizeof where, "line %.*s", (int)strcspn(strchr(stop->origin, ':') + 1, ":"),
                 strchr(stop->origin, ':') + 1);
    else if (stop)
        snprintf(where, sizeof where, "--set");
    problem_at(
        d->problems, draft_place(s->origin), NULL,
        "%smeasure.%s is not used: it belongs to stop = \"%s\", and the active rule is stop = "
        "\"%s\" (%s)",
        strchr(s->origin, ':') ? "" : "--set ", key, rule, active, where);
}

static void check_measure(struct draft *d) {
    struct measure_params *m = &d->protocol->measure;
    if (m->stop == STOP_PRECISION) {
        unused_rule(d, "samples", "samples", "precision");
        const struct setting *low = given(d, "min_samples");
        if (m->min_samples > m->max_samples)
            problem_at(d->problems, low ? draft_place(low->origin) : "", NULL,
                       "measure.min_samples = %lld is above measure.max_samples = %lld",
                       (long long)m->min_samples, (long long)m->max_samples);
    } else {
        unused_rule(d, "precision", "precision", "samples");
        unused_rule(d, "min_samples", "precision", "samples");
        unused_rule(d, "max_samples", "precision", "samples");
    }
}

static void put_section_fact(struct draft *d, const char *section, const char *key,
                             const char *value, const char *origin) {
    char full[80];
    snprintf(full, sizeof full, "%s.%s", section, key);
    facts_set(&d->protocol->facts, full, value, "", origin);
}

static void put_measure_fact(struct draft *d, const char *key, const char *value,
                             const char *origin) {
    put_section_fact(d, "measure", key, value, origin);
}

/* --quick and --profile are no settings: what they change is written down with their name. */
static void apply_modes(struct draft *d) {
    struct measure_params *m = &d->protocol->measure;
    m->quick = d->request->quick;
    m->profile = d->request->profile;
    put_measure_fact(d, "quick", m->quick ? "true" : "false", m->quick ? "--quick" : "default");
    put_measure_fact(d, "profile", m->profile ? "true" : "false",
                     m->profile ? "--profile" : "default");
    if (m->quick || m->profile) {
        m->rounds = 1;
        put_measure_fact(d, "rounds", "1", m->quick ? "--quick" : "--profile");
    }
    if (m->profile) {
        m->stop = STOP_SAMPLES;
        m->samples = 1;
        put_measure_fact(d, "stop", "samples", "--profile");
        put_measure_fact(d, "samples", "1", "--profile");
    }
}

/* A section of single values: defaults, then what the user gave, then all of it as facts. */
static void read_section(struct draft *d, const struct settings *settings, const char *section,
                         const struct option *options, void *params) {
    struct names allowed = {0};
    char title[40];
    const size_t prefix = strlen(section) + 1;
    snprintf(title, sizeof title, "[%s]", section);
    names_add_options(&allowed, options, "");
    option_defaults(options, params, d->arena);
    for (size_t i = 0; i < settings->n; i++) {
        const struct setting *s = &settings->items[i];
        const struct option *o = option_find(options, s->key + prefix);
        const char *set = strchr(s->origin, ':') ? "" : "--set ";
        struct err err = {0};
        if (!o)
            draft_unknown(d, s->origin, s->key + prefix, title, &allowed);
        else if (s->kind == TOML_ARRAY || s->kind == TOML_TABLE || s->kind == TOML_OTHER)
            problem_at(d->problems, s->value_origin, NULL, "%s takes one value", s->key);
        else if (option_parse(o, s->value, params, d->arena, &err))
            problem_at(d->problems, draft_place(s->value_origin), NULL, "%s%s: %s", set, s->key,
                       err.text);
    }
    for (const struct option *o = options; o->key; o++) {
        struct text value = {0}, key = {0};
        text_printf(&key, "%s.%s", section, o->key);
        const struct setting *s = settings_find(settings, key.data);
        text_add(&value, "", 0);
        option_format(o, params, &value);
        put_section_fact(d, section, o->key, value.data, s ? s->origin : "default");
        text_free(&value);
        text_free(&key);
    }
    names_free(&allowed);
}

void draft_measure(struct draft *d) {
    read_section(d, &d->measure, "measure", measure_options, &d->protocol->measure);
    check_measure(d);
    apply_modes(d);
}

/* --- [gate] --- */

static const char *gate_place(const struct draft *d, const char *key) {
    const struct setting *s = settings_find(&d->gate, key);
    return s ? draft_place(s->value_origin) : "";
}

void draft_gate(struct draft *d) {
    struct err err = {0};
    read_section(d, &d->gate, "gate", gate_options, &d->protocol->gate);
    if (!d->gate.n || !gate_check(&d->protocol->gate, 0, 0, &err)) return;
    const bool rows = rows_check(d->protocol->gate.rows, NULL) != 0;
    const char *place = gate_place(d, rows ? "gate.rows" : "gate.tolerance");
    problem_at(d->problems, *place ? place : gate_place(d, "gate.detect"), NULL, "%s", err.text);
}

void draft_gate_names(struct draft *d, const struct names *metrics, const struct names *keys) {
    const struct gate_settings *g = &d->protocol->gate;
    if (*g->metric && !names_have(metrics, g->metric))
        draft_no_word(d, gate_place(d, "gate.metric"), "gate.metric", "metric", g->metric, metrics);
    draft_check_keys(d, gate_place(d, "gate.rows"), "gate.rows", g->rows, keys);
    /* A level that so few rounds can never reach; without gate.rows all points are judged. */
    struct err err = {0};
    if (g->tolerance < g->detect && !*g->rows && gate_check(g, d->protocol->n_points, 0, &err))
        problem_at(d->problems, gate_place(d, "gate.rounds"), NULL, "%s", err.text);
}
