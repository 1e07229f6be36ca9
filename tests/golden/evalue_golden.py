# SPDX-License-Identifier: Apache-2.0
"""Golden values of results/evalue.c in 40 digits: python3 evalue_golden.py > evalue_golden.tsv

Needs mpmath. Where it can, each value is computed by another way than the program's: the evidence is the integral over the
prior of the ratio of t likelihoods, the power that of a noncentral t as an integral over the chi density, rates by summing the
binomial distribution. Rows: what, up to four arguments, value (20 digits).
"""
from mpmath import betainc, binomial, erfc, exp, gamma, inf, log, mp, mpf, nstr, quad, sqrt

mp.dps = 40
G = mpf(10)


def say(what, *words):
    *keys, value = words
    keys = [repr(k) if isinstance(k, float) else str(k) for k in keys] + ["-"] * (4 - len(keys))
    print(what, *keys, nstr(value, 20), sep="\t")


def data(n, offset, scale):
    """Scattered numbers that both sides can make: exact doubles."""
    return [offset + scale * (((i * 2654435761) % 2**32) >> 8) for i in range(n)]


def moments(x):
    x = [mpf(v) for v in x]
    mean = sum(x) / len(x)
    return mean, sqrt(sum((v - mean) ** 2 for v in x) / (len(x) - 1))


def evidence(n, t):
    """Mixture of likelihood ratios of t: integral over sigma (prior d sigma/sigma) and effect (normal, variance g sigma^2).

    Both integrals over sigma are the same Gamma integral, so that what is left is a ratio of powers; the one over the effect
    is done numerically, the effect d in units of sigma. With mean m and q = sum of squared deviations:
      H1: integral over d of N(d; 0, g) * integral over sigma of sigma^-(n+1) exp(-(q + n (m - d sigma)^2) / (2 sigma^2))
    """
    nu = n - 1
    m, q = mpf(t) / sqrt(n), mpf(nu)  # s = 1

    def h0():  # integral over u = 1/sigma of u^(n-1) exp(-(q + n m^2) u^2 / 2)
        return mpf(2) ** (mpf(n) / 2 - 1) * gamma(mpf(n) / 2) * (q + n * m * m) ** (-mpf(n) / 2)

    def inner(u):  # over d: the product of two normals is one
        return u ** (n - 1) * exp(-q * u * u / 2) * exp(-n * m * m * u * u / (2 * (1 + n * G))) / sqrt(1 + n * G)

    top = 1 + 40 / sqrt(mpf(n))
    return log(quad(inner, [0, top / 4, top / 2, top, 2 * top, 4 * top, inf]) / h0())


def critical(n, ln_bound):
    """By search on the evidence itself."""
    at = lambda t: -log(1 + n * G) / 2 + mpf(n) / 2 * (log(1 + t * t / (n - 1)) - log(1 + t * t / ((n - 1) * (1 + n * G))))
    lo, hi = mpf(0), mpf(10) ** 6
    if at(hi) < ln_bound:
        return inf
    for _ in range(150):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if at(mid) < ln_bound else (lo, mid)
    return lo


def noncentral_tail(t, nu, shift):
    density = lambda w: 2 * (nu / 2) ** (nu / 2) / gamma(nu / 2) * w ** (nu - 1) * exp(-nu * w * w / 2)
    return quad(lambda w: density(w) * erfc((t * w - shift) / sqrt(mpf(2))) / 2, [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 6])


def detectable(n, ln_bound, power):
    t = critical(n, ln_bound)
    mp.dps = 20
    lo, hi = mpf(0), 4 * t
    for _ in range(50):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if noncentral_tail(t, mpf(n - 1), mid) < power else (lo, mid)
    mp.dps = 40
    return lo / sqrt(n)


def binomial_upper(k, n, p):
    p = mpf(p)
    return sum(binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def sum_low(k, n, p):
    return sum(binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(0, k + 1))


def bisect(f, want):
    lo, hi = mpf(0), mpf(1)
    for _ in range(130):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if f(mid) < want else (lo, mid)
    return lo


def t_quantile(p, nu):
    tail = lambda t: betainc(mpf(nu) / 2, mpf(1) / 2, 0, nu / (nu + t * t), regularized=True) / 2
    lo, hi = mpf(0), mpf(10) ** 6
    for _ in range(160):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if tail(mid) > 1 - p else (lo, mid)
    return lo


print("# what, arguments, value: made by evalue_golden.py")
say("quadruple", 1.0, 1.5, 1.25, 0.75, (log(mpf(1.5)) + log(mpf(1.25)) - log(mpf(0.75))) / 2)
say("quadruple", 3e8, 3.25e8, 3.5e8, 2.75e8, (log(mpf(3.25e8)) + log(mpf(3.5e8)) - log(mpf(3e8)) - log(mpf(2.75e8))) / 2)
for n in (1, 3, 4, 5, 9, 10, 11, 40):
    x = sorted(mpf(v) for v in data(n, -3e6, 0.5))
    cut = n // 5
    kept = x[cut : n - cut]
    say("trimmed", n, sum(kept) / len(kept))
    if len(kept) >= 2:
        wins = [kept[0]] * cut + kept + [kept[-1]] * cut
        say("trimmed_error", n, moments(wins)[1] / ((1 - 2 * mpf(cut) / n) * sqrt(n)))
for n, t in ((4, 0.0), (4, 1.5), (6, -14.5), (8, 9.25), (10, 3.0), (20, 6.0), (40, 5.25), (40, 0.5)):
    say("ln_e", n, t, evidence(n, t))
for m, alpha in ((1, 0.005), (21, 0.005), (257, 0.005), (21, 0.00125)):
    ln_bound = log(m / (2 * mpf(alpha)))
    say("ln_bound", alpha, m, ln_bound)
    for n in (4, 5, 6, 8, 10, 20, 40):
        t = critical(n, ln_bound)
        if t < 1e5:
            say("critical", n, alpha, m, t)
for n in (6, 8, 10, 20, 40):
    say("detectable", n, 0.005, 21, 0.95, detectable(n, log(mpf(2100)), mpf("0.95")))
say("detectable", 12, 0.005, 6, 0.5, detectable(12, log(mpf(600)), mpf("0.5")))
for k, n, p in ((0, 10, 0.25), (3, 10, 0.25), (10, 10, 0.5), (7, 400, 0.005), (1, 1500, 0.0005)):
    say("upper", k, n, p, binomial_upper(k, n, p))
    say("lower", k, n, p, 1 - binomial_upper(k + 1, n, p))
for k, n in ((0, 1500), (1, 100), (5, 10), (10, 10), (37, 10000)):
    say("cp_lo", k, n, mpf(0) if k == 0 else bisect(lambda p: 1 - sum_low(k - 1, n, p), mpf("0.025")))
    say("cp_hi", k, n, mpf(1) if k == n else bisect(lambda p: 1 - sum_low(k, n, p), mpf("0.975")))
for n in (2, 3, 8, 20):
    mean, s = moments(data(n, 1e3, 1e-6))
    half = t_quantile(mpf("0.975"), n - 1) * s * sqrt(1 + mpf(1) / n)
    say("predict_lo", n, mean - half)
    say("predict_hi", n, mean + half)
for x, a, b in ((0.25, 2.0, 3.0), (0.9, 0.5, 8.0), (0.001, 1.0, 1500.0)):
    say("beta", x, a, b, betainc(mpf(a), mpf(b), 0, mpf(x), regularized=True))
