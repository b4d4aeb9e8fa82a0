#!/usr/bin/env python3
"""tests/models/marian_peer.py - random translators in Marian's files, and what Marian makes of sources with them.

usage: marian_peer.py TOOLS FOLDER [MODELS [SENTENCES [BEAMS]]]
       marian_peer.py --firefox TOOLS FOLDER [SENTENCES [BEAMS]]
       marian_peer.py --record FOLDER           writes the small models of suite marian, tests/data/marian

Writes MODELS models (default 16) as model.npz or as int8 binary files, one vocabulary or two, SSRU, averages or self-attention,
post-norm or pre-norm; imports each by `convert --from marian`, and compares the ids of greedy `generate` with those of
Marian's formulas in numpy, in f64. Two tokens whose logits are within 1e-3 are a tie, which either side may decide.
Binary files run in Marian's own arithmetic, too, with and without a shortlist; there 0.1 is a tie. The first BEAMS sentences
(default 10) are searched with a beam of 4, too, whose scores are divided by the length and are not. Then it writes each model
back by `convert --to marian`: the numbers must be the same bits. --firefox does this for four models of the sizes of Firefox's
(tiny, base-memory, base, and base with two vocabularies). Needs numpy.
"""
import io
import json
import pathlib
import struct
import subprocess
import sys
import zipfile

import numpy as np

TIE = 1e-3
INT8_TIE = 0.1  # a last bit of f32 may round an activation to another integer, which moves logits by some hundredths
EOS, UNK = 0, 1


# ---- models ----------------------------------------------------------------------------------------------------------

def settings_of(m):
    """The settings as Marian writes them."""
    ssru = m["decoder"] == "rnn"
    lines = {
        "version": "v1.9.56 2020", "type": "transformer", "dim-emb": m["D"], "dim-vocabs": m["V"],
        "enc-depth": m["enc"], "dec-depth": m["dec"], "transformer-heads": m["H"], "transformer-dim-ffn": m["F"],
        "transformer-decoder-autoreg": m["decoder"], "dec-cell": "ssru" if ssru else "gru",
        "transformer-ffn-activation": m["act"], "transformer-ffn-depth": 2, "transformer-tied-layers": [],
        "transformer-preprocess": "n" if m["pre"] else '""', "transformer-postprocess": "da" if m["pre"] else "dan",
        "transformer-postprocess-emb": "d", "transformer-postprocess-top": "n" if m["top"] else '""',
        "tied-embeddings-all": str(m["tie"] == "all").lower(), "tied-embeddings": str(m["tie"] == "decoder").lower(),
        "tied-embeddings-src": str(m["tie"] == "src").lower(), "layer-normalization": "false", "skip": "false",
        "input-types": [], "ulr": "false", "lemma-dim-emb": 0,
    }
    if "aan" in m:
        lines |= {"transformer-dim-aan": m["aan"], "transformer-aan-activation": m["aan_act"]}
    text = ""
    for key, value in lines.items():
        if isinstance(value, list):
            text += f"{key}:\n" + ("".join(f"  - {v}\n" for v in value) or "  []\n")
        else:
            text += f"{key}: {value}\n"
    return text.encode() + b"\0"


