/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: opens devices, keeps one weight set, measures visits, answers with tables. */
#include "harness/worker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/range.h"
#include "base/text.h"
#include "gen/build_info.h"
#include "harness/loop.h"
#include "harness/sharing.h"
#include "harness/snapshot.h"
#include "harness/visit.h"
#include "results/table.h"

enum { SEEN_MOST = PROTOCOL_MOST_POINTS };
struct job { /* a visit as it was asked for, and as far as it is */
    struct arena *arena;
    struct point *point;
    struct measure_params measure;
    struct visit_request request;
    struct visit *visit; /* in turns */
    struct err trouble;  /* why it could not begin */
};
struct worker {
    struct device *device;
    uint64_t device_key;
    struct model *model;
    uint64_t model_key;
    struct model *beside; /* a second one */
    uint64_t beside_key;
    struct job *job; /* the present visit */
    struct snapshot *snapshot;
    struct sharing_store *weights; /* packed ones, that the other worker of a pair sees too */
    struct sample_log log;
    bool *seen; /* (SEEN_MOST) points that this worker has visited */
};

void visit_pack(struct facts *facts, const struct visit_order *order,
                const struct measure_params *measure, const struct point *point) {
    /* What nobody asked for is every program's own default: an older one, which lacks a key, can be
       asked too. */
    for (size_t i = 0; i < point->facts.n; i++) {
        const struct fact *f = &point->facts.items[i];
        if (strcmp(f->origin, "default") || !strcmp(f->key, "device.kind"))
            facts_set(facts, f->key, f->value, f->unit, f->origin);
    }
    facts_printf(facts, "order.visit", "", "", "%" PRId64, order->visit);
    facts_printf(facts, "order.round", "", "", "%" PRId64, order->round);
    facts_printf(facts, "order.position", "", "", "%" PRId64, order->position);
    facts_printf(facts, "order.worker", "", "", "%" PRId64, order->worker);
    facts_printf(facts, "order.share_ns", "", "", "%" PRId64, order->share_ns);
    facts_printf(facts, "order.control", "", "", "%d", order->control);
    facts_printf(facts, "order.quick", "", "", "%d", measure->quick);
    facts_printf(facts, "order.profile", "", "", "%d", measure->profile);
    for (const struct option *o = measure_options; o->key; o++) {
        char key[80];
        struct text value = {0};
        snprintf(key, sizeof key, "measure.%s", o->key);
        option_format(o, measure, &value);
        facts_set(facts, key, value.data ? value.data : "", "", "");
        text_free(&value);
    }
    facts_printf(facts, "point.index", "", "", "%" PRId64, point->index);
    facts_set(facts, "point.case", point->case_name, "", "");
    facts_set(facts, "point.label", point->label, "", "");
    facts_set(facts, "point.cell", point->cell, "", "");
    if (point->text) facts_set(facts, "point.text", point->text, "", "");
}

static int64_t number(const struct facts *facts, const char *key) {
    int64_t v = 0;
    parse_i64(facts_get(facts, key, "0"), &v);
    return v;
}

static int measure_unpack(const struct facts *facts, struct measure_params *measure,
                          struct arena *arena, struct err *err) {
    option_defaults(measure_options, measure, arena);
    for (const struct option *o = measure_options; o->key; o++) {
        char key[80];
        snprintf(key, sizeof key, "measure.%s", o->key);
        const struct fact *f = facts_find(facts, key);
        if (f && option_parse(o, f->value, measure, arena, err)) return err_prefix(err, "%s", key);
    }
    measure->quick = number(facts, "order.quick");
    measure->profile = number(facts, "order.profile");
    return 0;
}

int worker_open(struct worker **out, int snapshot_fd, int weights_fd, const struct sample_log *log,
                struct err *err) {
    struct worker *w = must_alloc(sizeof *w);
    range_push(RANGE_RUN, "run", 0); /* as far as one worker sees it */
    w->log = *log;
    w->seen = must_alloc(SEEN_MOST);
    int code = snapshot_fd >= 0 ? snapshot_open(&w->snapshot, snapshot_fd, err) : 0;
    if (!code && weights_fd >= 0) code = sharing_open(&w->weights, weights_fd, err);
    *out = w;
    if (code) worker_close(out);
    return code;
}

