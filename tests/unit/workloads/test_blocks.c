/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: counts, copies and the free list, by hand (seeds E23, E24) and under a random load
   against a plain model of it; contiguous reservations beside. */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "workloads/common/first_fit.h"
#include "workloads/model/blocks.h"

/* E24: block 16, a prompt of 40, 4 samples of 20 tokens; E24.1 ... E24.5 of the oracle. */
static void sharing_by_hand(void **state) {
    struct blocks *b = blocks_create(4, 4, 16, 16);
    (void)state;
    assert_true(blocks_write(b, 0, 0, 40, NULL, NULL));
    for (int32_t q = 1; q < 4; q++) blocks_share(b, 0, q, 40);
    assert_int_equal(blocks_used(b), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(b->refs[b->table[i]], 4);
    for (int32_t t = 40; t < 60; t++)
        for (int32_t q = 0; q < 4; q++) assert_true(blocks_write(b, q, t, t + 1, NULL, NULL));
    assert_int_equal(blocks_used(b), 10);
    assert_int_equal(b->copies, 3);
    assert_int_equal(b->refs[b->table[0]], 4); /* whole blocks stay shared */
    assert_int_equal(b->refs[b->table[2]], 1);
    for (int32_t q = 0; q < 4; q++) blocks_trim(b, q, 0);
    assert_int_equal(blocks_used(b), 0);
    for (int i = 0; i < 16; i++) assert_int_equal(b->refs[i], 0);
    for (int32_t q = 0; q < 4; q++) assert_true(blocks_write(b, q, 0, 60, NULL, NULL));
    assert_int_equal(blocks_used(b), 16);
    assert_false(blocks_write(b, 0, 60, 65, NULL, NULL)); /* its table is full */
    blocks_close(&b);
}

static void lengths_by_hand(void **state) { /* E23.1 ... E23.3 */
    static const int32_t lengths[] = {37, 5, 120, 16, 64, 1}, expected[] = {3, 1, 8, 1, 4, 1};
    struct blocks *b = blocks_create(6, 8, 18, 16);
    (void)state;
    for (int32_t q = 0; q < 6; q++) {
        assert_true(blocks_write(b, q, 0, lengths[q], NULL, NULL));
        assert_int_equal(b->held[q], expected[q]);
    }
    assert_int_equal(blocks_used(b) * 16, 288);
    assert_false(blocks_write(b, 1, 5, 17, NULL, NULL)); /* the pool is empty */
    assert_true(blocks_write(b, 1, 5, 16, NULL, NULL));
    blocks_close(&b);
}

static void holes_by_hand(void **state) { /* E23.8 */
    struct first_fit f;
    (void)state;
    first_fit_open(&f, 100);
    assert_int_equal(first_fit_take(&f, 30), 0);
    assert_int_equal(first_fit_take(&f, 30), 30);
    assert_int_equal(first_fit_take(&f, 30), 60);
    first_fit_give(&f, 30);
    assert_int_equal(f.size - f.used, 40);
    assert_int_equal(first_fit_hole(&f), 30);
    assert_int_equal(first_fit_take(&f, 35), -1);
    assert_int_equal(first_fit_take(&f, 30), 30);
    assert_int_equal(first_fit_take(&f, 10), 90);
    assert_int_equal(first_fit_hole(&f), 0);
    first_fit_close(&f);
    struct blocks *b = blocks_create(4, 100, 100, 1);
    for (int32_t q = 0; q < 3; q++) assert_true(blocks_write(b, q, 0, 30, NULL, NULL));
    blocks_trim(b, 1, 0);
    assert_true(blocks_write(b, 3, 0, 35, NULL, NULL));
    blocks_close(&b);
}

/* What memory would hold: each write leaves the writer's own mark in the slot; what a sequence
   reads must be what it, or whom it was shared from, wrote. */
enum { SEQS = 5, MOST = 6, POOL = 12, SIZE = 3, ROOM = MOST * SIZE };
struct memory {
    int32_t slot[POOL * SIZE];
};

static void copy(void *ctx, int32_t from, int32_t to) {
    struct memory *m = ctx;
    memcpy(m->slot + to * SIZE, m->slot + from * SIZE, SIZE * sizeof *m->slot);
}

static void random_load(void **state) {
    struct blocks *b = blocks_create(SEQS, MOST, POOL, SIZE);
    struct memory memory = {0};
    int32_t expected[SEQS][ROOM] = {{0}}, len[SEQS] = {0}, mark = 1, refused = 0;
    (void)state;
    for (uint64_t k = 0; k < 40000; k++) {
        const uint64_t key = random_key(23, k);
        const int32_t q = (int32_t)random_below(key, 0, SEQS),
                      other = (int32_t)random_below(key, 1, SEQS);
        switch (random_below(key, 2, 4)) {
        case 0:
        case 1: { /* writes, from anywhere it holds */
            const int32_t begin = len[q] ? (int32_t)random_below(key, 3, (uint32_t)len[q] + 1) : 0;
            const int32_t end = begin + 1 + (int32_t)random_below(key, 4, 4);
            if (end > ROOM) break;
            if (!blocks_write(b, q, begin, end, copy, &memory)) {
                refused++;
                blocks_trim(b, q, len[q]);
                break;
            }
            for (int32_t p = begin; p < end; p++) {
                const int32_t unit = b->table[q * MOST + p / SIZE];
                assert_int_equal(b->refs[unit], 1);
                memory.slot[unit * SIZE + p % SIZE] = expected[q][p] = mark++;
            }
            if (end > len[q]) len[q] = end;
            break;
        }
        case 2:
            len[q] = (int32_t)random_below(key, 3, (uint32_t)len[q] + 1);
            blocks_trim(b, q, len[q]);
            break;
        case 3:
            if (q == other) break;
            blocks_share(b, q, other, len[q]);
            len[other] = len[q];
            memcpy(expected[other], expected[q], sizeof expected[q]);
            break;
        }
        int32_t refs[POOL] = {0}, used = 0;
        for (int32_t s = 0; s < SEQS; s++) {
            assert_true(b->held[s] >= blocks_for(len[s], SIZE));
            for (int32_t i = 0; i < b->held[s]; i++) refs[b->table[s * MOST + i]]++;
            for (int32_t p = 0; p < len[s]; p++)
                assert_int_equal(memory.slot[b->table[s * MOST + p / SIZE] * SIZE + p % SIZE],
                                 expected[s][p]);
        }
        for (int32_t u = 0; u < POOL; u++) used += refs[u] > 0;
        assert_memory_equal(refs, b->refs, sizeof refs);
        assert_int_equal(used, blocks_used(b));
    }
    if (refused < 50 || b->copies < 500) fail_msg("%d, %d", (int)refused, (int)b->copies);
    /* the pool was felt, and so were writes */
    for (int32_t s = 0; s < SEQS; s++) blocks_trim(b, s, 0);
    assert_int_equal(b->n_spare, POOL);
    blocks_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_by_hand), cmocka_unit_test(lengths_by_hand),
        cmocka_unit_test(holes_by_hand), cmocka_unit_test(random_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
