/* SPDX-License-Identifier: Apache-2.0 */
/* `speculative`: no token changes, whoever drafts; what is drawn is distributed as the target's, by
   enumeration and by draws; counts, work and memory are what was planned and done. */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "kernels/quant.h"
#include "workloads/common/lookup.h"
#include "workloads/common/rejection.h"
#include "workloads/common/speculating.h"

static struct arena *arena;
static struct device *devices[2];
static const char *const device_names[2] = {"ref", "cpu"};

#define TEXT(...) arena_printf(arena, __VA_ARGS__)

static struct model_config tiny(const char *key, const char *value) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", "f32", arena);
    if (key) drive_model(&config, key, value, arena);
    return config;
}

static struct speculating *prepared(struct drive *drive, const char *settings) {
    struct err err = {0};
    if (drive_prepare(drive, "speculative", settings, &err)) fail_msg("%s: %s", settings, err.text);
    return drive->self; /* its only member */
}

static const struct pass *passes_of(const struct speculating *s, int32_t q) {
    return s->passes + (int64_t)q * s->spec.tokens;
}

/* What holds after any execution: passes fit each other, marks count them, nothing is left over. */
static void check_course(const struct drive *drive, const struct speculating *s) {
    const struct speculating_spec *p = &s->spec;
    int64_t marked[16] = {0}, arrived = 0;
    for (int32_t q = 0; q < p->batch; q++) {
        int32_t known = p->prompt;
        for (int32_t i = 0; i < s->n_passes[q]; i++) {
            const struct pass *pass = &passes_of(s, q)[i];
            assert_int_equal(pass->known, known);
            assert_in_range(pass->drafted, 0, p->gamma);
            assert_in_range(pass->accepted, 0, pass->drafted);
            known += pass->accepted + 1;
        }
        assert_int_equal(known, p->prompt + p->tokens);
        assert_int_equal(s->len[q], known);
        assert_int_equal(s->target->len[q], known - 1);
        if (s->drafter) assert_in_range(s->drafter->len[q], 0, known - 1);
    }
    for (int64_t i = 0; i < drive->run.n_marks; i++) {
        const struct mark_record *m = &drive->run.marks[i];
        if (m->mark != 0) continue;
        marked[m->who] += m->n;
        arrived += m->n == 0;
    }
    assert_int_equal(arrived, p->batch);
    for (int32_t q = 0; q < p->batch; q++) assert_int_equal(marked[q], p->tokens);
}

static void check_greedy(const struct drive *drive, const struct speculating *s) {
    for (int32_t q = 0; q < s->spec.batch; q++)
        assert_memory_equal(speculating_text(s, q) + s->spec.prompt,
                            s->plain + (int64_t)q * s->spec.tokens,
                            sizeof(int32_t) * (size_t)s->spec.tokens);
    check_course(drive, s);
}

/* ---- greedy: no token changes (E43, R15) */

static void no_token_changes(void **state) {
    static const char *const drafts[] = {"draft_type=int8",
                                         "draft_type=int4-tensor",
                                         "draft=model",
                                         "draft_layers=1",
                                         "draft_layers=1 draft_type=nf4",
                                         "draft=ngram",
                                         "draft=ngram ngram=1 input=constant",
                                         "draft=oracle alpha=0",
                                         "draft=oracle alpha=1",
                                         "draft=oracle alpha=0.6",
                                         "draft=oracle alpha=0.4 draft_layers=1"};
    static const char *const sizes[] = {"prompt=7 tokens=19", "prompt=1 tokens=12 batch=3"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct model_config config = tiny(NULL, NULL);
        struct drive drive;
        uint64_t hash[2][2] = {{0}}; /* by size, and by input: other inputs, other texts */
        drive_open_run(&drive, devices[d], &config, arena);
        for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
            for (int size = 0; size < 2; size++)
                for (int gamma = 1; gamma <= 8; gamma++) {
                    const bool plain_loops = d == 0; /* slow: once; batches with two of them */
                    if (plain_loops ? gamma != 3 : size && gamma % 4 != 3) continue;
                    const char *settings = TEXT("%s gamma=%d %s", sizes[size], gamma, drafts[i]);
                    const struct speculating *s = prepared(&drive, settings);
                    drive_execute(&drive);
                    check_greedy(&drive, s);
                    const struct witness w = drive_witness(&drive);
                    if (!w.holds || !w.identical || w.contract != CONTRACT_EXACT)
                        fail_msg("%s on %s: differs at %lld", settings, device_names[d],
                                 (long long)w.first_difference);
                    assert_int_equal(w.compared, s->spec.batch * s->spec.tokens);
                    uint64_t *first = &hash[size][strstr(drafts[i], "constant") != NULL];
                    if (!*first) *first = w.hash;
                    if (!size) assert_true(w.hash == *first);
                    if (!plain_loops && gamma == 3) { /* nothing of the first is left */
                        drive_execute(&drive);
                        check_greedy(&drive, s);
                        assert_true(drive_witness(&drive).hash == w.hash);
                    }
                    drive_dispose(&drive);
                }
        drive_close_run(&drive);
    }
}

