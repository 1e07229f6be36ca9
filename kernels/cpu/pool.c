/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: one atomic word a thread holds {job number, next item}, so a late thread can
 * never touch a newer job. */
#include "kernels/cpu/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "kernels/cpu/topology.h"

/* How long a thread looks for work before it sleeps. Longer than the serial pieces between two ops
   of a step, shorter than anything another process would notice. */
enum { SPIN_NS = 40000, PAUSES_PER_LOOK = 8 };

/* A thread whose CPU another process has taken holds a piece that all others wait for, a time slice
   long, job after job: with it the pool is slower than without. One that is later than HELD_UP_NS,
   and than twice the caller's own longest piece, is sent away; for longer each time, as long as it
   happens again soon. */
enum {
    HELD_UP_NS = 1000000,
    UNKNOWN_NS = 20000000,
    AWAY_NS = 20000000,
    MOST_AWAY_NS = 320000000,
    FORGET_NS = 1000000000
};

/* The caller cannot be left out: when it is preempted this often in a window of work, it changes
 * places with another thread. */
enum {
    SETTLE_NS = 150000000,
    WINDOW_NS = 25000000,
    WINDOW_MOST_NS = 250000000,
    PREEMPTED_OFTEN = 3
};

struct range { /* of one thread */
    _Alignas(
        64) _Atomic uint64_t next; /* of its part of the items: job number << 32 | next unclaimed */
    _Atomic bool busy;             /* in a piece, or between two */
    _Atomic int64_t away_until;    /* takes no part before */
    int64_t away_ns;               /* the caller's: how long it was sent away for */
};

struct worker {
    struct pool *pool;
    pthread_t thread;
    int index;
    _Atomic int cpu; /* < 0: not pinned */
    _Atomic pid_t tid;
};

struct pool {
    int n;
    bool pinned, stays;
    int64_t
        spin_ns; /* SPIN_NS, or 0 where threads share CPUs: who spins keeps another from working */
    struct worker *workers; /* (n), [0] is the caller */
    struct range *ranges;   /* (n) */
    /* the job; written only while every range is exhausted under the coming number */
    _Alignas(64) _Atomic int64_t items;
    _Atomic int64_t grain;
    _Atomic(pool_fn *) fn;
    _Atomic(void *) ctx;
    int64_t window_began, preempted; /* the caller's count of preemptions at the window's begin */
    int64_t moved;                   /* when it changed places last */
    int partner;                     /* the thread that it changed places with last */
    int64_t piece_began;
    int64_t longest;                     /* the caller's longest piece of the job, ns */
    _Alignas(64) _Atomic uint32_t stop;  /* threads that are away sleep on it */
    _Alignas(64) _Atomic uint32_t epoch; /* number of the job; threads sleep on it */
    _Alignas(64) _Atomic int sleepers;
    _Alignas(64) _Atomic int64_t done; /* items finished */
    _Alignas(64) _Atomic int waiting;  /* the caller sleeps on `finished` */
    _Atomic uint32_t finished;
};

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ns < 0: for ever. */
static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ns) {
    const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, ns < 0 ? NULL : &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline int64_t range_begin(int64_t items, int i, int n) { return items * i / n; }

static void time_piece(struct pool *pool) {
    const int64_t now = clock_ns(), took = now - pool->piece_began;
    pool->piece_began = now;
    if (took > pool->longest) pool->longest = took;
}

/* Claims and runs pieces of job `epoch` until none is left. */
static void take_part(struct pool *pool, int self, uint32_t epoch) {
    /* Acquire: whoever sees a newer job's fields also sees that the older job's ranges are closed,
     * and claims nothing. */
    int64_t items = atomic_load_explicit(&pool->items, memory_order_acquire);
    int64_t grain = atomic_load_explicit(&pool->grain, memory_order_acquire);
    pool_fn *fn = atomic_load_explicit(&pool->fn, memory_order_acquire);
    void *ctx = atomic_load_explicit(&pool->ctx, memory_order_acquire);
    int64_t mine = 0;
    for (int v = 0; v < pool->n; v++) {
        int owner = self + v < pool->n ? self + v : self + v - pool->n;
        int64_t end = range_begin(items, owner + 1, pool->n);
        _Atomic uint64_t *next = &pool->ranges[owner].next;
        uint64_t seen = atomic_load_explicit(next, memory_order_acquire);
        for (;;) {
            if ((uint32_t)(seen >> 32) != epoch) return; /* another job: then `mine` is 0 */
            int64_t i = (int64_t)(uint32_t)seen;
            if (i >= end) break;
            int64_t take = (end - i + 1) / 2;
            if (take > grain) take = grain;
            if (!atomic_compare_exchange_weak_explicit(next, &seen, seen + (uint64_t)take,
                                                       memory_order_acq_rel, memory_order_acquire))
                continue;
            fn(ctx, i, i + take, self);
            mine += take;
            if (self == 0) time_piece(pool);
            seen = atomic_load_explicit(next, memory_order_acquire);
        }
    }
    if (mine == 0) return;
    if (atomic_fetch_add(&pool->done, mine) + mine == items && atomic_load(&pool->waiting)) {
        atomic_fetch_add(&pool->finished, 1);
        futex_wake(&pool->finished, 1);
    }
}

/* Waits for a job other than `seen` and returns its number. */
static uint32_t wait_for_job(struct pool *pool, uint32_t seen) {
    int64_t until = 0;
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            uint32_t now = atomic_load_explicit(&pool->epoch, memory_order_acquire);
            if (now != seen) return now;
            pause_cpu();
        }
        int64_t t = clock_ns();
        if (until == 0) until = t + pool->spin_ns;
        if (t < until) continue;
        atomic_fetch_add(&pool->sleepers, 1);
        while (atomic_load(&pool->epoch) == seen) futex_wait(&pool->epoch, seen, -1);
        atomic_fetch_sub(&pool->sleepers, 1);
    }
}

