/* models/hf/tokenizer/hf_byte_level.c - reads and writes BART's tokenizer: byte-level byte-pair
 * encoding as in GPT-2.
 *
 * BartTokenizer is the class in tokenization_roberta.py of transformers 5.23: <s> before a line and
 * </s> after it, ids from vocab.json, merges from merges.txt. */
#include <stdlib.h>
#include <string.h>

#include "models/hf/folder.h"
#include "models/message.h"
#include "models/text_internal.h"

#define SETTINGS "tokenizer_config.json"
enum { NAME = 80 };

/* The tokens that tokenizer_config.json may rename. */
enum { FIRST, LAST, END, PADDING, UNKNOWN, MASK, TOKENS };
static const struct {
    const char *key, *usual;
} tokens[TOKENS] = {
    { "cls_token", "<s>" },   { "sep_token", "</s>" },  { "eos_token", "</s>" },
    { "pad_token", "<pad>" }, { "unk_token", "<unk>" }, { "mask_token", "<mask>" }
};

/* ---- read ------------------------------------------------------------------------------------ */

typedef struct parts {
    hf_object settings, vocabulary;
    char *merges;
    size_t bytes;
    const char **pieces;
    int32_t ids[TOKENS]; /* -1: the vocabulary has none */
    bool prefix_space;
} parts;

static void parts_free(parts *p) {
    wf_hf_object_free(&p->settings), wf_hf_object_free(&p->vocabulary);
    free(p->merges), free(p->pieces);
}

static bool find_tokens(parts *p, char *message) {
    char name[NAME];
    for (int i = 0; i < TOKENS; i++) {
        int64_t id = -1;
        if (!wf_hf_token_text(&p->settings, tokens[i].key, tokens[i].usual, name))
            return fail(message, SETTINGS ": '%s' is no token", tokens[i].key);
        const hf_value *v = wf_hf_find(&p->vocabulary, name);
        if (v) wf_hf_int(v, &id);
        p->ids[i] = (int32_t)id;
        if (id < 0 && i != MASK)
            return fail(message, "vocab.json: '%s', the %s, is not in it", name, tokens[i].key);
    }
    return true;
}

static bool same_id(int32_t token, int64_t id, int which, const char *key, char *message) {
    return token == id || fail(message, "config.json: '%s' is %lld, but the %s is %d in vocab.json",
                               key, (long long)id, tokens[which].key, (int)token);
}

static bool read_parts(parts *p, const char *folder, const hf_config *c, char *message) {
    if (!wf_hf_object_read_if(&p->settings, folder, SETTINGS, message)) return false;
    const hf_value *v = wf_hf_find(&p->settings, "add_prefix_space");
    if (v && !wf_hf_bool(v, &p->prefix_space))
        return fail(message, SETTINGS ": 'add_prefix_space' is not true or false");
    p->merges = wf_hf_read(folder, "merges.txt", &p->bytes, message);
    if (!p->merges || !wf_hf_object_read(&p->vocabulary, folder, "vocab.json", message))
        return false;
    if (!find_tokens(p, message)) return false;
    /* BART's models for summaries have no embedding for the mask */
    bool beyond = p->ids[MASK] == c->c.src_vocab;
    p->pieces = wf_hf_pieces_in(&p->vocabulary, c->c.src_vocab + beyond, message);
    if (beyond) p->ids[MASK] = -1;
    return p->pieces && same_id(p->ids[END], c->end, END, "eos_token_id", message) &&
           same_id(p->ids[LAST], c->end, LAST, "eos_token_id", message) &&
           same_id(p->ids[PADDING], c->pad, PADDING, "pad_token_id", message);
}

