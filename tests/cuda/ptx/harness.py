# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: cases by name, programs from a few lines of PTX, nvcc."""
import os
import pathlib
import sys
import traceback

import numpy as np

from . import machine, memory, parse

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
sys.path.insert(0, str(SOURCE / "tools"))
import cuda_build  # noqa: E402

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<16>; .reg .b16 %rs<32>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<64>; .reg .f64 %fd<64>;
    ld.param.u64 %rd0, [k_param_0]; ld.param.u64 %rd1, [k_param_0+8]; mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2; add.s64 %rd4, %rd0, %rd2;"""
IN, OUT = 0x10000, 0x7F0000001000  # the latter as on the host


def program(body, before=""):
    """A kernel k of (in, out): rd0, rd1; r0 is the thread, rd4 and rd3 its words in them."""
    return (HEAD + before + ".visible .entry k(.param .align 8 .b8 k_param_0[16])\n{\n" + REGISTERS + "\n" + body + "\nret;\n}\n")


def run(body, given=None, n_out=32, threads=32, blocks=1, shared=0, before="", **options):
    """The out words (u32) of the program on these in bytes."""
    given = np.zeros(n_out, np.uint32) if given is None else np.ascontiguousarray(given)
    memories = memory.Global([(IN, given.tobytes()), (OUT, bytes(4 * n_out))])
    arguments = np.array([IN, OUT], np.uint64).tobytes()
    machine.launch(parse.parse(program(body, before)), "k", (blocks, 1, 1), (threads, 1, 1), shared, arguments, memories,
                   **options)
    return memories.bytes_at(OUT, 4 * n_out).view(np.uint32).copy()


def fails(words, function, *arguments, **options):
    """Demands that a call is refused with these words."""
    try:
        function(*arguments, **options)
    except parse.PtxError as e:
        assert words in str(e), f"expected '{words}' in: {e}"
        return
    raise AssertionError(f"nothing was found; expected: {words}")


def main(module_globals):
    """Runs every test_* of a script (or those named on its command line); all of them, also after a failure."""
    names = sys.argv[1:] or [n for n in module_globals if n.startswith("test_")]
    failed = 0
    for name in names:
        try:
            module_globals[name]()
        except Exception:  # noqa: BLE001  (a test that breaks is a failure like any other)
            failed += 1
            print(f"FAILED {name}")
            traceback.print_exc(limit=-2)
    print(f"{len(names) - failed} of {len(names)} tests passed")
    sys.exit(1 if failed else 0)


def skip(reason):
    print("SKIPPED:", reason, file=sys.stderr)
    sys.exit(77)


def kernels():
    """{kernel: its module} of all .cu files, by nvcc; the test is skipped without one."""
    found = {}
    try:
        texts = cuda_build.in_parallel(lambda source: cuda_build.ptx(source).read_text(), cuda_build.kernel_sources())
    except cuda_build.Missing as e:
        skip(e)
    for text in texts:
        module = parse.parse(text)
        found.update({f.name: module for f in module.functions.values() if f.is_entry})
    return found
