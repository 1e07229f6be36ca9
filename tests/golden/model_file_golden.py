#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of models, what they mean, and broken ones, by an independent program.

    model_file_golden.py FOLDER          all that tests/golden/test_model_file.c reads
    model_file_golden.py --corpus FOLDER the seeds of tests/fuzz/fuzz_model_file.c

Written from the documents of the formats (docs/gguf.md of the ggml project, the README of safetensors) and from the
layout of ggml's blocks; block by block with whole arrays where stored.c goes value by value. The forward passes are NumPy
float64 over whole sequences, without a cache.
"""
import json
import math
import os
import struct
import sys

import numpy as np

rng = np.random.default_rng(20261201)

# ---- blocks: NAME: (number in GGUF, values, bytes, offsets of f16 scales)
BLOCKS = {
    "F32": (0, 1, 4, []), "F16": (1, 1, 2, []), "BF16": (30, 1, 2, []), "Q4_0": (2, 32, 18, [0]), "Q4_1": (3, 32, 20, [0, 2]),
    "Q5_0": (6, 32, 22, [0]), "Q5_1": (7, 32, 24, [0, 2]), "Q8_0": (8, 32, 34, [0]), "Q2_K": (10, 256, 84, [80, 82]),
    "Q3_K": (11, 256, 110, [108]), "Q4_K": (12, 256, 144, [0, 2]), "Q5_K": (13, 256, 176, [0, 2]), "Q6_K": (14, 256, 210, [208])}


def f16(b, at):
    """(n, 1) of the f16 at a byte of each block."""
    return b[:, at:at + 2].copy().view("<f2").astype(np.float64)


def bits(b, n):
    """(blocks, bytes) to its values of n bits, lowest first: (blocks, bytes, 8 / n)."""
    return np.stack([(b >> (n * i)) & ((1 << n) - 1) for i in range(8 // n)], -1).astype(np.int64)


def k_scales(s):
    """12 bytes to eight scales and eight minima of 6 bits."""
    s = s.astype(np.int64)
    scale = np.concatenate([s[:, 0:4] & 63, (s[:, 8:12] & 15) | (s[:, 0:4] >> 6) << 4], 1)
    least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:12] >> 4) | (s[:, 4:8] >> 6) << 4], 1)
    return scale, least


def decode(name, raw):
    """Bytes to float32 values, each computed in float64 and rounded once."""
    if name == "F32":
        return raw.view("<f4").astype(np.float64).astype(np.float32)
    if name == "F16":
        return raw.view("<f2").astype(np.float32)
    if name == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    b = raw.reshape(-1, BLOCKS[name][2])
    n = len(b)
    if name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        scales = len(BLOCKS[name][3]) * 2
        code = bits(b[:, -16:], 4).transpose(0, 2, 1).reshape(n, 32)  # low nibbles, then high ones
        if name[1] == "5":
            code += 16 * np.unpackbits(b[:, scales:scales + 4], axis=1, bitorder="little").astype(np.int64)
        v = code * f16(b, 0) + f16(b, 2) if name[3] == "1" else (code - (8 if name[1] == "4" else 16)) * f16(b, 0)
    elif name == "Q8_0":
        v = b[:, 2:].view(np.int8) * f16(b, 0)
    elif name == "Q2_K":
        code = bits(b[:, 16:80].reshape(n, 2, 32), 2).transpose(0, 1, 3, 2).reshape(n, 16, 16)
        s = b[:, :16, None].astype(np.int64)
        v = code * (s & 15) * f16(b, 80)[..., None] - (s >> 4) * f16(b, 82)[..., None]
    elif name == "Q3_K":
        code = bits(b[:, 32:96].reshape(n, 2, 32), 2).transpose(0, 1, 3, 2).reshape(n, 256)
        third = bits(b[:, :32], 1).transpose(0, 2, 1).reshape(n, 256)
        low = bits(b[:, 96:104], 4).transpose(0, 2, 1).reshape(n, 16)
        high = bits(b[:, 104:108], 2).transpose(0, 2, 1).reshape(n, 16)
        scale = (low + 16 * high - 32) * f16(b, 108)
        v = (code + 4 * third - 4).reshape(n, 16, 16) * scale[..., None]
    elif name in ("Q4_K", "Q5_K"):
        scale, least = k_scales(b[:, 4:16])
        code = bits(b[:, -128:].reshape(n, 4, 32), 4).transpose(0, 1, 3, 2).reshape(n, 8, 32)
        if name == "Q5_K":
            code = code + 16 * bits(b[:, 16:48], 1).transpose(0, 2, 1)
        v = code * (scale * f16(b, 0))[..., None] - (least * f16(b, 2))[..., None]
    else:  # Q6_K
        low = bits(b[:, :128].reshape(n, 2, 2, 32), 4).transpose(0, 1, 4, 2, 3).reshape(n, 2, 4, 32)
        high = bits(b[:, 128:192].reshape(n, 2, 32), 2).transpose(0, 1, 3, 2)
        code = (low + 16 * high - 32).reshape(n, 16, 16)
        v = code * (b[:, 192:208].view(np.int8) * f16(b, 208))[..., None]
    return v.reshape(-1).astype(np.float32)


# Standard deviation of random codes times scales, and the minimum's factor that centres them.
SPREAD = {"Q4_0": (4.6, 0), "Q4_1": (4.6, -7.5), "Q5_0": (9.2, 0), "Q5_1": (9.2, -15.5), "Q8_0": (74, 0), "Q2_K": (12, 1.5),
          "Q3_K": (42, 0), "Q4_K": (250, 7.5), "Q5_K": (500, 15.5), "Q6_K": (1370, 0)}


def random_tensor(name, rows, cols, deviation=None):
    """Random stored bytes of a tensor whose values have about this deviation (default 1/sqrt(cols))."""
    deviation = deviation or 1 / math.sqrt(cols)
    if name in ("F32", "F16", "BF16"):
        return encode(name, rng.normal(0, deviation, (rows, cols)))
    _, values, size, places = BLOCKS[name]
    b = rng.integers(0, 256, (rows * cols // values, size), dtype=np.uint8)
    d = rng.uniform(0.5, 1.5, len(b)) * deviation / SPREAD[name][0]
    d[rng.random(len(b)) < 0.3] *= -1
    for place, factor in zip(places, (1, SPREAD[name][1])):
        b[:, place:place + 2] = (d * factor).astype("<f2").view(np.uint8).reshape(-1, 2)
    return b.reshape(-1)


def encode(name, values):
    v = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    if name == "F16":
        return v.astype("<f2").view(np.uint8)
    if name == "BF16":
        u = v.view(np.uint32)
        return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype("<u2").view(np.uint8)
    return v.view(np.uint8)


# ---- GGUF
def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(v):
    """Type and bytes of a metadata value."""
    if isinstance(v, bytes):
        return v  # as it is
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    if v and isinstance(v[0], str):
        return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v))
    return struct.pack("<IIQ", 9, 5, len(v)) + struct.pack("<%di" % len(v), *v)


def gguf(meta, tensors, align=32, version=3, counts=None, patch=None):
    """tensors: (name, dims as GGUF has them, type number, bytes, offset or None for the next place)."""
    head, data = b"", b""
    for name, dims, number, raw, offset in tensors:
        data += b"\0" * (-len(data) % align)
        at = len(data) if offset is None else offset
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack("<%dQ" % len(dims), *dims) + struct.pack("<IQ", number, at)
        data += bytes(raw)
    n = counts or (len(tensors), len(meta))
    out = b"GGUF" + struct.pack("<IQQ", version, *n) + b"".join(text(k) + value(v) for k, v in meta) + head
    out += b"\0" * (-len(out) % align) + data
    return patch(out) if patch else out


def safetensors(tensors, extra=None):
    """tensors: (name, dtype, shape, bytes)."""
    head, data = dict(extra or {}), b""
    for name, dtype, shape, raw in tensors:
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += bytes(raw)
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


# ---- models
GGUF_NAMES = {"embedding": "token_embd.weight", "head": "output.weight", "norm": "output_norm.weight", "q": "attn_q.weight",
              "k": "attn_k.weight", "v": "attn_v.weight", "o": "attn_output.weight", "gate": "ffn_gate.weight",
              "up": "ffn_up.weight", "down": "ffn_down.weight", "norm_1": "attn_norm.weight", "norm_2": "ffn_norm.weight",
              "bias_q": "attn_q.bias", "bias_k": "attn_k.bias", "bias_v": "attn_v.bias"}
HF_NAMES = {"embedding": "model.embed_tokens.weight", "head": "lm_head.weight", "norm": "model.norm.weight",
            "q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight", "v": "self_attn.v_proj.weight",
            "o": "self_attn.o_proj.weight", "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight",
            "down": "mlp.down_proj.weight", "norm_1": "input_layernorm.weight", "norm_2": "post_attention_layernorm.weight",
            "bias_q": "self_attn.q_proj.bias", "bias_k": "self_attn.k_proj.bias", "bias_v": "self_attn.v_proj.bias"}


def make(s, types):
    """{(layer or None, name): (type, rows or None, cols, stored bytes)}; `types` by name, "" for the rest."""
    d, q, kv, f = s["d_model"], s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"], s["d_ff"]
    out = {}

    def add(layer, name, rows, cols):
        kind = types.get(name, types[""]) if rows else "F32"
        if rows:
            raw = random_tensor(kind, rows, cols, 1 if name == "embedding" else None)
        elif name.startswith("norm"):
            raw = encode("F32", rng.uniform(0.5, 1.5, cols))
        else:
            raw = encode("F32", rng.normal(0, 0.3, cols))
        out[layer, name] = (kind, rows, cols, raw)

    add(None, "embedding", s["vocab"], d)
    if not s["tied"]:
        add(None, "head", s["vocab"], d)
    add(None, "norm", None, d)
    for i in range(s["n_layers"]):
        for name, rows, cols in [("q", q, d), ("k", kv, d), ("v", kv, d), ("o", d, q), ("gate", f, d), ("up", f, d),
                                 ("down", d, f), ("norm_1", None, d), ("norm_2", None, d)]:
            add(i, name, rows, cols)
        for name, n in [("bias_q", q), ("bias_k", kv), ("bias_v", kv)] if s["bias"] else []:
            add(i, name, None, n)
    return out


def floats(model):
    w = {}
    for key, (kind, rows, cols, raw) in model.items():
        v = decode(kind, raw).astype(np.float64)
        w[key] = v.reshape(rows, cols) if rows else v
    return w


def norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def frequencies(s):
    """Radians a position of each pair, and what cosine and sine are multiplied by: s["scaling"] as config.json has it."""
    half, scaling = s["d_h"] // 2, s.get("scaling") or {"rope_type": "default"}
    plain = s["base"] ** (-np.arange(half) / half)
    kind, factor = scaling["rope_type"], scaling.get("factor")
    if kind == "default":
        return plain, 1.0
    if kind == "linear":
        return plain / factor, 1.0
    context = scaling["original_max_position_embeddings"]
    if kind == "llama3":  # by wavelengths: short ones stay, long ones are stretched, between them a weighted mean
        wave, low, high = 2 * np.pi / plain, context / scaling["low_freq_factor"], context / scaling["high_freq_factor"]
        smooth = (context / wave - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"])
        between = (1 - smooth) * plain / factor + smooth * plain
        return np.where(wave < high, plain, np.where(wave > low, plain / factor, between)), 1.0
    # yarn: section 3.2 of the paper, with the constants of its authors' code
    def pair(turns):
        return s["d_h"] * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(s["base"]))
    first = max(math.floor(pair(scaling.get("beta_fast", 32))), 0)
    last = min(math.ceil(pair(scaling.get("beta_slow", 1))), s["d_h"] - 1)
    ramp = np.clip((np.arange(half) - first) / (last - first or 0.001), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), scaling.get("attention_factor", 0.1 * math.log(factor) + 1)


def rotate(x, turns, pairs):
    """x (T, heads, d_h)."""
    half = x.shape[-1] // 2
    turn = np.exp(1j * np.arange(len(x))[:, None] * turns[0])[:, None, :] * turns[1]
    if pairs:
        z = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    z = (x[..., :half] + 1j * x[..., half:]) * turn
    return np.concatenate([z.real, z.imag], -1)


def logits(s, w, tokens, pairs, most=None):
    """Of every position, (T, vocab). To most: the largest magnitudes of each dimension of what flows into the matrices of a layer
    (q, k and v; o; gate and up; down) and of the stream behind it, layer by layer."""
    most = [] if most is None else most
    t, turns = len(tokens), frequencies(s)
    x = w[None, "embedding"][tokens]
    mask = np.triu(np.full((t, t), -np.inf), 1)
    for i in range(s["n_layers"]):
        y = norm(x, w[i, "norm_1"], s["eps"])
        most.append(np.abs(y).max(0))
        q, k, v = (y @ w[i, n].T + w.get((i, "bias_" + n), 0) for n in "qkv")
        q = rotate(q.reshape(t, s["n_q"], s["d_h"]), turns, pairs).transpose(1, 0, 2)
        k = rotate(k.reshape(t, s["n_kv"], s["d_h"]), turns, pairs).transpose(1, 0, 2)
        v = v.reshape(t, s["n_kv"], s["d_h"]).transpose(1, 0, 2)
        k, v = (np.repeat(a, s["n_q"] // s["n_kv"], 0) for a in (k, v))
        p = q @ k.transpose(0, 2, 1) / math.sqrt(s["d_h"]) + mask
        p = np.exp(p - p.max(-1, keepdims=True))
        o = (p / p.sum(-1, keepdims=True)) @ v
        o = o.transpose(1, 0, 2).reshape(t, -1)
        x = x + o @ w[i, "o"].T
        y = norm(x, w[i, "norm_2"], s["eps"])
        gate = y @ w[i, "gate"].T
        product = gate / (1 + np.exp(-gate)) * (y @ w[i, "up"].T)
        x = x + product @ w[i, "down"].T
        most += [np.abs(a).max(0) for a in (o, y, product, x)]
    return norm(x, w[None, "norm"], s["eps"]) @ w[None, "embedding" if s["tied"] else "head"].T


def gguf_meta(s, architecture):
    return [("general.architecture", architecture), ("general.name", "made up"), (architecture + ".block_count", s["n_layers"]),
            (architecture + ".context_length", 64), (architecture + ".embedding_length", s["d_model"]),
            (architecture + ".feed_forward_length", s["d_ff"]), (architecture + ".attention.head_count", s["n_q"]),
            (architecture + ".attention.head_count_kv", s["n_kv"]), (architecture + ".attention.key_length", s["d_h"]),
            (architecture + ".attention.value_length", s["d_h"]), (architecture + ".rope.freq_base", float(s["base"])),
            (architecture + ".attention.layer_norm_rms_epsilon", float(s["eps"])),
            ("tokenizer.ggml.tokens", ["<s>", "a", "b" * 300]), ("tokenizer.ggml.token_type", [1, 2, 3])]


def gguf_tensors(model):
    return [((("blk.%d." % layer) if layer is not None else "") + GGUF_NAMES[name], [cols, rows] if rows else [cols],
             BLOCKS[kind][0], raw, None) for (layer, name), (kind, rows, cols, raw) in model.items()]


def hf_tensors(model):
    return [((("model.layers.%d." % layer) if layer is not None else "") + HF_NAMES[name], kind, [rows, cols] if rows else [cols],
             raw) for (layer, name), (kind, rows, cols, raw) in model.items()]


def hf_config(s, model_type, **more):
    return dict({"model_type": model_type, "num_hidden_layers": s["n_layers"], "hidden_size": s["d_model"],
                 "intermediate_size": s["d_ff"], "num_attention_heads": s["n_q"], "num_key_value_heads": s["n_kv"],
                 "head_dim": s["d_h"], "vocab_size": s["vocab"], "rms_norm_eps": s["eps"], "rope_theta": s["base"],
                 "hidden_act": "silu", "tie_word_embeddings": s["tied"], "rope_scaling": s.get("scaling"),
                 "architectures": ["ForCausalLM"]}, **more)


def to_pairs(model, s):
    """Rows of q and k reordered so that neighbours turn together, as writers of GGUF do with a llama's."""
    out = dict(model)
    for (layer, name), (kind, rows, cols, raw) in model.items():
        if name in ("q", "k"):
            heads = s["n_q"] if name == "q" else s["n_kv"]
            rows_of = np.asarray(raw).reshape(heads, 2, s["d_h"] // 2, -1)
            out[layer, name] = (kind, rows, cols, rows_of.swapaxes(1, 2).reshape(-1))
    return out


# Contexts and factors under which pairs of heads of 16 fall on both sides of the bounds, and between them.
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0, "beta_slow": 2.0},
    "yarn_given": {"type": "yarn", "rope_type": "yarn", "factor": 6.0, "original_max_position_embeddings": 512,
                   "attention_factor": 1.3}}