static void counts(const char *settings, int32_t passes, int32_t accepted, double tokens_per_pass) {
    struct model_config config = tiny(NULL, NULL);
    struct drive drive;
    drive_open_run(&drive, devices[1], &config, arena);
    const struct speculating *s = prepared(&drive, settings);
    drive_execute(&drive);
    check_greedy(&drive, s);
    int32_t sum = 0;
    for (int32_t i = 0; i < s->n_passes[0]; i++) sum += passes_of(s, 0)[i].accepted;
    assert_int_equal(s->n_passes[0], passes);
    assert_int_equal(sum, accepted);
    const struct values v = drive_report(&drive);
    assert_true(fabs(values_get(&v, "tokens_per_pass") - tokens_per_pass) < 1e-12);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

static void nothing_and_everything_is_accepted(void **state) {
    (void)state;
    counts("prompt=5 tokens=12 gamma=3 draft=oracle alpha=0", 12, 0, 1);
    counts("prompt=5 tokens=12 gamma=3 draft=oracle alpha=1", 3, 9, 4);
    counts("prompt=5 tokens=12 gamma=3 draft=model", 3, 9, 4); /* the target itself */
    counts("prompt=5 tokens=13 gamma=3 draft=model", 4, 9, 13 / 4.0);
    counts("prompt=5 tokens=3 gamma=8 draft=model", 1, 2, 3); /* no more than what remains */
    counts("prompt=5 tokens=1 gamma=8 draft=model", 1, 0, 1);
    counts("prompt=1 tokens=1 gamma=1 draft=model", 1, 0, 1);
    counts("prompt=1 tokens=1 gamma=64 draft=ngram", 1, 0, 1); /* nothing to look up in */
}

/* Rings that go back, blocks that are given back, caches of 8 bits; full to the last slot. */
static void every_cache(void **state) {
    static const char *const caches[][2] = {{"window", "6"},
                                            {"window", "3"},
                                            {"layout", "paged"},
                                            {"kv_type", "int8"},
                                            {"kv_type", "f16"}};
    static const char *const drafts[] = {"draft_layers=1", "draft_type=int4-row"};
    (void)state;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        for (int d = 0; d < 2; d++)
            for (int k = 0; k < 1 + d; k++) {
                struct model_config config = tiny(caches[i][0], caches[i][1]);
                struct drive drive;
                if (strcmp(caches[i][0], "layout") == 0) drive_model(&config, "block", "4", arena);
                drive_open_run(&drive, devices[d], &config, arena);
                const struct speculating *s =
                    prepared(&drive, TEXT("prompt=9 tokens=15 gamma=5 batch=2 %s", drafts[k]));
                assert_int_equal(s->target->spec.cache.capacity, 9 + 15 - 1);
                for (int again = 0; again < 2; again++) {
                    drive_execute(&drive);
                    check_greedy(&drive, s);
                    const struct witness w = drive_witness(&drive);
                    assert_true(w.holds && w.identical);
                }
                drive_dispose(&drive);
                drive_close_run(&drive);
            }
}

/* ---- lookup */

/* The same, looked for without shortcuts. */
static int32_t looked_up(const int32_t *text, int32_t n, int32_t longest, int32_t most,
                         int32_t *out) {
    for (int32_t m = longest; m > 0; m--)
        for (int32_t at = n - 2; at >= m - 1; at--) { /* where an earlier match ends */
            int32_t same = 0;
            while (same < m && n - 1 - same > at - same && text[at - same] == text[n - 1 - same])
                same++;
            if (same < m) continue;
            for (int32_t i = 0; i < most; i++) {
                int32_t from = at + 1 + i;
                while (from >= n) from -= n - (at + 1);
                out[i] = text[from];
            }
            return most;
        }
    return 0;
}

static void lookup(void **state) {
    static const int32_t different[] = {1, 2, 3, 4, 5}, repeated[] = {7, 8, 9, 1, 2, 7, 8};
    int32_t out[8], expected[8], text[40];
    int found = 0, nothing = 0;
    (void)state;
    assert_int_equal(lookup_draft(different, 5, 3, 4, out), 0);
    assert_int_equal(lookup_draft(different, 1, 3, 4, out), 0);
    assert_int_equal(lookup_draft(repeated, 7, 3, 4, out), 4);
    assert_memory_equal(out, ((int32_t[]){9, 1, 2, 7}), sizeof(int32_t[4]));
    assert_int_equal(lookup_draft(repeated, 7, 1, 0, out), 0);
    assert_int_equal(lookup_draft((int32_t[]){5, 5}, 2, 3, 6, out), 6); /* into its own copies */
    for (int i = 0; i < 6; i++) assert_int_equal(out[i], 5);
    for (uint64_t trial = 0; trial < 2000; trial++) {
        const uint64_t key = random_key(trial, 9);
        const int32_t n = 1 + (int32_t)random_below(key, 0, 40),
                      most = (int32_t)random_below(key, 1, 8),
                      longest = 1 + (int32_t)random_below(key, 2, 5);
        for (int32_t i = 0; i < n; i++)
            text[i] = (int32_t)random_below(key, 3 + (uint64_t)i, 2 + (uint32_t)(trial % 7));
        const int32_t made = lookup_draft(text, n, longest, most, out);
        assert_int_equal(made, looked_up(text, n, longest, most, expected));
        assert_memory_equal(out, expected, sizeof *out * (size_t)made);
        found += made > 0;
        nothing += made == 0;
    }
    assert_true(found > 200 && nothing > 200);
}

/* ---- drawing: the exact distribution (E46) */

enum { IDS = 3, LENGTH = 4, OUTCOMES = 81 };

/* A distribution that depends on all that stands before; some ids never come. */
static void conditional(uint64_t seed, const int32_t *text, int32_t n, double *p) {
    uint64_t key = random_key(seed, (uint64_t)n);
    double sum = 0;
    for (int32_t i = 0; i < n; i++) key = random_key(key, (uint64_t)text[i]);
    for (int i = 0; i < IDS; i++) {
        p[i] = random_unit(key, (uint64_t)i) < 0.2 ? 0 : random_unit(key, 10 + (uint64_t)i);
        sum += p[i];
    }
    if (!(sum > 0)) sum = p[0] = 1;
    for (int i = 0; i < IDS; i++) p[i] /= sum;
}

struct proof {
    uint64_t draft, target;
    int32_t gamma, length;
    double out[OUTCOMES]; /* by the text, as a number of base IDS */
};

/* From a text of n tokens with this probability on: one pass, and what follows each end of it. */
static void prove(struct proof *proof, int32_t *text, int32_t n, double probability) {
    if (n == proof->length) {
        int index = 0;
        for (int32_t i = 0; i < n; i++) index = index * IDS + text[i];
        proof->out[index] += probability;
        return;
    }
    const int32_t room = proof->length - n - 1, drafts = proof->gamma < room ? proof->gamma : room;
    int32_t paths = 1;
    for (int32_t k = 0; k < drafts; k++) paths *= IDS;
    for (int32_t path = 0; path < paths; path++) { /* every way to draft */
        double q[IDS], p[IDS], reached = probability;
        int32_t draft[LENGTH], left = path;
        for (int32_t k = 0; k < drafts; k++, left /= IDS) draft[k] = left % IDS;
        for (int32_t k = 0; k < drafts; k++) {
            memcpy(text + n, draft, sizeof *draft * (size_t)k);
            conditional(proof->draft, text, n + k, p);
            reached *= p[draft[k]];
        }
        for (int32_t k = 0; k <= drafts && reached > 0; k++) {
            memcpy(text + n, draft, sizeof *draft * (size_t)k);
            conditional(proof->target, text, n + k, q);
            double keeps = 0;
            if (k < drafts) {
                conditional(proof->draft, text, n + k, p);
                keeps = rejection_keeps(p[draft[k]], q[draft[k]]);
                rejection_residual(p, q, IDS, q);
            }
            for (int32_t x = 0; x < IDS; x++) {
                if (!(reached * (1 - keeps) * q[x] > 0)) continue;
                memcpy(text + n, draft, sizeof *draft * (size_t)k);
                text[n + k] = x;
                prove(proof, text, n + k + 1, reached * (1 - keeps) * q[x]);
            }
            reached *= keeps;
        }
    }
}

static void drawn_by_enumeration(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++)
        for (int32_t gamma = 1; gamma <= 4; gamma++) {
            /* A draft of its own, or the target's. */
            struct proof proof = {seed ? 100 + seed : 200, 200 + seed, gamma, LENGTH, {0}};
            int32_t text[LENGTH];
            double sum = 0;
            prove(&proof, text, 0, 1);
            for (int outcome = 0; outcome < OUTCOMES; outcome++) {
                double expected = 1, q[IDS];
                int left = outcome;
                for (int32_t i = LENGTH; i-- > 0; left /= IDS) text[i] = left % IDS;
                for (int32_t i = 0; i < LENGTH; i++) {
                    conditional(proof.target, text, i, q);
                    expected *= q[text[i]];
                }
                if (!(fabs(proof.out[outcome] - expected) < 1e-14))
                    fail_msg("seed %d, gamma %d, outcome %d: %.17g, the target's is %.17g",
                             (int)seed, (int)gamma, outcome, proof.out[outcome], expected);
                sum += proof.out[outcome];
            }
            assert_true(fabs(sum - 1) < 1e-13);
        }
}

