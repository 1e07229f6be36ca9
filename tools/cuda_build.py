# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels for tests and gates: PTX, machine code with ptxas's remarks, its listing. What is made is kept in
build/cuda-gates while neither source nor compiler nor this file with its flags changes, so that the tests of all builds share
it."""
import concurrent.futures
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[1])
KEPT = SOURCE / "build" / "cuda-gates"
TOOLS = pathlib.Path(os.environ.get("CUDA_TOOLS") or SOURCE / "build" / "cuda-tools")
PACKAGES = ("nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm")  # newer ones read older machine code


class Missing(Exception):
    """A tool that is not here; the message says how to get it."""


def toolkit(tool):
    """The path of nvcc or ptxas."""
    roots = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")] + [str(SOURCE / "build/toolkit"), "/usr/local/cuda"]
    for path in [os.path.join(r, "bin", tool) for r in roots if r] + [shutil.which(tool) or ""]:
        if os.access(path, os.X_OK):
            return path
    raise Missing(f"no {tool}: install the CUDA toolkit, or run tools/setup.sh toolkit")


def cuobjdump():
    """The lister of machine code, brought from PyPI on first use. It wants nvdisasm on its path."""
    for folder in (pathlib.Path(toolkit("ptxas")).parent, TOOLS / "nvidia/cu13/bin"):
        if os.access(folder / "cuobjdump", os.X_OK) and os.access(folder / "nvdisasm", os.X_OK):
            return folder / "cuobjdump"
    TOOLS.mkdir(parents=True, exist_ok=True)
    with open(TOOLS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (TOOLS / "nvidia/cu13/bin/cuobjdump").exists():
            p = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                                "--target", str(TOOLS), *PACKAGES], capture_output=True, text=True)
            if p.returncode:
                raise Missing(f"no cuobjdump, and pip could not bring {' and '.join(PACKAGES)}")
    for name in ("cuobjdump", "nvdisasm"):
        path = TOOLS / "nvidia/cu13/bin" / name
        if not path.exists():
            raise Missing(f"{path} is not in the packages {' and '.join(PACKAGES)}")
        path.chmod(0o755)
    return TOOLS / "nvidia/cu13/bin/cuobjdump"


def kernel_sources():
    return sorted((SOURCE / "kernels/cuda").glob("*.cu"))


def included(path, seen=None):
    """The file and what it includes of this repository, in any order."""
    seen = set() if seen is None else seen
    if path not in seen and path.exists():
        seen.add(path)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            included(SOURCE / name, seen)
    return seen


def _key(source):
    compiler = pathlib.Path(toolkit("nvcc")).resolve()
    of_compiler = f"{compiler} {compiler.stat().st_mtime_ns}".encode() + pathlib.Path(__file__).read_bytes()
    return hashlib.sha256(of_compiler + b"".join(p.read_bytes() for p in sorted(included(source)))).hexdigest()[:16]


def _kept(source, what, make):
    """The path of a file that make(path) writes, made once per state of the sources."""
    KEPT.mkdir(parents=True, exist_ok=True)
    stem, key = f"{source.stem}.{what}", _key(source)
    path = KEPT / f"{stem}.{key}"
    with open(KEPT / f"{stem}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in KEPT.glob(stem + ".*"):
                if not old.name.endswith(".lock"):
                    old.unlink()
            new = KEPT / f"{stem}.new"
            make(new)
            new.rename(path)
    return path


def _run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{p.stdout}{p.stderr}")
    return p.stdout + p.stderr


def compile_ptx(source, arch, out):
    """With the flags that matter of the build's."""
    _run(toolkit("nvcc"), "-std=c++17", "-O3", "-lineinfo", f"-arch=compute_{arch}", "-ptx", f"-I{SOURCE}", source, "-o", out)


def ptx(source, arch=90):
    return _kept(source, f"{arch}.ptx", lambda out: compile_ptx(source, arch, out))


def cubin(source, arch, ptx_arch=None):
    """(machine code, what ptxas -v said). From the PTX of the same architecture, as the build makes it, or of an older one,
    as a driver would."""
    base = ptx(source, ptx_arch or arch)

    def make(out):
        said = _run(toolkit("ptxas"), "-v", "-lineinfo", f"-arch=sm_{arch}", base, "-o", out)
        out.with_suffix(".remarks").write_text(said)
        out.with_suffix(".remarks").rename(KEPT / f"{source.stem}.{arch}.remarks")
    path = _kept(source, f"{arch}.cubin", make)
    return path, (KEPT / f"{source.stem}.{arch}.remarks").read_text()


def listing(source, arch):
    """cuobjdump's listing of the machine code."""
    code, _ = cubin(source, arch)
    dump = cuobjdump()

    def make(out):
        environment = {**os.environ, "PATH": f"{dump.parent}:{os.environ.get('PATH', '')}"}
        p = subprocess.run([dump, "-sass", code], capture_output=True, text=True, env=environment)
        if p.returncode or "Function :" not in p.stdout:
            raise RuntimeError(f"cuobjdump {code}: {p.stdout[:500]}{p.stderr[:500]}")
        # Of each instruction its address and text; not the encoding, which is most of the listing.
        lines = [line.split("/* 0x")[0].rstrip() for line in p.stdout.splitlines()]
        out.write_text("\n".join(line for line in lines if line.strip()) + "\n")
    return _kept(source, f"{arch}.sass", make).read_text()


def in_parallel(function, items):
    """Results in order; two at a time, since each is a compiler."""
    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2))) as pool:
        return list(pool.map(function, items))
