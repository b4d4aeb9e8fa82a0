#!/usr/bin/env python3
"""tests/walls/outputs.py - every output of every program, in every state a name or a stream can be in.

usage: outputs.py [--short | --long] [--only WORDS]     (short is what it is without)

Runs the programs of build/, or those that WEFT_TOOLS names; --only: the cases with that in their names. Exits 1 at a
failure.

A case holds if the exit code is the promised one, a failure says a sentence, no input has changed, every output
is whole (or as it was), and no other file is left. --long has more limits and every pair of outputs."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from wall import NOBODY, SMALL, Run, Wall, complaint, snapshot, tools_folder

PAIRS = b"ein hund\ta dog\nein haus\ta house\nder hund\tthe dog\n"
TEXT = ["train", "--train", "pairs", "--valid", "valid", "--tokenizer", "word"] + SMALL
TASK = ["train", "--task", "copy", "--batch-size", "2", "--valid-size", "4"] + SMALL
GENERATE = ["generate", "--model", "words", "-i", "in", "--reference", "ref", "--quiet", "--threads", "1",
            "--max-len-b", "2"]

# A command, the files that it reads, and its outputs: each option, and the name of the file that
# it gives in an undisturbed run.
COMMANDS = [
    (TASK, [], {"-o": "m.safetensors", "--log": "log", "--curve": "c.svg", "--report": "r.html"}),
    (TEXT, ["pairs", "valid"], {"-o": "m.safetensors", "--log": "log", "--curve": "c.svg"}),
    (GENERATE, ["words", "in", "ref"], {"-o": "out", "--attention": "a.svg"}),
    (GENERATE, ["words", "in", "ref"], {"-o": "out", "--attention": "a.json"}),
    (["graph", "--model", "words"], ["words"], {"-o": "g.dot"}),
    (["convert", "--to", "torch", "words"], ["words"], {"-o": "o.safetensors"}),
    (["convert", "--heads", "2", "--norm", "pre", "--positions", "sinusoidal", "sd"], ["sd"],
     {"-o": "o.safetensors"}),
]
# What writes nothing but streams.
STREAMS = [
    (TASK, []), (GENERATE, ["words", "in", "ref"]), (["graph", "--model", "words"], ["words"]),
    (["inspect", "words"], ["words"]), (["inspect", "--json", "words"], ["words"]),
    (["bench", "gemm", "--size", "8", "--seconds", "0", "--threads", "1"], []),
    (["train", "--help"], []), (["convert", "--version"], []),
]


class Case:
    """A command in a folder of its own, with copies of what it reads."""

    def __init__(self, wall, row, **names):
        self.wall = wall
        self.base, self.inputs, self.outputs = row[0], row[1], dict(row[2])
        self.outputs.update(names)
        self.folder = wall.new_folder()
        for name in self.inputs:
            shutil.copy(os.path.join(wall.fixtures, name), self.folder)
        self.how = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self):
        words = [self.wall.tool(self.base[0])] + self.base[1:]
        for option, name in self.outputs.items():
            words += [option, name]
        if self.base[0] == "train" and "-o" in self.outputs:
            words += ["--overwrite"]
        return words

    def run(self, status, meant=None, others=(), silent=False):
        """status: the codes that are right. meant: where an output is to be found, if not under its name.
        others: names that may change or come."""
        before = snapshot(self.folder)
        if self.how.get("nobody"):
            os.chown(self.folder, NOBODY, NOBODY)
        run = Run(self.command(), self.folder, **self.how)
        wrong = complaint(run, self.base[0], silent)
        if wrong:
            return wrong
        if run.status not in status:
            return "exit code %d, not %s: %s" % (run.status, status, run.err.decode(errors="replace").strip())
        after = snapshot(self.folder)
        whole = self.wall.whole(self)
        meant = meant or {}
        allowed = {os.path.normpath(meant.get(option, name)): whole[option]
                   for option, name in self.outputs.items()}
        if "--valid" in self.base and "-o" in self.outputs:
            stem, dot, end = self.outputs["-o"].rpartition(".")
            allowed[os.path.normpath((stem or end) + ".best" + (dot + end if stem else ""))] = whole["best"]
        for name, content in before.items():
            if name not in allowed and name not in others and after.get(name) != content:
                return "%s was changed or removed" % name
        for name, content in after.items():
            if name in others or content == before.get(name):
                continue
            if name not in allowed:
                return "%s is left" % name
            if not self.is_whole(name, content, allowed[name]):
                return "%s is not whole: %r" % (name, content[:60])
            del allowed[name]
        if run.status == 0:
            for name in allowed:
                if after.get(name) is None:
                    return "%s is not there" % name
        return None

    def is_whole(self, name, content, right):
        if right == "page":  # it holds times
            data = content.partition(b'id="data">')[2].partition(b"</script>")[0]
            try:
                return content.startswith(b"<!DOCTYPE html>") and content.endswith(b"</html>\n") and "run" in json.loads(data)
            except ValueError:
                return False
        if right != "lines":
            return content == right
        try:
            return all(json.loads(line) for line in content.decode().splitlines()) and content[-1:] in (b"\n", b"")
        except ValueError:
            return False


class Outputs(Wall):
    def __init__(self, tools):
        super().__init__(tools)
        self.fixtures = os.path.join(self.folder, "fixtures")
        os.mkdir(self.fixtures)
        for name, content in ("pairs", PAIRS), ("valid", PAIRS), ("in", b"ein hund\nder haus\n"), ("ref", b"a\nb\n"):
            with open(os.path.join(self.fixtures, name), "wb") as f:
                f.write(content)
        self.must(TEXT + ["-o", "words"], self.fixtures)
        os.unlink(os.path.join(self.fixtures, "words.best"))
        self.must(["convert", "--to", "torch", "words", "-o", "sd"], self.fixtures)
        self.known = {}
        for row in COMMANDS:
            self.whole(Case(self, row))

    def whole(self, case):
        """What each output of the command is when nothing is in the way."""
        if not case.outputs:
            return {}
        key = (" ".join(case.base), case.outputs.get("--attention", "").endswith("svg"))
        if key not in self.known:
            folder = case.folder
            run = Run(case.command(), folder)
            if run.status != 0:
                sys.exit("%s: %s" % (case.command(), run.err.decode()))
            found = {option: open(os.path.join(folder, name), "rb").read()
                     for option, name in case.outputs.items()}
            if "--log" in found:
                found["--log"] = "lines"
            if "--report" in found:
                found["--report"] = "page"
            if os.path.exists(case.path("m.best.safetensors")):
                found["best"] = open(case.path("m.best.safetensors"), "rb").read()
            self.known[key] = found
        return self.known[key]


# ---- states of a name: each function prepares the folder, and returns the name, the promised codes, and further fields

def is_folder(c, out):
    os.mkdir(c.path(out))
    return out, [1], {}

def is_fifo(c, out):
    os.mkfifo(c.path(out))
    return out, [1], {}

def is_device(c, out):
    os.symlink("/dev/null", c.path(out))
    return out, [1], {}

def is_full_device(c, out):
    return "/dev/full", [1], {}

OLD_PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1" viewBox="0 0 1 1" role="img">\n<title>'

def write_old(c, name, out):
    """A file that may be replaced: of the kind that this output is."""
    model = out.endswith(".safetensors")
    kinds = {"log": b'{"event":"old"}\n', "out": b"lines\n"}
    old = b"\x02" + b"\0" * 7 + b"{}" if model else kinds.get(out, OLD_PICTURE)
    with open(c.path(name), "wb") as f:
        f.write(old)

def is_old(c, out):
    write_old(c, out, out)
    return out, [0], {}

def is_of_another_kind(c, out):
    """A file of the user's own: only lines may replace it."""
    open(c.path(out), "w").write("{}\n")
    return out, [0] if out == "out" else [1], {}

