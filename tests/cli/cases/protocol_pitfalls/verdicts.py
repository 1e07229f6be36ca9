"""The verdicts of a result's checks, by analysis: from a result as json on standard input."""
import collections
import json
import sys

counts = collections.Counter((f["analysis"], f["verdict"]) for f in json.load(sys.stdin)["fits"])
print("  " + ", ".join(f"{analysis} {verdict} {n}" for (analysis, verdict), n in sorted(counts.items())))
