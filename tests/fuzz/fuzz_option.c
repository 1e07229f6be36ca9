/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the value of every option that exists: refused with a sentence, or read back the
 * same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/text.h"
#include "harness/protocol.h"
#include "kernels/device.h"
#include "workloads/model/model.h"
#include "workloads/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_table(const struct option *table, size_t params_size, const char *text) {
    struct arena *arena = arena_create();
    void *params = arena_alloc(arena, params_size + 1),
         *again = arena_alloc(arena, params_size + 1);
    for (const struct option *o = table; o && o->key; o++) {
        struct err err = {0};
        struct text first = {0}, second = {0};
        if (option_parse(o, text, params, arena, &err) == 0) {
            option_format(o, params, &first);
            if (option_parse(o, first.data ? first.data : "", again, arena, &err)) abort();
            option_format(o, again, &second);
            if (strcmp(first.data ? first.data : "", second.data ? second.data : "")) abort();
        } else if (!err.text[0]) {
            abort(); /* a refusal without a sentence */
        }
        text_free(&first);
        text_free(&second);
    }
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    try_table(measure_options, sizeof(struct measure_params), text);
    try_table(model_options, sizeof(struct model_params), text);
    try_table(shape_options, sizeof(struct model_shape), text);
    for (int i = 0; all_workloads[i]; i++)
        try_table(all_workloads[i]->params, all_workloads[i]->params_size, text);
    for (int i = 0; all_devices[i]; i++)
        try_table(all_devices[i]->params, all_devices[i]->params_size, text);
    free(text);
    return 0;
}
