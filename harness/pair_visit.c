/* SPDX-License-Identifier: Apache-2.0 */
/* One row in one round of two sides: prepared, quadruples of turns, what both leave. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/pair_parts.h"
#include "harness/supervisor.h"
#include "harness/worker.h"
#include "results/pairs.h"
#include "results/table.h"

#define TURN_NS  1000000 /* shorter executions are repeated within a turn */
#define LEAST_NS 1       /* of a turn: less is no number */

struct pair_visit { /* of one row in one round */
    struct pair *pair;
    int64_t row, round, position, visit[N_SIDES];
    int first; /* side that prepares first */
    bool once;
    int64_t executions, quads, turns_ns;
    char state[16], weights[N_SIDES][17]; /* where they lie: none, private, a hash */
    struct text reason, flags;
};

static void show_waiting(void *ctx, int64_t waited_ns) {
    const struct pair_visit *v = ctx;
    (void)waited_ns;
    pair_show(v->pair, v->round, pair_point(v->pair, SIDE_A, v->row)->label);
}

static void note(struct pair_visit *v, const char *state, int side, const char *reason) {
    if (!*v->state || !strcmp(v->state, "ok")) snprintf(v->state, sizeof v->state, "%s", state);
    if (*reason)
        text_printf(&v->reason, "%s%s: %s", v->reason.len ? "; " : "", side_names[side], reason);
}

static struct visit_order order_of(const struct pair_visit *v, int side) {
    return (struct visit_order){.visit = v->visit[side],
                                .round = v->round,
                                .position = v->position,
                                .worker = v->pair->side[side].child.number,
                                .share_ns = PAIR_VISIT_NS};
}

/* One message to a side. *answered: an answer of that kind is in *a; else the row has its state. */
static int ask(struct pair_visit *v, int side, enum message message, enum message want,
               const struct facts *facts, struct answer *a, struct tables *out, bool *answered,
               struct err *err) {
    struct pair *p = v->pair;
    struct child *child = &p->side[side].child;
    const struct patience patience = {
        .timeout_ns = p->p->side[side]->measure.timeout_ns, .show = show_waiting, .ctx = v};
    int code = child_ask(child, message, facts, &patience, a, err);
    bool last = a->kind == MESSAGE_LAST && want == MESSAGE_DONE;
    *answered = !code && a->body && (a->kind == (uint32_t)want || last);
    if (code || *answered) return code;
    if (a->body)
        return err_set(err, ERR_INTERNAL, "side %s answers out of order", side_names[side]);
    if (!*a->state) return 0; /* asked to stop */
    const struct visit_order order = order_of(v, side);
    child_row(child, &order, pair_index(p, side, v->row), a, out);
    note(v, a->state, side, a->reason);
    return 0;
}

/* Prepared and warmed up. */
static int begin_side(struct pair_visit *v, int side, int64_t *typical_ns, int64_t *batch,
                      struct tables *out, bool *ready, struct err *err) {
    struct pair *p = v->pair;
    struct point point = *pair_point(p, side, v->row); /* with its place in the file */
    point.index = pair_index(p, side, v->row);
    const struct visit_order order = order_of(v, side);
    struct facts request = {0}, said = {0};
    struct answer a;
    sample_log_begin(&p->side[side].memory.log, v->visit[side]);
    visit_pack(&request, &order, &p->p->side[side]->measure, &point);
    int code = ask(v, side, MESSAGE_OPEN, MESSAGE_READY, &request, &a, out, ready, err);
    if (!code && *ready) code = facts_unpack(&said, a.body, a.len, err);
    if (!code && *ready) {
        parse_i64(facts_get(&said, "ready.typical_ns", "0"), typical_ns);
        parse_i64(facts_get(&said, "ready.batch", "1"), batch);
        const char *state = facts_get(&said, "ready.state", "failed");
        const char *weights = facts_get(&said, "ready.weights", "none");
        if (strcmp(state, "ok")) note(v, state, side, ""); /* its own row tells why */
        snprintf(v->weights[side], sizeof v->weights[side], "%s", weights);
    }
    free(a.body);
    facts_free(&said);
    facts_free(&request);
    return code;
}

