/* models/text/json/text_steps.c - reads the steps of a tokenizer.json; see text_steps.h. */
#include "text_steps.h"

#include <stdlib.h>

#include "core/base/utf8.h"

/* ---- fields ---------------------------------------------------------------------------------- */

static bool refuse(const wf_step_source *from, const char *key, const char *wanted) {
    return fail(from->message, "%s: the field '%s' is %s", from->type, key, wanted);
}

/* Finds the value of a required field. False with message. */
static bool field(const wf_step_source *from, const char *key, size_t *value) {
    *value = wf_tree_find(from->tree, from->at, key);
    return *value || refuse(from, key, "missing");
}

bool wf_step_text(const wf_step_source *from, const char *key, wf_span *out) {
    size_t value;
    if (!field(from, key, &value)) return false;
    if (wf_tree_kind(from->tree, value) != JSON_STRING) return refuse(from, key, "no string");
    *out = wf_tree_text(from->tree, value);
    return true;
}

bool wf_step_code(const wf_step_source *from, const char *key, uint32_t *out) {
    wf_span s;
    if (!wf_step_text(from, key, &s)) return false;
    if (!s.bytes || wf_utf8_length(s.text, s.bytes) != s.bytes)
        return refuse(from, key, "not one character");
    *out = (uint32_t)wf_utf8_code(s.text, s.bytes);
    return true;
}

static bool read_flag(const wf_step_source *from, const char *key, size_t value, bool *out) {
    json_kind kind = wf_tree_kind(from->tree, value);
    *out = kind == JSON_TRUE;
    return kind == JSON_TRUE || kind == JSON_FALSE || refuse(from, key, "not true or false");
}

bool wf_step_flag(const wf_step_source *from, const char *key, bool *out) {
    size_t value;
    return field(from, key, &value) && read_flag(from, key, value, out);
}

bool wf_step_flag_or(const wf_step_source *from, const char *key, bool *out) {
    size_t value = wf_tree_given(from->tree, from->at, key);
    return !value || read_flag(from, key, value, out);
}

bool wf_step_size(const wf_step_source *from, const char *key, int64_t least, int64_t *out) {
    size_t value;
    if (!field(from, key, &value)) return false;
    return (wf_tree_size(from->tree, value, INT64_MAX, out) && *out >= least) ||
           refuse(from, key, least ? "not a number from 1 on" : "not a whole number from 0 on");
}

bool wf_step_choice(const wf_step_source *from, const char *key, const char *const *words,
                    int *out) {
    size_t value;
    if (!field(from, key, &value)) return false;
    for (*out = 0; words[*out]; ++*out)
        if (wf_tree_is(from->tree, value, words[*out])) return true;
    return refuse(from, key, "none of the words that are known here");
}

bool wf_step_value(const wf_step_source *from, const char *key, size_t *out) {
    if (!field(from, key, out)) return false;
    return wf_tree_kind(from->tree, *out) >= JSON_ARRAY || refuse(from, key, "no list");
}

bool wf_step_pattern(const wf_step_source *from, wf_text_step *s) {
    wf_step_source in = *from;
    wf_span pattern;
    if (!wf_step_value(from, "pattern", &in.at)) return false;
    if (wf_tree_find(from->tree, in.at, "String"))
        return wf_step_text(&in, "String", &pattern) &&
               wf_expression_literal(&s->expression, pattern, from->message);
    return wf_step_text(&in, "Regex", &pattern) &&
           wf_expression_compile(&s->expression, pattern, from->message);
}

/* ---- steps ----------------------------------------------------------------------------------- */

bool wf_step_is(const json_tree *t, size_t object, const char *type, const char *mark) {
    size_t given = wf_tree_find(t, object, "type");
    return given ? wf_tree_is(t, given, type) : mark && wf_tree_find(t, object, mark);
}

bool wf_step_unknown(const json_tree *t, size_t object, const char *what, char *message) {
    size_t type = wf_tree_find(t, object, "type");
    wf_span name = type ? wf_tree_text(t, type) : (wf_span){ "without a type", 14 };
    return fail(message, "the %s '%.*s' is not known here", what,
                (int)(name.bytes < 60 ? name.bytes : 60), name.text);
}

void wf_steps_into(wf_steps_walk *w, size_t list) {
    w->open[w->n].list = list;
    w->open[w->n++].at = 0;
}

size_t wf_steps_next(wf_steps_walk *w) {
    for (; w->n; w->n--) {
        size_t list = w->open[w->n - 1].list, *at = &w->open[w->n - 1].at;
        *at = *at ? wf_tree_next(w->tree, list, *at) : wf_tree_first(w->tree, list);
        if (*at) return *at;
    }
    return 0;
}

static bool read_one(wf_text_steps *s, const wf_step_kind *kind, const char *what,
                     const json_tree *tree, size_t value, char *message) {
    while (kind->type && !wf_step_is(tree, value, kind->type, kind->mark)) kind++;
    if (!kind->type) return wf_step_unknown(tree, value, what, message);
    if (s->n == s->capacity && !wf_grow(&s->at, &s->capacity, s->n + 1, sizeof *s->at))
        return fail(message, "out of memory");
    wf_text_step *step = &s->at[s->n++];
    *step = (wf_text_step){ .kind = kind };
    return !kind->read || kind->read(step, &(wf_step_source){ tree, value, kind->type, message });
}

/* The most steps in one list: the normalizers, the pre-tokenizers or the decoders. */
enum { MOST_STEPS = 256 };

bool wf_steps_read(wf_text_steps *s, const wf_step_kind *kinds, const char *what, const char *list,
                   const json_tree *tree, size_t value, char *message) {
    wf_steps_walk walk = { .tree = tree };
    for (size_t at = value; at; at = wf_steps_next(&walk)) {
        size_t parts = wf_tree_find(tree, at, list);
        bool sequence = parts && wf_step_is(tree, at, "Sequence", list);
        if (wf_tree_kind(tree, at) != JSON_OBJECT) return fail(message, "a %s is no object", what);
        if (!sequence && !read_one(s, kinds, what, tree, at, message)) return false;
        if (s->n > MOST_STEPS) return fail(message, "more than %d %ss", MOST_STEPS, what);
        if (sequence) wf_steps_into(&walk, parts);
    }
    return true;
}

void wf_steps_free(wf_text_steps *s) {
    for (size_t i = 0; i < s->n; i++) {
        wf_expression_free(&s->at[i].expression);
        free(s->at[i].map);
    }
    free(s->at);
    *s = (wf_text_steps){ 0 };
}

/* ---- bytes as characters --------------------------------------------------------------------- */

bool wf_piece_to_bytes(wf_aligned *a, wf_piece *p) {
    wf_change_begin(a);
    for (size_t i = 0; i < p->bytes; i++) {
        char c = a->text[p->begin + i];
        if (!wf_change_add(a, wf_byte_character((unsigned char)c), wf_utf8_continues(c)))
            return false;
    }
    return wf_change_all(a, p, 0);
}
