/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: ordered `key = value [unit]` with its origin. Whatever differs between two runs is one. */
#ifndef BASE_FACTS_H
#define BASE_FACTS_H
#include <stddef.h>
#include <stdint.h>

struct fact {
    const char *key;    /* dotted: "workload.batch", "cpu.model" */
    const char *value;  /* text, as the user would write it */
    const char *unit;   /* "" where none */
    const char *origin; /* "file.toml:12:3", "default", "--set", "measured", "" */
};
struct facts { /* zero-initialise; owns copies of all texts */
    struct fact *items;
    size_t n, cap;
};
void facts_set(struct facts *, const char *key, const char *value, const char *unit,
               const char *origin); /* replaces */
void facts_printf(struct facts *, const char *key, const char *unit, const char *origin,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
const struct fact *facts_find(const struct facts *, const char *key);
const char *facts_get(const struct facts *, const char *key, const char *otherwise);
void facts_copy(struct facts *to, const struct facts *from); /* sets each of `from` in `to` */
void facts_free(struct facts *);
/* One line a fact: key TAB value TAB unit TAB origin NEWLINE (backslash escapes); what sockets and
 * journals carry. */
struct text;
struct err;
void facts_pack(struct text *, const struct facts *);
int facts_unpack(struct facts *, const char *data, size_t len, struct err *);
uint64_t facts_hash(const struct facts *); /* of keys and values, order-free */

#endif