def is_new(c, out):
    return out, [0], {}

def is_link(c, out):
    os.symlink("elsewhere", c.path(out))
    write_old(c, "elsewhere", out)
    return out, [0], {"meant": "elsewhere"}

def is_dangling(c, out):
    os.mkdir(c.path("folder"))
    os.symlink("folder/target", c.path(out))
    return out, [0], {"meant": "folder/target"}

def is_dangling_chain(c, out):
    os.mkdir(c.path("folder"))
    os.symlink("../target", c.path("folder/next"))
    os.symlink(c.path("folder/next"), c.path(out))
    return out, [0], {"meant": "target"}

def leads_nowhere(c, out):
    os.symlink("nowhere/target", c.path(out))
    return out, [1], {}

def is_loop(c, out):
    os.symlink(out, c.path(out))
    return out, [1], {}

def is_long_loop(c, out):
    os.symlink("two", c.path(out))
    os.symlink(out, c.path("two"))
    return out, [1], {}

def is_empty(c, out):
    return "", [1], {}

def is_too_long(c, out):
    return "n" * 300, [1], {}

def is_far_too_long(c, out):
    return "f/" * 3000 + "n", [1], {}

def has_no_folder(c, out):
    return "none/" + out, [1], {}

def is_below_a_file(c, out):
    open(c.path("file"), "w").close()
    return "file/" + out, [1], {}

