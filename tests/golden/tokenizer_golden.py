#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files with tokenizers, texts and their ids, by independent programs.

    tokenizer_golden.py FOLDER           made by hand, plain rules in Python, and broken ones: test_tokenizer.c reads them
    tokenizer_golden.py --peer FOLDER [GGUF]  vocabularies trained here, and the one of a file or of the fetched model, and what the
                                         library `tokenizers` makes of 2,000 texts: test_tokenizer_peer.c; exit 77 without it
    tokenizer_golden.py --corpus FOLDER  the seeds of tests/fuzz/fuzz_tokenizer.c

FOLDER/cases.tsv: model, texts, ids, flags (r: the ids give the text back). texts: count, then length and bytes of each;
ids: count, then length and ids of each; all as 32 bits. FOLDER/broken.tsv: model, its name, what must be said.
"""
import json
import os
import random
import struct
import sys
import unicodedata

import model_file_golden as files

SPACE = "\u2581"
SPECIAL, SPECIAL_TOKENS = 3, ["<|end|>", "<s>", "<|a|>", "<|a|>b"]


# ---- files
def array(number, fmt, values):
    return struct.pack("<IIQ", 9, number, len(values)) + struct.pack("<%d%s" % (len(values), fmt), *values)


def texts_array(values):
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(files.text, values))


def gguf(meta, rows):
    """A model that is nothing but a vocabulary's embedding of one column."""
    return files.gguf([("general.architecture", "llama")] + meta, [("token_embd.weight", [1, rows], 0, b"\0" * (4 * rows), None)])


def byte_level(pre, tokens, types, merges, **more):
    meta = [("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", pre), ("tokenizer.ggml.tokens", texts_array(tokens)),
            ("tokenizer.ggml.token_type", array(5, "i", types)), ("tokenizer.ggml.merges", texts_array(merges))]
    return dict(dict(meta), **{"tokenizer.ggml." + k: v for k, v in more.items()})


def sentencepiece(tokens, types, scores, **more):
    meta = [("tokenizer.ggml.model", "llama"), ("tokenizer.ggml.tokens", texts_array(tokens)),
            ("tokenizer.ggml.token_type", array(5, "i", types)), ("tokenizer.ggml.scores", array(6, "f", scores))]
    return dict(dict(meta), **{"tokenizer.ggml." + k: v for k, v in more.items()})


def folder(root, name, document, config=None, rows=1):
    """A folder with tokenizer.json, and the least that is a model beside it."""
    path = "%s/%s" % (root, name)
    document = document if isinstance(document, bytes) else json.dumps(document).encode()
    files.write(path + "/tokenizer.json", document)
    files.write(path + "/config.json", json.dumps(config or {}).encode())
    files.write(path + "/model.safetensors", files.safetensors([("x", "F32", [1], b"\0\0\0\0")]))


# ---- texts and ids
def pack_texts(texts):
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(t)) + t for t in texts)


def pack_ids(rows):
    return struct.pack("<I", len(rows)) + b"".join(struct.pack("<I%di" % len(r), len(r), *r) for r in rows)


def is_text(data):
    return not any(isinstance(part, int) for part in stretches(data))


def byte_letters():
    """GPT-2's: printable bytes stand for themselves."""
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in same]
    return {**{b: chr(b) for b in same}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def stretches(data):
    """Bytes to texts and single bytes that are part of none."""
    out, at = [], 0
    while at < len(data):
        try:
            out.append(data[at:].decode())
            break
        except UnicodeDecodeError as e:
            if e.start:
                out.append(data[at:at + e.start].decode())
            out.append(data[at + e.start])
            at += e.start + 1
    return out


# Without what Unicode 14 brought with a decomposition: the library's tables are older than ours.
ASSIGNED = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
            and not (0x10780 <= c < 0x107c0 or 0xa7f2 <= c <= 0xa7f4)]
KNOWN = {chr(c) for c in ASSIGNED}
SOME = {"spaces": " \t\n\r\v\f\x85\xa0\u1680\u2003\u2028\u3000\u180e", "digits": "0123456789\u0663\u096a\u00bd\u2167\uff11",
        "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "marks": "\u0301\u0316\u0323\u0308\u093c\u3099e\u00e9n\u00f1",
        "right": "\u05d0\u05d1\u05e9\u05dc\u05d5\u05dd\u0627\u0644\u0639\u0631\u0628\u064a\u0629\u064b\u200f ", "east": "\u4e2d\u6587\u65e5\u672c\u8a9e\ud55c\uae00\u3042\u30ab\u3001\u3002",
        "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd\u2764\ufe0f", "signs": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00a7\u2026\u201c\u201d\u20ac",
        "control": "".join(map(chr, range(32))) + "\x7f\x80\x9f\u200b\ufeff\ufffd\uffff"}
