#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The index protocols/seeds/README.md, made from the protocols themselves.

    python3 tools/seeds_index.py            prints it
    python3 tools/seeds_index.py --write    rewrites the file

A protocol's question is its own; the entries of the catalogue are those that its opening comment names; the picture is
docs/seeds/NAME.svg, where there is one.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SEEDS = SOURCE / "protocols" / "seeds"
HEAD = """# The seeds' experiments

Three documents about inference of transformers were the seeds of this harness; a catalogue numbers their experiments
E01 to E64. Each protocol here rebuilds some of them and shows its own table and picture on any machine. This page is
written by `tools/seeds_index.py` from the protocols; a test compares.

What was published stands beside ours under `published`: exact figures fail the run where they differ, measured ones
are compared as ratios. Where a table is lost in print, its values are computed anew from the stated formulas: those
are checks whose source says "rebuilt", "ours" or "formula", never published figures. Rows without a measurement say
`theory`.

`bench plan MODEL --sheet NAME` prints the ledger of any model on any card.

| protocol | question | entries | command | picture |
|---|---|---|---|---|
"""


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


def row(path):
    text = path.read_text(encoding="utf-8")
    name = path.stem
    picture = SOURCE / "docs" / "seeds" / (name + ".svg")
    shown = f"[{name}.svg](../../docs/seeds/{name}.svg)" if picture.exists() else ""
    return (f"| [{name}]({name}.toml) | {key(text, 'question')} | {', '.join(entries(text))} "
            f"| `bench run seeds/{name}` | {shown} |")


def index():
    return HEAD + "\n".join(row(p) for p in sorted(SEEDS.glob("*.toml"))) + "\n"


def main():
    if "--write" in sys.argv[1:]:
        (SEEDS / "README.md").write_text(index(), encoding="utf-8")
    else:
        sys.stdout.write(index())


if __name__ == "__main__":
    main()
