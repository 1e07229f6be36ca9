/* SPDX-License-Identifier: Apache-2.0 */
/* The spread between runs, from sittings of a calibration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "results/pairs.h"
#include "results/sides_parts.h"
#include "results/stats.h"

void sides_open_sittings(struct matching *s) {
    const struct sides *sides = s->sides;
    const struct tables **list = arena_alloc(s->arena, (sides->n_calibration + 1) * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < sides->n_calibration; i++) {
        const struct tables *ts = sides->calibration[i].tables;
        char why[200] = "it is no comparison of a program with itself";
        const bool itself =
            pairs_there(ts) && !strcmp(tables_meta(ts, "side_a"), tables_meta(ts, "side_b"));
        if (itself && sides_comparable(sides->old[0].tables, ts, NULL, sides->across,
                                       sides->n_across, why, sizeof why))
            list[n++] = ts;
        else
            gate_note(s->gate, "left out of the calibration: %.200s (%s)",
                      sides->calibration[i].name, why);
    }
    if (sides->n_calibration && n < SIDES_SITTINGS)
        gate_note(s->gate, "the calibration has %zu sitting%s; %d are needed for a spread", n,
                  n == 1 ? "" : "s", SIDES_SITTINGS);
    else if (n)
        gate_note(s->gate, "spread between runs by %zu sittings of a calibration", n);
    s->sittings = list;
    s->n_sittings = n;
}

void sides_from_sittings(const struct matching *s, const char *cell, struct gate_row *row) {
    double *levels = must_alloc((s->n_sittings + 1) * sizeof *levels);
    size_t n = 0;
    for (size_t k = 0; k < s->n_sittings; k++) {
        const struct table *points = tables_peek(s->sittings[k], "points");
        for (int64_t a = 0; a < table_rows(points) / 2; a++) {
            if (strcmp(table_text(points, a, "cell"), cell)) continue;
            const double level = pairs_level(s->sittings[k], a);
            if (!isnan(level)) levels[n++] = level;
            break;
        }
    }
    if (n >= SIDES_SITTINGS) {
        row->between = stats_stddev(levels, n);
        row->between_df = (double)(n - 1);
    }
    free(levels);
}
