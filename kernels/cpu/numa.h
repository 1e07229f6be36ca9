/* SPDX-License-Identifier: Apache-2.0 */
/* On which memory node a CPU and a page lie. */
#ifndef KERNELS_CPU_NUMA_H
#define KERNELS_CPU_NUMA_H
#include <stdint.h>

struct facts;

/* node (n): of each CPU, by ROOT/sys/devices/system/node ("" for this machine); -1 where unknown.
   Returns how many nodes these CPUs lie on, 1 where unknown. */
int numa_nodes(const char *root, const int *cpus, int n, int *node);

struct numa_pages {              /* samples of pages, all so far */
    int64_t looked, placed, near; /* asked for; in memory; on the node of those who read them */
    int refused;                  /* errno of the first question without answer; 0 */
};
/* Asks for the nodes of at most 16 pages, evenly spread over the bytes, which threads on `node`
 * read. */
void numa_look(struct numa_pages *, const void *data, int64_t bytes, int node);
/* device.numa: "one node", or how many nodes and where the pages of weights are. */
void numa_describe(struct facts *, int n_nodes, const struct numa_pages *);

#endif
