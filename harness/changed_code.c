/* SPDX-License-Identifier: Apache-2.0 */
/* Two symbol tables, function by function. Whatever a file says of itself is checked before it is
 * followed, and the work is bounded: programs come from anywhere. */
#include "harness/changed_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "harness/image.h"

enum {
    MOST_SYMBOLS = 1 << 18,
    MOST_NAME = 1024,
    MOST_ALIKE = 32,      /* of one name in one file: the rest is paired in order */
    MOST_NAMED = 4,       /* in the sentence */
    CONSTANT = 16,        /* bytes by which two unnamed constants are told apart */
    STRING = 256,         /* of a text */
    MOST_WORK = 500000000 /* about bytes compared; a program of ours needs some millions */
};

struct symbol { /* a function, or an object that code refers to */
    const char *name, *file;
    uint64_t at, size;
    const char *bytes; /* of a function; else NULL */
};

struct code { /* of one program */
    struct image image;
    struct symbol *by_name, *by_place; /* (n); those of by_name are functions, (n_functions) */
    size_t n, n_functions;
    int64_t *work;
};

/* --- reading --- */

/* A name of a table of strings that ends in it; "" otherwise. */
static const char *string_at(const struct image *m, const Elf64_Shdr *strings, uint32_t at) {
    if (at >= strings->sh_size) return "";
    const char *s = m->data + strings->sh_offset + at;
    const uint64_t left = strings->sh_size - at;
    return memchr(s, 0, left < MOST_NAME ? left : MOST_NAME) ? s : "";
}

/* Where bytes of an address lie in the file, and how many of its section follow; NULL: nowhere. */
static const char *bytes_at(const struct image *m, uint64_t address, uint64_t *left,
                            Elf64_Shdr *section) {
    for (unsigned i = 0; i < m->head.e_shnum; i++) {
        const Elf64_Shdr s = image_section(m, i);
        if (!(s.sh_flags & SHF_ALLOC) || address < s.sh_addr || address - s.sh_addr >= s.sh_size)
            continue;
        *section = s;
        *left = s.sh_size - (address - s.sh_addr);
        if (s.sh_type == SHT_NOBITS || !image_within(m, s.sh_offset, s.sh_size)) return NULL;
        return m->data + s.sh_offset + (address - s.sh_addr);
    }
    return NULL;
}

static bool is_code(const struct image *m, const Elf64_Sym *y, Elf64_Shdr *s) {
    if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || !y->st_size) return false;
    if (!y->st_shndx || y->st_shndx >= m->head.e_shnum) return false;
    *s = image_section(m, y->st_shndx);
    return s->sh_type == SHT_PROGBITS && s->sh_flags & SHF_EXECINSTR &&
           image_within(m, s->sh_offset, s->sh_size) && y->st_value >= s->sh_addr &&
           y->st_value - s->sh_addr < s->sh_size &&
           y->st_size <= s->sh_size - (y->st_value - s->sh_addr);
}

