/* SPDX-License-Identifier: Apache-2.0 */
/* `bench gate --calibrate`: a program against itself, in one sitting or several. */
#include "harness/gate_live.h"

#include <inttypes.h>
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

static bool ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
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
    if (!code && ends_in(protocol, ".h5")) {
        code = store_read(&s.tables[0], protocol, NULL, err);
        s.n = !code;
    } else {
        struct pair_request request = {.protocol = {.path = protocol, .sets = sets},
                                       .rounds = CALIBRATION_ROUNDS,
                                       .judge = keep,
                                       .ctx = &s};
        request.protocol.n_sets = arguments_of(a, "--set", sets, 128);
        if (folder) code = make_dirs(folder, err);
        for (int64_t k = 0;
             k < sittings && !code && exit_code != EXIT_USAGE && exit_code != EXIT_INTERRUPTED;
             k++) {
            struct text out_name = {0};
            text_printf(&out_name, "%s/sitting-%" PRId64 ".h5", folder ? folder : "", k + 1);
            if (folder) request.out = out_name.data;
            exit_code = pair_main(&request);
            text_free(&out_name);
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
