/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of two programs differ: files that are made here byte by byte, this program with
 * a byte changed, and files that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"
#include "harness/changed_code.h"

static const char path_a[] = "changed_code_test.a", path_b[] = "changed_code_test.b";

/* --- a program of some functions, each of which may call another and read a constant --- */

struct function {
    const char *file, *name; /* file "": it is global */
    int fill;                /* so many bytes of the value `with` in front */
    unsigned char with;
    const char *calls, *reads; /* NULL: nothing; the constant is a text */
};
struct made {
    unsigned shift;    /* bytes by which all functions are moved */
    const char *first; /* a text in front of the constants, which moves them */
    const struct function *functions;
    size_t n;
};

enum { TEXT = 0x1000, RODATA = 0x8000, MOST = 32, SECTIONS = 5 };

static size_t length_of(const struct function *f) {
    return (size_t)f->fill + (f->calls ? 5 : 0) + (f->reads ? 7 : 0) + 1;
}

static void put32(struct text *t, uint64_t from, uint64_t to) {
    const int32_t distance = (int32_t)((int64_t)to - (int64_t)from);
    text_add(t, (const char *)&distance, sizeof distance);
}

static uint32_t put_name(struct text *names, const char *name) {
    const size_t at = names->len;
    text_add(names, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void add_symbol(struct text *table, uint32_t name, int bind, int type, unsigned section,
                       uint64_t at, uint64_t size) {
    const Elf64_Sym y = {.st_name = name,
                         .st_info = (unsigned char)ELF64_ST_INFO(bind, type),
                         .st_shndx = (uint16_t)section,
                         .st_value = at,
                         .st_size = size};
    text_add(table, (const char *)&y, sizeof y);
}

static uint64_t place_of(const struct made *m, const uint64_t *at, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->functions[i].name, name)) return at[i];
    fail_msg("no function %s", name);
    return 0;
}

static void make(const struct made *m, const char *path) {
    struct text code = {0}, constants = {0}, names = {0}, symbols = {0}, file = {0};
    uint64_t at[MOST], next = TEXT + m->shift;
    put_name(&names, "");
    add_symbol(&symbols, 0, STB_LOCAL, STT_NOTYPE, 0, 0, 0);
    if (m->first) text_add(&constants, m->first, strlen(m->first) + 1);
    for (size_t i = 0; i < m->n; i++) {
        at[i] = next;
        next += length_of(&m->functions[i]);
    }
    for (unsigned i = 0; i < m->shift; i++) text_add(&code, "\xcc", 1);
    for (size_t i = 0; i < m->n; i++) {
        const struct function *f = &m->functions[i];
        for (int k = 0; k < f->fill; k++) text_add(&code, (const char *)&f->with, 1);
        if (f->calls) {
            text_add(&code, "\xe8", 1); /* call */
            put32(&code, TEXT + code.len + 4, place_of(m, at, f->calls));
        }
        if (f->reads) {
            const uint64_t constant = RODATA + constants.len;
            text_add(&constants, f->reads, strlen(f->reads) + 1);
            text_add(&code, "\x48\x8d\x05", 3); /* lea rax, [rip + ...] */
            put32(&code, TEXT + code.len + 4, constant);
        }
        text_add(&code, "\xc3", 1); /* ret */
        if (*f->file)
            add_symbol(&symbols, put_name(&names, f->file), STB_LOCAL, STT_FILE, SHN_ABS, 0, 0);
        add_symbol(&symbols, put_name(&names, f->name), *f->file ? STB_LOCAL : STB_GLOBAL, STT_FUNC,
                   1, at[i], length_of(f));
    }
    const uint64_t begin = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
    const struct text *const parts[] = {&code, &constants, &symbols, &names};
    const Elf64_Shdr kinds[] = {
        {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TEXT},
        {.sh_type = SHT_PROGBITS,
         .sh_flags = SHF_ALLOC | SHF_STRINGS | SHF_MERGE,
         .sh_addr = RODATA},
        {.sh_type = SHT_SYMTAB, .sh_link = 4, .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_type = SHT_STRTAB}};
    Elf64_Ehdr head = {.e_machine = EM_X86_64,
                       .e_shoff = sizeof head,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = SECTIONS};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    text_add(&file, (const char *)&head, sizeof head);
    uint64_t offset = begin;
    text_add(&file, (const char *)&(Elf64_Shdr){.sh_type = SHT_NULL}, sizeof(Elf64_Shdr));
    for (int i = 0; i < SECTIONS - 1; i++) {
        Elf64_Shdr s = kinds[i];
        s.sh_offset = offset;
        s.sh_size = parts[i]->len;
        offset += s.sh_size;
        text_add(&file, (const char *)&s, sizeof s);
    }
    for (int i = 0; i < SECTIONS - 1; i++) text_add(&file, parts[i]->data, parts[i]->len);
    assert_int_equal(file_write(path, file.data, file.len, NULL), 0);
    text_free(&code);
    text_free(&constants);
    text_free(&names);
    text_free(&symbols);
    text_free(&file);
}

