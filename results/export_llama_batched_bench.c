/* SPDX-License-Identifier: Apache-2.0 */
/* llama-batched-bench's table and lines: prompts of several sequences, then steps of them together.
 * A row that generates n tokens has TG = n - 1 steps: the first token comes with the prompt. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/export.h"
#include "results/foreign.h"
#include "results/rows.h"
#include "results/stats.h"

struct batched { /* of one row; no prompt is shared among its sequences */
    int64_t pp, tg, pl, n_kv, threads, point;
    double t_pp, t_tg; /* s: means over the executions */
};

/* The mean over executions of a phase, in s; NAN if the marks do not tell. */
static double phase_time(struct foreign *f, int64_t point, const char *name) {
    const struct table *phases = tables_peek(f->ts, "phases");
    for (int64_t i = f->x.point_phases[point]; i < f->x.point_phases[point + 1]; i++) {
        int64_t row = f->x.phase_row[i];
        if (strcmp(table_text(phases, row, "name"), name)) continue;
        if (!series_phase(&f->x, point, table_int(phases, row, "phase"), &f->times)) break;
        return stats_mean(f->times.x, f->times.n) * 1e-9;
    }
    return (double)NAN;
}

static bool batched_row(struct foreign *f, int64_t point, struct batched *b) {
    struct foreign_test t;
    if (!foreign_test(f, point, &t)) return false;
    *b = (struct batched){.pp = t.n_prompt, .tg = t.n_gen, .pl = t.batch, .point = point};
    b->threads = rows_threads(f->ts, point);
    b->t_pp = phase_time(f, point, "prefill");
    b->t_tg = phase_time(f, point, "decode");
    const char *why = NULL;
    if (t.odd)
        why = t.odd;
    else if (!t.n_prompt || !t.n_gen || t.n_depth)
        why = "without a prompt or without steps after it";
    else if (t.batch > INT64_MAX / (t.n_prompt + t.n_gen))
        why = "of more tokens than 63 bits count";
    else if (!(b->t_pp > 0) || !(b->t_tg > 0))
        why = "without times of both phases";
    if (why) {
        foreign_leave(f, point, why);
        return false;
    }
    b->n_kv = t.batch * (t.n_prompt + t.n_gen);
    return true;
}

static void line_md(const struct foreign *f, const struct batched *b, struct text *out) {
    double t = b->t_pp + b->t_tg;
    (void)f;
    text_printf(out, "| %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64, b->pp, b->tg, b->pl,
                b->n_kv);
    text_printf(out, " | %.3f | %.2f | %.3f | %.2f | %.3f | %.2f |\n", b->t_pp,
                (double)(b->pl * b->pp) / b->t_pp, b->t_tg, (double)(b->pl * b->tg) / b->t_tg, t,
                (double)b->n_kv / t);
}

static void line_json(const struct foreign *f, const struct batched *b, struct text *out) {
    double t = b->t_pp + b->t_tg;
    const struct {
        const char *name;
        double v;
    } rows[] = {{"t_pp", b->t_pp}, {"speed_pp", (double)(b->pl * b->pp) / b->t_pp},
                {"t_tg", b->t_tg}, {"speed_tg", (double)(b->pl * b->tg) / b->t_tg},
                {"t", t},          {"speed", (double)b->n_kv / t}};
    const int64_t largest = b->pl * b->pp; /* rows of its largest step */
    text_printf(out,
                "{\"n_kv_max\": %" PRId64 ", \"n_batch\": %" PRId64 ", \"n_ubatch\": %" PRId64
                ", \"flash_attn\": -1, \"is_pp_shared\": 0, \"n_gpu_layers\": %d"
                ", \"n_threads\": %" PRId64 ", \"n_threads_batch\": %" PRId64 ", \"pp\": %" PRId64
                ", \"tg\": %" PRId64 ", \"pl\": %" PRId64 ", \"n_kv\": %" PRId64,
                b->n_kv, largest, largest, foreign_ran(f, b->point, "cuda") ? -1 : 0, b->threads,
                b->threads, b->pp, b->tg, b->pl, b->n_kv);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_printf(out, ", \"%s\": ", rows[i].name);
        foreign_number(out, rows[i].v);
    }
    text_puts(out, "}\n");
}

static int write(const struct tables *ts, const char *as, struct text *out, struct text *lost,
                 struct err *err) {
    struct foreign f;
    const bool md = !strcmp(as, "md");
    size_t n = 0;
    text_add(out, "", 0);
    if (md)
        text_puts(out, "| PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s "
                       "|\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    foreign_open(&f, ts, "llama-batched-bench");
    for (int64_t p = 0; p < f.n_points; p++) {
        struct batched b;
        if (!batched_row(&f, p, &b)) continue;
        (md ? line_md : line_json)(&f, &b, out);
        n++;
    }
    if (n) {
        text_puts(lost, "llama-batched-bench: generating n tokens is TG = n - 1, as the first "
                        "token comes with the prompt\n");
        text_puts(lost, "llama-batched-bench has one mean a phase and no place for deviations, "
                        "rounds, flags, model and machine; json has\n");
        if (!md) text_puts(lost, "llama-batched-bench: flash_attn is -1, its word for automatic\n");
    }
    return foreign_close(&f, n, lost, err);
}

static const char *const forms[] = {"md", "jsonl", NULL};
const struct exporter exporter_llama_batched_bench = {
    .name = "llama-batched-bench",
    .brief =
        "prompts and steps of several sequences, as llama.cpp's llama-batched-bench writes them",
    .as = forms,
    .write = write,
};
