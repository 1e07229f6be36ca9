# SPDX-License-Identifier: Apache-2.0
"""Opcodes that move data, meet other lanes or change the place in the program."""
import numpy as np

from . import fragments
from .memory import LOCAL, PARAM, RAW, SHARED
from .opcodes import every_lane, expect, no_operation, opcode
from .parse import WIDTH, Pair, PtxError, Sink, Symbol, Unsupported, Vector
from .values import BITS, INTEGERS, NUMPY, widen

HINTS = ("ca", "cg", "cs", "cv", "lu", "wb", "wt", "weak", "volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys")
MOVED = BITS + INTEGERS + ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def _is_cache_hint(mod):
    return mod in HINTS or mod[:4] in ("L1::", "L2::")


# -- loads and stores ------------------------------------------------------------------------------------------------


def _shape(source):
    """(space or None, words, type, nc) of a load or store."""
    space, words, nc = None, 1, False
    *mods, kind = source.mods
    for mod in mods:
        base = mod.split("::")[0]
        if base in ("global", "shared", "local", "param", "const"):
            if mod not in (base, "shared::cta", "param::entry", "param::func"):
                raise Unsupported("space ." + mod)
            space = base
        elif mod in ("v2", "v4", "v8"):
            words = int(mod[1])
        elif mod == "nc":
            nc = True
        elif not _is_cache_hint(mod):
            raise Unsupported("modifier ." + mod)
    if kind not in MOVED:
        raise Unsupported("type ." + kind)
    return space, words, kind, nc


def _space(machine, name):
    return {None: machine.generic, "global": machine.global_, "const": machine.global_, "shared": machine.shared,
            "local": machine.local, "param": machine.param}[name]


def _registers(operand):
    return operand.parts if isinstance(operand, Vector) else [operand]


def _is_slot(frame, operand):
    """Whether [name] is a .param variable of a call, not the kernel's own parameter."""
    base = operand.base
    return isinstance(base, Symbol) and base.name in frame.function.variables and not (
        frame.function.is_entry and any(p.name == base.name for p in frame.function.params))


@opcode("ld", "ldu")
def load(frame, source, instruction):
    space, n, kind, nc = _shape(source)
    registers = _registers(source.operands[0])
    if len(registers) != n:
        raise PtxError(f"{len(registers)} registers for {n} words")
    puts, width, m = [frame.writer(r, kind) for r in registers], WIDTH[kind], frame.machine
    if space == "param" and _is_slot(frame, source.operands[1]):
        _load_slot(frame, source.operands[1], puts, kind, instruction)
        return
    address, memory = frame.address(source.operands[1]), _space(m, space)
    early = space in ("global", None) and not nc and m.waits

    def act(lanes):
        a, who = address(lanes), frame.lanes_of(lanes)
        if early and not m.waited[lanes].all():
            memory.read_early(a, width * n)
        if nc and not memory.untouched(a, width * n):
            raise PtxError("ld.global.nc of bytes that this launch wrote")
        words = memory.load(a, who, width, n)
        for i, put in enumerate(puts):
            put(lanes, np.ascontiguousarray(words[:, i]).view(NUMPY[kind]))
    instruction.act = act


def _reaches_memory(address):
    return bool((address >> np.uint64(56) == 0).any())


def _load_slot(frame, operand, puts, kind, instruction):
    slot, at, width = frame.slot(operand.base.name), operand.offset + operand.base.offset, WIDTH[kind]

    def act(lanes):
        for i, put in enumerate(puts):
            start = at + i * width
            put(lanes, np.ascontiguousarray(slot[lanes, start:start + width]).view(NUMPY[kind])[:, 0])
    instruction.act = act


@opcode("st")
def store(frame, source, instruction):
    space, n, kind, _ = _shape(source)
    registers = _registers(source.operands[1])
    if len(registers) != n:
        raise PtxError(f"{len(registers)} registers for {n} words")
    readers, width, m = [frame.reader(r, kind) for r in registers], WIDTH[kind], frame.machine

    def words(lanes):
        out = np.empty((frame.count(lanes), n), RAW[width])
        for i, read in enumerate(readers):
            out[:, i] = np.asarray(read(lanes)).view(RAW[width])
        return out
    if space == "param":
        slot, at = frame.slot(source.operands[0].base.name), source.operands[0].offset + source.operands[0].base.offset

        def act_slot(lanes):
            slot[lanes, at:at + n * width] = words(lanes).view(np.uint8).reshape(-1, n * width)
        instruction.act = act_slot
        return
    address, memory = frame.address(source.operands[0]), _space(m, space)
    early = space in ("global", None) and m.waits

    def act(lanes):
        a = address(lanes)
        if early and not m.waited[lanes].all() and _reaches_memory(a):
            raise PtxError("global memory is written before griddepcontrol.wait")
        memory.store(a, frame.lanes_of(lanes), words(lanes), instruction.kind_of_store)
    instruction.act = act


