# SPDX-License-Identifier: Apache-2.0
"""compare, gate, baseline and history from end to end: the exit table, bad files, documents that others read."""
# ctest: timeout 300
import json, os, pathlib, re, shutil, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

BENCH = os.environ.get("BENCH", "")
if not BENCH or not os.path.exists(BENCH):
    print("SKIPPED: BENCH does not name the program")
    sys.exit(77)

WORK = pathlib.Path(tempfile.mkdtemp(prefix="bench gate "))
PROTOCOL = """
title = "gate"
question = "Is it slower?"
[workload]
name = "null"
[device]
kind = "fake"
time = "2 ms"
noise = 0.003
round_noise = 0.002
%s
[[sweep]]
workload.marks = [%s]
[measure]
rounds = %d
stop = "samples"
samples = 10
warmups = 2
warmup_budget = "1 ms"
budget = "60 s"
[gate]
between_run = "0.5 %%"
"""


def bench(*words, env=None):
    e = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
    e.update(env or {})
    done = subprocess.run([BENCH, *map(str, words)], cwd=WORK, capture_output=True, text=True, env=e, timeout=120)
    assert done.returncode >= 0, f"{words}: signal {-done.returncode}"
    return done


def check(done, code, *sentences):
    said = done.stdout + done.stderr
    assert done.returncode == code, f"exit {done.returncode}, expected {code}:\n{said}"
    for s in sentences:
        assert s in re.sub(r"\s+", " ", said), f"nothing says '{s}':\n{said}"
    return done


def run(name, marks="0, 1, 2", device="", rounds=6, *more):
    (WORK / "p.toml").write_text(PROTOCOL % (device, marks, rounds))
    done = bench("run", "p.toml", "-o", name, "--no-plot", "--quiet", *more)
    assert (WORK / name).exists(), done.stderr
    return name


def verdicts(old, new, *more):
    done = bench("gate", old, new, "--format", "json", *more)
    return done, json.loads(done.stdout)


def exit_table():
    check(bench("gate", "old.h5", "same.h5"), 0, "3 rows pass")
    check(bench("gate", "old.h5", "slow.h5"), 1, "3 rows slower", "at least +", "tolerance 1 %")
    check(bench("gate", "old.h5", "fast.h5"), 0, "3 rows faster")
    check(bench("gate", "old.h5"), 2, "two sides are needed")
    check(bench("gate", "old.h5", "slow.h5", "--set", "gate.between_run=0 %"), 5, "between-run spread unknown")
    check(bench("gate", "old.h5", "same.h5", "--set", "gate.between_run=3 %", "--set", "gate.max_blind=1"), 0, "warning")
    check(bench("gate", "old.h5", "same.h5", "--set", "gate.between_run=3 %", "--set", "gate.max_blind=1", "--strict"), 5)
    check(bench("compare", "old.h5", "slow.h5"), 0, "3 rows slower")
    check(bench("gate", "--baseline", "old.h5"), 0, "all rows", "3 rows pass")
    check(bench("compare", "old.h5", "old.h5"), 0, "old.h5 and old.h5 are the same result")
    shutil.copy(WORK / "old.h5", WORK / "copy.h5")
    check(bench("gate", "--old", "old.h5", "--old", "copy.h5", "--new", "same.h5"), 2, "it is one run, not two")
    check(bench("compare", "old.h5", "copy.h5"), 0, "old.h5 and copy.h5 are the same result")


def completeness():
    run("two.h5", "0, 1")
    done, j = verdicts("old.h5", "two.h5")
    assert done.returncode == 3 and [r["verdict"] for r in j["rows"]] == ["pass", "pass", "missing"], j
    done, j = verdicts("two.h5", "old.h5")
    assert done.returncode == 0 and [r["verdict"] for r in j["rows"]] == ["pass", "pass", "new"], j
    run("renamed.h5", "0, 1, 3")
    check(bench("gate", "old.h5", "renamed.h5"), 3, "missing", "new")
    run("failed.h5", "0, 1, 2", "die_at = 0")
    done, j = verdicts("failed.h5", "failed.h5")
    assert done.returncode == 3 and len(j["rows"]) == 3, j
    assert all(r["ratio"] is None and r["verdict"] == "failed" and r["reason"] for r in j["rows"]), j
    check(bench("gate", "old.h5", "same.h5", "--rows", "workload.marks=9"), 3, "no row has workload.marks=9; there are 3")
    check(bench("compare", "old.h5", "two.h5"), 3)


