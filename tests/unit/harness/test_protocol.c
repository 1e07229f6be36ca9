/* SPDX-License-Identifier: Apache-2.0 */
/* Protocols: what they expand to, and every mistake with its place, as a user sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "harness/protocol.h"

struct load {
    struct protocol *p;
    struct problems *problems;
    struct err err;
    int code;
    char *said;
};

static struct load load_with(const char *text, const char *const *sets, bool quick) {
    struct load l = {.problems = problems_create()};
    struct protocol_request r = {.path = "t.toml", .text = text, .sets = sets, .quick = quick};
    struct text said = {0};
    while (sets && sets[r.n_sets]) r.n_sets++;
    l.code = protocol_load(&l.p, &r, l.problems, &l.err);
    text_add(&said, "", 0);
    problems_print(l.problems, &said);
    l.said = text_take(&said);
    assert_true(l.p == NULL || !*l.said);
    assert_true(l.p != NULL || *l.said || l.code);
    return l;
}
static void close_load(struct load *l) {
    protocol_close(&l->p);
    problems_close(&l->problems);
    free(l->said);
}
#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The points of a good protocol, as "case/label" joined by commas. */
static void expands(const char *text, const char *const *sets, bool quick, const char *want) {
    struct load l = load_with(text, sets, quick);
    struct text got = {0};
    if (!l.p) fail_msg("%s%s", l.said, l.err.text);
    for (size_t i = 0; i < l.p->n_points; i++) {
        const struct point *p = &l.p->points[i];
        assert_int_equal(p->index, (int64_t)i);
        text_printf(&got, "%s%s%s%s", i ? ", " : "", p->case_name, *p->case_name ? "/" : "",
                    p->label);
    }
    assert_string_equal(got.data, want);
    text_free(&got);
    close_load(&l);
}

/* All that is said about a bad protocol, but for the closing line. */
static void says(const char *text, const char *const *sets, const char *want) {
    struct load l = load_with(text, sets, false);
    char *end = strstr(l.said, " mistake");
    if (l.code) fail_msg("%s", l.err.text);
    if (!end) fail_msg("nothing was said against %s", text);
    while (end > l.said && end[-1] != '\n') end--;
    *end = 0;
    assert_string_equal(l.said, want);
    close_load(&l);
}
/* Only a part of it. */
static void mentions(const char *text, const char *const *sets, const char *part) {
    struct load l = load_with(text, sets, false);
    const char *said = l.code ? l.err.text : l.said;
    if (!strstr(said, part)) fail_msg("'%s' is not in '%s'", part, said);
    assert_null(l.p);
    close_load(&l);
}

#define NULLWORK "[workload]\nname = \"null\"\n[device]\nkind = \"fake\"\n"
#define SWEEP    "[[sweep]]\nworkload.marks = [0, 1, 2, 3, 4]\n"
#define TINY     "[workload]\nname = \"decode\"\n[model]\nshape = \"tiny\"\n[device]\nkind = \"ref\"\n"

static void points(void **state) {
    (void)state;
    expands(NULLWORK, NULL, false, "");
    expands(NULLWORK SWEEP, NULL, false, "marks=0, marks=1, marks=2, marks=3, marks=4");
    expands(NULLWORK SWEEP, NULL, true, "marks=0, marks=2, marks=4");
    expands(NULLWORK SWEEP "[[sweep]]\nworkload.spin = [\"1 us\", \"2 us\"]\n", NULL, true,
            "marks=0 spin=1 us, marks=0 spin=2 us, marks=2 spin=1 us, marks=2 spin=2 us, "
            "marks=4 spin=1 us, marks=4 spin=2 us");
    expands(NULLWORK
            "[[sweep]]\nworkload.marks = [1, 2]\nworkload.touch = [\"1 KiB\", \"2 KiB\"]\n",
            NULL, false, "marks=1 touch=1 KiB, marks=2 touch=2 KiB");
    expands(NULLWORK SWEEP, SETS("sweep.workload.marks=[7, 9]"), false, "marks=7, marks=9");
    expands(NULLWORK SWEEP, SETS("sweep.workload.marks=5"), false, "marks=5");
    /* seeds of the model and of nothing else share their last part */
    expands(TINY "[[sweep]]\nworkload.batch = [1, 2]\n", NULL, false, "batch=1, batch=2");
    expands(TINY "[[sweep]]\nmodel.type = [\"f32\", \"bf16\"]\n[[sweep]]\nshape.n_kv = [1, 2]\n",
            NULL, false, "type=f32 n_kv=1, type=f32 n_kv=2, type=bf16 n_kv=1, type=bf16 n_kv=2");
}