def ends_in_a_slash(c, out):
    return out + "/", [1], {}

def is_deleted(c, out):
    """What a stream of the program is, and no name any more."""
    path = c.path("deleted")
    f = open(path, "w+b")
    os.unlink(path)
    c.how["stdin"] = f
    return "/proc/self/fd/0", [1, 2], {}

def has_odd_bytes(c, out):
    return os.fsdecode(b"a\033[2Jb\377\xc2\x9b/") + out, [1], {}

NAMES = [is_folder, is_fifo, is_device, is_full_device, is_old, is_of_another_kind, is_new, is_link, is_dangling, is_dangling_chain,
         leads_nowhere, is_loop, is_long_loop, is_empty, is_too_long, is_far_too_long, has_no_folder,
         is_below_a_file, ends_in_a_slash, is_deleted, has_odd_bytes]


def in_state(wall, row, option, state):
    c = Case(wall, row)
    name, status, more = state(c, c.outputs[option])
    c.outputs[option] = name
    meant = {option: more["meant"]} if "meant" in more else None
    return c.run(status, meant=meant)


# ---- a dash: the standard streams

def output_is_a_dash(wall, row, option):
    """Texts go to stdout, unless it gets results too; a model is refused, and no file is called "-"."""
    c = Case(wall, row)
    c.outputs = {option: "-"}
    before = snapshot(c.folder)
    run = Run(c.command(), c.folder)
    wrong = complaint(run, c.base[0], False)
    if wrong:
        return wrong
    if snapshot(c.folder) != before:
        return "a file is left, or changed"
    is_text = option == "--log" or c.base[0] == "graph" or (c.base[0], option) == ("generate", "-o")
    if c.base[0] == "generate" and option == "--attention":  # the map is drawn on stderr
        return None if run.status == 0 and "█" in run.err.decode() else "no map"
    if not is_text:
        told = "a model must be a file" if option == "-o" else "name a file"
        return None if run.status == 2 and told in run.err.decode() else "exit code %d: %s" % (
            run.status, run.err.decode().strip())
    if run.status != 0:
        return "exit code %d: %s" % (run.status, run.err.decode().strip())
    right = wall.whole(Case(wall, row))[option]
    return None if c.is_whole("-", run.out, right) and run.out else "stdout is not whole: %r" % run.out[:60]


# Commands that read a model, told to read it from stdin.
MODELS_FROM_A_DASH = ["inspect -", "inspect --json -", "generate -m -", "generate -", "graph -m -",
                      "train --init - --train pairs", "train --resume -o -", "convert --to torch - -o o",
                      "convert --from hf - -o o", "convert --to hf words -o -",
                      "convert words -o -"]
# Commands that would have to read stdin twice.
STDIN_TWICE = ["train --train-src - --train-tgt -", "generate -m words --config -", "train --config - --train -"]


def is_refused(wall, command, told):
    c = Case(wall, (command.split(), ["words", "pairs", "in"], {}))
    c.how["stdin"] = b"quiet = true\n"
    before = snapshot(c.folder)
    run = Run([wall.tool(c.base[0])] + c.base[1:], c.folder, **c.how)
    wrong = complaint(run, c.base[0], False)
    if wrong or run.status != 2 or told not in run.err.decode():
        return wrong or "exit code %d: %s" % (run.status, run.err.decode().strip())
    return None if snapshot(c.folder) == before else "a file is left, or changed"


def dash_cases(wall):
    for row in COMMANDS:
        for option in row[2]:
            wall.case("dash: %s %s" % (row[0][0], option), output_is_a_dash, wall, row, option)
    for command in MODELS_FROM_A_DASH:
        wall.case("dash: " + command, is_refused, wall, command, "a model must be a file")
    for command in STDIN_TWICE:
        wall.case("dash: " + command, is_refused, wall, command, "stdin can be read only once")


# ---- names that are one file

def spell(c, how, name, alias):
    """Another name of `name` (which is there, or not)."""
    if how == "itself":
        return name
    if how == "dot":
        return "./" + name
    if how == "parent":
        return "../here/" + name
    if how == "absolute":
        return c.path(name)
    if how == "link":
        os.symlink(name, c.path(alias))
    if how == "chain":
        os.symlink("../here/" + name, c.path(alias + "-next"))
        os.symlink(alias + "-next", c.path(alias))
    if how == "hard":
        os.link(c.path(name), c.path(alias))
    if how == "folder":
        os.symlink(".", c.path(alias + "-folder"))
        return alias + "-folder/" + name
    return alias