def incomparable():
    run("quick.h5", "0, 1, 2", "", 6, "--quick")
    check(bench("gate", "old.h5", "quick.h5"), 4, "made with --quick")
    check(bench("gate", "quick.h5", "quick.h5"), 4, "made with --quick", "facts differ: quick")
    run("seed.h5", "0, 1, 2", "", 6, "--set", "measure.seed=5")
    check(bench("gate", "old.h5", "seed.h5"), 4, "facts differ: measure.seed", "--across measure.seed")
    check(bench("gate", "old.h5", "seed.h5", "--across", "measure.seed"), 0)
    for command in ("gate", "compare"):
        check(bench(command, "old.h5", "seed.h5", "--across", "measure.sede"), 2, "did you mean 'measure.seed'?")
        check(bench(command, "old.h5", "seed.h5", "--across", "measure"), 0)


def bad_files():
    data = (WORK / "old.h5").read_bytes()
    (WORK / "half.h5").write_bytes(data[: len(data) // 2])
    (WORK / "empty.h5").write_bytes(b"")
    (WORK / "text.h5").write_text("no result at all\n")
    edited = bytearray(data)
    at = data.find(b"marks=1")
    edited[at : at + 7] = b"marks=7"
    (WORK / "edited.h5").write_bytes(edited)
    for bad in ("half.h5", "empty.h5", "text.h5", "edited.h5", "absent.h5"):
        for words in (("compare", "old.h5", bad), ("compare", bad, "old.h5"), ("gate", "old.h5", bad), ("history", bad),
                      ("gate", "old.h5", "same.h5", "--from-history", bad), ("baseline", "accept", bad, "--why", "x")):
            done = check(bench(*words), 2, bad)
            assert not done.stdout, done.stdout
            assert done.stderr.count("\n") == 1, done.stderr
    try:
        import h5py
    except ImportError:
        return
    shutil.copy(WORK / "old.h5", WORK / "newer.h5")
    with h5py.File(WORK / "newer.h5", "a") as f:
        f.attrs["format"] = 99
    check(bench("gate", "old.h5", "newer.h5"), 2, "format")


def thresholds_on_nothing():
    check(bench("gate", "old.h5", "same.h5", "--metric", "tiem"), 2, "no metric 'tiem'; did you mean 'time'? (it has: time")
    check(bench("gate", "old.h5", "same.h5", "--set", "gate.tolerence=1 %"), 2, "did you mean 'gate.tolerance'?")
    check(bench("gate", "old.h5", "same.h5", "--set", "gate.tolerance=5 %"), 2, "is not below gate.detect")
    check(bench("gate", "old.h5", "same.h5", "--set", "gate.alpha=2"), 2, "gate.alpha: 2 is outside")
    check(bench("gate", "old.h5", "same.h5", "--format", "xlm"), 2, "no format is called 'xlm'")
    check(bench("gate", "old.h5", "same.h5", "--attempt", "0"), 2, "--attempt 0")
    for line, sentence in (('metric = "tiem"', "gate.metric: no metric is called 'tiem'"),
                           ('rows = "workload.mraks=1"', "gate.rows: no key is called 'workload.mraks'"),
                           ('rounds = 4', "gate.rounds = 4 can decide nothing: 20 rows"),
                           ('tolerance = "7 %"', "is not below gate.detect"),
                           ('tolerence = "1 %"', "unknown key 'tolerence' in [gate]")):
        marks = ", ".join(map(str, range(20)))
        (WORK / "bad.toml").write_text(PROTOCOL % ("", marks, 2) + line + "\n")
        check(bench("run", "bad.toml", "--dry-run"), 2, "bad.toml:", sentence)


def settings_come_from_the_old_side():
    # A change that loosens its own gate changes nothing.
    run("loose.h5", "0, 1, 2", "changed = 1.2", 6, "--set", "gate.tolerance=50 %", "--set", "gate.detect=90 %")
    check(bench("gate", "old.h5", "loose.h5"), 1, "the old one counts")
    check(bench("gate", "old.h5", "loose.h5", "--set", "gate.tolerance=50 %", "--set", "gate.detect=90 %"), 0)


def never_a_count():
    marks = ", ".join(map(str, range(256)))
    run("many.h5", marks, "", 5)
    run("many_slow.h5", marks, "changed = 1.5", 5)
    run("many_fast.h5", marks, "changed = 0.5", 5)
    check(bench("gate", "many.h5", "many_slow.h5"), 1, "256 rows slower")
    check(bench("gate", "many.h5", "many_fast.h5"), 0, "256 rows faster")


def junit(text, tests, failures, errors, skipped):
    """What the common schema asks for: counts that hold, elements and attributes that it knows."""
    root = ET.fromstring(text)
    assert root.tag == "testsuites" and len(root) == 1 and root[0].tag == "testsuite"
    for e in (root, root[0]):
        got = tuple(int(e.get(k)) for k in ("tests", "failures", "errors", "skipped"))
        assert got == (tests, failures, errors, skipped), got
        assert set(e.keys()) <= {"name", "tests", "failures", "errors", "skipped", "time"}
    cases = list(root[0])
    assert len(cases) == tests and all(c.tag == "testcase" and c.get("name") and c.get("classname") for c in cases)
    for tag, n in (("failure", failures), ("error", errors), ("skipped", skipped)):
        found = root.findall(f".//{tag}")
        assert len(found) == n and all(f.get("message") for f in found), (tag, len(found))
    assert all(len(c) <= 1 for c in cases)


def documents():
    for new, counts in (("same.h5", (3, 0, 0, 0)), ("slow.h5", (3, 3, 0, 0)), ("two.h5", (3, 0, 1, 0))):
        junit(bench("gate", "old.h5", new, "--format", "junit").stdout, *counts)
    wide = ("--set", "gate.between_run=3 %", "--set", "gate.max_blind=1")
    junit(bench("gate", "old.h5", "same.h5", "--format", "junit", *wide).stdout, 3, 0, 0, 3)
    junit(bench("gate", "old.h5", "same.h5", "--format", "junit", "--strict", *wide).stdout, 3, 3, 0, 0)
    done = bench("gate", "old.h5", "slow.h5", "-f", "junit", "-o", "out.xml")
    assert "verdict" in done.stdout and done.returncode == 1
    junit((WORK / "out.xml").read_text(), 3, 3, 0, 0)
    check(bench("gate", "old.h5", "slow.h5", "-f", "md", "-o", "no/such/folder.md"), 2, "no/such")
    summary = WORK / "summary.md"
    check(bench("gate", "old.h5", "slow.h5", env={"GITHUB_STEP_SUMMARY": str(summary)}), 1)
    assert "3 rows slower" in summary.read_text() and "| row" in summary.read_text()
    for k, alpha in (("1", 0.0025), ("3", 0.000625)):
        done = bench("gate", "old.h5", "same.h5", "-f", "json", env={"GITHUB_RUN_ATTEMPT": k})
        j = json.loads(done.stdout)
        assert j["attempt"] == int(k) and abs(j["alpha_of_attempt"] - alpha) < 1e-12, j
    for f in ("text", "md", "json", "junit"):
        a = bench("gate", "old.h5", "slow.h5", "-f", f).stdout
        b = bench("gate", "old.h5", "slow.h5", "-f", f, env={"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}).stdout
        assert a == b, f
        if f == "text":
            assert max(map(len, a.split("\n"))) <= 100


def accepted():
    check(bench("baseline", "accept", "old.h5"), 2, "--why TEXT is needed")
    check(bench("baseline", "accept", "old.h5", "--why", "two\nlines"), 2, "one line")
    check(bench("baseline", "accept", "quick.h5", "--why", "x"), 2, "--quick")
    check(bench("baseline", "accept", "failed.h5", "--why", "x"), 2, "is failed")
    shutil.copy(WORK / "old.h5", WORK / "base.h5")
    check(bench("baseline", "accept", "base.h5", "--why", "first one"), 0)
    lines = (WORK / "base.h5.accepted").read_text().splitlines()
    assert len(lines) == 2 and lines[1].split("\t")[3:] == ["-", "first one"], lines
    check(bench("baseline", "accept", "base.h5", "--why", "again"), 2, "already")
    check(bench("gate", "base.h5", "same.h5"), 0)
    # The change under test brings its own baseline: refused, until that is accepted, in the open.
    shutil.copy(WORK / "slow.h5", WORK / "base.h5")
    check(bench("gate", "base.h5", "slow.h5"), 2, "a baseline that was changed judges nothing")
    check(bench("baseline", "accept", "base.h5", "--why", "the new cache is worth it"), 0)
    check(bench("gate", "base.h5", "slow.h5"), 0)
    assert len((WORK / "base.h5.accepted").read_text().splitlines()) == 3
    (WORK / "none.accepted").write_text("# nothing\n")
    check(bench("gate", "base.h5", "slow.h5", "--accepted", "none.accepted"), 2, "is not in none.accepted")


def attempts():
    # So late an attempt has so little alpha that no rounds reach it: said before anything is measured.
    check(bench("gate", "--baseline", "old.h5", "--attempt", "900"), 2, "gate.rounds = 40 can decide nothing")


def history():
    (WORK / "nightly").mkdir()
    for i in range(24):
        changed = 1.0 if i < 12 else 1.06
        run(f"nightly/{i:02d}.h5", "0", f"changed = {changed}", 3, "--set", f"measure.seed={i + 1}")
    done = check(bench("history", "nightly", "--across", "measure.seed"), 1, "slower, from", "1 row slower")
    assert "nightly/12.h5" in done.stdout, done.stdout
    day = re.search(r"from (\d{4}-\d\d-\d\d) on", done.stdout).group(1)
    (WORK / "steps").write_text(f"# known\n{day}\tmarks=0\tpays for the check\n")
    done = check(bench("history", "nightly", "--across", "measure.seed", "--accepted", "steps"), 0,
                 "accepted: pays for the check", "no row became slower")
    done = check(bench("history", "nightly"), 0, "left out", "measure.seed")  # other seeds are other inputs
    done = bench("history", "nightly", "--across", "measure.seed", "-o", "picture")
    if shutil.which("gnuplot"):
        assert (WORK / "picture.svg").stat().st_size > 1000 and (WORK / "picture.png").stat().st_size > 1000, done.stderr
    for stem, said in (("nightly", "is a folder"), ("nightly/", "names no file"), ("/dev/null", "is a device"), ("no/such", "no such folder")):
        check(bench("history", "nightly", "-o", stem), 2, said)
    check(bench("history", "nightly", "--across", "measure.sede"), 2, "did you mean 'measure.seed'?")
    (WORK / "nothing").mkdir()
    check(bench("history", "nothing"), 2, "no result file")
    check(bench("history"), 2)


try:
    for name, device in (("old.h5", ""), ("same.h5", ""), ("slow.h5", "changed = 1.2"), ("fast.h5", "changed = 0.8")):
        run(name, "0, 1, 2", device)
    for test in (exit_table, completeness, incomparable, bad_files, thresholds_on_nothing, settings_come_from_the_old_side,
                 never_a_count, documents, accepted, attempts, history):
        test()
        print("ok", test.__name__)
finally:
    shutil.rmtree(WORK, ignore_errors=True)
