/* SPDX-License-Identifier: Apache-2.0 */
/* Every workload driven through its life on ref, cpu, fake and the emulated GPU: marks, memory,
   witness, values; and witnesses that fail. */
#include "tests/unit/workloads/drive.h"

static struct arena *arena;
enum { DEVICES = 4 };
static struct device *devices[DEVICES];
static const char *const device_names[] = {"ref", "cpu", "fake", "cuda-emu"};

static struct model_config tiny(const char *kv_type) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "kv_type", kv_type, arena);
    return config;
}

/* Prepares, executes twice, compares both times, reports. */
static void live(struct drive *drive, const char *name, const char *settings, struct witness *w,
                 struct values *values) {
    struct err err = {0};
    if (drive_prepare(drive, name, settings, &err)) fail_msg("%s %s: %s", name, settings, err.text);
    drive_execute(drive);
    if (drive->run.workload->witness) *w = drive_witness(drive);
    uint64_t hash = w->hash;
    drive_execute(drive);
    if (drive->run.workload->witness) *w = drive_witness(drive);
    assert_true(w->hash == hash); /* executions are the same */
    *values = drive_report(drive);
    for (const struct metric *m = drive->run.workload->metrics; m && m->name; m++) {
        bool found = false;
        for (int i = 0; i < values->n; i++)
            found = found || !strcmp(values->items[i].name, m->name);
        if (!found) fail_msg("%s does not report %s", name, m->name);
    }
}

static int count_marks(const struct drive *drive, int mark) {
    int n = 0;
    for (int64_t i = 0; i < drive->run.n_marks; i++) n += drive->run.marks[i].mark == mark;
    return n;
}

/* All that a workload took it gave back; the device's own workspace may stay. */
static int64_t live_bytes(struct device *device) {
    return tracker_live(device->tracker, -1) - tracker_live(device->tracker, MEM_WORKSPACE);
}

