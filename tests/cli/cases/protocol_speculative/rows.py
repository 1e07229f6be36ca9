import collections
import csv
import sys

cases = collections.defaultdict(list)
for row in csv.DictReader(sys.stdin):
    cases[row["case"]].append(row)
for name, rows in cases.items():
    print(f"{name}: {len(rows)} rows, {sorted({r['state'] for r in rows})}, {sorted({r['witness'] for r in rows})}, "
          f"{len({r['output_hash'] for r in rows})} outputs")
