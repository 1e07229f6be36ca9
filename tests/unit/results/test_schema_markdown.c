/* SPDX-License-Identifier: Apache-2.0 */
/* docs/format.md is what the schema says now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "results/schema_markdown.h"
#include "results/table.h"

static void document_is_up_to_date(void **state) {
    (void)state;
    char path[1000], *document;
    size_t len;
    struct err err = {0};
    struct text text = {0};
    snprintf(path, sizeof path, "%s/docs/format.md", getenv("SOURCE_DIR"));
    assert_int_equal(file_read(path, 1 << 20, &document, &len, &err), 0);
    schema_markdown(&text);
    assert_string_equal(document, text.data); /* `bench docs docs` writes it anew */
    free(document);
    text_free(&text);
}

static void every_column_is_in_it(void **state) {
    (void)state;
    struct text text = {0};
    schema_markdown(&text);
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; i < n; i++) {
        char heading[80];
        snprintf(heading, sizeof heading, "\n## %s\n\n", names[i]);
        const char *at = strstr(text.data, heading);
        assert_non_null(at);
        assert_true(at[strlen(heading)] != '\n'); /* a sentence on what it is */
        for (const struct column *c = store_schema; c->table; c++) {
            char cell[100];
            snprintf(cell, sizeof cell, "\n| `%s` | ", c->name);
            if (!strcmp(c->table, names[i])) assert_non_null(strstr(at, cell));
        }
    }
    text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_is_up_to_date),
        cmocka_unit_test(every_column_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
