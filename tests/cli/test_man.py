#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page: groff has nothing to say against it, and what help names is in it, as help spells it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402

BENCH, PAGE = program.needed(), os.path.join(os.environ.get("SOURCE_DIR", "."), "docs", "bench.1")


def bench(*words):
    return program.run(BENCH, *words).stdout


def rendered():
    """The page as a terminal shows it, on lines so long that nothing is broken."""
    words = ["groff", "-man", "-Tutf8", "-ww", "-rLL=2000n", "-P-c", "-P-b", "-P-u", PAGE]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C.UTF-8"))
    if done.returncode or done.stderr:
        raise SystemExit("FAILED: groff: %s" % done.stderr)
    return re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)


with open(PAGE, encoding="ascii") as f:  # whatever the locale of the reader
    source = f.read()
if not shutil.which("groff"):
    print("SKIPPED: groff is not installed")
    sys.exit(77)
page = rendered()
flat = " ".join(page.split())
missing = []
commands = re.findall(r"^  ([a-z][a-z-]+)  +\S", bench("help").split("Exit codes")[0].split("More")[0], re.M)
commands = [c for c in commands if c != "bench"]
if len(commands) < 8:
    raise SystemExit("FAILED: commands of bench help: %s" % commands)
for command in commands:
    if not re.search(r"^\s+bench %s\b" % command, page, re.M) or not re.search(r"^   %s$" % command, page, re.M):
        missing.append(command)
    text = bench(command, "--help")
    for line in re.findall(r"^  (-.*?)(?:   *\S.*)?$", text, re.M):
        if line not in page:
            missing.append("%s: %s" % (command, line))
    usage, brief = text.split("\n\n")[0].split("\n", 1)
    if usage not in flat or " ".join(brief.split())[1:] + "." not in flat:
        missing.append("%s: %s" % (command, usage))
for row in bench("list", "formats", "--format", "tsv").splitlines()[1:]:
    name, forms, brief = row.split("\t")
    if name not in page or (forms and "[%s]" % forms not in flat) or brief[1:] not in flat:
        missing.append("format " + name)
if missing:
    raise SystemExit("FAILED: not on the page: %s" % missing)
print("%d commands, %d lines" % (len(commands), source.count("\n")))
