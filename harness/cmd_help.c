/* SPDX-License-Identifier: Apache-2.0 */
/* `bench help`: every page is made from the tables that do the work. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/entry.h"
#include "harness/names.h"
#include "harness/page.h"
#include "harness/protocol.h"
#include "harness/topics.h"
#include "kernels/device.h"
#include "results/analysis.h"
#include "results/summary.h"
#include "workloads/workload.h"

static void command_page(const struct command *c, struct text *out) { command_describe(c, out); }

static void commands_by_group(struct text *out) {
    for (const struct command *const *c = all_commands; *c; c++) {
        bool seen = !(*c)->group;
        for (const struct command *const *d = all_commands; d != c && !seen; d++)
            seen = (*d)->group && !strcmp((*d)->group, (*c)->group);
        if (seen) continue;
        text_printf(out, "\n%s\n", (*c)->group);
        for (const struct command *const *d = c; *d; d++) {
            if (!(*d)->group || strcmp((*d)->group, (*c)->group)) continue;
            text_printf(out, "  %s", (*d)->name);
            text_pad(out, 11);
            page_wrap(out, 11, (*d)->brief);
            text_puts(out, "\n");
        }
    }
}

static void overview(struct text *out) {
    text_puts(out, "bench: what inference of a transformer costs on this machine, and why\n\n"
                   "  bench run PROTOCOL [--set KEY=VALUE] [--device KIND] [--quick]\n"
                   "  bench show FILE · bench plot FILE · bench export FILE --format csv\n");
    commands_by_group(out);
    text_puts(
        out,
        "\nMore\n"
        "  bench help COMMAND      flags of a command, as bench COMMAND --help\n"
        "  bench help WORKLOAD     keys, phases, metrics, and what lies inside the timing\n"
        "  bench help protocol     the sections of a protocol; also: measure, model, shape,\n"
        "                          sweep, case, analysis, published, device KIND\n"
        "  bench help METRIC       what a number means; all of them: bench list metrics\n"
        "  bench help E19          which protocols rebuild an entry of the collection\n\n"
        "Exit codes\n"
        "  0 done · 1 a confirmed regression · 2 usage, protocol or file error · 3 incomplete\n"
        "  4 incomparable · 5 undecided · 130 interrupted, what was measured is kept\n");
}

static const struct command *find_command(const char *name) {
    for (const struct command *const *c = all_commands; *c; c++)
        if (!strcmp((*c)->name, name)) return *c;
    return NULL;
}

/* The page of one word, looked for from commands to metrics; false if nothing has that name. */
static bool page_of(const char *kind, const char *word, struct text *out) {
    const struct command *c = find_command(word);
    bool any = !*kind;
    if (c && (any || !strcmp(kind, "command"))) {
        command_page(c, out);
        return true;
    }
    return topic_page(kind, word, out);
}

/* A protocol explains itself by its rows: says how to see them. */
static bool is_protocol(const char *word) {
    static const char *const folders[] = {"", "seeds/"};
    const char *root = data_folder("protocols");
    for (size_t i = 0; root && i < sizeof folders / sizeof *folders; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s%.100s.toml", root, folders[i], word);
        if (!file_exists(path)) continue;
        fprintf(stderr,
                "bench help: %s%s is a protocol; its question and rows: bench run %s%s --dry-run\n",
                folders[i], word, folders[i], word);
        return true;
    }
    return false;
}

static int unknown_topic(const char *word) {
    struct names names = {0};
    if (is_protocol(word)) return EXIT_USAGE;
    for (const struct command *const *c = all_commands; *c; c++)
        if ((*c)->group) names_add(&names, (*c)->name);
    topic_names(&names);
    const char *near = names_nearest(&names, word);
    fprintf(stderr, "bench help: nothing is called '%.100s'", word);
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, " (bench help; bench list)\n");
    names_free(&names);
    return EXIT_USAGE;
}

static int help_main(int argc, char **argv) {
    struct arguments a;
    struct text out = {0};
    int code = command_parse(&command_help, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words > 2) {
        fprintf(stderr, "bench help: at most two words, as in `bench help device cpu`\n");
        return EXIT_USAGE;
    }
    if (!a.n_words)
        overview(&out);
    else if (a.n_words == 1 && entry_number(a.words[0]))
        code = entry_page(entry_number(a.words[0]), &out) ? EXIT_OK : EXIT_USAGE;
    else if (!page_of(a.n_words == 2 ? a.words[0] : "", a.words[a.n_words - 1], &out))
        code = unknown_topic(a.words[a.n_words - 1]);
    if (out.len) fwrite(out.data, 1, out.len, code ? stderr : stdout);
    text_free(&out);
    return code;
}

static const struct flag flags[] = {{0}};
const struct command command_help = {
    .name = "help",
    .usage = "[TOPIC]",
    .brief = "this page; a command, workload, section, device, analysis or metric",
    .group = "Find out",
    .flags = flags,
    .main = help_main,
};
