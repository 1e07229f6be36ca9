/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's engine over the emulated runtime: decode steps as graphs give the tokens of
   steps without, and of ref; a step neither allocates nor waits; launches a layer; memory is given
   back. */
#include "base/range.h"
#include "tests/unit/workloads/drive.h"

/* Of tests/cuda/simt/runtime.h, where the build has it. */
struct simt_counts;
extern const struct simt_counts *simt_counts_get(void) __attribute__((weak));
#include "tests/cuda/simt/runtime.h"

enum { PROMPT = 5, STEPS = 12, N_SEQ = 2 };

static struct device *open_with(const struct device_kind *kind, const char *graph,
                                struct arena *arena) {
    struct device *device = NULL;
    struct err err = {0};
    void *params = arena_alloc(arena, kind->params_size + 1);
    option_defaults(kind->params, params, arena);
    if (graph) drive_set(kind->params, params, "graph", graph, arena);
    if (device_open(&device, kind, params, &err)) fail_msg("%s", err.text);
    return device;
}

static double told_launches, told_reserved;
static void take_launches(void *ctx, const char *name, double value) {
    (void)ctx;
    if (!strcmp(name, "launches")) told_launches = value;
    if (!strcmp(name, "device_reserved_bytes")) told_reserved = value;
}

struct outcome {
    int32_t token[STEPS][N_SEQ];
    double launches[STEPS];
    int64_t allocations[STEPS], waits[STEPS];
};

/* How many ranges of the category `step` were closed since range_record. */
static int steps_named(void) {
    const struct range_event *events;
    size_t lost = 0;
    int unbalanced = 0, n = 0;
    const size_t n_events = range_recorded(&events, &lost, &unbalanced);
    assert_true(lost == 0 && unbalanced == 0);
    for (size_t i = 0; i < n_events; i++) n += events[i].category == RANGE_STEP;
    return n;
}

/* Greedy decoding of N_SEQ prompts by whole steps. */
static void decode(struct device *device, const char *type, const char *activation,
                   const char *layout, struct outcome *out, struct arena *arena) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", type, arena);
    drive_model(&config, "kv_type", strcmp(type, "f32") ? "bf16" : "f32", arena);
    drive_model(&config, "activation", activation, arena);
    drive_model(&config, "layout", layout, arena);
    drive_model(&config, "block", "4", arena);
    config.activation = model_activation(&config.params, device->kind);
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    struct session_spec spec = {
        .cache = {.n_seq = N_SEQ, .capacity = PROMPT + STEPS + 1, .most_q = PROMPT},
        .most_rows = N_SEQ * PROMPT,
        .most_out = N_SEQ};
    int32_t tokens[N_SEQ * PROMPT];
    for (int i = 0; i < N_SEQ * PROMPT; i++) tokens[i] = (i * 37 + 11) % (int)config.shape.vocab;
    if (model_create(&model, device, &config, &err)) fail_msg("%s", err.text);
    if (session_create(&s, model, &config, &spec, &err)) fail_msg("%s", err.text);
    assert_int_equal(inputs_create(&inputs, s, 1, N_SEQ * PROMPT, N_SEQ, &err), 0);
    assert_int_equal(inputs_prompt(inputs, tokens, PROMPT, 0, PROMPT, 0, false, &err), 0);
    inputs_upload(inputs);
    struct step *prompt = inputs_step(inputs, 0);
    assert_int_equal(session_run(s, inputs, 0, &err), 0);
    session_select(s, prompt);
    session_advance(s, prompt);
    if (device->kind->sync(device, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < STEPS; i++) {
        struct simt_counts before = {0}, after = {0};
        if (device->kind->report) device->kind->report(device, 0, NULL, NULL);
        if (simt_counts_get) before = *simt_counts_get();
        range_record(256);
        assert_int_equal(session_step(s, &err), 0);
        assert_int_equal(steps_named(), 1); /* run, recorded or replayed */
        if (simt_counts_get) after = *simt_counts_get();
        if (device->kind->report) device->kind->report(device, 1, take_launches, NULL);
        out->launches[i] = told_launches;
        out->allocations[i] = after.allocations - before.allocations;
        out->waits[i] = after.synchronisations - before.synchronisations;
        session_next(s, &s->decode, out->token[i]);
    }
    range_record(0);
    if (device->kind->sync(device, &err)) fail_msg("%s", err.text);
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
    assert_int_equal(tracker_live(device->tracker, -1),
                     tracker_live(device->tracker, MEM_WORKSPACE));
}

static const struct device_kind *emulated;
static struct arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_create();
    emulated = device_kind_find("cuda-emu");
    if (!emulated) print_message("SKIPPED: this build has no cuda-emu (-DBENCH_CUDA=emu)\n");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

static void same_tokens(const struct outcome *a, const struct outcome *b) {
    for (int i = 0; i < STEPS; i++)
        for (int s = 0; s < N_SEQ; s++) assert_int_equal(a->token[i][s], b->token[i][s]);
}

