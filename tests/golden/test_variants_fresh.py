#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed variants_golden.tsv is what variants_golden.py prints here and now."""
import os
import subprocess
import sys

folder = os.path.dirname(os.path.abspath(__file__))
now = subprocess.run([sys.executable, os.path.join(folder, "variants_golden.py")], check=True, capture_output=True, text=True)
made = now.stdout.split("\n")
kept = open(os.path.join(folder, "variants_golden.tsv"), encoding="utf-8").read().split("\n")
if made != kept:
    sys.exit("variants_golden.tsv is not what variants_golden.py prints")
