#!/usr/bin/env python3
"""tests/manual.py - the manual is whole, and what would make it incomplete is found.

usage: manual.py SOURCE_FOLDER BUILD_FOLDER

Makes the manual, which refuses an op or a public function without all parts of its page, a link that leads
nowhere, and reading that names code that is not there. The commands of these pages run. Then it is made from a copy with mistakes:
each has to be said. With a browser (chromium) some pages are opened, in light and dark, narrow and wide.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FOLDERS = ('core', 'ops', 'nn', 'models', 'tools', 'tests')
SKIPPED = shutil.ignore_patterns('*.safetensors', '*.bin', '*.json', '*.txt', 'corpus', 'build', '__pycache__')
# A file, what is replaced in it, by what, and what the manual says then.
MISTAKES = [
    ('ops/norm/softmax.c', r'\* Limits: Rows sum to', '* Rows sum to', 'the op softmax: the comment above its struct has no paragraph "Limits:"'),
    ('ops/product/matmul.c', r'/\* Shapes: ', '/* ', 'the op matmul: the comment above its struct has no paragraph "Shapes:"'),
    ('ops/list.inc', r'OP\(softmax\)', 'OP(softmax)\nOP(softermax)', 'softermax: ops/list.inc names it'),
    ('ops/elementwise/unary.c', r' \* Gradient: y_i', ' * y_i', 'the op exp: its rule of the gradient has no comment'),
    ('core/save.h', r'#ifdef __cplusplus\n\}', 'WF_API int wf_new_one(int a);\n#ifdef __cplusplus\n}', 'wf_new_one has no comment'),
    ('ops/README.md', r'`kernels/README.md`|\(kernels/README.md\)', '(kernels/READ.md)', 'links to kernels/READ.md, which is not there'),
    ('tools/docs/reading/gradient.md', r'\[`wf_vjp`\]', '[`wf_vjpp`]', 'has no wf_vjpp'),
    ('tools/docs/reading/gradient.md', r'\n## ', '\nSee `forward_nothing()`.\n\n## ', 'there is no function forward_nothing()'),
]
PAGES = ['index.html', 'index.html?q=softmax', 'ops/softmax.html', 'ops/adam_step.html', 'functions/wf_grad.html', 'cheat_sheet.html',
         'reading/paper.html']


def make(source, build, out):
    done = subprocess.run([sys.executable, '-B', source / 'tools/docs/manual.py', source, build, out], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def try_mistakes(source, copy, build, out):
    """A copy with all mistakes: each has to be said, and they end with 1 together. Returns [sentence]."""
    for name in FOLDERS:
        shutil.copytree(source / name, copy / name, ignore=SKIPPED)
    for path in list(source.glob('*.md')) + [source / 'weft.h']:
        shutil.copy(path, copy)
    for path, pattern, by, _ in MISTAKES:
        wrong, n = re.subn(pattern, lambda _, by=by: by, (copy / path).read_text(), count=1)
        if not n:
            return [f'{path} has no {pattern}: correct this test']
        (copy / path).write_text(wrong)
    code, said = make(copy, build, out)
    bad = [f'"{wanted}" is not said of {path}' for path, _, _, wanted in MISTAKES if wanted not in said]
    return bad + ([said] if bad else []) + ([f'exit {code} with mistakes'] if code != 1 else [])


def open_in_browser(manual):
    """Console messages and requests of some pages. Returns (pages opened, [sentence])."""
    browser = shutil.which('chromium') or shutil.which('chromium-browser')
    if not browser:
        return 0, []
    bad = []
    count = 0
    for page in PAGES:
        for width in (400, 1400):
            command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--enable-logging=stderr', '--v=0',
                       '--virtual-time-budget=2000', f'--window-size={width},1000', '--dump-dom', f'file://{manual}/{page}']
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True, timeout=120)
            bad += [f'{page}: {line}' for line in done.stderr.splitlines() if 'CONSOLE' in line]
            if page == 'index.html?q=softmax' and 'href="ops/softmax.html" aria-selected="true"' not in done.stdout:
                bad.append('a search for softmax does not find its page first')
            count += 1
    return count, bad


def prepare_work(source, build, folder):
    """A folder with the files that the pages name, of few lines, where a training of pairs makes few steps."""
    tools = folder / 'work/build/tools'
    tools.mkdir(parents=True)
    for program in (build / 'tools').iterdir():
        if program.name != 'train':
            (tools / program.name).symlink_to(program)
    (tools / 'train').write_text(f"""#!/bin/sh
case "$*" in *--train*) set -- "$@" --max-steps 40 --threads 1 --quiet ;; esac
exec {build}/tools/train "$@"
""")
    (tools / 'train').chmod(0o755)
    words = 'stadt baum vogel hund haus katze fluss garten'.split()
    for name, first, n in [('train', 0, 120), ('valid', 120, 12), ('test', 132, 12)]:
        rows = [[(i + k * (1 + i // 8)) % 8 for k in range(1 + i % 3)] for i in range(first, first + n)]
        for side, by in [('de', 0), ('en', 3)]:
            (folder / f'work/{name}.{side}').write_text(''.join(' '.join(words[w - by] for w in row) + '\n' for row in rows))
    shutil.copy(source / 'tests/data/words_de.spm', folder / 'work/joint.spm')


def run_commands(source, build, folder):
    """The commands of the pages in reading/; a block of text below them is what they print. (commands, [sentence])"""
    prepare_work(source, build, folder)
    count = 0
    bad = []
    for page in sorted((source / 'tools/docs/reading').glob('*.md')):
        for commands, _, wanted in re.findall(r'^```sh\n(.*?)^```\n(\n```text\n(.*?)^```)?', page.read_text(), flags=re.M | re.S):
            done = subprocess.run(['sh', '-ec', commands], cwd=folder / 'work', check=False, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            count += commands.count('\n')
            if done.returncode or (wanted and done.stdout.strip() != wanted.strip()):
                bad.append(f'{page.name}: {commands.strip()} (exit {done.returncode}) prints\n{done.stdout[-600:]}')
    return count, bad


def gradient_names(build):
    """Gradients of an example have the names of its gradient rule. Returns [sentence]."""
    lines = subprocess.run([build / 'tools/describe-ops'], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    bad = []
    for op in map(json.loads, lines):
        names = {tensor['name'] for tensor in op.get('gradients', [])}
        bad += [f"{op['op']}: its rule has {name}, which is no gradient of the example"
                for name in re.findall(r'^(d\w+) = ', op.get('rule', ''), flags=re.M) if name not in names]
    return bad


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        code, said = make(source, build, folder / 'manual')
        print(said.strip())
        if code:
            return 1
        for page in (folder / 'manual').rglob('*'):
            if page.suffix in ('.html', '.css') and re.search(r'(?:src|@import|url\()[=" (]*https?:', page.read_text()):
                bad.append(f'{page.name} loads something from a network')
        bad += gradient_names(build)
        ran, found = run_commands(source, build, folder)
        bad += found
        opened, found = open_in_browser(folder / 'manual')
        bad += found
        bad += try_mistakes(source, folder / 'copy', build, folder / 'wrong')
    for line in bad:
        print('manual:', line)
    print(f'manual: {len(MISTAKES)} mistakes are found; {ran} commands ran; {opened} pages opened in a browser' if not bad else 'manual: not whole')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
