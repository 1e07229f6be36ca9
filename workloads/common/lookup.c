/* SPDX-License-Identifier: Apache-2.0 */
/* Prompt lookup: the latest earlier place of the longest suffix. */
#include "workloads/common/lookup.h"

#include <string.h>

/* Where the last m tokens end, the latest time before the text's end; 0: nowhere. */
static int32_t end_of_match(const int32_t *text, int32_t n, int32_t m) {
    for (int32_t end = n - 1; end >= m; end--)
        if (!memcmp(text + end - m, text + n - m, sizeof *text * (size_t)m)) return end;
    return 0;
}

int32_t lookup_draft(const int32_t *text, int32_t n, int32_t longest, int32_t most, int32_t *out) {
    int32_t at = 0;
    for (int32_t m = longest < n ? longest : n - 1; m > 0 && !at; m--)
        at = end_of_match(text, n, m);
    if (!at) return 0;
    for (int32_t i = 0; i < most; i++) out[i] = at + i < n ? text[at + i] : out[at + i - n];
    return most;
}
