/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that sequences hold before the clock starts: really prefilled, once a run. */
#ifndef WORKLOADS_COMMON_CONTEXTS_H
#define WORKLOADS_COMMON_CONTEXTS_H
#include "workloads/common/tokens.h"
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

enum { CONTEXT_CHUNK = 256 }; /* rows of a step while contexts are filled, at most */
struct contexts {
    struct run *run;
    struct session *session; /* every sequence of which is to hold its stream's first tokens */
    const struct token_stream *stream;
    uint64_t device_hash;
    int32_t tokens;            /* of each; 0: there is nothing to do */
    struct session_spec alone; /* of the session that fills one sequence at a time, in chunks */
};
static inline int32_t context_chunk(int64_t tokens) {
    return (int32_t)(tokens < CONTEXT_CHUNK ? tokens : CONTEXT_CHUNK);
}
/* Adds what is alive beside the session meanwhile to bytes (N_CLASSES); returns what of it lies on
 * the host too. */
int64_t contexts_bytes(const struct model_config *, const struct session_spec *alone,
                       int64_t *bytes);
/* Fills the caches, from what the run kept where it can, and tells the device the session's bounds
 * again. Lengths are the caller's. */
int contexts_load(const struct contexts *, struct err *);

#endif