def weights_of(m, rng):
    D, F = m["D"], m["F"]
    p = {}

    def matrix(name, rows, columns):
        p[name] = (rng.standard_normal((rows, columns)) * 1.3 / np.sqrt(rows)).astype(np.float32)

    def vector(name, n, mean=0.0):
        p[name] = (mean + 0.2 * rng.standard_normal((1, n))).astype(np.float32)

    def norm(name):
        vector(name + "_ln_scale" + ("_pre" if m["pre"] and "_top" not in name else ""), D, 1)
        vector(name + "_ln_bias" + ("_pre" if m["pre"] and "_top" not in name else ""), D)

    def attention(name):
        for x in "qkvo":
            matrix(f"{name}_W{x}", D, D)
            vector(f"{name}_b{x}", D)
        norm(name + "_Wo")

    def table(name, rows):
        p[name] = (rng.standard_normal((rows, D)) / np.sqrt(D)).astype(np.float32)

    if m["tie"] in ("all", "src"):
        table("Wemb", m["V"][0])
    else:
        table("encoder_Wemb", m["V"][0])
        table("decoder_Wemb", m["V"][1])
    if m["tie"] in ("src", "none"):
        matrix("decoder_ff_logit_out_W", D, m["V"][1])
    vector("decoder_ff_logit_out_b", m["V"][1])
    for stack, n in (("encoder", m["enc"]), ("decoder", m["dec"])):
        for i in range(1, n + 1):
            layer = f"{stack}_l{i}"
            if stack == "decoder" and m["decoder"] == "rnn":
                matrix(layer + "_rnn_W", D, D)
                matrix(layer + "_rnn_Wf", D, D)
                vector(layer + "_rnn_bf", D)
                norm(layer + ("_rnn" if m["pre"] else "_rnn_ffn"))
            elif stack == "decoder" and m["decoder"] == "average-attention":
                W = m["aan"]
                for k, a, b in [("1", D, W)] + [("2", W, D)] * (W != D) + [("i", D, D), ("f", D, D)]:
                    matrix(f"{layer}_aan_W{k}", a, b)
                    vector(f"{layer}_aan_b{k}", b)
                norm(layer + "_aan_ffn")
            else:
                attention(layer + "_self")
            if stack == "decoder":
                attention(layer + "_context")
            for k, (a, b) in enumerate(((D, F), (F, D)), 1):
                matrix(f"{layer}_ffn_W{k}", a, b)
                vector(f"{layer}_ffn_b{k}", b)
            norm(layer + "_ffn_ffn")
        if m["top"]:
            norm(stack + "_top")
    return p


def is_matrix(name):
    return "Wemb" in name or "_W" in name and "_ln_" not in name


# ---- files -----------------------------------------------------------------------------------------------------------

def write_npz(path, p, settings):
    arrays = dict(p)
    arrays["special:model.yml"] = np.frombuffer(settings, np.int8)
    with open(path, "wb") as f:
        np.savez(f, **arrays)


