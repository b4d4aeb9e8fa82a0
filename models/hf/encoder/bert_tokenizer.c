/* models/hf/encoder/bert_tokenizer.c - the tokenizer.json of an encoder's folder, read and written.
 *
 * transformers sets truncation and padding anew for each call, whatever tokenizer.json says: lines
 * are cut at the model's length, and a batch is padded. So the JSON text that weft keeps has
 * truncation at that length, and no padding. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "models/message.h"
#include "models/text_internal.h"

#define FILE_NAME "tokenizer.json"
#define SETTINGS "tokenizer_config.json"

bool wf_hf_bert_read_longest(const char *folder, hf_bert_config *c, char *message) {
    hf_object o = { 0 };
    double most = 0;
    bool ok = c->longest || wf_hf_object_read_if(&o, folder, SETTINGS, message);
    /* a tokenizer without a limit has about 1e30 here */
    const hf_value *v = ok ? wf_hf_find(&o, "model_max_length") : NULL;
    if (v && wf_hf_real(v, &most) && most >= 1 && most < 1e9) c->longest = (int64_t)most;
    wf_hf_object_free(&o);
    if (c->longest && c->longest < c->c.max_len) c->c.max_len = c->longest;
    return ok;
}

/* ---- read ------------------------------------------------------------------------------------ */

static const hf_value *value_of(const hf_object *o, const char *key) {
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->values[i].key, key) == 0) return &o->values[i];
    return NULL;
}

static void put_cut(wf_text *t, int64_t longest) {
    wf_hf_put_as(t,
                 "{\"direction\": \"Right\", \"max_length\": %lld, \"strategy\": "
                 "\"LongestFirst\", \"stride\": 0}",
                 (long long)longest);
}

/* Copies the JSON text, but with truncation at `longest` tokens and without padding. If the key of
 * either is missing, it is added at the start of the object. */
static bool put_json(wf_text *t, const hf_object *o, int64_t longest) {
    const hf_value *cut = value_of(o, "truncation"), *pad = value_of(o, "padding");
    const char *at = strchr(o->text, '{') + 1, *end = o->text + strlen(o->text);
    const hf_value *order[] = { cut, pad };
    if (cut && pad && pad->text < cut->text) {
        order[0] = pad;
        order[1] = cut;
    }
    wf_text_add(t, o->text, (size_t)(at - o->text));
    if (!cut) {
        wf_hf_put_as(t, "\"truncation\": ");
        put_cut(t, longest);
        wf_hf_put_as(t, o->n ? ", " : "");
    }
    if (!pad) wf_hf_put_as(t, "\"padding\": null%s", o->n ? ", " : "");
    for (int i = 0; i < 2; i++) {
        const hf_value *v = order[i];
        if (!v) continue;
        wf_text_add(t, at, (size_t)(v->text - at));
        if (v == cut)
            put_cut(t, longest);
        else
            wf_hf_put_as(t, "null");
        at = v->text + v->bytes;
    }
    wf_text_add(t, at, (size_t)(end - at));
    return !t->lacks;
}

/* Finds the ids that the tokenizer puts around a line, by encoding a line without text. If there
 * are not exactly two, c keeps its ids. */
static bool find_around(hf_bert_config *c, wf_tokenizer *t, char *message) {
    int32_t ids[2];
    int64_t n = wf_tokenizer_encode(t, "", 0, ids, 2, message);
    if (n < 0) return false;
    if (n == 2) {
        c->c.start_id = ids[0];
        c->c.end_id = ids[1];
    }
    return true;
}

static bool make(hf_bert_config *c, const wf_text *json, wf_hf *out, char *message) {
    wf_json_text_options o = { .json = json->at,
                               .bytes = json->length,
                               .rows = c->c.vocab,
                               .special = { (int32_t)c->pad, -1, -1, -1 } };
    out->src = out->tgt = wf_tokenizer_from_json(&o, message);
    return wf_hf_of_file(FILE_NAME, out->src, message) && find_around(c, out->src, message);
}

static bool read_vocabulary(const char *folder, hf_object *o, char *message) {
    size_t bytes = 0;
    char *text = wf_hf_bert_vocabulary(folder, &bytes, message);
    *o = (hf_object){ 0 };
    return text && wf_hf_object_parse(o, "vocab.txt", text, bytes, message);
}

bool wf_hf_bert_read_tokenizer(const char *folder, hf_bert_config *c, wf_hf *out, char *message) {
    hf_object o;
    wf_text t = { 0 };
    bool whole = wf_hf_exists(folder, FILE_NAME);
    if (!whole && !wf_hf_bert_has_vocabulary(folder)) {
        wf_hf_note(out->notes,
                   "there is no tokenizer.json and no vocab.txt: the model reads token ids");
        return true;
    }
    bool ok = whole ? wf_hf_object_read(&o, folder, FILE_NAME, message)
                    : read_vocabulary(folder, &o, message);
    if (ok) ok = put_json(&t, &o, c->c.max_len) || fail(message, "out of memory");
    wf_hf_object_free(&o);
    ok = ok && make(c, &t, out, message);
    free(t.at);
    return ok;
}

/* ---- written --------------------------------------------------------------------------------- */

/* Writes the key with token a, or with b if the vocabulary lacks a. Without both, it writes
 * nothing. */
static void put_known(wf_text *t, const wf_tokenizer *from, const char *key, const char *a,
                      const char *b) {
    const char *piece;
    bool has_a = false, has_b = false;
    for (int32_t id = 0; id < wf_tokenizer_size(from); id++) {
        piece = wf_tokenizer_piece(from, id);
        has_a |= piece && strcmp(piece, a) == 0;
        has_b |= piece && strcmp(piece, b) == 0;
    }
    if (has_a || has_b) wf_hf_put_name(t, key, has_a ? a : b);
}

bool wf_hf_bert_write_tokenizer(wf_hf *hf, const wf_hf_writer *to, char *message) {
    const wf_model *m = hf->model;
    wf_json_text_options o;
    wf_text t = { 0 };
    bool json = wf_tokenizer_json(hf->src, &o);
    if (!json && !wf_hf_bert_has_lines(hf->src)) {
        wf_hf_note(hf->notes,
                   "the folder has no tokenizer, and nothing can embed lines by it: only "
                   "a model trained with --tokenizer-json, or with --tokenizer word, "
                   "char or bpe, has one that is written");
        return true;
    }
    if (json ? !wf_hf_put_bytes(to, FILE_NAME, o.json, o.bytes, message)
             : !wf_hf_bert_write_lines(hf->src, to, message))
        return false;
    const char *pad = wf_tokenizer_piece(hf->src, wf_encoder_of(m)->config.pad_id);
    const char *start = wf_tokenizer_piece(hf->src, m->start_id);
    const char *end = wf_tokenizer_piece(hf->src, m->end_id);
    wf_hf_put_name(&t, "tokenizer_class", "PreTrainedTokenizerFast");
    wf_hf_put_int(&t, "model_max_length", m->max_len);
    wf_hf_put_flag(&t, "clean_up_tokenization_spaces", false);
    if (pad) wf_hf_put_name(&t, "pad_token", pad);
    if (start && m->start_id != m->end_id) wf_hf_put_name(&t, "cls_token", start);
    if (end && m->start_id != m->end_id) wf_hf_put_name(&t, "sep_token", end);
    put_known(&t, hf->src, "mask_token", "[MASK]", "<mask>");
    put_known(&t, hf->src, "unk_token", "[UNK]", "<unk>");
    return wf_hf_put_object(&t, SETTINGS, to, message);
}
