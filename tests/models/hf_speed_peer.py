#!/usr/bin/env python3
"""tests/models/hf_speed_peer.py - how fast imported models of Hugging Face run, beside the programs that people run them with.

    hf_speed_peer.py build [MODEL...] [--threads 2 1] [--rounds 5] [--folder DIR] [--layers N]

Each MODEL has the shape of a well-known one and random weights. transformers writes its folder, `convert --from hf` reads
that, and the peers get the same weights:

  minilm, bert-base   encoders: `embed` beside transformers (PyTorch, eager) and onnxruntime, in f32: lines a second, in
                      batches of 32 lines of about 20 and 100 ids
  t5-small            `generate` beside CTranslate2, both in f32 and int8: tokens of output a second, 30 ids in, 40 out,
                      greedy and with beam 4
  smollm, qwen2       language models of 135 M and 494 M parameters: `generate --stream` beside llama.cpp, both in f32 and
                      int8 (its Q8_0): ids of a prompt of 256 a second, until the first token is there; then tokens a second,
                      of 128

All read ids. Every side is a process that has loaded its model and made a run that is not counted. A round is a run of each
side, one after the other, in an order that turns; all of a round have the same input. Printed: the medians of the rounds and,
for each pair, the median, least and largest of the rounds' ratios. Outputs in f32 are compared as well: cosines of vectors,
or how many output ids are the same.

Needs torch and transformers; for its models onnxruntime and onnx, or ctranslate2, or llama_cpp and gguf.
--layers: with so many layers, to try this script.
--no-flash: llama.cpp without the flash attention that it has by default, which changes its logits by hundredths, and with
a cache in f32: to compare ids.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

BERT = dict(vocab_size=30522, num_attention_heads=12, max_position_embeddings=512)
LLAMA = dict(max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, initializer_range=0.05)
MODELS = {
    "minilm": ("encoder", dict(BERT, hidden_size=384, num_hidden_layers=6, intermediate_size=1536)),
    "bert-base": ("encoder", dict(BERT, hidden_size=768, num_hidden_layers=12, intermediate_size=3072)),
    "t5-small": ("t5", dict(vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_decoder_layers=6, num_heads=8,
                            decoder_start_token_id=0)),
    "smollm": ("llama", dict(LLAMA, vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9,
                             num_key_value_heads=3, intermediate_size=1536)),
    "qwen2": ("qwen2", dict(LLAMA, vocab_size=151936, hidden_size=896, num_hidden_layers=24, num_attention_heads=14,
                            num_key_value_heads=2, intermediate_size=4864)),
}
LINES, SOURCE, OUTPUT, PROMPT, NEW = 32, 30, 40, 256, 128


# ---- models ------------------------------------------------------------------------------------------------------------

def make_folder(o):
    import torch
    import transformers as t
    torch.manual_seed(1)
    config, kind = {"encoder": (t.BertConfig, t.BertModel), "t5": (t.T5Config, t.T5ForConditionalGeneration),
                    "llama": (t.LlamaConfig, t.LlamaForCausalLM), "qwen2": (t.Qwen2Config, t.Qwen2ForCausalLM)}[o["family"]]
    model = kind(config(**o["config"])).eval()
    if o["family"] == "t5":  # so that outputs depend on the layers
        model.shared.weight.data.mul_(0.05)
    model.save_pretrained(o["hf"])


def encoder_of(o):
    """A module that makes vectors of lines: the mean of their tokens'."""
    import torch
    from transformers import BertModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel.from_pretrained(o["hf"], add_pooling_layer=False).eval()

        def forward(self, ids, mask):
            x = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            m = mask.unsqueeze(-1).to(x.dtype)
            return (x * m).sum(1) / m.sum(1)
    return Encoder().eval()


