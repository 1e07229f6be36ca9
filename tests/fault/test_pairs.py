# SPDX-License-Identifier: Apache-2.0
"""Comparisons in turns on the virtual clock: what is scripted is found to the nanosecond, what dies has a row that says so,
and what was measured before an interruption stays."""
# ctest: timeout 240
import fcntl, json, math, os, pathlib, signal, time

import h5py

from fault_rig import BENCH, Folder, check, column, frames, whole_file

TEXT = """
title = "pair"
question = "Which side is slower?"
[workload]
name = "null"
[device]
kind = "fake"
time = "1 ms"
%s
[measure]
budget = "1000 s"
%s
[[sweep]]
device.seed = [1, 2, 3]
"""


def texts(h5, name):
    return [s.decode().rstrip("\0") for s in column(h5, name)]


def ab(f, *words, timeout=60, **options):
    return f.run("ab", str(f.protocol), "-o", str(f.h5), "-q", *words, timeout=timeout, **options)


def verdicts(f, *words):
    f.h5.unlink(missing_ok=True)
    code, out, err = ab(f, "-f", "json", *words)
    check(not err, words, err)  # -q says nothing, whoever else measures
    return code, json.loads(out)


def rows_of(answer):
    return {r["row"]: r for r in answer["rows"]}


def exact_ratio():
    """Without noise every quadruple of every round is the scripted ratio."""
    with Folder(text=TEXT % ("", "")) as f:
        code, answer = verdicts(f, "--b", "device.time=1.05 ms")
        check(code == 1, "exit", code, answer)
        with h5py.File(f.h5, "r") as h:
            check(all(abs(y - math.log(1.05)) < 1e-12 for y in column(h, "pairs/y")), column(h, "pairs/y"))
            check(set(column(h, "quads/a1")) == set(column(h, "quads/a2")) == {1e6}, "a")
            check(set(column(h, "quads/b1")) == set(column(h, "quads/b2")) == {1.05e6}, "b")
            check(texts(h, "points/side") == ["a"] * 3 + ["b"] * 3, texts(h, "points/side"))
            # 0.4 s a row and round, and no turn more.
            check(set(column(h, "pairs/quads")) == {98}, set(column(h, "pairs/quads")))
        code, shown, err = f.run("show", str(f.h5))
        check(code == 0 and shown.count("slower") >= 4 and "1.050" in shown, shown, err)
        check(whole_file(f.h5) == "yes" and not f.journal.exists(), "files")
        code, answer = verdicts(f)
        check(code == 0, "A/A", code, answer)
        code, answer = verdicts(f, "--a", "device.time=1.05 ms")
        check(code == 0, "faster", code, answer)


def rounds_and_turns():
    """Fresh workers a round, in tossed order; rows shuffled; turns abba or baab as often."""
    with Folder(text=TEXT % ('noise = 0.3\nnoise_kind = "lognormal"', "")) as f:
        code, answer = verdicts(f, "--set", "gate.rounds=12", "--set", "measure.seed=5")
        with h5py.File(f.h5, "r") as h:
            rounds, first, a = column(h, "pairs/round"), texts(h, "pairs/first"), column(h, "pairs/a")
            check(max(rounds) == 11, "rounds", rounds)
            starts = [first[rounds.index(r)] for r in range(12)]
            check(2 <= starts.count("a") <= 10, "start order", starts)
            check(len({tuple(p for p, q in zip(a, rounds) if q == r) for r in range(12)}) > 2, "never shuffled", a)
            mirrored = column(h, "quads/mirrored")
            check(0.4 < sum(mirrored) / len(mirrored) < 0.6, "order of turns", sum(mirrored), len(mirrored))
            workers = {}
            for worker, r in zip(column(h, "visits/worker"), column(h, "visits/round")):
                workers.setdefault(r, set()).add(worker)
            check(sorted(len(w) for w in workers.values()) == [2] * 12, workers)
            check(len(set.union(*workers.values())) == 24, "workers are not fresh", workers)


def noise_of_each_kind():
    """The same program passes, 5 % more time is slower, whatever the noise looks like."""
    for kind in ("normal", "lognormal", "bimodal", "ar1"):
        device = 'noise = 0.03\nround_noise = 0.002\nnoise_kind = "%s"' % kind
        with Folder(text=TEXT % (device, "")) as f:
            code, answer = verdicts(f)
            check(code == 0, kind, code, answer)
            code, answer = verdicts(f, "--b", "device.time=1.05 ms")
            check(code == 1, kind, code, answer)
            check(all(r["verdict"] == "slower" for r in answer["rows"]), kind, answer)


