#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What variants of the cache keep and multiply, counted one by one instead of by formula.

A line is a shape and settings of workload kv_variants, then bytes kept, tokens seen and multiply-adds of attention.
    /usr/bin/python3 tests/golden/variants_golden.py > tests/golden/variants_golden.tsv
"""
import random

SIZES = {"f32": 4, "f16": 2, "bf16": 2, "int8": 1}


def kept(layers, batch, length, width, rows_of_layer):
    """Values in the cache, token by token: rows_of_layer(l) are the positions that layer l still has."""
    return sum(width for l in range(layers) for _ in range(batch) for _ in rows_of_layer(l))


def count(variant, layers, n_q, n_kv, d_h, batch, length, o):
    everything = range(length)
    heads = {"mha": n_q, "mqa": 1}.get(variant, n_kv)
    width, keeps, sees = 2 * heads * d_h, (lambda l: everything), (lambda l: everything)
    extra_values = extra_macs = 0
    if variant == "latent":
        width = o["latent"] + o["rotary"]
    elif variant == "shared":
        keeps = lambda l: everything if l % o["share"] == 0 else ()
    elif variant == "window":
        # Local layers lie evenly: as many among the first l as l of all is of them, rounded down.
        local = min(o["local_layers"], layers)
        is_local = [(l + 1) * local // layers - l * local // layers for l in range(layers)]
        keeps = sees = lambda l: everything[-o["window"]:] if is_local[l] else everything
    elif variant == "sparse":
        cut = [everything[i:i + o["block"]] for i in range(0, length, o["block"])]
        whole = range(len(cut) * o["block"])
        chosen = min(o["blocks"], len(cut))
        seen = [p for block in (cut[:chosen - 1] + [cut[-1]]) for p in block]
        keeps, sees = (lambda l: whole), (lambda l: seen)
        extra_values = layers * batch * len(cut) * heads * d_h
        extra_macs = layers * batch * n_q * (len(cut) - 1) * d_h
    values = kept(layers, batch, length, width, keeps) + extra_values
    macs = extra_macs
    for l in range(layers):
        for _ in range(batch):
            for _ in range(n_q):
                if variant != "latent":
                    macs += sum(d_h + d_h for _ in sees(l))
                elif o["form"] == "absorbed":
                    macs += d_h * o["latent"] + d_h * o["latent"]  # W_K into the query; W_V at the end
                    macs += sum(o["latent"] + o["rotary"] + o["latent"] for _ in everything)
                else:
                    macs += sum(2 * d_h * o["latent"] + d_h + o["rotary"] + d_h for _ in everything)
    return values, sum(len(sees(l)) for l in range(layers)), macs


def main():
    draw = random.Random(20241019)
    for i in range(42):
        variant = ["mha", "gqa", "mqa", "latent", "shared", "window", "sparse"][i % 7]
        n_kv, group = draw.choice([1, 2, 3]), draw.choice([1, 2, 4])
        n_q, d_h, layers = n_kv * group, draw.choice([2, 4, 6, 10]), draw.randint(1, 7)
        batch, length = draw.randint(1, 3), draw.choice([1, 2, 5, 16, 17, 31])
        o = {}
        if variant == "latent":
            o = {"latent": draw.choice([1, 5, 16, 20]), "rotary": draw.choice([0, 2, 6]),
                 "form": draw.choice(["absorbed", "rebuilt"])}
        elif variant == "shared":
            o = {"share": draw.choice([1, 2, 3, 8])}
        elif variant == "window":
            o = {"window": draw.choice([1, 3, 16, 40]), "local_layers": draw.randint(0, layers + 2)}
        elif variant == "sparse":
            o = {"block": draw.choice([1, 3, 8]), "blocks": draw.choice([1, 2, 5, 99])}
        kinds = ["f32", "f16", "bf16"] + (["int8"] if variant not in ("latent", "sparse") else [])
        kv_type = draw.choice(kinds)
        values, seen, macs = count(variant, layers, n_q, n_kv, d_h, batch, length, o)
        shape = {"n_layers": layers, "d_model": draw.choice([8, 20]), "n_q": n_q, "n_kv": n_kv, "d_h": d_h}
        settings = dict({"variant": variant, "batch": batch, "length": length}, **o)
        print("\t".join([" ".join("%s=%s" % p for p in shape.items()), kv_type,
                         " ".join("%s=%s" % p for p in settings.items()),
                         str(values * SIZES[kv_type]), str(seen), str(macs)]))


main()
