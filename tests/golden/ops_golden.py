#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of the ops, in float64 NumPy and by other formulas than kernels/ref uses.

Prints the cases of ops_golden.txt:  case NAME, then lines  array-name value value ...
    /usr/bin/python3 tests/golden/ops_golden.py > tests/golden/ops_golden.txt
"""
import math
import statistics

import numpy as np

from model_golden import random_at, random_key

rng = np.random.default_rng(20240517)
MASK = 2**64 - 1


def case(name):
    print("case", name)


def put(name, values):
    flat = np.asarray(values).reshape(-1)
    whole = flat.dtype.kind in "iub"
    print(name, *(str(int(v)) if whole else "%.9g" % v for v in flat))


def numbers(*shape):
    """Short decimals that are exact in the text; the C side reads them as the nearest floats."""
    return np.round(rng.normal(size=shape), 3)


def f32(x):
    return np.asarray(x, dtype=np.float32).astype(np.float64)


# ---- quantization: E32, E36 and random rows --------------------------------------------------------------------------


def nf4_levels():
    normal = statistics.NormalDist()
    positive = [normal.inv_cdf(q) for q in np.linspace(0.9677083, 0.5, 9)[:-1]]
    negative = [-normal.inv_cdf(q) for q in np.linspace(0.9677083, 0.5, 8)[:-1]]
    levels = np.sort(np.array(positive + [0.0] + negative))
    return levels / np.abs(levels).max()


def integer_codes(w, scale, qmax):
    x = w / scale
    assert np.all(np.abs(np.abs(x - np.floor(x)) - 0.5) > 1e-4), "a tie: choose other numbers"
    return np.clip(np.round(x), -qmax - 1, qmax).astype(int)


def quantize(w, kind, group):
    """codes, scales, values of one row; group 0: one f32 scale for the row, else f16 scales."""
    levels = nf4_levels()
    codes, scales, values = [], [], []
    for begin in range(0, len(w), group or len(w)):
        part = w[begin:begin + (group or len(w))]
        most = np.max(np.abs(part))
        top = {"int8": 127, "int4": 7, "nf4": 1}[kind]
        scale = 1.0 if most == 0 else most / top
        scale = float(np.float16(scale)) if group else float(np.float32(scale))
        if kind == "nf4":
            code = np.argmin(np.abs(part[:, None] / scale - levels[None, :]), axis=1)
            value = levels[code] * scale
        else:
            code = integer_codes(part, scale, top)
            value = code * scale
        codes += list(code)
        scales.append(scale)
        values += list(value)
    return codes, scales, values


def quant_case(name, w, kind, group):
    codes, scales, values = quantize(f32(w), kind, group)
    case("quant " + name)
    put("kind", [{"int8": 3, "int4": 4, "nf4": 5}[kind]])  # enum dtype
    put("group", [group])
    put("w", w)
    put("codes", np.array(codes, dtype=int))
    put("scales", scales)
    put("values", values)


def quantization():
    case("nf4 levels")
    put("levels", nf4_levels())
    e32 = [0.92, -0.35, 0.06, -1.4, 0.0, 0.51, 1.15, -0.02]
    quant_case("e32 int8", e32, "int8", 0)
    quant_case("e32 int4", e32, "int4", 0)
    e36 = [0.02, -0.31, 0.11, 0.0, 0.27, -0.05, 0.4, -0.18]
    quant_case("e36 block", e36, "nf4", 8)
    for kind in ("int8", "int4", "nf4"):
        w = numbers(45) * 0.031
        w[16:32] = 0  # one all-zero group
        quant_case(kind + " groups of 16", np.round(w, 6), kind, 16)
        quant_case(kind + " row", np.round(numbers(33) * 2.3, 4), kind, 0)
    # What the oracle of E32 and E36 prints, so that the program above is checked and not only believed.
    for kind, expected, error in (("int8", [83, -32, 5, -127, 0, 46, 104, -2], 0.00426290180177),
                                  ("int4", [5, -2, 0, -7, 0, 3, 6, 0], 0.0721408089274)):
        codes, _, values = quantize(np.array(e32), kind, 0)
        gone = np.linalg.norm(np.array(e32) - values) / np.linalg.norm(e32)
        assert codes == expected and abs(gone - error) < 1e-6, (codes, gone)
        case("error e32 " + kind)
        put("error", [error])
    codes, _, values = quantize(np.array(e36), "nf4", 8)
    assert codes == [8, 1, 10, 7, 14, 6, 15, 3], codes
    assert np.allclose(values, [0.031832, -0.278477, 0.098445, 0, 0.289183, -0.03642, 0.4, -0.157967], atol=2e-4)
    x = numbers(24)
    case("quant kv")
    put("x", x)
    put("scale", [np.max(np.abs(x)) / 127])
    put("codes", integer_codes(x, np.max(np.abs(x)) / 127, 127))
    # bits per weight of E35, by counting: (rows, cols, bits, group, payload bytes, scale bytes)
    case("bytes")
    rows = []
    for r, c, bits, group in ((3, 256, 4, 128), (3, 256, 4, 64), (5, 4864, 8, 128), (2, 130, 4, 128), (7, 33, 4, 32)):
        payload = r * math.ceil(c * bits / 8)
        rows += [r, c, bits, group, payload, r * math.ceil(c / group) * 2]
    put("rows", np.array(rows))
    assert (rows[4] + rows[5]) * 8 / (3 * 256) == 4.125 and (rows[10] + rows[11]) * 8 / (3 * 256) == 4.25


# ---- conversions: hashes over blocks, too many to list -----------------------------------------------------------------

def fnv(words, size):
    h = 0xcbf29ce484222325
    for byte in np.asarray(words).astype("<u%d" % size).tobytes():
        h = ((h ^ byte) * 0x100000001b3) & MASK
    return h


def hashes(words, size, block):
    return ["%016x" % fnv(words[i:i + block], size) for i in range(0, len(words), block)]


def put_words(name, words):
    print(name, *words)


def random_floats(n, seed):
    state, bits = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        bits.append(state >> 32)
    return np.array(bits, dtype=np.uint32).view(np.float32)


def same_nan(words, exponent, mantissa, quiet):
    nan = ((words & exponent) == exponent) & ((words & mantissa) != 0)
    return np.where(nan, quiet, words)


def to_bf16(x):
    """By rounding the significand to 8 bits in float64, subnormals to multiples of 2^-133."""
    with np.errstate(all="ignore"):
        v = x.astype(np.float64)
        _, e = np.frexp(v)
        quantum = np.exp2(np.maximum(e - 8, -133).astype(np.float64))
        r = np.round(v / quantum) * quantum
        r = np.where(np.isfinite(v), r, v)
        bits = r.astype(np.float32).view(np.uint32)  # beyond the largest: infinity, as it should
    bits = np.where(np.abs(r) >= 2.0**128, np.where(v < 0, 0xff800000, 0x7f800000), bits)
    return (bits >> 16).astype(np.uint32)


def conversions():
    half = np.arange(65536, dtype=np.uint32)
    with np.errstate(all="ignore"):
        wide = half.astype(np.uint16).view(np.float16).astype(np.float32)
    bits = same_nan(wide.view(np.uint32), 0x7f800000, 0x7fffff, 0x7fc00000)
    case("f16 to f32, all")  # blocks of 1024 patterns
    put_words("fnv", hashes(bits, 4, 1024))
    # Ties between neighbours and the floats beside them, then the same negated, then random patterns.
    low = np.arange(0x7c00, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float64)
    high = np.append(low[1:], 65536.0)
    tie = ((low + high) / 2).astype(np.float32)
    edge = np.stack([np.nextafter(tie, np.float32(-1)), tie, np.nextafter(tie, np.float32(1e9))], axis=1).reshape(-1)
    for name, x in (("edges", edge), ("edges negated", -edge), ("random", random_floats(65536, 2024))):
        with np.errstate(all="ignore"):
            words = x.astype(np.float16).view(np.uint16).astype(np.uint32)
        case("f32 to f16, " + name)  # blocks of 3072
        put_words("fnv", hashes(same_nan(words, 0x7c00, 0x3ff, 0x7e00), 2, 3072))
    case("f32 to bf16, random")
    x = random_floats(65536, 77)
    put_words("fnv", hashes(same_nan(to_bf16(x), 0x7f80, 0x7f, 0x7fc0), 2, 3072))
    case("f32 to bf16, ties")  # every upper half with the lower halves 0x7fff, 0x8000, 0x8001
    x = ((half << 16)[:, None] | np.array([0x7fff, 0x8000, 0x8001], dtype=np.uint32)).reshape(-1).view(np.float32)
    put_words("fnv", hashes(same_nan(to_bf16(x), 0x7f80, 0x7f, 0x7fc0), 2, 3072))


# ---- ops ----------------------------------------------------------------------------------------------------------------

def silu(z):
    return z * 0.5 * (1 + np.tanh(z / 2))


def dense():
    x, w, b = numbers(5, 7), numbers(6, 7), numbers(6)
    case("linear")
    put("shape", [5, 6, 7])
    for name, v in (("x", x), ("w", w), ("bias", b), ("y", np.einsum("mk,nk->mn", f32(x), f32(w))),
                    ("y_bias", f32(x) @ f32(w).T + f32(b))):
        put(name, v)
    gate, up = numbers(4, 7) * 3, numbers(4, 7)
    case("swiglu")
    put("shape", [5, 4, 7])
    for name, v in (("x", x), ("gate", gate), ("up", up),
                    ("y", silu(f32(x) @ f32(gate).T) * (f32(x) @ f32(up).T))):
        put(name, v)
    h, delta, gain = numbers(3, 9) * 4, numbers(3, 9), 1 + numbers(9) * 0.1
    total = f32(h) + f32(delta)
    rms = np.linalg.norm(total, axis=1, keepdims=True) / math.sqrt(9)
    case("add_norm")
    put("shape", [3, 9])
    for name, v in (("residual", h), ("delta", delta), ("gain", gain), ("eps", [1e-5]), ("sum", total),
                    ("y", total / np.hypot(rms, math.sqrt(1e-5)) * f32(gain))):
        put(name, v)


def rotated(x, position, base, pairs):
    """Rotation as a complex product; x (..., d)."""
    d = x.shape[-1]
    turn = np.exp(1j * position * np.exp(-2 * np.arange(d // 2) / d * math.log(base)))
    z = (x[..., 0::2] + 1j * x[..., 1::2] if pairs else x[..., :d // 2] + 1j * x[..., d // 2:]) * turn
    out = np.empty_like(x)
    if pairs:
        out[..., 0::2], out[..., 1::2] = z.real, z.imag
    else:
        out[..., :d // 2], out[..., d // 2:] = z.real, z.imag
    return out


def rope():
    for style, pairs in (("halves", 0), ("pairs", 1)):
        for position, base in ((0, 10000.0), (1, 10000.0), (7, 1e6), (599, 10000.0), (131071, 500000.0)):
            x = numbers(4, 8)  # two query heads, one key, one value
            y = rotated(f32(x)[:3], position, base, pairs)
            case("rope %s at %d" % (style, position))
            put("style", [pairs])
            put("position", [position])
            put("base", [base])
            put("x", x)
            put("q", y[:2])
            put("k", y[2])
            put("v", x[3])


def attention():
    n, n_q, n_kv, d = 9, 6, 2, 4
    q, k, v = numbers(n, n_q, d) * 2, numbers(n, n_kv, d), numbers(n, n_kv, d)
    for window in (0, 1, 4):
        t = np.arange(n)
        seen = t[:, None] >= t[None, :]
        if window:
            seen &= t[:, None] - t[None, :] < window
        wide_k, wide_v = np.repeat(f32(k), n_q // n_kv, axis=1), np.repeat(f32(v), n_q // n_kv, axis=1)
        scores = np.einsum("rhd,thd->hrt", f32(q), wide_k) / math.sqrt(d)
        weight = np.where(seen, np.exp(scores), 0)
        weight /= weight.sum(axis=-1, keepdims=True)
        case("attention window %d" % window)
        put("shape", [n, n_q, n_kv, d, window])
        put("q", q)
        put("k", k)
        put("v", v)
        put("o", np.einsum("hrt,thd->rhd", weight, wide_v))


def select():
    logits = numbers(16, 50)
    logits[2, 7] = logits[2, 31] = logits[2].max() + 1  # a tie: the lower id
    for temperature in (0.0, 0.25, 0.7, 1.5):
        ids = []
        for row in range(16):
            key = random_key(99, row)
            position, best, most = 1000 * row + 3, 0, -math.inf
            for i, z in enumerate(f32(logits[row])):
                u = (random_at(key, (position << 32) + i) >> 11) / 2.0**53
                value = float(z)
                if temperature:
                    value = value / float(np.float32(temperature)) - math.log(-math.log(u + 2.0**-54))
                if value > most:
                    best, most = i, value
            ids.append(best)
        case("select %g" % temperature)
        put("shape", [16, 50])
        put("temperature", [temperature])
        put("seed", [99])
        put("logits", logits)
        put("ids", np.array(ids))


def single_codes(values, top, half):
    """Codes and scale as float32 arithmetic gives them, ties to even."""
    values = np.asarray(values, dtype=np.float32)
    scale = np.max(np.abs(values)) / np.float32(top)
    scale = np.float32(np.float16(scale)) if half else scale
    scale = scale if scale > 0 else np.float32(1)
    return [int(c) for c in np.rint(values / scale)], scale


def codes_by_codes():
    """Products whose inputs are int8: integers, then float32 in the order that kernels/ops.h says."""
    m, n, k = 4, 18, 45
    single = np.float32
    for kind, group in (("int8", 0), ("int8", 16), ("int4", 0), ("int4", 16)):
        x, w = numbers(m, k), np.round(numbers(n, k) * 0.2, 4)
        x[1] *= 1000
        x[2] = 0
        case("codes %s %d" % (kind, group))
        put("shape", [m, n, k])
        put("x", x)
        put("w", w)
        rows = [single_codes(row, 127, False) for row in x]
        put("scales", [scale for _, scale in rows])
        put("codes", np.array([codes for codes, _ in rows]))
        y = np.zeros((m, n), dtype=single)
        for c in range(n):
            for r, (codes, scale) in enumerate(rows):
                total = single(0)
                for begin in range(0, k, group or k):
                    span = slice(begin, begin + (group or k))
                    w_codes, w_scale = single_codes(w[c][span], {"int8": 127, "int4": 7}[kind], group > 0)
                    whole = sum(a * b for a, b in zip(codes[span], w_codes))
                    total = single(total + single(w_scale * single(whole)))
                y[r, c] = single(scale * total)
        put("y", y)


quantization()
conversions()
dense()
rope()
attention()
select()
codes_by_codes()
