/* models/hf/tokenizer/pieces.c - pieces and their ids, which the tokenizers of all families read
 * and write. */
#include <stdlib.h>
#include <string.h>

#include "models/hf/folder.h"
#include "models/message.h"

/* ---- read ------------------------------------------------------------------------------------ */

const char **wf_hf_pieces(const hf_object *o, int64_t *n, char *message) {
    const char **pieces = calloc((size_t)o->n + 1, sizeof *pieces);
    if (!pieces) return fail(message, "out of memory"), NULL;
    for (int i = 0; i < o->n; i++) {
        int64_t id;
        const hf_value *v = &o->values[i];
        if (wf_hf_int(v, &id) && id >= 0 && id < o->n && !pieces[id]) {
            pieces[id] = v->key;
            continue;
        }
        fail(message, "%s: '%.60s' has '%.*s', not an id of its own below %d", o->file, v->key,
             v->bytes < 30 ? (int)v->bytes : 30, v->text, o->n);
        return free(pieces), NULL;
    }
    *n = o->n;
    return pieces;
}

/* Reads the "content" of an object, which is the value of a key. False: there is no such text, or
 * it is too long. */
static bool content_of(const hf_object *o, const char *key, char text[80]) {
    hf_object inner;
    bool ok = wf_hf_object_in(&inner, o, key, NULL);
    const hf_value *v = ok ? wf_hf_find(&inner, "content") : NULL;
    ok = v && wf_hf_string(v, text, 80);
    wf_hf_object_free(&inner);
    return ok;
}

bool wf_hf_token_text(const hf_object *o, const char *key, const char *absent, char text[80]) {
    const hf_value *v = wf_hf_find(o, key);
    snprintf(text, 80, "%s", absent);
    return !v || (*v->text == '{' ? content_of(o, key, text) : wf_hf_string(v, text, 80));
}

const char **wf_hf_pieces_in(const hf_object *vocab, int64_t rows, char *message) {
    int64_t n;
    const char **pieces = wf_hf_pieces(vocab, &n, message), **all = NULL;
    if (!pieces) return NULL;
    if (n > rows)
        fail(message, "%s has %lld pieces, but the vocabulary in config.json is %lld", vocab->file,
             (long long)n, (long long)rows);
    else if (!(all = calloc((size_t)rows, sizeof *all)))
        fail(message, "out of memory");
    else
        memcpy(all, pieces, (size_t)n * sizeof *all);
    free(pieces);
    return all;
}

wf_tokenizer *wf_hf_open_spm(const char *name, const void *model, size_t bytes,
                             wf_sentencepiece_options *o, char *message) {
    wf_tokenizer *t = wf_sentencepiece_defaults(model, bytes, o, message)
                          ? wf_tokenizer_from_sentencepiece(o, message)
                          : NULL;
    wf_hf_of_file(name, t, message);
    return t;
}

/* ---- written --------------------------------------------------------------------------------- */

/* A vocab.json may have no gap in its ids. One id without a piece is written with the empty piece,
 * which occurs in no text; two or more are an error. Ids after the last piece are left out: they
 * are only rows of the model's table. */
bool wf_hf_put_vocabulary(const wf_tokenizer *t, int64_t n, const char *name,
                          const wf_hf_writer *to, char *message) {
    wf_text text = { 0 };
    int holes = 0;
    while (n > 0 && !wf_tokenizer_piece(t, (int32_t)(n - 1))) n--;
    for (int32_t id = 0; id < n; id++) {
        const char *piece = wf_tokenizer_piece(t, id);
        holes += !piece;
        wf_text_add(&text, id ? ",\n  " : "{\n  ", 4);
        wf_hf_put_string(&text, piece ? piece : "");
        wf_hf_put_as(&text, ": %d", (int)id);
    }
    if (holes <= 1 || text.lacks) return wf_hf_put_object(&text, name, to, message);
    wf_text_free(&text);
    return fail(message, "%s: %d ids below the last have no piece", name, holes);
}

bool wf_hf_same_pieces(const wf_tokenizer *a, const wf_tokenizer *b) {
    return wf_tokenizer_size(a) == wf_tokenizer_size(b) && wf_hf_begins_with(a, b);
}

bool wf_hf_begins_with(const wf_tokenizer *a, const wf_tokenizer *b) {
    for (int32_t id = 0; id < wf_tokenizer_size(b); id++) {
        const char *x = wf_tokenizer_piece(a, id), *y = wf_tokenizer_piece(b, id);
        if ((!x || !y) ? x != y : strcmp(x, y) != 0) return false;
    }
    return true;
}
