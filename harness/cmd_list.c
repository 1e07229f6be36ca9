/* SPDX-License-Identifier: Apache-2.0 */
/* `bench list`: what there is, from the same records that do the work. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "harness/command.h"
#include "harness/names.h"
#include "harness/page.h"
#include "harness/protocol.h"
#include "harness/toml.h"
#include "kernels/cuda/kernel.h"
#include "kernels/device.h"
#include "probes/probe.h"
#include "results/analysis.h"
#include "results/export.h"
#include "results/summary.h"
#include "workloads/model/model.h"
#include "workloads/workload.h"

static void list_workloads(struct page *page) {
    static const char *const names[] = {"workload", "what it measures"};
    page_columns(page, names, 2);
    for (const struct workload *const *w = all_workloads; *w; w++)
        page_row(page, (const char *[]){(*w)->name, (*w)->brief});
}

/* What can be read here is only known by opening. */
static void list_probes(struct page *page) {
    static const char *const names[] = {"probe", "when", "here", "what it reads"};
    static const char *const when[] = {"sample", "block", "visit"};
    page_columns(page, names, 4);
    for (const struct probe *const *p = all_probes; *p; p++) {
        struct err err = {0};
        struct text what = {0};
        void *self = must_alloc((*p)->self_size + 1);
        bool works = (*p)->open(self, &err) == 0;
        if (works && (*p)->close) (*p)->close(self);
        text_printf(&what, "%s%s%s", (*p)->brief, works ? "" : "; unavailable: ", err.text);
        page_row(page, (const char *[]){(*p)->name, when[(*p)->when],
                                        works ? "works" : "unavailable", what.data});
        text_free(&what);
        free(self);
    }
}

static void list_analyses(struct page *page) {
    static const char *const names[] = {"analysis", "what it finds"};
    page_columns(page, names, 2);
    for (const struct analysis *const *a = all_analyses; *a; a++)
        page_row(page, (const char *[]){(*a)->name, (*a)->brief});
}

static void list_formats(struct page *page) {
    static const char *const names[] = {"format", "forms (--as)", "what it is"};
    page_columns(page, names, 3);
    for (const struct exporter *const *e = all_exporters; *e; e++) {
        struct text forms = {0};
        for (size_t i = 0; (*e)->as && (*e)->as[i]; i++)
            text_printf(&forms, "%s%s", i ? ", " : "", (*e)->as[i]);
        page_row(page, (const char *[]){(*e)->name, forms.data, (*e)->brief});
        text_free(&forms);
    }
}

static void metric_rows(struct page *page, const char *who, const struct metric *metrics) {
    for (const struct metric *m = metrics; m && m->name; m++)
        page_row(page, (const char *[]){m->name, m->unit, who, m->help});
}

static void list_metrics(struct page *page) {
    static const char *const names[] = {"metric", "unit", "from", "meaning"};
    page_columns(page, names, 4);
    metric_rows(page, "every run", summary_metrics);
    for (const struct workload *const *w = all_workloads; *w; w++)
        metric_rows(page, (*w)->name, (*w)->metrics);
    for (const struct probe *const *p = all_probes; *p; p++) {
        for (const struct channel *c = (*p)->channels; c->name; c++) {
            struct text name = {0};
            text_printf(&name, "%s.%s", (*p)->name, c->name);
            page_row(page, (const char *[]){name.data, c->unit, "a probe", c->help});
            text_free(&name);
        }
    }
}

/* What works here is only known by opening. */
static void device_row(struct page *page, const struct device_kind *kind) {
    struct arena *arena = arena_create();
    void *params = arena_alloc(arena, kind->params_size + 1);
    struct device *device = NULL;
    struct err err = {0};
    struct text state = {0};
    struct facts facts = {0};
    option_defaults(kind->params, params, arena);
    if (device_open(&device, kind, params, &err)) {
        text_printf(&state, "unavailable: %s", err.text);
    } else {
        kind->describe(device, &facts);
        const char *isa = facts_get(&facts, "device.isa", NULL);
        const char *threads = facts_get(&facts, "device.threads", NULL);
        if (isa) text_puts(&state, isa);
        if (threads)
            text_printf(&state, "%s%s thread%s", isa ? ", " : "", threads,
                        strcmp(threads, "1") ? "s" : "");
        if (!isa && !threads) text_puts(&state, "works");
    }
    page_row(page, (const char *[]){kind->name, state.data, kind->brief});
    device_close(&device);
    facts_free(&facts);
    text_free(&state);
    arena_close(&arena);
}

static void list_devices(struct page *page) {
    static const char *const names[] = {"device", "here", "what it is"};
    page_columns(page, names, 3);
    for (const struct device_kind *const *d = all_devices; *d; d++) device_row(page, *d);
    for (const struct device_absent *d = all_devices_absent; d->name; d++) {
        page_row(page, (const char *[]){d->name, "not built", d->reason});
    }
}

