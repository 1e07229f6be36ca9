/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about this machine and this build: read from /proc, /sys and the build; 'unknown'
 * where nothing says it. */
#include "harness/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/range.h"
#include "base/text.h"
#include "gen/build_info.h"

enum { LINE_MOST = 4096 };

/* The first line of root/path, trimmed; false if it cannot be read or is empty. */
static bool first_line(const char *root, const char *path, char *out, size_t size) {
    struct text full = {0};
    text_printf(&full, "%s/%s", root, path);
    FILE *f = fopen(full.data, "re");
    text_free(&full);
    if (!f) return false;
    bool ok = fgets(out, (int)size, f) != NULL;
    fclose(f);
    size_t n = ok ? strlen(out) : 0;
    while (n && (out[n - 1] == '\n' || out[n - 1] == ' ')) out[--n] = 0;
    return ok && n > 0;
}

/* The value behind "key" and its colon in root/path. */
static bool keyed_line(const char *root, const char *path, const char *key, char *out,
                       size_t size) {
    struct text full = {0};
    char line[LINE_MOST];
    bool found = false;
    text_printf(&full, "%s/%s", root, path);
    FILE *f = fopen(full.data, "re");
    text_free(&full);
    while (f && !found && fgets(line, sizeof line, f)) {
        size_t n = strlen(key);
        char *at = line + n;
        if (strncmp(line, key, n)) continue;
        while (*at == ' ' || *at == '\t') at++;
        if (*at != ':') continue;
        for (at++; *at == ' ' || *at == '\t';) at++;
        at[strcspn(at, "\n")] = 0;
        snprintf(out, size, "%s", at);
        found = *out != 0;
    }
    if (f) fclose(f);
    return found;
}

static void set(struct facts *facts, const char *key, const char *value, const char *unit,
                const char *origin) {
    facts_set(facts, key, value && *value ? value : "unknown", unit, origin);
}

static void set_line(struct facts *facts, const char *root, const char *key, const char *path) {
    char line[LINE_MOST];
    set(facts, key, first_line(root, path, line, sizeof line) ? line : NULL, "", path);
}

/* "32K", "2048K", "1M" of sysfs. */
static int64_t cache_size(const char *text) {
    char *end;
    long long v = strtoll(text, &end, 10);
    if (v <= 0) return -1;
    return *end == 'K' ? v * 1024 : *end == 'M' ? v * 1024 * 1024 : v;
}

static void caches(struct facts *facts, const char *root) {
    int64_t size[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 8; i++) {
        char path[100], level[16], type[32], text[32];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (!first_line(root, path, level, sizeof level)) continue;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        if (!first_line(root, path, type, sizeof type) || !strcmp(type, "Instruction")) continue;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        int n = atoi(level);
        if (n >= 1 && n <= 3 && first_line(root, path, text, sizeof text))
            size[n] = cache_size(text);
    }
    for (int n = 1; n <= 3; n++) {
        char key[32];
        snprintf(key, sizeof key, "cpu.l%d_bytes", n);
        if (size[n] > 0)
            facts_printf(facts, key, "byte", "sysfs", "%" PRId64, size[n]);
        else
            set(facts, key, NULL, "byte", "sysfs");
    }
}

/* Only the words that decide which kernels can run. */
static void instruction_sets(struct facts *facts, const char *root) {
    static const char *const known[] = {
        "sse4_2",      "avx",         "avx2",     "fma",      "f16c",  "avx512f", "avx512bw",
        "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "asimd", "sve"};
    char flags[LINE_MOST];
    struct text out = {0};
    bool any = keyed_line(root, "proc/cpuinfo", "flags", flags, sizeof flags) ||
               keyed_line(root, "proc/cpuinfo", "Features", flags, sizeof flags);
    for (size_t i = 0; any && i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i]);
        for (const char *at = flags; (at = strstr(at, known[i])) != NULL; at += n) {
            bool whole = (at == flags || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0);
            if (!whole) continue;
            text_printf(&out, "%s%s", out.len ? " " : "", known[i]);
            break;
        }
    }
    set(facts, "cpu.isa", out.data, "", "/proc/cpuinfo");
    text_free(&out);
}

