#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of SmolLM2 on our texts is llama.cpp's within 0.5 %, with our tokenizer, where the model has been brought (llama_perplexity.py
made the figures)."""
# ctest: timeout 600
import os
import pathlib
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("SKIPPED: h5py is missing")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402

SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
MODEL = cache / "bench/models/smollm2-135m.gguf"
BENCH = program.needed()
if not MODEL.exists():
    print("SKIPPED: the model is not here: ./bench model smollm2-135m brings it")
    sys.exit(77)


rows = [line.rstrip("\n").split("\t") for line in open(SOURCE / "tests/golden/smollm2_perplexity.tsv") if not line.startswith("#")]
texts = [(name.split(".")[0], int(tokens), int(window), int(unscored), int(scored), float(value))
         for name, tokens, window, _, unscored, scored, _, value in rows[1:]]
window, unscored = texts[0][2:4]
with tempfile.TemporaryDirectory() as folder:
    protocol, result = os.path.join(folder, "p.toml"), os.path.join(folder, "r.h5")
    with open(protocol, "w") as f:
        f.write(f'''title = "llama.cpp"
question = "Is it the same?"
workload = {{ name = "quality", window = {window}, stride = {window}, unscored = {unscored}, greedy = 0, reference = "same" }}
model = {{ file = "{MODEL}", type = "f32", kv_type = "f32" }}
measure = {{ rounds = 1, budget = "500 s", timeout = "400 s" }}
[[sweep]]
workload.text = [{", ".join(f'"{t[0]}"' for t in texts)}]
workload.tokens = [{", ".join(str(t[1]) for t in texts)}]
''')
    program.run(BENCH, "run", protocol, "-o", result, "--no-plot")
    with h5py.File(result) as f:
        s = f["summary"]
        value = {(int(p), m.decode() if isinstance(m, bytes) else m): v for p, m, v in zip(s["point"][:], s["metric"][:], s["mean"][:])}
for i, (name, _, _, _, positions, theirs) in enumerate(texts):
    ours = value[i, "perplexity"]
    print(f"{name}: {ours:.4f}, llama.cpp {theirs:.4f}: {100 * (ours / theirs - 1):+.2f} %")
    if value[i, "scored"] != positions or not abs(ours / theirs - 1) < 0.005:
        sys.exit(f"FAILED: {name}")
