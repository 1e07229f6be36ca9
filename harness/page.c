/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping words and laying out small tables. */
#include "harness/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

const char *const page_format_names[] = {"text", "tsv", "json", NULL};

void page_wrap(struct text *out, size_t column, const char *words) {
    text_wrap(out, column, PAGE_WIDTH, words);
}

void page_columns(struct page *page, const char *const *names, size_t n) {
    *page = (struct page){.names = names, .n_columns = n};
}

void page_row(struct page *page, const char *const *cells) {
    if (page->n_rows == page->cap) {
        page->cap = page->cap ? page->cap * 2 : 16;
        page->cells = must_realloc(page->cells, page->cap * page->n_columns * sizeof *page->cells);
    }
    for (size_t i = 0; i < page->n_columns; i++)
        page->cells[page->n_rows * page->n_columns + i] = must_text(cells[i] ? cells[i] : "");
    page->n_rows++;
}

void page_free(struct page *page) {
    for (size_t i = 0; i < page->n_rows * page->n_columns; i++) free(page->cells[i]);
    free(page->cells);
    *page = (struct page){0};
}

static void write_line(const struct page *page, const size_t *widths, const char *const *cells,
                       struct text *out) {
    size_t column = 0, last = page->n_columns - 1;
    while (last && !*cells[last]) last--;
    for (size_t i = 0; i <= last; i++) {
        size_t start = out->len;
        if (i == page->n_columns - 1) {
            page_wrap(out, column, cells[i]);
        } else {
            text_puts(out, cells[i]);
            column += widths[i] + 2;
            if (i < last) text_pad(out, column);
        }
        if (i == last && out->len == start) break;
    }
    text_puts(out, "\n");
}

static void write_aligned(const struct page *page, struct text *out) {
    size_t *widths = must_alloc(page->n_columns * sizeof *widths);
    for (size_t i = 0; i < page->n_columns; i++) {
        widths[i] = page->n_columns > 1 ? utf8_width(page->names[i]) : 0;
        for (size_t r = 0; r < page->n_rows; r++) {
            size_t w = utf8_width(page->cells[r * page->n_columns + i]);
            widths[i] = w > widths[i] ? w : widths[i];
        }
    }
    if (page->n_columns > 1) write_line(page, widths, page->names, out);
    for (size_t r = 0; r < page->n_rows; r++)
        write_line(page, widths, (const char *const *)page->cells + r * page->n_columns, out);
    free(widths);
}

/* TSV has no escape: what would break a line or a cell becomes a space. */
static void write_tsv_cell(const char *s, char end, struct text *out) {
    for (; *s; s++) text_add(out, *s == '\t' || *s == '\n' || *s == '\r' ? " " : s, 1);
    text_add(out, &end, 1);
}

static void write_tsv(const struct page *page, struct text *out) {
    size_t n = page->n_columns;
    for (size_t i = 0; i < n; i++) write_tsv_cell(page->names[i], i + 1 < n ? '\t' : '\n', out);
    for (size_t i = 0; i < n * page->n_rows; i++)
        write_tsv_cell(page->cells[i], i % n + 1 < n ? '\t' : '\n', out);
}

static void write_json(const struct page *page, struct text *out) {
    size_t n = page->n_columns;
    text_puts(out, "[");
    for (size_t r = 0; r < page->n_rows; r++) {
        text_puts(out, r ? ",\n  {" : "\n  {");
        for (size_t i = 0; i < n; i++) {
            if (i) text_puts(out, ", ");
            text_json(out, page->names[i]);
            text_puts(out, ": ");
            text_json(out, page->cells[r * n + i]);
        }
        text_puts(out, "}");
    }
    text_puts(out, page->n_rows ? "\n]\n" : "]\n");
}

void page_write(const struct page *page, enum page_format format, struct text *out) {
    switch (format) {
    case PAGE_TEXT: write_aligned(page, out); break;
    case PAGE_TSV: write_tsv(page, out); break;
    case PAGE_JSON: write_json(page, out); break;
    }
}
