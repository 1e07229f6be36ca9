/* SPDX-License-Identifier: Apache-2.0 */
/* Where inputs of products are int8, a model says the tokens of ref at every level of the cpu
   device: the products are the same bits, and what lies between them differs by roundings only. */
#include "tests/unit/workloads/levels.h"

static void tokens_are_those_of_ref(void **state) {
    static const char *const types[] = {"int8", "int8-tensor", "int8-group",
                                        "int4", "int4-row",    "int4-tensor"};
    (void)state;
    struct arena *arena = arena_create();
    const char *const *levels = option_find(device_cpu.params, "isa")->words;
    struct device *ref = drive_open("ref", arena);
    int32_t plain[STEPS], want[STEPS], tokens[STEPS];
    int changed = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct model_config config = drive_config("tiny", arena);
        drive_model(&config, "type", types[i], arena);
        if (i % 3 == 2) drive_model(&config, "kv_type", "f32", arena);
        generate(ref, &config, plain);
        drive_model(&config, "activation", "int8", arena);
        generate(ref, &config, want);
        changed += memcmp(plain, want, sizeof want) != 0;
        for (size_t l = 0; levels[l]; l++) {
            struct device *device = strcmp(levels[l], "auto") ? open_level(levels[l], arena) : NULL;
            if (device == NULL) continue;
            generate(device, &config, tokens);
            device_close(&device);
            for (int t = 0; t < STEPS; t++)
                if (tokens[t] != want[t])
                    fail_msg("%s: token %d: %d at level %s, %d on ref", types[i], t, tokens[t],
                             levels[l], want[t]);
        }
    }
    assert_true(changed > 0); /* else the inputs may as well have been floats */
    device_close(&ref);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_those_of_ref)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
