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

/* Reads the settings of the search, whose reader takes the configuration as an hf_config. */
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

bool wf_hf_import_lm(const char *folder, const hf_object *config, wf_hf *out, char *message) {
    const hf_lm_family *family;
    hf_lm_config c;
    return wf_hf_lm_read_config(config, &family, &c, message) &&
           read_search(folder, config, &c, out, message) &&
           wf_hf_lm_complete(family, &c, message) &&
           read_weights(folder, family, &c, out, message) &&
           wf_hf_lm_read_tokenizer(folder, &c, out, message);
}