SPELLINGS = ["itself", "dot", "parent", "absolute", "link", "chain", "hard", "folder"]


def is_an_input(wall, row, option, name, how):
    c = Case(wall, row)
    c.outputs[option] = spell(c, how, name, "alias.svg")
    return c.run([2])


def is_another_output(wall, row, a, b, how, there):
    c = Case(wall, row)
    if there:
        open(c.path(c.outputs[a]), "w").write("{}\n")
    c.outputs[b] = c.outputs[a].upper() if how == "case" else spell(c, how, c.outputs[a], "alias.svg")
    return c.run([2])


def is_the_best(wall, how):
    """m.best.safetensors is an output that no option names."""
    c = Case(wall, COMMANDS[1])
    c.outputs["--log"] = spell(c, how, "m.best.safetensors", "alias")
    return c.run([2])


def is_redirected(wall, row, option, stream, how):
    """`< f`, `>> f` and `2>> f`, with f as an output, too."""
    c = Case(wall, row)
    f = open(c.path("redirected"), "w+b")
    f.write(b"{}\n")
    f.flush()
    c.how[stream] = f
    c.outputs[option] = "redirected" if how == "name" else "%s/%d" % (
        how, ["stdin", "stdout", "stderr"].index(stream))
    silent = stream == "stderr"
    return c.run([2], others=["redirected"] if silent else [], silent=silent)


def reads_what_stdout_is(wall, row, name):
    """`program f >> f`."""
    c = Case(wall, row + ({},))
    c.how["stdout"] = open(c.path(name), "ab")
    return c.run([2])


# ---- folders of Hugging Face: a program may not write over the files it reads in them, nor over those of others

FOLDERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "hf")
RECORDED = ("lines.txt", "texts.txt", "values.safetensors")  # the tests' own
HF_FILES = ("config.json generation_config.json model.safetensors model.safetensors.index.json pytorch_model.bin "
            "pytorch_model.bin.index.json tokenizer_config.json vocab.json target_vocab.json merges.txt source.spm "
            "target.spm sentencepiece.bpe.model tokenizer.json spiece.model").split()


def folder_case(wall, kind, how):
    """A copy of a recorded folder as "folder", in a case that runs `convert`."""
    c = Case(wall, (["convert"] + how, [], {}))
    shutil.copytree(os.path.join(FOLDERS, kind), c.path("folder"))
    for name in RECORDED:
        if os.path.exists(c.path("folder/" + name)):
            os.unlink(c.path("folder/" + name))
    return c


def is_read_in_a_folder(wall, kind, name, how):
    c = folder_case(wall, kind, ["--from", "hf", "folder"])
    c.base += ["-o", spell(c, how, "folder/" + name, "alias")]
    return c.run([2])


def is_not_read_in_a_folder(wall, kind):
    c = folder_case(wall, kind, ["--from", "hf", "folder", "-o", "folder/model.weft"])
    return c.run([0], others=["folder/model.weft"])


def is_anothers_in_a_folder(wall, name):
    """A user's file of that name stays as it is, and the folder too."""
    c = folder_case(wall, "bart", [])
    wall.must(["convert", "--from", "hf", "folder", "-o", "m"], c.folder)
    os.mkdir(c.path("d"))
    open(c.path("d/" + name), "w").write("mine\n")
    c.base += ["--to", "hf", "m", "-o", "d"]
    return c.run([1])


def folder_cases(wall, long):
    for kind in sorted(os.listdir(FOLDERS)):
        top = os.path.join(FOLDERS, kind)
        there = [os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names]
        there = [name for name in there if name not in RECORDED]
        for name in sorted(set(there + HF_FILES)):
            spellings = [how for how in SPELLINGS if how != "hard" or name in there]
            for how in spellings if long else ["itself", "link"]:
                wall.case("%s/%s is an output by %s" % (kind, name, how), is_read_in_a_folder, wall, kind, name, how)
        wall.case("a model into %s" % kind, is_not_read_in_a_folder, wall, kind)
    for name in HF_FILES:
        wall.case("%s is another's" % name, is_anothers_in_a_folder, wall, name)


# ---- what the system refuses

