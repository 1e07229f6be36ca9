# SPDX-License-Identifier: Apache-2.0
"""Follows CONTRIBUTING.md literally: writes the files it shows into a copy of the tree, builds, runs both protocols."""
# ctest: timeout 900
import os, pathlib, re, shutil, subprocess, sys, tempfile

source = pathlib.Path(os.environ["SOURCE_DIR"])
text = (source / "CONTRIBUTING.md").read_text()
files = re.findall(r"^`([\w/.]+)`\n```\w+\n(.*?)^```", text, re.S | re.M)
if len(files) < 3:
    sys.exit("FAILED: CONTRIBUTING.md no longer shows its files")


def run(*words, **options):
    p = subprocess.run(words, capture_output=True, text=True, **options)
    if p.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, words))}\n{p.stdout[-3000:]}\n{p.stderr[-3000:]}")
    return p.stdout


with tempfile.TemporaryDirectory(prefix="bench contributing ") as folder:
    tree = pathlib.Path(folder) / "tree"
    tracked = subprocess.run(["git", "-C", str(source), "ls-files", "-z"], capture_output=True).stdout.decode().split("\0")
    names = [n for n in tracked if n and (source / n).is_file()]
    if not names:  # no git here: a tarball
        shutil.copytree(source, tree, ignore=shutil.ignore_patterns("build", "runs", ".git"))
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, tree / name)
    for name, body in files:
        if (tree / name).exists():
            sys.exit(f"FAILED: {name} is in the tree already")
        (tree / name).write_text(body)
    build = pathlib.Path(folder) / "build"
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBENCH_TESTS=OFF")
    run("cmake", "--build", build, "--target", "bench", "-j", "2")
    bench, env = build / "bench", dict(os.environ, BENCH_DATA=str(tree))
    if "stride" not in run(bench, "list", "workloads", env=env):
        sys.exit("FAILED: the new workload is not listed")
    for name, _ in files:
        if not name.startswith("protocols/"):
            continue
        out = run(bench, "run", tree / name, "--no-plot", "-o", pathlib.Path(folder) / (pathlib.Path(name).stem + ".h5"),
                  env=env, cwd=folder)
        title = re.search(r'title\s*=\s*"(.*?)"', (tree / name).read_text()).group(1)
        if title not in out:
            sys.exit(f"FAILED: {name} shows no table\n{out}")
print(len(files), "files of CONTRIBUTING.md written, built and run")
