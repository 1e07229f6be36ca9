/* SPDX-License-Identifier: Apache-2.0 */
/* Plain pages: words wrapped at 100 columns, and small tables that are written aligned, as TSV or
 * as JSON. */
#ifndef HARNESS_PAGE_H
#define HARNESS_PAGE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define PAGE_WIDTH 100

/* Adds words at `column`, starting a new line where one would cross the page's edge; no newline at
 * the end. */
void page_wrap(struct text *, size_t column, const char *words);

struct page {                 /* zero-initialise, then page_columns */
    const char *const *names; /* (n_columns), borrowed */
    size_t n_columns, n_rows, cap;
    char **cells; /* (n_rows, n_columns) */
    bool right;   /* TEXT: columns of numbers stand flush right; set it after page_columns */
};
enum page_format { PAGE_TEXT, PAGE_TSV, PAGE_JSON };
extern const char *const page_format_names[]; /* "text", "tsv", "json", NULL */

void page_columns(struct page *, const char *const *names, size_t n);
void page_row(struct page *, const char *const *cells); /* copies; NULL cells are "" */
/* TEXT: no heading where there is one column; the last column is wrapped. JSON: an array of
 * objects. */
void page_write(const struct page *, enum page_format, struct text *);
void page_free(struct page *);

#endif
