/* SPDX-License-Identifier: Apache-2.0 */
/* Help pages of everything that is not a command, each made from the record itself. */
#include "harness/topics.h"
#include "harness/words.h"

#include <stdio.h>
#include <string.h>

#include "base/metric.h"
#include "base/option.h"
#include "harness/names.h"
#include "harness/page.h"
#include "harness/protocol.h"
#include "harness/sections.h"
#include "kernels/device.h"
#include "results/analysis.h"
#include "results/export.h"
#include "results/import.h"
#include "results/summary.h"
#include "workloads/workload.h"

static void title(struct text *out, const char *kind, const char *name, const char *brief) {
    text_printf(out, "%s%s:", kind, name);
    page_wrap(out, 0, brief);
    text_puts(out, "\n");
}

static void heading(struct text *out, const char *title) { text_printf(out, "\n%s\n", title); }

static void paragraphs(struct text *out, const char *text) {
    for (const char *p = text; p && *p;) {
        const char *end = strstr(p, "\n\n");
        struct text one = {0};
        text_add(&one, p, end ? (size_t)(end - p) : strlen(p));
        page_wrap(out, 0, one.data);
        text_puts(out, end ? "\n\n" : "\n");
        text_free(&one);
        p = end ? end + 2 : NULL;
    }
}

static void metrics_list(struct text *out, const struct metric *metrics) {
    size_t width = 12, unit = 1;
    for (const struct metric *m = metrics; m && m->name; m++) {
        width = strlen(m->name) > width ? strlen(m->name) : width;
        unit = strlen(m->unit) > unit ? strlen(m->unit) : unit;
    }
    for (const struct metric *m = metrics; m && m->name; m++) {
        text_printf(out, "  %s", m->name);
        text_pad(out, width + 4);
        text_puts(out, *m->unit ? m->unit : "-");
        text_puts(out, "  ");
        text_pad(out, width + unit + 6);
        page_wrap(out, width + unit + 6, m->help);
        if (m->exact) page_wrap(out, width + unit + 6, "(exact)");
        text_puts(out, "\n");
    }
}

static void workload_page(const struct workload *w, struct text *out) {
    title(out, "workload ", w->name, w->brief);
    if (w->help && *w->help) {
        text_puts(out, "\n");
        paragraphs(out, w->help);
    }
    heading(out, "Keys");
    option_help(w->params, "workload.", out);
    if (w->flags & WORK_MODEL) text_puts(out, "  takes [model]: bench help model\n");
    heading(out, "Phases");
    for (const struct phase *p = w->phases; p && p->name; p++)
        text_printf(out, "  %s (counts: %s)\n", p->name, p->item);
    if (w->marks && w->marks->name) {
        heading(out, "Marks");
        for (const struct mark *m = w->marks; m->name; m++)
            text_printf(out, "  %s in phase %s\n", m->name, w->phases[m->phase].name);
    }
    if (w->metrics && w->metrics->name) {
        heading(out, "Its own metrics");
        metrics_list(out, w->metrics);
    }
    heading(out, "Besides");
    struct text all = {0};
    text_puts(&all, "metrics of every run:");
    for (const struct metric *m = summary_metrics; m->name; m++)
        text_printf(&all, "%s %s", m == summary_metrics ? "" : ",", m->name);
    text_puts(out, "  ");
    page_wrap(out, 2, all.data);
    text_puts(out, " (bench help METRIC)\n");
    text_free(&all);
}

static void device_page(const struct device_kind *d, struct text *out) {
    title(out, "device ", d->name, d->brief);
    heading(out, "Keys");
    if (d->params && d->params->key)
        option_help(d->params, "device.", out);
    else
        text_puts(out, "  none besides device.kind\n");
}

static void analysis_page(const struct analysis *a, struct text *out) {
    title(out, "analysis ", a->name, a->brief);
    heading(out, "Keys of [[analysis]] besides kind and case");
    option_help(a->params, "", out);
}

static void section_page(const struct section *s, struct text *out) {
    title(out, "", s->title, s->brief);
    if (s->help && *s->help) {
        text_puts(out, "\n");
        paragraphs(out, s->help);
    }
    if (s->example) text_printf(out, "\n%s", s->example);
    if (s->options) {
        heading(out, "Keys");
        option_help(s->options, s->prefix, out);
    }
}

static const struct metric *find_metric(const struct metric *list, const char *name) {
    for (const struct metric *m = list; m && m->name; m++)
        if (!strcmp(m->name, name)) return m;
    return NULL;
}

