/* SPDX-License-Identifier: Apache-2.0 */
/* Two ELF files, section by section. */
#include "harness/same_program.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/image.h"

/* The next section from *at on that is loaded and no note. */
static bool next_loaded(const struct image *m, unsigned *at, Elf64_Shdr *s) {
    while (*at < m->head.e_shnum) {
        *s = image_section(m, (*at)++);
        if (s->sh_flags & SHF_ALLOC && s->sh_type != SHT_NOTE) return true;
    }
    return false;
}

static bool same_section(const struct image *a, const Elf64_Shdr *x, const struct image *b,
                         const Elf64_Shdr *y) {
    if (x->sh_type != y->sh_type || x->sh_flags != y->sh_flags || x->sh_addr != y->sh_addr ||
        x->sh_size != y->sh_size)
        return false;
    if (x->sh_type == SHT_NOBITS) return true;
    return image_within(a, x->sh_offset, x->sh_size) && image_within(b, y->sh_offset, y->sh_size) &&
           image_same_bytes(a->data + x->sh_offset, b->data + y->sh_offset, x->sh_size);
}

static bool same_images(const struct image *a, const struct image *b) {
    Elf64_Shdr x = {0}, y = {0};
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
    return !stat(image_path(a), &x) && !stat(image_path(b), &y) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

bool same_program(const char *a, const char *b) {
    if (one_file(a, b)) return true; /* nothing of its many megabytes need be read */
    struct image x, y;
    const bool read = image_open(&x, a), both = image_open(&y, b) && read;
    const bool equal = x.data && y.data && x.n && x.n == y.n && !memcmp(x.data, y.data, x.n);
    const bool same = equal || (both && same_images(&x, &y));
    image_close(&x);
    image_close(&y);
    return same;
}