static void each_workload_everywhere(void **state) {
    static const struct {
        const char *name, *settings;
    } cases[] = {{"null", ""},
                 {"null", "marks=5 spin=1us touch=4096"},
                 {"spin", "work=1"},
                 {"spin", "work=12345"},
                 {"ceiling", "op=read bytes=64KiB"},
                 {"ceiling", "op=copy bytes=64KiB"},
                 {"ceiling", "op=triad bytes=64KiB"},
                 {"ceiling", "op=fma flops=4194304"},
                 {"ceiling", "op=gemm rows=3 depth=64 width=48 type=bf16"},
                 {"generate", "prompt=5 tokens=4"},
                 {"generate", "prompt=5 tokens=4 mode=recompute"},
                 {"generate", "prompt=5 tokens=1 batch=2"},
                 {"generate", "prompt=3 tokens=4 batch=2 logits=all"},
                 {"generate", "prompt=3 tokens=4 batch=2 logits=all mode=recompute"},
                 {"prefill", "tokens=20 batch=2"},
                 {"prefill", "tokens=20 chunk=7 plain_chunk=3"},
                 {"prefill", "tokens=1"},
                 {"decode", "context=9"},
                 {"decode", "batch=3 context=9 steps=4"},
                 {"decode", "batch=2 context=300"},
                 {"kv_memory", "batch=3 length=70"},
                 {"kv_memory", "batch=1 length=60000000 allocate=false"},
                 {"gemm", "m=3 matrix=qkv rotate=1"},
                 {"gemm", "m=6 matrix=mlp rotate=100kB"},
                 {"gemv", "m=2 matrix=gate_up rotate=100kB"},
                 {"gemv", "matrix=down n=40 k=96 rotate=1"},
                 {"attention", "batch=2 tokens=3 context=11 rotate=1"},
                 {"attention", "batch=2 context=11 rotate=20kB"},
                 {"attention", "tokens=20 rotate=1"},
                 {"step", "context=9"},
                 {"step", "batch=3 context=9 split=whole"},
                 {"batching", "requests=20"},
                 {"serving", "requests=7 output=4 most=9 prompt=[5,3,8] slots=3"},
                 {"serving", "requests=7 output=4 most=9 prompt=[5,3] slots=3 policy=static"},
                 {"serving", "requests=7 output=4 most=9 prompt=[5,8,1] slots=3 chunk=2"},
                 {"serving", "requests=7 output=4 prompt=[5,8,1] slots=3 chunk=3 policy=static"},
                 {"serving", "requests=6 output=4 prompt=[7,8] slots=3 chunk=3 prefill=apart"},
                 {"lifetimes", "layers=3 bytes=100 scratch=1000"},
                 {"lifetimes", "layers=3 bytes=100 scratch=1000 keep=all"},
                 {"lifetimes", "layers=1 bytes=1 scratch=1 keep=all"},
                 {"sync_trap", "n=7"},
                 {"sync_trap", "n=64"},
                 {"ranges", "prompt=5 tokens=3"},
                 {"ranges", "prompt=5 tokens=3 listen=names"},
                 {"ranges", "prompt=2 tokens=1 listen=records"},
                 {"serving", "requests=7 output=4 most=9 slots=3 prefill=apart prefill_batch=2"},
                 {"serving", "requests=5 output=4 most=9 slots=2 arrival=poisson step=10us"},
                 {"kv_variants", "length=9"},
                 {"kv_variants", "variant=mqa length=9 batch=2"},
                 {"kv_variants", "variant=window length=9 window=4 local_layers=1"},
                 {"kv_variants", "variant=shared length=5"},
                 {"speculative", "prompt=5 tokens=7 gamma=3 draft_type=int8"},
                 {"speculative", "prompt=5 tokens=7 gamma=3 batch=2 draft_layers=1"},
                 {"speculative", "prompt=5 tokens=7 batch=2 draft=ngram"},
                 {"speculative", "prompt=1 tokens=9 draft=oracle alpha=0.5"},
                 {"speculative", "prompt=5 tokens=6 batch=2 temperature=1"},
                 {"speculative", "prompt=5 tokens=6 draft=ngram temperature=0.5"},
                 {"paging", "requests=20"},
                 {"paging", "requests=20 reserve=power memory=400 longest=400"}};
    (void)state;
    struct model_config config = tiny("bf16");
    for (int d = 0; d < DEVICES; d++) {
        if (!devices[d]) {
            print_message("SKIPPED: %s\n", device_names[d]);
            continue;
        }
        config.activation = model_activation(&config.params, devices[d]->kind);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct drive drive;
            struct witness w = {0};
            struct values values;
            int64_t before = live_bytes(devices[d]);
            drive_open_run(&drive, devices[d], &config, arena);
            live(&drive, cases[i].name, cases[i].settings, &w, &values);
            if (drive.run.workload->witness &&
                !(w.holds && (w.identical || w.contract != CONTRACT_EXACT)))
                fail_msg("%s %s on %s: first difference %lld, %s", cases[i].name, cases[i].settings,
                         device_names[d], (long long)w.first_difference, w.note);
            for (const struct mark *m = drive.run.workload->marks; m && m->name; m++)
                if (strcmp(cases[i].name, "null") != 0)
                    assert_true(count_marks(&drive, (int)(m - drive.run.workload->marks)) > 0);
            drive_dispose(&drive);
            drive_close_run(&drive);
            assert_int_equal(live_bytes(devices[d]), before);
        }
    }
}

/* Inputs of int8 on the devices that have them. */
static void each_workload_with_int8_inputs(void **state) {
    static const struct {
        const char *name, *settings;
    } cases[] = {{"ceiling", "op=fma type=int8 flops=4194304"},
                 {"ceiling", "op=gemm rows=3 depth=64 width=48 type=int8 activation=int8"},
                 {"generate", "prompt=5 tokens=4 batch=2"},
                 {"generate", "prompt=5 tokens=4 mode=recompute"},
                 {"prefill", "tokens=20 chunk=7 plain_chunk=3"},
                 {"decode", "batch=3 context=9 steps=4"},
                 {"gemm", "m=6 matrix=mlp rotate=100kB"},
                 {"gemv", "m=2 matrix=gate_up rotate=100kB"},
                 {"attention", "batch=2 tokens=3 context=11 rotate=1"},
                 {"speculative", "prompt=5 tokens=7 batch=2 draft_type=int8-group"},
                 {"step", "batch=3 context=9"}};
    (void)state;
    struct model_config config = tiny("f32");
    drive_model(&config, "type", "int4", arena);
    drive_model(&config, "activation", "int8", arena);
    drive_model(&config, "group", "32", arena);
    for (int d = 0; d < 2; d++) {
        config.activation = model_activation(&config.params, devices[d]->kind);
        assert_int_equal(config.activation, DT_F32);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct drive drive;
            struct witness w = {0};
            struct values values;
            const bool products = strcmp(cases[i].name, "attention") != 0;
            int64_t before = live_bytes(devices[d]);
            drive_open_run(&drive, devices[d], &config, arena);
            live(&drive, cases[i].name, cases[i].settings, &w, &values);
            if (drive.run.workload->witness && !(w.holds && w.identical))
                fail_msg("%s %s on %s: first difference %lld, %s", cases[i].name, cases[i].settings,
                         device_names[d], (long long)w.first_difference, w.note);
            assert_int_equal(drive.plan.binding_type, products ? DT_I8 : DT_F32);
            drive_dispose(&drive);
            drive_close_run(&drive);
            assert_int_equal(live_bytes(devices[d]), before);
        }
    }
}

