/* models/text/json/json_text.c - a tokenizer.json among the tokenizers of text.h; see json_text.h
 * and text_formats.h. What the file says is done by json_tokenizer.c. */
#include "json_text.h"
#include "models/text_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/utf8_long.h"

void wf_json_text_free(wf_json_text *j) {
    if (!j) return;
    wf_json_tokenizer_free(j->tokenizer);
    free(j->json), free(j->tokens), free(j);
}

/* ---- made ------------------------------------------------------------------------------------ */

static bool keep_json(wf_json_text *j, const wf_json_text_options *o, char *message) {
    if (memchr(o->json, '\0', o->bytes)) return fail(message, "it has a zero byte");
    if (o->bytes && wf_utf8_valid(o->json, o->bytes) != o->bytes)
        return fail(message, "it is not UTF-8");
    j->json = wf_copy(o->json, o->bytes);
    j->bytes = o->bytes;
    return j->json || fail(message, "out of memory");
}

static bool make(wf_json_text *j, const wf_json_text_options *o, char *message) {
    if (!keep_json(j, o, message)) return false;
    j->tokenizer = wf_json_tokenizer_load(j->json, j->bytes, message);
    if (!j->tokenizer) return false;
    int64_t ids = wf_json_tokenizer_size(j->tokenizer);
    j->rows = o->rows ? o->rows : ids;
    if (j->rows < ids || j->rows > INT32_MAX)
        return fail(message, "its ids reach %lld, but there are %lld rows", (long long)ids - 1,
                    (long long)j->rows);
    for (int i = 0; i < WF_SPECIAL_IDS; i++) {
        j->special[i] = o->special[i];
        if (j->special[i] < -1 || j->special[i] >= j->rows)
            return fail(message, "%d is the id of a special symbol, but not one of %lld",
                        (int)j->special[i], (long long)j->rows);
    }
    return true;
}

wf_tokenizer *wf_tokenizer_from_json(const wf_json_text_options *o, char *message) {
    if (!o || !o->json) return fail(message, "there is no tokenizer.json"), NULL;
    wf_tokenizer *t = calloc(1, sizeof *t);
    if (t) t->json = calloc(1, sizeof *t->json);
    bool ok = (t && t->json) || fail(message, "out of memory");
    if (ok) {
        t->kind = WF_JSON_TEXT;
        ok = make(t->json, o, message);
    }
    if (ok) return t;
    wf_tokenizer_free(t);
    return NULL;
}

bool wf_tokenizer_json(const wf_tokenizer *t, wf_json_text_options *o) {
    if (!t || !t->json || !o) return false;
    *o = (wf_json_text_options){ t->json->json, t->json->bytes, t->json->rows, { 0 } };
    memcpy(o->special, t->json->special, sizeof o->special);
    return true;
}

/* ---- used ------------------------------------------------------------------------------------ */

static int64_t encode(wf_json_text *j, wf_span line, bool special, int64_t most, char *message) {
    if (!line.text) line.text = "";
    if (!special)
        return wf_json_tokenizer_encode_text(j->tokenizer, line, j->tokens, most, message);
    return wf_json_tokenizer_encode(j->tokenizer, line.text, line.bytes, NULL, 0, true, j->tokens,
                                    most, message);
}

int64_t wf_json_text_encode(wf_json_text *j, wf_span line, bool special, int32_t *ids,
                            int64_t capacity, char *message) {
    int64_t most = (int64_t)j->capacity, n = 0;
    if (!line.text && line.bytes) return fail(message, "there is no line"), -1;
    while ((n = encode(j, line, special, most, message)) > most) {
        wf_json_token *more = realloc(j->tokens, (size_t)n * sizeof *more);
        if (!more) return fail(message, "out of memory"), -1;
        j->tokens = more;
        j->capacity = (size_t)n;
        most = n;
    }
    for (int64_t i = 0; i < n && i < capacity; i++) ids[i] = j->tokens[i].id;
    return n;
}

int64_t wf_json_text_decode(const wf_json_text *j, const int32_t *ids, int64_t n, char *text,
                            size_t size) {
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= j->rows) return -1;
    return wf_json_tokenizer_decode(j->tokenizer, ids, n, true, text, size, NULL);
}

/* ---- in a model's file ----------------------------------------------------------------------- */

size_t wf_json_text_field(const wf_json_text *j, const char *field, char *text, size_t size) {
    wf_sink to = sink(text, size);
    char number[24];
    if (!strcmp(field, "model")) put(&to, j->json, j->bytes);
    if (!strcmp(field, "special")) wf_put_ids(&to, j->special, WF_SPECIAL_IDS);
    if (!strcmp(field, "rows"))
        put(&to, number, (size_t)snprintf(number, sizeof number, "%lld", (long long)j->rows));
    return to.used;
}

wf_tokenizer *wf_json_text_from_fields(const wf_fields *f, char *message) {
    const char *rows = wf_field_value(f, "rows");
    wf_json_text_options o = { .json = wf_field_value(f, "model") };
    if (!o.json) return fail(message, "there is no model"), NULL;
    o.bytes = strlen(o.json);
    if (!wf_field_special(f, o.special, message)) return NULL;
    char *end = NULL;
    o.rows = rows && *rows >= '1' && *rows <= '9' ? strtoll(rows, &end, 10) : 0;
    if (o.rows < 1 || *end) return fail(message, "the number of rows is missing or wrong"), NULL;
    return wf_tokenizer_from_json(&o, message);
}
