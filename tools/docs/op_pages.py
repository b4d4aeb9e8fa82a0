"""tools/docs/op_pages.py - a page for each op: what it computes, shapes, gradient, limits, an example that ran."""
import re

from web_pages import escape

PARTS = {  # field of the page: what a page without it lacks
    'formula': 'its struct has no .formula',
    'shapes': 'the comment above its struct has no paragraph "Shapes:"',
    'limits': 'the comment above its struct has no paragraph "Limits:"',
    'gradient': 'its rule of the gradient has no comment, its struct none with "Gradient:", and no .no_grad',
    'example': 'tools/docs/op_examples.inc has no example of it that runs',
}


def pytorch_names(root):
    """{name of weft: [(names of weft, of PyTorch, differences)]}, from the table of ops/README.md."""
    found = {}
    text = (root / 'ops/README.md').read_text().split('\n## weft and PyTorch\n')[1].split('\n## ')[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line.strip('|'))]
        if len(cells) != 3 or not cells[0].startswith('`'):
            continue
        for code in re.findall(r'`([^`]*)`', cells[0]):
            for name in re.findall(r'(\w+)(?:\([^)]*\))?', re.sub(r'\([^)]*\)', '', code)):
                found.setdefault(name, []).append(cells)
    return found


def recorders(root, ops, headers):
    """{op: public functions that record it}: functions of its file that use wf_op_NAME, or call a static function that does."""
    public = {d.name for header in headers for _, _, ds in header.sections for d in ds if d.kind == 'function'}
    found = {name: [f'wf_{name}'] for name in ops if f'wf_{name}' in public}
    for path in {op.path for op in ops.values()}:
        text = (root / path).read_text()
        bodies = re.findall(r'^(?:static )?[A-Za-z_][^;={}\n]*?\b(\w+)\([^;{]*\)\s*\{(.*?)^}', text, flags=re.M | re.S)
        uses = {name: set(re.findall(r'&wf_op_(\w+)', body)) for name, body in bodies}
        for name, body in bodies:
            if name not in public:
                continue
            direct = set(uses[name])
            for other, records in uses.items():
                if other not in public and not other.startswith(('grad_', 'decompose_')) and re.search(rf'\b{other}\(', body):
                    direct |= records
            for op in direct & set(ops):
                if name not in found.setdefault(op, []):
                    found[op].append(name)
    return found


def tensor_text(tensor):
    lead = f'{tensor["name"]} {tensor["shape"]}'.ljust(14) + ' = '
    lines = tensor['text'].split('\n')
    if tensor['type'] == 'i32':
        lines[-1] += '    i32'
    return lead + ('\n' + ' ' * len(lead)).join(lines)


def example_html(example, site, here):
    """What was recorded, operands, results, and the gradient for a cotangent 1, 2, 3..."""
    code = re.sub(r'\bop_named\((".*?")\)', r'\1', example['code'])
    parts = [f'<pre><code>{site.code(code, here)}</code></pre>']
    settings = f' ({escape(example["settings"])})' if example['settings'] else ''
    parts.append(f'<p class="dim">Operands{settings}</p><pre>' +
                 escape('\n'.join(map(tensor_text, example['inputs']))) + '</pre>')
    after = example.get('after') or example['outputs']
    title = 'Leaves after the update' if example.get('after') else 'Results' if len(after) > 1 else 'Result'
    parts.append(f'<p class="dim">{title}</p><pre>' + escape('\n'.join(map(tensor_text, after))) + '</pre>')
    if example.get('gradients'):
        shown = example['dy'] + example['gradients']
        parts.append('<p class="dim">Gradient for a given dy</p><pre>' + escape('\n'.join(map(tensor_text, shown))) + '</pre>')
    return '\n'.join(parts)


def gradient_html(op, example, site, here):
    if example['no_grad']:
        return f'<p>None: {escape(example["no_grad"])}.</p>'
    rule = example['rule'].replace('\n(through its decomposition)', '')
    lines = [f'<pre>{escape(rule)}</pre>'] if not rule.startswith('none') else []
    if example['decomposes']:
        lines.append('<p class="dim">It has no rule of its own: the gradient is that of its decomposition.</p>')
    lines.append(site.prose(op.derivation, here))
    if op.decomposition:
        lines.append('<p class="dim">The same, written with other ops:</p>' + site.prose(op.decomposition, here))
    return '\n'.join(lines)


def pytorch_html(op, names, functions, markdown):
    rows = []
    for name in [op.name] + [function.removeprefix('wf_') for function in functions]:
        for row in names.get(name, []):
            if row not in rows:
                rows.append(row)
    if not rows:
        why = 'none: gradients and plans record this op' if not functions else 'none'
        return f'<p>{why}.</p>'
    head = '<tr><th>weft</th><th>PyTorch</th><th>differences</th></tr>'
    body = ''.join('<tr>' + ''.join(f'<td>{markdown(cell)}</td>' for cell in row) + '</tr>' for row in rows)
    return f'<div class="wide"><table>{head}{body}</table></div>'


def missing(op, example):
    """What the page of this op lacks, as sentences."""
    has = {
        'formula': example and example['formula'],
        'shapes': op.shapes,
        'limits': op.limits,
        'gradient': op.derivation or (example and example['no_grad']),
        'example': example and not example.get('error'),
    }
    said = [f'{op.path}: the op {op.name}: {PARTS[part]}' for part, there in has.items() if not there]
    if example and example.get('error'):
        said.append(f'{op.name}: {example["error"]}')
    return said


def add_op(site, op, example, functions, names, markdown):
    here = f'ops/{op.name}.html'
    formula = example['formula']
    signature, _, value = formula.partition(': ')
    rows = [('Family', escape(example['family'])), ('File', f'<a href="{site.source(op.path, f"wf_op_{op.name}", here)}"><code>{op.path}</code></a>')]
    if functions:
        rows.append(('Recorded by', ' '.join(f'<code>{site.code(name, here)}</code>' for name in functions)))
    if example['attributes']:
        rows.append(('Settings', f'<code>{escape(example["attributes"])}</code>'))
    table = ''.join(f'<tr><th>{name}</th><td>{value}</td></tr>' for name, value in rows)
    content = f'''<h1>{op.name}</h1>
<p class="formula"><code>{escape(signature)}</code> = {escape(value)}</p>
<table class="facts">{table}</table>
{site.prose(op.about, here)}
<h2>Shapes</h2>
{site.prose(op.shapes, here)}
<h2>Gradient</h2>
{gradient_html(op, example, site, here)}
<h2>Limits</h2>
{site.prose(op.limits, here)}
<h2>PyTorch</h2>
{pytorch_html(op, names, functions, markdown)}
<h2>Example</h2>
<p class="dim">It ran when this page was made: f64, the operands are a, b, c in the order of the list.</p>
{example_html(example, site, here)}'''
    site.add(here, f'{op.name} - op of weft', content, 'op', value)
