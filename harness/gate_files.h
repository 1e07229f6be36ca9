/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench compare`, `bench gate` and `bench history` share: result files from the command line,
 * the settings that judge them, where the verdict goes. */
#ifndef HARNESS_GATE_FILES_H
#define HARNESS_GATE_FILES_H
#include "harness/command.h"
#include "results/gate.h"
#include "results/sides.h"

enum { GATE_MOST_FILES = 1000 };
struct gate_files { /* zero-initialise; owns names and tables */
    struct sides_file *items;
    size_t n, cap;
};
/* Reads one file; or, of a folder, all its *.h5 by name. Only the tables that judging needs. */
int gate_files_add(struct gate_files *, const char *path, struct err *);
void gate_files_free(struct gate_files *);
/* "OLD NEW NEW ..." and all --old and --new: at least one file a side. */
int gate_files_sides(const struct arguments *, struct gate_files *old, struct gate_files *new,
                     struct err *);

/* Settings: defaults, then [gate] of the old file (a change must not loosen its own gate), then
   --metric, --rows and --set gate.KEY=VALUE. Texts live in the arena. */
int gate_files_settings(const struct arguments *, const struct sides_file *old,
                        struct gate_settings *, struct arena *, struct err *);
/* --across: facts that may differ. ERR_INPUT for one that no file of either list knows (b: NULL:
   there is one list), since nothing would be compared across it. */
enum { GATE_MOST_ACROSS = 128 };
int gate_files_across(const struct arguments *, const struct gate_files *a,
                      const struct gate_files *b, const char *across[GATE_MOST_ACROSS], size_t *n,
                      struct err *);
/* --rows and gate.rows: ERR_INPUT for a key that no row of any file has. new: NULL: one list. */
int gate_files_rows(const struct gate_settings *, const struct gate_files *old,
                    const struct gate_files *new, struct err *);
/* Says in a note where [gate] of a new file differs from the old one's. */
void gate_files_note(struct gate *, const struct sides_file *old, const struct sides_file *new);
/* Whether two names are of one result: one file, or a copy. */
bool gate_files_are_one(const char *a, const char *b);
/* Says so where the same result stands on both sides; ERR_INPUT where it stands twice on one, which
   would make two runs of one and nothing differ between them. */
int gate_files_same(struct gate *, const struct gate_files *old, const struct gate_files *new,
                    struct err *);
/* Facts of the protocol that two files must share, with what a file without them takes. */
extern const struct sides_fact gate_files_facts[];

/* --format of verdicts; text where it is not given. ERR_INPUT: there is no such format. */
int gate_files_format(const struct arguments *, const char **format, struct err *);
/* The same with -o checked as the place of the document: it goes to standard output, or to the
   file, and then text to standard output. */
int gate_files_output(const struct arguments *, const char **format, struct err *);
int gate_files_write(const struct arguments *, const char *format, const struct gate *,
                     struct err *);

/* Appends a GitHub table to the page of the CI's own summary, $GITHUB_STEP_SUMMARY, where there is
   one. */
void gate_files_summary(const struct gate *);

/* XXH64 of a file's bytes, 16 hex digits. */
int gate_file_digest(const char *path, char out[17], struct err *);
/* The list of accepted states beside a baseline: BASELINE.accepted; a line is DIGEST, TIME,
   REVISION, WHO and WHY with tabs between. */
char *gate_accepted_path(const char *baseline); /* malloc'ed */
/* Whether the list has the digest; ERR_SYSTEM or ERR_INPUT if it cannot be read. */
int gate_accepted(const char *list, const char *digest, bool *found, struct err *);

#endif