/* The texts of some top-level keys of a TOML file; false if it cannot be read. */
static bool read_keys(const char *path, const char *const *keys, size_t n, struct arena *arena,
                      const char **values, struct err *err) {
    char *data = NULL;
    size_t len = 0, n_entries = 0;
    struct toml_entry *entries = NULL;
    const char *slash = strrchr(path, '/');
    int code = file_read(path, TOML_MOST_BYTES, &data, &len, err);
    if (!code)
        code = toml_read(data, len, slash ? slash + 1 : path, arena, &entries, &n_entries, err);
    for (size_t k = 0; k < n; k++) values[k] = NULL;
    for (size_t i = 0; !code && i < n_entries; i++)
        for (size_t k = 0; k < n; k++)
            if (!strcmp(entries[i].path, keys[k])) values[k] = entries[i].text;
    free(data);
    return !code;
}

static void protocol_row(struct page *page, const char *path, const char *name) {
    static const char *const keys[] = {"title", "question"};
    const char *values[2];
    struct arena *arena = arena_create();
    struct err err = {0};
    bool ok = read_keys(path, keys, 2, arena, values, &err);
    page_row(page, (const char *[]){name, ok ? (values[1] ? values[1] : values[0]) : err.text});
    arena_close(&arena);
}

static void model_row(struct page *page, const char *path, const char *name) {
    struct arena *arena = arena_create();
    struct err err = {0};
    struct model_shape shape = {.name = name};
    char count[48] = "-", shown[40];
    const char *source = "";
    const char *keys[32] = {NULL}, *values[32];
    size_t n = 0;
    for (const struct option *o = shape_options; o->key && n < 32; o++) keys[n++] = o->key;
    bool ok = read_keys(path, keys, n, arena, values, &err);
    option_defaults(shape_options, &shape, arena);
    for (size_t i = 0; ok && i < n; i++)
        if (values[i] && option_parse(&shape_options[i], values[i], &shape, arena, &err))
            ok = false;
    if (ok) {
        format_number(shown, sizeof shown, (double)model_parameters(&shape) / 1e6, 4);
        snprintf(count, sizeof count, "%s M", shown);
        source = shape.source;
    }
    page_row(page, (const char *[]){name, count, ok ? source : err.text});
    arena_close(&arena);
}

static void list_folder(struct page *page, const char *below, const char *prefix,
                        void (*row)(struct page *, const char *path, const char *name)) {
    const char *root = data_folder("protocols");
    char path[PATH_MAX];
    struct names files = {0};
    if (!root) return;
    snprintf(path, sizeof path, "%s%s", root, below);
    names_of_folder(&files, path, ".toml");
    for (size_t i = 0; i < files.n; i++) {
        snprintf(path, sizeof path, "%s%s/%s.toml", root, below, files.items[i]);
        char name[300];
        snprintf(name, sizeof name, "%s%.200s", prefix, files.items[i]);
        row(page, path, name);
    }
    names_free(&files);
}

static void list_protocols(struct page *page) {
    static const char *const names[] = {"protocol", "question"};
    page_columns(page, names, 2);
    list_folder(page, "", "", protocol_row);
    list_folder(page, "/seeds", "seeds/", protocol_row);
}

static void list_models(struct page *page) {
    static const char *const names[] = {"model", "parameters", "source"};
    page_columns(page, names, 3);
    list_folder(page, "/models", "", model_row);
}

/* Its title, and where the bandwidth comes from. */
static void sheet_row(struct page *page, const char *path, const char *name) {
    static const char *const keys[] = {"title", "hbm_bytes_per_s.value", "memory_bytes.value"};
    const char *values[3];
    struct arena *arena = arena_create();
    struct err err = {0};
    bool ok = read_keys(path, keys, 3, arena, values, &err);
    for (int i = 0; i < 3; i++)
        if (!values[i]) values[i] = "-";
    page_row(page, (const char *[]){name, values[1], values[2], ok ? values[0] : err.text});
    arena_close(&arena);
}

static void list_sheets(struct page *page) {
    static const char *const names[] = {"sheet", "byte/s", "bytes", "device"};
    page_columns(page, names, 4);
    list_folder(page, "/devices", "", sheet_row);
}

static void kernel_row(struct page *page, const char *op, const struct card *c) {
    enum { N = 10 };
    const double numbers[N] = {c->d,      c->threads,     c->min_blocks, c->regs_max, c->smem,
                               c->stages, c->stage_bytes, c->ldg128_min, c->hmma_min, c->local_pct};
    char shown[N][24];
    for (int i = 0; i < N; i++) snprintf(shown[i], sizeof shown[i], "%.9g", numbers[i]);
    page_row(page, (const char *[]){c->name, op, c->type, shown[0], shown[1], shown[2], shown[3],
                                    shown[4], shown[5], shown[6], shown[7], shown[8], shown[9],
                                    c->proof});
}

