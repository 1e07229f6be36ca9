/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's lines: for each cause of noise its state, what it is, what it matters here, and the
 * command that mends it. What is not known is 'unknown', and nothing is called well because of
 * that. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/text.h"
#include "harness/doctor.h"
#include "harness/machine.h"
#include "harness/page.h"
#include "kernels/device.h"
#include "probes/common/tree.h"
#include "probes/probe.h"

#define CPU "sys/devices/system/cpu/"

struct line { /* filled piece by piece, then added */
    const char *name;
    char state[48], what[200], matters[32], mend[160];
};

static const char *const columns[] = {"name", "state", "what it is", "matters", "mend"};

void doctor_columns(struct page *page) { page_columns(page, columns, 5); }

static void add(struct page *page, const struct line *l) {
    page_row(page, (const char *[]){l->name, l->state, l->what, l->matters, l->mend});
}

static bool is(const struct facts *facts, const char *key, const char *value) {
    return !strcmp(facts_get(facts, key, "unknown"), value);
}

static double number(const struct facts *facts, const char *key) {
    double v;
    return parse_f64(facts_get(facts, key, "unknown"), &v) ? v : (double)NAN;
}

static void state_of(struct line *l, const struct facts *facts, const char *key) {
    snprintf(l->state, sizeof l->state, "%s", facts_get(facts, key, "unknown"));
}

#define SAY(field, ...) snprintf(l.field, sizeof l.field, __VA_ARGS__)

/* "±4 %": half of the spread over its middle. */
static void matters_spread(struct line *l, const struct doctor_spread *s) {
    if (isfinite(s->middle) && s->middle > 0)
        snprintf(l->matters, sizeof l->matters, "±%.*f %%",
                 (s->high - s->low) / s->middle < 0.02 ? 1 : 0,
                 50 * (s->high - s->low) / s->middle);
}

/* "-4 %": a share of the time that is lost. */
static void matters_loss(struct line *l, double share) {
    if (share < 0.0005)
        snprintf(l->matters, sizeof l->matters, "0 %%");
    else if (isfinite(share))
        snprintf(l->matters, sizeof l->matters, "-%.*f %%", share < 0.02 ? 1 : 0, 100 * share);
}