@opcode("cvta")
def convert_address(frame, source, instruction):
    expect(source.mods, ("to", "global", "shared", "local", "param", "const", "u64", "u32", "shared::cta"))
    kind = source.mods[-1]
    space = next(s.split("::")[0] for s in source.mods if s not in ("to", "u64", "u32"))
    window = np.uint64({"global": 0, "const": 0, "shared": SHARED, "local": LOCAL, "param": PARAM}[space])
    a, put = frame.reader(source.operands[1], kind), frame.writer(source.operands[0], kind)
    to = "to" in source.mods

    def act(lanes):
        address = np.asarray(a(lanes)).astype(np.uint64)
        if to and window and (address >> np.uint64(56) != window >> np.uint64(56)).any():
            raise PtxError(f"the address is not of {space} memory")
        put(lanes, (address - window if to else address + window).astype(NUMPY[kind]))
    instruction.act = act


@opcode("isspacep")
def is_space(frame, source, instruction):
    windows = {"global": 0, "shared": SHARED >> 56, "local": LOCAL >> 56}
    expect(source.mods, windows)
    a, put = frame.reader(source.operands[1], "u64"), frame.writer(source.operands[0], "pred")
    window = np.uint64(windows[source.mods[0]])
    instruction.act = lambda lanes: put(lanes, a(lanes) >> np.uint64(56) == window)


@opcode("prefetch", "prefetchu")
def prefetch(frame, source, instruction):
    """No value changes, but a wrong address is still one."""
    space = "global" if "global" in source.mods else None
    expect(source.mods, ("global", "L1", "L2", "L2::evict_last", "L2::evict_normal"))
    address, memory = frame.address(source.operands[0]), _space(frame.machine, space)
    instruction.act = lambda lanes: memory.load(address(lanes), frame.lanes_of(lanes), 1, 1)


@opcode("atom", "red")
def atomic(frame, source, instruction):
    *mods, kind = source.mods
    space = next((m.split("::")[0] for m in mods if m.split("::")[0] in ("global", "shared")), None)
    name = next((m for m in mods if m in ATOMICS), None)
    if name is None or kind not in BITS + INTEGERS + ("f32", "f64"):
        raise Unsupported("atomic ." + ".".join(source.mods))
    expect(mods, (name, "global", "shared", "shared::cta") + HINTS)
    operands = source.operands if source.op == "atom" else [Sink()] + source.operands
    put, address = frame.writer(operands[0], kind), frame.address(operands[1])
    values = [frame.reader(o, kind) for o in operands[2:]]
    memory, raw = _space(frame.machine, space), RAW[WIDTH[kind]]

    def act(lanes):
        a, who = address(lanes), frame.lanes_of(lanes)
        given = [np.broadcast_to(v(lanes), len(who)) for v in values]
        before = np.empty(len(who), NUMPY[kind])
        for i in range(len(who)):  # one after another, as the hardware does in some order
            one = slice(i, i + 1)
            before[one] = memory.load(a[one], who[one], WIDTH[kind], 1).view(NUMPY[kind])[:, 0]
            after = np.asarray(ATOMICS[name](before[one], *[g[one] for g in given])).astype(NUMPY[kind])
            memory.store(a[one], who[one], after.view(raw)[:, None], instruction.kind_of_store)
        put(lanes, before)
    instruction.act = act


ATOMICS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
           "xor": np.bitwise_xor, "exch": lambda old, new: new, "cas": lambda old, want, new: np.where(old == want, new, old)}


# -- asynchronous copies ---------------------------------------------------------------------------------------------


