/* tools/emit/emit_page.c - see emit_page.h.
 *
 * The page's data are
 *     file, model     name of the model's file, the model in a sentence
 *     ids             true: its lines are ids, not text
 *     wasm            the module in base64: tools/page/model.js calls what plain_page.c exports */
#include "emit_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile_wasm.h"
#include "tools/data/refused.h"
#include "tools/page/page.h"

extern const char *const plain_page_text[];

static bool write_page(FILE *f, const emitted *e, const char *file, const wasm_module *w) {
    char title[WF_MESSAGE];
    page p;
    snprintf(title, sizeof title, "weft: %.200s", file);
    jsonl *data = page_begin(&p, f, title, page_model_css, page_model_js);
    json_text(data, "file", file);
    json_text(data, "model", e->about);
    json_bool(data, "ids", e->ids);
    json_key(data, "wasm");
    json_base64(data, w->bytes, w->n);
    return page_end(&p) && fflush(f) == 0;
}

/* The whole of a stream as a string; NULL: it cannot be read, or memory is lacking. */
static char *text_of(FILE *f) {
    long n = ftell(f);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    rewind(f);
    if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
        free(text);
        text = NULL;
    }
    if (text) text[n] = '\0';
    return text;
}

bool emit_page(emitted *e, const char *path, char *message) {
    const char *slash = strrchr(path, '/');
    wasm_module w;
    if (!compile_wasm(&w, e->text, plain_page_text, message)) return false;
    FILE *f = tmpfile();
    bool ok = f && write_page(f, e, slash ? slash + 1 : path, &w);
    char *text = ok ? text_of(f) : NULL;
    if (f) fclose(f);
    free(w.bytes);
    if (!text) return refused(message, "the page could not be written: out of memory or disk");
    size_t used = strlen(e->sizes);
    snprintf(e->sizes + used, sizeof e->sizes - used,
             ", %lld bytes of WebAssembly, %lld of the page", (long long)w.n,
             (long long)strlen(text));
    free(e->text);
    e->text = text;
    return true;
}
