# SPDX-License-Identifier: Apache-2.0
"""make bench-gate: how often the gate is wrong on this machine, each figure beside its goal; raw files are kept in OUT.

   gate_rates.py BENCH BENCH_GATE OUT [PART ...]
   Parts, in this order where none is named:
     record    rounds of the program against itself, of five kinds of rows
     loaded    the same while one core is half taken
     resample  gates of 20 rows drawn from these, judged by the program's own functions
     live      gates of 20 rows: of no change, of one row slower by 5 % and by 2 %, of all rows slower by 2 %
     private   fresh pairs whose threads are free and whose pages are their own, of 4 KiB
     spread    between workers, of what was recorded
     peers     what other rules say of the same samples
   What lies in OUT is not measured again, so that a part goes on where it was ended.
   BENCH_GATE_SHARE  of everything, 1 by default, which takes hours
   BENCH_GATE_MOST   measurements of this call at most, where others want the machine in between"""
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 30  # of a file
SPIN = 4400000  # steps of gate_live.toml and gate_all.toml
LIVE = {  # protocol, settings of side b, gates; the first says what is so, so that equal code is no answer
    "no change": ("gate_live.toml", f"workload.work={SPIN}", 30),
    "one row +5 %": ("gate_live.toml", f"workload.work={SPIN * 105 // 100}", 60),
    "one row +2 %": ("gate_live.toml", f"workload.work={SPIN * 102 // 100}", 30),
    "all rows +2 %": ("gate_all.toml", f"workload.work={SPIN * 102 // 100} workload.flops={51 << 22} "
                                       "workload.bytes=51 MiB workload.steps=51", 30)}
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
        self.process = subprocess.Popen([sys.executable, __file__, "half", str(core), "7200"])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def scaled(n):
    return max(1, math.ceil(n * share))


def ask(gate, *words):
    """What bench_gate says."""
    return json.loads(subprocess.run([gate, *map(str, words)], check=True, capture_output=True, text=True).stdout)


def of(gate, k, n):
    lo, hi = ask(gate, "bound", k, n)
    return f"{k} of {n}, {k / n:.3%} [{lo:.3%}, {hi:.3%}]"


def files(out, name):
    return sorted(out.glob(f"{name}-[0-9][0-9][0-9].h5"))


