#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of training steps, by an independent program.

The forward pass in NumPy float64 over values that remember what they came from; the backward pass is nobody's derivation:
each elementary operation hands its gradient on, in reverse order. Weights are those of model_golden.py.

    python3 tests/golden/train_golden.py > tests/golden/train_golden.tsv

Lines: variant TAB what TAB name TAB values separated by blanks. `loss`: of each step; `gradient`: of the first step, and
`weight`: after all steps: for each tensor its sum, the root of its sum of squares, and values at equal distances.
"""
import math
import sys

import numpy as np

from model_golden import SHAPES as MODELS
from model_golden import weights_of

STEPS, SAMPLES = 4, 7
RATE, BETA1, BETA2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-4, 0.01
VARIANTS = {
    "tiny": (MODELS["tiny"], 2, 7),
    "odd": (MODELS["odd"], 1, 9),
    "thin": (dict(n_layers=4, d_model=12, n_q=2, n_kv=1, d_h=4, d_ff=9, vocab=13, bias=True, tied=False, base=100.0,
                  eps=1e-5, pairs=False, seed=5), 3, 5),
}


class Value:
    def __init__(self, data, parents=()):
        self.data, self.parents, self.grad = np.asarray(data, dtype=np.float64), parents, None

    def __add__(self, other):
        return Value(self.data + other.data, [(self, lambda g: g), (other, lambda g: g)])

    def __mul__(self, other):
        return Value(self.data * other.data, [(self, lambda g: g * other.data), (other, lambda g: g * self.data)])

    def scale(self, k):
        return Value(self.data * k, [(self, lambda g: g * k)])

    def __matmul__(self, other):
        return Value(self.data @ other.data, [(self, lambda g: g @ other.data.swapaxes(-1, -2)),
                                              (other, lambda g: self.data.swapaxes(-1, -2) @ g)])

    def apply(self, f, slope):
        return Value(f(self.data), [(self, lambda g: g * slope(self.data))])

    def sum_last(self):
        return Value(self.data.sum(-1, keepdims=True), [(self, lambda g: np.broadcast_to(g, self.data.shape))])

    def move(self, there, back):
        return Value(there(self.data), [(self, back)])

    def take(self, index):
        def back(g):
            out = np.zeros_like(self.data)
            np.add.at(out, index, g)
            return out
        return Value(self.data[index], [(self, back)])


def backward(root):
    order, seen = [], set()

    def visit(v):
        stack = [(v, iter(v.parents))]
        seen.add(id(v))
        while stack:
            node, rest = stack[-1]
            for parent, _ in rest:
                if id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append((parent, iter(parent.parents)))
                    break
            else:
                order.append(node)
                stack.pop()

    visit(root)
    root.grad = np.ones_like(root.data)
    for node in reversed(order):
        for parent, hand_on in node.parents:
            g = hand_on(node.grad)
            while g.ndim > parent.data.ndim:
                g = g.sum(0)
            for axis, n in enumerate(parent.data.shape):
                if n == 1 and g.shape[axis] != 1:
                    g = g.sum(axis, keepdims=True)
            parent.grad = g if parent.grad is None else parent.grad + g


def transposed(v):
    return v.move(lambda x: x.swapaxes(-1, -2), lambda g: g.swapaxes(-1, -2))


def norm(x, gain, eps):
    mean = (x * x).sum_last().scale(1 / x.data.shape[-1])
    root = mean.apply(lambda m: (m + eps) ** -0.5, lambda m: -0.5 * (m + eps) ** -1.5)
    return x * root * gain


def heads(x, n, d_h):
    """(T, n d_h) to (n, T, d_h)."""
    t = x.data.shape[0]
    return x.move(lambda v: v.reshape(t, n, d_h).transpose(1, 0, 2), lambda g: g.transpose(1, 0, 2).reshape(t, n * d_h))


def rotate(x, s):
    """As one matrix a position: its gradient then is the transposed matrix's."""
    t, d = x.data.shape[1], s["d_h"]
    turn = np.zeros((t, d, d))
    for p in range(t):
        for i in range(d // 2):
            a, b = (2 * i, 2 * i + 1) if s["pairs"] else (i, i + d // 2)
            angle = p * s["base"] ** (-2 * i / d)
            turn[p, a, a] = turn[p, b, b] = math.cos(angle)
            turn[p, a, b], turn[p, b, a] = -math.sin(angle), math.sin(angle)
    return x.move(lambda v: np.einsum("tij,htj->hti", turn, v), lambda g: np.einsum("tij,hti->htj", turn, g))


def softmax(x):
    most = x.data.max(-1, keepdims=True)
    e = x.apply(lambda v: np.exp(v - most), lambda v: np.exp(v - most))
    return e * e.sum_last().apply(lambda v: 1 / v, lambda v: -1 / (v * v))


def loss_of(s, w, tokens):
    """Mean over all positions of all sequences; w: name to Value."""
    losses = []
    for row in tokens:
        fed, wanted, t = np.array(row[:-1]), np.array(row[1:]), len(row) - 1
        x = w["embedding"].take(fed)
        for layer in range(s["n_layers"]):
            def of(name, layer=layer):
                return w["%s %d" % (name, layer)]
            y = norm(x, of("norm 1"), s["eps"]) @ transposed(of("qkv"))
            if s["bias"]:
                y = y + of("bias")
            q_width, kv = s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"]

            def columns(a, b, y=y):
                def back(g):
                    out = np.zeros_like(y.data)
                    out[:, a:b] = g
                    return out
                return y.move(lambda v: v[:, a:b], back)
            q = rotate(heads(columns(0, q_width), s["n_q"], s["d_h"]), s)
            k = rotate(heads(columns(q_width, q_width + kv), s["n_kv"], s["d_h"]), s)
            v = heads(columns(q_width + kv, q_width + 2 * kv), s["n_kv"], s["d_h"])
            group = np.arange(s["n_q"]) // (s["n_q"] // s["n_kv"])
            scores = (q @ transposed(k.take(group))).scale(1 / math.sqrt(s["d_h"]))
            mask = Value(np.triu(np.full((t, t), -1e30), 1))
            mixed = softmax(scores + mask) @ v.take(group)
            flat = mixed.move(lambda m: m.transpose(1, 0, 2).reshape(t, -1),
                              lambda g: g.reshape(t, s["n_q"], s["d_h"]).transpose(1, 0, 2))
            x = x + flat @ transposed(of("o"))
            y = norm(x, of("norm 2"), s["eps"]) @ transposed(of("gate and up"))
            f = s["d_ff"]
            gate, up = columns(0, f, y), columns(f, 2 * f, y)
            silu = gate.apply(lambda v: v / (1 + np.exp(-v)),
                              lambda v: (1 + np.exp(-v) * (1 + v)) / (1 + np.exp(-v)) ** 2)
            x = x + (silu * up) @ transposed(of("down"))
        logits = norm(x, w["last norm"], s["eps"]) @ transposed(w["embedding" if s["tied"] else "head"])
        p = softmax(logits).take((np.arange(t), wanted))
        losses.append(p.apply(lambda v: -np.log(v), lambda v: -1 / v))
    total = losses[0].data.size * len(losses)
    out = None
    for each in losses:
        part = each.move(lambda v: v.reshape(1, -1), lambda g: g.reshape(-1)).sum_last().scale(1 / total)
        out = part if out is None else out + part
    return out


def parameters_of(s):
    """By the names and in the order of workloads/common/trainer.h."""
    w = weights_of(s)
    out = {"embedding": w["embedding"]}
    if not s["tied"]:
        out["head"] = w["head"]
    for i, layer in enumerate(w["layers"]):
        out["norm 1 %d" % i] = layer["norm_1"]
        out["qkv %d" % i] = np.concatenate([layer["q"], layer["k"], layer["v"]])
        if s["bias"]:
            out["bias %d" % i] = np.concatenate([layer["bias_q"], layer["bias_k"], layer["bias_v"]])
        out["o %d" % i], out["norm 2 %d" % i] = layer["o"], layer["norm_2"]
        out["gate and up %d" % i] = np.concatenate([layer["gate"], layer["up"]])
        out["down %d" % i] = layer["down"]
    out["last norm"] = w["norm"]
    return out


def tokens_of(s, batch, tokens):
    return [[(r * 31 + i * i * 7 + i * 3 + 1) % s["vocab"] for i in range(tokens + 1)] for r in range(batch)]


def step(s, w, tokens):
    values = {name: Value(x) for name, x in w.items()}
    loss = loss_of(s, values, tokens)
    backward(loss)
    return float(loss.data[0, 0]), {name: v.grad for name, v in values.items()}


def adamw(w, g, m, v, t, decay, eps):
    m[:] = BETA1 * m + (1 - BETA1) * g
    v[:] = BETA2 * v + (1 - BETA2) * g * g
    w -= RATE * (decay * w + m / (1 - BETA1 ** t) / (np.sqrt(v / (1 - BETA2 ** t)) + eps))


def sketch(x):
    flat = x.ravel()
    at = [i * (flat.size - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    return [flat.sum(), math.sqrt((flat * flat).sum())] + [flat[i] for i in at]


def differences(s, tokens):
    """The largest error of the gradients against central differences along themselves, of each tensor."""
    w, worst = parameters_of(s), 0
    _, grads = step(s, w, tokens)
    for name, g in grads.items():
        length = math.sqrt((g * g).sum())
        ends = []
        for side in (1e-5, -1e-5):
            moved = dict(w, **{name: w[name] + side * g / length})
            ends.append(float(loss_of(s, {k: Value(x) for k, x in moved.items()}, tokens).data[0, 0]))
        worst = max(worst, abs((ends[0] - ends[1]) / 2e-5 / length - 1))
    return worst


def main():
    def line(variant, what, name, values):
        print(variant, what, name, " ".join("%.9g" % v for v in values), sep="\t")

    print("# Written by tests/golden/train_golden.py; do not edit.")
    for variant, (s, batch, length) in VARIANTS.items():
        tokens, w = tokens_of(s, batch, length), parameters_of(s)
        m, v = ({k: np.zeros_like(x) for k, x in w.items()} for _ in range(2))
        print(variant, "tokens", "all", " ".join(str(t) for row in tokens for t in row), sep="\t")
        losses = []
        for t in range(1, STEPS + 1):
            loss, grads = step(s, w, tokens)
            losses.append(loss)
            for name, g in grads.items():
                if t == 1:
                    line(variant, "gradient", name, sketch(g))
                adamw(w[name], g, m[name], v[name], t, DECAY if g.ndim > 1 else 0, EPS)
        assert losses == sorted(losses, reverse=True), losses
        line(variant, "loss", "steps", losses)
        for name, x in w.items():
            line(variant, "weight", name, sketch(x))
    w, m, v = np.array([1.0, -2.0, 0.5, 0.0]), np.zeros(4), np.zeros(4)
    for t, g in enumerate([[0.1, -3.0, 0.0, 1e-6], [0.2, 3.0, 0.0, -1e-6], [-0.4, 1.0, 0.0, 2e-6]], 1):
        adamw(w, np.array(g), m, v, t, 0.1, 1e-8)
    line("adamw", "weight", "w", w)
    line("adamw", "weight", "m", m)
    line("adamw", "weight", "v", v)


if __name__ == "__main__":
    sys.exit(main())
