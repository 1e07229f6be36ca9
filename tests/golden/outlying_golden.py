#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stands out in arrays, codes with and without it, and softened distributions, by NumPy.

    python3 tests/golden/outlying_golden.py > tests/golden/outlying_golden.tsv

Written from the words of workloads/common/{outlying,dimensions,softened}.h and base/random.h. Lines: `outlying`, rows, columns,
pattern, single, exclude, bits, then names and values; `softened`, number of logits, temperature, k, then the same; `drawn`, number
of draws, then the same. Values are decimal, 12 digits.
"""
import math

import numpy as np

from model_golden import random_at, random_key

STANDS_OUT, SIGMAS = 8.0, 4.0


def fill(key, n):
    """Uniform in -1 ... 1, exact in float32."""
    return np.array([((random_at(key, i) >> 40) - (1 << 23)) * 2.0 ** -23 for i in range(n)], np.float32)


def array(rows, cols, pattern):
    x = fill(random_key(88, rows * 1000 + cols), rows * cols).reshape(rows, cols)
    if pattern == "dimensions":  # two; one of them in its first row only
        x[:, 3] *= np.float32(1000)
        x[0, cols - 2] = np.float32(300)
    if pattern == "single":
        x[rows // 2, 1] = np.float32(40)
        x[0, cols - 1] = np.float32(-24.5)
    if pattern == "equal":  # two dimensions alike
        x[:, 2] = np.float32(50)
        x[:, 4] = np.float32(-50)
    return x


def coded(x, bits):
    scale = np.abs(x).max() / (2 ** (bits - 1) - 1) or 1.0
    code = np.clip(np.rint(x / scale), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return scale, code


def levels(x, bits):
    return len(np.unique(coded(x, bits)[1]))


def outlying(x, single, exclude, bits):
    v = x.astype(np.float64)
    rows, cols = v.shape
    most = np.abs(v).max(0)
    order = np.lexsort((np.arange(cols), -most))
    median, mean, deviation = float(np.median(most)), v.mean(), v.std()
    n = int((most >= STANDS_OUT * median).sum())
    far = np.abs(v - mean)
    out = {"outlier_dims": n, "largest": most.max(), "median": median, "largest_over_median": most.max() / median}
    for i, name in enumerate(("first_dim", "second_dim", "third_dim")):
        out[name] = order[i] if i == 0 or i < n else math.nan
    out["first_rows"] = (2 * np.abs(v[:, order[0]]) >= most.max()).sum()
    out.update(values=v.size, mean_abs=np.abs(v).mean(), deviation=deviation, mean_sigma=np.abs(v).mean() / deviation,
               largest_sigma=most.max() / deviation, beyond=(far > SIGMAS * deviation).sum(),
               beyond_share=(far > SIGMAS * deviation).mean())
    edges = [0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, math.inf]
    names = ["to_quarter", "to_half", "to_1", "to_2", "to_4", "to_8", "to_16", "to_32", "beyond_32"]
    for name, lo, hi in zip(names, edges, edges[1:]):
        out["sigma_" + name] = ((far >= lo * deviation) & (far < hi * deviation)).mean()
    unit = deviation if single else 1
    bins = [0] + [2 ** i for i in range(11)] + [math.inf]
    for i in range(12):
        name = "to_%d" % (2 ** i if i < 11 else 4096)
        out[name] = ((most / unit >= bins[i]) & (most / unit < bins[i + 1])).sum()
    aside = np.zeros(v.shape, bool)
    if single:
        aside = far > SIGMAS * deviation
    else:
        aside[:, order[:exclude or n]] = True
    out["set_aside"] = aside.sum()
    middle = order[cols // 2]
    for suffix, keep in (("", np.ones(v.shape, bool)), ("_without", ~aside)):
        kept = v[keep]
        scale = coded(kept, bits)[0]
        code = np.rint(v / scale)
        stays = ~aside
        error = (code * scale).astype(np.float32).astype(np.float64) - v
        out["scale" + suffix] = scale
        out["levels_used" + suffix] = levels(kept, bits)
        out["row_levels" + suffix] = np.mean([levels(v[r][keep[r]], bits) for r in range(rows)])
        out["middle_levels" + suffix] = len(np.unique(code[keep[:, middle], middle]))
        out["zero_share" + suffix] = (code[stays] == 0).mean()
        out["error" + suffix] = math.sqrt((error[stays] ** 2).sum() / (v[stays] ** 2).sum())
    return out


def logits_of(n):
    return fill(random_key(89, n), n) * np.float32(6)


def softmax(z):
    p = np.exp(z - z.max())
    return p / p.sum()


def softened(n, temperature, k):
    z = logits_of(n).astype(np.float64)
    p, plain = softmax(z / temperature), softmax(z)
    falling, plain = np.sort(p)[::-1], np.sort(plain)[::-1]
    return {"entropy": -(p * np.log2(p)).sum(), "top": falling[0], "third": falling[2], "mass": falling[:k].sum(),
            "log_ratio": math.log(falling[0] / falling[2]), "log_ratio_1": math.log(plain[0] / plain[2]), "bits": -math.log2(p[n // 2])}


def drawn(n, draws):
    """Ids by the inverse of the cumulated distribution of softened(n, 1)."""
    p = softmax(logits_of(n).astype(np.float64))
    key, total = random_key(90, draws), np.cumsum(p)
    ids = [min(int(np.searchsorted(total, (random_at(key, i) >> 11) * 2.0 ** -53, side="right")), n - 1) for i in range(draws)]
    order, enough = np.lexsort((np.arange(n), -p)), max(5, draws / 32)
    seen = np.bincount(ids, minlength=n)
    cells, at = [], 0
    while at < n:
        end = at + 1
        while end < n and (draws * p[order[at:end]].sum() < enough or draws * p[order[end:]].sum() < enough):
            end += 1
        cells.append((seen[order[at:end]].sum(), draws * p[order[at:end]].sum()))
        at = end
    statistic = sum((s - e) ** 2 / e for s, e in cells)
    return {"statistic": statistic, "cells": len(cells), "chance": chi_square_beyond(statistic, len(cells) - 1)}


def chi_square_beyond(x, freedom):
    """Exact: the upper regularized gamma function by integration of the density (Simpson)."""
    a = freedom / 2
    top, n = max(x, freedom) + 60 * math.sqrt(2 * freedom) + 60, 200000
    t = np.linspace(x, top, n + 1)
    with np.errstate(divide="ignore"):
        f = np.exp((a - 1) * np.log(t / 2) - t / 2 - math.lgamma(a)) / 2
    return float((top - x) / n / 3 * (f[0] + f[-1] + 4 * f[1:-1:2].sum() + 2 * f[2:-1:2].sum()))


def line(*words, **values):
    print(*words, *("%s\t%.12g" % item for item in values.items()), sep="\t")


def main():
    print("# Written by tests/golden/outlying_golden.py; do not edit.")
    for rows, cols in ((7, 33), (16, 20), (1, 9)):
        for pattern in ("plain", "dimensions", "single", "equal"):
            for single, exclude, bits in ((0, 0, 8), (0, 3, 4), (1, 0, 8), (1, 0, 3)):
                line("outlying", rows, cols, pattern, single, exclude, bits, **outlying(array(rows, cols, pattern), single, exclude, bits))
    for n in (5, 100, 3000):
        for temperature in (0.5, 1, 2.5):
            line("softened", n, temperature, 4, **softened(n, temperature, 4))
    for n, draws in ((5, 40), (100, 600), (3000, 2000)):
        line("drawn", n, draws, **drawn(n, draws))


if __name__ == "__main__":
    main()