static void says(const struct made *a, const struct made *b, const char *expected) {
    struct text out = {0};
    make(a, path_a);
    make(b, path_b);
    assert_true(changed_code(path_a, path_b, &out));
    assert_string_equal(out.data, expected);
    text_free(&out);
}

static const struct function base[] = {
    {
        "one.c",
        "execute",
        20,
        0x90,
        "helper",
        "a text of one.c",
    },
    {"two.c", "execute", 30, 0x91, "shared", NULL},
    {"two.c", "helper", 8, 0x92, NULL, "0123456789abcdef0123456789abcdef01234567"},
    {"", "shared", 100, 0x93, "helper", "another text"},
    {"", "alone", 3, 0x94, NULL, NULL},
};
enum { N = sizeof base / sizeof *base };

static struct made with(const struct function *functions, size_t n, unsigned shift,
                        const char *first) {
    return (struct made){.shift = shift, .first = first, .functions = functions, .n = n};
}

#define NOTHING "none of 5 functions differs: what differs is data, or where things lie"

static void what_moved_has_not_changed(void **state) {
    (void)state;
    const struct made a = with(base, N, 0, NULL);
    const struct made moved = with(base, N, 3000, "texts begin elsewhere now");
    says(&a, &a, NOTHING);
    says(&a, &moved, NOTHING);
    struct function turned[N]; /* in another order, and built from another revision */
    for (size_t i = 0; i < N; i++) turned[i] = base[N - 1 - i];
    const struct made other = with(turned, N, 17, NULL);
    says(&a, &other, NOTHING);
    turned[2].reads = "fedcba9876543210fedcba9876543210fedcba98";
    says(&a, &other, NOTHING);
    turned[2].reads = "0123456789abcdef0123456789abcdef0123456g";
    says(&a, &other, "1 of 5 functions differs: helper (two.c)");
}

static void what_changed_is_named(void **state) {
    (void)state;
    struct function changed[N + 2];
    const struct made a = with(base, N, 0, NULL);
    struct made b = with(changed, N, 64, "moved");
    memcpy(changed, base, sizeof base);
    changed[1].with = 0x99;
    says(&a, &b, "1 of 5 functions differs: execute (two.c)");
    changed[3].calls = "alone"; /* the same bytes but for where a call leads */
    says(&a, &b, "2 of 5 functions differ: shared and execute (two.c)");
    changed[0].reads = "a text of one_c";
    changed[2].fill = 9; /* longer */
    says(&a, &b,
         "4 of 5 functions differ: shared, execute (two.c), execute (one.c) and helper (two.c)");
    changed[4].fill = 2;
    says(&a, &b,
         "5 of 5 functions differ, among them shared, execute (two.c), execute (one.c), helper "
         "(two.c)");
    memcpy(changed, base, sizeof base);
    changed[N] = (struct function){"two.c", "execute", 30, 0x91, "shared", NULL}; /* once more */
    changed[N + 1] = (struct function){"", "newcomer", 5, 0x90, NULL, NULL};
    b.n = N + 2;
    says(&a, &b,
         "none of 7 functions differs: what differs is data, or where things lie; 2 are new");
    says(&b, &a,
         "none of 5 functions differs: what differs is data, or where things lie; 2 are gone");
}

/* --- this program --- */

static char *data;
static size_t n;

static int read_this(void **state) {
    (void)state;
    return file_read("/proc/self/exe", (size_t)1 << 30, &data, &n, NULL);
}

static bool is_x86(void) {
    Elf64_Ehdr head;
    memcpy(&head, data, sizeof head);
    return head.e_machine == EM_X86_64;
}

