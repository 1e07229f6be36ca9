/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every item exactly once, whoever is late, asleep or alone; and what it leaves
 * behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "kernels/cpu/pool.h"

enum { MOST_ITEMS = 5000, MOST_THREADS = 8 };

/* Plain counters on purpose: an item that two threads run at once is a race that ThreadSanitizer
   reports, and one that runs after pool_run has returned shows in the next job's counts. */
struct counts {
    int items[MOST_ITEMS];
    _Atomic int64_t by_thread[MOST_THREADS];
    _Atomic int64_t largest;
};

static void count(void *ctx, int64_t begin, int64_t end, int thread) {
    struct counts *c = ctx;
    assert_true(thread >= 0 && thread < MOST_THREADS);
    assert_true(begin < end);
    for (int64_t i = begin; i < end; i++) c->items[i]++;
    atomic_fetch_add(&c->by_thread[thread], end - begin);
    int64_t seen = atomic_load(&c->largest);
    while (end - begin > seen && !atomic_compare_exchange_weak(&c->largest, &seen, end - begin)) {}
}

static struct pool *open_pool(int threads) {
    struct pool *pool = NULL;
    struct err err = {0};
    assert_int_equal(pool_create(&pool, threads, NULL, &err), 0);
    assert_int_equal(pool_threads(pool), threads);
    return pool;
}

static void nap(long us) { nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL); }

static void check_job(struct pool *pool, int64_t n, int64_t grain, int64_t serial) {
    static struct counts c;
    memset(&c, 0, sizeof c);
    pool_run(pool, n, grain, serial, count, &c);
    for (int64_t i = 0; i < n; i++)
        if (c.items[i] != 1) fail_msg("item %d of %d ran %d times", (int)i, (int)n, c.items[i]);
    for (int64_t i = n; i < MOST_ITEMS; i++) assert_int_equal(c.items[i], 0);
    int64_t sum = 0;
    for (int i = 0; i < MOST_THREADS; i++) sum += atomic_load(&c.by_thread[i]);
    assert_int_equal(sum, n);
    const bool alone = n <= serial || pool_threads(pool) == 1;
    if (alone) assert_int_equal(atomic_load(&c.by_thread[0]), n);
    if (!alone && n > 1) assert_true(atomic_load(&c.largest) <= (grain < 1 ? 1 : grain));
}

/* Thousands of jobs of every size, on more threads than there are cores, some after a pause long
 * enough to fall asleep. */
static void every_item_runs_once(void **state) {
    (void)state;
    const uint64_t key = random_key(7, 1);
    uint64_t draw = 0;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        struct pool *pool = open_pool(threads);
        for (int job = 0; job < 1000; job++) {
            const int64_t most = job % 10 == 0 ? MOST_ITEMS : 3 * threads;
            const int64_t n = random_below(key, draw++, (uint32_t)most + 1);
            const int64_t grain = random_below(key, draw++, 20);
            const int64_t serial = job % 7 == 0 ? random_below(key, draw++, 20) : 0;
            check_job(pool, n, grain, serial);
            if (job % 100 == 99) nap(300); /* beyond the time that threads look for work */
        }
        pool_close(&pool);
        assert_null(pool);
    }
}

struct chain {
    int64_t values[64];
    int64_t sum;
};

static void fill(void *ctx, int64_t begin, int64_t end, int thread) {
    struct chain *c = ctx;
    (void)thread;
    for (int64_t i = begin; i < end; i++) c->values[i] = c->sum + i;
}

/* What one job wrote the caller reads, and the next job sees what the caller wrote: no fences of
 * its own needed. */
static void jobs_see_each_other(void **state) {
    (void)state;
    struct pool *pool = open_pool(4);
    struct chain c = {.sum = 0};
    for (int round = 0; round < 3000; round++) {
        const int64_t before = c.sum;
        pool_run(pool, 64, 1, 0, fill, &c);
        int64_t sum = 0;
        for (int i = 0; i < 64; i++) {
            assert_int_equal(c.values[i], before + i);
            sum += c.values[i];
        }
        c.sum = sum % 1000003;
    }
    pool_close(&pool);
}

