"""tools/docs/function_pages.py - a page for each public function, and one for each public header with its types."""
import re

from web_pages import escape


def functions_of(headers):
    """The public functions, each once: a header may repeat what another declares."""
    found = {}
    for header in headers:
        for _, _, declarations in header.sections:
            for declaration in declarations:
                if declaration.kind == 'function':
                    found.setdefault(declaration.name, declaration)
    return found


def homes(headers):
    """{name: its declaration}; for a type, the declaration with its members."""
    found = {}
    for header in headers:
        for _, _, declarations in header.sections:
            for declaration in declarations:
                if declaration.name not in found or ('{' in declaration.text and '{' not in found[declaration.name].text):
                    found[declaration.name] = declaration
    return found


def header_page(path):
    return 'headers/' + path.replace('/', '_').removesuffix('.h') + '.html'


def name_everything(site, headers, ops):
    """Register the page of each public name, so that pages can link to pages that are made later."""
    for name in functions_of(headers):
        site.names[name] = f'functions/{name}.html'
    for name, declaration in homes(headers).items():
        site.names.setdefault(name, f'{header_page(declaration.header)}#{name}')
    for name in ops:
        site.names.setdefault(f'wf_op_{name}', f'ops/{name}.html')


def own_comment(declaration, ops, recorded):
    """The text about a function: its comment, or the formula of the op with its name."""
    if declaration.comment:
        return declaration.comment
    return ops.get(declaration.name.removeprefix('wf_'), '')


def declaration_text(declaration):
    """The declaration as written, without WF_API and without the body of an inline function."""
    text = declaration.text.replace('WF_API ', '')
    if text.startswith('static inline'):
        text = text.split('{')[0].rstrip() + ';'
    return text


def add_function(site, declaration, header, formulas, op_names, rows):
    here = f'functions/{declaration.name}.html'
    title, remark, _ = next((s for s in header.sections if declaration in s[2]), ('', '', []))
    said = own_comment(declaration, formulas, None)
    facts = [('Header', f'<a href="../{header_page(header.path)}"><code>{header.path}</code></a>' +
              (f', {escape(title)}' if title else ''))]
    if declaration.source:
        to = site.source(declaration.source, declaration.name, here)
        facts.append(('Source', f'<a href="{to}"><code>{declaration.source}</code></a>'))
    if op_names:
        facts.append(('Op', ' '.join(f'<a href="../ops/{name}.html"><code>{name}</code></a>' for name in op_names)))
    if rows:
        facts.append(('PyTorch', '; '.join(f'{theirs}{": " + more if more else ""}' for _, theirs, more in rows)))
    table = ''.join(f'<tr><th>{name}</th><td>{value}</td></tr>' for name, value in facts)
    shared = ''
    if declaration.shared and declaration.comment:
        shared = '<p class="dim">The header says this of several functions together:</p>'
    section = f'<h2>About its section</h2>{site.prose(remark, here)}' if remark and remark != declaration.comment else ''
    site.add(here, f'{declaration.name} - function of weft', f'''<h1>{declaration.name}</h1>
<pre><code>{site.code(declaration_text(declaration), here)}</code></pre>
{shared}{site.prose(said, here)}
<table class="facts">{table}</table>
{section}
<p class="dim">Functions accept NULL and objects that have failed, but those that are for use inside an op's kernel; none prints, and
none ends the program.</p>''',
             'function', said)


def add_header(site, header, home):
    here = header_page(header.path)
    parts = [f'<h1>{header.path}</h1>', site.prose(re.sub(r'^[\w./]+ - ', '', header.about), here)]
    for title, remark, declarations in header.sections:
        if title:
            parts.append(f'<h2>{escape(title)}</h2>')
        parts.append(site.prose(remark, here) if remark and (not declarations or declarations[0].comment != remark) else '')
        for declaration in declarations:
            comment = '' if declaration.shared else site.prose(declaration.comment, here)
            elsewhere = declaration.kind == 'function' or home[declaration.name] is not declaration
            anchor = '' if elsewhere else f' id="{declaration.name}"'
            parts.append(f'<div class="declared"{anchor}><pre><code>{site.code(declaration_text(declaration), here)}'
                         f'</code></pre>{comment}</div>')
            if not elsewhere:
                site.index.append([declaration.name, f'{here}#{declaration.name}', 'type', ' '.join(declaration.comment.split())[:120]])
    site.add(here, f'{header.path} - header of weft', '\n'.join(parts), 'header', header.about)


def missing(declaration, formulas):
    if own_comment(declaration, formulas, None).strip():
        return []
    return [f'{declaration.header}:{declaration.line}: {declaration.name} has no comment, and its group has none']
