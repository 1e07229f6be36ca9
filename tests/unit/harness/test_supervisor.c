/* SPDX-License-Identifier: Apache-2.0 */
/* The whole path within one process: protocol, schedule, worker, journal, file; on the fake device.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/random.h"
#include "base/text.h"
#include "harness/head.h"
#include "harness/sample_log.h"
#include "harness/supervisor.h"
#include "results/store.h"
#include "results/summary.h"

struct run_rig {
    char folder[64], journal[96], h5[96];
    struct protocol *protocol;
    struct tables *result;
    struct supervision s;
};

static void rig_run(struct run_rig *r, const char *text, const char *const *sets, size_t n_sets,
                    const struct tables *earlier) {
    struct err err = {0};
    struct problems *problems = problems_create();
    struct protocol_request request = {
        .path = "test.toml", .text = text, .sets = sets, .n_sets = n_sets};
    struct journal *journal = NULL;
    struct facts none = {0};
    if (!r->folder[0]) {
        snprintf(r->folder, sizeof r->folder, "/tmp/bench-supervisor-XXXXXX");
        assert_non_null(mkdtemp(r->folder));
        snprintf(r->journal, sizeof r->journal, "%s/x.journal", r->folder);
        snprintf(r->h5, sizeof r->h5, "%s/x.h5", r->folder);
    }
    int code = protocol_load(&r->protocol, &request, problems, &err);
    if (code || !r->protocol) {
        struct text out = {0};
        problems_print(problems, &out);
        fail_msg("%s %s", err.text, out.data ? out.data : "");
    }
    problems_close(&problems);
    if (earlier) {
        assert_int_equal(journal_resume(&journal, r->journal, &err), 0);
    } else {
        struct tables *head = tables_create();
        head_tables(r->protocol, &none, head);
        assert_int_equal(journal_create(&journal, r->journal, &err), 0);
        assert_int_equal(journal_append(journal, JOURNAL_HEAD, head, &err), 0);
        tables_close(&head);
    }
    r->s = (struct supervision){.protocol = r->protocol,
                                .journal = journal,
                                .no_isolate = true,
                                .quiet = true,
                                .earlier = earlier};
    code = supervise(&r->s, &err);
    if (code) fail_msg("%s", err.text);
    journal_close(&journal);
    code = store_build(r->journal, r->h5, &err);
    if (code) fail_msg("%s", err.text);
    code = store_read(&r->result, r->h5, NULL, &err);
    if (code) fail_msg("%s", err.text);
}

static void rig_end(struct run_rig *r) {
    tables_close(&r->result);
    protocol_close(&r->protocol);
    unlink(r->journal);
    unlink(r->h5);
    rmdir(r->folder);
}

static const char text[] =
    "title = 't'\nquestion = 'q'\n"
    "workload = { name = 'null' }\n"
    "device = { kind = 'fake' }\n"
    "[measure]\nrounds = 4\nstop = 'samples'\nsamples = 12\nbudget = '1000 s'\n"
    "[[sweep]]\ndevice.time = ['1 ms', '2 ms', '5 ms']\n";

static void test_exact_run(void **state) {
    (void)state;
    struct run_rig r = {0};
    rig_run(&r, text, NULL, 0, NULL);
    assert_true(r.s.complete);
    const struct table *visits = tables_peek(r.result, "visits"),
                       *samples = tables_peek(r.result, "samples");
    assert_int_equal(table_rows(visits), 4 * 4);
    assert_int_equal(table_rows(samples), 4 * 4 * 12);
    double end = 0; /* on this clock a visit begins where the one before ended */
    for (int64_t i = 0; i < table_rows(visits); i++) {
        assert_true(fabs(table_real(visits, i, "t0") - end) < 1e-6);
        end = table_real(visits, i, "t0") + table_real(visits, i, "seconds");
    }
    static const double ms[] = {1, 2, 5};
    for (int64_t p = 0; p < 3; p++) {
        assert_true(fabs(summary_get(r.result, p, "time", "mean") - ms[p]) < 1e-12);
        assert_string_equal(table_text(tables_peek(r.result, "points"), p, "state"), "ok");
        assert_int_equal(summary_get(r.result, p, "time", "n_rounds"), 4);
        assert_int_equal(summary_get(r.result, p, "time", "n"), 4 * 12); /* the control stays out */
    }
    rig_end(&r);
}

