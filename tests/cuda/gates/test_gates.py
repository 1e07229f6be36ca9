# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels keep what their cards promise, and a promise that is broken is found."""
# ctest: timeout 900
import dataclasses
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import cuda_build  # noqa: E402
import cuda_cards  # noqa: E402
import cuda_devices  # noqa: E402
import cuda_gates  # noqa: E402
import cuda_sass  # noqa: E402

failed = []
H200 = cuda_devices.Device("h200")


def check(condition, sentence):
    if not condition:
        failed.append(sentence)


def occupancy():
    """As cuda_occupancy.h answered for these, limits on registers, shared memory and threads among them."""
    for threads, registers, shared, want in ((256, 28, 128, 8), (128, 64, 8320, 8), (128, 70, 20480, 7), (128, 31, 0, 16),
                                             (256, 128, 4096, 2), (128, 255, 96 * 1024, 2), (1024, 65, 0, 0), (128, 32, 232449, 0)):
        got, _ = H200.resident_blocks(threads, registers, shared)
        check(got == want, f"{threads} threads of {registers} registers and {shared} bytes: {got} blocks, not {want}")


LISTING = """
		Function : some_kernel
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/              @!PT LDS RZ, [RZ] ;
        /*0020*/                   LDG.E.NA.LTC256B.128.CONSTANT R20, desc[UR6][R30.64] ;
        /*0030*/               @P1 HMMA.16816.F32.BF16 R4, R8, R12, R4 ;
        /*0040*/                   LDL R3, [R1] ;
        /*0050*/               @P0 BRA 0x20 ;
        /*0060*/                   EXIT ;
        /*0070*/                   BRA 0x70 ;
"""
REMARKS = """ptxas info    : Compiling entry function 'some_kernel' for 'sm_90'
ptxas info    : Function properties for some_kernel
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 64 bytes smem
"""


def reading():
    code = cuda_sass.functions(LISTING)["some_kernel"]
    check(len(code) == 7, "instructions under @!PT never run")
    hot = cuda_sass.hot_loop(code)
    check(hot and [i.base for i in hot] == ["LDG", "HMMA", "LDL", "BRA"], f"the loop is {hot}")
    check(sum(map(cuda_sass.is_stream_load, code)) == 1 and sum(map(cuda_sass.is_local, code)) == 1, "kinds of instructions")
    check(cuda_sass.pipe_clocks(hot, H200)["issue"] == 1, "four instructions are one clock of issue")
    check(abs(cuda_sass.stream_clocks(hot, H200) - 27.9) < 0.1, "512 bytes are 28 clocks of an SM's share of 4.8 TB/s")
    r = cuda_sass.resources(REMARKS)["some_kernel"]
    check((r.stack, r.spill, r.registers, r.shared) == (16, 56, 40, 64), f"remarks: {r}")


def broken_promises(cards, with_code):
    """The test's own test: cards that promise too much."""
    card = next(c for c in cards if c.name == "linear_bf16_1")
    _, remarks = cuda_build.cubin(cuda_build.SOURCE / "kernels/cuda/linear.cu", 90)
    resources = cuda_sass.resources(remarks)[card.name]
    code = cuda_sass.functions(cuda_build.listing(cuda_build.SOURCE / "kernels/cuda/linear.cu", 90))[card.name] if with_code else None

    def found(words, resources=resources, **changes):
        row = cuda_gates.measure(dataclasses.replace(card, **changes), 90, H200, resources, code)
        check(any(words in b for b in row.broken), f"not found: {words} with {changes}: {row.broken}")
    found("registers, 8 allowed", regs_max=8)
    found("blocks an SM", min_blocks=9)
    found("bytes in flight", stages=1)
    found("bytes spilled", dataclasses.replace(resources, spill=8))
    found("blocks an SM (shared)", smem=200 * 1024)
    if with_code:
        found("loads of 128 bits", ldg128_min=10000)
        found("tensor instructions", hmma_min=10000)
        local = [cuda_sass.Instruction(cuda_sass.hot_loop(code)[0].address, "", "LDL", "R1, [R1]")] * 8
        at = code.index(cuda_sass.hot_loop(code)[1])
        row = cuda_gates.measure(card, 90, H200, resources, code[:at] + local + code[at:])
        check(any("spilled values" in b for b in row.broken), "spills in the hot loop are not found")
        slow = [cuda_sass.Instruction(local[0].address, "", "MUFU.EX2", "R1, R1")] * 400
        row = cuda_gates.measure(card, 90, H200, resources, code[:at] + slow + code[at:])
        check(any("of memory's time" in b for b in row.broken), "a busy pipe is not found")
        prefill(cards)


