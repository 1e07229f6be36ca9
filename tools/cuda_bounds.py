#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What decoding can cost on a GPU, from shapes, cards and data sheets alone: docs/cuda-bounds.md. Nothing here was measured."""
import argparse
import pathlib
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cuda_cards  # noqa: E402
import cuda_devices  # noqa: E402
import cuda_gates  # noqa: E402

SOURCE = cuda_devices.SOURCE
PAGE = SOURCE / "docs/cuda-bounds.md"
MODELS = ("7b", "13b", "seed-0.5b")
FORMATS = {"bf16": 16, "int8": 8, "int4": 4, "nf4": 4}  # bits of a weight
GROUPS = {"int4": 128, "nf4": 64}  # weights per f16 scale; int8: an f32 per row
BATCHES = (1, 8, 64)
LENGTH, SPLIT, TILE_ROWS, FEW_ROWS = 512, 512, 16, 8  # tokens of a sequence; keys of a split; rows of W and tokens of a tile
DEVICES = ("h200", "h100", "a100", "l40s", "rtx4090")
BF16, F32 = 2, 4


@dataclass
class Launch:
    what: str
    bytes: float
    flops: float  # on tensor cores
    blocks: int = 0  # of linear


def shape_of(name):
    import tomllib  # Python 3.11
    with open(SOURCE / "protocols/models" / f"{name}.toml", "rb") as f:
        return tomllib.load(f)