static void turbo(struct facts *facts, const char *root) {
    char line[32];
    const char *value = NULL;
    if (first_line(root, "sys/devices/system/cpu/intel_pstate/no_turbo", line, sizeof line))
        value = !strcmp(line, "1") ? "off" : !strcmp(line, "0") ? "on" : NULL;
    else if (first_line(root, "sys/devices/system/cpu/cpufreq/boost", line, sizeof line))
        value = !strcmp(line, "0") ? "off" : !strcmp(line, "1") ? "on" : NULL;
    set(facts, "cpu.turbo", value, "", "sysfs");
}

static void governor(struct facts *facts, const char *root) {
    static const char *const known[] = {"performance", "powersave",    "schedutil",
                                        "ondemand",    "conservative", "userspace"};
    char line[64];
    const char *value = NULL;
    if (first_line(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", line,
                   sizeof line)) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (!strcmp(line, known[i])) value = known[i];
        }
    }
    set(facts, "cpu.governor", value, "", "sysfs");
}

static void smt(struct facts *facts, const char *root) {
    char line[32];
    const char *value = NULL;
    if (first_line(root, "sys/devices/system/cpu/smt/active", line, sizeof line))
        value = !strcmp(line, "1") ? "on" : !strcmp(line, "0") ? "off" : NULL;
    set(facts, "cpu.smt", value, "", "sysfs");
}

static int count_nodes(const char *root) {
    int n = 0;
    for (int i = 0; i < 1024; i++) {
        struct text path = {0};
        text_printf(&path, "%s/sys/devices/system/node/node%d", root, i);
        bool there = access(path.data, F_OK) == 0;
        text_free(&path);
        if (!there) break;
        n++;
    }
    return n;
}

/* Quota of the control group in cores; version 2, then 1. */
static void quota(struct facts *facts, const char *root) {
    char line[64];
    long long us, period;
    double cores = -1;
    if (first_line(root, "sys/fs/cgroup/cpu.max", line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &us, &period) == 2 && period > 0)
            cores = (double)us / (double)period;
        else if (!strncmp(line, "max", 3))
            cores = 0;
    } else if (first_line(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        us = atoll(line);
        if (first_line(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line) &&
            (period = atoll(line)) > 0)
            cores = us > 0 ? (double)us / (double)period : 0;
    }
    if (cores > 0)
        facts_printf(facts, "cgroup.cpu_quota", "cores", "cgroup", "%.2f", cores);
    else
        set(facts, "cgroup.cpu_quota", cores == 0 ? "none" : NULL, "cores", "cgroup");
}

