/* SPDX-License-Identifier: Apache-2.0 */
/* `quality` against an independent program (quality_golden.py): what it reports of rounded weights,
 * and its intervals; what it keeps of the reference, what it refuses, and by which rule answers
 * count. */
#include "tests/unit/workloads/drive.h"

#include <unistd.h>

#include "base/interval.h"
#include "kernels/quant.h"
#include "workloads/common/judging.h"

static struct arena *arena;
static struct device *devices[2];
static const char *const device_names[2] = {"ref", "cpu"};

static int open_devices(void **state) {
    (void)state;
    arena = arena_create();
    for (int i = 0; i < 2; i++) devices[i] = drive_open(device_names[i], arena);
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) device_close(&devices[i]);
    arena_close(&arena);
    return 0;
}

static struct model_config tiny(const char *type) {
    struct model_config config = drive_config("tiny", arena);
    drive_model(&config, "type", type, arena);
    drive_model(&config, "kv_type", "f32", arena);
    drive_model(&config, "activation", "f32", arena);
    config.activation = DT_F32;
    return config;
}

/* ---- against the independent program */

static void expect_close(const char *where, const char *name, double got, double expected) {
    /* Counts and shares are exact; sums of f32 differ in their order, and of a code in a thousand
       the scale's last bit decides. */
    const double allowed = 2e-3 * fabs(expected) + 1e-9;
    if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= allowed))
        fail_msg("%s: %s is %.9g, expected %.9g", where, name, got, expected);
}

static void check_model(int d, const char *type, const char *settings, char *expected) {
    const struct model_config config = tiny(type);
    struct drive drive;
    struct err err = {0};
    char *rest;
    drive_open_run(&drive, devices[d], &config, arena);
    if (drive_prepare(&drive, "quality", settings, &err)) fail_msg("%s: %s", settings, err.text);
    drive_execute(&drive);
    const struct values values = drive_report(&drive);
    const char *where = arena_printf(arena, "%s %s on %s", type, settings, device_names[d]);
    int n = 0;
    for (char *word = strtok_r(expected, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest), n++) {
        char *value = strchr(word, '=');
        double v;
        *value++ = 0;
        assert_true(parse_f64(value, &v));
        expect_close(where, word, values_get(&values, word), v);
    }
    assert_true(n > 10);
    const struct witness w = drive_witness(&drive);
    assert_int_equal(w.contract, CONTRACT_LOSSY);
    assert_false(w.identical);
    assert_true(w.max_error > 0);
    drive_dispose(&drive);
    drive_close_run(&drive);
}

static void check_blocks(const char *settings, const char *expected) {
    long long n, block, seed;
    double lo, hi;
    char low[40], high[40];
    assert_int_equal(sscanf(settings, "%lld %lld %lld", &n, &block, &seed), 3);
    assert_int_equal(sscanf(expected, "lo=%39s hi=%39s", low, high), 2);
    double *x = must_alloc(sizeof *x * (size_t)n), expected_lo = (double)NAN,
           expected_hi = (double)NAN;
    for (long long i = 0; i < n; i++)
        x[i] = (double)((uint32_t)((uint64_t)i * 2654435761u) >> 8) / 16777216.0 +
               (double)(i / 50 % 3);
    interval_blocks(x, (size_t)n, (size_t)block, (uint64_t)seed, &lo, &hi);
    if (strcmp(low, "nan") != 0)
        assert_true(parse_f64(low, &expected_lo) && parse_f64(high, &expected_hi));
    if (isnan(expected_lo) ? !isnan(lo)
                           : !(fabs(lo - expected_lo) < 1e-9 && fabs(hi - expected_hi) < 1e-9))
        fail_msg("blocks %s: [%.12g, %.12g], expected [%s, %s]", settings, lo, hi, low, high);
    free(x);
}