static void close_device(struct worker *w) {
    model_close(&w->beside);
    model_close(&w->model);
    w->model_key = w->beside_key = 0;
    device_close(&w->device);
}

static void job_close(struct worker *w) {
    struct job *job = w->job;
    if (!job) return;
    facts_free(&job->point->facts);
    arena_close(&job->arena);
    free(job);
    w->job = NULL;
}

void worker_close(struct worker **worker) {
    if (!*worker) return;
    struct tables *nowhere = tables_create();
    if ((*worker)->job) loop_close(&(*worker)->job->visit, nowhere); /* given up in its middle */
    tables_close(&nowhere);
    job_close(*worker);
    close_device(*worker);
    snapshot_close(&(*worker)->snapshot);
    sharing_close(&(*worker)->weights);
    free((*worker)->seen);
    free(*worker);
    range_pop();
    *worker = NULL;
}

/* The device that the point asks for; another one closes the present one first, so that memory is
 * never held twice. */
static int need_device(struct worker *w, const struct point *point, struct err *err) {
    struct facts own = {0};
    for (size_t i = 0; i < point->facts.n; i++) {
        const struct fact *f = &point->facts.items[i];
        if (!strncmp(f->key, "device.", 7)) facts_set(&own, f->key, f->value, "", "");
    }
    uint64_t key = facts_hash(&own);
    facts_free(&own);
    if (w->device && w->device_key == key) return 0;
    close_device(w);
    w->device_key = key;
    int code = device_open(&w->device, point->device, point->device_params, err);
    if (code || !w->weights) return code;
    w->device->sharing = sharing_of(w->weights);
    if (w->device->kind->stay) w->device->kind->stay(w->device);
    return 0;
}

/* Weights that this point does not use must not be in its memory, whatever came before it. */
static void drop_other_model(struct worker *w, const struct point *point) {
    if (w->beside && w->beside_key != point->beside_key) model_close(&w->beside);
    if (w->model && !(point->has_model && w->model_key == point->weights_key))
        model_close(&w->model);
}

static int make_model(struct worker *w, struct model **model, uint64_t *has, uint64_t key,
                      const struct model_config *config, struct err *err) {
    if (*model && *has == key) return 0;
    model_close(model);
    if (w->weights) sharing_model(w->weights, key);
    const int code = model_create(model, w->device, config, err);
    if (w->weights) sharing_model(w->weights, 0);
    *has = code ? 0 : key;
    return code;
}

static int store_model(void *ctx, struct model **model, struct err *err) {
    struct worker *w = ctx;
    const struct point *point = w->job->point;
    const int code =
        make_model(w, &w->model, &w->model_key, point->weights_key, &point->config, err);
    *model = w->model;
    return code;
}
static int store_beside(void *ctx, struct model **model, struct err *err) {
    struct worker *w = ctx;
    const struct point *point = w->job->point;
    struct model_config config;
    point->workload->beside(point->params, &point->config, &config);
    const int code = make_model(w, &w->beside, &w->beside_key, point->beside_key, &config, err);
    *model = w->beside;
    return code;
}
static void *store_snapshot(void *ctx, const char *key, size_t bytes, bool *ready) {
    struct worker *w = ctx;
    return w->snapshot ? snapshot_piece(w->snapshot, key, bytes, ready) : NULL;
}
static void store_snapshot_ready(void *ctx, const char *key) {
    struct worker *w = ctx;
    if (w->snapshot) snapshot_ready(w->snapshot, key);
}

