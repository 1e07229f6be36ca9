#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the compiler made of each kernel against what its card promises: registers, spills, 128-bit loads, tensor instructions,
resident blocks, bytes in flight, and the busiest pipe against memory. Prints one table; ends with 1 where a gate is broken."""
import argparse
import pathlib
import sys
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cuda_build  # noqa: E402
import cuda_cards  # noqa: E402
import cuda_devices  # noqa: E402
import cuda_sass  # noqa: E402

DEVICES = {80: "a100", 90: "h200"}  # whose limits hold for the code of an architecture
IN_FLIGHT = {"h200": 40 * 1024, "a100": 20 * 1024}  # bytes per SM that streaming needs: bandwidth times latency, and room
PIPE_SHARE = 0.70  # of the time that memory takes, the busiest pipe
PIPE_SHARE_NF4 = 0.85
TENSOR_SHARE = 0.90  # of mma.sync's rate that prefill attention can reach
# Of tensor time, shared memory's own in prefill attention. At d = 128 the tiles alone are 94.5 % of it on compute capability
# 9.0 and the page table's copies come on top; above 100 % tensor units would wait.
SHARED_SHARE = 1.0
# Gates that one kernel may miss by so much, and why: {(kernel, architecture): {gate: (limit, reason)}}.
_BEFORE_THE_LOOP = "at 255 registers, before and after the loop of 64 rows; none in it, and none on 9.0"
EXCEPTIONS = {
    ("linear_bf16_8", 80): {"spill": (40, _BEFORE_THE_LOOP)},
    ("linear_f16_8", 80): {"spill": (40, _BEFORE_THE_LOOP)},
    ("attention_decode_int8_64", 90): {"pipe": (0.75, "a tile of 16 keys is 2 KB, but its softmax costs what one of 8 KB does")},
    ("attention_decode_int8_wide", 90): {"in_flight": (32 * 1024, "two tiles of a byte a value; the registers of 16 query heads "
                                                       "leave no room for a third block")},
}


def streams(card):
    """Whether memory's bandwidth is what the kernel should be bound by."""
    return (card.op == "linear" and card.hmma_min > 0 and card.d <= 1) or card.name.startswith("attention_decode") or \
        card.name in ("ceiling_copy", "ceiling_read", "ceiling_triad")


def is_prefill_attention(card):
    """Those that the gate was made for: int8 caches pay for their conversion, and d = 256 does not fit the registers."""
    return card.name.startswith("attention_prefill") and card.type in ("bf16", "f16") and card.d <= 128


def limit_of(card, arch, gate, limit):
    return EXCEPTIONS.get((card.name, arch), {}).get(gate, (limit, ""))[0]


@dataclass
class Row:
    card: object
    arch: int
    registers: int = 0
    spill: int = 0
    shared: int = 0
    blocks: int = 0
    limit: str = ""
    loads: int = 0
    tensor: int = 0
    local: float = 0  # percent
    in_flight: int = 0
    pipe: str = ""
    pipe_share: float = 0  # of memory's time, or of mma.sync's
    broken: list = field(default_factory=list)


def measure(card, arch, device, resources, code):
    """A row of the table, and what is broken in it. code: None where there is no lister."""
    r = Row(card, arch, resources.registers, resources.spill, resources.shared + card.smem)
    r.blocks, r.limit = device.resident_blocks(card.threads, r.registers, r.shared)
    if r.registers > card.regs_max:
        r.broken.append(f"{r.registers} registers, {card.regs_max} allowed")
    if max(r.spill, resources.stack) > limit_of(card, arch, "spill", 1 << 30 if card.local_pct else 0):
        r.broken.append(f"{r.spill} bytes spilled, {resources.stack} of stack")
    if r.blocks < card.min_blocks:
        r.broken.append(f"{r.blocks} blocks an SM ({r.limit}), {card.min_blocks} promised")
    if streams(card):
        r.in_flight = r.blocks * card.stages * card.stage_bytes
        need = limit_of(card, arch, "in_flight", IN_FLIGHT[device.name])
        if r.in_flight < need:
            r.broken.append(f"{r.in_flight} bytes in flight an SM, {need} needed")
    if code is not None:
        look_at_code(r, device, code)
    return r


