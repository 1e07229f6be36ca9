# SPDX-License-Identifier: Apache-2.0
"""Energy per token is of the tokens that were really read and written, also where a text ends early; energy from a made-up NVML."""
import csv, os, pathlib, subprocess, sys, tempfile

LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", "")) / "tests" / "libfake_nvml.so"
BENCH = os.environ.get("BENCH", "")
if not BENCH or not LIBRARY.exists():
    sys.exit(print("skipped: no bench, or no made-up library, was built") or 77)
PROMPT, TOKENS = 4, 32
PROTOCOL = f"""
title = "Energy"
question = "Of how many tokens?"
[workload]
name = "generate"
prompt = {PROMPT}
tokens = {TOKENS}
[model]
shape = "tiny"
[device]
kind = "ref"
[measure]
rounds = 2
budget = "20 s"
min_samples = 3
max_samples = 3
"""


def means(folder, end_id):
    out = folder / f"{end_id}.h5"
    environment = {**os.environ, "BENCH_NVML": str(LIBRARY)}
    run = [BENCH, "run", str(folder / "t.toml"), "--set", f"workload.end_id={end_id}", "-o", str(out), "--no-plot", "-q"]
    subprocess.run(run, env=environment, check=True, stdout=subprocess.DEVNULL)
    text = subprocess.run([BENCH, "export", str(out), "--format", "csv"], check=True, capture_output=True, text=True).stdout
    return {row["metric"]: float(row["mean"]) for row in csv.DictReader(text.splitlines())}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "t.toml").write_text(PROTOCOL)
    for end_id, early in ((-1, False), (47, True)):
        m = means(folder, end_id)
        assert (m["n_out"] < TOKENS) == early, m["n_out"]
        tokens = PROMPT + m["n_out"] - 1
        assert m["gpu_energy"] > 0
        assert abs(m["gpu_token_energy"] * tokens / m["gpu_energy"] - 1) < 1e-9, (end_id, m)
        print(end_id, m["n_out"], m["gpu_energy"], m["gpu_token_energy"])
