/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, on stderr: one living line on a terminal, one line a round elsewhere. */
#ifndef HARNESS_PROGRESS_H
#define HARNESS_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool quiet, terminal, drawn;
    int64_t begin_ns, visits, done;
};
void progress_begin(struct progress *, bool quiet);
/* fraction: of the whole budget or plan, 0 ... 1. what: "batch 16". */
void progress_show(struct progress *, int64_t round, int64_t rounds, const char *what,
                   double fraction, double eta_s);
void progress_line(struct progress *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* a lasting line */
void progress_end(struct progress *);

#endif
