#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradients for shapes that no document prints, in float64 NumPy.

The gradients do not come from the formulas that the kernels use, but from the function itself by a complex step:
f'(x) = Im f(x + i h) / h, exact to rounding (Squire and Trapp 1998). Prints flash_golden.tsv: a line `case queries keys
heads d_h causal`, then lines `array value value ...`.

    /usr/bin/python3 tests/golden/flash_golden.py > tests/golden/flash_golden.tsv
"""
import numpy as np

rng = np.random.default_rng(20240731)


def attention(q, k, v, causal):
    """q (queries, d), k and v (keys, d): O, and L of each row; rows that see no key give 0 and -inf."""
    s = q @ k.T / np.sqrt(q.shape[1])
    n, t = s.shape
    mask = np.arange(t)[None, :] <= np.arange(n)[:, None] + t - n if causal else np.ones((n, t), bool)
    s = np.where(mask, s, -np.inf)
    m = np.where(mask.any(1), s.real.max(1), 0)[:, None]
    e = np.where(mask, np.exp(np.where(mask, s, 0) - m), 0)
    total = e.sum(1)[:, None]
    seen = mask.any(1)[:, None]
    with np.errstate(divide="ignore"):
        lse = np.where(seen, m + np.log(np.where(seen, total, 1)), -np.inf)
    return np.where(seen, e / np.where(seen, total, 1), 0) @ v, lse[:, 0].real


def gradient(inputs, which, d_o, causal):
    out = np.zeros(inputs[which].shape)
    for at in np.ndindex(out.shape):
        moved = [x.astype(complex) for x in inputs]
        moved[which][at] += 1e-30j
        out[at] = np.sum(attention(*moved, causal)[0] * d_o).imag / 1e-30
    return out


def put(name, values):
    print(name, *("%.12g" % v for v in np.asarray(values).reshape(-1)))


def case(queries, keys, heads, d_h, causal, size=1.0):
    """Inputs are short decimals; the C side reads them as floats, and so does this."""
    shapes = [queries, keys, keys, queries]
    inputs = [np.round(rng.normal(size=(n, heads, d_h)) * (size if i == 0 else 1), 2) for i, n in enumerate(shapes)]
    print("case", queries, keys, heads, d_h, int(causal))
    for name, x in zip("QKVG", inputs):
        put(name, x)
    inputs = [x.astype(np.float32).astype(np.float64) for x in inputs]
    results = {name: [] for name in ("O", "dQ", "dK", "dV", "L")}
    for h in range(heads):
        q, k, v, d_o = (x[:, h] for x in inputs)
        o, lse = attention(q, k, v, causal)
        results["O"].append(o)
        results["L"].append(lse)
        for i, name in enumerate(("dQ", "dK", "dV")):
            results[name].append(gradient([q, k, v], i, d_o, causal))
    for name, parts in results.items():
        put(name, np.stack(parts, axis=0 if name == "L" else 1))


case(1, 1, 2, 3, False)
case(6, 6, 2, 5, True)
case(9, 9, 1, 4, False, 4.0)
case(4, 11, 3, 2, True)
case(7, 3, 1, 8, True)
case(17, 17, 1, 16, True, 2.0)
