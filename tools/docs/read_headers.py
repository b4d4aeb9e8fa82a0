"""tools/docs/read_headers.py - the public headers as data: sections, declarations, and their comments.

The comment of a declaration stands above it, behind it, or both. A declaration without a comment shares
that of the declaration above it, if no blank line is between them.
"""
import dataclasses
import re

BANNER = re.compile(r'/\* ---- (.*?) -+ \*/$')


@dataclasses.dataclass
class Declaration:
    name: str
    kind: str  # function, type or constant
    header: str
    line: int
    section: str
    text: str  # as written, without comments behind it
    comment: str
    shared: bool  # the comment is that of a declaration above it
    source: str = ''  # the file that defines it


@dataclasses.dataclass
class Header:
    path: str
    about: str  # its first comment
    sections: list  # (title, remark, [Declaration])


def public_headers(root):
    return re.findall(r'^#include "(.*?)"$', (root / 'weft.h').read_text(), flags=re.M)


def plain(comment):
    """The text of a comment: without the marks at the ends and at the beginnings of lines."""
    lines = comment.strip()[2:].removesuffix('*/').split('\n')
    lines = [lines[0].strip()] + [re.sub(r'^ *\* ?', '', line).rstrip() for line in lines[1:]]
    return '\n'.join(lines).strip('\n')


def pieces(text):
    """Yield (kind, text, line): blank, banner, comment, directive or code, in the order of the file."""
    at = 0
    line = 1
    for match in re.finditer(r'\n[ \t]*\n|/\*.*?\*/|^#(?:\\\n|[^\n/]|/(?!\*))*', text, flags=re.S | re.M):
        if text[at:match.start()].strip():
            lead = len(text[at:match.start()]) - len(text[at:match.start()].lstrip())
            yield 'code', text[at:match.start()], line + text.count('\n', at, at + lead)
        line += text.count('\n', at, match.start())
        found = match.group()
        kind = 'directive' if found.startswith('#') else 'comment' if found.strip() else 'blank'
        if kind == 'comment' and BANNER.match(found.replace('\n', ' ')):
            kind = 'banner'
        yield kind, found, line
        line += found.count('\n')
        at = match.end()
    if text[at:].strip():
        yield 'code', text[at:], line


def split_declarations(text):
    """Yield (line, text) of each declaration: a `;`, or the end of an inline function, outside of brackets.

    Comments inside of a struct or an enum stay in it, as they are.
    """
    depth = begin = 0
    for match in re.finditer(r'/\*.*?\*/|[{}();]', text, flags=re.S):
        mark = match.group()
        depth += (mark in '{(') - (mark in '})')
        inline = mark == '}' and depth == 0 and re.match(r'\s*static', text[begin:])
        if (mark == ';' and depth == 0) or inline:
            yield begin, text[begin:match.end()]
            begin = match.end()


def name_of(text):
    code = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    pointer = re.match(r'\s*typedef [^{]*?\(\*(\w+)\)', code)
    call = re.search(r'\b(wf_\w+)\s*\(', code)
    if 'WF_API' in code or re.match(r'\s*static inline', code):
        return ('function', call.group(1)) if call else ('variable', re.findall(r'\w+', code)[-1])
    if pointer:
        return 'type', pointer.group(1)
    tag = re.search(r'}\s*(\w+);\s*$', code) or re.match(r'\s*(?:typedef )?(?:struct|union|enum) (\w+)', code)
    if re.match(r'\s*enum\s*{', code):
        return 'constant', re.search(r'{\s*(\w+)', code).group(1)
    if re.match(r'\s*typedef', code):
        return 'type', re.findall(r'\w+', code)[-1]
    return ('type', tag.group(1)) if tag else ('constant', (re.findall(r'\w+', code) or [''])[-1])


def code_and_comments(text):
    """The pieces of a file; comments within brackets belong to the code around them."""
    merged = []
    depth = 0
    for kind, piece, line in pieces(text):
        if depth > 0:
            merged[-1][1] += piece
        else:
            merged.append([kind, piece, line])
        if kind == 'code':
            depth += piece.count('{') + piece.count('(') - piece.count('}') - piece.count(')')
            if 'extern "C"' in piece:
                depth = 0
    return merged


def read_header(root, path):
    text = (root / path).read_text()
    body = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif', lambda m: '\n' * m.group().count('\n'), text)
    found = Header(path, '', [['', '', []]])
    above = group = ''  # the comment above the next declaration; the last such comment since a blank line
    last = None
    for kind, piece, line in code_and_comments(body):
        section = found.sections[-1]
        if kind == 'comment' and not found.about:
            found.about = plain(piece)
        elif kind == 'banner':
            found.sections.append([BANNER.match(piece.replace('\n', ' ')).group(1), '', []])
            above, group, last = '', '', None
        elif kind == 'comment':
            begins_line = body[:position(body, piece, line)].rstrip(' \t')[-1:] in ('\n', '')
            if begins_line or last is None:
                above, group, last = plain(piece), plain(piece), None
            else:
                last.comment = plain(piece) if last.shared or not last.comment else last.comment + '\n' + plain(piece)
                last.shared = False
        elif kind == 'blank':
            if above and not section[2]:
                section[1] = above
            above, group, last = '', '', None
        elif kind == 'code':
            for begin, declaration in split_declarations(piece):
                what, name = name_of(declaration)
                lead = len(declaration) - len(declaration.lstrip())
                first = len(piece) - len(piece.lstrip())  # `line` is the line of this offset in the piece
                last = Declaration(name, what, path, line + piece.count('\n', first, begin + lead), section[0],
                                   declaration.strip(), above or group, not above)
                section[2].append(last)
                above = ''
    return found


def position(text, piece, line):
    """The offset in text of a piece that begins in this line."""
    at = 0
    for _ in range(line - 1):
        at = text.index('\n', at) + 1
    return text.index(piece, at)


def sources_of(root):
    """name -> path of the .c file that defines a function of the library."""
    found = {}
    for folder in ('core', 'ops', 'nn', 'models'):
        for path in sorted((root / folder).rglob('*.c')):
            for name in re.findall(r'^(?!static)[A-Za-z_][^;={}\n]*?\b(wf_\w+)\([^;{]*\)\s*{', path.read_text(), flags=re.M):
                found.setdefault(name, str(path.relative_to(root)))
    return found


def read_all(root):
    where = sources_of(root)
    headers = [read_header(root, path) for path in public_headers(root)]
    for header in headers:
        for _, _, declarations in header.sections:
            for declaration in declarations:
                declaration.source = where.get(declaration.name, '')
    return headers
