#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed ledger_golden.tsv is what ledger_golden.py prints here and now."""
import fresh

fresh.check("ledger_golden")
