/* SPDX-License-Identifier: Apache-2.0 */
/* `bench gate --baseline`: old and new program in turns, completeness and exact numbers against the
 * baseline's file. */
#include "harness/gate_live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "harness/old_program.h"
#include "harness/pair_run.h"
#include "results/pairs.h"
#include "results/rows.h"
#include "results/store.h"

struct session {
    const struct gate_live *live;
    struct gate_files *old; /* the baseline, whole */
    const char *binary;     /* as given or built; NULL: this program */
};

/* The programs may be others than those that the file speaks of. */
static void note_program(const struct session *s, struct gate *g) {
    const char *stored = rows_environment(s->old->items[0].tables, "build.digest");
    char digest[17];
    struct err err = {0};
    if (!s->binary)
        gate_note(g, "the baseline was made by this very program");
    else if (!argument(s->live->a, "--baseline-bin"))
        gate_note(g, "the old program was built anew from the baseline's revision");
    else if (!gate_file_digest(s->binary, digest, &err) && strcmp(digest, stored))
        gate_note(g, "the old program (digest %s) is not the one that made the baseline (%s)",
                  digest, *stored ? stored : "unknown");
}

static int judge(void *ctx, struct gate *g, const struct tables *ts, bool *shown, struct err *err) {
    const struct session *s = ctx;
    pairs_against(g, ts, s->old->items[0].tables);
    g->old_name = s->old->items[0].name;
    g->new_name = "this program";
    note_program(s, g);
    int code = s->live->accepted(s->live->a, g, s->old, err);
    gate_judge(g);
    if (!code) code = gate_files_write(s->live->a, s->live->format, g, err);
    if (!code) s->live->finished(g, gate_exit(g));
    *shown = true;
    return code;
}

/* Whole, since its protocol is measured again. */
static int read_baseline(const char *path, struct gate_files *old, struct err *err) {
    int code = gate_files_add(old, path, err);
    if (code) return code;
    tables_close(&old->items[0].tables);
    code = store_read(&old->items[0].tables, path, NULL, err);
    if (!code && pairs_there(old->items[0].tables))
        code = err_set(err, ERR_INPUT, "%s is a comparison, and no baseline: bench run makes one",
                       path);
    return code;
}

/* The baseline's own protocol, or another one by name. */
static int choose_protocol(const struct arguments *a, const struct gate_files *old,
                           struct protocol_request *request, struct err *err) {
    const struct tables *ts = old->items[0].tables;
    const struct table *files = tables_peek(ts, "files");
    const char *given = argument(a, "--protocol");
    if (given) {
        request->path = given;
        return 0;
    }
    if (!table_rows(files))
        return err_set(err, ERR_INPUT, "%s holds no protocol: --protocol names one",
                       old->items[0].name);
    *request = (struct protocol_request){
        .path = table_text(files, 0, "path"), .text = table_text(files, 0, "text"), .stored = ts};
    return 0;
}

int gate_live(const struct gate_live *live, struct err *err) {
    struct gate_files old = {0};
    struct arena *arena = arena_create();
    struct gate_settings settings;
    struct old_program program = {0};
    struct session session = {.live = live, .old = &old};
    struct pair_request request = {
        .gate = &settings,
        .repeats = live->repeats,
        .format = live->format,
        .strict = argument(live->a, "--strict") != NULL,
        .plan = argument(live->a, "--dry-run") != NULL,
        .judge = judge,
        .ctx = &session,
    };
    int exit_code = EXIT_USAGE;
    int code = read_baseline(argument(live->a, "--baseline"), &old, err);
    if (!code) code = gate_files_settings(live->a, &old.items[0], &settings, arena, err);
    if (!code) code = choose_protocol(live->a, &old, &request.protocol, err);
    struct gate *unused = code ? NULL : gate_create(GATE_LIVE, &settings, live->repeats);
    if (!code) code = live->accepted(live->a, unused, &old, err); /* before anything is measured */
    gate_close(&unused);
    session.binary = argument(live->a, "--baseline-bin");
    if (!code && !session.binary) {
        code = old_program_find(old.items[0].tables, !request.plan, &program, err);
        session.binary = program.binary;
    }
    request.binary[SIDE_A] = session.binary;
    if (argument(live->a, "--baseline-bin"))
        request.named[SIDE_A] = arena_printf(arena, "--baseline-bin %s", session.binary);
    else if (session.binary)
        request.named[SIDE_A] = "the baseline's program, built anew";
    if (*program.revision)
        request.program[SIDE_A] =
            arena_printf(arena, "a program built anew from revision %s", program.revision);
    if (!code) exit_code = pair_main(&request);
    old_program_free(&program);
    gate_files_free(&old);
    arena_close(&arena);
    return code ? command_fail(err) : exit_code;
}
