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
