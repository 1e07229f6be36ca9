# SPDX-License-Identifier: Apache-2.0
"""Every record of expected.json is computed by one of our products, in the tests test_seed*.c beside, or stands in the
list below with the reason why none can."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

source, build = pathlib.Path(os.environ["SOURCE_DIR"]), pathlib.Path(os.environ["BUILD_DIR"])
LEFT_OUT = {
    "E33.1": "arithmetic on two printed errors",
    "E34.5": "arithmetic on two printed figures",
    "E37.5": "the length of a printed bar",
    "E37.6": "arithmetic on two printed bounds",
    "E39.": "arithmetic on printed perplexities and answers, of a trained model",
}

names = {r["id"] for r in json.loads((source / "tests/golden/expected.json").read_text(encoding="utf-8"))["records"]}
programs = sorted(build.glob("tests/test_golden_seed*"))
if not programs:
    print("SKIPPED: the golden tests are not built")
    sys.exit(77)
computed = collections.Counter()
with tempfile.TemporaryDirectory() as folder:
    for program in programs:
        ids = pathlib.Path(folder) / program.name
        done = subprocess.run([program], env=dict(os.environ, SEED_RECORDS=str(ids)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program.name} fails:\n{done.stdout}{done.stderr}")
        computed.update(ids.read_text(encoding="utf-8").split())
left_out = {i for i in names if any(i == key or (key.endswith(".") and i.startswith(key)) for key in LEFT_OUT)}
for found, words in ((set(computed) - names, "computed, but no record"), (names - set(computed) - left_out, "not computed")):
    if found:
        sys.exit(f"FAILED: {words}: {' '.join(sorted(found))}")
if left_out & set(computed):
    print("computed, though listed as left out:", " ".join(sorted(left_out & set(computed))))
print(f"{len(computed)} of {len(names)} records are computed, {len(left_out - set(computed))} cannot be")
