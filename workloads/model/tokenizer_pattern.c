/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of pre-tokenizers, by PCRE2. They are written for Oniguruma, the reference's
 * engine; what the two would read differently is written anew or refused. A pattern that is not one
 * of the field's runs without JIT and within a budget of steps: it comes from a stranger. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "workloads/model/tokenizer_parts.h"

/* Sources: GPT-2's encoder.py; the tokenizer.json of Llama 3, Qwen2 and Mistral Nemo; llama.cpp's
 * rule for files that name none. */
const char pattern_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char pattern_llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char pattern_qwen2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                             "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char pattern_tekken[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char pattern_digit[] = "\\p{N}", pattern_digits[] = "\\p{N}+",
           pattern_three_digits[] = "[0-9][0-9][0-9]";
const char pattern_default[] = "[\\p{P}\\$\\+<=>\\^~\\|]+";

bool pattern_is_known(const char *source) {
    static const char *const known[] = {pattern_gpt2,         pattern_llama3, pattern_qwen2,
                                        pattern_tekken,       pattern_digit,  pattern_digits,
                                        pattern_three_digits, pattern_default};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(source, known[i])) return true;
    return false;
}

/* ---- from the one engine's words to the other's ------------------------------------------------
 */

/* PCRE2's \s holds U+180E, which is no white space since Unicode 6.3. Both ends are classes, so
 * that a hyphen beside them stays a hyphen. */
#define SPACES "\\p{Z}\\t-\\r\\x{85}\\p{Zs}"

static bool is_category(const char *name, size_t n) {
    static const char categories[] =
        " C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc "
        "Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs ";
    char word[8];
    if (n < 1 || n > 2) return false;
    snprintf(word, sizeof word, " %.*s ", (int)n, name);
    return strstr(categories, word) != NULL;
}

struct translation {
    const char *at;
    struct text out;
    bool in_class;
    char word[40]; /* what is not read; "": all is */
};

static void refuse(struct translation *t, const char *word, size_t n) {
    if (!*t->word) snprintf(t->word, sizeof t->word, "%.*s", (int)(n < 32 ? n : 32), word);
}

static void translate_escape(struct translation *t) {
    const char *s = t->at, c = s[1];
    if (c == 's' || c == 'S') {
        if (t->in_class)
            text_puts(&t->out, c == 's' ? SPACES : "\\S\\x{180E}\\S");
        else
            text_puts(&t->out, c == 's' ? "[" SPACES "]" : "[^" SPACES "]");
        t->at += 2;
    } else if (c == 'p' || c == 'P') {
        const char *name = s[2] == '{' ? s + 3 + (s[3] == '^') : s;
        const char *end = strchr(name, '}');
        if (name == s || !end || !is_category(name, (size_t)(end - name))) {
            refuse(t, s, end ? (size_t)(end - s) + 1 : 2);
            t->at += 2;
            return;
        }
        text_add(&t->out, s, (size_t)(end - s) + 1);
        t->at = end + 1;
    } else if (c == 'x') {
        const size_t digits = strspn(s + 2 + (s[2] == '{'), "0123456789abcdefABCDEF");
        if (s[2] == '{' ? digits < 1 || digits > 6 || s[3 + digits] != '}' : digits < 2)
            refuse(t, s, 2);
        const size_t n = s[2] == '{' && !*t->word ? digits + 4 : 2 + (digits < 2 ? digits : 2);
        text_add(&t->out, s, n);
        t->at += n;
    } else if ((c && strchr("nrtfdD", c)) ||
               (c > ' ' && c < 127 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c))) {
        text_add(&t->out, s, 2);
        t->at += 2;
    } else {
        refuse(t, s, c ? 2 : 1);
        t->at += c ? 2 : 1;
    }
}

static void translate_class(struct translation *t) {
    const char *s = t->at;
    const size_t n = s[1] == '^' ? 2 : 1;
    text_add(&t->out, s, n);
    t->at += n;
    if (*t->at == ']') refuse(t, s, n + 1);
    t->in_class = true;
    while (*t->at && *t->at != ']' && !*t->word) {
        if (*t->at == '\\') {
            translate_escape(t);
        } else if (*t->at == '[' || !strncmp(t->at, "&&", 2)) {
            refuse(t, s, (size_t)(t->at - s) + 2);
        } else {
            text_add(&t->out, t->at++, 1);
        }
    }
    t->in_class = false;
    if (!*t->at) refuse(t, s, strlen(s)); /* it never ends */
    if (!*t->word) text_add(&t->out, t->at++, 1);
}

static void translate_group(struct translation *t) {
    static const char *const read[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    if (t->at[1] != '?' && t->at[1] != '*') {
        text_add(&t->out, t->at++, 1);
        return;
    }
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        const size_t n = strlen(read[i]);
        if (strncmp(t->at, read[i], n) != 0) continue;
        text_add(&t->out, t->at, n);
        t->at += n;
        return;
    }
    refuse(t, t->at, 4);
}

static void translate_count(struct translation *t) { /* {n}, {n,}, {n,m} */
    const char *s = t->at;
    const size_t n = strspn(s + 1, "0123456789");
    const size_t m = s[1 + n] == ',' ? 1 + strspn(s + 2 + n, "0123456789") : 0;
    const char *end = s + 1 + n + m;
    if (!n || *end != '}' || end[1] == '+' || end[1] == '?') {
        refuse(t, s, n + m + 3);
        return;
    }
    text_add(&t->out, s, (size_t)(end - s) + 1);
    t->at = end + 1;
}

