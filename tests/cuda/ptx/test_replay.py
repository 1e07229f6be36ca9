# SPDX-License-Identifier: Apache-2.0
"""What the emulated device launched, replayed from nvcc's PTX: the op tests run, must pass, and record their smallest launches
of every kernel, and each must leave the same memory, without conflicts of shared memory's banks (banks.py). Needs a build
with BENCH_CUDA=emu."""
# ctest: timeout 900
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ptx import banks, parse, replay  # noqa: E402
from ptx.harness import kernels, skip  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "."))


def record(folder):
    """Runs the op tests of an emulated build on its device; (records, how many tests failed)."""
    failed = 0
    # With these seeds the random cases take every kernel; a fresh seed each time would leave one out now and then.
    for name, seed in (("dense", 1), ("cache", 1), ("cache", 2), ("select", 1), ("pack", 1)):
        env = {**os.environ, "SIMT_RECORD": folder, "BENCH_SEED": str(seed), "BENCH_DEVICE": "cuda-emu"}
        p = subprocess.run([BUILD / "tests" / f"test_ops_{name}"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, errors="replace")
        if p.returncode:
            print(f"FAILED test_ops_{name} with BENCH_SEED={seed}: exit {p.returncode}\n{p.stdout}")
            failed += 1
    return sorted(pathlib.Path(folder).glob("*.rec")), failed


def conflicts(seen):
    """Prints what shared memory costs each kernel; how many pay more than they may."""
    failed = 0
    print("shared memory: cycles of two blocks of each launch, times what there would be without conflicts of banks")
    for name, of_kernel in sorted(seen.items()):
        total, found = of_kernel.total(), banks.broken(name, of_kernel)
        if total.least:
            print(f"{'FAILED' if found else '      '} {name:32} {total.cycles:9} {total.ratio:5.2f}")
        for sentence in found:
            print("   ", sentence)
        failed += bool(found)
    return failed


def replayed(path):
    """(kernel, sentences about what differs, its Banks) of a record."""
    launch, counts, begun, executed = replay.read(path.read_bytes()), banks.Banks(), time.monotonic(), 0
    if launch.name not in MODULES:
        return launch.name, [f"{launch}: no such kernel in nvcc's PTX"], counts
    try:
        found, executed = replay.replay(launch, MODULES[launch.name], banks=counts)
    except parse.PtxError as e:
        found = [str(e)]
    print(f"{'FAILED' if found else 'same  '} {launch} {executed} instructions, {time.monotonic() - begun:.2f} s", flush=True)
    return launch.name, found, counts


def main(paths, complete):
    """How many launches differ; where the records are complete, a kernel without any counts too."""
    failed, seen, started = 0, {}, time.monotonic()
    with multiprocessing.get_context("fork").Pool() as pool:
        for name, found, counts in pool.imap_unordered(replayed, paths):
            seen.setdefault(name, banks.Banks()).add(counts)
            for sentence in found:
                print(f"FAILED {name}: {sentence}")
            failed += bool(found)
    print(f"{len(paths)} launches of {len(seen)} kernels in {time.monotonic() - started:.0f} s, {failed} differ")
    failed += conflicts(seen)
    for name in sorted(set(MODULES) - set(seen)) if complete else ():
        print(f"FAILED {name}: no op test launches it on the emulated device")
        failed += 1
    return failed


if len(sys.argv) > 1:  # a folder of records
    MODULES = kernels()
    sys.exit(1 if main(sorted(pathlib.Path(sys.argv[1]).glob("*.rec")), False) else 0)
cache = BUILD / "CMakeCache.txt"
if not cache.exists() or "BENCH_CUDA:STRING=emu" not in cache.read_text():
    skip("no launches to replay: this build is not of BENCH_CUDA=emu")
MODULES = kernels()
with tempfile.TemporaryDirectory() as records:
    recorded, wrong = record(records)
    if not recorded:
        sys.exit("FAILED: the op tests recorded no launch")
    sys.exit(1 if main(recorded, True) + wrong else 0)
