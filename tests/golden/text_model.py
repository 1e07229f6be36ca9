#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tiny random model with a tiny tokenizer: 256 bytes, two merges, two special tokens."""
import numpy as np

import model_file_golden as golden

SHAPE = dict(n_layers=2, d_model=48, n_q=6, n_kv=2, d_h=10, d_ff=72, vocab=260, base=10000.0, eps=1e-5, tied=False, bias=False)
PAIRS, BOS, EOS = {b" t": 256, b"he": 257}, 258, 259  # merges of the tokenizer, in this order


def printable():
    """Bytes to characters, as GPT-2's vocabulary writes them."""
    shown = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(rest)}


def tokens_of(text):
    raw, ids, at = text.encode(), [], 0
    while at < len(raw):
        pair = PAIRS.get(raw[at:at + 2])
        ids.append(raw[at] if pair is None else pair)
        at += 1 if pair is None else 2
    return ids


def write_model(path, bos=False, pre="smollm"):
    chars = printable()
    names = [chars[b] for b in range(256)] + ["".join(chars[b] for b in pair) for pair in PAIRS] + ["<s>", "</s>"]
    golden.rng = np.random.default_rng(8)
    model = golden.make(SHAPE, {"": "F32"})
    meta = [m for m in golden.gguf_meta(SHAPE, "llama") if not m[0].startswith("tokenizer.")]
    meta += [("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", pre), ("tokenizer.ggml.tokens", names),
             ("tokenizer.ggml.token_type", [1] * 258 + [3, 3]), ("tokenizer.ggml.merges", [" ".join(chars[b] for b in p) for p in PAIRS]),
             ("tokenizer.ggml.bos_token_id", BOS), ("tokenizer.ggml.eos_token_id", EOS), ("tokenizer.ggml.add_bos_token", bos)]
    golden.write(str(path), golden.gguf(meta, golden.gguf_tensors(model)))
    return golden.floats(model)
