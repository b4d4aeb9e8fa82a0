#!/usr/bin/env python3
"""Prints unicode.inc: where the class of code points changes. Needs unicodedata2; building weft does not.

    pip install unicodedata2==16.0.0
    python3 models/text/byte_level/unicode.py > models/text/byte_level/unicode.inc

Classes are those of the regular expression by which GPT-2 cuts text: letters (general category L), numbers (N), white
space (the property White_Space), all others. Unicode 16.0, as the library tokenizers 0.23 has it: equal to what it cuts
for all code points.
"""
import unicodedata2

OTHER, LETTER, NUMBER, BLANK = range(4)
WHITE_SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def class_of(c):
    if c in WHITE_SPACE:
        return BLANK
    return {"L": LETTER, "N": NUMBER}.get(unicodedata2.category(chr(c))[0], OTHER)


classes = [class_of(c) for c in range(0x110000)]
changes = [c for c in range(0x110000) if c == 0 or classes[c] != classes[c - 1]]
print(f"/* models/text/byte_level/unicode.inc - printed by unicode.py: where classes change, Unicode {unicodedata2.unidata_version}. */")
for i in range(0, len(changes), 8):
    print("    " + " ".join(f"{c << 2 | classes[c]:#x}," for c in changes[i:i + 8]))
