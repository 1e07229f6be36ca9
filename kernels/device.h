/* SPDX-License-Identifier: Apache-2.0 */
/* Where inference runs: the record of a device kind, and what every opened device offers. */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "kernels/ops.h"
#include "kernels/quant.h"
#include "kernels/tracker.h"

struct err;
struct facts;
struct lab_ops;
struct option;

enum {                        /* device_kind.has */
       DEV_HOST_CLOCK = 1,    /* work is done when sync returns; host time is device time */
       DEV_VIRTUAL_CLOCK = 2, /* `now` is the only clock: nothing really takes time */
       DEV_BATCH_INVARIANT =
           4, /* a row's outputs are the same bits in any batch, split and thread count */
       DEV_HOST_MEMORY = 8, /* pointers from alloc can be read by the host */
       DEV_GPU = 16,        /* a GPU's kernels do the work: CUPTI may trace them */
       DEV_COUNTS = 32,     /* device.counts is kept */
};

/* Multiply-adds that ops executed since the device opened (a multiply-add is 2 FLOP). */
struct op_counts {
    int64_t linear, attention;
};

/* Packed once, opaque beyond this head: embed and linear read the same bytes. Devices embed it as
 * first member. */
struct weight {
    int64_t rows, cols; /* rows: of all stacked parts */
    enum dtype type;
    enum scale scale;
    int group;
    enum dtype input;           /* weight_spec.input */
    int64_t bytes, scale_bytes; /* as allocated (padding included), MEM_WEIGHT and MEM_SCALE */
};

struct step_bounds { /* the largest step that will come; nothing allocates after plan() */
    int32_t n_seq, n_row, n_out, most_q, most_kv;
    int32_t n_q, n_kv, d_h, d_model, d_ff, vocab;
    enum dtype activation;
};

struct op_case { /* asked of `supports` */
    enum dtype weight;
    enum scale scale;
    int group;        /* linear, embed */
    enum dtype input; /* of the weight: weight_spec.input */
    enum dtype activation;
    enum dtype kv;
    bool paged, window; /* rope_append, attention */
    enum epilogue epilogue;
};

/* What makes two steps the same ops on the same addresses, but for counts that the device reads
 * from its own memory. */
struct step_id {
    const void *owner; /* whose memory the ops touch */
    int32_t n_row, most_kv, kind;
};
enum span_moment { SPAN_BEGIN, SPAN_END, SPAN_READ };

/* Memory for packed weights that another process sees too, so that both read the same pages. */
struct sharing {
    /* Bytes that were packed under that name; NULL: not yet. */
    void *(*find)(void *ctx, const char *what, size_t bytes);
    /* A shared place with the same bytes; NULL: there is no room. */
    void *(*offer)(void *ctx, const char *what, const void *data, size_t bytes);
    bool (*release)(void *ctx, const void *); /* whether it was one of these */
    void *ctx;
};

struct device { /* first member of every device */
    const struct device_kind *kind;
    const struct ops *ops;
    const struct lab_ops *lab; /* kernels/lab.h; NULL: none */
    struct tracker *tracker;
    const struct sharing *sharing;  /* NULL: none */
    const struct op_counts *counts; /* NULL without DEV_COUNTS */
    bool lost; /* nothing will work on it any more within this process (set by sync) */
};

