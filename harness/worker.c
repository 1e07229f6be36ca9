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
#include "harness/snapshot.h"
#include "results/table.h"

enum { SEEN_MOST = PROTOCOL_MOST_POINTS };
struct worker {
    struct device *device;
    uint64_t device_key;
    struct model *model;
    uint64_t model_key;
    const struct point *point; /* of the present visit */
    struct snapshot *snapshot;
    struct sample_log log;
    bool *seen; /* (SEEN_MOST) points that this worker has visited */
};

void visit_pack(struct facts *facts, const struct visit_order *order,
                const struct measure_params *measure, const struct point *point) {
    facts_copy(facts, &point->facts);
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

int worker_open(struct worker **out, int snapshot_fd, const struct sample_log *log,
                struct err *err) {
    struct worker *w = must_alloc(sizeof *w);
    range_push(RANGE_RUN, "run", 0); /* as far as one worker sees it */
    w->log = *log;
    w->seen = must_alloc(SEEN_MOST);
    int code = snapshot_fd >= 0 ? snapshot_open(&w->snapshot, snapshot_fd, err) : 0;
    *out = w;
    if (code) worker_close(out);
    return code;
}

static void close_device(struct worker *w) {
    model_close(&w->model);
    w->model_key = 0;
    device_close(&w->device);
}

void worker_close(struct worker **worker) {
    if (!*worker) return;
    close_device(*worker);
    snapshot_close(&(*worker)->snapshot);
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
    return device_open(&w->device, point->device, point->device_params, err);
}

/* Weights that this point does not use must not be in its memory, whatever came before it. */
static void drop_other_model(struct worker *w, const struct point *point) {
    if (w->model && !(point->has_model && w->model_key == point->weights_key))
        model_close(&w->model);
}

static int store_model(void *ctx, struct model **model, struct err *err) {
    struct worker *w = ctx;
    if (!w->model || w->model_key != w->point->weights_key) {
        model_close(&w->model);
        int code = model_create(&w->model, w->device, &w->point->config, err);
        if (code) return code;
        w->model_key = w->point->weights_key;
    }
    *model = w->model;
    return 0;
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

int worker_visit(struct worker *w, const struct facts *facts, struct tables *out, struct err *err) {
    struct arena *arena = arena_create();
    struct point *point = arena_alloc(arena, sizeof *point);
    struct measure_params measure = {0};
    struct err trouble = {0};
    int code = measure_unpack(facts, &measure, arena, err);
    struct facts own = {0};
    for (size_t i = 0; !code && i < facts->n; i++) {
        const struct fact *f = &facts->items[i];
        bool ours = !strncmp(f->key, "workload.", 9) || !strncmp(f->key, "model.", 6) ||
                    !strncmp(f->key, "shape.", 6) || !strncmp(f->key, "device.", 7);
        if (ours) facts_set(&own, f->key, f->value, f->unit, f->origin);
    }
    if (!code) code = point_parse(point, &own, arena, NULL, err);
    if (!code) {
        point->index = number(facts, "point.index");
        point->case_name = facts_get(facts, "point.case", "");
        point->label = facts_get(facts, "point.label", "");
        struct visit_request request = {
            .point = point,
            .measure = &measure,
            .visit = number(facts, "order.visit"),
            .round = number(facts, "order.round"),
            .position = number(facts, "order.position"),
            .worker = number(facts, "order.worker"),
            .share_ns = number(facts, "order.share_ns"),
            .control = number(facts, "order.control"),
        };
        bool known = point->index >= 0 && point->index < SEEN_MOST;
        w->point = point;
        if (need_device(w, point, &trouble)) {
            close_device(w);
            sample_log_begin(&w->log, request.visit);
            refused(&request, out, &trouble);
        } else {
            request.first = !known || !w->seen[point->index];
            if (known) w->seen[point->index] = true;
            struct run_store store = {
                .snapshot = store_snapshot, .snapshot_ready = store_snapshot_ready, .ctx = w};
            if (point->has_model) store.model = store_model;
            drop_other_model(w, point);
            loop_visit(&request, w->device, &store, &w->log, out);
        }
    }
    facts_free(&own);
    facts_free(&point->facts);
    arena_close(&arena);
    w->point = NULL;
    return code;
}

static int serve(struct worker *w, int fd, struct err *err) {
    for (;;) {
        uint32_t kind;
        char *body = NULL;
        size_t len;
        struct facts request = {0};
        int code = frame_read(fd, &kind, &body, &len, err);
        if (code || !body) return code; /* the clean end: the supervisor is done with us */
        struct tables *out = tables_create();
        struct text answer = {0};
        if (kind != MESSAGE_VISIT)
            code = err_set(err, ERR_INTERNAL, "worker: message %u is not a visit", kind);
        if (!code) code = facts_unpack(&request, body, len, err);
        if (!code) code = worker_visit(w, &request, out, err);
        const bool last = w->device && w->device->lost;
        if (!code) {
            tables_pack(out, &answer);
            code =
                frame_write(fd, last ? MESSAGE_LAST : MESSAGE_DONE, answer.data, answer.len, err);
        }
        text_free(&answer);
        tables_close(&out);
        facts_free(&request);
        free(body);
        if (code || last) return code;
    }
}

int worker_main(int fd, int log_fd, int snapshot_fd) {
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
    if (!code) code = worker_open(&w, snapshot_fd, &log, &err);
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