def look_at_code(r, device, code):
    card = r.card
    hot = cuda_sass.hot_loop(code)
    r.loads, r.tensor = sum(map(cuda_sass.is_load_128, code)), sum(map(cuda_sass.is_tensor, code))
    if r.loads < card.ldg128_min:
        r.broken.append(f"{r.loads} loads of 128 bits, {card.ldg128_min} promised")
    if r.tensor < card.hmma_min:
        r.broken.append(f"{r.tensor} tensor instructions, {card.hmma_min} promised")
    where = hot or code
    r.local = 100 * sum(map(cuda_sass.is_local, where)) / len(where)
    if r.local > card.local_pct:
        r.broken.append(f"{r.local:.1f} % of the {'hot loop' if hot else 'code'} moves spilled values, {card.local_pct} % allowed")
    if not hot:
        return
    clocks = cuda_sass.pipe_clocks(hot, device)
    r.pipe = max(clocks, key=clocks.get)
    if is_prefill_attention(card):
        r.pipe_share = clocks["tensor"] / clocks[r.pipe]
        if r.pipe_share < limit_of(card, r.arch, "tensor", TENSOR_SHARE):
            r.broken.append(f"{100 * r.pipe_share:.0f} % of mma.sync at most, by {r.pipe}; {100 * TENSOR_SHARE:.0f} % wanted")
        own = cuda_sass.shared_clocks(hot)
        if own > SHARED_SHARE * clocks["tensor"]:
            r.broken.append(f"shared memory is busy {100 * own / clocks['tensor']:.0f} % of tensor time")
        return
    memory = cuda_sass.stream_clocks(hot, device, card.name.startswith("attention"))
    if memory:
        r.pipe_share = clocks[r.pipe] / memory
        most = limit_of(card, r.arch, "pipe", PIPE_SHARE_NF4 if card.type == "nf4" else PIPE_SHARE)
        if streams(card) and r.pipe_share > most:
            r.broken.append(f"{r.pipe} is busy {100 * r.pipe_share:.0f} % of memory's time, {100 * most:.0f} % allowed")


def all_rows(cards, archs, with_code=True):
    """(rows, sentences about what could not be compared at all)."""
    devices = {arch: cuda_devices.Device(DEVICES[arch]) for arch in archs}
    jobs = [(source, arch) for source in cuda_build.kernel_sources() for arch in archs]

    def one(job):
        _, remarks = cuda_build.cubin(*job)
        listed = cuda_sass.functions(cuda_build.listing(*job)) if with_code else {}
        return job[1], cuda_sass.resources(remarks), listed
    found = {arch: ({}, {}) for arch in archs}
    for arch, remarks, listed in cuda_build.in_parallel(one, jobs):
        found[arch][0].update(remarks)
        found[arch][1].update(listed)
    rows, wrong, compiled = [], [], set()
    for arch in archs:
        resources, listed = found[arch]
        compiled |= set(resources)
        for card in cards:
            if card.name not in resources:
                wrong.append(f"{card.name} has a card but no code for sm_{arch}")
                continue
            rows.append(measure(card, arch, devices[arch], resources[card.name], listed.get(card.name) if with_code else None))
    wrong += [f"{name} has code but no card" for name in sorted(compiled - {c.name for c in cards})]
    return rows, wrong


COLUMNS = "kernel sm regs spill shared blocks limit ldg128 hmma local in_flight pipe share".split()


def cells(r):
    return [r.card.name, r.arch, f"{r.registers}/{r.card.regs_max}", r.spill, r.shared, f"{r.blocks}/{r.card.min_blocks}", r.limit,
            f"{r.loads}/{r.card.ldg128_min}", f"{r.tensor}/{r.card.hmma_min}", f"{r.local:.1f}", r.in_flight or "", r.pipe,
            f"{100 * r.pipe_share:.0f} %" if r.pipe_share else ""]


def print_table(rows):
    table = [COLUMNS] + [list(map(str, cells(r))) for r in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
    for row in table:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", nargs="?", default="", help="only kernels whose name has this in it")
    parser.add_argument("--arch", type=int, action="append", choices=sorted(DEVICES), help="80, 90; both unless said")
    parser.add_argument("--no-code", action="store_true", help="without cuobjdump: registers, spills and occupancy only")
    options = parser.parse_args()
    rows, wrong = all_rows(cuda_cards.cards(), options.arch or sorted(DEVICES), not options.no_code)
    rows = [r for r in rows if options.kernel in r.card.name]
    print_table(rows)
    for r in rows:
        wrong += [f"{r.card.name} (sm_{r.arch}): {b}" for b in r.broken]
    for sentence in wrong:
        print("BROKEN:", sentence)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        main()
    except cuda_build.Missing as e:
        print("SKIPPED:", e, file=sys.stderr)
        sys.exit(77)
