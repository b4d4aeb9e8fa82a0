/* models/hf/hf_not_done.c - settings of a search that weft does not support, which an import keeps
 * as "name=value; name=value" so that an export writes them back. */
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "models/message.h"

/* The length of a value in bytes: it ends at "; " outside of strings and brackets, or at the
 * end. */
static size_t value_bytes(const char *text) {
    int depth = 0;
    bool quoted = false;
    size_t n = 0;
    for (; text[n]; n++) {
        char c = text[n];
        if (quoted && c == '\\' && text[n + 1])
            n++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            depth++;
        else if (!quoted && (c == ']' || c == '}'))
            depth--;
        else if (!quoted && depth == 0 && strncmp(text + n, "; ", 2) == 0)
            break;
    }
    return n;
}

static bool put_pair(wf_text *t, const char **at) {
    char name[HF_SHOWN];
    size_t n = strcspn(*at, "="), bytes;
    if ((*at)[n] != '=' || n >= sizeof name) return false;
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n + 1;
    bytes = value_bytes(*at);
    wf_text_add(t, t->length > 1 ? "," : "", t->length > 1);
    wf_hf_put_string(t, name);
    wf_text_puts(t, ":");
    wf_text_add(t, *at, bytes);
    *at += bytes;
    *at += strncmp(*at, "; ", 2) == 0 ? 2 : 0;
    return true;
}

bool wf_hf_not_done(hf_object *o, const wf_generation *g, char *message) {
    wf_text t = { 0 };
    const char *at = g->not_done;
    bool ok = true;
    *o = (hf_object){ 0 };
    wf_text_puts(&t, "{");
    while (*at && ok) ok = put_pair(&t, &at);
    wf_text_puts(&t, "}");
    if (t.lacks || !ok) {
        free(t.at);
        return fail(message, t.lacks ? "out of memory" : "generate.not-done: no list of settings");
    }
    if (!wf_hf_object_parse(o, "generate.not-done", t.at, t.length, message)) return false;
    for (int i = 0; i < o->n; i++)
        if (!wf_hf_may_be_not_done(o->values[i].key, g->options.sample))
            return fail(message, "generate.not-done: '%.60s' is not a setting of this kind",
                        o->values[i].key);
    return true;
}
