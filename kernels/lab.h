/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that only teaching experiments need: devices ref and cpu have them, the others do not. */
#ifndef KERNELS_LAB_H
#define KERNELS_LAB_H

struct lab_flash;
struct lab_latent;
struct lab_train;

struct lab_ops { /* NULL: the device has none */
    const struct lab_flash *flash;   /* kernels/lab_flash.h */
    const struct lab_latent *latent; /* kernels/lab_latent.h */
    const struct lab_train *train;   /* kernels/lab_train.h */
};

#endif
