/* SPDX-License-Identifier: Apache-2.0 */
/* The program that made a result: this one, or one built once more from its revision. */
#ifndef HARNESS_OLD_PROGRAM_H
#define HARNESS_OLD_PROGRAM_H
#include <stdbool.h>

struct err;
struct tables;

struct old_program {
    char *folder; /* of its own, for binary alone */
    char *binary; /* NULL: this program, or one to be built from: */
    char revision[16];
};
/* By the facts of the result: this program where the digests agree; else built from build.revision,
   where the git checkout of this program knows it, with the definitions of build.command. The
   worktree and the build folder are gone when it returns, also after SIGINT and SIGTERM
   (ERR_INTERRUPTED). ERR_INPUT: it is not at hand, and what would help. may_build false: for a
   plan, which needs to know whether it could be built, and from which revision. */
int old_program_find(const struct tables *, bool may_build, struct old_program *, struct err *);
void old_program_free(struct old_program *);

#endif
