/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a command line by its flag table, and the help that the same table gives. */
#include "harness/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/page.h"

enum { MOST_WORDS = 64, MOST_GIVEN = 128, MOST_NAMES = 128 };

static const struct flag flag_help = {"--help", "-h", NULL, "Help", "this text", false};

static const struct flag *find_flag(const struct command *c, const char *word, size_t n) {
    for (const struct flag *f = c->flags; f && f->name; f++)
        if ((strlen(f->name) == n && !strncmp(f->name, word, n)) ||
            (f->letter && strlen(f->letter) == n && !strncmp(f->letter, word, n)))
            return f;
    if ((n == 6 && !strncmp(word, "--help", n)) || (n == 2 && !strncmp(word, "-h", n)))
        return &flag_help;
    return NULL;
}

static int usage_error(const struct command *c, const char *sentence) {
    fprintf(stderr, "bench %s: %s\n", c->name, sentence);
    return EXIT_USAGE;
}

static int unknown_flag(const struct command *c, const char *word, size_t n) {
    const char *names[MOST_NAMES];
    size_t count = 0;
    struct text name = {0}, out = {0};
    text_add(&name, word, n);
    for (const struct flag *f = c->flags; f && f->name && count < MOST_NAMES; f++)
        names[count++] = f->name;
    const char *near = text_nearest(name.data, names, count);
    text_printf(&out, "unknown option '%.100s'", name.data);
    if (near) text_printf(&out, "; did you mean '%s'?", near);
    text_printf(&out, " (bench help %s)", c->name);
    int code = usage_error(c, out.data);
    text_free(&name);
    text_free(&out);
    return code;
}

static int take_flag(const struct command *c, const struct flag *f, const char *value,
                     struct arguments *a) {
    char sentence[200];
    for (size_t i = 0; i < a->n_given; i++) {
        if (a->given[i].flag == f && !f->many) {
            snprintf(sentence, sizeof sentence, "%s is given twice", f->name);
            return usage_error(c, sentence);
        }
    }
    if (a->n_given == MOST_GIVEN) return usage_error(c, "more than 128 options");
    a->given[a->n_given].flag = f;
    a->given[a->n_given++].value = value;
    return 0;
}

/* One option and, where it takes one, its value; *i moves on to the value's word. */
static int parse_flag(const struct command *c, int argc, char **argv, int *i, struct arguments *a) {
    const char *word = argv[*i], *equals = !strncmp(word, "--", 2) ? strchr(word, '=') : NULL;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const struct flag *f = find_flag(c, word, n);
    char sentence[200];
    if (!f) return unknown_flag(c, word, n);
    if (f == &flag_help) {
        struct text out = {0};
        command_describe(c, &out);
        fwrite(out.data, 1, out.len, stdout);
        text_free(&out);
        return -1;
    }
    if (!f->value) {
        if (!equals) return take_flag(c, f, "", a);
        snprintf(sentence, sizeof sentence, "%s takes no value", f->name);
        return usage_error(c, sentence);
    }
    if (equals) return take_flag(c, f, equals + 1, a);
    if (*i + 1 < argc) return take_flag(c, f, argv[++*i], a);
    snprintf(sentence, sizeof sentence, "%s needs a value: %s", f->name, f->value);
    return usage_error(c, sentence);
}

int command_parse(const struct command *c, int argc, char **argv, struct arguments *a) {
    bool words_only = false;
    memset(a, 0, sizeof *a);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!words_only && !strcmp(word, "--")) {
            words_only = true;
        } else if (!words_only && word[0] == '-' && word[1]) {
            int code = parse_flag(c, argc, argv, &i, a);
            if (code) return code;
        } else if (a->n_words == MOST_WORDS) {
            return usage_error(c, "more than 64 words");
        } else {
            a->words[a->n_words++] = word;
        }
    }
    return 0;
}

const char *argument(const struct arguments *a, const char *name) {
    const char *value = NULL;
    for (size_t i = 0; i < a->n_given; i++)
        if (!strcmp(a->given[i].flag->name, name)) value = a->given[i].value;
    return value;
}

size_t arguments_of(const struct arguments *a, const char *name, const char **values, size_t most) {
    size_t n = 0;
    for (size_t i = 0; i < a->n_given && n < most; i++)
        if (!strcmp(a->given[i].flag->name, name)) values[n++] = a->given[i].value;
    return n;
}

/* One line whatever a file is called, and nothing that a terminal would obey. */
static void print_sentence(const char *s) {
    fputs("bench: ", stderr);
    for (; *s; s++) fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, stderr);
    fputc('\n', stderr);
}

int command_fail(const struct err *err) {
    print_sentence(*err->text ? err->text : "failed without a reason");
    switch (err->code) {
    case ERR_INTERRUPTED: return EXIT_INTERRUPTED;
    case ERR_MEMORY:
    case ERR_DEVICE:
    case ERR_TIMEOUT: return EXIT_INCOMPLETE;
    default: return EXIT_USAGE;
    }
}

static void flag_head(const struct flag *f, struct text *out) {
    if (f->letter) text_printf(out, "%s, ", f->letter);
    text_puts(out, f->name);
    if (f->value) text_printf(out, " %s", f->value);
}

static void flag_line(const struct flag *f, size_t column, struct text *out) {
    text_puts(out, "  ");
    flag_head(f, out);
    text_puts(out, "  ");
    text_pad(out, column);
    page_wrap(out, column, f->help);
    if (f->many) page_wrap(out, column, "(may be repeated)");
    text_puts(out, "\n");
}

void command_describe(const struct command *c, struct text *out) {
    size_t column = 12;
    bool whole = !strncmp(c->usage, "bench ", 6);
    if (!whole) text_printf(out, "bench %s%s", c->name, *c->usage ? " " : "");
    text_printf(out, "%s\n", c->usage);
    page_wrap(out, 2, c->brief);
    text_puts(out, "\n");
    for (const struct flag *f = c->flags; f && f->name; f++) {
        struct text head = {0};
        flag_head(f, &head);
        size_t width = utf8_width(head.data) + 4;
        column = width > column && width <= 36 ? width : column;
        text_free(&head);
    }
    for (const struct flag *f = c->flags; f && f->name; f++) {
        bool seen = false;
        for (const struct flag *g = c->flags; g != f; g++) seen |= !strcmp(g->group, f->group);
        if (seen) continue; /* its group is printed already */
        text_printf(out, "\n%s\n", f->group);
        for (const struct flag *g = f; g->name; g++)
            if (!strcmp(g->group, f->group)) flag_line(g, column, out);
    }
}
