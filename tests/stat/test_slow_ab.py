# SPDX-License-Identifier: Apache-2.0
"""The CI protocol against itself on this machine: whatever else runs here, no row is slower, and no row is left out."""
# ctest: timeout 240
import json
import os
import subprocess
import sys
import tempfile

import h5py

bench = os.environ.get("BENCH", "")
if not os.path.exists(bench):
    print("SKIPPED: BENCH does not name the program")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="bench ab ") as folder:
    run = subprocess.run([bench, "ab", "ci_gate", "-q", "-f", "json", "-o", folder + "/a.h5", "--set", "measure.budget=50 s",
                          "--set", "gate.rounds=6"], capture_output=True, text=True, timeout=200)
    with h5py.File(folder + "/a.h5", "r") as h:
        effective = [e.decode().rstrip("\0") for e in h["points/effective"][()]]
        weights = {w.decode().rstrip("\0") for w in h["pairs/weights"][()]}
print(run.stdout, run.stderr)
rows = {r["row"]: r["verdict"] for r in json.loads(run.stdout)["rows"]}
assert run.returncode != 1, (run.returncode, rows)
assert not set(rows.values()) & {"slower", "worse", "failed", "wrong", "implausible", "missing"}, rows
assert len(rows) == 9, rows
# The same cores in the same order, and the same pages of weights.
half = len(effective) // 2
assert effective[:half] == effective[half:] and all(effective), effective
assert weights <= {"none", "shared"}, weights
print("ok")
