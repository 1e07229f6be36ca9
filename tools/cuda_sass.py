# SPDX-License-Identifier: Apache-2.0
"""Machine code by cuobjdump and ptxas's remarks as data: instructions, loops, and how long each pipe of an SM is busy."""
import collections
import re
from dataclasses import dataclass

_FUNCTION = re.compile(r"\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")


@dataclass
class Instruction:
    address: int
    guard: str
    op: str  # with its modifiers
    operands: str

    @property
    def base(self):
        return self.op.split(".")[0]


def functions(listing):
    """{name: instructions} without those that never run: ptxas pads with `@!PT`."""
    found, current = {}, None
    for line in listing.splitlines():
        if m := _FUNCTION.match(line):
            current = found.setdefault(m[1], [])
        elif (m := _INSTRUCTION.match(line)) and current is not None and m[2] != "@!PT":
            current.append(Instruction(int(m[1], 16), m[2] or "", m[3], m[4]))
    return found


def loops(code):
    """Bodies of loops: from a backward branch's target to the branch."""
    bodies = []
    for i in code:
        target = _TARGET.search(i.operands) if i.base == "BRA" else None
        if target and int(target[1], 16) < i.address:
            start = int(target[1], 16)
            bodies.append([j for j in code if start <= j.address <= i.address])
    return bodies


def is_load_128(i):
    return i.base == "LDG" and ".128" in i.op


def is_stream_load(i):
    """What load_stream_16 became: a 128-bit load that leaves no trace in the L1 cache."""
    return is_load_128(i) and (".NA." in i.op or ".EF." in i.op)


def is_local(i):
    return i.base in ("LDL", "STL")


def is_tensor(i):
    return i.base in ("HMMA", "IMMA")


def is_copy(i):
    """Whether it writes to shared memory."""
    return i.base in ("LDGSTS", "STS")


def hot_loop(code):
    """The loop that does the work: the most tensor instructions or, in code without any, the most 128-bit loads. Of loops in
    each other the inner one, if half of that work is its own. None where no loop works."""
    measure = next((m for m in (is_tensor, is_stream_load, is_load_128) if any(map(m, code))), None)
    if measure is None:
        return None
    bodies = [(sum(map(measure, b)), b) for b in loops(code)]

    def outer(work, body):
        return any(2 * w >= work and len(b) < len(body) and body[0].address <= b[0].address
                   and b[-1].address <= body[-1].address for w, b in bodies)
    working = [(work, -len(body), body) for work, body in bodies if work and not outer(work, body)]
    return max(working, key=lambda x: x[:2])[2] if working else None


def without_inner_loops(body):
    """The body without the loops in it."""
    inner = {j.address for loop in loops(body) if len(loop) < len(body) for j in loop}
    return [i for i in body if i.address not in inner]


# Warp instructions an SM starts in a clock, CUDA C++ Programming Guide (throughput of native arithmetic instructions).
_ALU = {"IADD3", "LOP3", "SHF", "PRMT", "ISETP", "FSETP", "SEL", "FSEL", "IMNMX", "FMNMX", "VIMNMX", "LEA", "PLOP3", "F2FP", "IABS",
        "SGXT", "BMSK", "I2I", "ISCADD", "P2R", "R2P", "HSETP2", "HMNMX2", "VOTE", "FCHK", "MOV", "VIADD", "VIADDMNMX"}
_HALF = {"HFMA2", "HADD2", "HMUL2"}
_FLOAT = {"FFMA", "FADD", "FMUL"}
_DOUBLE = {"DFMA", "DADD", "DMUL", "DSETP"}
_SLOW = {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV"}  # 16 lanes a clock


def _memory_clocks(i):
    """Clocks of the shared memory and L1 path, 128 bytes each."""
    if i.base == "LDSM":
        return 4 if i.op.endswith(".4") else 2 if i.op.endswith(".2") else 1
    if i.base in ("LDS", "STS", "LDG", "STG", "LDL", "STL", "LDGSTS", "ATOMS", "RED", "ATOMG"):
        return 4 if ".128" in i.op else 2 if ".64" in i.op else 1
    return 1 if i.base == "SHFL" else 0


def shared_clocks(body):
    """Of shared memory alone, without what else goes through its pipe."""
    return sum(_memory_clocks(i) for i in body if i.base in ("LDS", "STS", "LDSM", "LDGSTS"))


def pipe_clocks(body, device):
    """{pipe: clocks of an SM per pass of one warp through the body}."""
    n = collections.Counter(i.base for i in body)

    def of(names):
        return sum(n[name] for name in names)
    tensor_flops = 2 * 16 * 8 * 16  # of an HMMA.16816
    integer_products = n["IMAD"]
    return {
        "issue": len(body) / 4,
        "alu": of(_ALU) / 2,
        "fma": max((of(_FLOAT) + of(_HALF) + integer_products) / 4, (of(_HALF) + integer_products) / 2),
        "f64": of(_DOUBLE) / 2,
        "slow": of(_SLOW) * 2,
        "shared": sum(map(_memory_clocks, body)),
        "tensor": of(("HMMA", "IMMA")) * tensor_flops / (device.tensor_flop_per_clock * device.mma_sync_share),
    }


def _load_bytes(i):
    return 512 if ".128" in i.op else 256 if ".64" in i.op else 0  # of a warp; narrower ones are scales and indices


def stream_clocks(body, device, all_loads=False):
    """Clocks of an SM's share of memory bandwidth for what a pass of one warp streams. all_loads: also by plain loads of 8
    bytes and more, where a loop reads nothing else through them."""
    streamed = sum(_load_bytes(i) for i in body if is_stream_load(i) or (all_loads and i.base == "LDG"))
    return streamed / (device.hbm_bytes_per_s / device.sm_count / device.clock_hz)


_REMARK = re.compile(r"Compiling entry function '(\S+?)' for 'sm_(\d+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                     r"(\d+) bytes spill loads.*?Used (\d+) registers(.*?)$", re.S | re.M)


@dataclass
class Resources:
    stack: int
    spill: int
    registers: int
    shared: int  # static


def resources(remarks):
    """{kernel: Resources} from what ptxas -v said."""
    found = {}
    for m in _REMARK.finditer(remarks):
        shared = re.search(r"(\d+) bytes smem", m[7])
        found[m[1]] = Resources(int(m[3]), int(m[4]) + int(m[5]), int(m[6]), int(shared[1]) if shared else 0)
    return found