/* ns of one execution; NAN: it failed, died, or is to stop. */
static int take_turn(struct pair_visit *v, int side, struct tables *out, double *ns,
                     struct err *err) {
    struct facts request = {0}, said = {0};
    struct answer a;
    bool answered = false;
    int64_t wall = -1;
    *ns = NAN;
    facts_printf(&request, "turn.executions", "", "", "%" PRId64, v->executions);
    int code = ask(v, side, MESSAGE_TURN, MESSAGE_SAMPLE, &request, &a, out, &answered, err);
    if (!code && answered) code = facts_unpack(&said, a.body, a.len, err);
    if (!code && answered) {
        parse_i64(facts_get(&said, "sample.wall_ns", "-1"), &wall);
        if (wall < LEAST_NS) /* what failed has a row of its own that tells why */
            note(v, "failed", side, wall ? "" : "a turn took no time on its clock");
    }
    if (wall >= LEAST_NS) {
        *ns = (double)wall / (double)v->executions;
        v->turns_ns += wall;
    }
    free(a.body);
    facts_free(&said);
    facts_free(&request);
    return code;
}

/* Four samples in mirrored order. */
static int take_quadruple(struct pair_visit *v, struct tables *out, struct err *err) {
    struct pair *p = v->pair;
    const bool mirrored = pair_coin(p);
    const int turns[4] = {mirrored, !mirrored, !mirrored, mirrored};
    double times[N_SIDES][2];
    int taken[N_SIDES] = {0}, code = 0;
    for (int i = 0; i < 4; i++) {
        double ns;
        code = take_turn(v, turns[i], out, &ns, err);
        if (code || isnan(ns)) return code;
        times[turns[i]][taken[turns[i]]++] = ns;
    }
    double *quad = p->quad[v->quads];
    quad[0] = times[SIDE_A][0], quad[1] = times[SIDE_B][0];
    quad[2] = times[SIDE_B][1], quad[3] = times[SIDE_A][1];
    p->mirrored[v->quads++] = mirrored;
    return 0;
}

/* The rows of a side that answers to the end, into its own tables. */
static int end_side(struct pair_visit *v, int side, struct tables *own, struct tables *out,
                    struct err *err) {
    struct pair *p = v->pair;
    struct side *s = &p->side[side];
    struct facts none = {0};
    struct answer a = {0};
    bool answered = false;
    int code = 0;
    if (child_runs(&s->child))
        code = ask(v, side, MESSAGE_CLOSE, MESSAGE_DONE, &none, &a, out, &answered, err);
    if (!code && answered) code = tables_unpack(own, a.body, a.len, err);
    if (!code && answered) {
        struct table *visits = tables_get(own, "visits");
        for (int64_t i = 0; i < table_rows(visits); i++) {
            const char *state = table_text(visits, i, "state");
            table_set_f64(visits, i, "t0", (double)pair_elapsed_ns(p) * 1e-9);
            if (strcmp(state, "ok")) note(v, state, side, table_text(visits, i, "reason"));
            if (!p->virtual_clock) continue;
            double seconds = table_real(visits, i, "seconds");
            if (seconds > 0) p->spent_ns += (int64_t)(seconds * 1e9);
        }
    }
    if (a.kind == MESSAGE_LAST) child_end(&s->child, false);
    free(a.body);
    return code;
}

/* With the samples that its log holds, and its flags beside the other side's. */
static int keep_side(struct pair_visit *v, int side, struct tables *own, struct tables *out,
                     struct err *err) {
    struct text body = {0};
    const struct table *visits = tables_get(own, "visits");
    for (int64_t i = 0; i < table_rows(visits); i++) {
        const char *flags = table_text(visits, i, "flags");
        if (*flags) text_printf(&v->flags, "%s%s", v->flags.len ? " " : "", flags);
    }
    sample_log_tables(&v->pair->side[side].memory.log, v->visit[side], own);
    tables_pack(own, &body);
    const int code = tables_unpack(out, body.data, body.len, err);
    text_free(&body);
    return code;
}

static int end_sides(struct pair_visit *v, const bool *ready, struct tables *out, struct err *err) {
    struct pair *p = v->pair;
    struct tables *own[N_SIDES] = {tables_create(), tables_create()};
    struct sample_log *const logs[N_SIDES] = {&p->side[SIDE_A].memory.log,
                                              &p->side[SIDE_B].memory.log};
    bool ended[N_SIDES] = {false};
    int code = 0;
    for (int side = 0; !code && side < N_SIDES; side++) {
        if (!ready[side] || stop_asked()) continue;
        code = end_side(v, side, own[side], out, err);
        ended[side] = true;
    }
    if (!code) supervisor_note_clocks(&p->best_clock, logs, own);
    for (int side = 0; !code && side < N_SIDES; side++)
        if (ended[side]) code = keep_side(v, side, own[side], out, err);
    for (int side = 0; side < N_SIDES; side++) tables_close(&own[side]);
    return code;
}

