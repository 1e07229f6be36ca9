# SPDX-License-Identifier: Apache-2.0
"""examples/ci: the scripts gate a change and keep a history, in a repository of their own; the workflow calls them by names and words
that exist."""
# ctest: timeout 120
import os, pathlib, re, shutil, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import check  # noqa: E402

source, bench = pathlib.Path(os.environ["SOURCE_DIR"]), os.environ.get("BENCH", "")
PROTOCOL = """title = "t"
question = "q"
workload = { name = "null" }
device = { kind = "fake", time = "2 ms", noise = 0.002 }
measure = { rounds = 5, stop = "samples", samples = 20 }
[[sweep]]
workload.marks = [0, 1]
"""


workflow = (source / "examples/ci/github.yml").read_text()
readme = (source / "README.md").read_text()
for script in re.findall(r"sh (examples/ci/\w+\.sh)", workflow + readme):
    check((source / script).is_file(), "named and not there:", script)
check(re.search(r"fetch-depth: 0", workflow), "without history there is no commit to compare with")

with tempfile.TemporaryDirectory() as name:
    tree, summary = pathlib.Path(name, "a tree"), pathlib.Path(name, "summary.md")
    shutil.copytree(source / "examples", tree / "examples")
    (tree / "p.toml").write_text(PROTOCOL)
    env = {**os.environ, "BENCH_NEW": bench, "GITHUB_STEP_SUMMARY": str(summary), "HOME": name,
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}

    def run(*words, **more):
        return subprocess.run(words, cwd=tree, env={**env, **more}, capture_output=True, text=True)

    # The commit that the change left has a program that is built there and then, by its own ./bench --build.
    (tree / "bench").write_text('#!/bin/sh\n[ "$1" = --build ] || exit 9\nmkdir -p build/release\ncp "$REAL" build/release/bench\n')
    (tree / "bench").chmod(0o755)
    (tree / ".gitignore").write_text("build/\nnights/\n")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "before"), ("checkout", "-qb", "change"),
                  ("commit", "-q", "--allow-empty", "-m", "after")):
        p = run("git", *words)
        check(p.returncode == 0, words, p.stderr)
    p = run("sh", "examples/ci/pull_request.sh", "main", "p.toml", REAL=bench)
    check(p.returncode == 0, "the same program twice", p.returncode, p.stdout, p.stderr)
    check(p.stdout.count("pass") >= 2, p.stdout)
    check("| " in summary.read_text() and "pass" in summary.read_text(), "no summary", summary.read_text())
    check(len(list((tree / "build/gate").glob("*.h5"))) == 1, "the result is not kept")
    p = run("sh", "examples/ci/pull_request.sh", "main", "p.toml", "--b", "device.time=2.2ms", REAL=bench)
    check(p.returncode == 1 and "slower" in p.stdout, "10 % slower:", p.returncode, p.stdout, p.stderr)
    p = run("sh", "examples/ci/pull_request.sh", "no_such_revision", "p.toml", REAL=bench)
    check(p.returncode not in (0, 1), "a revision that is not there", p.returncode)

    for night in (1, 2):
        p = run("sh", "examples/ci/nightly.sh", "nights", "p.toml", BENCH=bench)
        check(p.returncode == 0, p.stdout, p.stderr)
        time.sleep(1.1)  # a file is named by its second
        over = f"over {night} comparison{'s' if night > 1 else ''}: new / anchor"
        check(over in p.stdout and "anchor: binary" in p.stdout, "the history has not this night", p.stdout)
    check(len(list((tree / "nights").glob("*.h5"))) == 2 and (tree / "nights/anchor").exists(), "a file a night")
    p = run("sh", "examples/ci/nightly.sh", "nights", "p.toml", "--set", "workload.no_such=1", BENCH=bench)
    check(p.returncode == 2, "a mistake of the protocol", p.returncode, p.stdout, p.stderr)
    p = run("sh", "examples/ci/nightly.sh", BENCH=bench)
    check(p.returncode not in (0, 1) and "where are the results" in p.stderr, "no folder", p.returncode, p.stderr)
print("the examples gate, and keep a history")
