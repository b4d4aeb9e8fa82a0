#!/usr/bin/env python3
"""tests/walls/texts.py - hostile texts and odd files, everywhere where a program reads lines.

usage: texts.py [--short | --long] [--only WORDS]     (short is what it is without)

Runs the programs of build/, or those that WEFT_TOOLS names; --only: the cases with that in their names. Exits 1 at a
failure.

Every text stands in every place of a file (alone, before, between and after good lines), for every tokenizer, as
what is learned from, held back, translated and compared with. It is taken or refused as its row says; a refusal
names the file and the line, and what came before the line is answered; what is taken has a line for each line.
Control characters never reach stderr. --long is all combinations, else every fifth."""

import os
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from wall import SMALL, Run, Wall, complaint, tools_folder

# A name, the bytes of a line, and who refuses it: t: train, as a side of a pair (w: train, unless
# blanks are tokens); g: generate, as a line to be translated. A line that both refuse is no text;
# one that train alone refuses has no token.
TEXTS = [
    ("a byte that begins nothing", b"\xff", "tg"),
    ("a continuation alone", b"ein \x80 hund", "tg"),
    ("a sequence cut short", b"hund \xe2\x82", "tg"),
    ("an overlong slash", b"\xc0\xaf", "tg"),
    ("an overlong euro", b"\xf0\x82\x82\xac", "tg"),
    ("a lone surrogate", b"\xed\xa0\x80", "tg"),
    ("a pair of surrogates", b"\xed\xa0\xbd\xed\xb8\x80", "tg"),
    ("above the last code point", b"\xf4\x90\x80\x80", "tg"),
    ("five bytes", b"\xf8\x88\x80\x80\x80", "tg"),
    ("a zero byte", b"ein\0hund", "tg"),
    ("zero bytes alone", b"\0\0\0", "tg"),
    ("an empty line", b"", "t"),
    ("blanks", b"   ", "w"),
    ("more than a megabyte", b"a" * ((1 << 20) + 1), "tg"),
    ("ten megabytes", b"ein hund " * 1200000, "tg"),
    ("the last code point", "\U0010ffff".encode(), ""),
    ("a noncharacter", "\uffff".encode(), ""),
    ("a carriage return inside", b"ein\rhund", "tg"),
    ("an escape sequence", b"\033[2J\033]0;title\a", ""),
    ("delete and bell", b"ein\x7f\a\b hund", ""),
    ("C1 controls", "\u009b31m \u0085".encode(), ""),
    ("line and paragraph separators", "ein\u2028hund\u2029".encode(), ""),
    ("right to left", "שלום عالم".encode(), ""),
    ("overrides of direction", "ein \u202edn\u202cuh \u2067x\u2069".encode(), ""),
    ("a tower of marks", ("e" + "\u0301" * 60).encode(), ""),
    ("marks alone", ("\u0301" * 3).encode(), ""),
    ("joined emoji", "👩\u200d👩\u200d👧".encode(), ""),
    ("a byte order mark inside", "ein\ufeffhund".encode(), ""),
    ("wide and narrow", "ｈｕｎｄ 犬 ᄀ".encode(), ""),
    ("no-break spaces", "ein\u00a0hund\u3000".encode(), ""),
    ("form feeds", b"ein\f\vhund", ""),
    ("words of the vocabulary's own", b"<s> </s> <pad> <unk> @@ ##", ""),
]
PLACES = {"alone": ([], []), "before": ([], [1, 2]), "between": ([1], [2]), "after": ([1, 2], [])}
ENDS = {"\\n": b"\n", "\\r\\n": b"\r\n", "nothing": b""}
TOKENIZERS = ["word", "char", "bpe"]
GOOD = {1: (b"ein hund", b"a dog"), 2: (b"das haus", b"the house")}
PAIRS = b"".join(b"%s\t%s\n" % pair for pair in GOOD.values()) * 3


def file_of(text, place, end, side):
    """The lines of one side (0, 1), or of pairs with the text on that side (2, 3)."""
    before, after = PLACES[place]
    def good(i):
        return b"\t".join(GOOD[i]) if side > 1 else GOOD[i][side]
    line = text if side < 2 else text + b"\ta dog" if side == 2 else b"ein hund\t" + text
    lines = [good(i) for i in before] + [line] + [good(i) for i in after]
    stop = ENDS[end] or b"\n"
    return stop.join(lines) + (stop if ENDS[end] else b""), len(before) + 1, len(lines)


