/* SPDX-License-Identifier: Apache-2.0 */
/* `bench tokenize`: what a model's own tokenizer makes of a text, or what text its ids are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/command.h"
#include "harness/page.h"
#include "workloads/model/file.h"
#include "workloads/model/tokenizer.h"

enum { MOST_TEXT = 64 << 20 };
static const struct flag flags[] = {
    {"--text-file", NULL, "PATH", "What to tokenize", "the text is this file's bytes", false},
    {"--ends", NULL, NULL, "What to tokenize",
     "with the tokens that the model's file adds at the ends (the beginning of text, mostly)",
     false},
    {"--plain", NULL, NULL, "What to tokenize",
     "names of special tokens in the text, as <s>, are letters like others", false},
    {"--decode", NULL, "IDS", "What to tokenize",
     "the text of these ids, separated by commas or spaces, instead", false},
    {"--format", NULL, "FORMAT", "Output",
     "text (default: ids and pieces), ids (one line), tsv or json (an object)", false},
    {0},
};

/* ---- words ------------------------------------------------------------------------------------
 */

static int read_stdin(struct text *t, struct err *err) {
    char part[1 << 16];
    size_t n;
    while ((n = fread(part, 1, sizeof part, stdin)) > 0) {
        text_add(t, part, n);
        if (t->len > MOST_TEXT)
            return err_set(err, ERR_INPUT, "the text is longer than %d bytes", MOST_TEXT);
    }
    return ferror(stdin) ? err_system(err, errno, "standard input") : 0;
}

static int read_text(const struct arguments *a, struct text *t, struct err *err) {
    const char *path = argument(a, "--text-file");
    if (path) {
        char *data = NULL;
        size_t n = 0;
        int code = file_read(path, MOST_TEXT, &data, &n, err);
        if (!code) text_add(t, data, n);
        free(data);
        return code;
    }
    if (!strcmp(a->words[1], "-")) return read_stdin(t, err);
    text_puts(t, a->words[1]);
    return 0;
}

/* A piece in quotes, one line: bytes that are no UTF-8 and control characters as \xNN. */
static void quote(struct text *t, const char *piece, size_t n) {
    text_puts(t, "\"");
    for (size_t at = 0; at < n;) {
        size_t width = 1;
        const unsigned char c = (unsigned char)piece[at];
        while (c >= 0x80 && width < 4 && at + width < n && !utf8_valid(piece + at, width)) width++;
        if (c < 0x20 || c == 0x7f || !utf8_valid(piece + at, width)) {
            text_printf(t, "\\x%02x", c);
            at++;
            continue;
        }
        /* C1 controls and the marks that turn the direction of a line do not go to a terminal. */
        const bool hidden = (c == 0xc2 && (unsigned char)piece[at + 1] < 0xa0) ||
                            (c == 0xe2 && (unsigned char)piece[at + 1] == 0x80 &&
                             (unsigned char)piece[at + 2] >= 0x8e) ||
                            (c == 0xe2 && (unsigned char)piece[at + 1] == 0x81 &&
                             (unsigned char)piece[at + 2] >= 0xa6);
        if (c == '"' || c == '\\') text_puts(t, "\\");
        if (hidden)
            for (size_t i = 0; i < width; i++)
                text_printf(t, "\\x%02x", (unsigned char)piece[at + i]);
        else
            text_add(t, piece + at, width);
        at += width;
    }
    text_puts(t, "\"");
}

static char *piece_of(const struct tokenizer *t, int32_t id, size_t *n) {
    *n = tokenizer_piece(t, id, NULL, 0);
    char *piece = must_alloc(*n + 1);
    tokenizer_piece(t, id, piece, *n);
    return piece;
}

/* JSON knows characters only: a piece that is part of one has its bytes as numbers. */
static void json_piece(struct text *out, const char *piece, size_t n) {
    if (utf8_valid(piece, n) && strlen(piece) == n) {
        text_json(out, piece);
        return;
    }
    for (size_t i = 0; i < n; i++)
        text_printf(out, "%s%u", i ? ", " : "[", (unsigned)(unsigned char)piece[i]);
    text_puts(out, n ? "]" : "[]");
}

/* ---- what is written --------------------------------------------------------------------------
 */

static void write_json(const struct tokenizer *t, const int32_t *ids, size_t n, size_t bytes,
                       struct text *out) {
    text_puts(out, "{\"family\": ");
    text_json(out, tokenizer_family(t));
    text_printf(out, ", \"vocabulary\": %lld, \"bytes\": %zu,\n \"ids\": [",
                (long long)tokenizer_vocab(t), bytes);
    for (size_t i = 0; i < n; i++) text_printf(out, "%s%d", i ? ", " : "", ids[i]);
    text_puts(out, "],\n \"pieces\": [");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        char *piece = piece_of(t, ids[i], &len);
        if (i) text_puts(out, ", ");
        json_piece(out, piece, len);
        free(piece);
    }
    text_puts(out, "]}\n");
}