def make_onnx(o):
    """As exported, and as onnxruntime's own tool fuses BERT."""
    import torch
    from onnxruntime.transformers import optimizer
    model, ids, c = encoder_of(o), torch.ones(LINES, 24, dtype=torch.int64), o["config"]
    model.bert.set_attn_implementation("eager")  # the only form whose attention the tool knows
    torch.onnx.export(model, (ids, torch.tril(ids, 8)), o["onnx"] + ".plain", input_names=["ids", "mask"], output_names=["vectors"],
                      dynamic_axes={"ids": {1: "length"}, "mask": {1: "length"}}, dynamo=False, opset_version=17)
    fused = optimizer.optimize_model(o["onnx"] + ".plain", model_type="bert", num_heads=c["num_attention_heads"],
                                     hidden_size=c["hidden_size"], opt_level=0)
    fused.save_model_to_file(o["onnx"])


def make_ct2(o):
    """As the converter does it, without a tokenizer's files."""
    import torch
    from ctranslate2.converters import transformers as converters
    from transformers import T5ForConditionalGeneration
    tokens = ["<pad>", "</s>", "<unk>"] + [f"t{i}" for i in range(3, o["config"]["vocab_size"])]

    class Tokenizer:
        pad_token, unk_token, bos_token, eos_token = "<pad>", "<unk>", None, "</s>"
        additional_special_tokens = []

        def get_vocab(self):
            return {t: i for i, t in enumerate(tokens)}

        def convert_ids_to_tokens(self, i):
            return tokens[i]

    with torch.no_grad():
        spec = converters.T5Loader()(T5ForConditionalGeneration.from_pretrained(o["hf"]), Tokenizer())
    spec.validate()
    spec.optimize()
    os.makedirs(o["ct2"])
    spec.save(o["ct2"])


GGUF = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def gguf_tensors(o):
    """Names and values. llama.cpp's Llama turns neighbours, so rows of q and k are put in this order."""
    from safetensors.numpy import load_file
    c = o["config"]
    for name, x in load_file(o["hf"] + "/model.safetensors").items():
        part, _, end = name.removeprefix("model.").rpartition(".")
        layer, _, inner = part.removeprefix("layers.").partition(".")
        if part.startswith("layers."):
            if o["family"] == "llama" and inner.endswith(("q_proj", "k_proj")):
                heads = c["num_attention_heads" if "q_proj" in inner else "num_key_value_heads"]
                x = x.reshape(heads, 2, -1, x.shape[-1]).swapaxes(1, 2).reshape(x.shape)
            yield f"blk.{layer}.{GGUF[inner]}.{end}", x
        else:
            yield {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}[part] + "." + end, x


def make_gguf(o):
    import gguf
    import numpy
    c, q8 = o["config"], gguf.GGMLQuantizationType.Q8_0
    config = json.load(open(o["hf"] + "/config.json"))
    for int8 in False, True:
        w = gguf.GGUFWriter(o["gguf-int8" if int8 else "gguf-f32"], o["family"])
        w.add_context_length(c["max_position_embeddings"])
        w.add_embedding_length(c["hidden_size"])
        w.add_block_count(c["num_hidden_layers"])
        w.add_feed_forward_length(c["intermediate_size"])
        w.add_head_count(c["num_attention_heads"])
        w.add_head_count_kv(c["num_key_value_heads"])
        w.add_layer_norm_rms_eps(config["rms_norm_eps"])
        w.add_rope_dimension_count(c["hidden_size"] // c["num_attention_heads"])
        w.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
        w.add_vocab_size(c["vocab_size"])
        w.add_tokenizer_model("none")
        w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if int8 else gguf.LlamaFileType.ALL_F32)
        for name, x in gguf_tensors(o):
            x = numpy.ascontiguousarray(x, numpy.float32)
            if int8 and x.ndim == 2:
                w.add_tensor(name, gguf.quants.quantize(x, q8), raw_dtype=q8)
            else:
                w.add_tensor(name, x)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()


# ---- peers: a function that is given the input, and returns seconds and the output ---------------------------------------

