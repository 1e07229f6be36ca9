/* SPDX-License-Identifier: Apache-2.0 */
/* GitHub tables: what `bench show` prints, to be pasted into an issue. */
#include <string.h>

#include "base/text.h"
#include "results/export.h"
#include "results/show.h"
#include "results/show_parts.h"

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    struct text head = {0};
    (void)as, (void)err;
    show_head(ts, &head);
    size_t title = strcspn(head.data, "\n");
    text_printf(out, "## %.*s\n\n%s", (int)title, head.data,
                head.data[title] ? head.data + title + 1 : "");
    show_markdown(ts, out);
    text_free(&head);
    if (table_rows(tables_peek(ts, "summary")))
        text_puts(lost,
                  "md has no place for percentiles and standard deviations; csv and json have\n");
    if (table_rows(tables_peek(ts, "fits")) || table_rows(tables_peek(ts, "published")))
        text_puts(lost, "md has no place for fits and published figures; json has\n");
    return 0;
}

const struct exporter exporter_md = {
    .name = "md",
    .brief = "GitHub tables of the rows as show prints them",
    .write = write,
};