/* ---- generate: the cache changes no token (E01, R15) -------------------------------------------
 */

static void cached_is_recomputed(void **state) {
    static const char *const types[] = {"f32", "f16", "bf16", "int8"}, *const layouts[] = {
                                                                           "contiguous", "paged"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct model_config config = tiny(types[i / 2]);
        drive_model(&config, "layout", layouts[i % 2], arena);
        drive_model(&config, "window", i == 2 ? "6" : "0", arena);
        struct drive a, b;
        struct witness w = {0};
        struct values cached, recompute;
        drive_open_run(&a, devices[0], &config, arena);
        live(&a, "generate", "prompt=7 tokens=9 batch=2", &w, &cached);
        assert_int_equal(w.contract, CONTRACT_EXACT);
        assert_true(w.holds && w.identical);
        assert_int_equal(w.compared, 18);
        assert_true(w.hash == w.plain_hash);
        assert_int_equal(count_marks(&a, 0), 18);
        uint64_t hash = w.hash;
        drive_open_run(&b, devices[0], &config, arena);
        live(&b, "generate", "prompt=7 tokens=9 batch=2 mode=recompute", &w, &recompute);
        assert_true(w.holds && w.hash == hash);
        assert_true(values_get(&cached, "positions") == 7 + 8);
        assert_true(values_get(&recompute, "positions") == 9 * 7 + 9 * 8 / 2);
        assert_true(values_get(&cached, "token_entropy") > 2);
        assert_true(values_get(&cached, "kv_bytes") ==
                        2 * (7 + 8) * (double)model_kv_bytes_per_token(&config, NULL) ||
                    i % 2 || i == 2);
        assert_true(values_get(&cached, "method_bytes") ==
                    values_get(&cached, "method_bytes_allocated"));
        assert_true(values_get(&recompute, "method_bytes") ==
                    values_get(&recompute, "method_bytes_allocated"));
        drive_dispose(&a);
        drive_dispose(&b);
        drive_close_run(&a);
        drive_close_run(&b);
    }
}

/* E04: with logits of the whole sequence recompute's peak is the larger one; E01: its work too. */
static void recompute_costs_more(void **state) {
    (void)state;
    struct model_config config = tiny("f16");
    struct drive a, b;
    struct witness w = {0};
    struct values cached, recompute;
    drive_open_run(&a, devices[0], &config, arena);
    drive_open_run(&b, devices[0], &config, arena);
    live(&a, "generate", "prompt=5 tokens=30 logits=all", &w, &cached);
    live(&b, "generate", "prompt=5 tokens=30 logits=all mode=recompute", &w, &recompute);
    assert_true(values_get(&recompute, "method_bytes") > 2 * values_get(&cached, "method_bytes"));
    assert_true(b.plan.work[1].flops > 10 * a.plan.work[1].flops);
    assert_true(a.plan.work[0].flops == b.plan.work[0].flops);
    drive_dispose(&a);
    drive_dispose(&b);
    drive_close_run(&a);
    drive_close_run(&b);
}

/* ---- witnesses that must fail -------------------------------------------------------------------
 */

