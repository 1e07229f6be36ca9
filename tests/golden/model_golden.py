#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of the built-in transformer, by an independent program.

Written from base/synthetic.h, workloads/model/synth.h and kernels/ops.h only: the generator in Python integers, the forward
pass in NumPy float64. It keeps no cache: every logit comes from a pass over the whole sequence.

    python3 tests/golden/model_golden.py > tests/golden/model_golden.tsv

Lines: variant TAB what TAB name TAB values separated by blanks. Weights are float32 in hexadecimal: they must agree to the
bit; logits and keys are decimal: within the rounding of float32.
"""
import math
import struct
import sys

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

SHAPES = {
    # As protocols/models/tiny.toml: biases, grouped queries, tied head, rotated halves.
    "tiny": dict(n_layers=2, d_model=64, n_q=4, n_kv=2, d_h=16, d_ff=160, vocab=288, bias=True, tied=True,
                 base=10000.0, eps=1e-5, pairs=False, seed=1),
    # Nothing in common with it, and nothing a power of two.
    "odd": dict(n_layers=3, d_model=50, n_q=6, n_kv=3, d_h=6, d_ff=101, vocab=97, bias=False, tied=False,
                base=500.0, eps=1e-6, pairs=True, seed=2026),
}
PROMPT, STEPS = 11, 5


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def random_key(seed, stream):
    return mix((seed + GOLDEN * (stream + 1)) & MASK)


def random_at(key, i):
    return mix((key + GOLDEN * (i + 1)) & MASK)


def unit_of(cols):
    m = (math.isqrt((1 << 62) // cols) << 16) // 148
    exponent = -47
    while m > 255:
        m >>= 1
        exponent += 1
    return math.ldexp(m, exponent)


def matrix(seed, stream, rows, cols, factor=1.0, tail=True):
    key, unit = random_key(seed, stream), unit_of(cols) * factor
    out = np.empty((rows, cols))
    for r in range(rows):
        row = random_at(key, r)
        for c in range(cols):
            h = random_at(row, c // 2) >> (32 * (c % 2)) & 0xFFFFFFFF
            out[r, c] = (sum(h >> (8 * i) & 255 for i in range(4)) - 510) * unit
        for block in range((cols + 127) // 128):
            h = random_at(row, (1 << 40) + block)
            c = 128 * block + (h & 127)
            if tail and h >> 32 < 176218030 and c < cols:
                v = (452 + ((h >> 10 & 1023) * 452 >> 10)) << (0, 0, 1, 2)[h >> 7 & 3]
                out[r, c] = (-v if h >> 9 & 1 else v) * unit
    assert (out == out.astype(np.float32)).all()
    return out


def small(seed, stream, n):
    key = random_key(seed, stream)
    return np.array([((random_at(key, i) & 255) - 128) / 1024 for i in range(n)])


def signs(seed, stream, n):
    key = random_key(seed, stream)
    return np.array([-1 if random_at(key, i) >> 8 & 1 else 1 for i in range(n)])


def weights_of(s):
    seed, d, q, kv = s["seed"], s["d_model"], s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"]
    w = {"embedding": matrix(seed, 0, s["vocab"], d, tail=False), "norm": (1 + small(seed, 2, d)) * signs(seed, 2, d), "layers": []}
    w["head"] = w["embedding"] if s["tied"] else matrix(seed, 1, s["vocab"], d, tail=False)
    for i in range(s["n_layers"]):
        at = 16 * (i + 1)
        layer = {name: matrix(seed, at + k, *shape, factor={"q": 2.0, "o": 0.25}.get(name, 1.0)) for k, (name, shape) in enumerate(
            [("q", (q, d)), ("k", (kv, d)), ("v", (kv, d)), ("o", (d, q)), ("gate", (s["d_ff"], d)),
             ("up", (s["d_ff"], d)), ("down", (d, s["d_ff"]))])}
        layer["norm_1"], layer["norm_2"] = 1 + small(seed, at + 7, d), 1 + small(seed, at + 8, d)
        for k, (name, n) in enumerate([("bias_q", q), ("bias_k", kv), ("bias_v", kv)]):
            layer[name] = small(seed, at + 9 + k, n) if s["bias"] else np.zeros(n)
        w["layers"].append(layer)
    return w


def norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def rotate(x, s):
    """x (T, heads, d_h): each pair of values turned by position * base^(-2 i / d_h)."""
    half = s["d_h"] // 2
    angle = np.arange(x.shape[0])[:, None] * s["base"] ** (-2 * np.arange(half) / s["d_h"])
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    first, second = (slice(0, None, 2), slice(1, None, 2)) if s["pairs"] else (slice(0, half), slice(half, None))
    a, b = x[..., first], x[..., second]
    out = np.empty_like(x)
    out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
    return out


def forward(s, w, tokens, most=None):
    """Logits of the last position; K and V of each layer as (heads, T, d_h). Into most, by place and layer: the largest magnitude
    of each dimension of what flows into the layer's matrices, and of the stream behind it."""
    t, x, kept, most = len(tokens), w["embedding"][tokens], [], {} if most is None else most

    def look(place, values):
        most[place, len(kept) - 1] = np.abs(values).max(0)

    for layer in w["layers"]:
        y = norm(x, layer["norm_1"], s["eps"])
        q = rotate((y @ layer["q"].T + layer["bias_q"]).reshape(t, s["n_q"], s["d_h"]), s)
        k = rotate((y @ layer["k"].T + layer["bias_k"]).reshape(t, s["n_kv"], s["d_h"]), s)
        v = (y @ layer["v"].T + layer["bias_v"]).reshape(t, s["n_kv"], s["d_h"])
        kept.append((k.transpose(1, 0, 2), v.transpose(1, 0, 2)))
        look("qkv", y)
        out = np.empty((t, s["n_q"], s["d_h"]))
        for h in range(s["n_q"]):
            g = h // (s["n_q"] // s["n_kv"])
            scores = q[:, h] @ k[:, g].T / math.sqrt(s["d_h"])
            scores[np.triu_indices(t, 1)] = -np.inf
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, h] = p / p.sum(-1, keepdims=True) @ v[:, g]
        look("out", out.reshape(t, -1))
        x = x + out.reshape(t, -1) @ layer["o"].T
        y = norm(x, layer["norm_2"], s["eps"])
        look("mlp", y)
        gate, up = y @ layer["gate"].T, y @ layer["up"].T
        product = gate / (1 + np.exp(-gate)) * up
        look("down", product)
        x = x + product @ layer["down"].T
        look("residual", x)
    return norm(x[-1], w["norm"], s["eps"]) @ w["head"].T, kept


