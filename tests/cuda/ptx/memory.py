# SPDX-License-Identifier: Apache-2.0
"""The memories of a launch. Every access is checked: inside one allocation, aligned to its size."""
import numpy as np

from .parse import PtxError

RAW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# Where the spaces lie in generic addresses: far from any address of the host.
SHARED, LOCAL, PARAM, STATIC = 1 << 56, 2 << 56, 3 << 56, 4 << 56
FIRST_SHARED = 1024  # not 0: a null pointer into shared memory is then found, and the hardware keeps 1 KiB there too
POISON = 0xFF  # NaN as f16, bf16, f32 and f64


def _words(data, offset, width, n):
    """(lanes, n) words of `width` bytes at byte offsets that are multiples of width * n."""
    words = data.view(RAW[width])
    if n == 1:
        return words[offset // width][:, None]
    return words.reshape(-1, n)[offset // (width * n)]


class Access:
    """Checks and moves for one space; subclasses say where an address lies in `data`."""
    name = "memory"
    data = None  # bytes, a multiple of 64

    def offset(self, address, lanes, size):
        raise NotImplementedError

    def _place(self, address, lanes, size):
        if (address & np.uint64(size - 1)).any():
            bad = address[(address & np.uint64(size - 1)) != 0][0]
            raise PtxError(f"misaligned access of {size} bytes at {int(bad):#x} of {self.name} memory")
        return self.offset(address, lanes, size)

    def load(self, address, lanes, width, n):
        return _words(self.data, self._place(address, lanes, width * n), width, n)

    def store(self, address, lanes, words, kind=0):
        """words: (lanes, n) of one unsigned type; kind: what they are, see kinds.py."""
        width, n = words.dtype.itemsize, words.shape[1]
        at = self._place(address, lanes, width * n)
        self.data.view(words.dtype).reshape(-1, n)[at // (width * n)] = words
        self.stored(at, width * n, kind)

    def stored(self, at, size, kind):
        pass


class Global(Access):
    """Allocations at the addresses they had: (address, bytes-like) pairs, and what launches wrote."""
    name = "global"

    def __init__(self, allocations):
        allocations = sorted(((int(a), np.frombuffer(bytes(b), np.uint8)) for a, b in allocations), key=lambda x: x[0])
        self.base = np.array([a for a, _ in allocations], np.int64)
        self.end = np.array([a + len(b) for a, b in allocations], np.int64)
        if (self.base[1:] < self.end[:-1]).any():
            raise PtxError("allocations overlap")
        self.start = np.zeros(len(allocations), np.int64)  # in data
        top = 0
        for i, (a, b) in enumerate(allocations):
            self.start[i] = top + a % 64  # keeps the alignment
            top = -(-(int(self.start[i]) + len(b)) // 64) * 64 + 64
        self.data = np.full(top, POISON, np.uint8)
        for i, (_, b) in enumerate(allocations):
            self.data[self.start[i]:self.start[i] + len(b)] = b
        self.written = np.zeros(top, bool)
        self.kind = np.zeros(top, np.uint8)
        self.early = np.zeros(top, bool)  # read before the launch waited for the one before it

    def offset(self, address, lanes, size):
        a = address.view(np.int64)
        if not len(self.base):
            raise PtxError("global memory is accessed, but nothing is allocated")
        low = int(a.min())
        i = int(np.searchsorted(self.base, low, "right")) - 1
        if i >= 0 and int(a.max()) + size <= self.end[i]:
            return a + (self.start[i] - self.base[i])
        i = np.searchsorted(self.base, a, "right") - 1
        inside = (i >= 0) & (a + size <= self.end[i])
        if not inside.all():
            bad = int(a[~inside][0])
            below = int(np.searchsorted(self.base, bad, "right")) - 1
            where = "below all allocations"
            if below >= 0:
                where = (f"{bad - int(self.end[below])} bytes behind the end of the allocation at "
                         f"{int(self.base[below]):#x} (of {int(self.end[below] - self.base[below])} bytes)")
            raise PtxError(f"global access of {size} bytes out of bounds at {bad:#x}, {where}; "
                           f"lane {int(np.asarray(lanes)[~inside][0])}")
        return a - self.base[i] + self.start[i]

    def stored(self, at, size, kind):
        unit = RAW.get(size)
        if unit:
            self.written.view(unit)[at // size] = int.from_bytes(b"\1" * size, "little")
            self.kind.view(unit)[at // size] = int.from_bytes(bytes([kind]) * size, "little")
        else:
            self.written.reshape(-1, size)[at // size] = True
            self.kind.reshape(-1, size)[at // size] = kind

    def untouched(self, address, size):
        """None of these bytes was written by the launch: what ld.global.nc asks for."""
        at = self.offset(address, np.arange(len(address)), size)
        return not _words(self.written, at - at % size, size if size <= 8 else 8, max(size // 8, 1)).any()

    def read_early(self, address, size):
        """Only what no launch of the stream writes may be read early; here that can be asked of this launch alone."""
        at = self.offset(address, np.arange(len(address)), size)
        self.early.view(RAW[min(size, 8)])[at // min(size, 8)] = int.from_bytes(b"\1" * min(size, 8), "little")

    def check_early_reads(self):
        both = np.nonzero(self.early & self.written)[0]
        if len(both):
            i = int(np.searchsorted(self.start, both[0], "right")) - 1
            raise PtxError(f"global memory at {int(self.base[i] + both[0] - self.start[i]):#x} is read before griddepcontrol.wait "
                           "and written later")

    def bytes_at(self, address, size):
        at = int(self.offset(np.array([address], np.uint64), [0], size)[0])
        return self.data[at:at + size]

    def written_at(self, address, size):
        """(which bytes launches wrote, their kinds)."""
        at = int(self.offset(np.array([address], np.uint64), [0], size)[0])
        return self.written[at:at + size], self.kind[at:at + size]


class Shared(Access):
    """One part a block; poisoned before it starts. watch: is told of every access (address, lanes, bytes of a lane)."""
    name = "shared"

    def __init__(self, n_blocks, size, block_of_lane, watch=None):
        self.size, self.watch = size, watch
        self.pitch = max(-(-size // 64) * 64, 64)
        self.data = np.full(n_blocks * self.pitch, POISON, np.uint8)
        self.part = block_of_lane * self.pitch

    def offset(self, address, lanes, size):
        a = address.view(np.int64) - FIRST_SHARED
        if ((a < 0) | (a + size > self.size)).any():
            bad = int(a[(a < 0) | (a + size > self.size)][0])
            raise PtxError(f"shared access of {size} bytes out of bounds at {bad} of {self.size} bytes")
        return a + self.part[lanes]

    def load(self, address, lanes, width, n):
        if self.watch:
            self.watch(address, lanes, width * n)
        return super().load(address, lanes, width, n)

    def store(self, address, lanes, words, kind=0):
        if self.watch:
            self.watch(address, lanes, words.dtype.itemsize * words.shape[1])
        super().store(address, lanes, words, kind)


class Local(Access):
    name = "local"

    def __init__(self, n_lanes, size):
        self.size = size
        self.pitch = max(-(-size // 64) * 64, 64)
        self.data = np.full(n_lanes * self.pitch, POISON, np.uint8)
        self.part = np.arange(n_lanes, dtype=np.int64) * self.pitch

    def offset(self, address, lanes, size):
        a = address.view(np.int64)
        if ((a < 0) | (a + size > self.size)).any():
            raise PtxError(f"local access of {size} bytes out of bounds at {int(a.min())} of {self.size} bytes")
        return a + self.part[lanes]


class ReadOnly(Access):
    """Parameters of the kernel, constants: the same for all lanes."""

    def __init__(self, name, data):
        self.name, self.size = name, len(data)
        self.data = np.full(-(-len(data) // 64) * 64 + 64, POISON, np.uint8)
        self.data[:len(data)] = np.frombuffer(bytes(data), np.uint8)

    def offset(self, address, lanes, size):
        a = address.view(np.int64)
        if ((a < 0) | (a + size > self.size)).any():
            raise PtxError(f"{self.name} access of {size} bytes out of bounds at {int(a.max())} of {self.size} bytes")
        return a

    def store(self, address, lanes, words, kind=0):
        raise PtxError(f"{self.name} memory is written")


class Generic(Access):
    """Any of several spaces, by address: `memory` below all windows, and {start of a window: space}."""

    def __init__(self, name, memory, windows):
        self.name, self.memory = name, memory
        self.spaces = {0: memory, **{start >> 56: space for start, space in windows.items()}}

    def _parts(self, address):
        """(space, lanes of it, address inside it)."""
        window = address >> np.uint64(56)
        for w in [window[0]] if (window == window[0]).all() else np.unique(window):
            space = self.spaces.get(int(w))
            if space is None:
                raise PtxError(f"{self.name} access at {int(address[window == w][0]):#x}, which is of another space")
            here = window == w
            here = slice(None) if here.all() else np.nonzero(here)[0]
            yield space, here, address[here] - (w << np.uint64(56))

    def load(self, address, lanes, width, n):
        out = np.empty((len(address), n), RAW[width])
        for space, here, a in self._parts(address):
            out[here] = space.load(a, lanes[here], width, n)
        return out

    def store(self, address, lanes, words, kind=0):
        for space, here, a in self._parts(address):
            space.store(a, lanes[here], words[here], kind)

    def untouched(self, address, size):
        return all(space.untouched(a, size) if space is self.memory else True for space, _, a in self._parts(address))

    def read_early(self, address, size):
        for space, _, a in self._parts(address):
            if space is self.memory:
                space.read_early(a, size)
