/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a gate as nobody changed them, by their option table. */
#ifndef TESTS_SUPPORT_GATE_SETTINGS_H
#define TESTS_SUPPORT_GATE_SETTINGS_H
#include "base/arena.h"
#include "results/gate.h"

static inline struct gate_settings gate_defaults(void) {
    struct gate_settings s;
    struct arena *arena = arena_create();
    option_defaults(gate_options, &s, arena);
    arena_close(&arena);
    s.metric = s.rows = ""; /* the arena's texts are gone */
    return s;
}

#endif
