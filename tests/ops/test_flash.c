/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and levels that have attention forward and backward, naive and by tiles, against ref. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_flash(&rig);
    op_check_flash_edges(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
