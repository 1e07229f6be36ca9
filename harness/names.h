/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names that are gathered, sorted, searched for the nearest and printed as "a, b, c". */
#ifndef HARNESS_NAMES_H
#define HARNESS_NAMES_H
#include <stdbool.h>
#include <stddef.h>

struct option;
struct text;

struct names { /* zero-initialise; owns copies */
    const char **items;
    size_t n, cap;
};
void names_add(struct names *, const char *name); /* once each */
void names_add_options(struct names *, const struct option *table, const char *prefix);
/* File names of a folder that end in `ending`, without it, sorted; nothing if there is no folder.
 */
void names_of_folder(struct names *, const char *folder, const char *ending);
void names_sort(struct names *);
bool names_have(const struct names *, const char *name);
const char *names_nearest(const struct names *, const char *word); /* or NULL */
void names_join(const struct names *, struct text *);              /* "a, b, c" */
void names_free(struct names *);

#endif
