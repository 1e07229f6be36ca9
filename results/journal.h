/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: frames appended and fsynced one per visit; whatever dies, all earlier visits stay.
 */
#ifndef RESULTS_JOURNAL_H
#define RESULTS_JOURNAL_H
#include <stdbool.h>
#include <stdint.h>
#include "results/table.h"

struct err;
struct journal; /* opaque: an append-only file, locked by its writer */

enum journal_kind {                    /* frame kinds */
                    JOURNAL_HEAD = 1,  /* tables meta, protocol, files, environment, points, phases,
                                          metrics: once, first */
                    JOURNAL_VISIT = 2, /* tables visits, warmup, samples, marks, values, memory,
                                          ceilings, ranges of one visit, and updates of its point's
                                          rows in points and phases */
                    JOURNAL_END = 3,   /* meta only: why the run ended */
};
int journal_create(struct journal **, const char *path,
                   struct err *); /* fails if the path exists or cannot be written */
/* Opens for appending: a torn last frame (a crash) is cut off. ERR_INPUT if another process holds
 * it or it is no journal. */
int journal_resume(struct journal **, const char *path, struct err *);
int journal_append(struct journal *, enum journal_kind, const struct tables *,
                   struct err *); /* write + fdatasync */
void journal_close(struct journal **);
/* Reads all whole frames into tables (appending). *visits: number of VISIT frames; a torn tail is
 * ignored and counted in *torn. */
int journal_read(const char *path, struct tables *, int64_t *visits, int *torn, struct err *);
/* Whether it can be read and has a visit. */
bool journal_holds_visits(const char *path);

#endif
