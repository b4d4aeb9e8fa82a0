#!/usr/bin/env python3
"""tests/walls/faults.py - every thing that a program asks of its system fails once, and for good.

usage: faults.py [--short | --long | --repeat 'SCENARIO KIND:N:MODE'] [--only WORD] [--kinds WORDS] [--jobs N]

Each scenario is a command on tiny files. It is run undisturbed, which says what is right, then
under inject.so to count its calls, then once for every call and way to fail. After each run:

* it ended by itself, by no signal, in time;
* exit 0: stdout and every file are those of the undisturbed run, byte for byte (but for times);
* otherwise: a sentence on stderr says why, unless it was stderr that failed; a file that was to be
  written is the old one, or the new one, or a checkpoint that inspect finds whole; stdout and a log
  have some of the right lines and no others, unless it was they that could not be written;
* interrupted calls and short reads and writes, if not stdio's, change nothing at all;
* nothing else has changed in the folder, and nothing was left there unless it could not be removed.

First the judge is put on trial: it must notice what careless.c does wrong. --long takes every
number, --short the first call from each place in the code. A failure is printed with the command
that repeats it. WEFT_BUILD is the build folder (build)."""

import argparse
import collections
import concurrent.futures
import ctypes
import gzip
import hashlib
import multiprocessing
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("WEFT_BUILD", "build"))
INJECT = os.path.join(BUILD, "tests/walls/inject.so")
KINDS = "memory threads files denied space broken forbidden interrupted short mute".split()
SITES = 60000  # calls that a scenario may make
SKIPPED = 77   # what Meson takes for it
SECONDS = 300  # until it hangs: the machine may be busy


class Report(ctypes.Structure):
    """struct report of inject.c"""
    _fields_ = [("calls", ctypes.c_int64), ("failed", ctypes.c_int64),
                ("frames", ctypes.c_int64), ("name", ctypes.c_char * 16),
                ("frame", ctypes.c_uint64 * 48), ("start", ctypes.c_uint64 * 16),
                ("end", ctypes.c_uint64 * 16), ("module", (ctypes.c_char * 64) * 16)]


SITE = struct.Struct("16s12Q")

# ---- what is run ---------------------------------------------------------------------------------

PAIRS = "".join(f"eins {i % 7} zwei {i % 5}\tone {i % 7} two {i % 5}\n" for i in range(12))
SOURCES = "".join(line.split("\t")[0] + "\n" for line in PAIRS.splitlines()[:3])
TARGETS = "".join(line.split("\t")[1] + "\n" for line in PAIRS.splitlines()[:3])
LABELS = "".join(f"eins {i}\t{'ba'[i % 2]}\n" for i in range(8))
TINY = "--heads 2 --layers 1 --d-model 8 --d-ff 8"
TEXT = ("--train pairs --valid pairs --tokenizer bpe --vocab-size 40 --batch-size 5 --max-len 16"
        f" --threads 1 {TINY}")
IDS = f"--task copy --max-len 5 --batch-size 4 --max-steps 2 --valid-size 4 {TINY}"
LM = f"--task lm --text src --tokenizer byte --max-len 16 --batch-size 2 --threads 1 {TINY}"
GENERATE = "generate --threads 1 --quiet"
LONG = "eins " * 40 + "zwei. " + "drei " * 40 + "\neins\n"
TORCH = "--heads 2 --norm pre --positions sinusoidal --end-id 1"

# Commands that make the files with which scenarios begin.
MADE = [
    f"train {TEXT} --accum 2 --ema 0.9 --max-steps 2 --valid-every 1 --log log --curve plot.svg"
    " -o text",
    f"train {TEXT} --max-steps 1 --seed 2 -o old",
    f"train {IDS} --threads 1 -o copy",
    "convert --to torch copy -o torch",
    "convert --from hf marian -o hf-marian",
    "convert --from hf bart -o hf-bart",
    "convert --from hf m2m -o hf-m2m",
    "convert --from hf mbart -o hf-mbart",
    "convert --from hf nllb -o hf-nllb",
    f"train {LM} --max-steps 2 -o lm",
    "tokenize --learn bpe --vocab-size 260 -i src -o words",
]
# More files, with which only scenarios of the long form begin.
MADE_LONG = [f"convert --from hf {folder} -o hf-{folder}" for folder in
             "t5 lm_gpt2 lm_llama enc_many enc_classes enc_roberta".split()] + [
    "convert --from marian npz/shared.npz -o npz-shared",
    "train --init hf-lm_gpt2 --lora 2 --task lm --text src --max-len 8 --batch-size 1 --max-steps 1"
    " --threads 1 --quiet -o adapter",
]
# Recorded folders of Hugging Face, with which scenarios may begin, too.
FOLDERS = "marian marian_shards bart m2m mbart nllb t5 lm_gpt2 lm_llama enc_many enc_classes enc_roberta".split()
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data")