static void as_the_program_says(void **state) {
    const char *root = getenv("SOURCE_DIR");
    struct err err = {0};
    char *text, *rest, *field[4];
    size_t len;
    int models = 0, intervals = 0;
    (void)state;
    if (file_read(arena_printf(arena, "%s/tests/golden/quality_golden.tsv", root ? root : "."),
                  1 << 20, &text, &len, &err))
        fail_msg("%s", err.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int n = 0;
        if (*line == '#') continue;
        for (char *at = line; at && n < 4;) field[n++] = strsep(&at, "\t");
        if (!strcmp(field[0], "blocks")) {
            check_blocks(field[1], field[2]);
            intervals++;
        } else {
            assert_int_equal(n, 4);
            for (int d = 0; d < 2; d++)
                check_model(d, field[1], field[2], arena_text(arena, field[3]));
            models++;
        }
    }
    assert_true(models >= 8 && intervals >= 6);
    free(text);
}

/* ---- what holds without a program */

static struct values judged(const struct model_config *config, const char *settings,
                            struct witness *w) {
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, devices[1], config, arena);
    if (drive_prepare(&drive, "quality", settings, &err)) fail_msg("%s: %s", settings, err.text);
    drive_execute(&drive);
    const struct values values = drive_report(&drive);
    if (w) *w = drive_witness(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    return values;
}

#define SMALL "tokens=64 window=16 greedy=12 prompt=8 "

/* E39: agreement(reference, reference) = 1. */
static void reference_agrees_with_itself(void **state) {
    static const char *const ways[] = {SMALL "reference=same", SMALL "reference=f32",
                                       SMALL "reference=same reference_kv=f32"};
    struct model_config config = tiny("f32");
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct witness w;
        const struct values v = judged(&config, ways[i], &w);
        assert_true(w.identical && w.hash == w.plain_hash && w.first_difference == -1);
        assert_true(values_get(&v, "ppl_ratio") == 1 && values_get(&v, "kl") < 1e-12);
        assert_true(values_get(&v, "top1") == 1 && values_get(&v, "greedy") == 1);
        assert_true(values_get(&v, "greedy_lo") < 0.8 && values_get(&v, "greedy_hi") == 1);
        assert_true(values_get(&v, "first_difference") == 4); /* of four tokens each */
        assert_true(values_get(&v, "weight_error") == 0 && values_get(&v, "weight_bits") == 32);
    }
}

static void caches_are_judged(void **state) {
    struct model_config config = tiny("f32");
    double before = 0;
    (void)state;
    drive_model(&config, "kv_type", "int8", arena);
    struct values v = judged(&config, SMALL "reference=same reference_kv=f32", NULL);
    assert_true(values_get(&v, "kl") > 0 && values_get(&v, "kv_bits") == 8 + 32.0 / 16);
    config = tiny("f32");
    for (int bits = 8; bits >= 2; bits -= 3) { /* the fewer, the worse */
        static const char *const parts[] = {"keys", "values", "both"};
        double kl[3];
        for (int p = 0; p < 3; p++) {
            v = judged(&config,
                       arena_printf(arena,
                                    "tokens=64 window=32 greedy=0 reference=same "
                                    "kv_scheme=symmetric kv_bits=%d kv_part=%s",
                                    bits, parts[p]),
                       NULL);
            kl[p] = values_get(&v, "kl");
            assert_true(kl[p] > 0 && values_get(&v, "kv_error") > 0);
            assert_true(values_get(&v, "kv_bits") == (p < 2 ? (bits + 1 + 32) / 2.0 : bits + 1));
        }
        assert_true(kl[2] > before && kl[0] != kl[1]);
        before = kl[2];
    }
    /* int8 with a scale for each token and head is what the cache type does. */
    v = judged(&config, "tokens=64 window=32 greedy=0 reference=same kv_scheme=symmetric", NULL);
    const double simulated = values_get(&v, "kl");
    drive_model(&config, "kv_type", "int8", arena);
    v = judged(&config, "tokens=64 window=32 greedy=0 reference=same reference_kv=f32", NULL);
    assert_true(fabs(simulated - values_get(&v, "kl")) < 0.02 * simulated);
}

