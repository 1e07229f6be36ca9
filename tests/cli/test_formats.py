#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats of other tools, there and back, against the raw samples of the file: parsers and definitions are Python's own.

Exports are read with json, csv and sqlite3, and each number is computed here from samples and marks as the format defines
it. What is imported and exported again is the same as far as the format holds it.
"""
# ctest: timeout 300
import csv
import io
import json
import os
import pathlib
import sqlite3
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("SKIPPED: numpy or h5py is missing")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check  # noqa: E402

BENCH = program.needed()

PROTOCOL = """
title = "formats"
[model]
shape = "tiny"
[device]
kind = "fake"
launch = "3 us"
noise = 0.05
[measure]
rounds = 3
stop = "samples"
samples = 40
[[case]]
name = "read|a"
workload = { name = "prefill", tokens = 16 }
sweep = [{ workload.batch = [1, 2] }]
[[case]]
name = "write"
workload = { name = "decode", context = 8, steps = 4 }
[[case]]
name = "step"
workload = { name = "step", split = "whole", context = 9 }
[[case]]
name = "text"
workload = { name = "generate", prompt = 8, tokens = 5 }
sweep = [{ workload.batch = [1, 2] }, { workload.mode = ["cached", "recompute"] }]
[[case]]
name = "one"
workload = { name = "generate", prompt = 7, tokens = 1 }
[[case]]
name = "none"
workload = { name = "decode", context = 4, steps = 2 }
device = { memory = "1 kB" }
[[case]]
name = "read"
workload = { name = "ceiling", op = "read", bytes = "64 MiB" }
"""
FIELDS = ("build_commit build_number cpu_info gpu_info backends model_filename model_type model_size model_n_params n_batch "
          "n_ubatch n_threads cpu_mask cpu_strict poll type_k type_v n_gpu_layers n_cpu_moe split_mode main_gpu no_kv_offload "
          "flash_attn devices tensor_split tensor_buft_overrides load_mode embeddings no_op_offload no_host fit_target "
          "fit_min_ctx n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts stddev_ts").split()
EXCLUDED = {"wrong", "skipped", "oom", "timeout", "failed"}


def near(a, b, tolerance=1e-12):
    return a is not None and b is not None and abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-300)


def no_constant(word):
    raise ValueError("%s is no JSON" % word)


def strict(text):
    return json.loads(text, parse_constant=no_constant)


def lines(text):
    return [strict(line) for line in text.splitlines()]


def run(*words, code=0, env=None):
    done = program.run(BENCH, *words, code=code, timeout=120, env=dict(os.environ, **(env or {})))
    return done.stdout, done.stderr


def export(h5, form, how=None, **options):
    return run("export", h5, "--format", form, *(["--as", how] if how else []), **options)


def words(column):
    return [v.decode().rstrip("\0") for v in column[()]]


class Raw:
    """What the file holds, without any summary of ours."""

    def __init__(self, path):
        with h5py.File(path, "r") as f:
            self.case, self.label = words(f["points/case"]), words(f["points/label"])
            self.state, self.workload = words(f["points/state"]), words(f["points/workload"])
            visits = {k: f["visits/" + k][()].tolist() for k in ("visit", "point", "round", "control", "cpu_share")}
            samples = {k: f["samples/" + k][()].tolist() for k in ("visit", "order", "batch", "wall_ns")}
            marks = {k: f["marks/" + k][()].tolist() for k in ("visit", "sample", "mark", "who", "n", "t_ns")}
        self.visits = {}  # point -> visits by round
        for v, p, r, control, share in zip(*visits.values()):
            if not control:
                self.visits.setdefault(p, []).append((r, v, share))
        self.ns = {}  # visit -> ns of its executions
        for v, _, batch, ns in zip(*samples.values()):
            self.ns.setdefault(v, []).append(ns / batch)
        self.marks = {}
        for v, s, mark, who, n, t in zip(*marks.values()):
            self.marks.setdefault((v, s), []).append((mark, who, n, t))

    def point(self, case, label=None):
        return [i for i in range(len(self.case)) if self.case[i] == case and label in (None, self.label[i])][0]

    def visit_times(self, p):
        return [self.ns[v] for _, v, _ in sorted(self.visits[p])]

    def times(self, p):
        return [t for visit in self.visit_times(p) for t in visit]

    def executions(self, p):
        for _, v, _ in sorted(self.visits[p]):
            for s, ns in enumerate(self.ns[v]):
                yield ns, self.marks.get((v, s), [])

    def requests(self, p):
        """ttft, tpot, itl, e2e in ms and tokens, as lists over all requests."""
        out = {k: [] for k in ("ttft", "tpot", "itl", "e2e", "n_out")}
        for _, marks in self.executions(p):
            times = {}
            for mark, who, n, t in marks:
                if mark == 0:
                    times.setdefault(who, []).extend([t * 1e-6] * n)
            for t in times.values():
                out["ttft"].append(t[0])
                out["e2e"].append(t[-1])
                out["n_out"].append(len(t))
                out["itl"] += [b - a for a, b in zip(t, t[1:])]
                if len(t) > 1:
                    out["tpot"].append((t[-1] - t[0]) / (len(t) - 1))
        return out

    def phases(self, p):
        """Mean seconds of the first phase and of the second."""
        first, second = [], []
        for ns, marks in self.executions(p):
            begins = {mark: t for mark, _, _, t in marks if mark < 0}
            first.append(begins[-2] - begins[-1])
            second.append(ns - begins[-2])
        return np.mean(first) * 1e-9, np.mean(second) * 1e-9


def check_llama(raw, h5):
    tests = [("read|a", "batch=1", 16, 0, 0, "pp16"), ("write", None, 0, 4, 8, "tg4 @ d8"), ("step", None, 0, 1, 9, "tg1 @ d9"),
             ("text", "batch=1 mode=cached", 8, 4, 0, "pp8+tg4"), ("one", None, 7, 0, 0, "pp7")]
    text, said = export(h5, "llama-bench")
    rows = strict(text)
    check(len(rows) == len(tests), "rows", [(r["n_prompt"], r["n_gen"]) for r in rows])
    for why in ("of several sequences", "out of memory (oom): none", "everything recomputed", "no language model: read"):
        check(why in said, why, said)
    for row, (case, label, n_prompt, n_gen, n_depth, _) in zip(rows, tests):
        ns = [round(t) for t in raw.times(raw.point(case, label))]
        ts = [1e9 * (n_prompt + n_gen) / t for t in ns]
        check(list(row) == FIELDS + ["use_mmap", "samples_ns", "samples_ts"], "fields", list(row))
        check((row["n_prompt"], row["n_gen"], row["n_depth"]) == (n_prompt, n_gen, n_depth), row)
        check(row["samples_ns"] == ns and all(near(a, b) for a, b in zip(row["samples_ts"], ts)), case, "samples")
        check(abs(row["avg_ns"] - np.mean(ns)) <= 0.5 and abs(row["stddev_ns"] - np.std(ns, ddof=1)) <= 0.5, case, row["avg_ns"])
        check(near(row["avg_ts"], np.mean(ts)) and near(row["stddev_ts"], np.std(ts, ddof=1), 1e-9), case, row["avg_ts"])
        check(row["model_size"] == 211200 and row["model_n_params"] == 105024, row["model_size"], row["model_n_params"])
        check(row["test_time"].endswith("Z") and len(row["test_time"]) == 20, row["test_time"])
        check(row["cpu_strict"] is False and row["use_mmap"] is False and row["load_mode"] == "none", row)
    check(lines(export(h5, "llama-bench", "jsonl")[0]) == rows, "jsonl")
    reader = csv.DictReader(io.StringIO(export(h5, "llama-bench", "csv")[0]))
    check(reader.fieldnames == FIELDS, "csv", reader.fieldnames)
    for cells, row in zip(list(reader), rows):
        for name in FIELDS:
            value = row[name]
            same = cells[name] == value if isinstance(value, str) else \
                cells[name] == str(value).lower() if isinstance(value, bool) else float(cells[name]) == value
            check(same, "csv", name, cells[name], value)
    base = sqlite3.connect(":memory:")
    base.executescript(export(h5, "llama-bench", "sql")[0])
    stored = base.execute("SELECT * FROM llama_bench").fetchall()
    check(len(stored) == len(rows) and [c[1] for c in base.execute("PRAGMA table_info(llama_bench)")] == FIELDS, "sql")
    for values, row in zip(stored, rows):
        check(all(v == row[name] for v, name in zip(values, FIELDS)), "sql", values)
    table = [line.strip("| ").split(" | ") for line in export(h5, "llama-bench", "md")[0].splitlines() if line.startswith("|")]
    check(table[0] == "model size params backend threads test t/s".split(), "md", table[0])
    for cells, row, test in zip(table[2:], rows, tests):
        check(cells[5] == test[5] and cells[1] == "0.20 MiB" and cells[2] == "0.11 M", "md", cells)
        check(cells[6] == "%.2f ± %.2f" % (row["avg_ts"], row["stddev_ts"]), "md", cells)


def check_batched(raw, h5):
    rows = lines(export(h5, "llama-batched-bench", "jsonl")[0])
    table = [line.strip("| ").split(" | ") for line in export(h5, "llama-batched-bench")[0].splitlines()]
    check(table[0] == ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s"], table[0])
    check(len(rows) == 2 and len(table) == 4, rows)
    for row, cells, batch in zip(rows, table[2:], (1, 2)):
        first, second = raw.phases(raw.point("text", "batch=%d mode=cached" % batch))
        check((row["pp"], row["tg"], row["pl"], row["n_kv"], row["is_pp_shared"]) == (8, 4, batch, batch * 12, 0), row)
        check(near(row["t_pp"], first, 1e-9) and near(row["t_tg"], second, 1e-9) and near(row["t"], first + second, 1e-9), row)
        check(near(row["speed_pp"], batch * 8 / first, 1e-9) and near(row["speed_tg"], batch * 4 / second, 1e-9), row)
        check(near(row["speed"], batch * 12 / (first + second), 1e-9), row)
        check([float(c) for c in cells[:4]] == [8, 4, batch, batch * 12] and cells[9] == "%.2f" % row["speed"], cells)


def check_vllm(raw, h5):
    said = export(h5, "vllm", "serve")[1]
    check("request_goodput" in said and "with no prompt: write" in said, said)
    for row in lines(export(h5, "vllm")[0]):
        case, _, label = row["label"].partition(" ")
        x = np.array(raw.times(raw.point(case, label))) * 1e-9
        check(near(row["avg_latency"], x.mean()) and near(row["std_latency"], x.std(), 1e-9), row["label"])
        check(len(row["latencies"]) == len(x) and all(near(a, b) for a, b in zip(row["latencies"], x)), row["label"])
        for q, v in row["percentiles"].items():
            enough = len(x) * min(int(q), 100 - int(q)) / 100 >= 10
            check(near(v, np.percentile(x, int(q))) if enough else v is None, row["label"], q, v, len(x))
        check(list(row["percentiles"]) == ["10", "25", "50", "75", "90", "99"], row["percentiles"])
    prompts = {"read|a": 16, "text": 8, "one": 7}
    rows = lines(export(h5, "vllm", "serve")[0])
    check(len(rows) == 7, [r["label"] for r in rows])
    for row in rows:
        case, _, label = row["label"].partition(" ")
        p = raw.point(case, label)
        r, seconds = raw.requests(p), sum(raw.times(p)) * 1e-9
        n = len(r["e2e"])
        total_in, total_out = n * prompts[case], sum(r["n_out"])
        check((row["completed"], row["failed"], row["request_goodput"]) == (n, 0, None), row)
        check((row["total_input_tokens"], row["total_output_tokens"]) == (total_in, total_out), row)
        check(near(row["duration"], seconds, 1e-9) and near(row["request_throughput"], n / seconds, 1e-9), row)
        check(near(row["output_throughput"], total_out / seconds, 1e-9), row)
        check(near(row["total_token_throughput"], (total_in + total_out) / seconds, 1e-9), row)
        for name, key in (("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2el", "e2e")):
            got = [row["%s_%s_ms" % (k, name)] for k in ("mean", "median", "std", "p99")]
            if not r[key]:  # one token: no gap, not 0
                check(got == [None] * 4, row["label"], name, got)
                continue
            x = np.array(r[key])
            check(near(got[0], x.mean(), 1e-9) and near(got[1], np.median(x), 1e-9) and near(got[2], x.std(), 1e-7), name, got)
            check(near(got[3], np.percentile(x, 99), 1e-9) if len(x) >= 1000 else got[3] is None, name, got)
    for row in lines(export(h5, "aiperf")[0]):
        case, _, label = row["run_info"]["variation_label"].partition(" ")
        p = raw.point(case, label)
        r = raw.requests(p)
        for name, key in (("request_latency", "e2e"), ("time_to_first_token", "ttft"), ("inter_token_latency", "tpot"),
                          ("output_sequence_length", "n_out")):
            if not r[key]:
                check(name not in row, row["run_info"], name)
                continue
            m, x = row[name], np.array(r[key], float)
            check(m["count"] == len(x) and near(m["avg"], x.mean(), 1e-9) and near(m["min"], x.min()), name, m)
            check(near(m["max"], x.max()) and abs(m["std"] - x.std(ddof=1)) <= 1e-9 * x.mean(), name, m)
            for q in (1, 5, 10, 25, 50, 75, 90, 95, 99):
                enough = len(x) * min(q, 100 - q) / 100 >= 10
                check(near(m.get("p%d" % q), np.percentile(x, q), 1e-9) if enough else "p%d" % q not in m, name, q, m)
        check("count" not in row["request_throughput"] and row["request_count"]["avg"] == len(r["e2e"]), row["request_count"])


def check_gbench(raw, h5):
    document = strict(export(h5, "gbench")[0])
    check(document["context"]["executable"] == "bench" and document["context"]["date"].endswith("Z"), document["context"])
    rows = {}
    for b in document["benchmarks"]:
        rows.setdefault(b["run_name"], []).append(b)
    check(len(rows) == len(raw.case), "run names", list(rows))
    bad = [b for b in document["benchmarks"] if b.get("error_occurred")]
    check(len(bad) == 1 and bad[0]["run_name"] == "none/decode" and bad[0]["error_message"].startswith("oom"), bad)
    check(not {"real_time", "cpu_time", "iterations"} & set(bad[0]), "a failed row has no number", bad)
    for p, name in enumerate(rows):
        if raw.state[p] in EXCLUDED:
            continue
        times = raw.visit_times(p)
        real = [np.mean(t) for t in times]
        cpu = [m * share for m, (_, _, share) in zip(real, sorted(raw.visits[p]))]
        single = [b for b in rows[name] if b["run_type"] == "iteration"]
        many = {b["aggregate_name"]: b for b in rows[name] if b["run_type"] == "aggregate"}
        check(len(single) == len(times) == 3 and list(many) == ["mean", "median", "stddev", "cv"], name, list(many))
        for i, b in enumerate(single):
            check((b["name"], b["repetition_index"], b["repetitions"], b["time_unit"]) == (name, i, 3, "ns"), b)
            check(near(b["real_time"], real[i]) and near(b["cpu_time"], cpu[i]) and b["iterations"] == len(times[i]), b)
        for x, key in ((real, "real_time"), (cpu, "cpu_time")):
            check(near(many["mean"][key], np.mean(x)) and near(many["median"][key], np.median(x)), name, key)
            check(near(many["stddev"][key], np.std(x, ddof=1), 1e-7), name, key, many["stddev"])
            check(near(many["cv"][key], np.std(x, ddof=1) / np.mean(x), 1e-7), name, key, many["cv"])
        check(all(b["name"] == "%s_%s" % (name, k) for k, b in many.items()), name, many)
        check(many["cv"]["aggregate_unit"] == "percentage" and many["mean"]["aggregate_unit"] == "time", many)
    check("read|a/prefill/batch:2" in rows and "text/generate/batch:1/mode:cached" in rows, list(rows))


def differences(a, b, tolerance, path=""):
    """Where two JSON values differ: text and structure exactly, numbers within a relative tolerance."""
    if isinstance(a, dict) and isinstance(b, dict):
        for k in a.keys() | b.keys():
            if k not in a or k not in b:
                yield path + "." + k
            else:
                yield from differences(a[k], b[k], tolerance, path + "." + k)
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield path + " length"
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, tolerance, "%s[%d]" % (path, i))
    elif isinstance(a, float) or isinstance(b, float):
        if not near(a, b, tolerance):
            yield "%s %r %r" % (path, a, b)
    elif a != b:
        yield "%s %r %r" % (path, a, b)


def check_back(folder, h5):
    """Exported, imported, exported: the same."""
    for name, form, how, tolerance in (("a", "llama-bench", "json", 0), ("b", "llama-bench", "jsonl", 0), ("c", "gbench", None, 1e-9)):
        first, second = folder / (name + "1.json"), folder / (name + "2.json")
        there, back = folder / (name + "1.h5"), folder / (name + "2.h5")
        export_words = ["--format", form] + (["--as", how] if how else [])
        run("export", h5, *export_words, "-o", first)
        out, _ = run("import", first)
        check(out.strip() == str(there) and not (folder / (name + "1.h5.journal")).exists(), "where it goes", out)
        run("export", there, *export_words, "-o", second)
        read = lines if how == "jsonl" else strict
        found = list(differences(read(first.read_text()), read(second.read_text()), tolerance))
        check(not found, form, how, found[:5])
        run("import", second, "-o", back)
        cells = [sorted(zip(words(f["points/cell"]), words(f["points/hash"]))) for f in (h5py.File(there, "r"), h5py.File(back, "r"))]
        check(cells[0] == cells[1] and len(set(cells[0])) == len(cells[0]), "cells of two imports")
        compared, _ = run("compare", there, back, code=3 if form == "gbench" else 0)  # with its failed row
        check("incomparable" not in compared and " differs:" not in compared, "rows of two imports meet", compared)
        check("1.000" in compared, "the same times", compared)
        shown, _ = run("show", there)
        check("Imported from " + form in shown, shown)
        for other in ("csv", "json", "md", "gbench"):
            export(there, other)
        _, err = export(there, "llama-batched-bench", code=2)
        check("no row of this result fits into llama-batched-bench" in err and "leaves out" in err, err)
        check(strict(export(there, "json")[0])["meta"]["imported_from"] == form, "imported_from")


def check_names(folder):
    """Names that break careless writers come back from every format; a deviation near 1 s is exact."""
    name = 'a,b "c"\nd|e\tf\\ \u00e4\u20ac \'; DROP TABLE llama_bench; --'
    row = {"build_commit": name, "backends": name, "model_type": name, "n_threads": 3, "n_gpu_layers": 0, "n_prompt": 9, "n_gen": 0,
           "model_size": 2 ** 53, "test_time": "2026-01-01T00:00:00Z", "samples_ns": [999999997, 1000000000, 1000000003]}
    (folder / "names.json").write_text(json.dumps([row]))
    run("import", folder / "names.json")
    h5 = folder / "names.h5"
    wanted = (name, name, name, 3, 0, 9, 0, 2 ** 53, "2026-01-01T00:00:00Z")
    fields = list(row)[:-1]
    json_row = strict(export(h5, "llama-bench")[0])[0]
    check(tuple(json_row[f] for f in fields) == wanted, json_row)
    check(json_row["samples_ns"] == row["samples_ns"] and json_row["stddev_ns"] == 3, json_row)
    check(near(json_row["stddev_ts"], np.std([9e9 / t for t in row["samples_ns"]], ddof=1), 1e-9), json_row["stddev_ts"])
    cells = next(csv.DictReader(io.StringIO(export(h5, "llama-bench", "csv")[0], newline="")))
    check(tuple(cells[f] for f in fields) == tuple(map(str, wanted)), cells)
    base = sqlite3.connect(":memory:")
    base.executescript(export(h5, "llama-bench", "sql")[0])
    check(base.execute("SELECT %s FROM llama_bench" % ", ".join(fields)).fetchall() == [wanted], "sql")
    md = export(h5, "llama-bench", "md")[0].splitlines()
    bars = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in md[:3]]
    check(len(set(bars)) == 1 and md[3] == "", "md", md)
    gbench = {"benchmarks": [{"name": name, "real_time": 5, "cpu_time": 4, "time_unit": "us", name: 7}]}
    (folder / "names_g.json").write_text(json.dumps(gbench))
    run("import", folder / "names_g.json")
    back = strict(export(folder / "names_g.h5", "gbench")[0])["benchmarks"][0]
    check((back["name"], back["run_name"], back[name]) == (name, name, 7), back)
    check(near(back["real_time"], 5000) and near(back["cpu_time"], 4000), back)
    for other in ("csv", "tsv", "json", "md"):
        export(folder / "names_g.h5", other)


def check_rounds(folder, h5):
    """The same test in two files is a second round; of another build or machine it is refused."""
    rows = strict(export(h5, "llama-bench")[0])
    paths = [folder / ("round%d.json" % i) for i in range(3)]
    paths[0].write_text(json.dumps(rows))
    paths[1].write_text("\n".join(json.dumps(r) for r in rows))
    out = folder / "rounds.h5"
    run("import", paths[0], paths[1], "-o", out)
    time = strict(export(out, "json")[0])["points"][0]["metrics"]["time"]
    check(time["n_rounds"] == 2 and time["n"] == 2 * len(rows[0]["samples_ns"]), time)
    for key, value, why in (("build_commit", "0badc0de", "two builds"), ("cpu_info", "another", "two machines")):
        paths[2].write_text(json.dumps([dict(r, **{key: value}) for r in rows]))
        _, err = run("import", paths[0], paths[2], "-o", folder / "never.h5", code=2)
        check(why in err and "[0]" in err and not (folder / "never.h5").exists(), err)
    bare = [{k: v for k, v in r.items() if not k.startswith("samples")} for r in rows]
    paths[2].write_text(json.dumps(bare))
    _, err = run("import", paths[2], "-o", folder / "bare.h5")
    check("%d tests without samples_ns" % len(rows) in err, err)
    point = strict(export(folder / "bare.h5", "json")[0])["points"][0]
    time = point["metrics"]["time"]
    check(point["flags"] == "aggregates" and time["n"] is None and time["ci_lo"] is None and time["p90"] is None, point)
    check(near(time["mean"], rows[0]["avg_ns"] * 1e-6) and near(time["stddev"], rows[0]["stddev_ns"] * 1e-6), time)
    again = strict(export(folder / "bare.h5", "llama-bench")[0])
    check(not list(differences(bare, again, 0)), "averages as given", list(differences(bare, again, 0))[:3])


with tempfile.TemporaryDirectory(prefix="bench formats ") as name:
    folder = pathlib.Path(name)
    (folder / "formats.toml").write_text(PROTOCOL)
    h5 = folder / "formats.h5"
    run("run", folder / "formats.toml", "-o", h5, "--no-plot", "-q", code=3)
    raw = Raw(h5)
    check("oom" in raw.state, raw.state)
    for part in (check_llama, check_batched, check_vllm, check_gbench):
        part(raw, h5)
        print(part.__name__)
    check_back(folder, h5)
    print("check_back")
    check_rounds(folder, h5)
    print("check_rounds")
    check_names(folder)
    print("check_names")
    left = [f for f in os.listdir(folder) if ".tmp-" in f]
    check(not left, "left behind", left)
