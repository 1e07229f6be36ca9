/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of strangers: what the parser would trip over is refused before it looks. */
#ifndef WORKLOADS_MODEL_FILE_JSON_H
#define WORKLOADS_MODEL_FILE_JSON_H
#include <stddef.h>

struct cJSON;
struct err;

/* One object of at most `items` values, nested at most 16 deep; data ends with a zero. `what` is
   how sentences call it. *document: cJSON_Delete frees it; NULL after a mistake. */
int file_json_parse(const char *data, size_t n, const char *what, size_t items,
                    struct cJSON **document, struct err *);

#endif
