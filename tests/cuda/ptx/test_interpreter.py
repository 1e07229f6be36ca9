# SPDX-License-Identifier: Apache-2.0
"""The PTX interpreter on small programs written by hand: what each opcode gives, and that what is wrong is found."""
# ctest: timeout 60
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import kinds, machine, memory, parse  # noqa: E402
from ptx.harness import IN, fails, main, program, run  # noqa: E402

LANES = np.arange(32, dtype=np.uint32)


def same(got, want):
    want = np.asarray(want)
    got = got.view(want.dtype) if got.dtype != want.dtype else got
    assert np.array_equal(got, want), f"\n got {got}\nwant {want}"


def binary(op, a, b, kind, register="%r"):
    """One instruction of two operands on a pair of values."""
    width = parse.WIDTH[kind]
    n = {"%r": "b32", "%rd": "b64", "%f": "f32", "%fd": "f64"}[register]
    given = struct.pack("<QQ", a % 2**64, b % 2**64) if kind[0] != "f" else struct.pack("<dd" if width == 8 else "<fxxxxf", a, b)
    out = run(f"ld.global.{n} {register}10, [%rd0]; ld.global.{n} {register}11, [%rd0+8]; {op} {register}12, {register}10, "
              f"{register}11; st.global.{n} [%rd1], {register}12;", np.frombuffer(given, np.uint8), 4)
    return out[:max(width // 4, 1)]


def test_threads_and_blocks():
    body = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %rd5, %r3, 4; " \
           "add.s64 %rd5, %rd1, %rd5; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r3, 10, %r4; st.global.u32 [%rd5], %r5;"
    same(run(body, n_out=192, threads=64, blocks=3), np.arange(192, dtype=np.uint32) * 10 + 3)


def test_large_grids_run_in_parts():
    body = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r1;"
    same(run(body, n_out=40, threads=1024, blocks=40), np.arange(40, dtype=np.uint32))
    assert run(body, n_out=40, threads=1024, blocks=40, given=LANES).sum() == 780


def test_integers():
    cases = [("add.s32", 2**31 - 1, 1, "s32", -2**31), ("sub.u32", 0, 1, "u32", 2**32 - 1), ("mul.lo.s32", -3, 7, "s32", -21),
             ("mul.hi.u32", 2**32 - 1, 2**32 - 1, "u32", 2**32 - 2), ("mul.hi.s32", -1, 2, "s32", -1),
             ("div.s32", -7, 2, "s32", -3), ("rem.s32", -7, 2, "s32", -1), ("div.u32", 7, 0, "u32", 2**32 - 1),
             ("shr.s32", -8, 1, "s32", -4), ("shr.u32", 1, 40, "u32", 0), ("shr.s32", -1, 40, "s32", -1),
             ("shl.b32", 1, 32, "u32", 0), ("min.s32", -1, 1, "s32", -1), ("min.u32", 2**32 - 1, 1, "u32", 1),
             ("and.b32", 12, 10, "u32", 8), ("xor.b32", 12, 10, "u32", 6), ("add.sat.s32", 2**31 - 1, 9, "s32", 2**31 - 1)]
    for op, a, b, kind, want in cases:
        got = int(binary(op, a, b, kind).view("<i4" if kind == "s32" else "<u4")[0])
        assert got == want, (op, a, b, got, want)
    cases = [("add.s64", 2**40, 3, 2**40 + 3), ("mul.lo.s64", 2**33, 2**20, 2**53), ("mul.hi.u64", 2**63, 6, 3),
             ("mul.hi.s64", -1, 5, -1), ("div.s64", -2**40, 3, -(2**40 // 3)), ("rem.u64", 2**40 + 5, 7, (2**40 + 5) % 7),
             ("max.s64", -5, 4, 4)]
    for op, a, b, want in cases:
        got = int(binary(op, a, b, "s64", "%rd").view("<i8")[0])
        assert got == want, (op, a, b, got, want)


def test_wide_products_and_carries():
    body = "mul.wide.u32 %rd5, %r0, -1; st.global.u64 [%rd1], %rd5; add.cc.u32 %r1, %r0, -1; addc.u32 %r2, 5, 0; " \
           "st.global.u32 [%rd1+8], %r2; sub.cc.u32 %r3, 0, %r0; subc.u32 %r4, 9, 0; st.global.u32 [%rd1+12], %r4;" \
           "mad.lo.cc.u32 %r5, %r0, 1, -1; madc.hi.u32 %r6, %r0, 1, 7; st.global.u32 [%rd1+16], %r6;" \
           "mad.wide.s32 %rd6, -3, 5, 100; st.global.u64 [%rd1+24], %rd6;"
    out = run("add.s32 %r0, %r0, 31; setp.ne.u32 %p1, %r0, 31; @%p1 bra END;" + body + "END:", n_out=8)
    same(out, np.array([2**32 - 31, 30, 6, 8, 8, 0, 85, 0], np.uint32))


def test_bits():
    body = "popc.b32 %r1, %r10; st.global.u32 [%rd1], %r1; clz.b32 %r1, %r10; st.global.u32 [%rd1+4], %r1; brev.b32 %r1, %r10; " \
           "st.global.u32 [%rd1+8], %r1; bfe.u32 %r1, %r10, 4, 8; st.global.u32 [%rd1+12], %r1; bfe.s32 %r1, %r10, 8, 4; " \
           "st.global.u32 [%rd1+16], %r1; bfi.b32 %r1, 255, %r10, 4, 4; st.global.u32 [%rd1+20], %r1; " \
           "prmt.b32 %r1, %r10, 305419896, 29778; st.global.u32 [%rd1+24], %r1; lop3.b32 %r1, %r10, %r11, %r12, 234; " \
           "st.global.u32 [%rd1+28], %r1; shf.l.wrap.b32 %r1, %r10, %r11, 4; st.global.u32 [%rd1+32], %r1; " \
           "shf.r.clamp.b32 %r1, %r10, %r11, 8; st.global.u32 [%rd1+36], %r1; bfind.u32 %r1, %r10; st.global.u32 [%rd1+40], %r1;"\
           "dp4a.s32.s32 %r1, -1, %r13, 100; st.global.u32 [%rd1+44], %r1; bfe.s32 %r1, %r14, 31, 9; st.global.u32 [%rd1+48], %r1;"
    a, b, c = 0x00F0ABCD, 0x0F0F1234, 0xFF00FF00
    out = run(f"mov.u32 %r10, {a}; mov.b32 %r11, {b}; mov.b32 %r12, {c}; mov.b32 %r13, 0x01020304; mov.u32 %r14, 0x80000000;"
              + body, n_out=16)
    # prmt 0x7452: bytes 2, 5, 4, 7 of (a, 0x12345678), lowest first.
    permuted = 0xF0 | 0x56 << 8 | 0x78 << 16 | 0x12 << 24
    want = [bin(a).count("1"), 8, int(f"{a:032b}"[::-1], 2), 0xBC, 0xFFFFFFFB, a & ~0xF0 | 0xF0, permuted, a & b | c,
            (b << 4 | a >> 28) & 0xFFFFFFFF, (b << 24 | a >> 8) & 0xFFFFFFFF, 23, 90, 0xFFFFFFFF]
    same(out[:13], np.array(want, np.uint32))


def test_floats():
    f = lambda op, a, b: float(binary(op, a, b, "f32", "%f").view(np.float32)[0])  # noqa: E731
    assert f("add.f32", 1, 2.0**-24) == 1 and f("mul.f32", 3, 7) == 21 and f("sub.f32", 1, 3) == -2
    assert f("add.rp.f32", 1, 2.0**-30) == 1 + 2.0**-23 and f("add.rz.f32", -1, -2.0**-30) == -1
    assert f("add.ftz.f32", 2.0**-130, 0) == 0 and f("add.f32", 2.0**-130, 0) == 2.0**-130
    assert f("min.f32", float("nan"), 2) == 2 and np.isnan(f("min.NaN.f32", float("nan"), 2))
    assert f("div.rn.f32", 1, 3) == np.float32(1) / np.float32(3)
    d = lambda op, a, b: float(binary(op, a, b, "f64", "%fd").view(np.float64)[0])  # noqa: E731
    assert d("add.f64", 1, 2.0**-52) == 1 + 2.0**-52 and d("div.rn.f64", 1, 3) == 1 / 3
    out = run("mov.f32 %f1, 0f3F800001; fma.rn.f32 %f2, %f1, %f1, 0fBF800002; st.global.f32 [%rd1], %f2;"
              "mov.f64 %fd1, 0d3FF0000000000001; fma.rn.f64 %fd2, %fd1, %fd1, 0dBFF0000000000002; st.global.f64 [%rd1+8], %fd2;"
              "mov.f32 %f3, 0f40000000; ex2.approx.ftz.f32 %f4, %f3; st.global.f32 [%rd1+16], %f4; lg2.approx.f32 %f5, %f4;"
              "st.global.f32 [%rd1+20], %f5; rsqrt.approx.f32 %f6, %f4; st.global.f32 [%rd1+24], %f6; rcp.rn.f32 %f7, %f4;"
              "st.global.f32 [%rd1+28], %f7; sqrt.rn.f32 %f8, %f3; st.global.f32 [%rd1+32], %f8; neg.f32 %f9, %f8;"
              "abs.f32 %f9, %f9; st.global.f32 [%rd1+36], %f9;", n_out=10)
    assert out.view(np.float32)[0] == np.float32(2.0**-46), "a fused product is not rounded"
    assert out[2:4].view(np.float64)[0] == 2.0**-104
    same(out[4:].view(np.float32), np.array([4, 2, 0.5, 0.25, np.sqrt(np.float32(2)), np.sqrt(np.float32(2))], np.float32))


def test_conversions():
    out = run("mov.f32 %f1, 0f40200000; cvt.rni.s32.f32 %r1, %f1; st.global.u32 [%rd1], %r1; cvt.rzi.s32.f32 %r1, 0fC0200000;"
              "st.global.u32 [%rd1+4], %r1; cvt.rmi.s32.f32 %r1, 0fC0200000; st.global.u32 [%rd1+8], %r1; "
              "cvt.rzi.s32.f32 %r1, 0f7FC00000; st.global.u32 [%rd1+12], %r1; cvt.rzi.u32.f32 %r1, 0f4F9502F9; "
              "st.global.u32 [%rd1+16], %r1; cvt.s8.s32 %rs1, 255; cvt.s32.s16 %r1, %rs1; st.global.u32 [%rd1+20], %r1; "
              "cvt.u32.u16 %r1, %rs1; st.global.u32 [%rd1+24], %r1; cvt.rn.bf16x2.f32 %r1, 0f3F808000, 0f3F818000; "
              "st.global.u32 [%rd1+28], %r1; cvt.rn.f16.f32 %rs2, 0f3F800000; st.global.u16 [%rd1+32], %rs2; "
              "cvt.rn.bf16.f32 %rs2, 0f7F800001; st.global.u16 [%rd1+34], %rs2; cvt.f32.bf16 %f3, 16384; "
              "st.global.f32 [%rd1+36], %f3; cvt.sat.f32.f32 %f3, 0f40000000; st.global.f32 [%rd1+40], %f3; "
              "cvt.rn.f32.s32 %f3, -3; st.global.f32 [%rd1+44], %f3; cvt.sat.s8.s32 %r2, 300; st.global.u32 [%rd1+48], %r2;",
              n_out=13)
    # A tie goes to even: 1 + 2^-8 down to 1, 1 + 3 2^-8 up to 1 + 4 2^-8.
    want = [2, 0xFFFFFFFE, 0xFFFFFFFD, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFF, 0x3F803F82, 0x7FFF3C00, 0x40000000, 0x3F800000,
            0xC0400000, 127]
    same(out, np.array(want, np.uint32))


def test_pairs_of_halves():
    out = run("mov.b32 %r1, 0x3F804000; mov.b32 %r2, 0x40403F80; fma.rn.bf16x2 %r3, %r1, %r2, %r1; st.global.u32 [%rd1], %r3;"
              "mov.b32 %r4, 0x3C004000; add.f16x2 %r5, %r4, %r4; st.global.u32 [%rd1+4], %r5; mov.b32 {%rs1, %rs2}, %r1; "
              "mov.b32 %r6, {%rs2, %rs1}; st.global.u32 [%rd1+8], %r6; neg.bf16x2 %r7, %r1; st.global.u32 [%rd1+12], %r7; "
              "max.bf16x2 %r8, %r1, %r2; st.global.u32 [%rd1+16], %r8; mov.b64 %rd9, {%r1, %r2}; mov.b64 {%r9, %r10}, %rd9;"
              "st.global.u32 [%rd1+20], %r10;", n_out=6)
    same(out, np.array([0x40804080, 0x40004400, 0x40003F80, 0xBF80C000, 0x40404000, 0x40403F80], np.uint32))


def test_predicates():
    body = "setp.lt.u32 %p1, %r0, 8; setp.ge.and.u32 %p2|%p3, %r0, 4, %p1; selp.u32 %r1, 1, 0, %p2; @%p3 add.u32 %r1, %r1, 10;" \
           "@!%p1 add.u32 %r1, %r1, 100; and.pred %p4, %p1, %p2; not.pred %p5, %p4; @%p5 add.u32 %r1, %r1, 1000;" \
           "setp.ltu.f32 %p6, 0f7FC00000, 0f00000000; @%p6 add.u32 %r1, %r1, 10000; setp.lt.f32 %p7, 0f7FC00000, 0f00000000;" \
           "@%p7 add.u32 %r1, %r1, 100000; st.global.u32 [%rd3], %r1;"
    first, second = (LANES >= 4) & (LANES < 8), (LANES < 4) & (LANES < 8)
    want = 10000 + first * 1 + second * 10 + (LANES >= 8) * 100 + ~first * 1000
    same(run(body), want.astype(np.uint32))


def test_loops_that_end_at_different_times_meet_again():
    body = "mov.u32 %r1, 0; mov.u32 %r2, 0; LOOP: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r0; " \
           "@%p1 bra LOOP; shfl.sync.bfly.b32 %r3|%p2, %r1, 1, 31, -1; st.global.u32 [%rd3], %r3;"
    sums = LANES * (LANES + 1) // 2
    same(run(body), sums[LANES ^ 1])


def test_a_branch_backwards_reaches_the_warp_operation():
    """A cold part behind the rest: its lanes come back to where the others wait."""
    body = "mov.u32 %r1, %r0; setp.eq.u32 %p1, %r0, 5; @%p1 bra COLD; BACK: shfl.sync.idx.b32 %r2, %r1, 5, 31, -1; " \
           "st.global.u32 [%rd3], %r2; bra END; COLD: mov.u32 %r1, 77; bra BACK; END:"
    same(run(body), np.full(32, 77, np.uint32))


def test_shuffles():
    def shuffled(mode, by, clamp):
        return run(f"add.u32 %r1, %r0, 100; shfl.sync.{mode}.b32 %r2|%p1, %r1, {by}, {clamp}, -1; selp.u32 %r3, 1000, 0, %p1; "
                   "add.u32 %r2, %r2, %r3; st.global.u32 [%rd3], %r2;")
    same(shuffled("down", 4, 31), np.where(LANES < 28, LANES + 1104, LANES + 100).astype(np.uint32))
    same(shuffled("up", 1, 0), np.where(LANES > 0, LANES + 1099, LANES + 100).astype(np.uint32))
    segment = (32 - 8) << 8 | 31  # width 8
    same(shuffled("bfly", 4, segment), (LANES ^ 4) + 1100)
    same(shuffled("idx", 3, segment), (LANES & 24) + 3 + 1100)
    same(shuffled("down", 7, segment), np.where(LANES % 8 == 0, LANES + 1107, LANES + 100).astype(np.uint32))


def test_votes_and_reductions():
    body = "setp.lt.u32 %p1, %r0, 5; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, " \
           "%p1, -1; @%p2 add.u32 %r1, %r1, 1000; @%p3 add.u32 %r1, %r1, 100000; redux.sync.max.u32 %r2, %r0, -1; add.u32 %r1, " \
           "%r1, %r2; st.global.u32 [%rd3], %r1;"
    same(run(body), np.full(32, 31 + 1000 + 31, np.uint32))


def test_partial_masks():
    body = "mov.u32 %r1, 65535; setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r1, 0xffff0000; shfl.sync.bfly.b32 %r2, %r0, 1, 31, %r1;" \
           "st.global.u32 [%rd3], %r2;"
    same(run(body), LANES ^ 1)
    fails("not in its own mask", run, "mov.u32 %r1, 65535; shfl.sync.bfly.b32 %r2, %r0, 1, 31, %r1;")
    fails("outside of the mask", run, "setp.ge.u32 %p1, %r0, 16; @%p1 bra END; shfl.sync.bfly.b32 %r2, %r0, 16, 31, 65535; END:")


def test_warp_operation_in_a_divergent_branch():
    body = "setp.lt.u32 %p1, %r0, 8; @%p1 bra END; shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; END: ret;"
    fails("not reached by all lanes", run, body)
    fails("not reached by all lanes", run, body.replace("shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1", "bar.warp.sync -1"))


def test_shared_memory_and_barriers():
    body = "mov.u32 %r1, buffer; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], %r0; bar.sync 0; xor.b32 %r3, %r0, 127; " \
           "mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd3], %r4;"
    before = ".extern .shared .align 16 .b8 buffer[];\n"
    same(run(body, n_out=128, threads=128, shared=512, before=before), np.arange(128, dtype=np.uint32) ^ 127)
    fails("shared access of 4 bytes out of bounds at 508", run, body, n_out=128, threads=128, shared=508, before=before)
    never = run(body.replace("st.shared.u32 [%r2], %r0;", ""), n_out=128, threads=128, shared=512, before=before)
    same(never, np.full(128, 0xFFFFFFFF, np.uint32))  # poison: NaN
    fails("barrier not reached", run, "setp.lt.u32 %p1, %r0, 32; @%p1 bra END; bar.sync 0; END: ret;", n_out=64, threads=64)
    fails("different barriers", run, "setp.lt.u32 %p1, %r0, 32; @%p1 bra OTHER; bar.sync 0; ret; OTHER: bar.sync 0;", n_out=64,
          threads=64)
    count = "setp.lt.u32 %p1, %r0, 40; bar.red.popc.u32 %r1, 0, %p1; st.global.u32 [%rd3], %r1;"
    same(run(count, n_out=64, threads=64), np.full(64, 40, np.uint32))


def test_generic_addresses():
    body = ".local .align 16 .b8 stack[16]; mov.u64 %rd5, stack; cvta.local.u64 %rd6, %rd5; mad.lo.u32 %r1, %r0, 3, 1; st.u32 " \
           "[%rd6+4], %r1; ld.local.u32 %r2, [%rd5+4]; mov.u32 %r3, buffer; cvt.u64.u32 %rd7, %r3; cvta.shared.u64 %rd8, %rd7;" \
           "st.u32 [%rd8], 5; ld.shared.u32 %r4, [buffer]; setp.lt.u32 %p1, %r0, 16; selp.b64 %rd9, %rd8, %rd6, %p1; " \
           "ld.u32 %r5, [%rd9]; @!%p1 mov.u32 %r5, 9; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; st.u32 [%rd3], %r2; " \
           "cvta.to.shared.u64 %rd10, %rd8;"
    out = run(body, shared=64, before=".extern .shared .align 16 .b8 buffer[];\n")
    same(out, 3 * LANES + 6 + np.where(LANES < 16, 5, 9).astype(np.uint32))
    fails("not of shared memory", run, "cvta.to.shared.u64 %rd5, %rd0;")


def test_constants_and_parameters_by_address():
    before = ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};\n.global .align 4 .u32 one = 11;\n"
    body = "and.b32 %r1, %r0, 3; mul.wide.u32 %rd5, %r1, 4; mov.u64 %rd6, table; add.s64 %rd6, %rd6, %rd5; ld.const.u32 %r2, " \
           "[%rd6]; ld.global.u32 %r3, [one]; add.u32 %r2, %r2, %r3; mov.b64 %rd7, k_param_0; cvta.param.u64 %rd8, %rd7; " \
           "ld.u32 %r4, [%rd8]; add.u32 %r2, %r2, %r4; st.global.u32 [%rd3], %r2;"
    same(run(body, before=before), (LANES & 3) + 12 + IN)


def test_vectors_and_narrow_words():
    given = np.arange(128, dtype=np.uint32)
    body = "mul.wide.u32 %rd5, %r0, 16; add.s64 %rd6, %rd0, %rd5; ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%r1,%r2,%r3,%r4}, " \
           "[%rd6]; add.s64 %rd7, %rd1, %rd5; st.global.v4.u32 [%rd7], {%r4,%r3,%r2,%r1};"
    same(run(body, given, n_out=128).reshape(32, 4), given.reshape(32, 4)[:, ::-1])
    body = "ld.global.s8 %r1, [%rd0]; st.global.u32 [%rd1], %r1; ld.global.u8 %rs1, [%rd0]; st.global.u16 [%rd1+4], %rs1; " \
           "st.global.u8 [%rd1+7], %rs1;"
    same(run(body, np.array([0xFE, 0, 0, 0], np.uint8), n_out=2), np.array([0xFFFFFFFE, 0xFE0000FE], np.uint32))


def test_wrong_addresses_are_found():
    fails("0 bytes behind the end of the allocation", run, "st.global.u32 [%rd3+4], %r0;")
    fails("lane 31", run, "st.global.u32 [%rd3+4], %r0;")
    fails("below all allocations", run, "ld.global.u32 %r1, [8];")
    fails("misaligned access of 4 bytes", run, "ld.global.u32 %r1, [%rd0+2];")
    fails("misaligned access of 16 bytes", run, "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd0+8];")
    fails("another space", run, "mov.u32 %r1, b; cvt.u64.u32 %rd5, %r1; cvta.shared.u64 %rd6, %rd5; ld.global.u32 %r2, [%rd6];",
          before=".extern .shared .align 16 .b8 b[];\n", shared=64)
    fails("parameter access", run, "ld.param.u32 %r1, [k_param_0+16];")
    fails("that this launch wrote", run, "st.global.u32 [%rd3], %r0; ld.global.nc.u32 %r1, [%rd3];")


def test_stores_before_the_dependency_is_waited_for():
    late = "griddepcontrol.wait;"
    fails("written before griddepcontrol.wait", run, "st.global.u32 [%rd3], %r0;" + late)
    fails("read before griddepcontrol.wait and written later", run, "ld.global.u32 %r1, [%rd3];" + late + "st.global.u32 [%rd3], %r1;")
    run("ld.global.u32 %r1, [%rd4];" + late + "st.global.u32 [%rd3], %r1;")  # as weights are
    same(run("ld.global.nc.u32 %r1, [%rd4];" + late + "st.global.u32 [%rd3], %r1; griddepcontrol.launch_dependents;", LANES),
         LANES)


def test_asynchronous_copies():
    before = ".extern .shared .align 16 .b8 buffer[];\n"
    body = "mov.u32 %r1, buffer; mad.lo.u32 %r2, %r0, 16, %r1; mul.wide.u32 %rd5, %r0, 16; add.s64 %rd6, %rd0, %rd5; setp.lt.u32 " \
           "%p1, %r0, 30; selp.u32 %r3, 16, 0, %p1; cp.async.cg.shared.global.L2::128B [%r2], [%rd6], 16, %r3; " \
           "cp.async.commit_group; WAIT ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd3], %r4;"
    given = np.arange(120, dtype=np.uint32)  # lanes 30 and 31 would read behind it, but take nothing
    want = np.where(LANES < 30, LANES * 4, 0).astype(np.uint32)
    same(run(body.replace("WAIT", "cp.async.wait_group 0;"), given, shared=512, before=before), want)
    same(run(body.replace("WAIT", "cp.async.wait_all;"), given, shared=512, before=before), want)
    same(run(body.replace("WAIT", "cp.async.wait_group 1;"), given, shared=512, before=before), np.full(32, 2**32 - 1, np.uint32))
    same(run(body.replace("WAIT", "cp.async.wait_group 1;"), given, shared=512, before=before, early_copies=True), want)
    fails("out of bounds", run, body.replace("WAIT", "").replace("30", "32"), given, shared=512, before=before)


def test_matrices():
    """A product of small whole numbers through shared memory, in both operand types, exactly."""
    rng = np.random.default_rng(3)
    for kind, to_bits in (("f16", lambda x: x.astype(np.float16).view(np.uint16)),
                          ("bf16", lambda x: (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))):
        a, b = rng.integers(-8, 9, (16, 16)), rng.integers(-8, 9, (8, 16))  # b: a column of B a row
        given = np.concatenate([to_bits(a).reshape(-1), to_bits(b).reshape(-1)])
        body = "mul.wide.u32 %rd5, %r0, 16; add.s64 %rd6, %rd0, %rd5; mad.lo.u32 %r1, %r0, 16, %r40; cp.async.cg.shared.global " \
               "[%r1], [%rd6], 16; setp.ge.u32 %p1, %r0, 16; @%p1 bra NOT; add.s64 %rd6, %rd6, 512; add.u32 %r1, %r1, 512; " \
               "cp.async.cg.shared.global [%r1], [%rd6], 16; NOT: cp.async.wait_all; bar.warp.sync -1;" \
               "and.b32 %r2, %r0, 15; shr.u32 %r3, %r0, 4; mad.lo.u32 %r4, %r2, 32, %r40; mad.lo.u32 %r4, %r3, 16, %r4; " \
               "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r4]; " \
               "and.b32 %r5, %r0, 7; bfe.u32 %r6, %r0, 3, 1; mad.lo.u32 %r7, %r5, 32, %r40; mad.lo.u32 %r7, %r6, 16, %r7; " \
               "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14,%r15}, [%r7+512]; mov.f32 %f0, 0f3F800000; " \
               "mma.sync.aligned.m16n8k16.row.col.f32.KIND.KIND.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r15}, " \
               "{%f0,%f0,%f0,%f0}; shr.u32 %r8, %r0, 2; and.b32 %r9, %r0, 3; shl.b32 %r9, %r9, 1; mad.lo.u32 %r8, %r8, 8, %r9; " \
               "mul.wide.u32 %rd7, %r8, 4; add.s64 %rd7, %rd1, %rd7; st.global.v2.f32 [%rd7], {%f1,%f2}; " \
               "st.global.v2.f32 [%rd7+256], {%f3,%f4};"
        out = run("mov.u32 %r40, buffer;" + body.replace("KIND", kind), given, n_out=128, shared=768,
                  before=".extern .shared .align 128 .b8 buffer[];\n")
        same(out.view(np.float32).reshape(16, 8), (a @ b.T + 1).astype(np.float32))


def test_transposed_matrices():
    given = np.arange(64, dtype=np.uint16)
    body = "mov.u32 %r40, buffer; setp.ge.u32 %p1, %r0, 8; @%p1 bra NOT; mul.wide.u32 %rd5, %r0, 16; add.s64 %rd6, %rd0, %rd5; " \
           "mad.lo.u32 %r1, %r0, 16, %r40; cp.async.cg.shared.global [%r1], [%rd6], 16; NOT: cp.async.wait_all; bar.warp.sync -1; " \
           "and.b32 %r2, %r0, 7; mad.lo.u32 %r3, %r2, 16, %r40; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r3]; " \
           "st.global.u32 [%rd3], %r4;"
    out = run(body, given, shared=128, before=".extern .shared .align 128 .b8 buffer[];\n").view(np.uint16).reshape(8, 4, 2)
    same(out.reshape(8, 8), given.reshape(8, 8).T)


def test_calls():
    before = ".func (.param .b64 value) twice(.param .b64 twice_param_0)\n{ .reg .f64 %fd<4>; .reg .pred %p<2>;\n" \
             "ld.param.f64 %fd1, [twice_param_0]; setp.lt.f64 %p1, %fd1, 0d4014000000000000; @%p1 bra SMALL; add.f64 %fd2, %fd1, " \
             "%fd1; st.param.f64 [value], %fd2; ret; SMALL: st.param.f64 [value], %fd1; ret; }\n"
    body = "cvt.rn.f64.u32 %fd1, %r0; setp.eq.u32 %p1, %r0, 9; @%p1 bra END; { .param .b64 param0; st.param.f64 [param0+0], %fd1; " \
           ".param .b64 retval0; call.uni (retval0), twice, (param0); ld.param.f64 %fd2, [retval0+0]; } cvt.rzi.u32.f64 %r1, %fd2; " \
           "st.global.u32 [%rd3], %r1; END:"
    same(run(body, before=before), np.where(LANES == 9, 0, np.where(LANES < 5, LANES, 2 * LANES)).astype(np.uint32))


def test_scopes_of_inline_assembly():
    body = "{ .reg .b32 x; mov.u32 x, 3; { .reg .b16 x; mov.b16 x, 4; cvt.u32.u16 %r1, x; } add.u32 %r1, %r1, x; } " \
           "st.global.u32 [%rd3], %r1;"
    same(run(body), np.full(32, 7, np.uint32))


def test_atomics():
    same(run("atom.global.add.u32 %r1, [%rd1], 2; red.global.max.u32 [%rd1+4], %r1;", n_out=2), np.array([64, 62], np.uint32))


def test_what_is_unknown_is_refused():
    for body in ("wgmma.fence.sync.aligned;", "add.rn.f99 %r1, %r2, %r3;", "ld.global.strange.u32 %r1, [%rd0];", "add.u64 %r1, "
                 "%rd1, %rd1;", "bra NOWHERE;", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, "
                 "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};"):
        fails("k: ", run, body)
        assert machine.unsupported(parse.parse(program(body))), body
    assert machine.unsupported(parse.parse(program("add.u32 %r1, %r1, 1;"))) == []


def test_errors_say_where():
    fails("block 1, thread 33", run, "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 1; setp.ne.u32 %p2, %r0, 33; or.pred %p3, %p1, "
          "%p2; @%p3 bra END; trap; END:", threads=64, blocks=2, n_out=64)


def test_arguments_must_fit():
    module = parse.parse(program(""))
    fails("takes 16 bytes of arguments, not 8", machine.launch, module, "k", (1, 1, 1), (32, 1, 1), 0, bytes(8), memory.Global([]))
    fails("no kernel other", machine.launch, module, "other", (1, 1, 1), (32, 1, 1), 0, bytes(8), memory.Global([]))


def test_kinds_of_stores():
    """A store of bits is of what made them."""
    module = parse.parse(program(
        "ld.global.u32 %r1, [%rd4]; st.global.u32 [%rd3], %r1; cvt.rn.bf16x2.f32 %r2, %f1, %f2; mov.b32 %r3, %r2; "
        "st.global.b32 [%rd3], %r3; add.f32 %f3, %f1, %f2; mov.b32 %r4, %f3; st.global.v2.b32 [%rd3], {%r4, %r4}; "
        "cvt.rni.s32.f32 %r5, %f3; prmt.b32 %r6, %r5, %r5, 64; st.global.u32 [%rd3], %r6; st.shared.b32 [%r1], %r4; "
        "ld.shared.b32 %r7, [%r1]; st.global.b32 [%rd3], %r7;"))
    found = [k for n, k in sorted(kinds.store_kinds(module.functions["k"]).items())
             if "global" in module.functions["k"].code[n].mods]
    assert found == [kinds.EXACT, kinds.BF16, kinds.F32, kinds.ROUNDED, kinds.F32], found


if __name__ == "__main__":
    main(globals())
