/* models/text/byte_level/byte_level_cut.c - cuts text into the chunks of GPT-2's byte-pair
 * encoding, as the library tokenizers 0.23 does. See byte_level.h. */
#include "byte_level.h"

#include "core/base/utf8.h"
#include "unicode.h"

/* ---- chunks ---------------------------------------------------------------------------------- */

static wf_unicode_class class_at(wf_span text, size_t at, size_t *bytes) {
    wf_span c = wf_code_point(text.text + at, text.bytes - at);
    *bytes = c.bytes;
    return wf_unicode_class_of((uint32_t)wf_utf8_code(c.text, c.bytes));
}

/* The end of the run of characters of this class from `at` on; *last: where its last character
 * begins. */
static size_t run_end(wf_span text, size_t at, wf_unicode_class class, size_t *last) {
    size_t bytes;
    for (*last = at; at < text.bytes && class_at(text, at, &bytes) == class; at += bytes)
        *last = at;
    return at;
}

static size_t contraction(wf_span text) {
    static const char *const tails[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (size_t i = 0; *text.text == '\'' && i < sizeof tails / sizeof *tails; i++) {
        size_t n = strlen(tails[i]);
        if (text.bytes > n && memcmp(text.text + 1, tails[i], n) == 0) return n + 1;
    }
    return 0;
}

/* The length of the first alternative of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ that matches. If other text follows a run of white space, the
 * run's last character is left to that text, unless it is the only one. */
size_t wf_byte_level_chunk(wf_span text) {
    size_t n = contraction(text), bytes, last;
    if (n) return n;
    size_t from = *text.text == ' ' && text.bytes > 1;
    wf_unicode_class class = class_at(text, from, &bytes);
    if (class != UNICODE_BLANK) return run_end(text, from, class, &last);
    n = run_end(text, 0, UNICODE_BLANK, &last);
    return n == text.bytes || !last ? n : last;
}
