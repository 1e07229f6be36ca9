#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed latent_golden.tsv is what latent_golden.py prints here and now (numbers to 1e-7)."""
import os
import subprocess
import sys

folder = os.path.dirname(os.path.abspath(__file__))
now = subprocess.run([sys.executable, os.path.join(folder, "latent_golden.py")], check=True, capture_output=True, text=True)
made = now.stdout.split("\n")
kept = open(os.path.join(folder, "latent_golden.tsv"), encoding="utf-8").read().split("\n")


def same(a, b):
    if a == b:
        return True
    try:
        return abs(float(a) - float(b)) <= 1e-7 * max(1, abs(float(b)))
    except ValueError:
        return False


wrong = [i for i, (a, b) in enumerate(zip(made, kept))
         if len(a.split()) != len(b.split()) or not all(map(same, a.split(), b.split()))]
if wrong or len(made) != len(kept):
    sys.exit("latent_golden.tsv is not what latent_golden.py prints: line %d of %d (%d now)"
             % ((wrong or [min(len(made), len(kept))])[0] + 1, len(kept), len(made)))
