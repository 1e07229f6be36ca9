/* SPDX-License-Identifier: Apache-2.0 */
/* Two seconds of listening: what others use while we sleep, what a busy core gets, how even memory
 * is. */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "harness/doctor.h"
#include "probes/common/clock_rate.h"
#include "probes/common/proc.h"
#include "probes/common/tree.h"

enum { MOST_THREADS = 64, MOST_CHUNKS = 4096, LINKS = 300000, MEMORY = 64 << 20 };
#define SLEEP_NS 600000000
#define SPIN_NS  700000000
#define READ_NS  250000000

struct process {
    int pid, cpu;
    int64_t ticks;
    char name[32];
};
struct doctor_look {
    size_t n, cap;
    struct process *items;
};

/* /proc/PID/stat: the name stands in parentheses and may hold any letter, so that the last one
 * closes it. */
static bool process_read(const char *root, int pid, struct process *p) {
    enum { UTIME = 14, STIME = 15, PROCESSOR = 39 };
    char line[1024];
    int64_t v[PROCESSOR + 1] = {0};
    if (!tree_line(line, sizeof line, root, "proc/%d/stat", pid)) return false;
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2]) return false;
    const char *at = close + 3; /* behind the state, one letter: field 3 */
    for (int field = 4; field <= PROCESSOR; field++) {
        bool wanted = field == UTIME || field == STIME || field == PROCESSOR;
        at += strspn(at, " ");
        if (!*at || (wanted && !take_number(&at, &v[field]))) return false;
        at += strcspn(at, " "); /* others may lie beyond int64: limits do */
    }
    if (v[UTIME] < 0 || v[STIME] < 0 || v[PROCESSOR] < 0 || v[PROCESSOR] > INT_MAX) return false;
    *p = (struct process){.pid = pid, .cpu = (int)v[PROCESSOR], .ticks = v[UTIME] + v[STIME]};
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close - open - 1), open + 1);
    for (char *c = p->name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?'; /* it goes to a terminal */
    return true;
}

struct doctor_look *doctor_look(const char *root) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc", root && strcmp(root, "/") ? root : "");
    DIR *dir = opendir(path);
    if (!dir) return NULL;
    struct doctor_look *look = must_alloc(sizeof *look);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char *end;
        long pid = strtol(e->d_name, &end, 10);
        struct process p;
        if (pid <= 0 || pid > INT_MAX || *end || !process_read(root, (int)pid, &p)) continue;
        if (look->n == look->cap) {
            look->cap = look->cap ? 2 * look->cap : 64;
            look->items = must_realloc(look->items, look->cap * sizeof *look->items);
        }
        look->items[look->n++] = p;
    }
    closedir(dir);
    return look;
}

void doctor_look_free(struct doctor_look **look) {
    if (!*look) return;
    free((*look)->items);
    free(*look);
    *look = NULL;
}

