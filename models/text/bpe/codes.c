/* models/text/bpe/codes.c - reads and writes the codes file of subword-nmt. It has the line
 * "#version: 0.2", then one merge per line, in order: its two symbols with a space between them. A
 * symbol at the end of a word has the mark "</w>".
 *
 *     #version: 0.2
 *     l o
 *     lo w</w> */
#include "models/text/tokenizer.h"
#include "models/text_internal.h"

#define HEADER "#version: 0.2"

static bool is_blank_in(wf_span s) {
    for (size_t i = 0; i < s.bytes; i++)
        if (wf_is_blank(s.text[i])) return true;
    return !s.bytes;
}

static bool is_mark(wf_span s) {
    return s.bytes == MARK && memcmp(s.text, END_OF_WORD, MARK) == 0;
}

/* Finds the two symbols of a line. */
static bool split(wf_span line, wf_span *left, wf_span *right, char *message) {
    const char *space = line.bytes ? memchr(line.text, ' ', line.bytes) : NULL;
    size_t n = space ? (size_t)(space - line.text) : line.bytes;
    *left = (wf_span){ line.text, n };
    *right = (wf_span){ line.text + n + 1, space ? line.bytes - n - 1 : 0 };
    if (is_blank_in(*left) || is_blank_in(*right))
        return fail(message, "two symbols with one space between them expected");
    if (is_mark(*left) || is_mark(*right))
        return fail(message, "'" END_OF_WORD "' is no symbol of its own in version 0.2: learn the "
                             "codes again with a newer subword-nmt");
    return true;
}

static bool add_line(wf_tokenizer *t, wf_span line, char *message) {
    wf_span l, r;
    int32_t left, right;
    if (!wf_text_check(line.text, line.bytes, message)) return false;
    if (!split(wf_line_body(line.text, line.bytes), &l, &r, message)) return false;
    if (!wf_add_symbol(t, l.text, l.bytes, &left) || !wf_add_symbol(t, r.text, r.bytes, &right))
        return fail(message, "out of memory");
    if (!wf_can_merge(t, left, right))
        return fail(message,
                    "'%.80s %.80s' makes what cannot be told from the marks '" END_OF_WORD
                    "' and '" MORE_OF_WORD "'",
                    wf_strings_at(&t->symbols, left), wf_strings_at(&t->symbols, right));
    return wf_add_merge(t, left, right) || fail(message, "out of memory");
}

static bool is_header(wf_span line) {
    wf_span body = wf_line_body(line.text, line.bytes);
    return body.bytes == strlen(HEADER) && memcmp(body.text, HEADER, body.bytes) == 0;
}

bool wf_read_codes(wf_tokenizer *t, const char *codes, size_t bytes, int64_t most, char *message) {
    char why[WF_MESSAGE];
    wf_span rest = { codes, bytes }, line;
    if (!wf_line_next(&rest, &line) || !is_header(line))
        return fail(message, "codes: the first line is not '" HEADER "': not a codes file of "
                             "subword-nmt, or an old one");
    while (rest.bytes && (rest.text[rest.bytes - 1] == '\n' || rest.text[rest.bytes - 1] == '\r'))
        rest.bytes--;
    for (long long n = 2; (!most || n - 2 < most) && wf_line_next(&rest, &line); n++)
        if (!add_line(t, line, why)) return fail(message, "codes: line %lld: %.200s", n, why);
    return true;
}

size_t wf_tokenizer_codes(const wf_tokenizer *t, char *text, size_t size) {
    wf_sink s = sink(text, size);
    if (!t || t->sentencepiece || t->byte_level || t->json) return 0;
    put(&s, HEADER "\n", strlen(HEADER "\n"));
    for (size_t i = 0; i < t->merges.n; i++) {
        const wf_merge *m = &t->merges.at[i];
        put_span(&s, wf_strings_span(&t->symbols, m->left));
        put(&s, " ", 1);
        put_span(&s, wf_strings_span(&t->symbols, m->right));
        put(&s, "\n", 1);
    }
    return s.used;
}
