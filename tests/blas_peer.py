#!/usr/bin/env python3
"""tests/blas_peer.py - the hot rows of `bench gemm` by numpy's BLAS, in turns with it.

    OPENBLAS_NUM_THREADS=1 tests/blas_peer.py build/tools/bench [--shapes base square copy]
    OPENBLAS_NUM_THREADS=2 OPENBLAS_CORETYPE=Haswell WEFT_ISA=avx2 tests/blas_peer.py build/tools/bench

A round is one group of shapes by weft, then by numpy, row by row for the same time: y = x w^T,
dx = dy w and dw = dy^T x of the same sizes, each into memory of its own. Printed: the medians of
both over the rounds in GFLOP/s, the median over the rounds of weft's rate by the BLAS's, and the
same of the best run of each in all rounds, which other programs disturb least.
Products of two rows, as decoding has them, are left out: no BLAS packs a weight once for many.
The BLAS reads its settings when it is loaded: OPENBLAS_NUM_THREADS (1 if it is not set), which
weft follows, and OPENBLAS_CORETYPE. Needs numpy; threadpoolctl, if it is there, names the kernels.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["MKL_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"]
import numpy  # noqa: E402: after what it reads

THREADS = int(os.environ["OPENBLAS_NUM_THREADS"])


def product(form, m, n, k):
    """The operands and the result lie as in a model: x [m, k], w [n, k], dy [m, n]."""
    x, w, dy = (numpy.random.rand(*s).astype(numpy.float32) for s in ((m, k), (n, k), (m, n)))
    a, b = {"y": (x, w.T), "dx": (dy, w), "dw": (dy.T, x)}[form]
    out = numpy.empty((a.shape[0], b.shape[1]), numpy.float32)
    return lambda: numpy.matmul(a, b, out=out)


def timed(name, seconds):
    """The median and the shortest time of a run: `name` is WORDS MxNxK FORM hot."""
    _, sizes, form, _ = name.rsplit(" ", 3)
    run = product(form, *(int(n) for n in sizes.split("x")))
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


def weft_events(o, group):
    command = [o.bench, "gemm", "--json", "--threads", str(THREADS), "--seconds", str(o.seconds)]
    command += ["--shape", group, "--operands", "hot"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def blas_name():
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return f"numpy {numpy.__version__}"
    blas = [i for i in threadpool_info() if i["user_api"] == "blas"]
    return ", ".join(f"{i['internal_api']} {i['version']} ({i.get('architecture')})" for i in blas)


def flops(name):
    m, n, k = (int(size) for size in name.rsplit(" ", 3)[1].split("x"))
    return 2 * m * n * k


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--shapes", nargs="+", default=["square", "base", "copy"],
                        help="how the names of the rows of bench gemm begin")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each row of a round")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    rounds, titled = {}, False
    for _ in range(o.rounds):
        for group in o.shapes:
            for e in weft_events(o, group):
                if e["event"] == "run" and not titled:
                    print(f"{e['processor']}, caches {e['caches']}")
                    print(f"weft's {e['isa']} kernels and {blas_name()}, threads: {THREADS}")
                    titled = True
                if e["event"] == "result":
                    theirs = timed(e["name"], o.seconds)
                    pair = (e["median"], theirs[0], e["min"], theirs[1], e["peak_gflops"])
                    rounds.setdefault(e["name"], []).append(pair)
    print(f"{'GFLOP/s':32} {'weft':>7} {'BLAS':>7} {'of peak':>8} {'ratio':>6} {'of the best':>11}")
    ratios = []
    for name, pairs in rounds.items():
        ours, theirs = (statistics.median(flops(name) / p[i] for p in pairs) / 1e9 for i in (0, 1))
        of_peak = statistics.median(flops(name) / p[0] / p[4] / 1e7 for p in pairs)
        ratios.append(statistics.median(p[1] / p[0] for p in pairs))
        best = min(p[3] for p in pairs) / min(p[2] for p in pairs)
        print(f"{name:32} {ours:7.1f} {theirs:7.1f} {of_peak:6.1f} % {ratios[-1]:6.2f} {best:11.2f}")
    print(f"the lowest {min(ratios):.2f}, the median {statistics.median(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
