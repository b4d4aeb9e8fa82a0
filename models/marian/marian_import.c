/* models/marian/marian_import.c - a file of Marian as a model of weft; see marian_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/marian_internal.h"
#include "models/message.h"
#include "models/text_formats.h"

/* The special ids of one side. */
typedef struct ids {
    int32_t end, unknown;
} ids;

static wf_tokenizer *tokenizer(const void *model, size_t bytes, bool source, int64_t vocabulary,
                               ids *special, char *message) {
    wf_sentencepiece_options o;
    char why[WF_MESSAGE];
    const char *side = source ? "source" : "target";
    if (!wf_sentencepiece_defaults(model, bytes, &o, why))
        return fail(message, "the vocabulary of the %s: %.200s", side, why), NULL;
    *special = (ids){ o.special[WF_END_ID], o.special[WF_UNK_ID] };
    if (special->end < 0) return fail(message, "the vocabulary of the %s has no </s>", side), NULL;
    o.special[WF_START_ID] = special->end;
    if (source) {
        o.after = &special->end;
        o.n_after = 1;
    }
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, why);
    if (!t) return fail(message, "the vocabulary of the %s: %.200s", side, why), NULL;
    if (wf_tokenizer_size(t) == vocabulary) return t;
    fail(message, "the vocabulary of the %s has %lld pieces, and the model %lld", side,
         (long long)wf_tokenizer_size(t), (long long)vocabulary);
    wf_tokenizer_free(t);
    return NULL;
}

static bool read_tokenizers(const wf_marian_files *files, const wf_transformer_config *c,
                            wf_hf *out, ids *target, char *message) {
    ids source;
    *target = (ids){ 0, 1 };
    if (!files->src && !files->tgt) return true;
    if (!files->src || !files->tgt)
        return fail(message, "there is a vocabulary of one side, and none of the other");
    out->src = tokenizer(files->src, files->src_bytes, true, c->src_vocab, &source, message);
    if (out->src)
        out->tgt = tokenizer(files->tgt, files->tgt_bytes, false, c->tgt_vocab, target, message);
    return out->tgt != NULL;
}

/* Marian's search: at most twice as many tokens as the source has with its </s>, and no <unk>. It
 * is greedy, as in Firefox. */
static void set_search(wf_generation *g, const ids *target) {
    g->options = wf_decode_defaults();
    g->options.max_len_a = 2;
    g->options.max_len_b = 0;
    g->options.at_limit = WF_LIMIT_NO_END;
    g->options.stop = WF_STOP_SHRINK;
    if (target->unknown < 0 || target->unknown == target->end) return;
    g->banned[0] = target->unknown;
    g->n_banned = 1;
}

static bool import(marian_file *f, const wf_marian_files *files, wf_hf *out, char *message) {
    wf_transformer_config c;
    ids target;
    const marian_item *settings = wf_marian_find(f, MARIAN_SETTINGS);
    if (!settings || settings->type != MARIAN_TEXT)
        return fail(message, "there are no settings '" MARIAN_SETTINGS "'");
    if (!wf_marian_read_settings(settings->data, (size_t)settings->count, &c, message) ||
        !read_tokenizers(files, &c, out, &target, message))
        return false;
    if (target.end >= c.tgt_vocab)
        return fail(message, "the id of </s>, %d, is not in the vocabulary", (int)target.end);
    if (target.unknown >= c.tgt_vocab) target.unknown = -1;
    c.start_id = c.end_id = target.end;
    out->model = wf_transformer_new(&c, NULL, WF_F32, 0, message);
    if (!out->model) return false;
    if (!wf_ok(out->model->graph)) return fail(message, "%s", wf_error(out->model->graph));
    set_search(&out->generation, &target);
    if (files->search &&
        !wf_marian_read_search(files->search, files->search_bytes, &out->generation, message))
        return false;
    return wf_marian_load_weights(f, out->model, message) &&
           wf_marian_keep_scales(f, out->model, message);
}

bool wf_marian_import(const wf_marian_files *files, wf_hf *out, char *message) {
    marian_file f;
    if (out) *out = (wf_hf){ .generation.options = wf_decode_defaults() };
    if (!files || !files->model || !out)
        return fail(message, "there is no file, or no room for what is in it");
    bool ok = wf_marian_open(&f, files->model, files->model_bytes, message) &&
              import(&f, files, out, message);
    wf_marian_close(&f);
    return ok;
}
