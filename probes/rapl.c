/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of packages and memory, where the kernel's powercap lets us read it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

enum { PACKAGE, DRAM, N_KINDS, MOST_ZONES = 32, MOST_PACKAGES = 16, MOST_SUBZONES = 8 };
/* Above any zone's power: a counter read less often than it takes this to wrap knows nothing. */
static const double most_watt = 2000;
static const struct channel channels[] = {
    {"package_j", "J", "energy of all CPU packages (powercap intel-rapl, which AMD has too)", 1},
    {"dram_j", "J", "energy of all memory controllers' zones 'dram'", 1},
    {0},
};

struct zone {
    char path[80];
    int kind;
    int64_t range_uj, last_uj, last_ns;
    double sum_j; /* since opening; NAN once a reading came too late or failed */
};
struct self {
    struct tree tree;
    int n;
    struct zone zone[MOST_ZONES];
};

/* Adds a zone whose counter can be read; errno is kept where it cannot. */
static void add_zone(struct self *s, const char *path, int *why) {
    char name[32];
    struct zone z = {.last_ns = clock_ns()};
    if (s->n == MOST_ZONES || !tree_line(name, sizeof name, s->tree.root, "%s/name", path)) {
        *why = EINVAL;
        return;
    }
    if (!strncmp(name, "package", 7))
        z.kind = PACKAGE;
    else if (!strcmp(name, "dram"))
        z.kind = DRAM;
    else
        return;
    snprintf(z.path, sizeof z.path, "%s", path);
    errno = 0;
    if (!tree_number(&z.last_uj, s->tree.root, "%s/energy_uj", path) || z.last_uj < 0 ||
        !tree_number(&z.range_uj, s->tree.root, "%s/max_energy_range_uj", path) ||
        z.range_uj < z.last_uj) {
        *why = errno ? errno : EINVAL;
        return;
    }
    s->zone[s->n++] = z;
}

static int rapl_open(void *self, struct err *err) {
    struct self *s = self;
    int why = 0;
    for (int p = 0; p < MOST_PACKAGES; p++) {
        char path[80];
        snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%d", p);
        if (!tree_exists(s->tree.root, "%s", path)) continue;
        add_zone(s, path, &why);
        for (int z = 0; z < MOST_SUBZONES; z++) {
            snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%d:%d", p, z);
            if (tree_exists(s->tree.root, "%s", path)) add_zone(s, path, &why);
        }
    }
    if (s->n && !why) return 0;
    s->n = 0; /* part of the zones would be a sum that is too small */
    if (why == EACCES || why == EPERM)
        return err_set(err, ERR_UNSUPPORTED, "energy_uj may be read by root only");
    if (why)
        return err_set(err, ERR_UNSUPPORTED, "a zone's energy_uj cannot be read: %s",
                       strerror(why));
    return err_set(err, ERR_UNSUPPORTED, "no energy counters in /sys/class/powercap");
}

static void advance(struct self *s, struct zone *z) {
    int64_t uj, now = clock_ns();
    double seconds = 1e-9 * (double)(now - z->last_ns);
    bool ok = tree_number(&uj, s->tree.root, "%s/energy_uj", z->path) && uj >= 0 &&
              uj <= z->range_uj && seconds * most_watt < 1e-6 * (double)z->range_uj;
    if (!ok) {
        z->sum_j = (double)NAN;
        return;
    }
    int64_t step = uj - z->last_uj;
    if (step < 0) step += z->range_uj; /* it wraps */
    z->sum_j += 1e-6 * (double)step;
    z->last_uj = uj;
    z->last_ns = now;
}

static void rapl_read(void *self, double *values) {
    struct self *s = self;
    int n[N_KINDS] = {0};
    for (int k = 0; k < N_KINDS; k++) values[k] = 0;
    for (int i = 0; i < s->n; i++) {
        advance(s, &s->zone[i]);
        values[s->zone[i].kind] += s->zone[i].sum_j;
        n[s->zone[i].kind]++;
    }
    for (int k = 0; k < N_KINDS; k++)
        if (!n[k]) values[k] = (double)NAN;
}

const struct probe probe_rapl = {
    .name = "rapl",
    .brief = "energy of the CPU packages and of memory",
    .when = PROBE_BLOCK,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = rapl_open,
    .read = rapl_read,
};
