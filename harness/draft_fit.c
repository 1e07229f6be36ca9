/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals before the start: memory that this machine has not, and a budget that no machine could
 * keep. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "harness/draft.h"
#include "workloads/model/model.h"

/* --- memory --- */

struct demand {
    double weights, kv, work, total;
};
static struct demand demand_of(const struct plan *plan) {
    struct demand d = {0};
    for (int c = 0; c < N_CLASSES; c++) {
        double bytes = (double)plan->bytes[c];
        if (c == MEM_WEIGHT || c == MEM_SCALE)
            d.weights += bytes;
        else if (c == MEM_KV)
            d.kv += bytes;
        else
            d.work += bytes;
    }
    d.work += (double)plan->host_bytes;
    d.total = d.weights + d.kv + d.work;
    return d;
}

/* Only devices that live in the host's memory are bounded by it. */
static bool in_host_memory(const struct point *p) {
    return p->device->has & DEV_HOST_MEMORY && !(p->device->has & DEV_VIRTUAL_CLOCK);
}
static bool fits(const struct plan *plan, int64_t limit) {
    return demand_of(plan).total <= (double)limit;
}

static const struct plan_case *case_of(const struct draft *d, const struct point *p,
                                       size_t *local) {
    for (size_t i = 0; i < d->n_plans; i++) {
        const struct plan_case *c = &d->plans[i];
        if (c->bad || (size_t)p->index < c->first_point ||
            (size_t)p->index >= c->first_point + c->n_points)
            continue;
        *local = (size_t)p->index - c->first_point;
        return c;
    }
    return NULL;
}

static bool is_swept(const struct plan_case *c, const char *key) {
    for (size_t i = 0; i < c->n_axes; i++)
        for (size_t k = 0; k < c->axes[i]->n_keys; k++)
            if (!strcmp(c->axes[i]->keys[k].key, key)) return true;
    return false;
}

/* Whether the point's device multiplies by such weights: what it would skip is no advice. */
static bool can_run(const struct point *p, int format) {
    struct model_params as = p->config.params;
    as.type = format;
    const struct op_case asked = {.weight = weight_formats[format].type,
                                  .scale = weight_formats[format].scale,
                                  .group = model_group(&p->config.params),
                                  .input = model_input(&as),
                                  .activation = model_activation(&as, p->device),
                                  .kv = model_kv_type(&p->config.params)};
    struct device *device = NULL;
    struct err err = {0};
    const char *why;
    bool yes = !device_open(&device, p->device, p->device_params, &err) &&
               device->kind->supports(device, OP_LINEAR, &asked, &why);
    device_close(&device);
    return yes;
}

/* The point again with another weight format. */
static bool fits_as(const struct point *p, int format, int64_t limit, struct demand *demand) {
    struct model_config config = p->config;
    struct plan plan;
    memset(&plan, 0, sizeof plan);
    if (weight_formats[format].scale == SCALE_TENSOR) return false; /* it fits, but serves nobody */
    config.params.type = format;
    config.activation = model_activation(&config.params, p->device);
    p->workload->plan(p->params, &config, &plan);
    *demand = demand_of(&plan);
    return demand->total <= (double)limit && can_run(p, format);
}

/* The widest weight format with which the point fits, as a --set. */
static void suggest_type(const struct plan_case *c, const struct point *p, int64_t limit,
                         struct text *out) {
    char w[40], kv[40], work[40];
    if (!p->has_model || is_swept(c, "model.type") || p->config.params.group) return;
    for (int f = 0; weight_formats[f].name; f++) {
        struct demand d;
        if (f == p->config.params.type || !fits_as(p, f, limit, &d)) continue;
        text_printf(out, "%s--set model.type=%s (%s + %s + %s)", out->len ? ", or " : "",
                    weight_formats[f].name, format_bytes_si(w, sizeof w, d.weights),
                    format_bytes_si(kv, sizeof kv, d.kv),
                    format_bytes_si(work, sizeof work, d.work));
        return;
    }
}