static void pair_rows(struct pair_visit *v, struct tables *out) {
    struct pair *p = v->pair;
    struct table *t = tables_get(out, "pairs");
    const struct pair_y y = pairs_y((const double(*)[4])p->quad, (size_t)v->quads);
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "a", pair_index(p, SIDE_A, v->row));
    table_set_i64(t, row, "b", pair_index(p, SIDE_B, v->row));
    table_set_i64(t, row, "round", v->round);
    table_set_i64(t, row, "position", v->position);
    table_set_text(t, row, "first", side_names[v->first]);
    table_set_i64(t, row, "quads", v->quads);
    table_set_i64(t, row, "executions", v->executions);
    table_set_f64(t, row, "y", y.y);
    table_set_f64(t, row, "mean", y.mean);
    table_set_f64(t, row, "a_ns", y.a_ns);
    table_set_f64(t, row, "b_ns", y.b_ns);
    const bool same = !strcmp(v->weights[SIDE_A], v->weights[SIDE_B]);
    table_set_text(t, row, "weights",
                   !same || !strcmp(v->weights[SIDE_A], "private") ? "private"
                   : !strcmp(v->weights[SIDE_A], "none")           ? "none"
                                                                   : "shared");
    table_set_text(t, row, "state", *v->state ? v->state : "ok");
    table_set_text(t, row, "flags", v->flags.data ? v->flags.data : "");
    table_set_text(t, row, "reason", v->reason.data ? v->reason.data : "");
    t = tables_get(out, "quads");
    static const char *const turns[] = {"a1", "b1", "b2", "a2"};
    for (int64_t q = 0; q < v->quads; q++) {
        row = table_add(t, 1);
        table_set_i64(t, row, "a", pair_index(p, SIDE_A, v->row));
        table_set_i64(t, row, "round", v->round);
        table_set_i64(t, row, "quad", q);
        table_set_i64(t, row, "mirrored", p->mirrored[q]);
        for (int i = 0; i < 4; i++) table_set_f64(t, row, turns[i], p->quad[q][i]);
    }
}

/* How many executions make a turn that the clock resolves well: the same on both sides. */
static int64_t executions_of(const int64_t *typical_ns, const int64_t *batch) {
    int64_t typical = typical_ns[0] < typical_ns[1] ? typical_ns[0] : typical_ns[1];
    int64_t k = batch[0] > batch[1] ? batch[0] : batch[1];
    if (typical > 0 && (TURN_NS + typical - 1) / typical > k) k = (TURN_NS + typical - 1) / typical;
    return k;
}

/* Both sides prepared, warmed up, in turns, and closed; what they leave goes to out. */
static int measure(struct pair_visit *v, struct tables *out, struct err *err) {
    int64_t typical[N_SIDES] = {0}, batch[N_SIDES] = {1, 1};
    bool ready[N_SIDES] = {false};
    int code = 0;
    for (int i = 0; !code && i < N_SIDES; i++) {
        const int side = i ? !v->first : v->first;
        code = begin_side(v, side, &typical[side], &batch[side], out, &ready[side], err);
        if (!ready[side]) break;
    }
    const bool both = ready[SIDE_A] && ready[SIDE_B];
    const int64_t began_ns = clock_ns();
    v->executions = executions_of(typical, batch);
    while (!code && both && !v->once && !*v->state && !stop_asked() && v->quads < QUADS_MOST) {
        const int64_t before = v->quads;
        code = take_quadruple(v, out, err);
        if (v->quads == before) break;
        const int64_t turns_ns = v->pair->virtual_clock ? v->turns_ns : clock_ns() - began_ns;
        if (v->quads >= PAIR_LEAST_QUADS && turns_ns >= PAIR_VISIT_NS) break;
    }
    return code ? code : end_sides(v, ready, out, err);
}

int pair_visit(struct pair *p, int64_t row, int64_t round, int64_t position, int first,
               struct err *err) {
    const int64_t number = 2 * (round * p->n + position);
    struct pair_visit v = {
        .pair = p,
        .row = row,
        .round = round,
        .position = position,
        .visit = {number, number + 1},
        .first = first,
        .executions = 1,
        .once = (pair_point(p, SIDE_A, row)->workload->flags & WORK_ONCE) != 0,
    };
    struct tables *out = tables_create();
    pair_show(p, round, pair_point(p, SIDE_A, row)->label);
    int code = pair_start_sides(p, first, err); /* again, where one died in the row before */
    if (!code) code = measure(&v, out, err);
    if (!code && !stop_asked()) {
        pair_rows(&v, out);
        if (*v.state || v.once) p->gone[row] = true;
        if (*v.state) pair_end_sides(p, false); /* the next row begins afresh */
        code = journal_append(p->p->journal, JOURNAL_VISIT, out, err);
        if (!code) pair_rows(&v, p->p->kept);
    }
    tables_close(&out);
    text_free(&v.reason);
    text_free(&v.flags);
    return code;
}
