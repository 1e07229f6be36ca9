/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `ranges`: a generation with and without somebody who listens to its named ranges. */
#include "base/range.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "workloads/common/run.h"
#include "workloads/model/model.h"

struct ranges_params {
    int64_t prompt, tokens;
    int listen;
};
struct ranges_self {
    struct run *run;
    struct ranges_params params;
    int64_t layers;
    struct arena *arena;
    void *inner, *inner_params; /* of `generate` */
    bool activated, own;        /* listening began here; the recorder is ours */
    int64_t kept, deepest;      /* ranges of a recorded pass; levels */
    double by_ranges, by_marks; /* ns in phases, of that pass */
    double in_steps;            /* ns in forward passes */
};

extern const struct workload workload_generate;
static const struct workload *const inner = &workload_generate;

enum { LISTEN_NO, LISTEN_NAMES, LISTEN_RECORDS };
enum { RANGES_MOST = 400000, ROOM_BESIDE = 64 }; /* of one pass that are kept */
static const char *const listen_words[] = {"no", "names", "records", NULL};
#define PARAM(field)                                                                               \
    .offset = offsetof(struct ranges_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "prompt",
     .type = OPT_INT,
     PARAM(prompt),
     .def = "32",
     .min = 1,
     .max = 1 << 14,
     .unit = "tokens",
     .help = "Tokens of the prompt."},
    {.key = "tokens",
     .type = OPT_INT,
     PARAM(tokens),
     .def = "16",
     .min = 1,
     .max = 1 << 12,
     .unit = "tokens",
     .help = "Tokens that are generated (n)."},
    {.key = "listen",
     .type = OPT_WORD,
     PARAM(listen),
     .def = "no",
     .words = listen_words,
     .unit = "",
     .help =
         "no: ranges of phases and steps go nowhere; names: parts of layers open ranges too, as "
         "under a tool; records: every range is kept with its two times."},
    {0},
};
static const struct phase phases[] = {{"prefill", "prompt token"}, {"decode", "token"}, {0}};
static const struct mark marks[] = {{"token", 1}, {0}};
static const struct metric metrics[] = {
    {"ranges_kept", "range",
     "Ranges of one execution that a recorded pass kept: phases, steps, parts of layers.",
     BETTER_NONE, true},
    {"ranges_formula", "range",
     "2 + n (2 n_layers + 4): two phases; n forward passes, each with an embedding, two parts a "
     "layer and a head; n selections. Where steps are replayed as graphs there are fewer.",
     BETTER_NONE, true},
    {"range_levels", "level", "Deepest nesting of that pass, counted from its phases.", BETTER_NONE,
     true},
    {"phases_by_ranges", "ms", "Time in phases by their ranges, in a recorded pass.", BETTER_NONE,
     false},
    {"phases_by_marks", "ms",
     "Time in phases by the marks that the harness takes phase times from.", BETTER_NONE, false},
    {"steps_share", "", "Time in forward passes / time in phases, both by ranges.", BETTER_NONE,
     false},
    {0},
};

static void set(void *values, const char *key, int64_t value) {
    *(int64_t *)((char *)values + option_find(inner->params, key)->offset) = value;
}

/* Keys of `generate`, in the arena. */
static void *inner_params(const struct ranges_params *p, struct arena *arena) {
    void *values = arena_alloc(arena, inner->params_size);
    option_defaults(inner->params, values, arena);
    set(values, "prompt", p->prompt);
    set(values, "tokens", p->tokens);
    return values;
}

static int64_t ranges_of(const struct ranges_params *p, int64_t layers) {
    return 2 + p->tokens * (2 * layers + 4);
}

static size_t room_for(const struct ranges_params *p, int64_t layers) {
    return (size_t)ranges_of(p, layers) + ROOM_BESIDE;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct ranges_params *p = params_;
    struct arena *arena = arena_create();
    inner->check(inner_params(p, arena), config, problems);
    arena_close(&arena);
    const int64_t n = ranges_of(p, config->shape.n_layers);
    if (n > RANGES_MOST)
        problem(problems, "workload.tokens", "shape.n_layers",
                "%" PRId64 " ranges are more than the %d that are kept", n, RANGES_MOST);
}

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    struct arena *arena = arena_create();
    inner->plan(inner_params(params_, arena), config, plan);
    plan->host_bytes +=
        (int64_t)(room_for(params_, config->shape.n_layers) * sizeof(struct range_event));
    arena_close(&arena);
}

static int prepare(void *s, const void *params_, const struct model_config *config, struct run *run,
                   struct err *err) {
    struct ranges_self *self = s;
    self->run = run;
    self->params = *(const struct ranges_params *)params_;
    self->layers = config->shape.n_layers;
    self->arena = arena_create();
    self->inner = must_alloc(inner->self_size);
    self->inner_params = inner_params(&self->params, self->arena);
    const int code = inner->prepare(self->inner, self->inner_params, config, run, err);
    if (self->params.listen == LISTEN_NAMES && !range_active()) {
        range_activate(true);
        self->activated = true;
    }
    if (self->params.listen == LISTEN_RECORDS && !range_recording()) {
        range_record(room_for(&self->params, self->layers));
        self->own = true;
    }
    return code;
}

static void reset(void *s) {
    struct ranges_self *self = s;
    inner->reset(self->inner);
    if (self->own) range_again();
}

static void execute(void *s) { inner->execute(((struct ranges_self *)s)->inner); }

static bool worked(const void *s, struct work *work) {
    return inner->worked(((const struct ranges_self *)s)->inner, work);
}

/* ---- a recorded pass */

/* Every range lies within the one that was open around it: events come in order of closing. NULL,
 * or what is wrong. */
