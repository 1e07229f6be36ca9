/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on ref: layouts, chunks and batches give the same bits; memory is what the ledger says.
 */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "base/range.h"
#include "workloads/common/tokens.h"

enum { SEQS = 3, TOKENS = 23, STEPS = 6 };

static struct arena *arena;
static struct device *ref;

struct shot { /* what a run of SEQS sequences yields */
    int32_t tokens[STEPS][SEQS];
    float logits[SEQS][288];
    char *kv[SEQS];
    size_t kv_bytes;
};
struct way { /* how it is run */
    const char *layout, *block, *window, *kv_type, *type;
    int32_t chunk;
    bool alone,
        restore; /* each sequence in a session of its own; KV goes through the host halfway */
};

static struct model_config configure(const struct way *way) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", way->type ? way->type : "f32", arena);
    drive_model(&config, "kv_type", way->kv_type ? way->kv_type : "f32", arena);
    drive_model(&config, "layout", way->layout ? way->layout : "contiguous", arena);
    drive_model(&config, "block", way->block ? way->block : "4", arena);
    drive_model(&config, "window", way->window ? way->window : "0", arena);
    return config;
}

static void ok(int code, const struct err *err) {
    if (code) fail_msg("%s", err->text);
}

/* Runs sequences first ... first + n - 1 in one session. */
static void run_some(struct model *model, const struct model_config *config, const struct way *way,
                     int first, int n, struct shot *shot) {
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    int32_t chunk = way->chunk ? way->chunk : TOKENS, steps = (TOKENS + chunk - 1) / chunk,
            tokens[SEQS][TOKENS];
    struct session_spec spec = {.cache = {.n_seq = n, .capacity = TOKENS + STEPS, .most_q = chunk},
                                .most_rows = n * chunk,
                                .most_out = n};
    int64_t planned[N_CLASSES] = {0}, peak[N_CLASSES], before = tracker_live(ref->tracker, -1),
            sum = 0;
    tracker_reset(ref->tracker);
    ok(session_create(&s, model, config, &spec, &err), &err);
    ok(inputs_create(&inputs, s, steps, n * TOKENS, n, &err), &err);
    const struct token_stream stream = {.seed = 9, .vocab = config->shape.vocab};
    for (int q = 0; q < n; q++) tokens_fill(&stream, first + q, 0, TOKENS, tokens[q]);
    ok(inputs_prompt(inputs, tokens[0], TOKENS, 0, TOKENS, chunk, false, &err), &err);
    inputs_upload(inputs);
    assert_int_equal(inputs_steps(inputs), steps);
    for (int i = 0; i < steps; i++) ok(session_run(s, inputs, i, &err), &err);
    const struct step *from = inputs_step(inputs, steps - 1);
    struct step *step = inputs_step(inputs, steps - 1);
    for (int i = 0; i < STEPS; i++) {
        if (i) {
            session_advance(s, from);
            if (way->restore && i == 2)
                for (int q = 0; q < n; q++) { /* out, wiped, and back in */
                    size_t bytes = cache_saved_bytes(s->cache, s->len[q]);
                    char *kv = must_alloc(bytes), *nothing = must_alloc(bytes);
                    int32_t len = s->len[q];
                    cache_save(s->cache, q, len, kv);
                    ok(cache_load(s->cache, q, len, nothing, &err), &err);
                    session_set_length(s, q, 0);
                    ok(cache_load(s->cache, q, len, kv, &err), &err);
                    session_set_length(s, q, len);
                    free(kv);
                    free(nothing);
                }
            ok(session_decode(s, &err), &err);
            step = &s->decode;
        }
        session_select(s, step);
        session_next(s, step, shot->tokens[i] + first);
        from = step;
    }
    struct tensor logits = session_logits(s, step);
    for (int q = 0; q < n; q++)
        ref->kind->download(ref, shot->logits[first + q], (float *)logits.data + q * logits.stride,
                            sizeof shot->logits[0]);
    for (int q = 0; q < n; q++) {
        assert_int_equal(s->len[q], TOKENS + STEPS - 1);
        shot->kv_bytes = cache_saved_bytes(s->cache, s->len[q]);
        shot->kv[first + q] = arena_alloc(arena, shot->kv_bytes);
        cache_save(s->cache, q, s->len[q], shot->kv[first + q]);
    }
    ok(ref->kind->sync(ref, &err), &err);
    session_bytes(config, &spec, planned);
    planned[MEM_STATE] += inputs_bytes(n, steps, n * TOKENS, n);
    for (int c = 0; c < N_CLASSES; c++) sum += planned[c];
    assert_int_equal(tracker_peak(ref->tracker, peak, NULL, NULL) - before, sum);
    assert_int_equal(peak[MEM_KV], planned[MEM_KV]);
    assert_int_equal(peak[MEM_ACTIVATION], planned[MEM_ACTIVATION]);
    assert_int_equal(peak[MEM_LOGITS], planned[MEM_LOGITS]);
    assert_int_equal(peak[MEM_STATE], planned[MEM_STATE]);
    inputs_close(&inputs);
    session_close(&s);
    assert_int_equal(tracker_live(ref->tracker, -1), before);
}