static void the_rule_itself(void **state) {
    double p[4], q[4], out[4];
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        conditional(seed, NULL, 0, p);
        conditional(seed + 1000, NULL, 0, q);
        rejection_output(p, q, IDS, out);
        for (int i = 0; i < IDS; i++) assert_true(fabs(out[i] - q[i]) < 1e-15);
        double least = 0;
        for (int i = 0; i < IDS; i++) least += fmin(p[i], q[i]);
        assert_true(fabs(rejection_acceptance(p, q, IDS) - least) < 1e-15);
    }
    /* Ends of the draw: never an id of weight 0, whatever u is. */
    assert_int_equal(rejection_draw((double[]){0, 2, 0, 6, 0}, 5, 0), 1);
    assert_int_equal(rejection_draw((double[]){0, 2, 0, 6, 0}, 5, 0.2499999), 1);
    assert_int_equal(rejection_draw((double[]){0, 2, 0, 6, 0}, 5, 0.25), 3);
    assert_int_equal(rejection_draw((double[]){0, 2, 0, 6, 0}, 5, 1 - 0x1p-53), 3);
    assert_int_equal(rejection_draw((double[]){0, 0}, 2, 0.5), 0);
    assert_int_equal(rejection_draw((double[]){(double)NAN, (double)NAN}, 2, 0.5), 0);
    const float logits[] = {1, 3, 2};
    rejection_softmax(logits, 3, 0.5, p);
    assert_true(fabs(p[1] / p[0] - exp(4)) < 1e-12 * exp(4));
    assert_true(fabs(p[0] + p[1] + p[2] - 1) < 1e-15);
}

