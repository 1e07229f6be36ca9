# SPDX-License-Identifier: Apache-2.0
"""make bench-cpu: one sitting of tests/bench/cpu.toml, each row as the share of its bound (the larger of MBU and MFU,
   against the ceilings of the same run) beside its goal; with a peer, its times in turns with ours.

   cpu_limits.py BENCH OUT_FOLDER [PYTHON_OF_THE_PEER]
   PYTHON_OF_THE_PEER has llama-cpp-python, numpy and gguf: the peer reads a model of the same shape, made here."""
import csv
import io
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOALS = {  # row: least share of its bound
    "decode batch=1": 0.92, "decode batch=2": 0.8, "decode batch=4": 0.8, "decode batch=8": 0.8,
    "decode batch=16": 0.8, "decode batch=32": 0.8, "prefill type=bf16": 0.85, "prefill type=f32": 0.85,
    "gemv type=int8": 0.9, "gemv type=int4": 0.8, "attention prefill": 0.7, "attention decode": 0.85}
PEER_GOALS = {"pp512": 1.7, "batch1": 1.05, "batch8": 2, "batch16": 2, "batch32": 2}
PEER_ROWS = {"pp512": "prefill type=bf16", **{f"batch{b}": f"decode batch={b}" for b in (1, 2, 4, 8, 16, 32)}}


def rows_of(bench, result):
    """{row: {metric: median, in the unit that the export states}}, flags under "flags"."""
    text = subprocess.run([bench, "export", result, "--format", "tsv"], check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in csv.DictReader(io.StringIO(text), delimiter="\t"):
        row = rows.setdefault((line["case"] + " " + line["label"]).strip(), {"flags": line["flags"]})
        if line["median"]:
            row[line["metric"]] = float(line["median"])
    return rows


def run(bench, out, protocol):
    ended = subprocess.run([bench, "run", protocol, "-o", out, "--quiet", "--no-plot"], capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        sys.exit(ended.stderr)
    print(ended.stdout)


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


def peer(bench, out, python):
    model = out / "peer-seed-0.5b.gguf"
    tool = HERE / "peer_llama.py"
    if not model.exists():
        subprocess.run([python, tool, "--make", model], check=True)
    ours, theirs = {}, {}
    for turn in range(3):
        result = out / f"beside-{turn}.h5"
        result.unlink(missing_ok=True)
        run(bench, result, HERE / "cpu_beside.toml")
        for name, row in rows_of(bench, result).items():
            ours.setdefault(name, []).append(row["time"])
        said = subprocess.run([python, tool, model], check=True, capture_output=True, text=True).stdout
        (out / f"peer-{turn}.jsonl").write_text(said)
        for line in said.splitlines():
            cell = json.loads(line)
            theirs.setdefault(cell["cell"], []).append(cell["median_ms"])
    print("llama.cpp's time over ours, medians of three turns")
    for cell, times in theirs.items():
        if PEER_ROWS.get(cell) in ours:
            mine, peers, goal = statistics.median(ours[PEER_ROWS[cell]]), statistics.median(times), PEER_GOALS.get(cell)
            verdict = "" if goal is None else "reached" if peers / mine >= goal else "short"
            print(f"  {PEER_ROWS[cell]:20} ours {mine:8.2f} ms  llama.cpp {peers:8.2f} ms  {peers / mine:5.2f}x  {goal or '':>5}  {verdict}")


def main():
    bench, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    result = out / "cpu.h5"
    result.unlink(missing_ok=True)
    run(bench, result, HERE / "cpu.toml")
    limits(rows_of(bench, result))
    if len(sys.argv) > 3:
        peer(bench, out, sys.argv[3])


main()
