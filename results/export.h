/* SPDX-License-Identifier: Apache-2.0 */
/* A format that others read. One file results/export_NAME.c each. */
#ifndef RESULTS_EXPORT_H
#define RESULTS_EXPORT_H
#include "results/table.h"

struct text;
struct exporter {
    const char *name, *brief; /* csv, tsv, json, md, ... */
    /* Appends the document to out; what the format cannot hold is said, one sentence a line, in
     * `lost`. */
    int (*write)(const struct tables *, struct text *out, struct text *lost, struct err *);
};
extern const struct exporter *const all_exporters[]; /* generated; NULL-terminated */
const struct exporter *exporter_find(const char *name);

#endif
