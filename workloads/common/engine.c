/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a trace on a session. */
#include "workloads/common/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernels/device.h"
#include "workloads/common/fill.h"
#include "workloads/common/plain.h"
#include "workloads/model/ledger.h"

struct session_spec engine_spec(const struct request *trace, int32_t n,
                                const struct scheduler_spec *spec) {
    const int32_t slots = scheduler_slots(n, spec);
    int64_t run, rows = scheduler_most_rows(trace, n, spec, &run);
    return (struct session_spec){
        .cache = {.n_seq = slots,
                  .capacity = (int32_t)scheduler_most_tokens(trace, n, spec),
                  .most_q = (int32_t)run,
                  .pool = (int32_t)spec->pool},
        .most_rows = (int32_t)rows,
        .most_out = slots};
}

static int64_t text_tokens(const struct request *trace, int32_t n) {
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++) sum += trace[i].prompt + trace[i].output;
    return sum;
}

int64_t engine_host_bytes(const struct model_config *config, const struct request *trace, int32_t n,
                          const struct scheduler_spec *spec, int64_t log_room) {
    const struct session_spec session = engine_spec(trace, n, spec);
    const int64_t slots = session.cache.n_seq;
    return (int64_t)sizeof(int32_t) * text_tokens(trace, n) +
           n * (int64_t)(sizeof(int64_t) + sizeof(int32_t) + sizeof(struct served)) +
           slots * (int64_t)(2 * sizeof(int32_t) + sizeof(struct span) + 64) +
           log_room * (int64_t)sizeof(struct engine_run) +
           inputs_bytes(session.cache.n_seq, 1, session.most_rows, session.most_out) +
           cache_host_bytes(config, &session.cache);
}

int64_t engine_most_marks(const struct request *trace, int32_t n) {
    int64_t output = 0;
    for (int32_t i = 0; i < n; i++) output += trace[i].output;
    return 3 * output + 6 * (int64_t)n + 64; /* a mark a token; phases of a step and a wait */
}

int engine_open(struct engine *e, struct err *err) {
    const struct session_spec spec = engine_spec(e->trace, e->n, &e->spec);
    const size_t slots = (size_t)spec.cache.n_seq;
    e->text = must_alloc(sizeof *e->text * (size_t)(text_tokens(e->trace, e->n) + 1));
    e->text_at = must_alloc(sizeof *e->text_at * ((size_t)e->n + 1));
    e->last_row = must_alloc(sizeof *e->last_row * ((size_t)e->n + 1));
    e->in_slot = must_alloc(sizeof *e->in_slot * slots);
    e->pad = must_alloc(sizeof *e->pad * slots);
    e->spans = must_alloc(sizeof *e->spans * slots);
    e->log.runs = must_alloc(sizeof *e->log.runs * (size_t)(e->log_room + 1));
    e->log.room = e->log_room;
    int code = tokens_open(&e->stream, &e->in, &e->config, e->run, err);
    if (code) return code;
    tokens_warn(&e->stream, spec.cache.most_q, e->run);
    for (int32_t i = 0; i < e->n; i++) {
        e->text_at[i + 1] = e->text_at[i] + e->trace[i].prompt + e->trace[i].output;
        tokens_fill(&e->stream, i, 0, e->trace[i].prompt, e->text + e->text_at[i]);
    }
    e->scheduler = scheduler_create(e->trace, e->n, &e->spec);
    e->device_hash = plain_device_hash(run_device(e->run));
    code = run_model(e->run, &e->model, err);
    if (!code) code = session_create(&e->session, e->model, &e->config, &spec, err);
    if (!code) code = inputs_create(&e->inputs, e->session, 1, spec.most_rows, spec.most_out, err);
    if (!code) fill_cache(e->session->cache, run_seed(e->run)); /* for engine_measure */
    return code;
}

void engine_close(struct engine *e) {
    inputs_close(&e->inputs);
    session_close(&e->session);
    scheduler_close(&e->scheduler);
    tokens_close(&e->stream);
    free(e->text);
    free(e->text_at);
    free(e->last_row);
    free(e->in_slot);
    free(e->pad);
    free(e->spans);
    free(e->log.runs);
}

