# SPDX-License-Identifier: Apache-2.0
"""Opcodes that compute: registers in, registers out, each lane for itself."""
import numpy as np

from .opcodes import expect, opcode, typed
from .parse import WIDTH, Pair, Unsupported, Vector
from .values import BITS, FLOATS, INTEGERS, NUMPY, flush, fma_f64, narrow, round_f32, widen

ROUNDINGS = ("rn", "rz", "rm", "rp")
FLOAT_MODS = ROUNDINGS + ("ftz", "sat", "approx", "full", "NaN", "relu")


def unary(frame, source, instruction, kind, function, result=None):
    a, put = frame.reader(source.operands[1], kind), frame.writer(source.operands[0], result or kind)
    instruction.act = lambda lanes: put(lanes, function(a(lanes)))


def binary(frame, source, instruction, kind, function, second=None):
    a, b = frame.reader(source.operands[1], kind), frame.reader(source.operands[2], second or kind)
    put = frame.writer(source.operands[0], kind)
    instruction.act = lambda lanes: put(lanes, function(a(lanes), b(lanes)))


def ternary(frame, source, instruction, kind, function):
    a, b, c = (frame.reader(o, kind) for o in source.operands[1:4])
    put = frame.writer(source.operands[0], kind)
    instruction.act = lambda lanes: put(lanes, function(a(lanes), b(lanes), c(lanes)))


def finish(values, kind, mods):
    """Saturation and flushing of a float result, which is then of its kind."""
    if "relu" in mods:
        values = np.fmax(values, 0)
    if "sat" in mods:
        values = np.where(np.isnan(values), 0, np.clip(values, 0, 1))
    if "ftz" in mods and kind == "f32":
        values = flush(values)
    return narrow(values, kind)


def float_operation(function, kind, mods):
    """`function` of floats with the roundings, flushing and packing of an instruction."""
    direction = next((m for m in mods if m in ROUNDINGS), "rn")
    if direction != "rn" and kind != "f32":
        raise Unsupported(f"rounding .{direction} of {kind}")
    ftz = "ftz" in mods and kind == "f32"

    def apply(*values):
        values = [widen(v, kind) for v in values]
        if ftz:
            values = [flush(v) for v in values]
        if direction != "rn":
            return finish(round_f32(function(*[np.float64(v) for v in values]), direction), kind, mods)
        return finish(function(*values), kind, mods)
    if kind in ("f32", "f64") and not mods & {"ftz", "sat", "relu"} and direction == "rn":
        return function
    return apply


@opcode("add", "sub", "mul", "div")
def arithmetic(frame, source, instruction):
    kind = source.mods[-1]
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
    if kind in FLOATS:
        kind, mods = typed(source, FLOATS, FLOAT_MODS)
        binary(frame, source, instruction, kind, float_operation(functions[source.op], kind, mods))
    elif source.op == "mul":
        multiply(frame, source, instruction)
    elif source.op == "div":
        kind, _ = typed(source, INTEGERS)
        binary(frame, source, instruction, kind, divide)
    else:
        kind, mods = typed(source, INTEGERS, ("cc", "sat"))
        if "cc" in mods:
            with_carry(frame, source, instruction, kind, False, True)
        elif "sat" in mods:
            saturating(frame, source, instruction, kind)
        else:
            binary(frame, source, instruction, kind, functions[source.op])


def saturating(frame, source, instruction, kind):
    if kind != "s32":
        raise Unsupported(".sat of " + kind)
    sign = 1 if source.op == "add" else -1
    binary(frame, source, instruction, kind, lambda a, b: np.clip(
        np.int64(a) + sign * np.int64(b), -2**31, 2**31 - 1).astype(np.int32))


@opcode("addc", "subc")
def arithmetic_with_carry(frame, source, instruction):
    kind, mods = typed(source, INTEGERS, ("cc",))
    with_carry(frame, source, instruction, kind, True, "cc" in mods)


