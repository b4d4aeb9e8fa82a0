#!/usr/bin/env python3
"""tests/words.py - how comments and statements are written, counted in each folder.

usage: words.py [SOURCE_FOLDER]       prints the counts; exits 1 if one is above its limit

Counted are comments that begin with a noun clause ("Of", "What", "Who", "As", "The same"), which are
hard to read alone; private words for things that the field has a word for; sentences of more than 35
words; statements that commas join, where no debugger can stop between two effects; and conditional
expressions nested in one another, which readers must take apart. Lists of calls that free memory, and a
call that reports an error before a constant is returned, are no joined statements.
Limits may only fall.
"""
import pathlib
import re
import sys

LIMITS = {  # in the order of the counts below
    'core': (0, 0, 0, 0, 29),
    'ops': (0, 0, 0, 0, 22),
    'nn': (0, 0, 0, 0, 4),
    'models': (0, 0, 0, 0, 20),
    'tools': (0, 0, 0, 0, 2),
    'tests': (2, 3, 2, 651, 32),
}
NOUN_CLAUSE = re.compile(r'(?:[\w./]+ - )?(Of|What|Who|As|The same)\b')
DIALECT = re.compile(r'\b(seats?|bells?|hearts?|what the model eats)\b', re.I)
LONGEST = 35
FREES = re.compile(r'(free|\w*_free|free_\w+|fclose|close\w*|give_back|release\w*|\w*_close|va_end|sig\w+set) *\(')
DECLARATION = re.compile(r'(static|const|unsigned|struct|enum|union|typedef|extern|va_list|_Alignas|double(?= *\())\b|'
                         r'\w+( *\*+ *(const +|restrict +)*| +)(const +|restrict +)?(\*const +)?\w+ *(=|,|;|\[|\()')
HEAD = re.compile(r'\s*(else\b|do\b|(if|for|while|switch)\b\s*(?=\()|case\b[^:?]*:|default\s*:)')


def tokens(text):
    """Yield (kind, text) of the pieces of a C file; strings and directives are blanked in 'code'."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*'
    at = 0
    for match in re.finditer(pattern, text, flags=re.S | re.M):
        yield 'code', text[at:match.start()]
        kind = 'comment' if match.group().startswith(('/*', '//')) else 'code'
        yield kind, match.group() if kind == 'comment' else 'S' if match.group()[0] in '"\'' else ' '
        at = match.end()
    yield 'code', text[at:]


def sentences(comment):
    body = re.sub(r'^[ \t]*\* ?', '', comment.strip('/').strip('*'), flags=re.M)
    for paragraph in re.split(r'\n\s*\n', body):
        prose = '\n'.join(line for line in paragraph.split('\n') if '   ' not in line)
        yield from re.split(r'(?<=[.:;?!])\s+', prose)


def closing(code, at):
    """The end of the brackets that begin at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in '([{') - (code[i] in ')]}')
        if depth == 0:
            return i + 1
    return len(code)


def is_value(code, brace):
    """Does this brace begin a value, as in (point){ 1, 2 } or = { 0 }, and not a block?"""
    before = code[:brace].rstrip()
    if before.endswith(('=', ',', '{')):
        return not before.endswith('{')
    if not before.endswith(')'):
        return False
    depth, i = 0, len(before) - 1
    while i > 0 and (depth := depth + (before[i] == ')') - (before[i] == '(')) != 0:
        i -= 1
    previous = before[:i].rstrip()
    word = re.search(r'\w+$', previous)
    cast = re.fullmatch(r'\((const )?(struct )?\w+(\[\w*\])?\)', before[i:])
    return bool(cast) and (word is None or word.group() == 'return')


def statements(code):
    """Yield the simple statements of a file, without strings and comments."""
    start = i = 0
    inside = 0
    while i < len(code):
        c = code[i]
        if c in '([' or (c == '{' and is_value(code, i)):
            i = closing(code, i)
            continue
        if c in '{}':
            inside += (c == '{') - (c == '}')
            start = i + 1
        elif c == ';':
            if inside:
                yield code[start:i]
            start = i + 1
        i += 1


def parts(statement):
    """The parts of a statement between commas that no brackets hold, without `if (...)` before it."""
    while match := HEAD.match(statement):
        end = match.end()
        statement = statement[closing(statement, end):] if match.group(2) else statement[end:]
    statement = ' '.join(statement.split())
    if DECLARATION.match(statement) and not statement.startswith('return'):
        return [statement]
    found, start, i = [], 0, 0
    while i < len(statement):
        if statement[i] in '([{':
            i = closing(statement, i)
            continue
        if statement[i] == ',':
            found.append(statement[start:i].strip())
            start = i + 1
        i += 1
    return found + [statement[start:].strip()]


def is_joined(statement):
    p = parts(statement)
    if len(p) < 2 or all(FREES.match(part) for part in p):
        return False
    reports = len(p) == 2 and re.match(r'return \w+ *\(', p[0])
    return not (reports and re.fullmatch(r'NULL|-?\d+|WF_\w+|\w', p[1]))


def is_nested(statement):
    """Does a ?: hold another one, in any of its three parts?"""
    depth, found = 0, []
    for c in statement:
        depth += (c in '([{') - (c in ')]}')
        found = [d for d in found if d <= depth]
        if c == ',' or c == ';':
            found = [d for d in found if d < depth]
        elif c == '?':
            if found:
                return True
            found.append(depth)
    return any('?' in inner and statement[end:].lstrip().startswith('?') for inner, end in brackets(statement))


def brackets(text):
    """The text in each pair of brackets, and where it ends."""
    for i, c in enumerate(text):
        if c == '(':
            end = closing(text, i)
            yield text[i:end], end


def count(folder):
    counts = dict.fromkeys(('noun clauses', 'dialect', 'long sentences', 'joined statements', 'nested conditions'), 0)
    for path in sorted(folder.rglob('*')):
        if path.suffix not in ('.c', '.h', '.inc'):
            continue
        code = ''
        for kind, text in tokens(path.read_text()):
            code += text if kind == 'code' else ' '
            if kind == 'comment':
                counts['noun clauses'] += bool(NOUN_CLAUSE.match(text.strip('/* \n')))
                counts['dialect'] += bool(DIALECT.search(text))
                counts['long sentences'] += sum(len(s.split()) > LONGEST for s in sentences(text))
        if path.suffix != '.inc':
            counts['joined statements'] += sum(is_joined(s) for s in statements(code))
            counts['nested conditions'] += sum(is_nested(s) for s in statements(code))
    return counts


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.')
    bad = False
    for folder, limits in LIMITS.items():
        counts = count(source / folder)
        print(f'words in {folder}:', ', '.join(f'{n} {name}' for name, n in counts.items()))
        for name, limit in zip(counts, limits):
            if counts[name] > limit:
                print(f'words: {folder} has {counts[name]} {name}; at most {limit}', file=sys.stderr)
                bad = True
    sys.exit(bad)


if __name__ == '__main__':
    main()
