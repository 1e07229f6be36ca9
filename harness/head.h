/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a journal: all that is known before the first visit, as tables. */
#ifndef HARNESS_HEAD_H
#define HARNESS_HEAD_H
#include "harness/protocol.h"
#include "results/journal.h"
#include "results/table.h"

/* Fills meta, protocol, files, environment, points, phases and metrics. */
void head_tables(const struct protocol *, const struct facts *environment, struct tables *);
/* Rows of phases for a point; what points says of its ledger. */
void head_phases(struct tables *, const struct point *, const struct plan *);
void head_ledger(struct table *points, int64_t row, const struct plan *);
/* Appends a row to meta. */
void head_meta(struct tables *, const char *key, const char *value);
/* The journal's last frame: whether all that was planned was measured, and why it ended. */
int head_append_end(struct journal *, bool complete, const char *why_ended, struct err *);
/* What a resumed run must share with its journal: the first fact that changed, as a sentence; false
 * if none did. */
bool head_changed(const struct tables *then, const struct tables *now, char *sentence, size_t size);

#endif
