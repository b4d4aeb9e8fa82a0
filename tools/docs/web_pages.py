"""tools/docs/web_pages.py - a folder of HTML pages that link to each other, and the check that they do."""
import html
import html.parser
import json
import os
import re

PAGE = '''<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="{up}manual.css"></head>
<body{body}><header><nav><a href="{up}index.html"><strong>weft</strong></a> <a href="{up}index.html#reading">reading</a>
<a href="{up}index.html#ops">ops</a> <a href="{up}index.html#functions">functions</a> <a href="{up}index.html#programs">programs</a>
<a href="{up}cheat_sheet.html">cheat sheet</a></nav>
<form action="{up}index.html" role="search"><input name="q" type="search" placeholder="search" aria-label="search the manual" size="16"></form></header>
<main>
{content}
</main>{script}</body></html>
'''


def escape(text):
    return html.escape(str(text))


class Site:
    def __init__(self):
        self.pages = {}  # path: (title, content, script, class of the body)
        self.index = []  # [title, path, kind, words]
        self.names = {}  # name in code: path, with an anchor if it is not a page of its own
        self.files = {}  # path: bytes
        self.sources = {}  # path of a source file: its text
        self.shown = {}  # path of a source file that pages link to: names that need an anchor in its page

    def add(self, path, title, content, kind='', words='', script='', body=''):
        assert path not in self.pages, path
        self.pages[path] = (title, content, script, body)
        if kind:
            self.index.append([title.split(' - ')[0], path, kind, ' '.join(words.split())[:160]])

    def code(self, text, here):
        """Code as HTML; names that have a page in the manual become links."""
        def linked(match):
            to = self.names.get(match.group())
            if not to or to == here:
                return match.group()
            return f'<a href="{relative(to, here)}">{match.group()}</a>'
        return re.sub(r'\bwf_\w+', linked, escape(text))

    def source(self, path, name, here):
        """A link to a source file, at the definition of a name or at its first use; its page is made by add_sources."""
        names = self.shown.setdefault(path, set())
        if re.fullmatch(r'\w+', name) and re.search(rf'\b{name}\b', self.sources[path]):
            names.add(name)
        return relative(source_page(path), here) + (f'#{name}' if name in names else '')

    def add_sources(self):
        for path, names in self.shown.items():
            text = self.sources[path]
            at = {}
            for name in sorted(names):
                found = re.search(rf'^(?!static [^\n]*;$)\w[^;={{}}\n]*\b{name}\b\(', text, flags=re.M) or re.search(rf'\b{name}\b', text)
                at.setdefault(text.count('\n', 0, found.start()), []).append(name)
            lines = [''.join(f'<a id="{name}"></a>' for name in at.get(i, [])) + self.code(line, source_page(path))
                     for i, line in enumerate(text.split('\n'))]
            self.add(source_page(path), path, f'<h1>{path}</h1><pre class="source">' + '\n'.join(lines) + '</pre>',
                     'source', (re.match(r'/\*.*? - (.*?)[.:]', text, flags=re.S) or ['', ''])[1])

    def prose(self, comment, here):
        """A comment as HTML: paragraphs, and indented lines or tables as they are."""
        out = []
        for paragraph in re.split(r'\n\s*\n', comment.strip('\n')):
            lines = paragraph.split('\n')
            run = []
            apart = []
            for line in lines + ['']:
                if re.match(r'  +\S', line) or re.search(r'\S {3,}\S', line):
                    if run:
                        out.append(f'<p>{self.code(" ".join(run), here)}</p>')
                        run = []
                    apart.append(line)
                    continue
                if apart:
                    out.append(f'<pre>{self.code(chr(10).join(apart), here)}</pre>')
                    apart = []
                if line.strip():
                    run.append(line.strip())
            if run:
                out.append(f'<p>{self.code(" ".join(run), here)}</p>')
        return '\n'.join(out)

    def write(self, folder):
        """Write all pages; return their bytes."""
        total = 0
        for path, (title, content, script, body) in self.pages.items():
            up = '../' * path.count('/')
            text = PAGE.format(title=escape(title), up=up, content=content,
                               body=f' class="{body}"' if body else '',
                               script=f'\n<script>\n{script}\n</script>' if script else '')
            self.files[path] = text.encode()
        for path, data in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            total += len(data)
        return total

    def search_index(self):
        """The search index for the page's script, without `<`, because "</script>" would end the script."""
        return json.dumps(self.index, ensure_ascii=False, separators=(',', ':')).replace('<', '\\u003c')


def source_page(path):
    return 'sources/' + path.replace('/', '_') + '.html'


def relative(to, here):
    path, mark, anchor = to.partition('#')
    return os.path.relpath(path, os.path.dirname(here) or '.') + mark + anchor


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == 'id':
                assert value not in self.anchors, f'id {value} twice'
                self.anchors.add(value)
            elif name in ('href', 'src', 'action'):
                self.targets.append((tag, value))


def check_links(folder):
    """Check that links lead to files and anchors in the folder, and that pages load nothing else. Returns (number of links, [error])."""
    found = {}
    for path in sorted(folder.rglob('*.html')):
        found[str(path.relative_to(folder))] = links = Links()
        links.feed(path.read_text())
    bad = []
    count = 0
    for page, links in found.items():
        for tag, target in links.targets:
            count += 1
            if re.match(r'https?:', target):
                if tag != 'a':
                    bad.append(f'{page} loads {target}')
                continue
            if target == 'data:,':
                continue
            path, _, anchor = target.partition('#')
            to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not (folder / to).is_file():
                bad.append(f'{page} links to {target}, which is not there')
            elif anchor and anchor not in found[to].anchors:
                bad.append(f'{page} links to {target}, which has no such place')
    return count, bad
