# SPDX-License-Identifier: Apache-2.0
"""make bench-gate: how often the gate is wrong on this machine, each figure beside its goal; raw files are kept in OUT.

   gate_rates.py BENCH BENCH_GATE OUT [PART ...]
   Parts, in this order where none is named: record, loaded. What lies in OUT is not measured again, so
   that a part goes on where it was ended.
   BENCH_GATE_SHARE  of everything, 1 by default, which takes hours
   BENCH_GATE_MOST   measurements of this call at most, where the machine is wanted by others in between"""
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 30  # of a file
share = float(os.environ.get("BENCH_GATE_SHARE", 1))
left = int(os.environ.get("BENCH_GATE_MOST", 10 ** 9))


def half_load(core, seconds):
    """Half of a core's time until the deadline or until its parent is gone, whichever comes first."""
    os.sched_setaffinity(0, {core})
    parent, end = os.getppid(), time.monotonic() + seconds
    while time.monotonic() < end and os.getppid() == parent:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        time.sleep(0.02)


class Load:
    """One core of those that we may use is half taken."""

    def __enter__(self):
        core = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, __file__, "half", str(core), "1200"])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def scaled(n):
    return max(1, math.ceil(n * share))


def ask(gate, *words):
    """What bench_gate says."""
    return json.loads(subprocess.run([gate, *map(str, words)], check=True, capture_output=True, text=True).stdout)


def of(k, n, gate):
    lo, hi = ask(gate, "bound", k, n)
    return f"{k} of {n}, {k / n:.3%} [{lo:.3%}, {hi:.3%}]"


def files(out, name):
    return sorted(out.glob(f"{name}-[0-9]*.h5"))


def record(bench, gate, out, name, rounds, *sets):
    """Files of ROUNDS rounds each of a program against itself, until there are as many rounds."""
    global left
    for k in range(math.ceil(rounds / ROUNDS)):
        target = out / f"{name}-{k:03}.h5"
        if target.exists():
            continue
        if not left:
            return
        left -= 1
        began, part = time.monotonic(), out / f"{name}-{k:03}.part.h5"
        part.unlink(missing_ok=True)
        part.with_suffix(".journal").unlink(missing_ok=True)
        ended = subprocess.run([gate, "record", HERE / "gate_record.toml", str(ROUNDS), str(k + 1), part, bench, *sets],
                               capture_output=True, text=True)
        if ended.returncode not in (0, 1, 5) or not part.exists():
            sys.exit(ended.stderr)
        part.rename(target)
        print(f"{target.name}: {ROUNDS} rounds in {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)


def part_record(bench, gate, out):
    record(bench, gate, out, "record", scaled(600))


def part_loaded(bench, gate, out):
    with Load():
        record(bench, gate, out, "loaded", scaled(300))


PARTS = {"record": part_record, "loaded": part_loaded}


def main():
    if sys.argv[1:2] == ["half"]:
        half_load(int(sys.argv[2]), float(sys.argv[3]))
        return
    bench, gate, out = (Path(word).resolve() for word in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[4:] or PARTS:
        if name not in PARTS:
            sys.exit(f"gate_rates.py: '{name}' is none of {', '.join(PARTS)}")
        print(f"== {name}, at a share of {share:g}", flush=True)
        PARTS[name](bench, gate, out)


main()