static void turbo(struct page *page, const struct facts *facts, const struct doctor_measured *m,
                  const char *root) {
    struct line l = {.name = "turbo"};
    state_of(&l, facts, "cpu.turbo");
    if (isfinite(m->clock_ghz.middle))
        SAY(what, "busy cores ran at %.2f-%.2f GHz in %.1f s", m->clock_ghz.low, m->clock_ghz.high,
            m->clock_ghz.seconds);
    matters_spread(&l, &m->clock_ghz);
    bool on = is(facts, "cpu.turbo", "on");
    if (on && tree_exists(root, CPU "intel_pstate/no_turbo"))
        SAY(mend, "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo");
    else if (on && tree_exists(root, CPU "cpufreq/boost"))
        SAY(mend, "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
    else if (on)
        SAY(mend, "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/policy*/boost");
    add(page, &l);
}

static void governor(struct page *page, const struct facts *facts, const char *root) {
    struct line l = {.name = "governor"};
    state_of(&l, facts, "cpu.governor");
    if (is(facts, "cpu.governor", "performance")) {
        SAY(what, "ok");
    } else if (!is(facts, "cpu.governor", "unknown")) {
        SAY(what, "clocks follow the load: what begins after a pause begins slowly");
        SAY(mend, "sudo cpupower frequency-set -g performance");
    } else if (!tree_exists(root, CPU "cpu0/cpufreq")) {
        SAY(what, "(no cpufreq here)");
    } else {
        SAY(what, "(cpufreq is there, but does not say it for every core)");
    }
    add(page, &l);
}

static void threads(struct page *page, const struct facts *facts) {
    struct line l = {.name = "SMT"};
    state_of(&l, facts, "cpu.smt");
    if (is(facts, "cpu.smt", "off")) SAY(what, "ok");
    if (is(facts, "cpu.smt", "on")) {
        SAY(what, "two threads share a core: the pool takes one of each core first");
        SAY(mend, "echo off | sudo tee /sys/devices/system/cpu/smt/control");
    }
    add(page, &l);
}

static void load(struct page *page, const struct facts *facts, const struct doctor_measured *m) {
    struct line l = {.name = "load"};
    state_of(&l, facts, "load.1min");
    if (isfinite(m->foreign_share) && m->foreign_share >= 0.01 && m->top.pid > 0 &&
        m->top.cores >= 0.02) {
        SAY(what, "others use %.0f %% of it, one on core %d", 100 * m->foreign_share, m->top.cpu);
        SAY(mend, "pid %d (%s) used %.2f cores", m->top.pid, m->top.name, m->top.cores);
    } else if (isfinite(m->foreign_share)) {
        SAY(what, "others use %.0f %% of it", 100 * m->foreign_share);
    }
    matters_loss(&l, m->wait_share);
    add(page, &l);
}

static void steal(struct page *page, const struct facts *facts, const struct doctor_measured *m) {
    struct line l = {.name = "steal"};
    const char *below = facts_get(facts, "virtual.hypervisor", "unknown");
    if (isfinite(m->steal_share))
        SAY(state, "%.1f %%", 100 * m->steal_share);
    else
        SAY(state, "unknown");
    if (!strcmp(below, "none"))
        SAY(what, "no hypervisor");
    else if (!strcmp(below, "unknown"))
        SAY(what, "(whether a hypervisor is below is unknown)");
    else
        SAY(what, "virtual machine (%.80s)",
            !strncmp(below, "yes", 3) ? "its kind is unknown" : below);
    matters_loss(&l, m->steal_share);
    if (m->steal_share >= 0.005) SAY(mend, "more rounds: --set measure.rounds=16");
    add(page, &l);
}

static void quota(struct page *page, const struct facts *facts) {
    struct line l = {.name = "quota"};
    double cores = number(facts, "cgroup.cpu_quota"), n = number(facts, "moment.quota_throttled");
    state_of(&l, facts, "cgroup.cpu_quota");
    if (is(facts, "cgroup.cpu_quota", "none")) SAY(what, "ok: the cgroup may use all cores");
    if (isfinite(cores)) {
        SAY(state, "%.2f cores", cores);
        SAY(what, "beyond it all threads stop until the next period%s",
            n > 0 ? ": it happened" : "");
        SAY(mend, "--set device.threads=%d", cores < 1 ? 1 : (int)cores);
    }
    add(page, &l);
}

static void huge_pages(struct page *page, const struct facts *facts) {
    struct line l = {.name = "huge pages"};
    state_of(&l, facts, "memory.huge_pages");
    if (is(facts, "memory.huge_pages", "madvise") || is(facts, "memory.huge_pages", "always"))
        SAY(what, "ok");
    if (is(facts, "memory.huge_pages", "never")) {
        SAY(what, "weights lie in small pages: more misses of the TLB");
        SAY(mend, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    }
    add(page, &l);
}

static void memory(struct page *page, const struct facts *facts, const struct doctor_measured *m) {
    struct line l = {.name = "memory"};
    char have[32], all[32], limit[32];
    double total = number(facts, "memory.total_bytes"), most = number(facts, "memory.limit_bytes");
    double unused = number(facts, "memory.free_bytes");
    if (isfinite(unused))
        SAY(state, "%s free", format_bytes_si(have, sizeof have, unused));
    else
        SAY(state, "unknown");
    if (isfinite(total))
        SAY(what, "of %s; cgroup limit %s", format_bytes_si(all, sizeof all, total),
            isfinite(most) ? format_bytes_si(limit, sizeof limit, most)
                           : facts_get(facts, "memory.limit_bytes", "unknown"));
    add(page, &l);
    l = (struct line){.name = "memory read"};
    if (isfinite(m->read_gbs.middle)) {
        SAY(state, "%.1f GB/s", m->read_gbs.middle);
        SAY(what, "one core read at %.1f-%.1f GB/s in %.2f s", m->read_gbs.low, m->read_gbs.high,
            m->read_gbs.seconds);
    } else {
        SAY(state, "unknown");
    }
    matters_spread(&l, &m->read_gbs);
    add(page, &l);
}

static void nodes(struct page *page, const struct facts *facts) {
    struct line l = {.name = "NUMA"};
    double n = number(facts, "numa.nodes");
    state_of(&l, facts, "numa.nodes");
    if (isfinite(n)) SAY(state, "%.0f node%s", n, n > 1 ? "s" : "");
    if (n == 1) SAY(what, "ok");
    if (n > 1) {
        SAY(what, "memory of another node is farther away");
        SAY(mend, "numactl -N 0 -m 0 bench run ...");
    }
    add(page, &l);
}

static void timer(struct page *page, const struct facts *facts) {
    struct line l = {.name = "timer"};
    bool slow = is(facts, "clock.source", "hpet") || is(facts, "clock.source", "acpi_pm") ||
                is(facts, "clock.source", "jiffies");
    state_of(&l, facts, "clock.source");
    SAY(what, "smallest step %s ns, a read costs %s ns",
        facts_get(facts, "moment.clock_step_ns", "unknown"),
        facts_get(facts, "moment.clock_cost_ns", "unknown"));
    if (slow)
        SAY(mend, "echo tsc | sudo tee "
                  "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    add(page, &l);
}

static void aslr(struct page *page, const struct facts *facts) {
    struct line l = {.name = "ASLR"};
    state_of(&l, facts, "aslr");
    if (is(facts, "aslr", "off")) SAY(what, "every worker has the same addresses");
    if (is(facts, "aslr", "on") || is(facts, "aslr", "partial"))
        SAY(what, "workers differ in their addresses; fresh ones each round show it");
    add(page, &l);
}

static void heat(struct page *page, const struct facts *facts) {
    struct line l = {.name = "thermal"};
    double celsius = number(facts, "moment.temperature"), n = number(facts, "moment.throttles");
    if (isfinite(celsius))
        SAY(state, "%.0f °C", celsius);
    else
        SAY(state, isfinite(n) ? "no sensor" : "unknown");
    if (isfinite(n))
        SAY(what, n > 0 ? "throttled %.0f times since boot" : "ok: throttled %.0f times since boot",
            n);
    else
        SAY(what, "(no counter of throttling here)");
    if (n > 0) SAY(mend, "cooling, a lower power limit, or turbo off");
    add(page, &l);
}

static void build(struct page *page, const struct facts *facts) {
    struct line l = {.name = "build"};
    bool fast = is(facts, "build.type", "Release") &&
                !strstr(facts_get(facts, "build.flags", ""), "-fsanitize");
    state_of(&l, facts, "build.type");
    SAY(what, "%srevision %.12s%s, %s",
        fast ? "ok: " : "not made for measuring: ", facts_get(facts, "build.revision", "unknown"),
        is(facts, "build.dirty", "yes") ? " with changes" : "",
        facts_get(facts, "build.compiler", "unknown"));
    if (!fast) SAY(mend, "./bench --build");
    add(page, &l);
}

void doctor_lines(struct page *page, const struct facts *facts, const struct doctor_measured *m,
                  const char *root) {
    turbo(page, facts, m, root);
    governor(page, facts, root);
    threads(page, facts);
    load(page, facts, m);
    steal(page, facts, m);
    quota(page, facts);
    huge_pages(page, facts);
    memory(page, facts, m);
    nodes(page, facts);
    timer(page, facts);
    aslr(page, facts);
    heat(page, facts);
    build(page, facts);
}

static void probe_line(struct page *page, const struct probe *p) {
    struct line l = {.name = p->name};
    struct err err = {0};
    void *self = must_alloc(p->self_size + 1);
    if (p->open(self, &err)) {
        SAY(state, "unavailable");
        SAY(what, "probe: %.180s", err.text);
        if (strstr(err.text, "perf_event_paranoid"))
            SAY(mend, "sudo sysctl kernel.perf_event_paranoid=2");
        add(page, &l);
    } else if (p->close) {
        p->close(self);
    }
    free(self);
}

static void lock_line(struct page *page) {
    struct line l = {.name = "lock"};
    int pid, fd = machine_lock(&pid);
    if (fd >= 0) {
        SAY(state, "free");
        SAY(what, "ok: no other bench is measuring");
        close(fd);
    } else if (pid > 0) {
        SAY(state, "held");
        SAY(what, "another bench is measuring: both are disturbed");
        if (pid > 1) SAY(mend, "wait for pid %d", pid);
    } else {
        SAY(state, "unknown");
        SAY(what, "(there can be no lock in the folder of temporary files)");
    }
    add(page, &l);
}

/* What is not the processor: which of them there are is only known by opening. */
static void device_line(struct page *page, const struct device_kind *kind) {
    struct line l = {.name = "GPU"};
    struct arena *arena = arena_create();
    void *params = arena_alloc(arena, kind->params_size + 1);
    struct device *device = NULL;
    struct err err = {0};
    option_defaults(kind->params, params, arena);
    if (device_open(&device, kind, params, &err)) {
        SAY(state, "none");
        SAY(what, "%s: %.180s", kind->name, err.text);
    } else {
        struct facts facts = {0};
        kind->describe(device, &facts);
        SAY(state, "%s", kind->name);
        SAY(what, "%s", facts_get(&facts, "device.name", "works"));
        facts_free(&facts);
    }
    device_close(&device);
    add(page, &l);
    arena_close(&arena);
}

static void gpu_line(struct page *page) {
    struct line l = {.name = "GPU"};
    for (const struct device_kind *const *kind = all_devices; *kind; kind++)
        if (!strcmp((*kind)->name, "cuda")) device_line(page, *kind);
    for (const struct device_absent *absent = all_devices_absent; absent->name; absent++) {
        if (strcmp(absent->name, "cuda")) continue;
        SAY(state, tree_exists(NULL, "proc/driver/nvidia/version") ? "unused" : "no driver");
        SAY(what, "cuda: %s", absent->reason);
        add(page, &l);
    }
}

void doctor_own_lines(struct page *page) {
    for (const struct probe *const *p = all_probes; *p; p++) probe_line(page, *p);
    lock_line(page);
    gpu_line(page);
}

/* What the first line says: on which machine all this is. */
static void heading(const struct facts *facts, struct text *out) {
    const char *below = facts_get(facts, "virtual.hypervisor", "unknown");
    const char *model = facts_get(facts, "cpu.model", "unknown");
    text_printf(out, "What disturbs measuring here\n%.40s, %s of %s CPUs%s · Linux %.24s\n",
                strcmp(model, "unknown") ? model : "an unknown CPU",
                facts_get(facts, "cpu.allowed", "unknown"),
                facts_get(facts, "cpu.cores", "unknown"),
                strcmp(below, "none") && strcmp(below, "unknown") ? ", virtual" : "",
                facts_get(facts, "kernel.release", "unknown"));
}

void doctor_text(const struct page *page, const struct facts *facts, struct text *out) {
    enum { STATE = 15, WHAT = 31, WIDE = 42, MATTERS = WHAT + WIDE, MEND = MATTERS + 16 };
    heading(facts, out);
    for (size_t r = 0; r < page->n_rows; r++) {
        const char *const *cell = (const char *const *)page->cells + r * page->n_columns;
        bool narrow = utf8_width(cell[2]) <= WIDE - 2;
        size_t mend = utf8_width(cell[4]), place = *cell[3] && narrow ? MEND : MATTERS;
        text_printf(out, "  %s", cell[0]);
        text_pad(out, STATE);
        text_printf(out, " %s", cell[1]);
        if (*cell[2] || *cell[3] || *cell[4]) text_pad(out, WHAT);
        page_wrap(out, WHAT, cell[2]);
        if (*cell[3]) {
            if (!narrow) text_puts(out, "\n");
            text_pad(out, MATTERS);
            text_printf(out, "matters: %s", cell[3]);
        }
        if (mend) {
            bool fits = narrow && place + mend <= PAGE_WIDTH;
            if (!fits) text_puts(out, "\n"); /* whole, so that it can be copied */
            text_pad(out, fits ? place : WHAT + mend <= PAGE_WIDTH ? WHAT : 4);
            text_puts(out, cell[4]);
        }
        text_puts(out, "\n");
    }
}
