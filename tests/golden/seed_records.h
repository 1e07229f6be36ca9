/* SPDX-License-Identifier: Apache-2.0 */
/* The records of expected.json for the tests that compare our products with them.

   expected.json was written by an independent program (the oracle of the seeds' catalogue: standard
   library, exact fractions where it matters) and is kept here as it was. A record has an id
   ("E29.2": entry and number), inputs, a value of 12 digits, and a class: exact, inferred (an input
   was lost in print), consistency (arithmetic on printed figures), synthetic (vectors made for
   tests), model (a model of the catalogue). Rebuilt values are no published ones: `published` says
   what was printed. */
#ifndef TESTS_GOLDEN_SEED_RECORDS_H
#define TESTS_GOLDEN_SEED_RECORDS_H
#include <cjson/cJSON.h>

#include "tests/unit/workloads/drive.h"

struct record {
    const char *id, *what;
    int family, n;
    const cJSON *inputs, *value;
};

static inline bool has(const struct record *r, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(r->inputs, name) != NULL;
}

static inline double input(const struct record *r, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->inputs, name);
    if (!cJSON_IsNumber(item)) fail_msg("%s has no number %s", r->id, name);
    return item ? item->valuedouble : 0;
}

static inline int64_t whole(const struct record *r, const char *name) {
    return (int64_t)input(r, name);
}

/* The oracle prints 12 digits. */
static inline void expect_item(const struct record *r, const cJSON *item, double ours) {
    char text[40];
    if (!cJSON_IsNumber(item)) fail_msg("%s is no number", r->id);
    const double value = item ? item->valuedouble : 0;
    snprintf(text, sizeof text, "%.12g", ours);
    if (ours != value && strtod(text, NULL) != value)
        fail_msg("%s: %.17g, expected %.17g (%s)", r->id, ours, value, r->what);
}

static inline void expect(const struct record *r, double ours) { expect_item(r, r->value, ours); }

static inline void expect_list(const struct record *r, const double *ours, int n) {
    assert_int_equal(cJSON_GetArraySize(r->value), n);
    for (int i = 0; i < n; i++) expect_item(r, cJSON_GetArrayItem(r->value, i), ours[i]);
}

/* Which product of ours computes the records of a family (an entry of the catalogue); `one` says
   whether it computes this one. */
struct product {
    int family;
    bool (*one)(const struct record *);
};

/* Calls a family's `one` for each of its records (family 0 ends the list). Returns how many were
   computed; their ids go, a line each, to the end of the file that SEED_RECORDS names. */
static inline int each_record(const struct product *products) {
    const char *root = getenv("SOURCE_DIR"), *list = getenv("SEED_RECORDS");
    FILE *ids = list ? fopen(list, "a") : NULL;
    char path[1000], *text;
    struct err err = {0};
    size_t len;
    int done = 0;
    snprintf(path, sizeof path, "%s/tests/golden/expected.json", root ? root : ".");
    if (file_read(path, 1 << 20, &text, &len, &err)) fail_msg("%s", err.text);
    cJSON *json = cJSON_Parse(text);
    const cJSON *item;
    assert_non_null(json);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "records")) {
        struct record r = {.id = cJSON_GetObjectItem(item, "id")->valuestring,
                           .what = cJSON_GetObjectItem(item, "what")->valuestring,
                           .inputs = cJSON_GetObjectItem(item, "inputs"),
                           .value = cJSON_GetObjectItem(item, "value")};
        assert_int_equal(sscanf(r.id, "E%d.%d", &r.family, &r.n), 2);
        for (const struct product *p = products; p->family; p++)
            if (p->family == r.family && p->one(&r)) {
                done++;
                if (ids) fprintf(ids, "%s\n", r.id);
            }
    }
    if (ids) fclose(ids);
    cJSON_Delete(json);
    free(text);
    return done;
}

#endif
