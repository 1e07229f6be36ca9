#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The index protocols/seeds/README.md, made from the protocols themselves.

    python3 tools/seeds_index.py            prints it
    python3 tools/seeds_index.py --write    rewrites the file

A protocol's question is its own; the entries of the catalogue are those that its opening comment names; the picture is
docs/seeds/NAME.svg or docs/NAME.svg, where there is one. Of protocols/ those that name entries are in a second table.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SEEDS = SOURCE / "protocols" / "seeds"
HEAD = """# The seeds' experiments

Three documents about inference of transformers were the seeds of this harness; a catalogue numbers their experiments
E01 to E64. Each protocol here rebuilds some of them and shows its own table and picture on any machine; those of use
beyond the seeds lie one folder above, and stand in the second table. This page is written by `tools/seeds_index.py`
from the protocols; a test compares.

`./bench run seeds/NAME` in the root of the repository runs one, `--dry-run` shows its rows; results go to `runs/`.
`make seeds` runs them all, 20 minutes at most on two cores, and writes one page of them, `runs/seeds.html` (and
`runs/seeds.md`): question, picture, what was published beside ours, checks. What is whole and of the same build is not
run again; `python3 tools/make_seeds.py --help` has the rest.

What was published stands beside ours under `published`: exact figures fail the run where they differ, measured ones
are compared as ratios. Where a table is lost in print, its values are computed anew from the stated formulas: those
are checks whose source says "rebuilt", "ours" or "formula", never published figures. Rows without a measurement say
`theory`.

`./bench plan MODEL --sheet NAME` prints the ledger of any model on any card.

"""
COLUMNS = "| protocol | question | entries | command | picture |\n|---|---|---|---|---|\n"


def comment(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    return " ".join(lines)


def key(text, name):
    found = re.search(r'^%s\s*=\s*"(.*)"$' % name, text, re.M)
    return found.group(1) if found else ""


def entries(text):
    """E09, E10, E25-E28 in the order in which the comment names them, ranges kept."""
    found = re.findall(r"\bE\d\d(?:\s*(?:-|to)\s*E\d\d)?", comment(text))
    return list(dict.fromkeys(re.sub(r"\s*(-|to)\s*", "-", e) for e in found))


def picture(name):
    for path in (f"docs/seeds/{name}.svg", f"docs/{name}.svg"):
        if (SOURCE / path).exists():
            return f"[{name}.svg](../../{path})"
    return ""


def row(path):
    text, name = path.read_text(encoding="utf-8"), path.stem
    folder, prefix = ("", "seeds/") if path.parent == SEEDS else ("../", "")
    return (f"| [{name}]({folder}{name}.toml) | {key(text, 'question')} | {', '.join(entries(text))} "
            f"| `./bench run {prefix}{name}` | {picture(name)} |\n")


def table(folder):
    return COLUMNS + "".join(row(p) for p in sorted(folder.glob("*.toml")) if entries(p.read_text(encoding="utf-8")))


def index():
    return HEAD + table(SEEDS) + "\n" + table(SEEDS.parent)


def main():
    if "--write" in sys.argv[1:]:
        (SEEDS / "README.md").write_text(index(), encoding="utf-8")
    else:
        sys.stdout.write(index())


if __name__ == "__main__":
    main()
