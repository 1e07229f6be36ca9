/* SPDX-License-Identifier: Apache-2.0 */
/* The same bits alone, in any batch and split, and with 1, 2 and 3 threads, where a device promises
 * it. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", "3", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_invariance(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
