/* SPDX-License-Identifier: Apache-2.0 */
/* A format that others read. One file results/export_NAME.c each. */
#ifndef RESULTS_EXPORT_H
#define RESULTS_EXPORT_H
#include "results/table.h"

struct text;
struct exporter {
    const char *name, *brief; /* csv, tsv, json, md, ... */
    const char *const *as;    /* forms of it, NULL-terminated, the usual one first; NULL: one */
    /* Appends the document in that form (one of `as`; NULL where there are none) to out; what the
     * format cannot hold is said, one sentence a line, in `lost`. */
    int (*write)(const struct tables *, const char *as, struct text *out, struct text *lost,
                 struct err *);
};
extern const struct exporter *const all_exporters[]; /* generated; NULL-terminated */
const struct exporter *exporter_find(const char *name);
/* The whole way: as may be NULL for the usual form; a form that the format has not is ERR_INPUT. */
int exporter_write(const struct exporter *, const struct tables *, const char *as, struct text *out,
                   struct text *lost, struct err *);

#endif
