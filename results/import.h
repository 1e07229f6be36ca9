/* SPDX-License-Identifier: Apache-2.0 */
/* Results of other tools become ours. One file results/import_NAME.c each. What a file does not say
 * stays absent; the way to HDF5 is a journal and store_build, as for a run. */
#ifndef RESULTS_IMPORT_H
#define RESULTS_IMPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

struct err;
struct tables;
struct text;
struct import; /* opaque: points, visits and facts gathered from any number of files */
struct importer {
    const char *name, *brief;            /* as the exporter of the same format */
    bool (*knows)(const cJSON *document); /* by its content */
    /* Adds what the document holds. A mistake is ERR_INPUT and says where it lies in the document
       ("[3].avg_ns"); what has no place with us is said, one sentence a line, in `lost`. */
    int (*read)(const cJSON *document, struct import *, struct text *lost, struct err *);
};
extern const struct importer *const all_importers[]; /* generated; NULL-terminated */
const struct importer *importer_find(const char *name);

struct import *import_create(void);
void import_close(struct import **);
/* Reads one file, recognised by its content where format is NULL. Sentences name the path, and
   for broken JSON line and column. Strict JSON, or one object a line; at most 64 MiB, 256 deep. */
int import_file(struct import *, const char *path, const struct importer *format,
                struct text *lost, struct err *);
/* The same from memory. */
int import_document(struct import *, const char *name, const char *data, size_t len,
                    const struct importer *format, struct text *lost, struct err *);
/* The result at `path` (it must not exist); ERR_INPUT if no row was imported. */
int import_store(struct import *, const char *path, const char *tool_version, struct err *);
/* Its tables, as the journal carries them: no summary yet. */
void import_tables(struct import *, const char *tool_version, struct tables *);
int64_t import_rows(const struct import *, int64_t *visits); /* points; visits may be NULL */

/* ---- for importers */

enum {
    IMPORT_IDENTITY = 1, /* part of the cell */
    IMPORT_AXIS = 2,     /* a column where rows differ in it */
    IMPORT_WHOLE = 4,    /* its value is a whole number */
    IMPORT_NAMED = 8,    /* the label says it already */
};
struct import_key { /* what a test is: facts "test.KEY" of its point */
    const char *key, *value;
    unsigned flags;
};
struct import_test {
    const char *workload, *case_name, *label;
    const char *effective; /* "CUDA threads=8"; "" where unknown */
    const char *build;     /* of what was measured: rows of one cell must agree in it; "" unknown */
    const struct import_key *keys;
    size_t n_keys;
};
/* The point of that test: a new one, or where its cell is there already the same again (its visits
   are further rounds). Another build, ERR_INPUT: *point is I64_NONE. */
int import_point(struct import *, const struct import_test *, int64_t *point, struct err *);
void import_phase(struct import *, int64_t point, const char *name, const char *item, double items);
/* A fact of the machine or the tool; another value for it is ERR_INPUT where they must agree, else
 * the first stays. */
int import_environment(struct import *, const char *key, const char *value, const char *unit,
                       bool agree, struct err *);
void import_created(struct import *, const char *created); /* of the measurement; the first stays */

/* A further round of the point; ERR_INPUT if it was given by its averages. */
int import_visit(struct import *, int64_t point, int64_t executions, int64_t *visit, struct err *);
void import_sample(struct import *, int64_t visit, int64_t order, int64_t ns);
void import_value(struct import *, int64_t visit, const char *metric, const char *unit,
                  double value);
/* The visit has no numbers. */
void import_failure(struct import *, int64_t visit, const char *reason);
/* Averages of a point without visits; n I64_NONE, others NAN where unknown. */
struct import_given {
    const char *metric, *unit;
    int64_t n;
    double mean, stddev, median;
};
/* n metrics at once, once a point. ERR_INPUT if there is something of it already. */
int import_given(struct import *, int64_t point, const struct import_given *, size_t n,
                 struct err *);
/* Whether something of the point's numbers is there. */
bool import_has(const struct import *, int64_t point);

/* Members of an object, with sentences that name them: where is "[3]". The value is text, a finite
   number, or a whole number of at most 2^53. */
int import_text(const cJSON *object, const char *name, const char *where, const char **value,
                struct err *);
int import_number(const cJSON *object, const char *name, const char *where, double *value,
                  struct err *);
int import_whole(const cJSON *object, const char *name, const char *where, int64_t *value,
                 struct err *);
/* Any value as text: strings as they are, else its JSON; "" for null. */
void import_any(const cJSON *value, struct text *out);

#endif
