/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a profiled visit, counted by the range in which the host launched them. */
#ifndef HARNESS_KERNEL_ROWS_H
#define HARNESS_KERNEL_ROWS_H
#include <stddef.h>
#include <stdint.h>

struct table;
struct range_event;
struct kernel_event;

/* Adds to the table `kernels` a row per range name, kernel and way of launching. ranges: of one
 * thread, properly nested, in any order; kernels: of one stream, so in order of their launches too.
 */
void kernel_rows(struct table *, int64_t visit, const struct range_event *ranges, size_t n_ranges,
                 const struct kernel_event *kernels, size_t n);

#endif