class AsyncCopies:
    """cp.async under way. A copy lands at the wait that covers it and no sooner, unless the machine says early_copies."""

    def __init__(self, machine):
        self.m = machine
        self.group = np.zeros(machine.n_lanes, np.int64)  # the number of the group that a lane now fills
        self.pending = []  # [lanes, group, to, data (lanes, size), instruction]

    def start(self, lanes, to, data):
        if self.m.early_copies:
            self.m.shared.store(to, lanes, data)
        else:
            self.pending.append([lanes, self.group[lanes].copy(), to, data, self.m.now])

    def commit(self, lanes):
        self.group[lanes] += 1

    def wait(self, lanes, most_under_way):
        """Lands what these lanes committed, but for their last groups. None: also what they did not commit."""
        last = np.full(self.m.n_lanes, -1, np.int64)
        last[lanes] = self.group[lanes] - most_under_way if most_under_way is not None else 1 << 60
        rest = []
        for who, group, to, data, started_by in self.pending:
            done = group < last[who]
            if done.any():
                self.m.now = started_by
                self.m.shared.store(to[done], who[done], data[done])
            if not done.all():
                rest.append([who[~done], group[~done], to[~done], data[~done], started_by])
        self.pending = rest


@opcode("cp")
def copy_async(frame, source, instruction):
    m, mods = frame.machine, source.mods
    if mods[:1] != ["async"]:
        raise Unsupported("cp." + ".".join(mods))
    if mods[1:] == ["commit_group"]:
        instruction.act = m.copies.commit
        return
    if mods[1:] in (["wait_group"], ["wait_all"]):
        most = int(source.operands[0].text) if source.operands else None
        instruction.act = lambda lanes: m.copies.wait(lanes, most)
        return
    expect([x for x in mods[1:] if not _is_cache_hint(x)], ("shared", "global", "shared::cta"))
    to, come = frame.address(source.operands[0]), frame.address(source.operands[1])
    size = int(source.operands[2].text)
    if size not in (4, 8, 16) or ("cg" in mods and size != 16):
        raise PtxError(f"cp.async of {size} bytes")
    taken = frame.reader(source.operands[3], "u32") if len(source.operands) > 3 else lambda lanes: np.uint32(size)

    def act(lanes):
        target, origin, who = to(lanes), come(lanes), frame.lanes_of(lanes)
        n = np.broadcast_to(taken(lanes), len(who))
        if (n > size).any():
            raise PtxError(f"cp.async takes more than its {size} bytes")
        if (origin % np.uint64(size)).any():
            raise PtxError(f"cp.async of {size} bytes from a misaligned address")
        data = np.zeros((len(who), size), np.uint8)
        for some in np.unique(n[n > 0]):  # bytes behind them are zeros, and nothing there is read
            here = n == some
            data[here, :some] = m.global_.load(_bytes(origin[here], some).reshape(-1), np.repeat(who[here], some), 1,
                                               1).reshape(-1, some)
        word = RAW[min(size, 8)]
        m.shared._place(target, who, size)
        m.copies.start(who, target, np.ascontiguousarray(data).view(word))
    instruction.act = act


def _bytes(address, n):
    return address[:, None] + np.arange(n, dtype=np.uint64)


# -- warps and blocks ------------------------------------------------------------------------------------------------


@opcode("shfl")
def shuffle(frame, source, instruction):
    if len(source.mods) != 3 or source.mods[0] != "sync" or source.mods[2] != "b32":
        raise Unsupported("shfl." + ".".join(source.mods))
    mode, m = source.mods[1], frame.machine
    to = source.operands[0]
    put = frame.writer(to.first if isinstance(to, Pair) else to, "b32")
    put_valid = frame.writer(to.second, "pred") if isinstance(to, Pair) else None
    a, b, c, mask = (frame.reader(o, "u32") for o in source.operands[1:5])
    instruction.kind, instruction.masks = "warp", mask

    def act(lanes):
        who = frame.lanes_of(lanes)
        lane, by, clamp = m.lane_id[who], np.int64(b(lanes)) & 31, np.int64(c(lanes))
        bound, segment = clamp & 31, clamp >> 8 & 31
        most = (lane & segment) | (bound & ~segment & 31)
        least = lane & segment
        if mode == "up":
            come = lane - by
            valid = come >= most
        elif mode == "down":
            come = lane + by
            valid = come <= most
        elif mode == "bfly":
            come = lane ^ by
            valid = come <= most
        elif mode == "idx":
            come = least | (by & ~segment & 31)
            valid = come <= most
        else:
            raise Unsupported("shfl " + mode)
        come = np.where(valid, come, lane)
        if ((np.int64(mask(lanes)) >> come & 1) == 0).any():
            raise PtxError("a lane reads from one outside of the mask")
        everyone = np.zeros(m.n_lanes, np.uint32)
        everyone[who] = a(lanes)
        put(lanes, everyone[who - lane + come])
        if put_valid:
            put_valid(lanes, valid)
    instruction.act = act


