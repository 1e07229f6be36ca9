#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of other tools, end to end on the virtual clock: token times recomputed here from the raw marks of the file."""
import json

import h5py

from fault_rig import Folder, check

TOKENS = """
title = "tokens"
[workload]
name = "generate"
prompt = 8
[model]
shape = "tiny"
[device]
kind = "fake"
launch = "3 us"
[[sweep]]
workload.batch = [1, 3]
[[sweep]]
workload.tokens = [1, 2, 9]
[measure]
rounds = 5
stop = "samples"
samples = 3
"""


def marks_by_sample(f):
    """(visit, sample) -> who -> times of its tokens, in ns since the execution began."""
    m, out = f["marks"], {}
    for visit, sample, mark, who, n, t in zip(*(m[k][()].tolist() for k in ("visit", "sample", "mark", "who", "n", "t_ns"))):
        if mark >= 0:  # others begin a phase
            out.setdefault((visit, sample), {}).setdefault(who, []).extend([t] * n)
    return out


def mean(values):
    return sum(values) / len(values)


def same(a, b):
    return a is not None and abs(a - b) <= 1e-12 * abs(b)


with Folder(text=TOKENS) as f:
    code, out, err = f.run("run", str(f.protocol), "-o", str(f.h5), "--no-plot", "-q")
    check(code == 0, "run", code, err)
    code, out, err = f.run("export", str(f.h5), "-f", "json")
    points = json.loads(out)["points"]
    with h5py.File(f.h5, "r") as h5:
        # A control repeats a round's first visit to see drift; it is no part of the row.
        point_of = {v: p for v, p, control in zip(*(h5["visits"][k][()].tolist() for k in ("visit", "point", "control"))) if not control}
        wall = dict(zip(zip(h5["samples/visit"][()].tolist(), h5["samples/order"][()].tolist()), h5["samples/wall_ns"][()].tolist()))
        marks = marks_by_sample(h5)
    check(set(marks) == set(wall), "every sample has its marks")
    for p in points:
        n, batch, metrics = p["workload.tokens"], p["workload.batch"], p["metrics"]
        ttft, itl, e2e = [], [], []
        for key, sequences in marks.items():
            if point_of.get(key[0]) != p["point"]:
                continue
            check(len(sequences) == batch, p["label"], "sequences", len(sequences))
            for times in sequences.values():
                gaps = [b - a for a, b in zip(times, times[1:])]
                check(len(times) == n and len(gaps) == n - 1, p["label"], "ITL has n_out - 1 values", times)
                check(times[0] + sum(gaps) == times[-1] <= wall[key], p["label"], "TTFT + sum of ITL = E2E", times, wall[key])
                ttft.append(times[0])
                e2e.append(times[-1])
                itl += gaps
        value = {k: metrics[k]["mean"] if k in metrics else None for k in ("ttft", "itl", "e2e", "tpot", "n_out", "tpot_excluded")}
        check(same(value["ttft"], mean(ttft) * 1e-6), p["label"], "ttft", value, mean(ttft))
        check(same(value["e2e"], mean(e2e) * 1e-6), p["label"], "e2e", value, mean(e2e))
        check(value["n_out"] == n, p["label"], "n_out", value)
        if n == 1:  # no gap: not 0, not inf, but excluded and counted
            check(value["itl"] is None and value["tpot"] is None and value["tpot_excluded"] == len(ttft), p["label"], value)
        else:
            check(same(value["itl"], mean(itl) * 1e-6) and metrics["itl"]["n"] == len(itl), p["label"], "itl", value, len(itl))
            check(same(value["tpot"], mean([(e - t) / (n - 1) for e, t in zip(e2e, ttft)]) * 1e-6), p["label"], "tpot", value)
            check(not value["tpot_excluded"], p["label"], value)
print("tokens: the times of the file are those of its marks")


