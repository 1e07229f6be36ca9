#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real prompts: a tiny random model with a tiny tokenizer, and what its workloads make of a text, by NumPy.

The prompts of decode and prefill by the entropy of their ids; what `speculative` looks up, counted by a loop of our own over
greedy tokens of a forward pass in float64; what came out by another draft; a result that is replayed without the text.
"""
import collections
import math
import pathlib
import shutil
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("SKIPPED: numpy or h5py is missing")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import model_file_golden as golden  # noqa: E402
import program  # noqa: E402
from model_golden import random_at, random_key  # noqa: E402
from text_model import BOS, SHAPE, tokens_of, write_model  # noqa: E402

BENCH = program.needed()
TEXT = "".join("%s the %s of the %s, then the other %d\n" % (w, v, u, i) for i, (w, v, u) in enumerate(
    [("here", "red sheep", "tall tree"), ("there", "old shed", "thin thread"), ("and", "sheer cliff", "theatre"),
     ("where", "wheel", "other tent"), ("so", "helper", "time"), ("but", "tea", "hen"), ("if", "heron", "tide"), ("or", "hem", "tie"),
     ("yet", "shelter", "heath"), ("for", "tail", "head")]))


def window(ids, seq, length, bos, seed=1):
    """Tokens of a sequence: from a line of its own on, and around."""
    begins = [0] + [i + 1 for i in range(len(ids) - 1) if ids[i] == 10]
    n = len(begins)
    zero = (random_at(random_key(seed, 0), 0) >> 32) * n >> 32
    step = int(0.6180339887498949 * n)
    while step > 1 and math.gcd(step, n) > 1:
        step -= 1
    at = begins[(zero + seq * max(step, 1)) % n] + seq // n
    head = [BOS] if bos else []
    return head + [ids[(at + i) % len(ids)] for i in range(length - len(head))]


def entropy(ids):
    p = np.array(list(collections.Counter(ids).values())) / len(ids)
    return float(-(p * np.log2(p)).sum())


def greedy(weights, prompt, n):
    text = list(prompt)
    for _ in range(n):
        text.append(int(np.argmax(golden.logits(SHAPE, weights, np.array(text), True)[-1])))
    return text


def lookup(text, longest, most):
    """What followed when the last tokens stood in the text before, the latest time; most tokens, or none."""
    for m in range(min(longest, len(text) - 1), 0, -1):
        for end in range(len(text) - 1, m - 1, -1):
            if text[end - m:end] == text[len(text) - m:]:
                out = []
                for i in range(most):
                    out.append((text + out)[end + i])
                return out
    return []


def speculate(whole, prompt, gamma, longest):
    """Passes over text that is known: drafts and accepted of each."""
    known, passes = prompt, []
    while known < len(whole):
        drafts = lookup(whole[:known], longest, min(gamma, len(whole) - known - 1))
        accepted = 0
        while accepted < len(drafts) and drafts[accepted] == whole[known + accepted]:
            accepted += 1
        passes.append((len(drafts), accepted))
        known += accepted + 1
    return passes


PROTOCOL = """
title = "Text"
[workload]
name = "%s"
%s
[model]
file = "%s"
type = "f32"
kv_type = "f32"
[device]
kind = "%s"
[measure]
rounds = 1
stop = "samples"
samples = 1
"""


def run(folder, name, settings, model="tiny.gguf", device="ref", more=(), expect=0):
    path = folder / "t.toml"
    path.write_text(PROTOCOL % (name, settings, model, device))
    result = folder / "out.h5"
    result.unlink(missing_ok=True)
    done = program.run(BENCH, "run", path.name, "-q", "--no-plot", "-o", result.name, *more, code=expect, cwd=folder, timeout=100)
    return h5py.File(result) if not expect else done.stderr


def value(file, metric):
    s = file["summary"]
    rows = [v for m, v in zip(s["metric"].asstr()[:], s["mean"][:]) if m == metric]
    assert len(rows) == 1, (metric, rows)
    return rows[0]


def near(a, b):
    assert abs(a - b) < 1e-9, (a, b)


def prompts(folder, ids, bos, model):
    text = 'text = "mine.txt"'
    f = run(folder, "decode", text + "\ncontext = 23\nbatch = 13", model)
    near(value(f, "token_entropy"), entropy([t for q in range(13) for t in window(ids, q, 23, bos)]))
    assert "workload.text_digest=" in f["points/cell"].asstr()[0]
    f = run(folder, "prefill", text + "\ntokens = 31\nbatch = 3", model)
    near(value(f, "token_entropy"), entropy([t for q in range(3) for t in window(ids, q, 31, bos)]))


def drafts(folder, weights, ids, bos, model, device):
    prompt, tokens, gamma, longest = 37, 40, 3, 2
    settings = 'text = "mine.txt"\nprompt = %d\ntokens = %d\ngamma = %d\n' % (prompt, tokens, gamma)
    f = run(folder, "speculative", settings + 'draft = "ngram"\nngram = %d' % longest, model, device)
    whole = greedy(weights, window(ids, 0, prompt, bos), tokens)
    passes = speculate(whole, prompt, gamma, longest)
    tested = sum(a + (a < d) for d, a in passes)
    near(value(f, "tokens_per_pass"), tokens / len(passes))
    near(value(f, "acceptance"), sum(a for _, a in passes) / tested)
    near(value(f, "drafts_per_pass"), sum(d for d, _ in passes) / len(passes))
    near(value(f, "undrafted"), sum(d == 0 for d, _ in passes) / len(passes))
    for k in range(gamma):
        of = [a > k for d, a in passes if a + (a < d) > k]
        if of:
            near(value(f, "acceptance_%d" % (k + 1)), sum(of) / len(of))
    near(value(f, "token_entropy"), entropy(whole[prompt:]))
    hashes = {f["points/output_hash"].asstr()[0]}
    assert f["points/witness"].asstr()[0] == "exact"
    for more in ('draft_type = "int8"', 'draft_type = "int4-tensor"', 'draft_layers = 1') if bos else ():
        g = run(folder, "speculative", settings + more, model, device)
        assert g["points/witness"].asstr()[0] == "exact", more
        hashes.add(g["points/output_hash"].asstr()[0])
    assert len(hashes) == 1, hashes
    if bos:
        run(folder, "speculative", settings + 'draft_type = "int4"\ntemperature = 0.7', model, device)


def others(folder, ids):
    """generate and serving: other tokens than of seeded ids, and the same as each alone (witness)."""
    for name, settings in (("generate", "prompt = 20\ntokens = 6\nbatch = 2"),
                           ("serving", "requests = 5\nprompt = [5, 9]\nmost = 6\nslots = 2\nstep = \"1 ms\"")):
        seen = set()
        for text in ('text = "mine.txt"', 'input = "random"', ''):
            f = run(folder, name, settings + "\n" + text)
            assert f["points/witness"].asstr()[0] == "exact", (name, text)
            seen.add(f["points/output_hash"].asstr()[0])
        assert len(seen) == 3, (name, seen)


def replayed(folder):
    text = 'text = "mine.txt"\ncontext = 9'
    f = run(folder, "decode", text)
    before = f["points/output_hash"][0], f["points/cell"][0]
    f.close()
    shutil.move(folder / "out.h5", folder / "kept.h5")
    shutil.move(folder / "mine.txt", folder / "gone.txt")
    program.run(BENCH, "replay", "kept.h5", "-q", "--no-plot", "-o", "again.h5", cwd=folder)
    shutil.move(folder / "gone.txt", folder / "mine.txt")
    with h5py.File(folder / "again.h5") as g:
        assert before == (g["points/output_hash"][0], g["points/cell"][0])
    # Beside the protocol, from another folder.
    (folder / "texts").mkdir()
    (folder / "texts" / "own.txt").write_text("other words here\n" * 9)
    (folder / "elsewhere").mkdir()
    path = folder / "t.toml"
    path.write_text(PROTOCOL % ("decode", 'text = "own"', str(folder / "tiny.gguf"), "ref"))
    program.run(BENCH, "run", "../t.toml", "--dry-run", cwd=folder / "elsewhere")


def refusals(folder):
    def refused(settings, *words, model="tiny.gguf", more=()):
        said = run(folder, "decode", settings, model, more=more, expect=2)
        assert all(w in said for w in words), said

    refused('text = "porse"', "no text is called 'porse'", "did you mean 'prose'", "code")
    refused('text = "./none.txt"', "no text is called")
    (folder / "empty.txt").write_text("")
    refused('text = "empty.txt"', "empty.txt is empty")
    (folder / "binary.txt").write_bytes(b"a\0b")
    refused('text = "binary.txt"', "binary.txt is no text in UTF-8")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    refused('text = "latin.txt"', "latin.txt is no text in UTF-8")
    (folder / "big.txt").write_bytes(b"a" * (1 << 20) + b"a")
    refused('text = "big.txt"', "more than 1048576 bytes")
    refused('text = "mine.txt"\ntext_digest = "0123456789abcdef"', "it is another text")
    refused('input = "text"', "seeded weights read no text", more=("--set", "model.file=", "--set", "model.shape=tiny"))
    # A tokenizer of a family that nobody knows: ids still run, text is refused.
    write_model(folder / "odd.gguf", pre="nobody-knows-this")
    refused('input = "text"', "workload.input = text: ", model="odd.gguf")
    f = run(folder, "decode", "", "odd.gguf")
    assert "text_digest" not in f["points/cell"].asstr()[0]
    (folder / "short.txt").write_text("a b\n")
    f = run(folder, "decode", 'text = "short.txt"\ncontext = 8')
    assert "text_repeats" in f["points/flags"].asstr()[0]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "mine.txt").write_text(TEXT)
        ids = tokens_of(TEXT)
        weights = write_model(folder / "tiny.gguf")
        write_model(folder / "bos.gguf", bos=True)
        for bos, model in ((False, "tiny.gguf"), (True, "bos.gguf")):
            prompts(folder, ids, bos, model)
            drafts(folder, weights, ids, bos, model, "cpu" if bos else "ref")
        others(folder, ids)
        replayed(folder)
        refusals(folder)


if __name__ == "__main__":
    main()
