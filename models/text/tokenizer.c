/* models/text/tokenizer.c - converts lines to ids, and ids to lines; see text.h. */
#include "tokenizer.h"
#include "models/text/byte_level/byte_level.h"
#include "models/text/json/json_text.h"
#include "models/text/sentencepiece/sentencepiece.h"
#include "models/text_internal.h"

#include <stdlib.h>

static const char *const specials[WF_SPECIAL_IDS] = { "<pad>", UNKNOWN_PIECE, "<s>", "</s>" };

void wf_tokenizer_free(wf_tokenizer *t) {
    if (!t) return;
    wf_strings_free(&t->pieces), wf_strings_free(&t->symbols), wf_strings_free(&t->seen.words);
    wf_merges_free(&t->merges), wf_merger_free(&t->merger);
    free(t->about), free(t->seen.ends), free(t->seen.ids), free(t->stack), free(t->ids);
    wf_sentencepiece_free(t->sentencepiece), wf_byte_level_free(t->byte_level);
    wf_json_text_free(t->json);
    for (int i = 0; i < WF_TOKENIZER_META; i++) free(t->stored[i]);
    free(t);
}

wf_token_kind wf_tokenizer_kind(const wf_tokenizer *t) {
    return t ? t->kind : WF_WORDS;
}
bool wf_tokenizer_running(const wf_tokenizer *t) {
    return t && wf_is_running(t->kind);
}
int64_t wf_tokenizer_size(const wf_tokenizer *t) {
    if (!t) return 0;
    if (t->byte_level) return t->byte_level->o.n_pieces;
    if (t->json) return t->json->rows;
    return t->sentencepiece ? t->sentencepiece->n : (int64_t)t->pieces.n + WF_SPECIAL_IDS;
}
int64_t wf_tokenizer_merges(const wf_tokenizer *t) {
    return t ? (int64_t)t->merges.n : 0;
}

int32_t wf_tokenizer_special(const wf_tokenizer *t, int which) {
    if (!t || which < 0 || which >= WF_SPECIAL_IDS) return -1;
    if (t->byte_level) return t->byte_level->o.special[which];
    if (t->json) return t->json->special[which];
    return t->sentencepiece ? t->sentencepiece->o.special[which] : which;
}

const char *wf_tokenizer_piece(const wf_tokenizer *t, int32_t id) {
    if (id < 0 || id >= wf_tokenizer_size(t)) return NULL;
    if (t->sentencepiece) return t->sentencepiece->pieces[id];
    if (t->byte_level) return t->byte_level->o.pieces[id];
    if (t->json) return wf_json_tokenizer_piece(t->json->tokenizer, id);
    return id < WF_SPECIAL_IDS ? specials[id] : wf_strings_at(&t->pieces, id - WF_SPECIAL_IDS);
}

/* ---- encoding -------------------------------------------------------------------------------- */

typedef struct ids {
    int32_t *at;
    int64_t capacity, n;
} ids;

static void put_id(ids *to, int32_t id) {
    if (to->n < to->capacity) to->at[to->n] = id;
    to->n++;
}

static void put_piece(const wf_tokenizer *t, wf_span s, ids *to) {
    int32_t piece = wf_strings_find(&t->pieces, s.text, s.bytes);
    put_id(to, piece < 0 ? WF_UNK_ID : piece + WF_SPECIAL_IDS);
}

static bool put_parts(wf_tokenizer *t, wf_span word, ids *to) {
    const int32_t *parts;
    int64_t n = wf_apply_merges(t, word, &parts);
    for (int64_t i = 0; i < n; i++) put_id(to, parts[i]);
    return n >= 0;
}

/* ---- running text ---------------------------------------------------------------------------- */

static void put_bytes(const wf_tokenizer *t, wf_span text, ids *to) {
    char spelled[CODE_POINT];
    for (size_t i = 0; i < text.bytes; i++) {
        size_t n = wf_spell_byte((unsigned char)text.text[i], spelled);
        put_piece(t, (wf_span){ spelled, n }, to);
    }
}

static void put_characters(const wf_tokenizer *t, wf_span text, ids *to) {
    char spelled[CODE_POINT];
    while (text.bytes) put_piece(t, wf_spell_character(wf_character_next(&text), spelled), to);
}

