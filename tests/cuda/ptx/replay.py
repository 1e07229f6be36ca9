# SPDX-License-Identifier: Apache-2.0
"""Launches that the emulated device recorded (tests/cuda/simt/record.h), run again from nvcc's PTX and compared byte by byte
or, where both computed floats, number by number."""
import struct
from dataclasses import dataclass

import numpy as np

from . import kinds, machine, memory
from .parse import PtxError
from .values import from_bf16


@dataclass
class Allocation:
    address: int
    before: bytes
    after: bytes


@dataclass
class Record:
    name: str
    grid: tuple
    block: tuple
    shared_bytes: int
    arguments: bytes
    allocations: list

    def __str__(self):
        return f"{self.name} <{self.grid[0]}.{self.grid[1]}.{self.grid[2]} x {self.block[0]}>"


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        part = self.data[self.at:self.at + n]
        if len(part) != n:
            raise PtxError("the record is cut short")
        self.at += -(-n // 8) * 8
        return part

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))


def read(data):
    """A Record from the bytes of a file."""
    r = Reader(data)
    if r.take(8) != b"SIMTREC1":
        raise PtxError("not a record of a launch")
    *head, shared_bytes, _, name_bytes, args_bytes, n_memory, _ = r.unpack("<12I")
    name, arguments = r.take(name_bytes).decode(), r.take(args_bytes)
    allocations = []
    for _ in range(n_memory):
        address, size, changed = r.unpack("<3Q")
        before = r.take(size)
        allocations.append(Allocation(address, before, r.take(size) if changed else before))
    return Record(name, tuple(head[:3]), tuple(head[3:]), shared_bytes, arguments, allocations)


def write(record):
    """The bytes of a file, for tests."""
    def padded(b):
        return bytes(b) + bytes(-len(b) % 8)
    name = record.name.encode()
    out = b"SIMTREC1" + struct.pack("<12I", *record.grid, *record.block, record.shared_bytes, 0, len(name),
                                    len(record.arguments), len(record.allocations), 0)
    out += padded(name) + padded(record.arguments)
    for a in record.allocations:
        changed = a.after != a.before
        out += struct.pack("<3Q", a.address, len(a.before), changed) + padded(a.before)
        if changed:
            out += padded(a.after)
    return out


@dataclass
class Tolerance:
    """|difference| <= relative |value| + of_largest (largest |value| of the allocation's floats). The compiler fuses products
    and sums and the interpreter adds a tile's products in another order than the emulator: some ulps of f32, and after a
    rounding to 16 bits one step of that."""
    relative: float
    of_largest: float


TOLERANCES = {kinds.F32: Tolerance(2.0**-16, 2.0**-17), kinds.F64: Tolerance(2.0**-40, 2.0**-44),
              kinds.BF16: Tolerance(2.0**-7, 2.0**-17), kinds.F16: Tolerance(2.0**-10, 2.0**-17)}
# Attention rounds its probabilities to 16 bits inside, where an ulp of f32 may become a step of 2^-9 of one term.
ROUNDS_INSIDE = {kinds.F32: Tolerance(2.0**-9, 2.0**-10), kinds.BF16: Tolerance(2.0**-7, 2.0**-9),
                 kinds.F16: Tolerance(2.0**-9, 2.0**-10)}
SIZES = {kinds.EXACT: 1, kinds.ROUNDED: 1, kinds.F16: 2, kinds.BF16: 2, kinds.F32: 4, kinds.F64: 8}
NAMES = {kinds.EXACT: "byte", kinds.ROUNDED: "rounded integer", kinds.F16: "f16", kinds.BF16: "bf16", kinds.F32: "f32",
         kinds.F64: "f64"}


def _numbers(data, kind):
    if kind == kinds.BF16:
        return from_bf16(data.view(np.uint16)).astype(np.float64)
    return data.view({kinds.F16: np.float16, kinds.F32: np.float32, kinds.F64: np.float64, kinds.ROUNDED: np.int8,
                      kinds.EXACT: np.uint8}[kind]).astype(np.float64)


def _wrong(got, want, kind, tolerance):
    """Which elements differ by too much."""
    if kind == kinds.EXACT:
        return got != want
    a, b = _numbers(got, kind), _numbers(want, kind)
    if kind == kinds.ROUNDED:  # a code may fall to either side of a half
        return np.abs(a - b) > 1
    finite = np.isfinite(b)
    largest = np.abs(b[finite]).max(initial=0)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance.relative * np.abs(b) + tolerance.of_largest * largest
    return ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def compare(record, memories, tolerances):
    """Sentences about what is not as the emulator left it."""
    found = []
    for a in record.allocations:
        size = len(a.before)
        if not size:
            continue
        got, want = memories.bytes_at(a.address, size), np.frombuffer(a.after, np.uint8)
        written, kind_of = memories.written_at(a.address, size)
        kind_of = np.where(written, kind_of, kinds.EXACT)
        left = written | (got != want)
        for kind in sorted(np.unique(kind_of), reverse=True) + [kinds.EXACT]:  # the last also takes parts of elements
            n = SIZES[kind]
            whole = left & (kind_of == kind) if kind != kinds.EXACT else left
            lead = -a.address % n  # elements lie at multiples of their size
            there = whole[lead:lead + (size - lead) // n * n].reshape(-1, n).all(1)
            at = np.nonzero(there)[0] * n + lead
            left[(at[:, None] + np.arange(n)).reshape(-1)] = False
            if not len(at):
                continue
            index = at[:, None] + np.arange(n)
            x, y = np.ascontiguousarray(got[index]).reshape(-1), np.ascontiguousarray(want[index]).reshape(-1)
            wrong = np.nonzero(_wrong(x, y, kind, tolerances.get(kind)))[0]
            if len(wrong):
                i = wrong[0]
                mine, theirs = _numbers(x, kind)[i], _numbers(y, kind)[i]
                found.append(f"{len(wrong)} of {len(at)} values ({NAMES[kind]}) at {a.address:#x} of {size} bytes differ; the "
                             f"first at +{at[i]}: {mine:.9g} by nvcc's code, {theirs:.9g} in emulation"
                             + ("" if written[at[i]] else " (not written by nvcc's code)"))
    return found


def replay(record, module, early_copies=False, banks=None):
    """Runs a record; (sentences about differences, instructions executed). Raises PtxError where the run itself is wrong.
    banks: a banks.Banks that counts conflicts."""
    memories = memory.Global([(a.address, a.before) for a in record.allocations])
    executed = machine.launch(module, record.name, record.grid, record.block, record.shared_bytes, record.arguments, memories,
                              early_copies=early_copies, banks=banks)
    tolerances = dict(TOLERANCES)
    if record.name.startswith("attention"):
        tolerances.update(ROUNDS_INSIDE)
    return compare(record, memories, tolerances), executed
