/* SPDX-License-Identifier: Apache-2.0 */
/* Reads affinity, sysfs, cgroup files and CPUID; whatever is missing counts as no limit. */
#include "kernels/cpu/topology.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/groups.h"

/* The first line of a file without its newline; false if there is none. */
static bool read_line(const char *path, char *line, size_t size) {
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = 0;
    return ok;
}

static long cpu_number(int cpu, const char *file) {
    char path[128], line[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, file);
    return read_line(path, line, sizeof line) ? strtol(line, NULL, 10) : -1;
}

/* Several devices may be open at once; the second must not take the first's pinning for a limit. */
static pthread_mutex_t pin_mutex = PTHREAD_MUTEX_INITIALIZER;
static cpu_set_t before_pins;
static int n_pins;

void topology_pin(int tid, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(tid, sizeof set, &set);
}

void topology_pin_caller(int cpu) {
    pthread_mutex_lock(&pin_mutex);
    if (n_pins++ == 0) sched_getaffinity(0, sizeof before_pins, &before_pins);
    pthread_mutex_unlock(&pin_mutex);
    topology_pin(0, cpu);
}

void topology_unpin_caller(void) {
    pthread_mutex_lock(&pin_mutex);
    if (--n_pins == 0) sched_setaffinity(0, sizeof before_pins, &before_pins);
    pthread_mutex_unlock(&pin_mutex);
}

static bool read_allowed(cpu_set_t *set) {
    pthread_mutex_lock(&pin_mutex);
    bool pinned = n_pins > 0;
    if (pinned) *set = before_pins;
    pthread_mutex_unlock(&pin_mutex);
    return pinned || sched_getaffinity(0, sizeof *set, set) == 0;
}

/* Orders the allowed CPUs so that the first n_cores lie on different cores. */
static void read_cores(struct topology *t) {
    cpu_set_t set;
    static const int most = TOPOLOGY_MOST_CPUS < CPU_SETSIZE ? TOPOLOGY_MOST_CPUS : CPU_SETSIZE;
    int later[TOPOLOGY_MOST_CPUS], n_later = 0;
    long core[TOPOLOGY_MOST_CPUS], package[TOPOLOGY_MOST_CPUS];
    if (!read_allowed(&set)) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        CPU_ZERO(&set);
        for (int i = 0; i < n && i < most; i++) CPU_SET(i, &set);
    }
    for (int cpu = 0; cpu < most; cpu++) {
        if (!CPU_ISSET(cpu, &set)) continue;
        long c = cpu_number(cpu, "core_id"), p = cpu_number(cpu, "physical_package_id");
        bool sibling = false;
        for (int i = 0; i < t->n_cores && c >= 0 && !sibling; i++)
            sibling = core[i] == c && package[i] == p;
        if (sibling) {
            later[n_later++] = cpu;
        } else {
            core[t->n_cores] = c;
            package[t->n_cores] = p;
            t->cpus[t->n_cores++] = cpu;
        }
    }
    memcpy(t->cpus + t->n_cores, later, (size_t)n_later * sizeof *later);
    t->n_cpus = t->n_cores + n_later;
    if (t->n_cpus == 0) t->n_cpus = t->n_cores = 1; /* CPU 0 */
}

/* A group's cores, "max 100000" or "150000 100000" of version 2, two files in version 1. */
static void look_quota(const struct groups *g, double *least) {
    char path[PATH_MAX + 32], line[128];
    double quota = -1, period = 100000;
    snprintf(path, sizeof path, "/%s/cpu.max", g->folder);
    if (read_line(path, line, sizeof line)) {
        if (sscanf(line, "%lf %lf", &quota, &period) < 1) return; /* "max" */
    } else {
        snprintf(path, sizeof path, "/%s/cpu.cfs_quota_us", g->folder);
        if (!read_line(path, line, sizeof line)) return;
        quota = strtod(line, NULL);
        snprintf(path, sizeof path, "/%s/cpu.cfs_period_us", g->folder);
        if (read_line(path, line, sizeof line)) period = strtod(line, NULL);
    }
    if (quota > 0 && period > 0 && quota / period < *least) *least = quota / period;
}

static double cores_of_groups(void) {
    static const char *const controllers[] = {NULL, "cpu"};
    double least = 1e9;
    for (int i = 0; i < 2; i++) {
        struct groups g;
        groups_own(&g, "/", controllers[i]);
        do look_quota(&g, &least);
        while (groups_up(&g));
    }
    return least;
}