# An end token at the third of 100 tokens: everything is that of a run that asked for three.
ENDS = """
title = "ends"
[model]
shape = "tiny"
[device]
kind = "fake"
launch = "3 us"
%(device)s
[measure]
rounds = 5
stop = "samples"
samples = 3
[[case]]
name = "read"
workload = { name = "ceiling", op = "read", bytes = "64 MiB" }
[[case]]
name = "fma"
workload = { name = "ceiling", op = "fma" }
[[case]]
name = "text"
workload = { name = "generate", prompt = 8, %(workload)s }
sweep = [{ workload.batch = [1, 3] }, { workload.mode = ["cached", "recompute"] }]
"""
OF_THE_LENGTH_ASKED_FOR = {"kv_bytes", "method_bytes", "method_bytes_allocated", "peak_bytes", "peak_beyond_weights"}


def measured(device, workload):
    """Points, phases and warm-ups of a run, and its table as CSV."""
    with Folder(text=ENDS % {"device": device, "workload": workload}) as f:
        code, out, err = f.run("run", str(f.protocol), "-o", str(f.h5), "--no-plot", "-q")
        check(code == 0, "run", code, err, out)
        exported = json.loads(f.run("export", str(f.h5), "-f", "json")[1])
        csv = f.run("export", str(f.h5), "-f", "csv")[1]
        shown = f.run("show", str(f.h5))[1]
        with h5py.File(f.h5, "r") as h5:
            marks = len(h5["marks/who"])
            phases = sorted(zip(*(h5["phases"][k][()].tolist() for k in ("point", "phase", "items", "flops", "bytes"))))
            ledger = [h5["points"][k][()].tolist() for k in h5["points"] if k.startswith("bytes") or k == "flops"]
    return exported["points"], phases, ledger, marks, csv, shown


early, early_phases, early_ledger, early_marks, csv, shown = measured("end_at = 9", "tokens = 100, end_id = 5")
asked, asked_phases, asked_ledger, asked_marks, _, _ = measured("", "tokens = 3")
check(early_phases == asked_phases and early_ledger == asked_ledger and early_marks == asked_marks, "phases, ledger or marks differ")
for a, b in zip(early, asked):
    if a["workload"] != "generate":
        continue
    check("ended_early" in a["flags"] and "before 100 tokens" in a["reason"] and "ended_early" not in b["flags"], "flag", a, b)
    check(a["metrics"]["n_out"]["mean"] == 3, "n_out", a["metrics"]["n_out"])
    check({"mbu", "mfu", "decode_rate", "tpot", "itl", "bandwidth", "flop_rate"} <= set(a["metrics"]), "metrics", list(a["metrics"]))
    check(a["metrics"].keys() == b["metrics"].keys(), "metrics differ")
    for name in a["metrics"].keys() - OF_THE_LENGTH_ASKED_FOR:
        check(a["metrics"][name] == b["metrics"][name], a["label"], name, a["metrics"][name], b["metrics"][name])
check(csv.count("n_out,token") == 4 and "ended_early" in csv, "csv", csv)
check("ended_early" in shown and "produced" in " ".join(shown.split()), "show", shown)
print("an early end: 3 of 100 tokens everywhere")

# Constant input is flagged; random input is not.
with Folder(text=TOKENS.replace("prompt = 8", 'prompt = 8\ntokens = 2\nbatch = 2').replace("""[[sweep]]
workload.batch = [1, 3]
[[sweep]]
workload.tokens = [1, 2, 9]""", """[[sweep]]
workload.input = ["random", "constant"]""")) as f:
    code, out, err = f.run("run", str(f.protocol), "-o", str(f.h5), "--no-plot", "-q")
    check(code == 0 and "constant_input" in out, "run", code, err, out)
    random, constant = json.loads(f.run("export", str(f.h5), "-f", "json")[1])["points"]
    check("constant_input" not in random["flags"] and "constant_input" in constant["flags"] and constant["reason"], random, constant)
print("constant input is flagged")
