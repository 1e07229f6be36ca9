#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed flash_golden.tsv is what flash_golden.py prints here and now (numbers to 1e-9)."""
import fresh

fresh.check("flash_golden", close=lambda a, b: abs(a - b) <= 1e-9 * max(1, abs(b)))