/* All that is declared of CUDA kernels, whether this build has them or not. */
static void list_kernels(struct page *page) {
    static const char *const names[] = {
        "kernel", "op",     "type",        "d",          "threads",  "min_blocks", "regs_max",
        "smem",   "stages", "stage_bytes", "ldg128_min", "hmma_min", "local_pct",  "proof"};
    page_columns(page, names, sizeof names / sizeof *names);
    for (const struct card_table *t = cuda_card_tables; t->op; t++)
        for (int i = 0; i < t->n; i++) kernel_row(page, t->op, &t->cards[i]);
}

/* What of it fits a page. */
static void list_kernels_briefly(struct page *page) {
    static const char *const names[] = {"kernel",  "op",   "type", "d",
                                        "threads", "regs", "smem", "proof"};
    page_columns(page, names, sizeof names / sizeof *names);
    for (const struct card_table *t = cuda_card_tables; t->op; t++) {
        for (int i = 0; i < t->n; i++) {
            const struct card *c = &t->cards[i];
            char d[16], threads[16], regs[16], smem[16];
            snprintf(d, sizeof d, "%d", c->d);
            snprintf(threads, sizeof threads, "%d", c->threads);
            snprintf(regs, sizeof regs, "%d", c->regs_max);
            snprintf(smem, sizeof smem, "%d", c->smem);
            page_row(page,
                     (const char *[]){c->name, t->op, c->type, d, threads, regs, smem, c->proof});
        }
    }
}

static const struct kind {
    const char *name;
    void (*list)(struct page *);
    void (*list_text)(struct page *); /* where a page is too narrow for all columns; else NULL */
    bool asked; /* long, or of no use before the first run: only where its name is given */
} kinds[] = {
    {"protocols", list_protocols, NULL, false},
    {"workloads", list_workloads, NULL, false},
    {"devices", list_devices, NULL, false},
    {"models", list_models, NULL, false},
    {"sheets", list_sheets, NULL, false},
    {"probes", list_probes, NULL, true},
    {"metrics", list_metrics, NULL, true},
    {"analyses", list_analyses, NULL, true},
    {"formats", list_formats, NULL, true},
    {"kernels", list_kernels, list_kernels_briefly, true},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int list_one(const struct kind *kind, enum page_format format) {
    struct page page;
    struct text out = {0};
    (format == PAGE_TEXT && kind->list_text ? kind->list_text : kind->list)(&page);
    page_write(&page, format, &out);
    fwrite(out.data, 1, out.len, stdout);
    text_free(&out);
    page_free(&page);
    return EXIT_OK;
}

/* What one can run, and on what; the names of the rest. */
static void list_first(void) {
    for (size_t i = 0; i < N_KINDS; i++) {
        if (kinds[i].asked) continue;
        list_one(&kinds[i], PAGE_TEXT);
        printf("\n");
    }
    printf("next  bench run PROTOCOL --dry-run \xc2\xb7 bench help WORKLOAD\n      bench list");
    const char *separator = " ";
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!kinds[i].asked) continue;
        printf("%s%s", separator, kinds[i].name);
        separator = "|";
    }
    printf("\n");
}

static int unknown_kind(const char *word) {
    const char *names[N_KINDS];
    for (size_t i = 0; i < N_KINDS; i++) names[i] = kinds[i].name;
    const char *near = text_nearest(word, names, N_KINDS);
    fprintf(stderr, "bench list: nothing is called '%.100s'%s%s%s (there are", word,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    for (size_t i = 0; i < N_KINDS; i++) fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fprintf(stderr, ")\n");
    return EXIT_USAGE;
}

static const struct flag flags[] = {
    {"--format", NULL, "FORMAT", "Output", "text (default), tsv or json", false},
    {0},
};

static int list_main(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_list, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    const char *format = argument(&a, "--format");
    int f = 0;
    while (format && page_format_names[f] && strcmp(page_format_names[f], format)) f++;
    if (!page_format_names[f]) {
        fprintf(stderr, "bench list: '%.100s' is no format; text, tsv, json\n", format);
        return EXIT_USAGE;
    }
    if (a.n_words > 1 || (!a.n_words && f)) {
        fprintf(stderr, "bench list: name one of protocols, workloads, devices, models, ...\n");
        return EXIT_USAGE;
    }
    if (!a.n_words) return list_first(), EXIT_OK;
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(a.words[0], kinds[i].name)) return list_one(&kinds[i], (enum page_format)f);
    return unknown_kind(a.words[0]);
}

const struct command command_list = {
    .name = "list",
    .usage = "[protocols|workloads|devices|models|sheets|probes|metrics|analyses|formats|kernels]",
    .brief = "what there is: experiments, kinds of experiment, devices and what works of them here",
    .group = "Find out",
    .flags = flags,
    .main = list_main,
};