def _by_warp(m, who, mask, flags):
    """For each lane, the bits of those lanes of its mask whose flag is set."""
    bits = np.bincount(m.warp[who], np.where(flags, 1 << m.lane_id[who], 0), m.n_warps).astype(np.int64)
    return bits[m.warp[who]] & np.int64(mask)


@opcode("vote")
def vote(frame, source, instruction):
    if len(source.mods) != 3 or source.mods[0] != "sync":
        raise Unsupported("vote." + ".".join(source.mods))
    mode, kind = source.mods[1:]
    if (mode, kind) not in (("all", "pred"), ("any", "pred"), ("uni", "pred"), ("ballot", "b32")):
        raise Unsupported("vote." + ".".join(source.mods))
    p, mask = frame.reader(source.operands[1], "pred"), frame.reader(source.operands[2], "u32")
    put, m = frame.writer(source.operands[0], kind), frame.machine
    instruction.kind, instruction.masks = "warp", mask

    def act(lanes):
        who, want = frame.lanes_of(lanes), np.int64(mask(lanes))
        bits = _by_warp(m, who, want, np.broadcast_to(p(lanes), len(who)))
        result = {"all": bits == want, "any": bits != 0, "uni": (bits == want) | (bits == 0),
                  "ballot": bits.astype(np.uint32)}[mode]
        put(lanes, result)
    instruction.act = act


@opcode("redux")
def reduce_warp(frame, source, instruction):
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                 "xor": np.bitwise_xor}
    sync, name, kind = source.mods if len(source.mods) == 3 else (None, None, None)
    if sync != "sync" or name not in functions or kind not in ("u32", "s32", "b32"):
        raise Unsupported("redux." + ".".join(source.mods))
    a, mask = frame.reader(source.operands[1], kind), frame.reader(source.operands[2], "u32")
    put, m = frame.writer(source.operands[0], kind), frame.machine
    instruction.kind, instruction.masks = "warp", mask

    def act(lanes):
        who = frame.lanes_of(lanes)
        key = m.warp[who] * (1 << 32) + np.broadcast_to(np.int64(mask(lanes)), len(who))
        values, out = np.broadcast_to(a(lanes), len(who)), np.empty(len(who), NUMPY[kind])
        for k in np.unique(key):
            out[key == k] = functions[name].reduce(values[key == k])
        put(lanes, out)
    instruction.act = act


@opcode("bar", "barrier")
def barrier(frame, source, instruction):
    mods = [x for x in source.mods if x not in ("cta", "aligned")]
    if mods == ["warp", "sync"]:
        instruction.kind, instruction.masks, instruction.act = "warp", frame.reader(source.operands[0], "u32"), no_operation
        return
    instruction.kind = "barrier"
    if mods == ["sync"]:
        if len(source.operands) > 1:
            raise Unsupported("a barrier of a part of the block")
        return
    if mods[:1] != ["red"] or mods[1] not in ("and", "or", "popc"):
        raise Unsupported("barrier ." + ".".join(source.mods))
    _reducing_barrier(frame, source, instruction, mods[1])


def _reducing_barrier(frame, source, instruction, name):
    flag = frame.reader(source.operands[-1], "pred")
    put = frame.writer(source.operands[0], "u32" if name == "popc" else "pred")

    def act(lanes, stored, n_threads):
        if n_threads is None:
            stored[lanes] = flag(lanes)
            return
        flags = stored[lanes].reshape(-1, n_threads)
        result = {"and": flags.all(1), "or": flags.any(1), "popc": flags.sum(1).astype(np.uint32)}[name]
        put(lanes, np.repeat(result, n_threads))
    instruction.act = act


@opcode("membar", "fence", "nanosleep", "pmevent")
def order_only(frame, source, instruction):
    instruction.act = no_operation


