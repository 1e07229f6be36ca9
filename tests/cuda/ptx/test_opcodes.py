# SPDX-License-Identifier: Apache-2.0
"""Every opcode in every kernel's PTX is one that the interpreter has: what it lacks is named, never skipped. And every kernel
waits for its predecessor."""
# ctest: timeout 600
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import machine  # noqa: E402
from ptx.harness import kernels, skip  # noqa: E402

found = kernels()
if not found:
    skip("no kernels")
failed, opcodes = False, collections.Counter()
for module in {id(m): m for m in found.values()}.values():
    for sentence in machine.unsupported(module):
        print("the interpreter lacks this:", sentence)
        failed = True
    for f in module.functions.values():
        opcodes.update(".".join([i.op, *i.mods]) for i in f.code)
        if f.is_entry and not any(i.op == "griddepcontrol" and i.mods == ["wait"] for i in f.code):
            print(f"{f.name} never waits for the kernel before it (pdl_wait)")
            failed = True
print(f"{len(found)} kernels, {sum(opcodes.values())} instructions, {len(opcodes)} opcodes with their modifiers")
if "-v" in sys.argv:
    for name, n in opcodes.most_common():
        print(f"{n:8} {name}")
sys.exit(1 if failed else 0)