void doctor_compare(const struct doctor_look *before, const struct doctor_look *after, int self,
                    double seconds, struct doctor_top *top) {
    long per_second = sysconf(_SC_CLK_TCK);
    *top = (struct doctor_top){.pid = -1};
    if (!before || !after || !before->n || !after->n || seconds <= 0 || per_second <= 0) return;
    top->pid = 0;
    int64_t most = 0;
    for (size_t i = 0; i < after->n; i++) {
        const struct process *a = &after->items[i];
        int64_t used = a->ticks; /* of a process that began meanwhile: all of it */
        for (size_t k = 0; k < before->n; k++)
            if (before->items[k].pid == a->pid && before->items[k].ticks <= a->ticks)
                used = a->ticks - before->items[k].ticks;
        if (a->pid == self || used <= most) continue;
        most = used;
        top->pid = a->pid;
        top->cpu = a->cpu;
        snprintf(top->name, sizeof top->name, "%s", a->name);
    }
    top->cores = (double)most / (double)per_second / seconds;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct doctor_spread spread_of(double *x, size_t n, double seconds) {
    if (!n) return (struct doctor_spread){NAN, NAN, NAN, seconds};
    qsort(x, n, sizeof *x, by_size);
    return (struct doctor_spread){x[(n - 1) / 20], x[(n - 1) / 2], x[(n - 1) - (n - 1) / 20],
                                  seconds};
}

static int64_t thread_cpu_ns(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct spinner {
    pthread_t thread;
    int cpu;
    int64_t end_ns, wall_ns, cpu_ns;
    size_t n;
    double rate[MOST_CHUNKS]; /* cycles per ns of CPU time */
};

static void *spin(void *ctx) {
    struct spinner *s = ctx;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(s->cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    int64_t begin = clock_ns(), cpu = thread_cpu_ns();
    int64_t warm = begin + (s->end_ns - begin) / 8; /* clocks need some time to rise */
    while (clock_ns() < s->end_ns) {
        int64_t t = thread_cpu_ns();
        double cycles = clock_rate_chain(LINKS);
        t = thread_cpu_ns() - t;
        if (t > 0 && s->n < MOST_CHUNKS && clock_ns() > warm) s->rate[s->n++] = cycles / (double)t;
    }
    s->wall_ns = clock_ns() - begin;
    s->cpu_ns = thread_cpu_ns() - cpu;
    return NULL;
}

/* One thread on every CPU that we may use: what each gets of its core, and how fast the core is. */
static void busy(struct doctor_measured *m) {
    cpu_set_t allowed;
    int n = 0;
    struct machine_ticks a, b;
    struct spinner *s = must_alloc(MOST_THREADS * sizeof *s);
    bool ticks = proc_machine_ticks(&a, NULL);
    int64_t end_ns = clock_ns() + SPIN_NS;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) CPU_ZERO(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE && n < MOST_THREADS; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        s[n].cpu = cpu;
        s[n].end_ns = end_ns;
        if (pthread_create(&s[n].thread, NULL, spin, &s[n]) == 0) n++;
    }
    double *rates = must_alloc((size_t)(n ? n : 1) * MOST_CHUNKS * sizeof *rates);
    size_t n_rates = 0;
    double wall = 0, cpu = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(s[i].thread, NULL);
        memcpy(rates + n_rates, s[i].rate, s[i].n * sizeof *rates);
        n_rates += s[i].n;
        wall += (double)s[i].wall_ns;
        cpu += (double)s[i].cpu_ns;
    }
    m->clock_ghz = spread_of(rates, n_rates, 1e-9 * SPIN_NS);
    m->wait_share = wall > 0 ? fmax(0, 1 - cpu / wall) : (double)NAN;
    ticks = ticks && proc_machine_ticks(&b, NULL) && b.total > a.total && b.steal >= a.steal;
    m->steal_share =
        ticks ? (double)(b.steal - a.steal) / (double)(b.total - a.total) : (double)NAN;
    free(rates);
    free(s);
}

/* Sums a buffer larger than most caches; GB/s of each pass. */
static void read_memory(struct doctor_measured *m) {
    enum { WORDS = MEMORY / 8, MOST = 1024 };
    static volatile uint64_t sink;
    uint64_t *data = malloc(MEMORY);
    double rate[MOST];
    size_t n = 0;
    m->read_gbs = spread_of(NULL, 0, 1e-9 * READ_NS);
    if (!data) return;
    for (size_t i = 0; i < WORDS; i++) data[i] = i;
    for (int64_t end = clock_ns() + READ_NS; clock_ns() < end && n < MOST;) {
        uint64_t sum[8] = {0};
        int64_t t = clock_ns();
        for (size_t i = 0; i < WORDS; i += 8)
            for (size_t k = 0; k < 8; k++) sum[k] += data[i + k];
        t = clock_ns() - t;
        for (size_t k = 0; k < 8; k++) sink = sum[k];
        if (t > 0) rate[n++] = (double)MEMORY / (double)t;
    }
    (void)sink;
    m->read_gbs = spread_of(rate, n, 1e-9 * READ_NS);
    free(data);
}

void doctor_measure(struct doctor_measured *m) {
    struct machine_ticks a, b;
    *m = (struct doctor_measured){.foreign_share = NAN};
    struct doctor_look *before = doctor_look(NULL);
    int64_t begin = clock_ns();
    bool ticks = proc_machine_ticks(&a, NULL);
    struct timespec nap = {0, SLEEP_NS};
    nanosleep(&nap, NULL);
    ticks = ticks && proc_machine_ticks(&b, NULL) && b.total > a.total;
    if (ticks) m->foreign_share = (double)(b.busy - a.busy) / (double)(b.total - a.total);
    struct doctor_look *after = doctor_look(NULL);
    doctor_compare(before, after, (int)getpid(), 1e-9 * (double)(clock_ns() - begin), &m->top);
    doctor_look_free(&before);
    doctor_look_free(&after);
    busy(m);
    read_memory(m);
}
