#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the seeds' exact values for the ledger from the independent oracle's records.

    python3 tests/golden/expected_seed.py expected.json > tests/golden/expected_seed.tsv

Lines: id TAB inputs as `name=value` separated by blanks TAB value TAB what.
"""
import json
import re
import sys

WANTED = re.compile(r"E(01\.[123]|04|09|10|11|12|13|14|16|25|26|27|28)(\.|$)")


def text(value):
    return "x".join(map(str, value)) if isinstance(value, list) else repr(value)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        records = json.load(file)["records"]
    print("# Written by tests/golden/expected_seed.py; do not edit.")
    for r in records:
        if WANTED.match(r["id"]):
            inputs = " ".join("%s=%s" % (k, text(v)) for k, v in r["inputs"].items())
            print(r["id"], inputs or "-", repr(r["value"]), r["what"], sep="\t")


if __name__ == "__main__":
    main()
