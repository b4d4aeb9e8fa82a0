/* models/text/byte_level/byte_level_learn.c - makes a vocabulary and merges in the form of GPT-2
 * from what vocabulary.c learned within GPT-2's chunks, with BART's first ids and tokens around a
 * line. See byte_level.h. */
#include "byte_level.h"
#include "core/base/utf8.h"

#include <stdlib.h>

/* Special ids in BART's order. As in BART, an output starts with the end token. */
enum { FIRST, PADDING, END, UNKNOWN };
static const char *const specials[WF_SPECIAL_IDS] = { "<s>", "<pad>", "</s>", "<unk>" };

/* Long chunks are cut between two characters, and merges are learned within each part. */
bool wf_byte_level_chunk_next(wf_span *rest, wf_span *chunk) {
    if (!rest->bytes) return false;
    size_t n = wf_byte_level_chunk(*rest);
    if (n > LONGEST_CHUNK)
        for (n = LONGEST_CHUNK; wf_utf8_continues(rest->text[n]);) n--;
    *chunk = (wf_span){ rest->text, n };
    rest->text += n;
    rest->bytes -= n;
    return true;
}

/* The text of merges.txt, which the caller frees; NULL: out of memory. */
static char *merges_of(const wf_tokenizer *learned, size_t *bytes) {
    *bytes = wf_tokenizer_codes(learned, NULL, 0);
    char *merges = malloc(*bytes + 1);
    if (merges) wf_tokenizer_codes(learned, merges, *bytes + 1);
    return merges;
}

wf_tokenizer *wf_byte_level_learned(const wf_tokenizer *learned, char *message) {
    static const int32_t before = FIRST;
    wf_byte_level_options o = { .n_pieces = wf_tokenizer_size(learned),
                                .special = { PADDING, UNKNOWN, END, END },
                                .before = &before,
                                .n_before = 1 };
    const char **pieces = malloc((size_t)o.n_pieces * sizeof *pieces);
    char *merges = merges_of(learned, &o.merges_bytes);
    wf_tokenizer *t = NULL;
    for (int32_t id = 0; pieces && id < o.n_pieces; id++)
        pieces[id] = id < WF_SPECIAL_IDS ? specials[id] : wf_tokenizer_piece(learned, id);
    o.pieces = pieces;
    o.merges = merges;
    if (pieces && merges)
        t = wf_tokenizer_from_byte_level(&o, message);
    else
        fail(message, "out of memory");
    free(pieces), free(merges);
    return t;
}
