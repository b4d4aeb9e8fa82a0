#!/usr/bin/env python3
"""tests/tools/record_metrics.py - the values that metric_cases.inc holds: sacreBLEU's, of lines written here.

    pip install sacrebleu==2.6.0
    python3 tests/tools/record_metrics.py > tests/tools/metric_cases.inc

The tests need no Python: they read the file. Lines that are "fuzz" are drawn with a fixed seed from what
tokenizers trip over.
"""
import random
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

ENGLISH = [
    ("The cat sat on the mat.", "The cat sat on the mat."),
    ("There is a cat on the mat, isn't there?", "There's a cat on the mat, is there not?"),
    ("It costs $1,000.50 - or 3-4% more (see p. 12).", "It costs $1,000.50, or 3-4 % more (see page 12)."),
    ("He said: \"Go!\"", "He said \"Go\" ."),
    ("the the the the the", "the cat is on the mat and the dog"),
    ("Prices rose 2.5% in 1998-99, U.S. officials said", "U.S. officials said prices rose 2.5% in 1998-99."),
]
CASES = [
    ("same", [(r, r) for _, r in ENGLISH]),
    ("english", ENGLISH),
    ("swapped", [(r, h) for h, r in ENGLISH]),
    ("empty outputs", [("", "a reference of a few words"), ("", "and another")]),
    ("one empty output", [("", "a reference of a few words"), ("the second line is fine here", "the second line is fine")]),
    ("empty references", [("something was said", ""), ("and more of it", "and more of it")]),
    ("all empty", [("", ""), ("", "")]),
    ("blank", [("   ", " \u3000 "), ("a b c d e", "a b c d e ")]),
    ("short", [("yes", "yes"), ("no", "no"), ("a b", "a c")]),
    ("three words", [("a b c", "a b c")]),
    ("nothing in common", [("alpha beta gamma delta epsilon", "one two three four five")]),
    ("words but no pair", [("b a d c f e", "a b c d e f")]),
    ("smoothed twice", [("the quick x fox y over z lazy", "the quick brown fox jumps over the lazy dog")]),
    ("brevity", [("this is short but right", "this is short but right and the reference goes on for much longer")]),
    ("german", [("Die Größe des Hauses überraschte mich – wirklich!", "Die Größe des Hauses hat mich überrascht – wirklich!"),
                ("Er wohnt in der Straße Nr. 5.", "Er wohnt in der Strasse Nr. 5.")]),
    ("scripts", [("я люблю тебя", "я тебя люблю"), ("今日は天気がいい", "今日は天気が良い。"), ("مرحبا بالعالم", "مرحبا يا عالم"),
                 ("😀 👍🏽 ok", "😀 👍🏿 ok"), ("e\u0301te\u0301 cafe", "été cafe")]),
    ("spaces", [("a\u00a0b c\u2003d  e\u3000f", "a b c d e f"), (" leading and trailing\t", "leading and trailing"),
                ("zero\u200bwidth is no space", "zero width is no space"), ("a\x1cb\x85c d e", "a b c d e")]),
    ("entities", [("&quot;A&quot; &amp; B &lt; C &gt; D", "\"A\" & B < C > D"), ("&amp;lt;b&amp;gt; <skipped> here", "<b> here"),
                  ("AT&T &apos; x", "AT & T ' x")]),
    ("points", [("1,000.5 .5 5. ,, .. a.b,c 3-4 a-b 5- -5 1.-2", "1,000.5 . 5 5 . , , . . a . b , c 3 - 4 a-b 5 - -5 1.-2"),
                ("Wait...what?! (e.g. [this] {that} ~ `x` ^y_z|w\\v/u)", "Wait... what? ! (e.g. [this] {that} ~`x` ^y_z |w\\v /u)"),
                ("it's 'quoted' — “curly”…", "it 's ' quoted ' — “ curly ” …")]),
    ("letters", [("k ae t", "k ae t"), ("d ao g z", "d aa g z"), ("f ih sh", "f ih sh iy")]),
    ("a long word", [("x" * 300 + " tail of the line", "x" * 299 + "y tail of the line")]),
]


def fuzz(seed, lines):
    draw = random.Random(seed)
    parts = list("aabbccdd  ..,,--1290$%&'()*+/:;<=>?@[]^_`{|}~!\"#\\") + [
        "&amp;", "&lt;", "&quot;", "&gt;", "<skipped>", "ü", "я", "語", "😀", "\u00a0", "\u2009", "\u200b", "\x1f", "\u0301", "é"]
    line = lambda: "".join(draw.choice(parts) for _ in range(draw.randrange(40)))
    pairs = []
    for _ in range(lines):
        reference = line()
        output = "".join(c if draw.random() > .15 else draw.choice(parts) for c in reference)
        pairs.append((output if draw.random() > .1 else line(), reference))
    return pairs


for seed in range(8):
    CASES.append((f"fuzz {seed}", fuzz(seed, 12)))


def quoted(text):
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def text(metric, score):
    printed = score.format(signature=metric.get_signature().format(), width=2).replace(sacrebleu.__version__, "VERSION")
    signature, equals, value = printed.partition(" = ")
    return quoted(signature) + "\n     " + quoted(equals + value)


print(f"""/* Written by record_metrics.py with sacreBLEU {sacrebleu.__version__}: name; BLEU with the tokenizers 13a and
 * none, and chrF2; the lines that sacreBLEU prints for the three, VERSION standing for its version;
 * then pairs of an output and its reference. */""")
for name, pairs in CASES:
    outputs, references = [h for h, _ in pairs], [[r for _, r in pairs]]
    metrics = [BLEU(tokenize="13a"), BLEU(tokenize="none"), CHRF()]
    scores = [m.corpus_score(outputs, references) for m in metrics]
    numbers = ", ".join(repr(float(s.score)) for s in scores)
    print(f'CASE("{name}", {numbers},')
    for m, s in zip(metrics, scores):
        print(f"     {text(m, s)},")
    for h, r in pairs:
        print(f"     LINE({quoted(h)},\n          {quoted(r)})")
    print(")")
