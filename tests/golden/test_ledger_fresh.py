#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed ledger_golden.tsv is what ledger_golden.py prints here and now."""
import os
import subprocess
import sys

folder = os.path.dirname(os.path.abspath(__file__))
now = subprocess.run([sys.executable, os.path.join(folder, "ledger_golden.py")], check=True, capture_output=True, text=True)
with open(os.path.join(folder, "ledger_golden.tsv"), encoding="utf-8") as file:
    if file.read() != now.stdout:
        sys.exit("ledger_golden.tsv is not what ledger_golden.py prints")
