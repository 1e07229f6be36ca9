"""How many published figures are equal, checks hold, and rows are theory: from a result as json on standard input."""
import json
import sys

r = json.load(sys.stdin)
published = [p["verdict"] for p in r["published"]]
checks = [f["verdict"] for f in r["fits"] if f["analysis"] in ("equal", "ratio")]
print("published %d equal of %d, checks %d ok of %d" % (published.count("equal"), len(published), checks.count("ok"),
                                                        len(checks)))