static void cases(void **state) {
    (void)state;
    static const char text[] =
        "[workload]\nname = \"decode\"\ncontext = 8\n[model]\nshape = \"tiny\"\n"
        "[device]\nkind = \"ref\"\n[[sweep]]\nworkload.batch = [1, 2]\n"
        "[[case]]\nname = \"a\"\n"
        "[[case]]\nname = \"b\"\nworkload = { name = \"null\" }\n"
        "[[case]]\nname = \"c\"\nworkload.context = 16\n[[case.sweep]]\n"
        "workload.batch = [4]\n"
        "[[case]]\nname = \"d\"\nworkload.batch = 3\n";
    expands(text, NULL, false, "a/batch=1, a/batch=2, b/, c/batch=4, d/");
    struct load l =
        load_with(text, SETS("model.seed=9", "measure.rounds=3", "device.kind=fake"), false);
    assert_non_null(l.p);
    assert_string_equal(facts_get(&l.p->points[0].facts, "workload.context", ""), "8");
    assert_string_equal(facts_get(&l.p->points[3].facts, "workload.context", ""), "16");
    assert_string_equal(facts_get(&l.p->points[4].facts, "workload.batch", ""), "3");
    assert_string_equal(facts_find(&l.p->points[0].facts, "model.seed")->origin, "--set");
    assert_null(facts_find(&l.p->points[2].facts, "model.seed"));
    assert_string_equal(l.p->points[1].device->name, "fake");
    assert_int_equal(l.p->measure.rounds, 3);
    assert_int_equal(l.p->n_swept, 1);
    assert_string_equal(l.p->swept[0].key, "workload.batch");
    assert_int_equal(l.p->n_files, 2);
    assert_string_equal(l.p->files[0].text, text);
    assert_string_equal(l.p->files[1].path, "models/tiny.toml");
    close_load(&l);
}

static void facts_have_origins(void **state) {
    (void)state;
    struct load l = load_with(TINY "type = \"auto\"\n", NULL, false);
    assert_null(l.p); /* [device] of ref has no type */
    close_load(&l);
    l = load_with("title = \"T\"\n" TINY "[[sweep]]\nworkload.batch = [1, 2]\n"
                  "[measure]\nbudget = \"1 min\"\n",
                  NULL, false);
    assert_non_null(l.p);
    const struct facts *f = &l.p->points[1].facts;
    assert_string_equal(facts_find(f, "workload.name")->origin, "t.toml:3:1");
    assert_string_equal(facts_find(f, "workload.batch")->value, "2");
    assert_string_equal(facts_find(f, "workload.batch")->origin, "t.toml:9:22");
    assert_string_equal(facts_find(f, "workload.steps")->origin, "default");
    assert_int_equal(strncmp(facts_find(f, "shape.n_layers")->origin, "models/tiny.toml:", 17), 0);
    assert_string_equal(facts_get(&l.p->facts, "title", ""), "T");
    assert_string_equal(facts_get(&l.p->facts, "measure.budget", ""), "1 min");
    assert_int_equal(l.p->measure.budget_ns, 60000000000);
    assert_string_equal(facts_find(&l.p->facts, "measure.stop")->origin, "default");
    close_load(&l);
}

