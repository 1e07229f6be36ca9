/* SPDX-License-Identifier: Apache-2.0 */
/* Text cells in columns as wide as they need, as many columns as fit; and sentences broken at
 * spaces. */
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "results/show.h"
#include "results/show_parts.h"

enum { INDENT = 2, GAP = 2, WIDTH = 100 };

void show_plain(struct text *out, const char *s) {
    for (; *s; s++) {
        const unsigned char *u = (const unsigned char *)s;
        bool c1 = u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0;
        if (c1) s++;
        text_add(out, c1 || u[0] < 0x20 || u[0] == 0x7f ? " " : s, 1);
    }
}

static const char *cell_of(const struct grid_column *c, int64_t row) {
    return c->cell[row] ? c->cell[row] : "";
}

struct grid_column *grid_add(struct grid *g, const char *head, int priority, bool left) {
    if (g->n == GRID_MOST) return NULL;
    struct grid_column *c = &g->column[g->n++];
    *c = (struct grid_column){.head = head, .priority = priority, .left = left};
    c->cell = arena_alloc(g->arena, (size_t)(g->rows + 1) * sizeof *c->cell);
    return c;
}

static size_t width_of(const struct grid *g, const struct grid_column *c) {
    size_t width = utf8_width(c->head);
    for (int64_t r = 0; r < g->rows; r++) {
        size_t w = utf8_width(cell_of(c, r));
        if (w > width) width = w;
    }
    return width;
}

/* Drops the least important columns until the rest fits; says which. */
static void grid_fit(struct grid *g, size_t width[GRID_MOST], size_t most, struct text *dropped) {
    for (;;) {
        size_t all = INDENT;
        int least = 0;
        for (int i = 0; i < g->n; i++) {
            all += width[i] + (i ? GAP : 0);
            if (g->column[i].priority <= g->column[least].priority) least = i;
        }
        if (all <= most || g->n <= 1) return;
        text_printf(dropped, "%s%s", dropped->len ? ", " : "", g->column[least].head);
        g->n--;
        memmove(&g->column[least], &g->column[least + 1],
                (size_t)(g->n - least) * sizeof *g->column);
        memmove(&width[least], &width[least + 1], (size_t)(g->n - least) * sizeof *width);
    }
}

static void put_cell(struct text *out, const char *s, size_t width, bool left, bool last,
                     const char *colour) {
    size_t own = utf8_width(s);
    for (size_t i = own; !left && i < width; i++) text_add(out, " ", 1);
    if (colour) text_puts(out, colour);
    show_plain(out, s);
    if (colour) text_puts(out, "\033[0m");
    for (size_t i = own; left && !last && i < width; i++) text_add(out, " ", 1);
}

void grid_print(struct grid *g, const struct show_options *o, struct text *out) {
    size_t width[GRID_MOST];
    struct text dropped = {0};
    for (int i = 0; i < g->n; i++) width[i] = width_of(g, &g->column[i]);
    grid_fit(g, width, (size_t)(o->width > 0 ? o->width : WIDTH), &dropped);
    for (int64_t r = -1; r < g->rows; r++) {
        text_puts(out, "  ");
        for (int i = 0; i < g->n; i++) {
            const struct grid_column *c = &g->column[i];
            const char *s = r < 0 ? c->head : cell_of(c, r), *colour = NULL;
            if (o->colour && r < 0) colour = "\033[1m";
            if (o->colour && r >= 0 && c->warns && *s && strcmp(s, "ok")) colour = "\033[31m";
            if (i) text_puts(out, "  ");
            put_cell(out, s, width[i], c->left, i + 1 == g->n, colour);
        }
        while (out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
        text_puts(out, "\n");
    }
    if (dropped.len) {
        text_printf(&dropped, " found no room%s",
                    o->metric ? "" : ": bench show --format md FILE has every column");
        show_line(out, o->width, "", 2, dropped.data);
    }
    text_free(&dropped);
}

/* '|' would end a cell, a newline the row. */
static void markdown_cell(struct text *out, const char *s) {
    text_puts(out, " ");
    for (; *s; s++) {
        if (*s == '|' || *s == '\\') text_add(out, "\\", 1);
        if (*s == '\n' || *s == '\r')
            text_puts(out, " ");
        else
            text_add(out, s, 1);
    }
    text_puts(out, " |");
}

void grid_print_markdown(const struct grid *g, struct text *out) {
    for (int64_t r = -2; r < g->rows; r++) {
        text_puts(out, "|");
        for (int i = 0; i < g->n; i++) {
            const struct grid_column *c = &g->column[i];
            if (r == -1)
                text_puts(out, c->left ? " --- |" : " ---: |");
            else
                markdown_cell(out, r < 0 ? c->head : cell_of(c, r));
        }
        text_puts(out, "\n");
    }
}

void show_line(struct text *out, int width, const char *head, size_t column, const char *text) {
    size_t most = (size_t)(width > 0 ? width : WIDTH), at = column;
    text_puts(out, "  ");
    show_plain(out, head);
    if (INDENT + utf8_width(head) + 1 > column && *head) {
        text_puts(out, "  ");
        at = INDENT + utf8_width(head) + 2;
    } else {
        text_pad(out, column);
    }
    bool first = true;
    for (const char *s = text; *s;) {
        s += strspn(s, " \n");
        size_t n = strcspn(s, " \n");
        if (!n) break;
        struct text word = {0};
        text_add(&word, s, n);
        size_t w = utf8_width(word.data);
        if (!first && at + 1 + w > most) {
            text_puts(out, "\n");
            text_pad(out, column + 2);
            at = column + 2;
            first = true;
        }
        if (!first) text_puts(out, " ");
        show_plain(out, word.data);
        at += w + (first ? 0 : 1);
        first = false;
        text_free(&word);
        s += n;
    }
    text_puts(out, "\n");
}
