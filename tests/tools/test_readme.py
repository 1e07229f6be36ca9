# SPDX-License-Identifier: Apache-2.0
"""The README's Python block runs on a fresh result; its links lead somewhere; its commands and protocols exist."""
# ctest: timeout 120
import os, pathlib, re, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check  # noqa: E402

source, bench = pathlib.Path(os.environ["SOURCE_DIR"]), os.environ.get("BENCH", "")
text = (source / "README.md").read_text()


for link in re.findall(r"\]\(([^)#]+)\)", text):
    check((source / link).exists(), "README links to", link, "which is not there")
for name in re.findall(r"^\| `(\w+)` \|", text, re.M):
    check((source / "protocols" / f"{name}.toml").exists(), "README names the protocol", name)
check("@SESSION@" not in text, "README has no session")
width = max(len(line) for line in re.search(r"^```\n(.*?)^```", text, re.S | re.M).group(1).splitlines())
check(width <= 100, "the README's session is wider than 100 columns:", width)

known = subprocess.run([bench, "help"], capture_output=True, text=True).stdout
for command in re.findall(r"`(?:\./)?bench (\w+)", text):
    check(re.search(rf"\b{command}\b", known), "README names the command", command)

try:
    import h5py, pandas
except ImportError as missing:
    print("SKIPPED part:", missing)
    sys.exit(77)
block = re.search(r"^```python\n(.*?)^```", text, re.S | re.M).group(1)
check(len(block.strip().splitlines()) == 5, "'in five lines' is no longer true")
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "p.toml").write_text(
        'title = "t"\nquestion = "q"\nworkload = { name = "null" }\ndevice = { kind = "fake", time = "2 ms" }\n'
        '[[sweep]]\nworkload.marks = [0, 1]\n[measure]\nrounds = 3\nstop = "samples"\nsamples = 5\n')
    program.run(bench, "run", "p.toml", "-o", "result.h5", "--no-plot", cwd=folder)
    p = program.run(sys.executable, "-c", block, cwd=folder)
    check(re.search(r"marks=1\W+2\.0", p.stdout), "the block printed\n" + p.stdout)
print("the README's block read a result")
