#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every protocol of protocols/seeds and writes one page of them all: `make seeds`.

    python3 tools/make_seeds.py                     all of them, into runs/seeds/, runs/seeds.html and runs/seeds.md
    python3 tools/make_seeds.py paging batching     only these; the page shows the others as they are
    python3 tools/make_seeds.py --again             also those whose result is whole and of this build

A protocol whose result is whole, of this program and of this text is not run again; one that was interrupted goes on
where it was. One that fails is shown as failed and ends the whole with exit 1, after the others. Ctrl-C ends the
protocol under way, keeps what it measured, writes the page, and ends with 130.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import seeds_index
import seeds_page

SOURCE = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"ms": 1e-3, "s": 1, "min": 60, "h": 3600}
DEFAULT_BUDGET = 60  # of [measure]
LEAST_BUDGET = 10  # a protocol gets no less, however many there are
interrupted = False  # Ctrl-C came


def digest(data):
    return hashlib.sha256(data).hexdigest()


def program_of(bench):
    """The binary behind the launcher of the repository, which is a script."""
    path = pathlib.Path(bench).resolve()
    if path.read_bytes()[:2] == b"#!":
        path = path.parent / "build" / "release" / "bench"
    return path


def seconds_of(text):
    """What [measure] grants a protocol; 0 where nothing is measured, so that nothing takes long."""
    found = re.search(r'^budget\s*=\s*"\s*([0-9.]+)\s*([a-z]+)\s*"', text, re.M)
    if found and found.group(2) in UNITS:
        return float(found.group(1)) * UNITS[found.group(2)]
    return DEFAULT_BUDGET if re.search(r"^\[measure\]", text, re.M) else 0


class Protocol:
    """One protocol: its text, and what is known of its last run (NAME.json beside its results)."""

    def __init__(self, path, folder, sets):
        path = path.resolve()
        self.path = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path  # what a result says of its origin
        self.name, self.folder, self.sets = path.stem, folder, sets
        self.text = path.read_text(encoding="utf-8")
        self.question = seeds_index.key(self.text, "question")
        self.title = seeds_index.key(self.text, "title") or self.name
        self.entries = seeds_index.entries(self.text)
        self.budget = seconds_of(self.text)  # 0 once it is known that nothing is sampled
        try:
            self.state = json.loads((folder / f"{self.name}.json").read_text(encoding="utf-8"))
            self.state["exit"] + 0, self.state["file"] + "", self.state["identity"] + ""
        except (OSError, ValueError, KeyError, TypeError):
            self.state = None  # never run, or nothing that can be trusted
        if self.state and not (self.result().exists() or self.result().with_suffix(".journal").exists()):
            self.state = None

    def result(self):
        return self.folder / (self.state["file"] + ".h5")

    def identity(self, program):
        return digest(json.dumps([program, digest(self.text.encode()), self.sets]).encode())

    def whole(self, program):
        return bool(self.state) and self.state["exit"] == 0 and self.state["identity"] == self.identity(program)

    def resumable(self, program):
        return (bool(self.state) and self.state["exit"] == 130 and self.state["identity"] == self.identity(program)
                and self.result().with_suffix(".journal").exists())

    def keep(self, state):
        """Under its own name only when it is whole, as results are."""
        self.state = state
        path = self.folder / f"{self.name}.json"
        aside = path.with_suffix(".json.part")
        aside.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(aside, path)


