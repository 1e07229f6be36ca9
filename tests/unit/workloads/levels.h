/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy tokens of a model on a device, and the levels of the cpu device. */
#ifndef TESTS_UNIT_WORKLOADS_LEVELS_H
#define TESTS_UNIT_WORKLOADS_LEVELS_H
#include "tests/unit/workloads/drive.h"

#include "kernels/cpu/cpu.h"
#include "workloads/common/tokens.h"

enum { PROMPT = 16, STEPS = 24 };

static inline void ok(int code, const struct err *err) {
    if (code) fail_msg("%s", err->text);
}

/* NULL, and why, where the machine or the build has it not. */
static inline struct device *open_level(const char *isa, struct arena *arena) {
    struct device *device = NULL;
    struct cpu_params params;
    struct err err = {0};
    option_defaults(device_cpu.params, &params, arena);
    drive_set(device_cpu.params, &params, "isa", isa, arena);
    if (device_open(&device, &device_cpu, &params, &err)) print_message("%s: %s\n", isa, err.text);
    return device;
}

static inline void generate(struct device *device, const struct model_config *config,
                            int32_t out[STEPS]) {
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

#endif