static void spoiled_results_are_wrong(void **state) {
    static const struct {
        const char *name, *settings;
    } cases[] = {{"generate", "prompt=7 tokens=9"},
                 {"decode", "batch=2 context=9 steps=3"},
                 {"prefill", "tokens=12 batch=2"},
                 {"serving", "requests=4 prompt=7 output=9 law=fixed slots=2"},
                 {"speculative", "prompt=7 tokens=9 draft_type=int8"},
                 {"speculative", "prompt=7 tokens=9 batch=2 draft_layers=1 temperature=1"}};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct model_config config = tiny("f32");
        struct drive drive;
        struct err err = {0};
        drive_open_run(&drive, devices[0], &config, arena);
        if (drive_prepare(&drive, cases[i].name, cases[i].settings, &err)) fail_msg("%s", err.text);
        drive_execute(&drive);
        assert_true(drive_witness(&drive).holds);
        /* The plain results that were kept are spoiled: as if the fast path had computed something
         * else. */
        for (int k = 0; k < drive.n_pieces; k++)
            if (!strncmp(drive.pieces[k].key, cases[i].name, strlen(cases[i].name)))
                ((char *)drive.pieces[k].bytes)[drive.pieces[k].size - 1] ^= 1;
        drive_execute(&drive);
        struct witness w = drive_witness(&drive);
        assert_false(w.holds);
        assert_false(w.identical);
        assert_true(w.first_difference >= 0);
        assert_true(w.hash != w.plain_hash);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

/* ---- snapshots ----------------------------------------------------------------------------------
 */

static void contexts_are_made_once(void **state) {
    (void)state;
    struct model_config config = tiny("int8");
    struct drive drive;
    struct witness w = {0};
    struct values values;
    drive_open_run(&drive, devices[0], &config, arena);
    live(&drive, "decode", "batch=4 context=20 steps=2", &w, &values);
    assert_int_equal(drive.filled, 4 + 4); /* contexts and plain results */
    assert_int_equal(drive.found, 4);      /* the second comparison */
    drive_dispose(&drive);
    /* A smaller batch of the same run, and another layout: nothing new is computed. */
    uint64_t hash = w.hash;
    live(&drive, "decode", "batch=4 context=20 steps=2", &w, &values);
    assert_true(w.hash == hash && w.holds);
    assert_int_equal(drive.filled, 8);
    drive_dispose(&drive);
    drive_model(&drive.config, "layout", "paged", arena);
    live(&drive, "decode", "batch=2 context=20 steps=2", &w, &values);
    assert_true(w.holds && w.identical);
    assert_int_equal(drive.filled, 8);
    drive_dispose(&drive);
    /* Another context, another cache type: new. */
    live(&drive, "decode", "batch=1 context=21 steps=2", &w, &values);
    assert_int_equal(drive.filled, 10);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

static void *no_room(void *ctx, const char *key, size_t bytes, bool *ready) {
    (void)ctx, (void)key, (void)bytes;
    *ready = false;
    return NULL;
}

static void without_room_it_is_computed_again(void **state) {
    static const char *const names[] = {"decode", "prefill", "generate"};
    (void)state;
    struct model_config config = tiny("bf16");
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        struct witness w = {0};
        struct values values;
        drive_open_run(&drive, devices[0], &config, arena);
        drive.run.store.snapshot = no_room;
        live(&drive, names[i], "", &w, &values);
        assert_true(w.holds && w.identical);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

/* ---- what a row says ----------------------------------------------------------------------------
 */

static void decode_rows(void **state) {
    (void)state;
    struct model_config config = tiny("f16");
    struct drive drive;
    struct witness w = {0};
    struct values values;
    drive_open_run(&drive, devices[0], &config, arena);
    live(&drive, "decode", "batch=3 context=40 steps=2", &w, &values);
    double token = (double)model_kv_bytes_per_token(&config, NULL);
    assert_true(values_get(&values, "kv_bytes_read") == 3 * (41 + 42) * token);
    assert_true(values_get(&values, "resident_tokens") == 3 * 42);
    assert_true(values_get(&values, "token_entropy") > 5);
    assert_true(drive.plan.work[0].items == 6);
    assert_int_equal(drive.run.n_marks, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(drive.run.marks[i].who, i % 3);
        assert_int_equal(drive.run.marks[i].n, 1);
        assert_true(i == 0 || drive.run.marks[i].t_ns >= drive.run.marks[i - 1].t_ns);
    }
    drive_dispose(&drive);
    drive_close_run(&drive);
}

/* A ring that is set back after each execution, short and long before its end. */
static void decode_under_a_window(void **state) {
    static const char *const settings[] = {
        "batch=2 context=20 steps=9", "batch=2 context=3 steps=9", "batch=1 context=6 steps=1"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct model_config config = tiny(i < 3 ? "f32" : "int8");
        struct drive drive;
        struct witness w = {0};
        struct values values;
        drive_model(&config, "window", "6", arena);
        drive_open_run(&drive, devices[0], &config, arena);
        live(&drive, "decode", settings[i % 3], &w, &values);
        assert_true(w.holds && w.identical);
        uint64_t hash = w.hash;
        drive_dispose(&drive);
        /* Blocks keep everything and only mask: the same bits. */
        drive_model(&drive.config, "layout", "paged", arena);
        live(&drive, "decode", settings[i % 3], &w, &values);
        assert_true(w.holds && w.hash == hash);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

/* Blocks from a pool that is too small: requests lose their cache and read again, others are
 * refused; branches share and copy. */
static void paged_rows(void **state) {
    (void)state;
    for (int d = 0; d < 2; d++) {
        if (!devices[d]) continue;
        struct model_config config = tiny(d ? "bf16" : "int8");
        struct drive drive;
        struct witness w = {0};
        struct values values;
        drive_model(&config, "layout", "paged", arena);
        drive_model(&config, "block", "4", arena);
        config.activation = model_activation(&config.params, devices[d]->kind);
        drive_open_run(&drive, devices[d], &config, arena);
        live(&drive, "serving", "lengths=[9,12,4,40,7,10] prompt=[5,3] slots=3 pool=8", &w,
             &values);
        assert_true(w.holds && w.identical);
        assert_true(values_get(&values, "preempted") > 0);
        assert_true(values_get(&values, "refused") == 1);
        assert_true(values_get(&values, "most_blocks") <= 8);
        assert_int_equal(w.compared, 9 + 12 + 4 + 7 + 10);
        drive_dispose(&drive);
        drive_model(&drive.config, "block", "16", arena);
        live(&drive, "sharing", "", &w, &values); /* E24.2 ... E24.5 */
        assert_true(w.holds && w.identical);
        assert_true(values_get(&values, "blocks") == 10);
        assert_true(values_get(&values, "blocks_after_prompt") == 3);
        assert_true(values_get(&values, "prompt_refs") == 4);
        assert_true(values_get(&values, "copies") == 3);
        assert_true(values_get(&values, "blocks_left") == 0);
        drive_dispose(&drive);
        live(&drive, "sharing", "mode=separate", &w, &values); /* E24.1 */
        assert_true(w.holds && w.identical);
        assert_true(values_get(&values, "blocks") == 16);
        assert_true(values_get(&values, "copies") == 0);
        drive_dispose(&drive);
        live(&drive, "sharing", "prompt=32 samples=3 tokens=1", &w, &values); /* whole blocks */
        assert_true(values_get(&values, "blocks") == 2 + 3);
        assert_true(values_get(&values, "copies") == 0);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

static void kv_rows(void **state) {
    (void)state;
    struct model_config config = drive_config("7b", arena);
    struct drive drive;
    struct witness w = {0};
    struct values values;
    drive_model(&config, "kv_type", "f16", arena);
    drive_model(&config, "type", "f16", arena);
    drive_open_run(&drive, devices[0], &config, arena);
    live(&drive, "kv_memory", "length=128000 allocate=false", &w, &values); /* E12 */
    assert_true(values_get(&values, "kv_gib") == 15.625);
    assert_true(isnan(values_get(&values, "kv_bytes_allocated")));
    assert_true(values_get(&values, "kv_over_weights") > 1);
    assert_true(values_get(&values, "heads_saved") == 4);
    assert_int_equal(w.contract, CONTRACT_NONE);
    for (int c = 0; c < N_CLASSES; c++) assert_int_equal(drive.plan.bytes[c], 0);
    drive_dispose(&drive);
    drive_model(&drive.config, "layout", "paged", arena);
    drive_model(&drive.config, "block", "16", arena);
    live(&drive, "kv_memory", "batch=2 length=17", &w, &values);
    assert_true(values_get(&values, "kv_bytes") == 2 * 17 * 131072.0);
    assert_true(values_get(&values, "kv_bytes_planned") == 2 * 32 * 131072.0);
    assert_true(values_get(&values, "kv_bytes_allocated") == 2 * 32 * 131072.0);
    assert_int_equal(w.contract, CONTRACT_EXACT);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

static void checks_refuse(void **state) {
    static const struct {
        const char *name, *settings;
    } cases[] = {{"ceiling", "op=fma type=int4"},
                 {"ceiling", "op=gemm type=bf16 activation=int8"},
                 {"decode", "batch=4096 context=16777216"},
                 {"prefill", "batch=4096 tokens=1048576"},
                 {"generate", "tokens=1048576 mode=recompute prompt=1048576"},
                 {"attention", "tokens=9 context=8"},
                 {"attention", "batch=65536 tokens=1048576"},
                 {"gemm", "m=16777216 n=1048576"},
                 {"step", "batch=4096 context=16777216"},
                 {"batching", "lengths=[4,0]"},
                 {"serving", "arrival=given times=[5,4]"},
                 {"serving", "pool=4"},
                 {"speculative", "draft=oracle"},
                 {"speculative", "draft=oracle alpha=-0.5"},
                 {"speculative", "draft=oracle alpha=0.5 temperature=1"},
                 {"speculative", "alpha=0.5"},
                 {"speculative", "ngram=2"},
                 {"speculative", "draft=ngram draft_type=int8"},
                 {"speculative", "draft=ngram draft_layers=1"},
                 {"speculative", "draft_layers=3"},
                 {"speculative", "batch=4096 prompt=1048576"},
                 {"speculative", "draft=ngram prompt=1048576 tokens=65536 batch=2"},
                 {"sharing", ""},
                 {"paging", "longest=100"},
                 {"paging", "memory=10"},
                 {"serving", "slots=4096 prompt=65536 requests=255"},
                 {"serving", "requests=100000 most=65536 law=fixed output=60000"}};
    (void)state;
    struct model_config config = tiny("bf16");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct drive drive;
        struct err err = {0};
        drive_open_run(&drive, devices[0], &config, arena);
        if (drive_prepare(&drive, cases[i].name, cases[i].settings, &err) != ERR_INPUT)
            fail_msg("%s %s is not refused", cases[i].name, cases[i].settings);
        drive_close_run(&drive);
    }
}

/* A device without memory: an error, no leak, and dispose copes. */
static int allocations_left;
static const struct device_kind *real_kind;
static void *scarce(struct device *device, size_t bytes) {
    return allocations_left-- > 0 ? real_kind->alloc(device, bytes) : NULL;
}

static void every_failing_allocation(void **state) {
    static const struct {
        const char *name, *settings;
    } cases[] = {{"ceiling", "op=triad bytes=64KiB"},
                 {"ceiling", "op=gemm rows=2 depth=8 width=8"},
                 {"decode", "context=3"},
                 {"prefill", "tokens=3"},
                 {"generate", "prompt=2 tokens=2"},
                 {"gemm", "m=2 matrix=mlp rotate=50kB"},
                 {"attention", "context=4 rotate=1"},
                 {"step", "context=3"},
                 {"speculative", "prompt=3 tokens=3 draft_type=int4"},
                 {"speculative", "prompt=1 tokens=3 draft_layers=1 temperature=1"},
                 {"serving", "requests=3 output=2 most=3 slots=2"}};
    (void)state;
    struct device_kind kind = *devices[0]->kind;
    real_kind = devices[0]->kind;
    kind.alloc = scarce;
    devices[0]->kind = &kind;
    struct model_config config = tiny("int8");
    drive_model(&config, "layout", "paged", arena);
    drive_model(&config, "type", "int8", arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int failures = 0;
        for (int allowed = 0;; allowed++) {
            struct drive drive;
            struct err err = {0};
            int64_t before = tracker_live(devices[0]->tracker, -1);
            drive_open_run(&drive, devices[0], &config, arena);
            allocations_left = allowed;
            int code = drive_prepare(&drive, cases[i].name, cases[i].settings, &err);
            drive_dispose(&drive);
            drive_close_run(&drive);
            assert_int_equal(tracker_live(devices[0]->tracker, -1), before);
            if (!code) break;
            assert_int_equal(code, ERR_MEMORY);
            assert_true(err.text[0]);
            failures++;
        }
        assert_true(failures >= 3);
    }
    devices[0]->kind = real_kind;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_workload_everywhere),
                                       cmocka_unit_test(each_workload_with_int8_inputs),
                                       cmocka_unit_test(cached_is_recomputed),
                                       cmocka_unit_test(recompute_costs_more),
                                       cmocka_unit_test(spoiled_results_are_wrong),
                                       cmocka_unit_test(contexts_are_made_once),
                                       cmocka_unit_test(without_room_it_is_computed_again),
                                       cmocka_unit_test(decode_rows),
                                       cmocka_unit_test(decode_under_a_window),
                                       cmocka_unit_test(paged_rows),
                                       cmocka_unit_test(kv_rows),
                                       cmocka_unit_test(checks_refuse),
                                       cmocka_unit_test(every_failing_allocation)};
    arena = arena_create();
    for (int d = 0; d < DEVICES; d++) devices[d] = drive_open(device_names[d], arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int d = 0; d < DEVICES; d++) device_close(&devices[d]);
    arena_close(&arena);
    return failed;
}
