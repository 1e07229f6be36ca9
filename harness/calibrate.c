/* SPDX-License-Identifier: Apache-2.0 */
/* `bench gate --calibrate`: a program against itself, in one sitting or several. */
#include "harness/gate_live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/pair_run.h"
#include "results/calibration.h"
#include "results/pairs.h"
#include "results/store.h"

enum { SITTINGS_MOST = 100 };
struct sittings {
    struct tables *tables[SITTINGS_MOST];
    size_t n;
};

/* Keeps the tables of a sitting; its verdicts mean nothing. */
static int keep(void *ctx, struct gate *g, const struct tables *ts, bool *shown, struct err *err) {
    struct sittings *s = ctx;
    struct text body = {0};
    (void)g;
    *shown = true;
    tables_pack(ts, &body);
    s->tables[s->n] = tables_create();
    int code = tables_unpack(s->tables[s->n++], body.data, body.len, err);
    text_free(&body);
    return code;
}

/* The first of sitting-1.h5, sitting-2.h5, ... that is not there, nor its journal: other days' stay
   as they are. NULL: there is no folder, and the result has a name of its own. */
static const char *next_sitting(const char *folder, struct arena *arena) {
    const char *name = NULL;
    for (int k = 1; folder && !name; k++) {
        const char *h5 = arena_printf(arena, "%s/sitting-%d.h5", folder, k);
        const char *journal = arena_printf(arena, "%s/sitting-%d.journal", folder, k);
        if (!file_exists(h5) && !file_exists(journal)) name = h5;
    }
    return name;
}

static bool ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* A stored sitting is shown as it is. */
static int only_shown(const struct arguments *a, struct err *err) {
    static const char *const others[] = {"--sittings", "--set", "--output", "--dry-run"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (argument(a, others[i]))
            return err_set(err, ERR_INPUT,
                           "%s does not go with --calibrate FILE.h5, which shows a result",
                           others[i]);
    return 0;
}

int gate_calibrate(const struct arguments *a, struct err *err) {
    const char *protocol = argument(a, "--calibrate"), *given = argument(a, "--sittings");
    const char *folder = argument(a, "--output"); /* of the sittings' results */
    struct sittings s = {.n = 0};
    struct gate_settings settings;
    struct arena *arena = arena_create();
    struct calibration c = {0};
    struct text out = {0};
    const char *sets[128];
    int64_t sittings = 1;
    int exit_code = EXIT_OK, code = 0;
    if (given && (!parse_i64(given, &sittings) || sittings < 1 || sittings > SITTINGS_MOST))
        code = err_set(err, ERR_INPUT, "--sittings %.40s: a number from 1 to %d is needed", given,
                       SITTINGS_MOST);
    if (!code && ends_in(protocol, ".h5")) code = only_shown(a, err);
    if (!code && folder && ends_in(folder, ".h5"))
        code =
            err_set(err, ERR_INPUT, "-o %s: --calibrate takes a folder, for its sittings", folder);
    if (!code && ends_in(protocol, ".h5")) {
        code = store_read(&s.tables[0], protocol, NULL, err);
        s.n = !code;
    } else {
        struct pair_request request = {.protocol = {.path = protocol, .sets = sets},
                                       .rounds = CALIBRATION_ROUNDS,
                                       .plan = argument(a, "--dry-run") != NULL,
                                       .judge = keep,
                                       .ctx = &s};
        request.protocol.n_sets = arguments_of(a, "--set", sets, 128);
        if (request.plan) sittings = 1;
        if (!code && folder && !request.plan) code = make_dirs(folder, err);
        for (int64_t k = 0;
             k < sittings && !code && exit_code != EXIT_USAGE && exit_code != EXIT_INTERRUPTED;
             k++) {
            request.out = next_sitting(folder, arena);
            exit_code = pair_main(&request);
        }
    }
    if (!code && s.n) {
        pairs_settings(s.tables[0], &settings, arena);
        code = calibration_of((const struct tables *const *)s.tables, s.n, &settings, &c, err);
    }
    if (!code && s.n && exit_code != EXIT_INTERRUPTED) {
        exit_code = calibration_text(&c, &settings, &out) ? EXIT_OK : EXIT_USAGE;
        fwrite(out.data, 1, out.len, stdout);
    }
    for (size_t k = 0; k < s.n; k++) tables_close(&s.tables[k]);
    calibration_free(&c);
    text_free(&out);
    arena_close(&arena);
    return code ? command_fail(err) : exit_code;
}
