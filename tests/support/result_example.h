/* SPDX-License-Identifier: Apache-2.0 */
/* One small result with every table filled, hostile names among them; and the comparison of two
 * results. */
#ifndef TESTS_SUPPORT_RESULT_EXAMPLE_H
#define TESTS_SUPPORT_RESULT_EXAMPLE_H
#include "results/table.h"

/* Frozen: tests/golden/result_v1.h5.gz holds exactly these tables, written by the version that had
 * format 1. */
struct tables *result_example(void);
/* Fails the test at the first cell, column or unit that differs; NaN equals NaN. */
void tables_same(const struct tables *, const struct tables *);
/* HOSTILE: what breaks careless formats. */
#define HOSTILE "a,b \"c\"\nd|e\tf\\ \xc3\xa4\xe2\x82\xac"

#endif
