#!/usr/bin/env python3
"""Prints the tables of characters.c into the files characters_*.inc. Building weft does not need it.

    pip install unicodedata2==16.0.0 regex tokenizers==0.23.3
    python3 models/text/characters/characters.py models/text/characters

The library tokenizers 0.23.3 has five sources of Unicode data, and a table here follows each: the regular expressions
of Oniguruma (Unicode 16.0), Rust's own (17.0: white space, lower case, numbers), the crate regex (16.0: \\w), the crate
unicode_categories (8.0: punctuation, control characters and accents of BERT), and unicode-normalization-alignments
(9.0: the normal forms, all combining marks). Perl says which characters 8.0 and 9.0 had. Lower case, numbers, \\w and
the old categories' exceptions are asked of the library itself, one character at a time.
"""
import bisect
import pathlib
import subprocess
import sys

import regex
import unicodedata2 as unicode
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Cn Cc Cf Co Cs Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()
BREAKS = "Other CR LF Control Extend ZWJ Regional_Indicator Prepend SpacingMark L V T LV LVT".split()
folder = pathlib.Path(sys.argv[1])


def assigned(version):
    """Where characters of this version begin and end, in turns."""
    program = (f'for my $c (0..0x10FFFF) {{ next if $c >= 0xD800 && $c < 0xE000; my $x = chr($c) =~ /\\p{{In={version}}}/ ? 1 : 0;'
               ' print "$c\\n" if $x != $p; $p = $x }')
    return [int(c) for c in subprocess.run(["perl", "-e", program], check=True, capture_output=True, text=True).stdout.split()]


def holds(changes, c):
    return bisect.bisect_right(changes, c) % 2 == 1


def write(name, what, rows, per_line=10):
    rows = list(rows)
    lines = [" ".join(f"{x}," for x in rows[i:i + per_line]) for i in range(0, len(rows), per_line)]
    (folder / f"characters_{name}.inc").write_text(
        f"/* models/text/characters/characters_{name}.inc - printed by characters.py: {what}. */\n" + "".join(f"    {line}\n" for line in lines))


def changes(value, bits):
    last, rows = None, []
    for c in range(0x110000):
        v = value(c)
        if v != last:
            rows.append(f"{c << bits | v:#x}")
        last = v
    return rows


OLD_8, OLD_9 = assigned("8.0"), assigned("9.0")
category = [unicode.category(chr(c)) for c in range(0x110000)]


def alone(normalizer):
    """The text that each character becomes between two others."""
    return {c: normalizer.normalize_str(f"a{chr(c)}b")[1:-1] for c in CODES}


def isolated(pre_tokenizer):
    return {c for c in CODES if len(pre_tokenizer.pre_tokenize_str(f"a{chr(c)}a")) == 3}


lower = alone(normalizers.Lowercase())
dropped = alone(normalizers.BertNormalizer(False, False, True, False))
cleaned = alone(normalizers.BertNormalizer(True, False, False, False))
marks = alone(normalizers.StripAccents())
punctuation = isolated(pre_tokenizers.Punctuation())
numbers = isolated(pre_tokenizers.Digits(True))
words = {c for c in CODES if len(pre_tokenizers.Whitespace().pre_tokenize_str(f"a{chr(c)}a")) == 1}
# BertNormalizer decomposes characters before it strips accents. An accent decomposes into accents
# alone, so only accents leave nothing.
accents = {c for c in CODES if dropped[c] == ""}
onig_words = {c for c in CODES if len(pre_tokenizers.Split(Regex(r"\w+"), "isolated").pre_tokenize_str(f"a{chr(c)}a")) == 1}

flags = {c: (c in punctuation) | (c in numbers) << 1 | (c in words) << 2 | (c in accents) << 3 | (marks[c] == "") << 4
         | (cleaned[c] == "") << 5 | (c in onig_words) << 6 for c in CODES}
write("category", "general category * 2^21 of Unicode 16.0, where it changes",
      (f"{c | CATEGORIES.index(category[c]) << 21:#x}" for c in range(0x110000) if c == 0 or category[c] != category[c - 1]))
write("flags", "flags * 2^21 of the library's other Unicode data, where they change",
      (f"{c | flags.get(c, 0) << 21:#x}" for c in range(0x110000) if c == 0 or flags.get(c, 0) != flags.get(c - 1, 0)))

# Lower case: runs of code points with the same distance, each or every second one.
runs, special = [], {c: s for c, s in lower.items() if len(s) != 1}
assert list(special) == [0x130] and special[0x130] == "i\u0307"
pairs = [(c, ord(s) - c) for c, s in lower.items() if len(s) == 1 and ord(s) != c]
for c, distance in pairs:
    if runs and runs[-1][3] == distance and (c - runs[-1][1] == runs[-1][2] or (runs[-1][0] == runs[-1][1] and c - runs[-1][1] <= 2)):
        runs[-1][2] = c - runs[-1][1]
        runs[-1][1] = c
    else:
        runs.append([c, c, 1, distance])
write("lower", "lower case of Unicode 17.0: first, last, step, distance", (f"{{ {a:#x}, {b:#x}, {s}, {d} }}" for a, b, s, d in runs), 4)

