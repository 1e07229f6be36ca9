#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed quantize_golden.tsv is what quantize_golden.py prints here and now, numbers to the order of their sums."""
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def same(a, b):
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


def main():
    made = subprocess.run([sys.executable, os.path.join(HERE, "quantize_golden.py")], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    with open(os.path.join(HERE, "quantize_golden.tsv"), encoding="utf-8") as file:
        kept = file.read().splitlines()
    assert len(made) == len(kept), (len(made), len(kept))
    for a, b in zip(made, kept):
        if not all(same(x, y) for x, y in zip(a.split("\t"), b.split("\t"), strict=True)):
            sys.exit(f"quantize_golden.tsv has\n{b}\nand quantize_golden.py prints\n{a}")


if __name__ == "__main__":
    main()