# A scenario: its name, command and stdin, and the files with which it begins: NAME, as it was
# made, or NAME=MADE under another name; a name that ends with a slash is a folder. Files that the
# command changes are its outputs.
SCENARIOS = [
    ("train", f"train {TEXT} --accum 2 --ema 0.9 --max-steps 4 --valid-every 2 --save-every 2"
     " --log log --curve plot.svg -o new --overwrite", "", "pairs new=old new.best=old log plot.svg"),
    ("train-resume", "train --resume --train pairs --valid pairs --max-steps 4 --valid-every 1"
     " --log log --curve plot.svg --threads 1 --quiet -o text", "",
     "pairs text text.best log plot.svg"),
    ("train-ids", f"train {IDS} --json --threads 2 -o new", "", ""),
    ("train-words", "train --train-src src --train-tgt tgt --valid-src src --valid-tgt tgt"
     " --tokenizer word --share-vocab --tie all --optimizer adamw --max-steps 1 --profile"
     f" --threads 1 {TINY} -o new", "", "src tgt"),
    ("train-dry", f"train {TEXT} --dry-run", "", "pairs"),
    ("train-lm", f"train {LM} --text-eval tgt --max-steps 2 --valid-every 1 --log log -o new --overwrite", "",
     "src tgt new=old new.best=old log"),
    ("train-lm-bpe", f"train --task lm --text src --tokenizer byte-bpe --vocab-size 262 --max-len 8 --batch-size 2"
     f" --max-steps 1 --threads 1 {TINY} -o new", "", "src"),
    ("train-init", "train --init text --train pairs --valid pairs --freeze transformer.encoder --max-steps 2 --valid-every 1"
     " --batch-size 5 --threads 1 --quiet -o new --overwrite", "", "pairs text new=old new.best=old"),
    ("train-bart", "train --train pairs --like bart --vocab-size 262 --max-len 32 --batch-size 5 --max-steps 1"
     f" --threads 1 --quiet {TINY} -o new", "", "pairs"),
    ("train-processes", f"train {IDS} --processes 2 --threads 1 --quiet -o new --overwrite", "", "new=old"),
    ("train-gz", f"train --train pairs.gz --valid pairs --tokenizer word --batch-size 5 --max-steps 1 --quiet"
     f" --threads 1 {TINY} -o new", "", "pairs pairs.gz"),
    ("tokenize-learn", "tokenize --learn wordpiece --vocab-size 24 --min-freq 1 -i src -o new", "", "src new=words"),
    ("tokenize-learn-unigram", "tokenize --learn unigram --vocab-size 19 -o new", SOURCES, "new=words"),
    ("generate-gz", f"{GENERATE} --model text -i src.gz", "", "text src.gz"),
    ("generate-ids", f"{GENERATE} --model copy", "1 2 3\n\n4 5\n", "copy"),
    ("generate-beam", "generate --model text --threads 2 --batch-size 2 -i src -o out"
     " --reference tgt --attention weights", "", "text src tgt out=log weights=plot.svg"),
    ("generate-sample", f"{GENERATE} --model text --sample --top-k 9 --top-p 0.9 --nbest 2 --json",
     SOURCES, "text"),
    ("generate-score", f"{GENERATE} --model text --score --json --weights bf16 -o out", PAIRS,
     "text"),
    ("generate-draw", f"{GENERATE} --model text --beam 1 --attention -", SOURCES, "text"),
    ("generate-svg", f"{GENERATE} --model copy --attention a.svg", "1 2 3\n", "copy a.svg=plot.svg"),
    ("generate-explain", f"{GENERATE} --model text --beam 2 --explain page.html", "eins 1 zwei 2\n", "text page.html=plot.svg"),
    ("generate-spm", f"{GENERATE} hf-marian", SOURCES, "hf-marian"),
    ("generate-spm-stream", f"{GENERATE} hf-marian --beam 1 --stream --max-new-tokens 6", SOURCES, "hf-marian"),
    ("generate-spm-json", f"{GENERATE} hf-marian --json --nbest 2 --max-new-tokens 6", SOURCES, "hf-marian"),
    ("generate-spm-score", f"{GENERATE} hf-marian --score --json", PAIRS, "hf-marian"),
    ("generate-spm-reference", "generate hf-marian src -o out --threads 1 --max-new-tokens 6 --reference tgt",
     "", "hf-marian src tgt out=log"),
    ("generate-spm-split", f"{GENERATE} hf-marian --long-lines split --max-new-tokens 4", LONG, "hf-marian"),
    ("generate-spm-skip", f"{GENERATE} hf-marian --long-lines skip --attention a.json", LONG, "hf-marian"),
    ("generate-bytes", f"{GENERATE} hf-bart --max-new-tokens 6", SOURCES, "hf-bart"),
    ("generate-bytes-stream", f"{GENERATE} hf-bart --stream --max-new-tokens 6", SOURCES, "hf-bart"),
    ("generate-bytes-sample", f"{GENERATE} hf-bart --sample --top-p 0.9 --nbest 3 --max-new-tokens 6 --json", SOURCES,
     "hf-bart"),
    ("generate-bytes-rules", f"{GENERATE} hf-bart --beam 4 --no-repeat-ngram-size 2 --repetition-penalty 1.4 --min-len 3"
     " --length-decay 1.1 --begin-suppress-tokens 5,6 --max-new-tokens 8 --nbest 2", SOURCES, "hf-bart"),
    ("generate-bytes-picture", f"{GENERATE} hf-bart --attention a.svg --max-new-tokens 6", SOURCES, "hf-bart"),
    ("generate-bytes-score", f"{GENERATE} hf-bart --score", PAIRS, "hf-bart"),
    ("generate-bpe-nbest", f"{GENERATE} text --nbest 3 --beam 4 --no-repeat-ngram-size 1", SOURCES, "text"),
    ("generate-prompt", f"{GENERATE} lm --prompt eins --sample --stream", "", "lm"),
    ("generate-prompt-long", f"{GENERATE} lm --sample --nbest 2 --json --attention -", SOURCES + LONG, "lm"),
    ("convert-to-torch", "convert --overwrite --to torch --dtype bf16 text -o out", "", "text out=old"),
    ("convert-to-weft", f"convert --overwrite {TORCH} torch -o out", "", "torch out=old"),
    ("convert-from-hf-marian", "convert --overwrite --from hf marian -o out", "", "marian/ out=old"),
    ("convert-from-hf-shards", "convert --from hf marian_shards -o out", "", "marian_shards/"),
    ("convert-from-hf-bart", "convert --overwrite --from hf bart --weights int8 -o out", "", "bart/ out=old"),
    ("convert-from-hf-m2m", "convert --overwrite --from hf m2m -o out", "", "m2m/ out=old"),
    ("convert-from-hf-mbart", "convert --overwrite --from hf mbart -o out", "", "mbart/ out=old"),
    ("convert-from-hf-nllb", "convert --overwrite --from hf nllb -o out", "", "nllb/ out=old"),
    ("convert-to-hf-mbart", "convert --to hf hf-mbart -o folder", "", "hf-mbart"),
    ("convert-to-hf-nllb", "convert --to hf hf-nllb -o folder", "", "hf-nllb"),
    ("generate-nllb", f"{GENERATE} hf-nllb --max-new-tokens 4", SOURCES, "hf-nllb"),
    ("convert-to-hf-marian", "convert --to hf hf-marian -o folder", "", "hf-marian"),
    ("convert-to-hf-bart", "convert --to hf hf-bart -o folder", "", "hf-bart"),
    ("convert-to-hf-m2m", "convert --to hf hf-m2m -o folder", "", "hf-m2m"),
    ("inspect-hf", "inspect hf-marian", "", "hf-marian"),
    ("inspect", "inspect --all text", "", "text"),
    ("inspect-json", "inspect --json text", "", "text"),
    ("graph", "graph --of attention --d-model 8 --heads 2 --backward", "", ""),
    ("graph-model", "graph --model copy --depth 9 -o out", "", "copy out=plot.svg"),
    ("graph-plan", "graph --of encoder-layer --plan --runs 1 --batch-size 1 --length 2 --d-model 8"
     " --heads 2 --d-ff 8 --threads 2 -o out", "", ""),
    ("graph-formula", "graph --formula softmax(x) --x 1;2 --table", "", ""),
    ("graph-second", "graph --formula 2*x*x --x 1;2 --second", "", ""),
    ("graph-step", "graph --step --of attention --d-model 4 --heads 2", "", ""),
    ("graph-html", "graph --html out --of attention --d-model 4 --heads 2 --runs 1", "", "out=plot.svg"),
    ("tokenize", "tokenize --tokenizer words --tokens --offsets", SOURCES, "words"),
    ("tokenize-decode", "tokenize --tokenizer words --decode", "5 6 7\n8 9\n", "words"),
    ("api", "api 1", "", ""),
    ("api-threads", "api 2", "", "model=old"),
    ("bench-gemm", "bench gemm --size 4 --seconds 0 --threads 1", "", ""),
    ("bench-attention", "tests/bench attention --size 4 --seconds 0 --threads 1 --json", "", ""),
    ("bench-decode", "bench step --mode decode --batch 1 --seconds 0 --threads 1", "", ""),
    ("bench-step", "bench step --batch 1 --seconds 0 --threads 1 --profile", "", ""),
]
# Scenarios of the long form and of --only: much of their code is that of scenarios above.
FINE = "--max-steps 2 --valid-every 1 --batch-size 4 --threads 1 --quiet -o out"
EMBED = "embed --threads 1 --quiet"
LONG_SCENARIOS = [
    ("graph-values", "graph copy --values -o out", "", "copy"),
    ("graph-values-second", "graph copy --values --second --table", "", "copy"),
    ("graph-step-model", "graph --step copy", "", "copy"),
    ("graph-step-keys", "graph --step copy --commands v;/softmax;p;v", "", "copy"),
    ("describe-ops", "describe-ops", "", ""),
    ("graph-html-model", "graph --html out copy --runs 1 --threads 1", "", "copy"),
    ("graph-emit", "graph --emit-c text --max-length 8 -o out.c", "", "text"),
    ("graph-emit-int8", "graph --emit-c text --weights int8 --weights-file w --max-length 8 -o out.c", "",
     "text"),
    ("graph-emit-train", "graph --emit-c copy --train -o out.c", "", "copy"),
    ("tokenize-hf", "tokenize --tokenizer lm_gpt2/tokenizer.json --tokens --offsets", SOURCES, "lm_gpt2/"),
    ("tokenize-hf-json", "tokenize --tokenizer lm_llama/tokenizer.json --json", SOURCES, "lm_llama/"),
    ("tokenize-hf-decode", "tokenize --tokenizer lm_gpt2/tokenizer.json --decode", "5 6 7\n8 9\n", "lm_gpt2/"),
    ("convert-from-hf-t5", "convert --from hf t5 -o out", "", "t5/"),
    ("convert-from-hf-gpt2", "convert --from hf lm_gpt2 -o out", "", "lm_gpt2/"),
    ("convert-from-hf-llama", "convert --from hf lm_llama -o out", "", "lm_llama/"),
    ("convert-from-hf-encoder", "convert --from hf enc_many -o out", "", "enc_many/"),
    ("convert-from-hf-classes", "convert --from hf enc_classes -o out", "", "enc_classes/"),
    ("convert-from-hf-roberta", "convert --from hf enc_roberta -o out", "", "enc_roberta/"),
    ("convert-from-marian", "convert --from marian npz/shared.npz -o out", "", "npz/"),
    ("convert-to-marian", "convert --to marian npz-shared -o out.npz", "", "npz-shared"),
    ("convert-to-hf-t5", "convert --to hf hf-t5 -o folder", "", "hf-t5"),
    ("convert-to-hf-gpt2", "convert --to hf hf-lm_gpt2 -o folder", "", "hf-lm_gpt2"),
    ("convert-to-hf-llama", "convert --to hf hf-lm_llama -o folder", "", "hf-lm_llama"),
    ("convert-to-hf-encoder", "convert --to hf hf-enc_many -o folder", "", "hf-enc_many"),
    ("convert-to-hf-classes", "convert --to hf hf-enc_classes -o folder", "", "hf-enc_classes"),
    ("convert-to-hf-roberta", "convert --to hf hf-enc_roberta -o folder", "", "hf-enc_roberta"),
    ("convert-adapter", "convert --adapter adapter hf-lm_gpt2 -o out", "", "hf-lm_gpt2 adapter"),
    ("convert-to-peft", "convert --to hf adapter -o folder", "", "adapter"),
    ("embed", f"{EMBED} hf-enc_many", SOURCES, "hf-enc_many"),
    ("embed-search", f"{EMBED} hf-enc_many --search src", SOURCES, "hf-enc_many src"),
    ("embed-classes", f"{EMBED} hf-enc_classes", SOURCES, "hf-enc_classes"),
    ("generate-gpt2", f"{GENERATE} hf-lm_gpt2 --max-new-tokens 4", SOURCES, "hf-lm_gpt2"),
    ("generate-llama", f"{GENERATE} hf-lm_llama --max-new-tokens 4 --sample --nbest 2 --json", SOURCES, "hf-lm_llama"),
    ("generate-t5", f"{GENERATE} hf-t5 --max-new-tokens 4", SOURCES, "hf-t5"),
    ("generate-adapter", f"{GENERATE} hf-lm_gpt2 --adapter adapter --max-new-tokens 4", SOURCES, "hf-lm_gpt2 adapter"),
    ("generate-alignment", f"{GENERATE} text --alignment soft --max-new-tokens 4", SOURCES, "text"),
    ("generate-alignment-hard", f"{GENERATE} text --alignment hard --beam 3 --max-new-tokens 4", SOURCES, "text"),
    ("train-lora", "train --init hf-lm_gpt2 --lora 2 --task lm --text src --max-len 8 --max-steps 2 --valid-every 1"
     " --batch-size 1 --threads 1 --quiet -o out", "", "hf-lm_gpt2 src"),
    ("train-classify", f"train --task classify --train labels --valid labels --init hf-enc_many {FINE}", "",
     "hf-enc_many labels"),
    ("train-pairs", f"train --task pairs --train pairs --valid pairs --init hf-enc_many {FINE}", "", "hf-enc_many pairs"),
    ("train-mask", f"train --task mask --text src --tokenizer-json enc_many/tokenizer.json {TINY} --max-len 8"
     " --max-steps 2 --batch-size 2 --threads 1 --quiet -o out", "", "enc_many/ src"),
    ("train-alignments", f"train {TEXT} --alignments links --max-steps 2 --quiet -o out", "", "pairs links"),
    ("train-quantize", f"train {TEXT} --quantize-aware int8 --max-steps 2 --valid-every 1 --quiet -o out", "", "pairs"),
]
# A mistake of careless.c, the kind of failure under which it shows, and what the judge must say of it.
TRIALS = [
    ("crash", "memory", "dies of SIGSEGV"),
    ("silent", "space", "out is wrong, exit 0"),
    ("torn", "space", "out is neither the old nor the new one"),
    ("wordless", "files", "no sentence on stderr"),
    ("litter", "broken", "leaves a file behind, exit 1"),
    ("endless", "broken", "hangs"),
    ("hasty", "interrupted", "interrupted call not repeated"),
    ("hasty", "short", "out is wrong, exit 0"),
]
SLOW = "bench"  # measures memory first: a call from each place must do, in the long form alone
# Each process counts its own calls, so one fault strikes several of them at different places: a file
# that then can't be removed is left rightly.
ONLY_KINDS = {"train-processes": ("memory", "threads")}
TIMED = ("bench", "train-words", "graph-plan")  # their numbers are measured ones


