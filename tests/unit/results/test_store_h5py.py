# SPDX-License-Identifier: Apache-2.0
"""The result file as others read it: h5py on the golden file of format 1, hashes recomputed here, edits noticed by bench."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

SOURCE, BENCH = os.environ["SOURCE_DIR"], os.environ.get("BENCH", "")
HOSTILE = 'a,b "c"\nd|e\tf\\ \u00e4\u20ac'
M = 2**64 - 1
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161,
                      9650029242287828579, 2870177450012600261)


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & M


def turn(acc, lane):
    return rotl((acc + lane * P2) & M, 31) * P1 & M


def xxh64(data):
    """Seed 0, from the specification of XXH64."""
    n, at = len(data), 0
    word = lambda k, size: int.from_bytes(data[k:k + size], "little")
    if n >= 32:
        v = [(P1 + P2) & M, P2, 0, -P1 & M]
        while at + 32 <= n:
            v = [turn(v[i], word(at + 8 * i, 8)) for i in range(4)]
            at += 32
        h = sum(rotl(x, r) for x, r in zip(v, (1, 7, 12, 18))) & M
        for x in v:
            h = ((h ^ turn(0, x)) * P1 + P4) & M
    else:
        h = P5
    h = (h + n) & M
    while at + 8 <= n:
        h = (rotl(h ^ turn(0, word(at, 8)), 27) * P1 + P4) & M
        at += 8
    if at + 4 <= n:
        h = (rotl(h ^ word(at, 4) * P1 & M, 23) * P2 + P3) & M
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * P5 & M, 11) * P1 & M
    for shift, p in ((33, P2), (29, P3)):
        h = (h ^ h >> shift) * p & M
    return h ^ h >> 32


def raw(column):
    """The bytes as stored: fixed-length text with all its zeros."""
    return column[()].tobytes()


def check_layout(f):
    assert f.attrs["format"] == 1
    assert f.attrs["title"].decode() == "Example \u2014 one"
    for name, group in f.items():
        assert isinstance(group, h5py.Group), name
        assert len({len(column) for column in group.values()}) == 1, name
        for column in group.values():
            assert column.ndim == 1
            assert column.dtype in (np.int64, np.float64) or column.dtype.kind == "S", column.name
            assert column.attrs["help"].decode() or "unit" in column.attrs
            assert column.attrs["xxh64"].decode() == "%016x" % xxh64(raw(column)), column.name
            chunked = column.nbytes >= 64 * 1024
            assert (column.chunks is not None) == chunked, column.name
            assert column.compression == ("gzip" if chunked else None), column.name


def check_values(f):
    points, samples, summary = f["points"], f["samples"], f["summary"]
    assert list(points["workload.batch"]) == [-2**63, 1, 2, 4]
    assert points["workload.batch"].attrs["unit"] == b"sequences"
    assert points["odd%2Fname%25"][1].decode() == HOSTILE
    assert points["reason"][2].decode() == HOSTILE
    assert [s.decode() for s in points["state"]] == ["ok", "ok", "degraded", "oom"]
    order = np.concatenate([np.arange(3), np.arange(9000), np.arange(3)])
    visit = np.repeat([0, 1, 2], [3, 9000, 3])
    assert (samples["order"][()] == order).all() and (samples["visit"][()] == visit).all()
    assert (samples["wall_ns"][()] == 50000000 + 1000 * visit + order * order % 997).all()
    assert samples["wall_ns"].attrs["unit"] == b"ns"
    mean = dict(zip(zip(summary["point"], (m.decode() for m in summary["metric"])), summary["mean"]))
    assert mean[1, "time"] == 50.001 and mean[2, "decode_rate"] == 39.2
    assert np.isnan(summary["ci_lo"][()]).sum() == 3 and np.isnan(summary["p99"][()]).all()
    assert f["files/text"][0].decode() == 'title = "Example"\n# \u00e4\n'


def bench(*words):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def check_bench(path, f):
    code, out, err = bench("export", path, "--format", "json")
    assert code in (0, 3), err
    points = json.loads(out, parse_constant=lambda word: sys.exit("not strict: " + word))["points"]
    # Exports are computed anew from the samples: the state that was set by hand is not among what they know.
    assert [p["state"] for p in points] == ["ok", "ok", "ok", "oom"]
    first = f["samples/wall_ns"][f["samples/visit"][()] == 1]
    assert abs(points[1]["metrics"]["time"]["mean"] / (first.mean() * 1e-6) - 1) < 1e-12
    assert points[1]["odd/name%"] == HOSTILE
    code, out, err = bench("show", path)
    assert code in (0, 3) and "degraded" in out, err


def check_edits(path):
    def edited(change, words):
        with h5py.File(path, "r+") as f:
            change(f)
        code, out, err = bench("show", path)
        assert code == 2 and not out and err.count("\n") == 1 and words in err, (code, out, err)

    def mean(f, value, honest):
        column = f["summary/mean"]
        column[1] = value
        if honest:
            column.attrs["xxh64"] = np.bytes_("%016x" % xxh64(raw(column)))

    edited(lambda f: mean(f, 40.0, False), "edited or rotten")
    with h5py.File(path, "r+") as f:
        mean(f, 40.0, True)
    assert bench("show", path)[0] in (0, 3)  # our hash is the one computed here
    with h5py.File(path, "r+") as f:
        f.attrs["format"] = 2
    edited(lambda f: None, "format is 2")
    with h5py.File(path, "r+") as f:
        f.attrs["format"] = 1
        del f["summary/mean"]
        f["summary"].create_dataset("mean", data=np.zeros(2))
    edited(lambda f: None, "/summary/mean")
    with h5py.File(path, "w") as f:
        f["x"] = 1
    edited(lambda f: None, "not one that bench wrote")


def main():
    assert xxh64(b"") == 0xEF46DB3751D8E999 and xxh64(b"a") == 0xD24EC4F1A98C6E5B  # published vectors
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.h5")
        with gzip.open(os.path.join(SOURCE, "tests/golden/result_v1.h5.gz")) as packed, open(path, "wb") as out:
            out.write(packed.read())
        with h5py.File(path, "r") as f:
            check_layout(f)
            check_values(f)
            if BENCH:
                check_bench(path, f)
        if not BENCH:
            print("the program was not built: its reading is not checked")
            return
        check_edits(path)


if __name__ == "__main__":
    main()
