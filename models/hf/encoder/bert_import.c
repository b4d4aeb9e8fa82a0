/* models/hf/encoder/bert_import.c - a folder of transformers or of sentence-transformers with an
 * encoder as a model of weft, and back. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "core/file_internal.h"
#include "models/message.h"

/* ---- in -------------------------------------------------------------------------------------- */

static bool load_dense(const char *folder, wf_hf *out, char *message) {
    const char *name = "";
    if (!wf_encoder_of(out->model)->config.dense) return true;
    wf_file *f = wf_hf_open_dense(folder, &name, message);
    bool ok = f && wf_hf_of_file(name, wf_hf_bert_load_dense(f, out->model, message), message);
    wf_file_free(f);
    return ok;
}

static bool record(wf_file *f, const char *name, const hf_object *config,
                   const hf_bert_family *family, hf_bert_config *c, wf_hf *out, char *message) {
    wf_hf_bert_find_heads(f, family, &c->c);
    if (!c->c.classes && wf_hf_bert_names_class(config, family->architectures[2]))
        return fail(message, "%s: 'classifier.weight' is missing, as %s has it", name,
                    family->architectures[2]);
    if (!wf_hf_bert_read_classes(config, c->c.classes, out, message)) return false;
    out->model = wf_encoder_new(&c->c, NULL, WF_F32, 0, message);
    if (!wf_hf_of_file("config.json", out->model, message)) return false;
    if (!wf_ok(out->model->graph)) return fail(message, "%s", wf_error(out->model->graph));
    return wf_hf_of_file(name, wf_hf_bert_load_weights(f, family, out->model, message), message);
}

static bool read_weights(const char *folder, const hf_object *config, const hf_bert_family *family,
                         hf_bert_config *c, wf_hf *out, char *message) {
    const char *name = "";
    wf_file *f = wf_hf_open_weights(folder, &name, message);
    if (!f) return false;
    wf_file_drop_loaded(f);
    bool ok = record(f, name, config, family, c, out, message) && load_dense(folder, out, message);
    wf_file_free(f);
    return ok;
}

bool wf_hf_import_encoder(const char *folder, const hf_object *config, wf_hf *out, char *message) {
    const hf_bert_family *family;
    hf_bert_config c;
    return wf_hf_bert_read_config(config, &family, &c, message) &&
           wf_hf_read_sentence(folder, &c, out, message) &&
           wf_hf_bert_read_longest(folder, &c, message) &&
           wf_hf_bert_read_tokenizer(folder, &c, out, message) &&
           read_weights(folder, config, family, &c, out, message);
}

/* ---- out ------------------------------------------------------------------------------------- */

bool wf_hf_bert_write(wf_hf *hf, const wf_hf_writer *to, char *message) {
    const wf_encoder_config *c = &wf_encoder_of(hf->model)->config;
    return wf_hf_bert_write_tokenizer(hf, to, message) && wf_hf_write_sentence(c, to, message) &&
           wf_hf_bert_write_dense(hf->model, to, message) &&
           wf_hf_bert_write_config(hf, to, message);
}