WORDS = ["it's", "IT'S", "don't", "we'll", "WE'LL", "I'\u017f", "they've", "he'd", "I'm", "'re", " the", "The", "\n\n", "  ", "   ", "\t", "1234567",
         "3.14", "hello", " world", "na\u00efve", "\u00dcber", "<s>", "<|a|>", "<|a|>b", "<|end|>", "<|a", "foo_bar(x);", "\r\n", SPACE, "\u00e9", "CamelCASE"]


def make_texts(seed, count):
    rng, out = random.Random(seed), []
    for i in range(count):
        kind = i % 8
        n = rng.choice([0, 1, 2, 3, 5, 8, 13, 21, 40])
        if kind == 0:
            t = "".join(chr(rng.choice(ASSIGNED)) for _ in range(n))
        elif kind == 1:
            t = "".join(rng.choice(WORDS) for _ in range(n))
        elif kind == 2:
            t = "".join(rng.choice(SOME["spaces"]) * rng.choice([1, 1, 2, 7]) + rng.choice(["", "a", "\n", "1", "\u4e2d", "!"]) for _ in range(n))
        elif kind in (3, 4):
            some = SOME[rng.choice(list(SOME))] + SOME[rng.choice(list(SOME))]
            t = "".join(rng.choice(some) for _ in range(n))
        elif kind == 5:
            t = "".join(rng.choice(["0", "12", "345", "67890", " ", ",", "\u0663", "\u00bd", "x"]) for _ in range(n))
        else:
            t = "".join(rng.choice([rng.choice(WORDS), rng.choice(SOME[rng.choice(list(SOME))]), chr(rng.choice(ASSIGNED)), " "]) for _ in range(n))
        data = t.encode()
        if i % 16 == 15:  # bytes that are no UTF-8
            b = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                b.insert(rng.randint(0, len(b)), rng.choice([0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xf0, 0xf5, 0xff]))
            if all(isinstance(p, int) or KNOWN.issuperset(p) for p in stretches(bytes(b))):  # nothing unassigned came about
                data = bytes(b)
        out.append(data)
    return out


LONG = [b"a" * 1000000, b" " * 1000000, b"\n" * 300000, b" \n" * 300000, b"ab" * 200000, b"1" * 200000, "\u4e2d".encode() * 100000,
        b" " * 300000 + b"x", "e\u0301\u0316".encode() * 50000, b"\xff" * 20000, b"'" * 100000, b"<|a" * 50000]


# ---- plain rules: SentencePiece's BPE, and unigram
def plain_merge(text, scores, bytes_of, unknown, is_token):
    """The pair whose union has the best score first, the leftmost of equal ones."""
    s = list(text)
    while True:
        best = None
        for i in range(len(s) - 1):
            score = scores.get(s[i] + s[i + 1])
            if score is not None and (best is None or score > best[0]):
                best = (score, i)
        if best is None:
            break
        s[best[1]:best[1] + 2] = [s[best[1]] + s[best[1] + 1]]
    out = []
    for piece in s:
        if piece in is_token:
            out.append(is_token[piece])
        elif all(b in bytes_of for b in piece.encode()):
            out += [bytes_of[b] for b in piece.encode()]
        elif not out or out[-1] != unknown:
            out.append(unknown)
    return out


def plain_sentencepiece(data, tokens, types, scores, added):
    """Of texts without special tokens' names: they are letters here."""
    is_token = {t: i for i, (t, k) in enumerate(zip(tokens, types)) if k == 1}
    bytes_of = {int(t[3:5], 16): i for i, (t, k) in enumerate(zip(tokens, types)) if k == 6}
    score = {t: scores[i] for t, i in is_token.items()}
    out, begins = [], True
    for part in stretches(data):
        if isinstance(part, int):
            out.append(bytes_of[part])
        else:
            out += plain_merge((SPACE if begins else "") + part.replace(" ", SPACE), score, bytes_of, 0, is_token)
        begins = False
    return out


