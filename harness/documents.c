/* SPDX-License-Identifier: Apache-2.0 */
/* docs/protocol.md, docs/metrics.md and docs/format.md: what the tables say, as Markdown. */
#include <string.h>

#include "base/metric.h"
#include "base/option.h"
#include "base/text.h"
#include "harness/protocol.h"
#include "harness/sections.h"
#include "harness/topics.h"
#include "harness/words.h"
#include "kernels/device.h"
#include "probes/probe.h"
#include "results/analysis.h"
#include "results/summary.h"
#include "workloads/workload.h"

static void head(struct text *out, const char *title, const char *lead) {
    text_printf(out,
                "<!-- Made by `bench docs docs` from the tables in the sources: edit those. -->\n"
                "# %s\n\n%s\n",
                title, lead);
}

/* A cell of a Markdown table: a bar would end it. */
static void cell(struct text *out, const char *s) {
    for (; *s; s++) {
        if (*s == '|') text_puts(out, "\\");
        text_add(out, *s == '\n' ? " " : s, 1);
    }
}

static void options_table(struct text *out, const struct option *table) {
    if (!table || !table->key) {
        text_puts(out, "\nNo keys.\n");
        return;
    }
    text_puts(out, "\n| key | default | allowed | meaning | axis |\n|---|---|---|---|---|\n");
    for (const struct option *o = table; o->key; o++) {
        struct text allowed = {0};
        option_allowed(o, &allowed);
        if (o->unit && *o->unit && strcmp(o->unit, "%")) text_printf(&allowed, " %s", o->unit);
        text_printf(out, "| `%s` | ", o->key);
        cell(out, !o->def ? "required" : *o->def ? o->def : "\"\"");
        text_puts(out, " | ");
        cell(out, allowed.data);
        text_puts(out, " | ");
        cell(out, o->help);
        text_printf(out, " | %s |\n", o->flags & OPT_SWEEP ? "yes" : "");
        text_free(&allowed);
    }
}

/* Briefs are written to follow a colon; here they are sentences. */
static void sentence(struct text *out, const char *brief) {
    char first = *brief >= 'a' && *brief <= 'z' ? (char)(*brief - 'a' + 'A') : *brief;
    text_printf(out, "\n%c%s.\n", first, *brief ? brief + 1 : "");
}

static void paragraphs(struct text *out, const char *help) {
    if (help && *help) text_printf(out, "\n%s\n", help);
}

/* Examples are indented for the terminal by four, which is a code block already. */
static void example(struct text *out, const char *toml) {
    if (toml) text_printf(out, "\n%s", toml);
}

void topic_protocol_document(struct text *out) {
    head(
        out, "Protocols",
        "A protocol is one TOML file that asks a question. The same pages: `bench help protocol`.");
    for (const struct section *s = all_sections; s->name; s++) {
        text_printf(out, "\n## %s\n", s->title);
        sentence(out, s->brief);
        paragraphs(out, s->help);
        example(out, s->example);
        if (s->options) options_table(out, s->options);
    }
    text_puts(out, "\n## Workloads\n");
    for (const struct workload *const *w = all_workloads; *w; w++) {
        text_printf(out, "\n### %s\n", (*w)->name);
        sentence(out, (*w)->brief);
        paragraphs(out, (*w)->help);
        if ((*w)->flags & WORK_MODEL) text_puts(out, "\nTakes `[model]`.\n");
        options_table(out, (*w)->params);
    }
    text_puts(out, "\n## Devices\n");
    /* Devices that a build may leave out are not listed: the document is the same from every build.
     */
    for (const struct device_kind *const *d = all_devices; *d; d++) {
        if (!strncmp((*d)->name, "cuda", 4)) continue;
        text_printf(out, "\n### %s\n", (*d)->name);
        sentence(out, (*d)->brief);
        options_table(out, (*d)->params);
    }
    text_puts(out, "\n## Analyses\n");
    for (const struct analysis *const *a = all_analyses; *a; a++) {
        text_printf(out, "\n### %s\n", (*a)->name);
        sentence(out, (*a)->brief);
        options_table(out, (*a)->params);
    }
}

static void metrics_table(struct text *out, const struct metric *metrics) {
    static const char *const better[] = {"", "lower", "higher"};
    text_puts(out, "\n| metric | unit | better | exact | meaning |\n|---|---|---|---|---|\n");
    for (const struct metric *m = metrics; m->name; m++) {
        text_printf(out, "| `%s` | %s | %s | %s | ", m->name, m->unit, better[m->better],
                    m->exact ? "yes" : "");
        cell(out, m->help);
        text_puts(out, " |\n");
    }
}

/* Stored in table 'values' as PROBE.CHANNEL, and what a read costs as PROBE.read_ns. */
static void probes_tables(struct text *out) {
    static const char *const when[] = {
        "around every sample, with `measure.sample_probes` only",
        ("before and after the samples of a visit; with `measure.sample_probes` also once a "
         "millisecond between them"),
        "before and after the samples of a visit"};
    text_puts(out,
              "\n## Probes\n\nTable `values` holds each channel as `PROBE.CHANNEL`, one number "
              "a visit, and what one read costs as `PROBE.read_ns`. What cannot be read is left "
              "out; `bench list probes` says why.\n");
    for (const struct probe *const *p = all_probes; *p; p++) {
        text_printf(out, "\n### %s\n\n", (*p)->name);
        cell(out, (*p)->brief);
        if (!(*p)->channels->name) {
            text_puts(out, ".\n");
            continue;
        }
        text_printf(out, "; read %s.\n\n| channel | unit | kind | meaning |\n|---|---|---|---|\n",
                    when[(*p)->when]);
        for (const struct channel *c = (*p)->channels; c->name; c++) {
            text_printf(out, "| `%s` | %s | %s | ", c->name, c->unit,
                        c->difference ? "difference" : "last value");
            cell(out, c->help);
            text_puts(out, " |\n");
        }
    }
}

void topic_metrics_document(struct text *out) {
    head(
        out, "Metrics",
        "What the numbers of a row are called and mean. A rate names its numerator and its denominator; an exact "
        "metric is the same on every run.");
    text_puts(out, "\n## Of every run\n");
    metrics_table(out, summary_metrics);
    for (const struct workload *const *w = all_workloads; *w; w++) {
        text_printf(out, "\n## %s\n\nPhases:", (*w)->name);
        for (const struct phase *p = (*w)->phases; p && p->name; p++)
            text_printf(out, "%s `%s` (counts: %s)", p == (*w)->phases ? "" : ",", p->name,
                        p->item);
        text_puts(out, ".\n");
        if ((*w)->metrics && (*w)->metrics->name) metrics_table(out, (*w)->metrics);
    }
    probes_tables(out);
    text_puts(out, "\n## States, flags, words\n\n| word | is a | meaning |\n|---|---|---|\n");
    for (const struct word *w = all_words; w->word; w++)
        text_printf(out, "| `%s` | %s | %s |\n", w->word, word_kind_names[w->kind], w->meaning);
}