struct device_kind {
    const char *name, *brief;
    unsigned has;
    const struct option *params; /* keys of [device] besides `kind` */
    size_t params_size;
    /* The largest value of an option that makes sense on this machine, which bounds the axes of
       protocols that are made for all machines; 0: there is no such bound. Optional. */
    int64_t (*most)(const char *key);
    /* Opens or says why it is unavailable (ERR_UNSUPPORTED). params: as filled by option_parse. */
    int (*open)(struct device **, const void *params, struct err *);
    void (*close)(struct device **);
    /* What really runs: isa, threads, pinning, ... as facts under "device.". */
    void (*describe)(struct device *, struct facts *);
    /* Whether (and with which kernel) an op runs; *kernel_or_reason is static text: the 'effective'
     * column. */
    bool (*supports)(struct device *, enum op, const struct op_case *,
                     const char **kernel_or_reason);
    /* Untimed: workspace, algorithms, kernels loaded. May be called again with other bounds. */
    int (*plan)(struct device *, const struct step_bounds *, struct err *);
    /* Gives back what plan took, until it is called again: no row's account has what an earlier row
       needed. Optional. */
    void (*unplan)(struct device *);
    void *(*alloc)(
        struct device *,
        size_t bytes); /* 64-byte aligned, zeroed; NULL: out of memory. Use device_alloc */
    void (*free)(struct device *, void *, size_t bytes);
    /* Stacks n parts (same cols, type, scale, group, input) along rows into one weight; sources[i]
       gives part i's rows. For SwiGLU: parts {gate, up}. MEM_WEIGHT and MEM_SCALE through the
       tracker. ERR_MEMORY, ERR_UNSUPPORTED. */
    int (*pack)(struct device *, struct weight **, const struct weight_spec *parts, int n,
                const struct row_source *sources, struct err *);
    void (*unpack)(struct device *, struct weight **); /* frees; NULL is safe */
    void (*upload)(struct device *, void *to, const void *from,
                   size_t bytes); /* host to device; ordered */
    void (*download)(struct device *, void *to, const void *from, size_t bytes); /* synchronises */
    int64_t (*now)(struct device *); /* DEV_VIRTUAL_CLOCK only, else NULL */
    void (*evict)(struct device *);  /* makes caches cold; optional */
    /* Bytes that its last caches before memory hold together; 0: unknown. Optional: 128 MiB at
       most. */
    int64_t (*cached)(void);
    /* From here on threads keep the CPUs that they have, whoever takes these: the other side of a
       comparison has the same ones. Optional. */
    void (*stay)(struct device *);
    int (*sync)(struct device *,
                struct err *); /* waits; the first failure since the last sync (and clears it) */
    /* Virtual devices: tells the cost of the next execution (flops, bytes), since no op runs for
     * real; optional. */
    void (*expect)(struct device *, double flops, double bytes);
    /* Waits until a moment of the device's clock (virtual clocks jump); optional: the host sleeps
     * otherwise. */
    void (*wait)(struct device *, int64_t until_ns);
    /* The type in which activations are kept beside weights of a type; optional: f32. */
    enum dtype (*activation)(enum dtype weight);
    /* Steps that are recorded once and replayed; optional. replay: true if it ran the step, in a
       range of its own; else the caller runs the ops and then calls `recorded`. Between the two
       nothing is allocated, moved between host and device, or waited for. forget: the owner's
       memory goes away. */
    bool (*replay)(struct device *, const struct step_id *);
    void (*recorded)(struct device *);
    void (*forget)(struct device *, const void *owner);
    /* The device's own time from SPAN_BEGIN to SPAN_END, both put among its work; SPAN_READ, after
       a sync, tells it in ns, else 0; optional. */
    int64_t (*span)(struct device *, enum span_moment);
    /* The device's own numbers about so many executions that ran since the last call, by the names
       of metrics; 0 executions: only begins anew; optional. */
    void (*report)(struct device *, double executions,
                   void (*keep)(void *ctx, const char *name, double value), void *ctx);
};

extern const struct device_kind *const all_devices[]; /* generated; NULL-terminated */
struct device_absent {
    const char *name, *reason;
};
extern const struct device_absent
    all_devices_absent[]; /* generated: known folders that this build left out */

const struct device_kind *device_kind_find(const char *name);
/* Makes the tracker after kind->open (unless that made it, because it allocates); device_close
   frees it after kind->close, which must leave it alone. params must be filled by option_defaults
   or option_parse. */
int device_open(struct device **, const struct device_kind *, const void *params, struct err *);
void device_close(struct device **);
void *device_alloc(struct device *, size_t bytes, enum memory_class,
                   const char *what);      /* tracked; NULL: out of memory */
void device_free(struct device *, void *); /* NULL is safe */
/* Only for memory that the host can read (DEV_HOST_MEMORY). The first, for kind->pack, gives bytes
   that were packed already, tracked, or NULL. The second moves what is there now to a shared place,
   where there is one, and returns where it lies from then on: it is only to be read. */
void *device_packed(struct device *, size_t bytes, enum memory_class, const char *what);
void *device_share(struct device *, void *, size_t bytes, enum memory_class, const char *what);
int64_t device_now(struct device *); /* kind->now or the host clock */
size_t device_live_allocations(struct device *);
enum dtype device_activation(const struct device_kind *, enum dtype weight); /* or f32 */
/* Bytes that must lie between two uses of the same, so that the second comes from memory: 256 MiB,
   or twice `cached`. On a server whose third level has 480 MiB, reading 256 MiB again and again was
   1.2 times as fast as reading 1 or 2 GiB. */
int64_t device_beyond_caches(const struct device_kind *);

#endif
