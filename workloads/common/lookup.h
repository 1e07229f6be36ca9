/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts without a model: what followed when the text's last tokens stood there before. */
#ifndef WORKLOADS_COMMON_LOOKUP_H
#define WORKLOADS_COMMON_LOOKUP_H
#include <stdint.h>

/* Finds the text's last `longest` tokens (else fewer, down to one) earlier in it, the latest place
   where they stand, and copies what followed, at most `most` tokens, going on into what it has just
   copied where the place is near the end. Returns how many: `most`, or 0 where nothing matches.
   (Prompt lookup decoding, Saxena 2023.) */
int32_t lookup_draft(const int32_t *text, int32_t n, int32_t longest, int32_t most, int32_t *out);

#endif
