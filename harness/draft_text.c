/* SPDX-License-Identifier: Apache-2.0 */
/* workload.text: rows of one word were judged on one text, so its digest is a key of the point; and
 * the text is kept in the result. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/draft.h"
#include "workloads/common/judged_text.h"

/* Once for all points. */
static void remember(struct draft *d, const char *name, const char *text) {
    const char *path = arena_printf(d->arena, "texts/%s", name);
    for (size_t i = 0; i < d->protocol->n_files; i++)
        if (!strcmp(d->protocol->files[i].path, path)) return;
    draft_remember_file(d->protocol, path, arena_text(d->arena, text));
}

bool draft_text_facts(struct draft *d, const struct plan_case *c, size_t point,
                      struct facts *facts) {
    const char *origin, *name = draft_named(d, c, point, "workload.text", &origin);
    const struct fact *given = facts_find(facts, "workload.text_digest");
    struct err err = {0};
    char *text = NULL, digest[17];
    size_t len = 0;
    if (!name || !strcmp(name, JUDGED_RANDOM)) return true;
    int code = judged_load(name, &text, &len, &err);
    if (!code) {
        hash_text(digest, hash_bytes(text, len, 0));
        if (given && *given->value && strcmp(given->value, digest) != 0)
            code = err_set(&err, ERR_INPUT, "its digest is %s, not %s: it is another text", digest,
                           given->value);
    }
    if (code) {
        problem_at(d->problems, draft_place(origin), NULL, "%sworkload.text: %s",
                   strchr(origin, ':') ? "" : "--set ", err.text);
    } else {
        facts_set(facts, "workload.text_digest", digest, "", "workload.text");
        if (len < TOML_MOST_BYTES && utf8_valid(text, len) && !memchr(text, 0, len))
            remember(d, name, text);
    }
    free(text);
    return !code;
}
