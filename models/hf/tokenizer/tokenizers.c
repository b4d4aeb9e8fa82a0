/* models/hf/tokenizer/tokenizers.c - reads and writes Marian's tokenizers: two SentencePiece models
 * cut lines, and vocab.json has the ids of their pieces. Separate vocabularies have those of the
 * target in target_vocab.json.
 *
 * In tokenization_marian.py of transformers, a source ends with the end token, ">>fra<<" at its
 * beginning is one piece, and pieces that vocab.json lacks are unknown. */
#include <stdlib.h>
#include <string.h>

#include "languages.h"
#include "models/hf/folder.h"
#include "models/message.h"
#include "models/text_internal.h"

/* ---- read ------------------------------------------------------------------------------------ */

/* The files of one side, source or target. */
typedef struct side {
    const char *spm, *vocab;
    int64_t rows; /* of the model's table */
    bool source;
} side;

static wf_tokenizer *make(const side *s, const hf_config *c, const hf_object *vocab,
                          const char *unknown, const void *model, size_t bytes, char *message) {
    int32_t end = (int32_t)c->end;
    int64_t unk;
    const hf_value *v = wf_hf_find(vocab, unknown);
    if (!v || !wf_hf_int(v, &unk))
        return fail(message, "%s: the unknown piece '%s' is not in it", s->vocab, unknown), NULL;
    const char **pieces = wf_hf_pieces_in(vocab, s->rows, message);
    if (!pieces) return NULL;
    if (!pieces[end] || !*pieces[end]) {
        fail(message, "%s: the end of a sentence, id %d, has no piece", s->vocab, (int)end);
        free(pieces);
        return NULL;
    }
    wf_sentencepiece_options o = { .model = model, .bytes = bytes, .language_codes = true };
    o.pieces = pieces;
    o.n_pieces = s->rows;
    o.special[WF_PAD_ID] = (int32_t)c->pad;
    o.special[WF_UNK_ID] = (int32_t)unk;
    o.special[WF_START_ID] = (int32_t)c->start;
    o.special[WF_END_ID] = end;
    if (s->source) {
        o.after = &end;
        o.n_after = 1;
    }
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    wf_hf_of_file(s->spm, t, message);
    free(pieces);
    return t;
}

static wf_tokenizer *read_side(const char *folder, const side *s, const hf_config *c,
                               const char *unknown, char *message) {
    hf_object vocab;
    size_t bytes = 0;
    wf_tokenizer *t = NULL;
    char *model = wf_hf_read(folder, s->spm, &bytes, message);
    bool ok = model != NULL;
    ok = wf_hf_object_read(&vocab, folder, s->vocab, ok ? message : NULL) && ok;
    if (ok) t = make(s, c, &vocab, unknown, model, bytes, message);
    wf_hf_object_free(&vocab);
    free(model);
    return t;
}

bool wf_hf_read_tokenizers(const char *folder, const hf_family *family, const hf_config *c,
                           wf_hf *out, char *message) {
    hf_object o;
    char unknown[80];
    bool separate = false, ok;
    if (wf_hf_languages_next(family->name, NULL))
        return wf_hf_read_multilingual(folder, family, c, out, message);
    if (family->t5) return wf_hf_read_t5_tokenizer(folder, c, out, message);
    if (!family->may_separate) return wf_hf_read_byte_level(folder, c, out, message);
    if (!wf_hf_exists(folder, "source.spm") && !wf_hf_exists(folder, "target.spm")) {
        wf_hf_note(out->notes, "there is no source.spm and no target.spm: the model reads and "
                               "writes token ids");
        return true;
    }
    ok = wf_hf_object_read_if(&o, folder, "tokenizer_config.json", message);
    const hf_value *v = ok ? wf_hf_find(&o, "separate_vocabs") : NULL;
    ok = ok && ((!v || wf_hf_bool(v, &separate)) ||
                fail(message, "tokenizer_config.json: 'separate_vocabs' is not true or false"));
    ok = ok && (wf_hf_token_text(&o, "unk_token", "<unk>", unknown) ||
                fail(message, "tokenizer_config.json: 'unk_token' is no token"));
    wf_hf_object_free(&o);
    if (ok && !separate && c->c.src_vocab != c->c.tgt_vocab)
        ok = fail(message, "config.json has two vocabularies, but tokenizer_config.json has not "
                           "'separate_vocabs' true");
    const side src = { "source.spm", "vocab.json", c->c.src_vocab, true };
    const side tgt = { "target.spm", separate ? "target_vocab.json" : "vocab.json", c->c.tgt_vocab,
                       false };
    ok = ok && (out->src = read_side(folder, &src, c, unknown, message));
    return ok && (out->tgt = read_side(folder, &tgt, c, unknown, message));
}

/* ---- written --------------------------------------------------------------------------------- */

/* Writes the settings. The file has one set of special tokens for both sides, so the source's
 * pieces are written. */
static bool put_settings(const wf_tokenizer *src, const hf_config *c, int32_t unknown,
                         bool separate, const wf_hf_writer *to, char *message) {
    const char *pad = wf_tokenizer_piece(src, (int32_t)c->pad);
    const char *end = wf_tokenizer_piece(src, (int32_t)c->end);
    const char *unk = wf_tokenizer_piece(src, unknown);
    if (!pad || !end || !unk)
        return fail(message, "its vocabulary has no piece for padding, the end or the unknown");
    wf_text t = { 0 };
    wf_hf_put_name(&t, "tokenizer_class", "MarianTokenizer");
    wf_hf_put_flag(&t, "separate_vocabs", separate);
    wf_hf_put_int(&t, "model_max_length", c->c.max_len);
    wf_hf_put_name(&t, "unk_token", unk);
    wf_hf_put_name(&t, "eos_token", end);
    wf_hf_put_name(&t, "pad_token", pad);
    return wf_hf_put_object(&t, "tokenizer_config.json", to, message);
}

bool wf_hf_write_tokenizers(wf_hf *hf, const hf_family *family, const hf_config *c,
                            const wf_hf_writer *to, char *message) {
    wf_sentencepiece_options s, t;
    if (wf_hf_languages_next(family->name, NULL))
        return wf_hf_write_multilingual(hf, family, c, to, message);
    if (family->t5) return wf_hf_write_t5_tokenizer(hf, c, to, message);
    if (!family->may_separate) return wf_hf_write_byte_level(hf, c, to, message);
    if (!wf_tokenizer_sentencepiece(hf->src, &s) || !wf_tokenizer_sentencepiece(hf->tgt, &t)) {
        wf_hf_note(hf->notes,
                   "the folder has no tokenizer: the model has none of SentencePiece; a model "
                   "trained with --like bart has one that is written");
        return true;
    }
    if (s.n_after != 1 || s.after[0] != c->end || s.n_before || t.n_after || t.n_before)
        wf_hf_note(hf->notes, "Marian's tokenizer ends every source with the end token, and puts "
                              "nothing else around a line: this model's does not");
    bool separate = !wf_hf_same_pieces(hf->src, hf->tgt);
    return wf_hf_put_bytes(to, "source.spm", s.model, s.bytes, message) &&
           wf_hf_put_bytes(to, "target.spm", t.model, t.bytes, message) &&
           wf_hf_put_vocabulary(hf->src, wf_tokenizer_size(hf->src), "vocab.json", to, message) &&
           (!separate || wf_hf_put_vocabulary(hf->tgt, wf_tokenizer_size(hf->tgt),
                                              "target_vocab.json", to, message)) &&
           put_settings(hf->src, c, s.special[WF_UNK_ID], separate, to, message);
}
