# SPDX-License-Identifier: Apache-2.0
"""Runs a function of PTX on many lanes at once. Lanes at one place of the program go on together, those that are furthest
behind first, so that branches meet again; a warp's lanes wait for each other at warp operations, a block's at barriers."""
import numpy as np

from . import operations  # noqa: F401  (registers its opcodes)
from . import transfers  # noqa: F401
from .banks import MOST_BLOCKS
from .memory import FIRST_SHARED, LOCAL, PARAM, RAW, SHARED, STATIC, Generic, Global, Local, ReadOnly, Shared
from .kinds import store_kinds
from .opcodes import OPCODES
from .parse import WIDTH, Immediate, PtxError, Register, Sink, Symbol, Unsupported
from .values import NUMPY, float_bits

MOST_LANES = 16384  # at once: blocks share nothing, so a large grid runs in parts


class Instruction:
    """One compiled instruction: what the loop of Frame.run needs."""
    __slots__ = ("kind", "act", "guard", "negated", "target", "masks", "kind_of_store", "text")


class Frame:
    """One function's registers and code on all lanes of the machine."""

    def __init__(self, machine, function):
        self.machine, self.function = machine, function
        self.registers = {}
        self.slots = {}  # of .param variables: name: (n_lanes, bytes)
        self.kinds = store_kinds(function)
        self.code = [self._compile(n, i) for n, i in enumerate(function.code)]

    # -- operands, for the builders of opcodes -----------------------------------------------------------------------
    def register(self, name):
        if name not in self.registers:
            if name not in self.function.registers:
                raise PtxError("unknown register " + name)
            kind = self.function.registers[name]
            n = self.machine.n_lanes
            self.registers[name] = (np.zeros(n, bool) if kind == "pred" else np.full(n, -1, f"i{WIDTH[kind]}")
                                    .view(RAW[WIDTH[kind]]))
        return self.registers[name]

    def reader(self, operand, kind):
        """A function lanes -> values of the operand as `kind`: an array of one a lane, or of one for all."""
        if isinstance(operand, Register):
            if operand.name in self.machine.special:
                values = self.machine.special[operand.name].astype(RAW[WIDTH[kind]]).view(NUMPY[kind])
                return lambda lanes: values[lanes]
            r = self.register(operand.name)
            if kind == "pred":
                return (lambda lanes: ~r[lanes]) if operand.negated else (lambda lanes: r[lanes])
            width = WIDTH[kind]
            if r.dtype == bool or r.itemsize < width:
                raise PtxError(f"{operand.name} is too narrow for .{kind}")
            if r.itemsize == width:
                view = r.view(NUMPY[kind])
                return lambda lanes: view[lanes]
            return lambda lanes: r[lanes].astype(RAW[width]).view(NUMPY[kind])
        if isinstance(operand, Immediate):
            value = self._immediate(operand.text, kind)
            return lambda lanes: value
        if isinstance(operand, Symbol):
            value = np.array([self.address_of(operand)]).astype(NUMPY[kind])
            return lambda lanes: value
        raise PtxError(f"a value is expected, not {operand}")

    @staticmethod
    def _immediate(text, kind):
        if kind == "pred":
            return np.array([int(text, 0) != 0])
        width = WIDTH[kind]
        if text[:2].lower() in ("0f", "0d"):
            bits = int(text[2:], 16)
            if (4 if text[1].lower() == "f" else 8) != width:
                raise Unsupported("immediate " + text + " as " + kind)
        elif kind in ("f32", "f64"):
            bits = float_bits(float(text), width)
        elif "." in text:
            raise Unsupported("immediate " + text + " as " + kind)
        else:
            bits = int(text.rstrip("U"), 0)
        return np.array([bits & ((1 << 8 * width) - 1)], RAW[width]).view(NUMPY[kind])

    def writer(self, operand, kind):
        """A function (lanes, values of `kind`) that stores them; narrower values are extended by their sign or by zeros."""
        if isinstance(operand, Sink):
            return lambda lanes, values: None
        if not isinstance(operand, Register):
            raise PtxError(f"a register is expected, not {operand}")
        r = self.register(operand.name)
        if kind == "pred":
            if r.dtype != bool:
                raise PtxError(operand.name + " is no predicate")
        elif r.dtype == bool or r.itemsize < WIDTH[kind]:
            raise PtxError(f"{operand.name} is too narrow for .{kind}")
        if kind == "pred" or r.itemsize > WIDTH[kind]:
            view = r.view(f"i{r.itemsize}") if kind[0] == "s" else r
            raw = kind if kind == "pred" or kind[0] == "s" else f"u{8 * WIDTH[kind]}"
        else:
            view, raw = r.view(NUMPY[kind]), kind

        def write(lanes, values):
            view[lanes] = values if raw == kind else np.asarray(values).view(NUMPY[raw])
        return write

    def address(self, operand):
        """A function lanes -> addresses (u64), one a lane."""
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            r = self.register(base.name)
            offset = np.uint64(offset & (1 << 64) - 1)
            if offset == 0:
                return lambda lanes: r[lanes].astype(np.uint64)
            return lambda lanes: r[lanes].astype(np.uint64) + offset
        value = int(base.text, 0) if isinstance(base, Immediate) else self.address_of(base)
        value = np.uint64(value + offset)
        return lambda lanes: np.full(self.count(lanes), value)

    def count(self, lanes):
        return self.machine.n_lanes if isinstance(lanes, slice) else len(lanes)

    def lanes_of(self, lanes):
        return self.machine.all_lanes if isinstance(lanes, slice) else lanes

    def address_of(self, symbol):
        """Within its own space for shared, local and param; generic for constants and globals."""
        m = self.machine
        for key in ((self.function.name, symbol.name), ("", symbol.name)):
            if key in m.symbols:
                return m.symbols[key] + symbol.offset
        raise PtxError("unknown symbol " + symbol.name)

    def slot(self, name):
        """Bytes of a .param variable, per lane: arguments and results of calls."""
        if name not in self.slots:
            size = self.function.variables[name].size
            self.slots[name] = np.full((self.machine.n_lanes, size), 0xFF, np.uint8)
        return self.slots[name]

    # -- code --------------------------------------------------------------------------------------------------------
    def _compile(self, n, source):
        i = Instruction()
        i.kind_of_store = self.kinds.get(n, 0)
        i.text, i.target, i.masks, i.kind, i.act = source.text, None, None, "plain", None
        i.guard, i.negated = None, False
        try:
            if source.guard:
                i.guard, i.negated = self.register(source.guard.name), source.guard.negated
            if source.op not in OPCODES:
                raise Unsupported("opcode " + source.op)
            OPCODES[source.op](self, source, i)
        except PtxError as e:
            sentence = f"{self.function.name}: {source.text}: {e}"
            if self.machine.problems is None:
                raise type(e)(sentence) from None
            self.machine.problems.append(sentence)
        return i

    def run(self, lanes):
        """Until all these lanes have returned."""
        Walk(self).run(lanes)

    def fail(self, instruction, lanes, problem):
        m = self.machine
        lane = int(self.lanes_of(lanes)[0]) if self.count(lanes) else 0
        raise PtxError(f"{self.function.name}: {instruction.text}: {problem} (first of {self.count(lanes)} lanes: block "
                       f"{m.first_block + int(m.block[lane])}, thread {int(m.thread[lane])})")


