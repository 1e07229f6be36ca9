#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed ops_golden.txt is what ops_golden.py prints here and now (numbers to 1e-6, words exactly)."""
import os
import subprocess
import sys

folder = os.path.dirname(os.path.abspath(__file__))
now = subprocess.run([sys.executable, os.path.join(folder, "ops_golden.py")], check=True, capture_output=True, text=True)
made, kept = now.stdout.split("\n"), open(os.path.join(folder, "ops_golden.txt"), encoding="utf-8").read().split("\n")


def same(a, b):
    if a == b:
        return True
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return abs(x - y) <= 1e-6 * max(abs(x), abs(y)) + 1e-12


wrong = [i for i, (a, b) in enumerate(zip(made, kept))
         if len(a.split()) != len(b.split()) or not all(map(same, a.split(), b.split()))]
if wrong or len(made) != len(kept):
    sys.exit("ops_golden.txt is not what ops_golden.py prints: line %d of %d (%d now)"
             % ((wrong or [min(len(made), len(kept))])[0] + 1, len(kept), len(made)))
