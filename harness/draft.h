/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol between its text and its points: settings and axes with their places, as they were
 * written. */
#ifndef HARNESS_DRAFT_H
#define HARNESS_DRAFT_H
#include "harness/names.h"
#include "harness/protocol.h"
#include "harness/toml.h"

struct setting {        /* KEY = VALUE somewhere in the file, or by --set */
    const char *key;    /* dotted, as of the top level: "workload.batch", "measure.budget"; in lists
                           without prefix */
    const char *origin; /* place of the key; "--set" */
    const char *value, *value_origin;
    enum toml_kind kind;
    bool used, bad;
};
struct settings {
    struct setting *items;
    size_t n, cap;
};
struct axis_value {
    const char *text, *origin;
};
struct axis_key {
    const char *key, *origin;
    struct axis_value *items;
    size_t n;
};
struct axis { /* one [[sweep]]: its keys advance together */
    const char *origin;
    struct axis_key *keys;
    size_t n_keys, cap;
    bool used, named; /* named: a key was there, whatever became of it */
};
struct axes {
    struct axis *items;
    size_t n, cap;
};
struct scope { /* the top of the file, or one [[case]] */
    const char *name, *origin;
    struct settings settings; /* workload.*, model.*, shape.*, device.* */
    struct axes axes;
    const char *model_origin, *shape_origin; /* of the tables themselves; NULL: absent */
};
struct declared { /* one [[analysis]] or [[published]] */
    const char *origin;
    struct settings settings; /* keys without prefix */
};
struct shape_file { /* or a data sheet */
    const char *name, *folder;
    struct settings settings; /* shape.*, of a sheet workload.* */
    bool found;
};
struct text_file {
    const char *name;
    const char *text, *digest; /* NULL: it cannot be read */
};
/* A case with all that it takes from elsewhere. */
struct plan_case {
    struct scope *scope;
    const char *workload_name, *workload_origin;
    const struct workload *workload;
    const struct device_kind *device;
    struct setting **settings; /* effective ones, later ones replace */
    size_t n_settings, cap_settings;
    struct axis **axes;
    size_t n_axes, cap_axes;
    size_t first_point, n_points;
    bool bad; /* its points cannot be made */
};
struct draft {
    struct arena *arena;
    struct problems *problems;
    struct protocol *protocol;
    const struct protocol_request *request;
    const char *file;   /* what origins begin with */
    const char *folder; /* where the file lies; NULL: nowhere (replay) */
    struct scope top, *cases;
    size_t n_cases, cap_cases;
    struct settings measure, gate, sets; /* sets: --set of workload.*, model.*, shape.*, device.* */
    struct declared *analyses, *published;
    size_t n_analyses, cap_analyses, n_published, cap_published;
    struct shape_file *shapes;
    size_t n_shapes, cap_shapes;
    struct text_file *texts;
    size_t n_texts, cap_texts;
    struct plan_case *plans; /* (n_plans): the cases, or one without a name */
    size_t n_plans;
};

/* One more element of an array in the arena (`array` is the address of its pointer): returns it,
 * zeroed. */
void *draft_grow(struct arena *, void *array, size_t *n, size_t *cap, size_t size);

/* A place that problem_at understands: "" for --set and default. */
const char *draft_place(const char *origin);
/* "unknown key 'X' in [measure]; did you mean 'Y'?" and what [measure] takes. */
void draft_unknown(struct draft *, const char *origin, const char *key, const char *where,
                   const struct names *allowed);
struct setting *settings_find(const struct settings *, const char *key);

/* The text's entries to scopes and lists (draft_read.c). */
void draft_read(struct draft *, const struct toml_entry *, size_t n);
/* --set key=value, each in order (draft_sets.c). */
void draft_sets(struct draft *);
/* [measure] and [gate] to params and facts (draft_measure.c). */
void draft_measure(struct draft *);
void draft_gate(struct draft *);
/* Whether [gate] names a metric and keys that this protocol has; after the points are known. */
void draft_gate_names(struct draft *, const struct names *metrics, const struct names *keys);
/* "what: no KIND is called 'WORD'; did you mean 'NEAR'?" at a place (draft_lists.c). */
void draft_no_word(struct draft *, const char *place, const char *what, const char *kind,
                   const char *word, const struct names *);
/* "KEY=VALUE, KEY=VALUE" or "KEY, KEY": each key must exist (draft_lists.c). */
void draft_check_keys(struct draft *, const char *place, const char *what, const char *text,
                      const struct names *keys);
/* [[analysis]], [[published]] checked, to facts; after the points are known. */
void draft_lists(struct draft *);
/* Cases and axes to points (draft_expand.c). */
void draft_expand(struct draft *);
/* What a key of the case names at this point, or NULL (draft_expand.c). */
const char *draft_named(const struct draft *, const struct plan_case *, size_t point,
                        const char *key, const char **origin);
/* Keeps what was read from a file in the result (draft_expand.c). */
void draft_remember_file(struct protocol *, const char *path, const char *text);
/* The digest of the text that a workload judges a model on; false: told (draft_text.c). */
bool draft_text_facts(struct draft *, const struct plan_case *, size_t point, struct facts *);
/* A point's facts with those of its model.file, where it has one; *shape: the name of a shape that
   is to be found, or NULL. false: told why not (draft_model.c). */
bool draft_model_facts(struct draft *, const struct plan_case *, size_t point, struct facts *,
                       const char **shape, const char **shape_origin);
/* The digest of the text that workload.text names, where prompts come from it; *text: all of it, or
   NULL. false: told why not (draft_prompts.c). */
bool draft_prompts(struct draft *, const struct plan_case *, struct facts *, const char **text);
/* Which tokenizer the file has ("bpe smollm"), or NULL and *why (draft_model.c). Read already. */
const char *draft_tokenizer(const struct draft *, const char *file, const char **why);
/* The bytes of FOLDER/NAME (malloc'ed): from a result that is replayed, beside the protocol, or
   from our own folder. NULL: there is none, or err says why it cannot be read (draft_expand.c). */
char *draft_data(struct draft *, const char *file, size_t most, size_t *len, struct err *);
/* Keys that were given and decide nothing at any row are mistakes (draft_idle.c). */
void draft_idle(struct draft *);
/* Memory and time that cannot be had are refused before the start (draft_fit.c). */
void draft_fit(struct draft *);

const struct option *case_option(const struct plan_case *,
                                 const char *key); /* "workload.batch"; NULL */
void case_keys(const struct plan_case *, struct names *, bool sweepable);
/* Which settings and axes each case has; every unknown, unused or doubled key is told
 * (draft_cases.c). */
void draft_cases(struct draft *);
/* Whether a key of the file is taken by no case: of the device, since that was chosen outside of
 * it, or of the model's shape, since that is a model.file's that was. */
bool draft_left_behind(const struct draft *, const char *key);
/* Index of the axis's value at a point of the case. */
size_t case_digit(const struct draft *, const struct plan_case *, size_t point, size_t axis);

#endif
