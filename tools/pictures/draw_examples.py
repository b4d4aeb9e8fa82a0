#!/usr/bin/env python3
"""tools/pictures/draw_examples.py - a picture of each example: the curve of its training, and what it prints.

usage: draw_examples.py SOURCE_FOLDER BUILD_FOLDER OUTPUT_FOLDER [NAME...]

Runs the examples that are built (spiral.cpp is compiled first, where there is a C++ compiler). They give the
same bits on every machine, so their pictures are the same bytes: tests/pictures.sh compares them.
"""
import html
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STYLE = '''<style>
  .back { fill: #f5f6f8; stroke: #d5d9e0 } text { fill: #1c2230; font: 12px monospace; white-space: pre }
  .dim { fill: #5b6475 } .curve { fill: none; stroke: #1f5fbf; stroke-width: 2 } .dot { fill: #1f5fbf }
  @media (prefers-color-scheme: dark) {
    .back { fill: #1d222b; stroke: #39414f } text { fill: #e4e8ef } .dim { fill: #9aa5b8 }
    .curve { stroke: #7fb0ff } .dot { fill: #7fb0ff }
  }
</style>'''
WIDE, HIGH, LINE = 220, 130, 16


def points_of(lines):
    """[(step, number)] of the lines "step 100: loss 0.593" whose step is after the last; []: of fewer than three."""
    found = []
    for line in lines:
        step = re.match(r'step (\d+): \D*([-+.\de]+)', line)
        if step and (not found or int(step.group(1)) > found[-1][0]):
            found.append((int(step.group(1)), float(step.group(2))))
    return found if len(found) > 2 else []


def curve(points):
    """A curve over the steps; the numbers on a logarithmic axis."""
    low, high = min(y for _, y in points), max(y for _, y in points)
    span = math.log(high / low) or 1
    at = [(20 + (WIDE - 40) * (x - points[0][0]) / (points[-1][0] - points[0][0]),
           26 + (HIGH - 52) * math.log(high / y) / span) for x, y in points]
    parts = [f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}"/>']
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in at]
    parts.append(f'<text class="dim" x="14" y="16">{high:g}</text><text class="dim" x="14" y="{HIGH - 8}">{low:g}</text>')
    parts.append(f'<text class="dim" x="{WIDE - 14}" y="{HIGH - 8}" text-anchor="end">step {points[-1][0]}</text>')
    return parts


def picture(name, text):
    lines = [line.rstrip() for line in text.rstrip('\n').split('\n')]
    points = points_of(lines)
    left = WIDE if points else 0
    width = left + 28 + math.ceil(7.3 * max(map(len, lines)))
    height = max(HIGH if points else 0, 20 + LINE * len(lines))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
             f'<title>{name}: what it prints</title>', STYLE,
             f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>']
    parts += curve(points) if points else []
    for i, line in enumerate(lines):
        parts.append(f'<text xml:space="preserve" x="{left + 14}" y="{23 + LINE * i}">{html.escape(line, quote=False)}</text>')
    return '\n'.join(parts) + '\n</svg>\n'


def program_of(name, source, build, folder):
    """The program of an example; None: it cannot be built here."""
    if (source / f'tools/examples/{name}.c').exists():
        return build / f'tools/examples/example-{name}'
    compiler = os.environ.get('CXX', 'c++').split()
    if not shutil.which(compiler[0]):
        return None
    target = folder / name
    subprocess.run(compiler + ['-std=c++17', '-O2', source / f'tools/examples/{name}.cpp', f'-I{build}/include', f'-L{build}',
                               f'-Wl,-rpath,{build}', '-lweft', '-lm', '-pthread', '-o', target], check=True)
    return target


def main():
    source, build, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    names = sys.argv[4:] or sorted(path.stem for path in (source / 'tools/examples').glob('*.c*'))
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            program = program_of(name, source, build, pathlib.Path(folder))
            if not program:
                print(f'{name}: no C++ compiler')
                continue
            done = subprocess.run([program], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        (out / f'example_{name}.svg').write_text(picture(name, done.stdout))
    return 0


if __name__ == '__main__':
    sys.exit(main())
