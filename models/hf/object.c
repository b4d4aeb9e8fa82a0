/* models/hf/object.c - JSON objects of a folder's files; see object.h. */
#include "object.h"
#include "core/file_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/file.h"
#include "core/file/json.h"
#include "models/message.h"

/* ---- an object ------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b) {
    return strcmp(((const hf_value *)a)->key, ((const hf_value *)b)->key);
}

/* A value's text is taken from the copy that the reader does not decode. */
static bool read_pair(hf_object *o, struct wf_json *j, const char *key) {
    wf_json_next(j);
    size_t from = (size_t)(j->at - j->start);
    if (!wf_json_skip(j)) return false;
    o->values[o->n++] = (hf_value){ key, o->text + from, (size_t)(j->at - j->start) - from };
    return true;
}

static bool read_pairs(hf_object *o, struct wf_json *j, char *message) {
    size_t room = 0;
    char *key;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        if (!wf_grow(&o->values, &room, (size_t)o->n + 1, sizeof *o->values))
            return fail(message, "out of memory");
        if (!read_pair(o, j, key)) break;
    }
    if (!*j->error) wf_json_finish(j);
    const char *error = strncmp(j->error, "header ", 7) == 0 ? j->error + 7 : j->error;
    return !*error || fail(message, "%s: %s", o->file, error);
}

static bool unique(hf_object *o, char *message) {
    if (o->n) qsort(o->values, (size_t)o->n, sizeof *o->values, by_key);
    for (int i = 1; i < o->n; i++)
        if (strcmp(o->values[i - 1].key, o->values[i].key) == 0)
            return fail(message, "%s: '%.90s' is there twice", o->file, o->values[i].key);
    return true;
}

bool wf_hf_object_parse(hf_object *o, const char *name, char *text, size_t bytes, char *message) {
    struct wf_json j;
    *o = (hf_object){ .file = name, .text = text, .keys = text ? wf_copy(text, bytes) : NULL };
    if (!o->keys) return fail(message, "out of memory");
    if (!wf_json_begin(&j, o->keys, bytes)) return fail(message, "%s: it is not UTF-8", name);
    return read_pairs(o, &j, message) && unique(o, message);
}

bool wf_hf_object_read(hf_object *o, const char *folder, const char *name, char *message) {
    size_t bytes;
    char *text = wf_hf_read(folder, name, &bytes, message);
    *o = (hf_object){ .file = name };
    return text && wf_hf_object_parse(o, name, text, bytes, message);
}

bool wf_hf_object_read_if(hf_object *o, const char *folder, const char *name, char *message) {
    *o = (hf_object){ .file = name };
    return !wf_hf_exists(folder, name) || wf_hf_object_read(o, folder, name, message);
}

bool wf_hf_object_in(hf_object *o, const hf_object *outer, const char *key, char *message) {
    const hf_value *v = wf_hf_find(outer, key);
    *o = (hf_object){ .file = outer->file };
    if (!v || *v->text != '{')
        return fail(message, "%s: '%s' is %s", outer->file, key, v ? "no object" : "missing");
    return wf_hf_object_parse(o, outer->file, wf_copy(v->text, v->bytes), v->bytes, message);
}

void wf_hf_object_free(hf_object *o) {
    free(o->values), free(o->text), free(o->keys);
    *o = (hf_object){ 0 };
}

