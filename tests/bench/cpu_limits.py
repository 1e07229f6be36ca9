# SPDX-License-Identifier: Apache-2.0
"""make bench-cpu: one sitting of tests/bench/cpu.toml, each row as the share of its bound (the larger of MBU and MFU,
   against the ceilings of the same run) beside its goal; with peers, their times in turns with ours.

   cpu_limits.py BENCH OUT_FOLDER [PYTHON_OF_THE_PEERS]
   PYTHON_OF_THE_PEERS has llama-cpp-python (with numpy and gguf), or torch, or both."""
import csv
import io
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOALS = {  # row: least share of its bound
    "decode batch=1": 0.92, "decode batch=2": 0.8, "decode batch=4": 0.8, "decode batch=8": 0.8,
    "decode batch=16": 0.8, "decode batch=32": 0.8, "prefill type=bf16": 0.85, "prefill type=f32": 0.85,
    "gemv type=int8": 0.9, "gemv type=int4": 0.8, "gemv int8 inputs type=int8": 0.9,
    "gemv int8 inputs type=int4": 0.8, "attention prefill": 0.7, "attention decode layout=contiguous": 0.85}
PEERS = {  # what runs it, and row of cpu_beside.toml: least ratio of its time to ours
    "llama.cpp": ("llama_cpp", "peer_llama.py", {"prefill": 1.7, "decode batch=1": 1.05, "decode batch=8": 2, "decode batch=16": 2,
                                                 "decode batch=32": 2, "quantized type=int8 activation=int8": 1.05,
                                                 "quantized type=int4 activation=int8": 1.05}),
    "PyTorch": ("torch", "peer_torch.py", {f"linear type={t} m={m}": 1.1 for t in ("bf16", "f32") for m in (1, 8, 64, 512)})}


def rows_of(bench, result):
    """{row: {metric: median, in the unit that the export states}}, flags under "flags"."""
    text = subprocess.run([bench, "export", result, "--format", "tsv"], check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in csv.DictReader(io.StringIO(text), delimiter="\t"):
        row = rows.setdefault((line["case"] + " " + line["label"]).strip(), {"flags": line["flags"]})
        if line["median"]:
            row[line["metric"]] = float(line["median"])
            row["best " + line["metric"]] = float(line["max"])
    return rows


def run(bench, out, protocol):
    ended = subprocess.run([bench, "run", protocol, "-o", out, "--quiet", "--no-plot"], capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        sys.exit(ended.stderr)
    print(ended.stdout)


def plain(out):
    """GB/s and GFLOP/s of loops that share nothing with the device's; None where nothing compiles them for this machine."""
    program = out / "plain_ceilings"
    built = subprocess.run(["cc", "-O3", "-march=native", HERE / "plain_ceilings.c", "-o", program, "-pthread"])
    if built.returncode:
        return None
    said = subprocess.run([program, str(os.cpu_count()), "256"], check=True, capture_output=True, text=True).stdout
    return [float(word) for word in said.split()]


def ceilings(rows, found):
    print("ceilings beside plain loops of C (-O3 -march=native), each its best")
    for name, metric, best in zip(("read", "fma"), ("bandwidth", "flop_rate"), found):
        ours = rows[f"ceilings op={name}"]["best " + metric] * 1e-9
        print(f"  {name:24} ours {ours:8.2f}  plain {best:8.2f}  G{'byte' if name == 'read' else 'FLOP'}/s  {ours / best:5.2f}")


def limits(rows):
    print("share of the bound (MBU or MFU, whichever is larger), goal, flags")
    for name, row in rows.items():
        if "mbu" not in row or name.startswith("ceilings"):
            continue
        share, goal = max(row["mbu"], row.get("mfu", 0)), GOALS.get(name)
        verdict = "" if goal is None else "reached" if share >= goal else "short"
        print(f"  {name:24} {share:6.1%}  {goal or '':>5}  {verdict:8} {row['flags']}")
    one, two = (rows.get(f"threads threads={n}", {}).get("time") for n in (1, 2))
    if one and two:
        print(f"  {'prefill, 1 -> 2 threads':24} {one / two:5.2f}x   1.9  {'reached' if one / two >= 1.9 else 'short'}")
    one, many = (rows.get(f"attention decode layout={layout}", {}).get("time") for layout in ("contiguous", "paged"))
    if one and many:  # in blocks of 16
        print(f"  {'decode, paged':24} {many / one:5.2f}x of one piece's time  1.05  {'reached' if many / one <= 1.05 else 'short'}")


def peers(bench, out, python):
    here = {name: peer for name, peer in PEERS.items()
            if subprocess.run([python, "-c", f"import {peer[0]}"], capture_output=True).returncode == 0}
    if not here:
        sys.exit(f"{python} has neither llama-cpp-python nor torch")
    ours, theirs = {}, {name: {} for name in here}
    for turn in range(3):
        result = out / f"beside-{turn}.h5"
        result.unlink(missing_ok=True)
        run(bench, result, HERE / "cpu_beside.toml")
        for name, row in rows_of(bench, result).items():
            ours.setdefault(name, []).append(row["time"])
        for name, (_, tool, _) in here.items():
            said = subprocess.run([python, HERE / tool, out], check=True, capture_output=True, text=True).stdout
            (out / f"{tool}-{turn}.jsonl").write_text(said)
            for line in said.splitlines():
                cell = json.loads(line)
                theirs[name].setdefault(cell["cell"], []).append(cell["median_ms"])
    for name, cells in theirs.items():
        print(f"time of {name} over ours, medians of three turns [least and most of the turns]")
        for cell, times in cells.items():
            if cell not in ours:
                sys.exit(f"cpu_beside.toml has no row '{cell}'")
            ratios = sorted(t / o for t, o in zip(times, ours[cell]))
            ratio, goal = statistics.median(times) / statistics.median(ours[cell]), PEERS[name][2].get(cell)
            verdict = "" if goal is None else "reached" if ratio >= goal else "short"
            print(f"  {cell:24} ours {statistics.median(ours[cell]):8.3f} ms  theirs {statistics.median(times):8.3f} ms  "
                  f"{ratio:5.2f}x [{ratios[0]:.2f}, {ratios[-1]:.2f}]  {goal or '':>5}  {verdict}")


def main():
    bench, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    result = out / "cpu.h5"
    result.unlink(missing_ok=True)
    before = plain(out)
    run(bench, result, HERE / "cpu.toml")
    rows = rows_of(bench, result)
    if before:
        ceilings(rows, [max(pair) for pair in zip(before, plain(out))])
    limits(rows)
    if len(sys.argv) > 3:
        peers(bench, out, sys.argv[3])


main()