/* ---- drawing: real runs against exact probabilities */

enum { VOCAB = 5, DRAWN = 3, CELLS = 125, SEQUENCES = 4096 };
#define TEMPERATURE 0.8

/* What a model says behind a prompt of one token and n more. */
static void says(struct session *session, struct inputs *inputs, int32_t prompt,
                 const int32_t *more, int32_t n, double *p) {
    struct err err = {0};
    int32_t text[1 + DRAWN] = {prompt};
    float row[VOCAB];
    double sum = 0;
    memcpy(text + 1, more, sizeof *more * (size_t)n);
    const struct span span = {.rows = 1 + n, .tokens = text, .out = 1};
    session_set_length(session, 0, 0);
    inputs_clear(inputs);
    if (inputs_add(inputs, &span, 1, &err)) fail_msg("%s", err.text);
    inputs_upload(inputs);
    if (session_run(session, inputs, 0, &err)) fail_msg("%s", err.text);
    const struct tensor logits = session_logits(session, inputs_step(inputs, 0));
    session->model->device->kind->download(session->model->device, row, logits.data, sizeof row);
    for (int i = 0; i < VOCAB; i++) sum += p[i] = exp((double)row[i] / TEMPERATURE);
    for (int i = 0; i < VOCAB; i++) p[i] /= sum;
}

