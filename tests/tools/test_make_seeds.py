# SPDX-License-Identifier: Apache-2.0
"""tools/make_seeds.py on small protocols: its page is whole HTML of its own, what failed is shown and ends with 1, what
is whole is not run again, and what was interrupted goes on."""
# ctest: timeout 120
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import check  # noqa: E402
from program import run as ended  # noqa: E402

source, bench = pathlib.Path(os.environ["SOURCE_DIR"]), os.environ.get("BENCH", "")
program = [sys.executable, str(source / "tools" / "make_seeds.py"), "--bench", bench]
VOID = {"meta", "br", "hr", "img", "link", "input"}

COUNTED = """# Seeds E48 (made small).
title    = "Tem <perature> & \\"ratios\\""
question = "What does <script>alert(1)</script> do to a ratio | of two?"
[workload]
name = "temperature"
[[sweep]]
workload.temperature = [1, 2]
[[analysis]]
kind   = "equal"
metric = "ratio"
with   = "power"
tolerance = 1e-9
[[published]]
what   = "top over third"
metric = "ratio"
at     = { workload.temperature = 1 }
value  = %s
kind   = "exact"
source = "seed <E48>"
"""
TIMED = """# Seeds E59.
title    = "Timed"
question = "Is a script kept?"
workload = { name = "null" }
device   = { kind = "fake", time = "%s", real_time = %s }
[[sweep]]
workload.marks = [0, 1]
[measure]
budget  = "%s"
rounds  = %d
stop    = "samples"
samples = 5
warmups = 1
[[analysis]]
kind   = "ratio"
metric = "time"
at     = "workload.marks=1"
over   = "workload.marks=0"
"""


class Page(HTMLParser):
    """Whether every element is closed in its order, ids are single, and nothing is fetched."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.words, self.tags, self.outside = [], [], [], [], [], []
        self.feed(text)
        self.close()
        check(not self.open, "elements are left open:", self.open)

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "xlink:href") and value.startswith("#"):
                self.links.append(value[1:])
            elif name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                self.outside.append(value)

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, "</%s> closes" % tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def parse(out):
    text = (out / "seeds.html").read_text(encoding="utf-8")
    page = Page(text)
    check(text.startswith("<!DOCTYPE html>") and 'charset="utf-8"' in text and "color-scheme: light dark" in text, "head")
    check(len(set(page.ids)) == len(page.ids), "ids twice:", sorted(i for i in page.ids if page.ids.count(i) > 1)[:5])
    check(set(page.links) <= set(page.ids), "links lead nowhere:", sorted(set(page.links) - set(page.ids)))
    check(not page.outside and "script" not in page.tags and "@import" not in text and "http-equiv" not in text,
          "the page fetches", page.outside)
    return page, " ".join(" ".join(page.words).split())


def run(out, protocols, *words, expect=0, **more):
    return ended(*program, "--protocols", protocols, "--out", out, *words, code=expect, **more)


def results(out):
    return sorted(f.name for f in (out / "seeds").glob("*.h5"))


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder) / "with a space"
    protocols, out = folder / "protocols", folder / "out"
    protocols.mkdir(parents=True)
    (protocols / "counted.toml").write_text(COUNTED % "2.24")
    (protocols / "timed.toml").write_text(TIMED % ("2 ms", "false", "5 s", 3))

    # Two that are whole: every word of theirs is on the page, escaped.
    run(out, protocols)
    page, words = parse(out)
    for word in ('Tem <perature> & "ratios"', "What does <script>alert(1)</script> do", "seed <E48>", "ratio = power", "E48",
                 "1 of 1 checks hold; 1 of 1 published exact figures are equal", "bench replay out/seeds/counted-", "E59",
                 "2 of 2 protocols are whole"):
        check(word in words, "the page lacks", word, "\n", words)
    check({"counted", "timed", "top"} <= set(page.ids), "no anchors", page.ids)
    check(("svg" in page.tags) == (shutil.which("gnuplot") is not None), "pictures")
    check(not [f for f in out.rglob("*.part")] and not [f for f in out.rglob("*.err")], "something is left behind")
    markdown = (out / "seeds.md").read_text()
    check("<script>" not in markdown and "ratio \\| of two" in markdown and "](#timed)" in markdown, markdown)

    # They are not run again; another text, another setting or --again is another run.
    first = results(out)
    check(len(first) == 2, first)
    p = run(out, protocols)
    check(results(out) == first and "[" not in p.stderr, "run again:", p.stderr)
    run(out, protocols, "timed", "--set", "device.time=3 ms")
    check(len(results(out)) == 3, results(out))
    (protocols / "counted.toml").write_text(COUNTED % "2.3")  # a figure that differs, and a mistake
    (protocols / "broken.toml").write_text(COUNTED.replace("question", "qestion") % "2.24")

    # What fails is shown with its reason, and the others run all the same. Without gnuplot pictures are text.
    plain = folder / "bin"
    plain.mkdir()
    env = dict(os.environ, PATH=str(plain))
    p = run(out, protocols, expect=1, env=env)
    for name in ("broken", "counted"):
        check(f"make_seeds: {name} failed" in p.stderr, p.stderr)
    check("timed failed" not in p.stderr and "[3/3] timed" in p.stderr, p.stderr)
    page, words = parse(out)
    for word in ("unknown key 'qestion'", "published as exact: 2.3, here 2.2396", "DIFFERS", "1 of 3 protocols are whole"):
        check(word in words, "the page lacks", word, "\n", words)
    check("svg" not in page.tags and "| o" in words.replace("  ", " "), "a picture of characters", words)
    check("**" in (out / "seeds.md").read_text(), "Markdown")

    # Ctrl-C ends the protocol under way and keeps what it has; the next call goes on with it.
    shutil.rmtree(protocols)
    protocols.mkdir()
    (protocols / "long.toml").write_text(TIMED % ("40 ms", "true", "40 s", 3))
    (protocols / "never.toml").write_text(COUNTED % "2.24")
    child = subprocess.Popen(program + ["--protocols", str(protocols), "--out", str(out)], stderr=subprocess.PIPE, text=True)
    journal, deadline = None, time.monotonic() + 30
    while time.monotonic() < deadline and not journal:
        found = [f for f in (out / "seeds").glob("long-*.journal") if f.stat().st_size > 20000]
        journal = found[0] if found else None
        time.sleep(0.05)
    check(journal, "nothing was measured")
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    check(child.returncode == 130, "exit", child.returncode, said)
    page, words = parse(out)
    check("interrupted" in words and "not run yet" in words, words)
    state = json.loads((out / "seeds" / "long.json").read_text())
    check(state["exit"] == 130 and journal.exists(), state)
    run(out, protocols, expect=0)
    state = json.loads((out / "seeds" / "long.json").read_text())
    check(state["exit"] == 0 and state["file"] == journal.stem and not journal.exists(), "it was not gone on with", state)

    # Mistakes are one sentence, and 2.
    for wrong in (["nobody"], ["--minutes", "0"], ["--minutes", "nan"]):
        p = run(out, protocols, *wrong, expect=2)
        check(re.search(r"make_seeds.py: error: ", p.stderr), p.stderr)
print("pages of", len(page.ids), "places were read")