def with_carry(frame, source, instruction, kind, takes, gives):
    """Sums whose carry (of subtractions: borrow) is kept between instructions, bits of any sign."""
    kind = "u" + kind[1:]
    a, b, put = (frame.reader(source.operands[1], kind), frame.reader(source.operands[2], kind),
                 frame.writer(source.operands[0], kind))
    carry, subtract = frame.machine.carry, source.op.startswith("sub")

    def act(lanes):
        x, y = a(lanes), b(lanes)
        c = carry[lanes].astype(NUMPY[kind]) if takes else NUMPY[kind](0)
        if subtract:
            r = x - y - c
            over = (x < y) | ((x == y) & (c != 0))
        else:
            s = x + y
            r = s + c
            over = (s < x) | (r < s)
        put(lanes, r)
        if gives:
            carry[lanes] = over
    instruction.act = act


def divide(a, b):
    """Of integers: towards zero; by zero, all bits set."""
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    q = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        q = q + ((q < 0) & (q * safe != a))
    return np.where(b == 0, np.array(-1).astype(q.dtype), q).astype(a.dtype)


@opcode("rem")
def remainder(frame, source, instruction):
    kind, _ = typed(source, INTEGERS)
    binary(frame, source, instruction, kind, lambda a, b: a - divide(a, b) * b)


WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def high(a, b):
    """The upper half of the product of integers."""
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(8 * a.dtype.itemsize)).astype(a.dtype)
    x, y, low, half = a.view(np.uint64), b.view(np.uint64), np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    mid = x1 * y0 + (x0 * y0 >> half)
    r = x1 * y1 + (mid >> half) + ((mid & low) + x0 * y1 >> half)
    if a.dtype.kind == "i":
        r = r - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return r.view(a.dtype)


def multiply(frame, source, instruction):
    kind, mods = typed(source, INTEGERS, ("lo", "hi", "wide"))
    if "wide" in mods:
        wide = WIDER[kind]
        a, b = (frame.reader(o, kind) for o in source.operands[1:3])
        put = frame.writer(source.operands[0], wide)
        instruction.act = lambda lanes: put(lanes, np.multiply(a(lanes), b(lanes), dtype=NUMPY[wide]))
    else:
        binary(frame, source, instruction, kind, high if "hi" in mods else np.multiply)


@opcode("mad", "madc")
def multiply_add(frame, source, instruction):
    kind, mods = typed(source, INTEGERS, ("lo", "hi", "wide", "cc"))
    takes, gives = source.op == "madc", "cc" in mods
    if "wide" in mods:
        wide = WIDER[kind]
        a, b = (frame.reader(o, kind) for o in source.operands[1:3])
        c, put = frame.reader(source.operands[3], wide), frame.writer(source.operands[0], wide)
        instruction.act = lambda lanes: put(lanes, np.multiply(a(lanes), b(lanes), dtype=NUMPY[wide]) + c(lanes))
        return
    product = high if "hi" in mods else np.multiply
    if not takes and not gives:
        ternary(frame, source, instruction, kind, lambda a, b, c: product(a, b) + c)
        return
    a, b, c = (frame.reader(o, kind) for o in source.operands[1:4])
    put, carry, raw = frame.writer(source.operands[0], kind), frame.machine.carry, NUMPY["u" + kind[1:]]

    def act(lanes):
        p = np.asarray(product(a(lanes), b(lanes))).view(raw)
        s = p + np.asarray(c(lanes)).view(raw)
        r = s + (carry[lanes].astype(raw) if takes else raw(0))
        put(lanes, r.view(NUMPY[kind]))
        if gives:
            carry[lanes] = (s < p) | (r < s)
    instruction.act = act


@opcode("fma")
def fused(frame, source, instruction):
    kind, mods = typed(source, FLOATS, FLOAT_MODS)

    def fma(a, b, c):
        if kind == "f64":
            return fma_f64(a, b, c)
        exact = np.float64(a) * np.float64(b) + np.float64(c)
        return exact if kind in ("f16", "f16x2") else exact.astype(np.float32)
    if kind == "f32" and mods & {"rz", "rm", "rp"}:  # from the double, not from its nearest f32
        ternary(frame, source, instruction, kind, float_operation(lambda a, b, c: a * b + c, kind, mods))
    else:
        ternary(frame, source, instruction, kind, float_operation(fma, kind, mods))


