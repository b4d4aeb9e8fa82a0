"""tools/docs/read_ops.py - the ops as data, from ops/list.inc and the files that define them.

The comment above `const wf_op wf_op_NAME` has paragraphs that begin with "Shapes:", "Limits:" and, if
no gradient function has a comment, "Gradient:". Rows of a table share the comment above the macro that they
become; its paragraph "Limits of NAME NAME:" is about these rows alone.
"""
import dataclasses
import re

from read_headers import plain

TABLES = {  # macro of list.inc: the table, and the file whose macro its rows become
    'UNARY': ('ops/elementwise/unary.inc', 'ops/elementwise/unary.c'),
    'BINARY': ('ops/elementwise/binary.inc', 'ops/elementwise/binary.c'),
    'COMPARE': ('ops/elementwise/binary.inc', 'ops/elementwise/binary.c'),
    'BITS': ('ops/elementwise/bits.inc', 'ops/elementwise/bits.c'),
}
LABELS = ('Shapes', 'Limits', 'Gradient')


@dataclasses.dataclass
class Op:
    name: str
    path: str
    row: str = ''  # of a table: as written there
    banner: str = ''  # the title of its section in the file
    about: str = ''  # its comment without the labelled paragraphs
    shapes: str = ''
    limits: str = ''
    derivation: str = ''  # the comment of its gradient
    decomposition: str = ''  # the comment of its decomposition into other ops
    fields: dict = dataclasses.field(default_factory=dict)


def names(root):
    """The ops of list.inc, in its order."""
    found = []
    for line in (root / 'ops/list.inc').read_text().splitlines():
        if row := re.match(r'OP\((\w+)\)$', line):
            found.append(row.group(1))
        elif table := re.match(r'#include "(.*)"', line):
            rows = re.findall(r'^(?:UNARY|BINARY|COMPARE|STEP|BITS)\((\w+),', (root / table.group(1)).read_text(), flags=re.M)
            found += rows
    return found


def comment_above(text, at):
    """The comment that ends in the line before `at`, or ''."""
    before = text[:at].rstrip(' \t')
    if not before.endswith('*/\n'):
        return ''
    begin = before.rfind('/*')
    found = before[begin:].strip()
    return '' if found.startswith('/* ----') else plain(found)


def labelled(comment):
    """(about, {label: text}) of a comment: a label begins a line, and its text goes up to the next label."""
    parts = {'': []}
    current = ''
    for line in comment.split('\n'):
        if label := re.match(r'((?:%s)(?: of [a-z0-9_ ]+)?): (.*)' % '|'.join(LABELS), line):
            current = label.group(1)
            parts[current] = [label.group(2)]
        else:
            parts[current].append(line)
    return '\n'.join(parts.pop('')).strip(), {label: '\n'.join(lines).strip() for label, lines in parts.items()}


def function_comment(text, name):
    """The comment above the definition of a static function."""
    definition = re.search(r'^[A-Za-z_][^;={}\n]*?\b%s\([^;{]*\)\s*{' % re.escape(name), text, flags=re.M)
    return comment_above(text, definition.start()) if definition else ''


def banner_above(text, at):
    found = ''
    for match in re.finditer(r'^/\* ---- (.*?) -+ \*/$', text[:at], flags=re.M):
        found = match.group(1)
    return found


def fill(op, text, start, body, comments):
    """Take from a struct, and from the comments of the functions that it names, all that the page says."""
    op.banner = banner_above(text, start)
    op.fields = dict(re.findall(r'\.(\w+) = ([^,\n\\]+)', body))
    about = []
    for comment in comments:
        rest, parts = labelled(comment)
        about.append(rest)
        op.shapes = op.shapes or parts.get('Shapes', '')
        op.limits = op.limits or parts.get('Limits', '')
        op.derivation = op.derivation or parts.get('Gradient', '')
    op.about = '\n\n'.join(filter(None, about))
    grad, other = (function_comment(text, op.fields[field]) if field in op.fields else '' for field in ('grad', 'decompose'))
    op.decomposition = other
    op.derivation = op.derivation or grad


def read_row(path, text, macro, name, row):
    """A row of a table: what the comment above the macro says of all rows, or of this one."""
    start = text.index(f'#define {macro}(NAME')
    op = Op(name, path, row)
    op.banner = banner_above(text, start)
    op.about, parts = labelled(comment_above(text, start))
    for label, said in parts.items():
        kind, _, rows = label.partition(' of ')
        if not rows or name in rows.split():
            field = {'Shapes': 'shapes', 'Limits': 'limits', 'Gradient': 'derivation'}[kind]
            setattr(op, field, '\n'.join(filter(None, [getattr(op, field), said])))
    # The rule is a function that the macro names, or helpers that the row calls.
    body = re.match(r'(?:[^\n]*\\\n)*[^\n]*', text[start:]).group()
    for function in re.findall(r'\.(?:grad|decompose) = (\w+)', body) + re.findall(r'\b([a-z]\w+)\(', row):
        if not function.startswith(('wf_', 'v_')) and (said := function_comment(text, function)):
            op.derivation = '\n\n'.join(filter(None, [op.derivation, said if function not in row else f'{function}: {said}']))
    return op


def rows_of_file(path, text):
    """Rows of macros of the file itself."""
    for macro in re.findall(r'^#define (\w+)\(NAME[^\n]*\\\n(?:[^\n]*\\\n)*?[^\n]*const wf_op wf_op_##NAME', text, flags=re.M):
        for row in re.finditer(r'^%s\((\w+),.*\)$' % macro, text, flags=re.M):
            yield read_row(path, text, macro, row.group(1), row.group())


def read_all(root):
    ops = {}
    for macro, (table, path) in TABLES.items():
        text = (root / path).read_text()
        for row in re.finditer(r'^([A-Z]+)\((\w+),.*?\)$(?=\n[A-Z#/]|\n?\Z)', (root / table).read_text(), flags=re.M | re.S):
            if row.group(1) in (macro, 'STEP' if macro in ('UNARY', 'BINARY') else macro):
                ops[row.group(2)] = read_row(path, text, macro, row.group(2), re.sub(r'\s+', ' ', row.group()))
    for path in sorted((root / 'ops').rglob('*.c')):
        text = path.read_text()
        for op in rows_of_file(str(path.relative_to(root)), text):
            ops.setdefault(op.name, op)
        for match in re.finditer(r'^const wf_op wf_op_(\w+) = {.*?^};', text, flags=re.M | re.S):
            if match.group(1) in ops:
                continue
            op = Op(match.group(1), str(path.relative_to(root)))
            fill(op, text, match.start(), match.group(), [comment_above(text, match.start())])
            ops[op.name] = op
    return {name: ops[name] for name in names(root) if name in ops}
