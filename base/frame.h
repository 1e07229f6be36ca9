/* SPDX-License-Identifier: Apache-2.0 */
/* Frames {length, kind, xxh64}: the one format of the worker's socket and of the journal. */
#ifndef BASE_FRAME_H
#define BASE_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct frame_head {  /* 24 bytes, little endian, before the body */
    uint32_t magic;  /* FRAME_MAGIC */
    uint32_t kind;   /* the caller's own */
    uint64_t length; /* of the body */
    uint64_t hash;   /* xxh64 of the body, seeded with kind */
};
#define FRAME_MAGIC 0x46524d42u
#define FRAME_MOST  ((uint64_t)1 << 36) /* longer bodies are refused */

/* Writes head and body completely (handles short writes and EINTR). */
int frame_write(int fd, uint32_t kind, const void *body, size_t len, struct err *);
/* Reads one frame; *body is malloc'ed (zero-terminated beyond len). At a clean end of input *kind =
   0, *body = NULL and 0. A torn or rotten frame is ERR_INPUT. */
int frame_read(int fd, uint32_t *kind, char **body, size_t *len, struct err *);
/* The same, for so long: ERR_TIMEOUT where the frame is not whole by then, as of a writer that
   hangs in the middle of one. */
int frame_read_within(int fd, int64_t patience_ns, uint32_t *kind, char **body, size_t *len,
                      struct err *);
/* The same from memory at *at, which moves on; *end is true at the clean end. body points into
 * data. */
int frame_next(const char *data, size_t size, size_t *at, uint32_t *kind, const char **body,
               size_t *len, bool *end, struct err *);

#endif
