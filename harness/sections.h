/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a protocol, as data: their keys, and the words that help and documents use. */
#ifndef HARNESS_SECTIONS_H
#define HARNESS_SECTIONS_H
#include "base/option.h"

struct section {
    const char *name, *title, *brief; /* "measure", "[measure]", one line */
    const char *help;                 /* paragraphs, or "" */
    const char *example;              /* TOML lines, indented; or NULL */
    const struct option *options;     /* or NULL: keys depend on name or kind */
    const char *prefix;               /* of the keys: "measure." */
};
extern const struct section all_sections[]; /* ends with name NULL */

struct published_params {
    const char *what, *metric, *source, *case_name;
    double value, rounded;
    int kind;
};
extern const struct option published_options[];
extern const char *const published_kind_names[];

#endif
