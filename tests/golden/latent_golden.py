#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of the lab ops on latents and on chosen blocks, in float64 NumPy.

By other formulas than kernels/ref uses: rotations are products of complex numbers, a head's K and V are whole matrices,
the mask is a triangle of minus infinities, and chosen blocks are an index into all keys.
    /usr/bin/python3 tests/golden/latent_golden.py > tests/golden/latent_golden.tsv
"""
import numpy as np

rng = np.random.default_rng(20241017)


def put(name, values):
    print("\t".join([name] + ["%.9g" % v for v in np.asarray(values, dtype=np.float64).reshape(-1)]))


def numbers(*shape):
    """Short decimals: the C side reads them as the nearest floats."""
    return np.round(rng.normal(size=shape), 3)


def f32(x):
    return np.asarray(x, dtype=np.float32).astype(np.float64)


def rotated(x, positions, base, pairs):
    """x (tokens, ..., width) turned by each token's position."""
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if pairs else (x[..., :half], x[..., half:])
    angle = positions.reshape((-1,) + (1,) * (x.ndim - 1)) * base ** (-np.arange(half) / max(half, 1))
    z = (a + 1j * b) * np.exp(1j * angle)
    out = np.empty_like(x)
    if pairs:
        out[..., 0::2], out[..., 1::2] = z.real, z.imag
    else:
        out[..., :half], out[..., half:] = z.real, z.imag
    return out


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def latent(n_q, d_h, n, rotary, tokens, pairs, base):
    printed = [numbers(tokens, n_q * (d_h + rotary) + n + rotary), numbers(n_q, d_h, n), numbers(n_q, d_h, n)]
    x, wk, wv = map(f32, printed)
    positions = np.arange(tokens)
    q = x[:, :n_q * (d_h + rotary)].reshape(tokens, n_q, d_h + rotary)
    c, k_r = x[:, -(n + rotary):-rotary or None], x[:, x.shape[1] - rotary:]
    q_r, k_r = rotated(q[..., d_h:], positions, base, pairs), rotated(k_r, positions, base, pairs)
    k, v = np.einsum("hin,tn->thi", wk, c), np.einsum("hin,tn->thi", wv, c)
    scores = np.einsum("rhi,thi->hrt", q[..., :d_h], k) + np.einsum("rhi,ti->hrt", q_r, k_r)
    scores = scores * float(np.float32(1 / np.sqrt(d_h + rotary))) + np.triu(np.full((tokens, tokens), -np.inf), 1)
    put("latent", [n_q, d_h, n, rotary, tokens, pairs, base])
    for name, values in zip(("x", "wk", "wv"), printed):
        put(name, values)
    put("q", np.concatenate([q[..., :d_h], q_r], axis=-1))
    put("rows", np.concatenate([c, k_r], axis=-1))
    put("o", np.einsum("hrt,thi->rhi", softmax(scores), v))


def blocks(n_kv, group, d_h, block, tokens, most):
    printed = [numbers(tokens, n_kv, d_h), numbers(tokens, n_kv, d_h), numbers(n_kv * group, d_h)]
    keys, values, q = map(f32, printed)
    n = -(-tokens // block)
    means = np.stack([keys[b * block:(b + 1) * block].mean(axis=0) for b in range(n)])
    scores = np.einsum("kgi,bki->b", q.reshape(n_kv, group, d_h), means[:n - 1])
    assert n < 3 or np.min(np.diff(np.sort(scores))) > 1e-4, "a tie: choose other numbers"
    chosen = np.sort(np.concatenate([np.argsort(-scores)[:most - 1], [n - 1]]))
    seen = np.concatenate([np.arange(tokens)[b * block:(b + 1) * block] for b in chosen])
    heads = np.repeat(np.arange(n_kv), group)
    p = softmax(np.einsum("hi,thi->ht", q, keys[seen][:, heads]) * float(np.float32(1 / np.sqrt(d_h))))
    put("blocks", [n_kv, group, d_h, block, tokens, most])
    for name, numbers_ in zip(("keys", "values", "q"), printed):
        put(name, numbers_)
    put("means", means)
    put("chosen", chosen)
    put("seen", [len(seen)])
    put("o", np.einsum("ht,thi->hi", p, values[seen][:, heads]))


latent(3, 4, 6, 2, 5, 0, 10000)
latent(2, 5, 7, 0, 4, 0, 10000)
latent(1, 2, 1, 2, 1, 1, 10000)
latent(4, 8, 17, 6, 9, 1, 500)
latent(2, 10, 33, 8, 7, 0, 1000000)
blocks(1, 1, 2, 3, 1, 1)
blocks(2, 2, 4, 3, 20, 3)
blocks(1, 5, 8, 4, 16, 2)
blocks(3, 1, 6, 1, 9, 4)
blocks(2, 3, 6, 8, 37, 1)
blocks(2, 2, 8, 4, 23, 6)