static struct shot shoot(const struct way *way) {
    struct shot shot = {0};
    struct model_config config = configure(way);
    struct model *model = NULL;
    struct err err = {0};
    int64_t scales, before = tracker_live(ref->tracker, -1);
    ok(model_create(&model, ref, &config, &err), &err);
    /* The weights take what the formula says, to the byte. */
    assert_int_equal(tracker_live(ref->tracker, MEM_WEIGHT), model_weight_bytes(&config, &scales));
    assert_int_equal(tracker_live(ref->tracker, MEM_SCALE), scales);
    if (way->alone)
        for (int q = 0; q < SEQS; q++) run_some(model, &config, way, q, 1, &shot);
    else
        run_some(model, &config, way, 0, SEQS, &shot);
    model_close(&model);
    assert_int_equal(tracker_live(ref->tracker, -1), before);
    return shot;
}

static void expect_same(const struct shot *a, const struct shot *b) {
    assert_memory_equal(a->tokens, b->tokens, sizeof a->tokens);
    assert_memory_equal(a->logits, b->logits, sizeof a->logits);
    assert_int_equal(a->kv_bytes, b->kv_bytes);
    for (int q = 0; q < SEQS; q++) assert_memory_equal(a->kv[q], b->kv[q], a->kv_bytes);
}

static void sequences_differ(void **state) {
    (void)state;
    struct shot a = shoot(&(struct way){0});
    int32_t all[STEPS * SEQS];
    memcpy(all, a.tokens, sizeof all);
    assert_true(tokens_entropy(all, STEPS * SEQS) > 2.5);
    assert_memory_not_equal(a.logits[0], a.logits[1], sizeof a.logits[0]);
}

static void batch_is_alone(void **state) {
    (void)state;
    static const char *const types[] = {"f32", "bf16", "int8", "int4", "nf4"};
    for (int i = 0; i < 5; i++) {
        struct shot a = shoot(&(struct way){.type = types[i]}),
                    b = shoot(&(struct way){.type = types[i], .alone = true});
        expect_same(&a, &b);
    }
}

static void chunks_are_one_go(void **state) {
    (void)state;
    static const char *const types[] = {"f32", "f16", "bf16", "int8"};
    for (int i = 0; i < 4; i++) {
        struct shot a = shoot(&(struct way){.kv_type = types[i]});
        for (int32_t chunk = 1; chunk < TOKENS; chunk += 5) {
            struct shot b = shoot(&(struct way){.kv_type = types[i], .chunk = chunk});
            expect_same(&a, &b);
        }
    }
}

static void paged_is_contiguous(void **state) {
    (void)state;
    static const char *const types[] = {"f32", "f16", "bf16", "int8"}, *const blocks[] = {
                                                                           "1", "4", "7", "64"};
    for (int i = 0; i < 4; i++) {
        struct shot a = shoot(&(struct way){.kv_type = types[i]});
        for (int k = 0; k < 4; k++) {
            struct shot b = shoot(&(struct way){
                .kv_type = types[i], .layout = "paged", .block = blocks[k], .chunk = 5});
            expect_same(&a, &b);
        }
    }
}

