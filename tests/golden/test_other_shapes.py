# SPDX-License-Identifier: Apache-2.0
"""Workloads of the seeds' protocols at drawn points, none of which is printed anywhere, against formulas and simulations
of our own (other_shapes.py): what the program exports is what these say. Another SEED draws others."""
import json
import os
import random
import subprocess
import sys
import tempfile

import other_shapes as ours

BENCH, SEED = os.environ.get("BENCH", ""), int(os.environ.get("SEED", "1"))
LOOSE = {"break_even", "value", "relative_error", "mean_error", "worst_error", "ratio", "power", "top_share", "entropy"}
ONE_CASE, EACH_ITS_OWN = (ours.ledger, ours.intensity, ours.kv_methods, ours.training, ours.speculation, ours.temperature,
                          ours.codes), (ours.batching, ours.paging)
POINTS = int(os.environ.get("POINTS", "12"))


def toml(v):
    if isinstance(v, list):
        return "[" + ", ".join(map(toml, v)) + "]"
    return json.dumps(v)


def protocol(cases):
    text = 'title = "Drawn"\nquestion = "Are they the same?"\n[device]\nkind = "ref"\n'
    for name, workload, points in cases:
        text += f'[[case]]\nname = "{name}"\nworkload.name = "{workload}"\n'
        if any(k.startswith("shape.") for k in points[0]):
            text += 'model.shape = "tiny"\n'
        single = len(points) == 1
        text += "" if single else "[[case.sweep]]\n"
        text += "".join(f"{k} = {toml(v if single else [p[k] for p in points])}\n" for k, v in points[0].items())
    return text


def exported(text):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/drawn.toml", "w", encoding="utf-8") as file:
            file.write(text)
        ran = subprocess.run([BENCH, "run", "drawn.toml", "-q", "--no-plot", "-o", "drawn.h5"], cwd=folder, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"FAILED: exit {ran.returncode}\n{ran.stdout}{ran.stderr}{text[:2000]}")
        words = subprocess.run([BENCH, "export", "drawn.h5", "--format", "json"], cwd=folder, capture_output=True, text=True, check=True)
        return json.loads(words.stdout)["points"]


def near(got, wanted, loose):
    if wanted is None or got is None:
        return wanted is None and got is None
    return abs(got - float(wanted)) <= loose * abs(float(wanted)) + (1e-300 if loose < 1e-9 else loose)


draw, cases, wanted = random.Random(SEED), [], {}
for make in ONE_CASE:
    drawn = list({repr(p): (p, w) for p, w in (make(draw) for _ in range(POINTS))}.values())  # no point twice
    cases.append((make.__name__, make.__name__, [p for p, _ in drawn]))
    wanted[make.__name__] = [w for _, w in drawn]
for make in EACH_ITS_OWN:
    for i in range(POINTS):
        p, w = make(draw)
        cases.append((f"{make.__name__} {i}", make.__name__, [p]))
        wanted[f"{make.__name__} {i}"] = [w]
seen, compared = {}, 0
for row in exported(protocol(cases)):
    w = wanted[row["case"]][seen.setdefault(row["case"], 0)]
    seen[row["case"]] += 1
    for name, value in w.items():
        got = row["metrics"].get(name, {}).get("mean")
        compared += 1
        if not near(got, value, 1e-9 if name in LOOSE else 1e-12):
            sys.exit(f"FAILED: {row['case']} {row['label'][:500]}: {name} is {got}, and by our own formula {value}")
if seen != {name: len(w) for name, w in wanted.items()}:
    sys.exit("FAILED: rows are missing")
print(f"{compared} numbers of {sum(seen.values())} drawn points agree")
