#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as the transformers library (PyPI) makes, saves and runs them, in f32; for tests/golden/test_slow_peers.c.

    peers.py FOLDER               small random models of each kind, saved as safetensors by the library itself and as GGUF
                                  by the writer of model_file_golden.py, with logits and greedy continuations
    peers.py --smollm2 GGUF FILE  the record tests/golden/smollm2_logits.tsv of a model that `bench model` brings

Needs torch, transformers, safetensors, gguf and NumPy: `tools/setup.sh python-peers` makes a place that has them.
"""
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import numpy as np
import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import model_file_golden as files

PROMPT, MORE = 200, 64
CACHE = "past_key_values"  # as models take it
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "factor": 2.0}
# name: kind, key-value heads, tied, window, rope scaling, rotary base
MODELS = {
    "llama_tied": ("llama", 2, True, None, None, 10000.0),
    "llama_separate": ("llama", 8, False, None, None, 500000.0),
    "llama_3": ("llama", 1, True, None, LLAMA3, 10000.0),
    "llama_linear": ("llama", 2, False, None, LINEAR, 10000.0),
    "mistral_window": ("mistral", 2, False, 48, None, 10000.0),
    "qwen2": ("qwen2", 2, True, None, None, 1000000.0),
    "qwen2_yarn": ("qwen2", 4, False, None, YARN, 10000.0),
}
CLASSES = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
           "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
           "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM)}


def build(kind, n_kv, tied, window, scaling, base, rng):
    config, model = CLASSES[kind]
    more = {"head_dim": 16} if kind != "qwen2" else {}
    rope = dict(scaling or {"rope_type": "default"}, rope_theta=base)
    config = config(hidden_size=128, intermediate_size=224, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=n_kv,
                    vocab_size=199, max_position_embeddings=4096, tie_word_embeddings=tied, rope_parameters=rope, rms_norm_eps=1e-5,
                    attn_implementation="eager", **more)
    config.sliding_window = window
    model = model(config).to(torch.float32).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            deviation = 1.0 if "embed" in name else 0.3 if name.endswith("bias") else 2 / np.sqrt(p.shape[-1])
            v = rng.normal(0, deviation, p.shape) if "norm" not in name else rng.uniform(0.5, 1.5, p.shape)
            p.copy_(torch.from_numpy(v.astype(np.float32)))
    return model


def parts(model):
    """The weights as model_file_golden has them."""
    back = {v: k for k, v in files.HF_NAMES.items()}
    out = {}
    for name, p in model.named_parameters():
        pieces = name.split(".")
        layer, rest = (int(pieces[2]), ".".join(pieces[3:])) if name.startswith("model.layers.") else (None, name)
        v = p.detach().numpy()
        out[layer, back[rest]] = ("F32", v.shape[0] if v.ndim == 2 else None, v.shape[-1], files.encode("F32", v))
    return out


def as_gguf(path, model, kind, scaling, base):
    c = model.config
    s = dict(n_layers=c.num_hidden_layers, d_model=c.hidden_size, n_q=c.num_attention_heads, n_kv=c.num_key_value_heads, d_h=16,
             d_ff=c.intermediate_size, vocab=c.vocab_size, base=base, eps=c.rms_norm_eps, scaling=scaling)
    m, architecture = parts(model), "qwen2" if kind == "qwen2" else "llama"
    more, tensors = files.gguf_scaling(s, architecture) if scaling else ([], [])
    m = files.to_pairs(m, s) if architecture == "llama" else m
    files.write(path, files.gguf(files.gguf_meta(s, architecture) + more, files.gguf_tensors(m) + tensors))


def run(model, prompt, more=MORE):
    """Logits of every position of the prompt; greedy tokens, and how far the second best was from each."""
    tokens, margins = [], []
    with torch.no_grad():
        out = model(torch.from_numpy(prompt.astype(np.int64))[None], use_cache=True)
        first = out.logits[0].numpy()
        for _ in range(more):
            best = torch.topk(out.logits[0, -1], 2)
            margins.append(float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
            out = model(best.indices[:1][None], use_cache=True, **{CACHE: out.past_key_values})
    return first, np.array(tokens), np.array(margins)


def small(root):
    rng, lines = np.random.default_rng(20261202), []
    for name, (kind, n_kv, tied, window, scaling, base) in MODELS.items():
        model = build(kind, n_kv, tied, window, scaling, base, rng)
        model.save_pretrained(os.path.join(root, name), safe_serialization=True)
        as_gguf(os.path.join(root, name + ".gguf"), model, kind, scaling, base)
        prompt = rng.integers(0, model.config.vocab_size, PROMPT)
        logits, tokens, margins = run(model, prompt)
        head = np.array([PROMPT, model.config.vocab_size, MORE, window or 0], "<i4")
        files.write(os.path.join(root, name + ".expected"), b"".join(
            [head.tobytes(), prompt.astype("<i4").tobytes(), tokens.astype("<i4").tobytes(), margins.astype("<f4").tobytes(),
             logits.astype("<f4").tobytes()]))
        lines.append(name)
    files.write(os.path.join(root, "names"), "".join(line + "\n" for line in lines).encode())


def from_gguf(path):
    """A llama of the library with the weights of a GGUF file, as the gguf package (PyPI) dequantizes them."""
    import gguf
    reader = gguf.GGUFReader(path)
    get = lambda key: reader.fields["llama." + key].contents()
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    config = transformers.LlamaConfig(
        hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"), num_hidden_layers=get("block_count"),
        num_attention_heads=get("attention.head_count"), num_key_value_heads=get("attention.head_count_kv"),
        vocab_size=len(weights["token_embd.weight"]), max_position_embeddings=get("context_length"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), tie_word_embeddings="output.weight" not in weights,
        rope_parameters={"rope_type": "default", "rope_theta": get("rope.freq_base")}, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).to(torch.float32).eval()
    names = {v: files.GGUF_NAMES[k] for k, v in files.HF_NAMES.items()}
    with torch.no_grad():
        for name, p in model.named_parameters():
            pieces = name.split(".")
            inside = name.startswith("model.layers.")
            kind = names[".".join(pieces[3:]) if inside else name]
            v = weights[("blk.%s." % pieces[2] if inside else "") + kind]
            if kind in ("attn_q.weight", "attn_k.weight"):  # back to halves that turn together
                heads = config.num_attention_heads if kind == "attn_q.weight" else config.num_key_value_heads
                v = v.reshape(heads, -1, 2, v.shape[-1]).swapaxes(1, 2).reshape(v.shape)
            assert tuple(p.shape) == v.shape, name
            p.copy_(torch.from_numpy(np.array(v, dtype=np.float32)))
    return model


def smollm2(path, out):
    """Every position's two largest logits and those of eight fixed ids, with mean and deviation of all."""
    model = from_gguf(path)
    rng = np.random.default_rng(135)
    prompt = rng.integers(0, model.config.vocab_size, PROMPT)
    # The first half is what the model itself says, so that some of it is language.
    prompt[4:100] = run(model, prompt[:4], 96)[1]
    logits, tokens, margins = run(model, prompt)
    ids = rng.integers(0, model.config.vocab_size, 8)
    with open(out, "w") as f:
        f.write("# tests/golden/peers.py --smollm2: transformers %s, torch %s, f32, weights dequantized by gguf\n"
                % (transformers.__version__, torch.__version__.split("+")[0]))
        f.write("prompt\t%s\n" % " ".join(map(str, prompt)))
        f.write("ids\t%s\n" % " ".join(map(str, ids)))
        f.write("greedy\t%s\n" % " ".join(map(str, tokens)))
        f.write("margins\t%s\n" % " ".join("%.5g" % m for m in margins))
        for row in logits:
            best = np.argsort(-row)[:2]
            f.write("row\t%d %d\t%s\n" % (best[0], best[1], " ".join("%.6g" % v for v in
                                                                     [row.mean(), row.std(), *row[best], *row[ids]])))


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("BENCH_PEER_THREADS", "2")))
    if sys.argv[1] == "--smollm2":
        smollm2(os.path.abspath(sys.argv[2]), sys.argv[3])
    else:
        small(sys.argv[1])