/* The chance of each way to go on by DRAWN tokens; first (VOCAB): of the next one. */
static void joint(struct device *device, const struct model_config *config, int32_t prompt,
                  double *out, double *first) {
    const struct session_spec spec = {
        .cache = {.n_seq = 1, .capacity = 8, .most_q = 8}, .most_rows = 8, .most_out = 1};
    struct model *model = NULL;
    struct session *session = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    double p[VOCAB];
    int code = model_create(&model, device, config, &err);
    if (!code) code = session_create(&session, model, config, &spec, &err);
    if (!code) code = inputs_create(&inputs, session, 1, 8, 1, &err);
    if (code) fail_msg("%s", err.text);
    for (int cell = 0; cell < CELLS; cell++) out[cell] = 1;
    for (int n = 0, before = 1; n < DRAWN; n++, before *= VOCAB)
        for (int prefix = 0; prefix < before; prefix++) {
            const int below = CELLS / before / VOCAB;
            int32_t text[DRAWN];
            for (int i = n, left = prefix; i-- > 0; left /= VOCAB) text[i] = left % VOCAB;
            says(session, inputs, prompt, text, n, p);
            if (!n) memcpy(first, p, sizeof p);
            for (int x = 0; x < VOCAB; x++)
                for (int k = 0; k < below; k++) out[(prefix * VOCAB + x) * below + k] *= p[x];
        }
    inputs_close(&inputs);
    session_close(&session);
    model_close(&model);
}

/* Pearson's statistic, in standard deviations above its mean; cells that expect fewer than five
   draws are one. */