def in_folder_of_anothers(wall, row, option, which):
    c = Case(wall, row)
    out = c.outputs[option]
    os.mkdir(c.path("theirs"))
    c.how["nobody"] = True
    c.outputs[option] = "theirs/" + out
    if which == "read-only folder":
        os.chmod(c.path("theirs"), 0o555)
    elif which == "unreadable file":
        open(c.path("theirs/" + out), "w").write("mine\n")
        os.chmod(c.path("theirs/" + out), 0o222)
        os.chmod(c.path("theirs"), 0o777)
        if option == "--log" or (c.base[0], option) == ("train", "-o"):  # it is written into, or overwritten
            return c.run([0, 1])
    elif which == "read-only file":
        open(c.path("theirs/" + out), "w").close()
        os.chmod(c.path("theirs/" + out), 0o444)
        os.chmod(c.path("theirs"), 0o777)
    else:
        open(c.path("theirs/" + out), "w").write("{}\n")
        os.chmod(c.path("theirs/" + out), 0o666)
        os.chmod(c.path("theirs"), 0o1777)
        if option == "--log":  # it is written into, which its permissions allow; some kernels don't
            return c.run([0, 1], silent=False)
    return c.run([1])


def on_a_full_disk(wall, row, option, size):
    """A file system of so many bytes; `size` 0: nothing is left of it."""
    c = Case(wall, row)
    disk = c.path("disk")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % max(size, 4096), "tmpfs", disk],
                      stderr=subprocess.DEVNULL).returncode:
        return "can't be mounted"
    try:
        if not size:
            open(disk + "/all", "wb").write(b"x" * 4096)
        c.outputs[option] = "disk/" + c.outputs[option]
        return c.run([0, 1] if size else [1])
    finally:
        subprocess.run(["umount", disk])


def with_limit(wall, row, which, value):
    c = Case(wall, row)
    c.how["limits"] = [(which, value)]
    return c.run([0, 1])


def with_closed(wall, row, closed):
    """Outputs are files: closed streams change nothing but what can be said."""
    c = Case(wall, row)
    c.how["closed"] = closed
    c.how.update({"stdin": None} if 0 in closed else {})
    return c.run([1] if row[0][0] == "train" and 1 in closed and row[0] is TASK else [0, 1] if 1 in closed else [0],
                 silent=2 in closed)


def streams_closed(wall, row, closed):
    c = Case(wall, row + ({},))
    c.how["closed"] = closed
    return c.run([1] if 1 in closed else [0], silent=2 in closed)


def stream_full(wall, row, where):
    """Results that can't be written are a failure."""
    c = Case(wall, row + ({},))
    if where == "full":
        c.how["stdout"] = open("/dev/full", "wb")
    else:
        reader, writer = os.pipe()
        os.close(reader)
        c.how["stdout"] = writer
    wrong = c.run([1]) if where == "full" else c.run([128 + signal.SIGPIPE], silent=True)
    if where != "full":
        os.close(writer)
    return wrong


def log_in_a_limit(wall, size):
    """An event that can't be written is told at once, and the log ends with a whole line."""
    c = Case(wall, (TASK + ["--log-every", "1"], [], {"--log": "log"}))
    c.how["limits"] = [(resource.RLIMIT_FSIZE, size)]
    return c.run([1])


def without_devices(wall):
    """In a folder that has no /dev, nothing but the program and its libraries."""
    c = Case(wall, COMMANDS[0])
    listed = subprocess.run(["ldd", wall.tool("train")], capture_output=True, text=True).stdout
    for word in listed.split():
        if word.startswith("/"):
            os.makedirs(c.path(os.path.dirname(word)[1:]), exist_ok=True)
            shutil.copy(word, c.path(word[1:]))
    shutil.copy(wall.tool("train"), c.folder)
    def enter():
        os.chroot(c.folder)
        os.chdir("/")
        for descriptor in 0, 1, 2:
            os.close(descriptor)
    process = subprocess.run(["/train"] + TASK[1:] + ["-o", "/m.safetensors"], preexec_fn=enter)
    if process.returncode != 1:  # the result had nowhere to go
        return "exit code %d" % process.returncode
    right = wall.whole(Case(wall, COMMANDS[0]))["-o"]
    return None if open(c.path("m.safetensors"), "rb").read() == right else "another model"