class Walk:
    """One pass through a frame's code: which lanes are where."""

    def __init__(self, frame):
        self.frame, self.m = frame, frame.machine
        self.ready = {}  # pc: list of lanes
        self.at_warp = {}  # pc: lanes that wait for the rest of their warp
        self.at_barrier = np.full(self.m.n_lanes, -1, np.int64)  # pc
        self.n_at_barrier = np.zeros(self.m.n_blocks, np.int64)
        self.value_at_barrier = np.zeros(self.m.n_lanes, bool)

    def put(self, pc, lanes):
        if len(lanes):
            self.ready.setdefault(pc, []).append(lanes)

    def take(self):
        pc = min(self.ready)
        parts = self.ready.pop(pc)
        return pc, parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))

    def run(self, lanes):
        if isinstance(lanes, slice):
            lanes = self.m.all_lanes
        self.put(0, lanes)
        while self.ready:
            self.straight(*self.take())
            if not self.ready:
                self.stuck()

    def straight(self, pc, lanes):
        """Runs these lanes until they stop, return, or reach others that wait to go on."""
        code, m = self.frame.code, self.m
        horizon = min(self.ready, default=1 << 60)
        while True:
            if pc >= len(code):
                return  # the end of a function's text is a return
            i = code[pc]
            m.executed += 1
            if i.guard is None:
                active = slice(None) if len(lanes) == m.n_lanes else lanes
            else:
                on = i.guard[lanes]
                if i.negated:
                    on = ~on
                active = lanes[on]
            if i.kind == "plain":
                if i.guard is None or len(active):
                    self.act(i, active)
                pc += 1
            elif i.kind == "branch":
                pc, lanes = self.branch(i, pc, lanes, active if i.guard is not None else None)
                horizon = min(self.ready, default=1 << 60)
            elif i.kind == "return":
                if i.guard is None:
                    return
                lanes, pc = lanes[~on], pc + 1
                if not len(lanes):
                    return
            else:
                if i.guard is not None and len(active) != len(lanes):
                    self.put(pc + 1, lanes[~on])
                active = self.frame.lanes_of(active)
                if len(active):
                    (self.warp if i.kind == "warp" else self.barrier)(i, pc, active)
                return
            if pc >= horizon:
                self.put(pc, lanes)
                return

    def act(self, i, active):
        self.m.now = i
        try:
            i.act(active)
        except PtxError as e:
            self.frame.fail(i, active, e)

    def branch(self, i, pc, lanes, active):
        target = self.frame.function.labels[i.target]
        if active is None or len(active) == len(lanes):
            return target, lanes
        if not len(active):
            return pc + 1, lanes
        self.put(target, active)
        on = i.guard[lanes]
        return pc + 1, lanes[on if i.negated else ~on]

    def warp(self, i, pc, lanes):
        """Runs the operation for the lanes whose whole mask is here; the others wait."""
        m = self.m
        if pc in self.at_warp:
            lanes = np.sort(np.concatenate((self.at_warp.pop(pc), lanes)))
        mask = np.broadcast_to(i.masks(lanes), len(lanes)).astype(np.int64)
        if len(lanes) % 32 == 0 and (mask == 0xFFFFFFFF).all() and ((lanes[31::32] - lanes[::32] == 31) & (lanes[::32] % 32 == 0)).all():
            self.act(i, slice(None) if len(lanes) == m.n_lanes else lanes)
            self.put(pc + 1, lanes)
            return
        own = 1 << m.lane_id[lanes]
        if ((mask & own) == 0).any():
            self.frame.fail(i, lanes[(mask & own) == 0], "a lane is not in its own mask")
        complete = np.ones(len(lanes), bool)
        for value in np.unique(mask):
            with_it = mask == value
            warp = m.warp[lanes[with_it]]
            here = np.bincount(warp, own[with_it], m.n_warps).astype(np.int64)
            complete[with_it] = (value & ~here[warp]) == 0
        if complete.any():
            done = lanes[complete]
            self.act(i, slice(None) if len(done) == m.n_lanes else done)
            self.put(pc + 1, done)
        if not complete.all():
            self.at_warp[pc] = lanes[~complete]

    def barrier(self, i, pc, lanes):
        m = self.m
        self.at_barrier[lanes] = pc
        self.n_at_barrier += np.bincount(m.block[lanes], minlength=m.n_blocks)
        if i.act:
            i.act(lanes, self.value_at_barrier, None)
        full = self.n_at_barrier == m.n_threads
        if not full.any():
            return
        released = m.all_lanes[full[m.block]]
        places = self.at_barrier[released].reshape(-1, m.n_threads)
        if (places != places[:, :1]).any():
            odd = released[self.at_barrier[released] != np.repeat(places[:, 0], m.n_threads)]
            self.frame.fail(i, odd, "threads of one block wait at different barriers")
        self.n_at_barrier[full] = 0
        self.at_barrier[released] = -1
        for place in np.unique(places[:, 0]):
            here = released[np.repeat(places[:, 0] == place, m.n_threads)]
            instruction = self.frame.code[place]
            if instruction.act:
                instruction.act(here, self.value_at_barrier, m.n_threads)
            self.put(int(place) + 1, here)

    def stuck(self):
        """Nothing can run: fine only if nothing waits."""
        for pc, lanes in self.at_warp.items():
            self.frame.fail(self.frame.code[pc], lanes, "warp operation not reached by all lanes of its mask")
        waiting = np.nonzero(self.at_barrier >= 0)[0]
        if len(waiting):
            pc = int(self.at_barrier[waiting[0]])
            self.frame.fail(self.frame.code[pc], waiting, "barrier not reached by all threads of the block")


