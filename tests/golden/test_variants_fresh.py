#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed variants_golden.tsv is what variants_golden.py prints here and now."""
import fresh

fresh.check("variants_golden")