static void send_late_threads_away(struct pool *pool) {
    const int64_t now = clock_ns();
    for (int i = 1; i < pool->n; i++) {
        struct range *r = &pool->ranges[i];
        if (!atomic_load_explicit(&r->busy, memory_order_relaxed)) continue;
        const int64_t before = atomic_load_explicit(&r->away_until, memory_order_relaxed);
        r->away_ns = now - before > FORGET_NS ? AWAY_NS : 2 * r->away_ns;
        if (r->away_ns > MOST_AWAY_NS) r->away_ns = MOST_AWAY_NS;
        atomic_store_explicit(&r->away_until, now + r->away_ns, memory_order_relaxed);
    }
}

static void wait_for_end(struct pool *pool, int64_t items) {
    const int64_t begin = clock_ns();
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(&pool->done, memory_order_acquire) == items) return;
            pause_cpu();
        }
    } while (clock_ns() < begin + pool->spin_ns);
    /* Without a piece of its own the caller cannot tell how long one takes. */
    int64_t patience = pool->longest == 0 ? UNKNOWN_NS : 2 * pool->longest;
    if (patience < HELD_UP_NS) patience = HELD_UP_NS;
    atomic_store(&pool->waiting, 1);
    uint32_t seen = atomic_load(&pool->finished);
    while (atomic_load(&pool->done) != items) {
        futex_wait(&pool->finished, seen, patience);
        seen = atomic_load(&pool->finished);
        if (patience < 0 || clock_ns() < begin + patience) continue;
        if (atomic_load(&pool->done) != items) send_late_threads_away(pool);
        patience = -1;
    }
    atomic_store(&pool->waiting, 0);
}

static void publish(struct pool *pool) {
    uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_relaxed) + 1;
    atomic_store(&pool->epoch, epoch);
    if (atomic_load(&pool->sleepers) > 0) futex_wake(&pool->epoch, pool->n);
}

void pool_stay(struct pool *pool) { pool->stays = true; }

