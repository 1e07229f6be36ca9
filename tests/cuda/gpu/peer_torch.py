# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the shapes of speed.toml, where it is installed: name, microseconds, GB/s, TFLOP/s, separated by tabs."""
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: PyTorch is not installed", file=sys.stderr)
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch sees no GPU", file=sys.stderr)
    sys.exit(77)


def seconds(run, repeats=50):
    """Median of nine graphs of `repeats` runs: short kernels are not judged by the host's speed or the events' resolution."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(10):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / repeats)
    return sorted(times[1:])[4]


def row(name, s, bytes_moved, flops):
    print(f"{name}\t{s * 1e6:.2f}\t{bytes_moved / s / 1e9:.1f}\t{flops / s / 1e12:.2f}")


def linear(m, n, k):
    # As many weights in turn as make four times any cache: none is found in one.
    copies = max(1, -(-4 * 64 * 2**20 // (2 * n * k)))
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    turn = [0]

    def run():
        turn[0] = (turn[0] + 1) % copies
        F.linear(x, weights[turn[0]])

    row(f"linear batch={m}", seconds(run, 10 if m > 64 else 50), 2 * (n * k + m * (n + k)), 2 * m * n * k)


def attention(tokens, context, batch, heads, d):
    q = torch.randn(batch, heads, tokens, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, heads, context, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    causal = tokens > 1
    s = seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), 10)
    moved = 2 * batch * heads * d * (2 * tokens + 2 * context)
    flops = 4 * batch * heads * d * tokens * context * (0.5 if causal else 1)
    row(f"attention tokens={tokens} context={context} batch={batch}", s, moved, flops)


for m in (1, 8, 64, 2048):
    linear(m, 28672, 4096)
attention(1, 32768, 1, 32, 128)
attention(1, 4096, 8, 32, 128)
attention(2048, 2048, 1, 32, 128)
attention(8192, 8192, 1, 32, 128)
