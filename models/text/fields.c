/* models/text/fields.c - keeps a vocabulary; reads and writes values of a tokenizer's fields; see
 * fields.h. */
#include "fields.h"

#include <limits.h>
#include <stdlib.h>

#include "core/base/utf8.h"
#include "core/file/json.h"

/* ---- a vocabulary ---------------------------------------------------------------------------- */

bool wf_known_copy(wf_known_pieces *k, const char *const *pieces, int64_t n, char *message) {
    k->at = calloc((size_t)n, sizeof *k->at);
    k->ids = calloc((size_t)n, sizeof *k->ids);
    if (!k->at || !k->ids) return fail(message, "out of memory");
    for (int32_t id = 0; id < n; id++) {
        const char *piece = pieces[id];
        size_t bytes = piece ? strlen(piece) : 0;
        int32_t next = k->texts.n;
        if (!bytes) continue;
        if (wf_utf8_prefix(piece, bytes) != bytes)
            return fail(message, "piece %d of the vocabulary is not UTF-8", (int)id);
        if (wf_strings_add(&k->texts, piece, bytes) < 0) return fail(message, "out of memory");
        if (k->texts.n == next)
            return fail(message, "piece %d of the vocabulary, '%.80s', is there twice", (int)id,
                        piece);
        k->ids[next] = id;
    }
    for (int32_t i = 0; i < k->texts.n; i++) k->at[k->ids[i]] = wf_strings_at(&k->texts, i);
    return true;
}

int32_t wf_known_id(const wf_known_pieces *k, wf_span piece) {
    int32_t i = wf_strings_find(&k->texts, piece.text, piece.bytes);
    return i < 0 ? -1 : k->ids[i];
}

void wf_known_free(wf_known_pieces *k) {
    wf_strings_free(&k->texts);
    free(k->at), free(k->ids);
}

/* ---- strings and numbers --------------------------------------------------------------------- */

static void put_bytes(void *to, const char *bytes, size_t n) {
    put(to, bytes, n);
}

void wf_put_pieces(wf_sink *to, const char *const *pieces, int64_t n) {
    for (int64_t id = 0; id < n; id++) {
        put(to, id ? "," : "[", 1);
        wf_json_quote(put_bytes, to, pieces[id] ? pieces[id] : "");
    }
    put(to, "]", 1);
}

void wf_put_ids(wf_sink *to, const int32_t *ids, int n) {
    char text[16];
    for (int i = 0; i < n; i++)
        put(to, text, (size_t)snprintf(text, sizeof text, i ? ",%d" : "%d", (int)ids[i]));
}

const char *wf_field_value(const wf_fields *f, const char *name) {
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->names[i], name)) return f->values[i];
    return NULL;
}

bool wf_field_ids(const wf_fields *f, const char *name, int32_t *ids, int *n, char *message) {
    const char *text = wf_field_value(f, name);
    *n = 0;
    for (const char *at = text; at; at = *at == ',' ? at + 1 : NULL) {
        char *end;
        bool number = (*at >= '0' && *at <= '9') || (at[0] == '-' && at[1] == '1');
        long id = number ? strtol(at, &end, 10) : 0;
        if (!number || *n == WF_MOST_AROUND || id < -1 || id > INT32_MAX || (*end && *end != ','))
            return fail(message, "'%.40s' are not some ids", text);
        ids[(*n)++] = (int32_t)id;
        at = end;
    }
    return true;
}

bool wf_field_special(const wf_fields *f, int32_t special[WF_SPECIAL_IDS], char *message) {
    int32_t ids[WF_MOST_AROUND];
    int n;
    if (!wf_field_ids(f, "special", ids, &n, message)) return false;
    if (n != WF_SPECIAL_IDS) return fail(message, "%d special ids: %d", n, WF_SPECIAL_IDS);
    memcpy(special, ids, WF_SPECIAL_IDS * sizeof *special);
    return true;
}

/* ---- pieces --------------------------------------------------------------------------------- */

bool wf_pieces_read(wf_pieces *p, const char *json, char *message) {
    struct wf_json j;
    size_t bytes = strlen(json);
    if (!(p->text = wf_copy(json, bytes))) return fail(message, "out of memory");
    if (wf_json_begin(&j, p->text, bytes))
        for (bool first = true; wf_json_item(&j, &first);) {
            char *piece;
            if (!wf_json_string(&j, &piece)) break;
            if (!wf_grow(&p->at, &p->capacity, p->n + 1, sizeof *p->at))
                return fail(message, "out of memory");
            p->at[p->n++] = *piece ? piece : NULL;
        }
    if (!*j.error) wf_json_finish(&j);
    return !*j.error || fail(message, "the vocabulary: %s", j.error);
}

void wf_pieces_free(wf_pieces *p) {
    free(p->text), free(p->at);
}