def lines_of(name, data):
    """What must be the same in every run."""
    data = re.sub(rb'"(seconds|(?:tokens|lines)_per_second|threads)":[-+0-9.e]+', b"", data)
    if name.startswith(TIMED):
        return sorted(re.sub(rb"[-+0-9.,e]+|[kMGT]?B/?s?|[mun]?s\b| +", b"", data).split(b"\n"))
    return data.split(b"\n")


def some_of(part, lines):
    """Some of the lines in their order; the last may be cut."""
    rest = iter(lines)
    return (all(line in rest for line in part[:-1]) and
            any(line.startswith(part[-1]) for line in rest))


# ---- one run -------------------------------------------------------------------------------------

class Scenario:
    def __init__(self, name, command, stdin, files):
        self.name, self.command, self.stdin, self.names = name, command, stdin, files
        self.program = command.split()[0]
        self.slow = name.startswith(SLOW)
        folder = "tests/walls" if self.program in ("api", "careless") else "" if "/" in self.program else "tools"
        self.argv = [os.path.join(BUILD, folder, self.program)] + command.split()[1:]

    def prepare(self, made):
        pairs = [name.split("=") for name in self.names.split()]
        self.before = {pair[0]: made[pair[-1]] for pair in pairs if not pair[0].endswith("/")}
        for folder, in (pair for pair in pairs if pair[0].endswith("/")):
            self.before.update({name: made[name] for name in made if name.startswith(folder)})
        run = Run(self, None)
        if run.status != 0:
            sys.exit(f"faults: {self.command}: exit {run.status}\n{run.stderr.decode()}")
        self.after, self.stdout = run.files, run.stdout
        self.outputs = {name for name in run.files if run.files[name] != self.before.get(name)}


