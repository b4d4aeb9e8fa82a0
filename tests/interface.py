#!/usr/bin/env python3
"""tests/interface.py - the public interface, compared with that of the last release.

usage: interface.py [SOURCE_FOLDER]            exits 1 if a declaration changed or is gone, and nothing says so
       interface.py --record [SOURCE_FOLDER]   part of a release: makes this the interface that is compared with

interface.txt holds the version of the last release and every public declaration of it, one a line:
prototypes, types and constants of the headers that weft.h includes. A declaration that is only there
now is an addition, and always allowed. One that changed or is gone needs a version of another series
(before 1.0 another MINOR), and a line in CHANGES.md that names it, so that programs can be moved.
"""
import pathlib
import re
import sys


def without_comments(text):
    return re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)


def declarations(text):
    """Yield (name, declaration) for all that a header declares."""
    text = without_comments(text).replace('\\\n', ' ')
    for line in re.findall(r'^#define\s+(WF_.*)$', text, flags=re.M):
        line = ' '.join(line.split())
        name = re.match(r'\w+', line).group()
        if not re.fullmatch(r'\w+_H|WF_API|WF_PRINTF|WF_VERSION\w*', name) and line != name:
            yield name, 'define ' + line
    text = re.sub(r'^#.*$', '', text, flags=re.M)
    text = re.sub(r'extern\s+"C"\s*\{', '', text)
    for declaration in split(text):
        yield from of_declaration(declaration)


def split(text):
    """Declarations end at a ; or, if they are inline functions, at a } outside of all brackets."""
    depth, begin = 0, 0
    for i, c in enumerate(text):
        depth += (c == '{') - (c == '}')
        depth = max(depth, 0)
        body = c == '}' and depth == 0 and text[begin:i].lstrip().startswith('static')
        if (c == ';' and depth == 0) or body:
            yield ' '.join(text[begin:i + 1].replace('WF_API', '').strip(' ;\n}').split())
            begin = i + 1


def of_declaration(text):
    enum = re.search(r'\benum\b[^{;]*\{(.*)', text)
    if enum:
        number = -1
        for constant in enum.group(1).split('}')[0].split(','):
            parts = [part.strip() for part in constant.split('=')]
            if not re.fullmatch(r'\w+', parts[0]):  # a macro that lists them
                continue
            number = parts[1] if len(parts) > 1 else following(number)
            if not parts[0].endswith('_COUNT'):
                yield parts[0], f'enum {parts[0]} = {number}'
        return
    if not text or text.startswith('static'):
        return
    pointer = re.match(r'typedef .*?\(\*(\w+)\)', text)
    names = re.findall(r'\bwf_\w+(?=\s*\()', text)
    if '{' in text:
        tag = re.search(r'(?:struct|union)\s+(\w+)', text) or re.search(r'\}\s*(\w+)$', text)
        if tag:
            yield tag.group(1), text
    elif pointer:
        yield pointer.group(1), text
    elif names and not text.startswith('typedef'):
        yield names[0], text
    else:
        yield re.findall(r'\w+', text)[-1], text


def following(number):
    return number + 1 if isinstance(number, int) else (
        int(number, 0) + 1 if re.fullmatch(r'-?\w+', number) and number[-1:].isdigit() else f'{number} + 1')


def interface(root, more=()):
    """What the headers that weft.h includes declare, and then `more` headers: {name: declaration}."""
    headers = re.findall(r'#include "(.*?)"', (root / 'weft.h').read_text())
    found = {}
    for header in headers + list(more):
        for name, text in declarations((root / header).read_text()):
            if '{' in text or name not in found:  # one header may lay out a struct that another only names
                found[name] = text
    return found


def version(root):
    text = (root / 'core/export.h').read_text()
    return '.'.join(re.search(rf'#define WF_VERSION_{part} (\d+)', text).group(1)
                    for part in ('MAJOR', 'MINOR', 'PATCH'))


def series(text):
    parts = text.split('.')
    return parts[:2] if parts[0] == '0' else parts[:1]


def main():
    arguments = [a for a in sys.argv[1:] if a != '--record']
    here = pathlib.Path(__file__).resolve().parent
    root = pathlib.Path(arguments[0]) if arguments else here.parent
    now, recorded = interface(root), here / 'interface.txt'
    changes = (root / 'CHANGES.md').read_text()
    if '--record' in sys.argv:
        lines = [version(root)] + [f'{name}\t{now[name]}' for name in sorted(now)]
        recorded.write_text('\n'.join(lines) + '\n')
        return f'interface: recorded {len(now)} declarations of {version(root)}'
    released, *lines = recorded.read_text().splitlines()
    before = dict(line.split('\t', 1) for line in lines)
    gone = [name for name in before if name not in now]
    changed = [name for name in before if name in now and now[name] != before[name]]
    added = [name for name in now if name not in before]
    bad = []
    for name in gone + changed:
        what = 'is gone' if name in gone else f'was "{before[name]}", and is "{now[name]}"'
        if series(released) == series(version(root)):
            bad.append(f'{name} {what} since {released}: raise WF_VERSION_MINOR and the version in meson.build')
        elif not re.search(rf'\b{re.escape(name)}\b', changes):
            bad.append(f'{name} {what} since {released}: CHANGES.md has no line that names it')
    for line in bad:
        print('interface:', line)
    print(f'interface: {len(before)} declarations of {released}: {len(gone)} gone, {len(changed)} changed, '
          f'{len(added)} added in {version(root)}')
    if bad:
        sys.exit(1)
    return ''


if __name__ == '__main__':
    said = main()
    if said:
        print(said)
