# SPDX-License-Identifier: Apache-2.0
"""Workers that crash, hang, run out of memory or fail: the row says so, the other rows stand, the exit code tells."""
# ctest: timeout 240
import os, signal, subprocess, time

import h5py

from fault_rig import Folder, check, column, frames, visits_of, whole_file

TEXT = """
title = "fault"
question = "Which row is hit?"
[workload]
name = "null"
[device]
kind = "fake"
time = "1 ms"
[measure]
rounds = 2
stop = "samples"
samples = 8
budget = "60 s"
%s
[[case]]
name = "good"
[[case]]
name = "bad"
device = { %s }
[[case]]
name = "after"
device = { seed = 9 }
"""


def states(path):
    with h5py.File(path, "r") as f:
        get = lambda name: [s.decode().rstrip("\0") for s in column(f, name)]
        return dict(zip(get("points/case"), zip(get("points/state"), get("points/reason"))))


def rows_with_numbers(path):
    with h5py.File(path, "r") as f:
        case = [s.decode().rstrip("\0") for s in column(f, "points/case")]
        return {case[p] for p, m in zip(column(f, "summary/point"), column(f, "summary/mean")) if m == m}


def case(bad, state, words, measure="", most_seconds=60):
    with Folder(text=TEXT % (measure, bad)) as f:
        begin = time.monotonic()
        code, out, err = f.run()
        check(time.monotonic() - begin < most_seconds, bad, "took too long")
        check(code == 3, bad, "exit", code, out, err)
        found = states(f.h5)
        check(found["bad"][0] == state, bad, "state", found)
        check(words in found["bad"][1], bad, "reason", found["bad"])
        check(found["good"][0] == "ok" and found["after"][0] == "ok", bad, "others", found)
        check(rows_with_numbers(f.h5) == {"good", "after"}, bad, "numbers", rows_with_numbers(f.h5))
        check(whole_file(f.h5) == "yes", bad, "complete")
        check(state in out, bad, "the table does not say", state, out)


case("die_at = 12", "failed", "signal 11")
case("fail_at = 12", "failed", "execution 12 fails")
case("hang_at = 12", "timeout", "measure.timeout", 'timeout = "2 s"')
print("crash, failure and hang: one row each")


# Partial samples of a dead worker stay in the file.
with Folder(text=TEXT % ("", 'die_at = 204, time = "1 ms"')) as f:
    code, out, err = f.run()
    check(code == 3, code, err)
    with h5py.File(f.h5, "r") as h:
        point = [s.decode().rstrip("\0") for s in column(h, "points/case")].index("bad")
        visits = [v for v, p in zip(column(h, "visits/visit"), column(h, "visits/point")) if p == point]
        kept = [s for s, v in zip(column(h, "samples/wall_ns"), column(h, "samples/visit")) if v in visits]
        warm = [s for s, v in zip(column(h, "warmup/wall_ns"), column(h, "warmup/visit")) if v in visits]
    check(len(warm) >= 100, "the dead worker's warm-ups are gone", len(warm))
    check(len(kept) >= 1 and len(kept) + len(warm) >= 200, "the dead worker's samples are gone", len(kept), len(warm))
print("partial visits are kept")


# A worker that is killed by somebody: that visit is failed, the next worker goes on; the row is degraded.
with Folder(measure='timeout = "20 s"') as f:
    p = f.start()
    time.sleep(0.15)
    while frames(f.journal)[0].count(2) < 2 and p.poll() is None:
        time.sleep(0.005)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(p.pid)], capture_output=True, text=True).stdout.split()
    for child in children:
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            pass
    out, err = p.communicate(timeout=60)
    visits, found = visits_of(f.h5)
    check(found.count("failed") <= 1, "one kill spoils one visit", found)
    if found.count("failed") == 1:
        check("degraded" in out, "no row is degraded", out)
        check(p.returncode == 0, "degraded rows have numbers: exit", p.returncode)
print("a killed worker costs one visit")


# SIGINT: what is measured is kept, exit 130, and resume completes it.
with Folder() as f:
    p = f.start()
    while frames(f.journal)[0].count(2) < 4 and p.poll() is None:
        time.sleep(0.005)
    os.kill(p.pid, signal.SIGINT)
    out, err = p.communicate(timeout=30)
    check(p.returncode == 130, "exit", p.returncode, err)
    check("bench resume" in err, "how to go on is not said", err)
    check(whole_file(f.h5) == "no", "an interrupted file says so")
    n = len(visits_of(f.h5)[0])
    check(n >= 4, "visits lost", n)
    code, out, err = f.resume()
    check(code == 0, "resume", code, err)
    check(whole_file(f.h5) == "yes" and len(visits_of(f.h5)[0]) == 15, "resumed", visits_of(f.h5))
    code, out, err = f.resume()
    check(code == 0 and "complete" in err, "resume of a complete run", code, err)
print("interrupted and resumed")

# A terminal that closes ends a run as Ctrl-C does; under nohup it ends nothing.
with Folder() as f:
    p = f.start()
    while frames(f.journal)[0].count(2) < 4 and p.poll() is None:
        time.sleep(0.005)
    os.killpg(p.pid, signal.SIGHUP)
    out, err = p.communicate(timeout=30)
    check(p.returncode == 130, "SIGHUP: exit", p.returncode, err)
    check(whole_file(f.h5) == "no", "SIGHUP: what was measured is a file")
    check(set(visits_of(f.h5)[1]) == {"ok"}, "SIGHUP: no visit is blamed", visits_of(f.h5))
with Folder() as f:
    p = f.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    while frames(f.journal)[0].count(2) < 4 and p.poll() is None:
        time.sleep(0.005)
    os.killpg(p.pid, signal.SIGHUP)
    out, err = p.communicate(timeout=30)
    check(p.returncode == 0 and whole_file(f.h5) == "yes", "nohup", p.returncode, err)
print("SIGHUP: kept")


# A full disk: one sentence, exit 2, no half file.
if os.geteuid() == 0:
    with Folder() as f:
        disk = f.path / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode == 0:
            try:
                code, out, err = f.run("run", str(f.protocol), "-o", str(disk / "out.h5"), "--no-plot")
                check(code == 2, "full disk: exit", code, err)
                check("No space" in err, "full disk: says", err)
                check(not list(disk.glob("*.h5")), "full disk: half a file", list(disk.iterdir()))
                print("full disk: refused")
            finally:
                subprocess.run(["umount", "-l", str(disk)])
        else:
            print("SKIPPED part: tmpfs cannot be mounted here (full disk)")
else:
    print("SKIPPED part: not root (full disk)")


# Changed facts: a journal of another protocol cannot be gone on with.
with Folder() as f:
    p = f.start()
    while frames(f.journal)[0].count(2) < 2 and p.poll() is None:
        time.sleep(0.005)
    os.killpg(p.pid, signal.SIGKILL)
    p.communicate()
    data = bytearray(f.journal.read_bytes())
    data[len(data) // 2] ^= 1  # rot
    f.journal.write_bytes(data)
    code, out, err = f.resume()
    check(code in (0, 2) and "Traceback" not in err, "rotten journal: exit", code, err)
print("rot is found")
