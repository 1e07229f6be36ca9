/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of llama-bench's output, one row each: what its exporter writes and its importer reads.
 */
#ifndef RESULTS_LLAMA_FIELDS_H
#define RESULTS_LLAMA_FIELDS_H
#include <stddef.h>

enum llama_type { LLAMA_TEXT, LLAMA_BOOL, LLAMA_INT, LLAMA_REAL };
enum llama_role {
    LLAMA_FACT,     /* of the build or the machine */
    LLAMA_SETTING,  /* part of a test's identity unless it is the usual one */
    LLAMA_IDENTITY, /* always part of it */
    LLAMA_RESULT,
};
struct llama_field {
    const char *name;
    enum llama_type type;
    enum llama_role role;
    /* What llama-bench has where nothing is asked for; bench writes it where it has no such thing
       itself. "": a text that is empty. NULL: no value stands for none. */
    const char *usual;
};
/* In the order of csv and sql, then those of json alone; ends with name NULL. */
extern const struct llama_field llama_fields[];
enum { N_LLAMA_FIELDS = 41 }; /* use_mmap, the last, is in json only */
const struct llama_field *llama_field_find(const char *name);

#endif
