/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `lifetimes`: layers that allocate and free as they go, so that the peak is one thing and
 * the sum of all allocations another. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/option.h"
#include "kernels/device.h"
#include "workloads/workload.h"

struct lifetimes_params {
    int64_t layers, bytes, scratch;
    int keep;
};
struct lifetimes_self {
    struct run *run;
    struct device *device;
    struct lifetimes_params params;
    void **outputs; /* (layers + 1): the input, then each layer's; NULL where it is freed */
};

enum { KEEP_LAST, KEEP_ALL };
enum { PHASE_FORWARD, PHASE_BACKWARD };
static const char *const keep_words[] = {"last", "all", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct lifetimes_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "layers",
     .type = OPT_INT,
     PARAM(layers),
     .def = "8",
     .min = 1,
     .max = 1000,
     .unit = "layers",
     .help = "Layers, one after the other (L)."},
    {.key = "bytes",
     .type = OPT_BYTES,
     PARAM(bytes),
     .def = "1 MiB",
     .min = 1,
     .max = 0x1p36,
     .unit = "",
     .help = "What a layer puts out (a)."},
    {.key = "scratch",
     .type = OPT_BYTES,
     PARAM(scratch),
     .def = "4 MiB",
     .min = 1,
     .max = 0x1p36,
     .unit = "",
     .help = "What a layer needs while it works (s)."},
    {.key = "keep",
     .type = OPT_WORD,
     PARAM(keep),
     .def = "last",
     .words = keep_words,
     .unit = "",
     .help =
         "last: an output is freed as soon as the next layer has read it, as in inference; all: "
         "outputs live until a backward pass has read them, as in training."},
    {0},
};
static const struct phase phases[] = {{"forward", "layer"}, {"backward", "layer"}, {0}};
static const struct metric metrics[] = {
    {"formula_peak", "byte",
     "Largest live set by formula: 2 a + s; with all outputs kept (L + 3) a + s, when the backward "
     "pass begins: input and outputs, two gradients and the scratch.",
     BETTER_LOWER, true},
    {"formula_sum", "byte", "All allocations together, by formula: a + L (a + s), twice if kept.",
     BETTER_NONE, true},
    {0},
};

static int64_t peak_of(const struct lifetimes_params *p) {
    return (p->keep == KEEP_ALL ? p->layers + 3 : 2) * p->bytes + p->scratch;
}

static int64_t sum_of(const struct lifetimes_params *p) {
    return (p->keep == KEEP_ALL ? 2 : 1) * (p->bytes + p->layers * (p->bytes + p->scratch));
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    const struct lifetimes_params *p = params_;
    (void)config;
    plan->work[PHASE_FORWARD].items = (double)p->layers;
    plan->work[PHASE_BACKWARD].items = p->keep == KEEP_ALL ? (double)p->layers : 0;
    plan->bytes[MEM_ACTIVATION] = peak_of(p) - p->scratch;
    plan->bytes[MEM_WORKSPACE] = p->scratch;
    plan->host_bytes = (p->layers + 1) * (int64_t)sizeof(void *);
    plan->most_marks = 2;
    plan->peak_bytes = peak_of(p);
    plan->binding_type = DT_F32;
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct lifetimes_self *self = s;
    (void)config, (void)err;
    self->run = run;
    self->device = run_device(run);
    self->params = *(const struct lifetimes_params *)params_;
    self->outputs = must_alloc(sizeof(void *) * (size_t)(self->params.layers + 1));
    return 0;
}

static void *take(struct lifetimes_self *self, int64_t bytes, enum memory_class class_of,
                  const char *what, int64_t layer) {
    char site[40];
    snprintf(site, sizeof site, "%s %" PRId64, what, layer);
    void *p = device_alloc(self->device, (size_t)bytes, class_of, site);
    if (!p) run_fail(self->run, "out of memory: %s, %" PRId64 " bytes", site, bytes);
    return p;
}

/* One layer, either way: scratch for as long as it works, and what it puts out. */
static void *layer(struct lifetimes_self *self, const char *what, int64_t l) {
    const struct lifetimes_params *p = &self->params;
    void *scratch = take(self, p->scratch, MEM_WORKSPACE, "scratch of layer", l),
         *out = take(self, p->bytes, MEM_ACTIVATION, what, l);
    device_free(self->device, scratch);
    return out;
}

static void drop(struct lifetimes_self *self, int64_t l) {
    device_free(self->device, self->outputs[l]);
    self->outputs[l] = NULL;
}

static void execute(void *s) {
    struct lifetimes_self *self = s;
    const struct lifetimes_params *p = &self->params;
    run_phase(self->run, PHASE_FORWARD);
    self->outputs[0] = take(self, p->bytes, MEM_ACTIVATION, "input", 0);
    for (int64_t l = 0; l < p->layers; l++) {
        self->outputs[l + 1] = layer(self, "output of layer", l);
        if (p->keep == KEEP_LAST) drop(self, l);
    }
    if (p->keep == KEEP_LAST) {
        drop(self, p->layers);
        return;
    }
    run_phase(self->run, PHASE_BACKWARD);
    void *gradient = take(self, p->bytes, MEM_ACTIVATION, "gradient of layer", p->layers);
    for (int64_t l = p->layers; l-- > 0;) {
        void *next = layer(self, "gradient of layer", l);
        device_free(self->device, gradient);
        gradient = next;
        drop(self, l + 1);
    }
    device_free(self->device, gradient);
    drop(self, 0);
}

static void report(void *s, struct values *values) {
    const struct lifetimes_self *self = s;
    values_set(values, "formula_peak", (double)peak_of(&self->params));
    values_set(values, "formula_sum", (double)sum_of(&self->params));
}

/* What an execution that ran out of memory left is freed too. */
static void dispose(void *s) {
    struct lifetimes_self *self = s;
    for (int64_t l = 0; self->outputs && l <= self->params.layers; l++) drop(self, l);
    free(self->outputs);
}

const struct workload workload_lifetimes = {
    .name = "lifetimes",
    .brief = "layers that allocate and free as they go: the peak is no sum",
    .help =
        "Question: what is alive at the peak, and how much of all that was ever allocated is that? "
        "(seed E61)\n\n"
        "One execution: each of L layers takes its scratch, puts out its values, frees the scratch. "
        "keep = last frees what a layer has read; keep = all keeps it for a backward pass, which "
        "has a gradient beside it and frees layer by layer.\n\n"
        "Nothing is computed: allocations are real, tracked and named, so that the file's table "
        "`memory` is their timeline (`bench plot --kind memory`).\n\n"
        "Formulas: peak 2 a + s, or (L + 3) a + s at the first step back; sum of all allocations "
        "a + L (a + s), or twice that.\n",
    .flags = WORK_ONCE | WORK_ALLOCATES,
    .params = params,
    .params_size = sizeof(struct lifetimes_params),
    .self_size = sizeof(struct lifetimes_self),
    .metrics = metrics,
    .phases = phases,
    .plan = plan,
    .prepare = prepare,
    .execute = execute,
    .report = report,
    .dispose = dispose,
};
