"""tools/docs/markdown.py - the part of Markdown that the pages of this project use, as HTML.

Headings, paragraphs, fenced and indented blocks, tables, lists (with lists in them), quotes, rules, `code`, **strong**,
*emphasis*, links and pictures. A renderer is given a function that turns the target of a link into one
that holds in the manual.
"""
import html
import re

ITEM = re.compile(r'( *)([*-]|\d+\.) +(.*)')


def slug(text):
    """The anchor of a heading, as GitHub makes it."""
    kept = re.sub(r'[^\w\- ]', '', re.sub(r'[`*]|\]\([^)]*\)', '', text).lower())
    return kept.strip().replace(' ', '-')


class Renderer:
    def __init__(self, target, code=None):
        """target(link, code that is its text or '') -> link or None, for none; code(text) -> HTML of inline code."""
        self.target = target
        self.code = code or (lambda text: f'<code>{html.escape(text)}</code>')
        self.headings = []  # (level, text, anchor)

    def inline(self, text):
        """Code first: nothing in it is a mark."""
        kept = []
        raw = {}

        def keep(found, code=''):
            raw[f'\0{len(kept)}\0'] = code
            kept.append(found)
            return f'\0{len(kept) - 1}\0'

        text = re.sub(r'(`+)(.+?)\1', lambda m: keep(self.code(m.group(2).strip()), m.group(2).strip()), text)
        text = re.sub(r'\\([|*_`\[\]])', lambda m: keep(html.escape(m.group(1))), text)
        text = html.escape(text, quote=False)
        text = re.sub(r'!\[([^\]]*)\]\(([^) ]+)\)', lambda m: keep(self.picture(m.group(1), m.group(2))), text)
        text = re.sub(r'\[([^\]]+)\]\(([^) ]+)\)', lambda m: self.link(m.group(1), html.unescape(m.group(2)), raw.get(m.group(1), '')), text)
        text = re.sub(r'\*\*(.+?)\*\*', r'<strong>\1</strong>', text)
        text = re.sub(r'(?<![\w*])\*(?! )(.+?)(?<! )\*(?![\w*])', r'<em>\1</em>', text)
        while '\0' in text:
            text = re.sub('\0(\\d+)\0', lambda m: kept[int(m.group(1))], text)
        return text

    def link(self, text, to, name):
        found = self.target(to, name)
        # A name in code that leads to a source file leads there, and not to the page of its function.
        text = re.sub(r'\0(\d+)\0', lambda m: f'<code>{html.escape(name)}</code>' if name else m.group(), text) if found else text
        return text if found is None else f'<a href="{html.escape(found)}">{text}</a>'

    def picture(self, text, to):
        found = self.target(to, '')
        return html.escape(text) if found is None else f'<img src="{html.escape(found)}" alt="{html.escape(text)}">'

    def render(self, text):
        lines = text.split('\n')
        out = []
        at = 0
        while at < len(lines):
            at = self.block(lines, at, out)
        return '\n'.join(out)

    def block(self, lines, at, out):
        """Append the block that begins here; return the line after it."""
        line = lines[at]
        fence = re.match(r' *(```+|~~~+)', line)
        heading = re.match(r'(#+) +(.*)', line)
        if not line.strip():
            return at + 1
        if fence:
            return self.fenced(lines, at, fence.group(1), out)
        if heading:
            level, words = len(heading.group(1)), heading.group(2).rstrip('# ')
            anchor = slug(words)
            again = sum(slug(other) == anchor for _, other, _ in self.headings)
            anchor += f'-{again}' if again else ''
            self.headings.append((level, words, anchor))
            out.append(f'<h{level} id="{anchor}">{self.inline(words)}</h{level}>')
            return at + 1
        if re.fullmatch(r'(-{3,}|\*{3,})\s*', line):
            out.append('<hr>')
            return at + 1
        if line.startswith('|') and at + 1 < len(lines) and re.fullmatch(r'[|:\- ]+', lines[at + 1]):
            return self.table(lines, at, out)
        if line.startswith('    '):
            return self.indented(lines, at, out)
        if ITEM.match(line):
            return self.items(lines, at, out)
        if line.startswith('>'):
            return self.quote(lines, at, out)
        return self.paragraph(lines, at, out)

    def fenced(self, lines, at, mark, out):
        end = at + 1
        while end < len(lines) and not lines[end].strip().startswith(mark):
            end += 1
        out.append('<pre><code>' + html.escape('\n'.join(lines[at + 1:end])) + '</code></pre>')
        return end + 1

    def indented(self, lines, at, out):
        end = at
        while end < len(lines) and (lines[end].startswith('    ') or not lines[end].strip()):
            end += 1
        out.append('<pre><code>' + html.escape('\n'.join(line[4:] for line in lines[at:end]).rstrip()) + '</code></pre>')
        return end

    def cells(self, line):
        inner = re.sub(r'`[^`]*`', lambda m: m.group().replace('\\|', '\1').replace('|', '\1'), line.strip().strip('|'))
        parts = re.split(r'(?<!\\)\|', inner)
        return [self.inline(part.strip().replace('\1', '|')) for part in parts]

    def table(self, lines, at, out):
        head = self.cells(lines[at])
        rows = []
        end = at + 2
        while end < len(lines) and lines[end].startswith('|'):
            rows.append(self.cells(lines[end]))
            end += 1
        row = lambda tag, cells: '<tr>' + ''.join(f'<{tag}>{cell}</{tag}>' for cell in cells) + '</tr>'
        out.append('<div class="wide"><table>' + row('th', head) + ''.join(row('td', cells) for cells in rows) +
                   '</table></div>')
        return end

    def items(self, lines, at, out):
        first = ITEM.match(lines[at])
        depth = len(first.group(1))
        tag = 'ol' if first.group(2)[0].isdigit() else 'ul'
        out.append(f'<{tag}>')
        while at < len(lines) and (item := ITEM.match(lines[at])) and len(item.group(1)) == depth:
            body = [item.group(3)]
            at += 1
            while at < len(lines) and (lines[at].startswith(' ' * (depth + 2)) or (
                    lines[at].strip() and not ITEM.match(lines[at]) and not lines[at].startswith(('#', '|', '```')))):
                body.append(re.sub(r'^ {0,%d}' % (depth + len(item.group(2)) + 1), '', lines[at]))
                at += 1
            inner = Renderer.render(self, '\n'.join(body))
            inner = re.sub(r'^<p>(.*?)</p>', r'\1', inner, count=1, flags=re.S)
            out.append(f'<li>{inner}</li>')
            if at + 1 < len(lines) and not lines[at].strip() and ITEM.match(lines[at + 1]):
                at += 1
        out.append(f'</{tag}>')
        return at

    def quote(self, lines, at, out):
        end = at
        while end < len(lines) and lines[end].startswith('>'):
            end += 1
        out.append('<blockquote>' + self.render('\n'.join(line[1:].strip() for line in lines[at:end])) + '</blockquote>')
        return end

    def paragraph(self, lines, at, out):
        end = at + 1
        while end < len(lines) and lines[end].strip() and not re.match(r'#|\||>| *```', lines[end]) and \
                not (ITEM.match(lines[end]) and not lines[end].startswith('    ')):
            end += 1
        out.append('<p>' + self.inline(' '.join(line.strip() for line in lines[at:end])) + '</p>')
        return end