static void nothing_to_do(void *ctx, int64_t begin, int64_t end, int thread) {
    (void)begin, (void)end, (void)thread;
    *(int *)ctx = 1;
}

static void empty_jobs_run_nothing(void **state) {
    (void)state;
    struct pool *pool = open_pool(2);
    int ran = 0;
    pool_run(pool, 0, 1, 0, nothing_to_do, &ran);
    pool_run(pool, -3, 1, 0, nothing_to_do, &ran);
    assert_int_equal(ran, 0);
    pool_close(&pool);
    pool_close(&pool); /* NULL inside is safe */
}

static void pools_open_and_close_in_any_order(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct pool *a = open_pool(1 + i % 4), *b = open_pool(1 + i % 3);
        check_job(b, 10, 1, 0);
        if (i % 2) {
            pool_close(&a);
            check_job(b, 20, 2, 0);
            pool_close(&b);
        } else {
            pool_close(&b);
            check_job(a, 20, 2, 0);
            pool_close(&a);
        }
    }
}

/* Item 32 is the first of the second thread's part; that thread holds on to it until all other
 * items are done. */
struct held {
    int thread[64];
    _Atomic int done;
    bool in_time;
};

static void hold_one(void *ctx, int64_t begin, int64_t end, int thread) {
    struct held *h = ctx;
    for (int64_t i = begin; i < end; i++) {
        h->thread[i] = thread;
        if (i == 32 && thread == 1) {
            const int64_t until = clock_ns() + 20000000000;
            while (atomic_load(&h->done) < 63 && clock_ns() < until) nap(100);
            h->in_time = atomic_load(&h->done) == 63;
        } else {
            nap(50);
        }
        atomic_fetch_add(&h->done, 1);
    }
}

/* A thread that is held up keeps only what it holds: the others take the rest of its part. */
static void others_help_a_thread_that_is_held_up(void **state) {
    (void)state;
    struct pool *pool = open_pool(2);
    struct held h = {0};
    for (int round = 0; round < 1000 && h.thread[32] != 1; round++) {
        h = (struct held){0};
        pool_run(pool, 64, 1, 0, hold_one, &h);
    }
    assert_int_equal(h.thread[32], 1); /* the second thread began with its own part at least once */
    assert_true(h.in_time);
    for (int i = 33; i < 64; i++) assert_int_equal(h.thread[i], 0);
    pool_close(&pool);
}

struct stall {
    _Atomic int pieces[2];
    _Atomic bool stall; /* the second thread's next piece takes long */
    _Atomic int64_t began;
};

static void maybe_stall(void *ctx, int64_t begin, int64_t end, int thread) {
    struct stall *s = ctx;
    (void)begin, (void)end;
    atomic_fetch_add(&s->pieces[thread], 1);
    if (thread == 1 && atomic_exchange(&s->stall, false)) {
        atomic_store(&s->began, clock_ns());
        nap(12000);
    } else {
        nap(20);
    }
}

/* Jobs after the stall that had ended before the second thread could be back; -1 if it took part in
 * one. */
static int jobs_without_it(struct pool *pool, struct stall *s) {
    const int64_t back = atomic_load(&s->began) + 20000000;
    for (int jobs = 0;; jobs++) {
        atomic_store(&s->pieces[1], 0);
        pool_run(pool, 8, 1, 0, maybe_stall, s);
        if (clock_ns() >= back) return jobs;
        if (atomic_load(&s->pieces[1]) > 0) return -1;
    }
}

/* A thread that was late by far takes no part for a while, so that nobody waits for it again; then
   it is back. A busy machine can hide it (the caller itself was not running), but not ten times. */
static void a_late_thread_stays_away_for_a_while(void **state) {
    (void)state;
    struct pool *pool = open_pool(2);
    int seen = 0;
    for (int attempt = 0; attempt < 10 && seen < 5; attempt++) {
        struct stall s = {.stall = true};
        for (int round = 0; round < 100000 && atomic_load(&s.stall); round++)
            pool_run(pool, 8, 1, 0, maybe_stall, &s);
        assert_false(atomic_load(&s.stall)); /* it came back and began a piece */
        seen = jobs_without_it(pool, &s);
    }
    if (seen < 5) fail_msg("the late thread is not left out: %d", seen);
    const int64_t closing = clock_ns();
    pool_close(&pool); /* while it is away */
    assert_true(clock_ns() - closing < 5000000000);
}

