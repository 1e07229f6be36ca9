/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges: handed to NVTX where a tool listens, and kept by the recorder of a test. */
#include "base/range.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"

#if BENCH_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

static nvtxDomainHandle_t domain; /* NULL without a tool: NVTX says so itself */

static void domain_create(void) {
    static const char *const names[N_RANGE_CATEGORIES] = {
        [RANGE_RUN] = "run",     [RANGE_VISIT] = "visit", [RANGE_SAMPLE] = "sample",
        [RANGE_PHASE] = "phase", [RANGE_STEP] = "step",   [RANGE_LAYER] = "layer"};
    domain = nvtxDomainCreateA("bench");
    for (uint32_t c = RANGE_RUN; domain && c < N_RANGE_CATEGORIES; c++)
        nvtxDomainNameCategoryA(domain, c, names[c]);
}

static bool tool_listens(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, domain_create);
    return domain != NULL;
}

static void tool_push(enum range_category category, const char *name, int64_t payload) {
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .category = (uint32_t)category,
                                   .payloadType = NVTX_PAYLOAD_TYPE_INT64,
                                   .payload.llValue = payload,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = name};
    nvtxDomainRangePushEx(domain, &event);
}

static void tool_pop(void) { nvtxDomainRangePop(domain); }
#else
static bool tool_listens(void) { return false; }
static void tool_push(enum range_category category, const char *name, int64_t payload) {
    (void)category;
    (void)name;
    (void)payload;
}
static void tool_pop(void) {}
#endif

enum { DEEPEST = 64 };
struct recorder { /* of one thread */
    struct range_event *events;
    size_t n, most, lost;
    int depth, unbalanced;
    bool on;
    struct range_event open[DEEPEST];
};
static _Thread_local struct recorder *recorder;
static atomic_bool activated;

bool range_built(void) {
#if BENCH_HAVE_NVTX
    return true;
#else
    return false;
#endif
}

bool range_active(void) {
    return atomic_load_explicit(&activated, memory_order_relaxed) || (recorder && recorder->on) ||
           tool_listens();
}

void range_activate(bool on) { atomic_store(&activated, on); }

static void record_push(struct recorder *r, enum range_category category, const char *name,
                        int64_t payload) {
    if (r->depth < DEEPEST) {
        struct range_event *e = &r->open[r->depth];
        *e = (struct range_event){.payload = payload, .depth = r->depth, .category = (int)category};
        snprintf(e->name, sizeof e->name, "%s", name);
        e->begin_ns = clock_ns();
    }
    r->depth++;
}

static void record_pop(struct recorder *r) {
    int64_t now = clock_ns();
    if (!r->depth) {
        r->unbalanced++;
        return;
    }
    r->depth--;
    if (r->n == r->most || r->depth >= DEEPEST) {
        r->lost++;
        return;
    }
    r->events[r->n] = r->open[r->depth];
    r->events[r->n++].end_ns = now;
}

void range_push(enum range_category category, const char *name, int64_t payload) {
    if (tool_listens()) tool_push(category, name, payload);
    if (recorder && recorder->on) record_push(recorder, category, name, payload);
}

void range_pop(void) {
    if (recorder && recorder->on) record_pop(recorder);
    if (tool_listens()) tool_pop();
}

void range_record(size_t most) {
    if (recorder) {
        free(recorder->events);
        free(recorder);
        recorder = NULL;
    }
    if (!most) return;
    recorder = must_alloc(sizeof *recorder);
    recorder->events = must_alloc(most * sizeof *recorder->events);
    recorder->most = most;
    recorder->on = true;
}

bool range_recording(void) { return recorder && recorder->on; }

void range_again(void) {
    struct recorder *r = recorder;
    if (!r) return;
    r->n = r->lost = 0;
    r->depth = r->unbalanced = 0;
    r->on = true;
}

size_t range_recorded(const struct range_event **events, size_t *lost, int *unbalanced) {
    struct recorder *r = recorder;
    if (r) r->on = false;
    *events = r ? r->events : NULL;
    if (lost) *lost = r ? r->lost : 0;
    if (unbalanced)
        *unbalanced =
            r ? r->unbalanced + r->depth : 0; /* pops without a push, pushes without a pop */
    return r ? r->n : 0;
}