def prefill(cards):
    """Shared memory's time counts, but not in a loop within the loop, which runs instead of what is counted."""
    card = next(c for c in cards if c.name == "attention_prefill_bf16_64")
    source = cuda_build.SOURCE / "kernels/cuda/attention_prefill.cu"
    resources = cuda_sass.resources(cuda_build.cubin(source, 90)[1])[card.name]
    code = cuda_sass.functions(cuda_build.listing(source, 90))[card.name]
    first = cuda_sass.without_inner_loops(cuda_sass.hot_loop(code))[0]
    inner = min(cuda_sass.loops(cuda_sass.hot_loop(code)), key=len)[0]
    for where, found in ((first, True), (inner, False)):
        more = [cuda_sass.Instruction(where.address, "", "LDS.128", "R1, [R1]")] * 40
        at = code.index(where) + 1
        row = cuda_gates.measure(card, 90, H200, resources, code[:at] + more + code[at:])
        check(any("of tensor time" in b for b in row.broken) == found, f"loads from shared memory at {where}: {row.broken}")
    unrolled = {i.address for i in cuda_sass.without_inner_loops(cuda_sass.hot_loop(code)) if cuda_sass.is_copy(i)}
    row = cuda_gates.measure(card, 90, H200, resources, [i for i in code if i.address not in unrolled])
    check(any("neither way" in b for b in row.broken), f"without unrolled copies: {row.broken}")


def listed_by_bench(cards):
    """`bench list kernels` tells the same."""
    bench = os.environ.get("BENCH")
    if not bench or not os.access(bench, os.X_OK):
        return
    p = subprocess.run([bench, "list", "kernels", "--format", "tsv"], capture_output=True, text=True)
    head, *rows = [line.split("\t") for line in p.stdout.splitlines()] or [[]]
    columns = ["name" if h == "kernel" else h for h in head]
    told = {row[0]: dict(zip(columns, row)) for row in rows}
    check(set(told) == {c.name for c in cards}, "bench lists other kernels: rebuild it, or see cuda_cards.py")
    for c in cards:
        for key, value in told.get(c.name, {}).items():
            own = getattr(c, key)
            check(value == own if isinstance(own, str) else float(value) == own, f"{c.name}: {key} is {value} to bench, {own} here")


def kernels(cards, with_code):
    rows, wrong = cuda_gates.all_rows(cards, sorted(cuda_gates.DEVICES), with_code)
    cuda_gates.print_table(rows)
    failed.extend(wrong)
    failed.extend(f"{r.card.name} (sm_{r.arch}): {b}" for r in rows for b in r.broken)
    prefill = {(c.type, c.d, arch) for c in cards if c.op == "attention_prefill" for arch in cuda_gates.DEVICES}
    for kind, (_, _, reason) in cuda_gates.PREFILL_LIMITS.items():
        check(kind in prefill and reason, f"the limits of {kind} are of no kernel, or without a reason")
    others = [r for r in rows if r.card.name not in ("linear_int4_4", "linear_nf4_4")]
    check(not with_code or len(cuda_gates.tiles_missing(others)) >= 2, "tiles of 4 that are missed")
    check(not cuda_gates.too_many(cards) and cuda_gates.too_many(cards * 2), "the number of kernels")


occupancy()
reading()
try:
    cuda_build.toolkit("nvcc")
except cuda_build.Missing as missing:
    print("SKIPPED part:", missing, file=sys.stderr)
    sys.exit(1 if failed else 77)
try:
    cuda_build.cuobjdump()
    lister = True
except cuda_build.Missing as missing:
    print("without the listing of machine code:", missing, file=sys.stderr)
    lister = False
all_cards = cuda_cards.cards()
listed_by_bench(all_cards)
kernels(all_cards, lister)
broken_promises(all_cards, lister)
for sentence in failed:
    print("FAILED:", sentence)
sys.exit(1 if failed else 0)
