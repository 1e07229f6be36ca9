/* SPDX-License-Identifier: Apache-2.0 */
/* The program: which commands there are, and that nothing it prints gets lost in silence. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "gen/build_info.h"
#include "harness/command.h"

/* In the order of `bench help`; hidden ones have no group. */
const struct command *const all_commands[] = {
    &command_run,
    &command_resume,
    &command_replay,
    &command_ab,
    &command_show,
    &command_plot,
    &command_export,
    &command_import,
    &command_compare,
    &command_gate,
    &command_baseline,
    &command_history,
    &command_model,
    &command_doctor,
    &command_plan,
    &command_tokenize,
    &command_list,
    &command_help,
    &command_docs,
    &command_worker,
    &command_import_journal,
    NULL,
};

static const struct command *find_command(const char *name) {
    for (const struct command *const *c = all_commands; *c; c++)
        if (!strcmp((*c)->name, name)) return *c;
    return NULL;
}

static int unknown_command(const char *name) {
    const char *names[64];
    size_t n = 0;
    for (const struct command *const *c = all_commands; *c && n < 64; c++)
        if ((*c)->group) names[n++] = (*c)->name;
    const char *near = text_nearest(name, names, n);
    fprintf(stderr, "bench: unknown command '%.100s'", name);
    if (near) fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, " (bench help)\n");
    return EXIT_USAGE;
}

static int run_command(int argc, char **argv) {
    static char help[] = "help";
    char *none[] = {help, NULL};
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return command_help.main(1, none);
    if (!strcmp(argv[1], "--version")) {
        printf("bench %s (%.12s%s, %s)\n", BENCH_VERSION, BUILD_REVISION,
               BUILD_DIRTY ? ", changed" : "", BUILD_COMPILER);
        return EXIT_OK;
    }
    const struct command *c = find_command(argv[1]);
    return c ? c->main(argc - 1, argv + 1) : unknown_command(argv[1]);
}

/* A reader that went away (`bench list | head -1`) is not a failure of ours; a full disk is. */
static int close_stdout(int code) {
    struct stat st;
    bool pipe_out = !fstat(STDOUT_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
    bool failed = ferror(stdout) != 0;
    int why = failed ? errno : 0;
    if (fclose(stdout)) {
        failed = true;
        why = errno;
    }
    if (!failed || pipe_out) return code;
    fprintf(stderr, "bench: the output could not be written: %s\n", strerror(why ? why : EIO));
    return code == EXIT_OK ? EXIT_USAGE : code;
}

/* With a standard stream closed, the next file opened would take its number and our text. */
static void fill_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

int main(int argc, char **argv) {
    fill_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond its limit (ulimit -f) is a failed write, no signal */
    return close_stdout(run_command(argc, argv));
}