/* A visit that could not begin: no device. */
static void refused(const struct visit_request *r, struct tables *out, const struct err *err) {
    struct table *t = tables_get(out, "visits");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", r->visit);
    table_set_i64(t, row, "point", r->point->index);
    table_set_i64(t, row, "round", r->round);
    table_set_i64(t, row, "position", r->position);
    table_set_i64(t, row, "control", r->control);
    table_set_i64(t, row, "worker", r->worker);
    table_set_i64(t, row, "samples", 0);
    table_set_text(t, row, "state",
                   err->code == ERR_UNSUPPORTED ? "skipped"
                   : err->code == ERR_MEMORY    ? "oom"
                                                : "failed");
    table_set_text(t, row, "reason", err->text);
}

/* The point and how it is to be visited. */
static int job_read(struct worker *w, const struct facts *facts, struct err *err) {
    struct job *job = w->job = must_alloc(sizeof *job);
    job->arena = arena_create();
    struct point *point = job->point = arena_alloc(job->arena, sizeof *point);
    int code = measure_unpack(facts, &job->measure, job->arena, err);
    struct facts own = {0};
    for (size_t i = 0; !code && i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        bool ours = !strncmp(f->key, "workload.", 9) || !strncmp(f->key, "model.", 6) ||
                    !strncmp(f->key, "shape.", 6) || !strncmp(f->key, "device.", 7);
        if (ours) facts_set(&own, f->key, f->value, f->unit, f->origin);
    }
    if (!code) code = point_parse(point, &own, job->arena, NULL, err);
    facts_free(&own);
    if (code) return code;
    point->index = number(facts, "point.index");
    point->case_name = arena_text(job->arena, facts_get(facts, "point.case", ""));
    point->label = arena_text(job->arena, facts_get(facts, "point.label", ""));
    point->text = arena_text(job->arena, facts_get(facts, "point.text", NULL));
    job->request = (struct visit_request){
        .point = point,
        .measure = &job->measure,
        .visit = number(facts, "order.visit"),
        .round = number(facts, "order.round"),
        .position = number(facts, "order.position"),
        .worker = number(facts, "order.worker"),
        .share_ns = number(facts, "order.share_ns"),
        .control = number(facts, "order.control"),
    };
    return 0;
}

/* The device is there, and no other model beside it; what the visit may ask for is in *store. */
static bool job_begin(struct worker *w, struct run_store *store) {
    struct job *job = w->job;
    const struct point *point = job->point;
    const bool known = point->index >= 0 && point->index < SEEN_MOST;
    if (need_device(w, point, &job->trouble)) {
        close_device(w);
        sample_log_begin(&w->log, job->request.visit);
        return false;
    }
    job->request.first = !known || !w->seen[point->index];
    if (known) w->seen[point->index] = true;
    *store = (struct run_store){
        .snapshot = store_snapshot, .snapshot_ready = store_snapshot_ready, .ctx = w};
    if (point->has_model) store->model = store_model;
    if (point->beside_key) store->beside = store_beside;
    if (point->text) {
        store->text = point->text;
        store->text_bytes = strlen(point->text);
    }
    drop_other_model(w, point);
    if (w->device->kind->unplan) w->device->kind->unplan(w->device);
    return true;
}

int worker_visit(struct worker *w, const struct facts *facts, struct tables *out, struct err *err) {
    struct run_store store;
    int code = job_read(w, facts, err);
    if (!code && job_begin(w, &store))
        loop_visit(&w->job->request, w->device, &store, &w->log, out);
    else if (!code)
        refused(&w->job->request, out, &w->job->trouble);
    job_close(w);
    return code;
}

static int turns_begin(struct worker *w, const struct facts *facts, struct facts *ready,
                       struct err *err) {
    struct run_store store;
    if (w->job) return err_set(err, ERR_INTERNAL, "worker: a visit is under way");
    int code = job_read(w, facts, err);
    if (code) {
        job_close(w);
        return code;
    }
    w->job->request.turns = true;
    if (job_begin(w, &store))
        w->job->visit = loop_open(&w->job->request, w->device, &store, &w->log);
    const struct visit *v = w->job->visit;
    facts_set(ready, "ready.state", !v ? "failed" : v->state[0] ? v->state : "ok", "", "");
    facts_printf(ready, "ready.typical_ns", "", "", "%" PRId64, v ? v->typical_ns : 0);
    facts_printf(ready, "ready.batch", "", "", "%" PRId64, v ? v->batch : 1);
    char place[17] = "none";
    if (v && w->weights && !v->virtual_clock) sharing_place(w->weights, w->device, place);
    facts_set(ready, "ready.weights", place, "", "");
    return 0;
}

