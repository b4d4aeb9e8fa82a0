/* models/text/text_lines.c - defines what a line, a word and a character are. */
#include "models/text_internal.h"
#include "tokenizer.h"

#include "core/base/utf8.h"

bool wf_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

wf_span wf_line_body(const char *line, size_t bytes) {
    if (bytes && line[bytes - 1] == '\n') bytes--;
    if (bytes && line[bytes - 1] == '\r') bytes--;
    return (wf_span){ line, bytes };
}

bool wf_text_check(const char *line, size_t bytes, char *message) {
    if (!line && bytes > 0) return fail(message, "there is no line");
    wf_span body = wf_line_body(line, bytes);
    size_t good = body.bytes ? wf_utf8_prefix(body.text, body.bytes) : 0;
    for (size_t i = 0; i < good; i++)
        if (body.text[i] == '\n' || body.text[i] == '\r')
            return fail(message, "a line break inside the line, at byte %zu", i);
        else if (body.text[i] == '\0')
            return fail(message, "a zero byte (U+0000) at byte %zu", i);
    return good == body.bytes || fail(message, "not UTF-8 at byte %zu", good);
}

bool wf_line_next(wf_span *rest, wf_span *line) {
    if (!rest->bytes) return false;
    const char *end = memchr(rest->text, '\n', rest->bytes);
    *line = wf_span_take(rest, end ? (size_t)(end - rest->text) + 1 : rest->bytes);
    return true;
}

bool wf_word_next(wf_span *rest, wf_span *word) {
    size_t n = 0;
    while (rest->bytes && wf_is_blank(*rest->text)) wf_span_take(rest, 1);
    while (n < rest->bytes && !wf_is_blank(rest->text[n])) n++;
    *word = wf_span_take(rest, n);
    return n > 0;
}

wf_span wf_code_point(const char *text, size_t bytes) {
    return (wf_span){ text, wf_utf8_announced(text, bytes) };
}
