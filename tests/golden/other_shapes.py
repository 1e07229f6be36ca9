# SPDX-License-Identifier: Apache-2.0
"""Protocols of drawn points, and numbers for them by formulas of its own; for test_other_shapes.py.

Each function draws n points of one workload and yields (settings, what its metrics must be); None: no number.
"""
import math
import statistics
from fractions import Fraction

BITS = {"f32": (32, 0), "f16": (16, 0), "bf16": (16, 0), "int8": (8, 0), "int8-tensor": (8, 0), "int8-group": (8, 128),
        "int4": (4, 128), "int4-tensor": (4, 0), "int4-row": (4, 0), "nf4": (4, 64)}
KV = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}


def blocks_of(tokens, block):
    return -(-tokens // block)


def draw_shape(draw, small=False):
    n_kv = draw.choice([1, 2, 3] if small else [1, 2, 3, 8, 10])
    return {"shape.n_layers": draw.randint(1, 5 if small else 90), "shape.d_model": 2 * draw.randint(4, 40 if small else 5000),
            "shape.n_kv": n_kv, "shape.n_q": n_kv * draw.randint(1, 4 if small else 9),
            "shape.d_h": 2 * draw.randint(1, 20 if small else 80), "shape.d_ff": draw.randint(1, 90 if small else 30000),
            "shape.vocab": draw.randint(2, 300 if small else 200000), "shape.tied": draw.random() < 0.5}


def dimensions(p):
    return [p["shape." + k] for k in ("n_layers", "d_model", "n_q", "n_kv", "d_h", "d_ff", "vocab")]


def matrices(p):
    layers, d, q, kv, d_h, f, vocab = dimensions(p)
    return (1 if p["shape.tied"] else 2) * vocab * d + layers * (2 * d * q * d_h + 2 * d * kv * d_h + 3 * d * f)


def weight_size(kind, group=0):
    bits, own = BITS[kind]
    return (bits + (Fraction(16, group or own) if own else 0)) / Fraction(8)


def token_bytes(p):
    kind = p["model.kv_type"]
    return 2 * p["shape.n_layers"] * p["shape.n_kv"] * (p["shape.d_h"] * KV[kind] + (4 if kind == "int8" else 0))


# ---- formulas


def ledger(draw):
    own = draw.random() < 0.5
    kind = draw.choice(["f32", "f16", "bf16"] if own else list(BITS))
    group = draw.choice([0, 32, 256]) if BITS[kind][1] else 0
    p = dict(draw_shape(draw), **{
        "model.type": kind, "model.group": group, "model.kv_type": draw.choice(list(KV)), "model.window": draw.choice([0, 0, 100, 5000]),
        "workload.batch": draw.randint(1, 3000), "workload.context": draw.randint(1, 300000),
        "workload.parameters": 0 if own else draw.randint(1, 2 * 10**11), "workload.reserve": draw.choice([0, 3 << 29, 1 << 45]),
        "workload.hbm_bytes_per_s": draw.choice([0.0, 3.35e12, 1.5e11]), "workload.memory_bytes": draw.choice([0, 8 << 30, 80 * 10**9, 1 << 40]),
        "workload.dense_bf16_flop_per_s": draw.choice([0.0, 989e12]), "workload.slo": draw.choice(["0 s", "20 ms", "3 s"])})
    count, batch = p["workload.parameters"] or matrices(p), p["workload.batch"]
    weights, token = count * weight_size(kind, group), token_bytes(p)
    held = min(p["workload.context"], p["model.window"] or p["workload.context"])
    memory, band, card = weights + batch * held * token, Fraction(p["workload.hbm_bytes_per_s"]), p["workload.memory_bytes"]
    spare, slo = card - p["workload.reserve"] - weights, {"0 s": 0, "20 ms": 0.02, "3 s": 3}[p["workload.slo"]]
    looked_up = 0 if p["shape.tied"] or not own else p["shape.vocab"] * p["shape.d_model"]
    flops = batch * (2 * (count - looked_up) + 4 * p["shape.n_q"] * p["shape.d_h"] * p["shape.n_layers"] * held)
    users = max(0, spare // (held * token)) if card else None
    fast = max(0, (Fraction(slo) * band - weights) // (held * token)) if slo and band else None
    return p, {
        "parameters": count, "weight_bits": 8 * weights / count, "weight_bytes": weights, "weight_gib": weights / 2**30,
        "kv_bytes_per_token": token, "kv_bytes": batch * held * token, "memory_bytes": memory, "memory_gb": memory / 10**9,
        "token_time": memory / band * 1000 if band else None, "token_rate": batch * band / memory if band else None,
        "token_rate_limit": band / (held * token) if band else None, "step_flops": flops, "users": users,
        "arithmetic_time": flops / Fraction(989e12) * 1000 if p["workload.dense_bf16_flop_per_s"] else None,
        "fits": int(memory + p["workload.reserve"] <= card) if card else None,
        "resident_tokens": max(0, spare // token) if card else None,
        "users_slo": min(users, fast) if card and fast is not None else fast}  # of unknown memory: as if all fit


def intensity(draw):
    kind, block = draw.choice(list(BITS)), draw.choice(["gemm", "mlp", "attention"])
    p = dict(draw_shape(draw), **{
        "model.type": kind, "model.kv_type": draw.choice(list(KV)), "workload.block": block, "workload.batch": draw.randint(1, 500),
        "workload.tokens": draw.choice([1, 1, 7, 3000]), "workload.context": draw.choice([0, 1, 100, 5000]),
        "workload.hbm_bytes_per_s": draw.choice([0.0, 3e11]), "workload.dense_bf16_flop_per_s": draw.choice([0.0, 5e13])})
    _, d, q, kv, d_h, f, _ = dimensions(p)
    size, tokens = weight_size(kind), p["workload.tokens"]
    rows, seen = p["workload.batch"] * tokens, p["workload.context"] or tokens
    flops, moved = {"gemm": (2 * rows * d * f, 2 * rows * (d + f) + size * d * f),
                    "mlp": (6 * rows * d * f, 4 * rows * (d + f) + 3 * size * d * f),
                    "attention": (4 * rows * seen * q * d_h,
                                  KV[p["model.kv_type"]] * 2 * p["workload.batch"] * seen * kv * d_h + 4 * rows * q * d_h)}[block]
    ratio, band, peak = Fraction(flops) / moved, Fraction(p["workload.hbm_bytes_per_s"]), Fraction(p["workload.dense_bf16_flop_per_s"])
    known = bool(band and peak)
    ridge, rate = (peak / band, min(peak, ratio * band)) if known else (None, None)
    room = 2 * d * f - 2 * ridge * (d + f) if known else 0
    return p, {"intensity": ratio, "block_flops": flops, "block_bytes": moved, "block_macs": flops / 2, "attainable": rate, "ridge": ridge,
               "roof_time": flops / rate * 1000 if known else None, "memory_bound": int(ratio < ridge) if known else None,
               "ridge_rows": ridge * size * d * f / room if room > 0 and block == "gemm" else None}


def kv_methods(draw):
    method = draw.choice(["heads", "latent", "shared", "window"])
    p = dict(draw_shape(draw), **{
        "model.kv_type": draw.choice(list(KV)), "workload.method": method, "workload.batch": draw.randint(1, 99),
        "workload.length": draw.choice([1, 17, 4096, 10**6]), "workload.latent": draw.randint(1, 2000), "workload.rotary": draw.choice([0, 64]),
        "workload.share": draw.choice([1, 2, 3, 7, 200]), "workload.window": draw.choice([1, 16, 4096, 1 << 28]),
        "workload.local_layers": draw.choice([0, 1, 5, 1024])})
    layers, _, q, kv, d_h, _, _ = dimensions(p)
    length, size = p["workload.length"], KV[p["model.kv_type"]]
    token = p["workload.latent"] + p["workload.rotary"] if method == "latent" else 2 * kv * d_h
    local = min(layers, p["workload.local_layers"]) if method == "window" else 0
    kept = token * (local * min(length, p["workload.window"]) + (layers - local) * length)
    if method == "shared":
        kept = token * blocks_of(layers, p["workload.share"]) * length
    return p, {"token_elements": token, "kv_layer_token_bytes": token * size, "kv_bytes_per_token": Fraction(kept * size, length),
               "kv_bytes": kept * size * p["workload.batch"], "kv_gib": Fraction(kept * size * p["workload.batch"], 2**30),
               "smaller": Fraction(2 * q * d_h * layers * length, kept), "equal_heads": Fraction(token, 2 * d_h)}


def training(draw):
    sizes = {k: draw.choice([0.0, 0.5, 1.0, 2.0, 4.0, 8.0]) for k in ("weight", "gradient", "state", "master", "element")}
    p = dict(draw_shape(draw), **{
        "workload.parameters": draw.randint(1, 10**12), "workload.batch": draw.randint(1, 999), "workload.tokens": draw.randint(1, 100000),
        "workload.segment": draw.choice([1, 2, 3, 5, 100, 1024]), "workload.entry": draw.choice([0, 12345, 10**8]),
        "workload.saved": draw.choice([0, 1, 99999, 10**9]), **{f"workload.{k}_size": v for k, v in sizes.items()}})
    layers, d, q, *_ = dimensions(p)
    each = sizes["weight"] + sizes["gradient"] + 2 * sizes["state"] + sizes["master"]
    rows, element, saved = p["workload.batch"] * p["workload.tokens"], Fraction(sizes["element"]), p["workload.saved"]
    residual, scores = rows * d * element, rows * q * p["workload.tokens"] * element
    entry, segment = p["workload.entry"] or residual, min(layers, p["workload.segment"])
    peak = [blocks_of(layers, k) * entry + k * saved for k in range(1, layers + 1)]
    wanted = {"bytes_per_parameter": each, "static_bytes": p["workload.parameters"] * Fraction(each), "residual_bytes": residual,
              "attention_bytes": scores, "equal_tokens": Fraction(d, q), "logsumexp_bytes": 4 * rows * q, "fused_bytes": 4 * residual,
              "naive_extra_bytes": 4 * scores, "saved_bytes": layers * saved, "kept_bytes": blocks_of(layers, segment) * entry,
              "checkpoint_peak": peak[segment - 1], "checkpoint_peak_mib": peak[segment - 1] / Fraction(2**20),
              "best_segment": peak.index(min(peak)) + 1}
    checkpoints = list(wanted)[8:]
    return p, wanted if saved else dict(wanted, **{k: None for k in checkpoints})


def speculation(draw):
    alpha, gamma = draw.choice([0.0, 1.0, draw.random(), draw.random() ** 0.1]), draw.choice([0, 1, 3, 8, 64, 4096])
    cost = draw.choice([0.0, 0.03, 0.3, 1.0, 2.0, 1000.0])

    def speedup(a, g):
        return math.fsum(a**i for i in range(g + 1)) / (g * cost + 1)

    low, high = 0.0, 1.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if speedup(middle, gamma) < 1 else (low, middle)
    even = None if not gamma else 0 if speedup(0, gamma) >= 1 else high
    tokens, best = math.fsum(alpha**i for i in range(gamma + 1)), max(range(33), key=lambda g: (speedup(alpha, g), -g))
    return ({"workload.acceptance": alpha, "workload.draft": gamma, "workload.cost": cost, "workload.passes": 0},
            {"tokens_per_pass": tokens, "speedup": tokens / (gamma * cost + 1), "forward_passes": gamma + 1, "break_even": even,
             "break_even_cost": (tokens - 1) / gamma if gamma else None, "best_speedup": speedup(alpha, best)})


def temperature(draw):
    n, t = draw.randint(2, 20), draw.choice([0.1, 0.5, 1.0, 1.7, 30.0, 1000.0])
    raw = sorted((draw.random() ** 3 + 1e-6 for _ in range(n)), reverse=True)
    whole = sum(raw) * (1 + draw.random())
    p, first, second = [float(f"{v / whole:.8g}") for v in raw], draw.randint(1, n), draw.randint(1, n)
    logs = [math.log(v) / t for v in p]
    powers = [math.exp(v - max(logs)) for v in logs]
    shares = [v / sum(powers) for v in powers]
    return ({"workload.probabilities": ", ".join(f"{v:.8g}" for v in p), "workload.temperature": t, "workload.first": first,
             "workload.second": second},
            {"ratio": math.exp(logs[first - 1] - logs[second - 1]), "power": (p[first - 1] / p[second - 1]) ** (1 / t), "mass": sum(p),
             "top_share": shares[0], "entropy": -sum(v * math.log2(v) for v in shares if v > 0), "order_kept": 1})


def codes(draw):
    n, bits, affine = draw.randint(1, 100), draw.randint(2, 16), draw.random() < 0.5
    x = [float(f"{draw.gauss(0, 1) * 10 ** draw.randint(-3, 3):.6g}") for _ in range(n)]
    x = draw.choice([x, x, x, [x[0]] * n, [0.0] * n])
    at, group, scale_bits, zero_bits = draw.randint(1, n), draw.choice([0, 64, 1000]), draw.choice([0, 16, 32]), draw.choice([0, 8])
    least, most, largest = min(x), max(x), max(map(abs, x))
    top = 2**bits - 1 if affine else 2 ** (bits - 1) - 1
    scale = ((most - least) / top if most > least else largest) if affine else largest / top
    scale = scale or 1.0
    zero = -round(least / scale) if affine else 0
    code = [max(0 if affine else -top - 1, min(top, round(v / scale) + zero)) for v in x]
    value = [(c - zero) * scale for c in code]
    error, power, stored = [abs(a - b) for a, b in zip(x, value)], sum(v * v for v in x), bits + (scale_bits + zero_bits) / (group or n)
    return ({"workload.values": ", ".join(f"{v:.6g}" for v in x), "workload.scheme": "affine" if affine else "symmetric",
             "workload.bits": bits, "workload.at": at, "workload.group": group, "workload.scale_bits": scale_bits,
             "workload.zero_bits": zero_bits},
            {"x": x[at - 1], "code": code[at - 1], "value": value[at - 1], "scale": scale, "zero_point": zero, "top": top,
             "weight_bits": stored, "relative_error": math.sqrt(sum(e * e for e in error) / power) if power else None,
             "mean_error": sum(error) / n, "worst_error": max(error), "levels_used": len(set(code)), "smaller": 16 / stored,
             "bytes_before": 2 * n, "bytes_after": -(-n * bits // 8)})


# ---- simulations, step by step


def trace(draw):
    n = draw.choice([1, 2, 5, 30, 60])
    out = draw.choice([[7] * n, [draw.randint(1, 4) for _ in range(n)], [int(draw.lognormvariate(2.5, 1)) + 1 for _ in range(n)]])
    prompt = [draw.randint(1, 30) for _ in range(draw.choice([1, n]))]
    gap = draw.choice([0.0, 0.3, 1.5, 1e6])
    times = sorted(draw.randint(0, 5 * n) for _ in range(n))
    p, at = draw.choice([({"workload.arrival": "together"}, [0] * n),
                         ({"workload.arrival": "evenly", "workload.gap": gap}, [int(gap * i) for i in range(n)]),
                         ({"workload.arrival": "given", "workload.times": times}, times)])
    return dict(p, **{"workload.lengths": out, "workload.prompt": prompt}), out, [prompt[i % len(prompt)] for i in range(n)], at


def continuous(out, prompt, arrival, slots, pool, block, apart=False, readers=0):
    """Requests in flight as [request, fed, goal, blocks] in order of admission; the sums over all steps."""
    n, readers, t, nxt, flying, lost = len(out), min(readers or slots, slots), 0, 0, [], []
    written, admitted, done = [0] * n, [None] * n, [None] * n
    s = dict.fromkeys(("steps", "runs", "rows", "padded", "pairs", "resident", "blocks", "preempted", "refused", "waited"), 0)

    def free():
        return pool - sum(f[3] for f in flying) if pool else math.inf

    def too_long(r):
        return pool and blocks_of(prompt[r] + out[r] - 1, block) > pool

    while True:
        before = s["preempted"]
        for f in list(flying) if pool else ():
            want = blocks_of(f[2] if f[1] < f[2] else f[1] + 1, block)
            while f in flying and want - f[3] > free():
                lost.append(flying.pop()[0])
                s["preempted"] += 1
            if f in flying:
                f[3] = max(f[3], want)
        while s["preempted"] == before and len(flying) < slots and sum(f[1] < f[2] for f in flying) < readers:
            while nxt < n and too_long(nxt) and not lost:
                s["refused"] += 1
                nxt += 1
            if not lost and (nxt == n or arrival[nxt] > t):
                break
            r = min(lost) if lost else nxt
            text = prompt[r] + written[r]
            if blocks_of(text, block) > free():
                break
            if lost:
                lost.remove(r)
            else:
                nxt += 1
            admitted[r] = t if admitted[r] is None else admitted[r]
            flying.append([r, 0, text, blocks_of(text, block)])
        if not flying:
            while nxt < n and too_long(nxt):
                s["refused"] += 1
                nxt += 1
            if nxt == n:
                break
            t = arrival[nxt]
            continue
        reading = [f for f in flying if f[1] < f[2]][:readers]
        now = reading if apart and reading else reading + [f for f in flying if f[1] >= f[2]]
        rows = [f[2] - f[1] if f[1] < f[2] else 1 for f in now]
        s["steps"] += 1
        s["runs"] += len(now)
        s["rows"] += sum(rows)
        s["padded"] += len(rows) * max(rows)
        s["pairs"] += sum(sum(range(f[1] + 1, f[1] + k + 1)) for f, k in zip(now, rows))
        s["waited"] += len(flying) < slots and bool(lost or (nxt < n and arrival[nxt] <= t and not too_long(nxt)))
        t += 1
        for f, k in zip(now, rows):
            f[1] += k
            written[f[0]] += 1
        s["resident"] += sum(f[1] for f in flying)
        s["blocks"] += sum(max(f[3], blocks_of(f[1], block)) for f in flying)
        for f in [f for f in flying if written[f[0]] == out[f[0]]]:
            flying.remove(f)
            done[f[0]] = t
    return dict(s, end=t, latency=[d - a for d, a in zip(done, arrival) if d is not None],
                service=[d - a for d, a in zip(done, admitted) if d is not None])


def static(out, arrival, slots):
    t, latency = 0, []
    for i in range(0, len(out), slots):
        group = range(i, min(i + slots, len(out)))
        t = max(t, arrival[group[-1]]) + max(out[r] for r in group)
        latency += [t - arrival[r] for r in group]
    return t, latency


def batching(draw):
    p, out, prompt, arrival = trace(draw)
    slots, pool, block = draw.choice([1, 2, 3, 8, 4096]), draw.choice([0, 0, 3, 10, 60]), draw.choice([1, 4, 16, 300])
    apart, readers = draw.random() < 0.3, draw.choice([0, 0, 1, 3])
    p.update({"workload.slots": slots, "workload.pool": pool, "workload.block": block, "workload.prefill_batch": readers,
              "workload.prefill": "apart" if apart else "together"})
    c = continuous(out, prompt, arrival, slots, pool, block, apart, readers)
    mean = statistics.mean(c["latency"]) if c["latency"] else None
    wanted = {"continuous_steps": c["end"], "continuous_latency": mean, "preempted": c["preempted"], "refused": c["refused"],
              "continuous_service": statistics.mean(c["service"]) if c["service"] else None, "packed_rows": c["rows"],
              "padded_rows": c["padded"], "pairs": c["pairs"], "requests": len(out), "tokens": sum(out), "longest": max(out),
              "median_length": statistics.median(out), "least_steps": max(max(out), blocks_of(sum(out), slots)),
              "continuous_slot_use": c["runs"] / (slots * c["steps"]) if c["steps"] else None}
    if not pool and not apart:
        end, latency = static(out, arrival, slots)
        wanted.update(static_steps=end, static_latency=statistics.mean(latency), throughput_gain=end / c["end"],
                      latency_gain=statistics.mean(latency) / mean)
        if len(set(out)) == len(set(arrival)) == 1 and not readers:
            wanted["throughput_gain"] = 1  # exactly: nothing to regroup
    return p, wanted


def contiguous(out, prompt, arrival, slots, memory, size_of):
    pieces, flying, nxt, t = [], [], 0, 0
    s = dict.fromkeys(("runs", "resident", "reserved", "waited", "unusable", "refused"), 0)
    while nxt < len(out) or flying:
        while nxt < len(out) and arrival[nxt] <= t:
            size, at = size_of(prompt[nxt] + out[nxt] - 1), 0
            if size > memory:
                s["refused"] += 1
                nxt += 1
                continue
            if len(flying) == slots:
                break
            for begin, length in sorted(pieces) + [(memory, 0)]:
                if begin - at >= size:
                    break
                at = begin + length
            if at + size > memory:
                spare = memory - sum(length for _, length in pieces)
                s["waited"] += 1
                s["unusable"] += spare if spare >= size else 0
                break
            pieces.append((at, size))
            flying.append([nxt, 0, (at, size)])
            nxt += 1
        if not flying:
            t = arrival[nxt] if nxt < len(out) else t
            continue
        t += 1
        s["runs"] += len(flying)
        s["reserved"] += sum(length for _, length in pieces)
        for f in list(flying):
            s["resident"] += prompt[f[0]] + f[1]
            f[1] += 1
            if f[1] == out[f[0]]:
                flying.remove(f)
                pieces.remove(f[2])
    return dict(s, end=t, preempted=0)


def power_of_two(n):
    return 1 << (n - 1).bit_length()


def paging(draw):
    p, out, prompt, arrival = trace(draw)
    held, slots, block = [a + b - 1 for a, b in zip(prompt, out)], draw.choice([1, 4, 64]), draw.choice([1, 5, 16, 64])
    longest, memory = max(held) + draw.choice([0, 100]), max(block, draw.choice([64, 200, 1000, 1 << 30]))
    reserve = draw.choice(["most", "power", "exact", "blocks"])
    p.update(draw_shape(draw), **{"model.kv_type": draw.choice(list(KV)), "workload.slots": slots, "workload.memory": memory,
                                  "workload.block": block, "workload.longest": longest, "workload.reserve": reserve})
    if reserve == "blocks":
        s = continuous(out, prompt, arrival, slots, memory // block, block)
        s.update(reserved=s["blocks"] * block, unusable=0)
    else:
        s = contiguous(out, prompt, arrival, slots, memory,
                       {"most": lambda n: longest, "power": power_of_two, "exact": lambda n: n}[reserve])
    room, all_ = sum(blocks_of(h, block) for h in held) * block, s["end"] * memory
    wanted = {"held_tokens": sum(held), "held_blocks": room // block, "block_slots": room, "block_waste": room - sum(held),
              "block_use": sum(held) / room, "most_slots": longest * len(held), "most_use": sum(held) / (longest * len(held)),
              "power_use": sum(held) / sum(map(power_of_two, held)), "block_bytes": token_bytes(p) * block, "steps": s["end"],
              "preempted": s["preempted"], "refused": s["refused"], "blocked_steps": s["waited"]}
    if s["end"]:
        wanted.update(use=s["resident"] / all_, internal_fragmentation=(s["reserved"] - s["resident"]) / all_,
                      external_fragmentation=s["unusable"] / all_, concurrency=s["runs"] / s["end"])
    return p, wanted