static void unknown_keys(void **state) {
    (void)state;
    says(
        NULLWORK "[measure]\nwarmpu = 3\n", NULL,
        "t.toml:6:1: unknown key 'warmpu' in [measure]; did you mean 'warmups'?\n"
        "    [measure] takes: budget, cold, disturbed, fresh, max_samples, min_samples, order, precision, "
        "rounds, sample_probes, samples, seed, stop, timeout, warmup_budget, warmups\n");
    says("[workload]\nname = \"null\"\nmark = 3\n", NULL,
         "t.toml:3:1: unknown key 'mark' in [workload] of null; did you mean 'marks'?\n"
         "    [workload] of null takes: marks, name, ranges, spin, touch\n");
    says(
        NULLWORK "[mesure]\nrounds = 3\n", NULL,
        "t.toml:5:2: unknown key 'mesure' in a protocol; did you mean 'measure'?\n"
        "    a protocol takes: analysis, case, device, gate, measure, model, published, question, shape, "
        "sweep, title, workload\n");
    mentions("[workload]\nname = \"nul\"\n", NULL,
             "t.toml:2:8: no workload is called 'nul'; did you mean 'null'?");
    mentions("title = \"x\"\n", NULL, "workload.name is missing; there are ");
    mentions("[workload]\nname = \"spin\"\n[device]\nkind = \"fake\"\n[[case]]\nname = \"a\"\n"
             "workload = { name = \"null\" }\n",
             NULL, "t.toml:2:1: workload.name is not used: each case names a workload of its own");
    mentions(NULLWORK "x.y.z = 1\n", NULL, "t.toml:5:5: unknown key 'x.y.z' in [device] of fake");
    mentions(
        NULLWORK "[[sweep]]\nworkload.mraks = [1]\n", NULL,
        "t.toml:6:10: unknown key 'workload.mraks' in [[sweep]]; did you mean 'workload.marks'?");
    mentions("[workload]\nname = \"decode\"\n[[sweep]]\nmodel.shape = [\"tiny\", \"tyny\"]\n", NULL,
             "t.toml:4:24: model.shape: no shape is called 'tyny'; did you mean 'tiny'?");
    mentions(TINY, SETS("model.shape=../../etc/passwd"),
             "--set model.shape: no shape is called '../../etc/passwd'");
    mentions("[workload]\nname = \"null\"\n[device]\nkind = \"cpuu\"\n", NULL,
             "t.toml:4:8: no device is called 'cpuu'; did you mean 'cpu'?");
    mentions("[[case]]\nnmae = \"x\"\nworkload.name = \"null\"\n", NULL,
             "t.toml:2:1: unknown key 'nmae' in [[case]]; did you mean 'name'?");
}

static void values(void **state) {
    (void)state;
    says(NULLWORK "[[sweep]]\nworkload.marks = [1, -4, 2]\n", NULL,
         "t.toml:6:22: [[sweep]] workload.marks: -4 is outside 0 \xe2\x80\xa6 1000000\n");
    mentions("[workload]\nname = \"null\"\nmarks = 1e3\n", NULL, "t.toml:3:9: workload.marks: '1");
    mentions("[workload]\nname = \"null\"\nmarks = [1, 2]\n", NULL,
             "takes one value; several are an axis: [[sweep]] workload.marks = [1, 2]");
    mentions("[workload]\nname = \"null\"\nmarks = {}\n", NULL,
             "workload.marks: one value is needed");
    mentions(NULLWORK "[measure]\nbudget = 90\n", NULL, "t.toml:6:10: measure.budget: '90'");
    mentions(NULLWORK "[measure]\nbudget = \"90 fortnights\"\n", NULL,
             "measure.budget: '90 fortnights'");
    mentions(NULLWORK "[measure]\nprecision = nan\n", NULL,
             "t.toml:6:13: measure.precision: 'nan'");
    mentions(NULLWORK "[measure]\nstop = \"precison\"\n", NULL, "did you mean 'precision'?");
    mentions(NULLWORK, SETS("workload.marks=-1"), "--set workload.marks: -1 is outside");
    mentions("title = 3\n" NULLWORK, NULL, "t.toml:1:9: title is text");
}

static void structure(void **state) {
    (void)state;
    mentions("workload = 3\n", NULL, "t.toml:1:1: workload is a table: [workload]");
    mentions("[[workload]]\nname = \"null\"\n", NULL,
             "[workload] is one table, not a list of them");
    mentions("[sweep]\nworkload.marks = [1]\n", NULL,
             "sweep is a list of axes: each begins with [[sweep]]");
    mentions("[case]\nname = \"a\"\n", NULL, "case is a list: each begins with [[case]]");
    mentions("[analysis]\nkind = \"knee\"\n" NULLWORK, NULL,
             "analysis is a list: each begins with [[analysis]]");
    mentions(NULLWORK "[[sweep]]\nworkload.marks = 3\n", NULL,
             "t.toml:6:18: [[sweep]] workload.marks: a list of values is needed");
    mentions("[[case]]\nworkload.name = \"null\"\n", NULL, "t.toml:1:1: [[case]] needs a name");
    mentions("a = [[1\n", NULL, "t.toml:");
}

