/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy continuations of several prompts together, and what a model would have said at each
   position of a text that another one wrote. Greedy means greedy: no penalties, no end (seeds R27).
 */
#ifndef WORKLOADS_COMMON_CONTINUING_H
#define WORKLOADS_COMMON_CONTINUING_H
#include "workloads/model/transformer.h"
#include "workloads/workload.h"

struct prompt {
    const int32_t *tokens;
    int32_t n; /* at least 1 */
};
struct continuing {
    struct model *model;
    const struct model_config *config;
    const struct prompt *prompts; /* (n) */
    int32_t n, tokens;            /* tokens: written behind each, at least 1 */
};
/* prompt: the longest one's tokens. */
struct session_spec continuing_spec(int32_t n, int32_t prompt, int32_t tokens);
void continuing_work(struct work *, const struct model_config *, int32_t n, int32_t prompt,
                     int32_t tokens);
/* out (n, tokens). */
int continuing_write(const struct continuing *, int32_t *out, struct err *);
/* choice (n, tokens): the likeliest token at each position behind the prompt, given the prompt and
   what stands in `written` (n, tokens) before the position. */
int continuing_follow(const struct continuing *, const int32_t *written, int32_t *choice,
                      struct err *);

#endif
