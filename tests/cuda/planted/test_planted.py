# SPDX-License-Identifier: Apache-2.0
"""The detectors detect: each mistake of planted.cu must be found by the builds that its row names, and the right kernels by none.

plain: clang++; asan: g++ with AddressSanitizer and UndefinedBehaviorSanitizer; tsan: g++ with ThreadSanitizer;
ucontext: g++, with the stack switch of other processors than x86-64."""
# ctest: timeout 400
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("BUILD_DIR", "build")) / "planted"
SIMT = SOURCE / "tests/cuda/simt"
EMULATOR = [SIMT / f"{name}.cpp" for name in ("fiber", "memory", "operations", "record", "simt")]

CLEAN, DISAGREE, REFUSED, ADDRESS, UNDEFINED, RACE = range(6)
SIGNS = {  # exit status, or None for any but 0; a part of what is said
    CLEAN: (0, "agree"),
    DISAGREE: (3, "disagree"),
    REFUSED: (97, "simt: "),
    ADDRESS: (None, "ERROR: AddressSanitizer"),
    UNDEFINED: (None, "runtime error: "),
    RACE: (66, "data race"),
}
# What each build says; None: it finds nothing of that kind, or not surely.
EXPECTED = {  # name: (plain, asan, tsan)
    "right_norm": (CLEAN, CLEAN, CLEAN),
    "norm_first_barrier_gone": (DISAGREE, DISAGREE, RACE),
    "norm_second_barrier_gone": (DISAGREE, DISAGREE, RACE),
    "right_exchange": (CLEAN, CLEAN, CLEAN),
    "exchange_without_syncwarp": (DISAGREE, DISAGREE, RACE),
    "exchange_ordered_by_shuffle": (None, None, RACE),
    "shared_never_written": (DISAGREE, None, None),
    "dynamic_shared_never_written": (DISAGREE, DISAGREE, DISAGREE),
    "shuffle_in_a_branch": (REFUSED, REFUSED, REFUSED),
    "shuffle_outside_its_mask": (REFUSED, REFUSED, REFUSED),
    "shuffle_meets_vote": (REFUSED, REFUSED, REFUSED),
    "static_shared_overrun": (None, UNDEFINED, None),
    "dynamic_shared_overrun": (None, ADDRESS, None),
    "global_overrun": (None, ADDRESS, None),
    "misaligned_load": (None, UNDEFINED, None),
    "misaligned_load_wrapped": (REFUSED, REFUSED, REFUSED),
    "constant_load_of_what_is_written": (REFUSED, REFUSED, REFUSED),
    "global_load_of_shared": (REFUSED, REFUSED, REFUSED),
    "right_ring": (CLEAN, CLEAN, CLEAN),
    "ring_with_one_barrier": (DISAGREE, DISAGREE, RACE),
    "right_count": (CLEAN, CLEAN, CLEAN),
    "count_not_atomic": (None, None, RACE),
    "barrier_count_differs_by_warp": (REFUSED, REFUSED, REFUSED),
    "half_block_skips_a_barrier": (REFUSED, REFUSED, REFUSED),
    "different_barriers_meet": (REFUSED, REFUSED, REFUSED),
    "right_copies": (CLEAN, CLEAN, CLEAN),
    "copy_wait_too_weak": (DISAGREE, DISAGREE, None),
    "copy_stage_reused_early": (DISAGREE, DISAGREE, RACE),
}
BUILDS = {  # name: compiler, flags of all, flags of planted.cu, flags of the emulator
    "plain": ("clang++", ["-O2"], [], []),
    "asan": ("g++", ["-O1", "-g", "-fsanitize=address,undefined"], [], []),
    "tsan": ("g++", ["-O1", "-g"], ["-fsanitize=thread"], ["-DSIMT_TSAN"]),
    "ucontext": ("g++", ["-O1", "-DSIMT_UCONTEXT"], [], []),
}


def expected(build, kernel):
    plain, asan, tsan = EXPECTED[kernel]
    if build == "ucontext":  # as asan, without what only sanitizers see
        return asan if asan in (CLEAN, DISAGREE, REFUSED) else None
    return {"plain": plain, "asan": asan, "tsan": tsan}[build]



def cuda_include():
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), SOURCE / "build/toolkit", "/usr/local/cuda"]
    for root in filter(None, roots):
        if (Path(root) / "include/cuda_runtime_api.h").exists():
            return Path(root) / "include"
    return None


def build(name, include):
    compiler, common, watched, emulator = BUILDS[name]
    flags = ["-std=c++17", "-DBENCH_SIMT", "-fno-strict-aliasing", "-ffp-contract=off", f"-I{SOURCE}", "-isystem", str(include)]
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in EMULATOR + [SOURCE / "tests/cuda/planted/planted.cu"]:
        extra = watched if source.suffix == ".cu" else emulator
        objects.append(folder / (source.stem + ".o"))
        subprocess.run([compiler, *flags, *common, *extra, "-x", "c++", "-c", str(source), "-o", str(objects[-1])], check=True)
    program = folder / "planted"
    subprocess.run([compiler, *common, *watched, *map(str, objects), "-o", str(program)], check=True)
    return program


def outcome(program, kernel):
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="halt_on_error=1",
                       TSAN_OPTIONS="halt_on_error=1:exitcode=66:atexit_sleep_ms=0")
    environment.pop("SIMT_RECORD", None)
    done = subprocess.run([str(program), kernel], env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def check(name, program):
    listed = subprocess.run([str(program)], capture_output=True, text=True).stdout.split()
    wrong = [f"{name}: planted.cu and EXPECTED differ: {set(listed) ^ set(EXPECTED)}"] if set(listed) != set(EXPECTED) else []
    for kernel in listed:
        sign = expected(name, kernel)
        if sign is None:
            continue
        status, said = outcome(program, kernel)
        wanted, words = SIGNS[sign]
        right = (status == wanted if wanted is not None else status != 0) and words in said
        if sign == REFUSED:
            right = right and f"kernel {kernel} block (0, 0, 0) thread " in said and "seed " in said
        if not right:
            wrong.append(f"{name}: {kernel}: exit {status}, wanted {wanted} and '{words}'; it said:\n{said[:1500]}")
    return wrong


def main():
    include = cuda_include()
    if not include:
        print("skipped: no CUDA headers", file=sys.stderr)
        return 77
    there = [name for name in BUILDS if shutil.which(BUILDS[name][0])]
    if len(there) < len(BUILDS):
        print(f"skipped: needs clang++ and g++, found {there}", file=sys.stderr)
        return 77
    with ThreadPoolExecutor(2) as pool:
        programs = dict(zip(there, pool.map(lambda name: build(name, include), there)))
        wrong = sum(pool.map(lambda name: check(name, programs[name]), there), [])
    for text in wrong:
        print(text)
    print(f"{len(EXPECTED)} kernels in {len(there)} builds, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