static void content_survives_the_host(void **state) {
    (void)state;
    static const char *const layouts[] = {"contiguous", "paged"}, *const types[] = {"f32", "int8"};
    for (int i = 0; i < 4; i++) {
        struct shot a = shoot(&(struct way){.kv_type = types[i / 2]});
        struct shot b = shoot(
            &(struct way){.kv_type = types[i / 2], .layout = layouts[i % 2], .restore = true});
        expect_same(&a, &b);
        struct shot c = shoot(&(struct way){.kv_type = types[i / 2], .window = "6"});
        struct shot d = shoot(&(struct way){.kv_type = types[i / 2],
                                            .window = "6",
                                            .layout = layouts[i % 2],
                                            .restore = true,
                                            .chunk = 4});
        expect_same(&c, &d);
    }
}

static void windows_agree(void **state) {
    (void)state;
    struct shot full = shoot(&(struct way){0}), wide = shoot(&(struct way){.window = "64"});
    expect_same(&full, &wide); /* a window that covers all changes nothing */
    struct shot ring = shoot(&(struct way){.window = "5", .chunk = 3}),
                mask = shoot(&(struct way){.window = "5", .layout = "paged"});
    expect_same(&ring, &mask);
    assert_memory_not_equal(ring.logits, full.logits, sizeof ring.logits);
}

/* E18: past the window a ring no longer grows. */
static void ring_holds_min(void **state) {
    (void)state;
    struct model_config config = configure(&(struct way){.window = "8"});
    for (int32_t length = 1; length < 40; length++) {
        struct cache_spec spec = {.n_seq = 2, .capacity = length, .most_q = 1};
        int64_t bytes[N_CLASSES] = {0};
        assert_int_equal(cache_slots(&config, &spec), length < 8 ? length : 8);
        cache_bytes(&config, &spec, bytes);
        assert_int_equal(bytes[MEM_KV],
                         2 * (length < 8 ? length : 8) * model_kv_bytes_per_token(&config, NULL));
    }
}

static void blocks_come_back(void **state) {
    (void)state;
    struct model_config config = configure(&(struct way){.layout = "paged", .block = "4"});
    struct cache_spec spec = {.n_seq = 2, .capacity = 10, .most_q = 1};
    struct cache *cache = NULL;
    struct err err = {0};
    ok(cache_create(&cache, ref, &config, &spec, &err), &err);
    assert_int_equal(cache->units, 6);
    ok(cache_reserve(cache, 0, 0, 9, &err), &err);
    ok(cache_reserve(cache, 1, 0, 4, &err), &err);
    assert_int_equal(cache->blocks->n_spare, 2);
    cache_trim(cache, 0, 4);
    assert_int_equal(cache->blocks->n_spare, 4);
    ok(cache_reserve(cache, 1, 4, 10, &err), &err);
    bool seen[6] = {false}; /* no block twice */
    for (int i = 0; i < 1 + 3; i++) {
        const struct blocks *b = cache->blocks;
        int32_t unit = i ? b->table[b->most + i - 1] : b->table[0];
        assert_false(seen[unit]);
        seen[unit] = true;
    }
    assert_int_equal(cache_reserve(cache, 1, 10, 11, &err), ERR_MEMORY);
    cache_close(&cache);
}

