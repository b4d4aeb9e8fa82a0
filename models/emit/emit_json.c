/* models/emit/emit_json.c - the tables of a tokenizer.json; see text_emitter.h. The file must have
 * the form of GPT-2's: no normalizer, byte-level text that is cut as in GPT-2, byte pairs. */
#include <stdlib.h>
#include <string.h>

#include "models/text/json/json_parts.h"
#include "models/text/json/json_text.h"
#include "text_emitter.h"

/* ---- the form -------------------------------------------------------------------------------- */

static bool refuse(char *message, const char *what, const char *type) {
    return fail(message, "the %s '%.60s' of a tokenizer.json has no form in C", what, type);
}

/* The only step of a list is ByteLevel. */
static bool is_level(const wf_text_steps *s, const char *what, char *message) {
    if (s->n == 1 && strcmp(s->at[0].kind->type, "ByteLevel") == 0) return true;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i].kind->type, "ByteLevel") != 0)
            return refuse(message, what, s->at[i].kind->type);
    return fail(message, "a tokenizer.json with %zu %ss has no form in C", s->n, what);
}

static bool text_fits(const wf_json_parts *p, char *message) {
    if (p->normalizers->n) return refuse(message, "normalizer", p->normalizers->at[0].kind->type);
    if (!is_level(p->pre_tokenizers, "pre-tokenizer", message)) return false;
    if (!p->pre_tokenizers->at[0].flags[USE_REGEX])
        return fail(message, "a pre-tokenizer ByteLevel that cuts no text has no form in C");
    if (p->post->truncates || p->post->pads)
        return fail(message, "a tokenizer.json that truncates or pads lines has no form in C");
    return is_level(p->decoders, "decoder", message);
}

static bool model_fits(const wf_word_model *m, char *message) {
    if (strcmp(m->kind->type, "BPE") != 0) return refuse(message, "model", m->kind->type);
    if (m->prefix.bytes || m->suffix.bytes || m->byte_fallback || m->ignore_merges)
        return fail(message, "the model BPE of a tokenizer.json has no form in C with a prefix, a "
                             "suffix, byte_fallback or ignore_merges");
    return true;
}

/* All added tokens must be normalized, or none, so that one pass finds them; none may strip spaces
 * beside it or demand a whole word. */