def plain_unigram(text, scores, unknown):
    """The best of all rows of tokens, character by character."""
    worst, best = min(scores.values()) - 10, [(0.0, None, None)] + [None] * len(text)
    for i in range(len(text)):
        single = False
        for j in range(i + 1, min(len(text), i + 16) + 1):
            if text[i:j] in scores:
                single |= j == i + 1
                way = best[i][0] + scores[text[i:j]]
                if best[j] is None or way > best[j][0]:
                    best[j] = (way, i, text[i:j])
        if not single:
            way = best[i][0] + worst
            if best[i + 1] is None or way > best[i + 1][0]:
                best[i + 1] = (way, i, None)
    out, j = [], len(text)
    while j:
        out.append(best[j][2])
        j = best[j][1]
    ids, names = [], list(scores)
    for piece in reversed(out):
        if piece is not None:
            ids.append(names.index(piece))
        elif not ids or ids[-1] != unknown:
            ids.append(unknown)
    return ids


def toy_pieces(rng, letters, count):
    pieces = set()
    while len(pieces) < count:
        pieces.add("".join(rng.choice(letters) for _ in range(rng.choice([2, 2, 3, 3, 4, 6]))))
    return sorted(pieces)


def toy_sentencepiece(complete):
    rng = random.Random(7)
    letters = list("abcde" + SPACE + "\u00e9")
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256 if complete else 100)]
    types = [2, 3, 3] + [6] * (len(tokens) - 3)
    scores = [0.0] * len(tokens)
    pieces = toy_pieces(rng, letters + ["q"], 120) + letters  # q is in pieces only
    tokens += pieces
    types += [1] * len(pieces)
    scores += [-float(rng.randint(1, 60)) for _ in pieces]  # many are equal
    return tokens, types, scores


