/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's lab ops. */
#include "kernels/lab.h"

#include "kernels/cpu/cpu.h"

const struct lab_ops cpu_lab = {
    .flash = &cpu_lab_flash,
    .latent = &cpu_lab_latent,
    .train = &cpu_lab_train,
};
