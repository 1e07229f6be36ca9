#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Command lines as data: cases/NAME/{cmd,stdout,stderr,exit}; --refresh rewrites what differs.

cmd is a shell script; it runs in an empty folder that holds the case's other files, with `bench` and $PYTHON at hand.
exit holds the expected code (absent: 0); an absent stdout or stderr expects nothing. In an expected line, {{...}} is a
regular expression. Whatever a command writes, no case may end in a signal or leave a half-written file behind.
"""
# ctest: timeout 900
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")
OWN = {"cmd", "stdout", "stderr", "exit"}
LIMIT_S = 240
# Tests run side by side: that another one measures is true, and no part of a case.
ANOTHER = re.compile(r"bench: another bench \(process \d+\) is measuring")


def read(path, otherwise=""):
    if not os.path.exists(path):
        return otherwise
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def write(path, text, when_empty=""):
    if text == when_empty:
        if os.path.exists(path):
            os.remove(path)
        return
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def line_matches(expected, got):
    parts = re.split(r"\{\{(.*?)\}\}", expected)
    pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts))
    return re.fullmatch(pattern, got) is not None


def matches(expected, got):
    e, g = expected.split("\n"), got.split("\n")
    return len(e) == len(g) and all(line_matches(a, b) for a, b in zip(e, g))


def run_case(name, bench):
    folder = os.path.join(CASES, name)
    with tempfile.TemporaryDirectory(prefix="bench cli ") as work:
        tools = os.path.join(work, ".tools")
        os.mkdir(tools)
        os.symlink(bench, os.path.join(tools, "bench"))
        for file in os.listdir(folder):
            if file not in OWN:
                shutil.copy(os.path.join(folder, file), work)
        env = dict(os.environ, SOURCE_DIR=os.environ.get("SOURCE_DIR", os.path.dirname(os.path.dirname(HERE))), PATH=tools + os.pathsep + os.environ["PATH"], PYTHON=sys.executable,
                   HOME=work, TMPDIR=work)
        for gone in ("BENCH_DATA", "NO_COLOR", "COLUMNS"):
            env.pop(gone, None)
        done = subprocess.run(["sh", os.path.join(folder, "cmd")], cwd=work, env=env, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, capture_output=True)
        left = [f for f in os.listdir(work) if ".tmp-" in f]
        out = done.stdout.decode("utf-8", "replace").replace(work, "WORK")
        err = done.stderr.decode("utf-8", "replace").replace(work, "WORK")
        err = "".join(l for l in err.splitlines(True) if not ANOTHER.match(l))
        return out, err, done.returncode, left


def check(name, bench, refresh):
    folder = os.path.join(CASES, name)
    path = {k: os.path.join(folder, k) for k in OWN}
    try:
        out, err, code, left = run_case(name, bench)
    except subprocess.TimeoutExpired:
        return ["took more than %d s" % LIMIT_S]
    wrong = []
    if code < 0 or (code > 128 and code != 130):
        wrong.append("ended by signal: exit %d" % code)
    if left:
        wrong.append("left behind: " + ", ".join(left))
    for kind, got in (("stdout", out), ("stderr", err)):
        expected = read(path[kind])
        if matches(expected, got):
            continue
        if refresh:
            write(path[kind], got)
        else:
            wrong.append("\n".join(difflib.unified_diff(expected.splitlines(), got.splitlines(),
                                                        kind + " expected", kind, lineterm="", n=1)))
    expected = read(path["exit"], "0\n").strip()
    if str(code) != expected:
        if refresh:
            write(path["exit"], "%d\n" % code, "0\n")
        else:
            wrong.append("exit %d, expected %s" % (code, expected))
    return wrong


def main():
    refresh = "--refresh" in sys.argv[1:]
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    bench = os.environ.get("BENCH", "")
    if not bench or not os.access(bench, os.X_OK):
        print("SKIPPED: BENCH names no program")
        return 77
    names = sorted(n for n in os.listdir(CASES) if os.path.exists(os.path.join(CASES, n, "cmd")))
    names = [n for n in names if not wanted or n in wanted]
    one_in = int(os.environ.get("BENCH_ONE_CASE_IN", "1"))
    if not wanted and one_in > 1:  # where each takes long: fewer, and none that runs whole protocols
        names = [n for n in names if "measure.rounds=" not in read(os.path.join(CASES, n, "cmd"))][::one_in]
    if not names:
        print("no such case")
        return 1
    failed = 0
    for name in names:
        wrong = check(name, os.path.abspath(bench), refresh)
        if wrong:
            failed += 1
            print("FAILED %s\n%s" % (name, "\n".join(wrong)))
    print("%d of %d cases hold" % (len(names) - failed, len(names)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
