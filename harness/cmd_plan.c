/* SPDX-License-Identifier: Apache-2.0 */
/* `bench plan`: the ledger of one model on one card, by batch: theory, nothing runs. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/page.h"
#include "harness/protocol.h"
#include "harness/sheet.h"

enum { MOST_MORE = 128, SETS_MOST = MOST_MORE + 16 };
static const struct flag flags[] = {
    {"--sheet", NULL, "NAME", "What to plan for",
     "data sheet of a device: a name (bench list sheets) or a file of your own", false},
    {"--type", NULL, "TYPE", "What to plan for",
     "how weights are stored (model.type): bf16; of a model's file nearest to how it stores them",
     false},
    {"--kv-type", NULL, "TYPE", "What to plan for", "element of the cache (model.kv_type): bf16",
     false},
    {"--context", NULL, "TOKENS", "What to plan for", "tokens of each sequence: 1024", false},
    {"--reserve", NULL, "BYTES", "What to plan for",
     "memory for workspace and runtime, as \"1.5 GiB\": 0", false},
    {"--slo", NULL, "TIME", "What to plan for", "longest time per token, as \"50 ms\"", false},
    {"--batch", NULL, "LIST", "What to plan for", "batches, as \"[1, 8, 64]\"", false},
    {"--set", NULL, "KEY=VALUE", "What to plan for",
     "any key of the workload ledger, the model or its shape: bench help ledger", true},
    {"--format", NULL, "FORMAT", "Output", "text (default), tsv or json", false},
    {0},
};

struct sets {
    const char *items[SETS_MOST];
    size_t n;
    struct arena *arena;
};

static void add_set(struct sets *s, const char *key, const char *value) {
    if (value && s->n < SETS_MOST) s->items[s->n++] = arena_printf(s->arena, "%s=%s", key, value);
}

static bool used(const struct sheet_figure *f) {
    for (const char *const *name = sheet_figures; *name; name++)
        if (!strcmp(f->name, *name)) return true;
    return false;
}

/* A sheet's mistakes are told with their place in it; one without a figure says nothing. */
static int check_figures(const struct sheet *sheet, struct arena *arena, struct err *err) {
    const struct workload *ledger = workload_find("ledger");
    void *params = arena_alloc(arena, ledger->params_size);
    struct err why = {0};
    size_t n = 0;
    for (size_t i = 0; i < sheet->n; i++) {
        const struct sheet_figure *f = &sheet->figures[i];
        if (!used(f)) continue;
        n++;
        if (option_parse(option_find(ledger->params, f->name), f->value, params, arena, &why))
            return err_set(err, ERR_INPUT, "%s: %s: %s", f->place, f->name, why.text);
    }
    if (n) return 0;
    return err_set(err, ERR_INPUT,
                   "the sheet '%.100s' has no figure that a plan uses: [%s], [%s] or [%s], each "
                   "with a value",
                   sheet->title, sheet_figures[0], sheet_figures[1], sheet_figures[2]);
}

static bool ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* A model's file and not one of our shapes, which go before what lies here by chance. */
static bool is_file(const char *model) {
    const char *ours = data_folder("protocols");
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/models/%s.toml", ours ? ours : "", model);
    if (ours && n > 0 && (size_t)n < sizeof path && file_exists(path)) return false;
    return file_exists(model) || strchr(model, '/') || ends_in(model, ".gguf") ||
           ends_in(model, ".safetensors");
}

