/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as they would be if their indices had 32 bits: mistakes that test_shapes.cpp must find.
 */
#ifndef TESTS_CUDA_SHAPES_WRAPPED_H
#define TESTS_CUDA_SHAPES_WRAPPED_H

/* The one in the place of the kernel of that name, or nullptr. */
void (*wrapped_kernel(const char *name))(void);

#endif
