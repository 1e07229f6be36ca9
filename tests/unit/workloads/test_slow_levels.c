/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ordinary size says the same greedy tokens at every instruction-set level of the cpu
   device: levels sum in other orders, and their logits differ by roundings only. */
#include "tests/unit/workloads/drive.h"

#include "kernels/cpu/cpu.h"
#include "workloads/common/tokens.h"

enum { PROMPT = 16, STEPS = 24 };

static void ok(int code, const struct err *err) {
    if (code) fail_msg("%s", err->text);
}

/* NULL, and why, where the machine or the build has it not. */
static struct device *open_level(const char *isa, struct arena *arena) {
    struct device *device = NULL;
    struct cpu_params params;
    struct err err = {0};
    option_defaults(device_cpu.params, &params, arena);
    drive_set(device_cpu.params, &params, "isa", isa, arena);
    if (device_open(&device, &device_cpu, &params, &err)) print_message("%s: %s\n", isa, err.text);
    return device;
}

static void generate(struct device *device, const struct model_config *config, int32_t out[STEPS]) {
    struct model *model = NULL;
    struct session *s = NULL;
    struct inputs *inputs = NULL;
    struct err err = {0};
    int32_t prompt[PROMPT];
    const struct session_spec spec = {
        .cache = {.n_seq = 1, .capacity = PROMPT + STEPS, .most_q = PROMPT},
        .most_rows = PROMPT,
        .most_out = 1};
    ok(model_create(&model, device, config, &err), &err);
    ok(session_create(&s, model, config, &spec, &err), &err);
    ok(inputs_create(&inputs, s, 1, PROMPT, 1, &err), &err);
    const struct token_stream stream = {.seed = 3, .vocab = config->shape.vocab};
    tokens_fill(&stream, 0, 0, PROMPT, prompt);
    ok(inputs_prompt(inputs, prompt, PROMPT, 0, PROMPT, PROMPT, false, &err), &err);
    inputs_upload(inputs);
    ok(session_run(s, inputs, 0, &err), &err);
    struct step *step = inputs_step(inputs, 0);
    for (int i = 0; i < STEPS; i++) {
        if (i) {
            session_advance(s, step);
            ok(session_decode(s, &err), &err);
            step = &s->decode;
        }
        session_select(s, step);
        session_next(s, step, out + i);
    }
    ok(device->kind->sync(device, &err), &err);
    inputs_close(&inputs);
    session_close(&s);
    model_close(&model);
}

static void tokens_of_all_levels(void **state) {
    (void)state;
    struct arena *arena = arena_create();
    struct model_config config = drive_config("seed-0.5b", arena);
    const char *const *levels = option_find(device_cpu.params, "isa")->words;
    int32_t scalar[STEPS], tokens[STEPS];
    int compared = 0;
    struct device *device = open_level("scalar", arena);
    assert_non_null(device);
    drive_model(&config, "activation", "f32", arena);
    generate(device, &config, scalar);
    device_close(&device);
    for (size_t i = 0; levels[i]; i++) {
        if (!strcmp(levels[i], "scalar") || !strcmp(levels[i], "auto")) continue;
        device = open_level(levels[i], arena);
        if (device == NULL) continue;
        generate(device, &config, tokens);
        device_close(&device);
        compared++;
        for (int t = 0; t < STEPS; t++)
            if (tokens[t] != scalar[t])
                fail_msg("token %d: %d at level %s, %d at level scalar", t, tokens[t], levels[i],
                         scalar[t]);
    }
    int distinct = 0;
    for (int t = 1; t < STEPS; t++) distinct += scalar[t] != scalar[t - 1];
    assert_true(distinct > STEPS / 4); /* else equal tokens would say little */
    print_message("%d levels beside scalar\n", compared);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_of_all_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