@opcode("min", "max")
def extreme(frame, source, instruction):
    kind, mods = typed(source, FLOATS + INTEGERS, ("ftz", "NaN"))
    low = source.op == "min"
    if kind in FLOATS:
        if "NaN" in mods:
            function = np.minimum if low else np.maximum
        else:
            function = np.fmin if low else np.fmax
        function = float_operation(function, kind, mods - {"NaN"})
    else:
        function = np.minimum if low else np.maximum
    binary(frame, source, instruction, kind, function)


@opcode("neg", "abs")
def sign(frame, source, instruction):
    kind, mods = typed(source, FLOATS + INTEGERS, ("ftz",))
    function = np.negative if source.op == "neg" else np.abs
    if kind in FLOATS:
        function = float_operation(function, kind, mods)
    unary(frame, source, instruction, kind, function)


@opcode("copysign")
def copysign(frame, source, instruction):
    kind, _ = typed(source, ("f32", "f64"))
    binary(frame, source, instruction, kind, lambda a, b: np.copysign(b, a))


def upper_half(values):
    """Approximations of doubles give the upper 32 bits only."""
    return (np.asarray(values).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


@opcode("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def function_of_one(frame, source, instruction):
    functions = {"rcp": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "ex2": np.exp2, "lg2": np.log2,
                 "sin": np.sin, "cos": np.cos, "tanh": np.tanh}
    kind, mods = typed(source, FLOATS, FLOAT_MODS)
    function = functions[source.op]
    if kind == "f64" and "approx" in mods:
        exact = function
        function = lambda x: upper_half(exact(x))  # noqa: E731
    elif kind == "f32":  # numpy's own f32 functions are a few ulps off
        exact = function
        function = lambda x: np.asarray(exact(np.float64(x))).astype(np.float32)  # noqa: E731
    unary(frame, source, instruction, kind, float_operation(function, kind, mods))


@opcode("and", "or", "xor", "not")
def logic(frame, source, instruction):
    kind, _ = typed(source, BITS + ("pred",))
    if source.op == "not":
        unary(frame, source, instruction, kind, np.invert)
    else:
        binary(frame, source, instruction, kind,
               {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[source.op])


@opcode("cnot")
def logical_not(frame, source, instruction):
    kind, _ = typed(source, BITS)
    unary(frame, source, instruction, kind, lambda a: (a == 0).astype(NUMPY[kind]))


@opcode("lop3")
def three_bits(frame, source, instruction):
    typed(source, ("b32",))
    *words, table = source.operands[1:]
    a, b, c = (frame.reader(o, "b32") for o in words)
    put, table = frame.writer(source.operands[0], "b32"), int(table.text, 0)

    def act(lanes):
        x, y, z = np.broadcast_arrays(a(lanes), b(lanes), c(lanes))
        r = np.zeros(x.shape, np.uint32)
        for i in range(8):
            if table >> i & 1:
                r |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
        put(lanes, r)
    instruction.act = act


@opcode("shl", "shr")
def shift(frame, source, instruction):
    kind, _ = typed(source, BITS + INTEGERS)
    width = 8 * WIDTH[kind]
    a, n, put = (frame.reader(source.operands[1], kind), frame.reader(source.operands[2], "u32"),
                 frame.writer(source.operands[0], kind))
    move = np.left_shift if source.op == "shl" else np.right_shift
    arithmetic_right = kind[0] == "s" and source.op == "shr"

    def act(lanes):
        x, by = a(lanes), n(lanes)
        if arithmetic_right:
            put(lanes, move(x, np.minimum(by, width - 1).astype(NUMPY[kind])))
        else:
            put(lanes, np.where(by < width, move(x, np.minimum(by, width - 1).astype(NUMPY[kind])), NUMPY[kind](0)))
    instruction.act = act


@opcode("shf")
def funnel(frame, source, instruction):
    _, mods = typed(source, ("b32",), ("l", "r", "wrap", "clamp"))
    a, b, n = (frame.reader(o, "u32") for o in source.operands[1:4])
    put = frame.writer(source.operands[0], "u32")

    def act(lanes):
        by = n(lanes) & np.uint32(31) if "wrap" in mods else np.minimum(n(lanes), np.uint32(32))
        both = np.uint64(b(lanes)) << np.uint64(32) | np.uint64(a(lanes))
        by = np.uint64(by)
        put(lanes, ((both << by >> np.uint64(32)) if "l" in mods else (both >> by)).astype(np.uint32))
    instruction.act = act


@opcode("bfe")
def field_extract(frame, source, instruction):
    kind, _ = typed(source, ("u32", "s32", "u64", "s64"))
    wide = np.int64 if kind[0] == "s" else np.uint64
    a, at, n = frame.reader(source.operands[1], kind), *(frame.reader(o, "u32") for o in source.operands[2:4])
    put = frame.writer(source.operands[0], kind)

    def act(lanes):
        p, c = at(lanes) & np.uint32(255), n(lanes) & np.uint32(255)
        v = np.asarray(a(lanes)).astype(wide) >> np.minimum(p, 63).astype(wide)
        if wide is np.uint64:
            v = np.where(p > 63, wide(0), v)
        unused = (64 - np.clip(c, 1, 64)).astype(wide)
        put(lanes, np.where(c == 0, wide(0), v << unused >> unused).astype(NUMPY[kind]))
    instruction.act = act


@opcode("bfi")
def field_insert(frame, source, instruction):
    kind, _ = typed(source, ("b32", "b64"))
    width, u = 8 * WIDTH[kind], NUMPY[kind]
    a, b = (frame.reader(o, kind) for o in source.operands[1:3])
    at, n = (frame.reader(o, "u32") for o in source.operands[3:5])
    put = frame.writer(source.operands[0], kind)

    def act(lanes):
        p, c = np.minimum(at(lanes) & np.uint32(255), width), np.minimum(n(lanes) & np.uint32(255), width)
        ones = np.where(c >= width, ~u(0), (u(1) << np.minimum(c, width - 1).astype(u)) - u(1))
        shift_by = np.minimum(p, width - 1).astype(u)
        mask = np.where(p >= width, u(0), ones << shift_by)
        put(lanes, (b(lanes) & ~mask) | (a(lanes) << shift_by & mask))
    instruction.act = act


@opcode("prmt")
def permute(frame, source, instruction):
    typed(source, ("b32",))
    a, b, c = (frame.reader(o, "b32") for o in source.operands[1:4])
    put = frame.writer(source.operands[0], "b32")

    def act(lanes):
        x, y, selector = np.broadcast_arrays(a(lanes), b(lanes), c(lanes))
        both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
        r = np.zeros(x.shape, np.uint64)
        for i in range(4):
            pick = selector >> np.uint32(4 * i) & np.uint32(15)
            byte = both >> (np.uint64(8) * (pick & np.uint32(7))) & np.uint64(255)
            byte = np.where(pick & np.uint32(8), np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0)), byte)
            r |= byte << np.uint64(8 * i)
        put(lanes, r.astype(np.uint32))
    instruction.act = act


def _count_bits(x):
    return np.unpackbits(np.ascontiguousarray(x).view(np.uint8).reshape(-1, x.itemsize), axis=1).sum(1).astype(np.uint32)


def _top_bit(x):
    """The highest set bit's place; -1: none."""
    bits = np.unpackbits(np.ascontiguousarray(x).view(np.uint8).reshape(-1, x.itemsize)[:, ::-1], axis=1)
    first = bits.argmax(1)
    return np.where(bits.any(1), 8 * x.itemsize - 1 - first, -1)


@opcode("popc", "clz", "brev", "bfind")
def bit_counts(frame, source, instruction):
    kind, _ = typed(source, ("b32", "b64", "u32", "s32", "u64", "s64"))
    width, raw = 8 * WIDTH[kind], NUMPY["u" + kind[1:]]
    a = frame.reader(source.operands[1], kind)
    put = frame.writer(source.operands[0], kind if source.op == "brev" else "u32")

    def function(x):
        x = np.atleast_1d(np.asarray(x)).view(raw)
        if source.op == "popc":
            return _count_bits(x)
        if source.op == "clz":
            return (width - 1 - _top_bit(x)).astype(np.uint32)
        if source.op == "bfind":
            signed = x.view(NUMPY[kind])
            return _top_bit(np.where(signed < 0, ~x, x)).astype(np.int32).view(np.uint32)
        bits = np.unpackbits(x.view(np.uint8).reshape(-1, x.itemsize)[:, ::-1], axis=1)[:, ::-1]
        return np.packbits(bits, axis=1)[:, ::-1].copy().view(raw).reshape(-1)
    instruction.act = lambda lanes: put(lanes, function(a(lanes)))


@opcode("dp4a")
def dot_of_bytes(frame, source, instruction):
    if len(source.mods) != 2:
        raise Unsupported("types of dp4a")
    kinds = source.mods
    a, b = (frame.reader(o, k) for o, k in zip(source.operands[1:3], kinds))
    out = "u32" if kinds == ["u32", "u32"] else "s32"
    c, put = frame.reader(source.operands[3], out), frame.writer(source.operands[0], out)

    def bytes_of(x, kind):
        return np.ascontiguousarray(np.atleast_1d(x)).view(np.int8 if kind == "s32" else np.uint8).reshape(-1, 4).astype(np.int64)
    instruction.act = lambda lanes: put(lanes, (
        (bytes_of(a(lanes), kinds[0]) * bytes_of(b(lanes), kinds[1])).sum(1) + c(lanes)).astype(NUMPY[out]))


ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
           "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def comparison(name, kind):
    """A function of two values of `kind`."""
    if kind in FLOATS:
        def compare(a, b):
            a, b = widen(a, kind), widen(b, kind)
            nan = np.isnan(a) | np.isnan(b)
            if name == "num":
                return ~nan
            if name == "nan":
                return nan
            if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
                return nan | ORDERED[name[:2]](a, b)
            return ~nan & ORDERED[name](a, b)
        return compare
    if name not in ORDERED:
        raise Unsupported("comparison ." + name)
    return ORDERED[name]


COMPARISONS = tuple(ORDERED) + ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


@opcode("setp", "set")
def compare(frame, source, instruction):
    name, *mods, kind = source.mods
    result = None
    if source.op == "set":
        result = mods.pop()
        if result not in ("u32", "s32", "f32"):
            raise Unsupported("result ." + result)
    expect(mods, ("ftz",) + tuple(COMBINE))
    if name not in COMPARISONS or kind not in BITS + INTEGERS + FLOATS or kind.endswith("x2"):
        raise Unsupported(f"comparison .{name}.{kind}")
    function = comparison(name, kind)
    combine = next((COMBINE[m] for m in mods if m in COMBINE), None)
    a, b = (frame.reader(o, kind) for o in source.operands[1:3])
    third = frame.reader(source.operands[3], "pred") if combine else None
    to = source.operands[0]
    first, second = (to.first, to.second) if isinstance(to, Pair) else (to, None)
    put = frame.writer(first, result or "pred")
    put_other = frame.writer(second, "pred") if second else None

    def act(lanes):
        holds = function(a(lanes), b(lanes))
        other = ~holds
        if combine:
            c = third(lanes)
            holds, other = combine(holds, c), combine(other, c)
        if result == "f32":
            holds = np.asarray(holds).astype(np.float32)
        elif result:
            holds = np.where(holds, np.uint32(0xFFFFFFFF), np.uint32(0)).view(NUMPY[result])
        put(lanes, holds)
        if put_other:
            put_other(lanes, other)
    instruction.act = act


@opcode("selp")
def select(frame, source, instruction):
    kind, _ = typed(source, BITS + INTEGERS + ("f16", "f32", "f64"))
    a, b, p = (*(frame.reader(o, kind) for o in source.operands[1:3]), frame.reader(source.operands[3], "pred"))
    put = frame.writer(source.operands[0], kind)
    instruction.act = lambda lanes: put(lanes, np.where(p(lanes), a(lanes), b(lanes)))


@opcode("mov")
def move(frame, source, instruction):
    kind, _ = typed(source, BITS + INTEGERS + ("pred", "f16", "bf16", "f32", "f64", "b128"))
    to, value = source.operands
    if isinstance(to, Vector):
        _unpack(frame, instruction, to.parts, value, kind)
    elif isinstance(value, Vector):
        _pack(frame, instruction, to, value.parts, kind)
    else:
        unary(frame, source, instruction, kind, lambda a: a)


def _part(parts, kind):
    width = WIDTH[kind] // len(parts)
    return f"b{8 * width}", NUMPY[kind](8 * width)


def _unpack(frame, instruction, parts, value, kind):
    part, shift_by = _part(parts, kind)
    a, puts = frame.reader(value, kind), [frame.writer(p, part) for p in parts]

    def act(lanes):
        v = a(lanes)
        for i, put in enumerate(puts):
            put(lanes, np.asarray(v >> NUMPY[kind](i) * shift_by).astype(NUMPY[part]))
    instruction.act = act


def _pack(frame, instruction, to, parts, kind):
    part, shift_by = _part(parts, kind)
    readers, put = [frame.reader(p, part) for p in parts], frame.writer(to, kind)

    def act(lanes):
        v = NUMPY[kind](0)
        for i, read in enumerate(readers):
            v = v | np.asarray(read(lanes)).astype(NUMPY[kind]) << NUMPY[kind](i) * shift_by
        put(lanes, v)
    instruction.act = act


TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@opcode("cvt")
def convert(frame, source, instruction):
    *mods, to, come = source.mods
    if to not in INTEGERS + FLOATS or come not in INTEGERS + FLOATS:
        raise Unsupported(f"cvt.{to}.{come}")
    expect(mods, ("rn", "rz", "rm", "rp", "ftz", "sat", "relu") + tuple(TO_INTEGER))
    mods = set(mods)
    if to in ("bf16x2", "f16x2"):
        _convert_pair(frame, source, instruction, to, come, mods)
        return
    unary(frame, source, instruction, come, _conversion(to, come, mods), to)


def _convert_pair(frame, source, instruction, to, come, mods):
    if come != "f32" or mods - {"rn", "relu", "ftz"}:
        raise Unsupported("conversion to a pair")
    upper, lower = (frame.reader(o, "f32") for o in source.operands[1:3])
    put = frame.writer(source.operands[0], to)
    instruction.act = lambda lanes: put(lanes, finish(np.stack(np.broadcast_arrays(lower(lanes), upper(lanes)), -1), to, mods))


def _conversion(to, come, mods):
    """A function of values of `come` that gives values of `to`."""
    rounding = next((TO_INTEGER[m] for m in mods if m in TO_INTEGER), None)
    direction = next((m for m in mods if m in ROUNDINGS), "rn")
    if come in INTEGERS and to in INTEGERS:
        if "sat" in mods:
            limits = np.iinfo(NUMPY[to])
            return lambda x: np.clip(np.asarray(x).astype(object), limits.min, limits.max).astype(NUMPY[to])
        return lambda x: np.asarray(x).astype(NUMPY[to])
    if to in INTEGERS:
        if rounding is None:
            raise Unsupported("conversion to an integer without its rounding")
        return lambda x: _to_integer(rounding(_flushed(widen(x, come), come, mods).astype(np.float64)), to)
    if come in INTEGERS:
        if direction != "rn":
            if to != "f32" or come.endswith("64"):
                raise Unsupported("rounding ." + direction)
            return lambda x: round_f32(np.asarray(x).astype(np.float64), direction)
        if to in ("f32", "f64"):
            return lambda x: np.asarray(x).astype(NUMPY[to])
        return lambda x: narrow(np.asarray(x).astype(np.float64 if to == "f16" else np.float32), to)

    def between_floats(x):
        v = _flushed(widen(x, come), come, mods)
        if rounding is not None:
            v = rounding(v)
        if direction != "rn":
            if (to, come) != ("f32", "f64"):
                raise Unsupported("rounding ." + direction)
            v = round_f32(v, direction)
        return finish(v, to, mods)
    return between_floats


def _flushed(values, kind, mods):
    return flush(values) if "ftz" in mods and kind == "f32" else values


def _to_integer(values, kind):
    """Out of range: the nearest; NaN: 0, or the top bit alone for 64 bits."""
    limits = np.iinfo(NUMPY[kind])
    values = np.asarray(values)
    nan = np.isnan(values)
    high_limit = values >= float(limits.max)
    low_limit = values <= float(limits.min)
    inside = np.where(nan | high_limit | low_limit, 0, values).astype(NUMPY[kind])
    out = np.where(high_limit, NUMPY[kind](limits.max), np.where(low_limit, NUMPY[kind](limits.min), inside))
    of_nan = np.array(1 << 63 if WIDTH[kind] == 8 else 0, np.uint64).astype(NUMPY[kind])
    return np.where(nan, of_nan, out).astype(NUMPY[kind])

