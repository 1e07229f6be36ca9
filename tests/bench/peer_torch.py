# SPDX-License-Identifier: Apache-2.0
"""PyTorch's linear layer on the processor, to stand beside `bench` in one sitting: the matrix `down` of the shape seed-0.5b,
   bf16 and f32, inputs of the weights' type, as many copies in turn as fill 256 MiB, so that each finds its own gone from
   the caches, as the rows of cpu_beside.toml do.

   peer_torch.py FOLDER [THREADS]  one JSON line a row; FOLDER is not used"""
import json
import os
import statistics
import sys
import time

import torch

N, K, ROTATE = 896, 4864, 256 << 20


def times_of(m, kind):
    """ms of one product each, after a second of warm-up, for a second."""
    size = torch.tensor([], dtype=kind).element_size()
    weights = [torch.randn(N, K).mul_(0.02).to(kind) for _ in range(ROTATE // (N * K * size) + 1)]
    x, samples = torch.randn(m, K).to(kind), []
    begin = time.perf_counter()
    while time.perf_counter() - begin < 2 or len(samples) < 20:
        for weight in weights:
            before = time.perf_counter()
            torch.nn.functional.linear(x, weight)
            after = time.perf_counter()
            if after - begin > 1:
                samples.append((after - before) * 1e3)
    return samples


def main():
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count())
    with torch.inference_mode():
        for name, kind in (("bf16", torch.bfloat16), ("f32", torch.float32)):
            for m in (1, 8, 64, 512):
                samples = times_of(m, kind)
                print(json.dumps({"cell": f"linear type={name} m={m}", "median_ms": statistics.median(samples),
                                  "n": len(samples)}), flush=True)


main()