def hand_made(root):
    lines = []
    rng = random.Random(11)
    texts = ["".join(rng.choice("abcde qq\u00e9z\u4e2d  ") for _ in range(rng.choice([0, 1, 2, 5, 9, 30]))).encode() for _ in range(2000)]
    texts += [t[:len(t) // 2] + b"\xff\xc3" + t[len(t) // 2:] for t in texts[:100]]
    files.write(root + "/plain.texts", pack_texts(texts))
    for complete in (True, False):
        tokens, types, scores = toy_sentencepiece(complete)
        name = "spm%d" % complete
        more = {"add_bos_token": False}
        if not complete:  # the bytes of invalid stretches lack tokens
            name_texts = [t for t in texts if is_text(t)]
        else:
            name_texts = texts
        files.write("%s/%s.gguf" % (root, name), gguf(list(sentencepiece(tokens, types, scores, **more).items()), len(tokens)))
        files.write("%s/%s.texts" % (root, name), pack_texts(name_texts))
        files.write("%s/%s.ids" % (root, name), pack_ids([plain_sentencepiece(t, tokens, types, scores, []) for t in name_texts]))
        lines.append((name + ".gguf", name + ".texts", name + ".ids", "r" if complete else "-"))
    scores = {"<unk>": 0.0, **{p: -rng.uniform(1, 9) for p in toy_pieces(rng, "abcde ", 150) + list("abcd ")}}
    names = [t for t in texts if is_text(t)]
    folder(root, "unigram", {"model": {"type": "Unigram", "unk_id": 0, "vocab": [[k, v] for k, v in scores.items()]}})
    files.write(root + "/unigram.texts", pack_texts(names))
    files.write(root + "/unigram.ids", pack_ids([plain_unigram(t.decode(), scores, 0) for t in names]))
    lines.append(("unigram", "unigram.texts", "unigram.ids", "-"))
    files.write(root + "/cases.tsv", "".join("\t".join(line) + "\n" for line in lines).encode())


# ---- broken ones
def toy_bytes():
    """Tokens, types and merges of a small byte-level vocabulary."""
    letters = byte_letters()
    tokens = [letters[b] for b in range(256)] + ["he", "ll", "hell", "hello", "\u0120w"] + ["<|end|>", "<user>"]
    return tokens, [1] * 261 + [3, 4], ["h e", "l l", "he ll", "hell o", "\u0120 w"]


def toy_document(**model):
    tokens, _, merges = toy_bytes()
    return {"added_tokens": [{"id": 261, "content": "<|end|>", "special": True}, {"id": 262, "content": "<user>", "special": False}],
            "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": dict({"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}, **model)}


def broken_gguf():
    tokens, types, merges = toy_bytes()
    good = byte_level("gpt-2", tokens, types, merges)

    def but(**to):
        return [(k, v) for k, v in {**good, **{"tokenizer.ggml." + k: v for k, v in to.items()}}.items() if v is not None]

    yield "no model", but(model=None), "brings no tokenizer"
    yield "model as number", but(model=3), "brings no tokenizer"
    for name in ("bert", "t5", "rwkv", "x" * 1000):
        yield "model " + name[:9], but(model=name), "of the family '" + name[:9]
    for name in ("deepseek-llm", "no such", "", "gpt-2 phi-2", "x" * 5000):
        yield "pre " + name[:9], but(pre=name), "its pre-tokenizer is '"
    yield "no tokens", but(tokens=None), "has 0 tokens"
    yield "empty list", but(tokens=texts_array([])), "has 0 tokens"
    yield "tokens as numbers", but(tokens=array(5, "i", [1, 2])), "not an array of the right type"
    yield "types as reals", but(token_type=array(6, "f", [1.0] * 263)), "not an array of the right type"
    yield "types too few", but(token_type=array(5, "i", types[:-1])), "differ in length"
    yield "scores too many", but(scores=array(6, "f", [0.0] * 264)), "differ in length"
    yield "twice", but(tokens=texts_array(tokens[:-3] + ["he"] + tokens[-2:])), "same text"
    yield "no UTF-8", but(tokens=texts_array([b"\xff"] + tokens[1:])), "no UTF-8"
    yield "long name", but(tokens=texts_array(tokens[:-1] + ["n" * 1025])), "1025 bytes"
    yield "long token", but(tokens=texts_array(["n" * 65536] + tokens[1:])), "65536 bytes"
    yield "no merges", but(merges=None), "lack tokenizer.ggml.merges"
    yield "merge of one", but(merges=texts_array(["he"])), "does not name two"
    yield "empty merge", but(merges=texts_array([""])), "does not name two"
    yield "merge ends", but(merges=texts_array(["h "])), "does not name two"
    yield "merge begins", but(merges=texts_array([" h"])), "does not name two"
    yield "merge of no token", but(merges=texts_array(["h zz"])), "names a token that"
    yield "merge to no token", but(merges=texts_array(["h l"])), "makes a token that"
    yield "merge of no letters", but(merges=texts_array(["h \u4e2d"])), "does not name two"
    yield "merge is no UTF-8", but(merges=texts_array([b"h \xff"])), "does not name two"
    yield "merge twice", but(merges=texts_array(["h e", "l l", "h e"])), "of the same pair"
    yield "bos outside", but(bos_token_id=263), "not among its 263"
    yield "eos 2^32 - 1", but(eos_token_id=2 ** 32 - 1), "not among its 263"
    yield "eos as text", but(eos_token_id="1"), "not among its 263"
    yield "adds what it lacks", but(add_bos_token=True), "lacks"
    yield "ends with what it lacks", but(add_eos_token=True), "lacks"
    st, sk, ss = toy_sentencepiece(True)
    spm = sentencepiece(st, sk, ss)

    def spm_but(**to):
        return [(k, v) for k, v in {**spm, **{"tokenizer.ggml." + k: v for k, v in to.items()}}.items() if v is not None]

    yield "no scores", spm_but(scores=None), "lack tokenizer.ggml.scores"
    for v in (float("nan"),):
        yield "score %g" % v, spm_but(scores=array(6, "f", ss[:-1] + [v])), "no number"
    yield "long piece", spm_but(tokens=texts_array(st[:-1] + ["a" * 513])), "513 bytes"
    yield "spm twice", spm_but(tokens=texts_array(st[:-1] + [st[-2]])), "same text"


def broken_json():
    def but(**to):
        return {**toy_document(), **to}

    def pre(**to):
        return but(pre_tokenizer=to)

    yield "no JSON", b"{", "no JSON object"
    yield "deep", b'{"a":' * 40 + b"1" + b"}" * 40, "deeper than"
    yield "zero", b'{"a":"\\u0000"}', "a zero in it"
    yield "no model", {}, "its model is ''"
    yield "word piece", but(model={"type": "WordPiece", "vocab": {}}), "its model is 'WordPiece'"
    yield "no vocabulary", toy_document(vocab=None), "is empty"
    yield "vocabulary as list", toy_document(vocab=[1, 2]), "not a token with an id"
    for v in (-1, 1.5, 2 ** 40, "1", None):
        yield "id %s" % v, toy_document(vocab={"a": v}), "not a token with an id"
    yield "id 2^31 - 1", toy_document(vocab={"a": 2 ** 31 - 1}), "has the id 2147483647"
    yield "id twice", toy_document(vocab={"a": 1, "b": 1}), "two tokens have the id 1"
    yield "text twice", json.dumps(toy_document()).replace('"he": ', '"ll": ').encode(), "same text"
    yield "merges of three", toy_document(merges=[["h", "e", "l"]]), "does not name two"
    yield "merges of numbers", toy_document(merges=[[1, 2]]), "does not name two"
    yield "merge of no token", toy_document(merges=["h zz"]), "names a token that"
    yield "dropout", toy_document(dropout=0.1), "dropout"
    yield "suffix", toy_document(end_of_word_suffix="</w>"), "end_of_word_suffix"
    yield "unknown", toy_document(unk_token="<nothing>"), "unk_token"
    yield "added id", but(added_tokens=[{"id": -1, "content": "x"}]), "lacks its id"
    yield "added at another's", but(added_tokens=[{"id": 5, "content": "<x>"}]), "two tokens have the id 5"
    yield "single word", but(added_tokens=[{"id": 300, "content": "<x>", "single_word": True}]), "single word"
    yield "normalizer", but(normalizer={"type": "Lowercase"}), "its normalizer is 'Lowercase'"
    yield "replace by pattern", but(normalizer={"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}), "no text"
    yield "steps", but(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 17}), "more than 16 steps"
    yield "pre-tokenizer", pre(type="BertPreTokenizer"), "its pre-tokenizer is 'BertPre"
    yield "behavior", pre(type="Split", pattern={"Regex": "a"}, behavior="Odd"), "is 'Odd'"
    yield "after ByteLevel", pre(type="Sequence", pretokenizers=[{"type": "ByteLevel"}, {"type": "Digits"}]), "after ByteLevel"
    for regex, said in [("(", "no regular expression"), ("a*", "may match nothing"), ("", "0 bytes"), ("a" * 5000, "5000 bytes"), ("[a&&b]", "'[a&&"),
                        ("[a[b]]", "'[a[b"), ("\\w+", "'\\w'"), ("^a", "'^'"), ("a$", "'$'"), ("(?i)a", "'(?i)"), ("\\p{Han}", "'\\p{Han}'"),
                        ("\\p{L", "'\\p'"), ("a{,3}", "'{,3}"), ("a{2}?", "'{2}?"), ("\\1", "'\\1'"), ("(?P<n>a)", "'(?P<"), ("(?R)", "'(?R)'"), ("[", "'['"), ("a\\", "'\\'"),
                        ("(*UTF)a", "'(*UT"), ("\\C", "'\\C'"), ("((((a{1,1000}){1,1000}){1,1000}){1,1000})", "no regular expression")]:
        yield "pattern " + regex[:20], pre(type="Split", pattern={"Regex": regex}, behavior="Isolated"), said
    yield "template", but(post_processor={"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}],
                                          "special_tokens": {"x": {"ids": [99999]}}}), "not among its"
    yield "post-processor", but(post_processor={"type": "BertProcessing"}), "is 'BertProcessing'"
    for vocab, said in [([["a"]], "with a score"), ([["a", "b"]], "with a score"), ([1], "with a score"), ([["a", 1], ["a", 2]], "same text"),
                        ([["a" * 1025, 1]], "1025 bytes")]:
        yield "unigram %.20s" % vocab, {"model": {"type": "Unigram", "vocab": vocab}}, said
    yield "unk_id", {"model": {"type": "Unigram", "vocab": [["a", 1]], "unk_id": 1}}, "unk_id"


def broken(root):
    lines = []
    for i, (name, meta, said) in enumerate(broken_gguf()):
        path = "broken/%d.gguf" % i
        files.write("%s/%s" % (root, path), gguf(meta, 1000))
        lines.append((path, "gguf: " + name, said))
    tokens, types, merges = toy_bytes()
    files.write(root + "/broken/rows.gguf", gguf(list(byte_level("gpt-2", tokens, types, merges).items()), 262))
    lines.append(("broken/rows.gguf", "gguf: rows", "263 tokens, and its embedding 262 rows"))
    for i, (name, document, said) in enumerate(broken_json()):
        path = "broken/%d" % i
        folder(root, path, document)
        lines.append((path, "json: " + name, said))
    folder(root, "broken/none", {})
    os.remove(root + "/broken/none/tokenizer.json")
    lines.append(("broken/none", "json: none", "brings no tokenizer.json"))
    files.write(root + "/broken.tsv", "".join("\t".join(line) + "\n" for line in lines).encode())
    files.write(root + "/toy.gguf", gguf(list(byte_level("gpt-2", tokens, types, merges, add_bos_token=True, bos_token_id=261,
                                                         eos_token_id=261).items()), 263))
    folder(root, "toy", toy_document())
    slow = toy_document()
    slow["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(?=(a+)+b)a|a"}, "behavior": "Isolated"},
                                                                   slow["pre_tokenizer"]]}
    folder(root, "slow", slow)
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 256}
    folder(root, "growing", dict(toy_document(), added_tokens=[], normalizer={"type": "Sequence", "normalizers": [grow] * 16}))


# ---- the library
PATTERNS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
              r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"}


def peer(root, gguf_path):
    try:
        import tokenizers
    except ImportError:
        print("SKIPPED: the Python package tokenizers is missing")
        sys.exit(77)
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers as pre, processors, trainers
    letters = byte_letters()
    source = os.environ.get("SOURCE_DIR", ".")
    rng = random.Random(3)
    text = "".join(open("%s/%s" % (source, f), encoding="utf-8").read() for f in ("README.md", "CONTRIBUTING.md"))
    corpus = text.split("\n") + ["".join(rng.choice(SOME[k]) for _ in range(30)) for k in SOME for _ in range(20)] + WORDS * 5
    texts = make_texts(20261201, 2000)
    lines = []

    def split(regex):
        return pre.Split(Regex(regex), "isolated")

    def sequence(*steps):
        return pre.Sequence(list(steps))

    plain = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    gpt2_split = split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    families = {
        "gpt-2": (gpt2, None, False), "smollm": (sequence(pre.Digits(individual_digits=True), gpt2), None, False),
        "llama-bpe": (sequence(split(PATTERNS["llama-bpe"]), plain), None, True),
        "qwen2": (sequence(split(PATTERNS["qwen2"]), plain), normalizers.NFC(), False),
        "tekken": (sequence(split(PATTERNS["tekken"]), plain), None, True),
        "default": (sequence(split(r"[\p{P}\$\+<=>\^~\|]+"), gpt2_split, split(r"\p{N}+"), split("[0-9][0-9][0-9]"), plain), None, False)}

    def reference(t, data, special, byte_id, later=None):
        """What is no UTF-8 stands alone; what comes after it goes on without a prefix, which `later` does."""
        out, now = [], t
        for x in (t, later):
            if x:
                x.encode_special_tokens = not special
        for part in stretches(data):
            out += [byte_id[part]] if isinstance(part, int) and part in byte_id else \
                (later or t).encode("\ufffd", add_special_tokens=False).ids if isinstance(part, int) else \
                now.encode(part, add_special_tokens=False).ids
            now = later or t
        return out

    def case(name, paths, t, byte_id, flags, later=None, some=texts, ways=(False, True)):
        files.write("%s/%s.texts" % (root, name), pack_texts(some))
        for special in ways:
            ids = "%s.%d.ids" % (name, special)
            files.write("%s/%s" % (root, ids), pack_ids([reference(t, d, special, byte_id, later) for d in some]))
            for path in paths:
                lines.append((path, name + ".texts", ids, flags + "s" * special))

    def write_gguf(name, t, pre_name, **more):
        vocab = t.get_vocab(with_added_tokens=True)
        tokens = sorted(vocab, key=vocab.get)
        added = {i: 3 if a.special else 4 for i, a in t.get_added_tokens_decoder().items()}
        merges = [m if isinstance(m, str) else " ".join(m) for m in json.loads(t.to_str())["model"]["merges"]]
        meta = byte_level(pre_name, tokens, [added.get(i, 1) for i in range(len(tokens))], merges, **more)
        files.write("%s/%s.gguf" % (root, name), gguf(list(meta.items()), len(tokens)))

    for name, (pre_tokenizer, normalizer, whole) in families.items():
        t = Tokenizer(models.BPE(ignore_merges=whole))
        t.pre_tokenizer = pre_tokenizer
        if normalizer:
            t.normalizer = normalizer
        t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=900, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False,
                                                          special_tokens=SPECIAL_TOKENS[:2]))
        t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL_TOKENS[2:3]])
        t.add_tokens([AddedToken(s, special=False, normalized=False) for s in SPECIAL_TOKENS[3:]])
        byte_id = {b: t.token_to_id(c) for b, c in letters.items()}
        write_gguf(name, t, name, add_bos_token=False)
        folder(root, name, t.to_str().encode())
        case(name, [name + ".gguf", name], t, byte_id, "-" if normalizer else "r")
        if name in ("llama-bpe", "qwen2"):
            case(name + "-long", [name], t, byte_id, "-" if normalizer else "r", some=LONG, ways=(False,))

    # Other steps that a tokenizer.json may have, and added tokens with white space around them.
    for name, pre_tokenizer, normalizer in [
            ("prefixed", pre.ByteLevel(add_prefix_space=True, use_regex=True), normalizers.NFKC()),
            ("punctuation", sequence(pre.Punctuation("contiguous"), pre.Digits(individual_digits=False), gpt2), normalizers.NFD()),
            ("removed", sequence(pre.Split(Regex(r"\s+|[a-c]"), "removed"), pre.Split("th", "merged_with_previous"), plain), None),
            ("inverted", sequence(pre.Split(Regex(r"\p{L}+|\d"), "removed", invert=True), pre.Split(Regex("[aeiou]"), "merged_with_next"), plain), None),
            ("contiguous", sequence(pre.WhitespaceSplit(), pre.Split(Regex(r"[^\p{Ll}\S]|\p{Lu}|[\x{30}-\x{35}]"), "contiguous"), plain), normalizers.NFKD())]:
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizer
        if normalizer:
            t.normalizer = normalizer
        t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False))
        t.add_special_tokens([AddedToken("<s>", special=True, normalized=False, lstrip=True), AddedToken("<|a|>", special=True, normalized=False, rstrip=True)])
        t.add_tokens([AddedToken("\u00dcber", special=False, normalized=True), AddedToken("  ", special=False, normalized=False)])
        folder(root, name, t.to_str().encode())
        byte_id = {b: t.token_to_id(c) for b, c in letters.items()}
        case(name, [name], t, byte_id, "-", some=[x for x in texts if name != "prefixed" or is_text(x)])

    # Characters with byte fallback: as Llama 2 has it, and with Metaspace in each of its schemes.
    fallback = ["<0x%02X>" % b for b in range(256)]
    for name, normalizer, pre_tokenizer, later in [
            ("llama2", normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]), None,
             (normalizers.Replace(" ", SPACE), None)),
            ("meta-first", None, pre.Metaspace(prepend_scheme="first"), (None, pre.Metaspace(prepend_scheme="never"))),
            ("meta-always", None, pre.Metaspace(prepend_scheme="always"), (None, pre.Metaspace(prepend_scheme="never"))),
            ("meta-whole", normalizers.NFC(), pre.Metaspace(prepend_scheme="never", split=False), None)]:
        t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        t.pre_tokenizer = pre_tokenizer or pre.Metaspace(prepend_scheme="always")
        if normalizer and pre_tokenizer:
            t.normalizer = normalizer
        t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1000, limit_alphabet=120, show_progress=False,
                                                          special_tokens=["<unk>", "<s>", "</s>"] + fallback))
        document = json.loads(t.to_str())
        document["added_tokens"] = document["added_tokens"][:3]  # bytes are no added tokens
        document["pre_tokenizer"] = json.loads(pre_tokenizer.__getstate__()) if pre_tokenizer else None

        def build(norm, pretok):
            d = json.loads(json.dumps(document))
            made = Tokenizer.from_str(json.dumps(dict(d, pre_tokenizer=None, normalizer=None)))
            if norm:
                made.normalizer = norm
            if pretok:
                made.pre_tokenizer = pretok
            return made

        t = build(normalizer, pre_tokenizer)
        byte_id = {b: t.token_to_id(c) for b, c in enumerate(fallback)}
        folder(root, name, t.to_str().encode())
        # A name after what is no UTF-8: `later` would not put a space behind it.
        case(name, [name], t, byte_id, "-", later and build(*later), [x for x in texts if b"<" not in x or is_text(x)])
        if name == "llama2":
            case(name + "-long", [name], t, byte_id, "r", build(*later), LONG, (False,))

    for name, options in (("unigram-bytes", {"byte_fallback": True}), ("unigram-unknown", {})):
        t = Tokenizer(models.Unigram())
        t.pre_tokenizer = pre.Metaspace(prepend_scheme="always")
        t.train_from_iterator([c.replace("\0", "") for c in corpus], trainers.UnigramTrainer(vocab_size=700, unk_token="<unk>", show_progress=False, special_tokens=["<unk>", "<s>"] + fallback))
        document = json.loads(t.to_str())
        document["model"].update(options)
        document["added_tokens"] = document["added_tokens"][:2]
        t = Tokenizer.from_str(json.dumps(document))
        document["pre_tokenizer"]["prepend_scheme"] = "never"
        later = Tokenizer.from_str(json.dumps(document))
        byte_id = {b: t.token_to_id(c) for b, c in enumerate(fallback)} if options else {}
        folder(root, name, t.to_str().encode())
        case(name, [name], t, byte_id, "-", later, [x for x in texts if b"<" not in x or is_text(x)])

    if gguf_path:  # a real file, by its own vocabulary and merges
        meta = read_gguf_meta(gguf_path)
        tokens, merges = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.merges"]
        t = Tokenizer(models.BPE({k: i for i, k in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
        t.pre_tokenizer = families[meta["tokenizer.ggml.pre"]][0]
        t.add_special_tokens([AddedToken(k, special=True, normalized=False) for k, n in zip(tokens, meta["tokenizer.ggml.token_type"]) if n == 3])
        byte_id = {b: t.token_to_id(c) for b, c in letters.items() if t.token_to_id(c) is not None}
        own = [open("%s/protocols/texts/%s" % (source, f), "rb").read() for f in sorted(os.listdir(source + "/protocols/texts")) if f.endswith(".txt")] \
            if os.path.isdir(source + "/protocols/texts") else []
        case("real", [gguf_path], t, byte_id, "-", some=texts + LONG + own)
    files.write(root + "/cases.tsv", "".join("\t".join(line) + "\n" for line in lines).encode())


def read_gguf_meta(path):
    """Text and number arrays of a GGUF file's head."""
    with open(path, "rb") as file:
        data = file.read(16 << 20)
    at = 24

    def take(fmt):
        nonlocal at
        v = struct.unpack_from("<" + fmt, data, at)[0]
        at += struct.calcsize("<" + fmt)
        return v

    def take_text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    def take_value(kind):
        if kind == 8:
            return take_text()
        if kind == 9:
            inner, n = take("I"), take("Q")
            return [take_value(inner) for _ in range(n)]
        return take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])

    out = {}
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key = take_text()
        out[key] = take_value(take("I"))
    return out


def corpus(root):
    tokens, types, merges = toy_bytes()
    files.write(root + "/bytes.gguf", gguf(list(byte_level("llama-bpe", tokens, types, merges, bos_token_id=261).items()), 263))
    st, sk, ss = toy_sentencepiece(True)
    keep = [i for i, k in enumerate(sk) if k != 6 or i < 8][:60]
    files.write(root + "/spm.gguf", gguf(list(sentencepiece([st[i] for i in keep], [sk[i] for i in keep], [ss[i] for i in keep]).items()), 100))
    files.write(root + "/bytes.json", json.dumps(dict(toy_document(), normalizer={"type": "NFC"})).encode())
    files.write(root + "/unigram.json", json.dumps({
        "added_tokens": [{"id": 5, "content": "<s>", "special": True, "lstrip": True}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "_"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|[^\\p{L}]{2,3}"}, "behavior": "MergedWithNext", "invert": True},
            {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first"}]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                           "special_tokens": {"<s>": {"ids": [5]}}},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                  "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2], ["<0x0A>", -9], [SPACE, -1]]}}).encode())


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(sys.argv[2])
    elif sys.argv[1] == "--peer":
        fetched = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "bench/models/smollm2-135m.gguf")
        peer(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else fetched if os.path.exists(fetched) else "")
    else:
        hand_made(sys.argv[1])
        broken(sys.argv[1])
