#!/usr/bin/env python3
"""tests/walls/ranks.py - what befalls one of several ranks that train together.

usage: ranks.py [--short | --long] [--seed N]      WEFT_TOOLS: the folder of the programs

A training goes on through many lives, each with another number of ranks, and each ended from outside: a rank is killed or
stopped, the program that started them is killed or told to end, the disk is full. What must hold: all of them are gone
within 30 seconds, with one sentence and the exit code of the cause; the file is whole, and none of its steps is lost; at
the end it is, byte for byte, that of a training which nobody disturbed.
"""
import concurrent.futures, fcntl, os, random, re, resource, shutil, signal, subprocess, sys, tempfile, time

LIMIT = 30
LIVES = 5  # of one training
KINDS = {"--short": {"kill": 20, "stop": 4, "disk": 5, "term": 6, "orphan": 5},
         "--long": {"kill": 200, "stop": 50, "disk": 50, "term": 50, "orphan": 50}}
TRAIN = ("--tokenizer char --max-tokens 40 --batch-size 3 --warmup 2 --d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 8 "
         "--accum 4 --ema 0.9 --lr-schedule constant").split()
ALWAYS = "--train pairs --quiet --threads 1".split()
ENDLESS = ["--max-steps", "1000000000"]


class Failure(Exception):
    pass


def tool(name):
    return os.path.join(os.path.abspath(os.environ.get("WEFT_TOOLS", "build/tools")), name)


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                text = f.read()
        except OSError:
            continue
        if name.isdigit() and int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(int(name))
    return sorted(found)


def states(pids):
    """For who looks into it: what each of them does, and where in the kernel."""
    told = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status, open(f"/proc/{pid}/wchan") as where:
                told.append(f"{pid}: {re.search('State:(.*)', status.read()).group(1).strip()} in {where.read()}")
        except OSError:
            pass
    return "; ".join(told)


def step_of(folder):
    path = os.path.join(folder, "m")
    if not os.path.exists(path):
        return 0
    told = subprocess.run([tool("inspect"), path], capture_output=True, text=True)
    step = re.search(r"train\.step +(\d+)", told.stdout)
    if told.returncode or not step:
        raise Failure(f"the file is not whole: {told.stderr}")
    return int(step.group(1))


def await_free(folder, until):
    """No run holds the file any more."""
    path = os.path.join(folder, "m.lock")
    while time.monotonic() < until:
        try:
            with open(path) as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except FileNotFoundError:
            return
        except BlockingIOError:
            time.sleep(0.05)
    raise Failure("the ranks outlive the program that started them")


def command(ranks, folder):
    resume = ["--resume"] if step_of(folder) else TRAIN
    return [tool("train"), "--processes", str(ranks)] + ALWAYS + resume + ["-o", "m"]


def begin(dice, folder, kind, ranks):
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    return subprocess.Popen(command(ranks, folder) + ENDLESS + ["--save-every", str(dice.choice([1, 1, 2, 7]))],
                            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            preexec_fn=small if kind == "disk" else None)


def strike(dice, kind, p):
    """Exit codes that it may have then, and what it says."""
    ranks = children(p.pid)
    if kind in ("kill", "stop") and ranks:
        victim = dice.choice(ranks)
        os.kill(victim, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
        rank = ranks.index(victim)
        return ((137,), f"rank {rank} was killed by signal 9") if kind == "kill" else (
            (124,), f"rank {rank} sent no heartbeat for 10 seconds")
    number = signal.SIGKILL if kind == "orphan" else signal.SIGTERM
    p.send_signal(number)
    return (-number, 128 + number), ""


def live(dice, folder, kind):
    ranks, before = dice.randrange(1 if kind in ("disk", "term", "orphan") else 2, 6), step_of(folder)
    p = begin(dice, folder, kind, ranks)
    try:
        time.sleep(dice.random() * 0.8)
        codes, says = strike(dice, kind, p)
        struck = time.monotonic()
        try:
            _, told = p.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{kind} of {ranks} ranks: they hang: {states([p.pid] + children(p.pid))}")
        await_free(folder, struck + LIMIT)
    finally:
        if p.poll() is None:
            p.kill()
    lines = [line for line in told.splitlines() if line.startswith("train: ") and "is not saved" not in line]
    if p.returncode not in codes:
        raise Failure(f"{kind} of {ranks} ranks: exit code {p.returncode}, not one of {codes}: {told}")
    if says and not (len(lines) == 1 and re.fullmatch("train: " + says, lines[0])):
        raise Failure(f"{kind} of {ranks} ranks: it said: {told}")
    after = step_of(folder)
    if after < before or (kind == "disk" and after != before):
        raise Failure(f"{kind} of {ranks} ranks: step {after} after step {before}")
    return time.monotonic() - struck


def training(seed, kinds):
    """Failures, and the longest that an end took."""
    dice, longest = random.Random(seed), 0
    folder = tempfile.mkdtemp(prefix="weft-ranks-")
    with open(os.path.join(folder, "pairs"), "w") as f:
        f.write("one two\tein zwei\nthree\tdrei\nfour a b\tvier a b\nfive\tf\n" * 7)
    try:
        for kind in kinds:
            longest = max(longest, live(dice, folder, kind))
        steps = ["--max-steps", str(step_of(folder) + 3)]
        for extra in (command(dice.randrange(1, 6), folder), [tool("train")] + ALWAYS + TRAIN + ["-o", "whole"]):
            done = subprocess.run(extra + steps, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"it does not go on: {done.stderr}")
        with open(os.path.join(folder, "m"), "rb") as a, open(os.path.join(folder, "whole"), "rb") as b:
            if a.read() != b.read():
                raise Failure("other bits than undisturbed")
        left = sorted(set(os.listdir(folder)) - {"pairs", "m", "whole"})
        if left:
            raise Failure(f"left behind: {left}")
    except Failure as failure:
        print(f"ranks: seed {seed}, {' '.join(kinds)}: {failure} ({folder})", file=sys.stderr)
        return 1, longest
    shutil.rmtree(folder)
    return 0, longest


def main():
    form = "--long" if "--long" in sys.argv else "--short"
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 1
    began, failures, longest = time.monotonic(), 0, 0
    if os.getpgrp() != os.getpid():
        os.setsid()  # or the shell's end would wake who is stopped, as an orphaned job
    kinds = [kind for kind, n in KINDS[form].items() for _ in range(n)]
    random.Random(seed).shuffle(kinds)
    trainings = [kinds[i:i + LIVES] for i in range(0, len(kinds), LIVES)]
    with concurrent.futures.ThreadPoolExecutor(4) as several:  # who is stopped takes no time of others
        done = [several.submit(training, seed * 1000 + i, t) for i, t in enumerate(trainings)]
        for one in done:
            failed, seconds = one.result()
            failures += failed
            longest = max(longest, seconds)
    print(f"  {', '.join(f'{n} {kind}' for kind, n in KINDS[form].items())}; gone within {longest:.1f} s")
    print(f"ranks: {len(kinds)} cases, {failures} failures, {time.monotonic() - began:.0f} s")
    sys.exit(failures > 0)


main()
