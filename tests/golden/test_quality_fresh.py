#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed quality_golden.tsv is what quality_golden.py prints here and now, numbers to the order of their sums."""
import math

import fresh


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-12)


made, kept = fresh.made_and_kept("quality_golden")
for number, (a, b) in enumerate(zip(made, kept), 1):
    words = [line.replace("=", " ").split() for line in (a, b)]
    same = len(words[0]) == len(words[1])
    for x, y in zip(*words):
        try:
            same = same and (x == y or close(float(x), float(y)))
        except ValueError:
            same = False
    if not same:
        raise SystemExit(f"quality_golden.tsv, line {number}, has\n{b}\nand quality_golden.py prints\n{a}")