/* A line about a CPU's cache of that level; instructions have one of their own at level 1 only. */
static bool cache_line(int cpu, int level, const char *what, char *line, size_t size) {
    for (int index = 0; index < 8; index++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu,
                 index);
        if (!read_line(path, line, size) || strtol(line, NULL, 10) != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index,
                 what);
        if (read_line(path, line, size)) return true;
    }
    return false;
}

static int64_t cache_bytes(int cpu, int level) {
    char line[64], *end;
    if (!cache_line(cpu, level, "size", line, sizeof line)) return 0;
    const int64_t v = strtol(line, &end, 10);
    return *end == 'K' ? v << 10 : *end == 'M' ? v << 20 : v;
}

int64_t topology_cached(void) {
    static _Atomic int64_t known = -1;
    struct topology t;
    bool seen[TOPOLOGY_MOST_CPUS] = {false};
    int64_t sum = 0;
    if (known >= 0) return known;
    topology_read(&t);
    const int level = t.l3_bytes > 0 ? 3 : 2;
    for (int i = 0; i < t.n_cpus; i++) {
        char line[64];
        long first = 0; /* of those that share it */
        if (cache_line(t.cpus[i], level, "shared_cpu_list", line, sizeof line))
            first = strtol(line, NULL, 10);
        if (first < 0 || first >= TOPOLOGY_MOST_CPUS || seen[first]) continue;
        seen[first] = true;
        sum += cache_bytes(t.cpus[i], level);
    }
    known = sum;
    return sum;
}

void topology_read(struct topology *t) {
    *t = (struct topology){0};
    read_cores(t);
    const double least = cores_of_groups();
    if (least < 1e9) t->quota = least < 1 ? 1 : (int)least;
    t->l2_bytes = cache_bytes(t->cpus[0], 2);
    t->l3_bytes = cache_bytes(t->cpus[0], 3);
}

const char *topology_huge_pages(void) {
    static const char *const words[] = {"always", "madvise", "never"};
    char line[128], marked[16];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        return "unknown";
    for (int i = 0; i < 3; i++) {
        snprintf(marked, sizeof marked, "[%s]", words[i]);
        if (strstr(line, marked) != NULL) return words[i];
    }
    return "unknown";
}

#if defined(__x86_64__)
/* Of the state that the system saves for a process, XCR0: SSE and AVX; and the masks and the
   halves of AVX-512; the configuration and the data of tiles. */
enum { SAVES_AVX = 0x6, SAVES_AVX512 = 0xe6, SAVES_TILES = 0x60000 };
enum { HAS_AMX = 1 << 22 | 1 << 24 | 1 << 25 }; /* CPUID 7, edx: AMX-BF16, AMX-TILE, AMX-INT8 */

static unsigned saved_states(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

const char *topology_tiles(void) {
#if defined(__x86_64__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* asm/prctl.h of Linux 5.16 on */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0 ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & HAS_AMX) != HAS_AMX)
        return "this processor has no AMX";
    if ((saved_states() & SAVES_TILES) != SAVES_TILES)
        return "the operating system does not save the registers of AMX";
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0)
        return "the operating system gives no permission for AMX (Linux does from 5.16 on)";
    return NULL;
#else
    return "AMX is for x86-64";
#endif
}

enum isa isa_best(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return ISA_SCALAR;
    const unsigned needed = bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C;
    if ((c & needed) != needed) return ISA_SCALAR;
    if ((saved_states() & SAVES_AVX) != SAVES_AVX) return ISA_SCALAR;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & bit_AVX2) == 0) return ISA_SCALAR;
    const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((b & wide) != wide || (saved_states() & SAVES_AVX512) != SAVES_AVX512) return ISA_AVX2;
    return topology_tiles() == NULL ? ISA_AMX : ISA_AVX512;
#elif defined(__aarch64__)
    return ISA_NEON; /* a part of the architecture */
#else
    return ISA_SCALAR;
#endif
}

bool isa_has_int8_dot(enum isa isa) {
#if defined(__x86_64__)
    unsigned a, b, c = 0, d;
    return isa == ISA_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (c & bit_AVX512VNNI) != 0;
#elif defined(__aarch64__)
    return isa == ISA_NEON && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    (void)isa;
    return false;
#endif
}
