# SPDX-License-Identifier: Apache-2.0
"""Golden values of TDPBF16PS in exact arithmetic: python3 tile_golden.py > tile_golden.tsv

After the pseudo code in Intel's Software Developer's Manual, volume 2: the even and the odd columns are summed by fused
products in order, subnormal numbers are zero on the way in and out, results are rounded to nearest even, the two sums are added,
and that to c. Rows: x (bf16, hexadecimal, 32 columns), w (the same), c and the result (f32); `nan` where it is one.
"""
from fractions import Fraction

INF = float("inf")
state = 12345


def draw(n):
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) % n


def value(bits):
    """Of an f32: a fraction, or a float where it is infinite or no number; subnormal: 0."""
    sign, exponent, mantissa = -1 if bits >> 31 else 1, bits >> 23 & 255, bits & 0x7FFFFF
    if exponent == 255:
        return float("nan") if mantissa else sign * INF
    if exponent == 0:
        return Fraction(0)
    return sign * Fraction(2**23 + mantissa) * Fraction(2) ** (exponent - 150)


def rounded(v):
    """To the nearest f32, ties to even; below the normal numbers 0."""
    if isinstance(v, float) or v == 0:
        return v
    sign, v, exponent = (-1 if v < 0 else 1), abs(v), 0
    while v >= 2:
        v, exponent = v / 2, exponent + 1
    while v < 1:
        v, exponent = v * 2, exponent - 1
    scaled = v * 2**23
    whole, rest = scaled.numerator // scaled.denominator, scaled - scaled.numerator // scaled.denominator
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    v = sign * Fraction(whole) * Fraction(2) ** (exponent - 23)
    if abs(v) < Fraction(2) ** -126:
        return Fraction(0)
    return sign * INF if abs(v) >= Fraction(2) ** 128 else v


def times(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return as_float(a) * as_float(b)
    return a * b


def plus(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return as_float(a) + as_float(b)
    return a + b


def as_float(v):  # only its sign matters beside what is no finite number
    return v if isinstance(v, float) else float((v > 0) - (v < 0))


def bits_of(v):
    if v != v:
        return "nan"
    if isinstance(v, float):
        return "7f800000" if v > 0 else "ff800000"
    if v == 0:
        return "00000000"
    sign, v, exponent = v < 0, abs(v), 127
    while v >= 2:
        v, exponent = v / 2, exponent + 1
    while v < 1:
        v, exponent = v * 2, exponent - 1
    return f"{sign << 31 | exponent << 23 | int((v - 1) * 2**23):08x}"


def bf16(kind):
    if kind == 1 and draw(6) == 0:  # about the smallest normal numbers, with their neighbours below
        return draw(2) << 15 | draw(4) << 7 | draw(128)
    if kind == 2 and draw(40) == 0:
        return (0x7F80, 0xFF80, 0x7FC0, 0x0000)[draw(4)]
    low, n = {0: (120, 12), 1: (50, 30), 2: (120, 12), 3: (185, 8), 4: (127, 1)}[kind]
    return draw(2) << 15 | (low + draw(n)) << 7 | draw(128)


for case in range(400):
    kind = case % 5
    x, w = [bf16(kind) for _ in range(32)], [bf16(kind) for _ in range(32)]
    c = bf16(kind) << 16 | draw(1 << 16)
    sums = [Fraction(0), Fraction(0)]
    for k in range(32):
        sums[k % 2] = rounded(plus(sums[k % 2], times(value(x[k] << 16), value(w[k] << 16))))
    result = rounded(plus(rounded(plus(*sums)), value(c)))
    print("".join(f"{v:04x}" for v in x), "".join(f"{v:04x}" for v in w), f"{c:08x}", bits_of(result), sep="\t")
