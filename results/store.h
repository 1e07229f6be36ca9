/* SPDX-License-Identifier: Apache-2.0 */
/* The result file, HDF5 format 1. hdf5.h is included by store_*.c only. */
#ifndef RESULTS_STORE_H
#define RESULTS_STORE_H
#include "results/table.h"

struct err;
#define STORE_FORMAT 1

/* Writes tables (meta's rows become attributes of the root) aside, fsyncs, renames: path is whole
 * or absent. */
int store_write(const struct tables *, const char *path, struct err *);
/* The only way a run becomes a file: journal -> tables -> summaries, fits -> HDF5. complete: all
 * planned visits are there. */
int store_build(const char *journal, const char *path, struct err *);
/* Reads a file into fresh tables in a forked child with CPU and memory limits, so that no broken
   file can kill or hang us: a signal in there becomes ERR_INPUT with one sentence. Checks format
   number, equal lengths, each column's xxh64. what: names of the tables wanted (NULL-terminated),
   or NULL for all. A newer format, a foreign or edited file: ERR_INPUT. */
int store_read(struct tables **, const char *path, const char *const *what, struct err *);

#endif
