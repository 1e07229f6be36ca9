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
MOST_KERNELS = 60  # each is compiled, proven and loaded; not counted are those that only make synthetic weights, in no step
# Prefill attention: the share of mma.sync's rate that it can reach at least, and of tensor time shared memory's own at most.
TENSOR_SHARE, SHARED_SHARE = 0.90, 0.95
# Those with limits of their own, (cache, d, architecture): (the two shares, why). Tensor cores of 9.0 wait soonest.
_BY_256 = "sums of 256 leave registers for 64 queries a block, so a tile of keys serves half as many"
PREFILL_LIMITS = {
    ("int8", 64, 90): (0.70, 0.96, "codes become bf16 and weights take scales: 1,128 instructions a tile where bf16 has 721"),
    ("int8", 128, 90): (0.82, 1.04, "scales pass through shared memory beside what bf16 moves"),
    ("bf16", 256, 90): (0.59, 1.65, _BY_256),
    ("f16", 256, 90): (0.59, 1.65, _BY_256),
    ("bf16", 256, 80): (0.79, 1.25, _BY_256),
    ("f16", 256, 80): (0.79, 1.25, _BY_256),
}


def streams(card):
    """Whether memory's bandwidth is what the kernel should be bound by."""
    return (card.op == "linear" and card.hmma_min > 0) or card.name.startswith("attention_decode") or \
        card.name in ("ceiling_copy", "ceiling_read", "ceiling_triad")


def has_room(card):
    """Whether its pipes shall leave room beside memory: not where many tokens share what is read, whose products grow."""
    return streams(card) and not (card.op == "linear" and card.d > 2)


def prefill_limits(card, arch):
    """(share of mma.sync at least, shared memory's own share of tensor time at most)."""
    return PREFILL_LIMITS.get((card.type, card.d, arch), (TENSOR_SHARE, SHARED_SHARE))[:2]


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
    pipe_share: float = 0  # of memory's time; in prefill attention the share of mma.sync's rate
    own: float = 0         # prefill attention: shared memory's own time by tensor time
    broken: list = field(default_factory=list)


def measure(card, arch, device, resources, code):
    """A row of the table, and what is broken in it. code: None where there is no lister."""
    r = Row(card, arch, resources.registers, resources.spill, resources.shared + card.smem)
    r.blocks, r.limit = device.resident_blocks(card.threads, r.registers, r.shared)
    if r.registers > card.regs_max:
        r.broken.append(f"{r.registers} registers, {card.regs_max} allowed")
    if max(r.spill, resources.stack) > (1 << 30 if card.local_pct else 0):
        r.broken.append(f"{r.spill} bytes spilled, {resources.stack} of stack")
    if r.blocks < card.min_blocks:
        r.broken.append(f"{r.blocks} blocks an SM ({r.limit}), {card.min_blocks} promised")
    if streams(card):
        r.in_flight = r.blocks * card.stages * card.stage_bytes
        if r.in_flight < IN_FLIGHT[device.name]:
            r.broken.append(f"{r.in_flight} bytes in flight an SM, {IN_FLIGHT[device.name]} needed")
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
    if card.op == "attention_prefill":
        return look_at_prefill(r, device, hot)
    clocks = cuda_sass.pipe_clocks(hot, device)
    r.pipe = max(clocks, key=clocks.get)
    memory = cuda_sass.stream_clocks(hot, device, card.name.startswith("attention"))
    if memory:
        r.pipe_share = clocks[r.pipe] / memory
        most = PIPE_SHARE_NF4 if card.type == "nf4" else PIPE_SHARE
        if has_room(card) and r.pipe_share > most:
            r.broken.append(f"{r.pipe} is busy {100 * r.pipe_share:.0f} % of memory's time, {100 * most:.0f} % allowed")


def look_at_prefill(r, device, loop):
    """Of the two ways to copy a tile one runs: unrolled, which is counted, or for odd blocks of the cache a loop."""
    hot = cuda_sass.without_inner_loops(loop)
    copies = sum(map(cuda_sass.is_copy, hot))
    if 2 * copies <= sum(map(cuda_sass.is_copy, loop)):
        r.broken.append(f"{copies} copies to shared memory are unrolled: neither way to copy a tile is counted")
    clocks = cuda_sass.pipe_clocks(hot, device)
    least, most = prefill_limits(r.card, r.arch)
    r.pipe = max(clocks, key=clocks.get)
    r.pipe_share = clocks["tensor"] / clocks[r.pipe]
    if r.pipe_share < least:
        r.broken.append(f"{100 * r.pipe_share:.0f} % of mma.sync at most, by {r.pipe}; {100 * least:.0f} % wanted")
    r.own = cuda_sass.shared_clocks(hot) / clocks["tensor"]
    if r.own > most:
        r.broken.append(f"shared memory is busy {100 * r.own:.0f} % of tensor time, {100 * most:.0f} % allowed")


def tiles_missing(rows):
    """Types of linear that have no tile of 4 although that of 8 is not bound by memory."""
    linear = [r for r in rows if r.card.op == "linear"]
    fours = {r.card.type for r in linear if r.card.d == 4}
    return [f"{r.card.name} (sm_{r.arch}): {r.pipe} is busy {100 * r.pipe_share:.0f} % of memory's time, and there is no tile of 4"
            for r in linear if r.card.d == 8 and r.pipe_share > 1 and r.card.type not in fours]


def too_many(cards):
    """What is wrong about their number."""
    n = sum(c.op != "synth" for c in cards)
    return [f"{n} kernels, {MOST_KERNELS} allowed"] if n > MOST_KERNELS else []


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
    return rows, wrong + tiles_missing(rows) + too_many(cards)


COLUMNS = "kernel sm regs spill shared blocks limit ldg128 hmma local in_flight pipe share own".split()


def cells(r):
    return [r.card.name, r.arch, f"{r.registers}/{r.card.regs_max}", r.spill, r.shared, f"{r.blocks}/{r.card.min_blocks}", r.limit,
            f"{r.loads}/{r.card.ldg128_min}", f"{r.tensor}/{r.card.hmma_min}", f"{r.local:.1f}", r.in_flight or "", r.pipe,
            f"{100 * r.pipe_share:.0f} %" if r.pipe_share else "", f"{100 * r.own:.0f} %" if r.own else ""]


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