const hf_value *wf_hf_find(const hf_object *o, const char *key) {
    const hf_value *v =
        o->n ? bsearch(&(hf_value){ .key = key }, o->values, (size_t)o->n, sizeof *v, by_key)
             : NULL;
    return v && !wf_hf_is_null(v) ? v : NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_word(const hf_value *v, const char *word) {
    return v->bytes == strlen(word) && memcmp(v->text, word, v->bytes) == 0;
}

bool wf_hf_is_null(const hf_value *v) {
    return is_word(v, "null");
}

bool wf_hf_bool(const hf_value *v, bool *out) {
    *out = is_word(v, "true");
    return *out || is_word(v, "false");
}

bool wf_hf_real(const hf_value *v, double *out) {
    char text[64];
    if (v->bytes >= sizeof text || !strchr("-0123456789", *v->text)) return false;
    memcpy(text, v->text, v->bytes);
    text[v->bytes] = '\0';
    return wf_parse_real(text, out);
}

/* True for a whole number in any notation, such as 512 and 512.0. */
bool wf_hf_int(const hf_value *v, int64_t *out) {
    double x;
    if (!wf_hf_real(v, &x) || !(x >= -9e15 && x <= 9e15) || x != (double)(int64_t)x) return false;
    *out = (int64_t)x;
    return true;
}

/* Starts to read a value. The reader decodes in place, so it reads a copy. Returns the copy, which
 * the caller frees; NULL: out of memory. */
static char *begin(struct wf_json *j, const hf_value *v) {
    char *copy = wf_copy(v->text, v->bytes);
    if (copy) wf_json_begin(j, copy, v->bytes);
    return copy;
}

bool wf_hf_string(const hf_value *v, char *out, size_t size) {
    struct wf_json j;
    if (*v->text != '"') return false;
    char *string, *copy = begin(&j, v);
    bool ok = copy && wf_json_string(&j, &string) && strlen(string) < size;
    if (ok) memcpy(out, string, strlen(string) + 1);
    free(copy);
    return ok;
}

static bool one_id(struct wf_json *j, int depth, int32_t *id) {
    int64_t value = 0;
    bool first = true;
    if (depth == 2 && !wf_json_item(j, &first)) return false;
    if (!wf_json_size(j, &value) || value > INT32_MAX) return false;
    *id = (int32_t)value;
    return depth == 1 || (!wf_json_item(j, &first) && !*j->error);
}

int wf_hf_ids(const hf_value *v, int depth, int32_t *ids, int most) {
    struct wf_json j;
    char *copy = begin(&j, v);
    int n = 0;
    bool ok = copy, first = true;
    while (ok && wf_json_item(&j, &first)) ok = n < most && one_id(&j, depth, &ids[n++]);
    ok = ok && !*j.error;
    free(copy);
    return ok ? n : -1;
}

bool wf_hf_id(const hf_value *v, int64_t *out) {
    int32_t id;
    if (*v->text != '[') return wf_hf_int(v, out) && *out >= 0 && *out <= INT32_MAX;
    if (wf_hf_ids(v, 1, &id, 1) != 1) return false;
    *out = id;
    return true;
}

bool wf_hf_reals(const hf_value *v, double *out, int n) {
    const char *at = v->text + 1, *end = v->text + v->bytes - 1;
    if (v->bytes < 2 || *v->text != '[') return false;
    for (int i = 0; i < n; i++) {
        const char *stop = i + 1 < n ? memchr(at, ',', (size_t)(end - at)) : end;
        while (stop && at < stop && strchr(" \t\r\n", *at)) at++;
        size_t bytes = stop ? (size_t)(stop - at) : 0;
        while (bytes && strchr(" \t\r\n", at[bytes - 1])) bytes--;
        if (!bytes || !wf_hf_real(&(hf_value){ v->key, at, bytes }, &out[i])) return false;
        at = stop + 1;
    }
    return true;
}

size_t wf_hf_compact(const hf_value *v, char *out, size_t size) {
    size_t n = 0;
    bool inside = false;
    for (size_t i = 0; i < v->bytes; i++) {
        char c = v->text[i];
        if (!inside && strchr(" \t\r\n", c)) continue;
        if (n + 1 < size) out[n] = c;
        n++;
        bool escaped = inside && c == '\\' && i + 1 < v->bytes;
        if (escaped && ++i && n + 1 < size) out[n] = v->text[i];
        n += escaped;
        if (c == '"') inside = !inside;
    }
    if (size) out[n < size ? n : size - 1] = '\0';
    return n;
}

/* Long text is cut between characters, because half a character would be no UTF-8. */
const char *wf_hf_show(const hf_value *v, char out[HF_SHOWN]) {
    if (wf_hf_compact(v, out, HF_SHOWN) < HF_SHOWN) return out;
    size_t n = HF_SHOWN - 4;
    while (n && wf_utf8_continues(out[n])) n--;
    memcpy(out + n, "...", 4);
    return out;
}

bool wf_hf_wrong(const hf_object *o, const hf_value *v, const char *want, char *message) {
    char text[HF_SHOWN];
    return fail(message, "%s: '%.60s' is %s, not %s", o->file, v->key, wf_hf_show(v, text), want);
}

bool wf_hf_flag(const hf_object *o, const char *key, bool *out, char *message) {
    const hf_value *v = wf_hf_find(o, key);
    return !v || wf_hf_bool(v, out) || wf_hf_wrong(o, v, "true or false", message);
}

bool wf_hf_lists(const hf_value *v, const char *string) {
    struct wf_json j;
    char *copy = begin(&j, v), *item;
    bool found = false, first = true;
    while (copy && wf_json_item(&j, &first) && wf_json_string(&j, &item))
        found = found || strcmp(item, string) == 0;
    free(copy);
    return found;
}

bool wf_hf_listed(const char *const *names, int most, const char *name) {
    for (int i = 0; names && i < most && names[i]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}