class Texts(Wall):
    def __init__(self, tools):
        super().__init__(tools)
        self.write("pairs", PAIRS)
        for t in TOKENIZERS:
            self.must(["train", "--train", "pairs", "--tokenizer", t, "-o", t + ".safetensors"] + SMALL, self.folder)

    def write(self, name, content, folder=None):
        path = os.path.join(folder or self.folder, name)
        with open(path, "wb") as f:
            f.write(content)
        return path


def refused_at(run, name, number):
    """The sentence must say where: "hostile, line 2" or "line 2 of hostile"."""
    said = run.err.decode(errors="replace")
    where = re.search(r"line (\d+)", said)
    if name not in said or not where or int(where.group(1)) != number:
        return "does not name line %d of %s: %s" % (number, name, said.strip()[:200])
    return None


def answer(wall, text, place, end, tokenizer, how):
    name, content, who = text
    content, number, lines = file_of(content, place, end, 0)
    if not content:
        lines = 0
    elif not ENDS[end] and not text[1] and place in ("alone", "after"):
        lines -= 1  # an empty last line without an end is none
    folder = wall.new_folder()
    path = wall.write("hostile", content, folder)
    command = [wall.tool("generate"), "--model", os.path.join(wall.folder, tokenizer + ".safetensors"),
               "--max-len-a", "0", "--max-len-b", "3", "--quiet", "--threads", "1", "--beam", "1"]
    stdin = open(path, "rb") if how == "stdin" else subprocess.DEVNULL
    named = {"-i": "hostile", "--reference": "hostile", "stdin": "stdin", "--json": "hostile"}[how]
    if how in ("-i", "--json"):
        command += ["-i", "hostile"] + (["--json"] if how == "--json" else [])
    if how == "--reference":
        wall.write("good", b"ein hund\n" * lines, folder)
        command += ["-i", "good", "--reference", "hostile"]
    run = Run(command, folder, stdin=stdin)
    wrong = complaint(run, "generate")
    if wrong:
        return wrong
    refused = "g" in who
    if run.status != refused:
        return "exit code %d: %s" % (run.status, run.err[:200])
    wanted = lines if not refused else 0 if how == "--reference" else number - 1
    if run.out.count(b"\n") != wanted:
        return "%d lines for %d: %s" % (run.out.count(b"\n"), wanted, run.err[:200])
    return refused_at(run, named, number) if refused else None


def learn(wall, text, place, end, tokenizer, how):
    """how: where the text stands."""
    name, content, who = text
    side = {"--train-src": 0, "--train-tgt": 1, "source": 2, "target": 3, "--valid": 2}[how]
    content, number, lines = file_of(content, place, end, side)
    folder = wall.new_folder()
    wall.write("hostile", content, folder)
    wall.write("pairs", PAIRS, folder)
    command = [wall.tool("train"), "--tokenizer", tokenizer, "--max-len", "40", "-o", "m.safetensors"] + SMALL
    command.remove("--quiet")  # what was learned is shown
    if side < 2:
        other = b"".join(GOOD[1][1 - side] + b"\n" for _ in range(lines))
        wall.write("other", other, folder)
        names = ["hostile", "other"] if side == 0 else ["other", "hostile"]
        command += ["--train-src", names[0], "--train-tgt", names[1]]
    elif how == "--valid":
        command += ["--train", "pairs", "--valid", "hostile"]
    else:
        command += ["--train", "hostile", "--valid", "hostile"]
    run = Run(command, folder)
    wrong = complaint(run, "train")
    if wrong:
        return wrong
    left = sorted(set(os.listdir(folder)) - {"hostile", "pairs", "other"})
    refused = "t" in who or ("w" in who and tokenizer != "char")
    if run.status == 0:
        return None if not refused and "m.safetensors" in left else "exit code 0, %s" % left
    if run.status != 1 or left:
        return "exit code %d, %s: %s" % (run.status, left, run.err[:200])
    if refused and number == lines == 1 and b"there is no text to learn" in run.err:
        return None  # of all the files
    if refused:
        return refused_at(run, "hostile", number) if text[1] else None  # files of other lengths may be told first
    # a message about too few or too many tokens names the option to raise
    return None if b"raise --" in run.err else "exit code 1: %s" % run.err[:200]


# ---- whole files: empty ones, ones that are no pairs, and unusual beginnings and ends

