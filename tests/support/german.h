/* SPDX-License-Identifier: Apache-2.0 */
/* A locale with a decimal comma for tests, also where none is installed. */
#ifndef TESTS_SUPPORT_GERMAN_H
#define TESTS_SUPPORT_GERMAN_H
#include <stdbool.h>

/* Makes the whole process write 1,5 for 1.5 with plain printf; false where the C library cannot be
 * brought to it. */
bool german_begin(void);
void german_end(void); /* back to C */

#endif