/* Later ones replace: the sheet, then the flags, then --set. */
static void gather_sets(struct sets *s, const struct arguments *a, const struct sheet *sheet) {
    static const char *const keys[][2] = {
        {"--type", "model.type"},          {"--kv-type", "model.kv_type"},
        {"--context", "workload.context"}, {"--reserve", "workload.reserve"},
        {"--slo", "workload.slo"},
    };
    const char *more[MOST_MORE];
    if (is_file(a->words[0])) add_set(s, "model.type", MODEL_AS_STORED);
    for (size_t i = 0; i < sheet->n; i++)
        if (used(&sheet->figures[i]))
            add_set(s, arena_printf(s->arena, "workload.%s", sheet->figures[i].name),
                    sheet->figures[i].value);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_set(s, keys[i][1], argument(a, keys[i][0]));
    const size_t n = arguments_of(a, "--set", more, MOST_MORE);
    for (size_t i = 0; i < n && s->n < SETS_MOST; i++) s->items[s->n++] = more[i];
}

/* The ledger's points by batch, or NULL: everything that is wrong has been said. */
static struct protocol *load(const struct sets *given, const char *model, const char *batches) {
    struct sets sets = *given;
    struct protocol *p = NULL;
    struct problems *problems = problems_create();
    struct text said = {0};
    struct err err = {0};
    add_set(&sets, is_file(model) ? "model.file" : "model.shape", model);
    add_set(&sets, "sweep.workload.batch", batches);
    const struct protocol_request request = {
        .path = "plan.toml",
        .text = "title = \"Plan\"\n[workload]\nname = \"ledger\"\n[model]\nshape = \"tiny\"\n"
                "[device]\nkind = \"ref\"\n[[sweep]]\nworkload.batch = [1]\n",
        .sets = sets.items,
        .n_sets = sets.n,
        .plan = true};
    if (protocol_load(&p, &request, problems, &err)) {
        fprintf(stderr, "bench plan: %s\n", err.text);
    } else if (!p) {
        problems_print(problems, &said);
        fwrite(said.data, 1, said.len, stderr);
    } else if (strcmp(p->points[0].workload->name, "ledger") != 0) {
        fprintf(stderr, "bench plan: --set workload.name: a plan is made by the workload ledger\n");
        protocol_close(&p);
    }
    text_free(&said);
    problems_close(&problems);
    return p;
}

static struct values values_of(const struct point *point) {
    struct values v = {0};
    point->workload->compute(point->params, &point->config, &v);
    return v;
}

/* Powers of two up to the first that does not fit, and the largest batch that does. */
static const char *usual_batches(double users, struct arena *arena) {
    enum { UNKNOWN_MOST = 256, MOST = 1 << 20 };
    const double most = isfinite(users) ? fmin(users, MOST) : UNKNOWN_MOST;
    struct text t = {0};
    int64_t b = 2;
    text_puts(&t, "[1");
    for (; (double)b <= most; b *= 2) text_printf(&t, ", %lld", (long long)b);
    if (isfinite(users) && most > (double)b / 2) text_printf(&t, ", %.0f", most);
    if (isfinite(users) && users >= 1 && b <= MOST) text_printf(&t, ", %lld", (long long)b);
    text_puts(&t, "]");
    const char *list = arena_text(arena, t.data);
    text_free(&t);
    return list;
}