static void contradictions(void **state) {
    (void)state;
    says(
        NULLWORK "[measure]\nprecision = 0.02\nstop = \"samples\"\n", NULL,
        "t.toml:6:1: measure.precision is not used: it belongs to stop = \"precision\", and the active rule is "
        "stop = \"samples\" (line 7)\n");
    says(
        NULLWORK "[measure]\nsamples = 9\n", NULL,
        "t.toml:6:1: measure.samples is not used: it belongs to stop = \"samples\", and the active rule is stop = "
        "\"precision\" (the default)\n");
    mentions(NULLWORK "[measure]\nmin_samples = 9\nmax_samples = 4\n", NULL,
             "t.toml:6:1: measure.min_samples = 9 is above measure.max_samples = 4");
    says("[workload]\nname = \"null\"\nmarks = 2\n[device]\nkind = \"fake\"\n" SWEEP, NULL,
         "t.toml:3:1: workload.marks is set here and swept (line 7)\n");
    mentions(NULLWORK SWEEP, SETS("workload.marks=3"),
             "--set workload.marks: the key is swept by sweep.workload.marks (t.toml:6:10); --set "
             "sweep.workload.marks=[3] replaces the axis");
    says("[workload]\nname = \"null\"\n[device]\nkind = \"fake\"\n[model]\nshape = \"tiny\"\n",
         NULL, "t.toml:5:2: [model] is not used: this workload takes no model\n");
    mentions("[workload]\nname = \"null\"\n[device]\nkind = \"ref\"\nthreads = 2\n", NULL,
             "t.toml:5:1: device.threads is not used: it belongs to cpu, and device.kind is ref");
    says(
        NULLWORK "[[sweep]]\nworkload.marks = [1, 2]\nworkload.spin = [\"1 us\"]\n", NULL,
        "t.toml:7:10: keys of one [[sweep]] advance together: workload.marks has 2 values, workload.spin has 1\n");
    mentions(NULLWORK SWEEP SWEEP, NULL,
             "t.toml:8:10: workload.marks is swept twice (also at t.toml:6:10)");
    mentions(NULLWORK "[[sweep]]\nworkload.marks = [1, 2, 1]\n", NULL,
             "two points are the same: marks=1 and marks=1");
    mentions(TINY "[shape]\nn_kv = 3\n", NULL, "t.toml:8:1: shape.n_kv: 3 KV heads do not divide");
    mentions(
        "[[case]]\nname = \"a\"\nworkload.name = \"null\"\n[[case]]\nname = \"a\"\nworkload.name = \"null\"\n"
        "workload.marks = 2\n",
        NULL, "t.toml:4:1: two cases are called 'a'");
    mentions(
        "[[sweep]]\nworkload.context = [1, 2]\n[[case]]\nname = \"a\"\nworkload.name = \"null\"\n",
        NULL, "t.toml:2:10: unknown key 'workload.context' in [[sweep]]");
    mentions("[[case]]\nname = \"a\"\nworkload.name = \"null\"\nmodel.shape = \"tiny\"\n", NULL,
             "[model] is not used: workload 'null' takes no model");
}

