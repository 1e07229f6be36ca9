# SPDX-License-Identifier: Apache-2.0
"""The CI protocol against itself on this machine: whatever else runs here, no row is slower, and no row is left out."""
# ctest: timeout 240
import json
import os
import subprocess
import sys
import tempfile

bench = os.environ.get("BENCH", "")
if not os.path.exists(bench):
    print("SKIPPED: BENCH does not name the program")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="bench ab ") as folder:
    run = subprocess.run([bench, "ab", "ci_gate", "-q", "-f", "json", "-o", folder + "/a.h5", "--set", "measure.budget=50 s",
                          "--set", "gate.rounds=6"], capture_output=True, text=True, timeout=200)
print(run.stdout, run.stderr)
rows = {r["row"]: r["verdict"] for r in json.loads(run.stdout)["rows"]}
assert run.returncode != 1, (run.returncode, rows)
assert not set(rows.values()) & {"slower", "worse", "failed", "wrong", "implausible", "missing"}, rows
assert len(rows) == 9, rows
print("ok")
