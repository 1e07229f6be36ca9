/* SPDX-License-Identifier: Apache-2.0 */
/* A CUPTI that delivers scripted records: two kernels of host calls, three of one graph launch.
 * FAKE_CUPTI: "refuses" to enable, "drops" a record, "splits" the records over two buffers. */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static int enabled;

static int is(const char *what) {
    const char *mode = getenv("FAKE_CUPTI");
    return mode && !strcmp(mode, what);
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                           CUpti_BuffersCallbackCompleteFunc c) {
    request = r;
    complete = c;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    if (is("refuses") && kind == CUPTI_ACTIVITY_KIND_RUNTIME) return CUPTI_ERROR_UNKNOWN;
    enabled++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    (void)kind;
    if (--enabled < 0) abort(); /* what was never enabled */
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *t) { /* a clock that began when the test did */
    *t = 1000000;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult code, const char **text) {
    *text = code == CUPTI_ERROR_UNKNOWN ? "CUPTI_ERROR_UNKNOWN" : "?";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *n) {
    (void)context;
    (void)stream;
    *n = is("drops");
    return CUPTI_SUCCESS;
}

/* Records lie one after another, each as long as its kind says. */
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
    uint8_t *at = *record ? (uint8_t *)*record : NULL;
    CUpti_ActivityKind kind;
    if (at) {
        memcpy(&kind, at, sizeof kind);
        at += kind == CUPTI_ACTIVITY_KIND_RUNTIME ? sizeof(CUpti_ActivityAPI)
                                                  : sizeof(CUpti_ActivityKernel10);
    } else {
        at = buffer;
    }
    if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)at;
    return CUPTI_SUCCESS;
}

static uint8_t *put_kernel(uint8_t *at, const char *name, uint64_t start, uint32_t id,
                           uint64_t node) {
    CUpti_ActivityKernel10 k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.name = name;
    k.start = start;
    k.end = start + 300;
    k.correlationId = id;
    k.graphNodeId = node;
    k.gridX = 4;
    k.gridY = k.gridZ = k.blockY = k.blockZ = 1;
    k.blockX = 256;
    k.registersPerThread = 64;
    k.staticSharedMemory = 16;
    k.dynamicSharedMemory = 1024;
    k.streamId = 7;
    memcpy(at, &k, sizeof k);
    return at + sizeof k;
}

static uint8_t *put_call(uint8_t *at, uint64_t start, uint32_t id) {
    CUpti_ActivityAPI a;
    memset(&a, 0, sizeof a);
    a.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    a.start = start;
    a.end = start + 10;
    a.correlationId = id;
    memcpy(at, &a, sizeof a);
    return at + sizeof a;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    uint8_t *buffer = NULL, *at;
    size_t size = 0, most = 0;
    (void)flag;
    request(&buffer, &size, &most);
    if (!buffer) return CUPTI_ERROR_OUT_OF_MEMORY;
    at = put_kernel(buffer, "linear_bf16_n1", 1003000, 12, 0); /* out of order, before its call */
    at = put_call(at, 1000100, 11);
    at = put_call(at, 1000200, 12);
    at = put_kernel(at, "add_norm", 1002000, 11, 0);
    if (is("splits")) {
        complete(0, 0, buffer, size, (size_t)(at - buffer));
        request(&buffer, &size, &most);
        at = buffer;
    }
    at = put_call(at, 1004000, 20);
    for (uint64_t i = 0; i < 3; i++) at = put_kernel(at, "select", 1005000 + 400 * i, 20, i + 1);
    at = put_kernel(at, NULL, 1009000, 99, 0); /* no name, no call */
    complete(0, 0, buffer, size, (size_t)(at - buffer));
    return CUPTI_SUCCESS;
}
