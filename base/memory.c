/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may use, and how much of it can be had now. */
#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/groups.h"
#include "base/text.h"

struct room {
    const char *root;
    int64_t limit, free;
};

static void lower(int64_t *limit, int64_t v) {
    if (v >= 0 && v < *limit) *limit = v;
}

static FILE *open_at(const struct room *r, const char *path) {
    char full[2 * PATH_MAX];
    const int n = snprintf(full, sizeof full, "%s%s", r->root, path);
    return n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
}

/* The number behind `word` (or on the first line, where that is ""); -1: there is none ("max", no
   file). A unit behind it is left to the caller. */
static int64_t number_in(const struct room *r, const char *path, const char *word) {
    const size_t n = strlen(word);
    char line[256];
    int64_t v = -1;
    FILE *f = open_at(r, path);
    if (!f) return -1;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, word, n)) continue;
        char *number = line + n + strspn(line + n, " ");
        number[strcspn(number, " \n")] = 0;
        if (!parse_i64(number, &v) || v < 0) v = -1;
        break;
    }
    fclose(f);
    return v;
}

struct files { /* of a group's controller */
    const char *controller, *limit, *used, *cache;
};
static const struct files versions[] = {
    {NULL, "memory.max", "memory.current", "inactive_file "},
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

static int64_t in_group(const struct room *r, const struct groups *g, const char *file,
                        const char *word) {
    char path[2 * PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", g->folder, file);
    return n > 0 && (size_t)n < sizeof path ? number_in(r, path, word) : -1;
}

/* The tightest one binds. What files keep in memory and have not used lately goes where it is
   wanted. */
static void group(struct room *r, const struct files *f, const struct groups *g) {
    const int64_t limit = in_group(r, g, f->limit, "");
    if (limit <= 0) return;
    const int64_t used = in_group(r, g, f->used, "");
    const int64_t cache = in_group(r, g, "memory.stat", f->cache);
    const int64_t held = used > 0 ? used - (cache > 0 && cache < used ? cache : 0) : 0;
    lower(&r->limit, limit);
    lower(&r->free, limit > held ? limit - held : 0);
}

static void groups(struct room *r) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct groups g;
        groups_own(&g, r->root, versions[i].controller);
        do group(r, &versions[i], &g);
        while (groups_up(&g));
    }
}

static struct room room_at(const char *root) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct room r = {root, INT64_MAX, INT64_MAX};
    struct rlimit address;
    if (pages > 0 && page > 0) lower(&r.limit, (int64_t)pages * page);
    const int64_t kib = number_in(&r, "proc/meminfo", "MemAvailable:");
    if (kib >= 0) lower(&r.free, kib * 1024);
    groups(&r);
    if (!getrlimit(RLIMIT_AS, &address) && address.rlim_cur != RLIM_INFINITY &&
        address.rlim_cur < (rlim_t)r.limit)
        r.limit = (int64_t)address.rlim_cur;
    lower(&r.free, r.limit);
    return r;
}

int64_t memory_limit(void) { return room_at("/").limit; }

int64_t memory_available(const char *root) { return room_at(root).free; }
