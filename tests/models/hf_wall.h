/* tests/models/hf_wall.h - imports and exports a folder of Hugging Face while allocations fail. */
#ifndef WEFT_TESTS_MODELS_HF_WALL_H
#define WEFT_TESTS_MODELS_HF_WALL_H

#include "hf_files.h"
#include "tests/support/wall.h"

static char imported[512]; /* the folder that the test's row imports, and a model to export */
static wf_hf *exported;

static inline bool say_tokenizer(wf_tokenizer *t) {
    wf_meta pairs[WF_TOKENIZER_META];
    char why[WF_MESSAGE] = "";
    int n = 0;
    if (!t) return true;
    bool ok = wf_tokenizer_to_meta(t, "t", pairs, &n, why);
    must(ok || *why, "a tokenizer is not kept, without a message");
    for (int i = 0; i < n; i++) wall_say(pairs[i].value, strlen(pairs[i].value));
    return ok;
}

static inline bool say_import(const wf_hf *hf) {
    const wf_graph *g = hf->model->graph;
    wall_say(hf->notes, strlen(hf->notes));
    for (int id = 0; id < wf_node_count(g); id++)
        if (wf_node(g, id)->kind == WF_PARAM && !wall_say_leaf(wf_node(g, id))) return false;
    return say_tokenizer(hf->src) && (hf->tgt == hf->src || say_tokenizer(hf->tgt));
}

static inline bool importing(void) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    bool ok = wf_hf_import(imported, &hf, message);
    must(ok || *message, "an import fails without a message");
    ok = ok && say_import(&hf);
    wf_hf_free(&hf);
    return ok;
}

static inline bool say_file(void *user, const char *name, const void *bytes, size_t size,
                            char *message) {
    (void)user, (void)message;
    wall_say(name, strlen(name)), wall_say(bytes, size);
    return true;
}

static inline bool exporting(void) {
    char message[WF_MESSAGE] = "", path[512];
    int mark = wall_mark();
    bool ok = wf_hf_export(exported, folder, &(wf_hf_writer){ .put = say_file }, message);
    must(ok || *message, "an export fails without a message");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (ok) wall_say_file(path), wall_say(exported->notes, strlen(exported->notes));
    if (!ok) wall_take_back(mark);
    return ok;
}

/* Imports a recorded folder, or, with bit 0 of `way`, exports its model. Each allocation fails in
 * turn; with bit 1, all later ones fail, too. */
static inline void survive_failures(const char *name, int way) {
    char message[WF_MESSAGE] = "";
    bool out = way & 1, persistent = way & 2;
    const wall_work in_or_out = { out ? "export" : "import", out ? exporting : importing, false };
    recorded(name, imported);
    wf_hf whole = import(imported);
    exported = &whole;
    /* a first export, after which each leaf has its memory */
    ck_assert_msg(wf_hf_export(&whole, folder, &whole_files, message), "%s", message);
    wall_fail_each(&in_or_out, persistent);
    wf_hf_free(&whole);
}

#endif
