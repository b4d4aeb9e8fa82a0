#!/usr/bin/env python3
"""tools/docs/manual.py - the manual as HTML: ops, functions, programs, reading, a cheat sheet, and a search.

usage: manual.py SOURCE_FOLDER BUILD_FOLDER OUTPUT_FOLDER

Everything comes from the source: comments of headers and of ops' files, READMEs and the pages in reading/;
and from build/tools: the help of the programs, and examples of all ops, which describe-ops runs. It exits
with 1, after saying what, if an op or a public function has no page with all its parts, if a link leads
nowhere, or if a page names code that is not there.
"""
import json
import pathlib
import re
import subprocess
import sys

import cheat_sheet
import function_pages
import markdown
import op_pages
import read_headers
import read_ops
import reading_pages
import web_pages

PROGRAMS = ('train', 'generate', 'graph', 'inspect', 'convert', 'bench', 'tokenize', 'embed')


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    return done.stdout


def add_ops(site, root, build, headers):
    """Pages of all ops. Returns (formulas by op, functions that record an op, what is missing)."""
    ops = read_ops.read_all(root)
    lines = run(str(build / 'tools/describe-ops')).splitlines()
    examples = {example['op']: example for example in map(json.loads, lines)}
    names = op_pages.pytorch_names(root)
    functions = op_pages.recorders(root, ops, headers)
    bad = [f'{name}: ops/list.inc names it, and no file of ops/ has its struct' for name in read_ops.names(root) if name not in ops]
    bad += [f'{name}: the library has this op, and read_ops.py does not find it' for name in examples if name not in ops]
    function_pages.name_everything(site, headers, ops)
    inline = markdown.Renderer(lambda to, name: None).inline
    for name, op in ops.items():
        said = op_pages.missing(op, examples.get(name))
        bad += said
        if not said:
            op_pages.add_op(site, op, examples[name], functions.get(name, []), names, inline)
    return ops, examples, functions, names, bad


def add_functions(site, headers, ops, examples, recorded, names):
    functions = function_pages.functions_of(headers)
    formulas = {name: examples[name]['formula'].partition(': ')[2] for name in ops if name in examples}
    inline = markdown.Renderer(lambda to, name: None).inline
    bad = []
    home = function_pages.homes(headers)
    for header in headers:
        function_pages.add_header(site, header, home)
    by_path = {header.path: header for header in headers}
    for name, declaration in functions.items():
        bad += function_pages.missing(declaration, formulas)
        own_ops = [op for op, recorders in recorded.items() if name in recorders]
        rows = [[inline(cell) for cell in row] for row in names.get(name.removeprefix('wf_'), [])]
        function_pages.add_function(site, declaration, by_path[declaration.header], formulas, own_ops, rows)
    return functions, bad


def add_programs(site, build):
    helps = {program: run(str(build / 'tools' / program), '--help') for program in PROGRAMS}
    for program, text in helps.items():
        summary = text.split('\n')[0].partition(': ')[2]
        site.add(f'programs/{program}.html', f'{program} - program of weft',
                 f'<h1>{program}</h1><pre>{web_pages.escape(text)}</pre>', 'program', summary)
        for _, options in cheat_sheet.options_of(text):
            site.index += [[f'--{option}', f'programs/{program}.html', f'option of {program}', ''] for option in options]
    return helps


def linked(paths, site):
    title = lambda path: site.pages[path][0].split(' - ')[0]
    return '<p class="list">' + ' '.join(f'<a href="{path}">{web_pages.escape(title(path))}</a>' for path in paths) + '</p>'


def add_index(site, folder, headers, functions, examples, readings):
    families = {}
    for name, example in examples.items():
        families.setdefault(example['family'], []).append(f'ops/{name}.html')
    ops = ''.join(f'<h3>{family}</h3>{linked([p for p in paths if p in site.pages], site)}' for family, paths in families.items())
    by_header = ''.join(
        f'<h3><a href="{function_pages.header_page(header.path)}">{header.path}</a></h3>' +
        linked([f'functions/{d.name}.html' for _, _, ds in header.sections for d in ds if functions.get(d.name) is d], site)
        for header in headers if any(functions.get(d.name) is d for _, _, ds in header.sections for d in ds))
    content = f'''<h1>weft: the manual</h1>
<div id="hits"></div>
<div id="contents">
<p>{len(examples)} ops, {len(functions)} functions. The field above searches all of it; / goes there.
Everything on one screen: the <a href="cheat_sheet.html">cheat sheet</a>.</p>
<h2 id="reading">Reading</h2>{readings}
<h2 id="programs">Programs</h2>{linked([f'programs/{p}.html' for p in PROGRAMS], site)}
<h2 id="ops">Ops</h2>{ops}
<h2 id="functions">Functions</h2>{by_header}
</div>'''
    script = f'const entries = {site.search_index()};\n' + (folder / 'docs.js').read_text()
    site.add('index.html', 'weft: the manual', content, script=script)


def make(root, build, out):
    """Write the manual. Returns (what is said at the end, what is wrong)."""
    here = root / 'tools/docs'
    site = web_pages.Site()
    site.sources = reading_pages.sources(root)
    headers = read_headers.read_all(root)
    ops, examples, recorded, names, bad = add_ops(site, root, build, headers)
    functions, said = add_functions(site, headers, ops, examples, recorded, names)
    bad += said
    helps = add_programs(site, build)
    cheat_sheet.add_cheat_sheet(site, headers, functions, helps)
    readings, said = reading_pages.add_readings(site, root)
    bad += said
    site.add_sources()
    add_index(site, here, headers, functions, examples, readings)
    css = (root / 'tools/page/page.css').read_text() + (here / 'docs.css').read_text()
    site.files['manual.css'] = css.encode()
    size = site.write(out)
    links, said = web_pages.check_links(out)
    bad += said
    kinds = {kind: sum(entry[2] == kind for entry in site.index) for kind in ('op', 'function', 'type', 'page')}
    return (f'{kinds["op"]} ops, {kinds["function"]} functions, {kinds["type"]} types, {len(site.pages)} pages, '
            f'{links} links, {size / 1e6:.1f} MB'), bad


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    root, build, out = map(pathlib.Path, sys.argv[1:])
    said, bad = make(root, build, out)
    for line in bad:
        print('manual:', line, file=sys.stderr)
    print(f'manual: {said}: {out / "index.html"}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