static int by_name(const void *x, const void *y) {
    const struct symbol *a = x, *b = y;
    int c = strcmp(a->name, b->name);
    if (!c) c = strcmp(a->file, b->file);
    return c ? c : (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *x, const void *y) {
    const struct symbol *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Symbols of the first table of symbols that is not only for linking. */
static bool read_symbols(struct code *c) {
    const struct image *m = &c->image;
    Elf64_Shdr table = {.sh_type = SHT_NULL}, strings;
    for (unsigned i = 0; i < m->head.e_shnum && table.sh_type != SHT_SYMTAB; i++)
        table = image_section(m, i);
    if (table.sh_type != SHT_SYMTAB || table.sh_entsize != sizeof(Elf64_Sym) ||
        table.sh_link >= m->head.e_shnum || !image_within(m, table.sh_offset, table.sh_size))
        return false;
    strings = image_section(m, table.sh_link);
    const size_t n = table.sh_size / sizeof(Elf64_Sym);
    if (strings.sh_type != SHT_STRTAB || !image_within(m, strings.sh_offset, strings.sh_size) ||
        n > MOST_SYMBOLS)
        return false;
    const char *file = "";
    c->by_name = must_alloc((n + 1) * sizeof *c->by_name);
    c->by_place = must_alloc((n + 1) * sizeof *c->by_place);
    for (size_t i = 0; i < n; i++) {
        Elf64_Sym y;
        Elf64_Shdr s;
        memcpy(&y, m->data + table.sh_offset + i * sizeof y, sizeof y);
        const int type = ELF64_ST_TYPE(y.st_info);
        const char *name = string_at(m, &strings, y.st_name);
        if (type == STT_FILE) file = name; /* of the local symbols that follow */
        if (!*name || !y.st_size || (type != STT_FUNC && type != STT_OBJECT)) continue;
        struct symbol one = {.name = name,
                             .file = ELF64_ST_BIND(y.st_info) == STB_LOCAL ? file : "",
                             .at = y.st_value,
                             .size = y.st_size};
        if (is_code(m, &y, &s)) one.bytes = m->data + s.sh_offset + (y.st_value - s.sh_addr);
        c->by_place[c->n++] = one;
        if (one.bytes) c->by_name[c->n_functions++] = one;
    }
    qsort(c->by_name, c->n_functions, sizeof *c->by_name, by_name);
    qsort(c->by_place, c->n, sizeof *c->by_place, by_place);
    return c->n_functions > 0;
}

static bool open_code(struct code *c, const char *path, int64_t *work) {
    *c = (struct code){.work = work};
    return image_open(&c->image, path) && c->image.head.e_machine == EM_X86_64 && read_symbols(c);
}

static void close_code(struct code *c) {
    free(c->by_name);
    free(c->by_place);
    image_close(&c->image);
}

/* --- comparing --- */

/* The symbol that an address lies in, or NULL. */
static const struct symbol *symbol_at(const struct code *c, uint64_t address) {
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (c->by_place[middle].at <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (!lo) return NULL;
    const struct symbol *s = &c->by_place[lo - 1];
    while (s > c->by_place && s[-1].at == s->at) s--, --*c->work; /* of several names the first */
    return address - s->at < s->size ? s : NULL;
}

/* Whether two tables of a `switch`, of distances from the table itself, begin with the same place
   of the function that they belong to. */
static bool same_jump(const struct symbol *f, const struct symbol *g, uint64_t x, uint64_t y,
                      const char *p, const char *q) {
    int32_t i, k;
    memcpy(&i, p, sizeof i);
    memcpy(&k, q, sizeof k);
    const uint64_t to = x + (uint64_t)(int64_t)i - f->at, other = y + (uint64_t)(int64_t)k - g->at;
    return to == other && to < f->size;
}

/* Whether two addresses, of function f and of function g, lead to the same thing: within the same
   function or object, else to constants that begin alike, else into the same section of stubs. */
static bool same_place(const struct code *a, const struct symbol *f, uint64_t x,
                       const struct code *b, const struct symbol *g, uint64_t y) {
    const struct symbol *s = symbol_at(a, x), *t = symbol_at(b, y);
    Elf64_Shdr section, other;
    uint64_t left, rest;
    *a->work -= 64 + a->image.head.e_shnum + b->image.head.e_shnum;
    if (s || t)
        return s && t && x - s->at == y - t->at && !strcmp(s->name, t->name) &&
               !strcmp(s->file, t->file);
    const char *p = bytes_at(&a->image, x, &left, &section);
    const char *q = bytes_at(&b->image, y, &rest, &other);
    if (!p || !q) return false;
    if (section.sh_flags != other.sh_flags) return false;
    if (section.sh_flags & SHF_EXECINSTR) return true; /* stubs of the linker, which it orders */
    const bool string = section.sh_flags & SHF_STRINGS;
    const size_t most = string ? STRING : CONSTANT, shorter = left < rest ? left : rest;
    const size_t n = shorter < most ? shorter : most, text = string ? strnlen(p, n) : n;
    if (image_same_bytes(p, q, text < n ? text + 1 : n)) return true;
    return n >= sizeof(int32_t) && same_jump(f, g, x, y, p, q);
}

/* Whether the 4 bytes at i are distances from the end of their instruction to the same place; an
   immediate operand of 1, 2 or 4 bytes may follow them. */
static bool same_distance(const struct code *a, const struct symbol *f, const struct code *b,
                          const struct symbol *g, uint64_t i) {
    static const uint64_t immediate[] = {0, 1, 4, 2};
    int32_t x, y;
    memcpy(&x, f->bytes + i, sizeof x);
    memcpy(&y, g->bytes + i, sizeof y);
    for (size_t k = 0; k < sizeof immediate / sizeof *immediate; k++) {
        const uint64_t end = i + sizeof x + immediate[k];
        if (same_place(a, f, f->at + end + (uint64_t)(int64_t)x, b, g,
                       g->at + end + (uint64_t)(int64_t)y))
            return true;
    }
    return false;
}

static bool same_function(const struct code *a, const struct symbol *f, const struct code *b,
                          const struct symbol *g) {
    if (f->size != g->size) return false;
    for (uint64_t i = 0; i < f->size;) {
        if (--*a->work <= 0) return false;
        if (f->bytes[i] == g->bytes[i]) {
            i++;
            continue;
        }
        uint64_t next = 0;
        for (uint64_t back = 0; back < 4 && back <= i && !next; back++)
            if (f->size - (i - back) >= 4 && same_distance(a, f, b, g, i - back))
                next = i - back + 4;
        if (!next) return false;
        i = next;
    }
    return true;
}

/* --- the sentence --- */

struct changes {
    size_t changed, added, gone;
    struct symbol named[MOST_NAMED]; /* (n_named) the longest of those that changed */
    size_t n_named;
};

static void changed(struct changes *c, const struct symbol *s) {
    size_t i = c->n_named < MOST_NAMED ? c->n_named : MOST_NAMED;
    c->changed++;
    while (i && c->named[i - 1].size < s->size) i--;
    if (i == MOST_NAMED) return;
    const size_t last = c->n_named < MOST_NAMED ? c->n_named++ : MOST_NAMED - 1;
    memmove(&c->named[i + 1], &c->named[i], (last - i) * sizeof *c->named);
    c->named[i] = *s;
}

static int same_name(const struct symbol *a, const struct symbol *b) {
    const int c = strcmp(a->name, b->name);
    return c ? c : strcmp(a->file, b->file);
}

static size_t alike(const struct symbol *s, size_t n) {
    size_t k = 1;
    while (k < n && !same_name(s, &s[k])) k++;
    return k;
}

/* All functions of one name in one file: as many as have no equal on the other side changed. */
static void compare_group(const struct code *a, const struct symbol *f, size_t n,
                          const struct code *b, const struct symbol *g, size_t m,
                          struct changes *c) {
    bool taken[MOST_ALIKE] = {false};
    const size_t both = n < m ? n : m;
    size_t equal = 0;
    const struct symbol *other = &g[0];
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = n > MOST_ALIKE || m > MOST_ALIKE ? i : 0; k < m && !found; k++) {
            if (n > MOST_ALIKE || m > MOST_ALIKE) {
                found = same_function(a, &f[i], b, &g[k]);
                break;
            }
            if (taken[k] || !same_function(a, &f[i], b, &g[k])) continue;
            taken[k] = found = true;
        }
        equal += found;
        if (!found) other = &f[i];
    }
    c->added += m - both;
    c->gone += n - both;
    for (; equal < both; equal++) changed(c, other);
}

static void compare(const struct code *a, const struct code *b, struct changes *c) {
    for (size_t i = 0, k = 0; i < a->n_functions || k < b->n_functions;) {
        const struct symbol *f = &a->by_name[i], *g = &b->by_name[k];
        const int order = i == a->n_functions ? 1 : k == b->n_functions ? -1 : same_name(f, g);
        const size_t n = order <= 0 ? alike(f, a->n_functions - i) : 0;
        const size_t m = order >= 0 ? alike(g, b->n_functions - k) : 0;
        if (!order) {
            compare_group(a, f, n, b, g, m, c);
        } else {
            c->gone += n;
            c->added += m;
        }
        i += n;
        k += m;
    }
}

static void name_changed(const struct changes *c, struct text *out) {
    for (size_t i = 0; i < c->n_named; i++) {
        const struct symbol *s = &c->named[i];
        const char *between = !i                                              ? ""
                              : i + 1 < c->n_named || c->changed > c->n_named ? ", "
                                                                              : " and ";
        text_printf(out, "%s%.60s", between, s->name);
        if (*s->file) text_printf(out, " (%.40s)", s->file);
    }
}

static void sentence(const struct changes *c, size_t n, struct text *out) {
    if (c->changed) {
        text_printf(out, "%zu of %zu functions differ%s", c->changed, n,
                    c->changed == 1 ? "s" : "");
        text_puts(out, c->changed > c->n_named ? ", among them " : ": ");
        name_changed(c, out);
    } else {
        text_printf(out, "none of %zu functions differs: what differs is data, or where things lie",
                    n);
    }
    if (c->added) text_printf(out, "; %zu %s new", c->added, c->added == 1 ? "is" : "are");
    if (c->gone) text_printf(out, "; %zu %s gone", c->gone, c->gone == 1 ? "is" : "are");
}

bool changed_code(const char *path_a, const char *path_b, struct text *out) {
    struct code a, b;
    struct changes c = {0};
    int64_t work = MOST_WORK;
    bool ok = open_code(&a, path_a, &work);
    ok = open_code(&b, path_b, &work) && ok;
    if (ok) compare(&a, &b, &c);
    ok = ok && work > 0;
    if (ok) sentence(&c, b.n_functions, out);
    close_code(&a);
    close_code(&b);
    return ok;
}