/* Sequences with different numbers of rows, one of them none, in one step. */
static void mixed_step(void **state) {
    (void)state;
    struct model_config config = configure(&(struct way){0});
    struct model *model = NULL;
    struct session *s = NULL, *alone = NULL;
    struct inputs *inputs = NULL, *one = NULL;
    struct err err = {0};
    int32_t tokens[SEQS][TOKENS];
    const struct token_stream stream = {.seed = 9, .vocab = config.shape.vocab};
    for (int q = 0; q < SEQS; q++) tokens_fill(&stream, q, 0, TOKENS, tokens[q]);
    ok(model_create(&model, ref, &config, &err), &err);
    struct session_spec spec = {
        .cache = {.n_seq = SEQS, .capacity = TOKENS, .most_q = 8}, .most_rows = 12, .most_out = 12};
    ok(session_create(&s, model, &config, &spec, &err), &err);
    ok(inputs_create(&inputs, s, 2, 20, 12, &err), &err);
    /* Sequence 0: 8, then 1. Sequence 1: none. Sequence 2: 3, then 4 with logits of all. */
    struct span first[] = {{0, 0, 8, tokens[0], 0}, {2, 0, 3, tokens[2], 1}};
    struct span second[] = {{0, 8, 1, tokens[0] + 8, 1}, {2, 3, 4, tokens[2] + 3, 2}};
    ok(inputs_add(inputs, first, 2, &err), &err);
    ok(inputs_add(inputs, second, 2, &err), &err);
    assert_int_equal(inputs_add(inputs, second, 2, &err), ERR_INTERNAL);
    inputs_upload(inputs);
    ok(session_run(s, inputs, 0, &err), &err);
    ok(session_run(s, inputs, 1, &err), &err);
    assert_int_equal(s->len[0], 9);
    assert_int_equal(s->len[1], 0);
    assert_int_equal(s->len[2], 7);
    struct tensor logits = session_logits(s, inputs_step(inputs, 1));
    assert_int_equal(logits.rows, 5);
    spec.cache.n_seq = 1;
    ok(session_create(&alone, model, &config, &spec, &err), &err);
    ok(inputs_create(&one, alone, 1, 8, 8, &err), &err);
    ok(inputs_prompt(one, tokens[2], TOKENS, 0, 7, 0, true, &err), &err);
    inputs_upload(one);
    ok(session_run(alone, one, 0, &err), &err);
    struct tensor expected = session_logits(alone, inputs_step(one, 0));
    assert_int_equal(expected.rows, 7);
    assert_memory_equal((float *)logits.data + logits.stride,
                        (float *)expected.data + 3 * expected.stride, sizeof(float) * 4 * 288);
    inputs_close(&one);
    inputs_close(&inputs);
    session_close(&alone);
    session_close(&s);
    model_close(&model);
}

static void ranges_nest(void **state) {
    (void)state;
    const struct range_event *events;
    size_t lost, n;
    int unbalanced, parts = 0, steps = 0;
    range_record(4096);
    shoot(&(struct way){0});
    n = range_recorded(&events, &lost, &unbalanced);
    assert_int_equal(lost, 0);
    assert_int_equal(unbalanced, 0);
    for (size_t i = 0; i < n; i++) {
        parts += events[i].category == RANGE_LAYER &&
                 (!strcmp(events[i].name, "mlp") || !strcmp(events[i].name, "attention"));
        steps += events[i].category == RANGE_STEP;
    }
    assert_int_equal(steps, STEPS);
    assert_int_equal(parts, STEPS * 2 * 2);
}

static bool refuses_attention(struct device *device, enum op op, const struct op_case *op_case,
                              const char **reason) {
    if (op != OP_ATTENTION) return ref->kind->supports(device, op, op_case, reason);
    *reason = "made up";
    return false;
}

static void unsupported_says_why(void **state) {
    (void)state;
    struct device_kind kind = *ref->kind;
    struct device patched = *ref; /* ref itself still answers for the other ops */
    struct model_config config = configure(&(struct way){0});
    struct model *model = NULL;
    struct err err = {0};
    kind.supports = refuses_attention;
    patched.kind = &kind;
    assert_int_equal(model_create(&model, &patched, &config, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "attention"));
    assert_non_null(strstr(err.text, "made up"));
    assert_null(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_differ),
                                       cmocka_unit_test(batch_is_alone),
                                       cmocka_unit_test(chunks_are_one_go),
                                       cmocka_unit_test(paged_is_contiguous),
                                       cmocka_unit_test(content_survives_the_host),
                                       cmocka_unit_test(windows_agree),
                                       cmocka_unit_test(ring_holds_min),
                                       cmocka_unit_test(blocks_come_back),
                                       cmocka_unit_test(mixed_step),
                                       cmocka_unit_test(ranges_nest),
                                       cmocka_unit_test(unsupported_says_why)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
