# SPDX-License-Identifier: Apache-2.0
"""The interpreter's maps of mma and ldmatrix are those of tests/golden/frag_maps.tsv, which another program made from CuTe."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import fragments  # noqa: E402
from ptx.harness import SOURCE, main  # noqa: E402

MAPS = {}
for line in (SOURCE / "tests/golden/frag_maps.tsv").read_text().splitlines():
    if line and line[0] != "#":
        name, lane, i, row, column = line.split("\t")
        MAPS.setdefault(name, {})[int(lane), int(i)] = (int(row), int(column))


def check(name, n, element):
    assert len(MAPS[name]) == 32 * n, f"{name} has {len(MAPS[name])} elements"
    for (lane, i), want in MAPS[name].items():
        got = element(lane, i)
        assert got == want, f"{name}: element {i} of lane {lane} is {got} here and {want} in frag_maps.tsv"


def test_mma():
    check("mma_a", 8, fragments.a_element)
    check("mma_b", 4, fragments.b_element)
    check("mma_c", 4, fragments.c_element)


def test_ldmatrix():
    """Register i // 2 is of matrix i // 2, whose rows lanes 8 (i // 2) ... name."""
    for name, transposed in (("ldmatrix", False), ("ldmatrix_trans", True)):
        def element(lane, i, transposed=transposed):
            row, column = fragments.ldmatrix_element(lane, i % 2, transposed)
            return 8 * (i // 2) + row, column
        check(name, 8, element)


if __name__ == "__main__":
    main(globals())
