/* tests/fuzz/fuzz_text.c - any bytes as text: the three UTF-8 checks agree. Lines keep their ids
 * when they are encoded, decoded and encoded again, by tokenizers learned from a fixed sample and
 * from the text itself. The text is also parsed as a list of token ids. */
#include "core/base/utf8.h"
#include "models/text_internal.h"
#include "round_trip.h"
#include "tools/data/lines.h"

static const char sample[] =
    "the cat sat on the mat\nthe dog's l\xC3\xB6we \xE2\x82\xAC 5</w> @@ <s>\n"
    "\xF0\x9F\x98\x80\xF0\x9F\x98\x80 \xD0\xBA\xD0\xBE\xD1\x82 \xE7\x8C\xAB\n"
    "low lower lowest low lower new newer newest wider wide\n";

typedef struct text {
    const char *at;
    size_t left;
} text;

static int next_line(void *from, const char **line, size_t *bytes) {
    text *t = from;
    if (!t->left) return 0;
    const char *end = memchr(t->at, '\n', t->left);
    *line = t->at, *bytes = end ? (size_t)(end - t->at) + 1 : t->left;
    t->at += *bytes, t->left -= *bytes;
    return 1;
}

static wf_tokenizer *learn(wf_token_kind kind, text from, char *message) {
    wf_tokenizer_options o = wf_tokenizer_defaults(kind);
    o.vocab_size = 0, o.min_freq = 1;
    if (kind == WF_BPE) o.merges = 40;
    return wf_tokenizer_learn(&o, next_line, &from, message);
}

static void readers_agree(const char *data, size_t size) {
    size_t prefix = wf_utf8_prefix(data, size), at = 0;
    for (size_t begin = 0; at < size; begin = at)
        if (wf_utf8_next(data, size, &at) < 0) {
            fuzz_must(at == begin + 1);
            at = begin;
            break;
        }
    fuzz_must(at == prefix);
    if (!wf_text_check(data, size, NULL)) return;
    fuzz_must(prefix == size && !memchr(data, '\0', size));
}

static void as_ids(const char *data, size_t size) {
    enum { VOCAB = 1000, MOST = 64 };
    int32_t ids[MOST];
    char message[256] = "", *line = malloc(size + 1);
    fuzz_must(line);
    if (size) memcpy(line, data, size);
    line[size] = '\0';
    int64_t n = parse_ids(line, VOCAB, MOST, ids, message);
    fuzz_must(n >= 0 || *message);
    for (int64_t i = 0; i < n && i < MOST; i++) fuzz_must(ids[i] >= 0 && ids[i] < VOCAB);
    free(line);
}

/* A character tokenizer that was learned from this text has an id for each character, so it gives
 * back each line to the byte, without the end of the line. */
static void comes_back(wf_tokenizer *t, text from) {
    const char *line;
    char message[256];
    size_t bytes;
    while (next_line(&from, &line, &bytes) > 0) {
        int64_t n = wf_tokenizer_encode(t, line, bytes, NULL, 0, message);
        fuzz_must(n >= 0);
        int32_t *ids = malloc((size_t)n * sizeof *ids + 1);
        char *back = malloc(bytes + 1);
        fuzz_must(ids && back && wf_tokenizer_encode(t, line, bytes, ids, n, message) == n);
        int64_t length = wf_tokenizer_decode(t, ids, n, back, bytes + 1);
        fuzz_must(length >= 0 && (size_t)length <= bytes &&
                  memcmp(back, line, (size_t)length) == 0);
        for (size_t i = (size_t)length; i < bytes; i++) fuzz_must(strchr("\r\n", line[i]));
        free(ids), free(back);
    }
}

FUZZ_TARGET(text) {
    static wf_tokenizer *known[3];
    const text own = { (const char *)data, size };
    char message[256] = "";
    readers_agree(own.at, size);
    as_ids(own.at, size);
    for (int kind = WF_WORDS; kind <= WF_BPE; kind++) {
        if (!known[kind])
            known[kind] = learn((wf_token_kind)kind, (text){ sample, sizeof sample - 1 }, message);
        fuzz_must(known[kind]);
        lines_return(known[kind], own.at, size);
        *message = '\0';
        wf_tokenizer *t = learn((wf_token_kind)kind, own, message);
        if (!t) {
            fuzz_must_say(message);
            continue;
        }
        if (kind == WF_CHARACTERS) comes_back(t, own);
        lines_return(t, own.at, size);
        files_return(t);
        wf_tokenizer_free(t);
    }
    return 0;
}
