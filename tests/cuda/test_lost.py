# SPDX-License-Identifier: Apache-2.0
"""A kernel that faults takes its process's GPU with it: that row fails, and the next has a fresh worker."""
import os, pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
from fault_rig import BENCH, Folder, check, column  # noqa: E402

import h5py  # noqa: E402

listed = subprocess.run([BENCH, "list", "devices"], capture_output=True, text=True).stdout
if "cuda-emu" not in listed:
    print("SKIPPED: this build has no cuda-emu (-DBENCH_CUDA=emu)")
    sys.exit(77)

TEXT = """
title = "lost"
question = "Which rows does a fault hit?"
[workload]
name = "ceiling"
bytes = "48 KiB"
[device]
kind = "cuda-emu"
[measure]
rounds = 2
stop = "samples"
samples = 3
warmups = 1
warmup_budget = "1 ms"
budget = "60 s"
[[case]]
name = "before"
workload.op = "read"
[[case]]
name = "faulty"
workload.op = "copy"
[[case]]
name = "after"
workload.op = "triad"
"""
with Folder(text=TEXT) as f:
    code, out, err = f.run(env={**os.environ, "SIMT_FAIL": "ceiling_copy"})
    check(code == 3, "exit", code, out, err)
    with h5py.File(f.h5, "r") as h:
        text = lambda name: [s.decode().rstrip("\0") for s in column(h, name)]
        states = dict(zip(text("points/case"), text("points/state")))
        reasons = dict(zip(text("points/case"), text("points/reason")))
        visits = list(zip(column(h, "visits/visit"), text("visits/state"), column(h, "visits/worker")))
    check(states == {"before": "ok", "faulty": "failed", "after": "ok"}, "states", states, reasons)
    check("unspecified launch failure" in reasons["faulty"], "reason", reasons)
    lost = [(v, w) for v, s, w in visits if s == "failed"]
    check(len(lost) >= 2, "a visit a round fails", visits)
    for visit, worker in lost:
        check(not any(w == worker and v > visit for v, s, w in visits), "its worker ends", visits)
print("a fault costs its own row only")
