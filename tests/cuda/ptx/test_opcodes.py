# SPDX-License-Identifier: Apache-2.0
"""Every opcode in every kernel's PTX is one that the interpreter has: what it lacks is named, never skipped. And every kernel
waits for its predecessor."""
# ctest: timeout 300
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import machine, parse  # noqa: E402
from ptx.harness import kernel_ptx, kernel_sources, skip  # noqa: E402

sources = kernel_sources()
if not sources:
    skip("no kernels")
failed, n_kernels, opcodes = False, 0, collections.Counter()
for source in sources:
    module = parse.parse(kernel_ptx(source).read_text())
    for sentence in machine.unsupported(module):
        print(f"{source.name}: the interpreter lacks this: {sentence}")
        failed = True
    for f in module.functions.values():
        opcodes.update(".".join([i.op, *i.mods]) for i in f.code)
        n_kernels += f.is_entry
        if f.is_entry and not any(i.op == "griddepcontrol" and i.mods == ["wait"] for i in f.code):
            print(f"{source.name}: {f.name} never waits for the kernel before it (pdl_wait)")
            failed = True
print(f"{n_kernels} kernels, {sum(opcodes.values())} instructions, {len(opcodes)} opcodes with their modifiers")
if "-v" in sys.argv:
    for name, n in opcodes.most_common():
        print(f"{n:8} {name}")
sys.exit(1 if failed else 0)
