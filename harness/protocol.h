/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol: the question, its points fully parsed, checked and planned before anything runs. */
#ifndef HARNESS_PROTOCOL_H
#define HARNESS_PROTOCOL_H
#include "base/data_folder.h"
#include "base/facts.h"
#include "base/option.h"
#include "base/problems.h"
#include "kernels/device.h"
#include "results/gate.h"
#include "workloads/model/model.h"
#include "workloads/workload.h"

struct arena;
struct err;
struct tables;

enum { ORDER_SHUFFLED, ORDER_DECLARED };
enum { FRESH_ROUND, FRESH_RUN };
enum { STOP_PRECISION, STOP_SAMPLES };
struct measure_params {  /* section [measure]; all optional */
    int64_t budget_ns;   /* "budget": wall time of the whole run, set-up included; default 90 s */
    int64_t rounds;      /* 0: eight, or as few as five where the budget is short */
    int64_t warmups;     /* default 5; at least this many on a point's first visit of a worker */
    int64_t warmup_ns;   /* "warmup_budget": default 5 s a visit */
    int64_t min_samples; /* default 5 (2 for executions over 1 s) */
    int64_t max_samples; /* default 1,000,000 a visit */
    int64_t samples;     /* stop = "samples": exactly that many a visit */
    double precision; /* stop = "precision": relative half width within the visit, default 0.01 */
    double disturbed; /* share of disturbed samples beyond which the row is flagged; default 0.1 */
    int stop, order, fresh;
    int64_t timeout_ns; /* of one visit: default 10 min */
    bool sample_probes; /* probes around every sample; default off */
    bool cold;          /* evict caches before each sample; default off */
    int64_t seed;       /* default 1 */
    /* Set by --quick and --profile: recorded, never comparable. */
    bool quick, profile;
};
extern const struct option measure_options[]; /* keys: budget, cold, disturbed, fresh, max_samples,
                                                 min_samples, order, ... */

struct point { /* everything a worker needs, as text in facts and parsed beside */
    int64_t index;
    const char *case_name, *label; /* "" if there are no cases; "batch=16" */
    const char *side;              /* of a comparison: "a" or "b"; else NULL */
    const char *cell; /* identity text (options that differ from defaults), and its hash */
    uint64_t cell_hash;
    struct facts facts; /* "workload.name", "workload.*", "model.*", "shape.*", "device.kind",
                           "device.*" with origins */
    const struct workload *workload;
    void *params; /* of the workload */
    bool has_model;
    struct model_config config;
    const struct device_kind *device; /* 'auto' resolved */
    void *device_params;
    struct plan plan;
    uint64_t weights_key; /* points with the same key share a weight set: 0 without a model */
    uint64_t beside_key;  /* the same of a second model that it names; 0: none */
    /* What workload.text names, where prompts come from it; else NULL. Not among the facts. */
    const char *text;
};
/* Reads facts (defaults filled in) into a point; mistakes go to problems (may be NULL: then the
 * first is err). Calls check and plan. */
int point_parse(struct point *, const struct facts *, struct arena *, struct problems *,
                struct err *);
/* 'auto': cuda where it opens (tried once), else cpu. NULL: no such device in this build, and err
 * says why. */
const struct device_kind *point_device_kind(const char *name, struct err *err);
double plan_flops(const struct plan *);
double plan_bytes(const struct plan *);       /* traffic, all phases and classes */
int64_t plan_live_bytes(const struct plan *); /* sum of bytes[] */

struct swept_key {
    const char *key;
    enum option_type type;
    const char *unit;
};
struct protocol {
    struct arena *arena;
    const char *name; /* file name without folder and .toml */
    const char *title, *question;
    struct {
        const char *path, *text;
    } * files; /* all that was read; [0] the protocol itself, verbatim */
    size_t n_files;
    struct facts facts; /* protocol-wide: title, question, measure.*, gate.*, analysis.N.*,
                           published.N.* with origins */
    struct measure_params measure;
    struct gate_settings gate;
    struct swept_key *swept;
    size_t n_swept;
    struct point *points;
    size_t n_points;
};
struct protocol_request {
    const char *path; /* a file, or a name found in the protocols folder */
    const char *text; /* instead of path: the text itself (replay); files then come from `tables` */
    const struct tables *stored; /* replay and resume: table files of a result */
    const char *const *sets;     /* "key=value" of --set, --device, --seed, in order */
    size_t n_sets;
    bool quick, profile;
    bool plan; /* nothing will be measured: all memory counts, also what others use now */
};
#define PROTOCOL_MOST_POINTS 100000
/* Semantic mistakes all go to problems; err only for what stops reading (no file, syntax). With
 * problems left *p is NULL. */
int protocol_load(struct protocol **p, const struct protocol_request *, struct problems *,
                  struct err *);
void protocol_close(struct protocol **);

/* Two workers of one row live at once: ERR_INPUT where some row of both sides (the same rows) does
   not fit into what can be had now (plan: into all memory). shared: equal weights lie there once.
 */
int protocol_fit_pair(const struct protocol *a, const struct protocol *b, bool shared, bool plan,
                      struct err *);

#endif
