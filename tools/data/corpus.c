/* tools/data/corpus.c - aligned sentences as token ids. See corpus.h. */
#include "corpus.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op.h"
#include "tools/alignment/line_words.h"
#include "tools/cli/refused.h"

bool corpus_new(corpus *c, const text_encoder encoder[2], const corpus_limits *limits,
                char *message) {
    assert(encoder[0].vocab > 0 && encoder[1].vocab > 0);
    *c = (corpus){ .encoder = { encoder[0], encoder[1] }, .limits = *limits };
    store_new(&c->tokens, limits->in_memory);
    store_new(&c->index, limits->in_memory);
    link_store_new(&c->links, limits->in_memory);
    c->id_bytes = encoder[0].vocab <= 1 << 16 && encoder[1].vocab <= 1 << 16 ? 2 : 4;
    for (int i = 0; i < 2; i++) {
        c->line[i] = calloc((size_t)limits->tokens[i], sizeof *c->line[i]);
        c->word[i] = calloc((size_t)limits->tokens[i], sizeof *c->word[i]);
        if (c->line[i] && c->word[i]) continue;
        corpus_free(c);
        return refused(message, "out of memory");
    }
    return true;
}

void corpus_free(corpus *c) {
    store_free(&c->tokens);
    store_free(&c->index);
    link_store_free(&c->links);
    links_free(&c->given);
    for (int i = 0; i < 2; i++) {
        free(c->line[i]);
        free(c->word[i]);
    }
    *c = (corpus){ .tokens = { .file = -1 }, .index = { .file = -1 } };
}

/* Appends n ids to the store. If the store has 16-bit ids, they are first packed at the front of
 * the array `ids`. */
static bool append_ids(corpus *c, int32_t *ids, int32_t n, char *message) {
    char *bytes = (char *)ids;
    for (int32_t i = 0; i < n && c->id_bytes == 2; i++) {
        uint16_t id = (uint16_t)ids[i];
        memcpy(bytes + 2 * i, &id, 2);
    }
    return store_append(&c->tokens, bytes, (size_t)n * (size_t)c->id_bytes, message);
}

static bool append_pair(corpus *c, const int32_t length[2], int64_t line, char *message) {
    corpus_pair pair = { .offset = c->total[0] + c->total[1],
                         .length = { length[0], length[1] },
                         .line = line };
    if (!append_ids(c, c->line[0], length[0], message) ||
        !append_ids(c, c->line[1], length[1], message) ||
        !store_append(&c->index, &pair, sizeof pair, message))
        return false;
    for (int i = 0; i < 2; i++) {
        c->total[i] += length[i];
        if (length[i] > c->longest[i]) c->longest[i] = length[i];
        c->length[i] = length[i];
    }
    c->pairs++;
    return true;
}

/* Encodes one side into c->line. Returns the number of its ids, or -1. */
static int64_t encode(corpus *c, int side, const char *text, size_t bytes, int64_t line,
                      char *message) {
    char why[WF_MESSAGE] = "";
    const text_encoder *e = &c->encoder[side];
    int64_t n = e->encode(e->user, text, bytes, c->line[side], c->limits.tokens[side], why);
    if (n > 0 || (n == 0 && side == 0 && c->limits.targets)) return n;
    if (n == 0)
        snprintf(why, sizeof why, "no tokens in it: take the %s out",
                 c->limits.targets ? "line" : "pair");
    snprintf(message, WF_MESSAGE, "line %lld: the %s: %.120s", (long long)line,
             side ? "target" : "source", why);
    return -1;
}

bool corpus_add(corpus *c, const char *const text[2], const size_t bytes[2], int64_t line,
                char *message) {
    int32_t length[2];
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        int64_t n = encode(c, i, text[i], bytes[i], line, message);
        if (n < 0) {
            c->refused = i;
            return false;
        }
        if (n > c->limits.tokens[i]) fits = false;
        length[i] = (int32_t)(n > c->limits.tokens[i] ? 0 : n);
    }
    if (fits) return append_pair(c, length, line, message);
    c->too_long++;
    return true;
}

bool corpus_seal(corpus *c, char *message) {
    if (c->pairs)
        return store_seal(&c->tokens, message) && store_seal(&c->index, message) &&
               link_store_seal(&c->links, message);
    if (c->too_long)
        return refused(
            message,
            "each of the %lld pairs has more than %lld source or %lld target tokens: raise "
            "--max-len",
            (long long)c->too_long, (long long)c->limits.tokens[0], (long long)c->limits.tokens[1]);
    return refused(message, "there are no pairs");
}

/* Turns the last pair's links between words into links between tokens. */
static bool keep_links(corpus *c, const pair_lines *p, char *message) {
    for (int i = 0; i < 2; i++)
        if (words_of_line(&c->encoder[i], p->text[i], p->bytes[i], c->length[i], c->word[i],
                          message) < 0)
            return false;
    const int32_t *const word[] = { c->word[0], c->word[1] };
    return link_store_add(&c->links, &c->given, word, c->length, message);
}

/* Reads the alignment of a pair, and stores it if the pair is kept. The alignment of a pair that is
 * left out is only checked. */
static bool add_links(corpus *c, const pair_lines *p, bool kept, char *message) {
    char why[WF_MESSAGE];
    const int64_t words[] = { count_words(p->text[0], p->bytes[0]),
                              count_words(p->text[1], p->bytes[1]) };
    if (links_read(&c->given, p->text[2], p->bytes[2], words, why) &&
        (!kept || keep_links(c, p, why)))
        return true;
    return refused(message, "%.120s, line %lld: %.120s", p->path[2], (long long)p->number, why);
}

bool corpus_take(corpus *c, const pair_lines *p, char *message) {
    char why[WF_MESSAGE];
    int64_t pairs = c->pairs;
    if (corpus_add(c, p->text, p->bytes, p->number, why))
        return !c->limits.aligned || add_links(c, p, c->pairs > pairs, message);
    return refused(message, "%.120s: %.120s", p->path[c->refused && p->path[1]], why);
}

bool corpus_read(corpus *c, pair_lines *p, char *message) {
    while (pairs_next(p, message))
        if (!corpus_take(c, p, message)) return false;
    return !p->failed && corpus_seal(c, message);
}

const corpus_pair *corpus_at(const corpus *c, int64_t pair) {
    assert(pair >= 0 && pair < c->pairs && c->index.data);
    return (const corpus_pair *)(const void *)c->index.data + pair;
}

void corpus_ids(const corpus *c, int64_t pair, int side, int32_t *ids) {
    const corpus_pair *p = corpus_at(c, pair);
    int64_t first = p->offset + (side ? p->length[0] : 0);
    const char *at = c->tokens.data + first * c->id_bytes;
    if (c->id_bytes == 4) {
        memcpy(ids, at, (size_t)p->length[side] * 4);
        return;
    }
    for (int32_t i = 0; i < p->length[side]; i++) {
        uint16_t id;
        memcpy(&id, at + 2 * i, 2);
        ids[i] = id;
    }
}

const char *corpus_skipped(const corpus *c, char *buffer) {
    const int64_t *most = c->limits.tokens;
    int n =
        snprintf(buffer, 128, "skipped %lld of %lld pairs: longer than %lld",
                 (long long)c->too_long, (long long)(c->pairs + c->too_long), (long long)most[0]);
    if (most[0] != most[1])
        n += snprintf(buffer + n, 128 - (size_t)n, " source or %lld target", (long long)most[1]);
    snprintf(buffer + n, 128 - (size_t)n, " tokens");
    if (!c->too_long) *buffer = '\0';
    return buffer;
}
