/* models/hf/tokenizer/t5_tokenizer.c - the tokenizer of a folder of T5's families: tokenizer.json,
 * or else spiece.model, a SentencePiece model whose pieces have the folder's ids. After its pieces
 * come the tokens for masked spans, <extra_id_99> to <extra_id_0>, and rows without a piece. */
#include <stdlib.h>
#include <string.h>

#include "models/message.h"
#include "models/text_internal.h"
#include "tokenizer_parts.h"

#define SPM "spiece.model"
enum { USUAL_EXTRA = 100, MOST_EXTRA = 10000, EXTRA_TEXT = 32 };

/* ---- read ------------------------------------------------------------------------------------ */

/* Reads how many tokens stand for masked spans. */
static bool read_extra(const char *folder, int64_t *extra, char *message) {
    hf_object o;
    *extra = USUAL_EXTRA;
    bool ok = wf_hf_object_read_if(&o, folder, "tokenizer_config.json", message);
    const hf_value *v = ok ? wf_hf_find(&o, "extra_ids") : NULL;
    if (v && (!wf_hf_int(v, extra) || *extra < 0 || *extra > MOST_EXTRA))
        ok = fail(message, "tokenizer_config.json: 'extra_ids' is not a number from 0 to %d",
                  MOST_EXTRA);
    wf_hf_object_free(&o);
    return ok;
}

static void name_extra(char texts[][EXTRA_TEXT], int64_t extra, const char **pieces, int64_t n) {
    for (int64_t i = 0; i < extra; i++) {
        snprintf(texts[i], EXTRA_TEXT, "<extra_id_%lld>", (long long)(extra - 1 - i));
        pieces[n + i] = texts[i];
    }
}

/* Makes a tokenizer for sources, which end with the end token, and one for outputs. */
static bool make(const wf_tokenizer *own, const wf_sentencepiece_options *defaults, int64_t extra,
                 const hf_config *c, wf_hf *out, char *message) {
    int64_t rows = c->c.src_vocab, n = wf_tokenizer_size(own);
    if (n > rows)
        return fail(message, SPM " has %lld pieces, but the vocabulary in config.json is %lld",
                    (long long)n, (long long)rows);
    /* if the vocabulary has no room for the tokens of masked spans, none are added */
    if (extra > rows - n) extra = 0;
    wf_sentencepiece_options o = *defaults;
    const char **pieces = calloc((size_t)rows, sizeof *pieces);
    char(*texts)[EXTRA_TEXT] = calloc((size_t)extra + 1, EXTRA_TEXT);
    if (!pieces || !texts) {
        free(pieces);
        free(texts);
        return fail(message, "out of memory");
    }
    for (int64_t id = 0; id < n; id++) pieces[id] = wf_tokenizer_piece(own, (int32_t)id);
    name_extra(texts, extra, pieces, n);
    o.pieces = pieces;
    o.n_pieces = rows;
    o.added = extra ? (int32_t)n : 0;
    o.special[WF_PAD_ID] = (int32_t)c->pad;
    o.special[WF_START_ID] = c->c.start_id;
    o.special[WF_END_ID] = c->c.end_id;
    out->tgt = wf_tokenizer_from_sentencepiece(&o, message);
    o.after = &c->c.end_id;
    o.n_after = 1;
    if (out->tgt) out->src = wf_tokenizer_from_sentencepiece(&o, message);
    free(pieces);
    free(texts);
    return wf_hf_of_file(SPM, out->src, message);
}

static bool read_model(const char *folder, const hf_config *c, wf_hf *out, char *message) {
    wf_sentencepiece_options o;
    int64_t extra;
    size_t bytes;
    if (!read_extra(folder, &extra, message)) return false;
    char *model = wf_hf_read(folder, SPM, &bytes, message);
    wf_tokenizer *own = model ? wf_hf_open_spm(SPM, model, bytes, &o, message) : NULL;
    bool ok = own && make(own, &o, extra, c, out, message);
    wf_tokenizer_free(own);
    free(model);
    return ok;
}

