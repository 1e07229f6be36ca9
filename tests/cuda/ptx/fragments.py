# SPDX-License-Identifier: Apache-2.0
"""Where the elements of a matrix lie in the lanes of a warp: mma.sync m16n8k16 and ldmatrix, after the PTX ISA's tables. Plain
functions of lane and index, since tests compare them with maps of another origin (tests/golden/frag_maps.tsv)."""
import numpy as np

# Each gives (row, column) of element i of a lane. A is 16 x 16, B 16 x 8 (row: k), C and D 16 x 8.


def a_element(lane, i):
    return lane // 4 + 8 * (i // 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i // 4)


def b_element(lane, i):
    return lane % 4 * 2 + i % 2 + 8 * (i // 2), lane // 4


def c_element(lane, i):
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def ldmatrix_element(lane, i, transposed):
    """Element i of two of lane's register of one 8 x 8 matrix; the matrix's rows are as stored."""
    row, column = lane // 4, lane % 4 * 2 + i
    return (column, row) if transposed else (row, column)


def _index(element, n):
    lanes, i = np.meshgrid(np.arange(32), np.arange(n), indexing="ij")
    return element(lanes, i)


A, B, C = _index(a_element, 8), _index(b_element, 4), _index(c_element, 4)


def mma(a, b, c):
    """D = A B + C of many warps: a (warps, 32, 8), b (warps, 32, 4), c (warps, 32, 4) as the lanes hold them; f32."""
    full_a = np.empty((len(a), 16, 16), np.float32)
    full_b = np.empty((len(a), 16, 8), np.float32)
    full_c = np.empty((len(a), 16, 8), np.float32)
    full_a[:, A[0], A[1]] = a
    full_b[:, B[0], B[1]] = b
    full_c[:, C[0], C[1]] = c
    # A row without terms that are not finite must not see another row's: plain sums of products do that.
    return (np.matmul(full_a, full_b) + full_c)[:, C[0], C[1]]