static void empty_and_huge(void **state) {
    (void)state;
    mentions(NULLWORK "[[sweep]]\nworkload.marks = []\n", NULL,
             "t.toml:6:18: [[sweep]] workload.marks: the list is empty");
    mentions(NULLWORK "[[sweep]]\n", NULL, "t.toml:5:1: the [[sweep]] has no key");
    mentions("sweep = []\n" NULLWORK, NULL, "t.toml:1:1: the sweep is empty");
    mentions(NULLWORK SWEEP, SETS("sweep.workload.marks=[]"),
             "--set sweep.workload.marks: the list is empty");
    mentions(
        NULLWORK SWEEP, SETS("sweep.workload.mark=[1]"),
        "--set sweep.workload.mark: this protocol has no such axis; did you mean 'workload.marks'?");
    mentions(NULLWORK, SETS("marks=1"),
             "--set: unknown key 'marks'; did you mean 'workload.marks'?");
    mentions(NULLWORK, SETS("rounds"), "--set 'rounds': KEY=VALUE is needed");
    struct text big = {0};
    text_puts(&big, NULLWORK);
    static const char *const keys[] = {"workload.marks", "workload.spin", "workload.touch"};
    for (int k = 0; k < 3; k++) {
        text_printf(&big, "[[sweep]]\n%s = [", keys[k]);
        for (int i = 0; i < 100; i++) text_printf(&big, "\"%d%s\", ", i, k == 1 ? " ns" : "");
        text_puts(&big, "]\n");
    }
    mentions(big.data, NULL, "t.toml:5:1: more than 100,000 points");
    text_free(&big);
}

static void lists(void **state) {
    (void)state;
    mentions(NULLWORK SWEEP "[[analysis]]\nkind = \"kneee\"\n", NULL,
             "t.toml:8:8: no analysis is called 'kneee'; did you mean 'knee'?");
    mentions(NULLWORK SWEEP "[[analysis]]\nkind = \"scaling\"\n", NULL,
             "t.toml:7:1: [[analysis]] scaling needs the key x");
    mentions(NULLWORK SWEEP "[[analysis]]\nkind = \"scaling\"\nx = \"workload.mark\"\n", NULL,
             "t.toml:9:5: x: no key is called 'workload.mark'; did you mean 'workload.marks'?");
    mentions(NULLWORK SWEEP
             "[[analysis]]\nkind = \"scaling\"\nx = \"workload.marks\"\ny = \"tme\"\n",
             NULL, "t.toml:10:5: y: no metric is called 'tme'; did you mean 'time'?");
    mentions(NULLWORK SWEEP
             "[[analysis]]\nkind = \"scaling\"\nx = \"workload.marks\"\ncase = \"b\"\n",
             NULL, "case: no case is called 'b'");
    mentions(NULLWORK
             "[[published]]\nwhat = \"w\"\nmetric = \"time\"\nvalue = 1.0\nkind = \"exakt\"\n"
             "source = \"s\"\n",
             NULL, "t.toml:9:8: kind: 'exakt' is not one of");
    mentions(NULLWORK
             "[[published]]\nwhat = \"w\"\nmetric = \"time\"\nkind = \"exact\"\nsource = \"s\"\n",
             NULL, "t.toml:5:1: [[published]] needs the key value");
    mentions(NULLWORK "[[published]]\nat = { workload.mrks = 1 }\n", NULL,
             "no key is called 'workload.mrks'");
    struct load l = load_with(
        NULLWORK SWEEP
        "[[analysis]]\nkind = \"scaling\"\nx = \"workload.marks\"\n"
        "[[published]]\nwhat = \"w\"\nmetric = \"time\"\nvalue = 6.0\nkind = \"measured\"\n"
        "source = \"s\"\nat = { workload.marks = 1 }\n",
        NULL, false);
    assert_non_null(l.p);
    assert_string_equal(facts_get(&l.p->facts, "analysis.0.kind", ""), "scaling");
    assert_string_equal(facts_get(&l.p->facts, "analysis.0.y", ""), "time");
    assert_string_equal(facts_get(&l.p->facts, "published.0.value", ""), "6.0");
    assert_string_equal(facts_get(&l.p->facts, "published.0.at.workload.marks", ""), "1");
    close_load(&l);
}

static void all_in_one_go(void **state) {
    (void)state;
    says(
        "[workload]\nname = \"decode\"\nsteps = 0\n[model]\nshape = \"tiny\"\nkv_typ = \"f16\"\n"
        "[device]\nkind = \"ref\"\n[shape]\nn_kv = 3\n[measure]\nround = 2\n",
        NULL,
        "t.toml:3:9: workload.steps: 0 is outside 1 \xe2\x80\xa6 65536\n"
        "t.toml:6:1: unknown key 'kv_typ' in [model]; did you mean 'kv_type'?\n"
        "    [model] takes: activation, block, digest, file, group, kv_type, layout, seed, shape, type, window\n"
        "t.toml:10:1: shape.n_kv: 3 KV heads do not divide 4 query heads (with shape.n_q, models/tiny.toml:5)\n"
        "t.toml:12:1: unknown key 'round' in [measure]; did you mean 'rounds'?\n"
        "    [measure] takes: budget, cold, disturbed, fresh, max_samples, min_samples, order, precision, "
        "rounds, sample_probes, samples, seed, stop, timeout, warmup_budget, warmups\n");
}