static int64_t times_preempted(void) {
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* Another process has taken the caller's CPU: the caller takes that of a thread which is not held
 * up itself. */
static void leave_taken_cpu(struct pool *pool) {
    const int64_t now = clock_ns(), window = now - pool->window_began;
    if (!pool->pinned || pool->stays || window < WINDOW_NS) return;
    const int64_t before = pool->preempted;
    pool->window_began = now;
    pool->preempted = times_preempted();
    if (window > WINDOW_MOST_NS || pool->preempted - before < PREEMPTED_OFTEN) return;
    if (now - pool->moved < SETTLE_NS) return;
    for (int i = 0; i < pool->n - 1; i++) {
        pool->partner = pool->partner % (pool->n - 1) + 1;
        struct worker *other = &pool->workers[pool->partner];
        if (atomic_load(&pool->ranges[pool->partner].away_until) > now ||
            atomic_load(&other->tid) == 0)
            continue;
        const int cpu = atomic_load(&pool->workers[0].cpu);
        pool->moved = now;
        atomic_store(&pool->workers[0].cpu, atomic_load(&other->cpu));
        atomic_store(&other->cpu, cpu);
        topology_pin(0, atomic_load(&pool->workers[0].cpu));
        topology_pin(atomic_load(&other->tid), cpu);
        return;
    }
}

void pool_run(struct pool *pool, int64_t n, int64_t grain, int64_t serial, pool_fn *fn, void *ctx) {
    if (n <= 0) return;
    if (pool->n == 1 || n <= serial || n == 1) {
        fn(ctx, 0, n, 0);
        return;
    }
    leave_taken_cpu(pool);
    uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_relaxed) + 1;
    for (int i = 0; i < pool->n; i++)
        atomic_store_explicit(&pool->ranges[i].next, (uint64_t)epoch << 32 | UINT32_MAX,
                              memory_order_relaxed);
    atomic_store_explicit(&pool->items, n, memory_order_release);
    atomic_store_explicit(&pool->grain, grain < 1 ? 1 : grain, memory_order_release);
    atomic_store_explicit(&pool->fn, fn, memory_order_release);
    atomic_store_explicit(&pool->ctx, ctx, memory_order_release);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    for (int i = 0; i < pool->n; i++)
        atomic_store_explicit(&pool->ranges[i].next,
                              (uint64_t)epoch << 32 | (uint64_t)range_begin(n, i, pool->n),
                              memory_order_release);
    publish(pool);
    pool->longest = 0;
    pool->piece_began = clock_ns();
    take_part(pool, 0, epoch);
    wait_for_end(pool, n);
}

/* Sleeps while it is to be away. */
static void stay_away(struct pool *pool, const struct range *own) {
    for (;;) {
        const int64_t left =
            atomic_load_explicit(&own->away_until, memory_order_relaxed) - clock_ns();
        if (left <= 0 || atomic_load(&pool->stop)) return;
        futex_wait(&pool->stop, 0, left);
    }
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct range *own = &w->pool->ranges[w->index];
    if (atomic_load(&w->cpu) >= 0) topology_pin(0, atomic_load(&w->cpu));
    atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
    for (uint32_t seen = 0;;) {
        seen = wait_for_job(w->pool, seen);
        if (atomic_load_explicit(&w->pool->stop, memory_order_acquire)) return NULL;
        atomic_store_explicit(&own->busy, true, memory_order_relaxed);
        take_part(w->pool, w->index, seen);
        atomic_store_explicit(&own->busy, false, memory_order_relaxed);
        if (atomic_load_explicit(&own->away_until, memory_order_relaxed) > 0)
            stay_away(w->pool, own);
    }
}

int pool_create(struct pool **out, int n, const int *cpus, struct err *err) {
    struct pool *pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
    struct range *ranges = aligned_alloc(64, (size_t)n * sizeof *ranges);
    if (pool == NULL || ranges == NULL) {
        free(pool);
        free(ranges);
        return err_set(err, ERR_MEMORY, "no memory for a pool of %d threads", n);
    }
    *pool = (struct pool){.n = 1, .ranges = ranges};
    pool->spin_ns = n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN_NS : 0;
    for (int i = 0; i < n; i++) ranges[i] = (struct range){.next = UINT32_MAX};
    pool->workers = must_alloc((size_t)n * sizeof *pool->workers);
    sigset_t all, old; /* signals belong to the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = 0;
    for (int i = 1; i < n && code == 0; i++) {
        pool->workers[i] =
            (struct worker){.pool = pool, .index = i, .cpu = cpus != NULL ? cpus[i] : -1};
        code = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        if (code == 0) pool->n++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0) {
        err_system(err, code, "cannot start thread %d of %d", pool->n + 1, n);
        pool_close(&pool);
        return ERR_SYSTEM;
    }
    pool->pinned = cpus != NULL;
    atomic_store(&pool->workers[0].cpu, pool->pinned ? cpus[0] : -1);
    if (pool->pinned) topology_pin_caller(cpus[0]);
    *out = pool;
    return 0;
}

void pool_close(struct pool **p) {
    struct pool *pool = *p;
    if (pool == NULL) return;
    atomic_store(&pool->stop, 1);
    futex_wake(&pool->stop, pool->n);
    publish(pool);
    for (int i = 1; i < pool->n; i++) pthread_join(pool->workers[i].thread, NULL);
    if (pool->pinned) topology_unpin_caller();
    free(pool->workers);
    free(pool->ranges);
    free(pool);
    *p = NULL;
}

int pool_threads(const struct pool *pool) { return pool->n; }
