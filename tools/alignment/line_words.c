/* tools/alignment/line_words.c - finds the word that each token of a line belongs to. See
 * line_words.h.
 *
 * A tokenizer does not tell where its tokens come from, and it may change the text. So beginnings
 * of the line are encoded, each up to the end of a word, and their tokens are counted. With most
 * tokenizers a line's tokens are those of its single words put together. Then each word is encoded
 * alone, which takes less time. */
#include "line_words.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/refused.h"
#include "tools/data/language.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/* Finds the next word at or after *at: it is from *begin to *at. False: there is none. */
static bool next_word(const char *line, size_t bytes, size_t *at, size_t *begin) {
    while (*at < bytes && is_space(line[*at])) ++*at;
    *begin = *at;
    while (*at < bytes && !is_space(line[*at])) ++*at;
    return *at > *begin;
}

int64_t count_words(const char *line, size_t bytes) {
    int64_t n = 0;
    for (size_t at = 0, begin; next_word(line, bytes, &at, &begin);) n++;
    return n;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A line that is being cut into words. */
typedef struct line_cut {
    const text_encoder *encoder;
    char *line; /* a copy, so that parts of it can be ended by '\0' */
    size_t bytes;
    /* [n] the line's tokens; [n] room for the tokens of a part of the line */
    int32_t *ids, *part;
    int64_t n;
    /* tokens around every line: before and after it */
    int64_t before, after;
} line_cut;

/* Encodes a part of the line into c->part. Returns the number of its tokens; -1: it failed. */
static int64_t encode_part(line_cut *c, size_t begin, size_t end, char *message) {
    char kept = c->line[end];
    c->line[end] = '\0';
    int64_t n =
        c->encoder->encode(c->encoder->user, c->line + begin, end - begin, c->part, c->n, message);
    c->line[end] = kept;
    return n;
}

static void fill(int32_t *word, int64_t from, int64_t to, int64_t n, int64_t value) {
    for (int64_t i = from; i < to && i < n; i++) word[i] = (int32_t)value;
}

/* Encodes each word alone. 1: done; 0: the words' tokens are not the line's; -1: failed, with
 * message. */
static int by_words(line_cut *c, int64_t n, int32_t *word, char *message) {
    int64_t from = c->before, w = 0;
    for (size_t at = 0, begin; next_word(c->line, c->bytes, &at, &begin); w++) {
        int64_t all = encode_part(c, begin, at, message), k = all - c->before - c->after;
        if (all < 0) return -1;
        if (k < 0 || from + k + c->after > c->n) return 0;
        if (memcmp(c->ids + from, c->part + c->before, (size_t)k * sizeof *c->ids) != 0) return 0;
        fill(word, from, from + k, n, w);
        from += k;
    }
    return from + c->after == c->n;
}

/* Encodes the line's beginning up to the end of each word, and counts its tokens. */
static bool by_beginnings(line_cut *c, int64_t n, int32_t *word, char *message) {
    int64_t from = c->before, w = 0;
    fill(word, 0, n, n, NO_WORD);
    for (size_t at = 0, begin; next_word(c->line, c->bytes, &at, &begin); w++) {
        int64_t k = encode_part(c, 0, at, message);
        if (k < 0) return false;
        int64_t to = k - c->after < c->n - c->after ? k - c->after : c->n - c->after;
        fill(word, from, to, n, w);
        if (to > from) from = to;
    }
    return true;
}

/* Counts the tokens that the encoder puts before and after every line: those of an empty line. If
 * an empty line has none, only encoder->first tokens stand before other lines. */
static bool count_around(line_cut *c, char *message) {
    int64_t all = encode_part(c, 0, 0, message);
    if (all < 0) return false;
    c->before = all ? 0 : c->encoder->first;
    while (c->before < all && c->before < c->n && c->ids[c->before] == c->part[c->before])
        c->before++;
    c->after = all ? all - c->before : 0;
    return true;
}

static bool cut_line(line_cut *c, int64_t n, int32_t *word, char *message) {
    if (!count_around(c, message)) return false;
    fill(word, 0, n, n, NO_WORD);
    int cut = by_words(c, n, word, message);
    if (cut < 0 || (cut == 0 && !by_beginnings(c, n, word, message))) return false;
    /* a cropped line, too, ends with the tokens that the encoder puts after every line */
    fill(word, n > c->after ? n - c->after : 0, n, n, NO_WORD);
    return true;
}

int64_t words_of_line(const text_encoder *e, const char *line, size_t bytes, int64_t n,
                      int32_t *word, char *message) {
    int64_t all = e->encode(e->user, line, bytes, NULL, 0, message);
    if (all < 0) return -1;
    size_t room = ((size_t)all + 1) * sizeof(int32_t);
    line_cut c = { e, malloc(bytes + 1), bytes, malloc(room), malloc(room), all, 0, 0 };
    bool ok = c.line && c.ids && c.part;
    if (!ok) refused(message, "out of memory for a line of %zu bytes", bytes);
    if (ok) {
        memcpy(c.line, line, bytes);
        c.line[bytes] = '\0';
        ok = e->encode(e->user, line, bytes, c.ids, all, message) == all &&
             cut_line(&c, n, word, message);
    }
    free(c.line);
    free(c.ids);
    free(c.part);
    return ok ? count_words(line, bytes) : -1;
}

/* ---- outputs --------------------------------------------------------------------------------- */

int64_t words_of_output(const wf_tokenizer *t, const int32_t *ids, int64_t n, int32_t *word) {
    size_t before = 0, bytes = 0;
    int64_t words = 0;
    char *last = line_of_ids(t, ids, 0, &before);
    for (int64_t i = 0; last && i < n; i++) {
        char *text = line_of_ids(t, ids, i + 1, &bytes);
        bool silent = text && bytes == before && memcmp(text, last, bytes) == 0;
        free(last);
        last = text;
        before = bytes;
        if (!text) break;
        words = count_words(text, bytes);
        bool space = bytes && is_space(text[bytes - 1]);
        word[i] = silent ? NO_WORD : (int32_t)(words - !space);
    }
    bool ok = last != NULL;
    free(last);
    for (int64_t i = 0; ok && i < n; i++)
        if (word[i] >= words) word[i] = NO_WORD; /* white space at the end */
    return ok ? words : -1;
}
