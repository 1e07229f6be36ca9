/* SPDX-License-Identifier: Apache-2.0 */
/* The first executions of fresh workers, over what they settle at: how long a warm-up has to be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "plots/views.h"
#include "results/beginnings.h"
#include "results/rows.h"
#include "results/stats.h"

enum { EACH_UNTIL = 50, A_FIFTIETH = 50 }; /* every execution up to 50, then one in a fiftieth */

static int32_t next_place(int32_t i) { return i < EACH_UNTIL ? i + 1 : i + i / A_FIFTIETH; }

/* One row: the visits of a point. */
static void read_row(const struct tables *ts, const struct beginning *b, int64_t visits,
                     struct beginning_row *r, struct arena *arena) {
    const int64_t point = b->point;
    double *of_visits = must_alloc((size_t)visits * sizeof *of_visits);
    double *level = must_alloc((size_t)visits * sizeof *level);
    int64_t used = 0;
    struct text name = {0};
    rows_key_text(ts, point, "case", &name);
    if (name.len && *table_text(tables_peek(ts, "points"), point, "label")) text_puts(&name, " ");
    text_puts(&name, table_text(tables_peek(ts, "points"), point, "label"));
    r->label = arena_text(arena, name.data ? name.data : "");
    text_free(&name);
    for (int64_t i = 0; i < visits; i++) {
        level[i] = beginning_level(&b[i]);
        if (!(level[i] > 0)) continue;
        r->level_ms += level[i];
        r->warmups += (double)b[i].warmups;
        used++;
    }
    if (used) r->level_ms /= (double)used, r->warmups /= (double)used;
    size_t places = 0;
    for (int32_t k = 0; k < FIRST_ONES; k = next_place(k)) places++;
    r->at = arena_alloc(arena, places * sizeof *r->at);
    r->middle = arena_alloc(arena, places * sizeof *r->middle);
    r->all_at = arena_alloc(arena, places * (size_t)visits * sizeof *r->all_at);
    r->all = arena_alloc(arena, places * (size_t)visits * sizeof *r->all);
    for (int32_t k = 0; k < FIRST_ONES; k = next_place(k)) {
        size_t n = 0;
        for (int64_t i = 0; i < visits; i++) {
            if (k >= b[i].n || !(level[i] > 0) || !(b[i].ms[k] > 0)) continue;
            r->all_at[r->n_all] = k + 1;
            r->all[r->n_all++] = of_visits[n++] = b[i].ms[k] / level[i];
        }
        if (!n) break;
        r->at[r->n] = k + 1;
        r->middle[r->n++] = stats_quantile(of_visits, n, 0.5);
    }
    free(of_visits);
    free(level);
}

static void fit_axes(struct beginning_view *v) {
    double least = INFINITY, most = 0, last = 2;
    for (int32_t i = 0; i < v->n_rows; i++) {
        const struct beginning_row *r = &v->row[i];
        for (int32_t k = 0; k < r->n; k++) {
            least = fmin(least, r->middle[k]);
            most = fmax(most, r->middle[k]);
        }
        if (r->n) last = fmax(last, r->at[r->n - 1]);
    }
    const double x[] = {1, last}, y[] = {least, most, 1};
    axis_fit(&v->x, x, 2, true, false);
    axis_fit(&v->y, y, 3, axis_wants_log(y, 3) || most > 4, false);
}

int beginning_view_read(const struct tables *ts, struct beginning_view *v, struct err *err) {
    struct beginnings all;
    bool warmed = false;
    *v = (struct beginning_view){.arena = arena_create()};
    beginnings_read(ts, &all);
    for (int64_t i = 0, end; i < all.n; i = end) {
        for (end = i; end < all.n && all.items[end].point == all.items[i].point;) {
            warmed = warmed || all.items[end].warmups > 0;
            end++;
        }
        if (v->n_rows == ROWS_MOST) {
            v->n_left++;
            continue;
        }
        struct beginning_row *r = &v->row[v->n_rows];
        read_row(ts, all.items + i, end - i, r, v->arena);
        if (r->n > 1)
            v->n_rows++;
        else
            *r = (struct beginning_row){.label = ""};
    }
    beginnings_free(&all);
    if (!v->n_rows || !warmed)
        return err_set(err, ERR_UNSUPPORTED, "no warm-up plot: no row has warm-ups and samples");
    fit_axes(v);
    return 0;
}

void beginning_view_free(struct beginning_view *v) {
    if (v->arena) arena_close(&v->arena);
}
