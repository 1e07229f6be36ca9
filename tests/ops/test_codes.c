/* SPDX-License-Identifier: Apache-2.0 */
/* Every device and level against ref where inputs of products are int8: the same bits. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_linear_codes(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
