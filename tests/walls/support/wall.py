"""tests/walls/support/wall.py - what the walls share: a folder of trained models and texts, programs run as people run
them, and the count of what held and what did not. Python's standard library alone."""

import concurrent.futures
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time

PROGRAMS = ["train", "generate", "graph", "inspect", "convert", "bench"]
NOBODY = 65534
SMALL = ("--d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet --max-steps 2 --lr-steps 100 "
         "--warmup 2").split()


class Run:
    """A program that has ended: .status (negative: of a signal), .out and .err as bytes."""

    def __init__(self, command, folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 limits=(), closed=(), nobody=False, timeout=120):
        def prepare():
            os.umask(0o022)
            for which, value in limits:
                resource.setrlimit(which, (value, value))
            for descriptor in closed:
                os.close(descriptor)

        more = dict(user=NOBODY, group=NOBODY, extra_groups=[]) if nobody else {}
        text = stdin if isinstance(stdin, bytes) else None
        process = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=stderr, preexec_fn=prepare,
                                   stdin=subprocess.PIPE if text is not None else stdin, **more)
        try:
            self.out, self.err = process.communicate(text, timeout)
            self.status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            self.out, self.err = process.communicate()
            self.status = "no end after %d s" % timeout
        self.out, self.err = self.out or b"", self.err or b""


def complaint(run, name, silent=False):
    """What is wrong with how a run ended; None: nothing. A failure is one sentence of the program's, and shows no
    control characters; silent: there was no stderr to say it on."""
    if not isinstance(run.status, int):
        return run.status
    if run.status < 0:
        return "died of signal %d" % -run.status
    if any(c < 32 and c not in b"\n\t" or c == 127 for c in run.err):
        return "control characters on stderr: %r" % run.err
    try:
        run.err.decode()
    except UnicodeDecodeError:
        return "stderr is not UTF-8: %r" % run.err
    if run.status and not silent and not any(line.startswith(name.encode() + b": ") and len(line) > len(name) + 8
                                             for line in run.err.split(b"\n")):
        return "exit code %d without a sentence: %r" % (run.status, run.err)
    return None


class Wall:
    """Cases, run two at a time, each in a folder of its own."""

    def __init__(self, tools):
        self.began = time.monotonic()
        self.root = os.geteuid() == 0
        self.only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
        self.folder = tempfile.mkdtemp(prefix="weft-wall-")
        os.chmod(self.folder, 0o755)
        self.tools = os.path.join(self.folder, "tools")
        os.mkdir(self.tools)
        for name in PROGRAMS:  # where another user can reach them
            shutil.copy(os.path.join(tools, name), self.tools)
        self.lock = threading.Lock()
        self.cases = self.failures = self.number = 0
        self.skipped = {}
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2))
        self.jobs = []

    def tool(self, name):
        return os.path.join(self.tools, name)

    def new_folder(self):
        with self.lock:
            self.number += 1
            path = os.path.join(self.folder, "case-%d" % self.number, "here")
        os.makedirs(path)
        return path

    def skip(self, why):
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def case(self, name, function, *arguments):
        """function(*arguments) returns what is wrong, or None."""
        if self.only not in name:
            return
        self.jobs.append((name, self.pool.submit(function, *arguments)))

    def must(self, command, folder, **how):
        run = Run([self.tool(command[0])] + command[1:], folder, **how)
        if run.status != 0:
            sys.exit("%s: %s %s" % (command, run.status, run.err.decode(errors="replace")))
        return run

    def end(self):
        for name, job in self.jobs:
            try:
                wrong = job.result()
            except Exception as e:  # a case that can't be made is one that failed
                wrong = "%s: %s" % (type(e).__name__, e)
            self.cases += 1
            if wrong:
                self.failures += 1
                print("%s --long --only '%s': %s" % (sys.argv[0], name, wrong), flush=True)
        for why, n in self.skipped.items():
            print("skipped %d: %s" % (n, why))
        for folder, _, _ in os.walk(self.folder):
            os.chmod(folder, 0o755)
        shutil.rmtree(self.folder, ignore_errors=True)
        name = os.path.basename(sys.argv[0]).rpartition(".")[0]
        print("%s: %d cases, %d failures, %.1f s" % (name, self.cases, self.failures, time.monotonic() - self.began))
        return 1 if self.failures or not self.cases else 0


def snapshot(folder):
    """Every name below the folder, and what is in it."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                content = os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as f:
                    content = f.read()
            else:
                content = stat.S_IFMT(mode)
            found[os.path.relpath(path, folder)] = content
    return found


def tools_folder():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    tools = os.environ.get("WEFT_TOOLS") or os.path.join(os.environ.get("WEFT_BUILD", root + "/build"), "tools")
    if not os.path.exists(os.path.join(tools, "train")):
        sys.exit("no programs are in %s: set WEFT_TOOLS to their folder" % tools)
    return os.path.abspath(tools)
