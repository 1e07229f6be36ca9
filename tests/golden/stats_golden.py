# SPDX-License-Identifier: Apache-2.0
"""Golden values of results/stats.c, by exact rational arithmetic and mpmath: python3 stats_golden.py > stats_golden.tsv

Needs mpmath. Rows: what, its arguments, value (17 digits). Data set (n, offset, scale):
x[i] = offset + scale * ((i * 2654435761 mod 2^32) >> 8), a double each.
"""
import sys
from fractions import Fraction
from mpmath import mp, mpf, betainc, findroot, sqrt, log

mp.dps = 40


def t_tail(t, df):
    return betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2


def t_quantile(p, df):
    """Bisection on the tail in 40 digits: slow and sure."""
    tail, lo, hi = 1 - p, mpf(0), mpf(1)
    while t_tail(hi, df) > tail:
        lo, hi = hi, hi * 2
    for _ in range(130):
        mid = (lo + hi) / 2
        if t_tail(mid, df) > tail:
            lo = mid
        else:
            hi = mid
    return (lo + hi) / 2


def data(n, offset, scale):
    return [offset + scale * (((i * 2654435761) % 2**32) >> 8) for i in range(n)]


def root(q):
    """Square root of a fraction."""
    return sqrt(mpf(q.numerator) / mpf(q.denominator))


def quantile(s, q):
    """Type 7 of sorted fractions; q is a decimal string."""
    h = Fraction(len(s) - 1) * Fraction(q)
    k = int(h)
    return s[k] if k + 1 == len(s) else s[k] + (h - k) * (s[k + 1] - s[k])


def say(*words):
    *keys, value = words
    if isinstance(value, Fraction):
        value = mpf(value.numerator) / mpf(value.denominator)
    print(*keys, mp.nstr(value, 20), sep="\t")


def moments(n, offset, scale):
    x = [Fraction(v) for v in data(n, offset, scale)]
    mean = sum(x) / n
    centred = [v - mean for v in x]
    squares = sum(v * v for v in centred)
    key = (n, repr(offset), repr(scale))
    say("mean", *key, mean)
    say("stddev", *key, root(squares / (n - 1)))
    say("lag1", *key, sum(a * b for a, b in zip(centred, centred[1:])) / squares)
    say("slope", *key, sum((Fraction(i) - Fraction(n - 1, 2)) * v for i, v in enumerate(centred))
        / sum((Fraction(i) - Fraction(n - 1, 2)) ** 2 for i in range(n)))
    s = sorted(x)
    for q in ("0", "0.25", "0.5", "0.9", "0.95", "0.99", "1"):
        say("quantile " + q, *key, quantile(s, q))
    say("mad", *key, quantile(sorted(abs(v - quantile(s, "0.5")) for v in x), "0.5"))


def batch_means(n, offset, scale):
    x = [Fraction(v) for v in data(n, offset, scale)]
    length = 1
    while n // length > 40:
        length *= 2
    m = n // length
    means = [sum(x[b * length:(b + 1) * length]) / length for b in range(m)]
    centre = sum(means) / m
    sd = root(sum((v - centre) ** 2 for v in means) / (m - 1))
    mean = sum(x) / n
    half = t_quantile(mpf("0.975"), mpf(m - 1)) * sd / sqrt(mpf(m))
    say("batch_means", n, repr(offset), repr(scale), half / (mpf(mean.numerator) / mean.denominator))


def wilson(k, n):
    z = mpf("1.959963984540054235524594430520551527954")
    p, z2 = mpf(k) / n, z * z
    middle, half = (p + z2 / (2 * n)) / (1 + z2 / n), z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    say("wilson_lo", k, n, "-", mpf(0) if k == 0 else middle - half)
    say("wilson_hi", k, n, "-", mpf(1) if k == n else middle + half)


def main():
    print("# by stats_golden.py")
    for df in ("1", "1.5", "2", "3", "4", "5", "7", "9", "19", "39", "99.5", "1000", "100000", "10000000"):
        for p in ("0.6", "0.9", "0.975", "0.9975", "0.999999"):
            say("t", p, df, "-", t_quantile(mpf(p), mpf(df)))
    for n in (3, 10, 101, 1000):
        moments(n, 0.0, 1.0)
    moments(1000, 999999997.0, 6 / 2**24)       # 1e9 +- 3
    moments(1000, 57e9, 6e9 / 2**24)            # 60e9 +- 3e9
    moments(64, -5.0, 0.0009765625)
    for n in (20, 40, 41, 63, 100, 999):
        batch_means(n, 1.0e6, 0.25)
    for k, n in ((0, 10), (10, 10), (1, 100), (50, 100), (950, 1000), (3, 7)):
        wilson(k, n)


if __name__ == "__main__":
    sys.exit(main())
