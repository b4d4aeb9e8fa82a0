#!/usr/bin/env python3
"""tests/emit_speed.py - programs of `graph --emit-c` beside generate and train, with one thread, in turns.

    tests/emit_speed.py build/tools [--rounds 7] [--compilers gcc clang] [--cases f32 int8 train]

f32, int8: a translator of width 128, 3 + 3 layers, 8,004 ids and words at random decodes lines one by one,
beam 4. train: the updates of the copy task, with the sizes that `train` chooses. Each program is compiled
with -O3 -march=native, and compared with the kernels that weft chooses; then with -O3 -mavx2 -mfma, and
compared with WEFT_ISA=avx2. A round runs both on much work and on little, and takes the difference of their
processor times, which leaves out the start. Printed for each: seconds of both, medians, and the speed of the
C by weft's: the median of the rounds, the lowest and the highest. Outputs, and trained files, must be the
same bytes.
"""
import argparse
import os
import pathlib
import random
import resource
import statistics
import subprocess
import tempfile

TARGETS = {'native': ['-march=native'], 'avx2': ['-mavx2', '-mfma']}
LINES, FEW_LINES, STEPS, FEW_STEPS = 801, 1, 300, 20


def run(command, stdin=None, isa='native'):
    """The output of a command, and its seconds of processor time."""
    env = dict(os.environ)
    if isa != 'native':
        env['WEFT_ISA'] = isa
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=open(stdin) if stdin else None, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f'{" ".join(map(str, command))}: {done.stderr.decode()[-500:]}')
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compile_c(compiler, isa, source):
    program = f'./{source}.{compiler}.{isa}'
    run([compiler, '-std=c11', '-O3', *TARGETS[isa], '-DMODEL_MAIN', f'{source}.c', '-o', program])
    return program


def show(name, compiler, isa, rounds, ours, theirs):
    """ours() and theirs() give seconds of weft and of the C, in turns."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    a, b = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    ratios = sorted(p[0] / p[1] for p in pairs)
    print(f'{name:6} {compiler:6} {isa:7} {a:8.3f} {b:8.3f} {statistics.median(ratios):6.2f} '
          f'{ratios[0]:6.2f} {ratios[-1]:6.2f}', flush=True)


def difference(much, little):
    return much()[1] - little()[1]


# ---- decoding --------------------------------------------------------------------------------------


def make_translator(tools):
    words = [f'w{i}' for i in range(8000)]
    draw = random.Random(1)
    with open('pairs.tsv', 'w') as pairs:
        for at in range(0, 32000, 8):
            line = [words[(at + i) % 8000] for i in range(8)] + draw.sample(words, 5)
            print(' '.join(line) + '\t' + ' '.join(reversed(line)), file=pairs)
    for name, n in (('lines', LINES), ('few', FEW_LINES)):
        with open(name, 'w') as lines:
            for i in range(n):
                print(' '.join(draw.sample(words, 8 + i % 9)), file=lines)
    run([tools / 'train', '--train', 'pairs.tsv', '--tokenizer', 'word', '--d-model', '128', '--heads', '4',
         '--layers', '3', '--d-ff', '512', '--valid-size', '8', '--max-steps', '30', '--quiet', '--seed', '1', '-o', 'de'])


def decode(tools, compilers, rounds, weights):
    generate = [tools / 'generate', 'de', '--quiet', '--threads', '1', '--batch-size', '1', '--beam', '4', '--weights', weights]
    run([tools / 'graph', '--emit-c', 'de', '--beam', '4', '--max-length', '40', '--weights', weights,
         '--weights-file', f'{weights}.weights', '-o', f'{weights}.c'])
    generate += ['--max-len-a', '0', '--max-len-b', '40']
    for compiler in compilers:
        for isa in TARGETS:
            program = compile_c(compiler, isa, weights)
            if run(generate, 'lines', isa)[0] != run([program], 'lines')[0]:
                raise SystemExit(f'{program} has other lines than generate')
            show(weights, compiler, isa, rounds,
                 lambda: difference(lambda: run(generate, 'lines', isa), lambda: run(generate, 'few', isa)),
                 lambda: difference(lambda: run([program], 'lines'), lambda: run([program], 'few')))


# ---- training --------------------------------------------------------------------------------------


def train(tools, compilers, rounds):
    def weft(steps, isa):
        return run([tools / 'train', '--task', 'copy', '--valid-size', '0', '--threads', '1', '--quiet', '--overwrite',
                    '--max-steps', str(steps), '-o', 'trained'], None, isa)

    weft(1, 'native')
    run([tools / 'graph', '--emit-c', 'trained', '--train', '--from-start', '-o', 'training.c'])
    for compiler in compilers:
        for isa in TARGETS:
            program = compile_c(compiler, isa, 'training')
            weft(STEPS, isa)
            if pathlib.Path('trained').read_bytes() != run([program, str(STEPS)])[0]:
                raise SystemExit(f'{program} trains other weights than train')
            show('train', compiler, isa, rounds,
                 lambda: difference(lambda: weft(STEPS, isa), lambda: weft(FEW_STEPS, isa)),
                 lambda: difference(lambda: run([program, str(STEPS)]), lambda: run([program, str(FEW_STEPS)])))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('tools', type=pathlib.Path)
    p.add_argument('--rounds', type=int, default=7)
    p.add_argument('--compilers', nargs='+', default=['gcc', 'clang'])
    p.add_argument('--cases', nargs='+', default=['f32', 'int8', 'train'])
    o = p.parse_args()
    tools = o.tools.resolve()
    print(f'{"case":6} {"cc":6} {"for":7} {"weft s":>8} {"C s":>8} {"speed":>6} {"least":>6} {"most":>6}', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if set(o.cases) - {'train'}:
            make_translator(tools)
        for case in o.cases:
            if case == 'train':
                train(tools, o.compilers, o.rounds)
            else:
                decode(tools, o.compilers, o.rounds, case)
        os.chdir('/')


main()
