/* SPDX-License-Identifier: Apache-2.0 */
/* The free list and the counts. */
#include "workloads/model/blocks.h"

#include <stdlib.h>

#include "base/arena.h"

struct blocks *blocks_create(int32_t n_seq, int32_t most, int32_t n, int32_t size) {
    struct blocks *b = must_alloc(sizeof *b);
    *b = (struct blocks){.n = n, .size = size, .n_seq = n_seq, .most = most};
    b->table = must_alloc(sizeof *b->table * (size_t)n_seq * (size_t)most);
    b->held = must_alloc(sizeof *b->held * (size_t)n_seq);
    b->refs = must_alloc(sizeof *b->refs * (size_t)n);
    b->spare = must_alloc(sizeof *b->spare * (size_t)n);
    while (b->n_spare < n) b->spare[b->n_spare] = b->n_spare, b->n_spare++;
    return b;
}

void blocks_close(struct blocks **out) {
    struct blocks *b = *out;
    if (!b) return;
    free(b->table);
    free(b->held);
    free(b->refs);
    free(b->spare);
    free(b);
    *out = NULL;
}

int64_t blocks_host_bytes(int32_t n_seq, int32_t most, int32_t n) {
    return (int64_t)sizeof(int32_t) * ((int64_t)n_seq * (most + 1) + 2 * (int64_t)n) +
           (int64_t)sizeof(struct blocks);
}

static int32_t take(struct blocks *b) {
    if (!b->n_spare) return -1;
    const int32_t block = b->spare[--b->n_spare];
    b->refs[block] = 1;
    if (blocks_used(b) > b->peak) b->peak = blocks_used(b);
    return block;
}

static void let_go(struct blocks *b, int32_t block) {
    if (!--b->refs[block]) b->spare[b->n_spare++] = block;
}

bool blocks_write(struct blocks *b, int32_t seq, int32_t begin, int32_t end,
                  void (*copy)(void *ctx, int32_t from, int32_t to), void *ctx) {
    int32_t *table = b->table + (int64_t)seq * b->most, *held = &b->held[seq];
    const int32_t need = (int32_t)blocks_for(end, b->size);
    if (need > b->most) return false;
    for (int32_t i = begin / b->size; begin < end && i < *held && i < need; i++) {
        if (b->refs[table[i]] < 2) continue;
        const int32_t own = take(b), shared = table[i];
        if (own < 0) return false;
        if (copy) copy(ctx, shared, own);
        table[i] = own;
        let_go(b, shared);
        b->copies++;
    }
    while (*held < need) {
        const int32_t block = take(b);
        if (block < 0) return false;
        table[(*held)++] = block;
    }
    return true;
}

void blocks_trim(struct blocks *b, int32_t seq, int32_t len) {
    const int32_t *table = b->table + (int64_t)seq * b->most;
    const int32_t need = (int32_t)blocks_for(len, b->size);
    while (b->held[seq] > need) let_go(b, table[--b->held[seq]]);
}

void blocks_share(struct blocks *b, int32_t from, int32_t to, int32_t len) {
    const int32_t *source = b->table + (int64_t)from * b->most;
    int32_t *target = b->table + (int64_t)to * b->most;
    if (from == to) return;
    blocks_trim(b, to, 0);
    for (int32_t i = 0; i < (int32_t)blocks_for(len, b->size) && i < b->held[from]; i++) {
        target[i] = source[i];
        b->refs[source[i]]++;
        b->held[to]++;
    }
}