def whole_files():
    bom = b"\xef\xbb\xbf"
    return [("empty", b"", False), ("a newline", b"\n", False), ("newlines", b"\n" * 1000, False),
            ("a byte order mark alone", bom, False), ("a byte order mark", bom + PAIRS, True),
            ("two byte order marks", bom + bom + PAIRS, True), ("CRLF", PAIRS.replace(b"\n", b"\r\n"), True),
            ("CR alone", PAIRS.replace(b"\n", b"\r"), False), ("UTF-16", PAIRS.decode().encode("utf-16"), False),
            ("no last newline", PAIRS[:-1], True), ("a tab too many", PAIRS + b"a\tb\tc\n", False),
            ("no tab", PAIRS + b"a b c\n", False), ("tabs alone", b"\t\t\n" * 5, False),
            ("a zero at the end", PAIRS + b"\0", False), ("binary", bytes(range(256)) * 40, False)]


def learn_file(wall, content, taken, how):
    """The same bytes give the same model, whatever kind of file they stand in."""
    folder = wall.new_folder()
    path = wall.write("hostile", content, folder)
    command = [wall.tool("train"), "--tokenizer", "char", "--min-freq", "1", "-o", "m.safetensors"] + SMALL
    files = ["--train", "hostile"]
    stdin = subprocess.DEVNULL
    writer = None
    if how == "valid":
        wall.write("pairs", PAIRS, folder)
        files = ["--train", "pairs", "--valid", "hostile"]
    elif how == "stdin":
        files, stdin = ["--train", "/dev/stdin"], open(path, "rb")
    elif how == "pipe":
        files, stdin = ["--train", "/dev/stdin"], content
    elif how == "substitution":
        command = ["bash", "-c", '"$@" --train <(cat hostile)', "bash"] + command
        files = []
    elif how == "fifo":
        os.mkfifo(os.path.join(folder, "fifo"))
        writer = threading.Thread(target=lambda: subprocess.run(["dd", "if=hostile", "of=fifo"], cwd=folder,
                                                                stderr=subprocess.DEVNULL))
        writer.start()
        files = ["--train", "fifo"]
    run = Run(command + files, folder, stdin=stdin, timeout=60)
    if writer:
        writer.join()
    wrong = complaint(run, "train")
    if wrong or run.status != (0 if taken else 1):
        return wrong or "exit code %d: %s" % (run.status, run.err[:200])
    if taken and how != "valid":
        same = Run([wall.tool("train"), "--tokenizer", "char", "--min-freq", "1", "-o", "same", "--train",
                    "hostile"] + SMALL, folder)
        models = [open(os.path.join(folder, name), "rb").read() for name in ("m.safetensors", "same")]
        return None if same.status == 0 and models[0] == models[1] else "not the model of the plain file"
    return None if not os.path.exists(os.path.join(folder, "m.safetensors")) or taken else "a model is left"


def read_once(wall, options):
    """A pipe gives its bytes once: two uses of it are refused before any is read."""
    folder = wall.new_folder()
    os.mkfifo(os.path.join(folder, "fifo"))
    run = Run([wall.tool(options[0])] + options[1:], folder, stdin=b"ein hund\ta dog\n", timeout=60)
    wrong = complaint(run, options[0])
    return wrong or (None if run.status == 2 and b"only once" in run.err else "%d: %s" % (run.status, run.err[:200]))


def shortened(wall, keep):
    """A file that changes between two readings is told of, however it ends."""
    folder = wall.new_folder()
    os.mkfifo(os.path.join(folder, "src"))
    wall.write("tgt", b"a dog\n" * 30000, folder)
    # The vocabulary is learned from src and tgt; as src comes from a pipe, tgt can be changed before it ends.
    process = subprocess.Popen([wall.tool("train"), "--tokenizer", "word", "--train-src", "src", "--train-tgt", "tgt",
                                "-o", "m.safetensors"] + SMALL, cwd=folder, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL)
    src = os.open(os.path.join(folder, "src"), os.O_WRONLY)
    os.write(src, b"ein hund\n" * 20000)
    with open(os.path.join(folder, "tgt"), "r+b") as tgt:
        if keep is None:
            tgt.write(b"the cat")
        else:
            tgt.truncate(keep)
    try:
        os.write(src, b"ein hund\n" * 10000)
    except BrokenPipeError:
        pass  # it was noticed
    os.close(src)
    err = process.communicate(timeout=60)[1]
    if process.returncode != 1 or b"train: tgt can't be read: it has changed while it was read" not in err:
        return "exit code %d: %s" % (process.returncode, err[:200])
    return None


