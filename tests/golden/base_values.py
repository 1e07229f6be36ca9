#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of tests/unit/base: XXH64 and SplitMix64 from their published definitions, and shuffles built on them."""
import math
import struct

M = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                      0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & M


def xxh_round(acc, lane):
    return rotl((acc + lane * P2) & M, 31) * P1 & M


def xxh64(data, seed):  # github.com/Cyan4973/xxHash, doc/xxhash_spec.md
    word = lambda at, n: int.from_bytes(data[at:at + n], "little")
    at, n = 0, len(data)
    if n >= 32:
        acc = [(seed + P1 + P2) & M, (seed + P2) & M, seed, (seed - P1) & M]
        while at + 32 <= n:
            acc = [xxh_round(a, word(at + 8 * i, 8)) for i, a in enumerate(acc)]
            at += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & M
        for a in acc:
            h = ((h ^ xxh_round(0, a)) * P1 + P4) & M
    else:
        h = (seed + P5) & M
    h = (h + n) & M
    while at + 8 <= n:
        h = (rotl(h ^ xxh_round(0, word(at, 8)), 27) * P1 + P4) & M
        at += 8
    if at + 4 <= n:
        h = (rotl(h ^ (word(at, 4) * P1 & M), 23) * P2 + P3) & M
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ (byte * P5 & M), 11) * P1 & M
    h = (h ^ (h >> 33)) * P2 & M
    h = (h ^ (h >> 29)) * P3 & M
    return h ^ (h >> 32)


def splitmix(seed):  # prng.di.unimi.it/splitmix64.c
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & M
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 & M
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & M
        yield z ^ (z >> 31)


if __name__ == "__main__":
    for text, seed in ((b"", 0), (b"abc", 0), (b"a", 7), (b"0123456789abcdef0123456789abcdef012345678", 2**64 - 1)):
        print(f"xxh64 {text!r} {seed}: {xxh64(text, seed):016x}")
    stream = splitmix(1234567)
    values = [next(stream) for _ in range(64)]
    print("splitmix 1234567:", *values[:4])
    print("below 1000:", *[(v >> 32) * 1000 >> 32 for v in values[:6]])
    print("unit:", *[((v >> 11) * 2.0**-53).hex() for v in values[:2]])
    v = list(range(10))
    for i in range(9, 0, -1):
        j = (values[i] >> 32) * (i + 1) >> 32
        v[i], v[j] = v[j], v[i]
    print("shuffle of 10:", *v)
    stream = splitmix(42)
    for _ in range(4):
        key = next(stream)
    print("stream 3 of seed 42:", key)
    unit = [(v >> 11) * 2.0**-53 for v in values[:4]]
    for i in range(2):
        print(f"normal {i}:", math.sqrt(-2 * math.log(1 - unit[2 * i])) * math.cos(2 * math.pi * unit[2 * i + 1]))
    body = b"hello"
    print("frame 5 hello:", (struct.pack("<IIQQ", 0x46524d42, 5, len(body), xxh64(body, 5)) + body).hex())