def read_folder(folder):
    files = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as f:
                files[os.path.relpath(path, folder)] = f.read()
    return files


class Run:
    """A scenario in a folder of its own, with a fault or without."""

    def __init__(self, scenario, fault, keep=False):
        self.scenario, self.fault = scenario, fault
        self.folder = tempfile.mkdtemp(prefix="run-", dir=TEMPORARY)
        work = os.path.join(self.folder, "work")
        os.mkdir(work)
        for name, data in scenario.before.items():
            os.makedirs(os.path.join(work, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(work, name), "wb") as f:
                f.write(data)
        environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": "/"}
        if fault:
            seconds = 1 if scenario.program == "careless" else SECONDS
            environment.update(INJECT=fault, INJECT_REPORT=REPORT, INJECT_SECONDS=str(seconds),
                               LD_PRELOAD=INJECT)
            with open(REPORT, "r+b") as f:
                f.write(bytes(ctypes.sizeof(Report)))
        self.execute(work, environment)
        self.files = read_folder(work)
        if not keep:
            shutil.rmtree(self.folder)

    def execute(self, work, environment):
        paths = [os.path.join(self.folder, name) for name in ("stdout", "stderr")]
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            stdin, writer = os.pipe()
            os.write(writer, self.scenario.stdin.encode())
            os.close(writer)
            self.status = subprocess.call(self.scenario.argv, cwd=work, env=environment,
                                          stdin=stdin, stdout=out, stderr=err)
            os.close(stdin)
        self.stdout, self.stderr = (open(path, "rb").read() for path in paths)
        if self.fault:
            with open(REPORT, "rb") as f:
                self.report = Report.from_buffer_copy(f.read(ctypes.sizeof(Report)))

    def sites(self):
        """Of each call, in order: its name and the addresses in the program it came from."""
        with open(REPORT, "rb") as f:
            f.seek(ctypes.sizeof(Report))
            data = f.read(SITE.size * self.report.calls)
        return [(site[0].rstrip(b"\0").decode(), tuple(at for at in site[1:] if at))
                for site in SITE.iter_unpack(data)]

    # ---- the judge ----

    def complaint(self):
        """What is wrong with it; None: nothing."""
        if self.status == -signal.SIGALRM:
            return "hangs"
        if self.status < 0:
            return f"dies of {signal.Signals(-self.status).name}"
        return self.wrong_exit() or self.wrong_files()

    def wrong_exit(self):
        kind, s = self.fault.split(":")[0], self.scenario
        is_api = s.program == "api"
        done = self.status == 0 or (is_api and self.status == 3)
        stdout, expected = self.lines(self.stdout), self.lines(s.stdout)
        if done and stdout != expected:
            return f"another result, exit {self.status}"
        # Lines of describe-ops say what failed.
        right = some_of(stdout, expected) or s.program == "describe-ops"
        if not done and not right and not self.unwritable():
            return "wrong lines on stdout"
        if self.status == 0:
            return None
        if not self.report.failed:
            return f"exit {self.status} though nothing failed"
        if kind == "mute":
            return None
        if self.status != (3 if is_api else 1):
            return f"exit {self.status}"
        if not re.search(rb"(?m)^%s: .*[a-z]{2}.*[^: ]$" % os.path.basename(s.program).encode(), self.stderr):
            return "no sentence on stderr"
        if b"Success" in self.stderr:
            return "fails with Success"
        if kind in ("short", "interrupted") and self.called_directly():
            return f"{kind} call not repeated"
        return None

    def wrong_files(self):
        s = self.scenario
        for name in sorted(set(self.files) | set(s.before) | set(s.after)):
            found, old, new = self.files.get(name), s.before.get(name), s.after.get(name)
            if old is None and new is None:
                if not self.unlink_failed():
                    return f"leaves a file behind, exit {self.status}"
            elif self.is_new(name, found, new):
                pass
            elif found == old and (self.status or name not in s.outputs):
                pass
            elif self.status == 0:
                return f"{name} is wrong, exit 0"
            elif not (name in s.outputs and (whole(found) or self.has_some(name, found, new))):
                return f"{name} is neither the old nor the new one"
        return None

    def is_new(self, name, found, new):
        if found is None or new is None or found == new:
            return found == new
        return name in self.scenario.outputs and self.lines(found) == self.lines(new)

    def has_some(self, name, found, new):
        if name != "log" or found is None:
            return False
        return some_of(self.lines(found), self.lines(new)) or self.unwritable()

    def lines(self, data):
        """Events do not tell of a save that failed, and the last one says that something did."""
        less = (b'{"event":"save"',) if b"not saved" in self.stderr else ()
        less += (b'{"event":"end"',) if self.status else ()
        return [line for line in lines_of(self.scenario.name, data) if not line.startswith(less)]

    def unwritable(self):
        """Was it a line that could not be written?"""
        return self.report.name.startswith(b"write") or self.fault.endswith("each")

    def unlink_failed(self):
        kind, _, mode = self.fault.split(":")
        unlinks = mode == "from" or self.report.name.startswith(b"unlink")
        return kind in ("broken", "denied") and unlinks

    def frames(self):
        """(module, offset) of the failing call's callers, without those in inject.so."""
        r, frames = self.report, []
        for at in r.frame[:r.frames]:
            for m in range(16):
                if r.start[m] <= at < r.end[m] and not r.module[m].value.endswith(b"inject.so"):
                    frames.append((m, at - r.start[m]))
        return frames

    def called_directly(self):
        """Did the program make the call itself, and not stdio?"""
        frames = self.frames() # the signal's, the call's, and who called it
        return len(frames) > 2 and frames[2][0] == 0


known_whole = {}


def whole(data):
    """Is this a checkpoint that can be read?"""
    if not data:
        return False
    key = hashlib.sha256(data).digest()
    if key not in known_whole:
        with tempfile.NamedTemporaryFile(dir=TEMPORARY) as f:
            f.write(data)
            f.flush()
            inspect = [os.path.join(BUILD, "tools/inspect"), f.name]
            known_whole[key] = subprocess.run(inspect, capture_output=True).returncode == 0
    return known_whole[key]


# ---- all of them ---------------------------------------------------------------------------------

def begin_worker():
    global REPORT
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handle, REPORT = tempfile.mkstemp(prefix="report-", dir=TEMPORARY)
    os.truncate(handle, ctypes.sizeof(Report) + SITES * SITE.size)
    os.close(handle)


def count(job):
    index, kind = job
    run = Run(SELECTED[index], f"{kind}:0:count")
    return index, kind, run.sites(), run.stderr.decode() if run.status > 123 else run.complaint()


def attempt(job):
    index, faults = job
    failures = []
    for fault in faults:
        run = Run(SELECTED[index], fault)
        wrong = run.complaint()
        if wrong:
            failures.append((index, fault, wrong, run.report.name.decode(), run.frames()))
    return len(faults), failures


def plan(counted, short):
    """The faults of each scenario. short: from each place in a program one failure of each kind,
    and one that lasts."""
    seen = set()

    def new(*key):
        return not (key in seen or seen.add(key))

    for index, kind, sites, wrong in counted:
        scenario = SELECTED[index]
        if wrong:
            print(f"faults: {scenario.name} {kind}, counting: {wrong}")
            sys.exit(SKIPPED if "can't be filtered" in wrong else 1)
        faults, sampled = [], short or scenario.slow
        for n, (name, frames) in enumerate(sites, 1):
            place = scenario.program, name, frames[:3 if short else 12]
            if not sampled or new(place, kind):
                faults.append(f"{kind}:{n}:at")
            if kind == "interrupted":
                faults += ["interrupted:1:each"] if n == 1 else []
            elif not sampled or new(place):
                faults.append(f"{kind}:{n}:from")
        for i in range(0, len(faults), 20):
            yield index, faults[i:i + 20]


def names_of(frames, program):
    """The innermost functions of the program that made the call."""
    inside = [hex(offset - 1) for module, offset in frames if module == 0]
    if not inside:
        return "(libc)"
    names = [line.split(".")[0] for line in symbols(program, inside)[0::2]]
    return " < ".join((names or inside)[:3])


def symbols(module, addresses):
    """Function and line of each; nothing without binutils."""
    if not shutil.which("addr2line"):
        return []
    return subprocess.run(["addr2line", "-fs", "-e", module] + addresses, capture_output=True,
                          text=True).stdout.splitlines()


def show(failures):
    """A row for each complaint and place in the code, with the command that repeats the first."""
    rows = collections.defaultdict(list)
    for index, fault, wrong, name, frames in failures:
        scenario = SELECTED[index]
        rows[(wrong, names_of(frames, scenario.argv[0]))].append((scenario.name, fault, name))
    for (wrong, place), cases in sorted(rows.items(), key=lambda row: -len(row[1])):
        kinds = sorted({f"{fault.split(':')[0]} {name}" for _, fault, name in cases})
        print(f"{len(cases):5} {wrong}: {', '.join(kinds)} < {place}\n"
              f"      tests/walls/faults.py --repeat '{cases[0][0]} {cases[0][1]}'")


def repeat(text):
    name, fault = text.split()
    scenario = next(s for s in SELECTED if s.name == name)
    run = Run(scenario, fault, keep=True)
    report = run.report
    print(f"(cd {run.folder}/work; INJECT={fault} ... {scenario.command})\nexit {run.status}\n"
          f"{run.stderr.decode(errors='replace')}\n{report.failed} of {report.calls} calls failed, "
          f"the first: {report.name.decode()}")
    for module, offset in run.frames():
        where = report.module[module].value.decode() or scenario.argv[0]
        symbol = " ".join(symbols(where, [hex(offset - 1)]))
        print(f"  {os.path.basename(where)} +{offset:#x} {symbol}")
    print(run.complaint() or "all is well")


def trial(job):
    """Is this said of careless.c, in one of all cases, and nothing in the undisturbed one?"""
    how, kind, expected = job
    scenario = Scenario("careless", f"careless {how}", "", "in=pairs out=src")
    scenario.prepare({"pairs": PAIRS[:40].encode(), "src": b"old"})
    calls = Run(scenario, f"{kind}:0:count").report.calls
    said = {Run(scenario, f"{kind}:{n}:{mode}").complaint()
            for n in range(1, calls + 1) for mode in ("at", "from")}
    if expected not in said:
        return f"the judge does not notice: careless {how}, {kind}: {expected}, but {said}"
    return None


def make_files(commands):
    """What scenarios begin with: name -> bytes."""
    made = {"pairs": PAIRS.encode(), "src": SOURCES.encode(), "tgt": TARGETS.encode(),
            "labels": LABELS.encode(), "links": b"0-0 1-1 2-2 3-3\n" * 12}
    made.update({f"{name}.gz": gzip.compress(made[name], mtime=0) for name in ("pairs", "src")})
    for folder in FOLDERS:
        made.update({os.path.join(folder, name): data
                     for name, data in read_folder(os.path.join(DATA, "hf", folder)).items()
                     if name not in ("lines.txt", "texts.txt", "values.safetensors")})
    with open(os.path.join(DATA, "marian/shared.npz"), "rb") as f:
        made["npz/shared.npz"] = f.read()
    for command in commands:
        scenario = Scenario("made", command, "", "")
        scenario.before = made
        run = Run(scenario, None)
        if run.status:
            sys.exit(f"faults: {command}: {run.stderr.decode()}")
        made = run.files
    return made


def main():
    global TEMPORARY, SELECTED
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--repeat")
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default=" ".join(KINDS))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    o = parser.parse_args()
    started = time.monotonic()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    TEMPORARY = tempfile.mkdtemp(prefix="weft-faults-", dir=memory)
    try:
        named = o.long or o.repeat or o.only
        made = make_files(MADE + (MADE_LONG if named else []))
        rows = SCENARIOS + (LONG_SCENARIOS if named else [])
        SELECTED = [Scenario(*row) for row in rows if o.only in row[0] or o.repeat]
        if not (o.long or o.repeat):
            SELECTED = [scenario for scenario in SELECTED if not scenario.slow]
        for scenario in SELECTED:
            scenario.prepare(made)
        if o.repeat:
            begin_worker()
            return repeat(o.repeat)
        fork = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(o.jobs, fork, begin_worker) as pool:
            for unnoticed in filter(None, pool.map(trial, TRIALS)):
                sys.exit(unnoticed)
            jobs = [(i, kind) for i in range(len(SELECTED)) for kind in o.kinds.split()
                    if kind in ONLY_KINDS.get(SELECTED[i].name, KINDS)]
            faults = list(plan(pool.map(count, jobs), not o.long))
            cases, failures = 0, []
            for n, wrong in pool.map(attempt, faults):
                cases, failures = cases + n, failures + wrong
        show(failures)
        seconds = time.monotonic() - started
        print(f"faults: {cases} cases, {len(failures)} failures, {seconds:.0f} s")
        return len(failures) > 0
    finally:
        if not o.repeat:
            shutil.rmtree(TEMPORARY)


if __name__ == "__main__":
    sys.exit(main())
