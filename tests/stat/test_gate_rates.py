# SPDX-License-Identifier: Apache-2.0
"""tests/bench/bench_gate, on which make bench-gate rests: what it records is read as it lies in the files, and gates drawn from
rounds of a virtual clock say nothing where nothing changed and everything where much did."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

bench, tool = os.environ.get("BENCH", ""), os.path.join(os.environ.get("BUILD_DIR", ""), "tests", "bench_gate")
if not os.path.exists(bench) or not os.path.exists(tool):
    print("SKIPPED: BENCH does not name the program, or bench_gate is not built")
    sys.exit(77)
PROTOCOL = """title = "Rounds"
question = "Are they read as they lie there?"
[workload]
name = "null"
[device]
kind = "fake"
time = "20 ms"
noise = 0.01
round_noise = 0.004
[[case]]
name = "one"
[[case]]
name = "two"
device.time = "40 ms"
"""


def say(*words):
    return json.loads(subprocess.run([tool, *map(str, words)], check=True, capture_output=True, text=True, timeout=60).stdout)


with tempfile.TemporaryDirectory(prefix="bench gate ") as folder:
    with open(folder + "/p.toml", "w", encoding="utf-8") as f:
        f.write(PROTOCOL)
    files = [f"{folder}/{k}.h5" for k in range(2)]
    y = [[], []]
    for k, path in enumerate(files):  # of different length
        subprocess.run([tool, "record", folder + "/p.toml", str(8 + 2 * k), str(k + 1), path, bench], check=True, timeout=60,
                       capture_output=True)
        with h5py.File(path, "r") as h:
            for row in (0, 1):
                y[row] += list(h["pairs/y"][()][h["pairs/a"][()] == row])
    spread = say("spread", *files)["rows"]
    nothing = say("judge", 80, 1, 0.01, 0, 0, *files)
    much = say("judge", 80, 1, 0.01, 0.2, 0, *files)
    every = say("judge", 80, 1, 0.01, 0, 0.04, *files)
    peers = [say("peers", 50, 0, slowdown, *files) for slowdown in (0, 0.5)]
assert [r["name"] for r in spread] == ["one", "two"], spread
for row, known in zip(spread, map(np.array, y)):
    assert row["pairs"] == known.size == 18, row
    assert abs(row["s"] - known.std(ddof=1)) < 1e-5 * row["s"], row
    mad = 1.4826 * np.median(abs(known - np.median(known)))
    assert abs(row["usual"] - mad) < 1e-5 * mad, row
    assert 0 < row["workers"] < row["s"], row
assert nothing["red"] == 0 and nothing["verdicts"]["pass"] == 20 * 80, nothing
assert much["red"] == much["found"] == much["verdicts"]["slower"] == 80 and not much["others"], much
assert sum(n for _, n in much["kinds"].values()) == 80 and all(seen == n for seen, n in much["kinds"].values()), much
assert every["all"]["slower"] == every["red"] == 80, every
assert peers[0]["plain_rows"] == 0 and peers[1]["plain_gates"] == peers[1]["u_gates"] == 50, peers
# Exact where no event was seen: 1 - 0.025^(1/n).
assert np.allclose(say("bound", 0, 100), [0, 1 - 0.025 ** 0.01], rtol=1e-4)
print("ok")
