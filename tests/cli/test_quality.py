#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quality beside speed in one table and one picture: the rows of two cases are joined, intervals are what the workload reported."""
# ctest: timeout 120
import pathlib
import shutil
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("SKIPPED: h5py is missing")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check  # noqa: E402

BENCH = program.needed()

PROTOCOL = """
title = "Quality"
question = "What is lost, and what is gained?"
[workload]
name = "quality"
tokens = 320
window = 64
greedy = 12
prompt = 8
[model]
shape = "tiny"
kv_type = "f32"
[device]
kind = "cpu"
threads = 1
[measure]
rounds = 2
warmups = 1
min_samples = 2
max_samples = 3
budget = "60 s"
[[case]]
name = "judged"
[[case.sweep]]
model.type = ["f32", "int8", "nf4", "int4-tensor"]
[[case]]
name = "speed"
workload = { name = "decode", context = 16 }
[[case.sweep]]
model.type = ["int4-tensor", "nf4", "int8", "f32"]
[[analysis]]
kind = "tradeoff"
case = "judged"
x = "speed:decode_rate"
y = "kl"
by = "model.type"
also = "weight_bits, ppl_ratio, top1"
[[analysis]]
kind = "ratio"
case = "judged"
metric = "kl"
at = "model.type=int8"
over = "model.type=int4-tensor"
expect = "<1"
"""


def bench(*words, code=0):
    p = program.run(BENCH, *words, code=code)
    return p.stdout + p.stderr


def column(group, name):
    return [v.decode() if isinstance(v, bytes) else v for v in group[name][:]]


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    (here / "quality.toml").write_text(PROTOCOL)
    result = str(here / "result.h5")
    said = bench("run", str(here / "quality.toml"), "-o", result)
    with h5py.File(result) as f:
        summary, points, fits = f["summary"], f["points"], f["fits"]
        rows = {(p, m): i for i, (p, m) in enumerate(zip(summary["point"][:], column(summary, "metric")))}
        cases, types = column(points, "case"), column(points, "model.type")
        mean, lo, hi = (summary[n][:] for n in ("mean", "ci_lo", "ci_hi"))
        judged = [i for i, c in enumerate(cases) if c == "judged"]
        check(len(judged) == 4, cases)
        for p in judged:
            for metric in ("perplexity", "ppl_ratio", "kl", "top1", "greedy"):
                row = rows[p, metric]
                check(lo[row] == mean[rows[p, metric + "_lo"]] and hi[row] == mean[rows[p, metric + "_hi"]], types[p], metric)
                check(lo[row] <= mean[row] <= hi[row], types[p], metric, lo[row], mean[row], hi[row])
        texts = {n: t for a, n, t in zip(column(fits, "analysis"), column(fits, "name"), column(fits, "text")) if a == "tradeoff"}
        check(sorted(texts) == ["f32", "int4-tensor", "int8", "nf4"], texts)
        for p, c in enumerate(cases):
            if c == "speed":
                rate = mean[rows[p, "decode_rate"]]
                shown = float(texts[types[p]].split()[1])
                check(abs(shown - rate) < 1e-3 * rate, "decode_rate", shown, "is not that of the row of its type,", rate)
        check("int4-tensor" in "".join(texts.values()) or "better in both" in texts["int4-tensor"], texts)
        verdicts = [v for a, v in zip(column(fits, "analysis"), column(fits, "verdict")) if a == "ratio"]
        check(verdicts == ["ok"], verdicts)
    table = bench("show", result)
    head = next(line for line in table.splitlines() if "perplexity" in line)
    check("token/s" in head and "kl_lo" not in table, table)
    if shutil.which("gnuplot"):
        picture = (here / "result.svg").read_text()
        for name in ("int8", "nf4", "int4-tensor"):
            check(name in picture, name, "is not in the picture")
    for value, sentence in [("window=0", "2 "), ("stride=65", "leave tokens out"), ("unscored=63", "next token"), ("text=prose", "tokenizer"),
                            ("tokens=32", "longer than the 32"), ("text=./no.ids", "no text"), ("greedy=13", "shared evenly"),
                            ("window=-1", "2 "), ("reference=best", "same"), ("kv_bits=1", "2 ")]:
        said = bench("run", str(here / "quality.toml"), "--dry-run", "--set", "workload." + value, code=2)
        check(sentence in said, value, "gives", said)
    (here / "empty.ids").write_text("")
    check("is empty" in bench("run", str(here / "quality.toml"), "--dry-run", "--set", f"workload.text={here}/empty.ids", code=2))
    (here / "short.ids").write_text("1 2 3 4 5")
    said = bench("run", str(here / "quality.toml"), "--no-plot", "-o", str(here / "short.h5"), "--set",
                 f"workload.text={here}/short.ids", code=3)
    check("has 5 tokens" in said, said)
print("quality stands beside speed")