def batches(rows):
    """From long to short, as embed sorts them: their places, ids, mask."""
    import numpy
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    for k in range(0, len(rows), LINES):
        places = order[k:k + LINES]
        ids = numpy.zeros((len(places), len(rows[places[0]])), numpy.int64)
        mask = numpy.zeros_like(ids)
        for i, p in enumerate(places):
            ids[i, :len(rows[p])], mask[i, :len(rows[p])] = rows[p], 1
        yield places, ids, mask


def encode(rows, run):
    vectors, begin = [None] * len(rows), time.perf_counter()
    for places, ids, mask in batches(rows):
        for p, v in zip(places, run(ids, mask)):
            vectors[p] = v
    return [time.perf_counter() - begin], [[float(x) for x in v] for v in vectors]


def torch_side(o):
    import torch
    torch.set_num_threads(o["threads"])
    model = encoder_of(o)

    def run(ids, mask):
        with torch.inference_mode():
            return model(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
    return lambda rows: encode(rows, run)


def onnx_side(o):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = o["threads"]
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(o["file"], options, providers=["CPUExecutionProvider"])
    return lambda rows: encode(rows, lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0])


def ct2_side(o):
    import ctranslate2
    kind = "int8" if o["int8"] else "float32"
    translator = ctranslate2.Translator(o["ct2"], inter_threads=1, intra_threads=o["threads"], compute_type=kind)

    def run(rows):
        tokens = [[f"t{i}" for i in row] for row in rows]
        begin = time.perf_counter()
        results = translator.translate_batch(tokens, beam_size=o["beam"], min_decoding_length=OUTPUT,
                                             max_decoding_length=OUTPUT, max_batch_size=0)
        took = time.perf_counter() - begin
        return [took], [[int(t[1:]) if t[0] == "t" else 0 for t in r.hypotheses[0]] for r in results]
    return run


def llama_side(o):
    import ctypes

    import llama_cpp as ll
    quiet = ll.llama_log_callback(lambda *_: None)
    ll.llama_log_set(quiet, ctypes.c_void_p(0))
    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(o["file"].encode(), ll.llama_model_default_params())
    params = ll.llama_context_default_params()
    params.n_ctx, params.n_threads, params.n_threads_batch = PROMPT + NEW, o["threads"], o["threads"]
    if o["no_flash"]:
        params.flash_attn_type, params.type_k, params.type_v = ll.LLAMA_FLASH_ATTN_TYPE_DISABLED, ll.GGML_TYPE_F32, ll.GGML_TYPE_F32
    context = ll.llama_init_from_model(model, params)
    sampler = ll.llama_sampler_init_greedy()

    def step(ids):
        array = (ll.llama_token * len(ids))(*ids)
        if ll.llama_decode(context, ll.llama_batch_get_one(array, len(ids))):
            sys.exit("llama_decode failed")
        return ll.llama_sampler_sample(sampler, context, -1)

    def run(rows, quiet=quiet):  # which must live as long
        ll.llama_memory_clear(ll.llama_get_memory(context), False)
        begin = time.perf_counter()
        out = [step(rows[0])]
        first = time.perf_counter()
        while len(out) < NEW:
            out.append(step(out[-1:]))
        return [first - begin, time.perf_counter() - first], [out]
    return run


PARTS = {"folder": make_folder, "onnx": make_onnx, "ct2": make_ct2, "gguf": make_gguf, "torch-side": torch_side,
         "onnx-side": onnx_side, "ct2-side": ct2_side, "llama-side": llama_side}


def serve(o):
    """In a process of its own: makes files, or answers a line of input with seconds and output."""
    sys.stdout = os.fdopen(os.dup(1), "w")  # lines of libraries go to stderr
    os.dup2(2, 1)
    run = PARTS[o["part"]](o)
    for line in sys.stdin if o["part"].endswith("side") else []:
        print(json.dumps(run(json.loads(line))), file=sys.stdout, flush=True)


def make(part, o):
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--serve", json.dumps(dict(o, part=part))],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{part}: {done.stderr}")


