/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for things that live exactly as long as a protocol or a point: many small pieces, freed at
 * once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include <stddef.h>

struct arena; /* opaque; grows in blocks; aborts the process with one sentence if malloc fails */

struct arena *arena_create(void);
void arena_close(struct arena **);                  /* NULL inside is safe; sets it to NULL */
void *arena_alloc(struct arena *, size_t bytes);    /* zeroed, aligned to 16 */
char *arena_text(struct arena *, const char *text); /* a copy; NULL gives NULL */
char *arena_textn(struct arena *, const char *text, size_t n); /* a copy of n bytes and a zero */
char *arena_printf(struct arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* malloc and friends that abort with one sentence when the host has no memory left (never used for
 * device memory). */
void *must_alloc(size_t bytes); /* zeroed */
void *must_realloc(void *, size_t bytes);
char *must_text(const char *text);
/* What they do then: the sentence, and exit status 2. */
void out_of_memory(void) __attribute__((noreturn));

#endif
