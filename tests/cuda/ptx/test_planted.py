# SPDX-License-Identifier: Apache-2.0
"""Mistakes planted in the PTX of a right kernel, as they would come from the text of inline assembly or from a compiler: the
interpreter must find each. The emulator, which has twins of the assembly, cannot."""
# ctest: timeout 300
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import machine, memory, parse, values  # noqa: E402
from ptx.harness import cuda_build, main, skip  # noqa: E402

RNG = np.random.default_rng(5)
X, W = (values.from_bf16(values.to_bf16(RNG.normal(0, 0.5, s).astype(np.float32))) for s in ((16, 16), (8, 16)))
WANT = np.exp2(-np.abs(X.astype(np.float64) @ W.T))
try:
    TEXT = cuda_build.ptx(pathlib.Path(__file__).with_name("planted.cu")).read_text()
except cuda_build.Missing as missing:
    skip(missing)


def error(text):
    """The largest error of a run; infinite for NaN."""
    memories = memory.Global([(0x1000, values.to_bf16(X).tobytes()), (0x2000, values.to_bf16(W).tobytes()), (0x3000, bytes(512))])
    machine.launch(parse.parse(text), "planted", (1, 1, 1), (32, 1, 1), 1024,
                   np.array([0x1000, 0x2000, 0x3000], np.uint64).tobytes(), memories)
    off = np.abs(memories.bytes_at(0x3000, 512).view(np.float32).reshape(16, 8) - WANT)
    return np.inf if np.isnan(off).any() else off.max()


def planted(pattern, replacement):
    text, n = re.subn(pattern, replacement, TEXT, count=1)
    assert n == 1, f"the PTX has no {pattern}"
    try:
        return error(text)
    except parse.PtxError:
        return np.inf


def test_the_kernel_is_right():
    assert error(TEXT) < 1e-5, error(TEXT)


def test_two_registers_of_the_mma_swapped():
    mma = r"(mma\.sync\S+\s+\{[^}]*\},\s*)\{(\S+?), ?(\S+?), ?(\S+?), ?(\S+?)\}"
    assert planted(mma, r"\1{\2, \4, \3, \5}") > 0.01
    assert planted(r"(mma\.sync\S+\s+\{[^}]*\},\s*\{[^}]*\},\s*)\{(\S+?), ?(\S+?)\}", r"\1{\3, \2}") > 0.01
    assert planted(r"(mma\.sync\S+\s+)\{(\S+?), ?(\S+?), ?(\S+?), ?(\S+?)\}", r"\1{\3, \2, \4, \5}") > 0.01


def test_a_wait_dropped():
    assert planted(r"cp\.async\.wait_group\s+0;", "") == np.inf
    assert planted(r"cp\.async\.wait_group\s+0;", "cp.async.wait_group 1;") == np.inf
    assert planted(r"cp\.async\.commit_group;", "") == np.inf


def test_a_copy_of_too_little_or_too_much():
    assert planted(r"(cp\.async\.cg[^;]*, 16, )%r\d+;", r"\g<1>8;") > 0.01
    assert planted(r"selp\.b32\s+(%r\d+), 16, 0,", r"selp.b32 \1, 32, 0,") == np.inf


def test_ldmatrix_in_another_order():
    load = r"(ldmatrix\S+\s+)\{(\S+?), ?(\S+?), ?(\S+?), ?(\S+?)\}"
    assert planted(load, r"\1{\2, \4, \3, \5}") > 0.01
    assert planted(r"\.m8n8\.x4\.shared", ".m8n8.x4.trans.shared") > 0.01


def test_the_wrong_type():
    assert planted(r"\.bf16\.bf16\.", ".f16.f16.") > 0.01


def test_a_store_to_the_wrong_place():
    assert planted(r"(st\.global\.(?:f32|b32)\s+\[%rd\d+\+)\d+\]", r"\g<1>4096]") == np.inf
    assert planted(r"(st\.global\.(?:f32|b32)\s+\[%rd\d+)\]", r"\1+2]") == np.inf


def test_no_wait_for_the_kernel_before():
    late = TEXT.replace("griddepcontrol.wait;", "").replace("ret;", "griddepcontrol.wait;\nret;")
    try:
        error(late)
    except parse.PtxError as e:
        assert "before griddepcontrol.wait" in str(e)
        return
    raise AssertionError("a store before the wait was not found")


def test_an_opcode_that_is_not_there():
    assert machine.unsupported(parse.parse(TEXT)) == []
    assert machine.unsupported(parse.parse(TEXT.replace("ex2.approx.ftz.f32", "ex9.approx.ftz.f32"))) != []


if __name__ == "__main__":
    main(globals())
