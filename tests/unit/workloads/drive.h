/* SPDX-License-Identifier: Apache-2.0 */
/* Drives workloads and sessions without the real loop: devices, shapes, a run with snapshots in
 * memory. */
#ifndef TESTS_UNIT_WORKLOADS_DRIVE_H
#define TESTS_UNIT_WORKLOADS_DRIVE_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "kernels/device.h"
#include "workloads/common/run.h"
#include "workloads/model/ledger.h"
#include "workloads/model/transformer.h"

/* NULL if this build or machine has no such device. */
static inline struct device *drive_open(const char *name, struct arena *arena) {
    const struct device_kind *kind = device_kind_find(name);
    struct device *device = NULL;
    struct err err = {0};
    if (!kind) return NULL;
    void *params = arena_alloc(arena, kind->params_size + 1);
    option_defaults(kind->params, params, arena);
    if (device_open(&device, kind, params, &err)) print_message("%s: %s\n", name, err.text);
    return device;
}

static inline void drive_set(const struct option *table, void *params, const char *key,
                             const char *text, struct arena *arena) {
    struct err err = {0};
    const struct option *option = option_find(table, key);
    if (!option) fail_msg("no key %s", key);
    if (option_parse(option, text, params, arena, &err)) fail_msg("%s: %s", key, err.text);
}

/* settings: "key=value key=value", or with another character between them where values have spaces.
 */
static inline void drive_settings(const struct option *table, void *params, const char *settings,
                                  const char *between, struct arena *arena) {
    char *copy = arena_text(arena, settings), *rest;
    for (char *word = strtok_r(copy, between, &rest); word; word = strtok_r(NULL, between, &rest)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        drive_set(table, params, word, value, arena);
    }
}

/* Reads protocols/models/NAME.toml: plain lines `key = value`, which is all that these files hold.
 */
static inline struct model_config drive_config(const char *name, struct arena *arena) {
    struct model_config config = {0};
    char path[1000], *text, *rest;
    const char *root = getenv("SOURCE_DIR");
    struct err err = {0};
    size_t len;
    option_defaults(shape_options, &config.shape, arena);
    option_defaults(model_options, &config.params, arena);
    snprintf(path, sizeof path, "%s/protocols/models/%s.toml", root ? root : ".", name);
    if (file_read(path, 1 << 16, &text, &len, &err)) fail_msg("%s", err.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char key[40], value[900];
        if (line[0] == '#' || sscanf(line, " %39[a-z_] = %899[^\n]", key, value) != 2) continue;
        char *v = value;
        if (*v == '"') {
            v++;
            v[strlen(v) - 1] = 0;
        }
        drive_set(shape_options, &config.shape, key, v, arena);
    }
    free(text);
    config.shape.name = arena_text(arena, name);
    config.params.shape = config.shape.name;
    return config;
}

static inline void drive_model(struct model_config *config, const char *key, const char *text,
                               struct arena *arena) {
    drive_set(model_options, &config->params, key, text, arena);
}

/* A run: one model, snapshots that last as long as it. */
struct drive_piece {
    char key[200];
    void *bytes;
    size_t size;
    bool ready;
};
struct drive {
    struct run run;
    struct device *device;
    struct model_config config;
    struct model *model, *beside;
    struct plan plan;
    struct arena *arena;
    void *params, *self;
    struct drive_piece pieces[256];
    int n_pieces, filled, found; /* pieces; filled by the workload; found ready */
};

static inline int drive_store_model(void *ctx, struct model **model, struct err *err) {
    struct drive *drive = ctx;
    if (!drive->model) {
        int code = model_create(&drive->model, drive->device, &drive->config, err);
        if (code) return code;
    }
    *model = drive->model;
    return 0;
}

static inline int drive_store_beside(void *ctx, struct model **model, struct err *err) {
    struct drive *drive = ctx;
    struct model_config other;
    int code = 0;
    if (!drive->run.workload->beside(drive->params, &drive->config, &other))
        return err_set(err, ERR_INTERNAL, "the workload names no second model");
    if (!drive->beside) code = model_create(&drive->beside, drive->device, &other, err);
    *model = drive->beside;
    return code;
}

static inline void *drive_snapshot(void *ctx, const char *key, size_t bytes, bool *ready) {
    struct drive *drive = ctx;
    for (int i = 0; i < drive->n_pieces; i++) {
        struct drive_piece *piece = &drive->pieces[i];
        if (strcmp(piece->key, key) != 0) continue;
        assert_int_equal(piece->size, bytes);
        *ready = piece->ready;
        drive->found += piece->ready;
        return piece->bytes;
    }
    if (drive->n_pieces == 256) return NULL;
    struct drive_piece *piece = &drive->pieces[drive->n_pieces++];
    snprintf(piece->key, sizeof piece->key, "%s", key);
    piece->bytes = must_alloc(bytes);
    piece->size = bytes;
    piece->ready = *ready = false;
    return piece->bytes;
}

