/* SPDX-License-Identifier: Apache-2.0 */
/* docs/format.md, written from the schema. */
#include <string.h>

#include "base/text.h"
#include "results/schema_markdown.h"
#include "results/store.h"

static const struct {
    const char *table, *brief;
} briefs[] = {
    {"meta", "Attributes of the file's root, not a group."},
    {"protocol", "The facts of the protocol and of every point."},
    {"files", "Everything that the protocol read, so that it can be replayed."},
    {"environment", "The facts of the machine and of the build."},
    {"ceilings", "What the machine could do at most, measured in this run."},
    {"points", "One row a point: what was asked, what ran, what it should cost, what came of it. "
               "Swept keys are further columns under their own names (`workload.batch`)."},
    {"phases", "The parts of one execution of a point."},
    {"metrics", "What the metrics mean."},
    {"visits", "One row a visit: a point in a round."},
    {"warmup", "Every execution before the samples."},
    {"samples", "Every sample. Nothing is dropped."},
    {"marks", "Moments within an execution: tokens, and where a phase begins."},
    {"values", "What a workload or a probe reported after a visit."},
    {"pairs", "Of a comparison (`bench ab`): what a round says of a row, side b against side a."},
    {"quads", "The quadruples of turns behind it, each by itself."},
    {"summary", "One row a point and metric; rows without numbers have none."},
    {"given", "Averages that an import found without the times behind them."},
    {"memory", "Every allocation and release on the device."},
    {"ranges", "Named ranges of profiled passes."},
    {"kernels", "GPU kernels by the range that launched them, of profiled visits."},
    {"fits", "What the analyses found across rows."},
    {"published", "Figures of others beside ours."},
};

static const char *brief_of(const char *table) {
    for (size_t i = 0; i < sizeof briefs / sizeof *briefs; i++)
        if (!strcmp(briefs[i].table, table)) return briefs[i].brief;
    return "";
}

/* Helps hold no '|' but might one day. */
static void cell(struct text *out, const char *s) {
    for (; *s; s++) text_add(out, *s == '|' ? "\\|" : s, *s == '|' ? 2 : 1);
}

void schema_markdown(struct text *out) {
    static const char *const types[] = {"int64", "float64", "text"};
    const char *table = "";
    text_printf(
        out,
        "# The result file, format %d\n\n"
        "Written from the program's own table of columns (`results/schema.c`); a test compares.\n\n"
        "A result is an HDF5 file. Each table is a group of equally long one-dimensional datasets, one a column: "
        "a group opens as a data frame. Numbers are int64 and float64; text is fixed-length UTF-8, padded with zeros. "
        "Every dataset has the attributes `unit`, `help` and `xxh64`: the XXH64 (seed 0) of its raw bytes, as 16 hex "
        "digits, so that an edited or rotten file is noticed. 'No number' is NaN in a float64 column and -2^63 in an "
        "int64 column; the state beside it says why. A `/` in a column's name is stored as `%%2F`, `%%` as `%%25`. "
        "Columns below 64 KiB are contiguous, larger ones chunked and deflated. The root's attribute `format` is the "
        "number above; a program reads all formats up to its own. Its attribute `tables` names the tables, each with the "
        "number of its columns, so that a missing one is noticed.\n",
        STORE_FORMAT);
    for (const struct column *c = store_schema; c->table; c++) {
        if (strcmp(c->table, table)) {
            table = c->table;
            text_printf(
                out,
                "\n## %s\n\n%s\n\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n",
                table, brief_of(table));
        }
        text_printf(out, "| `%s` | %s | ", c->name, types[c->type]);
        cell(out, c->unit);
        text_puts(out, " | ");
        cell(out, c->help);
        text_puts(out, " |\n");
    }
}