void engine_reset(struct engine *e) {
    const int32_t slots = e->session->spec.cache.n_seq;
    for (int32_t s = 0; s < slots; s++) {
        session_set_length(e->session, s, 0);
        e->in_slot[s] = NEVER;
    }
    for (int32_t i = 0; i < e->n; i++) {
        int32_t *written = e->text + e->text_at[i] + e->trace[i].prompt;
        for (int32_t k = 0; k < e->trace[i].output; k++) written[k] = -1;
        e->last_row[i] = -1;
    }
    e->log.n = 0;
    scheduler_restart(e->scheduler);
}

/* Forward pass of the spans, selection, ids to the host. */
static int run_spans(struct engine *e, int32_t n, struct err *err) {
    inputs_clear(e->inputs);
    int code = inputs_add(e->inputs, e->spans, n, err);
    if (code) return code;
    inputs_upload(e->inputs);
    code = session_run(e->session, e->inputs, 0, err);
    if (code) return code;
    struct step *step = inputs_step(e->inputs, 0);
    if (!step->n_out) return 0; /* pieces of prompts alone */
    session_select(e->session, step);
    session_next(e->session, step, e->session->ids);
    return 0;
}

static enum engine_phase phase_of(const struct batch *batch) {
    if (!batch->reading) return ENGINE_DECODE;
    return batch->reading == batch->n ? ENGINE_PREFILL : ENGINE_MIXED;
}

static void enter(struct engine *e, int *phase, enum engine_phase next) {
    if (*phase != (int)next) run_phase(e->run, next);
    *phase = next;
}

static void log_run(struct engine_log *log, const struct run_of_rows *run, int32_t step,
                    int32_t phase) {
    if (log->n < log->room)
        log->runs[log->n] =
            (struct engine_run){run->rows, run->begin + run->rows, step, phase, !run->partial};
    log->n++;
}

/* A slot that changes hands is emptied first; one that lost its request gives its blocks back. */
static void prepare_slots(struct engine *e) {
    for (int32_t s = 0; s < e->session->spec.cache.n_seq; s++) {
        const int32_t request = scheduler_in_slot(e->scheduler, s);
        if (request == e->in_slot[s] && request != NEVER) continue;
        if (e->in_slot[s] != NEVER) session_set_length(e->session, s, 0);
        e->in_slot[s] = request;
    }
}

static int run_batch(struct engine *e, const struct batch *batch, int32_t step, int phase,
                     struct err *err) {
    prepare_slots(e);
    for (int32_t i = 0; i < batch->n; i++) {
        const struct run_of_rows *run = &batch->runs[i];
        const int32_t *text = e->text + e->text_at[run->request] + run->begin;
        if (!run->begin) {
            session_set_length(e->session, run->slot, 0); /* it may have come back to its slot */
            run_arrived(e->run, run->request, e->trace[run->request].arrival);
        }
        e->spans[i] = (struct span){.seq = run->slot,
                                    .begin = run->begin,
                                    .rows = run->rows,
                                    .tokens = run->padding ? &e->pad[run->slot] : text,
                                    .out = run->partial ? 0 : 1};
        log_run(&e->log, run, step, phase);
    }
    return run_spans(e, batch->n, err);
}

/* Ids into the texts, and a mark for each that somebody waits for. */
static void commit(struct engine *e, const struct batch *batch) {
    for (int32_t i = 0, out = 0; i < batch->n; i++) {
        const struct run_of_rows *run = &batch->runs[i];
        if (run->partial) continue;
        const int32_t id = e->session->ids[out++];
        e->pad[run->slot] = id;
        if (run->padding) continue;
        e->text[e->text_at[run->request] + run->begin + run->rows] = id;
        run_mark(e->run, 0, run->request, 1);
    }
}

static void keep_last(struct engine *e, const struct batch *batch) {
    e->last = *inputs_step(e->inputs, 0);
    for (int32_t i = 0, out = 0; i < batch->n; i++) {
        if (batch->runs[i].partial) continue;
        if (!batch->runs[i].padding) e->last_row[batch->runs[i].request] = out;
        out++;
    }
}

