/* SPDX-License-Identifier: Apache-2.0 */
/* `bench docs FOLDER` (hidden): the reference documents, written from the tables. */
#include <limits.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/man.h"
#include "harness/topics.h"
#include "results/schema_markdown.h"

static const struct document {
    const char *name;
    void (*write)(struct text *);
} documents[] = {
    {"protocol.md", topic_protocol_document},
    {"metrics.md", topic_metrics_document},
    {"format.md", schema_markdown},
    {"bench.1", man_page},
};

static int docs_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    int code = command_parse(&command_docs, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if (a.n_words != 1) {
        fprintf(stderr, "bench docs: the folder to write to is needed\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof documents / sizeof *documents && !code; i++) {
        struct text out = {0};
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", a.words[0], documents[i].name);
        documents[i].write(&out);
        if (file_write(path, out.data, out.len, &err)) code = command_fail(&err);
        text_free(&out);
    }
    return code;
}

static const struct flag flags[] = {{0}};
const struct command command_docs = {
    .name = "docs",
    .usage = "FOLDER",
    .brief = "writes protocol.md, metrics.md, format.md and the manual page bench.1",
    .group = NULL,
    .flags = flags,
    .main = docs_main,
};
