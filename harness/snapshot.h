/* SPDX-License-Identifier: Apache-2.0 */
/* What is dear and does not touch the speed is made once a run and kept in a memfd that later
 * workers see again. */
#ifndef HARNESS_SNAPSHOT_H
#define HARNESS_SNAPSHOT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct snapshot; /* opaque: a directory of named pieces in one shared mapping; one writer at a time
                  */

int snapshot_create(int *fd, size_t room, struct err *);
int snapshot_open(struct snapshot **, int fd, struct err *);
void snapshot_close(struct snapshot **);
/* The piece of that name and size; made if absent (then *ready is false until snapshot_ready).
   NULL: no room. A piece that was filled by a worker and no longer has its digest is given out as
   not ready. */
void *snapshot_piece(struct snapshot *, const char *key, size_t bytes, bool *ready);
void snapshot_ready(struct snapshot *, const char *key);
/* A piece of that name and size that is filled, read-only from here on; NULL: there is none. */
const void *snapshot_find(struct snapshot *, const char *key, size_t bytes);
/* A further name of a piece. */
void snapshot_alias(struct snapshot *, const char *key, const char *of);
/* Where in the mapping it lies, the same in every process; 0: elsewhere. */
uint64_t snapshot_place(const struct snapshot *, const void *);

#endif
