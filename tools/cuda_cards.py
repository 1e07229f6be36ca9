# SPDX-License-Identifier: Apache-2.0
"""The cards of all kernels, from kernels/cuda/OP.card.h through the C preprocessor: what each kernel promises."""
import ast
import operator
import os
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[1])


@dataclass
class Card:  # members as in kernels/cuda/kernel.h
    op: str
    name: str
    type: str
    d: int
    threads: int
    min_blocks: int
    regs_max: int
    smem: int
    stages: int
    stage_bytes: int
    ldg128_min: int
    hmma_min: int
    local_pct: float
    proof: str


_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift,
               ast.Div: operator.floordiv, ast.USub: operator.neg}


def _number(text):
    """A constant expression of C."""
    def value(node):
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp):
            return _OPERATIONS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return _OPERATIONS[type(node.op)](value(node.operand))
        raise ValueError(f"'{text}' is no number")
    return value(ast.parse(text.strip(), mode="eval"))


def _rows(header):
    op = header.name.removesuffix(".card.h")
    program = f'#include "kernels/cuda/{header.name}"\n#define ROW(...) @ROW __VA_ARGS__ @END\n{op.upper()}_CARDS(ROW)\n'
    compiler = os.environ.get("CC") or next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), "cc")
    p = subprocess.run([compiler, "-E", "-P", "-x", "c", f"-I{SOURCE}", "-"], input=program, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{header}: {p.stderr}")
    for row in p.stdout.split("@ROW")[1:]:
        values = [v.strip() for v in row.split("@END")[0].replace("\n", " ").split(",", 12)]
        name, kind, *numbers, proof = values
        yield Card(op, name, kind, *[_number(n) for n in numbers], ast.literal_eval(proof))


def cards():
    return [c for h in sorted((SOURCE / "kernels/cuda").glob("*.card.h")) for c in _rows(h)]


if __name__ == "__main__":
    for c in cards():
        print(c)