# ---- what an untrusted model says

def untrusted_model(wall, program, code):
    """Its metadata and names hold a character that a terminal obeys; nothing said to people does."""
    folder = wall.new_folder()
    odd = "x%sy" % chr(code)
    escaped = "".join("\\u%04x" % int.from_bytes(odd.encode("utf-16-be")[i:i + 2], "big")
                      for i in range(0, len(odd.encode("utf-16-be")), 2))
    header = '{"__metadata__":{"%s":"%s","weft.config.d_model":"%s"},"%s":{"dtype":"F32","shape":[1],' \
             '"data_offsets":[0,4]}}' % ((escaped,) * 4)
    header = header.encode() + b" " * (-len(header) % 8)
    wall.write("model", len(header).to_bytes(8, "little") + header + b"\0\0\x80\x3f", folder)
    command = {"inspect": ["model"], "json": ["--json", "model"], "convert": ["--to", "torch", "model", "-o", "o"],
               "graph": ["--model", "model"], "generate": ["--model", "model"],
               "train": ["--resume", "-o", "model", "--train", odd]}[program]
    name = "inspect" if program == "json" else program
    run = Run([wall.tool(name)] + command, folder)
    said = (run.err + (run.out if name == "inspect" else b"")).decode(errors="surrogateescape")
    if odd in said:
        return "U+%04X is shown" % code
    return complaint(run, name)

CONTROLS = [1, 7, 8, 0x0A, 0x0D, 0x1B, 0x7F, 0x85, 0x9B, 0x061C, 0x200B, 0x200E, 0x2028, 0x2029, 0x202E, 0x2066, 0xFEFF,
            0xE0041]


def shown_samples(wall):
    """A training shows pairs that it has never seen: their controls are replaced."""
    folder = wall.new_folder()
    wall.write("pairs", PAIRS, folder)
    wall.write("valid", "e\033[2Jn\u202e\u009b\ta\u2028\b\a dog\n".encode(), folder)
    command = [wall.tool("train"), "--tokenizer", "char", "--train", "pairs", "--valid", "valid"] + SMALL
    command.remove("--quiet")
    run = Run(command, folder)
    said = run.err.decode()
    if "e\ufffd[2Jn\ufffd\ufffd | a\ufffd\ufffd\ufffd dog | " not in said:
        return "not as it should be shown: %r" % said[-300:]
    return complaint(run, "train")


def main():
    long = "--long" in sys.argv[1:]
    wall = Texts(tools_folder())
    number = 0
    for text in TEXTS:
        for place in PLACES:
            for end in ENDS:
                for tokenizer in TOKENIZERS:
                    for function, how in ([(answer, h) for h in ("stdin", "-i", "--reference", "--json")] +
                                          [(learn, h) for h in ("--train-src", "--train-tgt", "source", "target",
                                                                "--valid")]):
                        number += 1
                        if long and len(text[1]) > 1 << 20 and (end != "\\n" or tokenizer != "bpe"):
                            continue  # such lines are refused before anything looks at them
                        if not long and number % 23 != 0:
                            continue
                        name = "%s: %s, %s, ended by %s, %s, %s" % (function.__name__, text[0], place, end,
                                                                    tokenizer, how)
                        wall.case(name, function, wall, text, place, end, tokenizer, how)
    for name, content, taken in whole_files():
        for how in "file", "valid", "stdin", "pipe", "substitution", "fifo":
            wall.case("a file: %s, %s" % (name, how), learn_file, wall, content, taken, how)
    for program in "inspect", "json", "convert", "graph", "generate", "train":
        for code in CONTROLS:
            wall.case("%s shows U+%04X" % (program, code), untrusted_model, wall, program, code)
    for options in (["train", "--train", "fifo", "--valid", "fifo"], ["train", "--train-src", "/dev/stdin",
                    "--train-tgt", "/dev/fd/0"], ["generate", "--model", "m", "--reference", "/dev/stdin"]):
        wall.case("once: %s" % " ".join(options), read_once, wall, options)
    for keep in 0, 5, 60, None:
        wall.case("shortened to %s" % keep, shortened, wall, keep)
    wall.case("samples", shown_samples, wall)
    return wall.end()


if __name__ == "__main__":
    sys.exit(main())
