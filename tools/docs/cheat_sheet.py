"""tools/docs/cheat_sheet.py - all public functions and the options of the programs on one screen."""
import re

from function_pages import declaration_text
from web_pages import escape

CALLBACK = re.compile(r'\(\*(\w+)\)\([^()]*\)')


def parameters(declaration):
    """The names of the parameters: "x, axis"."""
    text = ' '.join(re.sub(r'/\*.*?\*/', ' ', declaration_text(declaration), flags=re.S).split())
    text = re.sub(r'\s*WF_PRINTF\([^)]*\)', '', text)
    inside = text[text.index('(') + 1:text.rindex(')')]
    inside = CALLBACK.sub(r'\1', inside)
    names = []
    for part in inside.split(','):
        name = re.search(r'(\w+|\.\.\.)(?:\[[^\]]*\])*\s*$', part.strip())
        if part.strip() not in ('void', '') and name:
            names.append(name.group(1))
    return ', '.join(names)


def grouped(functions):
    """Neighbours with equal parameters share them: [([declaration...], parameters)]."""
    groups = []
    for declaration in functions:
        given = parameters(declaration)
        if groups and groups[-1][1] == given and len(groups[-1][0]) < 60:
            groups[-1][0].append(declaration)
        else:
            groups.append(([declaration], given))
    return groups


def function_html(declaration):
    name = declaration.name.removeprefix('wf_')
    return f'<a href="functions/{declaration.name}.html" title="{escape(declaration_text(declaration))}">{name}</a>'


def sections_html(headers, functions):
    """One box for each section that has functions."""
    boxes = []
    for header in headers:
        for title, _, declarations in header.sections:
            own = [d for d in declarations if functions.get(d.name) is d]
            if not own:
                continue
            short = re.split(r'[:.;(]', title)[0].strip() or header.path.split('/')[-1]
            items = ' '.join('<span>' + ' '.join(map(function_html, group)) + f'<i>({escape(given)})</i></span>'
                             for group, given in grouped(own))
            boxes.append(f'<p><b title="{header.path}">{escape(short)}</b> {items}</p>')
    return '\n'.join(boxes)


def options_of(help_text):
    """[(section, [option...])] of what a program prints with --help."""
    found = []
    for line in help_text.splitlines():
        if line and not line.startswith(' '):
            found.append((line.split(' (')[0], []))
        elif option := re.match(r' {2,6}(?:-\w, )?--([\w-]+)', line):
            if found:
                found[-1][1].append(option.group(1))
    return [(title, options) for title, options in found if options]


def programs_html(helps):
    parts = []
    for program, text in helps.items():
        options = ' '.join(f'<span>--{option}</span>' for _, names in options_of(text) for option in names)
        parts.append(f'<p class="options"><b><a href="programs/{program}.html">{program}</a></b> {options}</p>')
    return '\n'.join(parts)


def add_cheat_sheet(site, headers, functions, helps):
    content = f'''<h1>weft on one screen</h1>
<p class="key">{len(functions)} public functions without their prefix <code>wf_</code>, and the names of their parameters; several
that take the same ones stand together. The pointer shows the declaration, a click its page.</p>
<div class="columns">{sections_html(headers, functions)}
<h2>programs</h2>
{programs_html(helps)}</div>'''
    site.add('cheat_sheet.html', 'weft: cheat sheet', content, 'page', 'all functions and options on one screen', body='sheet')