def gguf_scaling(s, architecture):
    """Metadata and tensors that say the same in a GGUF file."""
    scaling, prefix = s["scaling"], architecture + ".rope.scaling."
    if scaling["rope_type"] == "llama3":
        plain = s["base"] ** (-np.arange(s["d_h"] // 2) / (s["d_h"] // 2))
        return [], [("rope_freqs.weight", [s["d_h"] // 2], 0, encode("F32", plain / frequencies(s)[0]), None)]
    meta = [(prefix + "type", scaling["rope_type"]), (prefix + "factor", scaling["factor"])]
    if scaling["rope_type"] == "yarn":
        usual = 0.1 * math.log(scaling["factor"]) + 1
        meta += [(prefix + "original_context_length", scaling["original_max_position_embeddings"]),
                 (prefix + "yarn_beta_fast", scaling.get("beta_fast", 32.0)), (prefix + "yarn_beta_slow", scaling.get("beta_slow", 1.0)),
                 (prefix + "attn_factor", scaling.get("attention_factor", usual) / usual)]
    return meta, []


SMALL = dict(n_layers=2, d_model=48, n_q=6, n_kv=2, d_h=10, d_ff=72, vocab=61, base=10000.0, eps=1e-5, tied=False, bias=False)
WIDE = dict(n_layers=2, d_model=256, n_q=8, n_kv=2, d_h=32, d_ff=512, vocab=97, base=5e5, eps=1e-6, tied=False, bias=False)
QWEN = dict(n_layers=2, d_model=64, n_q=4, n_kv=1, d_h=16, d_ff=96, vocab=83, base=1e6, eps=1e-6, tied=True, bias=True)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())


def expected(root, name, s, model, pairs, n=9):
    tokens = rng.integers(0, s["vocab"], n)
    most = []
    out = logits(s, floats(model), tokens, pairs, most)
    write("%s/%s.most" % (root, name), np.concatenate(most).astype("<f4").tobytes())
    write("%s/%s.expected" % (root, name), np.array([len(tokens), s["vocab"]], "<i4").tobytes() + tokens.astype("<i4").tobytes()
          + out.astype("<f4").tobytes())


def scaled_models(root):
    """Stretched rotary angles: each kind in a folder and in a GGUF file, with one meaning."""
    for name, scaling in SCALINGS.items():
        s = dict(SMALL, d_h=16, n_q=4, vocab=37, d_model=32, base=1000.0, scaling=scaling)
        m = make(s, {"": "F32"})
        folder = root + "/" + name
        config = hf_config(s, "llama", max_position_embeddings=4096)
        if name == "llama3":  # as newer versions of the library write it
            config["rope_parameters"] = dict(config.pop("rope_scaling"), rope_theta=config.pop("rope_theta"))
        write(folder + "/config.json", config)
        write(folder + "/model.safetensors", safetensors(hf_tensors(m)))
        more, tensors = gguf_scaling(s, "llama")
        write(folder + ".gguf", gguf(gguf_meta(s, "llama") + more, gguf_tensors(to_pairs(m, s)) + tensors))
        expected(root, name, s, m, False, 40)


def models(root):
    # One llama, three carriers: a folder in two parts (halves turn), one file alone, and GGUF (neighbours turn).
    m = make(SMALL, {"": "BF16", "embedding": "F32", "down": "F16"})
    both = hf_tensors(m)
    write(root + "/llama/config.json", hf_config(SMALL, "llama"))
    write(root + "/llama/model-00001-of-00002.safetensors", safetensors(both[:9], {"__metadata__": {"format": "pt"}}))
    write(root + "/llama/model-00002-of-00002.safetensors", safetensors(both[9:]))
    write(root + "/alone/config.json", hf_config(SMALL, "mistral", sliding_window=None))
    write(root + "/alone/x.safetensors", safetensors(both))
    write(root + "/llama.gguf", gguf(gguf_meta(SMALL, "llama"), gguf_tensors(to_pairs(m, SMALL))))
    expected(root, "llama", SMALL, m, False)
    # Every block format in one model.
    m = make(WIDE, {"": "Q4_K", "embedding": "Q8_0", "head": "Q6_K", "q": "Q5_K", "k": "Q3_K", "v": "Q2_K", "o": "Q5_0", "up": "Q4_0",
                    "down": "Q5_1", "gate": "Q4_1"})
    write(root + "/blocks.gguf", gguf(gguf_meta(WIDE, "llama") + [("general.alignment", 64)], gguf_tensors(m), align=64))
    expected(root, "blocks", WIDE, m, True)
    m = make(QWEN, {"": "Q8_0", "embedding": "F16"})
    write(root + "/qwen2.gguf", gguf(gguf_meta(QWEN, "qwen2"), gguf_tensors(m), version=2))
    expected(root, "qwen2", QWEN, m, False)
    m = make(QWEN, {"": "F32"})
    write(root + "/qwen2/config.json", hf_config(QWEN, "qwen2", sliding_window=32, use_sliding_window=False))
    write(root + "/qwen2/model.safetensors", safetensors(hf_tensors(m)))
    expected(root, "qwen2_folder", QWEN, m, False)
    # A dimension of the residual stream that is far larger than the others, as trained models have some.
    m = make(SMALL, {"": "F32"})
    kind, rows, cols, raw = m[None, "embedding"]
    v = np.array(raw).view("<f4").reshape(rows, cols).copy()
    v[:, 5] *= 200
    m[None, "embedding"] = (kind, rows, cols, v.reshape(-1).view(np.uint8))
    write(root + "/planted.gguf", gguf(gguf_meta(SMALL, "llama"), gguf_tensors(m)))


def every_type(root):
    """All types with random bytes, subnormal, huge and negative scales; then the float32 that they are, in the same order."""
    tensors, values = [], b""
    for name, (number, block, size, places) in BLOCKS.items():
        rows, cols = 7, 1024 if block > 1 else 999
        if block == 1:
            raw = encode(name, rng.normal(0, 3, (rows, cols)) * 2.0 ** rng.integers(-20, 12, (rows, cols)))
        else:
            b = rng.integers(0, 256, (rows * cols // block, size), dtype=np.uint8)
            for place in places:
                d = rng.normal(0, 1, len(b)) * 2.0 ** rng.integers(-22, 10, len(b))
                b[:, place:place + 2] = d.astype("<f2").view(np.uint8).reshape(-1, 2)
            raw = b.reshape(-1)
        tensors.append((name, [cols, rows], number, raw, None))
        values += decode(name, raw).astype("<f4").tobytes()
    write(root + "/types.gguf", gguf([], tensors))
    write(root + "/types.values", values)


# ---- broken files: (name, bytes or {file: bytes}, what the sentence must say)
def tiny(**changes):
    s = dict(n_layers=1, d_model=8, n_q=2, n_kv=1, d_h=4, d_ff=8, vocab=5, base=10000.0, eps=1e-5, tied=True, bias=False)
    s.update(changes)
    return s, make(s, {"": "F32"})


def broken_gguf():
    s, m = tiny()
    meta, tensors = gguf_meta(s, "llama"), gguf_tensors(m)
    good = gguf(meta, tensors)
    a = "llama."

    def put(key, v):
        return [(k, v if k == key else w) for k, w in meta] if any(k == key for k, _ in meta) else meta + [(key, v)]

    def but(name, **to):
        fields = ("name", "dims", "number", "raw", "offset")
        return [tuple(to.get(f, x) for f, x in zip(fields, t)) if t[0] == name else t for t in tensors]

    def one(*t):
        return tensors + [t]

    last, size = tensors[-1][0], sum(len(t[3]) for t in tensors)
    yield "empty", b"", "no GGUF"
    yield "three bytes", b"GGU", "no GGUF"
    yield "magic only", b"GGUF", "ends in the middle"
    yield "big-endian", b"GGUF" + struct.pack(">I", 3) + good[8:], "big-endian"
    yield "version 1", gguf(meta, tensors, version=1), "version 1"
    yield "version 4", gguf(meta, tensors, version=4), "version 4"
    yield "version 0", gguf(meta, tensors, version=0), "version 0"
    for n in (2 ** 63, 2 ** 64 - 1, 2 ** 32, 70000):
        yield "tensors %d" % n, gguf(meta, tensors, counts=(n, len(meta))), "more than"
        yield "entries %d" % n, gguf(meta, tensors, counts=(len(tensors), n)), "more than"
    yield "no tensors", gguf(meta, []), "no tensors"
    yield "one entry too many", gguf(meta, tensors, counts=(len(tensors), len(meta) + 1)), ""
    yield "one tensor too many", gguf(meta, tensors, counts=(len(tensors) + 1, len(meta))), ""
    for at in range(4, len(good) - size, 37):
        yield "cut at %d" % at, good[:at], ""
    yield "cut at its last byte", good[:-1], "beyond the file's end"
    yield "key of 2^63 bytes", good[:24] + struct.pack("<Q", 2 ** 63) + good[32:], "ends in the middle"
    yield "key of 0 bytes", gguf([("", 1)] + meta, tensors), "0 bytes"
    yield "key with a zero", gguf([("a\0b", 1)] + meta, tensors), "UTF-8"
    yield "key that is no UTF-8", gguf([(b"\xff\xfe", 1)] + meta, tensors), "UTF-8"
    yield "unknown type of value", gguf([("x", struct.pack("<II", 13, 0))] + meta, tensors), "unknown type 13"
    yield "text of 2^64 - 1 bytes", gguf([("x", struct.pack("<IQ", 8, 2 ** 64 - 1))] + meta, tensors), "ends in the middle"
    for n in (2 ** 63, 2 ** 61, 2 ** 40):
        yield "array of %d" % n, gguf([("x", struct.pack("<IIQ", 9, 4, n))] + meta, tensors), "ends in the middle"
        yield "texts %d" % n, gguf([("x", struct.pack("<IIQ", 9, 8, n))] + meta, tensors), "ends in the middle"
    yield "array of unknown type", gguf([("x", struct.pack("<IIQ", 9, 77, 1))] + meta, tensors), "unknown type 77"
    deep = struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 1000 + struct.pack("<IQ", 4, 0)
    yield "deep arrays", gguf([("x", deep)] + meta, tensors), "deeper"
    yield "entry twice", gguf(meta + meta[:1], tensors), "twice"
    yield "tensor twice", gguf(meta, tensors + tensors[:1]), "twice"
    yield "tensors over each other", gguf(meta, but(last, offset=0)), "over each other"
    yield "no dimensions", gguf(meta, but(last, dims=[])), "0 dimensions"
    yield "five dimensions", gguf(meta, but(last, dims=[8, 1, 1, 1, 1])), "5 dimensions"
    for dims in ([0], [2 ** 63], [2 ** 64 - 1], [2 ** 32], [8, 0]):
        yield "dimensions %s" % dims, gguf(meta, but(last, dims=dims)), "a dimension of"
    yield "product of 2^62", gguf(meta, but(last, dims=[2 ** 31 - 1, 2 ** 31 - 1])), "beyond the file's end"
    yield "product of 2^93", gguf(meta, but(last, dims=[2 ** 31 - 1] * 4)), "beyond the file's end"
    for offset in (2 ** 63, 2 ** 64 - 32, 2 ** 62, 1 << 20):
        yield "offset %d" % offset, gguf(meta, but(last, offset=offset)), "beyond the file's end"
    yield "offset 33", gguf(meta, but(last, offset=33)), "no multiple of 32"
    for v in (0, 3, 2 ** 31):
        yield "alignment %d" % v, gguf(put("general.alignment", v), tensors), "power of two"
    yield "alignment as text", gguf(put("general.alignment", "32"), tensors), "power of two"
    yield "half a block", gguf(meta, one("x", [40], 2, b"\0" * 36, None)), "whole blocks"
    for number, word in [(16, "IQ2_XXS"), (4, "unknown"), (999, "unknown"), (2 ** 32 - 1, "unknown"), (28, "F64"), (26, "I32")]:
        yield "type %d" % number, gguf(meta, but(last, number=number)), word
    yield "name of 256 bytes", gguf(meta, one("n" * 256, [8], 0, b"\0" * 32, None)), "256 bytes"
    for name in [t[0] for t in tensors]:
        yield "without " + name, gguf(meta, [t for t in tensors if t[0] != name]), "no tensor '%s'" % name
    yield "another shape", gguf(meta, but("blk.0.attn_k.weight", dims=[4, 8])), "8 x 4 elements"
    yield "a tensor of others", gguf(meta, one("blk.0.attn_q_norm.weight", [4], 0, b"\0" * 16, None)), "no use for"
    yield "a layer too many", gguf(meta, one("blk.1.attn_q.weight", [8, 8], 0, b"\0" * 256, None)), "no use for"
    yield "one bias", gguf(meta, one("blk.0.attn_q.bias", [8], 0, b"\0" * 32, None)), "no tensor 'blk.0.attn_k.bias'"
    yield "rope_freqs of others", gguf(meta, one("rope_freqs.weight", [4], 0, b"\0" * 16, None)), "heads of 4 have 2 pairs"
    yield "rope_freqs twice", gguf(put(a + "rope.scaling.factor", 4.0), one("rope_freqs.weight", [2], 0, b"\0" * 8, None)), "one is read"
    yield "rope_freqs in a layer", gguf(meta, one("blk.0.rope_freqs.weight", [2], 0, b"\0" * 8, None)), "no use for"
    yield "long and short factors", gguf(meta, one("rope_factors_long.weight", [2], 0, b"\0" * 8, None)), "no use for"
    for key in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count",
                "attention.layer_norm_rms_epsilon"):
        yield "without " + key, gguf([e for e in meta if e[0] != a + key], tensors), "lack llama." + key
        yield key + " as text", gguf(put(a + key, "8"), tensors), "must be a"
    yield "layers 0", gguf(put(a + "block_count", 0), tensors), "block_count must be"
    yield "layers 2^32 - 1", gguf(put(a + "block_count", 2 ** 32 - 1), tensors), "block_count must be"
    yield "layers 2^63", gguf(put(a + "block_count", struct.pack("<IQ", 10, 2 ** 63)), tensors), "block_count must be"
    yield "layers -1", gguf(put(a + "block_count", struct.pack("<Ii", 5, -1)), tensors), "block_count must be"
    yield "layers 5000", gguf(put(a + "block_count", 5000), tensors), "n_layers would be 5000"
    yield "heads 0", gguf(put(a + "attention.head_count", 0), tensors), "head_count must be"
    yield "heads per layer", gguf(put(a + "attention.head_count_kv", [1, 2]), tensors), "from layer to layer"
    for v in (float("nan"), float("inf"), -1.0):
        yield "eps %g" % v, gguf(put(a + "attention.layer_norm_rms_epsilon", v), tensors), "from 0 on"
        yield "base %g" % v, gguf(put(a + "rope.freq_base", v), tensors), "from 0 on"
    yield "eps 2", gguf(put(a + "attention.layer_norm_rms_epsilon", 2.0), tensors), "eps would be 2"
    yield "rope scaling", gguf(put(a + "rope.scaling.type", "longrope"), tensors), "linear, llama3 and yarn are read"
    yield "rope scaling 3", gguf(put(a + "rope.scaling.type", 3), tensors), "must be a word"
    for v, said in ((0.5, "numbers from 1 on"), (float("nan"), "from 0 on"), (-2.0, "from 0 on"), (1e30, "rope_factor would be")):
        yield "rope factor %g" % v, gguf(put(a + "rope.scaling.factor", v), tensors), said
    yarn = [(a + "rope.scaling.type", "yarn"), (a + "rope.scaling.factor", 4.0)]
    for key, v, said in (("yarn_log_multiplier", 0.1, "linear, llama3 and yarn"), ("yarn_ext_factor", 0.5, "other than 1"),
                         ("yarn_beta_fast", 0.5, "ends"), ("original_context_length", 0, "must be"), ("attn_factor", 1e9, "rope_magnify")):
        yield "yarn " + key, gguf(meta + yarn + [(a + "rope.scaling." + key, v)], tensors), said
    yield "yarn without a base", gguf([(k, 1.0 if k == a + "rope.freq_base" else v) for k, v in meta] + yarn, tensors), "turn alike"
    yield "half rotation", gguf(put(a + "rope.dimension_count", 2), tensors), "a part of each head"
    yield "experts", gguf(put(a + "expert_count", 8), tensors), "experts"
    yield "clamp", gguf(put(a + "attention.clamp_kqv", 3.0), tensors), "no such factor"
    yield "looks ahead", gguf(put(a + "attention.causal", False), tensors), "looks ahead"
    yield "wide values", gguf(put(a + "attention.value_length", 8), tensors), "differ in width"
    yield "another vocabulary", gguf(put(a + "vocab_size", 6), tensors), "its metadata say 6 x 8"
    yield "no architecture", gguf(meta[1:], tensors), "lack general.architecture"
    yield "architecture as number", gguf(put("general.architecture", 7), tensors), "lack general.architecture"
    yield "gemma", gguf(put("general.architecture", "gemma2"), tensors), "runs llama"


def broken_safetensors():
    s, m = tiny()
    tensors, config = hf_tensors(m), hf_config(s, "llama")

    def raw(header, data=b"\0" * 4096, n=None):
        header = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(header) if n is None else n) + header + data

    def both(data, conf=config):
        return {"config.json": conf if isinstance(conf, bytes) else json.dumps(conf).encode(), "model.safetensors": data}

    def entry(**to):
        return {"x": dict({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, **to)}

    good = safetensors(tensors)
    yield "empty", both(b""), "header's length"
    yield "seven bytes", both(good[:7]), "header's length"
    for n in (2 ** 63, 2 ** 64 - 1, 1 << 40, 5000):
        yield "header of %d" % n, both(raw(b"{}", n=n)), "longer than the file"
    yield "no JSON", both(raw(b"{\"a\":")), "no JSON"
    yield "a list", both(raw(b"[]")), "no JSON object"
    yield "two documents", both(raw(b"{} {}")), "no JSON object"
    yield "zero within", both(raw(b"{\"a\":\0}")), "no UTF-8"
    yield "no UTF-8", both(raw(b"{\"\xff\":1}")), "no UTF-8"
    yield "deep", both(raw(b"[" * 100000)), "deeper than"
    yield "many items", both(raw(b"{\"a\":[" + b"0," * 600000 + b"0]}")), "more than"
    yield "a number", both(raw({"x": 3})), "needs dtype"
    yield "no dtype", both(raw({"x": {"shape": [1], "data_offsets": [0, 4]}})), "needs dtype"
    yield "F64", both(raw(entry(dtype="F64"))), "stored as F64"
    yield "F8", both(raw(entry(dtype="F8_E4M3"))), "stored as F8_E4M3"
    for v in (-1, 1.5, 2 ** 63, 1e300, "2", None):
        yield "dimension %s" % v, both(raw(entry(shape=[v, 3]))), "whole numbers"
        yield "offset %s" % v, both(raw(entry(data_offsets=[v, 24]))), "whole numbers"
    yield "dimension 0", both(raw(entry(shape=[0, 3], data_offsets=[0, 0]))), "a dimension of 0"
    yield "five dimensions", both(raw(entry(shape=[1, 1, 1, 2, 3]))), "more than 4"
    yield "wide product", both(raw(entry(shape=[2 ** 31 - 1] * 4))), "beyond the file's end"
    yield "offsets of others", both(raw(entry(data_offsets=[0, 20]))), "do not hold its shape"
    yield "offsets turned round", both(raw(entry(data_offsets=[24, 0]))), "do not hold its shape"
    yield "three offsets", both(raw(entry(data_offsets=[0, 24, 48]))), "needs dtype"
    yield "beyond the end", both(raw(entry(data_offsets=[1 << 40, (1 << 40) + 24]))), "beyond the file's end"
    yield "twice", both(raw(b'{"x":%s,"x":%s}' % ((json.dumps(entry()["x"]).encode(),) * 2))), "twice"
    yield "over each other", both(raw(dict(entry(), y=entry(data_offsets=[20, 44])["x"]))), "over each other"
    yield "no name", both(raw({"": entry()["x"]})), "names have"
    yield "no tensors", both(raw(b"{}")), "no tensors"
    yield "cut", both(good[:-1]), "beyond the file's end"
    yield "same tensor in two parts", dict(both(good), **{"more.safetensors": safetensors(tensors[:1])}), "twice"
    yield "no config", {"model.safetensors": good}, "no config.json"
    yield "no weights", {"config.json": json.dumps(config).encode()}, "no *.safetensors"
    yield "config is no JSON", both(good, b"{"), "no JSON"
    yield "config is deep", both(good, b'{"a":' * 1000 + b"1" + b"}" * 1000), "deeper"
    yield "config of 2 MiB", both(good, b" " * (2 << 20)), "config.json"
    for name in [t[0] for t in tensors]:
        yield "without " + name, both(safetensors([t for t in tensors if t[0] != name])), "no tensor '%s'" % name
    changes = [
        ("model_type", "gemma", "runs llama"), ("model_type", None, "lacks model_type"), ("num_hidden_layers", 0, "must be"),
        ("num_hidden_layers", 1.5, "must be"), ("num_hidden_layers", "1", "must be"), ("num_hidden_layers", None, "lack"),
        ("hidden_size", 16, "elements"), ("head_dim", 8, "elements"), ("num_key_value_heads", [1], "from layer to layer"),
        ("hidden_act", "gelu", "silu"), ("rope_scaling", {"rope_type": "llama3", "factor": 8.0}, "lack rope_scaling.original_max_position"),
        ("rope_scaling", {"factor": 2.0}, "without a rope_type"), ("rope_scaling", {"type": "linear"}, "lack rope_scaling.factor"), ("rope_scaling", {"type": "dynamic", "factor": 2.0}, "'dynamic'"),
        ("rope_scaling", {"type": "linear", "factor": "2"}, "must be a number"), ("rope_scaling", {"type": "linear", "factor": 0.5}, "from 1 on"),
        ("rope_parameters", {"rope_type": "yarn"}, "lack rope_parameters.factor"), ("rope_parameters", {"rope_type": "longrope"}, "'longrope'"),
        ("rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5}, "a part of each head"),
        ("rope_scaling", {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64, "truncate": False}, "truncate"),
        ("rope_scaling", {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 4,
                          "original_max_position_embeddings": 64}, "or before"), ("quantization_config", {"bits": 4}, "quantized"),
        ("mlp_bias", True, "no biases"), ("partial_rotary_factor", 0.5, "a part of each head"), ("num_local_experts", 8, "experts"),
        ("tie_word_embeddings", False, "no tensor 'lm_head.weight'"), ("vocab_size", 1e300, "must be"), ("rms_norm_eps", -1, "from 0 on")]
    for key, v, said in changes:
        yield "%s %s" % (key, v), both(good, dict(config, **{key: v})), said
    yield "qwen2 window", both(good, dict(config, model_type="qwen2", sliding_window=8, use_sliding_window=True)), "window"


def broken(root):
    lines = []
    for i, (name, data, said) in enumerate(broken_gguf()):
        path = "broken/%d.gguf" % i
        write("%s/%s" % (root, path), data)
        lines.append((path, "gguf: " + name, said))
    for i, (name, files, said) in enumerate(broken_safetensors()):
        path = "broken/%d" % i
        for file, data in files.items():
            write("%s/%s/%s" % (root, path, file), data)
        lines.append((path, "safetensors: " + name, said))
    write(root + "/broken.tsv", "".join("\t".join(line) + "\n" for line in lines).encode())


def bad_values(root):
    """Right files with one value that no weight may have; what must be said of it."""
    lines = []
    for i, (bad, said) in enumerate([(math.nan, "not a number"), (math.inf, "infinite"), (-math.inf, "infinite")]):
        for name in ("down", "norm_2", "embedding"):
            s, m = tiny()
            key = (None if name == "embedding" else 0, name)
            kind, rows, cols, raw = m[key]
            v = np.array(raw).view("<f4").copy()
            v[2] = bad
            m[key] = (kind, rows, cols, v.view(np.uint8))
            path = "values/%s%d.gguf" % (name, i)
            write("%s/%s" % (root, path), gguf(gguf_meta(s, "llama"), gguf_tensors(m)))
            lines.append((path, GGUF_NAMES[name], said))
    for name in ("F16", "BF16"):
        for i, (bad, said) in enumerate([(math.nan, "column 3 is not a number"), (-math.inf, "column 3 is infinite")]):
            s, m = tiny()
            kind, rows, cols, raw = m[0, "down"]
            v = decode(kind, raw).copy()
            v[cols + 3] = bad
            half = v.astype("<f2") if name == "F16" else (v.view(np.uint32) >> 16).astype("<u2")
            m[0, "down"] = (name, rows, cols, half.view(np.uint8))
            path = "values/%s%d.gguf" % (name, i)
            write("%s/%s" % (root, path), gguf(gguf_meta(s, "llama"), gguf_tensors(m)))
            lines.append((path, GGUF_NAMES["down"], said))
    for i, (bad, said) in enumerate([(math.nan, "nan"), (0.0, "stretched by numbers from"), (-1.0, "is -1"), (math.inf, "is inf")]):
        s, m = tiny()
        path, table = "values/factors%d.gguf" % i, ("rope_freqs.weight", [2], 0, encode("F32", [1.0, bad]), None)
        write("%s/%s" % (root, path), gguf(gguf_meta(s, "llama"), gguf_tensors(m) + [table]))
        lines.append((path, "rope_freqs.weight", said))
    s, m = tiny()
    kind, rows, cols, raw = m[0, "down"]
    v = np.array(raw).view("<f4").copy()
    v[9] = 65530
    m[0, "down"] = (kind, rows, cols, v.view(np.uint8))
    write(root + "/values/large.gguf", gguf(gguf_meta(s, "llama"), gguf_tensors(m)))
    write(root + "/values.tsv", "".join("\t".join(line) + "\n" for line in lines).encode())


def sparse(path, s, kind):
    """A GGUF file whose weights are all zero, and take no room on the disk: for tests of memory."""
    _, values, size, _ = BLOCKS[kind]
    d, q, kv, f = s["d_model"], s["n_q"] * s["d_h"], s["n_kv"] * s["d_h"], s["d_ff"]
    shapes = [(None, "embedding", s["vocab"], d), (None, "norm", None, d)]
    for i in range(s["n_layers"]):
        shapes += [(i, name, rows, cols) for name, rows, cols in
                   [("q", q, d), ("k", kv, d), ("v", kv, d), ("o", d, q), ("gate", f, d), ("up", f, d), ("down", d, f),
                    ("norm_1", None, d), ("norm_2", None, d)]]
    tensors, at = [], 0
    for layer, name, rows, cols in shapes:
        number, n = (BLOCKS[kind][0], rows * cols // values * size) if rows else (0, 4 * cols)
        head = "" if layer is None else "blk.%d." % layer
        tensors.append((head + GGUF_NAMES[name], [cols, rows] if rows else [cols], number, b"", at))
        at += -(-n // 32) * 32
    head = gguf(gguf_meta(s, "llama"), tensors)
    write(path, head)
    os.truncate(path, len(head) + at)


def sparse_models(root):
    s = dict(n_layers=2, d_model=2048, n_q=16, n_kv=4, d_h=128, d_ff=5632, vocab=8192, base=1e4, eps=1e-5)
    sparse(root + "/zeros.gguf", s, "F16")
    sparse(root + "/zeros8.gguf", s, "Q8_0")


def corpus(root):
    s, m = tiny()
    write(root + "/llama.gguf", gguf(gguf_meta(s, "llama"), gguf_tensors(m)))
    s, m = tiny(bias=True, tied=False, d_model=32, n_q=4, d_h=8, n_kv=2, d_ff=32)
    m = {k: ("Q8_0", r, c, random_tensor("Q8_0", r, c)) if r else (t, r, c, raw) for k, (t, r, c, raw) in m.items()}
    write(root + "/qwen2.gguf", gguf(gguf_meta(s, "qwen2"), gguf_tensors(m), version=2))
    s, m = tiny()
    write(root + "/model.safetensors", safetensors(hf_tensors(m)))
    write(root + "/config.json", hf_config(s, "llama"))
    for name in ("yarn", "llama3"):
        s, m = tiny(scaling=SCALINGS[name])
        more, tensors = gguf_scaling(s, "llama")
        write("%s/%s.gguf" % (root, name), gguf(gguf_meta(s, "llama") + more, gguf_tensors(m) + tensors))


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(sys.argv[2])
    else:
        for make_files in (models, every_type, broken, bad_values, scaled_models, sparse_models):
            make_files(sys.argv[1])