class Progress:
    """One line that changes on a terminal; a line at the beginning and one at the end elsewhere."""

    def __init__(self, of, quiet):
        self.of, self.n, self.quiet, self.begin = of, 0, quiet, time.monotonic()
        self.live = sys.stderr.isatty() and not quiet

    def start(self, words):
        self.n += 1
        self.words, self.since = f"[{self.n}/{self.of}] {words}", time.monotonic()
        if not self.live and not self.quiet:
            print(self.words, "…", file=sys.stderr, flush=True)

    def tick(self):
        if self.live:
            now = time.monotonic()
            print(f"\r\033[K{self.words} … {now - self.since:.0f} s   (all: {now - self.begin:.0f} s; Ctrl-C keeps what "
                  "is measured)", end="", file=sys.stderr, flush=True)

    def end(self, words):
        if self.quiet:
            return
        print("\r\033[K" if self.live else "", f"{self.words}: {words} · {time.monotonic() - self.since:.1f} s", sep="",
              file=sys.stderr, flush=True)


def stop(*_):
    global interrupted
    interrupted = True


def ended(child):
    """Waits half a second at most, and without waking: a core is being measured."""
    try:
        end = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # an old kernel
        time.sleep(0.5)
        return child.poll() is not None
    try:
        return bool(select.select([end], [], [], 0.5)[0])
    finally:
        os.close(end)


def wait(child, limit, progress):
    """Until the child ends. Ctrl-C and the limit ask it to end as Ctrl-C does, once, which keeps what it measured; if
    it does not end then, it is ended. It has a session of its own, so that it is asked once and not twice."""
    asked = None
    begin = time.monotonic()
    while not ended(child):
        progress.tick()
        now = time.monotonic()
        if not asked and (interrupted or now - begin > limit):
            asked = "interrupted" if interrupted else f"did not end within {limit:.0f} s"
            since = now
            child.send_signal(signal.SIGINT)
        elif asked and now - since > 60:
            child.kill()
    return child.wait(), asked


def last_words(path):
    """The last lines that a program left on stderr, without what would move a terminal's cursor."""
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = [re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "", line).strip() for line in text.splitlines()]
    return "\n".join([line for line in lines if line][-12:])


def free_stem(folder, name):
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for k in range(1, 1000):
        stem = f"{name}-{stamp}" + (f"-{k}" if k > 1 else "")
        if not any((folder / (stem + end)).exists() for end in (".h5", ".journal")):
            return stem
    raise SystemExit(f"make_seeds: no free name for a result of {name} in {folder}")


def measure(p, options, program, progress, budget):
    """Runs or resumes one protocol and keeps what came of it."""
    goes_on = p.resumable(program) and not options.again
    file = p.state["file"] if goes_on else free_stem(options.folder, p.name)
    out = options.folder / (file + ".h5")
    words = [options.bench]
    if goes_on:
        words += ["resume", str(out), "--quiet"]
    else:
        words += ["run", str(p.path), "-o", str(out), "--quiet"]
        for one in p.sets + ([f"measure.budget={budget:.0f} s"] if budget < p.budget else []):
            words += ["--set", one]
    said = options.folder / (p.name + ".err")
    begin = time.monotonic()
    before = p.state.get("seconds", 0) if goes_on else 0
    state = {"identity": p.identity(program), "file": file, "exit": 130, "seconds": before, "reason": "", "sets": p.sets,
             "budget": min(budget, p.budget), "declared": p.budget}
    p.keep(state)  # if nobody lives to tell, it was interrupted
    with open(said, "wb") as err:
        child = subprocess.Popen(words, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                                 start_new_session=True)
        code, asked = wait(child, 300 + 5 * p.budget, progress)
    if asked and not interrupted and code in (0, 130):
        code = 3  # it took too long: not to be gone on with
    state["reason"] = "" if code == 0 else "\n".join(t for t in (asked or "", last_words(said)) if t)
    said.unlink()
    if goes_on and code == 2:  # it cannot be gone on with here
        p.state = None
        return measure(p, options, program, progress, budget)
    state.update(exit=code, seconds=round(before + time.monotonic() - begin, 1))
    if not out.exists():
        state["file"] = ""  # nothing was run
    p.keep(state)
    return code


def say(code):
    return {0: "whole", 2: "refused: a mistake in the protocol or in the settings", 3: "failed: a row or a check",
            130: "interrupted"}.get(code, f"failed: exit {code}")


