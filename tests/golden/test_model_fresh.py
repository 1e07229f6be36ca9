#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed golden file is what its program writes: texts and bits exactly, decimals to rounding."""
import os
import subprocess
import sys

HERE = os.path.join(os.environ.get("SOURCE_DIR", "."), "tests", "golden")


def main():
    made = subprocess.run([sys.executable, os.path.join(HERE, "model_golden.py")], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    with open(os.path.join(HERE, "model_golden.tsv"), encoding="utf-8") as file:
        kept = file.read().splitlines()
    assert len(made) == len(kept), (len(made), len(kept))
    for a, b in zip(made, kept):
        if a == b:
            continue
        head_a, values_a = a.rsplit("\t", 1)
        head_b, values_b = b.rsplit("\t", 1)
        assert head_a == head_b and head_a.split("\t")[1] in ("logits", "k", "v"), head_a
        pairs = list(zip(values_a.split(), values_b.split(), strict=True))
        assert all(abs(float(x) - float(y)) < 1e-6 for x, y in pairs), head_a


if __name__ == "__main__":
    main()