class Peer:
    def __init__(self, part, **o):
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--serve", json.dumps(dict(o, part=part))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, rows):
        self.process.stdin.write(json.dumps(rows) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or sys.exit(f"{self.process.args}: it ended"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- weft: the programs, which answer lines that have arrived ------------------------------------------------------------

class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen([str(x) for x in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                        stderr=subprocess.DEVNULL)

    def ask(self, rows, whole):
        """Seconds until the first bytes, seconds from there to the end, the output."""
        text = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
        begin = time.perf_counter()
        self.process.stdin.write(text)
        out = self.process.stdout.read(1 << 20)
        first = time.perf_counter()
        while not whole(out):
            out += self.process.stdout.read(1 << 20) or sys.exit(f"{self.process.args}: it ended")
        return first - begin, time.perf_counter() - first, out

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Embed(Program):
    def __init__(self, a, o, threads):
        self.width = 4 * o["config"]["hidden_size"]
        super().__init__(a.build / "tools" / "embed", o["model"], "--format", "f32", "--threads", threads, "--batch-size", LINES,
                         "--quiet")

    def run(self, rows):
        import array
        first, rest, out = self.ask(rows, lambda out: len(out) == len(rows) * self.width)
        return [first + rest], [array.array("f", out[i:i + self.width]) for i in range(0, len(out), self.width)]


class Generate(Program):
    def __init__(self, a, o, threads, int8, new, *more):
        super().__init__(a.build / "tools" / "generate", o["model"], "--threads", threads, "--min-len", new, "--max-new-tokens",
                         new, "--at-limit", "no-end", "--weights", "int8" if int8 else "f32", "--quiet", *more)
        self.streams = "--stream" in more

    def run(self, rows):
        first, rest, out = self.ask(rows, lambda out: out.count(b"\n") == len(rows))
        ids = [[int(x) for x in line.split()] for line in out.decode().splitlines()]
        return [first, rest] if self.streams else [first + rest], ids


# ---- rounds ------------------------------------------------------------------------------------------------------------

def cosine(a, b):
    dot, aa, bb = (sum(x * y for x, y in zip(*p)) for p in ((a, b), (a, a), (b, b)))
    return dot / (aa * bb)**0.5


def likeness(ours, theirs):
    if isinstance(ours[0][0], float):
        return f"least cosine {min(map(cosine, ours, theirs)):.7f}"
    same = sum(x == y for a, b in zip(ours, theirs) for x, y in zip(a, b))
    return f"{same} of {sum(map(len, ours))} ids are the same"


def race(a, label, sides, pairs, amounts, inputs):
    """amounts: (what, how much of it) for each of a run's times."""
    rates = {name: [] for name in sides}
    for k in range(a.rounds + 1):
        rows, outputs = inputs(k), {}
        for i in range(len(sides)):
            name = list(sides)[(i + k) % len(sides)]
            time.sleep(0.05)  # threads of the side before may still spin
            seconds, outputs[name] = sides[name].run(rows)
            if k:
                rates[name].append([amount / s for (_, amount), s in zip(amounts, seconds)])
    for i, (what, _) in enumerate(amounts):
        medians = {name: statistics.median(r[i] for r in rates[name]) for name in sides}
        print(f"{label}, {what} a second: " + ", ".join(f"{name} {m:.5g}" for name, m in medians.items()), flush=True)
        for ours, theirs in pairs:
            ratios = sorted(x[i] / y[i] for x, y in zip(rates[ours], rates[theirs]))
            alike = "" if "int8" in ours + theirs else "; " + likeness(outputs[ours], outputs[theirs])
            print(f"    {ours} by {theirs}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}){alike}", flush=True)


def random_rows(seed, n, low, high, vocab):
    r = random.Random(seed)
    return [[r.randrange(1000 if vocab > 2000 else 3, vocab - 200) for _ in range(r.randint(low, high))] for _ in range(n)]


def race_encoder(a, o, threads):
    sides = {"weft": Embed(a, o, threads), "torch": Peer("torch-side", threads=threads, **o),
             "onnxruntime": Peer("onnx-side", threads=threads, file=o["onnx"], **o),
             "onnxruntime plain": Peer("onnx-side", threads=threads, file=o["onnx"] + ".plain", **o)}
    for length, n in (20, 4 * LINES), (100, LINES):
        race(a, f"{o['name']}, threads {threads}, lines of {length} ids", sides, [("weft", x) for x in list(sides)[1:]],
             [("lines", n)],
             lambda k: random_rows(k, n, length * 8 // 10, length * 12 // 10, o["config"]["vocab_size"]))
    close(sides)


def race_t5(a, o, threads):
    for beam, batch in (1, 1), (1, 8), (1, 32), (4, 1), (4, 8):
        sides = {}
        for int8 in False, True:
            kind = "int8" if int8 else "f32"
            sides["weft " + kind] = Generate(a, o, threads, int8, OUTPUT, "--beam", beam, "--batch-size", batch)
            sides["CTranslate2 " + kind] = Peer("ct2-side", threads=threads, int8=int8, beam=beam, **o)
        race(a, f"{o['name']}, threads {threads}, beam {beam}, batch {batch}", sides,
             [("weft f32", "CTranslate2 f32"), ("weft int8", "CTranslate2 int8"), ("weft f32", "CTranslate2 int8")],
             [("tokens", batch * OUTPUT)], lambda k: random_rows(k, batch, SOURCE, SOURCE, o["config"]["vocab_size"]))
        close(sides)


def race_language_model(a, o, threads):
    for int8 in False, True:
        kind = "int8" if int8 else "f32"
        sides = {"weft " + kind: Generate(a, o, threads, int8, NEW, "--beam", 1, "--stream"),
                 "llama.cpp " + kind: Peer("llama-side", threads=threads, no_flash=a.no_flash, file=o["gguf-" + kind], **o)}
        race(a, f"{o['name']}, threads {threads}, {kind}", sides, [tuple(sides)],
             [("ids of a prompt", PROMPT), ("tokens of output", NEW - 1)],
             lambda k: random_rows(k, 1, PROMPT, PROMPT, o["config"]["vocab_size"]))
        close(sides)


def close(sides):
    for side in sides.values():
        side.close()


KINDS = {"encoder": (("onnx",), race_encoder), "t5": (("ct2",), race_t5), "llama": (("gguf",), race_language_model),
         "qwen2": (("gguf",), race_language_model)}


def run_model(a, name, folder):
    family, config = MODELS[name]
    if a.layers:
        config = {k: a.layers if k.endswith("layers") else v for k, v in config.items()}
    parts, race_kind = KINDS[family]
    o = {x: f"{folder}/{name}.{x}" for x in ("hf", "onnx", "ct2", "gguf-f32", "gguf-int8", "model")}
    o.update(name=name, family=family, config=config)
    for part, made in ("folder", o["hf"]), *((p, o["gguf-int8" if p == "gguf" else p]) for p in parts):
        if not os.path.exists(made):
            make(part, o)
    if not os.path.exists(o["model"]):
        subprocess.run([a.build / "tools" / "convert", "--from", "hf", o["hf"], "-o", o["model"]], check=True, capture_output=True)
    for threads in a.threads if not a.make else []:
        race_kind(a, o, threads)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", type=lambda x: pathlib.Path(x).resolve())
    p.add_argument("models", nargs="*", metavar="MODEL")
    p.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--folder", help="keep the models here")
    p.add_argument("--layers", type=int)
    p.add_argument("--no-flash", action="store_true")
    p.add_argument("--make", action="store_true", help="make the models, and run nothing")
    p.add_argument("--serve", type=json.loads, help=argparse.SUPPRESS)
    a = p.parse_intermixed_args()
    if a.serve:
        serve(a.serve)
        return
    with tempfile.TemporaryDirectory() as temporary:
        for name in a.models or MODELS:
            run_model(a, name, a.folder or temporary)


if __name__ == "__main__":
    main()