static void what_cannot_fit(void **state) {
    (void)state;
    /* Terabytes of KV at the large batch; two gigabytes at the small one. */
    static const char text[] = TINY "[[sweep]]\nworkload.batch = [1, 4096]\n";
    const char *const *sets =
        SETS("workload.context=16384", "model.kv_type=f32", "shape.n_layers=512");
    mentions(text, sets, "refused: ");
    mentions(text, sets, " KV at batch=4096 + ");
    mentions(text, sets, "\n    would fit: --set sweep.workload.batch=[1]\n1 mistake");
    mentions(
        "[workload]\nname = \"decode\"\n[model]\nshape = \"seed-0.5b\"\n[device]\nkind = \"cpu\"\n"
        "[measure]\nrounds = 1000\nbudget = \"1 s\"\n",
        NULL, "t.toml:9:1: measure.budget: 1000 rounds of 1 points need at least");
}

static void modes(void **state) {
    (void)state;
    struct load l = load_with(NULLWORK SWEEP, NULL, true);
    assert_true(l.p->measure.quick);
    assert_int_equal(l.p->measure.rounds, 1);
    assert_string_equal(facts_find(&l.p->facts, "measure.rounds")->origin, "--quick");
    assert_string_equal(facts_get(&l.p->facts, "measure.quick", ""), "true");
    close_load(&l);
}

static void cells(void **state) {
    (void)state;
    struct load l = load_with(NULLWORK "[[sweep]]\nworkload.marks = [0, 5]\n", NULL, false);
    assert_non_null(l.p);
    assert_string_equal(l.p->points[0].cell, "device.kind=fake workload.name=null");
    assert_string_equal(l.p->points[1].cell,
                        "device.kind=fake workload.marks=5 workload.name=null");
    assert_true(l.p->points[0].cell_hash != l.p->points[1].cell_hash);
    assert_int_equal(l.p->points[0].cell_hash,
                     hash_bytes("device.kind=fake workload.name=null", 35, 0));
    close_load(&l);
    /* Pinning is no identity, but what is swept tells rows apart. */
    l = load_with("[workload]\nname = \"null\"\n[device]\nkind = \"cpu\"\n[[sweep]]\n"
                  "device.pin = [true, false]\n",
                  NULL, false);
    assert_non_null(l.p);
    assert_string_equal(l.p->points[0].cell, "device.kind=cpu workload.name=null device.pin=true");
    assert_string_equal(l.p->points[1].cell, "device.kind=cpu workload.name=null device.pin=false");
    close_load(&l);
}

static void weight_sets(void **state) {
    (void)state;
    struct load l = load_with(TINY "[[sweep]]\nmodel.type = [\"f32\", \"bf16\"]\n[[sweep]]\n"
                                   "workload.batch = [1, 2]\n",
                              NULL, false);
    assert_non_null(l.p);
    assert_int_not_equal(l.p->points[0].weights_key, 0);
    assert_true(l.p->points[0].weights_key == l.p->points[1].weights_key);
    assert_true(l.p->points[0].weights_key != l.p->points[2].weights_key);
    assert_true(plan_flops(&l.p->points[1].plan) > plan_flops(&l.p->points[0].plan));
    assert_true(plan_live_bytes(&l.p->points[0].plan) > plan_live_bytes(&l.p->points[2].plan));
    close_load(&l);
}

static void no_file(void **state) {
    (void)state;
    struct problems *problems = problems_create();
    struct protocol *p = NULL;
    struct err err = {0};
    struct protocol_request r = {.path = "decode_kneee"};
    assert_int_equal(protocol_load(&p, &r, problems, &err), ERR_INPUT);
    assert_null(p);
    assert_non_null(strstr(err.text, "no protocol 'decode_kneee'; did you mean 'decode_knee'?"));
    r.path = "/";
    assert_int_not_equal(protocol_load(&p, &r, problems, &err), 0);
    r.path = "";
    assert_int_equal(protocol_load(&p, &r, problems, &err), ERR_INPUT);
    problems_close(&problems);
}

