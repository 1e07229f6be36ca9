/* SPDX-License-Identifier: Apache-2.0 */
/* The reference device's lab ops. */
#include "kernels/lab.h"

#include "kernels/ref/ref.h"

const struct lab_ops ref_lab = {
    .flash = &ref_lab_flash,
    .latent = &ref_lab_latent,
    .train = &ref_lab_train,
};
