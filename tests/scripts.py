#!/usr/bin/env python3
"""Checks that each target that tools/*.sh compile is one target of the build: with a second of its name, Meson refuses.

quickstart.sh, which would install and train, must end at --help and at options that it does not have. With programs that only
write a word, it must keep a model that is there, go on with a training that was stopped, and rename one that is done.

usage: scripts.py SOURCE_FOLDER BUILD_FOLDER
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def targets(build, source):
    """Paths of all targets, such as tools/train."""
    text = subprocess.run(['meson', 'introspect', '--targets', build], check=True, capture_output=True, text=True).stdout
    folder = lambda t: pathlib.Path(t['defined_in']).parent.relative_to(source)
    return [(folder(t) / t['name']).as_posix() for t in json.loads(text)]


def ends(source, option, code, says):
    """True if quickstart.sh ends with this code and this text, before it builds anything."""
    done = subprocess.run(['sh', source / 'tools' / 'quickstart.sh', option], capture_output=True, text=True, timeout=20)
    right = done.returncode == code and says in done.stdout + done.stderr and 'building' not in done.stderr
    if not right:
        print(f'scripts: quickstart.sh {option} ends with {done.returncode}: {done.stdout}{done.stderr}', file=sys.stderr)
    return right


def keeps_model(source):
    """How many of these are wrong: quickstart.sh trains a model if there is none, which is there when it is done, and keeps one."""
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ('tools', 'build/tools', 'quickstart'):
            (folder / part).mkdir(parents=True)
        shutil.copy(source / 'tools' / 'quickstart.sh', folder / 'tools')
        (folder / 'tools' / 'setup.sh').write_text('say() { echo "$*" >&2; }\nneed() { :; }\nwant() { :; }\nconfigure() { :; }\n'
                                                   'compile() { :; }\nhas() { false; }\n')
        for program in ('graph', 'generate'):
            (folder / 'build/tools' / program).write_text('#!/bin/sh\n')
        model, unfinished = (folder / 'quickstart' / name for name in ('copy.safetensors', 'copy.new.safetensors'))
        # text of the old model, text of an unfinished one, exit code of train, text of the model afterwards
        for before, part, code, after in ((None, None, 130, None), (None, 'part', 0, 'part resumed'), (None, None, 0, ' new'),
                                          (None, 'done', 1, 'done'), ('old', None, 0, 'old')):
            model.unlink(missing_ok=True)
            unfinished.unlink(missing_ok=True)
            if part:
                unfinished.write_text(part)
            if before:
                model.write_text(before)
            inspect = folder / 'build/tools/inspect'
            inspect.write_text(f'#!/bin/sh\necho "  train.step  {2 if part == "done" else 1}"; echo "  train.lr-steps  2"\n')
            train = folder / 'build/tools/train'
            train.write_text('#!/bin/sh\ncase $1 in --resume) how=resumed ;; *) how=new ;; esac\n'
                             'for a; do case $a in *.safetensors) printf " $how" >> "$a" ;; esac; done\n'
                             f'exit {code}\n')
            for program in (folder / 'build/tools').iterdir():
                program.chmod(0o755)
            done = subprocess.run(['sh', folder / 'tools' / 'quickstart.sh'], capture_output=True, text=True, timeout=20)
            left = model.read_text() if model.exists() else None
            if done.returncode != (0 if part == 'done' else code) or left != after or ('is there, and stays' in done.stderr) != bool(before) or 'building into' in done.stderr:
                print(f'scripts: with the model {before} and a training that ends with {code}, quickstart.sh ends with '
                      f'{done.returncode} and leaves the model {left}: {done.stderr}', file=sys.stderr)
                bad += 1
    return bad


def main():
    source, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    paths = targets(build, source)
    asked = [(script.name, name) for script in sorted((source / 'tools').glob('*.sh'))
             for line in re.findall(r'^ *compile build (.+)$', script.read_text(), flags=re.M) for name in line.split()]
    bad = 0
    for script, name in asked:
        n = sum(path == name or path.endswith('/' + name) for path in paths)
        if n != 1:
            print(f'scripts: {script} compiles {name}, which is the name of {n} targets', file=sys.stderr)
            bad += 1
    installed = {name.split('weft-')[1] for name in paths if name.startswith('tools/weft-')} - {'train-mpi'}
    missing = {n for n in installed if '.' not in n} - {name.split('/')[-1] for script, name in asked if script == 'quickstart.sh'}
    if missing:
        print(f'scripts: quickstart.sh does not compile {", ".join(sorted(missing))}', file=sys.stderr)
        bad += 1
    bad += not ends(source, '--help', 0, 'usage: tools/quickstart.sh')
    bad += not ends(source, '--seed', 2, '--seed: there is no option but --help')
    bad += keeps_model(source)
    print(f'scripts: {len(asked)} targets of scripts and 2 options and 5 runs of quickstart.sh, {bad} wrong')
    return 1 if bad or len(asked) < 7 else 0


sys.exit(main())