/* Other types of one model are shown the same and find the reference there. */
static void the_reference_is_kept(void **state) {
    struct model_config config = tiny("int8");
    struct drive drive;
    struct err err = {0};
    double kl[2];
    (void)state;
    drive_open_run(&drive, devices[1], &config, arena);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(drive_prepare(&drive, "quality", SMALL, &err), 0);
        assert_int_equal(drive.filled, 2); /* the reference; what rounding did to the weights */
        assert_int_equal(drive.found, 2 * i);
        drive_execute(&drive);
        const struct values v = drive_report(&drive);
        kl[i] = values_get(&v, "kl");
        drive_dispose(&drive);
    }
    assert_true(kl[0] == kl[1] && kl[0] > 0);
    drive_close_run(&drive);
}

static void windows_cover_the_text_once(void **state) {
    (void)state;
    for (int32_t window = 2; window < 20; window++)
        for (int32_t stride = 1; stride <= window; stride++) {
            const int32_t shared = window - stride - 1;
            const struct windows w = {
                .window = window, .stride = stride, .unscored = shared > 0 ? shared : 0, .n = 5};
            int64_t before = w.unscored;
            if (windows_scored(&w) < 1) continue;
            for (int64_t p = 0; p < windows_positions(&w); p++) {
                const int64_t target = windows_target(&w, p);
                /* One follows the other; where windows only touch, the first token has no past. */
                assert_true(target == before + 1 ||
                            (stride == window && target == before + 2 && target % window == 1));
                before = target;
            }
            assert_int_equal(before, windows_tokens(&w) - 1);
        }
}

static void refused(const char *settings, const char *type) {
    const struct model_config config = tiny(type);
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, devices[1], &config, arena);
    if (drive_prepare(&drive, "quality", settings, &err) != ERR_INPUT)
        fail_msg("%s was not refused", settings);
    drive_close_run(&drive);
}

static void what_cannot_be_is_refused(void **state) {
    static const char *const settings[] = {
        "tokens=32 window=64",
        "window=32 stride=33",
        "window=32 unscored=31",
        "window=32 stride=8 unscored=22",
        "text=prose",
        "questions=questions",
        "greedy=10 continuations=3",
        "greedy=12 tokens=64 window=32 prompt=65",
        "kv_part=keys greedy=0",
        "kv_scheme=affine",
        "text=no-such-text",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) refused(settings[i], "f32");
    struct model_config config = tiny("f32");
    drive_model(&config, "kv_type", "bf16", arena);
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, devices[1], &config, arena);
    assert_int_equal(drive_prepare(&drive, "quality", "kv_scheme=affine greedy=0", &err),
                     ERR_INPUT);
    drive_close_run(&drive);
}

static void ids_come_from_a_file(void **state) {
    static const struct {
        const char *content, *says; /* NULL: it is read */
    } files[] = {{"1 2 3\n4 5 6 7 8\t9 10 11 12 13 14 15 16", NULL},
                 {"1 2 3", "3 tokens"},
                 {"1 2 x 4", "'x 4'"},
                 {"1 2 288 4", "token 288"},
                 {"1 -2 3", "token -2"},
                 {"1 99999999999999999999999 3", "outside"}};
    const struct model_config config = tiny("f32");
    char folder[] = "/tmp/bench-quality-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    const char *path = arena_printf(arena, "%s/text.ids", folder);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct judged_text text;
        struct err err = {0};
        assert_int_equal(file_write(path, files[i].content, strlen(files[i].content), &err), 0);
        const int code = judged_read(&text, path, "", NULL, &config, 1, 16, &err);
        if (files[i].says) {
            assert_int_equal(code, ERR_INPUT);
            if (!strstr(err.text, files[i].says)) fail_msg("%s", err.text);
        } else {
            assert_int_equal(code, 0);
            for (int32_t k = 0; k < 16; k++) assert_int_equal(text.tokens[k], k + 1);
        }
        judged_close(&text);
    }
    assert_int_equal(file_write(path, "", 0, &(struct err){0}), 0);
    assert_int_equal(judged_check(path, &(struct err){0}), ERR_INPUT);
    remove(path);
    remove(folder);
}

/* ---- questions */

