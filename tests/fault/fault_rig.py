# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: protocols on the fake device, journals read frame by frame, results read with h5py."""
import os, pathlib, shutil, struct, subprocess, sys, tempfile, time

BENCH = os.environ.get("BENCH", "")
if not BENCH or not os.path.exists(BENCH):
    print("SKIPPED: BENCH does not name the program")
    sys.exit(77)
try:
    import h5py
except ImportError:
    print("SKIPPED: h5py is not installed")
    sys.exit(77)

HEAD, VISIT, END = 1, 2, 3
MAGIC = 0x46524D42

# Every execution also takes its time for real, so that there is a middle to be killed in.
PROTOCOL = """
title = "fault"
question = "What is left after a fault?"
[workload]
name = "null"
[device]
kind = "fake"
real_time = true
time = "3 ms"
%(device)s
[[sweep]]
device.seed = [1, 2, 3, 4]
[measure]
budget = "60 s"
stop = "samples"
samples = 10
warmups = 2
warmup_budget = "1 ms"
rounds = 3
%(measure)s
"""


class Folder:
    """A fresh folder with a protocol; removed at the end."""

    def __init__(self, device="", measure="", text=None):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="bench fault "))
        self.protocol = self.path / "fault.toml"
        self.protocol.write_text(text or PROTOCOL % {"device": device, "measure": measure})
        self.h5 = self.path / "out.h5"
        self.journal = self.path / "out.journal"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def start(self, *words, **options):
        words = words or ("run", str(self.protocol), "-o", str(self.h5), "--no-plot")
        return subprocess.Popen([BENCH, *words], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, **options)

    def run(self, *words, timeout=60, **options):
        p = self.start(*words, **options)
        out, err = p.communicate(timeout=timeout)
        return p.returncode, out, err

    def resume(self):
        return self.run("resume", str(self.h5), "--no-plot")


def frames(path):
    """Kinds of the whole frames of a journal, and the length of their bytes."""
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return [], 0
    kinds, at = [], 0
    while at + 24 <= len(data):
        magic, kind, length, _ = struct.unpack_from("<IIQQ", data, at)
        if magic != MAGIC or at + 24 + length > len(data):
            break
        kinds.append(kind)
        at += 24 + length
    return kinds, at


def column(h5, name):
    return h5[name][()].tolist()


def visits_of(path):
    with h5py.File(path, "r") as f:
        return sorted(column(f, "visits/visit")), [s.decode().rstrip("\0") for s in column(f, "visits/state")]


def whole_file(path):
    """A result either opens and is consistent, or is not there."""
    with h5py.File(path, "r") as f:
        for group in f.values():
            lengths = {d.shape[0] for d in group.values()}
            assert len(lengths) <= 1, (path, group.name, lengths)
        complete = f.attrs["complete"]
        return complete.decode() if isinstance(complete, bytes) else complete


def check(condition, *words):
    if not condition:
        raise SystemExit("FAILED: " + " ".join(str(w) for w in words))
