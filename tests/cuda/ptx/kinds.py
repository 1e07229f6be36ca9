# SPDX-License-Identifier: Apache-2.0
"""What the bytes that a kernel stores are: f32, bf16, ... by the instructions that made the value, since a store says only how
wide it is. Two ways of computing a float may differ in its last bits; what is copied or counted may not."""
from .parse import WIDTH, Memory, Pair, Register, Symbol, Vector
from .values import FLOATS, INTEGERS

EXACT, F32, F64, F16, BF16, ROUNDED = range(6)  # ROUNDED: integers of a float, such as int8 codes
_ELEMENT = {"f32": F32, "f64": F64, "f16": F16, "f16x2": F16, "bf16": BF16, "bf16x2": BF16}
_CARRIES = ("mov", "selp", "shfl", "prmt", "and", "or", "xor", "not", "shl", "shr", "shf", "lop3", "bfi", "bfe", "min", "max",
            "redux", "neg", "abs", "add", "sub", "mul", "mad")  # of bits and integers: what goes in may come out
_LOADS = {"shared": "shared", "local": "local", "param": "param"}


def _registers(operand):
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, (Vector, Pair)):
        for part in operand.parts if isinstance(operand, Vector) else (operand.first, operand.second):
            yield from _registers(part)


def _made(i, kinds):
    """The kinds of what an instruction writes."""
    last = i.mods[-1] if i.mods else ""
    if i.op == "cvt":
        to, come = i.mods[-2:]
        if to in FLOATS:
            return {_ELEMENT[to]}
        if come in FLOATS and to in INTEGERS:
            return {ROUNDED}
    elif i.op == "mma":
        return {F32}
    elif last in FLOATS and i.op not in ("mov", "selp", "setp", "set", "ld", "st"):
        return {_ELEMENT[last]}
    if i.op in _CARRIES or i.op == "cvt":
        return set().union(*(kinds.get(r, set()) for o in i.operands[1:] for r in _registers(o)), set())
    if i.op in ("ld", "ldmatrix"):
        space = next((_LOADS[m.split("::")[0]] for m in i.mods if m.split("::")[0] in _LOADS), None)
        return kinds.get(space, set())
    return set()


def _space(i):
    return next((m.split("::")[0] for m in i.mods if m.split("::")[0] in ("global", "shared", "local", "param")), "global")


def store_kinds(function):
    """{index of a store: kind of its elements}."""
    kinds, stores = {}, [n for n, i in enumerate(function.code) if i.op in ("st", "atom", "red")]
    if any(i.op == "call" for i in function.code):
        kinds["param"] = {F64}  # only mathematical functions are called
    while True:
        before = sum(len(k) for k in kinds.values())
        for i in function.code:
            if i.op == "st":
                made = set().union(*(kinds.get(r, set()) for r in _registers(i.operands[1])), set())
                kinds.setdefault(_space(i), set()).update(made)
            elif i.operands and not isinstance(i.operands[0], (Memory, Symbol)):
                made = _made(i, kinds)
                for r in _registers(i.operands[0]):
                    kinds.setdefault(r, set()).update(made)
        if sum(len(k) for k in kinds.values()) == before:
            break
    return {n: _choose(function.code[n], kinds) for n in stores}


def _choose(i, kinds):
    """The kind that fits the width of a store; a wider element cannot be stored in parts."""
    width = WIDTH[i.mods[-1]]
    value = i.operands[-1]
    found = set().union(*(kinds.get(r, set()) for r in _registers(value)), set())
    if i.mods[-1] in ("f32", "f64"):
        return _ELEMENT[i.mods[-1]]
    for kind, size in ((BF16, 2), (F16, 2), (F32, 4), (F64, 8), (ROUNDED, 1)):
        if kind in found and width >= size:
            return kind
    return EXACT
