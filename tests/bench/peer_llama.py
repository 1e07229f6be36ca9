# SPDX-License-Identifier: Apache-2.0
"""llama.cpp on a synthetic model of the shape seed-0.5b, to stand beside `bench` in one sitting.

   peer_llama.py FOLDER [THREADS]  one JSON line for each row of cpu_beside.toml that llama.cpp can run too: a prompt of
                                   512 tokens, one step of 1 to 32 sequences with 64 tokens each, and steps of one
                                   with its own 8 and 4 bit formats. FOLDER keeps the models: normal weights, made once.
   Needs llama-cpp-python, numpy and gguf of PyPI."""
import ctypes
import json
import os
import statistics
import sys
import time

import llama_cpp as llama

LAYERS, D, HEADS, KV_HEADS, D_H, D_FF, VOCAB = 24, 896, 14, 2, 64, 4864, 151936
PROMPT, CONTEXT, BATCHES, REPEATS = 512, 64, (1, 2, 4, 8, 16, 32), 8


def make(path):
    import gguf
    import numpy as np

    random = np.random.default_rng(1)
    out = gguf.GGUFWriter(path, "qwen2")
    out.add_name("seed-0.5b")
    out.add_context_length(32768)
    out.add_embedding_length(D)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(D_FF)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_rope_freq_base(1e6)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_vocab_size(VOCAB)
    out.add_tokenizer_model("none")
    out.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    bf16 = gguf.GGMLQuantizationType.BF16

    def matrix(name, rows, cols):
        values = random.standard_normal((rows, cols), dtype=np.float32) * 0.02
        out.add_tensor(name, gguf.quants.quantize(values, bf16), raw_dtype=bf16)

    def vector(name, n, value):
        out.add_tensor(name, np.full(n, value, np.float32))

    matrix("token_embd.weight", VOCAB, D)
    vector("output_norm.weight", D, 1)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        vector(block + "attn_norm.weight", D, 1)
        vector(block + "ffn_norm.weight", D, 1)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            matrix(f"{block}attn_{name}.weight", heads * D_H, D)
            vector(f"{block}attn_{name}.bias", heads * D_H, 0)
        matrix(block + "attn_output.weight", D, HEADS * D_H)
        matrix(block + "ffn_gate.weight", D_FF, D)
        matrix(block + "ffn_up.weight", D_FF, D)
        matrix(block + "ffn_down.weight", D, D_FF)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def quantize(source, path, file_type, tensor_type):
    """By llama.cpp's own quantizer, every matrix alike: Q8_0 has 8.5 bits a weight, Q4_0 4.5."""
    params = llama.llama_model_quantize_default_params()
    params.ftype = file_type
    params.output_tensor_type = params.token_embedding_type = tensor_type
    if llama.llama_model_quantize(source.encode(), path.encode(), ctypes.byref(params)):
        sys.exit(f"llama.cpp cannot quantize {source}")


def measure(path, threads, cells):
    """cells: {name of the row: sequences of a step; 0: the prompt}"""
    model_params = llama.llama_model_default_params()
    model_params.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(path.encode(), model_params)
    if not model:
        sys.exit(f"{path}: llama.cpp cannot load it")
    params = llama.llama_context_default_params()
    params.n_ctx = max(PROMPT, max(BATCHES) * (CONTEXT + REPEATS + 8))
    params.n_batch, params.n_ubatch = 2048, 512
    params.n_threads = params.n_threads_batch = threads
    params.n_seq_max = max(BATCHES)
    params.kv_unified = True
    context = llama.llama_init_from_model(model, params)
    memory = llama.llama_get_memory(context)

    def step(rows):
        """One forward pass over rows of (sequence, position, whether logits are wanted); its ms."""
        batch = llama.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for i, (sequence, position, wanted) in enumerate(rows):
            batch.token[i] = (i * 7919 + position * 104729) % VOCAB
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = wanted
        begin = time.perf_counter()
        if llama.llama_decode(context, batch):
            sys.exit("llama.cpp: the step failed")
        llama.llama_synchronize(context)
        took = time.perf_counter() - begin
        llama.llama_batch_free(batch)
        return took * 1e3

    def show(cell, times):
        print(json.dumps({"cell": cell, "median_ms": statistics.median(times), "samples_ms": times}), flush=True)

    for cell, n in cells.items():
        llama.llama_memory_clear(memory, True)
        times = []
        if n == 0:
            for _ in range(4):
                llama.llama_memory_clear(memory, True)
                times.append(step([(0, p, p == PROMPT - 1) for p in range(PROMPT)]))
            show(cell, times[1:])
            continue
        for sequence in range(n):
            step([(sequence, p, False) for p in range(CONTEXT - 1)])
        show(cell, [step([(s, CONTEXT - 1 + i, True) for s in range(n)]) for i in range(REPEATS)][2:])
    llama.llama_free(context)
    llama.llama_model_free(model)


def main():
    folder, threads = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    silent = llama.llama_log_callback(lambda level, text, user: None)  # must outlive every call
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    full = f"{folder}/seed-0.5b-bf16.gguf"
    if not os.path.exists(full):
        make(full + ".part")
        os.rename(full + ".part", full)
    measure(full, threads, {"prefill": 0, **{f"decode batch={n}": n for n in BATCHES}})
    for name, kind in (("int8", "Q8_0"), ("int4", "Q4_0")):
        path = f"{folder}/seed-0.5b-{kind}.gguf"
        if not os.path.exists(path):
            quantize(full, path + ".part", getattr(llama, "LLAMA_FTYPE_MOSTLY_" + kind), getattr(llama, "GGML_TYPE_" + kind))
            os.rename(path + ".part", path)
        # Its products round inputs to int8 too; beside ours with f32 inputs it stands all the same.
        measure(path, threads, {f"quantized type={name} activation={inputs}": 1 for inputs in ("int8", "f32")})


main()
