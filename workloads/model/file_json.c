/* SPDX-License-Identifier: Apache-2.0 */
/* cJSON takes zeros and broken UTF-8, needs about 64 bytes for each item, and goes down as deep as
 * brackets stand: all four are bounded before. */
#include "workloads/model/file_json.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

enum { MOST_DEPTH = 16 };

int file_json_parse(const char *data, size_t n, const char *what, size_t most_items,
                    cJSON **document, struct err *err) {
    size_t items = 0, depth = 0, deepest = 0;
    bool quoted = false, zero = false;
    *document = NULL;
    if (strlen(data) != n || !utf8_valid(data, n))
        return err_set(err, ERR_INPUT, "%s is no UTF-8 text", what);
    for (const char *c = data; *c; c++) {
        if (quoted && *c == '\\' && c[1]) {
            c++;
            zero |= !strncmp(c, "u0000", 5); /* it would end the text */
        } else if (*c == '"') {
            quoted = !quoted;
        } else if (!quoted && strchr("[{", *c)) {
            deepest = ++depth > deepest ? depth : deepest;
        } else if (!quoted && strchr("]}", *c)) {
            depth -= depth > 0;
        }
        items += !quoted && strchr(",[{", *c) != NULL;
    }
    if (zero) return err_set(err, ERR_INPUT, "%s has a text with a zero in it", what);
    if (deepest > MOST_DEPTH)
        return err_set(err, ERR_INPUT, "%s is nested deeper than %d", what, MOST_DEPTH);
    if (items > most_items)
        return err_set(err, ERR_INPUT, "%s has more than %zu items", what, most_items);
    const char *end = NULL;
    *document = cJSON_ParseWithLengthOpts(data, n, &end, 0);
    while (*document && end < data + n && strchr(" \t\r\n", *end)) end++;
    if (cJSON_IsObject(*document) && end == data + n) return 0;
    cJSON_Delete(*document);
    *document = NULL;
    return err_set(err, ERR_INPUT, "%s is no JSON object", what);
}