/* The order of visits moves no row, also when the device remembers what came before. */
static void test_order_moves_nothing(void **state) {
    (void)state;
    double mean[3][3], half[3][3];
    for (int k = 0; k < 3; k++) {
        char seed[32];
        snprintf(seed, sizeof seed, "measure.seed=%d", k + 1);
        const char *const sets[] = {seed, "device.noise=0.05", "device.noise_kind=ar1",
                                    "device.round_noise=0.02", "measure.rounds=8"};
        struct run_rig r = {0};
        rig_run(&r, text, sets, 5, NULL);
        for (int64_t p = 0; p < 3; p++) {
            mean[k][p] = summary_get(r.result, p, "time", "mean");
            half[k][p] = (summary_get(r.result, p, "time", "ci_hi") -
                          summary_get(r.result, p, "time", "ci_lo")) /
                         2;
            assert_true(half[k][p] > 0);
        }
        rig_end(&r);
    }
    for (int p = 0; p < 3; p++)
        for (int k = 1; k < 3; k++)
            assert_true(fabs(mean[k][p] - mean[0][p]) < 2 * (half[k][p] + half[0][p]));
}

/* Visits that a journal holds are not measured again; the rest is. */
static void test_resume(void **state) {
    (void)state;
    struct run_rig r = {0};
    struct err err = {0};
    rig_run(&r, text, NULL, 0, NULL);
    /* Cut the journal behind its fifth visit. */
    char *data = NULL;
    size_t len, at = 0;
    assert_int_equal(file_read(r.journal, 1 << 26, &data, &len, &err), 0);
    for (int frame = 0; frame < 1 + 5; frame++) {
        uint64_t body;
        memcpy(&body, data + at + 8, 8);
        at += 24 + body;
    }
    assert_true(at < len);
    assert_int_equal(truncate(r.journal, (off_t)at + 13), 0); /* and a torn one */
    free(data);
    struct tables *earlier = tables_create();
    int64_t visits = 0;
    int torn = 0;
    assert_int_equal(journal_read(r.journal, earlier, &visits, &torn, &err), 0);
    assert_int_equal(visits, 5);
    assert_int_equal(torn, 1);
    tables_close(&r.result);
    protocol_close(&r.protocol);
    rig_run(&r, text, NULL, 0, earlier);
    assert_true(r.s.complete);
    const struct table *t = tables_peek(r.result, "visits");
    assert_int_equal(table_rows(t), 16);
    for (int64_t i = 1; i < 16; i++) /* the time of a resumed run goes on */
        assert_true(table_real(t, i, "t0") > table_real(t, i - 1, "t0"));
    bool seen[16] = {0};
    for (int64_t i = 0; i < 16; i++) {
        int64_t v = table_int(t, i, "visit");
        assert_true(v >= 0 && v < 16 && !seen[v]);
        seen[v] = true;
    }
    tables_close(&earlier);
    rig_end(&r);
}

/* 3 s executions under a 20 s budget: it ends within the budget and one execution, and says why
 * there are fewer rounds. */
static void test_budget_ends(void **state) {
    (void)state;
    static const char *const sets[] = {"sweep.device.time=['3 s']", "measure.stop=precision",
                                       "measure.budget=20 s", "measure.rounds=0"};
    struct run_rig r = {0};
    static const char one[] = "title = 't'\nquestion = 'q'\nworkload = { name = 'null' }\n"
                              "device = { kind = 'fake' }\n[measure]\nbudget = '20 s'\n"
                              "[[sweep]]\ndevice.time = ['1 ms']\n";
    rig_run(&r, one, sets, 3, NULL);
    double seconds = 0;
    const struct table *t = tables_peek(r.result, "visits");
    for (int64_t i = 0; i < table_rows(t); i++) seconds += table_real(t, i, "seconds");
    assert_true(seconds <= 20 + 3.001);
    assert_true(seconds > 0);
    assert_non_null(strstr(r.s.why_ended, "budget"));
    rig_end(&r);
}

