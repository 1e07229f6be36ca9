/* SPDX-License-Identifier: Apache-2.0 */
/* vLLM's benchmark JSON: latency (executions of a batch) and serve (requests). One object a row,
 * one line each, as its --append-result leaves them; numbers by its definitions: deviations divide
 * by n, quantiles are type 7. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/export.h"
#include "results/foreign.h"
#include "results/stats.h"

struct vllm {
    struct foreign f;
    struct text *out;
    size_t n, n_short;
};

static void member(struct text *out, const char *name) {
    text_puts(out, ", ");
    text_json(out, name);
    text_puts(out, ": ");
}

static void label(struct vllm *v, int64_t point) {
    struct text name = {0};
    foreign_name(&v->f, point, &name);
    member(v->out, "label");
    text_json(v->out, name.data ? name.data : "");
    text_free(&name);
}

/* numpy's std; NAN where one value has none. */
static double deviation(const double *x, size_t n) {
    return stats_stddev(x, n) * sqrt((double)(n - 1) / (double)n);
}

static void latency(struct vllm *v, int64_t point) {
    static const char *const names[] = {"10", "25", "50", "75", "90", "99"};
    static const double levels[] = {0.10, 0.25, 0.50, 0.75, 0.90, 0.99};
    struct foreign_test test;
    struct text *out = v->out;
    if (!foreign_test(&v->f, point, &test)) return;
    size_t n = foreign_times(&v->f, point);
    if (!n) {
        foreign_leave(&v->f, point, "without executions");
        return;
    }
    double *x = v->f.times.x;
    for (size_t i = 0; i < n; i++) x[i] *= 1e-9;
    text_puts(out, "{\"avg_latency\": ");
    foreign_number(out, stats_mean(x, n));
    member(out, "std_latency");
    foreign_number(out, deviation(x, n));
    member(out, "latencies");
    for (size_t i = 0; i < n; i++) {
        text_puts(out, i ? ", " : "[");
        foreign_number(out, x[i]);
    }
    text_puts(out, "], \"percentiles\": ");
    for (size_t i = 0; i < 6; i++) {
        double q = foreign_quantile(x, n, levels[i]);
        text_printf(out, "%s\"%s\": ", i ? ", " : "{", names[i]);
        foreign_number(out, q);
        v->n_short += i == 5 && isnan(q);
    }
    text_puts(out, "}");
    label(v, point);
    text_puts(out, "}\n");
    v->n++;
}

/* mean_ttft_ms and its like. */
static void block(struct vllm *v, const char *name, struct series *s) {
    char key[40];
    double p99 = foreign_quantile(s->x, s->n, 0.99), median = foreign_quantile(s->x, s->n, 0.5);
    const struct {
        const char *name;
        double v;
    } rows[] = {{"mean", s->n ? stats_mean(s->x, s->n) : (double)NAN},
                {"median", median},
                {"std", s->n > 1 ? deviation(s->x, s->n) : (double)NAN},
                {"p99", p99}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(key, sizeof key, "%s_%s_ms", rows[i].name, name);
        member(v->out, key);
        foreign_number(v->out, rows[i].v);
    }
    v->n_short += s->n && isnan(p99) && !strcmp(name, "e2el");
}

static void serve(struct vllm *v, int64_t point) {
    struct foreign_requests r = {.n = 0};
    struct text *out = v->out;
    if (foreign_requests(&v->f, point, &r)) {
        const struct series *made = &r.tokens[TOKEN_N_OUT];
        double n_out = 0, n_in = (double)r.n_prompt * (double)r.n;
        const char *model = foreign_fact(&v->f, point, "model.shape");
        for (size_t i = 0; i < made->n; i++) n_out += made->x[i];
        text_puts(out, "{\"date\": ");
        text_json(out, tables_meta(v->f.ts, "created"));
        label(v, point);
        member(out, "model_id");
        text_json(out, model ? model : "");
        text_printf(out, ", \"num_prompts\": %" PRId64 ", \"duration\": ", (int64_t)r.n + r.failed);
        foreign_number(out, r.seconds);
        text_printf(out, ", \"completed\": %zu, \"failed\": %" PRId64, r.n, r.failed);
        const struct {
            const char *name;
            double v;
        } rows[] = {{"total_input_tokens", n_in},
                    {"total_output_tokens", n_out},
                    {"request_throughput", (double)r.n / r.seconds},
                    {"request_goodput", (double)NAN}, /* there are no limits to be within */
                    {"output_throughput", n_out / r.seconds},
                    {"total_token_throughput", (n_in + n_out) / r.seconds}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            member(out, rows[i].name);
            foreign_number(out, rows[i].v);
        }
        block(v, "ttft", &r.tokens[TOKEN_TTFT]);
        block(v, "tpot", &r.tokens[TOKEN_TPOT]);
        block(v, "itl", &r.tokens[TOKEN_ITL]);
        block(v, "e2el", &r.tokens[TOKEN_E2E]);
        text_puts(out, "}\n");
        v->n++;
    }
    foreign_requests_free(&r);
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    struct vllm v = {.out = out};
    const bool serving = !strcmp(as, "serve");
    text_add(out, "", 0);
    foreign_open(&v.f, ts, "vllm");
    for (int64_t p = 0; p < v.f.n_points; p++) (serving ? serve : latency)(&v, p);
    if (v.n > 1) text_puts(lost, "vllm: one object a row, each on its line\n");
    if (v.n_short)
        text_printf(lost,
                    "vllm: percentiles without enough values behind them are null in %zu "
                    "row%s (p90 needs 100, p99 1000)\n",
                    v.n_short, v.n_short == 1 ? "" : "s");
    if (v.n && serving)
        text_puts(lost, "vllm: a batch counts as so many requests that come together, duration is "
                        "the time of all executions, request_goodput null: no limits were set\n");
    if (v.n)
        text_puts(lost, "vllm has no place for rounds, flags, witness, machine and ledger; json "
                        "has\n");
    return foreign_close(&v.f, v.n, lost, err);
}

static const char *const forms[] = {"latency", "serve", NULL};
const struct exporter exporter_vllm = {
    .name = "vllm",
    .brief = "JSON as vLLM's bench latency and bench serve write it, an object a row",
    .as = forms,
    .write = write,
};