static void one_byte_of_this_program(void **state) {
    (void)state;
    struct text out = {0};
    unsigned char head[64];
    if (!is_x86()) skip();
    const uintptr_t code = (uintptr_t)&changed_code;
    memcpy(head, (const void *)code, sizeof head);
    char *body = memmem(data, n, head, sizeof head);
    if (!body) skip(); /* instrumented as it runs */
    body[8] = (char)(body[8] + 1);
    assert_int_equal(file_write(path_b, data, n, NULL), 0);
    body[8] = (char)(body[8] - 1);
    assert_true(changed_code(NULL, path_b, &out));
    assert_non_null(strstr(out.data, "functions differs: changed_code"));
    assert_int_equal(memcmp(out.data, "1 of ", 5), 0);
    text_free(&out);
}

/* --- files that are cut, lie, or are something else: an answer or none, and soon --- */

/* In memory: thousands of files would wait for the disk. */
static const char *put(const char *bytes, size_t size) {
    static char path[40];
    static int fd = -1;
    if (fd < 0) fd = memfd_create("program", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), size);
    return path;
}

static void any_answer(const char *bytes, size_t size) {
    struct text out = {0}, other = {0};
    const char *path = put(bytes, size);
    if (!changed_code(path_a, path, &out)) assert_int_equal(out.len, 0);
    if (!changed_code(path, path_a, &other)) assert_int_equal(other.len, 0);
    text_free(&out);
    text_free(&other);
}

static void bad_files(void **state) {
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    struct text out = {0};
    const uint64_t key = random_key(11, 0);
    const struct made a = with(base, N, 0, NULL);
    make(&a, path_a);
    assert_int_equal(file_read(path_a, 1 << 20, &bytes, &size, NULL), 0);
    for (size_t keep = 0; keep < size; keep += keep < 500 ? 3 : 17) any_answer(bytes, keep);
    for (size_t i = 0; i < size; i++) { /* every byte, with one that is far off */
        const char before = bytes[i];
        bytes[i] = i % 2 ? (char)0xff : (char)(before ^ 0x80);
        any_answer(bytes, size);
        bytes[i] = before;
    }
    for (uint64_t k = 0; k < 500; k++) { /* several at once, most in what describes the rest */
        char *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, bytes, size);
        for (uint64_t i = 0; i < 4; i++) {
            const uint32_t within = random_below(key, k * 8 + i, 2)
                                        ? (uint32_t)(64 + SECTIONS * sizeof(Elf64_Shdr))
                                        : (uint32_t)size;
            copy[random_below(key, k * 64 + i + 32, within)] = (char)random_at(key, k * 128 + i);
        }
        any_answer(copy, size);
        free(copy);
    }
    assert_false(changed_code(path_a, "no/such", &out));
    assert_int_equal(file_write(path_b, "#!/bin/sh\n", 10, NULL), 0);
    assert_false(changed_code(path_a, path_b, &out));
    assert_int_equal(out.len, 0);
    free(bytes);
}

/* Symbols that all lie on each other: the work has an end. */
static void too_much_to_compare(void **state) {
    (void)state;
    enum { LONG = 60000 };
    static struct function many[MOST];
    struct text out = {0};
    char *bytes = NULL;
    size_t size = 0;
    for (int i = 0; i < MOST; i++) many[i] = (struct function){"x.c", "same", 10, 0x90, NULL, NULL};
    many[0].fill = LONG;
    const struct made a = with(many, MOST, 0, NULL);
    make(&a, path_a);
    assert_int_equal(file_read(path_a, 1 << 20, &bytes, &size, NULL), 0);
    Elf64_Shdr s;
    memcpy(&s, bytes + sizeof(Elf64_Ehdr) + 3 * sizeof s, sizeof s);
    for (uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym y;
        memcpy(&y, bytes + s.sh_offset + at, sizeof y);
        if (ELF64_ST_TYPE(y.st_info) != STT_FUNC) continue;
        y.st_value = TEXT + at / sizeof y; /* long ones that begin a byte apart */
        y.st_size = LONG - 2000;
        memcpy(bytes + s.sh_offset + at, &y, sizeof y);
    }
    assert_int_equal(file_write(path_a, bytes, size, NULL), 0);
    if (changed_code(path_a, path_a, &out)) assert_non_null(strstr(out.data, "none of"));
    text_free(&out);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moved_has_not_changed), cmocka_unit_test(what_changed_is_named),
        cmocka_unit_test(one_byte_of_this_program),   cmocka_unit_test(bad_files),
        cmocka_unit_test(too_much_to_compare),
    };
    const int failed = cmocka_run_group_tests(tests, read_this, NULL);
    unlink(path_a);
    unlink(path_b);
    free(data);
    return failed;
}
