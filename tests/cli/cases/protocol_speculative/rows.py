import collections
import csv
import sys

cases = collections.defaultdict(set)
for row in csv.DictReader(sys.stdin):
    cases[row["case"]].add((row["point"], row["state"], row["witness"]))
for name, rows in cases.items():
    print(f"{name}: {len(rows)} rows,", *sorted({" ".join(r[1:]) for r in rows}))
