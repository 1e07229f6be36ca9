#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frag_maps.tsv is what frag_maps.cpp makes of CuTe's traits. Skipped without CuTe's headers: `pip install --no-deps
nvidia-cutlass` brings them, or CUTLASS_INCLUDE names their folder."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(os.environ.get("SOURCE_DIR", ".")) / "tests/golden"


def cutlass():
    found = importlib.util.find_spec("cutlass_library")
    folders = [os.environ.get("CUTLASS_INCLUDE")]
    folders += [Path(p) / "source/include" for p in (found.submodule_search_locations or [])] if found else []
    return next((f for f in folders if f and (Path(f) / "cute/atom/mma_traits_sm80.hpp").exists()), None)


def cuda():
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), HERE.parents[1] / "build/toolkit", "/usr/local/cuda"]
    return next((Path(r) / "include" for r in roots if r and (Path(r) / "include/cuda_runtime.h").exists()), None)


def main():
    missing = [what for what, found in (("CuTe's headers", cutlass()), ("CUDA's headers", cuda()), ("g++", shutil.which("g++")))
               if not found]
    if missing:
        print("skipped: no " + ", no ".join(missing), file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "frag_maps"
        subprocess.run(["g++", "-std=c++17", "-w", "-isystem", str(cutlass()), "-isystem", str(cuda()), "-isystem",
                        str(cuda() / "cccl"), str(HERE / "frag_maps.cpp"), "-o", str(program)], check=True)
        made = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert made == (HERE / "frag_maps.tsv").read_text(encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