def write_binary(path, p, settings, rng):
    """Writes int8 matrices as intgemm has them. Returns the weights that they stand for, and (integers, qA, qB) of each."""
    items, rounded, parts = [], {}, {}
    for name, w in p.items():
        if not is_matrix(name):
            items.append((name, 0x0404, w.shape, w.tobytes()))
            rounded[name] = w
            continue
        q = np.float32(127) / np.abs(w).max()
        numbers = np.clip(np.rint(w * q), -127, 127).astype(np.int8)
        data = numbers if "Wemb" in name else numbers.T
        items.append((name, 0x4101, w.shape, np.ascontiguousarray(data).tobytes() + struct.pack("<f", q)))
        rounded[name] = numbers.astype(np.float32) / q
        alpha = np.float32(127 / rng.uniform(2, 6))
        parts[name] = numbers.T.astype(np.int64) if "Wemb" in name else numbers.astype(np.int64), alpha, q
        for product in ["none", name] if name == "Wemb" else [name]:  # Marian's name of the product with the table
            items.append((product + "_QuantMultA", 0x0404, (1, 1), alpha.tobytes()))
    items.append(("special:model.yml", 0x0101, (len(settings),), settings))
    items = [(n, t, s, d + bytes(-len(d) % 256)) for n, t, s, d in items]
    head = struct.pack("<QQ", 1, len(items))
    for name, kind, shape, data in items:
        head += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(data))
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack("<i", size) for _, _, shape, _ in items for size in shape)
    gap = ((len(head) + 8) // 256 + 1) * 256 - len(head) - 8
    pathlib.Path(path).write_bytes(head + struct.pack("<Q", gap) + bytes(gap) + b"".join(d for *_, d in items))
    return rounded, parts


def write_shortlist(path, first, lists):
    """Writes a binary lexical shortlist: `first` frequent tokens, and a list for each token of sources."""
    offsets = np.arange(len(lists) + 1, dtype=np.uint64) * lists.shape[1]
    body = struct.pack("<QQQQ", first, lists.shape[1], len(offsets), lists.size) + offsets.tobytes() + lists.tobytes()
    mask, h = (1 << 64) - 1, 0
    for (word,) in struct.iter_unpack("<Q", body[:len(body) // 8 * 8]):
        h = (h ^ (word + 0x9e3779b9 + (h << 6) + (h >> 2))) & mask
    pathlib.Path(path).write_bytes(struct.pack("<QQ", 0xF11A48D5013417F5, h) + body)


def candidates_of(source, first, lists):
    """Frequent tokens and those of the source's lists; further frequent ones up to a multiple of eight; the end."""
    found, more = set(range(first)) | {int(t) for w in source for t in lists[w]}, first
    while len(found) % 8:
        found.add(more)
        more += 1
    return sorted(found | {EOS})


# ---- Marian's formulas -----------------------------------------------------------------------------------------------

class Oracle:
    def __init__(self, m, p):
        self.m, self.p = m, {k: v.astype(np.float64) for k, v in p.items()}
        self.source = self.p["Wemb" if m["tie"] in ("all", "src") else "encoder_Wemb"]
        self.target = self.p["Wemb" if m["tie"] in ("all", "src") else "decoder_Wemb"]
        self.output = {"all": "Wemb", "decoder": "decoder_Wemb"}.get(m["tie"], "decoder_ff_logit_out_W")

    def positions(self, n):
        half = self.m["D"] // 2
        angle = np.arange(n)[:, None] * np.exp(np.arange(half) * -(np.log(10000) / (half - 1)))
        return np.concatenate([np.sin(angle), np.cos(angle)], 1)

    def decoder_positions(self, n):
        return self.positions(n)

    def norm(self, x, name):
        pre = "_pre" if self.m["pre"] and "_top" not in name else ""
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return x * self.p[f"{name}_ln_scale{pre}"] + self.p[f"{name}_ln_bias{pre}"]

    def multiply(self, x, matrix, bias=None):
        w = self.p[matrix]
        return x @ (w.T if "Wemb" in matrix else w) + (0 if bias is None else self.p[bias])

    def affine(self, x, name, k):
        return self.multiply(x, f"{name}_W{k}", f"{name}_b{k}")

    def attention(self, query, keys, name, causal):
        H = self.m["H"]
        q, k, v = (self.affine(x, name, w).reshape(len(x), H, -1).transpose(1, 0, 2)
                   for x, w in ((query, "q"), (keys, "k"), (keys, "v")))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        if causal:
            scores = scores + np.triu(np.full(scores.shape[1:], -1e9), 1)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = (e / e.sum(-1, keepdims=True)) @ v
        return self.affine(y.transpose(1, 0, 2).reshape(len(query), -1), name, "o")

    def sublayer(self, x, name, f):
        """Only what f transforms is normalised before it: keys and values are the layer's input."""
        if self.m["pre"]:
            return x + f(self.norm(x, name))
        return self.norm(x + f(x), name)

    def feed_forward(self, x, name):
        h = self.affine(x, name, 1)
        h = np.maximum(h, 0) if self.m["act"] == "relu" else h / (1 + np.exp(-h))
        return self.affine(h, name, 2)

    def ssru(self, x, name):
        f = 1 / (1 + np.exp(-self.multiply(x, name + "_Wf", name + "_bf")))
        add, c, out = (1 - f) * self.multiply(x, name + "_W"), 0, []
        for t in range(len(x)):
            c = f[t] * c + add[t]
            out.append(np.maximum(c, 0))
        return np.array(out)

    def averages(self, x, mean, name):
        sigmoid = lambda z: 1 / (1 + np.exp(-z))
        y = self.affine(mean, name, 1)
        y = np.maximum(y, 0) if self.m["aan_act"] == "relu" else y * sigmoid(y)
        if self.m["aan"] != self.m["D"]:
            y = self.affine(y, name, 2)
        return sigmoid(self.affine(x, name, "i")) * x + sigmoid(self.affine(y, name, "f")) * y

    def encode(self, ids):
        x = np.sqrt(self.m["D"]) * self.source[ids] + self.positions(len(ids))
        for i in range(1, self.m["enc"] + 1):
            layer = f"encoder_l{i}"
            raw = x
            x = self.sublayer(x, layer + "_self_Wo", lambda h: self.attention(
                h, raw if self.m["pre"] else h, layer + "_self", False))
            x = self.sublayer(x, layer + "_ffn_ffn", lambda h: self.feed_forward(h, layer + "_ffn"))
        return self.norm(x, "encoder_top") if self.m["top"] else x

    def logits(self, memory, output):
        """The logits behind each of these tokens, and before the first: in place of its predecessor are zeros."""
        x = np.concatenate([np.zeros((1, self.m["D"])), self.target[output]]) * np.sqrt(self.m["D"])
        x = x + self.decoder_positions(len(x))
        for i in range(1, self.m["dec"] + 1):
            layer = f"decoder_l{i}"
            raw = x
            if self.m["decoder"] == "rnn":
                x = self.sublayer(x, layer + ("_rnn" if self.m["pre"] else "_rnn_ffn"),
                                  lambda h: self.ssru(h, layer + "_rnn"))
            elif self.m["decoder"] == "average-attention":
                mean = np.cumsum(x, 0) / np.arange(1, len(x) + 1)[:, None]
                h = self.norm(mean, layer + "_aan_ffn") if self.m["pre"] else mean
                x = x + self.averages(x, h, layer + "_aan")
                x = x if self.m["pre"] else self.norm(x, layer + "_aan_ffn")
            else:
                x = self.sublayer(x, layer + "_self_Wo", lambda h: self.attention(
                    h, raw if self.m["pre"] else h, layer + "_self", True))
            x = self.sublayer(x, layer + "_context_Wo",
                              lambda h: self.attention(h, memory, layer + "_context", False))
            x = self.sublayer(x, layer + "_ffn_ffn", lambda h: self.feed_forward(h, layer + "_ffn"))
        x = self.norm(x, "decoder_top") if self.m["top"] else x
        return self.multiply(x, self.output, "decoder_ff_logit_out_b")

    def log_probs(self, memory, output, candidates=None):
        """Log-probabilities at each step: among the candidates, tokens of a shortlist. <unk> is never chosen, but counts."""
        y = self.logits(memory, output)
        if candidates is not None:
            y[:, np.setdiff1d(np.arange(y.shape[1]), candidates)] = -np.inf
        most = y.max(-1, keepdims=True)
        y = y - most - np.log(np.exp(y - most).sum(-1, keepdims=True))
        y[:, UNK] = -np.inf
        return y

    def greedy(self, ids, candidates=None):
        """Tokens, and the gaps between the two best logits of each step."""
        memory, output, gaps = self.encode(ids), [], []
        while len(output) < 2 * len(ids):
            y = self.log_probs(memory, output, candidates)[-1]
            best = np.argsort(-y, kind="stable")[:2]
            gaps.append(y[best[0]] - y[best[1]])
            if best[0] == EOS:
                break
            output.append(int(best[0]))
        return output, gaps

    def follow(self, ids, output, candidates=None):
        """Of each step of a greedy search that gave this output: the best token, and the gap to the next."""
        y = self.log_probs(self.encode(ids), output, candidates)[:2 * len(ids)]
        two = np.partition(y, -2, -1)[:, -2:]
        return y.argmax(-1), two[:, 1] - two[:, 0]

    def beam(self, ids, width, alpha, candidates=None):
        """The best output of Marian's beam search, and the smallest gap between what was kept and what was not. An output
        that ends leaves the beam, which is then narrower; at the limit those that live end, too. The best has the
        largest sum of log-probabilities / n^alpha, where n counts the end."""
        memory, live, ended, gap = self.encode(ids), [((), 0.0)], [], np.inf
        for step in range(2 * len(ids)):
            scores = []
            for output, total in live:
                y = self.log_probs(memory, list(output), candidates)[-1]
                scores.append(total + y)
            scores = np.concatenate(scores)
            order = np.argsort(-scores, kind="stable")[:width - len(ended) + 1]
            gap = min(gap, scores[order[-2]] - scores[order[-1]])
            new = [(live[k // len(y)][0] + (int(k % len(y)),), scores[k]) for k in order[:-1]]
            ended += [h for h in new if h[0][-1] == EOS]
            live = [h for h in new if h[0][-1] != EOS]
            if not live or step + 1 == 2 * len(ids):
                break
        best = sorted(((total / len(output) ** alpha, output) for output, total in ended + live), reverse=True)
        if len(best) > 1:
            gap = min(gap, best[0][0] - best[1][0])
        return [t for t in best[0][1] if t != EOS], gap


class Calibrated(Oracle):
    """Notes what is multiplied with each matrix, and has the scales that Marian's extract_stats.py makes of that."""
    seen = None

    def multiply(self, x, matrix, bias=None):
        if self.seen is not None:
            self.seen[matrix] = np.abs(x).max(-1)
        return super().multiply(x, matrix, bias)

    def scales(self, pairs):
        """Of one batch. Encoders, and the keys and values of their output, are called once; the rest at each step."""
        steps = {}
        for source, output in pairs:
            self.seen = {}
            memory = self.encode(source)
            self.logits(memory, output)
            for matrix, largest in self.seen.items():
                once = matrix.startswith("encoder") or matrix.endswith(("context_Wk", "context_Wv"))
                steps.setdefault(matrix, []).append([largest.max()] if once else list(largest))
        self.seen = None
        calls = {m: [max(line[t] for line in lines if t < len(line)) for t in range(max(map(len, lines)))]
                 for m, lines in steps.items()}
        return {m: 127 / (np.mean(c) + 1.1 * np.std(c)) for m, c in calls.items()}


class Int8(Oracle):
    """The arithmetic of int8shiftAlphaAll: exact sums of integers, and f32 around them; the rest is f64."""

    def __init__(self, m, p, parts):
        super().__init__(m, p)
        self.parts = {k: (w.astype(np.float64), qa, qb) for k, (w, qa, qb) in parts.items()}

    def multiply(self, x, matrix, bias=None):
        w, qa, qb = self.parts[matrix]
        one, u = np.float32(127), np.float32(1) / (qa * qb)
        a = np.clip(np.rint(x.astype(np.float32) * qa), -127, 127).astype(np.float64) + 127  # f64: the sums are exact
        b = np.float32(0) if bias is None else self.p[bias].astype(np.float32)
        y = u * (a @ w).astype(np.float32) + (b - (one * u) * w.sum(0).astype(np.float32))
        assert y.dtype == np.float32
        return y.astype(np.float64)


# ---- trials ----------------------------------------------------------------------------------------------------------

def draw_model(rng, i):
    D = int(rng.choice([16, 32, 64]))
    tie = ["all", "decoder", "src", "none"][i // 2 % 4]
    V = [60, 60] if tie in ("all", "src") else [50, 70]
    pre = i % 4 == 3
    average = {"decoder": "average-attention", "aan": [D, 40][i // 6 % 2], "aan_act": ["swish", "relu"][i // 3 % 2]}
    m = {"D": D, "F": int(rng.choice([24, 96])), "H": int(rng.choice([2, 4, 8])), "enc": int(rng.integers(1, 7)),
            "dec": int(rng.integers(1, 5)), "V": V, "tie": tie, "pre": pre, "top": pre and bool(i % 8 == 7),
            "decoder": "self-attention" if i % 3 == 2 else "rnn", "act": "swish" if i % 5 == 4 else "relu",
            "binary": i % 2 == 1}
    return m | average if i % 3 == 1 else m


def run(*arguments, text=None):
    done = subprocess.run([str(a) for a in arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


# The small models that --record writes for the suite marian; beside each, its sources and outputs
# are written, a line each.
RECORDED = {
    "shared.npz": dict(tie="all", V=[20, 20], decoder="rnn"),
    "shared.bin": dict(tie="all", V=[20, 20], decoder="rnn", D=16),
    "split.npz": dict(tie="decoder", V=[15, 20], decoder="rnn", pre=True),
    "split.bin": dict(tie="none", V=[15, 20], decoder="rnn", act="swish"),
    "teacher.npz": dict(tie="src", V=[20, 20], decoder="self-attention", pre=True, top=True),
    "teacher.bin": dict(tie="all", V=[20, 20], decoder="self-attention"),
    "words.bin": dict(tie="all", V=[29, 29], decoder="rnn", spm="words_de.spm"),
    "average.npz": dict(tie="all", V=[20, 20], decoder="average-attention", aan=12, aan_act="relu", pre=True),
    "average.bin": dict(tie="decoder", V=[15, 20], decoder="average-attention", aan=8, aan_act="swish"),
}


def record_lines(folder, name, oracle, vocabulary):
    """Lines of text and their translations; the vocabulary's ids of </s> and <unk> are Marian's. Needs sentencepiece."""
    import sentencepiece
    spm, lines = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary)), []
    for text in ["hallo welt", "das haus", "ein hund", "alle leute", "ohne ende", "sie rennt", "Blau x", "nie", "hier"]:
        output, gaps = oracle.greedy(spm.encode(text) + [EOS])
        if min(gaps) > TIE:
            lines.append(text + "|" + spm.decode(output) + "\n")
    (folder / (name + ".lines")).write_text("".join(lines))


def record_int8(path, m, oracle, rng):
    lines = []
    while len(lines) < 40:
        source = rng.integers(2, m["V"][0], rng.integers(1, 9)).tolist() + [EOS]
        output, gaps = oracle.greedy(source)
        if min(gaps) > INT8_TIE:
            lines.append(" ".join(map(str, source)) + " | " + " ".join(map(str, output)) + "\n")
    path.write_text("".join(lines))


def record(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i, (name, changes) in enumerate(RECORDED.items()):
        rng = np.random.default_rng(100 + i)
        m = {"D": 8, "F": 12, "H": 2, "enc": 1, "dec": 2, "pre": False, "top": False, "act": "relu", **changes}
        p, settings = weights_of(m, rng), settings_of(m)
        if name.endswith(".bin"):
            p, parts = write_binary(folder / name, p, settings, rng)
        else:
            write_npz(folder / name, p, settings)
        oracle, lines, pairs = Calibrated(m, p), [], []
        if "spm" in changes:
            record_lines(folder, name, oracle, folder.parent / changes["spm"])
        while len(lines) < 40:
            source = rng.integers(2, m["V"][0], rng.integers(1, 9)).tolist() + [EOS]
            output, gaps = oracle.greedy(source)
            if min(gaps) > TIE:
                lines.append(" ".join(map(str, source)) + " | " + " ".join(map(str, output)) + "\n")
                pairs.append((source, output))
        (folder / (name + ".txt")).write_text("".join(lines))
        if name.endswith(".bin"):
            record_int8(folder / (name + ".int8.txt"), m, Int8(m, p, parts), np.random.default_rng(200 + i))
        scales = oracle.scales(pairs)
        (folder / (name + ".scales")).write_text("".join(f"{k} {v:.8g}\n" for k, v in sorted(scales.items())))


def arrays_of(path):
    with zipfile.ZipFile(path) as z:
        return {n.removesuffix(".npy"): np.load(io.BytesIO(z.read(n))) for n in z.namelist()}


def compare(oracle, sources, outputs, tie, candidates=lambda source: None):
    """How many outputs are equal, differ behind a step whose two best logits are within tie, differ; and tokens. An output is
    the greedy one if each of its tokens, and its end, is the likeliest behind those before it."""
    equal = ties = wrong = tokens = 0
    for source, line in zip(sources, outputs, strict=True):
        got = [int(t) for t in line.split()]
        best, gaps = oracle.follow(source, got, candidates(source))
        chosen = np.array(got + [EOS])[:2 * len(source)]
        tokens += len(chosen)
        others = np.flatnonzero(best != chosen)
        if not len(others) and len(got) <= 2 * len(source):
            equal += 1
        elif gaps[:others[0] + 1].min() < tie:
            ties += 1
        else:
            wrong += 1
    return np.array([equal, ties, wrong, tokens])


def compare_beams(oracle, sources, outputs, alpha, tie, candidates=lambda source: None):
    equal = ties = wrong = tokens = 0
    for source, line in zip(sources, outputs, strict=True):
        want, gap = oracle.beam(source, 4, alpha, candidates(source))
        same = [int(t) for t in line.split()] == want
        tokens += len(want)
        equal += same
        ties += not same and gap < tie
        wrong += not same and gap >= tie
    return np.array([equal, ties, wrong, tokens])


FIREFOX = [("tiny", dict(D=256, F=1536, dec=2, tie="all")), ("base-memory", dict(D=384, F=1536, dec=4, tie="all")),
           ("base", dict(D=512, F=2048, dec=2, tie="all")), ("base, two vocabularies", dict(D=512, F=2048, dec=2, tie="decoder"))]


def firefox_model(sizes):
    return {"H": 8, "enc": 6, "V": [32000, 32000], "pre": False, "top": False, "decoder": "rnn", "act": "relu",
            "binary": True} | sizes


def try_model(tools, folder, m, seed, sentences, beams):
    rng = np.random.default_rng(seed)
    p, settings, parts = weights_of(m, rng), settings_of(m), {}
    path = folder / ("model.bin" if m["binary"] else "model.npz")
    if m["binary"]:
        p, parts = write_binary(path, p, settings, rng)
    else:
        write_npz(path, p, settings)
    run(tools / "convert", "--from", "marian", path, "-o", folder / "model.weft")
    sources = [rng.integers(2, m["V"][0], rng.integers(1, 13)).tolist() + [EOS] for _ in range(sentences)]

    def outputs(lines, *options):
        text = "".join(" ".join(map(str, s)) + "\n" for s in lines)
        return run(tools / "generate", folder / "model.weft", *options, text=text).splitlines()

    def try_beams(name, oracle, tie, *options, candidates=lambda source: None):
        for alpha in (0, 1) if beams else ():
            penalty = ("--length-penalty-type", "avg", "--length-penalty", 1) if alpha else ()
            got = outputs(sources[:beams], *options, "--beam", 4, *penalty)
            found[f"{name}, beam 4, alpha {alpha}"] = compare_beams(oracle, sources[:beams], got, alpha, tie, candidates)

    oracle = Oracle(m, p)
    found = {"f32": compare(oracle, sources, outputs(sources), TIE)}
    try_beams("f32", oracle, TIE)
    if m["binary"]:
        lists = rng.integers(0, m["V"][1], (m["V"][0], 3)).astype(np.uint32)
        first = min(5 if m["V"][1] < 1000 else 100, m["V"][1])
        write_shortlist(folder / "lex.bin", first, lists)
        int8, marian = Int8(m, p, parts), ("--arithmetic", "marian")
        short = lambda source: candidates_of(source, first, lists)
        found["int8"] = compare(int8, sources, outputs(sources, *marian), INT8_TIE)
        found["int8, shortlist"] = compare(int8, sources, outputs(sources, *marian, "--shortlist", folder / "lex.bin"),
                                           INT8_TIE, short)
        try_beams("int8", int8, INT8_TIE, *marian)
    run(tools / "convert", "--to", "marian", folder / "model.weft", "-o", folder / "back.npz")
    back = arrays_of(folder / "back.npz")
    back.pop("special:model.yml")
    if set(back) != set(p) or any(not np.array_equal(back[n], p[n]) for n in p):
        sys.exit(f"model {seed}: other weights come back: {sorted(set(back) ^ set(p))}")
    print(json.dumps(m), *(f"{k}: {v[0]} equal, {v[1]} ties, {v[2]} misses;" for k, v in found.items()), flush=True)
    return found


def main():
    if sys.argv[1] == "--record":
        record(pathlib.Path(sys.argv[2]))
        return
    firefox = sys.argv[1] == "--firefox"
    tools, folder, *counts = sys.argv[1 + firefox:]
    counts = [int(c) for c in counts]
    if firefox:
        models = [firefox_model(sizes) for _, sizes in FIREFOX]
        sentences, beams = (counts + [100, 2][len(counts):])[:2]
    else:
        n, sentences, beams = (counts + [16, 100, 10][len(counts):])[:3]
        models = [draw_model(np.random.default_rng(i), i) for i in range(n)]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sums = {}
    for i, m in enumerate(models):
        for kind, counts in try_model(pathlib.Path(tools), folder, m, i, sentences, beams).items():
            sums[kind] = sums.get(kind, 0) + counts
    for kind, (equal, ties, wrong, tokens) in sums.items():
        print(f"{kind}: {equal + ties + wrong} sentences, {tokens} tokens: {equal} equal, {ties} ties, {wrong} wrong")
    sys.exit(any(counts[2] for counts in sums.values()))


if __name__ == "__main__":
    main()