static double departure(const double *p, const int *count) {
    double statistic = 0, rare = 0, rare_count = 0;
    int cells = 0;
    for (int i = 0; i < CELLS; i++) {
        const double expected = p[i] * SEQUENCES, more = count[i] - expected;
        if (expected < 5) {
            rare += expected;
            rare_count += count[i];
            continue;
        }
        statistic += more * more / expected;
        cells++;
    }
    if (rare > 0) {
        statistic += (rare_count - rare) * (rare_count - rare) / rare;
        cells++;
    }
    assert_true(cells > 10);
    return (statistic - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

static int cell_of(const int32_t *tokens) {
    return (tokens[0] * VOCAB + tokens[1]) * VOCAB + tokens[2];
}

static void drawn_by_real_runs(void **state) {
    static const char *const drafts[] = {"draft_layers=1 gamma=2", "draft_type=int4-tensor gamma=1",
                                         "draft=ngram gamma=2", "draft_layers=1 gamma=8"};
    (void)state;
    struct model_config config = tiny(NULL, NULL);
    config.shape.vocab = VOCAB;
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
        int count[CELLS] = {0}, plain[CELLS] = {0}, kept = 0;
        double exact[CELLS], other[CELLS], q[VOCAB], p[VOCAB];
        struct drive drive;
        drive_open_run(&drive, devices[1], &config, arena);
        const struct speculating *s =
            prepared(&drive, TEXT("prompt=1 tokens=3 batch=%d temperature=0.8 input=constant %s",
                                  SEQUENCES, drafts[i]));
        drive_execute(&drive);
        const int32_t prompt = *speculating_text(s, 0);
        for (int32_t k = 0; k < SEQUENCES; k++) {
            assert_int_equal(*speculating_text(s, k), prompt);
            count[cell_of(speculating_text(s, k) + 1)]++;
            plain[cell_of(s->plain + k * DRAWN)]++;
            kept += passes_of(s, k)[0].accepted > 0;
        }
        joint(devices[1], &config, prompt, exact, q);
        const double drawn = departure(exact, count), plainly = departure(exact, plain);
        if (!(drawn < 4 && plainly < 4))
            fail_msg("%s: %.2f (plainly %.2f) deviations from the target's distribution", drafts[i],
                     drawn, plainly);
        if (s->drafter) {
            joint(devices[1], &s->draft_config, prompt, other, p);
            assert_true(departure(other, count) > 20); /* of the draft's there is no trace */
            const double alpha = rejection_acceptance(p, q, VOCAB),
                         deviation = sqrt(alpha * (1 - alpha) / SEQUENCES);
            assert_true(alpha < 0.98);
            if (!(fabs((double)kept / SEQUENCES - alpha) < 4 * deviation))
                fail_msg("%s: %d of %d first drafts were kept, expected %.4f", drafts[i], kept,
                         SEQUENCES, alpha);
        }
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

/* Every sequence's last logits are those of its text alone, and a text that is not its own is
   found out. */
static void drawn_is_witnessed(void **state) {
    static const char *const drafts[] = {"draft_type=int4", "draft_layers=1", "draft=ngram"};
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 3; i++) {
            struct model_config config = tiny("kv_type", "bf16");
            struct drive drive;
            drive_open_run(&drive, devices[d], &config, arena);
            struct speculating *s = prepared(
                &drive, TEXT("prompt=6 tokens=11 batch=3 gamma=4 temperature=1 %s", drafts[i]));
            drive_execute(&drive);
            check_course(&drive, s);
            const struct witness w = drive_witness(&drive);
            assert_true(w.holds && w.identical && w.hash == w.plain_hash && w.max_error == 0);
            assert_int_equal(w.compared, 3 * 11);
            drive_execute(&drive);
            assert_true(drive_witness(&drive).hash == w.hash);
            speculating_text(s, 1)[8] ^= 1;
            const struct witness spoiled = drive_witness(&drive);
            assert_false(spoiled.holds || spoiled.identical);
            assert_int_equal(spoiled.first_difference, 6 + 11 - 1);
            drive_dispose(&drive);
            drive_close_run(&drive);
        }
}

/* ---- counts, work and memory */

/* E44 at a declared acceptance: 3,000 tokens of a device that computes fast. */
static void oracle_follows_the_formula(void **state) {
    static const double alphas[] = {0.3, 0.6, 0.9};
    (void)state;
    struct model_config config = tiny(NULL, NULL);
    config.shape.n_layers = 1;
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        drive_open_run(&drive, devices[1], &config, arena);
        const double alpha = alphas[i];
        const struct speculating *s =
            prepared(&drive, TEXT("prompt=2 tokens=3000 gamma=4 draft=oracle alpha=%g", alpha));
        drive_execute(&drive);
        check_greedy(&drive, s);
        const struct values v = drive_report(&drive);
        /* 1 + a + a^2 + a^3 + a^4, and the deviation of tokens in a pass. */
        double mean = 1, square = 0, chance = 1;
        for (int k = 1; k <= 4; k++) mean += pow(alpha, k);
        for (int k = 0; k <= 4; k++, chance *= alpha)
            square += chance * (k < 4 ? 1 - alpha : 1) * (k + 1) * (k + 1);
        const double error = sqrt((square - mean * mean) / s->n_passes[0]);
        if (!(fabs(values_get(&v, "tokens_per_pass") - mean) < 4 * error))
            fail_msg("alpha %g: %.4f tokens a pass, expected %.4f", alpha,
                     values_get(&v, "tokens_per_pass"), mean);
        assert_true(values_get(&v, "acceptance_low") < alpha &&
                    alpha < values_get(&v, "acceptance_high"));
        for (int k = 1; k <= 4; k++) {
            const double at = values_get(&v, TEXT("acceptance_%d", k));
            assert_true(fabs(at - alpha) <
                        4.5 * sqrt(alpha * (1 - alpha) / (s->n_passes[0] * pow(alpha, k - 1))));
        }
        assert_true(isnan(values_get(&v, "acceptance_5")));
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

/* The formulas of what is reported, by hand: passes and times put in. */
static void reported(void **state) {
    (void)state;
    struct model_config config = tiny(NULL, NULL);
    struct drive drive;
    drive_open_run(&drive, devices[1], &config, arena);
    struct speculating *s = prepared(&drive, "prompt=3 tokens=10 gamma=4 draft_type=int8");
    drive_execute(&drive);
    const struct pass passes[] = {{3, 4, 4}, {8, 4, 1}, {10, 2, 0}, {11, 1, 1}};
    memcpy(s->passes, passes, sizeof passes);
    s->n_passes[0] = 4;
    s->times = (struct speculating_times){
        .plain = 2 * 10 * 100, .draft = 2 * 11 * 20, .verify = 2 * 4 * 130, .executions = 2};
    const struct values v = drive_report(&drive);
    const double alpha = 6.0 / 8, a2 = alpha * alpha, a3 = a2 * alpha, a4 = a3 * alpha;
    const double e = (2 * (1 + alpha + a2 + a3 + a4) + (1 + alpha + a2) + (1 + alpha)) / 4;
    const struct {
        const char *name;
        double value;
    } expected[] = {{"acceptance", alpha},
                    {"tokens_per_pass", 10 / 4.0},
                    {"drafts_per_pass", 11 / 4.0},
                    {"undrafted", 0},
                    {"acceptance_1", 3 / 4.0},
                    {"acceptance_2", 1 / 2.0},
                    {"acceptance_4", 1},
                    {"draft_cost", 0.2},
                    {"verify_cost", 1.3},
                    {"formula_tokens_per_pass", e},
                    {"predicted", e / (11 / 4.0 * 0.2 + 1)},
                    {"explained", e / (11 / 4.0 * 0.2 + 1.3)},
                    {"break_even_cost", (e - 1) / (11 / 4.0)},
                    {"speedup", 1000.0 / (220 + 520)}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!(fabs(values_get(&v, expected[i].name) - expected[i].value) < 1e-12))
            fail_msg("%s is %.15g, expected %.15g", expected[i].name,
                     values_get(&v, expected[i].name), expected[i].value);
    /* Wilson at 6 of 8: (p + zz/2n +- z sqrt(p (1 - p) / n + zz/4nn)) / (1 + zz/n). */
    assert_true(fabs(values_get(&v, "acceptance_low") - 0.40927) < 1e-4);
    assert_true(fabs(values_get(&v, "acceptance_high") - 0.92853) < 1e-4);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

/* ref counts multiply-adds: the ledger of what was done is half its FLOPs, to the last one. */
static void work_is_what_was_done(void **state) {
    static const char *const drafts[] = {"draft_type=int8",
                                         "draft_layers=1 temperature=1",
                                         "draft=ngram",
                                         "draft=oracle alpha=0.5",
                                         "draft=oracle alpha=0.7 draft_layers=1",
                                         "draft=oracle alpha=0",
                                         "draft=model"};
    (void)state;
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        for (int windowed = 0; windowed < 2; windowed++) {
            struct model_config config = tiny("window", windowed ? "5" : "0");
            struct work work[MAX_PHASES] = {{0}};
            struct drive drive;
            drive_open_run(&drive, devices[0], &config, arena);
            const struct speculating *s =
                prepared(&drive, TEXT("prompt=4 tokens=14 batch=3 gamma=3 %s", drafts[i]));
            const struct op_counts before = *devices[0]->counts;
            drive_execute(&drive);
            const struct op_counts *after = devices[0]->counts;
            assert_true(drive.run.workload->worked(drive.self, work));
            const double macs =
                (double)(after->linear + after->attention - before.linear - before.attention);
            const double flops = work[0].flops + work[1].flops + work[2].flops;
            if (!(fabs(flops - 2 * macs) < 1e-9 * flops))
                fail_msg("%s: %.0f FLOPs by the ledger, %.0f were done", drafts[i], flops,
                         2 * macs);
            double drafted = 0;
            for (int32_t q = 0; q < 3; q++)
                for (int32_t k = 0; k < s->n_passes[q]; k++) drafted += passes_of(s, q)[k].drafted;
            assert_true(work[0].items == 3 * 14 && work[2].items == 3 * 14);
            assert_true(work[1].items == drafted);
            /* The plan's is no less: as if nothing were accepted. */
            for (int k = 0; k < 3; k++)
                assert_true(drive.plan.work[k].flops >= work[k].flops * (1 - 1e-9) &&
                            drive.plan.work[k].items >= work[k].items);
            drive_dispose(&drive);
            drive_close_run(&drive);
        }
}

/* What prepare takes is what was planned, to the byte; what fills contexts has gone. */
static void memory_is_what_was_planned(void **state) {
    static const char *const drafts[] = {"draft_type=int8", "draft_layers=1", "draft=ngram"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct model_config config = tiny(NULL, NULL);
        struct tracker *tracker = devices[0]->tracker;
        struct drive drive;
        const int64_t before = tracker_live(tracker, -1) - tracker_live(tracker, MEM_WORKSPACE);
        drive_open_run(&drive, devices[0], &config, arena);
        const struct speculating *s =
            prepared(&drive, TEXT("prompt=6 tokens=9 batch=2 gamma=3 %s", drafts[i]));
        const struct session_spec alone = speculating_alone(&s->spec);
        int64_t filling[N_CLASSES] = {0}, planned = 0;
        contexts_bytes(&config, &alone, filling);
        for (int c = 0; c < N_CLASSES; c++) planned += drive.plan.bytes[c] - filling[c];
        assert_int_equal(tracker_live(tracker, -1) - tracker_live(tracker, MEM_WORKSPACE) - before,
                         planned);
        drive_dispose(&drive);
        drive_close_run(&drive);
    }
}

static void words_are_those_of_models(void **state) {
    const struct option *type = option_find(workload_find("speculative")->params, "draft_type");
    int n = 0;
    (void)state;
    assert_string_equal(type->words[0], "same");
    for (; weight_format_names[n]; n++)
        assert_string_equal(type->words[n + 1], weight_format_names[n]);
    assert_null(type->words[n + 1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_token_changes),
                                       cmocka_unit_test(nothing_and_everything_is_accepted),
                                       cmocka_unit_test(every_cache),
                                       cmocka_unit_test(lookup),
                                       cmocka_unit_test(drawn_by_enumeration),
                                       cmocka_unit_test(the_rule_itself),
                                       cmocka_unit_test(drawn_by_real_runs),
                                       cmocka_unit_test(drawn_is_witnessed),
                                       cmocka_unit_test(oracle_follows_the_formula),
                                       cmocka_unit_test(reported),
                                       cmocka_unit_test(work_is_what_was_done),
                                       cmocka_unit_test(memory_is_what_was_planned),
                                       cmocka_unit_test(words_are_those_of_models)};
    arena = arena_create();
    for (int d = 0; d < 2; d++) devices[d] = drive_open(device_names[d], arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int d = 0; d < 2; d++) device_close(&devices[d]);
    arena_close(&arena);
    return failed;
}
