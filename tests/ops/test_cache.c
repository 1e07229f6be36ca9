/* SPDX-License-Identifier: Apache-2.0 */
/* Every device and level against ref: rotary positions, all cache layouts and types, attention. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_rope_append(&rig);
    op_check_attention(&rig);
    op_check_kv_copy_block(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
