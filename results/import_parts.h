/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a document and building tables share. */
#ifndef RESULTS_IMPORT_PARTS_H
#define RESULTS_IMPORT_PARTS_H
#include "results/import.h"

/* From here on facts come from that format; path: the file's, for the result's name. */
void import_begin(struct import *, const char *format, const char *path);
/* All of it was taken: its digest becomes part of the result's. */
void import_read(struct import *, const char *data, size_t len);

#endif
