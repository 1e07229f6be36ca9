/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values as RFC 4180 has them: CRLF, quotes doubled, one line of names. */
#include <string.h>

#include "base/text.h"
#include "results/export.h"
#include "results/long_rows.h"

static void cell(struct text *out, const char *value) {
    if (!strpbrk(value, ",\"\r\n")) {
        text_puts(out, value);
        return;
    }
    text_puts(out, "\"");
    for (const char *s = value; *s; s++) text_add(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    text_puts(out, "\"");
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    static const struct long_style style = {",", "\r\n", cell};
    (void)as, (void)err;
    long_rows(ts, &style, out);
    long_lost(ts, "csv", lost);
    return 0;
}

const struct exporter exporter_csv = {
    .name = "csv",
    .brief = "one line a row and metric, RFC 4180",
    .write = write,
};
