/* models/hf/lm/lm_import.c - a folder of transformers with a language model as a model of weft. */
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "lm_family.h"
#include "models/message.h"

static bool read_weights(const char *folder, const hf_lm_family *family, const hf_lm_config *c,
                         wf_hf *out, char *message) {
    const char *name = "";
    wf_file *f = wf_hf_open_weights(folder, &name, message);
    if (!f) return false;
    wf_file_drop_loaded(f);
    out->model = wf_language_model_new(&c->c, NULL, WF_F32, 0, message);
    bool ok = out->model &&
              (wf_ok(out->model->graph) || fail(message, "%s", wf_error(out->model->graph)));
    ok = ok && wf_hf_of_file(name, wf_hf_lm_load_weights(f, family, out->model, message), message);
    wf_file_free(f);
    return ok;
}

/* Reads the search, for which a language model is described as other models are. */
static bool read_search(const char *folder, const hf_object *config, hf_lm_config *c, wf_hf *out,
                        char *message) {
    hf_search s;
    hf_config as = { .decoder_only = true, .start = -1, .end = c->end, .pad = -1 };
    as.c.src_vocab = as.c.tgt_vocab = c->c.vocab;
    as.c.max_len = c->c.max_len;
    if (!wf_hf_find_search(folder, config, &as, &s, out, message)) return false;
    c->end = as.end;
    out->generation = s.g;
    return true;
}

static bool read_tokenizer(const char *folder, const hf_lm_config *c, wf_hf *out, char *message) {
    char reason[WF_MESSAGE];
    size_t bytes;
    if (!wf_hf_exists(folder, "tokenizer.json")) {
        wf_hf_note(out->notes, "there is no tokenizer.json: the model reads and writes token ids");
        return true;
    }
    char *json = wf_hf_read(folder, "tokenizer.json", &bytes, message);
    if (!json) return false;
    const wf_json_text_options o = { .json = json,
                                     .bytes = bytes,
                                     .rows = c->c.vocab,
                                     .special = { -1, -1, c->c.start_id, c->c.end_id } };
    out->src = out->tgt = wf_tokenizer_from_json(&o, reason);
    free(json);
    return out->src || fail(message, "tokenizer.json: %.220s", reason);
}

bool wf_hf_import_lm(const char *folder, const hf_object *config, wf_hf *out, char *message) {
    const hf_lm_family *family;
    hf_lm_config c;
    return wf_hf_lm_read_config(config, &family, &c, message) &&
           read_search(folder, config, &c, out, message) &&
           wf_hf_lm_complete(family, &c, message) &&
           read_weights(folder, family, &c, out, message) &&
           read_tokenizer(folder, &c, out, message);
}
