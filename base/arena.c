/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in blocks that are freed at once, and allocation that ends the program when there is none.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { BLOCK_BYTES = 16 * 1024, ALIGN = 16 };

struct block {
    struct block *next;
    size_t used, size; /* of data */
    alignas(ALIGN) char data[];
};
struct arena {
    struct block *first; /* the block that small pieces come from; full ones behind it */
};

/* Not abort(): running out of memory is no bug of ours, and no input may end in a signal. */
void out_of_memory(void) {
    static const char sentence[] = "bench: the host has no memory left\n";
    ssize_t ignored = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)ignored;
    _exit(2);
}

void *must_alloc(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) out_of_memory();
    return p;
}

void *must_realloc(void *old, size_t bytes) {
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p) out_of_memory();
    return p;
}

char *must_text(const char *text) {
    size_t n = strlen(text) + 1;
    return memcpy(must_alloc(n), text, n);
}

struct arena *arena_create(void) {
    return must_alloc(sizeof(struct arena));
}

void arena_close(struct arena **arena) {
    if (!*arena) return;
    for (struct block *b = (*arena)->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(*arena);
    *arena = NULL;
}

static struct block *block_create(size_t bytes) {
    struct block *b = must_alloc(sizeof *b + bytes);
    b->size = bytes;
    return b;
}

void *arena_alloc(struct arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) out_of_memory();
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    struct block *b = arena->first;
    if (!b || b->size - b->used < bytes) {
        bool large = bytes > BLOCK_BYTES / 4;
        struct block *made = block_create(large ? bytes : BLOCK_BYTES);
        /* A large piece has a block of its own behind the first, which keeps its room. */
        struct block **at = large && b ? &b->next : &arena->first;
        made->next = *at;
        *at = made;
        b = made;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
}

char *arena_textn(struct arena *arena, const char *text, size_t n) {
    if (n == SIZE_MAX) out_of_memory();
    char *copy = arena_alloc(arena, n + 1);
    if (n) memcpy(copy, text, n);
    return copy;
}

char *arena_text(struct arena *arena, const char *text) {
    return text ? arena_textn(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = text_vformat(NULL, 0, fmt, args);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *p = arena_alloc(arena, size);
    if (n > 0) text_vformat(p, size, fmt, again);
    va_end(again);
    va_end(args);
    return p;
}
