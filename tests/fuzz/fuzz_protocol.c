/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a protocol: mistakes are sentences, never a signal; what loads can be printed, packed
 * and scheduled. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/protocol.h"
#include "harness/schedule.h"
#include "harness/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    struct text out = {0};
    struct err err = {0};
    struct problems *problems = problems_create();
    struct protocol *protocol = NULL;
    memcpy(text, data, size);
    text[size] = 0;
    struct protocol_request request = {.path = "fuzz.toml", .text = text};
    protocol_load(&protocol, &request, problems, &err);
    problems_print(problems, &out);
    if (protocol && protocol->n_points) {
        int64_t n;
        struct facts facts = {0};
        struct visit_order order = {0};
        free(schedule_round(protocol, 0, &n));
        visit_pack(&facts, &order, &protocol->measure, &protocol->points[0]);
        facts_pack(&out, &facts);
        facts_free(&facts);
    }
    protocol_close(&protocol);
    problems_close(&problems);
    text_free(&out);
    free(text);
    return 0;
}