static void translate(struct translation *t) {
    while (*t->at && !*t->word) switch (*t->at) {
        case '\\': translate_escape(t); break;
        case '[': translate_class(t); break;
        case '(': translate_group(t); break;
        case '{': translate_count(t); break;
        case '^':
        case '$': refuse(t, t->at, 1); break;
        default: text_add(&t->out, t->at++, 1);
        }
}

/* ---- compiling --------------------------------------------------------------------------------
 */

struct pattern {
    pcre2_code *code;
    bool counted;
};

static int compile(struct pattern *p, const char *source, size_t n, unsigned flags,
                   struct err *err) {
    uint32_t options = PCRE2_UTF, empty = 0;
    int error = 0;
    PCRE2_SIZE place = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) out_of_memory();
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    if (flags & PATTERN_LITERAL)
        options |= PCRE2_LITERAL;
    else
        options |= PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    if (flags & PATTERN_COUNTED) options |= PCRE2_AUTO_CALLOUT;
    p->code = pcre2_compile((PCRE2_SPTR)source, n, options, &error, &place, context);
    pcre2_compile_context_free(context);
    if (!p->code) {
        char why[200];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
        return err_set(err, ERR_INPUT, "its pattern '%.100s' is no regular expression: %s", source,
                       why);
    }
    pcre2_pattern_info(p->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty)
        return err_set(
            err, ERR_UNSUPPORTED,
            "its pattern '%.100s' may match nothing at all; patterns that match at least "
            "one character are read",
            source);
    if (flags & PATTERN_FAST) pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* or not */
    return 0;
}

int pattern_open(struct pattern **out, const char *source, unsigned flags, struct err *err) {
    enum { MOST_BYTES = 4096 };
    struct translation t = {.at = source};
    const size_t n = strlen(source);
    *out = NULL;
    if (!n || n > MOST_BYTES)
        return err_set(err, ERR_UNSUPPORTED, "a pattern has %zu bytes: 1 ... %d", n, MOST_BYTES);
    struct pattern *p = must_alloc(sizeof *p);
    p->counted = flags & PATTERN_COUNTED;
    if (!(flags & PATTERN_LITERAL)) translate(&t);
    int code = 0;
    if (*t.word)
        code = err_set(
            err, ERR_UNSUPPORTED,
            "its pattern has '%.32s'; read are characters, classes without classes in "
            "them, \\s \\d \\p{general category}, groups, (?i:...), looking ahead and back, "
            "| ? * + {n,m}",
            t.word);
    else if (flags & PATTERN_LITERAL)
        code = compile(p, source, n, flags, err);
    else
        code = compile(p, t.out.data, t.out.len, flags, err);
    text_free(&t.out);
    *out = p;
    if (code) pattern_close(out);
    return code;
}

void pattern_close(struct pattern **p) {
    if (!*p) return;
    pcre2_code_free((*p)->code);
    free(*p);
    *p = NULL;
}

/* ---- matching ---------------------------------------------------------------------------------
 */

struct match {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    PCRE2_SIZE last; /* place of the last step */
};

/* Each step of a counted pattern, and how far it moved: what a loop over characters costs too. */
static int count(pcre2_callout_block *block, void *user) {
    struct encoding *e = user;
    const PCRE2_SIZE now = block->current_position, then = e->match->last;
    e->counted += 1 + (now > then ? now - then : then - now);
    e->match->last = now;
    return e->counted > e->budget ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static struct match *match_of(struct encoding *e) {
    if (e->match) return e->match;
    struct match *m = e->match = must_alloc(sizeof *m);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(1 << 16, 1 << 24, NULL);
    if (!m->data || !m->context) out_of_memory();
    if (m->stack) pcre2_jit_stack_assign(m->context, NULL, m->stack);
    pcre2_set_match_limit(m->context, UINT32_MAX); /* known patterns are linear, others counted */
    pcre2_set_heap_limit(m->context, 1 << 17);     /* KiB */
    pcre2_set_callout(m->context, count, e);
    return m;
}

void match_free(struct match *m) {
    if (!m) return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

int pattern_find(const struct pattern *p, struct encoding *e, const char *text, size_t bytes,
                 size_t at, size_t *begin, size_t *end) {
    struct match *m = match_of(e);
    m->last = at;
    const int found =
        pcre2_match(p->code, (PCRE2_SPTR)text, bytes, at, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    if (found < 0) {
        if (found == PCRE2_ERROR_NOMEMORY)
            err_set(e->err, ERR_MEMORY, "there is no memory left for a pattern");
        else
            err_set(e->err, ERR_INPUT,
                    "the pattern of this tokenizer takes too many steps on this text (it is the "
                    "file's own, not one of the known ones)");
        return -1;
    }
    const PCRE2_SIZE *places = pcre2_get_ovector_pointer(m->data);
    *begin = places[0];
    *end = places[1];
    if (*begin >= at && *end > *begin && *end <= bytes) return 1;
    err_set(e->err, ERR_INPUT, "the pattern of this tokenizer matched nothing at all");
    return -1;
}
