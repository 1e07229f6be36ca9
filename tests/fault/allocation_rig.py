# SPDX-License-Identifier: Apache-2.0
"""Every nth allocation fails, once or from there on, in the supervisor or in its workers: one sentence and exit 2, or a
row's state; never a signal, never a half-written file, and what was measured is resumed."""
import atexit, os, pathlib, random, shutil, struct, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py

from fault_rig import BENCH, Folder, VISIT, check, frames, visits_of, whole_file

LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", "")) / "tests" / "libfail_alloc.so"
if not LIBRARY.exists():
    print("SKIPPED: this build has no library that fails allocations (sanitizers have their own allocator)")
    sys.exit(77)
# LD_PRELOAD parts its words at spaces, which the checkout's path may have.
PRELOAD = pathlib.Path(tempfile.mkdtemp(prefix="fail_alloc.")) / LIBRARY.name
PRELOAD.symlink_to(LIBRARY.resolve())
atexit.register(shutil.rmtree, PRELOAD.parent, ignore_errors=True)

MEASURE = """
[measure]
stop = "samples"
samples = 3
warmups = 1
warmup_budget = "1 ms"
rounds = 5
"""
FAKE = """
title = "fault"
[workload]
name = "null"
[device]
kind = "fake"
[[sweep]]
device.seed = [1, 2]
""" + MEASURE
CPU = """
title = "fault"
[workload]
name = "generate"
prompt = 3
tokens = 2
[model]
shape = "tiny"
[device]
kind = "cpu"
threads = 2
[[sweep]]
workload.batch = [1, 2]
""" + MEASURE
VISITS = 5 * 3  # rounds x (2 points and the control)
EXITS = {0, 2, 3}
# No library is left that dies in our own process for want of memory: HDF5 does (H5I_register calls exit), in its child.


def environment(who, mode, n, count=None):
    order = {"LD_PRELOAD": str(PRELOAD), "FAIL_ALLOC": f"{who} {mode} {n}"}
    return {**os.environ, **order, **({"FAIL_ALLOC_COUNT": str(count)} if count else {})}


def ended_well(code, err, *words):
    """No signal, and whoever fails says why."""
    check(code in EXITS, "exit", code, *words, err)
    check(code != 2 or err.strip(), "exit 2 without a word", *words)
    check(not any(word in err for word in ("terminate called", "Assertion", "HDF5-DIAG")), "not our words", *words, err)


class Case:
    """A command that is given a folder, and what must hold of the folder afterwards."""

    def __init__(self, who, words, text=FAKE, before=None, runs=False):
        self.who, self.words, self.text, self.before, self.runs = who, words, text, before, runs

    def prepare(self, folder):
        for path in self.before or ():
            shutil.copy(path, folder.path)

    def count(self):
        """Allocations of an undisturbed run."""
        with Folder(text=self.text) as f:
            self.prepare(f)
            counter = f.path / "count"
            counter.write_bytes(bytes(8))
            code, out, err = f.run(*self.words, env=environment(self.who, "once", 0, counter))
            check(code == 0, *self.words, code, err)
            return struct.unpack("<q", counter.read_bytes())[0]

    def once(self, mode, n):
        words = (*self.words, "with", self.who, mode, n)
        with Folder(text=self.text) as f:
            self.prepare(f)
            code, out, err = f.run(*self.words, env=environment(self.who, mode, n))
            ended_well(code, err, *words)
            check(not list(f.path.glob("*.tmp*")), "left aside", *words, [p.name for p in f.path.iterdir()])
            if self.runs:
                self.whole(f, code, words, err)

    def whole(self, f, code, words, err):
        """Files are whole; what is missing is measured by resume, and nothing twice."""
        before = f.journal.read_bytes() if f.journal.exists() else b""
        kinds, _ = frames(f.journal)
        check(code != 0 or f.h5.exists(), "no file", *words, err)
        if f.h5.exists() and not before:
            check(whole_file(f.h5) == "yes", "not complete", *words, err)
        else:
            if kinds:
                code, out, err = f.resume()
            else:
                f.journal.unlink(missing_ok=True)
                code, out, err = f.run()
            check(code == 0, "afterwards", code, *words, err)
            check(f.h5.exists() and whole_file(f.h5) == "yes", "afterwards", *words, err)
        visits, states = visits_of(f.h5)
        check(visits == list(range(VISITS)), "visits", *words, visits)
        measures = self.who == "worker" or "--no-isolate" in self.words  # a visit may fail: its row says so
        check(measures or set(states) == {"ok"}, "states", *words, states)
        with h5py.File(f.h5, "r") as h5:
            reasons = [r.decode().rstrip("\0") for r in h5["visits/reason"][()]]
        for state, reason in zip(states, reasons):
            check(state == "ok" or (reason and "signal" not in reason), "reason", *words, state, reason)
        check(kinds.count(VISIT) <= VISITS, "visits twice", *words)


def cases(result):
    run = ("run", "fault.toml", "-o", "out.h5", "--no-plot", "-q")
    return [
        Case("supervisor", run, runs=True),
        Case("worker", run, runs=True),
        Case("worker", run, text=CPU, runs=True),
        Case("supervisor", (*run, "--no-isolate"), text=CPU, runs=True),
        Case("supervisor", ("show", "made.h5"), before=[result]),
        Case("supervisor", ("export", "made.h5", "-f", "json"), before=[result]),
        Case("supervisor", ("plot", "made.h5", "--ascii"), before=[result]),
        Case("supervisor", ("run", "fault.toml", "--dry-run"), text=CPU),
        Case("supervisor", ("list", "protocols")),
    ]


def moments(rng, n, times):
    """Spread over the whole range, and as many over its beginning, where our own allocations are."""
    some = [rng.randint(1, n) for _ in range((times + 1) // 2)]
    return some + [rng.randint(1, max(1, n // 20)) for _ in range(times // 2)]


def run(times):
    """times: moments of each case."""
    seed = int(os.environ.get("BENCH_SEED", 1))  # tools/check_seeds.sh draws others
    rng = random.Random(seed)
    print("seed", seed, flush=True)
    with Folder(text=FAKE) as made, ThreadPoolExecutor(2) as pool:
        code, out, err = made.run("run", "fault.toml", "-o", "made.h5", "--no-plot", "-q")
        check(code == 0, "run", code, err)
        jobs = []
        for case in cases(made.path / "made.h5"):
            n = case.count()
            print(case.who, *case.words, n, "allocations", flush=True)
            for i, at in enumerate(moments(rng, n, times)):
                jobs.append(pool.submit(case.once, "after" if i % 4 == 3 else "once", at))
        failures = [job.exception() for job in jobs if job.exception()]
    for failure in failures:
        print(failure)
    check(not failures, len(failures), "of", len(jobs), "failing allocations")
    print(len(jobs), "failing allocations survived")