/* ref, steps as they are, recorded steps: one text. */
static void compare(const char *type, const char *activation, const char *layout) {
    static struct outcome plain, graphs, truth;
    struct device *ref = open_with(device_kind_find("ref"), NULL, arena);
    decode(ref, type, activation, layout, &truth, arena);
    device_close(&ref);
    struct device *device = open_with(emulated, "false", arena);
    decode(device, type, activation, layout, &plain, arena);
    device_close(&device);
    device = open_with(emulated, "true", arena);
    decode(device, type, activation, layout, &graphs, arena);
    device_close(&device);
    same_tokens(&plain, &graphs);
    same_tokens(&truth, &graphs);
    struct model_config config = drive_config("tiny", arena);
    for (int i = 0; i < STEPS; i++) {
        /* embed, the head's four, selection's two, advance; nine a layer with attention's two. */
        assert_true(plain.launches[i] <= (double)(9 * config.shape.n_layers) + 8);
        assert_true(plain.launches[i] >= (double)(8 * config.shape.n_layers));
        assert_true(graphs.launches[i] == plain.launches[i]);
        assert_int_equal(plain.allocations[i] + graphs.allocations[i], 0);
        assert_int_equal(plain.waits[i] + graphs.waits[i], 0);
    }
}

static void full_precision(void **state) {
    (void)state;
    if (!emulated) skip();
    compare("f32", "f32", "contiguous");
}
static void halves_paged(void **state) {
    (void)state;
    if (!emulated) skip();
    compare("bf16", "bf16", "paged");
}

/* Every allocation of the runtime's goes back, events and graphs too. */
static void gives_all_back(void **state) {
    (void)state;
    if (!emulated || !simt_counts_get) skip();
    const struct simt_counts before = *simt_counts_get();
    static struct outcome outcome;
    struct device *device = open_with(emulated, "true", arena);
    decode(device, "bf16", "bf16", "contiguous", &outcome, arena);
    device_close(&device);
    const struct simt_counts after = *simt_counts_get();
    assert_true(after.graph_launches > before.graph_launches);
    assert_int_equal(after.live_allocations, before.live_allocations);
    assert_int_equal(after.host_allocations - after.host_frees,
                     before.host_allocations - before.host_frees);
    assert_int_equal(after.graphs_live, before.graphs_live);
    assert_int_equal(after.events_live, before.events_live);
    assert_int_equal(after.streams_live, before.streams_live);
    assert_int_equal(after.forbidden, before.forbidden);
}

/* More than the pinned stages hold: one must be waited for, which is no failure of what comes next.
 */
static void long_uploads_are_no_failures(void **state) {
    (void)state;
    if (!emulated) skip();
    enum { BYTES = 20 << 20, PAGE = 4096 };
    struct device *device = open_with(emulated, NULL, arena);
    struct err err = {0};
    char *host = calloc(1, BYTES), *to = device_alloc(device, BYTES, MEM_OTHER, "to"), back[PAGE];
    assert_non_null(host);
    memset(host + BYTES - PAGE, 7, PAGE);
    device->kind->upload(device, to, host, BYTES);
    device->ops->copy(device, to, to + BYTES - PAGE, PAGE);
    if (device->kind->sync(device, &err)) fail_msg("%s", err.text);
    device->kind->download(device, back, to, PAGE);
    assert_memory_equal(back, host + BYTES - PAGE, PAGE);
    device_free(device, to);
    free(host);
    device_close(&device);
}

/* What is reserved is what a plan's own point holds, not what came before it. */
static void reserved_is_of_the_point(void **state) {
    (void)state;
    if (!emulated) skip();
    const struct step_bounds bounds = {.n_seq = 1,
                                       .n_row = 1,
                                       .n_out = 1,
                                       .most_q = 1,
                                       .most_kv = 16,
                                       .n_q = 1,
                                       .n_kv = 1,
                                       .d_h = 16,
                                       .d_model = 16,
                                       .d_ff = 16,
                                       .vocab = 16};
    struct device *device = open_with(emulated, NULL, arena);
    struct err err = {0};
    device_free(device, device_alloc(device, 64 << 20, MEM_OTHER, "before"));
    if (device->kind->plan(device, &bounds, &err)) fail_msg("%s", err.text);
    device->kind->report(device, 0, NULL, NULL);
    device->kind->report(device, 1, take_launches, NULL);
    assert_true(told_reserved > 0 && told_reserved < 64 << 20);
    device_close(&device);
}

static void facts_say_what_runs(void **state) {
    (void)state;
    if (!emulated) skip();
    for (int cc = 80; cc <= 90; cc += 10) {
        struct device *device = NULL;
        struct facts facts = {0};
        struct err err = {0};
        void *params = arena_alloc(arena, emulated->params_size + 1);
        option_defaults(emulated->params, params, arena);
        drive_set(emulated->params, params, "pdl", "true", arena);
        setenv("SIMT_CC", cc == 80 ? "80" : "90", 1);
        if (device_open(&device, emulated, params, &err)) fail_msg("%s", err.text);
        emulated->describe(device, &facts);
        assert_string_equal(facts_get(&facts, "device.pdl", ""), cc == 80 ? "false" : "true");
        facts_free(&facts);
        device_close(&device);
    }
    unsetenv("SIMT_CC");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_precision),           cmocka_unit_test(halves_paged),
        cmocka_unit_test(gives_all_back),           cmocka_unit_test(long_uploads_are_no_failures),
        cmocka_unit_test(reserved_is_of_the_point), cmocka_unit_test(facts_say_what_runs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
