/* SPDX-License-Identifier: Apache-2.0 */
/* Ledgers of gemm, gemv, attention and the parts of a step against an independent count
   (ledger_golden.tsv): every number exactly. */
#include "tests/unit/workloads/drive.h"

static struct arena *arena;
static const struct device_kind host = {.name = "host", .has = DEV_HOST_CLOCK};

static double number(const struct work *work, const char *what) {
    static const struct {
        const char *name;
        enum memory_class class_of;
    } classes[] = {{"weight", MEM_WEIGHT},
                   {"scale", MEM_SCALE},
                   {"kv", MEM_KV},
                   {"activation", MEM_ACTIVATION},
                   {"logits", MEM_LOGITS}};
    if (!strcmp(what, "flops")) return work->flops;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(what, classes[i].name)) return work->bytes[classes[i].class_of];
    fail_msg("no quantity %s", what);
    return 0;
}

/* The plan of one line's point, kept while the lines are of the same one. */
static const struct plan *plan_of(char *const *cell, const struct workload *w) {
    static struct plan plan;
    static char last[400];
    char key[400];
    snprintf(key, sizeof key, "%s|%s|%s|%s|%s", cell[0], cell[1], cell[2], cell[3], cell[4]);
    if (!strcmp(key, last)) return &plan;
    snprintf(last, sizeof last, "%s", key);
    struct model_config config = drive_config(cell[2], arena);
    drive_settings(model_options, &config.params, cell[3], " ", arena);
    while (strcmp(dtype_names[config.activation], cell[4])) config.activation++;
    void *params = arena_alloc(arena, w->params_size + 1);
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, cell[1], " ", arena);
    if (w->adapt) w->adapt(params, &host);
    memset(&plan, 0, sizeof plan);
    w->plan(params, &config, &plan);
    return &plan;
}

static void counts_agree(void **state) {
    char path[1000], *text, *rest;
    struct err err = {0};
    size_t len;
    int lines = 0, not_zero = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/ledger_golden.tsv",
             getenv("SOURCE_DIR") ? getenv("SOURCE_DIR") : ".");
    if (file_read(path, 1 << 20, &text, &len, &err)) fail_msg("%s", err.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *cell[8], *at = line;
        if (*line == '#') continue;
        for (int i = 0; i < 8; i++) cell[i] = strsep(&at, "\t");
        const struct workload *w = workload_find(cell[0]);
        const struct plan *plan = plan_of(cell, w);
        int phase = 0;
        while (strcmp(w->phases[phase].name, cell[5])) phase++;
        const double ours = number(&plan->work[phase], cell[6]), theirs = strtod(cell[7], NULL);
        if (ours != theirs)
            fail_msg("%s %s %s %s %s, %s %s: %.17g, counted %.17g", cell[0], cell[1], cell[2],
                     cell[3], cell[4], cell[5], cell[6], ours, theirs);
        lines++;
        not_zero += ours > 0;
    }
    assert_true(lines > 300 && not_zero > 150);
    free(text);
}

/* The parts of a step are the ledger of a step that `decode` has, whatever the cache. */
static void parts_add_up(void **state) {
    static const char *const models[] = {"", "kv_type=int8 type=int8-group", "window=5",
                                         "layout=paged block=16 kv_type=f32"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct model_config config = drive_config("tiny", arena);
        const struct workload *step = workload_find("step");
        struct work all = {0}, sum = {0};
        struct plan plan = {0};
        void *params = arena_alloc(arena, step->params_size + 1);
        drive_settings(model_options, &config.params, models[i / 2], " ", arena);
        option_defaults(step->params, params, arena);
        drive_settings(step->params, params,
                       i % 2 ? "batch=3 context=17 split=whole" : "batch=3 context=17 split=parts",
                       " ", arena);
        step->plan(params, &config, &plan);
        for (int p = 0; p < MAX_PHASES; p++) ledger_add(&sum, &plan.work[p], 1);
        ledger_decode(&all, &config, 3, 17, 1);
        assert_true(sum.flops == all.flops && sum.flops > 0);
        for (int c = 0; c < N_CLASSES; c++) assert_true(sum.bytes[c] == all.bytes[c]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_agree),
                                       cmocka_unit_test(parts_add_up)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
