/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page bench(1). */
#ifndef HARNESS_MAN_H
#define HARNESS_MAN_H

struct text;
void man_page(struct text *);

#endif
