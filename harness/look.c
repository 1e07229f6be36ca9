/* SPDX-License-Identifier: Apache-2.0 */
/* Reads probes before and after the samples of a visit and, where that is asked for, around each.
 */
#include "harness/look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "probes/probe.h"

enum { MOST_PROBES = 32, MOST_CHANNELS = 16 };
#define BLOCK_NS 1000000

struct one { /* an open probe */
    const struct probe *probe;
    void *self;
    int n;
    double before[MOST_CHANNELS], after[MOST_CHANNELS];
    double sum[MOST_CHANNELS]; /* over samples: of differences; of others the last value */
    double cost_ns;
    int64_t reads;
};
struct look {
    bool each;
    int n;
    int64_t block_ns;
    struct one one[MOST_PROBES];
};

static void read_one(struct one *o, double *values) {
    int64_t t = clock_ns();
    o->probe->read(o->self, values);
    o->cost_ns += (double)(clock_ns() - t);
    o->reads++;
}

static int channels_of(const struct probe *p) {
    int n = 0;
    while (p->channels[n].name && n < MOST_CHANNELS) n++;
    return n;
}

struct look *look_open(const struct probe *const *probes, bool each) {
    struct look *l = must_alloc(sizeof *l);
    l->each = each;
    for (size_t i = 0; probes[i] && l->n < MOST_PROBES; i++) {
        struct one *o = &l->one[l->n];
        struct err err = {0};
        *o = (struct one){.probe = probes[i], .n = channels_of(probes[i])};
        if (!o->n || (o->probe->when == PROBE_SAMPLE && !each)) continue; /* nothing to read */
        o->self = must_alloc(o->probe->self_size + 1);
        if (o->probe->open(o->self, &err)) {
            free(o->self);
            continue;
        }
        for (int c = 0; c < o->n; c++) o->sum[c] = o->probe->channels[c].difference ? 0 : NAN;
        l->n++;
    }
    for (int i = 0; i < l->n;
         i++) /* all are open: opening one must not count as the other's event */
        if (l->one[i].probe->when != PROBE_SAMPLE) read_one(&l->one[i], l->one[i].before);
    l->block_ns = clock_ns();
    return l;
}

void look_before(struct look *l) {
    for (int i = 0; i < l->n; i++)
        if (l->one[i].probe->when == PROBE_SAMPLE) read_one(&l->one[i], l->one[i].before);
}

void look_after(struct look *l) {
    for (int i = l->n - 1; i >= 0;
         i--) { /* inside out: the first one read also counts the others */
        struct one *o = &l->one[i];
        if (o->probe->when != PROBE_SAMPLE) continue;
        read_one(o, o->after);
        for (int c = 0; c < o->n; c++) {
            if (o->probe->channels[c].difference)
                o->sum[c] += o->after[c] - o->before[c];
            else
                o->sum[c] = o->after[c];
        }
    }
}

void look_block(struct look *l, int64_t now_ns) {
    if (now_ns - l->block_ns < BLOCK_NS) return;
    for (int i = 0; i < l->n; i++)
        if (l->one[i].probe->when == PROBE_BLOCK) read_one(&l->one[i], l->one[i].after);
    l->block_ns = clock_ns();
}

double look_close(struct look **look, void (*keep)(void *, const char *, double), void *ctx) {
    struct look *l = *look;
    double cost_ns = 0;
    if (!l) return 0;
    for (int i = l->n - 1; i >= 0; i--)
        if (l->one[i].probe->when != PROBE_SAMPLE) read_one(&l->one[i], l->one[i].after);
    for (int i = 0; i < l->n; i++) {
        struct one *o = &l->one[i];
        const struct probe *p = o->probe;
        char name[100];
        for (int c = 0; c < o->n && o->reads; c++) {
            double value = p->when == PROBE_SAMPLE     ? o->sum[c]
                           : p->channels[c].difference ? o->after[c] - o->before[c]
                                                       : o->after[c];
            snprintf(name, sizeof name, "%s.%s", p->name, p->channels[c].name);
            if (isfinite(value)) keep(ctx, name, value);
        }
        snprintf(name, sizeof name, "%s.read_ns", p->name);
        if (o->reads) keep(ctx, name, o->cost_ns / (double)o->reads);
        cost_ns += o->cost_ns;
        if (p->close) p->close(o->self);
        free(o->self);
    }
    free(l);
    *look = NULL;
    return cost_ns;
}
