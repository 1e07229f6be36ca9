/* SPDX-License-Identifier: Apache-2.0 */
/* A file of questions with known answers, and the rule by which an answer counts. */
#ifndef WORKLOADS_COMMON_QUESTIONS_H
#define WORKLOADS_COMMON_QUESTIONS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { QUESTIONS_MOST = 256, QUESTIONS_MOST_BYTES = 1 << 16 };
struct question {
    const char *text;
    const char *const *answers; /* (n), at least one */
    int32_t n;
};
struct questions; /* opaque */
/* Lines `? QUESTION`, each followed by lines `= ANSWER`; `#` and empty lines are passed over.
   ERR_INPUT with file and line. */
int questions_read(struct questions **, const char *path, struct err *);
void questions_close(struct questions **); /* NULL inside is safe */
int32_t questions_count(const struct questions *);
const struct question *questions_at(const struct questions *, int32_t i);
uint64_t questions_hash(const struct questions *); /* of the file's bytes */

/* Whether what a model said (n bytes, any) holds one of the answers as whole words, letters A-Z as
   a-z. These and digits make words ("100°C" holds 100); an answer may consist of several. */
bool question_answered(const struct question *, const char *said, size_t n);

#endif