def softened(s, w, temperature, n=12, skip=2, top=3, seed=5):
    """Means over positions of softmax(logits / T): what the workload next_token reports of n drawn tokens."""
    key = random_key(seed, 0)
    tokens = [(random_at(key, i) >> 32) * s["vocab"] >> 32 for i in range(n)]
    out = []
    for i in range(skip, n):
        z = forward(s, w, tokens[:i + 1])[0]
        p = np.exp((z - z.max()) / temperature)
        p /= p.sum()
        falling, order = np.sort(p)[::-1], np.sort(z)[::-1]
        entropy = -(p * np.log2(p)).sum()
        bits = -math.log2(p[tokens[i + 1]]) if i + 1 < n else math.nan
        out.append((entropy, 2 ** entropy, falling[0], falling[:top].sum(), (order[0] - order[2]) / temperature, bits))
    means = np.nanmean(out, axis=0)
    means[4] = math.exp(means[4])
    return means


def main():
    def line(variant, what, name, values):
        print(variant, what, name, " ".join(values), sep="\t")

    def exact(values):
        return ["%08x" % struct.unpack("<I", struct.pack("<f", v))[0] for v in values]

    def decimal(values):
        return ["%.9g" % v for v in values]

    print("# Written by tests/golden/model_golden.py; do not edit.")
    for variant, s in SHAPES.items():
        w = weights_of(s)
        for name, m in [("embedding", w["embedding"]), ("head", w["head"]), ("q", w["layers"][0]["q"]),
                        ("v", w["layers"][-1]["v"]), ("up", w["layers"][0]["up"]), ("down", w["layers"][-1]["down"])]:
            for r in (0, 1, len(m) - 1):
                line(variant, "weight", "%s %d" % (name, r), exact(m[r]))
        line(variant, "vector", "norm", exact(w["norm"]))
        key = random_key(7, 3)
        tokens = [(random_at(key, i) >> 32) * s["vocab"] >> 32 for i in range(PROMPT)]
        line(variant, "tokens", "prompt", map(str, tokens))
        for step in range(STEPS):
            most = {}
            logits, kept = forward(s, w, tokens, most)
            line(variant, "logits", str(step), decimal(logits))
            if step == 0:
                for i, (k, v) in enumerate(kept):
                    line(variant, "k", str(i), decimal(k.ravel()))
                    line(variant, "v", str(i), decimal(v.ravel()))
                for (place, i), values in most.items():
                    line(variant, "most", "%s %d" % (place, i), decimal(values))
                values = sum(k.size + v.size for k, v in kept)
                line(variant, "kv_values", str(PROMPT), [str(values)])
            tokens.append(int(np.argmax(logits)))
        line(variant, "tokens", "generated", map(str, tokens[PROMPT:]))
        for temperature in (0.5, 1, 2):
            line(variant, "softened", "%g" % temperature, decimal(softened(s, w, temperature)))


if __name__ == "__main__":
    sys.exit(main())