@opcode("griddepcontrol")
def dependent_launch(frame, source, instruction):
    expect(source.mods, ("wait", "launch_dependents"))

    def wait(lanes):
        frame.machine.waited[lanes] = True
    instruction.act = wait if source.mods == ["wait"] else no_operation


@opcode("ldmatrix")
def load_matrices(frame, source, instruction):
    expect(source.mods, ("sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"))
    n = int(next(x for x in source.mods if x in ("x1", "x2", "x4"))[1])
    puts, address = [frame.writer(r, "b32") for r in _registers(source.operands[0])], frame.address(source.operands[1])
    if len(puts) != n:
        raise PtxError(f"{len(puts)} registers for {n} matrices")
    lanes_, i = np.meshgrid(np.arange(32), np.arange(2), indexing="ij")
    row, column = fragments.ldmatrix_element(lanes_, i, "trans" in source.mods)
    instruction.kind, instruction.masks = "warp", every_lane

    def act(lanes):
        who = frame.lanes_of(lanes).reshape(-1, 32)[:, :8 * n]
        a = address(lanes).reshape(-1, 32)[:, :8 * n]
        rows = frame.machine.shared.load(np.ascontiguousarray(a).reshape(-1), who.reshape(-1), 8, 2)
        matrices = rows.view(np.uint16).reshape(-1, n, 8, 8)
        for j, put in enumerate(puts):
            put(lanes, np.ascontiguousarray(matrices[:, j][:, row, column]).view(np.uint32).reshape(-1))
    instruction.act = act


@opcode("mma")
def multiply_matrices(frame, source, instruction):
    kind = source.mods[-2]
    if source.mods != ["sync", "aligned", "m16n8k16", "row", "col", "f32", kind, kind, "f32"] or kind not in ("bf16", "f16"):
        raise Unsupported("mma." + ".".join(source.mods))
    d, a, b, c = (o.parts for o in source.operands)
    if [len(x) for x in (d, a, b, c)] != [4, 4, 2, 4]:
        raise PtxError("registers of mma")
    puts = [frame.writer(r, "f32") for r in d]
    readers = [[frame.reader(r, k) for r in x] for x, k in ((a, "b32"), (b, "b32"), (c, "f32"))]
    instruction.kind, instruction.masks = "warp", every_lane

    def act(lanes):
        n = frame.count(lanes)
        pair = [np.stack([widen(np.broadcast_to(r(lanes), n), kind + "x2") for r in x], 1).reshape(-1, 32, 2 * len(x))
                for x in readers[:2]]
        sums = np.stack([np.broadcast_to(r(lanes), n) for r in readers[2]], 1).reshape(-1, 32, 4)
        out = fragments.mma(*pair, sums).reshape(-1, 4)
        for i, put in enumerate(puts):
            put(lanes, np.ascontiguousarray(out[:, i]))
    instruction.act = act


# -- the way through the program -------------------------------------------------------------------------------------


@opcode("bra")
def branch(frame, source, instruction):
    expect(source.mods, ("uni",))
    instruction.kind, instruction.target = "branch", source.operands[0].name
    if instruction.target not in frame.function.labels:
        raise PtxError("no label " + instruction.target)


@opcode("ret", "exit")
def leave(frame, source, instruction):
    expect(source.mods, ("uni",))
    if source.op == "exit" and not frame.function.is_entry:
        raise Unsupported("exit in a function")
    instruction.kind = "return"


@opcode("trap")
def trap(frame, source, instruction):
    def act(lanes):
        raise PtxError("trap")
    instruction.act = act


@opcode("call")
def call(frame, source, instruction):
    expect(source.mods, ("uni",))
    operands = list(source.operands)
    results = operands.pop(0).parts if isinstance(operands[0], Vector) else []
    name = operands.pop(0).name
    arguments = operands[0].parts if operands else []
    m = frame.machine
    if name not in m.module.functions:
        raise Unsupported("call of " + name)
    callee = m.module.functions[name]

    def act(lanes):
        other = m.frame(name)
        for param, argument in zip(callee.params, arguments):
            other.slot(param.name)[lanes] = frame.slot(argument.name)[lanes]
        other.run(lanes)
        for value, result in zip(callee.returns, results):
            frame.slot(result.name)[lanes] = other.slot(value.name)[lanes]
    instruction.act = act