/* Memory of the device is too small: the row says so and has no number, the others stand. */
static void test_oom_row(void **state) {
    (void)state;
    static const char tight[] =
        "title = 't'\nquestion = 'q'\n"
        "device = { kind = 'fake', memory = '2 MB' }\nmodel = { shape = 'tiny', type = 'f32' }\n"
        "[measure]\nrounds = 2\nstop = 'samples'\nsamples = 5\n"
        "[[case]]\nname = 'fits'\nworkload = { name = 'decode', context = 8, batch = 1 }\n"
        "[[case]]\nname = 'large'\nworkload = { name = 'decode', context = 4000, batch = 64 }\n";
    struct run_rig r = {0};
    rig_run(&r, tight, NULL, 0, NULL);
    const struct table *t = tables_peek(r.result, "points");
    assert_string_equal(table_text(t, 0, "state"), "ok");
    assert_string_equal(table_text(t, 1, "state"), "oom");
    assert_true(table_text(t, 1, "reason")[0] != 0);
    assert_true(isnan(summary_get(r.result, 1, "time", "mean")));
    assert_false(isnan(summary_get(r.result, 0, "time", "mean")));
    assert_int_equal(summary_exit(r.result), 3);
    rig_end(&r);
}

/* The log of a row's first visit, replayed: the row's peak to the byte. Neither the witness's own
 * sessions nor the weights of another row are in it. */
static void test_peak_is_the_rows_own(void **state) {
    (void)state;
    static const char mixed[] =
        "title = 't'\nquestion = 'q'\ndevice = { kind = 'ref' }\n"
        "[measure]\nrounds = 2\nstop = 'samples'\nsamples = 2\nwarmups = 1\n"
        "[[case]]\nname = 'steps'\nworkload = { name = 'generate', prompt = 8, tokens = 4 }\n"
        "model = { shape = 'tiny', type = 'f32' }\n"
        "[[case]]\nname = 'cache'\nworkload = { name = 'kv_memory', batch = 1, length = 4 }\n"
        "model = { shape = 'tiny', type = 'bf16' }\n";
    struct run_rig r = {0};
    rig_run(&r, mixed, NULL, 0, NULL);
    const struct table *visits = tables_peek(r.result, "visits"),
                       *log = tables_peek(r.result, "memory"),
                       *points = tables_peek(r.result, "points");
    int64_t most_aside = 0;
    for (int64_t i = 0; i < table_rows(visits); i++) {
        int64_t visit = table_int(visits, i, "visit"), point = table_int(visits, i, "point");
        int64_t live = 0, peak = 0, foreign = 0;
        if (table_int(visits, i, "round") > 0 || table_int(visits, i, "control") == 1) continue;
        for (int64_t e = 0; e < table_rows(log); e++) {
            if (table_int(log, e, "visit") != visit) continue;
            int64_t bytes = table_int(log, e, "bytes");
            live += bytes;
            if (!strcmp(table_text(log, e, "phase"), "witness"))
                most_aside = live > most_aside ? live : most_aside;
            else if (bytes > 0 && live > peak)
                peak = live;
            foreign += point == 1 && !strcmp(table_text(log, e, "class"), "weight");
        }
        assert_true(peak > 0);
        assert_true(table_real(points, point, "peak_bytes") == (double)peak);
        assert_string_equal(table_text(points, point, "peak_phase"), point ? "allocate" : "set-up");
        assert_int_equal(foreign, 0);
    }
    assert_true((double)most_aside >
                table_real(points, 0, "peak_bytes")); /* a second session was there */
    rig_end(&r);
}

/* A clock that falls by more than a tenth is flagged, in the visit and in its samples; so is a GPU
 * that names a limit. */