def linear(what, form, m, n, k, y_cols=None, y_bytes=BF16):
    """One product of m rows with an (n, k) weight."""
    scales = n * F32 if form == "int8" else n * -(-k // GROUPS[form]) * 2 if form in GROUPS else 0
    moved = n * k * FORMATS[form] / 8 + scales + m * k * BF16 + m * (y_cols or n) * y_bytes
    return Launch(what, moved, 2 * m * n * k, -(-n // TILE_ROWS))


def layer(s, form, m, length):
    """The launches of one layer of a decode step of m sequences."""
    d, q, kv = s["d_model"], s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"]
    norm = m * d * (2 * F32 + 2 * BF16) + d * F32
    cache = 2 * m * length * kv * BF16
    launches = [
        Launch("add_norm", norm, 0),
        linear("qkv", form, m, q + 2 * kv, d),
        Launch("rope_append", 2 * m * (q + 2 * kv) * BF16, 0),
        Launch("attention", cache + 2 * m * q * BF16, 4 * m * q * length),
        linear("o", form, m, d, q),
        Launch("add_norm", norm, 0),
        linear("gate_up", form, m, 2 * s["d_ff"], d, s["d_ff"]),
        linear("down", form, m, d, s["d_ff"]),
    ]
    if length > SPLIT:
        splits = -(-length // SPLIT)
        launches.insert(4, Launch("combine", m * q * (splits * F32 + BF16), 0))
    return launches


def step(s, form, m, length=LENGTH):
    """The launches of one decode step."""
    d, v = s["d_model"], s["vocab"]
    norm = m * d * (2 * F32 + 2 * BF16) + d * F32
    ends = [Launch("embed", m * d * (FORMATS[form] / 8 + F32), 0), Launch("add", norm, 0), Launch("gather", 2 * m * d * F32, 0),
            Launch("add_norm", norm, 0), linear("head", form, m, v, d, y_bytes=F32), Launch("select", m * v * F32, 0),
            Launch("select, final", 64 * m * 8, 0), Launch("advance", 64 * m, 0)]
    return ends + s["n_layers"] * layer(s, form, m, length)


def bound_s(launches, device):
    """What no implementation can beat, if the sheet holds: each launch at the full rate of its nearer limit."""
    return sum(max(x.bytes / device.hbm_bytes_per_s, x.flops / device.dense_bf16_flop_per_s) for x in launches)


def model_s(launches, device, pdl):
    """What we expect of good kernels: reachable rates, and a gap per dependent launch."""
    bandwidth = device.hbm_bytes_per_s * device.read_share * device.kernel_share
    tensor = device.dense_bf16_flop_per_s * device.mma_sync_share
    gap = device.launch_gap_pdl_s if pdl else device.launch_gap_s
    return sum(max(x.bytes / bandwidth, x.flops / tensor) for x in launches) + gap * len(launches)


def mbu(launches, device, seconds):
    """Share of the readable bandwidth (not the sheet's) that a step of this time uses."""
    return sum(x.bytes for x in launches) / (device.hbm_bytes_per_s * device.read_share) / seconds


def tail(blocks, device):
    """Share of the SMs' time that blocks of equal length fill, if each SM takes its blocks one after another."""
    return blocks / device.sm_count / -(-blocks // device.sm_count)


def _table(head, rows, left=1):
    out = ["| " + " | ".join(head) + " |", "|" + "|".join([" --- "] * left + [" ---: "] * (len(head) - left)) + "|"]
    return out + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def _decode_rows(device):
    for name in MODELS:
        s = shape_of(name)
        for form in FORMATS:
            for m in BATCHES:
                launches = step(s, form, m)
                total = sum(x.bytes for x in launches)
                if total > device.memory_bytes:
                    continue
                with_gap, pdl = model_s(launches, device, False), model_s(launches, device, True)
                yield [name, form, m, len(launches), f"{total / 1e9:.2f}", f"{1e3 * bound_s(launches, device):.3f}",
                       f"{1e3 * with_gap:.3f}", f"{1e3 * pdl:.3f}", f"{m / pdl:.0f}",
                       f"{100 * mbu(launches, device, with_gap):.0f} %", f"{100 * mbu(launches, device, pdl):.0f} %"]


def _tail_rows(device):
    for name in MODELS:
        s = shape_of(name)
        whole = [x for x in step(s, "bf16", 1) if x.blocks]
        row = [name]
        for what in ("qkv", "o", "gate_up", "down", "head"):
            blocks = next(x.blocks for x in whole if x.what == what)
            row.append(f"{blocks}: {100 * tail(blocks, device):.0f} %")
        yield row


def _card_rows():
    for c in cuda_cards.cards():
        if cuda_gates.streams(c):
            yield [f"`{c.name}`", c.threads, c.min_blocks, c.stages, c.stage_bytes, c.min_blocks * c.stages * c.stage_bytes // 1024]


def page():
    out = ["# CUDA: bounds, not results", "",
           "Written by `tools/cuda_bounds.py` from the shapes in `protocols/models/`, the cards in `kernels/cuda/` and the data "
           "sheets in `protocols/devices/`. **No number on this page was measured.** Figures that are assumed, not of a sheet, say "
           "so in the device's file.", "",
           f"A decode step of B sequences, each {LENGTH} tokens long (one split of attention: 8 launches a layer; longer ones take "
           "9), cache and activations in bf16. *Bytes*: what a step must move, GB. *Bound*: sum over launches of the larger of "
           "bytes / bandwidth and FLOPs / dense tensor peak, both of the sheet, ms: nothing can be faster. *Model*: the same sum "
           "at rates that good kernels reach, plus launches times the gap between dependent kernels, ms, without and with "
           "programmatic dependent launch (PDL). *Tokens/s* and *MBU* follow from the model; MBU is the share of the bandwidth "
           "that can be read at all.", ""]
    for name in DEVICES:
        device = cuda_devices.Device(name)
        assumed = [f"{key} = {getattr(device, key):g}" for key in ("read_share", "kernel_share", "mma_sync_share", "launch_gap_s",
                                                                "launch_gap_pdl_s") if device.kinds[key] == "assumed"]
        out += [f"## {device.title}", "", f"{device.hbm_bytes_per_s / 1e12:.3g} TB/s, {device.dense_bf16_flop_per_s / 1e12:.4g} "
                f"TFLOP/s dense bf16, {device.sm_count} SMs. Assumed: {', '.join(assumed)}.", ""]
        out += _table(["model", "weights", "B", "launches", "bytes", "bound", "model", "with PDL", "tokens/s with PDL", "MBU",
                       "MBU with PDL"], _decode_rows(device), 2) + [""]
    h200 = cuda_devices.Device("h200")
    out += ["## Full SMs", "",
            f"Blocks of a product (a tile of {TILE_ROWS} rows of the weight each) and the share of {h200.sm_count} SMs' time that "
            "they fill if every SM takes its blocks one after another: the worst case, since the last blocks have more of the "
            "bandwidth to themselves.", ""]
    out += _table(["model", "qkv", "o", "gate_up", "down", "head"], _tail_rows(h200)) + [""]
    need = cuda_gates.IN_FLIGHT["h200"] // 1024, cuda_gates.IN_FLIGHT["a100"] // 1024
    out += ["## Bytes under way", "", "What the cards of the streaming kernels promise: blocks an SM times loads of 16 bytes (or "
            f"stages) under way, KiB. Needed: {need[0]} on an H200, {need[1]} on an A100.", ""]
    out += _table(["kernel", "threads", "blocks an SM", "stages", "bytes a stage", "KiB an SM"], _card_rows()) + [""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(SOURCE)} instead of printing")
    if parser.parse_args().write:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
