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

/* Whether all cells of a column are numbers or "-". */
static bool is_numbers(const struct page *page, size_t column) {
    size_t numbers = 0;
    for (size_t r = 0; r < page->n_rows; r++) {
        const char *cell = page->cells[r * page->n_columns + column];
        double v;
        if (!*cell || !strcmp(cell, "-")) continue;
        if (!parse_f64(cell, &v)) return false;
        numbers++;
    }
    return numbers > 0;
}

struct widths {
    size_t *width; /* (n_columns) */
    bool *right;
};

static void write_line(const struct page *page, const struct widths *w, const char *const *cells,
                       struct text *out) {
    size_t column = 0, last = page->n_columns - 1;
    while (last && !*cells[last]) last--;
    for (size_t i = 0; i <= last; i++) {
        size_t start = out->len;
        if (w->right[i]) text_pad(out, column + w->width[i] - utf8_width(cells[i]));
        if (i == page->n_columns - 1) {
            page_wrap(out, column, cells[i]);
        } else {
            text_puts(out, cells[i]);
            column += w->width[i] + 2;
            if (i < last) text_pad(out, column);
        }
        if (i == last && out->len == start) break;
    }
    text_puts(out, "\n");
}

static void write_aligned(const struct page *page, struct text *out) {
    struct widths w = {.width = must_alloc(page->n_columns * sizeof *w.width),
                       .right = must_alloc(page->n_columns * sizeof *w.right)};
    size_t *widths = w.width;
    for (size_t i = 0; i < page->n_columns; i++) {
        widths[i] = page->n_columns > 1 ? utf8_width(page->names[i]) : 0;
        for (size_t r = 0; r < page->n_rows; r++) {
            size_t width = utf8_width(page->cells[r * page->n_columns + i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
        w.right[i] = page->right && is_numbers(page, i);
    }
    if (page->n_columns > 1) write_line(page, &w, page->names, out);
    for (size_t r = 0; r < page->n_rows; r++)
        write_line(page, &w, (const char *const *)page->cells + r * page->n_columns, out);
    free(w.width);
    free(w.right);
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