static void test_throttled(void **state) {
    (void)state;
    static const double rates[] = {4, 3.7, 3.5, 4.2, 3.7, 4.2, 4.2, 3.7},
                        slowed[] = {0, 0, 0, 0, 0, 0, 2, 1};
    static const bool throttled[] = {false, false, true, false, true, false, true, true};
    struct sample_log log;
    struct err err = {0};
    double best = 0;
    int fd;
    assert_int_equal(sample_log_create(&fd, &log, &err), 0);
    for (int i = 0; i < 8; i++) {
        struct tables *out = tables_create();
        struct table *values = tables_get(out, "values"), *visits = tables_get(out, "visits");
        int64_t value = table_add(values, 1), visit = table_add(visits, 1);
        table_set_text(values, value, "metric", "clock_rate");
        table_set_f64(values, value, "value", rates[i]);
        value = table_add(values, 1);
        table_set_text(values, value, "metric", "nvml.slowed");
        table_set_f64(values, value, "value", slowed[i]);
        table_set_text(visits, visit, "flags", "not_steady");
        table_set_text(visits, visit, "reason", "not_steady: so");
        sample_log_begin(&log, i);
        log.sample[0] = log.sample[1] = (struct sample_record){.wall_ns = 5, .batch = 1};
        log.head->samples = 2;
        supervisor_note_clock(&best, &log, out);
        assert_true(fabs(table_real(visits, 0, "clock_ratio") - rates[i] / best) < 1e-12);
        assert_string_equal(table_text(visits, 0, "flags"),
                            throttled[i] ? "not_steady throttled" : "not_steady");
        assert_true((strstr(table_text(visits, 0, "reason"), "; throttled: ") != NULL) ==
                    throttled[i]);
        for (int k = 0; k < 2; k++)
            assert_int_equal(log.sample[k].labels, throttled[i] ? LABEL_THROTTLED : 0);
        tables_close(&out);
    }
    sample_log_unmap(&log);
    close(fd);
}

static struct tables *side_of_round(double rate, double slowed) {
    struct tables *out = tables_create();
    struct table *values = tables_get(out, "values");
    table_add(tables_get(out, "visits"), 1);
    const char *const names[] = {"clock_rate", "nvml.slowed"};
    const double numbers[] = {rate, slowed};
    for (int i = 0; i < 2; i++) {
        if (isnan(numbers[i])) continue;
        const int64_t row = table_add(values, 1);
        table_set_text(values, row, "metric", names[i]);
        table_set_f64(values, row, "value", numbers[i]);
    }
    return out;
}

struct both { /* of one round: what is flagged, and the ratios */
    bool flagged[2], labelled[2];
    double ratio[2];
    char reason[2][120];
};

static struct both note_both(double *best, const double rates[2], const double slowed[2]) {
    static struct sample_log logs[2];
    static int fds[2];
    struct both b;
    struct tables *out[2];
    struct sample_log *const log[2] = {&logs[0], &logs[1]};
    for (int side = 0; side < 2; side++) {
        struct err err = {0};
        if (!logs[side].head) assert_int_equal(sample_log_create(&fds[side], &logs[side], &err), 0);
        sample_log_begin(&logs[side], 0);
        logs[side].sample[0] = (struct sample_record){.wall_ns = 5, .batch = 1};
        logs[side].head->samples = 1;
        out[side] = side_of_round(rates[side], slowed[side]);
    }
    supervisor_note_clocks(best, log, out);
    for (int side = 0; side < 2; side++) {
        const struct table *visits = tables_peek(out[side], "visits");
        b.flagged[side] = !strcmp(table_text(visits, 0, "flags"), "throttled");
        b.labelled[side] = logs[side].sample[0].labels == LABEL_THROTTLED;
        b.ratio[side] = table_real(visits, 0, "clock_ratio");
        snprintf(b.reason[side], sizeof b.reason[side], "%s", table_text(visits, 0, "reason"));
        assert_int_equal(b.flagged[side], *b.reason[side] != 0);
        tables_close(&out[side]);
    }
    return b;
}

/* A host that lends 4.1 instead of 3.6 GHz for some rounds: by the run's best most rounds would be
   throttled; each side is judged by the other one. */
