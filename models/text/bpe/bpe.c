/* models/text/bpe/bpe.c - byte-pair encoding: the symbols, the merges, and the pieces that they
 * make.
 *
 * A symbol is identified by its text as in a codes file, with "</w>" if it ends a word. To keep
 * this unambiguous, no symbol within a word ends in a literal "</w>". To keep pieces unambiguous,
 * no symbol at the end of a word ends in a literal "@@". */
#include "models/text/tokenizer.h"

#include <stdlib.h>

static wf_span text_of(const wf_tokenizer *t, int32_t symbol) {
    return wf_strings_span(&t->symbols, symbol);
}

static bool ends_in(wf_span s, const char *tail, size_t bytes) {
    return s.bytes >= bytes && memcmp(s.text + s.bytes - bytes, tail, bytes) == 0;
}

static bool ends_word(wf_span s) {
    return s.bytes > MARK && ends_in(s, END_OF_WORD, MARK);
}

/* ---- symbols --------------------------------------------------------------------------------- */

bool wf_add_symbol(wf_tokenizer *t, const char *text, size_t bytes, int32_t *symbol) {
    if (!wf_grow(&t->about, &t->about_capacity, (size_t)t->symbols.n + 1, sizeof *t->about))
        return false;
    int32_t before = t->symbols.n;
    *symbol = wf_strings_add(&t->symbols, text, bytes);
    if (*symbol == before) t->about[before] = (wf_symbol){ -1, -1 };
    return *symbol >= 0;
}

/* Writes a character as a symbol, with the mark if it is the last one of its word. */
static size_t spell(const wf_tokenizer *t, wf_span character, bool last,
                    char text[CODE_POINT + MARK]) {
    memcpy(text, character.text, character.bytes);
    memcpy(text + character.bytes, END_OF_WORD, MARK);
    return character.bytes + (last && t->kind == WF_BPE ? MARK : 0);
}

int32_t wf_character_symbol(const wf_tokenizer *t, wf_span character, bool last) {
    char text[CODE_POINT + MARK];
    size_t bytes = spell(t, character, last, text);
    return wf_strings_find(&t->symbols, text, bytes);
}

bool wf_add_character(wf_tokenizer *t, wf_span character, bool last, int32_t *symbol) {
    char text[CODE_POINT + MARK];
    size_t bytes = spell(t, character, last, text);
    return wf_add_symbol(t, text, bytes, symbol);
}

/* ---- merges ---------------------------------------------------------------------------------- */

bool wf_can_merge(const wf_tokenizer *t, int32_t left, int32_t right) {
    char tail[2 * MARK + MORE]; /* the end of the result, which is enough to decide */
    wf_span l = text_of(t, left), r = text_of(t, right);
    if (ends_word(l)) return false; /* in a wrong codes file: nothing follows the end of a word */
    bool last = ends_word(r);
    if (last) r.bytes -= MARK;
    size_t right_bytes = r.bytes < MARK ? r.bytes : MARK,
           left_bytes = l.bytes < MARK ? l.bytes : MARK;
    memcpy(tail, l.text + l.bytes - left_bytes, left_bytes);
    memcpy(tail + left_bytes, r.text + r.bytes - right_bytes, right_bytes);
    wf_span result = { tail, left_bytes + right_bytes };
    return last ? !ends_in(result, MORE_OF_WORD, MORE) : !ends_in(result, END_OF_WORD, MARK);
}

bool wf_add_merge(wf_tokenizer *t, int32_t left, int32_t right) {
    if (wf_pairs_find(&t->merges.ranks, left, right) >= 0) return true; /* the first one counts */
    wf_span l = text_of(t, left), r = text_of(t, right);
    char *text = malloc(l.bytes + r.bytes);
    if (!text) return false;
    memcpy(text, l.text, l.bytes);
    memcpy(text + l.bytes, r.text, r.bytes);
    int32_t result, rank = (int32_t)t->merges.n;
    bool ok = wf_add_symbol(t, text, l.bytes + r.bytes, &result) &&
              wf_merges_add(&t->merges, (wf_merge){ left, right, result });
    free(text);
    if (ok && t->about[result].merge < 0) t->about[result].merge = rank;
    return ok;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Adds the piece of a symbol: "lo" for the symbol "lo</w>", and "hel@@" for "hel". For running
 * text, symbol and piece are written alike. */
bool wf_symbol_piece(wf_tokenizer *t, int32_t symbol) {
    wf_span s = text_of(t, symbol);
    if (t->kind == WF_BYTE_BPE) return wf_strings_add(&t->pieces, s.text, s.bytes) >= 0;
    if (ends_word(s)) return wf_strings_add(&t->pieces, s.text, s.bytes - MARK) >= 0;
    char *text = malloc(s.bytes + MORE);
    if (!text) return false;
    memcpy(text, s.text, s.bytes);
    memcpy(text + s.bytes, MORE_OF_WORD, MORE);
    bool ok = wf_strings_add(&t->pieces, text, s.bytes + MORE) >= 0;
    free(text);
    return ok;
}

static bool link_piece(wf_tokenizer *t, int32_t piece) {
    wf_span s = wf_strings_span(&t->pieces, piece);
    int32_t symbol;
    char *text = malloc(s.bytes + MARK);
    if (!text) return false;
    bool more = ends_in(s, MORE_OF_WORD, MORE), marked = t->kind == WF_BPE;
    memcpy(text, s.text, s.bytes);
    memcpy(text + s.bytes, END_OF_WORD, MARK);
    size_t bytes = !marked ? s.bytes : more ? s.bytes - MORE : s.bytes + MARK;
    bool ok = wf_add_symbol(t, text, bytes, &symbol);
    free(text);
    if (ok) t->about[symbol].id = piece + WF_SPECIAL_IDS;
    return ok;
}

bool wf_link_pieces(wf_tokenizer *t) {
    for (int32_t i = 0; i < t->pieces.n; i++)
        if (!link_piece(t, i)) return false;
    return true;
}
