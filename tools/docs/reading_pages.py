"""tools/docs/reading_pages.py - the pages in reading/ and all READMEs as HTML; and a check of the names in them.

A link of a page to a source file whose text is code, [`wf_grad`](../../../core/graph.h), says that this
name stands in the file. Code that ends in () names a function, and code with a slash and an ending a file:
the pages in reading/ are refused if one of them is not there.
"""
import os
import re

import markdown
from web_pages import escape, relative

FOLDERS = ('core', 'ops', 'nn', 'models', 'tools', 'tests')
ENDINGS = r'\.(?:c|h|inc|md|sh|py|js|css|build)'


def page_of(path):
    """The path in the manual of a Markdown page of the source tree."""
    if path.startswith('tools/docs/reading/'):
        return 'reading/' + os.path.basename(path).removesuffix('.md') + '.html'
    return 'pages/' + path.removesuffix('.md').replace('/', '_') + '.html'


def sources(root):
    """{path: text} of all C files and scripts."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob('*')):
            if path.suffix in ('.c', '.h', '.inc', '.py', '.sh') and path.is_file():
                found[str(path.relative_to(root))] = path.read_text(errors='replace')
    return found


def short(code):
    """The class that keeps short code in one line."""
    return ' class="short"' if len(code) < 28 else ''


class Reader:
    def __init__(self, site, root, pages):
        self.site, self.root, self.pages = site, root, pages
        self.sources = site.sources
        code = (text for path, text in self.sources.items() if path.endswith(('.c', '.h', '.inc')))
        words = re.findall(r'\b([A-Za-z_]\w+)\(', '\n'.join(code))
        self.functions = set(words)
        self.bad = []

    def target(self, page, to, name):
        """Where a link of the page leads in the manual; None: to a file that is not part of it."""
        if re.match(r'https?:|mailto:', to):
            return to
        path, _, anchor = to.partition('#')
        real = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if real in self.pages:
            return relative(page_of(real), page_of(page)) + (f'#{anchor}' if anchor else '')
        if not (self.root / real).exists():
            self.bad.append(f'{page} links to {to}, which is not there')
        if real.endswith('.svg') and (self.root / real).is_file():
            self.site.files.setdefault('pictures/' + os.path.basename(real), (self.root / real).read_bytes())
            return relative('pictures/' + os.path.basename(real), page_of(page))
        return self.site.source(real, name, page_of(page)) if real in self.site.sources else None

    def check_names(self, page, text):
        """Check that names, functions and files in the page exist where the page says."""
        text = re.sub(r'^```.*?^```', '', text, flags=re.M | re.S)
        for names, to in re.findall(r'\[((?:`[^`]+`[ ,]*)+)\]\(([^)#]+)\)', text):
            path = os.path.normpath(os.path.join(os.path.dirname(page), to))
            for name in re.findall(r'`([^`]+)`', names):
                known = self.sources.get(path)
                if known is not None and '/' not in name and '.' not in name and not re.search(rf'\b{re.escape(name.split("(")[0])}\b', known):
                    self.bad.append(f'{page}: {path} has no {name}')
        for code in re.findall(r'`([^`\n]+)`', text):
            if (call := re.fullmatch(r'(\w+)\(\)', code)) and call.group(1) not in self.functions:
                self.bad.append(f'{page}: there is no function {code}')
            if re.fullmatch(r'[\w./-]+/[\w.-]+' + ENDINGS, code) and not (self.root / code).is_file():
                self.bad.append(f'{page}: there is no file {code}')

    def count_names(self, text):
        return len(re.findall(r'\[(?:`[^`]+`[ ,]*)+\]\([^)#]+\)', text))

    def add(self, page):
        text = (self.root / page).read_text()
        here = page_of(page)
        renderer = markdown.Renderer(lambda to, name: self.target(page, to, name), lambda code: f'<code{short(code)}>{self.site.code(code, here)}</code>')
        content = renderer.render(text)
        title = re.search(r'^# (.*)', text, flags=re.M)
        title = re.sub(r'[`*]', '', title.group(1)) if title else page
        if page.startswith('tools/docs/reading/'):
            self.check_names(page, text)
            content += f'<p class="dim">From <code>{escape(page)}</code>.</p>'
        self.site.add(here, title, content, 'page', ' '.join(words for _, words, _ in renderer.headings[1:]))


def add_readings(site, root):
    """Add all pages. Returns the list of their links as HTML, and a list of errors."""
    guided = sorted(str(p.relative_to(root)) for p in (root / 'tools/docs/reading').glob('*.md'))
    others = ['README.md', 'CHANGES.md', 'SECURITY.md'] + sorted(
        str(p.relative_to(root)) for folder in FOLDERS for p in (root / folder).rglob('*.md') if str(p.relative_to(root)) not in guided)
    reader = Reader(site, root, set(guided + others))
    for page in guided + others:
        reader.add(page)
    title = lambda page: escape(site.pages[page_of(page)][0])
    items = lambda pages: '<ul>' + ''.join(f'<li><a href="{page_of(page)}">{title(page)}</a></li>' for page in pages) + '</ul>'
    lessons = [page for page in others if page.startswith('tools/learn/')]
    rest = [page for page in others if page not in lessons]
    return (f'{items(guided)}<h3>The course</h3>{items(lessons)}<h3>Pages of the source folders</h3>{items(rest)}'), reader.bad
