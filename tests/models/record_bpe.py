#!/usr/bin/env python3
"""tests/models/record_bpe.py - what subword-nmt makes of a small generated corpus: tests/data/bpe*.

    pip install subword-nmt==0.3.8
    python3 tests/models/record_bpe.py tests/data

bpe.txt         the corpus: many ties, overlapping repeats, several scripts, literal marks
bpe.codes       learn-bpe -s 300 on it
bpe.segmented   apply-bpe with those codes
bpe_shuffled.*  the same codes in another order, where a merge may depend on a later one
bpe_limited.*   get-vocab, only what occurs 4 times or more; apply-bpe --vocabulary with it
"""
import io
import random
import sys
import warnings

from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

warnings.simplefilter('ignore')
folder = sys.argv[1]
random.seed(2016)

alphabets = ['ab', 'aab', 'lowernist', 'äöüß', 'αβγ', '日本語', '😀👍🏽', 'e\u0301o\u0308',
             '\u05d0\u05d1\u05d2', '@-</w>.']
lines = []
for _ in range(400):
    words = []
    for _ in range(random.randint(1, 7)):
        letters = random.choice(alphabets)
        word = ''.join(random.choice(letters) for _ in range(random.randint(1, 6)))
        # words with "@@" or "</w>" are left out: these marks would be ambiguous in the files, so
        # weft does not merge them
        if '@@' not in word and '</w>' not in word:
            words.append(word * random.choice([1, 1, 1, 2]))
    words = [w for w in words if '@@' not in w and '</w>' not in w]
    if words:
        lines.append(' '.join(words) + '\n')
text = ''.join(lines)


def write(name, content):
    with open(folder + '/' + name, 'w', encoding='utf-8', newline='\n') as f:
        f.write(content)


def segment(codes, vocabulary=None):
    bpe = BPE(io.StringIO(codes), vocab=vocabulary)
    return ''.join(bpe.process_line(line) for line in lines)


out = io.StringIO()
learn_bpe(io.StringIO(text), out, 300)
codes = out.getvalue()
header, *merges = codes.rstrip('\n').split('\n')
write('bpe.txt', text)
write('bpe.codes', codes)
write('bpe.segmented', segment(codes))

random.shuffle(merges)
shuffled = '\n'.join([header] + merges) + '\n'
write('bpe_shuffled.codes', shuffled)
write('bpe_shuffled.segmented', segment(shuffled))

counts = {}
for piece in segment(codes).split():
    counts[piece] = counts.get(piece, 0) + 1
kept = sorted((p for p in counts if counts[p] >= 4), key=lambda p: (-counts[p], p))
vocabulary = ''.join('%s %d\n' % (p, counts[p]) for p in kept)
write('bpe_limited.vocabulary', vocabulary)
write('bpe_limited.segmented', segment(codes, read_vocabulary(io.StringIO(vocabulary), None)))
