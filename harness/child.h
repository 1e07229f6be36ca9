/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as its supervisor holds it: started, greeted, waited for, ended; and the wish to stop.
 */
#ifndef HARNESS_CHILD_H
#define HARNESS_CHILD_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/sample_log.h"

struct err;
struct facts;
struct tables;
struct visit_order;
struct worker;

#define WAKE_MS 500 /* never more often: the supervisor must not disturb a sample */

struct child_memory { /* what a worker shares with its supervisor */
    struct sample_log log;
    int log_fd, snapshot_fd, weights_fd; /* -1: none */
};
struct child {
    const struct child_memory *memory;
    const char *binary; /* NULL: this program */
    pid_t pid;
    int fd;                /* -1: not started, or inside */
    int64_t number;        /* of workers started so far */
    struct worker *inside; /* --no-isolate */
    char revision[48];     /* what its binary was built from */
};
struct patience {
    int64_t timeout_ns;
    void (*show)(void *ctx, int64_t waited_ns); /* at every wake; optional */
    void *ctx;
};
struct answer {
    uint32_t kind;
    char *body; /* NULL: none came, since it died, was too late, or stop_asked */
    size_t len;
    char state[16], reason[300]; /* "failed" or "timeout", where none came */
    double seconds;              /* waited */
};

/* Starts a worker, or one in this process, and waits for its hello: a binary that speaks another
   version of the messages is refused (ERR_INPUT). */
int child_start(struct child *, int64_t number, bool inside, struct err *);
bool child_runs(const struct child *);
void child_end(struct child *, bool kill_it);
/* Sends a message and waits for the answer. A worker that dies, talks nonsense or is too late is
   ended. err: a request that a worker inside cannot read. */
int child_ask(struct child *, uint32_t message, const struct facts *, const struct patience *,
              struct answer *, struct err *);
/* What a worker that gave no answer left: its visit's row; the samples in shared memory stay. */
void child_row(const struct child *, const struct visit_order *, int64_t point,
               const struct answer *, struct tables *);

/* SIGINT, SIGTERM and SIGHUP (unless ignored) ask to stop instead of ending the program. */
struct stop_watch;
struct stop_watch *stop_watch(void);
void stop_unwatch(struct stop_watch **);
bool stop_asked(void);

#endif
