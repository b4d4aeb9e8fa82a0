/* tools/emit/emit_page.c - writes a page that runs a model. See emit_page.h.
 *
 * The page's data are
 *     file, model     name of the model's file, the model in a sentence
 *     ids             true: the model's lines are ids, not text
 *     end_id          the token that ends an output
 *     start_first     true: the start token stands before a prompt, not behind it
 *     start_if_empty  true: it stands there only without a prompt
 *     maps            [name, layers, heads, the side of queries, the side of keys]; a side is 0 for
 *                     the source, 1 for the tokens that the decoder reads
 *     pieces          of the source's vocabulary, and of the output's; null: tokens are ids
 *     wasm            the module in base64: tools/page/model.js calls what plain_page.c exports */
#include "emit_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile_wasm.h"
#include "tools/cli/refused.h"
#include "tools/data/language.h"
#include "tools/page/page.h"

extern const char *const plain_page_text[];

static void write_pieces(jsonl *data, const emitted *e, int side) {
    if (!e->pieces[side]) {
        json_text(data, NULL, NULL);
        return;
    }
    json_open(data, NULL, '[');
    for (int64_t i = 0; i < e->n_pieces[side]; i++) json_text(data, NULL, e->pieces[side][i]);
    json_close(data, ']');
}

static void write_maps(jsonl *data, const emitted *e) {
    json_int(data, "end_id", e->end_id);
    json_bool(data, "start_first", e->start_first);
    json_bool(data, "start_if_empty", e->start_if_empty);
    json_open(data, "maps", '[');
    for (int i = 0; i < e->n_maps; i++) {
        const wf_attention_map *map = &e->maps[i];
        json_key(data, NULL);
        json_raw(data, "[\"%s\",%d,%d,%d,%d]", map->name, (int)map->layers, e->heads[i],
                 !map->source_queries, !map->source_keys);
    }
    json_close(data, ']');
    json_open(data, "pieces", '[');
    write_pieces(data, e, SIDE_SRC);
    write_pieces(data, e, SIDE_TGT);
    json_close(data, ']');
}

static void free_pieces(emitted *e) {
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < e->n_pieces[side]; i++) free(e->pieces[side][i]);
        free(e->pieces[side]);
        e->pieces[side] = NULL;
    }
}

static bool write_page(FILE *f, const emitted *e, const char *file, const wasm_module *w) {
    char title[WF_MESSAGE];
    page p;
    snprintf(title, sizeof title, "weft: %.200s", file);
    jsonl *data = page_begin(&p, f, title, page_model_css, page_model_js);
    json_text(data, "file", file);
    json_text(data, "model", e->about);
    json_bool(data, "ids", e->ids);
    write_maps(data, e);
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
    free_pieces(e);
    free(e->text);
    e->text = text;
    return true;
}
