#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of the workload `quality`, by an independent program.

    python3 tests/golden/quality_golden.py > tests/golden/quality_golden.tsv

Perplexity, divergence, agreement and continuations of the built-in transformer with rounded weights beside the same in float64: the
forward pass of model_golden.py over whole windows, without a cache; rounding from seeds E32's formula. Intervals: the block bootstrap
drawn from the same counter-based numbers, with NumPy's quantiles. Lines: what TAB settings TAB name=value ...
"""
import math
import sys

import numpy as np

import model_golden as golden

MASK = golden.MASK
SHAPE = golden.SHAPES["tiny"]
SEED = 5  # of the test's run
SETTINGS = [dict(tokens=96, window=24, stride=12, unscored=11, greedy=12, continuations=3, prompt=8),
            dict(tokens=70, window=33, stride=33, unscored=7, greedy=10, continuations=1, prompt=13)]
TYPES = ["bf16", "int8", "int8-tensor", "int4-row"]


def below(key, i, n):
    return (golden.random_at(key, i) >> 32) * n >> 32


# ---- rounding
def bf16(w):
    u = w.astype("<f4").view("<u4")
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16 << 16).astype("<u4").view("<f4").astype(np.float64)


def rounded(w, kind):
    if kind == "bf16":
        return bf16(w)
    top = 7 if kind.startswith("int4") else 127
    most = np.abs(w).max() if kind.endswith("tensor") else np.abs(w).max(1, keepdims=True)
    scale = most.astype(np.float32) / np.float32(top)
    # These weights are whole multiples of one unit: quotients near a half are frequent, and f32 decides them.
    code = np.clip(np.rint(w.astype(np.float32) / scale), -top - 1, top)
    return (code * scale).astype(np.float64)


def rounded_model(w, kind):
    layers = [{n: rounded(m, kind) if m.ndim == 2 else m for n, m in layer.items()} for layer in w["layers"]]
    embedding = rounded(w["embedding"], kind)
    return dict(w, embedding=embedding, head=embedding, layers=layers)


def relative(a, b):
    return math.sqrt(((a - b) ** 2).sum() / (b * b).sum())


# ---- the model
def logits(s, w, tokens):
    """Of all positions, (T, vocab)."""
    t, x = len(tokens), w["embedding"][tokens]
    for layer in w["layers"]:
        y = golden.norm(x, layer["norm_1"], s["eps"])
        q, k, v = ((y @ layer[n].T + layer["bias_" + n]).reshape(t, -1, s["d_h"]) for n in "qkv")
        q, k = golden.rotate(q, s), golden.rotate(k, s)
        k, v = (np.repeat(a, s["n_q"] // s["n_kv"], 1) for a in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(s["d_h"]) + np.triu(np.full((t, t), -np.inf), 1)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        out = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v)
        x = x + out.reshape(t, -1) @ layer["o"].T
        y = golden.norm(x, layer["norm_2"], s["eps"])
        gate = y @ layer["gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ layer["up"].T)) @ layer["down"].T
    return golden.norm(x, w["norm"], s["eps"]) @ w["head"].T


def log_p(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def write(s, w, prompt, n):
    tokens = list(prompt)
    for _ in range(n):
        tokens.append(int(np.argmax(logits(s, w, tokens)[-1])))
    return tokens[len(prompt):]


# ---- intervals
def blocks(x, block, seed):
    parts = [x[i:i + block] for i in range(0, len(x), block)]
    key, n = golden.random_key(seed, 0), len(parts)
    means = []
    for d in range(2000):
        drawn = [parts[below(key, d * n + j, n)] for j in range(n)]
        means.append(sum(map(sum, drawn)) / sum(map(len, drawn)))
    return np.quantile(means, [0.025, 0.975])


def wilson(k, n):
    """The roots of (p - k/n)^2 = z^2 p (1 - p) / n."""
    z2, f = 1.9599639845400545 ** 2, k / n
    return sorted(np.roots([1 + z2 / n, -(2 * f + z2 / n), f * f]).real)


def judge(s, exact, kind, o):
    w = rounded_model(exact, kind)
    key = golden.random_key(SEED, 0)
    n = (o["tokens"] - o["window"]) // o["stride"] + 1
    used = (n - 1) * o["stride"] + o["window"]
    text = [below(key, i, s["vocab"]) for i in range(used)]
    nll, nll_reference, kl, top, worst_error = [], [], [], 0, 0.0
    for i in range(n):
        tokens = text[i * o["stride"]:][:o["window"]]
        raw, raw_reference = logits(s, w, tokens), logits(s, exact, tokens)
        ours, reference = log_p(raw), log_p(raw_reference)
        for at in range(o["unscored"], o["window"] - 1):
            nll.append(-ours[at, tokens[at + 1]])
            nll_reference.append(-reference[at, tokens[at + 1]])
            kl.append(float((np.exp(reference[at]) * (reference[at] - ours[at])).sum()))
            top += int(np.argmax(ours[at]) == np.argmax(reference[at]))
            worst_error = max(worst_error, float(np.abs(raw[at] - raw_reference[at]).max()))
    each, same, before = o["greedy"] // o["continuations"], 0, 0
    for q in range(o["continuations"]):
        begin = (used - o["prompt"]) * q // o["continuations"]
        prompt = text[begin:begin + o["prompt"]]
        written = write(s, exact, prompt, each)
        shown = logits(s, w, prompt + written[:-1])[o["prompt"] - 1:]
        same += sum(int(a == b) for a, b in zip(shown.argmax(-1), written))
        own = write(s, w, prompt, each)
        before += next((i for i in range(each) if own[i] != written[i]), each)
    nll, nll_reference = np.array(nll), np.array(nll_reference)
    errors = [relative(a[m], b[m]) for a, b in zip(w["layers"], exact["layers"]) for m in ("q", "k", "v", "o", "gate", "up", "down")]
    out = {"scored": len(kl), "perplexity": math.exp(nll.mean()), "reference_perplexity": math.exp(nll_reference.mean()),
           "ppl_ratio": math.exp((nll - nll_reference).mean()), "kl": np.mean(kl), "worst_kl": max(kl), "top1": top / len(kl),
           "greedy": same / o["greedy"], "first_difference": before / o["continuations"], "weight_error": np.mean(errors),
           "worst_weight_error": max(errors), "embedding_error": relative(w["embedding"], exact["embedding"])}
    for name, k, of in (("top1", top, len(kl)), ("greedy", same, o["greedy"])):
        out[name + "_lo"], out[name + "_hi"] = wilson(k, of)
    return out


def say(what, settings, values):
    print(what, settings, " ".join("%s=%.12g" % v for v in values.items()), sep="\t")


def main():
    print("# Written by tests/golden/quality_golden.py; do not edit.")
    for n, block, seed in [(256, 32, 5), (263, 32, 5), (1000, 7, 2026), (255, 32, 9), (64, 1, 1), (224, 32, 5)]:
        x = [(((i * 2654435761) % 2 ** 32) >> 8) / 2 ** 24 + (i // 50 % 3) for i in range(n)]
        lo, hi = blocks(x, block, seed) if -(-n // block) >= 8 else (math.nan, math.nan)
        say("blocks", "%d %d %d" % (n, block, seed), {"lo": lo, "hi": hi})
    exact = golden.weights_of(SHAPE)
    for kind in TYPES:
        for o in SETTINGS:
            say("model", "%s\t%s" % (kind, " ".join("%s=%d" % v for v in o.items())), judge(SHAPE, exact, kind, o))


if __name__ == "__main__":
    sys.exit(main())