static inline void drive_snapshot_ready(void *ctx, const char *key) {
    struct drive *drive = ctx;
    for (int i = 0; i < drive->n_pieces; i++)
        if (!strcmp(drive->pieces[i].key, key)) {
            drive->filled += !drive->pieces[i].ready;
            drive->pieces[i].ready = true;
            return;
        }
    fail_msg("no piece %s", key);
}

static inline void drive_open_run(struct drive *drive, struct device *device,
                                  const struct model_config *config, struct arena *arena) {
    memset(drive, 0, sizeof *drive);
    drive->device = device;
    drive->arena = arena;
    if (config) drive->config = *config;
    drive->run = (struct run){.device = device,
                              .seed = 5,
                              .phase = -1,
                              .store = {.model = drive_store_model,
                                        .beside = drive_store_beside,
                                        .snapshot = drive_snapshot,
                                        .snapshot_ready = drive_snapshot_ready,
                                        .ctx = drive}};
}

static inline void drive_close_run(struct drive *drive) {
    model_close(&drive->model);
    for (int i = 0; i < drive->n_pieces; i++) free(drive->pieces[i].bytes);
}

/* settings: "key=value key=value". Checks, plans and prepares; a failure is the return value. */
static inline int drive_prepare(struct drive *drive, const char *name, const char *settings,
                                struct err *err) {
    const struct workload *w = workload_find(name);
    assert_non_null(w);
    drive->params = arena_alloc(drive->arena, w->params_size + 1);
    option_defaults(w->params, drive->params, drive->arena);
    drive_settings(w->params, drive->params, settings, " ", drive->arena);
    const struct model_config *config = w->flags & WORK_MODEL ? &drive->config : NULL;
    struct problems *problems = problems_create();
    if (config) model_check(config, problems);
    if (w->adapt) w->adapt(drive->params, drive->run.device->kind);
    if (w->check) w->check(drive->params, config, problems);
    if (problems_count(problems)) {
        problems_close(&problems);
        return err_set(err, ERR_INPUT, "refused by check");
    }
    problems_close(&problems);
    memset(&drive->plan, 0, sizeof drive->plan);
    if (w->plan) w->plan(drive->params, config, &drive->plan);
    drive->run.workload = w;
    drive->run.most_marks = drive->plan.most_marks;
    drive->run.marks =
        must_alloc(sizeof(struct mark_record) * (size_t)(drive->plan.most_marks + 1));
    drive->self = must_alloc(w->self_size + 1);
    return w->prepare(drive->self, drive->params, config, &drive->run, err);
}

/* One execution, untimed. The peak beyond what was live before it must be what the plan promised.
 */
static inline void drive_execute(struct drive *drive) {
    const struct workload *w = drive->run.workload;
    struct err err = {0};
    if (w->reset) w->reset(drive->self);
    tracker_reset(drive->device->tracker);
    int64_t before = tracker_live(drive->device->tracker, -1);
    run_begin(&drive->run, device_now(drive->device));
    w->execute(drive->self);
    if (drive->device->kind->sync(drive->device, &err)) fail_msg("%s", err.text);
    run_end(&drive->run);
    if (drive->run.failed) fail_msg("%s", drive->run.failure);
    assert_int_equal(drive->run.lost_marks, 0);
    assert_int_equal(drive->run.phase, -1);
    if (drive->plan.peak_bytes >= 0)
        assert_int_equal(tracker_peak(drive->device->tracker, NULL, NULL, NULL) - before,
                         drive->plan.peak_bytes);
}

static inline struct witness drive_witness(struct drive *drive) {
    struct witness witness = {0};
    struct err err = {0};
    if (drive->run.workload->witness(drive->self, &witness, &err)) fail_msg("%s", err.text);
    return witness;
}

static inline struct values drive_report(struct drive *drive) {
    struct values values = {0};
    if (drive->run.workload->report) drive->run.workload->report(drive->self, &values);
    return values;
}

static inline void drive_dispose(struct drive *drive) {
    if (drive->run.workload->dispose) drive->run.workload->dispose(drive->self);
    model_close(&drive->beside);
    free(drive->self);
    free(drive->run.marks);
    drive->self = NULL;
}

#endif
