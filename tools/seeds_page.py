# SPDX-License-Identifier: Apache-2.0
"""The page of tools/make_seeds.py: what every protocol of a folder asked and found, as one HTML file that needs nothing
else (no network, no other file) and as Markdown. Everything that comes from results is escaped; pictures are SVG that
parses as XML, with names of their own, or else text."""
import html
import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree as tree

VERDICTS = {"ok": "holds", "failed": "FAILED", "none": "no verdict", "equal": "equal", "differs": "DIFFERS", "beside": "beside"}
STATES = {"ok": "whole", "failed": "failed", "interrupted": "interrupted", "stale": "of another build or text",
          "absent": "not run yet"}

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fdfdfc; --soft: #5c5c5c; --line: #d4d4d0; --good: #1a6b2f;
  --bad: #b3261e; --part: #8a5a00; --sheet: #f4f4f1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e3; --paper: #161616; --soft: #a3a3a0; --line: #3d3d3b;
  --good: #7fce92; --bad: #ff8f85; --part: #e5b75b; --sheet: #212120; }
  figure svg { filter: invert(0.92) hue-rotate(180deg); } }
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.3rem; }
a { color: inherit; } p.soft, td.soft, footer { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: var(--sheet); padding: 0.8rem; overflow-x: auto; font-size: 0.8rem; line-height: 1.35; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; max-width: 60rem; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .part { color: var(--part); }
"""
COLOURS = {"ok": "good", "equal": "good", "failed": "bad", "differs": "bad", "interrupted": "part", "stale": "part"}


class Shown:
    """One protocol as the pages show it."""

    def __init__(self, p):
        self.name, self.title, self.question, self.entries = p.name, p.title, p.question, p.entries
        self.state, self.reason, self.seconds, self.budget, self.declared = "absent", "", 0, 0, 0
        self.file, self.svg, self.picture, self.table = "", "", "", ""
        self.fits, self.published, self.rows, self.environment, self.created = [], [], [], {}, ""
        self.commands = []

    def count(self, of, *verdicts):
        return sum(1 for one in of if one["verdict"] in verdicts)


def ask(bench, *words):
    """What the program prints, or "" where it refuses."""
    done = subprocess.run([bench, *words], capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    return done.stdout if done.returncode == 0 else ""


def inline(text, name):
    """A picture for the middle of a page: no prolog, and ids that no other picture has; "" if it is no clean SVG."""
    try:
        root = tree.fromstring(text)
    except tree.ParseError:
        return ""
    for element in root.iter():
        tag = element.tag.rsplit("}", 1)[-1]
        if tag in ("script", "foreignObject", "image", "iframe") or any(
                a.rsplit("}", 1)[-1].lower().startswith("on") or (a.endswith("href") and not v.startswith("#"))
                for a, v in element.attrib.items()):
            return ""
    start = text.find("<svg")
    body = re.sub(r"<!--.*?-->", "", text[start:], flags=re.S)
    body = re.sub(r"<title>[^<]*</title>\s*<desc>[^<]*</desc>", "", body, count=1)
    mark = re.sub(r"[^A-Za-z0-9]", "-", name)
    seen = {}

    def own(match):  # several panels repeat names that nothing refers to
        name = match.group(2)
        seen[name] = seen.get(name, 0) + 1
        return f'id="{mark}-{name}' + (f'-{seen[name]}"' if seen[name] > 1 else '"')

    body = re.sub(r"""\bid=(['"])([^'"]+)\1""", own, body)
    body = re.sub(r"""\b(?:xlink:)?href=(['"])#([^'"]+)\1""", rf'href="#{mark}-\2"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", body)
    body = re.sub(r"""\s+xmlns:xlink=(['"])[^'"]*\1""", "", body)
    return body.strip()


def commands(p, options, file):
    default = options.protocols.resolve() == pathlib.Path(__file__).resolve().parent.parent / "protocols" / "seeds"
    sets = "".join(f" --set {quote(one)}" for one in p.sets)
    lines = [f"./bench run seeds/{p.name}{sets}" if default else f"./bench run {quote(str(p.path))}{sets}"]
    if file:
        lines += [f"./bench replay {file}", f"./bench show --facts {file}", f"./bench plot {file}"]
    return lines


def quote(word):
    return word if re.fullmatch(r"[A-Za-z0-9_./=:,+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def read(p, options, identity):
    """Everything of one protocol, out of its result by the program's own commands."""
    s = Shown(p)
    s.commands = commands(p, options, "")
    state = p.state
    if not state:
        return s
    s.reason, s.seconds = state.get("reason", ""), state.get("seconds", 0)
    s.budget, s.declared = state.get("budget", 0), state.get("declared", 0)
    s.state = "interrupted" if state["exit"] == 130 else "failed" if state["exit"] else "ok"
    if state["identity"] != identity:
        s.state = "stale" if s.state == "ok" else s.state
    path = p.result()
    if not state["file"] or not path.exists():
        return s
    s.file = f"{options.out.name}/{options.folder.name}/{path.name}"
    s.commands = commands(p, options, s.file)
    try:
        result = json.loads(ask(options.bench, "export", str(path), "--format", "json"))
        s.fits, s.published, s.rows = result["fits"], result["published"], result["points"]
        s.environment = {fact["key"]: fact["value"] for fact in result["environment"]}
        s.created = result["meta"].get("created", "")
    except (ValueError, KeyError, TypeError):
        s.state, s.reason = "failed", f"{s.file} cannot be read\n{s.reason}".strip()
        return s
    s.table = ask(options.bench, "show", str(path)).rstrip()
    drawn = path.with_suffix(".svg")
    if drawn.exists():  # by the run itself, where gnuplot was there
        s.svg = inline(drawn.read_text(encoding="utf-8", errors="replace"), p.name)
    if not s.svg:
        s.picture = ask(options.bench, "plot", str(path), "--ascii").rstrip()
    return s


# ---- words and numbers

def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1e15:
        return f"{value:.6g}"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:,.1f}"


def span(fit):
    if fit["lo"] is None or fit["hi"] is None:
        return ""
    return f" [{number(fit['lo'])}, {number(fit['hi'])}]"


def named(fit):
    """Of which case, by which analysis: "load: ratio ttft: 2 / 16"."""
    name = fit["name"] if fit["name"].startswith(fit["analysis"]) else f"{fit['analysis']} {fit['name']}"
    return f"{fit['case']}: {name}" if fit["case"] else name


def tally(s):
    """In a few words: what its checks and its published figures say."""
    parts = []
    for of, verdict, word in ((s.fits, "ok", "hold"), (s.fits, "failed", "FAILED"), (s.published, "equal", "equal"),
                              (s.published, "differs", "DIFFER"), (s.published, "beside", "beside")):
        n = s.count(of, verdict)
        if n:
            parts.append(f"{n} {word}")
    return ", ".join(parts) or "-"


def verdict_of(s):
    """The sentence under the question."""
    word = STATES[s.state]
    if s.state == "ok":
        checks = s.count(s.fits, "ok")
        word = f"{checks} of {checks + s.count(s.fits, 'failed')} checks hold" if checks else "nothing failed"
    exact, equal = s.count(s.published, "equal", "differs"), s.count(s.published, "equal")
    if exact:
        word += f"; {equal} of {exact} published exact figures are equal"
    beside = s.count(s.published, "beside")
    if beside:
        word += f"; {beside} published {'figure stands' if beside == 1 else 'figures stand'} beside ours"
    open_ones = sum(1 for f in s.fits if f["verdict"] == "none" and f["text"].startswith(("not co", "no verdict")))
    if open_ones:
        word += f"; {open_ones} could not be judged here"
    return word


def notes(s):
    out = []
    if s.declared and round(s.budget) < round(s.declared):
        out.append(f"Its budget was cut from {s.declared:.0f} s to {s.budget:.0f} s, so that all ended in time.")
    for row in s.rows:
        if row["state"] != "ok":
            out.append(f"{row['case']} {row['label']}: {row['state']}: {row['reason']}".strip())
    flags = sorted({f for row in s.rows for f in row["flags"].split()})
    if flags:
        out.append("Flags of some rows: " + ", ".join(flags) + " (bench help flags).")
    return out


# ---- HTML

def e(text):
    return html.escape(str(text), quote=True)


def cells(values, numbers=()):
    return "<tr>" + "".join(f'<td class="number">{v}</td>' if i in numbers else f"<td>{v}</td>" for i, v in enumerate(values)) + "</tr>"


def table(head, rows):
    heads = "".join(f'<th scope="col">{e(h)}</th>' for h in head)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"


def coloured(verdict, words=None):
    colour = COLOURS.get(verdict, "")
    text = e(words or VERDICTS.get(verdict, verdict))
    return f'<span class="{colour}">{text}</span>' if colour else text


def section(s):
    out = [f'<section id="{e(s.name)}">', f"<h2>{e(s.title)}</h2>", f"<p><strong>{e(s.question)}</strong></p>"]
    about = ", ".join(s.entries) + (f" · {s.seconds:.0f} s" if s.seconds else "") + (f" · {s.created[:16].replace('T', ' ')} UTC" if s.created else "")
    out.append(f'<p class="soft">{e(s.name)} · {e(about)}</p>')
    out.append(f"<p>{coloured(s.state, STATES[s.state])}: {e(verdict_of(s))}</p>" if s.state != "ok"
               else f"<p>{coloured('ok', verdict_of(s))}</p>")
    if s.reason:
        out.append(f"<pre>{e(s.reason)}</pre>")
    noted = notes(s)
    if noted:
        out.append("<ul>" + "".join(f"<li>{e(n)}</li>" for n in noted[:20]) + "</ul>")
    if s.svg:
        out.append(f"<figure>{s.svg}</figure>")
    elif s.picture:
        out.append(f"<pre>{e(s.picture)}</pre>")
    if s.published:
        out.append("<h3>Published, beside ours</h3>")
        out.append(table(("what", "theirs", "ours", "", "kind", "source"), [
            cells((e(p["what"]), e(number(p["theirs"])), e(number(p["ours"])), coloured(p["verdict"]), e(p["kind"]), e(p["source"])), (1, 2))
            for p in s.published]))
    if s.fits:
        out.append("<h3>Checks and fits</h3>")
        out.append(table(("what", "value", "", "why"), [
            cells((e(named(f)),
                   e(number(f["value"]) + span(f) + (f" {f['unit']}" if f["unit"] and f["value"] is not None else "")),
                   coloured(f["verdict"], "" if f["verdict"] == "none" else None), e(f["text"])), (1,)) for f in s.fits]))
    if s.table:
        out.append(f"<details><summary>All rows</summary><pre>{e(s.table)}</pre></details>")
    out.append("<h3>Again</h3><pre>" + e("\n".join(s.commands)) + "</pre>")
    out.append('<p class="soft"><a href="#top">Contents</a></p></section>')
    return "\n".join(out)


def machine(shown):
    for s in shown:
        env = s.environment
        if env:
            return (f"{env.get('cpu.model', 'unknown machine')}, {env.get('cpu.cores', '?')} cores, "
                    f"{env.get('build.compiler', '')}, revision {env.get('build.revision', 'unknown')[:12]}"
                    + (" with changes" if env.get("build.dirty") == "yes" else ""))
    return "nothing was measured"


def totals(shown):
    ok = sum(1 for s in shown if s.state == "ok")
    held, failed = (sum(s.count(s.fits, v) for s in shown) for v in ("ok", "failed"))
    equal, differs, beside = (sum(s.count(s.published, v) for s in shown) for v in ("equal", "differs", "beside"))
    return (f"{ok} of {len(shown)} protocols are whole; {held} of {held + failed} checks hold; {equal} of {equal + differs} "
            f"published exact figures are equal, {beside} others stand beside ours; {sum(s.seconds for s in shown):.0f} s in all.")


INTRODUCTION = ("Three documents about inference of transformers were the seeds of this harness. Each protocol rebuilds some of "
                "their experiments on this machine. Exact published figures must be equal; measured ones come from other machines "
                "and only stand beside ours.")


def as_html(shown):
    contents = table(("protocol", "question", "entries", "checks, published figures", "state"), [
        cells((f'<a href="#{e(s.name)}">{e(s.name)}</a>', e(s.question), e(", ".join(s.entries)), e(tally(s)),
               coloured(s.state, STATES[s.state]))) for s in shown])
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', "<title>The seeds' experiments</title>",
        f"<style>{STYLE}</style>", "</head>", '<body id="top">', "<h1>The seeds' experiments</h1>", f"<p>{e(INTRODUCTION)}</p>",
        f'<p class="soft">{e(machine(shown))}</p>', f"<p>{e(totals(shown))}</p>", '<nav aria-label="Contents">', contents, "</nav>",
        "<main>", *(section(s) for s in shown), "</main>",
        "<footer><p>Written by make seeds; nothing here is fetched from elsewhere.</p></footer>", "</body>", "</html>", ""])


# ---- Markdown

def m(text):
    """In a cell of a table, as GitHub reads it."""
    return html.escape(str(text), quote=False).replace("|", "\\|").replace("\n", " ").replace("*", "\\*").replace("_", "\\_")


def markdown_table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def markdown_section(s, folder):
    out = [f'<a id="{s.name}"></a>', "", f"## {m(s.title)}", "", f"**{m(s.question)}**", "",
           f"`{s.name}` · {', '.join(s.entries)} · {m(STATES[s.state])}: {m(verdict_of(s))}", ""]
    if s.reason:
        out += ["```", s.reason.replace("```", "'''"), "```", ""]
    out += [f"- {m(n)}" for n in notes(s)[:20]] + [""]
    if s.svg:
        out += [f"![{m(s.title)}]({folder}/{pathlib.Path(s.file).stem}.svg)", ""]
    elif s.picture:
        out += ["```", s.picture, "```", ""]
    if s.published:
        out += markdown_table(("published", "theirs", "ours", "", "kind", "source"), [
            (m(p["what"]), number(p["theirs"]), number(p["ours"]), VERDICTS.get(p["verdict"], p["verdict"]), m(p["kind"]), m(p["source"]))
            for p in s.published])
    if s.fits:
        out += markdown_table(("check or fit", "value", "", "why"), [
            (m(named(f)), number(f["value"]) + span(f),
             "" if f["verdict"] == "none" else VERDICTS.get(f["verdict"], f["verdict"]), m(f["text"])) for f in s.fits])
    return out + ["```sh", *s.commands, "```", ""]


def as_markdown(shown, folder):
    out = ["# The seeds' experiments", "", INTRODUCTION, "", m(machine(shown)), "", totals(shown), ""]
    out += markdown_table(("protocol", "question", "entries", "checks, published figures", "state"), [
        (f"[{m(s.name)}](#{s.name})", m(s.question), ", ".join(s.entries), m(tally(s)), STATES[s.state]) for s in shown])
    for s in shown:
        out += markdown_section(s, folder)
    return "\n".join(out)


def write(shown, options):
    """Each under its own name only when it is whole."""
    for name, text in (("seeds.html", as_html(shown)), ("seeds.md", as_markdown(shown, options.folder.name))):
        aside = options.out / (name + ".part")
        aside.write_text(text, encoding="utf-8")
        aside.replace(options.out / name)