/* The figures of a data sheet stand behind what is given, each with its place. */
static void sheets_are_read(void **state) {
    (void)state;
#define LEDGER                                                                                     \
    "[workload]\nname = \"ledger\"\nsheet = \"h100\"\nmemory_bytes = \"8 GiB\"\n[model]\nshape = " \
    "\"tiny\"\n[device]\nkind = \"ref\"\n"
    struct load l = load_with(LEDGER, NULL, false);
    if (!l.p) fail_msg("%s%s", l.said, l.err.text);
    const struct facts *f = &l.p->points[0].facts;
    assert_string_equal(facts_get(f, "workload.hbm_bytes_per_s", ""), "3350000000000");
    assert_int_equal(
        strncmp(facts_find(f, "workload.hbm_bytes_per_s")->origin, "devices/h100.toml:", 18), 0);
    assert_string_equal(facts_get(f, "workload.memory_bytes", ""), "8 GiB");
    assert_true(l.p->points[0].plan.theory);
    assert_string_equal(l.p->files[2].path, "devices/h100.toml");
    close_load(&l);
    expands("[workload]\nname = \"ledger\"\n[model]\nshape = \"tiny\"\n[device]\nkind = \"ref\"\n"
            "[[sweep]]\nworkload.sheet = [\"h100\", \"a100\"]\n",
            NULL, false, "sheet=h100, sheet=a100");
    mentions(LEDGER, SETS("workload.sheet=h10"),
             "--set workload.sheet: no sheet is called 'h10'; did you mean 'h100'?");
    mentions(LEDGER, SETS("workload.sheet=../models/tiny"), "no sheet is called '../models/tiny'");
}

/* Two workers live at once: what one of them could have is refused for both. */
static void both_sides_need_room(void **state) {
    (void)state;
    struct err err = {0};
    const double cache = 2.0 * 40 * 5120 * 2; /* bytes a position of 13b in 16 bits */
    for (int large = 0; large < 2; large++) {
        struct text text = {0};
        text_printf(&text,
                    "title = \"t\"\nquestion = \"q\"\n[workload]\nname = \"kv_memory\"\n"
                    "length = %lld\n[model]\nshape = \"13b\"\n[device]\nkind = \"ref\"\n",
                    (long long)((large ? 0.7 : 0.2) * (double)memory_available("/") / cache));
        struct load l = load_with(text.data, NULL, false);
        if (!l.p) fail_msg("%s%s", l.said, l.err.text);
        assert_int_equal(protocol_fit_pair(l.p, l.p, false, false, &err), large ? ERR_INPUT : 0);
        if (large) assert_non_null(strstr(err.text, "together need"));
        close_load(&l);
        text_free(&text);
    }
}

static void names_of_cases_are_one_line(void **state) {
    (void)state;
    static const char *const names[] = {"a\\nb", "a\\tb"};
    for (int i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "title = \"t\"\nquestion = \"q\"\n[[case]]\nname = \"%s\"\n"
                 "workload = { name = \"null\" }\ndevice = { kind = \"fake\" }\n",
                 names[i]);
        struct load l = load_with(text, NULL, false);
        assert_null(l.p);
        assert_non_null(strstr(l.said, "t.toml:4:8: a case's name is one line without tabs"));
        close_load(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sheets_are_read),
        cmocka_unit_test(points),
        cmocka_unit_test(cases),
        cmocka_unit_test(facts_have_origins),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(values),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(empty_and_huge),
        cmocka_unit_test(lists),
        cmocka_unit_test(all_in_one_go),
        cmocka_unit_test(what_cannot_fit),
        cmocka_unit_test(modes),
        cmocka_unit_test(cells),
        cmocka_unit_test(weight_sets),
        cmocka_unit_test(no_file),
        cmocka_unit_test(structure),
        cmocka_unit_test(both_sides_need_room),
        cmocka_unit_test(names_of_cases_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