static const char *misnested(const struct range_event *events, int64_t n, int64_t *deepest) {
    enum { DEEPEST = 64 };
    int64_t around[DEEPEST];
    for (int d = 0; d < DEEPEST; d++) around[d] = -1;
    *deepest = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        const struct range_event *e = &events[i];
        if (e->depth < 0 || e->depth >= DEEPEST) return "a range is deeper than 64";
        around[e->depth] = i;
        if (e->depth + 1 > *deepest) *deepest = e->depth + 1;
        if (e->begin_ns > e->end_ns) return "a range ends before it begins";
        if (!e->depth) continue;
        /* Of those one further out the next that closes. */
        const int64_t parent = around[e->depth - 1];
        if (parent < 0 || events[parent].begin_ns > e->begin_ns ||
            events[parent].end_ns < e->end_ns)
            return "a range leaves the one around it";
    }
    return NULL;
}

static void add_times(struct ranges_self *self, const struct range_event *events, int64_t n,
                      int64_t end_ns) {
    const struct run *run = self->run;
    int64_t begin = -1;
    self->by_ranges = self->in_steps = self->by_marks = 0;
    for (int64_t i = 0; i < n; i++) {
        const double ns = (double)(events[i].end_ns - events[i].begin_ns);
        if (events[i].category == RANGE_PHASE) self->by_ranges += ns;
        if (events[i].category == RANGE_STEP) self->in_steps += ns;
    }
    for (int64_t i = 0; i < run->n_marks && begin < 0; i++)
        if (run->marks[i].mark < 0) begin = run->marks[i].t_ns; /* the first phase */
    if (begin >= 0) self->by_marks = (double)(end_ns - begin);
}

/* One more execution, recorded. */
static int record(struct ranges_self *self, const char **wrong, struct err *err) {
    struct run *run = self->run;
    struct device *device = run_device(run);
    const struct range_event *events;
    size_t lost;
    int unbalanced;
    range_record(room_for(&self->params, self->layers));
    inner->reset(self->inner);
    int code = device->kind->sync(device, err);
    run_begin(run, device_now(device));
    if (!code) inner->execute(self->inner);
    if (!code) code = device->kind->sync(device, err);
    const int64_t end_ns = run_now(run);
    run_end(run);
    const int64_t n = (int64_t)range_recorded(&events, &lost, &unbalanced);
    if (!code && run->failed) code = err_set(err, ERR_DEVICE, "%s", run->failure);
    if (!code) {
        *wrong = lost ? "ranges were lost" : unbalanced ? "a range was not closed" : NULL;
        if (!*wrong) *wrong = misnested(events, n, &self->deepest);
        self->kept = n;
        add_times(self, events, n, end_ns);
    }
    range_record(self->own ? room_for(&self->params, self->layers) : 0);
    return code;
}

static int witness(void *s, struct witness *w, struct err *err) {
    struct ranges_self *self = s;
    const char *wrong = NULL;
    int code = inner->witness(self->inner, w, err);
    if (code || (range_recording() && !self->own)) return code; /* --profile keeps them already */
    code = record(self, &wrong, err);
    if (!code && wrong) {
        w->holds = false;
        snprintf(w->note, sizeof w->note, "ranges: %s", wrong);
    }
    return code;
}

static void report(void *s, struct values *values) {
    const struct ranges_self *self = s;
    values_set(values, "ranges_formula", (double)ranges_of(&self->params, self->layers));
    /* Ranges are by the host's clock, and on a virtual device marks are not. */
    const bool kept = self->kept > 0,
               both = kept && !(run_device(self->run)->kind->has & DEV_VIRTUAL_CLOCK);
    values_set(values, "ranges_kept", kept ? (double)self->kept : (double)NAN);
    values_set(values, "range_levels", kept ? (double)self->deepest : (double)NAN);
    values_set(values, "steps_share",
               self->by_ranges > 0 ? self->in_steps / self->by_ranges : (double)NAN);
    values_set(values, "phases_by_ranges", both ? self->by_ranges / 1e6 : (double)NAN);
    values_set(values, "phases_by_marks", both ? self->by_marks / 1e6 : (double)NAN);
}

static void dispose(void *s) {
    struct ranges_self *self = s;
    if (self->own) range_record(0);
    if (self->activated) range_activate(false);
    if (self->inner) inner->dispose(self->inner);
    free(self->inner);
    if (self->arena) arena_close(&self->arena);
}

const struct workload workload_ranges = {
    .name = "ranges",
    .brief = "a generation whose named ranges are heard by nobody, named, or recorded",
    .help =
        "Question: what does looking cost, and do ranges nest, close and agree with the phases? "
        "(seed E60, rules R09-R11)\n\n"
        "One execution is one of `generate`: a prompt and `tokens` tokens with the cache. With "
        "nobody listening a pair of calls costs a few ns, and names of parts are not even made; a "
        "tool or the recorder makes every part of every layer a range.\n\n"
        "Inside the timing: what is inside that of `generate`.\n\n"
        "Phases: prefill, decode. Mark: token.\n\n"
        "Witness: as of `generate`; then one more execution is recorded, and the row is wrong if a "
        "range stays open, is closed twice, or leaves the one around it. phases_by_ranges and "
        "phases_by_marks are that pass by both clocks.\n\n"
        "A profiled run (`--profile`) is never a measurement: files are marked, `compare` and `gate` "
        "refuse them.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct ranges_params),
    .self_size = sizeof(struct ranges_self),
    .metrics = metrics,
    .phases = phases,
    .marks = marks,
    .check = check,
    .plan = plan,
    .prepare = prepare,
    .reset = reset,
    .execute = execute,
    .worked = worked,
    .witness = witness,
    .report = report,
    .dispose = dispose,
};
