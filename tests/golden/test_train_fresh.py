#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed golden file of training is what its program writes, whose own gradients agree with differences."""
import fresh
import train_golden


def main():
    made, kept = fresh.made_and_kept("train_golden")
    for a, b in zip(made[1:], kept[1:]):
        head_a, values_a = a.rsplit("\t", 1)
        head_b, values_b = b.rsplit("\t", 1)
        assert head_a == head_b, (head_a, head_b)
        pairs = list(zip(values_a.split(), values_b.split(), strict=True))
        assert all(abs(float(x) - float(y)) <= 1e-7 * abs(float(y)) + 1e-10 for x, y in pairs), head_a
    s, batch, length = train_golden.VARIANTS["thin"]
    worst = train_golden.differences(s, train_golden.tokens_of(s, batch, length))
    assert worst < 1e-6, worst


if __name__ == "__main__":
    main()