static void the_caller_gets_its_cpus_back(void **state) {
    (void)state;
    cpu_set_t before, inside, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    const int cpus[3] = {cpu, cpu, cpu};
    struct err err = {0};
    struct pool *a = NULL, *b = NULL;
    assert_int_equal(pool_create(&a, 3, cpus, &err), 0);
    assert_int_equal(sched_getaffinity(0, sizeof inside, &inside), 0);
    assert_int_equal(CPU_COUNT(&inside), 1);
    assert_true(CPU_ISSET(cpu, &inside));
    assert_int_equal(pool_create(&b, 2, cpus, &err),
                     0); /* pinned already: the first mask is the one to keep */
    pool_close(&a);
    check_job(b, 100, 3, 0);
    pool_close(&b);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void *burn(void *arg) {
    _Atomic bool *stop = arg;
    while (!atomic_load(stop)) {}
    return NULL;
}

static void work_a_little(void *ctx, int64_t begin, int64_t end, int thread) {
    (void)ctx, (void)begin, (void)end, (void)thread;
    const int64_t until = clock_ns() + 20000;
    while (clock_ns() < until) {}
}

/* When others have taken the caller's CPU, it moves to another of the pool's own; never where it
 * was told to stay. */
static void the_caller_leaves_a_cpu_that_is_taken(void **state) {
    (void)state;
    cpu_set_t allowed, one;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int cpus[2], n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed)) cpus[n++] = cpu;
    if (n < 2) skip();
    _Atomic bool stop = false;
    pthread_t thread;
    CPU_ZERO(&one);
    CPU_SET(cpus[0], &one);
    assert_int_equal(pthread_create(&thread, NULL, burn, &stop), 0);
    assert_int_equal(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    struct pool *pool = NULL;
    struct err err = {0};
    assert_int_equal(pool_create(&pool, 2, cpus, &err), 0);
    pool_stay(pool);
    for (const int64_t stay = clock_ns() + 500000000; clock_ns() < stay;) {
        pool_run(pool, 16, 1, 0, work_a_little, NULL);
        assert_int_equal(sched_getcpu(), cpus[0]);
    }
    pool_close(&pool);
    assert_int_equal(pool_create(&pool, 2, cpus, &err), 0);
    const int64_t until = clock_ns() + 20000000000;
    bool moved = false;
    while (!moved && clock_ns() < until) {
        pool_run(pool, 16, 1, 0, work_a_little, NULL);
        moved = sched_getcpu() == cpus[1];
    }
    pool_close(&pool);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(moved);
    assert_int_equal(sched_getaffinity(0, sizeof one, &one), 0);
    assert_true(CPU_EQUAL(&allowed, &one));
}

static void touch(void *ctx, int64_t begin, int64_t end, int thread) {
    (void)ctx, (void)begin, (void)end, (void)thread;
}

/* Idle threads sleep: while nothing is dispatched the process uses next to no CPU time. */
static void idle_threads_sleep(void **state) {
    (void)state;
    struct pool *pool = open_pool(4);
    pool_run(pool, 100, 1, 0, touch, NULL);
    nap(5000);
    struct timespec t0, t1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    nap(100000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    const int64_t used = (t1.tv_sec - t0.tv_sec) * 1000000000 + t1.tv_nsec - t0.tv_nsec;
    if (used > 20000000)
        fail_msg("%lld us of CPU time in 100 ms of nothing", (long long)used / 1000);
    pool_close(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(jobs_see_each_other),
        cmocka_unit_test(empty_jobs_run_nothing),
        cmocka_unit_test(pools_open_and_close_in_any_order),
        cmocka_unit_test(others_help_a_thread_that_is_held_up),
        cmocka_unit_test(a_late_thread_stays_away_for_a_while),
        cmocka_unit_test(the_caller_gets_its_cpus_back),
        cmocka_unit_test(the_caller_leaves_a_cpu_that_is_taken),
        cmocka_unit_test(idle_threads_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