class Machine:
    """All lanes of some blocks of a launch."""

    def __init__(self, module, entry, grid, block, shared_bytes, arguments, memory, first_block=0, n_blocks=None,
                 early_copies=False, problems=None, banks=None):
        self.banks, self.now = banks, None  # now: the instruction under way
        self.module, self.memory, self.first_block, self.early_copies = module, memory, first_block, early_copies
        self.problems = problems  # a list: sentences about what cannot be built, instead of the first one as an exception
        self.n_blocks = n_blocks if n_blocks is not None else grid[0] * grid[1] * grid[2] - first_block
        self.n_threads = block[0] * block[1] * block[2]
        if self.n_threads % 32:
            raise Unsupported(f"blocks of {self.n_threads} threads: a part of a warp")
        self.n_lanes = self.n_blocks * self.n_threads
        self.all_lanes = np.arange(self.n_lanes)
        self.block, self.thread = np.divmod(self.all_lanes, self.n_threads)
        self.lane_id = self.all_lanes % 32
        self.warp = self.all_lanes // 32
        self.n_warps = self.n_lanes // 32
        self.executed = 0  # instructions, each for many lanes
        self.special = self._special(grid, block)
        self.symbols = {}
        function = module.functions[entry]
        param = self._lay_out(function, shared_bytes, arguments)
        self.generic = Generic("generic", memory, {SHARED: self.shared, LOCAL: self.local, PARAM: param, STATIC: self.static})
        self.global_ = Generic("global", memory, {STATIC: self.static})
        self.param = param
        self.waited = np.zeros(self.n_lanes, bool)  # at griddepcontrol.wait
        self.waits = any(i.op == "griddepcontrol" and i.mods == ["wait"] for i in function.code)
        self.carry = np.zeros(self.n_lanes, bool)
        self.copies = transfers.AsyncCopies(self)
        self.frames = {}
        self.entry = self.frame(entry)

    def frame(self, name):
        if name not in self.frames:
            self.frames[name] = Frame(self, self.module.functions[name])
        return self.frames[name]

    def _special(self, grid, block):
        b, t = self.block + self.first_block, self.thread
        s = {"%laneid": self.lane_id, "%warpid": t // 32,
             "%tid.x": t % block[0], "%tid.y": t // block[0] % block[1], "%tid.z": t // (block[0] * block[1]),
             "%ctaid.x": b % grid[0], "%ctaid.y": b // grid[0] % grid[1], "%ctaid.z": b // (grid[0] * grid[1]),
             "%lanemask_lt": (1 << self.lane_id) - 1, "%lanemask_le": (2 << self.lane_id) - 1,
             "%lanemask_eq": 1 << self.lane_id}
        s["%lanemask_ge"] = ~s["%lanemask_lt"] & 0xFFFFFFFF
        s["%lanemask_gt"] = ~s["%lanemask_le"] & 0xFFFFFFFF
        for axis in range(3):
            s["%ntid." + "xyz"[axis]] = np.full(self.n_lanes, block[axis])
            s["%nctaid." + "xyz"[axis]] = np.full(self.n_lanes, grid[axis])
        return {name: values.astype(np.uint64) for name, values in s.items()}

    def _lay_out(self, function, shared_bytes, arguments):
        """Gives every variable its address."""
        shared = local = 0
        for f in self.module.functions.values():
            for v in f.variables.values():
                if v.space == "shared" and v.size and f is function:
                    shared = -(-shared // v.align) * v.align
                    self.symbols[f.name, v.name] = FIRST_SHARED + shared
                    shared += v.size
                elif v.space == "local":
                    local = -(-local // max(v.align, 16)) * max(v.align, 16)
                    self.symbols[f.name, v.name] = local
                    local += v.size
        for v in self.module.variables.values():  # those that have a size
            if v.space == "shared" and v.size:
                shared = -(-shared // v.align) * v.align
                self.symbols["", v.name] = FIRST_SHARED + shared
                shared += v.size
        align = max([v.align for v in self.module.variables.values() if v.space == "shared"], default=16)
        shared = -(-shared // align) * align
        for v in self.module.variables.values():
            if v.space == "shared" and not v.size:
                self.symbols["", v.name] = FIRST_SHARED + shared
        self.shared = Shared(self.n_blocks, shared + shared_bytes, self.block, self._watch if self.banks else None)
        self.local = Local(self.n_lanes, local)
        static = b""
        for v in self.module.variables.values():
            if v.space in ("global", "const"):
                static += bytes(-len(static) % max(v.align, 16))
                self.symbols["", v.name] = STATIC + len(static)
                static += v.data
        self.static = ReadOnly("constant", static)
        offset = 0
        for v in function.params:
            offset = -(-offset // v.align) * v.align
            self.symbols[function.name, v.name] = offset
            offset += v.size
        if offset != len(arguments):
            raise PtxError(f"{function.name} takes {offset} bytes of arguments, not {len(arguments)}")
        return ReadOnly("parameter", arguments)

    def _watch(self, address, lanes, size):
        here = self.block[lanes] < MOST_BLOCKS
        if here.any():
            self.banks.note(self.now, address[here].astype(np.int64), np.asarray(lanes)[here], size)

    def run(self):
        with np.errstate(all="ignore"):
            self.entry.run(self.all_lanes)


def launch(module, entry, grid, block, shared_bytes, arguments, memory, blocks=None, early_copies=False, banks=None):
    """Runs a launch (or only the blocks of a range) on `memory`, a memory.Global. early_copies: cp.async lands at once,
    not at the wait that covers it; banks: a banks.Banks that counts. Returns the number of instructions executed."""
    if entry not in module.functions or not module.functions[entry].is_entry:
        raise PtxError(f"no kernel {entry}; there are: {', '.join(sorted(module.functions))}")
    n_threads = block[0] * block[1] * block[2]
    chosen = blocks if blocks is not None else range(grid[0] * grid[1] * grid[2])
    per_run = max(1, MOST_LANES // n_threads)
    executed = 0
    for start in range(chosen.start, chosen.stop, per_run):
        m = Machine(module, entry, grid, block, shared_bytes, arguments, memory, start,
                    min(per_run, chosen.stop - start), early_copies, banks=banks)
        m.run()
        executed += m.executed
    memory.check_early_reads()
    return executed


def unsupported(module):
    """What the interpreter lacks for the functions of a module, one sentence each; builds everything and runs nothing."""
    problems = []
    for f in module.functions.values():
        if not f.is_entry:
            continue
        size = 0
        for v in f.params:
            size = -(-size // v.align) * v.align + v.size
        machine = Machine(module, f.name, (1, 1, 1), (32, 1, 1), 0, bytes(size), Global([]), problems=problems)
        for other in module.functions.values():
            if not other.is_entry:
                machine.frame(other.name)
    return sorted(set(problems))