/* The values of an axis all of whose points fit, as a --set; nothing if all or none of them do. */
static void suggest_axis(const struct draft *d, const struct plan_case *c, size_t axis,
                         int64_t limit, struct text *out) {
    const struct axis *a = c->axes[axis];
    bool *good = must_alloc(a->keys[0].n * sizeof *good);
    size_t count = 0, listed = 0;
    if (a->n_keys == 1) {
        for (size_t v = 0; v < a->keys[0].n; v++) good[v] = true;
        for (size_t i = 0; i < c->n_points; i++)
            if (!fits(&d->protocol->points[c->first_point + i].plan, limit))
                good[case_digit(d, c, i, axis)] = false;
        for (size_t v = 0; v < a->keys[0].n; v++) count += good[v];
    }
    if (count && count < a->keys[0].n) {
        text_printf(out, "%s--set sweep.%s=[", out->len ? ", or " : "", a->keys[0].key);
        for (size_t v = 0; v < a->keys[0].n; v++)
            if (good[v]) text_printf(out, "%s%s", listed++ ? "," : "", a->keys[0].items[v].text);
        text_puts(out, "]");
    }
    free(good);
}

/* "this machine has 26 GB (limit of this process)" */
static void say_room(struct text *out, int64_t room) {
    const int64_t ram = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    char have[40];
    text_printf(out, "this machine has %s (%s)", format_bytes_si(have, sizeof have, (double)room),
                room >= ram              ? "all of its memory"
                : room >= memory_limit() ? "limit of this process"
                                         : "what is available now");
}

static void refuse_memory(struct draft *d, const struct point *p, size_t more, int64_t limit) {
    struct demand need = demand_of(&p->plan);
    size_t local = 0;
    const struct plan_case *c = case_of(d, p, &local);
    char a[40], b[40], e[40], sum[40];
    struct text advice = {0}, line = {0};
    text_printf(&line, "refused: ");
    if (p->has_model)
        text_printf(&line, "%s weights + %s KV%s%s + %s work = ",
                    format_bytes_si(a, sizeof a, need.weights),
                    format_bytes_si(b, sizeof b, need.kv), *p->label ? " at " : "", p->label,
                    format_bytes_si(e, sizeof e, need.work));
    text_printf(&line, "%s%s%s; ", format_bytes_si(sum, sizeof sum, need.total),
                !p->has_model && *p->label ? " at " : "", p->has_model ? "" : p->label);
    say_room(&line, limit);
    if (more) text_printf(&line, "; %zu more point%s too large", more, more > 1 ? "s are" : " is");
    if (c) {
        suggest_type(c, p, limit, &advice);
        for (size_t i = 0; i < c->n_axes; i++) suggest_axis(d, c, i, limit, &advice);
    }
    if (advice.len) {
        struct text would = {0};
        text_printf(&would, "would fit: %s", advice.data);
        problem_at(d->problems, "", would.data, "%s", line.data);
        text_free(&would);
    } else {
        problem_at(d->problems, "", NULL, "%s", line.data);
    }
    text_free(&advice);
    text_free(&line);
}

static void fit_memory(struct draft *d) {
    const struct protocol *p = d->protocol;
    int64_t limit = d->request->plan ? memory_limit() : memory_available("/");
    const struct point *worst = NULL;
    size_t more = 0;
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        if (!in_host_memory(point) || fits(&point->plan, limit)) continue;
        if (worst) more++;
        if (!worst || demand_of(&point->plan).total > demand_of(&worst->plan).total) worst = point;
    }
    if (worst) refuse_memory(d, worst, more, limit);
}

int protocol_fit_pair(const struct protocol *a, const struct protocol *b, bool shared, bool plan,
                      struct err *err) {
    const int64_t room = plan ? memory_limit() : memory_available("/");
    for (size_t i = 0; i < a->n_points; i++) {
        const struct point *x = &a->points[i], *y = &b->points[i];
        if (!in_host_memory(x) || !in_host_memory(y)) continue;
        const struct demand one = demand_of(&x->plan), other = demand_of(&y->plan);
        const bool once = shared && x->weights_key == y->weights_key;
        const double both = one.total + other.total - (once ? other.weights : 0);
        if (both <= (double)room) continue;
        char need[40];
        struct text line = {0};
        say_room(&line, room);
        err_set(err, ERR_INPUT, "refused: both sides of %s%s%s together need %s; %s", x->case_name,
                *x->case_name ? " " : "", *x->label ? x->label : "the row",
                format_bytes_si(need, sizeof need, both), line.data);
        text_free(&line);
        return ERR_INPUT;
    }
    return 0;
}

/* --- time --- */

