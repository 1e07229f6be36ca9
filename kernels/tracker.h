/* SPDX-License-Identifier: Apache-2.0 */
/* Every byte of a device allocation has a class, a name and a phase; replaying the log gives the peak to the byte. */
#ifndef KERNELS_TRACKER_H
#define KERNELS_TRACKER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_class { /* of allocations and of the ledger's traffic */
    MEM_WEIGHT,     /* codes of weights */
    MEM_SCALE,      /* scales of quantized weights and caches */
    MEM_KV,
    MEM_ACTIVATION, /* residual, q, k, v, attention output, hidden */
    MEM_LOGITS,
    MEM_WORKSPACE,
    MEM_STATE,      /* tokens, positions, lengths, block tables */
    MEM_OTHER,      /* ceilings' buffers, a workload's own */
    N_CLASSES
};
extern const char *const memory_class_names[N_CLASSES + 1]; /* "weight", "scale", "kv", ... */

struct memory_event {
    int64_t t_ns;       /* host clock */
    int64_t bytes;      /* > 0 allocation, < 0 release */
    int32_t class_of, phase; /* phase: index set by tracker_phase, -1 outside; TRACKER_ASIDE */
    char site[40];      /* the name given at the allocation */
};
enum { TRACKER_ASIDE = -2 };
struct tracker; /* owned by a device */

struct tracker *tracker_create(void);
void tracker_close(struct tracker **);
void tracker_add(struct tracker *, const void *address, size_t bytes, enum memory_class, const char *site);
size_t tracker_remove(struct tracker *, const void *address); /* bytes released; 0 if unknown */
void tracker_phase(struct tracker *, int phase);
/* While aside (a check of the output beside the measured work), allocations are live and logged, with phase TRACKER_ASIDE,
   but make no peak: the peak is the largest live total at an allocation that is not aside. */
void tracker_aside(struct tracker *, bool aside);
/* Starts a new account: the live set stays, peaks become the live set, the log starts with one event per live allocation. */
void tracker_reset(struct tracker *);
int64_t tracker_live(const struct tracker *, int class_of);  /* class_of < 0: all */
/* The largest simultaneously live total since the reset; by_class (N_CLASSES, or NULL) at that moment; its site and phase. */
int64_t tracker_peak(const struct tracker *, int64_t *by_class, const char **site, int *phase);
int64_t tracker_count(const struct tracker *);                /* allocations since the reset */
size_t tracker_live_count(const struct tracker *);            /* allocations not yet released */
const struct memory_event *tracker_log(const struct tracker *, size_t *n);

#endif
