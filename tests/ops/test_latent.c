/* SPDX-License-Identifier: Apache-2.0 */
/* The lab ops on latents and on chosen blocks: devices that have them against ref. */
#include <stddef.h>

#include "tests/support/op_rig.h"

int main(void) {
    static const char *const threads[] = {"1", "2", "3", NULL};
    static struct op_rig rig;
    op_rig_open(&rig, threads);
    op_check_latent(&rig);
    op_check_blocks(&rig);
    return op_rig_close(&rig) ? 1 : 0;
}
