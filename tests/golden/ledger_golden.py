#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What products, attention and the parts of a decode step multiply and move, counted array by array.

    python3 tests/golden/ledger_golden.py > tests/golden/ledger_golden.tsv

Nothing here knows our formulas: matrices are listed op by op and layer by layer, pairs are ones in a mask, bytes are what
NumPy's arrays would take. Lines: workload TAB its settings TAB shape TAB [model] settings TAB activation TAB phase TAB
quantity TAB number.
"""
import os
import tomllib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "protocols", "models")
SIZE = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}


def shape_of(name):
    with open(os.path.join(MODELS, name + ".toml"), "rb") as file:
        return tomllib.load(file)


def matrix(rows, cols, kind):
    """Payload and scale bytes of a stored matrix, one row at a time."""
    payload = scales = 0
    for _ in range(rows):
        if kind in ("f32", "f16", "bf16"):
            payload += cols * SIZE[kind]
        elif kind.startswith("int8"):
            payload += cols
        else:
            payload += len(np.packbits(np.zeros((cols, 4), np.uint8)))
        if kind in ("int8", "int4-row"):
            scales += 4
        elif kind in ("int8-group", "int4", "nf4"):
            scales += 2 * len(np.arange(0, cols, 64 if kind == "nf4" else 128))
    return np.array([payload, scales + (4 if kind.endswith("tensor") else 0)])


class Count:
    def __init__(self, config):
        self.config = config
        self.flops = 0
        self.bytes = dict.fromkeys(("weight", "scale", "kv", "activation", "logits"), 0)

    def product(self, m, parts, cols, bias=False):
        """Rows of stacked matrices, each on its own."""
        for rows in parts:
            self.flops += 2 * m * rows * cols
            payload, scales = matrix(rows, cols, self.config["type"])
            self.bytes["weight"] += int(payload) + (4 * rows if bias else 0)
            self.bytes["scale"] += int(scales)

    def values(self, *shapes, size=None):
        for shape in shapes:
            self.bytes["activation"] += int(np.prod(shape)) * (size or SIZE[self.config["activation"]])

    def exact(self, *shapes):
        self.values(*shapes, size=4)

    def cache(self, tokens, heads, width):
        kind = self.config["kv_type"]
        self.bytes["kv"] += 2 * tokens * heads * width * SIZE[kind]
        self.bytes["scale"] += 2 * tokens * heads * 4 if kind == "int8" else 0


def attend(count, batch, rows, length, n_q, n_kv, d_h, window=0):
    position = np.arange(length - rows, length)[:, None]
    seen = np.arange(length)[None, :]
    mask = seen <= position
    if window:
        mask &= seen > position - window
    for _ in range(batch):
        for _ in range(n_q):
            count.flops += int(mask.sum()) * 2 * d_h  # q k
            count.flops += int(mask.sum()) * 2 * d_h  # p v
        count.cache(int(mask.any(axis=0).sum()), n_kv, d_h)
    count.values((batch * rows, n_q, d_h), (batch * rows, n_q, d_h))


def gemm(config, shape, matrix_name, m, n=0, k=0):
    s, count = shape_of(shape), Count(config)
    q, kv = s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"]
    parts, cols = {"qkv": ([q + 2 * kv], s["d_model"]), "out": ([s["d_model"]], q), "down": ([s["d_model"]], s["d_ff"]),
                   "gate_up": ([s["d_ff"]] * 2, s["d_model"]), "mlp": ([s["d_ff"]] * 2, s["d_model"]),
                   "head": ([s["vocab"]], s["d_model"])}[matrix_name]
    parts, cols = [n or rows for rows in parts], k or cols
    count.product(m, parts, cols)
    count.values((m, cols), (m, parts[0]))
    if matrix_name == "mlp":
        count.product(m, [cols], parts[0])
        count.values((m, parts[0]), (m, cols))
    return {"product": count}


def attention(config, shape, batch, tokens, context):
    s, count = shape_of(shape), Count(config)
    attend(count, batch, tokens, context, s["n_q"], s["n_kv"], s["d_h"], config.get("window", 0))
    return {"attention": count}


def step(config, shape, batch, context):
    s = shape_of(shape)
    d, f, vocab, n_q, n_kv, d_h = (s[k] for k in ("d_model", "d_ff", "vocab", "n_q", "n_kv", "d_h"))
    q, kv = n_q * d_h, n_kv * d_h
    names = "embed norm qkv rope attention out mlp head select".split()
    part = {name: Count(config) for name in names}
    for _ in range(batch):
        payload, scales = matrix(1, d, config["type"])
        part["embed"].bytes["weight"] += int(payload)
        part["embed"].bytes["scale"] += int(scales)
    part["embed"].exact((batch, d))
    for layer in range(s["n_layers"]):
        norm = part["norm"]
        if layer:  # what the layer before left is added first
            norm.values((batch, d))
            norm.exact((batch, d))  # the sum goes back
        norm.exact((batch, d))
        norm.bytes["weight"] += 4 * d
        norm.values((batch, d))
        part["qkv"].product(batch, [q, kv, kv], d, bias=s.get("qkv_bias", False))
        part["qkv"].values((batch, d), (batch, q + 2 * kv))
        part["rope"].values((batch, q + 2 * kv), (batch, q))
        part["rope"].cache(batch, n_kv, d_h)
        attend(part["attention"], batch, 1, context + 1, n_q, n_kv, d_h, config.get("window", 0))
        part["out"].product(batch, [d], q)
        part["out"].values((batch, q), (batch, d))
        norm.values((batch, d), (batch, d))
        norm.exact((batch, d), (batch, d))
        norm.bytes["weight"] += 4 * d
        part["mlp"].product(batch, [f, f], d)
        part["mlp"].values((batch, d), (batch, f))
        part["mlp"].product(batch, [d], f)
        part["mlp"].values((batch, f), (batch, d))
    head = part["head"]
    head.values((batch, d))  # the last layer's part is added
    head.exact((batch, d), (batch, d))
    head.exact((batch, d), (batch, d))  # rows gathered
    head.exact((batch, d))  # and normed
    head.values((batch, d))
    head.bytes["weight"] += 4 * d
    head.product(batch, [vocab], d)
    head.values((batch, d))
    head.bytes["logits"] += 4 * batch * vocab
    part["select"].bytes["logits"] += 4 * batch * vocab
    return part


CASES = []
for kind in "f32 f16 bf16 int8 int8-tensor int8-group int4 int4-tensor int4-row nf4".split():
    CASES.append(("gemv", gemm, "tiny", {"type": kind}, "f32", {"matrix_name": "down", "m": 2}))
    CASES.append(("gemm", gemm, "smollm2-135m", {"type": kind}, "bf16", {"matrix_name": "mlp", "m": 5}))
for name in "qkv out gate_up down head mlp".split():
    CASES.append(("gemm", gemm, "seed-0.5b", {"type": "bf16"}, "f32", {"matrix_name": name, "m": 17}))
CASES.append(("gemm", gemm, "tiny", {"type": "int4"}, "f16", {"matrix_name": "out", "m": 1, "n": 33, "k": 131}))
for kv in SIZE:
    CASES.append(("attention", attention, "7b", {"kv_type": kv}, "f32", {"batch": 3, "tokens": 1, "context": 70}))
    CASES.append(("attention", attention, "tiny", {"kv_type": kv, "window": 6}, "bf16",
                  {"batch": 2, "tokens": 5, "context": 13}))
CASES.append(("attention", attention, "13b", {"kv_type": "bf16"}, "f32", {"batch": 1, "tokens": 40, "context": 40}))
for shape, kind, kv, act in (("tiny", "bf16", "bf16", "f32"), ("smollm2-135m", "int8-group", "int8", "bf16"),
                             ("7b", "f16", "f32", "f16")):
    CASES.append(("step", step, shape, {"type": kind, "kv_type": kv}, act, {"batch": 3, "context": 20}))


def main():
    print("# Written by tests/golden/ledger_golden.py; do not edit.")
    for workload, count, shape, model, act, settings in CASES:
        config = {"type": "bf16", "kv_type": "bf16", "activation": act, **model}
        words = " ".join("%s=%s" % (k.replace("matrix_name", "matrix"), v) for k, v in settings.items())
        for phase, c in count(config, shape, **settings).items():
            for what, value in [("flops", c.flops), *c.bytes.items()]:
                print(workload, words, shape, " ".join("%s=%s" % kv for kv in model.items()), act, phase, what, value,
                      sep="\t")


if __name__ == "__main__":
    main()
