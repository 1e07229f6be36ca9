/* SPDX-License-Identifier: Apache-2.0 */
/* docs/bench.1: the commands, flags and formats of the tables that help prints, as a manual page.
 */
#include "harness/man.h"

#include <string.h>

#include "base/text.h"
#include "gen/build_info.h"
#include "harness/command.h"
#include "results/export.h"
#include "results/import.h"

/* The code point at *s, which moves on; text of ours is UTF-8. */
static unsigned next_point(const char **s) {
    unsigned char c = (unsigned char)*(*s)++;
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    unsigned v = more ? c & (0x3fu >> more) : c;
    for (; more && **s; more--) v = v << 6 | ((unsigned char)*(*s)++ & 0x3fu);
    return v;
}

/* Words as roff reads them: nothing is a request, an escape or another sign than it is. */
static void words(struct text *out, const char *s) {
    static const struct {
        char c;
        const char *roff;
    } signs[] = {{'\\', "\\e"},    {'-', "\\-"},    {'`', "\\[ga]"},
                 {'\'', "\\[aq]"}, {'^', "\\[ha]"}, {'~', "\\[ti]"}};
    if (*s == '.') text_puts(out, "\\&");
    while (*s) {
        unsigned v = next_point(&s);
        const char *roff = NULL;
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (v == (unsigned char)signs[i].c) roff = signs[i].roff;
        if (roff)
            text_puts(out, roff);
        else if (v > 126)
            text_printf(out, "\\[u%04X]", v);
        else
            text_printf(out, "%c", v == '\n' ? ' ' : (char)v);
    }
}

static void line(struct text *out, const char *s) {
    words(out, s);
    text_puts(out, "\n");
}

static void bold(struct text *out, const char *s) {
    text_puts(out, "\\fB");
    words(out, s);
    text_puts(out, "\\fR");
}

static void italic(struct text *out, const char *s) {
    text_puts(out, "\\fI");
    words(out, s);
    text_puts(out, "\\fR");
}

/* Briefs begin small, as they follow a name in lists. */
static void sentence(struct text *out, const char *brief) {
    char first[2] = {*brief >= 'a' && *brief <= 'z' ? (char)(*brief - 'a' + 'A') : *brief, 0};
    words(out, first);
    words(out, *brief ? brief + 1 : "");
    text_puts(out, ".\n");
}

static void flag(struct text *out, const struct flag *f) {
    text_puts(out, ".TP\n");
    if (f->letter) {
        bold(out, f->letter);
        text_puts(out, ", ");
    }
    bold(out, f->name);
    if (f->value) {
        text_puts(out, " ");
        italic(out, f->value);
    }
    text_puts(out, "\n");
    words(out, f->help);
    text_puts(out, f->many ? " (may be repeated)\n" : "\n");
}

/* bench COMMAND and what follows. */
static void usage(struct text *out, const struct command *c) {
    const bool whole = !strncmp(c->usage, "bench ", 6);
    const char *rest = c->usage + (whole ? 6 + strlen(c->name) : 0);
    bold(out, "bench");
    text_puts(out, " ");
    bold(out, c->name);
    if (*rest && *rest != ' ') text_puts(out, " ");
    words(out, rest);
    text_puts(out, "\n");
}

static void command(struct text *out, const struct command *c) {
    text_puts(out, ".SS ");
    line(out, c->name);
    usage(out, c);
    text_puts(out, ".PP\n");
    sentence(out, c->brief);
    for (const struct flag *f = c->flags; f && f->name; f++) flag(out, f);
}

static void commands(struct text *out) {
    text_puts(out, ".SH COMMANDS\n");
    line(out, "Each has --help (-h); bench help COMMAND prints the same.");
    for (const struct command *const *c = all_commands; *c; c++)
        if ((*c)->group) command(out, *c);
}

static void formats(struct text *out) {
    text_puts(out, ".SH FORMATS\n");
    line(out, "Of bench export --format, with their forms (--as) in brackets:");
    for (const struct exporter *const *e = all_exporters; *e; e++) {
        text_puts(out, ".TP\n");
        bold(out, (*e)->name);
        for (size_t i = 0; (*e)->as && (*e)->as[i]; i++) {
            text_puts(out, i ? ", " : " [");
            words(out, (*e)->as[i]);
        }
        text_puts(out, (*e)->as ? "]\n" : "\n");
        sentence(out, (*e)->brief);
    }
    text_puts(out, ".PP\n");
    line(out, "Of bench import:");
    for (const struct importer *const *i = all_importers; *i; i++) {
        text_puts(out, ".TP\n");
        bold(out, (*i)->name);
        text_puts(out, "\n");
        sentence(out, (*i)->brief);
    }
}

static void pairs(struct text *out, const char *const (*rows)[2], size_t n) {
    for (size_t i = 0; i < n; i++) {
        text_puts(out, ".TP\n");
        bold(out, rows[i][0]);
        text_puts(out, "\n");
        line(out, rows[i][1]);
    }
}

void man_page(struct text *out) {
    static const char *const codes[][2] = {
        {"0", "Done."},
        {"1", "A confirmed regression."},
        {"2", "A mistake in usage, protocol or file."},
        {"3", "Incomplete: rows are wrong, failed, skipped, out of memory or timed out."},
        {"4", "Incomparable."},
        {"5", "Undecided."},
        {"130", "Interrupted; what was measured is kept."},
    };
    static const char *const variables[][2] = {
        {"BENCH_DATA", "The folder that holds protocols/ and plots/ instead of the installed one."},
        {"NO_COLOR", "If it is set, tables on a terminal have no colours."},
    };
    static const char *const examples[] = {
        "bench doctor",
        "bench run overhead --quick",
        "bench run protocol.toml --set workload.batch=4 -o out.h5",
        "bench show out.h5",
        "bench export out.h5 --format llama-bench --as md",
        "bench import llama-bench.json -o theirs.h5",
    };
    text_puts(out, ".\\\" Made by `bench docs docs` from the tables in the sources: edit those.\n");
    text_puts(out, ".TH BENCH 1 \"\" \"bench " BENCH_VERSION "\" \"User Commands\"\n");
    text_puts(out, ".SH NAME\nbench \\- what inference of a transformer costs on this machine, and "
                   "why\n.SH SYNOPSIS\n");
    for (const struct command *const *c = all_commands; *c; c++) {
        if (!(*c)->group) continue;
        usage(out, *c);
        text_puts(out, ".br\n");
    }
    bold(out, "bench");
    text_puts(out, " \\-\\-version\n.SH DESCRIPTION\n");
    line(out, "A protocol is one TOML file that asks a question. bench run measures it in rounds, "
              "checks the output of every fast path against a plain one, and keeps every sample in "
              "an HDF5 file, which the other commands read.");
    text_puts(out, ".PP\n");
    line(out, "bench help protocol explains the sections of a protocol, bench help WORKLOAD the "
              "keys and metrics of a workload, bench help METRIC what a number means.");
    commands(out);
    formats(out);
    text_puts(out, ".SH EXIT STATUS\n");
    pairs(out, codes, sizeof codes / sizeof *codes);
    text_puts(out, ".SH ENVIRONMENT\n");
    pairs(out, variables, sizeof variables / sizeof *variables);
    text_puts(out, ".SH EXAMPLES\n.nf\n");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) line(out, examples[i]);
    text_puts(out, ".fi\n");
}
