/* SPDX-License-Identifier: Apache-2.0 */
/* AIPerf's summary JSON: per metric unit, avg, min, max, percentiles, std (n - 1) and count; what
 * is not known is left out, as there. One object a row, each on its line. */
#include <math.h>
#include <stdio.h>

#include "results/export.h"
#include "results/foreign.h"
#include "results/stats.h"

static void open_metric(struct text *out, const char *name, const char *unit, double avg) {
    text_printf(out, ", \"%s\": {\"unit\": \"%s\", \"avg\": ", name, unit);
    foreign_number(out, avg);
}

static void single(struct text *out, const char *name, const char *unit, double v) {
    if (!isfinite(v)) return;
    open_metric(out, name, unit, v);
    text_puts(out, "}");
}

/* Returns whether percentiles were left out. */
static bool record(struct text *out, const char *name, const char *unit, const struct series *s) {
    static const int levels[] = {1, 5, 10, 25, 50, 75, 90, 95, 99};
    bool left_out = false;
    if (!s->n) return false;
    double min = s->x[0], max = s->x[0], std = stats_stddev(s->x, s->n);
    for (size_t i = 1; i < s->n; i++) {
        min = fmin(min, s->x[i]);
        max = fmax(max, s->x[i]);
    }
    open_metric(out, name, unit, stats_mean(s->x, s->n));
    text_puts(out, ", \"min\": ");
    foreign_number(out, min);
    text_puts(out, ", \"max\": ");
    foreign_number(out, max);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        double q = foreign_quantile(s->x, s->n, levels[i] / 100.0);
        left_out = left_out || isnan(q);
        if (isnan(q)) continue;
        text_printf(out, ", \"p%d\": ", levels[i]);
        foreign_number(out, q);
    }
    if (isfinite(std)) {
        text_puts(out, ", \"std\": ");
        foreign_number(out, std);
    }
    text_printf(out, ", \"count\": %zu}", s->n);
    return left_out;
}

static bool row(const struct foreign *f, int64_t point, const struct foreign_requests *r,
                struct text *out) {
    struct text name = {0};
    double made = 0;
    bool left_out = false;
    foreign_name(f, point, &name);
    text_puts(out, "{\"schema_version\": \"1.2\", \"start_time\": ");
    text_json(out, tables_meta(f->ts, "created"));
    text_printf(
        out, ", \"run_info\": {\"variation_index\": %lld, \"variation_label\": ", (long long)point);
    text_json(out, name.data ? name.data : "");
    text_puts(out, "}");
    for (size_t i = 0; i < r->tokens[TOKEN_N_OUT].n; i++) made += r->tokens[TOKEN_N_OUT].x[i];
    left_out |= record(out, "request_latency", "ms", &r->tokens[TOKEN_E2E]);
    left_out |= record(out, "time_to_first_token", "ms", &r->tokens[TOKEN_TTFT]);
    left_out |= record(out, "inter_token_latency", "ms", &r->tokens[TOKEN_TPOT]);
    left_out |= record(out, "output_sequence_length", "tokens", &r->tokens[TOKEN_N_OUT]);
    single(out, "request_count", "requests", (double)r->n);
    single(out, "request_throughput", "requests/sec", (double)r->n / r->seconds);
    single(out, "output_token_throughput", "tokens/sec", made / r->seconds);
    single(out, "total_isl", "tokens", (double)r->n_prompt * (double)r->n);
    single(out, "total_osl", "tokens", made);
    single(out, "benchmark_duration", "sec", r->seconds);
    text_puts(out, "}\n");
    text_free(&name);
    return left_out;
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    struct foreign f;
    size_t n = 0, without = 0;
    (void)as;
    text_add(out, "", 0);
    foreign_open(&f, ts, "aiperf");
    for (int64_t p = 0; p < f.n_points; p++) {
        struct foreign_requests r = {.n = 0};
        if (foreign_requests(&f, p, &r)) {
            without += row(&f, p, &r, out);
            n++;
        }
        foreign_requests_free(&r);
    }
    if (n > 1) text_puts(lost, "aiperf: one object a row, each on its line\n");
    if (without)
        text_printf(lost,
                    "aiperf: percentiles without enough values behind them are left out in "
                    "%zu row%s (p90 and p10 need 100, p99 and p1 1000)\n",
                    without, without == 1 ? "" : "s");
    if (n)
        text_puts(lost, "aiperf: a batch counts as so many requests that come together; it has no "
                        "place for rounds, flags, witness, machine and ledger; json has\n");
    return foreign_close(&f, n, lost, err);
}

const struct exporter exporter_aiperf = {
    .name = "aiperf",
    .brief = "JSON of metrics over requests as AIPerf writes it, an object a row",
    .write = write,
};
