#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rounding does to small seeded matrices, and to attention over a small cache, by NumPy: for
tests/unit/workloads/test_quantize.c. Written from the formulas (seeds E32, E33, E36, E40, E41), not from the program.

    python3 quantize_golden.py > quantize_golden.tsv
"""
import math

import numpy as np

from model_golden import random_at as at, random_key as key_of

NF4 = np.array([-1.0, -0.69619292, -0.525073051, -0.394917488, -0.284441352, -0.18477343, -0.0910499915, 0.0,
                0.0795803294, 0.160930172, 0.246112287, 0.337915182, 0.4407098, 0.562616944, 0.722956717, 1.0], np.float32)


# ---- random numbers: SplitMix64 over a counter

def unit(key, i):
    return (at(key, i) >> 11) * 2.0 ** -53


def normal(key, i):
    return math.sqrt(-2 * math.log(1 - unit(key, 2 * i))) * math.cos(2 * math.pi * unit(key, 2 * i + 1))


def shuffled(key, n):
    v = list(range(n))
    for i in range(n - 1, 0, -1):
        j = (at(key, i) >> 32) * (i + 1) >> 32
        v[i], v[j] = v[j], v[i]
    return v


def matrix(rows, cols, pattern):
    key = key_of(77, rows * 1000 + cols)
    w = np.array([((at(key, i) >> 40) - (1 << 23)) * 2.0 ** -23 for i in range(rows * cols)], np.float32)
    w = w.reshape(rows, cols)
    if pattern == "outlier":
        w.reshape(-1)[rows * cols // 2] = 40
    if pattern == "zeros":
        w[0] = 0
    if pattern == "column":
        w[:, cols // 2] *= np.float32(16)
    if pattern == "offset":
        w += np.float32(3)
    return w


# ---- the packers: scales in f32, of groups in f16

def packed(w, kind, where, group):
    """Codes, and what they mean."""
    top = {"int8": 127, "int4": 7, "nf4": 1}[kind]
    span = {"tensor": w.shape[1], "row": w.shape[1], "group": group}[where]
    codes, back = np.zeros(w.shape, int), np.zeros(w.shape, np.float32)
    for r, row in enumerate(w):
        for begin in range(0, w.shape[1], span):
            run = row[begin:begin + span]
            most = np.abs(w).max() if where == "tensor" else np.abs(run).max()
            scale = np.float32(most) / np.float32(top) if most > 0 else np.float32(1)
            if where == "group":
                scale = np.float32(np.float16(scale))
            x = run / scale
            if kind == "nf4":
                middle = (NF4[:-1].astype(float) + NF4[1:].astype(float)) / 2
                c = (x.astype(float)[:, None] > middle).sum(1)
                v = NF4[c] * scale
            else:
                c = np.clip(np.rint(x), -top - 1, top).astype(int)
                v = c.astype(np.float32) * scale
            codes[r, begin:begin + span], back[r, begin:begin + span] = c, v
    return codes, back


def norm(x):
    return math.sqrt(float((x.astype(float) ** 2).sum()))


def packer_case(rows, cols, pattern, kind, where, group):
    w = matrix(rows, cols, pattern)
    codes, back = packed(w, kind, where, group)
    wide, error = w.astype(float), np.abs(back.astype(float) - w.astype(float))
    counts = np.sort(np.unique(codes, return_counts=True)[1])[::-1]
    share = counts / w.size
    deviation = math.sqrt(float(((wide - wide.mean()) ** 2).mean()))
    groups = {"tensor": 0, "row": 1, "group": -(-cols // group) if group else 0}[where]
    payload = rows * ((cols * (8 if kind == "int8" else 4) + 7) // 8)
    scales = {"tensor": 4, "row": 4 * rows, "group": 2 * rows * groups}[where]
    row_errors = [norm(back[r].astype(float) - wide[r]) / norm(w[r]) for r in range(rows) if norm(w[r]) > 0]
    need = w.size - w.size // 100
    numbers = [error.mean(), math.sqrt(float((error ** 2).mean())), error.max(), norm(error) / norm(w) if norm(w) else 0,
               max(row_errors, default=0), int((back == 0).sum()), len(counts), int(np.searchsorted(np.cumsum(counts), need) + 1),
               2 ** float(-(share * np.log2(share)).sum()), (payload + scales) * 8 / w.size, deviation,
               int((np.abs(wide - wide.mean()) > 6 * deviation).sum())]
    print("packer", rows, cols, pattern, kind, where, group, *map(repr, map(float, numbers)), sep="\t")


# ---- schemes in double, along rows, columns or everything

def rounded(x, scheme, bits):
    """Codes and values of one run."""
    x = x.astype(float)
    least, most = x.min(), x.max()
    largest = max(abs(least), abs(most))
    if scheme == "nf4":
        scale = largest or 1.0
        middle = (NF4[:-1].astype(float) + NF4[1:].astype(float)) / 2
        codes = (x[:, None] / scale > middle).sum(1)
        return codes, NF4[codes].astype(float) * scale
    if scheme == "symmetric":
        top = 2 ** (bits - 1) - 1
        scale = largest / top or 1.0
        codes = np.clip(np.rint(x / scale), -top - 1, top)
        return codes, codes * scale
    top = 2 ** bits - 1
    scale = (most - least) / top if most > least else largest or 1.0
    zero = -np.rint(least / scale)
    codes = np.clip(np.rint(x / scale) + zero, 0, top)
    return codes, (codes - zero) * scale


def by_runs(w, scheme, bits, by, run):
    """Codes, values as f32, and the number of scales."""
    codes, back = np.zeros(w.shape), np.zeros(w.shape, np.float32)
    if by == "all":
        c, v = rounded(w.reshape(-1), scheme, bits)
        return c.reshape(w.shape), v.reshape(w.shape).astype(np.float32), 1
    lines, codes_, back_ = (w, codes, back) if by == "row" else (w.T, codes.T, back.T)
    scales = 0
    for i, line in enumerate(lines):
        span = run if 0 < run < line.size else line.size
        for begin in range(0, line.size, span):
            codes_[i, begin:begin + span], v = rounded(line[begin:begin + span], scheme, bits)
            back_[i, begin:begin + span] = v
            scales += 1
    return codes, back, scales


def scheme_case(rows, cols, pattern, scheme, bits, by, run):
    w = matrix(rows, cols, pattern)
    codes, back, scales = by_runs(w, scheme, bits, by, run)
    error = np.abs(back.astype(float) - w.astype(float))
    zero_bits = 8 if scheme == "affine" else 0
    numbers = [error.sum(), norm(error), error.max(), norm(error) / norm(w) if norm(w) else 0, scales, int((back == 0).sum()),
               np.unique(codes).size, bits + scales * (16 + zero_bits) / w.size]
    print("scheme", rows, cols, pattern, scheme, bits, by, run, *map(repr, map(float, numbers)), sep="\t")


# ---- attention over rounded keys and values

def drawn(tokens, d_h, key, share, scale):
    w = np.array([normal(key_of(key, 0), i) for i in range(tokens * d_h)]).astype(np.float32).reshape(tokens, d_h)
    count = max(1, round(share * d_h)) if share > 0 else 0
    for c in shuffled(key_of(key, 3), d_h)[:count]:
        w[:, c] = (scale * w[:, c].astype(float)).astype(np.float32)
    return w


def softmax_of(q, k, v):
    s = k @ q / math.sqrt(q.size)
    p = np.exp(s - s.max())
    return p / p.sum() @ v


def cache_case(context, scheme, bits, by, run, part, share, scale, offset):
    batch, n_q, n_kv, d_h, draw = 2, 4, 2, 16, 1
    keys, values, sides = [], [], []
    for h in range(batch * n_kv):
        key = key_of(key_of(draw, 1), h)
        k = drawn(context, d_h, key, share, scale)
        if offset > 0:
            k = k + np.array([normal(key_of(key, 9), c) * offset for c in range(d_h)]).astype(np.float32)
        v = drawn(context, d_h, key_of(key_of(draw, 2), h), 0, 0)
        where = {"token": "row", "channel": "column", "head": "all"}[by]
        k2 = by_runs(k, scheme, bits, where, run)[1] if part != "values" else k
        v2 = by_runs(v, scheme, bits, where, run)[1] if part != "keys" else v
        keys.append((k, k2))
        values.append((v, v2))
    errors, all_values, score = [], [], []
    for row in range(batch):
        for head in range(n_q):
            i = row * n_kv + head // (n_q // n_kv)
            q = np.array([normal(key_of(draw, 3), (row * n_q + head) * d_h + c) for c in range(d_h)]).astype(np.float32).astype(float)
            (k, k2), (v, v2) = keys[i], values[i]
            was = softmax_of(q, k.astype(float), v.astype(float))
            errors.append(softmax_of(q, k2.astype(float), v2.astype(float)) - was)
            all_values.append(was)
            score.append((k2.astype(float) - k.astype(float)) @ q / math.sqrt(d_h))
    sides = [norm(np.array([b.astype(float) - a.astype(float) for a, b in s])) / norm(np.array([a for a, _ in s]))
             for s in (keys, values)]
    numbers = [*sides, math.sqrt(float((np.array(score) ** 2).mean())), norm(np.array(errors)) / norm(np.array(all_values)),
               max(norm(e) / norm(v) for e, v in zip(errors, all_values))]
    settings = f"context={context} scheme={scheme} bits={bits} by={by} run={run} part={part} outlier_share={share} " \
               f"outlier_scale={scale} key_offset={offset}"
    print("cache", settings, *map(repr, map(float, numbers)), sep="\t")


def main():
    print("# Written by tests/golden/quantize_golden.py; do not edit.")
    for rows, cols in ((1, 1), (3, 7), (5, 130), (16, 200)):
        for pattern in ("plain", "outlier", "zeros", "column"):
            for kind, where, group in (("int8", "tensor", 0), ("int8", "row", 0), ("int8", "group", 64), ("int4", "tensor", 0),
                                       ("int4", "row", 0), ("int4", "group", 1), ("int4", "group", 3), ("int4", "group", 128),
                                       ("nf4", "group", 64), ("nf4", "group", 5000)):
                packer_case(rows, cols, pattern, kind, where, group)
    for rows, cols in ((1, 1), (3, 7), (20, 33)):
        for pattern in ("plain", "outlier", "zeros", "offset"):
            for scheme, bits in (("symmetric", 2), ("symmetric", 4), ("symmetric", 8), ("affine", 2), ("affine", 4),
                                 ("affine", 8), ("affine", 16), ("nf4", 4)):
                for by, run in (("row", 0), ("row", 5), ("column", 0), ("column", 8), ("all", 0)):
                    scheme_case(rows, cols, pattern, scheme, bits, by, run)
    for scheme in ("symmetric", "affine"):
        for bits in (4, 8):
            for by, run in (("token", 0), ("token", 8), ("channel", 0), ("channel", 5), ("head", 0)):
                cache_case(19, scheme, bits, by, run, "both", 0.0625, 8.0, 0.0)
    for part in ("keys", "values"):
        cache_case(33, "symmetric", 3, "token", 0, part, 0.2, 5.0, 0.0)
    cache_case(12, "affine", 4, "channel", 0, "keys", 0.0, 1.0, 3.0)
    cache_case(1, "symmetric", 4, "token", 0, "both", 0.0625, 8.0, 0.0)


if __name__ == "__main__":
    main()