enum { LEAST_ROUNDS = 5 };
/* Faster than any machine that a host device runs on: what does not fit even so is refused; the
 * plan shows the rest. */
static const double host_bandwidth = 400e9, host_flops = 5e12;

static double least_of(const struct work *work) {
    double bytes = 0;
    for (int c = 0; c < N_CLASSES; c++) bytes += work->bytes[c];
    return fmax(bytes / host_bandwidth, work->flops / host_flops);
}

/* What an execution waits for at least; on a GPU only what was given in time is known. */
static double least_wait(const struct point *p) {
    const double given = (double)p->plan.wait_ns * 1e-9;
    return in_host_memory(p) ? fmax(given, least_of(&p->plan.wait)) : given;
}

static double least_seconds(const struct point *p) {
    double t = 0;
    for (int i = 0; i < MAX_PHASES; i++) t += least_of(&p->plan.work[i]);
    return fmax(t, least_wait(p));
}

/* Executions of a point that one round cannot do without (measurement.md section 1). */
static double least_executions(const struct measure_params *m, const struct point *p,
                               double seconds) {
    bool slow = seconds > 1;
    double warm = slow ? (m->warmups < 2 ? (double)m->warmups : 2) : (double)m->warmups;
    double samples = m->stop == STOP_SAMPLES      ? (double)m->samples
                     : slow && m->min_samples > 2 ? 2
                                                  : (double)m->min_samples;
    if (p->workload->flags & WORK_ONCE) return 1;
    if (warm * seconds > (double)m->warmup_ns * 1e-9) warm = 1; /* its own budget ends it */
    return warm + samples;
}

static void fit_time(struct draft *d) {
    const struct protocol *p = d->protocol;
    const struct measure_params *m = &p->measure;
    double rounds = m->rounds ? (double)m->rounds : LEAST_ROUNDS, sum = 0, worst = 0;
    const struct point *dearest = NULL;
    const struct setting *s = settings_find(&d->measure, "measure.budget");
    char need[40], have[40], one[40];
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        if (!in_host_memory(point)) continue;
        double seconds = least_seconds(point);
        double cost = seconds * least_executions(m, point, seconds);
        sum += point->workload->flags & WORK_ONCE ? cost : rounds * cost;
        if (cost > worst) worst = cost, dearest = point;
    }
    if (!dearest || sum * 1e9 <= (double)m->budget_ns) return;
    problem_at(
        d->problems, s ? draft_place(s->origin) : "", NULL,
        "%smeasure.budget: %g rounds of %zu points need at least %s even at 400 GB/s and 5 TFLOP/s "
        "(%s of it a round for %s%s%s), and the budget is %s",
        s && !strchr(s->origin, ':') ? "--set " : "", rounds, p->n_points,
        format_time(need, sizeof need, sum * 1e9), format_time(one, sizeof one, worst * 1e9),
        dearest->case_name, *dearest->case_name ? " " : "",
        *dearest->label ? dearest->label : "the point",
        format_time(have, sizeof have, (double)m->budget_ns));
}

/* A visit that waits for its last arrival beyond its own time would be ended in the middle. */
static void fit_waits(struct draft *d) {
    const struct protocol *p = d->protocol;
    const struct setting *s = settings_find(&d->measure, "measure.timeout");
    char wait[40], most[40];
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *point = &p->points[i];
        const double seconds = least_wait(point);
        if (point->device->has & DEV_VIRTUAL_CLOCK ||
            seconds * 1e9 <= (double)p->measure.timeout_ns)
            continue;
        problem_at(d->problems, s ? draft_place(s->origin) : "", NULL,
                   "%smeasure.timeout: %s%s%s waits for its last arrival at least %s, and a visit "
                   "may take %s; arrivals nearer to each other, or a longer timeout, would do",
                   s && !strchr(s->origin, ':') ? "--set " : "", point->case_name,
                   *point->case_name && *point->label ? " " : "",
                   *point->label || *point->case_name ? point->label : "the point",
                   format_time(wait, sizeof wait, seconds * 1e9),
                   format_time(most, sizeof most, (double)p->measure.timeout_ns));
        return; /* one is enough */
    }
}

void draft_fit(struct draft *d) {
    fit_waits(d);
    fit_memory(d);
    if (!problems_count(d->problems)) fit_time(d);
}