def measure(target, command):
    """Runs it unless its file is there or this call has done enough; what it said, or None."""
    global left
    if target.exists() or not left:
        return None
    left -= 1
    part = target.with_name("part.h5")
    for old in (part, part.with_suffix(".journal")):
        old.unlink(missing_ok=True)
    began = time.monotonic()
    ended = subprocess.run([*map(str, command(part))], capture_output=True, text=True)
    if ended.returncode not in (0, 1, 3, 5) or not part.exists():
        sys.exit(ended.stderr)
    took = time.monotonic() - began
    print(f"{target.name}: {took:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    part.rename(target)
    return ended.stdout, took


def record(bench, gate, out, name, rounds, *sets):
    """Files of ROUNDS rounds each of a program against itself, until there are as many rounds."""
    for k in range(math.ceil(scaled(rounds) / ROUNDS)):
        measure(out / f"{name}-{k:03}.h5",
                lambda part, k=k: [gate, "record", HERE / "gate_record.toml", ROUNDS, k + 1, part, bench, *sets])


def part_record(bench, gate, out):
    record(bench, gate, out, "record", 600)


def part_loaded(bench, gate, out):
    with Load():
        record(bench, gate, out, "loaded", 300)


def shares(tally):
    rows = sum(tally["verdicts"].values())
    return ", ".join(f"{n / rows:.1%} {verdict}" for verdict, n in tally["verdicts"].items() if n)


def part_resample(bench, gate, out):
    for name in ("record", "loaded"):
        recorded = files(out, name)
        if not recorded:
            continue
        gates = scaled(20000)
        tally = ask(gate, "judge", gates, 1, 0.01, 0, 0, *recorded)
        print(f"{name}: {tally['recorded']} rounds; rows {shares(tally)}; {tally['rounds'] / gates:.1f} rounds a gate")
        print(f"  gates 'slower'               {of(gate, tally['red'], gates)}  goal 0.5 %")
        tally = ask(gate, "judge", gates, 2, 0, 0, 0, *recorded)
        print(f"  rows 'slower', tolerance 0   {of(gate, tally['verdicts']['slower'], 20 * gates)}  goal 0.025 %")
        gates = scaled(2000)
        for what, one, every in (("one row +5 %", 0.05, 0), ("one row +2 %", 0.02, 0), ("all rows +2 %", 0, 0.02)):
            tally = ask(gate, "judge", gates, 3, 0.01, one, every, *recorded)
            found = tally["found"] if one else tally["all"]["slower"]
            print(f"  {what:13} found          {of(gate, found, gates)}"
                  + (f"; another row 'slower' in {tally['others']}" if one else ""))
            if one:
                kinds = [f"{kind} {seen / n:.0%}" for kind, (seen, n) in tally["kinds"].items() if n]
                print("    of " + ", ".join(kinds))


def slower(row):
    """Also where it was taken back, since both sides are the same machine code."""
    return row["verdict"] == "slower" or "same machine code" in row.get("reason", "")


def part_live(bench, gate, out):
    goals = {"no change": "goal 0", "one row +5 %": "goal 57 of 60", "one row +2 %": "to be reported",
             "all rows +2 %": "goal 28 of 30"}
    for what, (protocol, settings, gates) in LIVE.items():
        name = "live-" + "".join(c if c.isalnum() else "-" for c in what)
        for k in range(scaled(gates)):
            target = out / f"{name}-{k:03}.h5"
            seed = f"measure.seed={k + 1}"
            said = measure(target, lambda part, seed=seed: [bench, "ab", HERE / protocol, "--b", settings, "-q",
                                                            "--set", seed, "-f", "json", "-o", part])
            if said:
                target.with_suffix(".json").write_text(json.dumps({"seconds": said[1], **json.loads(said[0])}))
        gates = [json.loads(path.read_text()) for path in sorted(out.glob(f"{name}-[0-9][0-9][0-9].json"))]
        if not gates:
            continue
        found = others = 0
        for g in gates:
            named = {row["row"] for row in g["rows"] if slower(row)}
            named |= {"all rows"} if "all" in g and slower(g["all"]) else set()  # absent where rows have no numbers
            wanted = {"no change": set(), "all rows +2 %": {"all rows"}}.get(what, {"spin"})
            found += bool(named & wanted if wanted else named)
            others += bool(named - wanted) and bool(wanted)
        rows = [row["verdict"] for g in gates for row in g["rows"]]
        seconds = [g["seconds"] for g in gates]
        print(f"{what:13} 'slower' {of(gate, found, len(gates))}  {goals[what]}"
              + (f"; others 'slower' in {others}" if what.startswith("one") else ""))
        print("  rows " + ", ".join(f"{rows.count(v) / len(rows):.1%} {v}" for v in sorted(set(rows)))
              + f"; {sum(seconds) / len(gates):.0f} s a gate (goal 60 where nothing changed), at most "
              f"{max(seconds):.0f} (goal 90)")


def part_private(bench, gate, out):
    """A worker that is not told of the memory that both sides share: the last two words that it is started with."""
    program = out / "private"
    program.write_text(f'#!/bin/sh\nexec {bench} "$1" "$2" "$3" "$4" "$5" "$6" "$7"\n')
    program.chmod(0o755)
    record(program, gate, out, "private", 300, "device.pin=false", "device.huge_pages=false")


def part_spread(bench, gate, out):
    for name in ("record", "loaded", "private"):
        for row in ask(gate, "spread", *files(out, name))["rows"] if files(out, name) else []:
            print(f"{name:8} {row['name']:12} {row['pairs']:4} pairs: a round's ratio {row['s']:.2%}, by its median "
                  f"deviation {row['usual']:.2%}; between workers {row['workers']:.2%}"
                  + ("  goal 0.5 %" if name == "record" else ""))


def part_peers(bench, gate, out):
    for name in ("record", "loaded", "private"):
        for lag, how in ((0, "in turns"), (1, "one after the other")):
            for slowdown in (0, 0.05) if files(out, name) else ():
                said = ask(gate, "peers", scaled(2000), lag, slowdown, *files(out, name))
                share_of = {key: said[key] / said[key.split("_")[1]] for key in said if "_" in key}
                print(f"{name:8} {how:18} {'+5 % on all' if slowdown else 'no change':11}: 'slower' by the U test of 9 "
                      f"repetitions {share_of['u_rows']:.1%} of rows, {share_of['u_gates']:.1%} of gates of 20; by 5 % "
                      f"of means {share_of['plain_rows']:.1%}, {share_of['plain_gates']:.1%}")


def main():
    parts = {name[5:]: part for name, part in globals().items() if name.startswith("part_")}
    if sys.argv[1:2] == ["half"]:
        half_load(int(sys.argv[2]), float(sys.argv[3]))
        return
    bench, gate, out = (Path(word).resolve() for word in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[4:] or parts:
        if name not in parts:
            sys.exit(f"gate_rates.py: '{name}' is none of {', '.join(parts)}")
        print(f"== {name}, at a share of {share:g}", flush=True)
        parts[name](bench, gate, out)


main()
