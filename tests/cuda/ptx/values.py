# SPDX-License-Identifier: Apache-2.0
"""Numbers of PTX in numpy: types, bf16 and pairs of 16-bit floats, roundings that numpy lacks."""
import numpy as np

from .parse import Unsupported

NUMPY = {"pred": np.bool_, "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
         "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64,
         "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16, "f16x2": np.uint32, "bf16x2": np.uint32}
FLOATS = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
BITS = ("b8", "b16", "b32", "b64")


def float_bits(value, width):
    return int(np.array([value], f"f{width}").view(f"u{width}")[0])


def from_bf16(bits):
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(values):
    """Nearest, ties to even; NaN becomes the canonical one."""
    values = np.asarray(values, np.float32)
    u = values.view(np.uint32).astype(np.uint64)
    rounded = (u + np.uint64(0x7FFF) + ((u >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(values), np.uint64(0x7FFF), rounded).astype(np.uint16)


def widen(values, kind):
    """As f32 or f64; pairs get a last axis of two."""
    if kind in ("f32", "f64"):
        return values
    if kind == "f16":
        return np.asarray(values).astype(np.float32)
    if kind == "bf16":
        return from_bf16(values)
    half = np.stack([np.asarray(values) & np.uint32(0xFFFF), np.asarray(values) >> np.uint32(16)], -1).astype(np.uint16)
    return half.view(np.float16).astype(np.float32) if kind == "f16x2" else from_bf16(half)


def narrow(values, kind):
    """The other way, to the nearest."""
    if kind in ("f32", "f64"):
        return np.asarray(values).astype(NUMPY[kind])
    if kind == "f16":
        return np.asarray(values).astype(np.float16)
    if kind == "bf16":
        return to_bf16(values)
    half = np.asarray(values).astype(np.float16).view(np.uint16) if kind == "f16x2" else to_bf16(values)
    return half[..., 0].astype(np.uint32) | half[..., 1].astype(np.uint32) << np.uint32(16)


def flush(values):
    """Subnormal f32 become zeros of their sign."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def round_f32(exact, direction):
    """A double rounded to f32 in a direction: rn, rz, rm, rp."""
    y = np.asarray(exact).astype(np.float32)
    if direction == "rn":
        return y
    wide = y.astype(np.float64)
    down = np.nextafter(y, np.float32(-np.inf))
    up = np.nextafter(y, np.float32(np.inf))
    if direction == "rm":
        return np.where(wide > exact, down, y)
    if direction == "rp":
        return np.where(wide < exact, up, y)
    if direction == "rz":
        return np.where(np.abs(wide) > np.abs(exact), np.where(wide > 0, down, up), y)
    raise Unsupported("rounding " + direction)


def fma_f64(a, b, c):
    """a b + c, rounded once (but for double roundings at ties): products and sums with their errors, after Dekker and Knuth."""
    a, b, c = np.broadcast_arrays(np.float64(a), np.float64(b), np.float64(c))
    split = np.float64(134217729.0)
    p = a * b
    ah = a * split - (a * split - a)
    bh = b * split - (b * split - b)
    al, bl = a - ah, b - bh
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    s = p + c
    t = s - p
    lost = (p - (s - t)) + (c - t)
    whole = s + (lost + error)
    return np.where(np.isfinite(whole), whole, a * b + c)