static wf_tokenizer *make(const parts *p, const hf_config *c, bool source, char *message) {
    const wf_byte_level_options o = { .pieces = p->pieces,
                                      .n_pieces = c->c.src_vocab,
                                      .merges = p->merges,
                                      .merges_bytes = p->bytes,
                                      .special = { (int32_t)c->pad, p->ids[UNKNOWN],
                                                   (int32_t)c->start, (int32_t)c->end },
                                      .before = &p->ids[FIRST],
                                      .n_before = 1,
                                      .after = &p->ids[LAST],
                                      .n_after = source,
                                      .silent = &p->ids[MASK],
                                      .n_silent = p->ids[MASK] >= 0,
                                      .prefix_space = p->prefix_space };
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, message);
    wf_hf_of_file("vocab.json, merges.txt", t, message);
    return t;
}

bool wf_hf_read_byte_level(const char *folder, const hf_config *c, wf_hf *out, char *message) {
    parts p = { 0 };
    if (!wf_hf_exists(folder, "vocab.json") && !wf_hf_exists(folder, "merges.txt")) {
        wf_hf_note(
            out->notes,
            "there is no vocab.json and no merges.txt%s: the model reads and writes token ids",
            wf_hf_exists(folder, "tokenizer.json") ? ", and tokenizer.json is not read" : "");
        return true;
    }
    bool ok = read_parts(&p, folder, c, message);
    ok = ok && (out->src = make(&p, c, true, message));
    ok = ok && (out->tgt = make(&p, c, false, message));
    parts_free(&p);
    return ok;
}

/* ---- written --------------------------------------------------------------------------------- */

/* True if the exported files would be read as the same tokenizer again. */
static bool is_such(const wf_hf *hf, const wf_byte_level_options *s, const wf_byte_level_options *t,
                    const hf_config *c) {
    int64_t n = s->n_pieces;
    while (n && !s->pieces[n - 1]) n--;
    for (int64_t id = 0; id < n; id++)
        if (!s->pieces[id]) return false;
    return s->n_before == 1 && s->n_after == 1 && s->after[0] == c->end && s->n_silent <= 1 &&
           t->n_before == 1 && t->before[0] == s->before[0] && !t->n_after &&
           s->special[WF_UNK_ID] >= 0 && s->merges_bytes == t->merges_bytes &&
           memcmp(s->merges, t->merges, s->merges_bytes) == 0 &&
           wf_hf_same_pieces(hf->src, hf->tgt);
}

static bool write_settings(const wf_byte_level_options *o, const hf_config *c,
                           const wf_hf_writer *to, char *message) {
    const int32_t ids[TOKENS] = { o->before[0],          o->after[0],
                                  (int32_t)c->end,       (int32_t)c->pad,
                                  o->special[WF_UNK_ID], o->n_silent ? o->silent[0] : -1 };
    wf_text t = { 0 };
    wf_hf_put_name(&t, "tokenizer_class", "BartTokenizer");
    wf_hf_put_flag(&t, "add_prefix_space", o->prefix_space);
    wf_hf_put_int(&t, "model_max_length", c->c.max_len);
    for (int i = 0; i < TOKENS; i++)
        if (ids[i] >= 0 && o->pieces[ids[i]]) wf_hf_put_name(&t, tokens[i].key, o->pieces[ids[i]]);
    return wf_hf_put_object(&t, SETTINGS, to, message);
}

bool wf_hf_write_byte_level(wf_hf *hf, const hf_config *c, const wf_hf_writer *to, char *message) {
    wf_byte_level_options s, t;
    if (!wf_tokenizer_byte_level(hf->src, &s) || !wf_tokenizer_byte_level(hf->tgt, &t) ||
        !is_such(hf, &s, &t, c)) {
        if (hf->src || hf->tgt)
            wf_hf_note(hf->notes, "the folder has no tokenizer: the model's is not one of bytes as "
                                  "BART has it; train --like bart learns one");
        return true;
    }
    return wf_hf_put_vocabulary(hf->src, s.n_pieces, "vocab.json", to, message) &&
           wf_hf_put_bytes(to, "merges.txt", s.merges, s.merges_bytes, message) &&
           write_settings(&s, c, to, message);
}
