/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the program: its options, its help, its main function. Only main.c and cmd_*.c print
 * and exit. */
#ifndef HARNESS_COMMAND_H
#define HARNESS_COMMAND_H
#include <stdbool.h>
#include <stddef.h>

/* Exit codes (measurement.md section 4). */
enum {
    EXIT_OK = 0,
    EXIT_REGRESSION = 1,
    EXIT_USAGE = 2,
    EXIT_INCOMPLETE = 3,
    EXIT_INCOMPARABLE = 4,
    EXIT_UNDECIDED = 5,
    EXIT_INTERRUPTED = 130
};

struct flag {           /* a command-line option; a table ends with name NULL */
    const char *name;   /* "--device" */
    const char *letter; /* "-o", or NULL */
    const char *value;  /* NULL: a switch; else what it takes: "KEY=VALUE" */
    const char *group;  /* purpose: "What to run", "Output", ... */
    const char *help;
    bool many; /* may be given several times */
};
struct command {
    const char *name, *usage, *brief, *group;
    const struct flag *flags;
    int (*main)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
};
extern const struct command *const all_commands[]; /* main.c */

struct arguments { /* what command_parse found */
    const char *words[64];
    size_t n_words;
    struct {
        const struct flag *flag;
        const char *value;
    } given[128];
    size_t n_given;
};
/* Reads argv by the flag table: --name value, --name=value, -o value, -- ends flags. On a mistake
   prints one sentence with the nearest flag to stderr and returns EXIT_USAGE; on --help prints the
   command's help to stdout and returns -1; else 0. */
int command_parse(const struct command *, int argc, char **argv, struct arguments *);
const char *argument(const struct arguments *,
                     const char *name); /* last value ("" for a switch), NULL if absent */
size_t arguments_of(const struct arguments *, const char *name, const char **values, size_t most);
/* The command's help, as --help prints it: usage, then the flags by purpose. */
struct text;
void command_describe(const struct command *, struct text *);
/* Prints "bench: sentence" to stderr and returns the exit code that fits err->code. */
struct err;
int command_fail(const struct err *);

extern const struct command command_run, command_list, command_show, command_plot, command_export,
    command_resume, command_replay, command_doctor, command_help, command_docs, command_worker,
    command_import, command_import_journal, command_ab, command_compare, command_gate,
    command_baseline, command_history, command_plan, command_model, command_tokenize;

#endif
