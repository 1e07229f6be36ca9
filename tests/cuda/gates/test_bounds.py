# SPDX-License-Identifier: Apache-2.0
"""The step model gives what was worked out by hand, the data sheets are whole, and docs/cuda-bounds.md is what the tool writes."""
# ctest: timeout 60
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
if sys.version_info < (3, 11):
    print("SKIPPED: Python 3.11 reads TOML, this one does not", file=sys.stderr)
    sys.exit(77)
import cuda_bounds  # noqa: E402
import cuda_devices  # noqa: E402

failed = []


def check(condition, *words):
    if not condition:
        failed.append(" ".join(map(str, words)))


for name in cuda_devices.names():
    device = cuda_devices.Device(name)
    peak = device.sm_count * device.clock_hz * device.tensor_flop_per_clock
    check(0.9 < device.dense_bf16_flop_per_s / peak < 1.01, name, "per clock and per second disagree:", peak)
    check(device.kinds["launch_gap_s"] in ("assumed", "measured"), name, "no sheet names a launch gap")
check(set(cuda_bounds.DEVICES) == set(cuda_devices.names()), "a data sheet is not on the page")

h200, seven = cuda_devices.Device("h200"), cuda_bounds.shape_of("7b")
one = cuda_bounds.step(seven, "bf16", 1)
check(len(one) == 32 * 8 + 8, len(one), "launches")
check(len(cuda_bounds.step(seven, "bf16", 1, 513)) == 32 * 9 + 8, "a second split needs a combine launch in each layer")
# By hand: weights but for the embedding, 7,110,660,096 + the cache of 512 tokens, 67,108,864; activations are below 1 %.
weights = (7_241_732_096 - 32_000 * 4096) * 2
total = sum(x.bytes for x in one)
check(weights + 67_108_864 <= total < 1.01 * (weights + 67_108_864), total, "bytes")
check(abs(cuda_bounds.bound_s(one, h200) - total / 4.8e12) < 1e-9, "one sequence is bound by memory in every launch")
for gap, pdl, want in (("without PDL", False, 0.82), ("with PDL", True, 0.88)):
    got = cuda_bounds.mbu(one, h200, cuda_bounds.model_s(one, h200, pdl))
    check(abs(got - want) < 0.006, f"7b, one sequence, {gap}: MBU {got:.3f}, worked out by hand {want}")
many = cuda_bounds.step(seven, "bf16", 4096)
check(cuda_bounds.bound_s(many, h200) > 2 * 4096 * weights / 2 / 989.5e12, "many sequences are bound by tensor cores")
for form in cuda_bounds.FORMATS:
    for m in cuda_bounds.BATCHES:
        launches = cuda_bounds.step(seven, form, m)
        check(cuda_bounds.bound_s(launches, h200) < cuda_bounds.model_s(launches, h200, True) <
              cuda_bounds.model_s(launches, h200, False), form, m, "a bound is above its model")
for what in ("qkv", "o", "gate_up", "down", "head"):
    blocks = next(x.blocks for x in one if x.what == what)
    check(cuda_bounds.tail(blocks, h200) >= 0.90, f"7b {what}: {blocks} blocks fill {cuda_bounds.tail(blocks, h200):.2f} of the SMs")

if not cuda_bounds.PAGE.exists() or cuda_bounds.PAGE.read_text() != cuda_bounds.page():
    failed.append("docs/cuda-bounds.md is not what tools/cuda_bounds.py writes now: run tools/cuda_bounds.py --write")
for sentence in failed:
    print("FAILED:", sentence)
sys.exit(1 if failed else 0)
