# SPDX-License-Identifier: Apache-2.0
"""The comparison of replayed launches itself: what is right passes, and each kind of difference is found."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import parse, replay  # noqa: E402
from ptx.harness import IN, OUT, fails, main, program  # noqa: E402

BODY = "ld.global.f32 %f1, [%rd4]; mul.f32 %f2, %f1, 0f40400000; st.global.f32 [%rd3], %f2; cvt.rn.bf16.f32 %rs1, %f2; " \
       "mul.wide.u32 %rd5, %r0, 2; add.s64 %rd6, %rd1, %rd5; st.global.u16 [%rd6+128], %rs1; add.s64 %rd7, %rd1, %rd2; " \
       "st.global.u32 [%rd7+192], %r0;"
GIVEN = np.linspace(1, 2, 32, dtype=np.float32)


def record(change=None):
    out = np.zeros(320, np.uint8)
    tripled = (GIVEN * 3).astype(np.float32)
    out[:128] = tripled.view(np.uint8)
    out[128:192] = replay.machine.operations.narrow(tripled, "bf16").view(np.uint8)
    out[192:] = np.arange(32, dtype=np.uint32).view(np.uint8)
    if change:
        change(out)
    return replay.Record("k", (1, 1, 1), (32, 1, 1), 0, np.array([IN, OUT], np.uint64).tobytes(),
                         [replay.Allocation(IN, GIVEN.tobytes(), GIVEN.tobytes()),
                          replay.Allocation(OUT, bytes(320), out.tobytes())])


def differences(change=None, body=BODY):
    return replay.replay(replay.read(replay.write(record(change))), parse.parse(program(body)))[0]


def test_right():
    assert differences() == []


def test_an_ulp_is_no_difference_but_more_is():
    def ulp(out, n=1):
        out[:128].view(np.uint32)[5] += n
    assert differences(ulp) == []
    found = differences(lambda out: ulp(out, 4096))
    assert len(found) == 1 and "1 of 32 values (f32)" in found[0] and "at +20" in found[0], found


def test_a_step_of_bf16():
    def step(out, n=1):
        out[128:192].view(np.uint16)[7] += n
    assert differences(step) == []
    assert "1 of 32 values (bf16)" in differences(lambda out: step(out, 3))[0]


def test_whole_numbers_are_exact():
    found = differences(lambda out: out[192:].view(np.uint32).__setitem__(3, 4))
    assert len(found) == 1 and "(byte)" in found[0], found


def test_a_missing_store_is_found():
    assert "not written by nvcc's code" in differences(body=BODY.replace("st.global.u32 [%rd7+192], %r0;", ""))[0]
    late = BODY.replace("st.global.f32 [%rd3], %f2;", "setp.ne.u32 %p1, %r0, 9; @%p1 st.global.f32 [%rd3], %f2;")
    assert differences(body=late) != []


def test_a_store_too_many_is_found():
    extra = BODY + "setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u32 [%rd0], 0;"
    assert str(hex(IN)) in differences(body=extra)[0]


def test_nan_is_not_equal_to_a_number():
    assert differences(lambda out: out[:128].view(np.float32).__setitem__(0, np.nan)) != []


def test_files_that_are_no_records():
    fails("not a record", replay.read, b"something else")
    fails("cut short", replay.read, replay.write(record())[:-8])


if __name__ == "__main__":
    main(globals())
