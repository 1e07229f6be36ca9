# SPDX-License-Identifier: Apache-2.0
"""PTX text as data: functions of instructions and labels, variables with their bytes. Knows nothing of what opcodes do."""
import re
from dataclasses import dataclass, field

WIDTH = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4,
         "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16}


class PtxError(Exception):
    """What is wrong with a program or with its run, in words."""


class Unsupported(PtxError):
    """The program may be right; the interpreter lacks something."""


@dataclass
class Register:
    name: str
    negated: bool = False  # of a predicate: !%p


@dataclass
class Immediate:
    text: str


@dataclass
class Symbol:  # a variable's address
    name: str
    offset: int = 0


@dataclass
class Memory:  # [base + offset]
    base: object
    offset: int


@dataclass
class Vector:
    parts: list


@dataclass
class Pair:  # p|q
    first: object
    second: object


@dataclass
class Sink:  # _
    pass


@dataclass
class Instruction:
    op: str
    mods: list
    operands: list
    guard: object  # Register or None
    text: str


@dataclass
class Variable:
    name: str
    space: str  # global, const, shared, local, param
    align: int
    size: int  # bytes; 0: as much as the launch gives
    data: bytes = b""
    type: str = "b8"


@dataclass
class Function:
    name: str
    is_entry: bool
    params: list
    returns: list
    registers: dict = field(default_factory=dict)  # name: type
    variables: dict = field(default_factory=dict)
    code: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)


@dataclass
class Module:
    functions: dict
    variables: dict
    target: str


def _variable(text, space):
    """`.align 4 .b8 name[16] = {1, 2}` or `.b64 name`."""
    m = re.fullmatch(r"(?:\.align\s+(\d+)\s+)?(?:\.ptr\s+)?(?:\.v([24])\s+)?\.(\w+)(?:\s+\.ptr(?:\s+\.\w+)?(?:\s+\.align\s+\d+)?)?"
                     r"\s+([\w$%]+)((?:\[\d*\])*)(?:\s*=\s*(.*))?", text, re.S)
    if not m:
        raise PtxError("cannot read the variable: " + text)
    width = WIDTH[m[3]] * int(m[2] or 1)
    count = 1
    for n in re.findall(r"\[(\d*)\]", m[5]):
        count *= int(n or 0)
    data = b""
    if m[6]:
        kind = m[3]
        for item in re.findall(r"[\w.+-]+", m[6]):
            if kind[0] == "f" or item[:2] in ("0f", "0d"):
                if item[:2] not in ("0f", "0d"):
                    raise Unsupported("initial value " + item)
                value = int(item[2:], 16)
            elif re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", item):
                value = int(item.rstrip("U"), 0)
            else:
                raise Unsupported("initial value " + item)
            data += (value & (1 << 8 * WIDTH[kind]) - 1).to_bytes(WIDTH[kind], "little")
    size = width * count
    return Variable(m[4], space, int(m[1] or width), size, data.ljust(size, b"\0"), m[3])


