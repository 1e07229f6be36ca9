/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' exact values of caches, rooflines and generations, digit for digit, out of our own
   formulas and, where a cache is meant, out of the allocator. */
#include "tests/golden/seed_records.h"

static struct arena *arena;
static struct device *ref;

/* Elements of 1, 2 or 4 bytes. */
static const char *kv_type_of(double size) {
    return size == 4.0 ? "f32" : size == 2.0 ? "f16" : "int8";
}

/* By formula, checked against what the allocator gives for the same cache where that is small. */
static double cache_bytes_of(const struct model_config *config, int64_t batch, int64_t length) {
    int64_t scale_bytes, per_token = model_kv_bytes_per_token(config, &scale_bytes);
    int64_t bytes = batch * length * per_token;
    if (bytes > 32 << 20) return (double)bytes;
    struct cache_spec spec = {.n_seq = (int32_t)batch, .capacity = (int32_t)length, .most_q = 1};
    struct cache *cache = NULL;
    struct err err = {0};
    if (cache_create(&cache, ref, config, &spec, &err)) fail_msg("%s", err.text);
    int64_t live = tracker_live(ref->tracker, MEM_KV);
    assert_int_equal(tracker_live(ref->tracker, MEM_SCALE), batch * length * scale_bytes);
    cache_close(&cache);
    assert_int_equal(tracker_live(ref->tracker, -1), 0);
    assert_int_equal(live, bytes);
    return (double)live;
}

static struct model_config shape(const char *name, int64_t n_kv, const char *kv_type) {
    struct model_config config = drive_config(name, arena);
    if (n_kv) config.shape.n_kv = n_kv;
    drive_model(&config, "kv_type", kv_type, arena);
    return config;
}

/* The largest single allocation of a 295-token cache: one layer's K. */
static double one_tensor(const struct model_config *config) {
    struct cache_spec spec = {.n_seq = 1, .capacity = 295, .most_q = 1};
    struct cache *cache = NULL;
    struct err err = {0};
    double bytes = 0;
    int tensors = 0;
    size_t n;
    tracker_reset(ref->tracker);
    if (cache_create(&cache, ref, config, &spec, &err)) fail_msg("%s", err.text);
    const struct memory_event *log = tracker_log(ref->tracker, &n);
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(log[i].site, "layer 0 K")) bytes = (double)log[i].bytes;
        tensors += log[i].bytes > 0;
    }
    cache_close(&cache);
    assert_int_equal(tensors, 48);
    return bytes;
}

static void kv_09(const struct record *r, int n) {
    struct model_config config = shape("seed-0.5b", 0, "f16");
    switch (n) {
    case 1:
        assert_int_equal(config.shape.n_layers, whole(r, "layers"));
        assert_int_equal(config.shape.n_q, whole(r, "q_heads"));
        assert_int_equal(config.shape.n_kv, whole(r, "kv_heads"));
        assert_int_equal(config.shape.d_h, whole(r, "head_dim"));
        expect(r, cache_bytes_of(&config, 1, 1));
        return;
    case 2: expect(r, one_tensor(&config)); return;
    case 3: expect(r, cache_bytes_of(&config, 1, whole(r, "tokens"))); return;
    case 4: expect(r, cache_bytes_of(&config, 1, whole(r, "tokens")) / input(r, "tokens")); return;
    case 5:
        expect(r, (double)ledger_positions(whole(r, "prompt"), whole(r, "new_tokens"), true));
        return;
    default: fail_msg("%s is not covered", r->id);
    }
}

static void kv_10(const struct record *r, int n) {
    struct model_config config = shape("seed-0.5b", 0, "f16");
    if (n == 17)
        expect(r, cache_bytes_of(&config, 1, whole(r, "tokens")) / 1e6);
    else if (!has(r, "per_token"))
        expect(r, input(r, "batch") * input(r, "len"));
    else
        expect(r, cache_bytes_of(&config, whole(r, "batch"), whole(r, "len")) *
                      (n > 10 ? 0x1p-20 : 1));
}

static void kv_11(const struct record *r, int n) {
    struct model_config gqa = shape("seed-0.5b", 0, "f16"), mha = shape("seed-0.5b", 14, "f16");
    struct model_config mqa = shape("seed-0.5b", 1, "f16");
    switch (n) {
    case 2: expect(r, cache_bytes_of(&mha, 1, 1) / 1024); return;
    case 3: expect(r, cache_bytes_of(&mha, 1, 1) / 1000); return;
    case 4: expect(r, cache_bytes_of(&gqa, 1, 1) / 1024); return;
    case 5: expect(r, cache_bytes_of(&mha, 1, 1) / cache_bytes_of(&gqa, 1, 1)); return;
    case 7: expect(r, cache_bytes_of(&mha, 1, 1) / cache_bytes_of(&mqa, 1, 1)); return;
    default: break;
    }
    struct model_config config = shape("seed-0.5b", whole(r, "kv_heads"), "f16");
    expect(r, cache_bytes_of(&config, 1, 1));
    /* Neither saves attention arithmetic. */
    struct work ours = {0}, grouped = {0};
    ledger_decode(&ours, &config, 3, 100, 1);
    ledger_decode(&grouped, &gqa, 3, 100, 1);
    double projections = 2.0 * 3 * 24 * 896 * 2 * 64 * (double)(config.shape.n_kv - gqa.shape.n_kv);
    assert_true(ours.flops - projections == grouped.flops);
}

