#!/usr/bin/env python3
"""tests/ct2_peer.py - `bench step --preset base --mode decode` beside CTranslate2, in turns.

    tests/ct2_peer.py build/tools/bench [--batch 1 2 8 32] [--beam 1 4] [--threads 1 2] [--int8]
    WEFT_ISA=avx2 CT2_FORCE_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 tests/ct2_peer.py build/tools/bench

Both decode sources of 100 random tokens into exactly 120 each, with a model of the same sizes and
random weights: D 512, 8 heads, 6 + 6 layers, F 2048, vocabularies of 10,000 and 12,000. A round is
one process of bench (at least three runs in it), then as many translations by CTranslate2. Printed
for each case: the medians of both over the rounds in tokens of output a second, and weft's rate by
CTranslate2's, of the medians and of each one's best run, which other programs disturb least.
Needs ctranslate2 and numpy. CT2_VERBOSE=1 tells which instruction set and which backend of
products (MKL, oneDNN, ...) CTranslate2 has chosen; CT2_USE_MKL=0 chooses another one.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import ctranslate2
import numpy

D, HEADS, LAYERS, F, SOURCES, TARGETS, S, T = 512, 8, 6, 2048, 10000, 12000, 100, 120
RANDOM = numpy.random.default_rng(1)


def fill_linear(to, rows, columns):
    to.weight = (RANDOM.random((rows, columns), numpy.float32) - 0.5) * (2 / columns**0.5)
    to.bias = numpy.zeros(rows, numpy.float32)


def fill_norm(to):
    to.gamma, to.beta = numpy.ones(D, numpy.float32), numpy.zeros(D, numpy.float32)


def fill_attention(to, *rows):
    fill_norm(to.layer_norm)
    for linear, n in zip(to.linear, rows):
        fill_linear(linear, n, D)


def fill_layer(layer, decodes):
    fill_attention(layer.self_attention, 3 * D, D)
    if decodes:
        fill_attention(layer.attention, D, 2 * D, D)
    fill_norm(layer.ffn.layer_norm)
    fill_linear(layer.ffn.linear_0, F, D)
    fill_linear(layer.ffn.linear_1, D, F)


def fill_side(side, embeddings, tokens, decodes):
    embeddings.weight = RANDOM.standard_normal((tokens, D), numpy.float32) * D**-0.5
    side.position_encodings.encodings = RANDOM.random((512, D), numpy.float32) * 0.1
    fill_norm(side.layer_norm)
    for layer in side.layer:
        fill_layer(layer, decodes)


def random_model(path):
    spec = ctranslate2.specs.TransformerSpec.from_config(LAYERS, HEADS, pre_norm=True)
    fill_side(spec.encoder, spec.encoder.embeddings[0], SOURCES, False)
    fill_side(spec.decoder, spec.decoder.embeddings, TARGETS, True)
    fill_linear(spec.decoder.projection, TARGETS, D)
    words = ["<unk>", "<s>", "</s>"] + [f"t{i}" for i in range(TARGETS)]
    spec.register_source_vocabulary(words[:SOURCES])
    spec.register_target_vocabulary(words[:TARGETS])
    spec.validate()
    spec.optimize()
    spec.save(path)


def weft(o, batch, beam, threads):
    """Seconds of the median and of the shortest run, and the peak of memory."""
    command = [o.bench, "step", "--preset", "base", "--mode", "decode", "--json"]
    command += ["--batch", str(batch), "--beam", str(beam), "--threads", str(threads)]
    command += ["--seconds", str(o.seconds), "--weights", o.weights]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for event in map(json.loads, out.splitlines()):
        if event["event"] == "result" and "a step" not in event["name"]:
            return event["median"], event["min"], event["memory"]
    raise SystemExit("bench gave no result")


def peer(translator, o, batch, beam):
    sources = [[f"t{RANDOM.integers(SOURCES - 3)}" for _ in range(S)] for _ in range(batch)]
    options = {"beam_size": beam, "min_decoding_length": T, "max_decoding_length": T}
    translator.translate_batch(sources, **options)  # not timed, as bench has its first runs
    times, end = [], time.perf_counter() + o.seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        results = translator.translate_batch(sources, **options)
        times.append(time.perf_counter() - start)
        assert all(len(r.hypotheses[0]) == T for r in results)
    return statistics.median(times), min(times)


def compare(translator, o, batch, beam, threads):
    ours, theirs = [], []
    for _ in range(o.rounds):
        ours.append(weft(o, batch, beam, threads))
        theirs.append(peer(translator, o, batch, beam))
    tokens = batch * T
    a, b = (statistics.median(x[0] for x in both) for both in (ours, theirs))
    best, best_peer = (min(x[1] for x in both) for both in (ours, theirs))
    memory = max(x[2] for x in ours) / 1e6
    print(
        f"{threads:7} {batch:6} {beam:5} {tokens / a:10.1f} {tokens / b:10.1f}"
        f" {b / a:7.2f} {best_peer / best:7.2f} {memory:8.0f} MB",
        flush=True,
    )


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("bench")
    p.add_argument("--batch", type=int, nargs="+", default=[1, 2, 8, 32])
    p.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--weights", default="f32", help="how weft keeps weights")
    p.add_argument("--int8", action="store_true", help="CTranslate2 with int8 weights")
    o = p.parse_args()
    kind = "int8" if o.int8 else "float32"
    settings = {k: v for k, v in os.environ.items() if k.startswith(("CT2_", "MKL_", "WEFT_"))}
    print(f"weft {o.weights} beside ctranslate2 {ctranslate2.__version__} {kind} {settings}")
    print("threads  batch  beam   weft t/s    ct2 t/s   ratio    best    weft memory")
    with tempfile.TemporaryDirectory() as path:
        random_model(path)
        for threads in o.threads:
            translator = ctranslate2.Translator(path, compute_type=kind, intra_threads=threads)
            for beam in o.beam:
                for batch in o.batch:
                    compare(translator, o, batch, beam, threads)
            del translator


if __name__ == "__main__":
    main()
