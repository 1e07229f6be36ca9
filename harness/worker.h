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
struct text;
struct worker; /* opaque */

/* The messages between supervisor and worker: base/frame.h frames of these kinds. */
enum message {
    MESSAGE_HELLO = 16 /* facts: protocol, build, pid */,
    MESSAGE_VISIT /* facts */,
    MESSAGE_DONE /* tables */,
    MESSAGE_LAST /* the same, of a worker that ends now: its device works no more */,
    /* A visit in turns with another worker's: */
    MESSAGE_OPEN /* facts as of a visit; prepares and warms up */,
    MESSAGE_READY /* facts ready.*: state, typical_ns of one execution, batch, weights */,
    MESSAGE_TURN /* fact turn.executions */,
    MESSAGE_SAMPLE /* fact sample.wall_ns of all of them, negative if one failed */,
    MESSAGE_CLOSE /* no facts; the answer is MESSAGE_DONE or _LAST */
};
/* Also of the memory that two builds share: sample_log.h, and the directory in snapshot.c. */
#define MESSAGE_VERSION 2

struct visit_order { /* what the supervisor wants, beside the point's facts */
    int64_t visit, round, position, worker, share_ns;
    bool control;
};
/* The request as facts: order.*, measure.*, point.*, and the point's own. Borrowed texts are
 * copied. */
void visit_pack(struct facts *, const struct visit_order *, const struct measure_params *,
                const struct point *);

/* Descriptors may be -1. The log is borrowed. */
int worker_open(struct worker **, int snapshot_fd, int weights_fd, const struct sample_log *,
                struct err *);
void worker_close(struct worker **);
/* Measures; whatever happens short of death is a state in the rows of out. err: a request that
 * cannot be read. */
int worker_visit(struct worker *, const struct facts *request, struct tables *out, struct err *);
/* What the process answers to a frame; for a worker inside. err: a request that cannot be read, or
 * comes out of order. */
int worker_answer(struct worker *, uint32_t kind, const char *body, size_t len,
                  uint32_t *answer_kind, struct text *answer, struct err *);
/* The process: serves frames on fd until it is closed. Returns an exit code. */
int worker_main(int fd, int log_fd, int snapshot_fd, int weights_fd);

#endif
