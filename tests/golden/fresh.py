# SPDX-License-Identifier: Apache-2.0
"""Whether a committed NAME_golden.tsv is what NAME_golden.py prints here and now; for the tests beside."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def made_and_kept(name):
    """Both as lists of lines, as many as each other."""
    made = subprocess.run([sys.executable, os.path.join(HERE, f"{name}.py")], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    with open(os.path.join(HERE, f"{name}.tsv"), encoding="utf-8") as file:
        kept = file.read()
    if made.endswith("\n") != kept.endswith("\n"):
        sys.exit(f"{name}.tsv does not end as what {name}.py prints")
    made, kept = made.splitlines(), kept.splitlines()
    if len(made) != len(kept):
        sys.exit(f"{name}.tsv has {len(kept)} lines, and {name}.py prints {len(made)}")
    return made, kept


def check(name, close=None, between=None):
    """Words are equal, or numbers that are close(now, then); between: what parts words, None: any white space."""
    def same(a, b):
        if a == b or close is None:
            return a == b
        try:
            return close(float(a), float(b))
        except ValueError:
            return False

    for number, (a, b) in enumerate(zip(*made_and_kept(name)), 1):
        words = a.split(between), b.split(between)
        if len(words[0]) != len(words[1]) or not all(map(same, *words)) or (close is None and a != b):
            sys.exit(f"{name}.tsv, line {number}, has\n{b}\nand {name}.py prints\n{a}")
