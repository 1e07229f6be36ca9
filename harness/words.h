/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a table that are neither metrics nor keys: states, flags, and what measuring is made
 * of. */
#ifndef HARNESS_WORDS_H
#define HARNESS_WORDS_H

enum word_kind { WORD_STATE, WORD_FLAG, WORD_TERM, N_WORD_KINDS };
extern const char *const word_kind_names[N_WORD_KINDS]; /* "state", "flag", "word" */
struct word {
    const char *word, *meaning;
    enum word_kind kind;
};
extern const struct word all_words[]; /* ends with word NULL */

#endif