static int turn(struct worker *w, const struct facts *facts, struct facts *sample,
                struct err *err) {
    int64_t executions = number(facts, "turn.executions");
    if (!w->job || !w->job->visit || executions < 1)
        return err_set(err, ERR_INTERNAL, "worker: a turn without a visit");
    facts_printf(sample, "sample.wall_ns", "", "", "%" PRId64,
                 loop_turn(w->job->visit, executions));
    return 0;
}

static int turns_end(struct worker *w, struct tables *out, struct err *err) {
    if (!w->job) return err_set(err, ERR_INTERNAL, "worker: no visit is under way");
    if (w->job->visit)
        loop_close(&w->job->visit, out);
    else
        refused(&w->job->request, out, &w->job->trouble);
    job_close(w);
    return 0;
}

int worker_answer(struct worker *w, uint32_t kind, const char *body, size_t len,
                  uint32_t *answer_kind, struct text *answer, struct err *err) {
    struct tables *out = tables_create();
    struct facts request = {0}, said = {0};
    int code = facts_unpack(&request, body, len, err);
    *answer_kind = kind == MESSAGE_OPEN   ? MESSAGE_READY
                   : kind == MESSAGE_TURN ? MESSAGE_SAMPLE
                                          : MESSAGE_DONE;
    if (!code) switch (kind) {
        case MESSAGE_VISIT: code = worker_visit(w, &request, out, err); break;
        case MESSAGE_OPEN: code = turns_begin(w, &request, &said, err); break;
        case MESSAGE_TURN: code = turn(w, &request, &said, err); break;
        case MESSAGE_CLOSE: code = turns_end(w, out, err); break;
        default: code = err_set(err, ERR_INTERNAL, "worker: message %u is no request", kind);
        }
    if (!code && *answer_kind != MESSAGE_DONE) {
        facts_pack(answer, &said);
    } else if (!code) {
        if (w->device && w->device->lost) *answer_kind = MESSAGE_LAST;
        tables_pack(out, answer);
    }
    tables_close(&out);
    facts_free(&request);
    facts_free(&said);
    return code;
}

static int serve(struct worker *w, int fd, struct err *err) {
    for (;;) {
        uint32_t kind, answer_kind;
        char *body = NULL;
        size_t len;
        struct text answer = {0};
        int code = frame_read(fd, &kind, &body, &len, err);
        if (code || !body) return code; /* the clean end: the supervisor is done with us */
        code = worker_answer(w, kind, body, len, &answer_kind, &answer, err);
        if (!code) code = frame_write(fd, answer_kind, answer.data, answer.len, err);
        text_free(&answer);
        free(body);
        if (code || answer_kind == MESSAGE_LAST) return code;
    }
}

int worker_main(int fd, int log_fd, int snapshot_fd, int weights_fd) {
    struct err err = {0};
    struct sample_log log = {0};
    struct worker *w = NULL;
    struct facts hello = {0};
    struct text body = {0};
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the supervisor decides what ends */
    signal(SIGHUP, SIG_IGN); /* and so does a terminal that closes */
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = sample_log_map(log_fd, &log, &err);
    if (!code) code = worker_open(&w, snapshot_fd, weights_fd, &log, &err);
    facts_printf(&hello, "message.version", "", "", "%d", MESSAGE_VERSION);
    facts_set(&hello, "build.revision", BUILD_REVISION, "", "");
    facts_pack(&body, &hello);
    if (!code) code = frame_write(fd, MESSAGE_HELLO, body.data, body.len, &err);
    if (!code) code = serve(w, fd, &err);
    if (code) fprintf(stderr, "bench worker: %s\n", err.text);
    worker_close(&w);
    text_free(&body);
    facts_free(&hello);
    return code ? 2 : 0;
}
