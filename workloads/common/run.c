/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution may call: clock, phases, marks, failures; and the models and snapshots that
 * outlive it. */
#include "workloads/common/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/range.h"
#include "kernels/device.h"

const char *const contract_names[5] = {"none", "exact", "close", "lossy", NULL};

const struct workload *workload_find(const char *name) {
    for (int i = 0; all_workloads[i]; i++)
        if (!strcmp(all_workloads[i]->name, name)) return all_workloads[i];
    return NULL;
}

struct device *run_device(struct run *run) {
    return run->device;
}

uint64_t run_seed(struct run *run) { return run->seed; }

/* A mark says that something is done, not that it was asked for: queued work is waited for (seeds
 * R02). */
static void settle(struct run *run) {
    struct err err; /* not zeroed as a whole: marks lie within the timing */
    err.code = 0;
    err.text[0] = 0;
    if (run->device->kind->sync(run->device, &err)) run_fail(run, "%s", err.text);
}

int64_t run_now(struct run *run) { return device_now(run->device) - run->begin_ns; }

void run_wait(struct run *run, int64_t until_ns) {
    if (run->device->kind->wait) {
        run->device->kind->wait(run->device, run->begin_ns + until_ns);
        return;
    }
    /* The host sleeps to shortly before the moment and polls the rest: a timer alone is late by
     * tens of microseconds. */
    const int64_t margin_ns = 100000;
    int64_t left = until_ns - run_now(run);
    if (left > 2 * margin_ns) {
        int64_t at = clock_ns() + left - margin_ns;
        struct timespec t = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) continue;
    }
    while (run_now(run) < until_ns) continue;
}

static void record_at(struct run *run, int64_t t_ns, int mark, int32_t who, int32_t n) {
    if (run->n_marks == run->most_marks) {
        run->lost_marks++;
        return;
    }
    run->marks[run->n_marks++] =
        (struct mark_record){.t_ns = t_ns, .mark = mark, .who = who, .n = n};
}

static void record(struct run *run, int mark, int32_t who, int32_t n) {
    record_at(run, run_now(run), mark, who, n);
}

static void open_phase(struct run *run, int phase) {
    run->phase = phase;
    tracker_phase(run->device->tracker, phase);
    range_push(RANGE_PHASE, run->workload->phases[phase].name, 0);
}

static void close_phase(struct run *run) {
    if (run->phase < 0) return;
    range_pop();
    tracker_phase(run->device->tracker, -1);
    run->phase = -1;
}

void run_phase(struct run *run, int phase) {
    settle(run);
    close_phase(run);
    record(run, -1 - phase, -1, 0);
    open_phase(run, phase);
}

void run_mark(struct run *run, int mark, int32_t who, int32_t n) {
    settle(run);
    record(run, mark, who, n);
}

void run_arrived(struct run *run, int32_t who, int64_t at_ns) { record_at(run, at_ns, 0, who, 0); }

void run_fail(struct run *run, const char *fmt, ...) {
    if (run->failed) return; /* the first reason is the cause, later ones its consequences */
    run->failed = true;
    va_list args;
    va_start(args, fmt);
    vsnprintf(run->failure, sizeof run->failure, fmt, args);
    va_end(args);
}

void run_flag(struct run *run, const char *flag, const char *fmt, ...) {
    for (int i = 0; i < run->n_flags; i++)
        if (!strcmp(run->flags[i].flag, flag)) return; /* said already */
    if (run->n_flags == RUN_FLAGS_MOST) return;
    struct run_flag *f = &run->flags[run->n_flags++];
    f->flag = flag;
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->reason, sizeof f->reason, fmt, args);
    va_end(args);
}

int run_model(struct run *run, struct model **model, struct err *err) {
    *model = NULL;
    if (!run->store.model)
        return err_set(err, ERR_INTERNAL, "this run has no model; the workload lacks WORK_MODEL");
    return run->store.model(run->store.ctx, model, err);
}

int run_model_beside(struct run *run, struct model **model, struct err *err) {
    *model = NULL;
    if (!run->store.beside)
        return err_set(err, ERR_INTERNAL, "this run has no second model; the workload names none");
    return run->store.beside(run->store.ctx, model, err);
}

const char *run_text(struct run *run, size_t *bytes) {
    *bytes = run->store.text_bytes;
    return run->store.text;
}

void *run_snapshot(struct run *run, const char *key, size_t bytes, bool *ready) {
    *ready = false;
    if (!run->store.snapshot) return NULL;
    return run->store.snapshot(run->store.ctx, key, bytes, ready);
}

void run_snapshot_ready(struct run *run, const char *key) {
    if (run->store.snapshot_ready) run->store.snapshot_ready(run->store.ctx, key);
}

void run_begin(struct run *run, int64_t now_ns) {
    run->begin_ns = now_ns;
    run->n_marks = 0;
    run->lost_marks = 0;
    run->failed = false;
    run->failure[0] = 0;
    run->phase = -1;
    if (!run->workload->phases[1].name) open_phase(run, 0);
}

void run_end(struct run *run) { close_phase(run); }
