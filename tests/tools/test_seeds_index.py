# SPDX-License-Identifier: Apache-2.0
"""protocols/seeds/README.md is what its program makes of the protocols; each names its entries and is listed."""
import os
import pathlib
import re
import subprocess
import sys

source, bench = pathlib.Path(os.environ["SOURCE_DIR"]), os.environ.get("BENCH", "")
sys.path[:0] = [str(source / "tools"), str(source / "tests" / "support")]
import seeds_index  # noqa: E402
from program import check  # noqa: E402


written = (source / "protocols" / "seeds" / "README.md").read_text(encoding="utf-8")
check(written == seeds_index.index(), "protocols/seeds/README.md is stale: python3 tools/seeds_index.py --write")
listed = subprocess.run([bench, "list", "protocols", "--format", "tsv"], capture_output=True, text=True).stdout
names = 0
for path in sorted((source / "protocols" / "seeds").glob("*.toml")):
    text = path.read_text(encoding="utf-8")
    names += 1
    check(seeds_index.key(text, "question"), path.name, "asks no question")
    check(seeds_index.entries(text), path.name, "names no entry of the catalogue in its opening comment")
    check("[[analysis]]" in text, path.name, "draws no conclusion")
    line = f"seeds/{path.stem}\t{seeds_index.key(text, 'question')}\n"
    check(line in listed, "bench list protocols lacks", path.stem)
check("[decode_knee](../decode_knee.toml)" in written and "| E19 |" in written, "the index lacks the knee, E19")
for link in re.findall(r"\]\(([^)#]+)\)", written):
    check((source / "protocols" / "seeds" / link).exists(), "the index links to", link, "which is not there")
check(names > 5, "only", names, "protocols were found")
print(names, "protocols are indexed")
