/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and opening device kinds, and allocations that the tracker sees. */
#include "kernels/device.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"

const char *const op_names[N_OPS + 1] = {
    [OP_EMBED] = "embed",
    [OP_ADD_NORM] = "add_norm",
    [OP_LINEAR] = "linear",
    [OP_ROPE_APPEND] = "rope_append",
    [OP_ATTENTION] = "attention",
    [OP_GATHER_ROWS] = "gather_rows",
    [OP_SELECT] = "select",
    [OP_ADVANCE] = "advance",
    [OP_KV_COPY_BLOCK] = "kv_copy_block",
    [OP_COPY] = "copy",
    [OP_READ] = "read",
    [OP_TRIAD] = "triad",
    [OP_FMA_PEAK] = "fma_peak",
};

const struct device_kind *device_kind_find(const char *name) {
    for (int i = 0; all_devices[i]; i++)
        if (strcmp(all_devices[i]->name, name) == 0) return all_devices[i];
    return NULL;
}

int device_open(struct device **device, const struct device_kind *kind, const void *params,
                struct err *err) {
    *device = NULL;
    int code = kind->open(device, params, err);
    if (code) return code;
    (*device)->kind = kind;
    if (!(*device)->tracker) (*device)->tracker = tracker_create();
    return 0;
}

void device_close(struct device **device) {
    if (!*device) return;
    /* The kind may still release what it allocated, so its tracker outlives it. */
    struct tracker *tracker = (*device)->tracker;
    (*device)->kind->close(device);
    tracker_close(&tracker);
    *device = NULL;
}

void *device_alloc(struct device *device, size_t bytes, enum memory_class class_of,
                   const char *what) {
    if (bytes == 0) bytes = 1; /* so that it has an address of its own */
    void *p = device->kind->alloc(device, bytes);
    if (p) tracker_add(device->tracker, p, bytes, class_of, what);
    return p;
}

void device_free(struct device *device, void *p) {
    if (!p) return;
    size_t bytes = tracker_remove(device->tracker, p);
    if (bytes && device->sharing && device->sharing->release(device->sharing->ctx, p)) return;
    if (bytes)
        device->kind->free(device, p, bytes); /* never twice: unknown addresses are left alone */
}

void *device_packed(struct device *device, size_t bytes, enum memory_class class_of,
                    const char *what) {
    const struct sharing *sharing = device->sharing;
    void *p = sharing && bytes ? sharing->find(sharing->ctx, what, bytes) : NULL;
    if (p) tracker_add(device->tracker, p, bytes, class_of, what);
    return p;
}

void *device_share(struct device *device, void *p, size_t bytes, enum memory_class class_of,
                   const char *what) {
    const struct sharing *sharing = device->sharing;
    void *shared = sharing && p ? sharing->offer(sharing->ctx, what, p, bytes) : NULL;
    if (!shared) return p;
    device_free(device, p);
    tracker_add(device->tracker, shared, bytes, class_of, what);
    return shared;
}

int64_t device_now(struct device *device) {
    return device->kind->now ? device->kind->now(device) : clock_ns();
}

size_t device_live_allocations(struct device *device) {
    return tracker_live_count(device->tracker);
}

int64_t device_beyond_caches(const struct device_kind *kind) {
    const int64_t least = (int64_t)256 << 20, twice = kind->cached ? 2 * kind->cached() : 0;
    return twice > least ? twice : least;
}

enum dtype device_activation(const struct device_kind *kind, enum dtype weight) {
    return kind->activation ? kind->activation(weight) : DT_F32;
}