def broken_sides():
    """A side that dies, hangs, fails or runs out of memory: its row says so, the others stand, exit 3."""
    for broken, state, words in (("device.die_at=20", "failed", "signal 11"), ("device.hang_at=20", "timeout", "no answer"),
                                 ("device.fail_at=20", "failed", "fails as scripted"), ("device.fail_at=2", "failed", "fails as"),
                                 ("device.die_at=2", "failed", "signal 11")):
        for side in "ab":
            text = (TEXT % ("", 'timeout = "1 s"')).replace("[[sweep]]\ndevice.seed = [1, 2, 3]\n", "")
            text += '[[case]]\nname = "good"\n[[case]]\nname = "bad"\ndevice = { seed = 7 }\n'
            with Folder(text=text) as f:
                key, value = broken.split("=")
                # Only the case whose seed differs breaks: its worker's counts begin anew with its device.
                text = text.replace("seed = 7", "seed = 7, %s = %s" % (key.split(".")[1], "-1"))
                f.protocol.write_text(text)
                begin = time.monotonic()
                f.h5.unlink(missing_ok=True)
                code, out, err = ab(f, "-f", "json", "--" + side, broken)
                check(time.monotonic() - begin < 40, broken, "took too long")
                check(code == 3, broken, side, "exit", code, out, err)
                with h5py.File(f.h5, "r") as h:
                    check(state in texts(h, "pairs/state"), broken, texts(h, "pairs/state"))
                    check(any(words in r and r.startswith(side + ": ") for r in texts(h, "pairs/reason")), broken,
                          texts(h, "pairs/reason"))
                check(whole_file(f.h5) == "yes", broken)


def interrupted():
    """Ctrl-C in the middle of a round keeps the rounds before; a killed supervisor leaves a journal that becomes a file."""
    text = TEXT % ("real_time = true", "") + "\n[gate]\ntolerance = 1e-6\ndetect = 2e-6\n"
    for how, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        with Folder(text=text.replace("real_time = true", "real_time = true\nnoise = 0.1")) as f:
            p = f.start("ab", str(f.protocol), "-o", str(f.h5), "-q")
            until = time.monotonic() + 50
            while len(frames(f.journal)[0]) < 1 + 4:
                check(time.monotonic() < until and p.poll() is None, how, "no journal grew")
                time.sleep(0.05)
            os.kill(p.pid, how)
            out, err = p.communicate(timeout=30)
            check(p.returncode == expected, how, p.returncode, out, err)
            if how == signal.SIGKILL:
                code, out, err = f.run("resume", str(f.journal))
                check(code == 2 and "import-journal" in err and f.journal.exists(), "resumed", code, out, err)
                check(f.run("import-journal", str(f.journal))[0] == 0, "the journal cannot be read")
            with h5py.File(f.h5, "r") as h:
                check(len(column(h, "pairs/y")) >= 4, how, column(h, "pairs/y"))
            check(whole_file(f.h5) == "no", how)
            code, shown, err = f.run("show", str(f.h5))
            check(code == 0 and "undecided" in shown, how, shown, err)


def worker_gone():
    """A program that is gone in the middle of a comparison: the rounds before stay, and nothing calls it whole."""
    with Folder(text=TEXT % ("noise = 0.1", "")) as f:
        count, program = f.path / "count", f.path / "program"
        program.write_text(f'#!/bin/sh\necho >> "{count}"\n[ $(wc -l < "{count}") -le 3 ] || exit 1\nexec "{BENCH}" "$@"\n')
        program.chmod(0o755)
        code, out, err = ab(f, "--b-bin", str(program))
        check(code == 3 and "did not start as a worker" in err, code, out, err)
        with h5py.File(f.h5, "r") as h:
            check(set(column(h, "pairs/round")) == {0, 1, 2}, column(h, "pairs/round"))
        check(whole_file(f.h5) == "no" and not f.journal.exists(), "whole")
        code, shown, err = f.run("show", str(f.h5))
        check("did not start as a worker" in " ".join(shown.split()), shown, err)
        code, out, err = f.run("replay", str(f.h5), "-q")
        check(code == 2 and "bench ab" in err, "a comparison is no run", code, out, err)