void engine_execute(struct engine *e) {
    struct batch batch = {0};
    struct err err = {0};
    int64_t until = 0;
    int32_t step = 0;
    int phase = -1;
    for (enum act act;
         (act = scheduler_next(e->scheduler, run_now(e->run), &batch, &until)) != ACT_END;) {
        if (act == ACT_WAIT) {
            enter(e, &phase, ENGINE_WAIT);
            run_wait(e->run, until);
            continue;
        }
        enter(e, &phase, phase_of(&batch));
        if (run_batch(e, &batch, step++, phase, &err)) {
            run_fail(e->run, "%s", err.text);
            return;
        }
        e->end = run_now(e->run);
        scheduler_done(e->scheduler, e->end);
        commit(e, &batch);
    }
    if (step) keep_last(e, &batch);
}

/* ---- what steps cost */

/* Sequences among which a step's rows are divided, as many as fit; 0: that many rows never run. */
static int32_t readers_of(const struct engine *e, int32_t rows) {
    const struct session_spec *spec = &e->session->spec;
    int32_t n = rows < spec->cache.n_seq ? rows : spec->cache.n_seq;
    for (; n; n--) {
        const int32_t own = (rows + n - 1) / n;
        if (own > spec->cache.most_q) return 0;
        if (!e->spec.pool || n * blocks_for(own, e->spec.block) <= e->spec.pool) break;
    }
    return n;
}

static int64_t timed_step(struct engine *e, int32_t rows, const int32_t *tokens, struct err *err) {
    struct device *device = e->model->device;
    const struct session_spec *spec = &e->session->spec;
    const int32_t n = readers_of(e, rows);
    int64_t room = spec->cache.capacity;
    if (e->spec.pool && e->spec.pool / n * e->spec.block < room)
        room = e->spec.pool / n * e->spec.block;
    for (int32_t s = 0; s < n; s++) {
        const int32_t own = rows / n + (s < rows % n);
        session_set_length(e->session, s, 0);
        e->spans[s] = (struct span){.seq = s,
                                    .begin = own > 1 ? 0 : (int32_t)(room - 1) / 2,
                                    .rows = own,
                                    .tokens = tokens,
                                    .out = 1};
    }
    if (device->kind->sync(device, err)) return -1;
    const int64_t begin = device_now(device);
    if (run_spans(e, n, err) || device->kind->sync(device, err)) return -1;
    return device_now(device) - begin;
}

int engine_measure(struct engine *e, struct step_costs *costs, struct err *err) {
    enum { TIMES = 5, LONG_NS = 100000000 };
    const struct session_spec *spec = &e->session->spec;
    int32_t *tokens = must_alloc(sizeof *tokens * (size_t)spec->cache.most_q);
    int code = 0;
    tokens_fill(&e->stream, e->n, 0, spec->cache.most_q, tokens);
    step_costs_grid(costs, spec->cache.n_seq, spec->most_rows);
    for (int32_t i = 1; i < costs->n; i++)
        if (!readers_of(e, costs->rows[i])) costs->n = i;
    for (int32_t i = 0; !code && i < costs->n; i++) {
        double t[TIMES + 1];
        int n = 0;
        /* The first one warms; where steps are long it is the only one. */
        do {
            t[n] = (double)timed_step(e, costs->rows[i], tokens, err);
            if (t[n] < 0) code = err->code;
        } while (!code && t[0] < LONG_NS && n++ < TIMES);
        if (!code) costs->ns[i] = n > 1 ? served_quantile(t + 1, n - 1, 0.5) : t[0];
        for (int32_t s = 0; s < spec->cache.n_seq; s++) session_set_length(e->session, s, 0);
    }
    free(tokens);
    return code;
}

/* ---- the ledger */

bool engine_work(const struct engine *e, struct work *work) {
    const struct engine_log *log = &e->log;
    struct ledger_part *parts = must_alloc(sizeof *parts * (size_t)e->session->spec.cache.n_seq);
    const bool whole = log->n <= log->room;
    for (int64_t i = 0, end; whole && i < log->n; i = end) {
        int n = 0, out = 0;
        int64_t rows = 0;
        for (end = i; end < log->n && log->runs[end].step == log->runs[i].step; end++) {
            parts[n++] = (struct ledger_part){1, log->runs[end].rows, log->runs[end].kv_len};
            rows += log->runs[end].rows;
            out += log->runs[end].out;
        }
        struct work *sum = &work[log->runs[i].phase];
        ledger_step(sum, &e->config, parts, n, out);
        sum->items += (double)rows;
    }
    free(parts);
    return whole;
}
