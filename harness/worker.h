/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: one device, one cached weight set; measures the visits it is told, and may die. */
#ifndef HARNESS_WORKER_H
#define HARNESS_WORKER_H
#include <stdint.h>

#include "base/facts.h"
#include "harness/protocol.h"
#include "harness/sample_log.h"

struct err;
struct tables;
struct worker; /* opaque */

/* The messages between supervisor and worker: base/frame.h frames of these kinds. */
enum message {
    MESSAGE_HELLO = 16 /* facts: protocol, build, pid */,
    MESSAGE_VISIT /* facts */,
    MESSAGE_DONE /* tables */,
    MESSAGE_LAST /* the same, of a worker that ends now: its device works no more */
};
#define MESSAGE_VERSION 1

struct visit_order { /* what the supervisor wants, beside the point's facts */
    int64_t visit, round, position, worker, share_ns;
    bool control;
};
/* The request as facts: order.*, measure.*, point.*, and the point's own. Borrowed texts are
 * copied. */
void visit_pack(struct facts *, const struct visit_order *, const struct measure_params *,
                const struct point *);

/* snapshot_fd may be -1. The log is borrowed. */
int worker_open(struct worker **, int snapshot_fd, const struct sample_log *, struct err *);
void worker_close(struct worker **);
/* Measures; whatever happens short of death is a state in the rows of out. err: a request that
 * cannot be read. */
int worker_visit(struct worker *, const struct facts *request, struct tables *out, struct err *);
/* The process: serves frames on fd until it is closed. Returns an exit code. */
int worker_main(int fd, int log_fd, int snapshot_fd);

#endif