def another_bench():
    """Somebody who holds the machine's lock is a fact of the result; a line on stderr only without -q."""
    with Folder(text=TEXT % ("", "")) as f, open("/tmp/bench.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # another test holds it: as good
        verdicts(f)
        with h5py.File(f.h5, "r") as h:
            facts = dict(zip(texts(h, "environment/key"), texts(h, "environment/value")))
            check(facts["moment.another_bench"] == "yes", facts)


def same_code():
    """Which sides are the same machine code with the same settings is known of each comparison."""
    with Folder(text=TEXT % ("", "")) as f:
        copy = f.path / "copy"
        copy.write_bytes(pathlib.Path(BENCH).read_bytes() + b"\n")
        copy.chmod(0o755)
        for words, expected in (((), "yes"), (("--b-bin", str(copy)), "yes"), (("--b", "device.seed=9"), "no")):
            if expected == "no":
                f.protocol.write_text((TEXT % ("", "")).split("[[sweep]]")[0])
            verdicts(f, *words)
            with h5py.File(f.h5, "r") as h:
                meta = dict(zip(texts(h, "meta/key"), texts(h, "meta/value"))) if "meta" in h else dict(h.attrs)
                check(str(meta["same_code"]) in (expected, f"b'{expected}'"), words, meta)


REAL = """
title = "real"
[workload]
name = "decode"
context = 8
[model]
shape = "tiny"
[device]
kind = "cpu"
threads = 2
[measure]
budget = "60 s"
[gate]
rounds = 5
"""


def same_cores():
    """What ran says how: both sides with the same threads, pinned alike, whichever was started first."""
    with Folder(text=REAL) as f:
        code, answer = verdicts(f)
        check(code in (0, 5), code, answer)
        with h5py.File(f.h5, "r") as h:
            effective = texts(h, "points/effective")
            check(len(effective) == 2 and effective[0] == effective[1] and "threads=2" in effective[0], effective)
            check("pinning=" in effective[0], effective)
            check(set(texts(h, "pairs/first")) <= {"a", "b"} and len(column(h, "pairs/round")) >= 4, "rounds")


def plans():
    """--dry-run: both sides' rows, their settings and rounds; nothing is measured, nothing is left."""
    with Folder(text=TEXT % ("", "")) as f:
        code, out, err = ab(f, "--a", "device.time=2 ms", "--b", "device.time=3 ms", "--dry-run")
        said = " ".join(out.split())
        check(code == 0 and not err, code, err)
        check("3 rows × 2 sides in turns, 4 to 40 rounds" in said, out)
        check("side a: device.time=2 ms" in said and "side b: device.time=3 ms" in said, out)
        check(out.count("seed=1") == 2 and out.count("seed=3") == 2, out)
        code, out, err = ab(f, "--dry-run", "--set", "gate.rows=device.seed=2")
        check(code == 0 and "1 row × 2 sides" in out and "seed=1" not in out and out.count("seed=2") == 2, out, err)
        code, out, err = ab(f, "--dry-run", "--set", "measure.budget=1 s")
        check(code == 0 and "may be too short for 4 rounds, the least that decide" in " ".join(out.split()), out, err)
        check(sorted(p.name for p in f.path.iterdir()) == [f.protocol.name], list(f.path.iterdir()))


def rows_that_are_not_there():
    """A key that no row has is a mistake; a value that none has is nothing to judge. Both end before a worker starts."""
    with Folder(text=TEXT % ("", "")) as f:
        code, out, err = ab(f, "--set", "gate.rows=device.sed=2")
        check(code == 2 and "did you mean 'device.seed'?" in err and err.count("\n") <= 3, code, err)
        code, out, err = ab(f, "--set", "gate.rows=device.seed=9")
        check(code == 3 and "no row has device.seed=9; there are 3: seed=1, seed=2, seed=3" in err, code, err)
        check(not f.h5.exists() and not f.journal.exists(), "files")


def odd_programs():
    """Programs that are no bench: a sentence that names them, exit 2, and what they print is no data."""
    with Folder(text=TEXT % ("", "")) as f:
        program = f.path / "program"
        for script, words in (("exit 0", "(it exited with 0): it is no bench"), ("echo garbage; exit 9", "(it exited with 9)"),
                              ("kill -SEGV $$", "(it was ended by signal 11, "), ("cat", "(it exited with 0)")):
            program.write_text("#!/bin/sh\n" + script + "\n")
            program.chmod(0o755)
            code, out, err = ab(f, "-f", "json", "--a-bin", str(program))
            check(code == 2 and not out, script, code, out)
            line = err.splitlines()[-1]
            check(line.startswith(f"bench: --a-bin {program}: ") and words in line, script, err)
            check(not f.h5.exists() and not f.journal.exists(), script, "files are left")
        code, out, err = ab(f, "--a-bin", str(f.path))
        check(code == 2 and "it is a folder" in err, code, err)
        f.run("run", str(f.protocol), "-o", str(f.h5), "-q", "--no-plot")
        code, out, err = f.run("gate", "--baseline", str(f.h5), "--baseline-bin", str(program), "-f", "json")
        check(code == 2 and not out and f"bench: --baseline-bin {program}: " in err, code, out, err)


exact_ratio()
another_bench()
same_code()
same_cores()
plans()
rows_that_are_not_there()
odd_programs()
worker_gone()
rounds_and_turns()
noise_of_each_kind()
broken_sides()
interrupted()
print("ok")