static void write_rows(const struct tokenizer *t, const int32_t *ids, size_t n,
                       enum page_format format, struct text *out) {
    static const char *const names[] = {"id", "piece"};
    struct page page;
    page_columns(&page, names, 2);
    for (size_t i = 0; i < n; i++) {
        struct text shown = {0};
        char id[16];
        size_t len;
        char *piece = piece_of(t, ids[i], &len);
        quote(&shown, piece, len);
        snprintf(id, sizeof id, "%d", ids[i]);
        page_row(&page, (const char *[]){id, shown.data});
        text_free(&shown);
        free(piece);
    }
    page_write(&page, format, out);
    page_free(&page);
}

static void write_ids(const int32_t *ids, size_t n, struct text *out) {
    for (size_t i = 0; i < n; i++) text_printf(out, "%s%d", i ? " " : "", ids[i]);
    text_puts(out, "\n");
}

static int encode(const struct tokenizer *t, const struct arguments *a, const char *format,
                  struct text *out, struct err *err) {
    struct text text = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    const unsigned how = (argument(a, "--ends") ? TOKENIZE_BOS : 0) |
                         (argument(a, "--plain") ? 0 : TOKENIZE_SPECIAL);
    int code = read_text(a, &text, err);
    if (!code) code = tokenizer_encode(t, text.data ? text.data : "", text.len, how, &ids, &n, err);
    if (!code && !strcmp(format, "json")) {
        write_json(t, ids, n, text.len, out);
    } else if (!code && !strcmp(format, "ids")) {
        write_ids(ids, n, out);
    } else if (!code) {
        const bool table = !strcmp(format, "tsv");
        write_rows(t, ids, n, table ? PAGE_TSV : PAGE_TEXT, out);
        if (!table)
            text_printf(out,
                        "%zu tokens, %zu bytes: %.3g bytes per token · %s, vocabulary of %lld\n", n,
                        text.len, n ? (double)text.len / (double)n : 0.0, tokenizer_family(t),
                        (long long)tokenizer_vocab(t));
    }
    free(ids);
    text_free(&text);
    return code;
}

static int decode(const struct tokenizer *t, const char *list, struct text *out, struct err *err) {
    int32_t *ids = must_alloc((strlen(list) + 1) * sizeof *ids);
    size_t n = 0;
    int code = 0;
    for (const char *at = list; *at && !code;) {
        char *end;
        at += strspn(at, " ,\n\t");
        if (!*at) break;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno || id < 0 || id >= tokenizer_vocab(t) || !strchr(" ,\n\t", *end))
            code = err_set(err, ERR_INPUT, "--decode takes ids from 0 to %lld; '%.20s' is none",
                           (long long)tokenizer_vocab(t) - 1, at);
        else
            ids[n++] = (int32_t)id;
        at = end;
    }
    if (!code) tokenizer_decode(t, ids, n, out);
    free(ids);
    return code;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int mistake(const struct arguments *a) {
    static const char *const formats[] = {"text", "ids", "tsv", "json"};
    const char *format = argument(a, "--format");
    const bool elsewhere = argument(a, "--text-file") || argument(a, "--decode");
    bool known = !format;
    for (int i = 0; i < 4 && !known; i++) known = !strcmp(format, formats[i]);
    if (!known)
        fprintf(stderr, "bench tokenize: '%.100s' is no format; text, ids, tsv, json\n", format);
    else if (argument(a, "--decode") && (format || argument(a, "--text-file") ||
                                         argument(a, "--ends") || argument(a, "--plain")))
        fprintf(stderr, "bench tokenize: --decode goes with no other option\n");
    else if (a->n_words < 1 || a->n_words > 2)
        fprintf(stderr, "bench tokenize: a model's file and one text are needed (- reads it from "
                        "standard input)\n");
    else if (elsewhere && a->n_words == 2)
        fprintf(stderr, "bench tokenize: a text as a word and --text-file or --decode exclude each "
                        "other\n");
    else if (!elsewhere && a->n_words == 1)
        fprintf(stderr, "bench tokenize: a text is needed: a word, -, --text-file or --decode\n");
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

static int tokenize_main(int argc, char **argv) {
    struct arguments a;
    struct err err = {0};
    struct model_file *file = NULL;
    struct tokenizer *tokenizer = NULL;
    struct text out = {0};
    int code = command_parse(&command_tokenize, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    if ((code = mistake(&a))) return code;
    const char *format = argument(&a, "--format"), *list = argument(&a, "--decode");
    if (model_file_open(&file, a.words[0], &err) || tokenizer_open(&tokenizer, file, &err) ||
        (list ? decode(tokenizer, list, &out, &err)
              : encode(tokenizer, &a, format ? format : "text", &out, &err)))
        code = command_fail(&err);
    else if (out.len)
        fwrite(out.data, 1, out.len, stdout);
    text_free(&out);
    tokenizer_close(&tokenizer);
    model_file_close(&file);
    return code;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .usage = "FILE TEXT|- [--text-file PATH] [--decode IDS] [--ends] [--plain] [--format FORMAT]",
    .brief = "a text as the tokens of a model's own tokenizer, with their pieces; and back",
    .group = "Find out",
    .flags = flags,
    .main = tokenize_main,
};