bool wf_hf_read_t5_tokenizer(const char *folder, const hf_config *c, wf_hf *out, char *message) {
    if (wf_hf_exists(folder, "tokenizer.json")) {
        const int32_t special[] = { (int32_t)c->pad, -1, c->c.start_id, c->c.end_id };
        return wf_hf_read_json_tokenizer(folder, c->c.src_vocab, special, out, message);
    }
    if (wf_hf_exists(folder, SPM)) return read_model(folder, c, out, message);
    wf_hf_note(out->notes, "there is no tokenizer.json and no " SPM ": the model reads and writes "
                           "token ids");
    return true;
}

/* ---- written --------------------------------------------------------------------------------- */

/* The number of tokens for spans that follow the model's pieces. -1: the ids are not those of
 * transformers, or other tokens follow. */
static int64_t extra_of(const wf_tokenizer *t, const wf_tokenizer *own) {
    char text[EXTRA_TEXT];
    int64_t n = wf_tokenizer_size(own), end = wf_tokenizer_size(t), extra;
    if (end < n || !wf_hf_begins_with(t, own)) return -1;
    while (end > n && !wf_tokenizer_piece(t, (int32_t)(end - 1))) end--;
    extra = end - n;
    for (int64_t id = n; id < end; id++) {
        const char *piece = wf_tokenizer_piece(t, (int32_t)id);
        snprintf(text, sizeof text, "<extra_id_%lld>", (long long)(extra - 1 - (id - n)));
        if (!piece || strcmp(piece, text) != 0) return -1;
    }
    return extra;
}

static bool write_settings(const wf_hf *hf, const hf_config *c, int64_t extra,
                           const wf_hf_writer *to, char *message) {
    static const char *const keys[WF_SPECIAL_IDS] = {
        [WF_PAD_ID] = "pad_token", [WF_UNK_ID] = "unk_token", [WF_END_ID] = "eos_token"
    };
    wf_text t = { 0 };
    wf_hf_put_key(&t, "tokenizer_class");
    wf_hf_put_as(&t, extra < 0 ? "\"PreTrainedTokenizerFast\"" : "\"T5Tokenizer\"");
    wf_hf_put_int(&t, "model_max_length", c->c.max_len);
    if (extra >= 0) wf_hf_put_int(&t, "extra_ids", extra);
    for (int i = 0; i < WF_SPECIAL_IDS; i++) {
        int32_t id = wf_tokenizer_special(hf->src, i);
        const char *piece = id < 0 ? NULL : wf_tokenizer_piece(hf->src, id);
        if (keys[i] && piece) wf_hf_put_name(&t, keys[i], piece);
    }
    return wf_hf_put_object(&t, "tokenizer_config.json", to, message);
}

static bool write_model(wf_hf *hf, const wf_sentencepiece_options *o, const hf_config *c,
                        const wf_hf_writer *to, char *message) {
    wf_sentencepiece_options defaults;
    wf_tokenizer *own = wf_hf_open_spm(SPM, o->model, o->bytes, &defaults, message);
    int64_t extra = own ? extra_of(hf->src, own) : -1;
    wf_tokenizer_free(own);
    if (!own) return false;
    if (extra < 0) {
        wf_hf_note(hf->notes, "the folder has no tokenizer: its ids are not those of the "
                              "SentencePiece model, as T5's are");
        return true;
    }
    return wf_hf_put_bytes(to, SPM, o->model, o->bytes, message) &&
           write_settings(hf, c, extra, to, message);
}

bool wf_hf_write_t5_tokenizer(wf_hf *hf, const hf_config *c, const wf_hf_writer *to,
                              char *message) {
    wf_json_text_options json;
    wf_sentencepiece_options spm;
    if (hf->src && wf_tokenizer_json(hf->src, &json))
        return wf_hf_put_bytes(to, "tokenizer.json", json.json, json.bytes, message) &&
               write_settings(hf, c, -1, to, message);
    if (hf->src && wf_tokenizer_sentencepiece(hf->src, &spm) && wf_hf_same_pieces(hf->src, hf->tgt))
        return write_model(hf, &spm, c, to, message);
    wf_hf_note(hf->notes, "the folder has no tokenizer: T5's are a tokenizer.json or one "
                          "SentencePiece model for both sides, as train --spm-src FILE gives it");
    return true;
}
