/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of two workers in one mapping: equal bytes lie once, on the same pages for both.
 */
#ifndef HARNESS_SHARING_H
#define HARNESS_SHARING_H
#include "kernels/device.h"

struct err;
struct sharing_store; /* opaque: of one worker */

int sharing_open(struct sharing_store **, int fd, struct err *);
void sharing_close(struct sharing_store **);
const struct sharing *sharing_of(struct sharing_store *);
/* Names hold from here on for the weights of this model (0: no name holds): what the same program
   packed under it is not packed again. Without a name bytes are shared where they are equal. */
void sharing_model(struct sharing_store *, uint64_t weights_key);
/* What the live weights of this device lie on, the same for two workers exactly if their pages are:
   "private" where not nearly all are shared, else a hash; without weights the same of other data
   that is only read, "none" without any. */
void sharing_place(const struct sharing_store *, const struct device *, char place[17]);

#endif