static void answers_count_as_whole_words(void **state) {
    static const char *const paris[] = {"Paris"}, *const seven[] = {"seven", "7"},
                             *const dioxide[] = {"carbon dioxide", "CO2"};
    static const struct {
        const char *const *answers;
        int32_t n;
        const char *said;
        bool right;
    } cases[] = {{paris, 1, "The capital of France is Paris.", true},
                 {paris, 1, "PARIS", true},
                 {paris, 1, "It is Parisian", false},
                 {paris, 1, "comparison", false},
                 {paris, 1, "paris-plage", true},
                 {paris, 1, "pari", false},
                 {paris, 1, "", false},
                 {paris, 1, "\xc3\xa9paris\xe2\x80\x9d", true},
                 {seven, 2, "There are 7 days", true},
                 {seven, 2, "77", false},
                 {seven, 2, "7\xc2\xb0", true},
                 {seven, 2, "Seventy or 17; seven!", true},
                 {dioxide, 2, "It is Carbon  dioxide", false},
                 {dioxide, 2, "carbon dioxide", true},
                 {dioxide, 2, "co2,", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct question q = {.text = "?", .answers = cases[i].answers, .n = cases[i].n};
        if (question_answered(&q, cases[i].said, strlen(cases[i].said)) != cases[i].right)
            fail_msg("'%s' is judged otherwise", cases[i].said);
    }
}

static void files_of_questions(void **state) {
    static const struct {
        const char *content, *says;
    } files[] = {{"? a\n= b\n", NULL},
                 {"# x\r\n\r\n? a \r\n = b\r\n=c", NULL},
                 {"", "no line"},
                 {"= b\n", ":1: an answer before"},
                 {"? a\n", "last question"},
                 {"? a\n? b\n= c\n", ":2: the question before"},
                 {"? a\n=\n", ":2: nothing follows '='"},
                 {"?\n", ":1: nothing follows '?'"},
                 {"a\n", ":1: a line begins with"}};
    char path[] = "/tmp/bench-questions-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct questions *q = NULL;
        struct err err = {0};
        assert_int_equal(file_write(path, files[i].content, strlen(files[i].content), &err), 0);
        const int code = questions_read(&q, path, &err);
        if (!files[i].says) {
            assert_int_equal(code, 0);
            assert_int_equal(questions_count(q), 1);
            assert_string_equal(questions_at(q, 0)->text, "a");
            assert_string_equal(questions_at(q, 0)->answers[0], "b");
            assert_int_equal(questions_at(q, 0)->n, 1 + i);
        } else {
            assert_int_equal(code, ERR_INPUT);
            if (!strstr(err.text, files[i].says)) fail_msg("%s", err.text);
        }
        questions_close(&q);
    }
    remove(path);
    /* Ours. */
    struct questions *q = NULL;
    struct text ours = {0};
    judged_path("questions", &ours);
    assert_int_equal(questions_read(&q, ours.data, &(struct err){0}), 0);
    assert_int_equal(questions_count(q), 16);
    questions_close(&q);
    text_free(&ours);
}

static void no_number_is_told(void **state) {
    float ours[] = {1, 2, 3}, reference[] = {1, 2, 3};
    struct verdict v;
    (void)state;
    assert_true(verdict_of(ours, reference, 3, 0, &v));
    assert_true(v.top == 2 && v.kl < 1e-15 && fabs(v.nll - v.nll_reference) < 1e-15);
    ours[1] = (float)NAN;
    assert_false(verdict_of(ours, reference, 3, 0, &v));
    ours[1] = INFINITY;
    assert_false(verdict_of(ours, reference, 3, 0, &v));
    ours[1] = 2;
    reference[0] = -INFINITY;
    assert_false(verdict_of(ours, reference, 3, 0, &v));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_program_says),
        cmocka_unit_test(reference_agrees_with_itself),
        cmocka_unit_test(caches_are_judged),
        cmocka_unit_test(the_reference_is_kept),
        cmocka_unit_test(windows_cover_the_text_once),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(ids_come_from_a_file),
        cmocka_unit_test(answers_count_as_whole_words),
        cmocka_unit_test(files_of_questions),
        cmocka_unit_test(no_number_is_told),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
