/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stream of frames and as facts: torn, rotten or foreign, never a signal. */
#include <stdint.h>

#include "base/err.h"
#include "base/facts.h"
#include "base/frame.h"
#include "results/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t at = 0, len;
    bool end = false;
    uint32_t kind;
    const char *body;
    struct err err = {0};
    while (!end && frame_next((const char *)data, size, &at, &kind, &body, &len, &end, &err) == 0 &&
           !end) {
        struct tables *tables = tables_create();
        tables_unpack(tables, body, len, &err);
        tables_close(&tables);
    }
    struct facts facts = {0};
    facts_unpack(&facts, (const char *)data, size, &err);
    facts_free(&facts);
    return 0;
}