def _split(text):
    """At commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


class _Body:
    """Statements of one function, with the scopes that inline assembly opens."""

    def __init__(self, function):
        self.f = function
        self.scopes = [{}]
        self.n_scopes = 0

    def rename(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def declare(self, name):
        unique = name if len(self.scopes) == 1 else f"{name}@{self.n_scopes}"
        self.scopes[-1][name] = unique
        return unique

    def operand(self, text):
        if text == "_":
            return Sink()
        if text[0] == "{":
            return Vector([self.operand(t) for t in _split(text[1:-1])])
        if text[0] == "(":
            return Vector([self.operand(t) for t in _split(text[1:-1])])
        if text[0] == "[":
            m = re.fullmatch(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]", text)
            if not m:
                raise PtxError("cannot read the address: " + text)
            return Memory(self.operand(m[1]), int(m[2] or "0", 0))
        if "|" in text:
            first, second = text.split("|")
            return Pair(self.operand(first.strip()), self.operand(second.strip()))
        if text[0] == "!":
            register = self.operand(text[1:].strip())
            return Register(register.name, True)
        if re.match(r"-?[\d.]", text):
            return Immediate(text)
        m = re.fullmatch(r"([\w$%.]+?)(?:\s*\+\s*(\d+))?", text)
        if not m:
            raise PtxError("cannot read the operand: " + text)
        name = self.rename(m[1])
        if name[0] == "%" or name in self.f.registers:
            return Register(name)
        return Symbol(name, int(m[2] or 0))

    def registers(self, text):
        m = re.fullmatch(r"\.reg\s+(?:\.v\d\s+)?\.(\w+)\s+(.*)", text, re.S)
        for name in _split(m[2]):
            many = re.fullmatch(r"(.*)<(\d+)>", name)
            names = [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]
            for n in names:
                self.f.registers[self.declare(n)] = m[1]

    def directive(self, text):
        word = text.split()[0][1:]
        if word == "reg":
            self.registers(text)
        elif word in ("shared", "local", "param"):
            v = _variable(text[len(word) + 1:].strip(), word)
            v.name = self.declare(v.name)
            self.f.variables[v.name] = v
        elif word not in ("pragma", "branchtargets", "calltargets", "callprototype"):
            raise Unsupported("directive " + text)

    def statement(self, text):
        text = " ".join(text.split())
        if text[0] == ".":
            return self.directive(text)
        m = re.fullmatch(r"(?:@(!?)([%\w$]+)\s+)?([\w.:]+)(?:\s+(.*))?", text)
        if not m:
            raise PtxError("cannot read the statement: " + text)
        guard = Register(self.rename(m[2]), m[1] == "!") if m[2] else None
        op, *mods = m[3].split(".")
        operands = [self.operand(o) for o in _split(m[4] or "")]
        self.f.code.append(Instruction(op, mods, operands, guard, text))

    def read(self, text):
        at, label = 0, re.compile(r"([\w$]+)\s*:(?!:)")
        while True:
            while at < len(text) and text[at].isspace():
                at += 1
            if at == len(text):
                break
            if text[at] == "{":
                self.n_scopes += 1
                self.scopes.append({})
                at += 1
            elif text[at] == "}":
                self.scopes.pop()
                at += 1
            elif m := label.match(text, at):
                self.f.labels[m[1]] = len(self.f.code)
                at = m.end()
            else:
                end = text.index(";", at)
                if end > at:
                    self.statement(text[at:end])
                at = end + 1


def _matching(text, at):
    """The position behind the brace that closes the one at `at`."""
    depth = 0
    for m in re.finditer(r"[{}]", text[at:]):
        depth += 1 if m[0] == "{" else -1
        if depth == 0:
            return at + m.end()
    raise PtxError("a brace is not closed")


def _params(text):
    return [_variable(p[len(".param"):].strip(), "param") for p in _split(text or "")]


def _function(head, body):
    m = re.fullmatch(r"\.(entry|func)\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\((.*?)\))?[^()]*", head, re.S)
    if not m:
        raise PtxError("cannot read the function: " + head)
    f = Function(m[3], m[1] == "entry", _params(m[4]), _params(m[2]))
    for p in f.params + f.returns:
        f.variables[p.name] = p
    _Body(f).read(body)
    return f


def parse(text):
    """A module of PTX text."""
    text = re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.S)
    text = re.sub(r"^\s*\.(loc|file)\s[^\n]*$", "", text, flags=re.M)
    functions, variables, at = {}, {}, 0
    target = re.search(r"^\s*\.target\s+([\w, ]+)", text, re.M)
    word = re.compile(r"\s*\.(version|target|address_size|section|visible|weak|extern|common|func|entry|global|const|shared)\b")
    while m := word.match(text, at):
        kind, start = m[1], m.start(1) - 1
        if kind in ("version", "target", "address_size"):
            at = text.index("\n", start)
        elif kind in ("visible", "weak", "extern", "common"):
            at = m.end()
        elif kind == "section":
            at = _matching(text, text.index("{", start))
        elif kind in ("func", "entry"):
            brace, semicolon = text.find("{", start), text.find(";", start)
            if semicolon >= 0 and (brace < 0 or semicolon < brace):
                at = semicolon + 1
                continue
            at = _matching(text, brace)
            f = _function(text[start:brace].strip(), text[brace + 1:at - 1])
            functions[f.name] = f
        else:
            at = text.index(";", start) + 1
            v = _variable(text[start + len(kind) + 1:at - 1].strip(), kind)
            variables[v.name] = v
    if text[at:].strip():
        raise PtxError("cannot read: " + text[at:].strip()[:80])
    return Module(functions, variables, target[1].strip() if target else "")