static void test_lent_clock(void **state) {
    (void)state;
    const uint64_t key = random_key(7, 0);
    const double none[2] = {NAN, NAN};
    double best = 0;
    size_t low = 0, n = 0;
    for (uint64_t round = 0; round < 40; round++) {
        const double lent = round < 3 || round % 13 == 5 ? 4.1 : 3.6;
        double rates[2];
        for (int side = 0; side < 2; side++) /* readings scatter by a percent */
            rates[side] = lent * (1 + 0.01 * random_normal(key, n++));
        const struct both b = note_both(&best, rates, none);
        for (int side = 0; side < 2; side++) {
            assert_false(b.flagged[side] || b.labelled[side]);
            assert_true(fabs(b.ratio[side] - rates[side] / best) < 1e-12);
            low += b.ratio[side] < 0.9;
        }
    }
    assert_true(low > 50); /* the rule of single runs would have flagged these */
}

static void test_unlike_clocks(void **state) {
    (void)state;
    const struct {
        double rates[2], slowed[2];
        bool flagged[2];
        const char *reason;
    } cases[] = {
        {{3.6, 3.1}, {NAN, NAN}, {false, true}, "86 % of the other side's"},
        {{3.1, 3.6}, {NAN, NAN}, {true, false}, "86 % of the other side's"},
        {{3.6, 3.3}, {NAN, NAN}, {false, false}, ""},
        {{2.0, 2.0}, {NAN, NAN}, {false, false}, ""}, /* half of the best before, and alike */
        {{3.6, NAN}, {NAN, NAN}, {false, false}, ""}, /* a side that did not answer */
        {{NAN, NAN}, {2, 0}, {true, false}, "of this side alone"},
        {{NAN, NAN}, {0, 1}, {false, true}, "of this side alone"},
        {{NAN, NAN}, {NAN, 1}, {false, true}, "of this side alone"},
        {{NAN, NAN}, {2, 3}, {false, false}, ""},
        {{3.6, 3.1}, {0, 1}, {false, true}, "of this side alone"},
    };
    double best = 4.1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct both b = note_both(&best, cases[i].rates, cases[i].slowed);
        for (int side = 0; side < 2; side++) {
            assert_int_equal(b.flagged[side], cases[i].flagged[side]);
            assert_int_equal(b.labelled[side], cases[i].flagged[side]);
            assert_true(!b.flagged[side] || strstr(b.reason[side], cases[i].reason));
            assert_int_equal(isnan(b.ratio[side]), isnan(cases[i].rates[side]));
        }
    }
    assert_true(best >= 4.1 && best <= 4.1);
}

/* Points with one drafting model lie together, and it is packed for the first of them alone. */
static void test_second_model_is_packed_once(void **state) {
    (void)state;
    static const char drafts[] =
        "title = 't'\nquestion = 'q'\n"
        "workload = { name = 'speculative', prompt = 3, tokens = 4 }\n"
        "model = { shape = 'tiny', type = 'f32' }\ndevice = { kind = 'ref' }\n"
        "[measure]\nrounds = 1\nstop = 'samples'\nsamples = 1\nwarmups = 1\n"
        "[[sweep]]\nworkload.gamma = [1, 2, 3]\n"
        "[[sweep]]\nworkload.draft_type = ['int8', 'same', 'nf4']\n";
    struct run_rig r = {0};
    rig_run(&r, drafts, NULL, 0, NULL);
    const struct table *memory = tables_peek(r.result, "memory"),
                       *visits = tables_peek(r.result, "visits");
    int packing = 0;
    assert_int_equal(table_rows(visits), 9 + 1);
    for (int64_t v = 0; v < table_rows(visits); v++) {
        bool packs = false;
        assert_string_equal(table_text(visits, v, "state"), "ok");
        for (int64_t i = 0; i < table_rows(memory); i++)
            packs |= table_int(memory, i, "visit") == table_int(visits, v, "visit") &&
                     !strcmp(table_text(memory, i, "site"), "layer 0 o") &&
                     table_int(memory, i, "t_ns") > 0; /* else it was there before */
        packing += packs;
    }
    /* One visit for each draft, and one more if the target comes before them. */
    assert_in_range(packing, 2, 3);
    rig_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_run),
        cmocka_unit_test(test_order_moves_nothing),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_budget_ends),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_lent_clock),
        cmocka_unit_test(test_unlike_clocks),
        cmocka_unit_test(test_oom_row),
        cmocka_unit_test(test_peak_is_the_rows_own),
        cmocka_unit_test(test_second_model_is_packed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
