#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models' files of one stored type each, for bench_load: load_files.py FOLDER [MB [TYPE ...]]"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import numpy as np
import model_file_golden as files

root, megabytes, types = sys.argv[1], int((sys.argv + [0, 256])[2]) or 256, sys.argv[3:] or list(files.BLOCKS)
for name in types:
    s = dict(d_model=2048, n_q=16, n_kv=4, d_h=128, d_ff=5632, vocab=32000, base=1e4, eps=1e-5, tied=True, bias=False, n_layers=1)
    _, values, size, _ = files.BLOCKS[name]
    layer = (2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 5632 * 2048) * size / values
    s["n_layers"] = max(1, round(megabytes * 1e6 / layer))
    one = {}

    def cheap(kind, rows, cols, deviation=None):
        """The same random bytes in all tensors of a shape: what they are does not matter to time."""
        if (kind, rows, cols) not in one:
            some = files.random_tensor_of(kind, min(rows, 64), cols, deviation)
            one[kind, rows, cols] = np.tile(some, -(-rows // 64))[:rows * cols // files.BLOCKS[kind][1] * files.BLOCKS[kind][2]]
        return one[kind, rows, cols]

    files.random_tensor_of, files.random_tensor = files.random_tensor, cheap
    m = files.make(s, {"": name})
    files.random_tensor = files.random_tensor_of
    files.write("%s/%s.gguf" % (root, name), files.gguf(files.gguf_meta(s, "llama"), files.gguf_tensors(m)))
