/* SPDX-License-Identifier: Apache-2.0 */
/* What looks on while a workload runs: a probe reads named channels at its own moments; its cost is
 * measured and stored. */
#ifndef PROBES_PROBE_H
#define PROBES_PROBE_H
#include <stddef.h>
#include <stdint.h>
#include "base/option.h"

struct err;
enum probe_when {
    PROBE_SAMPLE, /* before and after each sample: only if asked for by `measure.sample_probes` */
    PROBE_BLOCK,  /* as PROBE_VISIT; with `measure.sample_probes` also between samples, at most once
                     per 1 ms */
    PROBE_VISIT,  /* before the samples of a visit and after */
};
struct channel {
    const char *name, *unit, *help;
    int difference;
}; /* difference 1: after - before; 0: the last value */
struct probe {
    const char *name, *brief;
    enum probe_when when;
    const struct channel *channels; /* ends with name NULL */
    size_t self_size; /* zeroed before open; where files are read it begins with struct tree
                         (common/tree.h) */
    int (*open)(void *self, struct err *);    /* ERR_UNSUPPORTED: unavailable, and why */
    void (*read)(void *self, double *values); /* one per channel; NAN where nothing was read */
    void (*close)(void *self);
};
extern const struct probe *const all_probes[]; /* generated; NULL-terminated */

#endif
