# SPDX-License-Identifier: Apache-2.0
"""An interpreter of the PTX that nvcc writes: what the compiler made of a kernel, inline assembly included, runs on numpy
lanes."""
