# SPDX-License-Identifier: Apache-2.0
"""Conflicts of shared memory's banks, from the addresses that nvcc's code uses. Memory has 32 banks of 4 bytes and serves one
word of each at once, to all that want that word. An access of a warp goes in phases: its 32 lanes together up to 4 bytes a
lane, 16 at a time with 8 bytes, 8 at a time with 16; a matrix of ldmatrix and 8 copies of cp.async are such phases too. A
phase takes at least one cycle, and as many as its busiest bank has different words."""
from dataclasses import dataclass

import numpy as np

BANKS, WORD = 32, 4
MOST_BLOCKS = 2  # that are looked at, of those that the interpreter runs at once: all do the same


@dataclass
class Count:
    """Of one instruction, or of a kernel."""
    cycles: int = 0
    least: int = 0
    warps: int = 0  # how often a warp executed it

    def add(self, other):
        self.cycles += other.cycles
        self.least += other.least
        self.warps += other.warps

    @property
    def ratio(self):
        return self.cycles / self.least if self.least else 1.0


def count(address, lane, size):
    """The Count of one access of `size` bytes by lanes (numbered through all warps) at byte addresses."""
    at_once = min(32, 32 * WORD // size)
    words = max(size // WORD, 1)
    phase = np.repeat(lane // at_once, words)
    word = (address[:, None] // WORD + np.arange(words)).reshape(-1)
    wanted = np.unique(np.stack([phase, word]), axis=1)  # a word is handed to all that want it
    phases, phase = np.unique(wanted[0], return_inverse=True)
    busy = np.bincount(phase * BANKS + wanted[1] % BANKS, minlength=len(phases) * BANKS).reshape(-1, BANKS)
    return Count(int(busy.max(1).sum()), len(phases), len(np.unique(lane // 32)))


class Banks:
    """What a launch's accesses cost; instructions by their texts."""

    def __init__(self):
        self.instructions = {}  # text: Count

    def note(self, instruction, address, lane, size):
        self.instructions.setdefault(instruction.text, Count()).add(count(address, lane, size))

    def total(self):
        total = Count()
        for c in self.instructions.values():
            total.add(c)
        return total

    def add(self, other):
        for text, c in other.instructions.items():
            self.instructions.setdefault(text, Count()).add(c)


# Kernels that may need so many times the least, and why.
ALLOWED = {"synth_codes": (8.0, "codes of a byte go where fragments have them; weights are made once, before anything is timed")}


def broken(kernel, banks, allowed=None):
    """Sentences about conflicts beyond what is allowed."""
    limit, reason = (ALLOWED if allowed is None else allowed).get(kernel, (1.0, ""))
    total = banks.total()
    if total.ratio <= limit + 1e-9:
        return []
    worst = sorted(banks.instructions.items(), key=lambda x: x[1].least - x[1].cycles)[:4]
    return [f"{kernel}: {total.cycles} cycles of shared memory, {total.least} without conflicts: {total.ratio:.2f} times, "
            f"{limit:.2f} allowed" + (f" ({reason})" if reason else "")] + [
            f"    {c.cycles} for {c.least}: {text}" for text, c in worst if c.cycles > c.least]
