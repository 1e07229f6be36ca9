/* SPDX-License-Identifier: Apache-2.0 */
/* Every device and level against ref: matrix products, embedding, normalisation, gathering. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_linear(&rig);
    op_check_embed(&rig);
    op_check_add_norm(&rig);
    op_check_gather(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
