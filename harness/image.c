/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a program's file, of which nothing is believed. */
#include "harness/image.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MOST_BYTES ((size_t)1 << 30)
enum { REVISION = 40 }; /* digits of a git revision */

bool image_within(const struct image *m, uint64_t offset, uint64_t size) {
    return offset <= m->n && size <= m->n - offset;
}

const char *image_path(const char *program) { return program ? program : "/proc/self/exe"; }

bool image_open(struct image *m, const char *path) {
    *m = (struct image){.data = NULL};
    if (file_read(image_path(path), MOST_BYTES, &m->data, &m->n, NULL)) return false;
    if (m->n < sizeof m->head) return false;
    memcpy(&m->head, m->data, sizeof m->head);
    const Elf64_Ehdr *h = &m->head;
    return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shnum &&
           image_within(m, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));
}

void image_close(struct image *m) {
    free(m->data);
    *m = (struct image){.data = NULL};
}

Elf64_Shdr image_section(const struct image *m, unsigned i) {
    Elf64_Shdr s;
    memcpy(&s, m->data + m->head.e_shoff + i * sizeof s, sizeof s);
    return s;
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

bool image_same_bytes(const char *a, const char *b, size_t size) {
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
