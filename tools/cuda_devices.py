# SPDX-License-Identifier: Apache-2.0
"""Data sheets as data: protocols/devices/*.toml."""
import os
import pathlib

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[1])
KINDS = ("sheet", "assumed", "measured")
FIGURES = ("hbm_bytes_per_s", "memory_bytes", "l2_bytes", "sm_count", "clock_hz", "dense_bf16_flop_per_s", "f32_flop_per_s",
           "tensor_flop_per_clock", "threads_per_sm", "blocks_per_sm", "registers_per_sm", "shared_per_sm", "shared_per_block",
           "shared_reserved", "shared_bytes_per_clock", "read_share", "kernel_share", "mma_sync_share", "launch_gap_s",
           "launch_gap_pdl_s")


class Device:
    """A file's figures as attributes; `kinds` and `origins` say of each whose it is."""

    def __init__(self, name):
        import tomllib  # Python 3.11
        with open(SOURCE / "protocols/devices" / f"{name}.toml", "rb") as f:
            data = tomllib.load(f)
        self.name, self.title, self.cc = name, data.pop("title"), data.pop("cc")
        if sorted(data) != sorted(FIGURES):
            raise ValueError(f"{name}.toml: figures are {sorted(set(data) ^ set(FIGURES))} too many or too few")
        self.kinds, self.origins = {}, {}
        for key, figure in data.items():
            if set(figure) != {"value", "kind", "from"} or figure["kind"] not in KINDS or not figure["from"]:
                raise ValueError(f"{name}.toml: [{key}] needs value, kind ({', '.join(KINDS)}) and from")
            setattr(self, key, figure["value"])
            self.kinds[key], self.origins[key] = figure["kind"], figure["from"]

    def resident_blocks(self, threads, registers, shared_bytes):
        """Blocks of a kernel that an SM holds at once, as cuda_occupancy.h counts: (number, what limits it). shared_bytes:
        static and dynamic ones of a block."""
        warps = -(-threads // 32)
        per_warp = -(-registers * 32 // 256) * 256  # registers are given in units of 256 a warp
        by_registers = self.registers_per_sm // 4 // max(per_warp, 1) * 4 // warps if registers else 1 << 30
        shared = -(-(shared_bytes + self.shared_reserved) // 128) * 128
        limits = {"threads": self.threads_per_sm // (32 * warps), "blocks": self.blocks_per_sm, "registers": by_registers,
                  "shared": self.shared_per_sm // shared if shared_bytes <= self.shared_per_block else 0}
        least = min(limits.values())
        return least, next(k for k in limits if limits[k] == least)


def names():
    return sorted(p.stem for p in (SOURCE / "protocols/devices").glob("*.toml"))