static bool added_fit(const wf_added_tokens *a, char *message) {
    for (size_t i = 0; i < a->n; i++) {
        const wf_added_token *t = &a->at[i];
        if (t->single_word || t->left_strip || t->right_strip ||
            t->normalized != a->at[0].normalized)
            return refuse(message, "added token", t->content.text);
        if (memchr(t->content.text, 0, t->content.bytes))
            return fail(message, "an added token with a zero byte has no form in C");
    }
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The ids of all bytes. */
static bool find_bytes(const wf_word_model *m, int32_t bytes[256], char *message) {
    char spelled[CODE_POINT];
    for (int byte = 0; byte < 256; byte++) {
        wf_span s = { spelled, wf_spell_byte((unsigned char)byte, spelled) };
        bytes[byte] = wf_ids_find(&m->vocabulary, s);
        if (bytes[byte] < 0)
            return fail(message, "a tokenizer.json without a token for byte %d has no form in C",
                        byte);
    }
    return true;
}

/* True if the ids of a line with this letter are those around an empty line, of which `before` stand
 * before the letter's. */
static bool stand_around(wf_tokenizer *t, const int32_t *around, int64_t n, int64_t before,
                         const char *letter, char *message) {
    int32_t with[WF_MOST_AROUND + 2], ids[2];
    const wf_span line = { letter, 1 };
    int64_t n_ids = wf_json_text_encode(t->json, line, false, ids, 2, message);
    int64_t all = wf_json_text_encode(t->json, line, true, with, WF_MOST_AROUND + 2, message);
    if (n_ids < 1 || n_ids > 2 || all != n + n_ids) return false;
    const int32_t *behind = with + before + n_ids;
    return !memcmp(with, around, (size_t)before * sizeof *with) &&
           !memcmp(with + before, ids, (size_t)n_ids * sizeof *ids) &&
           !memcmp(behind, around + before, (size_t)(n - before) * sizeof *with);
}

/* The ids before and behind a line: those of an empty line, cut where the ids of a letter stand
 * between them. Two letters are tried, because a template may have the id of one of them. */
static bool find_around(wf_tokenizer *t, int32_t around[WF_MOST_AROUND], wf_byte_level_options *o,
                        char *message) {
    const wf_span none = { "", 0 };
    int64_t n = wf_json_text_encode(t->json, none, true, around, WF_MOST_AROUND, message);
    if (n < 0) return false;
    int64_t before = 0;
    while (before <= n && n <= WF_MOST_AROUND &&
           !(stand_around(t, around, n, before, "a", message) &&
             stand_around(t, around, n, before, "b", message)))
        before++;
    if (before > n || n > WF_MOST_AROUND)
        return fail(message, "what a tokenizer.json puts around a line has no form in C");
    o->before = around;
    o->after = around + before;
    o->n_before = (int)before;
    o->n_after = (int)(n - before);
    return true;
}

static bool write_added(text_emitter *x, const wf_added_tokens *a, char *message) {
    const char **texts = calloc(a->n + 1, sizeof *texts);
    int32_t *ids = calloc(a->n + 1, sizeof *ids);
    bool ok = (texts && ids) || fail(message, "out of memory");
    for (size_t i = 0; ok && i < a->n; i++) {
        texts[i] = a->at[i].content.text;
        ids[i] = a->at[i].id;
    }
    int64_t room = a->n ? (int64_t)a->n : 1;
    ok = ok && wf_write_pieces(&x->tables, "source_added", "Tokens that are cut out of a line.",
                               texts, room, message);
    if (ok) wf_write_ids(&x->tables, "source_added_ids", "Their ids.", ids, room);
    if (ok)
        wf_text_print(
            &x->tables,
            "static const added_tokens source_cut = { source_added, source_added_ids, %n };"
            "\n\n",
            (int64_t)a->n);
    free(texts);
    free(ids);
    return ok;
}

bool wf_emit_json(text_emitter *x, wf_tokenizer *t, char *message) {
    const wf_json_parts p = wf_json_tokenizer_parts(t->json->tokenizer);
    int32_t bytes[256], around[WF_MOST_AROUND];
    wf_byte_level_options o = { 0 };
    if (!text_fits(&p, message) || !model_fits(p.model, message) || !added_fit(p.added, message) ||
        !find_bytes(p.model, bytes, message) || !find_around(t, around, &o, message))
        return false;
    o.prefix_space = p.pre_tokenizers->at[0].flags[PREFIX_SPACE];
    wf_write_level(x, &p.model->merges, bytes, &o);
    wf_text_puts(&x->encode, "    return encode_json(&source_text, &source_cut, &w->merges, "
                             "w->text, line, n, to);\n");
    return write_added(x, p.added, message);
}

/* ---- outputs --------------------------------------------------------------------------------- */

bool wf_emit_json_text(text_emitter *x, const wf_tokenizer *t, char *message) {
    const wf_json_parts p = wf_json_tokenizer_parts(t->json->tokenizer);
    int64_t n = wf_tokenizer_size(t);
    if (!text_fits(&p, message) || !model_fits(p.model, message) || !added_fit(p.added, message))
        return false;
    const char **pieces = calloc((size_t)n + 1, sizeof *pieces);
    bool ok = pieces || fail(message, "out of memory");
    for (int32_t id = 0; ok && id < n; id++) {
        const char *piece = wf_tokenizer_piece(t, id);
        wf_span whole = wf_id_text(&p.model->vocabulary, id);
        if (piece && whole.bytes && memchr(whole.text, 0, whole.bytes))
            ok = fail(message, "a token with a zero byte has no form in C");
        bool is_special = piece && wf_strings_find(&p.added->specials, piece, strlen(piece)) >= 0;
        pieces[id] = is_special ? NULL : piece;
    }
    ok = ok && wf_write_pieces(&x->tables, "target_pieces",
                               "Pieces by their ids; \"\" gives no text.", pieces, n, message);
    free(pieces);
    x->longest *= 3; /* U+FFFD for a byte */
    wf_text_puts(&x->decode, "    (void)w;\n    decode_level(target_pieces, ids, n, to);\n");
    return ok;
}