static void metric_page(const struct metric *m, const char *from, struct text *out) {
    static const char *const better[] = {"neither way is better", "lower is better",
                                         "higher is better"};
    text_printf(out, "metric %s [%s], of %s\n  ", m->name, *m->unit ? m->unit : "-", from);
    page_wrap(out, 2, m->help);
    text_printf(out, "\n  %s%s\n", better[m->better],
                m->exact ? "; exact: the same on every run" : "");
}

static bool metric_pages(const char *word, struct text *out) {
    size_t before = out->len;
    const struct metric *m = find_metric(summary_metrics, word);
    if (m) metric_page(m, "every run", out);
    for (const struct workload *const *w = all_workloads; *w; w++) {
        m = find_metric((*w)->metrics, word);
        if (m) metric_page(m, (*w)->name, out);
    }
    return out->len > before;
}

static void word_line(const struct word *w, struct text *out) {
    text_printf(out, "  %s", w->word);
    text_pad(out, 20);
    page_wrap(out, 20, w->meaning);
    text_puts(out, "\n");
}

/* One word, or all of a kind: "flags", "states", "words". */
static bool word_pages(const char *word, struct text *out) {
    size_t before = out->len;
    for (const struct word *w = all_words; w->word; w++) {
        char plural[32];
        snprintf(plural, sizeof plural, "%ss", word_kind_names[w->kind]);
        if (!strcmp(w->word, word)) {
            text_printf(out, "%s %s\n", word_kind_names[w->kind], w->word);
            word_line(w, out);
        } else if (!strcmp(plural, word)) {
            word_line(w, out);
        }
    }
    return out->len > before;
}

bool topic_page(const char *kind, const char *word, struct text *out) {
    bool any = !*kind;
    const struct workload *w = any || !strcmp(kind, "workload") ? workload_find(word) : NULL;
    if (w) return workload_page(w, out), true;
    if (any || !strcmp(kind, "section"))
        for (const struct section *s = all_sections; s->name; s++)
            if (!strcmp(s->name, word)) return section_page(s, out), true;
    const struct device_kind *d = any || !strcmp(kind, "device") ? device_kind_find(word) : NULL;
    if (d) return device_page(d, out), true;
    for (const struct device_absent *gone = all_devices_absent; gone->name; gone++) {
        if (!strcmp(gone->name, word) && (any || !strcmp(kind, "device"))) {
            text_printf(out, "device %s: not built: %s\n", gone->name, gone->reason);
            return true;
        }
    }
    const struct analysis *a = any || !strcmp(kind, "analysis") ? analysis_find(word) : NULL;
    if (a) return analysis_page(a, out), true;
    for (const struct exporter *const *x = all_exporters; *x; x++) {
        const struct exporter *e = *x;
        if (strcmp(e->name, word) || !(any || !strcmp(kind, "format"))) continue;
        text_printf(out, "format %s: %s\n  bench export FILE --format %s\n", e->name, e->brief,
                    e->name);
        for (size_t i = 1; e->as && e->as[i]; i++)
            text_printf(out, "  bench export FILE --format %s --as %s\n", e->name, e->as[i]);
        const struct importer *i = importer_find(e->name);
        if (i) text_printf(out, "  bench import FILE reads %s\n", i->brief);
        return true;
    }
    if ((any || !strcmp(kind, "metric")) && metric_pages(word, out)) return true;
    return any && word_pages(word, out);
}

void topic_names(struct names *names) {
    for (const struct word *w = all_words; w->word; w++) names_add(names, w->word);
    for (int i = 0; i < N_WORD_KINDS; i++) {
        char plural[32];
        snprintf(plural, sizeof plural, "%ss", word_kind_names[i]);
        names_add(names, plural);
    }
    for (const struct workload *const *w = all_workloads; *w; w++) names_add(names, (*w)->name);
    for (const struct section *s = all_sections; s->name; s++) names_add(names, s->name);
    for (const struct device_kind *const *d = all_devices; *d; d++) names_add(names, (*d)->name);
    for (const struct analysis *const *a = all_analyses; *a; a++) names_add(names, (*a)->name);
    for (const struct exporter *const *e = all_exporters; *e; e++) names_add(names, (*e)->name);
    for (const struct metric *m = summary_metrics; m->name; m++) names_add(names, m->name);
    for (const struct workload *const *w = all_workloads; *w; w++)
        for (const struct metric *m = (*w)->metrics; m && m->name; m++) names_add(names, m->name);
}
