/* SPDX-License-Identifier: Apache-2.0 */
/* Two ELF files, section by section. */
#include "harness/same_program.h"

#include <ctype.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

#define MOST_BYTES ((size_t)1 << 30)
enum { REVISION = 40 }; /* digits of a git revision */

struct image {
    char *data;
    size_t n;
    Elf64_Ehdr head;
};

static bool within(const struct image *m, uint64_t offset, uint64_t size) {
    return offset <= m->n && size <= m->n - offset;
}

static const char *path_of(const char *program) { return program ? program : "/proc/self/exe"; }

static bool open_image(const char *path, struct image *m) {
    if (file_read(path_of(path), MOST_BYTES, &m->data, &m->n, NULL)) return false;
    if (m->n < sizeof m->head) return false;
    memcpy(&m->head, m->data, sizeof m->head);
    const Elf64_Ehdr *h = &m->head;
    return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shnum &&
           within(m, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));
}

/* The next section from *at on that is loaded and no note. */
static bool next_loaded(const struct image *m, unsigned *at, Elf64_Shdr *s) {
    while (*at < m->head.e_shnum) {
        memcpy(s, m->data + m->head.e_shoff + (*at)++ * sizeof *s, sizeof *s);
        if (s->sh_flags & SHF_ALLOC && s->sh_type != SHT_NOTE) return true;
    }
    return false;
}

static size_t digits_before(const char *p, size_t i) {
    size_t n = 0;
    while (n < i && isxdigit((unsigned char)p[i - n - 1])) n++;
    return n;
}

static size_t digits_from(const char *p, size_t i, size_t size) {
    size_t n = 0;
    while (i + n < size && isxdigit((unsigned char)p[i + n])) n++;
    return n;
}

/* Where bytes differ within a word of as many hexadecimal digits as a revision has, in both. */
static bool same_bytes(const char *a, const char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (a[i] == b[i]) continue;
        const size_t before = digits_before(a, i), rest = digits_from(a, i, size);
        if (!rest || before + rest != REVISION || before != digits_before(b, i) ||
            rest != digits_from(b, i, size))
            return false;
        i += rest;
    }
    return true;
}

static bool same_section(const struct image *a, const Elf64_Shdr *x, const struct image *b,
                         const Elf64_Shdr *y) {
    if (x->sh_type != y->sh_type || x->sh_flags != y->sh_flags || x->sh_addr != y->sh_addr ||
        x->sh_size != y->sh_size)
        return false;
    if (x->sh_type == SHT_NOBITS) return true;
    return within(a, x->sh_offset, x->sh_size) && within(b, y->sh_offset, y->sh_size) &&
           same_bytes(a->data + x->sh_offset, b->data + y->sh_offset, x->sh_size);
}

static bool same_images(const struct image *a, const struct image *b) {
    Elf64_Shdr x, y;
    unsigned i = 0, k = 0;
    bool any = false;
    if (a->head.e_machine != b->head.e_machine || a->head.e_entry != b->head.e_entry) return false;
    for (;;) {
        const bool more = next_loaded(a, &i, &x);
        if (next_loaded(b, &k, &y) != more) return false;
        if (!more) return any;
        if (!same_section(a, &x, b, &y)) return false;
        any = true;
    }
}

static bool one_file(const char *a, const char *b) {
    struct stat x, y;
    return !stat(path_of(a), &x) && !stat(path_of(b), &y) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

bool same_program(const char *a, const char *b) {
    if (one_file(a, b)) return true; /* nothing of its many megabytes need be read */
    struct image x = {0}, y = {0};
    const bool read = open_image(a, &x), both = open_image(b, &y) && read;
    const bool equal = x.data && y.data && x.n && x.n == y.n && !memcmp(x.data, y.data, x.n);
    const bool same = equal || (both && same_images(&x, &y));
    free(x.data);
    free(y.data);
    return same;
}
