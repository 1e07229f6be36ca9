# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: cases by name, programs from a few lines of PTX, nvcc."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

import numpy as np

from . import machine, memory, parse

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
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


def nvcc():
    """The compiler's path; the test is skipped without one."""
    roots = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")] + [str(SOURCE / "build/toolkit"), "/usr/local/cuda"]
    for path in [os.path.join(r, "bin", "nvcc") for r in roots if r] + [shutil.which("nvcc") or ""]:
        if os.access(path, os.X_OK):
            return path
    return skip("no nvcc: install the CUDA toolkit, or run tools/setup.sh toolkit")


def kernel_ptx(source, arch=90):
    """nvcc's PTX of a .cu file, kept in the build folder while neither it nor a header changes: tests share it."""
    headers = sorted((SOURCE / "kernels").rglob("*.*h"))  # .h and .cuh
    key = hashlib.sha256(b"".join(p.read_bytes() for p in [source, *headers])).hexdigest()[:16]
    folder = pathlib.Path(os.environ.get("BUILD_DIR") or tempfile.gettempdir()) / "cuda-gates"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{source.stem}-{arch}-{key}.ptx"
    with open(folder / f"{source.stem}-{arch}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for old in folder.glob(f"{source.stem}-{arch}-*"):
                old.unlink()
            text = compile_ptx(source, arch, "-lineinfo")
            kept.with_suffix(".new").write_text(text)
            kept.with_suffix(".new").rename(kept)
    return kept


def compile_ptx(path, arch=90, *flags):
    """nvcc's PTX of a file, with the flags that matter of the build's."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "kernel.ptx"
        p = subprocess.run([nvcc(), "-std=c++17", "-O3", f"-arch=compute_{arch}", "-ptx", f"-I{SOURCE}", *flags, str(path),
                            "-o", str(out)], capture_output=True, text=True)
        if p.returncode:
            raise RuntimeError(f"nvcc {path}:\n{p.stderr}")
        return out.read_text()


def kernel_sources():
    return sorted((SOURCE / "kernels/cuda").glob("*.cu"))
