/* SPDX-License-Identifier: Apache-2.0 */
/* Tab-separated values; a tab, newline or backslash within a cell is written as \t, \n, \r or \\.
 */
#include "base/text.h"
#include "results/export.h"
#include "results/long_rows.h"

static void cell(struct text *out, const char *value) {
    for (const char *s = value; *s; s++) switch (*s) {
        case '\t': text_puts(out, "\\t"); break;
        case '\n': text_puts(out, "\\n"); break;
        case '\r': text_puts(out, "\\r"); break;
        case '\\': text_puts(out, "\\\\"); break;
        default: text_add(out, s, 1);
        }
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    static const struct long_style style = {"\t", "\n", cell};
    (void)as, (void)err;
    long_rows(ts, &style, out);
    long_lost(ts, "tsv", lost);
    return 0;
}

const struct exporter exporter_tsv = {
    .name = "tsv",
    .brief = "as csv, between tabs; \\t \\n \\r \\\\ within cells",
    .write = write,
};
