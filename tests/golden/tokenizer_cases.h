/* SPDX-License-Identifier: Apache-2.0 */
/* Models, texts and ids as tokenizer_golden.py writes them, and whether ours are the same. */
#ifndef TESTS_GOLDEN_TOKENIZER_CASES_H
#define TESTS_GOLDEN_TOKENIZER_CASES_H
#include "tests/golden/made_files.h"

#include <string.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/model/file.h"
#include "workloads/model/tokenizer.h"

static char cases_folder[] = "/tmp/bench-tokenizer-XXXXXX";

static inline const char *cases_path(const char *name) {
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s%s%s", *name == '/' ? "" : cases_folder,
             *name == '/' ? "" : "/", name);
    return path[turn];
}

/* Has Python write the files; exit 77 where it cannot. */
static inline int cases_make(const char *options) {
    const char *root = made_files_root(), *python = made_files_python();
    char command[2000];
    if (!mkdtemp(cases_folder)) return 1;
    snprintf(
        command, sizeof command,
        "PYTHONPATH='%s/build/tokenizers':\"$PYTHONPATH\" %s '%s/tests/golden/tokenizer_golden.py' "
        "%s %s \"$BENCH_TOKENIZER_MODEL\"",
        root, python, root, options, cases_folder);
    const int status = system(command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        rmdir(cases_folder);
        exit(77);
    }
    return status;
}

static inline int cases_remove(void **state) {
    (void)state;
    return made_files_remove(cases_folder);
}

static inline char *cases_content(const char *name, size_t *len) {
    char *data;
    struct err err = {0};
    if (file_read(cases_path(name), 1 << 28, &data, len, &err)) fail_msg("%s", err.text);
    return data;
}

static inline struct tokenizer *cases_open(const char *model) {
    struct model_file *file = NULL;
    struct tokenizer *t = NULL;
    struct err err = {0};
    if (model_file_open(&file, cases_path(model), &err)) fail_msg("%s", err.text);
    if (tokenizer_open(&t, file, &err)) fail_msg("%s: %s", model, err.text);
    model_file_close(&file);
    return t;
}

static inline uint32_t cases_number(const char **at) {
    uint32_t n;
    memcpy(&n, *at, sizeof n);
    *at += sizeof n;
    return n;
}

static inline void cases_show(const char *what, const int32_t *ids, size_t n, size_t from) {
    print_message("  %s:", what);
    for (size_t i = from > 2 ? from - 2 : 0; i < n && i < from + 6; i++)
        print_message(" %d", ids[i]);
    print_message("%s\n", n > from + 6 ? " ..." : "");
}

static inline int cases_compare(const char *model, const char *texts, const char *ids,
                                const char *flags) {
    size_t len;
    char *text_data = cases_content(texts, &len), *id_data = cases_content(ids, &len);
    const char *text = text_data, *id = id_data;
    struct tokenizer *t = cases_open(model);
    struct err err = {0};
    const uint32_t n = cases_number(&text);
    int wrong = 0;
    assert_true(n > 0);
    assert_int_equal(n, cases_number(&id));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bytes = cases_number(&text), expected = cases_number(&id);
        int32_t *got = NULL, *right = must_alloc((expected + 1) * sizeof *right);
        size_t n_got = 0, at = 0;
        memcpy(right, id, expected * sizeof *right);
        if (tokenizer_encode(t, text, bytes, strchr(flags, 's') ? TOKENIZE_SPECIAL : 0, &got,
                             &n_got, &err))
            fail_msg("%s, text %u: %s", model, i, err.text);
        while (at < n_got && at < expected && got[at] == right[at]) at++;
        if ((at < n_got || at < expected) && wrong++ < 5) {
            print_message("%s, %s, text %u: token %zu differs; '%.*s'\n", model, ids, i, at,
                          bytes < 200 ? (int)bytes : 200, text);
            cases_show("expected", right, expected, at);
            cases_show("got", got, n_got, at);
        }
        struct text back = {0};
        tokenizer_decode(t, got, n_got, &back);
        if (strchr(flags, 'r') &&
            (back.len != bytes || (bytes && memcmp(back.data, text, bytes) != 0)) && wrong++ < 5)
            print_message("%s, text %u: '%.*s' comes back as '%.*s'\n", model, i,
                          bytes < 200 ? (int)bytes : 200, text,
                          back.len < 200 ? (int)back.len : 200, back.data ? back.data : "");
        text_free(&back);
        free(got);
        free(right);
        text += bytes;
        id += expected * sizeof(int32_t);
    }
    tokenizer_close(&t);
    free(text_data);
    free(id_data);
    return wrong;
}

/* All lines of cases.tsv. */
static inline void cases_all(void) {
    size_t len;
    char *list = cases_content("cases.tsv", &len), *rest = list, *line;
    int wrong = 0, n = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        const char *model = strsep(&line, "\t"), *texts = strsep(&line, "\t"),
                   *ids = strsep(&line, "\t"), *flags = line;
        assert_non_null(flags);
        wrong += cases_compare(model, texts, ids, flags);
        n++;
    }
    free(list);
    print_message("%d lists of texts\n", n);
    assert_true(n > 0);
    assert_int_equal(wrong, 0);
}

#endif
