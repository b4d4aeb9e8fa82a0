/* models/text/byte_level_cut.c - what GPT-2's byte-pair encoding merges within, and how: as the library
 * tokenizers 0.23 does it. See byte_level.h. */
#include "byte_level.h"

#include "core/base/utf8.h"
#include "unicode.h"

/* ---- chunks ---------------------------------------------------------------------------------- */

static wf_unicode_class class_at(wf_span text, size_t at, size_t *bytes) {
    wf_span c = wf_code_point(text.text + at, text.bytes - at);
    *bytes = c.bytes;
    return wf_unicode_class_of((uint32_t)wf_utf8_code(c.text, c.bytes));
}

/* Where the characters from `at` on are no longer of this class; *last: where the last one begins. */
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

/* The first of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ that fits:
 * blanks leave the last of them to what follows. */
size_t wf_byte_level_chunk(wf_span text) {
    size_t n = contraction(text), bytes, last;
    if (n) return n;
    size_t from = *text.text == ' ' && text.bytes > 1;
    wf_unicode_class class = class_at(text, from, &bytes);
    if (class != UNICODE_BLANK) return run_end(text, from, class, &last);
    n = run_end(text, 0, UNICODE_BLANK, &last);
    return n == text.bytes || !last ? n : last;
}

/* ---- merges ---------------------------------------------------------------------------------- */

static bool first_merge(const void *context, const wf_item *a, const wf_item *b) {
    (void)context;
    return a->key != b->key ? a->key < b->key : a->value < b->value;
}

static bool visit(wf_byte_level *b, int32_t at) {
    const wf_chain *link = at < 0 ? NULL : &b->chain[at];
    if (!link || link->after < 0) return true;
    int32_t rank = wf_pairs_find(&b->ranks, link->symbol, b->chain[link->after].symbol);
    return rank < 0 || wf_heap_push(&b->heap, (wf_item){ rank, at });
}

/* One place at a time, where subword-nmt (bpe_apply.c) takes all of a merge before the next: they
 * differ where two merges make the same piece. For the same reason a merge that no longer fits is
 * known by what it makes, not by its number. */
static bool join(wf_byte_level *b, wf_item item) {
    wf_chain *link = &b->chain[item.value];
    if (link->symbol < 0 || link->after < 0) return true;
    const wf_chain *right = &b->chain[link->after];
    int32_t rank = wf_pairs_find(&b->ranks, link->symbol, right->symbol);
    if (rank < 0 || b->merges[rank].result != b->merges[item.key].result) return true;
    link->symbol = b->merges[rank].result;
    b->chain[link->after].symbol = -1;
    link->after = right->after;
    if (link->after >= 0) b->chain[link->after].before = item.value;
    return visit(b, link->before) && visit(b, item.value);
}

bool wf_byte_level_merge(wf_byte_level *b, wf_span chunk) {
    if (chunk.bytes > INT32_MAX / 2 ||
        !wf_grow(&b->chain, &b->chain_capacity, chunk.bytes, sizeof *b->chain))
        return false;
    int32_t n = (int32_t)chunk.bytes;
    b->heap.before = first_merge, b->heap.n = 0;
    for (int32_t i = 0; i < n; i++)
        b->chain[i] = (wf_chain){ b->bytes[(unsigned char)chunk.text[i]], i - 1, i + 1 };
    b->chain[n - 1].after = -1;
    for (int32_t i = 0; i < n; i++)
        if (!visit(b, i)) return false;
    while (b->heap.n)
        if (!join(b, wf_heap_pop(&b->heap))) return false;
    return true;
}
