/* tests/fuzz/fuzz_tokenizer.c - any bytes as a tokenizer.json: refused with a sentence, or a
 * tokenizer that gives the same tokens each time, and decodes them.
 *
 * A line to encode comes after the first '\0'; the file itself is another. */
#include "fuzz.h"
#include "models/json_tokenizer.h"

enum { MOST = 1 << 12, LONGEST = 1 << 11 };

static void line_holds(wf_json_tokenizer *t, const char *line, size_t bytes) {
    static wf_json_token tokens[MOST], again[MOST];
    static int32_t ids[MOST];
    char message[256] = "", text[64];
    int64_t n = wf_json_tokenizer_encode(t, line, bytes, NULL, 0, true, tokens, MOST, message);
    if (n < 0) {
        fuzz_must_say(message);
        return;
    }
    fuzz_must(wf_json_tokenizer_encode(t, line, bytes, NULL, 0, true, again, MOST, message) == n);
    if (n > MOST) return;
    fuzz_must(!n || memcmp(tokens, again, (size_t)n * sizeof *tokens) == 0);
    for (int64_t i = 0; i < n; i++) ids[i] = tokens[i].id;
    int64_t length = wf_json_tokenizer_decode(t, ids, n, false, text, sizeof text, message);
    if (length < 0) fuzz_must_say(message);
    fuzz_must(length < 0 || memchr(text, '\0', sizeof text));
    fuzz_must(wf_json_tokenizer_decode(t, ids, n, true, NULL, 0, message) >= -1);
    fuzz_must(wf_json_tokenizer_encode(t, line, bytes, line, bytes, false, NULL, 0, message) >= -1);
}

FUZZ_TARGET(tokenizer) {
    char message[256] = "";
    const char *text = (const char *)data, *end = size ? memchr(text, '\0', size) : NULL;
    size_t bytes = end ? (size_t)(end - text) : size, rest = end ? size - bytes - 1 : 0;
    wf_json_tokenizer *t = wf_json_tokenizer_load(size ? text : "", bytes, message);
    if (!t) {
        fuzz_must_say(message);
        return 0;
    }
    for (int64_t i = 0; i < wf_json_tokenizer_size(t) && i < 1000; i++)
        (void)wf_json_tokenizer_piece(t, (int32_t)i);
    line_holds(t, end ? end + 1 : "", rest < LONGEST ? rest : LONGEST);
    line_holds(t, text, bytes < LONGEST ? bytes : LONGEST);
    line_holds(t, "", 0);
    wf_json_tokenizer_free(t);
    return 0;
}
