/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges of the domain `bench` (NVTX where its headers were present at build), and a recorder
 * that tests use. */
#ifndef BASE_RANGE_H
#define BASE_RANGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum range_category {
    RANGE_RUN = 1,
    RANGE_VISIT,
    RANGE_SAMPLE,
    RANGE_PHASE,
    RANGE_STEP,
    RANGE_LAYER,
    N_RANGE_CATEGORIES
};
/* Ranges nest per thread. With no tool attached and no recorder a pair costs a few ns. name is
 * copied by the tool. */
void range_push(enum range_category, const char *name,
                int64_t payload); /* payload: point, batch or tokens; 0 if none */
void range_pop(void);
bool range_built(void); /* whether NVTX was compiled in: `bench doctor` and `list probes` say so */
/* Whether a tool (or the recorder) listens: names that must be formatted are formatted only then.
 */
bool range_active(void);
void range_activate(bool on); /* --profile */

struct range_event {                   /* one closed range, in order of closing */
    int64_t begin_ns, end_ns, payload; /* CLOCK_MONOTONIC */
    int depth, category;
    char name[80];
};
/* Starts recording into a buffer of `most` events of the calling thread; later ones are counted,
   not kept. The buffer stays until the next range_record; range_record(0) frees it. */
void range_record(size_t most);
bool range_recording(void); /* whether the calling thread's ranges are being kept */
void range_again(void); /* forgets what was recorded and what is open, and goes on in the buffer */
size_t range_recorded(const struct range_event **, size_t *lost, int *unbalanced); /* and stops */

#endif
