/* SPDX-License-Identifier: Apache-2.0 */
/* Opening comments of the protocols, by the same rule as tools/seeds_index.py. */
#include "harness/entry.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/names.h"
#include "harness/page.h"
#include "harness/protocol.h"

enum { MOST_BYTES = 1 << 20 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Of "E19" at s, or 0. */
static int number_at(const char *s) {
    if ((*s != 'E' && *s != 'e') || !is_digit(s[1]) || !is_digit(s[2])) return 0;
    return is_digit(s[3]) ? 0 : 10 * (s[1] - '0') + (s[2] - '0');
}

int entry_number(const char *word) { return strlen(word) == 3 ? number_at(word) : 0; }

bool entry_named(const char *protocol, int number) {
    char before = ' ';
    for (const char *s = protocol; *s && (before != '\n' || *s == '#'); before = *s++) {
        const int first = *s == 'E' && !isalnum((unsigned char)before) ? number_at(s) : 0;
        if (!first) continue;
        const char *next = s + 3 + strspn(s + 3, " ");
        if (*next == '-' || !strncmp(next, "to", 2)) next += *next == '-' ? 1 : 2;
        next += strspn(next, " ");
        const int last = next > s + 3 && *next == 'E' ? number_at(next) : 0;
        const bool range = last && memchr(s + 3, ',', (size_t)(next - s - 3)) == NULL;
        if (number == first || (range && number >= first && number <= last)) return true;
    }
    return false;
}

/* The text of `question = "..."`. */
static void put_question(const char *protocol, struct text *out) {
    static const char key[] = "\nquestion";
    const char *at = strstr(protocol, key);
    const char *open = at ? strchr(at + sizeof key - 1, '"') : NULL;
    const char *end = open ? strpbrk(open + 1, "\"\n") : NULL;
    if (end) text_printf(out, "%.*s", (int)(end - open - 1), open + 1);
}

static bool add_folder(const char *root, const char *folder, int number, struct text *out) {
    struct names names = {0};
    char path[PATH_MAX];
    bool any = false;
    snprintf(path, sizeof path, "%s/%s", root, folder);
    names_of_folder(&names, path, ".toml");
    for (size_t i = 0; i < names.n; i++) {
        char *data = NULL;
        size_t n = 0;
        struct text question = {0};
        snprintf(path, sizeof path, "%s/%s%s.toml", root, folder, names.items[i]);
        if (!file_read(path, MOST_BYTES, &data, &n, NULL) && entry_named(data, number)) {
            any = true;
            text_printf(out, "  bench run %s%s  ", folder, names.items[i]);
            text_pad(out, 38);
            text_add(&question, "", 0);
            put_question(data, &question);
            page_wrap(out, 38, question.data);
            text_puts(out, "\n");
        }
        text_free(&question);
        free(data);
    }
    names_free(&names);
    return any;
}

bool entry_page(int number, struct text *out) {
    const char *root = data_folder("protocols");
    text_printf(out, "entry E%02d of the collection of published results\n", number);
    const bool any =
        root &&
        (int)add_folder(root, "", number, out) + (int)add_folder(root, "seeds/", number, out) > 0;
    if (!any) text_puts(out, "  no protocol rebuilds it\n");
    text_puts(out, "all entries: protocols/seeds/README.md\n");
    return any;
}
