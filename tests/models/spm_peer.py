#!/usr/bin/env python3
"""tests/models/spm_peer.py - SentencePiece models of many kinds, and lines that nobody would write, cut and
joined by the library sentencepiece and by weft: pieces, ids and text must be equal, byte for byte.

    pip install sentencepiece==0.2.3
    ninja -C build tests/spm_peer
    python3 tests/models/spm_peer.py build/tests/spm_peer [LINES (100000)] [MODEL ...]

Models are trained here, on text that is made here; some are written by hand, with what training does not
make: unused pieces, symbols within symbols, equal scores, other spaces. Nothing is downloaded.
Ends with a table: lines, pieces, how many lines differ. `--time` compares the time of encoding instead.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

import sentencepiece

SCRIPTS = {
    'latin': 'abcdefghijklmnopqrstuvwxyz', 'german': 'abcdefghiklmnoprstuwzäöüß',
    'greek': 'αβγδεζηθικλμνξοπρστυφχψωάέή', 'cyrillic': 'абвгдежзийклмнопрстуфхцчшщъыьэюя',
    'hebrew': 'אבגדהוזחטיכלמנסעפצקרשת', 'arabic': 'ابتثجحخدذرزسشصضطظعغفقكلمنهوي',
    'hindi': 'कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह', 'thai': 'กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอ',
    'japanese': 'あいうえおかきくけこさしすせそたちつてとなにぬねのアイウエオカキクケコ日本語文字学生国人',
    'chinese': '的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年', 'korean': '가나다라마바사아자차카타파하한국어말글',
}
MARKS = '\u0301\u0308\u0303\u0327\u0323\u0338\u093f\u0941\u064b\u0e34\u3099'
COMPATIBLE = ('ﬁﬂﷺ㌖①⑳㈱℡™½²ｱｶﾞＡｂ３！　\u00a0\u2003\u200b\u200d\ufeff\u00adİıſẞΐǆ豈\ufa2f\u0344\u0958\u1e9b\u0323'
              '\uff9e\uff9f\u3000\u2028\u2029\u0085\u180e\u2060\U0001d400\U0001f600\U0001f468\u200d\U0001f469'
              '\ufffd\ufffe\uffff\U0010ffff\u2581\u2047▁▁\ue000\u0000\u0001\u001f\u007f\t\n\r\v\f')


def words_of(rng, script, count):
    letters = SCRIPTS[script]
    out = []
    for _ in range(count):
        word = ''.join(rng.choice(letters) for _ in range(rng.randint(1, 7)))
        if rng.random() < 0.15:
            at = rng.randrange(len(word)) + 1
            word = word[:at] + rng.choice(MARKS) + word[at:]
        out.append(word)
    return out


def corpus(seed, lines):
    rng = random.Random(seed)
    stock = {s: words_of(rng, s, 120) for s in SCRIPTS}
    out = []
    for _ in range(lines):
        script = rng.choice(list(SCRIPTS))
        space = '' if script in ('japanese', 'chinese', 'thai') else ' '
        words = []
        for _ in range(rng.randint(2, 14)):
            word = rng.choice(stock[script])
            if rng.random() < 0.1:
                word = word.upper()
            if rng.random() < 0.08:
                word = str(rng.randint(0, 9999))
            if rng.random() < 0.03:
                word += rng.choice('ﬁＡ①½㌖ｶﾞ™')
            words.append(word + rng.choice(['', '', '', ',', '.', '!', '?']))
        out.append(space.join(words))
    return out


def hostile(seed, count, known):
    rng = random.Random(seed)
    everything = ''.join(SCRIPTS.values()) + MARKS + COMPATIBLE

    def any_character():
        while True:
            c = rng.choice((rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x10000),
                            rng.randrange(0x110000)))
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def bad_bytes():
        return rng.choice((b'\xff', b'\xc0\x80', b'\xe2\x96', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\x80', b'\xf0\x9f',
                           b'\xe2', b'\xf8\x88\x80\x80\x80', b'\xc3', b'\xef\xbf\xbd', b'\xe0\x80\x80'))

    def mixed(n):
        return ''.join(rng.choice(everything) for _ in range(n))

    def cut(text, n):  # somewhere, and something bad is put in
        text = text.encode('utf-8', 'surrogatepass')
        for _ in range(n):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + bad_bytes() + text[at + rng.randint(0, 2):]
        return text

    def line(kind):
        text = rng.choice(known)
        if kind == 0:
            return text.encode()
        if kind == 1:
            return mixed(rng.randint(0, 40)).encode()
        if kind == 2:
            return ''.join(any_character() for _ in range(rng.randint(0, 30))).encode()
        if kind == 3:
            return cut(text, rng.randint(1, 6))
        if kind == 4:
            return bytes(rng.randrange(256) for _ in range(rng.randint(0, 40)))
        if kind == 5:
            spaces = rng.choice((' ', '  ', '\t', '\u3000', '\u00a0', '▁', ' ▁ ', '\u2003 '))
            return (spaces * rng.randint(0, 3) + text.replace(' ', spaces) + spaces * rng.randint(0, 3)).encode()
        if kind == 6:
            return unicodedata.normalize(rng.choice(('NFD', 'NFKD', 'NFC')), text).encode()
        if kind == 7:
            parts = ['<user>', '<us', 'er>', '<s>', '</s>', '<unk>', '<pad>', '<0x41>', '@@', 'ab', '<user><user2>',
                     'user', '▁<user>', 'Ａ', 'ﬁ', 'aaaa', 'aaaaaaaaaa', '<sp ace>', '\u0301', 'é', 'e\u0301']
            return ''.join(rng.choice(parts + [text[:3], ' ']) for _ in range(rng.randint(0, 12))).encode()
        if kind == 8:
            return (rng.choice((text[:2], 'a', 'ab', '가', mixed(2), '\u0301')) * rng.randint(1, 60)).encode()
        return cut(mixed(rng.randint(0, 10)), rng.randint(0, 3)) + text.encode()

    out = [b'', b' ', b'  ', b'\xe2\x96\x81', b'\0', b'\n', b'\xef\xbb\xbf', b'\xff' * 1000, b'a' * 20000,
           ' '.join(known[:500]).encode(), b'\xcc\x81' * 5000, ('ﷺ' * 2000).encode(), b' ' * 10000]
    while len(out) < count:
        out.append(line(rng.randrange(10)))
    return [text.rstrip(b'\r\n') for text in out[:count]]


# ---- protocol buffers ---------------------------------------------------------------------------------------------

def fields(data, at, end):  # those that have a length
    def number(at):
        n = shift = 0
        while True:
            c = data[at]
            n, shift, at = n | (c & 127) << shift, shift + 7, at + 1
            if c < 128:
                return n, at

    while at < end:
        tag, at = number(at)
        if tag & 7 == 2:
            n, at = number(at)
            yield tag >> 3, at, at + n
            at += n
        elif tag & 7 == 5:
            at += 4
        else:
            _, at = number(at)


# ---- .spm files by hand -------------------------------------------------------------------------------------------

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)


def varint(n):
    n &= (1 << 64) - 1
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack('<f', value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def by_hand(pieces, kind, trainer=b'', normalizer=b'', rest=b''):
    out = b''
    for text, score, type_ in [('<unk>', 0., UNKNOWN), ('<s>', 0., CONTROL), ('</s>', 0., CONTROL)] + pieces:
        text = text.encode() if isinstance(text, str) else text
        out += field(1, field(1, text) + field(2, float(score)) + field(3, type_))
    return out + field(2, field(3, kind) + trainer) + field(3, normalizer) + rest


def hand_models(lines):
    rng = random.Random(7)
    seen = {}
    for text in lines[:2000]:
        text = '▁' + text.replace(' ', '▁')
        for _ in range(20):
            at = rng.randrange(len(text))
            part = text[at:at + rng.randint(1, 5)]
            seen[part] = seen.get(part, 0) + 1
    parts = [p for p in sorted(seen, key=lambda p: (-seen[p], p)) if p != '▁'][:1500]
    ties = [(p, -rng.randint(1, 6) / 2, NORMAL) for p in parts] + [('▁', -2., NORMAL)]
    unused = [(p, s, UNUSED if rng.random() < 0.3 else t) for p, s, t in ties]
    users = [(p, s, USER if rng.random() < 0.1 else t) for p, s, t in ties] + [
        ('<user>', 0., USER), ('aa', 0., USER), ('aaa', 0., USER), (b'\xe2\x96', 0., USER)]
    nested = [('a' * n, 0., USER) for n in range(1, 100)] + ties[-300:]
    nested = list({p: (p, s, t) for p, s, t in nested}.values())
    odd = [(p, s, t) for p, s, t in ties if p not in ('▁', 'a')] + [(b'\xcc', -1., NORMAL), (b'\x81\xcc', -1., NORMAL), ('a', 1., CONTROL)]
    whole = [('▁' + w, -1., NORMAL) for text in lines[:300] for w in text.split()]
    whole = list({p: (p, s, t) for p, s, t in whole}.values())
    everywhere = [('<0x%02X>' % i, 0., BYTE) for i in range(256)]
    spaces = {'plain': b'', 'no-prefix': field(3, 0), 'keep': field(4, 0), 'keep-no-prefix': field(3, 0) + field(4, 0),
              'unescaped': field(5, 0), 'unescaped-keep': field(4, 0) + field(5, 0)}
    out = {}
    for kind, name in ((UNIGRAM, 'unigram'), (BPE, 'bpe'), (WORD, 'word'), (CHAR, 'char')):
        out[name + '-ties'] = by_hand(ties, kind)
        out[name + '-unused'] = by_hand(unused, kind)
        out[name + '-users'] = by_hand(users, kind, field(44, 'ab▁\u0301'.encode()))
        out[name + '-nested'] = by_hand(nested, kind)
        out[name + '-odd'] = by_hand(odd, kind)
        out[name + '-bytes'] = by_hand(everywhere + ties[:400], kind, field(35, 1), field(4, 0))
        out[name + '-suffix'] = by_hand(ties, kind, field(24, 1))
    out['bpe-users-alone'] = by_hand([(p, s, USER) for p, s, t in ties[:40]], BPE)
    out['word-whole'] = by_hand(whole, WORD)
    out['word-unused'] = by_hand([(p, s, UNUSED if i % 2 else t) for i, (p, s, t) in enumerate(whole)], WORD)
    for name, spec in spaces.items():
        out['unigram-' + name] = by_hand(ties + [(' ', -2., NORMAL)], UNIGRAM, b'', spec)
        out['bpe-' + name] = by_hand(ties + [(' ', -2., NORMAL)], BPE, b'', spec)
    out['unigram-suffix-keep'] = by_hand(ties, UNIGRAM, field(24, 1), field(4, 0))
    return out


# ---- trained ones -------------------------------------------------------------------------------------------------

TRAINED = {
    'unigram-nmt_nfkc': dict(model_type='unigram', normalization_rule_name='nmt_nfkc'),
    'unigram-nfkc-bytes': dict(model_type='unigram', normalization_rule_name='nfkc', byte_fallback=True),
    'unigram-nfkc_cf-users': dict(model_type='unigram', normalization_rule_name='nfkc_cf',
                                  user_defined_symbols=['<user>', '<user2>', 'aaa', 'Ａ', 'ﬁ', '<sp ace>']),
    'bpe-nmt_nfkc_cf-users': dict(model_type='bpe', normalization_rule_name='nmt_nfkc_cf',
                                  user_defined_symbols=['<user>', '<user2>', 'aaa', 'Ａ', 'ﬁ']),
    'bpe-identity-bytes': dict(model_type='bpe', normalization_rule_name='identity', byte_fallback=True),
    'bpe-nmt_nfkc': dict(model_type='bpe', normalization_rule_name='nmt_nfkc'),
    'unigram-identity-suffix': dict(model_type='unigram', normalization_rule_name='identity',
                                    treat_whitespace_as_suffix=True, remove_extra_whitespaces=False),
    'char-nfkc': dict(model_type='char', normalization_rule_name='nfkc'),
    'word-nmt_nfkc': dict(model_type='word', normalization_rule_name='nmt_nfkc'),
}


def train(folder, name, lines, vocab_size=3000):
    text = os.path.join(folder, 'corpus.txt')
    if not os.path.exists(text):
        with open(text, 'w', encoding='utf-8') as f:
            f.write('\n'.join(lines))
    prefix = os.path.join(folder, name)
    options = dict(input=text, model_prefix=prefix, vocab_size=vocab_size, minloglevel=2, num_threads=2,
                   hard_vocab_limit=False, character_coverage=0.995)
    sentencepiece.SentencePieceTrainer.Train(**dict(options, **TRAINED[name]))
    os.remove(prefix + '.vocab')
    return open(prefix + '.model', 'rb').read()


def with_denormalizer(model, other):  # the rules of another, with which text is joined
    for number, start, end in fields(other, 0, len(other)):
        if number == 3:
            model += field(5, other[start:end] + field(3, 0) + field(5, 0))
    return model


# ---- comparing ----------------------------------------------------------------------------------------------------

def peer(program, path, packed, *more):
    run = subprocess.run([program, path, *more], input=packed, stdout=subprocess.PIPE)
    if run.returncode:
        raise SystemExit('%s: %s failed' % (path, program))
    return run.stdout


def text_at(out, at):
    n, = struct.unpack_from('<I', out, at)
    return out[at + 4:at + 4 + n], at + 4 + n


def compare(program, path, lines, packed):
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    out = peer(program, path, packed)
    at = pieces = different = 0
    for line in lines:
        n, = struct.unpack_from('<I', out, at)
        ids = list(struct.unpack_from('<%di' % n, out, at + 4))
        at += 4 + 4 * n
        texts = []
        for _ in range(n):
            text, at = text_at(out, at)
            texts.append(text)
        joined, at = text_at(out, at)
        theirs = sp.encode(line, out_type=int)
        their_texts = sp.encode(line, out_type=bytes)
        their_joined = sp.decode(theirs, out_type=bytes)
        pieces += n
        if ids != theirs or texts != their_texts or joined != their_joined:
            different += 1
            if different <= 3:
                print('  %r\n    ids    %r\n    theirs %r\n    pieces %r\n    theirs %r\n    text   %r\n    theirs %r' %
                      (line[:120], ids[:40], theirs[:40], texts[:20], their_texts[:20], joined[:120],
                       their_joined[:120]))
    return pieces, different


def measure(program, path, lines, packed):
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    theirs = []
    for _ in range(3):
        start = time.process_time()
        sp.encode(lines, num_threads=1)
        theirs.append(time.process_time() - start)
    read, ours, _ = min(peer(program, path, packed, 'time').split() for _ in range(3))
    mb = sum(map(len, lines)) / 1e6
    print('%-26s %6.1f MB/s, library %6.1f MB/s; read in %.1f ms' %
          (os.path.basename(path), mb / float(ours), mb / min(theirs), 1e3 * float(read)))


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith('--')]
    program, count = arguments[0], int(arguments[1]) if len(arguments) > 1 else 100000
    wanted = arguments[2:]
    lines = corpus(1, 6000)
    with tempfile.TemporaryDirectory() as folder:
        models = {}
        for name in TRAINED:
            if not wanted or name in wanted or any(w.startswith('denormalised') for w in wanted):
                models[name] = train(folder, name, lines)
        hand = {'hand-' + k: v for k, v in hand_models(lines).items()}
        models.update({k: v for k, v in hand.items() if not wanted or k in wanted})
        if 'unigram-nmt_nfkc' in models and 'unigram-nfkc_cf-users' in models:
            models['denormalised'] = with_denormalizer(models['unigram-nmt_nfkc'], models['unigram-nfkc_cf-users'])
        tests = corpus(2, count // 5) if '--time' in sys.argv else hostile(3, count, corpus(2, 3000))
        tests = [t.encode() if isinstance(t, str) else t for t in tests]
        packed = b''.join(struct.pack('<I', len(t)) + t for t in tests)
        bad = 0
        for name, data in models.items():
            path = os.path.join(folder, name + '.spm')
            with open(path, 'wb') as f:
                f.write(data)
            if '--time' in sys.argv:
                measure(program, path, tests, packed)
                continue
            try:
                sentencepiece.SentencePieceProcessor(model_file=path)
            except RuntimeError as e:
                run = subprocess.run([program, path], input=b'', stderr=subprocess.PIPE)
                print('%-26s the library says "%s", weft: %s' % (name, e, run.stderr.decode().strip() or 'nothing'))
                bad += run.returncode == 0
                continue
            pieces, different = compare(program, path, tests, packed)
            bad += different > 0
            print('%-26s %7d lines %9d pieces, %d lines differ' % (name, len(tests), pieces, different), flush=True)
    sys.exit(bad > 0)


if __name__ == '__main__':
    main()
