#!/usr/bin/env python3
"""tests/models/record_spm.py - what the library sentencepiece makes of hostile lines: tests/data/spm.bin.

    pip install sentencepiece==0.2.3
    pip install transformers==5.23.0 && python3 tests/models/record_spm.py tests/data

marian.bin: what transformers' MarianTokenizer makes of a vocabulary of two such models. Small models, trained and by hand (spm_peer.py), and 300 lines each. All numbers are little-endian: of each
model its length and bytes, the number of lines; of each line its length and bytes, the number of pieces, their
ids and the lengths of their texts (16 bits each), the length and bytes of the text that the ids make.
"""
import os
import random
import struct
import sys
import tempfile
import unicodedata

import sentencepiece

from spm_peer import BPE, CHAR, COMPATIBLE, UNIGRAM, WORD, corpus, field, hand_models, hostile

MOST = 40  # bytes of a line


def rules():
    """A part of NFKC, white space, and a rule for two characters."""
    out = {c: unicodedata.normalize('NFKC', c) for c in COMPATIBLE + 'ÀÉÖÜäöü'}
    out.update({c: ' ' for c in '\t\n\r\u00a0\u2003\u3000\u2028'})
    out.update({c: '' for c in '\u200b\u00ad\ufeff\u0001'})
    out.update({'ab': 'x', 'abc': 'yz'})
    for base in 'aeiou':
        for mark in '\u0301\u0308':
            out[base + mark] = unicodedata.normalize('NFC', base + mark)
    code = lambda s: ' '.join('%X' % ord(c) for c in s)
    return ''.join('%s\t%s\n' % (code(a), code(b)) for a, b in sorted(out.items()) if a != b and '\0' not in a)


def trained(folder, name, lines, **options):
    text, tsv = os.path.join(folder, 'text'), os.path.join(folder, 'rules.tsv')
    with open(text, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines))
    with open(tsv, 'w', encoding='utf-8') as f:
        f.write(rules())
    prefix = os.path.join(folder, name)
    if options.pop('rules', False):
        options['normalization_rule_tsv'] = tsv
    else:
        options['normalization_rule_name'] = 'identity'
    sentencepiece.SentencePieceTrainer.Train(input=text, model_prefix=prefix, minloglevel=2, num_threads=1,
                                             hard_vocab_limit=False, **options)
    return open(prefix + '.model', 'rb').read()


def record(out, model, lines):
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    out.write(struct.pack('<I', len(model)) + model + struct.pack('<I', len(lines)))
    for line in lines:
        ids, pieces = sp.encode(line, out_type=int), sp.encode(line, out_type=bytes)
        text = sp.decode(ids, out_type=bytes)
        out.write(struct.pack('<I', len(line)) + line + struct.pack('<I', len(ids)))
        out.write(struct.pack('<%dH' % len(ids), *ids) + struct.pack('<%dH' % len(ids), *map(len, pieces)))
        out.write(struct.pack('<I', len(text)) + text)


def record_marian(out, folder, source, target, lines):
    """Two models, the pieces of their common vocabulary, lines with ids and text as in spm.bin but without lengths."""
    import json

    from transformers import MarianTokenizer
    rng = random.Random(5)
    pieces = {}
    for name, model in (('source.spm', source), ('target.spm', target)):
        with open(os.path.join(folder, name), 'wb') as f:
            f.write(model)
        sp = sentencepiece.SentencePieceProcessor(model_proto=model)
        for i in range(sp.get_piece_size()):
            if rng.random() < 0.95 and not sp.is_control(i) and not sp.is_unknown(i):
                pieces[sp.id_to_piece(i)] = 1
    pieces = list(pieces)
    rng.shuffle(pieces)
    pieces = ['</s>', '<unk>', '>>fra<<'] + pieces + ['>>deu_Latn<<', 'two words', '▁ ▁odd▁', '<pad>']
    vocab = os.path.join(folder, 'vocab.json')
    with open(vocab, 'w', encoding='utf-8') as f:
        json.dump({piece: i for i, piece in enumerate(pieces)}, f)
    t = MarianTokenizer(os.path.join(folder, 'source.spm'), os.path.join(folder, 'target.spm'), vocab)
    out.write(struct.pack('<I', len(source)) + source + struct.pack('<I', len(target)) + target)
    out.write(struct.pack('<I', len(pieces)))
    for piece in pieces:
        out.write(struct.pack('<I', len(piece.encode())) + piece.encode())
    codes = ['>>fra<<', '>>deu_Latn<<', '>>xx<<', '>> <<', '>>fra<< ', ' >>fra<<', '>>fra', '>>fra<', '>><<', '>>', '>>a>>b<<']
    texts = [line.decode('utf-8', 'ignore')[:MOST].rstrip('\r\n') for line in hostile(50, 300, lines)]
    for special in ('</s>', '<unk>', '<pad>'):  # those transformers cuts out before; weft does not
        texts = [text.replace(special, '') for text in texts]
    texts = [(rng.choice(codes) if rng.random() < 0.3 else '') + text for text in texts]
    out.write(struct.pack('<I', len(texts)))
    for text in texts:
        ids, data = t(text).input_ids, text.encode()
        more = [rng.randrange(len(pieces)) for _ in range(rng.randint(0, 12))]
        joined = t.decode(more, skip_special_tokens=True, use_source_tokenizer=False).encode()
        out.write(struct.pack('<I', len(data)) + data + struct.pack('<I', len(ids)) + struct.pack('<%dH' % len(ids), *ids))
        out.write(struct.pack('<I', len(more)) + struct.pack('<%dH' % len(more), *more))
        out.write(struct.pack('<I', len(joined)) + joined)


def main():
    lines = corpus(11, 600)
    hand = hand_models(lines[:20])
    with tempfile.TemporaryDirectory() as folder:
        models = [
            trained(folder, 'a', lines, rules=True, model_type='unigram', vocab_size=500, character_coverage=0.98,
                    user_defined_symbols=['<user>', 'aaa', '<user2>', '<sp ace>']),
            trained(folder, 'b', lines, model_type='bpe', vocab_size=700, byte_fallback=True, character_coverage=0.98,
                    remove_extra_whitespaces=False),
            trained(folder, 'c', lines, rules=True, model_type='unigram', vocab_size=700, byte_fallback=True,
                    character_coverage=0.98, unk_surface='?', add_dummy_prefix=False),
            trained(folder, 'd', lines, rules=True, model_type='bpe', vocab_size=500, character_coverage=0.98,
                    treat_whitespace_as_suffix=True, user_defined_symbols=['<user>', 'aaa']),
            hand['unigram-unused'], hand['bpe-unused'], hand['word-whole'], hand['char-odd'],
        ]
        # model 4 with the normalization rules of model 0 for decoded text (denormalizer_spec)
        models.append(models[4] + field(5, field(2, charsmap(models[0])) + field(3, 0) + field(5, 0)))
        with open(sys.argv[1] + '/marian.bin', 'wb') as out:
            record_marian(out, folder, models[0], models[2], lines)
    with open(sys.argv[1] + '/spm.bin', 'wb') as out:
        for i, model in enumerate(models):
            hard = [line[:MOST] for line in hostile(20 + i, 400, lines) if line]
            record(out, model, [b''] + [h.rstrip(b'\r\n') for h in hard][:299])


def charsmap(model):
    from spm_peer import fields
    for number, start, end in fields(model, 0, len(model)):
        if number == 3:
            return next(model[a:b] for inner, a, b in fields(model, start, end) if inner == 2)


main()
