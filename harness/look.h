/* SPDX-License-Identifier: Apache-2.0 */
/* The probes during one visit: opened, read at their moments, closed; what they found and what each
 * of them cost. */
#ifndef HARNESS_LOOK_H
#define HARNESS_LOOK_H
#include <stdbool.h>
#include <stdint.h>

struct look;
struct probe;

/* Opens what is available of `probes` (all_probes, or a test's list; NULL ends it) and reads it
 * once. each: probes around every sample take part, and those of blocks are read between samples
 * too. */
struct look *look_open(const struct probe *const *probes, bool each);
/* Around one sample, outside of its clock reads; only for a look with `each`. */
void look_before(struct look *);
void look_after(struct look *);
/* Between samples, at this moment of the host clock: reads the probes of blocks once a millisecond.
 */
void look_block(struct look *, int64_t now_ns);
/* Reads for the last time, hands each number that is one to `keep` as "probe.channel" (differences
 * where the channel is one; for probes around samples the sum over the samples) and each probe's
 * mean cost of a read as "probe.read_ns", closes, and sets *look to NULL. Returns the ns spent
 * reading. */
double look_close(struct look **, void (*keep)(void *ctx, const char *name, double value),
                  void *ctx);

#endif
