#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed golden file is what its program writes: texts and bits exactly, decimals to rounding."""
import fresh


def main():
    made, kept = fresh.made_and_kept("model_golden")
    for a, b in zip(made, kept):
        if a == b:
            continue
        head_a, values_a = a.rsplit("\t", 1)
        head_b, values_b = b.rsplit("\t", 1)
        assert head_a == head_b and head_a.split("\t")[1] in ("logits", "k", "v", "most", "softened"), head_a
        pairs = list(zip(values_a.split(), values_b.split(), strict=True))
        assert all(abs(float(x) - float(y)) < 1e-6 for x, y in pairs), head_a


if __name__ == "__main__":
    main()
