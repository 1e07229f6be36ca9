# SPDX-License-Identifier: Apache-2.0
"""Conflicts of banks are counted as shared memory has them, and a kernel with some is refused."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import banks  # noqa: E402
from ptx.harness import main, run  # noqa: E402

LANES = np.arange(32)


def cycles(address, size, lanes=LANES):
    c = banks.count(np.asarray(address, np.int64), lanes, size)
    return c.cycles, c.least


def test_words():
    assert cycles(4 * LANES, 4) == (1, 1)
    assert cycles(4 * LANES[::-1], 4) == (1, 1)
    assert cycles(8 * LANES, 4) == (2, 1)
    assert cycles(128 * LANES, 4) == (32, 1)
    assert cycles(132 * LANES, 4) == (1, 1)


def test_one_word_is_handed_to_all():
    assert cycles(0 * LANES, 4) == (1, 1)
    assert cycles(4 * (LANES % 4), 4) == (1, 1)
    assert cycles(LANES, 1) == (1, 1)  # bytes of eight words
    assert cycles(2 * LANES, 2) == (1, 1)
    assert cycles(128 * (LANES // 16), 4) == (2, 1)


def test_vectors_go_in_phases():
    assert cycles(8 * LANES, 8) == (2, 2)
    assert cycles(16 * LANES, 16) == (4, 4)
    assert cycles(16 * LANES[:8], 16, LANES[:8]) == (1, 1)
    assert cycles(32 * LANES, 16) == (8, 4)
    assert cycles(144 * LANES, 16) == (4, 4)
    assert cycles(128 * LANES, 16) == (32, 4)


def test_warps_are_apart():
    assert cycles(np.concatenate([4 * LANES, 8 * LANES]), 4, np.arange(64)) == (3, 2)


def counted(body, shared=4096):
    b = banks.Banks()
    run(body, shared=shared, banks=b, before=".extern .shared .align 16 .b8 s[];\n")
    return b


STORE = "mov.u32 %r2, s; mul.lo.u32 %r3, %r0, {}; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r0;"


def test_the_interpreter_counts():
    assert banks.broken("k", counted(STORE.format(4))) == []
    found = banks.broken("k", counted(STORE.format(64)))
    assert len(found) == 2 and "16 cycles of shared memory, 1 without" in found[0] and "st.shared.u32" in found[1], found
    assert banks.broken("k", counted(STORE.format(64)), {"k": (16, "it is a test")}) == []


COPY = "mov.u32 %r2, s; mul.lo.u32 %r3, %r0, {}; add.u32 %r3, %r3, %r2; and.b32 %r4, %r0, 7; mul.wide.u32 %rd5, %r4, 16; " \
       "add.s64 %rd5, %rd0, %rd5; cp.async.cg.shared.global [%r3], [%rd5], 16; cp.async.commit_group; cp.async.wait_group 0;"


def test_copies_are_counted_where_they_begin():
    assert counted(COPY.format(16)).total().ratio == 1
    found = banks.broken("k", counted(COPY.format(64)))
    assert "16 cycles of shared memory, 4 without" in found[0] and "cp.async.cg" in found[1], found


MATRICES = COPY.format(16) + "mul.lo.u32 %r5, %r0, {}; and.b32 %r5, %r5, 511; add.u32 %r5, %r5, %r2; " \
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r6, %r7, %r8, %r9}}, [%r5];"


def test_a_matrix_is_a_phase():
    assert counted(MATRICES.format(16)).total().ratio == 1
    found = banks.broken("k", counted(MATRICES.format(32)))
    assert "8 for 4" in found[1] and "ldmatrix" in found[1], found


if __name__ == "__main__":
    main(globals())