def ask_for_budgets(protocols, options):
    """One round of exact rows takes what it takes: only what is sampled spends its budget."""
    for p in protocols:
        words = [options.bench, "run", str(p.path), "--dry-run"] + [w for one in p.sets for w in ("--set", one)]
        said = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True, errors="replace", check=False).stdout
        if re.search(r"× 1 round ", said):
            p.budget = 0


def share_of(left, seconds):
    """What part of its budget each of those left may spend, so that they end in time."""
    wanted = sum(p.budget for p in left)
    return min(1.0, max(0.0, seconds) / wanted) if wanted > 0 else 1.0


def parse(argv):
    parser = argparse.ArgumentParser(prog="make_seeds.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="protocols to run; default: all")
    parser.add_argument("--bench", default=os.environ.get("BENCH") or str(SOURCE / "bench"), help="the program")
    parser.add_argument("--protocols", type=pathlib.Path, default=SOURCE / "protocols" / "seeds", help="folder of *.toml")
    parser.add_argument("--out", type=pathlib.Path, default=SOURCE / "runs", help="folder of the pages and of seeds/")
    parser.add_argument("--minutes", type=float, default=20, help="all together at most, about; default: 20")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="as of bench run")
    parser.add_argument("--again", action="store_true", help="run also what is whole and of this build")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(argv)
    if not 0 < options.minutes <= 24 * 60:
        parser.error("--minutes takes a number of minutes, more than 0, at most 1440")
    paths = sorted(options.protocols.glob("*.toml"))
    known = [p.stem for p in paths]
    for name in options.names:
        if name not in known:
            parser.error(f"no protocol is called '{name}' in {options.protocols} (it has {', '.join(known) or 'none'})")
    if not paths:
        parser.error(f"{options.protocols} has no protocol")
    return options, paths


def main(argv):
    options, paths = parse(argv)
    options.out, options.bench = options.out.resolve(), str(pathlib.Path(options.bench).resolve())
    options.folder = options.out / "seeds"
    options.folder.mkdir(parents=True, exist_ok=True)
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, stop)
    # The launcher builds the program first where it is absent.
    asked = subprocess.run([options.bench, "list", "devices"], stdout=subprocess.DEVNULL, stderr=sys.stderr, check=False)
    if asked.returncode:
        raise SystemExit(f"make_seeds: {options.bench} does not run")
    program = digest(program_of(options.bench).read_bytes())
    protocols = [Protocol(path, options.folder, options.sets) for path in paths]
    chosen = [p for p in protocols if not options.names or p.name in options.names]
    to_run = [p for p in chosen if options.again or not p.whole(program)]
    ask_for_budgets(to_run, options)
    share, limit = share_of(to_run, 60 * options.minutes), 60 * options.minutes
    if share < 1 and not options.quiet:
        print(f"all together were granted {sum(p.budget for p in to_run) / 60:.0f} min: budgets are cut to about "
              f"{100 * share:.0f} % for --minutes {options.minutes:g}", file=sys.stderr)
    progress = Progress(len(to_run), options.quiet)
    for i, p in enumerate(to_run):
        if interrupted:
            break
        progress.start(f"{p.name}: {p.question}")
        share = share_of(to_run[i:], limit - (time.monotonic() - progress.begin))
        code = measure(p, options, program, progress, max(LEAST_BUDGET, p.budget * share))
        progress.end(say(code))
    shown = [seeds_page.read(p, options, p.identity(program)) for p in protocols]
    seeds_page.write(shown, options)
    failed = [s.name for s in shown if s.state == "failed" and (not options.names or s.name in options.names)]
    if not options.quiet:
        print(options.out / "seeds.html", options.out / "seeds.md", sep="\n")
    for name in failed:
        print(f"make_seeds: {name} failed: {options.out / 'seeds.html'}#{name}", file=sys.stderr)
    return 130 if interrupted else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
