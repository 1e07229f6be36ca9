#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed latent_golden.tsv is what latent_golden.py prints here and now (numbers to 1e-7)."""
import fresh

fresh.check("latent_golden", close=lambda a, b: abs(a - b) <= 1e-7 * max(1, abs(b)))