static bool put_chunks(wf_tokenizer *t, wf_span text, ids *to) {
    char spelled[CODE_POINT * LONGEST_CHUNK];
    for (wf_span chunk; wf_chunk_next(&text, &chunk);)
        if (!put_parts(t, wf_spell_bytes(chunk, spelled), to)) return false;
    return true;
}

static bool put_running(wf_tokenizer *t, wf_span text, ids *to, char *message) {
    if (!wf_running_check(t->kind, text, message)) return false;
    if (t->kind == WF_BYTES)
        put_bytes(t, text, to);
    else if (t->kind == WF_TEXT_CHARACTERS)
        put_characters(t, text, to);
    else if (!put_chunks(t, text, to))
        return fail(message, "out of memory");
    return true;
}

int64_t wf_tokenizer_encode(wf_tokenizer *t, const char *line, size_t bytes, int32_t *out,
                            int64_t capacity, char *message) {
    ids to = { out, out ? capacity : 0, 0 };
    if (!t) return fail(message, "there is no tokenizer"), -1;
    if (t->sentencepiece)
        return wf_sentencepiece_encode(t->sentencepiece, (wf_span){ line, bytes }, out, to.capacity,
                                       message);
    if (t->byte_level)
        return wf_byte_level_encode(t->byte_level, (wf_span){ line, bytes }, out, to.capacity,
                                    message);
    if (t->json)
        return wf_json_text_encode(t->json, (wf_span){ line, bytes }, true, out, to.capacity,
                                   message);
    if (wf_is_running(t->kind))
        return put_running(t, (wf_span){ line, bytes }, &to, message) ? to.n : -1;
    if (!wf_text_check(line, bytes, message)) return -1;
    wf_span rest = wf_line_body(line, bytes), s;
    if (t->kind == WF_CHARACTERS)
        while (rest.bytes) put_piece(t, wf_character_next(&rest), &to);
    while (wf_word_next(&rest, &s)) {
        if (t->kind == WF_WORDS)
            put_piece(t, s, &to);
        else if (!put_parts(t, s, &to))
            return fail(message, "out of memory"), -1;
    }
    return to.n;
}

int64_t wf_tokenizer_encode_text(wf_tokenizer *t, const char *line, size_t bytes, int32_t *out,
                                 int64_t capacity, char *message) {
    if (!t || !t->json) return wf_tokenizer_encode(t, line, bytes, out, capacity, message);
    return wf_json_text_encode(t->json, (wf_span){ line, bytes }, false, out, out ? capacity : 0,
                               message);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static bool goes_on(const char *piece, size_t bytes) {
    return bytes > MORE && memcmp(piece + bytes - MORE, MORE_OF_WORD, MORE) == 0;
}

int64_t wf_tokenizer_decode(const wf_tokenizer *t, const int32_t *in, int64_t n, char *text,
                            size_t size) {
    wf_sink s = sink(text, size);
    bool space = false;
    if (!t || (n > 0 && !in)) return -1;
    if (t->sentencepiece) return wf_sentencepiece_decode(t->sentencepiece, in, n, &s);
    if (t->byte_level) return wf_byte_level_decode(t->byte_level, in, n, &s);
    if (t->json) return wf_json_text_decode(t->json, in, n, text, size);
    for (int64_t i = 0; i < n; i++) {
        const char *piece = wf_tokenizer_piece(t, in[i]);
        if (!piece) return -1;
        if (in[i] < WF_SPECIAL_IDS && in[i] != WF_UNK_ID) continue;
        size_t bytes = strlen(piece);
        if (wf_is_running(t->kind) && in[i] != WF_UNK_ID) {
            wf_unspell(t, (wf_span){ piece, bytes }, &s);
            continue;
        }
        bool more = t->kind == WF_BPE && goes_on(piece, bytes);
        if (space) put(&s, " ", 1);
        put(&s, piece, more ? bytes - MORE : bytes);
        space = t->kind != WF_CHARACTERS && !wf_is_running(t->kind) && !more;
    }
    return (int64_t)s.used;
}