static const struct column_of {
    const char *name, *head;
    int digits;
} columns[] = {
    {"memory_gb", "memory GB", 5},
    {"fits", "fits", 0},
    {"token_time", "TPOT ms", 4},
    {"token_rate", "token/s", 5},
    {"arithmetic_time", "arithmetic ms", 4},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static void batch_rows(const struct protocol *p, struct page *page) {
    static const char *const names[] = {"batch",   "memory GB", "fits",
                                        "TPOT ms", "token/s",   "arithmetic ms"};
    page_columns(page, names, N_COLUMNS + 1);
    page->right = true;
    for (size_t i = 0; i < p->n_points; i++) {
        const struct values v = values_of(&p->points[i]);
        char cells[N_COLUMNS][40];
        const char *row[N_COLUMNS + 1] = {facts_get(&p->points[i].facts, "workload.batch", "")};
        for (int c = 0; c < N_COLUMNS; c++) {
            const double number = values_get(&v, columns[c].name);
            row[c + 1] = cells[c];
            if (!isfinite(number))
                snprintf(cells[c], sizeof cells[c], "-");
            else if (!columns[c].digits)
                snprintf(cells[c], sizeof cells[c], "%s", number > 0 ? "yes" : "no");
            else
                format_number(cells[c], sizeof cells[c], number, columns[c].digits);
        }
        page_row(page, row);
    }
}

/* All metrics of each batch. */
static void metric_rows(const struct protocol *p, struct page *page, struct arena *arena) {
    const struct metric *metrics = p->points[0].workload->metrics;
    size_t n = 0;
    while (metrics[n].name) n++;
    const char **names = arena_alloc(arena, (n + 1) * sizeof *names);
    const char **cells = arena_alloc(arena, (n + 1) * sizeof *cells);
    names[0] = "batch";
    for (size_t i = 0; i < n; i++) names[i + 1] = metrics[i].name;
    page_columns(page, names, n + 1);
    for (size_t k = 0; k < p->n_points; k++) {
        const struct values v = values_of(&p->points[k]);
        cells[0] = facts_get(&p->points[k].facts, "workload.batch", "");
        for (size_t i = 0; i < n; i++) {
            char buf[40];
            const double number = values_get(&v, metrics[i].name);
            cells[i + 1] =
                arena_text(arena, isfinite(number) ? format_exact(buf, sizeof buf, number) : "");
        }
        page_row(page, cells);
    }
}

static const char *count(double v, struct arena *arena) {
    char buf[64];
    if (!isfinite(v)) return "unknown";
    return v < 1e15 ? arena_text(arena, format_thousands(buf, sizeof buf, (int64_t)v))
                    : arena_text(arena, format_exact(buf, sizeof buf, v));
}

static void both_units(struct text *out, double bytes) {
    char si[40], iec[40];
    text_printf(out, "%s (%s)", format_bytes_si(si, sizeof si, bytes),
                format_bytes_iec(iec, sizeof iec, bytes));
}

static void line(struct text *out, const char *name) {
    text_printf(out, "\n  %s", name);
    for (size_t n = strlen(name); n < 11; n++) text_puts(out, " ");
}

/* Of a model's file: what it is. */
static void file_line(const struct point *point, struct text *out) {
    const char *file = facts_get(&point->facts, "model.file", "");
    if (!*file) return;
    line(out, "file");
    text_printf(out, "%s: %s", file, facts_get(&point->facts, "shape.source", ""));
}

static void summary(const struct point *point, const struct values *v, struct arena *arena,
                    struct text *out) {
    const char *context = facts_get(&point->facts, "workload.context", "");
    const char *slo = facts_get(&point->facts, "workload.slo", "");
    const char *reserve = facts_get(&point->facts, "workload.reserve", "");
    file_line(point, out);
    line(out, "weights");
    both_units(out, values_get(v, "weight_bytes"));
    text_printf(out, ": %s weights of %.6g bits", count(values_get(v, "parameters"), arena),
                values_get(v, "weight_bits"));
    line(out, "cache");
    text_printf(out, "%s bytes a token; a sequence of %s: ",
                count(values_get(v, "kv_bytes_per_token"), arena), context);
    both_units(out,
               values_get(v, "kv_bytes") / atof(facts_get(&point->facts, "workload.batch", "1")));
    line(out, "room");
    if (!isfinite(values_get(v, "users")))
        text_puts(out, "unknown: no sheet says how much memory there is (--sheet NAME)");
    else
        text_printf(out, "%s resident tokens beside weights and a reserve of %s: %s users of %s",
                    count(values_get(v, "resident_tokens"), arena), reserve,
                    count(values_get(v, "users"), arena), context);
    if (!strncmp(slo, "0 ", 2) || !*slo) return;
    line(out, "slo");
    if (!isfinite(values_get(v, "users_slo"))) {
        text_puts(out, "unknown: no sheet says how fast the memory is (--sheet NAME)");
        return;
    }
    text_printf(out, "%s a token: at most %s sequences together", slo,
                count(values_get(v, "users_slo"), arena));
}

static void sources(const struct sheet *sheet, struct text *out) {
    for (size_t i = 0; i < sheet->n; i++) {
        const struct sheet_figure *f = &sheet->figures[i];
        if (!used(f)) continue;
        text_printf(out, "\n  %s = %s (%s)%s", f->name, f->value, *f->kind ? f->kind : "given",
                    *f->from ? "  " : "");
        text_wrap(out, 6, PAGE_WIDTH, f->from);
    }
}

static void print_text(const struct protocol *p, const struct sheet *sheet, struct arena *arena,
                       struct text *out) {
    const struct point *first = &p->points[0];
    const struct values v = values_of(first);
    struct page page;
    text_printf(out, "%s %s, cache %s%s%s \xc2\xb7 theory: from formulas, nothing was measured\n",
                first->config.shape.name, facts_get(&first->facts, "model.type", ""),
                facts_get(&first->facts, "model.kv_type", ""), sheet->n ? ", on " : "",
                sheet->n ? sheet->title : "");
    summary(first, &v, arena, out);
    text_puts(out, "\n\n");
    batch_rows(p, &page);
    page_write(&page, PAGE_TEXT, out);
    page_free(&page);
    sources(sheet, out);
    text_puts(out, sheet->n ? "\n\n  left out: " : "\n  left out: ");
    text_wrap(out, 12, PAGE_WIDTH,
              "launches, scheduling, allocator, activations and network; every step reads all "
              "weights and caches once at the sheet's full bandwidth (bench help ledger)");
    text_puts(out, "\n");
}

static int plan(const struct arguments *a, enum page_format format, struct arena *arena) {
    struct sets sets = {.arena = arena};
    struct sheet sheet = {.title = ""};
    struct text out = {0};
    struct err err = {0};
    const char *name = argument(a, "--sheet"), *batches = argument(a, "--batch");
    if (name && (sheet_read(&sheet, name, arena, &err) || check_figures(&sheet, arena, &err)))
        return command_fail(&err);
    gather_sets(&sets, a, &sheet);
    struct protocol *p = load(&sets, a->words[0], batches ? batches : "[1]");
    if (p && !batches) {
        const struct values one = values_of(&p->points[0]);
        const char *list = usual_batches(values_get(&one, "users"), arena);
        protocol_close(&p);
        p = load(&sets, a->words[0], list);
    }
    if (!p) return EXIT_USAGE;
    if (format == PAGE_TEXT) {
        print_text(p, &sheet, arena, &out);
    } else {
        struct page page;
        metric_rows(p, &page, arena);
        page_write(&page, format, &out);
        page_free(&page);
    }
    fwrite(out.data, 1, out.len, stdout);
    text_free(&out);
    protocol_close(&p);
    return EXIT_OK;
}

static int plan_main(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_plan, argc, argv, &a), f = 0;
    if (code) return code < 0 ? EXIT_OK : code;
    const char *format = argument(&a, "--format");
    while (format && page_format_names[f] && strcmp(page_format_names[f], format)) f++;
    if (!page_format_names[f]) {
        fprintf(stderr, "bench plan: '%.100s' is no format; text, tsv, json\n", format);
        return EXIT_USAGE;
    }
    if (a.n_words != 1) {
        fprintf(stderr, "bench plan: one model is needed: bench list models, or the path of a "
                        "model's file\n");
        return EXIT_USAGE;
    }
    struct arena *arena = arena_create();
    code = plan(&a, (enum page_format)f, arena);
    arena_close(&arena);
    return code;
}

const struct command command_plan = {
    .name = "plan",
    .usage = "MODEL|FILE [--sheet NAME] [--type TYPE] [--context TOKENS] [--slo TIME] ...",
    .brief =
        "what a model should take on a card: time per token, memory, tokens and users that fit; "
        "theory",
    .group = "Find out",
    .flags = flags,
    .main = plan_main,
};
