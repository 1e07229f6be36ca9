/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 library runs in a child only: it crashes, exits or hangs on damaged files and for want
 * of memory, and we do not. */
#ifndef RESULTS_STORE_CHILD_H
#define RESULTS_STORE_CHILD_H
#include "base/text.h"

struct err;

/* Runs work in a child and appends to answer what it appended to out. *status: as of waitpid; a
   child that ran out of memory of its own exits with 2. wall_seconds: 0 is no limit. what: "read",
   for the sentence of err, which is about the child, not its work. */
int store_child(void (*work)(void *ctx, struct text *out), void *ctx, int wall_seconds,
                const char *what, const char *path, struct text *answer, int *status, struct err *);
/* In the child: from here on a failing call of the library that lacked memory is noted. */
void store_watch_memory(void);
bool store_lacked_memory(void);

#endif