static void memory(struct facts *facts, const char *root) {
    char line[LINE_MOST], limit[64], *word = line;
    long long kib;
    if (keyed_line(root, "proc/meminfo", "MemTotal", line, sizeof line) &&
        sscanf(line, "%lld kB", &kib) == 1)
        facts_printf(facts, "memory.total_bytes", "byte", "/proc/meminfo", "%lld", kib * 1024);
    else
        set(facts, "memory.total_bytes", NULL, "byte", "/proc/meminfo");
    bool known =
        first_line(root, "sys/fs/cgroup/memory.max", limit, sizeof limit) ||
        first_line(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", limit, sizeof limit);
    set(facts, "memory.limit_bytes",
        !known                                        ? NULL
        : !strcmp(limit, "max") || strlen(limit) > 17 ? "none"
                                                      : limit,
        "byte", "cgroup");
    char huge[64] = "";
    if (first_line(root, "sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line) &&
        (word = strchr(line, '[')))
        snprintf(huge, sizeof huge, "%.*s", (int)strcspn(word + 1, "]"), word + 1);
    set(facts, "memory.huge_pages", huge, "", "sysfs");
}

static void hypervisor(struct facts *facts, const char *root) {
    char line[LINE_MOST], vendor[128];
    const char *value = NULL;
    if (first_line(root, "sys/devices/virtual/dmi/id/sys_vendor", vendor, sizeof vendor))
        value = vendor;
    if (keyed_line(root, "proc/cpuinfo", "flags", line, sizeof line)) {
        if (!strstr(line, " hypervisor"))
            value = "none";
        else if (!value)
            value = "yes, of an unknown kind";
    }
    set(facts, "virtual.hypervisor", value, "", "/proc/cpuinfo and DMI");
}

static void allowed_cores(struct facts *facts) {
    cpu_set_t cpus;
    struct text list = {0};
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
        facts_printf(facts, "cpu.allowed", "cores", "affinity", "%d", CPU_COUNT(&cpus));
        for (int i = 0; i < CPU_SETSIZE; i++) {
            if (CPU_ISSET(i, &cpus) && list.len < 200)
                text_printf(&list, "%s%d", list.len ? "," : "", i);
        }
        set(facts, "cpu.allowed_list", list.data, "", "affinity");
    }
    text_free(&list);
}

/* The binary itself: two runs with one digest ran the same code. */
static void digest(struct facts *facts) {
    struct err *none = NULL;
    char *data = NULL, hash[17];
    size_t n = 0;
    if (file_read("/proc/self/exe", (size_t)1 << 30, &data, &n, none) == 0)
        facts_set(facts, "build.digest", hash_text(hash, hash_bytes(data, n, 0)), "",
                  "xxh64 of the binary");
    free(data);
}

static void build(struct facts *facts) {
    facts_set(facts, "build.version", BENCH_VERSION, "", "build");
    facts_set(facts, "build.revision", BUILD_REVISION, "", "build");
    facts_set(facts, "build.dirty", BUILD_DIRTY ? "yes" : "no", "", "build");
    facts_set(facts, "build.compiler", BUILD_COMPILER, "", "build");
    facts_set(facts, "build.flags", BUILD_FLAGS, "", "build");
    facts_set(facts, "build.type", BUILD_TYPE, "", "build");
    facts_set(facts, "build.nvtx", range_built() ? "yes" : "no", "", "build");
}

void machine_facts(struct facts *facts, const char *root) {
    char line[LINE_MOST];
    struct utsname name;
    bool model = keyed_line(root, "proc/cpuinfo", "model name", line, sizeof line);
    set(facts, "cpu.model", model ? line : NULL, "", "/proc/cpuinfo");
    facts_printf(facts, "cpu.cores", "cores", "sysconf", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    allowed_cores(facts);
    caches(facts, root);
    instruction_sets(facts, root);
    smt(facts, root);
    governor(facts, root);
    turbo(facts, root);
    int nodes = count_nodes(root);
    if (nodes)
        facts_printf(facts, "numa.nodes", "", "sysfs", "%d", nodes);
    else
        set(facts, "numa.nodes", NULL, "", "sysfs");
    memory(facts, root);
    quota(facts, root);
    char *space = first_line(root, "proc/loadavg", line, sizeof line) ? strchr(line, ' ') : NULL;
    if (space) *space = 0;
    set(facts, "load.1min", space ? line : NULL, "", "/proc/loadavg");
    set(facts, "kernel.release", uname(&name) ? NULL : name.release, "", "uname");
    hypervisor(facts, root);
    set_line(facts, root, "clock.source",
             "sys/devices/system/clocksource/clocksource0/current_clocksource");
    set_line(facts, root, "aslr", "proc/sys/kernel/randomize_va_space");
    build(facts);
    digest(facts);
}

void machine_load(struct machine_load *load) {
    *load = (struct machine_load){-1, -1, -1};
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return;
    long long user, nice, system, idle, wait, irq, soft, steal;
    if (fscanf(f, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system, &idle,
               &wait, &irq, &soft, &steal) == 8) {
        load->steal_ticks = steal;
        load->busy_ticks = user + nice + system + irq + soft;
        load->total_ticks = load->busy_ticks + idle + wait + steal;
    }
    fclose(f);
}

int machine_lock(int *pid) {
    const char *path = "/tmp/bench.lock";
    char text[32] = "";
    *pid = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        *pid = n > 0 ? atoi(text) : 0;
        if (*pid <= 0) *pid = 1; /* held by one that has not said its number */
        close(fd);
        return -1;
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n) { /* the lock holds all the same */
    }
    return fd;
}
