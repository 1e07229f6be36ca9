/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/common/text_tokens.h"

#include <string.h>

#include "base/err.h"
#include "base/problems.h"
#include "workloads/common/judged_text.h"
#include "workloads/model/model.h"
#include "workloads/model/tokenizer.h"

static bool needs_tokenizer(const char *text) {
    return strcmp(text, JUDGED_RANDOM) != 0 && !judged_is_ids(text);
}

void text_tokens_check(const struct text_choice *choice, const struct model_config *config,
                       struct problems *problems) {
    struct err err = {0};
    if (needs_tokenizer(choice->text) && !model_from_file(&config->params))
        problem(problems, "workload.text", "model.file",
                "a text needs a tokenizer, which only the file of a model has: model.file; "
                "text = \"random\" needs none");
    if (judged_check(choice->text, &err)) problem(problems, "workload.text", NULL, "%s", err.text);
}

int text_tokens(const struct text_choice *choice, const struct model_config *config, uint64_t seed,
                int32_t n, int32_t *ids, struct err *err) {
    struct tokenizer *tokenizer = NULL;
    struct judged_text text = {0};
    int code = 0;
    if (needs_tokenizer(choice->text))
        code = tokenizer_open_path(&tokenizer, config->params.file, err);
    if (!code)
        code = judged_read(&text, choice->text, choice->digest, tokenizer, config, seed, n, err);
    if (!code) memcpy(ids, text.tokens, sizeof *ids * (size_t)n);
    judged_close(&text);
    tokenizer_close(&tokenizer);
    return code;
}
