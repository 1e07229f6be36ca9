/* SPDX-License-Identifier: Apache-2.0 */
/* All mistakes of a protocol, gathered, then printed sorted by place: one sentence each, with what
 * is allowed. */
#ifndef BASE_PROBLEMS_H
#define BASE_PROBLEMS_H
#include <stddef.h>

struct facts;
struct text;
struct problems; /* opaque */

struct problems *problems_create(void);
void problems_close(struct problems **);
/* Where keys come from: the facts of the point under check, whose origins ("file:line:col") place a
 * problem. Borrowed. */
void problems_scope(struct problems *, const struct facts *);
/* A mistake about `key` (dotted), and the key it contradicts (or NULL). Repeated identical
 * sentences are kept once. */
void problem(struct problems *, const char *key, const char *other, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A mistake at a known place ("file:line:col"), and an optional indented line that says what is
 * allowed (or NULL). */
void problem_at(struct problems *, const char *place, const char *allowed, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
size_t problems_count(const struct problems *);
/* All, sorted by file, line, column; then "N mistakes; nothing was measured". */
void problems_print(const struct problems *, struct text *);

#endif
