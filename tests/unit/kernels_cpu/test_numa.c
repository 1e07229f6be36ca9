/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of CPUs in made-up trees, of pages on this machine, and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/facts.h"
#include "kernels/cpu/numa.h"
#include "tests/support/made_up.h"

static void cpus_have_the_nodes_of_their_lists(void **state) {
    static const int cpus[] = {0, 3, 4, 7, 8, 11, 12, 200};
    static const int want[] = {0, 0, 2, 2, 0, 0, 5, -1};
    int node[8];
    struct made_up tree;
    (void)state;
    made_up_open(&tree);
    assert_int_equal(numa_nodes(tree.root, cpus, 8, node), 1); /* nothing is known */
    for (int i = 0; i < 8; i++) assert_int_equal(node[i], -1);
    made_up_file(&tree, "sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    made_up_file(&tree, "sys/devices/system/node/node1/cpulist", "\n"); /* memory only */
    made_up_file(&tree, "sys/devices/system/node/node2/cpulist", "4-7\n");
    made_up_file(&tree, "sys/devices/system/node/node5/cpulist", "12\n"); /* behind a gap */
    assert_int_equal(numa_nodes(tree.root, cpus, 8, node), 3);
    for (int i = 0; i < 8; i++) assert_int_equal(node[i], want[i]);
    assert_int_equal(numa_nodes(tree.root, cpus, 2, node), 1); /* only one is used */
    made_up_close(&tree);
}

static void pages_of_this_machine(void **state) {
    enum { BYTES = 1 << 20 };
    struct numa_pages pages = {0}, far = {0}, none = {0};
    (void)state;
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise(p, BYTES, MADV_NOHUGEPAGE);
    numa_look(&none, p, BYTES, 0);
    if (none.refused != 0) {
        print_message("skipped: move_pages: %s\n", strerror(none.refused));
        munmap(p, BYTES);
        return;
    }
    assert_int_equal(none.looked, 16);
    assert_int_equal(none.placed, 0); /* nobody touched them */
    memset(p, 1, BYTES / 2);
    numa_look(&pages, p, BYTES, 0);
    numa_look(&far, p, BYTES, 1000);
    assert_int_equal(pages.looked, 16);
    assert_int_equal(pages.placed, 8);
    assert_in_range(pages.near, 0, 8);
    assert_int_equal(far.placed, 8);
    assert_int_equal(far.near, 0);
    numa_look(&far, p + 100, 9000, 0); /* one whole page lies within */
    assert_int_equal(far.looked, 17);
    numa_look(&far, p + 100, 1000, 0);
    assert_int_equal(far.looked, 17);
    munmap(p, BYTES);
}

static void said(int n_nodes, struct numa_pages pages, const char *want) {
    struct facts facts = {0};
    numa_describe(&facts, n_nodes, &pages);
    assert_string_equal(facts_get(&facts, "device.numa", ""), want);
    facts_free(&facts);
}

static void sentences(void **state) {
    (void)state;
    said(1, (struct numa_pages){.looked = 5, .placed = 5, .near = 5}, "one node");
    said(2, (struct numa_pages){0}, "2 nodes");
    said(4, (struct numa_pages){.looked = 400, .placed = 400, .near = 388},
         "4 nodes; 97 % of the weights on that of their reader, by 400 pages");
    said(2, (struct numa_pages){.looked = 16, .refused = EPERM},
         "2 nodes; where pages are is not told: Operation not permitted");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cpus_have_the_nodes_of_their_lists),
                                       cmocka_unit_test(pages_of_this_machine),
                                       cmocka_unit_test(sentences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
