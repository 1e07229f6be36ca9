#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed outlying_golden.tsv is what outlying_golden.py prints here and now, numbers to the order of their sums."""
import math

import fresh

fresh.check("outlying_golden", close=lambda a, b: math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), between="\t")
