/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a paged cache (seeds E23, E24): a pool of equal blocks, a free list, reference counts,
 * and for each sequence a table from its positions to blocks, in any order. Pure: it knows of no
 * memory; whoever writes into a block that others read is told what to copy first. */
#ifndef WORKLOADS_MODEL_BLOCKS_H
#define WORKLOADS_MODEL_BLOCKS_H
#include <stdbool.h>
#include <stdint.h>

struct blocks {
    int32_t n, size;       /* blocks of the pool; slots of a block */
    int32_t n_seq, most;   /* sequences; blocks of one at most */
    int32_t *table;        /* (n_seq, most) */
    int32_t *held;         /* (n_seq) entries of the table in use */
    int32_t *refs;         /* (n) tables that name a block; 0: it is free */
    int32_t *spare;        /* (n) free blocks, the last is taken first */
    int32_t n_spare, peak; /* free now; in use at most, since blocks_create */
    int64_t copies;        /* made so that somebody could write */
};
struct blocks *blocks_create(int32_t n_seq, int32_t most, int32_t n, int32_t size);
void blocks_close(struct blocks **);
int64_t blocks_host_bytes(int32_t n_seq, int32_t most, int32_t n);

static inline int64_t blocks_for(int64_t tokens, int64_t size) { /* ceil(tokens / size) */
    return (tokens + size - 1) / size;
}
static inline int32_t blocks_used(const struct blocks *b) { return b->n - b->n_spare; }

/* Makes positions begin ... end - 1 of a sequence writable: takes blocks for what it does not hold,
 * and replaces those that other sequences name too. copy(ctx, from, to), or NULL: called for each
 * replaced one, before it is let go. False: no free block is left, or the table is full; what was
 * done by then stays. Where all but one sequence have moved away, the last one writes in place. */
bool blocks_write(struct blocks *, int32_t seq, int32_t begin, int32_t end,
                  void (*copy)(void *ctx, int32_t from, int32_t to), void *ctx);
/* Gives back what lies beyond len tokens; a block is free when nobody names it. */
void blocks_trim(struct blocks *, int32_t seq, int32_t len);
/* `to`, whatever it held, holds the first len tokens of `from` from here on, in the same blocks. */
void blocks_share(struct blocks *, int32_t from, int32_t to, int32_t len);

#endif
