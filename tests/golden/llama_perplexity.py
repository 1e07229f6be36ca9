#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of texts under a GGUF file as llama.cpp (PyPI llama-cpp-python) gives it: the record smollm2_perplexity.tsv.

    llama_perplexity.py GGUF OUT TEXT ...

As llama.cpp's own tool scores: windows of 512 tokens that do not overlap; of each the positions from 256 on, whose
logits predict the token that follows.
"""
import os
import sys

import llama_cpp
import numpy as np

WINDOW, UNSCORED = 512, 256
path, out, texts = sys.argv[1], sys.argv[2], sys.argv[3:]
model = llama_cpp.Llama(path, n_ctx=WINDOW, n_batch=WINDOW, n_ubatch=WINDOW, logits_all=True, n_threads=2, verbose=False)
lines = ["# tests/golden/llama_perplexity.py: llama-cpp-python %s, %s" % (llama_cpp.__version__, os.path.basename(path)),
         "text\ttokens\twindow\tstride\tunscored\tscored\tmean_nll\tperplexity"]
for text in texts:
    with open(text, "rb") as f:
        tokens = model.tokenize(f.read(), add_bos=False, special=False)
    losses = []
    for begin in range(0, len(tokens) - WINDOW + 1, WINDOW):
        window = tokens[begin:begin + WINDOW]
        model.reset()
        model.eval(window)
        logits = np.array(model.scores[:WINDOW], dtype=np.float64)
        logits -= logits.max(1, keepdims=True)
        logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        losses += [-logp[i, window[i + 1]] for i in range(UNSCORED, WINDOW - 1)]
    mean = float(np.mean(losses))
    lines.append("%s\t%d\t%d\t%d\t%d\t%d\t%.6f\t%.5f" % (os.path.basename(text), len(tokens), WINDOW, WINDOW, UNSCORED, len(losses), mean, np.exp(mean)))
with open(out, "w") as f:
    f.write("\n".join(lines) + "\n")