# Decompositions, whole, of Unicode 9.0. Hangul is computed.
hangul = range(0xAC00, 0xAC00 + 11172)
entries, pool = [], []
for c in CODES:
    if not holds(OLD_9, c) or c in hangul:
        continue
    canonical, compatible = unicode.normalize("NFD", chr(c)), unicode.normalize("NFKD", chr(c))
    for compat, text in ((0, canonical), (1, compatible)):
        if text == chr(c) or (compat and compatible == canonical):
            continue
        at = next((i for i in range(len(pool) - len(text) + 1) if pool[i:i + len(text)] == [ord(x) for x in text]), None) if len(text) < 3 and len(pool) < 400 else None
        if at is None:
            at = len(pool)
            pool += [ord(x) for x in text]
        entries.append((c, compat, at, len(text)))
assert max(e[3] for e in entries) < 32 and len(pool) < 1 << 16
write("decompose", "code point | compatible << 31, and place in the pool | length << 16, of Unicode 9.0",
      (f"{{ {c | k << 31:#x}, {at | n << 16:#x} }}" for c, k, at, n in sorted(entries)), 5)
write("pool", "decompositions", (f"{x:#x}" for x in pool), 12)

classes = [unicode.combining(chr(c)) if holds(OLD_9, c) else 0 for c in range(0x110000)]
write("classes", "canonical combining class * 2^21 of Unicode 9.0, where it changes",
      (f"{c | classes[c] << 21:#x}" for c in range(0x110000) if c == 0 or classes[c] != classes[c - 1]))

compositions = []
for c in CODES:
    d = unicode.decomposition(chr(c)).split()
    if len(d) == 2 and d[0][0] != "<" and holds(OLD_9, c) and c not in hangul and unicode.normalize("NFC", chr(c)) == chr(c):
        compositions.append((int(d[0], 16), int(d[1], 16), c))
write("compose", "two code points and what they compose to, of Unicode 9.0", (f"{{ {a:#x}, {b:#x}, {c:#x} }}" for a, b, c in sorted(compositions)), 4)


def break_of(c):
    for i, name in enumerate(BREAKS):
        if i not in (0, 12, 13) and regex.match(rf"\p{{GCB={name}}}", chr(c)):
            return i
    if c in hangul:
        return 12 if (c - 0xAC00) % 28 == 0 else 13
    if regex.match(r"\p{Extended_Pictographic}", chr(c)):
        return 14
    return 0


def conjunct(c):
    for i, name in enumerate(("Linker", "Consonant", "Extend")):
        if regex.match(rf"\p{{InCB={name}}}", chr(c)):
            return i + 1
    return 0


# The module regex may have a newer Unicode. Code points that 16.0 has not assigned keep only the
# classes Control and Extended_Pictographic.
breaks = [0 if 0xD800 <= c < 0xE000 else break_of(c) | conjunct(c) << 4 for c in range(0x110000)]
breaks = [b if category[c] != "Cn" or b in (BREAKS.index("Control"), len(BREAKS)) else 0 for c, b in enumerate(breaks)]
write("breaks", "grapheme cluster break | conjunct break << 4, * 2^21, of Unicode 16.0, where it changes",
      (f"{c | breaks[c] << 21:#x}" for c in range(0x110000) if (c == 0 or breaks[c] != breaks[c - 1])))

SCRIPTS = "Latin Greek Cyrillic Armenian Hebrew Arabic Devanagari Thai Hangul Hiragana Katakana Han Common Inherited".split()
script = {}
for i, name in enumerate(SCRIPTS):
    p = pre_tokenizers.Split(Regex(rf"\p{{{name}}}"), "isolated")
    for c in CODES:
        if any(piece == chr(c) for piece, _ in p.pre_tokenize_str(f"\x00\n{chr(c)}\n\x00"[1:4])):
            if len(p.pre_tokenize_str(chr(c) * 2)) == 2:
                script[c] = i + 1
write("scripts", "some scripts * 2^21 of Unicode 16.0, where they change",
      (f"{c | script.get(c, 0) << 21:#x}" for c in range(0x110000) if c == 0 or script.get(c, 0) != script.get(c - 1, 0)))

# Classes of UnicodeScripts: runs of code points, and which runs are of one script. A text is cut where two scripts
# meet; 0 is none, which is never cut off.
def cut(a, b):
    return len(scripts.pre_tokenize_str(chr(a) + chr(b))) == 2


scripts = pre_tokenizers.UnicodeScripts()
probes = (0x61, 0x4E00)
runs, last, number = [], None, {}
for c in CODES:
    none = not any(cut(p, c) for p in probes)
    if last is None or none != last[1] or (not none and cut(last[0], c)):
        runs.append((c, none))
    last = (c, none)
representatives, rows = [], []
for c, none in runs:
    of = 0 if none else next((i + 1 for i, r in enumerate(representatives) if not cut(r, c)), 0)
    if not none and not of:
        representatives.append(c)
        of = len(representatives)
    rows.append((c, of))
write("cuts", "classes of UnicodeScripts * 2^21, where they change",
      (f"{c | of << 21:#x}" for i, (c, of) in enumerate(rows) if i == 0 or of != rows[i - 1][1]))