static void kv_12(const struct record *r, int n) {
    struct model_config config = shape("7b", 0, "f16");
    double token = cache_bytes_of(&config, 1, 1), weights = 7.0e9 * 2; /* the seed's round count */
    if (n >= 4 && n <= 12) {
        expect(r, cache_bytes_of(&config, 1, whole(r, "context")) * 0x1p-30);
        return;
    }
    switch (n) {
    case 1: expect(r, token); return;
    case 2: expect(r, token / 1024); return;
    case 3: expect(r, token / 1000); return;
    case 13: expect(r, input(r, "params") * input(r, "elem") * 0x1p-30); return;
    case 14: expect(r, input(r, "params") * input(r, "elem") / 1e9); return;
    case 15: expect(r, cache_bytes_of(&config, 1, whole(r, "context")) / weights); return;
    case 16: expect(r, floor(weights / token) + 1); return;
    default: fail_msg("%s is not covered", r->id);
    }
}

static void kv_other(const struct record *r, int family, int n) {
    if (family == 13) {
        struct model_config config =
            shape("7b", whole(r, "kv_heads"), kv_type_of(input(r, "elem")));
        expect(r, cache_bytes_of(&config, whole(r, "batch"), whole(r, "seq_len")) * 0x1p-30);
        return;
    }
    if (family == 16 && n <= 2) {
        struct model_config config = shape("13b", whole(r, "K"), "bf16"),
                            mha = shape("13b", 0, "bf16");
        expect(r, n == 1 ? cache_bytes_of(&mha, 1, 1) / cache_bytes_of(&config, 1, 1)
                         : (double)(config.shape.n_q / config.shape.n_kv));
        return;
    }
    struct model_config config = shape("13b", whole(r, "K"), "bf16");
    expect(r, cache_bytes_of(&config, 1, has(r, "S") ? whole(r, "S") : 1));
}

static void roofline(const struct record *r, int family, int n) {
    if (family == 26) {
        const double peak = 989e12, bandwidth = 3.35e12; /* E26.1's inputs */
        if (n == 1)
            expect(r, ledger_ridge(input(r, "peak_flops"), input(r, "bandwidth")));
        else if (n == 2)
            expect(r,
                   ledger_ridge_rows(ledger_ridge(peak, bandwidth), input(r, "D"), input(r, "F")));
        else
            expect(r, ledger_attainable(input(r, "I"), peak, bandwidth));
        return;
    }
    if (family == 27 && n == 22) { /* the limit for many rows: a matrix that weighs nothing */
        struct block_cost c = ledger_mlp(1, 1, whole(r, "D"), whole(r, "F"), 0, 2);
        expect(r, ledger_intensity(c));
        return;
    }
    struct block_cost c;
    if (family == 25)
        c = ledger_gemm(whole(r, "B"), whole(r, "D"), whole(r, "F"), 2, 2);
    else if (family == 27)
        c = ledger_mlp(whole(r, "B"), whole(r, "T"), whole(r, "D"), whole(r, "F"), 2, 2);
    else if (n <= 10)
        c = ledger_attention(3, whole(r, "S"), n % 2 ? whole(r, "S") : 1, 5120, 2, 2);
    else
        c = ledger_attention(whole(r, "B"), whole(r, "S"), whole(r, "T"), whole(r, "D"), 2, 2);
    int kind = 2; /* 0 FLOPs, 1 bytes, 2 intensity, 3 error of I ~ B */
    if (family == 25) kind = n == 12 ? 0 : n == 13 ? 1 : n == 14 ? 3 : 2;
    if (family == 27) kind = (n - 1) % 3;
    if (family == 28 && n > 10) kind = (n - 11) % 3;
    double values[] = {c.flops, ledger_bytes(c), ledger_intensity(c),
                       1 / ledger_intensity(c) * input(r, has(r, "B") ? "B" : "S") - 1};
    expect(r, values[kind]);
}

static void generation(const struct record *r, int family, int n) {
    if (family == 1) {
        double recompute =
            (double)ledger_positions(whole(r, "prompt"), whole(r, "new_tokens"), false);
        double cached = (double)ledger_positions(whole(r, "prompt"), whole(r, "new_tokens"), true);
        expect(r, n == 1 ? recompute : n == 2 ? cached : recompute / cached);
        return;
    }
    struct model_config config = shape("seed-0.5b", 0, "f16");
    if (n == 1) {
        expect(r, cache_bytes_of(&config, 1, whole(r, "tokens")));
        return;
    }
    assert_int_equal(config.shape.vocab, whole(r, "vocab"));
    /* Our logits are f32: twice the seed's fp16. */
    struct session_spec spec = {.cache = {.n_seq = 1, .capacity = 1, .most_q = 1},
                                .most_rows = 1,
                                .most_out = (int32_t)whole(r, "tokens")};
    int64_t bytes[N_CLASSES] = {0};
    session_bytes(&config, &spec, bytes);
    expect(r, (double)bytes[MEM_LOGITS] / 2);
}

static bool one(const struct record *r) {
    if (r->family == 9)
        kv_09(r, r->n);
    else if (r->family == 10)
        kv_10(r, r->n);
    else if (r->family == 11)
        kv_11(r, r->n);
    else if (r->family == 12)
        kv_12(r, r->n);
    else if (r->family >= 25)
        roofline(r, r->family, r->n);
    else if (r->family == 1 && r->n > 3)
        return false; /* arithmetic on printed times */
    else if (r->family <= 4)
        generation(r, r->family, r->n);
    else
        kv_other(r, r->family, r->n);
    return true;
}

static void every_record(void **state) {
    static const struct product products[] = {{1, one},  {4, one},  {9, one},  {10, one}, {11, one},
                                              {12, one}, {13, one}, {14, one}, {16, one}, {25, one},
                                              {26, one}, {27, one}, {28, one}, {0}};
    (void)state;
    assert_int_equal(each_record(products), 142);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
