/* SPDX-License-Identifier: Apache-2.0 */
/* `generate` with an end token, and what all workloads say of constant inputs. */
#include "tests/unit/workloads/drive.h"

#include "workloads/common/plain.h"

enum { SEQS = 5, MOST = 14, PROMPT = 6 };
static struct arena *arena;

static struct model_config small_vocabulary(const char *layout, const char *kv_type) {
    struct model_config config = drive_config("tiny", arena);
    config.shape.vocab = 23; /* few ids, so that they come again in other sequences */
    drive_model(&config, "layout", layout, arena);
    drive_model(&config, "kv_type", kv_type, arena);
    return config;
}

static void prepare(struct drive *drive, const char *name, const char *settings) {
    struct err err = {0};
    if (drive_prepare(drive, name, settings, &err)) fail_msg("%s: %s", settings, err.text);
}

/* Ids that each sequence generates when nothing ends it, as the plain path keeps them. */
static void free_run(struct device *device, const struct model_config *config,
                     int32_t tokens[SEQS][MOST]) {
    struct drive drive;
    int found = 0;
    drive_open_run(&drive, device, config, arena);
    prepare(&drive, "generate", "prompt=6 tokens=14 batch=5");
    drive_execute(&drive);
    assert_true(drive_witness(&drive).holds);
    for (int i = 0; i < drive.n_pieces; i++) {
        struct plain *plain = drive.pieces[i].bytes;
        if (strncmp(drive.pieces[i].key, "generate", 8) != 0) continue;
        memcpy(tokens[found++], plain_tokens(plain), sizeof tokens[0]);
    }
    assert_int_equal(found, SEQS);
    assert_int_equal(drive.run.n_flags, 0);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

/* Tokens of each sequence if `id` ends it; how many different lengths that makes. */
static int lengths_with(int32_t tokens[SEQS][MOST], int32_t id, int32_t *n_out) {
    int different = 0;
    for (int q = 0; q < SEQS; q++) {
        n_out[q] = 0;
        while (n_out[q] < MOST && tokens[q][n_out[q]++] != id) continue;
        bool seen = false;
        for (int k = 0; k < q; k++) seen = seen || n_out[k] == n_out[q];
        different += !seen;
    }
    return different;
}

/* The id that makes the most different lengths. */
static int32_t choose_end(int32_t tokens[SEQS][MOST], int32_t *n_out) {
    int32_t best = 0;
    for (int32_t id = 1; id < 23; id++)
        if (lengths_with(tokens, id, n_out) > lengths_with(tokens, best, n_out)) best = id;
    assert_true(lengths_with(tokens, best, n_out) >= 3);
    return best;
}

/* The ledger, step by step. */
static struct work expected_decode(const struct model_config *config, const int32_t *n_out,
                                   bool cached, bool every) {
    struct work work = {0};
    for (int32_t i = 1; i < MOST; i++) {
        int32_t n = 0;
        for (int q = 0; q < SEQS; q++) n += n_out[q] > i;
        if (n && cached) ledger_step_alike(&work, config, n, 1, PROMPT + i, n);
        if (n && !cached) ledger_prompt(&work, config, n, 0, PROMPT + i, 0, every);
    }
    return work;
}

static void near(double a, double b) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

/* One mode with sequences that end apart: marks, ids, ledger and values are those of what was made.
 */
static void ends_apart(struct device *device, const struct model_config *config, const char *mode) {
    int32_t tokens[SEQS][MOST], n_out[SEQS], sum = 0;
    free_run(device, config, tokens);
    const int32_t end = choose_end(tokens, n_out);
    const bool cached = !strstr(mode, "recompute"), every = strstr(mode, "all") != NULL;
    double positions = 0;
    char settings[120];
    struct drive drive;
    struct work work[MAX_PHASES] = {{0}};
    drive_open_run(&drive, device, config, arena);
    snprintf(settings, sizeof settings, "prompt=6 tokens=14 batch=5 end_id=%d %s", (int)end, mode);
    prepare(&drive, "generate", settings);
    for (int again = 0; again < 2; again++) {
        int32_t marks[SEQS] = {0};
        drive_execute(&drive);
        for (int64_t i = 0; i < drive.run.n_marks; i++)
            if (drive.run.marks[i].mark == 0) marks[drive.run.marks[i].who]++;
        for (int q = 0; q < SEQS; q++) assert_int_equal(marks[q], n_out[q]);
    }
    for (int q = 0; q < SEQS; q++) {
        sum += n_out[q];
        positions += (double)ledger_positions(PROMPT, n_out[q], cached) / SEQS;
    }
    struct witness w = drive_witness(&drive);
    assert_true(w.holds && w.identical && w.hash == w.plain_hash);
    assert_int_equal(w.compared, sum);
    assert_true(drive.run.workload->worked(drive.self, work));
    struct work decode = expected_decode(config, n_out, cached, every);
    near(work[1].flops, decode.flops);
    for (int c = 0; c < N_CLASSES; c++) near(work[1].bytes[c], decode.bytes[c]);
    assert_true(work[1].items == sum - SEQS);
    assert_true(work[0].items == SEQS * PROMPT);
    assert_true(work[0].flops == drive.plan.work[0].flops);
    struct values values = drive_report(&drive);
    near(values_get(&values, "positions"), positions);
    assert_int_equal(drive.run.n_flags, 1);
    assert_string_equal(drive.run.flags[0].flag, "ended_early");
    assert_non_null(strstr(drive.run.flags[0].reason, "before 14 tokens"));
    /* A spoiled id where a sequence ended is seen. */
    for (int i = 0; i < drive.n_pieces; i++)
        if (!strncmp(drive.pieces[i].key, "generate", 8))
            plain_tokens(drive.pieces[i].bytes)[n_out[0] - 1] ^= 1;
    assert_false(drive_witness(&drive).holds);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

static void sequences_end_apart(void **state) {
    static const char *const modes[] = {"", "mode=recompute", "logits=all",
                                        "logits=all mode=recompute"};
    static const char *const devices[] = {"ref", "cpu"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct device *device = drive_open(devices[d], arena);
        if (!device) continue;
        for (int m = 0; m < 4; m++)
            for (int k = 0; k < (m ? 1 : 2); k++) {
                struct model_config config =
                    small_vocabulary(k ? "paged" : "contiguous", k ? "int8" : "f32");
                ends_apart(device, &config, modes[m]);
            }
        device_close(&device);
    }
}

/* All end at once, at the first token or later; an id that never comes ends nothing. */
static void one_sequence_ends(void **state) {
    (void)state;
    struct device *device = drive_open("ref", arena);
    struct model_config config = small_vocabulary("contiguous", "f32");
    int32_t tokens[SEQS][MOST], n_out[SEQS];
    free_run(device, &config, tokens);
    for (int32_t id = 0; id < 23; id++) {
        struct drive drive;
        struct work work[MAX_PHASES] = {{0}};
        char settings[80];
        lengths_with(tokens, id, n_out);
        drive_open_run(&drive, device, &config, arena);
        snprintf(settings, sizeof settings, "prompt=6 tokens=14 end_id=%d", (int)id);
        prepare(&drive, "generate", settings);
        drive_execute(&drive);
        assert_int_equal(drive.run.n_marks, n_out[0] + 2); /* and two phases */
        struct witness w = drive_witness(&drive);
        assert_true(w.holds && w.identical);
        assert_int_equal(w.compared, n_out[0]);
        const bool whole = n_out[0] == MOST;
        assert_int_equal(drive.run.workload->worked(drive.self, work), !whole);
        if (whole) assert_true(work[1].flops == drive.plan.work[1].flops);
        drive_report(&drive);
        assert_int_equal(drive.run.n_flags, !whole);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
    device_close(&device);
}

static void ids_beyond_the_vocabulary_are_refused(void **state) {
    (void)state;
    struct device *device = drive_open("ref", arena);
    struct model_config config = small_vocabulary("contiguous", "f32");
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, device, &config, arena);
    assert_int_equal(drive_prepare(&drive, "generate", "end_id=23", &err), ERR_INPUT);
    drive_close_run(&drive);
    device_close(&device);
}

/* Distinct by default; constant on demand, flagged, and never mixed with what is kept of others. */
static void constant_inputs_warn(void **state) {
    static const char *const cases[][2] = {{"generate", "prompt=9 tokens=3 batch=2"},
                                           {"prefill", "tokens=9 batch=2"},
                                           {"decode", "context=9 batch=2"}};
    (void)state;
    struct device *device = drive_open("ref", arena);
    struct model_config config = drive_config("tiny", arena);
    for (int i = 0; i < 3; i++) {
        uint64_t hash[2];
        struct drive drive;
        drive_open_run(&drive, device, &config, arena);
        for (int constant = 0; constant < 2; constant++) {
            char settings[120];
            snprintf(settings, sizeof settings, "%s%s", cases[i][1],
                     constant ? " input=constant" : "");
            drive.run.n_flags = 0;
            prepare(&drive, cases[i][0], settings);
            drive_execute(&drive);
            struct witness w = drive_witness(&drive);
            assert_true(w.holds && w.identical);
            hash[constant] = w.hash;
            struct values values = drive_report(&drive);
            assert_int_equal(drive.run.n_flags, constant);
            if (constant) assert_string_equal(drive.run.flags[0].flag, "constant_input");
            if (i) assert_int_equal(values_get(&values, "token_entropy") > 3, !constant);
            if (i && constant) assert_true(values_get(&values, "token_entropy") == 0);
            drive_dispose(&drive);
        }
        assert_true(hash[0] != hash[1]);
        drive_close_run(&drive);
    }
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_end_apart),
                                       cmocka_unit_test(one_sequence_ends),
                                       cmocka_unit_test(ids_beyond_the_vocabulary_are_refused),
                                       cmocka_unit_test(constant_inputs_warn)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
