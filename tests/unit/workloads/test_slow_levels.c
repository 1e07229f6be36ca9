/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ordinary size says the same greedy tokens at every instruction-set level of the cpu
   device: levels sum in other orders, and their logits differ by roundings only. */
#include "tests/unit/workloads/levels.h"

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