def resumed_log(wall):
    """A log that is gone on with keeps what it has."""
    c = Case(wall, COMMANDS[0])
    wall.must(c.command()[0].split("/")[-1:] + c.command()[1:], c.folder)
    old = open(c.path("log"), "rb").read()
    wall.must(["train", "--resume", "-o", "m.safetensors", "--log", "log", "--max-steps", "4", "--quiet"], c.folder)
    new = open(c.path("log"), "rb").read()
    return None if new.startswith(old) and len(new) > len(old) else "the old lines are gone"


# ---- all of them

def name_cases(wall):
    for row in COMMANDS:
        for option in row[2]:
            title = "%s %s" % (" ".join(row[0][:3]), option)
            for state in NAMES:
                wall.case("%s %s" % (title, state.__name__), in_state, wall, row, option, state)
            for stream in "stdin", "stdout", "stderr":
                for how in "name", "/dev/fd", "/proc/self/fd":
                    wall.case("%s is %s by %s" % (title, stream, how), is_redirected, wall, row, option, stream, how)


def identity_cases(wall, long):
    for row in COMMANDS:
        options = list(row[2])
        for option in options:
            for name in row[1]:
                for how in SPELLINGS if long or len(row[2]) == 1 or option != "--log" else SPELLINGS[4:7]:
                    wall.case("%s %s is %s by %s" % (row[0][0], option, name, how), is_an_input, wall, row, option,
                              name, how)
        pairs = [(a, b) for i, a in enumerate(options) for b in options[:i]]
        for a, b in pairs + ([(b, a) for a, b in pairs] if long else []):
            for how in SPELLINGS + ["case"]:
                for there in (False, True):
                    if how == ("case" if there else "hard"):
                        continue
                    wall.case("%s %s is %s by %s (%s)" % (row[0][0], b, a, how, there), is_another_output, wall, row,
                              a, b, how, there)
    for how in SPELLINGS:
        if how != "hard":
            wall.case("--log is the best model by %s" % how, is_the_best, wall, how)
    for row in STREAMS:
        for name in row[1]:
            wall.case("%s reads %s, stdout" % (row[0][0], name), reads_what_stdout_is, wall, row, name)


def system_cases(wall, long):
    for row in COMMANDS:
        for option in row[2]:
            for which in "read-only folder", "unreadable file", "read-only file", "sticky folder":
                if wall.root:
                    wall.case("%s %s: %s" % (row[0][0], option, which), in_folder_of_anothers, wall, row, option,
                              which)
                else:
                    wall.skip("files of another user need root")
            for size in [0, 4096, 8192, 16384, 65536] if long else [0, 8192]:
                if wall.mounts:
                    wall.case("%s %s on a disk of %d" % (row[0][0], option, size), on_a_full_disk, wall, row, option,
                              size)
                else:
                    wall.skip("a small file system needs root, and leave to mount")
        for n in range(4, 20) if long else (4, 5, 6, 7, 9):
            wall.case("%s with %d descriptors" % (row[0][0], n), with_limit, wall, row, resource.RLIMIT_NOFILE, n)
        sizes = [0, 1, 100] + list(range(512, 20000, 1500 if long else 6000))
        for size in sizes:
            wall.case("%s with files of %d bytes" % (row[0][0], size), with_limit, wall, row, resource.RLIMIT_FSIZE,
                      size)
        for closed in (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2):
            wall.case("%s without %s" % (row[0][0], closed), with_closed, wall, row, closed)
    for row in STREAMS:
        for where in "full", "pipe":
            wall.case("%s to stdout: %s" % (" ".join(row[0][:2]), where), stream_full, wall, row, where)
        for closed in (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2):
            wall.case("%s without %s" % (" ".join(row[0][:2]), closed), streams_closed, wall, row, closed)
    for size in range(0, 1200, 50 if long else 300):
        wall.case("a log of %d bytes" % size, log_in_a_limit, wall, size)
    wall.case("a resumed log", resumed_log, wall)
    if wall.root and shutil.which("ldd"):
        wall.case("without /dev", without_devices, wall)
    else:
        wall.skip("a folder without /dev needs root and ldd")


def can_mount(wall):
    folder = wall.new_folder()
    mounted = wall.root and shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", folder], stderr=subprocess.DEVNULL).returncode == 0
    if mounted:
        subprocess.run(["umount", folder])
    return mounted


def main():
    long = "--long" in sys.argv[1:]
    wall = Outputs(tools_folder())
    wall.mounts = can_mount(wall)
    name_cases(wall)
    dash_cases(wall)
    identity_cases(wall, long)
    folder_cases(wall, long)
    system_cases(wall, long)
    return wall.end()


if __name__ == "__main__":
    sys.exit(main())
