/* models/text/json/json_tokenizer.c - a tokenizer.json from end to end; see
 * models/json_tokenizer.h.
 *
 * A text goes through: added tokens that are not normalized are cut out; the normalizer changes
 * each piece between them, and the other added tokens are cut out; the pre-tokenizer cuts pieces
 * into words; the model makes tokens of each word; these are cut short, get special tokens around
 * them, and are padded. */
#include "models/json_tokenizer.h"

#include <assert.h>
#include <stdlib.h>

#include "added_tokens.h"
#include "core/base/utf8.h"
#include "json_parts.h"
#include "json_text.h"
#include "models/text/characters/characters.h"
#include "models/text/learn/json_learn.h"

struct wf_json_tokenizer {
    char *json; /* the file, decoded in place; parts point into it */
    wf_text_steps normalizers, pre_tokenizers, decoders;
    bool has_decoder;
    wf_word_model model;
    wf_added_tokens added;
    wf_post post;
    wf_aligned text;
    wf_word_tokens word;
    wf_line_tokens tokens;
    wf_parts parts;
};

void wf_json_tokenizer_free(wf_json_tokenizer *t) {
    if (!t) return;
    wf_steps_free(&t->normalizers), wf_steps_free(&t->pre_tokenizers), wf_steps_free(&t->decoders);
    wf_word_model_free(&t->model), wf_added_free(&t->added), wf_post_free(&t->post);
    wf_aligned_free(&t->text);
    free(t->word.at), free(t->tokens.at), free(t->tokens.ends);
    free(t->parts.now.text.at), free(t->parts.now.ends);
    free(t->parts.next.text.at), free(t->parts.next.ends);
    free(t->json), free(t);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool version(const json_tree *tree, char *message) {
    size_t value = wf_tree_find(tree, 0, "version");
    if (!value || wf_tree_is(tree, value, "1.0")) return true;
    wf_span s = wf_tree_text(tree, value);
    return fail(message, "version '%.*s' of tokenizer.json is not known here",
                (int)(s.bytes < 40 ? s.bytes : 40), s.text);
}

static bool read(wf_json_tokenizer *t, const json_tree *tree, char *message) {
    size_t decoder = wf_tree_given(tree, 0, "decoder");
    t->has_decoder = decoder > 0;
    return version(tree, message) &&
           wf_steps_read(&t->normalizers, wf_normalizer_kinds, "normalizer", "normalizers", tree,
                         wf_tree_given(tree, 0, "normalizer"), message) &&
           wf_steps_read(&t->pre_tokenizers, wf_pre_tokenizer_kinds, "pre-tokenizer",
                         "pretokenizers", tree, wf_tree_given(tree, 0, "pre_tokenizer"), message) &&
           wf_steps_read(&t->decoders, wf_decoder_kinds, "decoder", "decoders", tree, decoder,
                         message) &&
           wf_post_read(&t->post, tree, message) &&
           wf_word_model_read(&t->model, tree, wf_tree_find(tree, 0, "model"), message) &&
           wf_added_read(&t->added, tree, wf_tree_given(tree, 0, "added_tokens"), &t->model,
                         &t->normalizers, &t->text, message);
}

wf_json_tokenizer *wf_json_tokenizer_load(const char *json, size_t bytes, char *message) {
    wf_json_tokenizer *t = json ? calloc(1, sizeof *t) : NULL;
    json_tree tree = { 0 };
    if (!json) return fail(message, "there is no text"), NULL;
    if (t) t->json = wf_memory_raw(bytes + 1);
    if (!t || !t->json) {
        wf_json_tokenizer_free(t);
        return fail(message, "out of memory"), NULL;
    }
    memcpy(t->json, json, bytes);
    t->json[bytes] = '\0';
    bool ok = wf_tree_read(&tree, t->json, bytes, message) && read(t, &tree, message);
    wf_tree_free(&tree);
    if (ok) return t;
    wf_json_tokenizer_free(t);
    return NULL;
}

int64_t wf_json_tokenizer_size(const wf_json_tokenizer *t) {
    if (!t) return 0;
    int64_t n = (int64_t)t->model.vocabulary.n_ids;
    int64_t last = t->added.n ? t->added.at[t->added.n - 1].id + (int64_t)1 : 0;
    return last > n ? last : n;
}

const char *wf_json_tokenizer_piece(const wf_json_tokenizer *t, int32_t id) {
    const wf_added_token *added = t ? wf_added_find(&t->added, id) : NULL;
    if (added) return added->content.text;
    return t ? wf_id_text(&t->model.vocabulary, id).text : NULL;
}

wf_json_parts wf_json_tokenizer_parts(const wf_json_tokenizer *t) {
    return (wf_json_parts){ .added = &t->added,
                            .normalizers = &t->normalizers,
                            .pre_tokenizers = &t->pre_tokenizers,
                            .model = &t->model,
                            .post = &t->post,
                            .decoders = &t->decoders,
                            .has_decoder = t->has_decoder };
}

/* ---- encoding -------------------------------------------------------------------------------- */

static bool prepare(wf_json_tokenizer *t, wf_span text, char *message) {
    wf_aligned *a = &t->text;
    if (!wf_aligned_begin(a, text.text, text.bytes, message)) return false;
    if (!wf_added_cut(&t->added, a, false)) return false;
    for (size_t i = 0; i < a->pieces.n; i++)
        if (a->pieces.at[i].id < 0 && !wf_normalize_piece(&t->normalizers, a, &a->pieces.at[i]))
            return false;
    return wf_added_cut(&t->added, a, true) && wf_cut_pieces(&t->pre_tokenizers, a);
}

/* Counts the white space at both ends of a token's text; the letter that stands for a space in
 * byte-level text is white space too. */
static void measure(wf_line_token *token, wf_span s) {
    bool leading = true;
    for (size_t at = 0; at < s.bytes;) {
        uint32_t code = (uint32_t)wf_utf8_next(s.text, s.bytes, &at);
        bool space = code == wf_byte_character(' ') || wf_is_space(code);
        leading = leading && space;
        token->lead += leading;
        token->trail = space ? token->trail + 1 : 0;
    }
}

/* Sets which bytes of the original text a token of a piece stands for. If the bytes of a prefix
 * became tokens, a token's end may lie after the piece; Hugging Face's tokenizers library then
 * gives the offsets within the piece. */
static void place(const wf_aligned *a, const wf_piece *p, const wf_word_token *w,
                  wf_line_token *token) {
    if (w->begin == w->end) {
        token->from = p->from + w->begin;
        token->to = p->from + w->end;
    } else if (w->end > p->bytes) {
        token->from = w->begin;
        token->to = w->end;
    } else {
        token->from = a->places[p->begin + w->begin].from;
        token->to = a->places[p->begin + w->end - 1].to;
    }
}

static wf_span token_text(const wf_json_tokenizer *t, const wf_piece *p, const wf_word_token *w) {
    if (!w->unknown && p->id < 0) return wf_id_text(&t->model.vocabulary, w->id);
    return (wf_span){ t->text.text + p->begin + w->begin, w->end - w->begin };
}

static bool put_piece(wf_json_tokenizer *t, const wf_piece *p, bool second, char *message) {
    t->word.n = 0;
    wf_word_token whole = { p->id, 0, (uint32_t)p->bytes, false };
    wf_span text = piece_text(&t->text, p);
    if (p->id >= 0 ? !wf_word_token_add(&t->word, whole, message)
                   : p->bytes && !t->model.kind->word(&t->model, text, &t->word, message))
        return false;
    for (size_t i = 0; i < t->word.n; i++) {
        const wf_word_token *w = &t->word.at[i];
        wf_line_token token = { .id = w->id, .type = second, .second = second };
        place(&t->text, p, w, &token);
        if (t->post.trims) measure(&token, token_text(t, p, w));
        if (!wf_line_token_add(&t->tokens, token, message)) return false;
    }
    return true;
}

static bool put_text(wf_json_tokenizer *t, wf_span text, bool second, char *message) {
    if (!prepare(t, text, message)) return false;
    for (size_t i = 0; i < t->text.pieces.n; i++)
        if (!put_piece(t, &t->text.pieces.at[i], second, message)) return false;
    return wf_line_tokens_end(&t->tokens, message);
}

bool wf_json_tokenizer_words(wf_json_tokenizer *t, wf_span line,
                             bool (*take)(void *user, wf_span word), void *user, char *message) {
    if (!prepare(t, line, message)) return false;
    for (size_t i = 0; i < t->text.pieces.n; i++) {
        wf_span word = piece_text(&t->text, &t->text.pieces.at[i]);
        if (word.bytes && !take(user, word)) return fail(message, "out of memory");
    }
    return true;
}

/* Steps after the model: none; truncation and padding; truncation, special tokens and padding. */
typedef enum { TEXT_ALONE, CUT, CUT_WITH_SPECIAL } ending;

static int64_t encode(wf_json_tokenizer *t, const wf_span texts[2], int n, ending how,
                      wf_json_token *out, int64_t capacity, char *message) {
    if (!t) return fail(message, "there is no tokenizer"), -1;
    t->tokens.n = t->tokens.n_parts = 0;
    for (int i = 0; i < n; i++) {
        if (!texts[i].text && texts[i].bytes) return fail(message, "there is no text"), -1;
        if (!put_text(t, texts[i], i, message)) return -1;
    }
    bool special = how == CUT_WITH_SPECIAL;
    if (how != TEXT_ALONE && !wf_post_apply(&t->post, &t->tokens, texts, special, message))
        return -1;
    for (size_t i = 0; out && i < t->tokens.n && (int64_t)i < capacity; i++) {
        const wf_line_token *k = &t->tokens.at[i];
        out[i] = (wf_json_token){ k->id, k->type, k->from, k->to };
    }
    return (int64_t)t->tokens.n;
}

int64_t wf_json_tokenizer_encode(wf_json_tokenizer *t, const char *line, size_t bytes,
                                 const char *second, size_t second_bytes, bool special,
                                 wf_json_token *tokens, int64_t capacity, char *message) {
    wf_span texts[2] = { { line, bytes }, { second, second_bytes } };
    int n = second || second_bytes ? 2 : 1;
    return encode(t, texts, n, special ? CUT_WITH_SPECIAL : CUT, tokens, capacity, message);
}

int64_t wf_json_tokenizer_encode_text(wf_json_tokenizer *t, wf_span line, wf_json_token *tokens,
                                      int64_t capacity, char *message) {
    wf_span texts[2] = { line, { "", 0 } };
    return encode(t, texts, 1, TEXT_ALONE, tokens, capacity, message);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static bool put_token(wf_json_tokenizer *t, int32_t id, bool skip_special) {
    const wf_added_token *added = wf_added_find(&t->added, id);
    wf_span text = added ? added->normal : wf_id_text(&t->model.vocabulary, id);
    if (!text.text) return true;
    if (skip_special && wf_strings_find(&t->added.specials, text.text, text.bytes) >= 0)
        return true;
    if (!t->has_decoder && t->parts.next.n && !wf_texts_put(&t->parts, (wf_span){ " ", 1 }))
        return false;
    return wf_texts_put(&t->parts, text) && wf_texts_end(&t->parts);
}

int64_t wf_json_tokenizer_decode(wf_json_tokenizer *t, const int32_t *ids, int64_t n,
                                 bool skip_special, char *text, size_t size, char *message) {
    wf_sink to = sink(text, size);
    if (!t) return fail(message, "there is no tokenizer"), -1;
    if (!ids && n > 0) return fail(message, "there are no ids"), -1;
    t->parts.message = message;
    t->parts.next.n = t->parts.next.text.bytes = 0;
    for (int64_t i = 0; i < n; i++)
        if (!put_token(t, ids[i], skip_special)) return -1;
    wf_texts_swap(&t->parts);
    for (size_t i = 0; i < t->decoders.n; i++)
        if (!wf_decode_texts(&t->decoders.at[i], &t->parts)) return -1;
    put(&to, t->parts.now.text.at, t->parts.now.text.bytes);
    return (int64_t)to.used;
}
