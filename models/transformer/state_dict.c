/* models/transformer/state_dict.c - a Transformer from a state_dict that PyTorch saved, and back.
 *
 * Names and shapes determine widths, layers, vocabularies, biases, final norms, learned positions
 * and ties. The caller gives the rest: heads, the place of norms, sinusoids, scaling, activation.
 * model_file.c matches names with parameters. Names in a file may have a prefix, such as "module."
 * of DataParallel or "model." of a wrapper. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bf16.h"
#include "core/file/loader.h"
#include "core/graph_internal.h"
#include "models/file/model_file.h"
#include "models/message.h"
#include "nn/layers_internal.h"
#include "tied.h"

#define ENCODER "transformer.encoder."
#define DECODER "transformer.decoder."

typedef struct reading {
    const wf_file *file;
    char prefix[100];
    wf_transformer_config *c;
    char *message;
} reading;

/* ---- the prefix ------------------------------------------------------------------------------ */

/* True if the name is one by which a Transformer is recognised. *length becomes the length of the
 * prefix before it. */
static bool has_anchor(const char *name, size_t *length) {
    static const char *const anchors[] = { "src_embedding.weight", "tgt_embedding.weight", ENCODER,
                                           DECODER };
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(name, anchors[i]);
        if (!at || (at > name && at[-1] != '.')) continue;
        if (i < 2 && at[strlen(anchors[i])]) continue; /* a table's name must end there */
        *length = (size_t)(at - name);
        return true;
    }
    return false;
}

static bool find_prefix(reading *r) {
    const char *first = NULL;
    size_t length = 0, other;
    for (int i = 0; i < wf_file_count(r->file); i++) {
        const char *name = wf_file_at(r->file, i)->name;
        if (!has_anchor(name, &other)) continue;
        if (first && (other != length || memcmp(first, name, length) != 0))
            return fail(r->message, "'%.90s' and '%.90s' are of two models: save one of them alone",
                        first, name);
        first = name;
        length = other;
    }
    if (!first || length >= sizeof r->prefix)
        return fail(r->message, "no tensor is named '" ENCODER "layers.0...' or "
                                "'src_embedding.weight': name the module's parts so, and save its "
                                "state_dict again");
    memcpy(r->prefix, first, length);
    r->prefix[length] = '\0';
    return true;
}

static const wf_entry *find(const reading *r, const char *name) {
    char full[WF_MESSAGE];
    snprintf(full, sizeof full, "%s%s", r->prefix, name);
    return wf_file_find(r->file, full);
}

/* The name of tensor i without the prefix; "" if it does not have the prefix. */
static const char *name_at(const reading *r, int i) {
    const char *name = wf_file_at(r->file, i)->name;
    size_t n = strlen(r->prefix);
    return strncmp(name, r->prefix, n) == 0 ? name + n : "";
}

/* ---- tables and ties ------------------------------------------------------------------------- */

/* Finds table i: under its own name, or under the name that safetensors' save_model kept. */
static const wf_entry *find_table(const reading *r, int i) {
    char full[WF_MESSAGE];
    snprintf(full, sizeof full, "%s%s", r->prefix, wf_tables[i]);
    const wf_entry *e = wf_file_find(r->file, full);
    const char *kept = e ? NULL : wf_file_meta(r->file, full);
    return kept ? wf_file_find(r->file, kept) : e;
}

/* Finds all three tables, in the order of wf_tables. A table that the file lacks is tied. If the
 * file leaves a choice, the decoder's is tied with the output's rather than with the encoder's. */
static bool find_tables(const reading *r, const wf_entry *t[WF_TABLES]) {
    for (int i = 0; i < WF_TABLES; i++) t[i] = find_table(r, i);
    if (!t[1]) t[1] = t[2] ? t[2] : t[0];
    if (!t[2]) t[2] = t[1];
    if (!t[0]) t[0] = t[1];
    if (!t[0])
        return fail(r->message,
                    "there is no table of embeddings: '%ssrc_embedding.weight' is missing",
                    r->prefix);
    for (int i = 0; i < WF_TABLES; i++) {
        char shape[96];
        if (t[i]->ndim != 2)
            return fail(r->message, "'%.90s' is %s, not [vocabulary, width]", t[i]->name,
                        wf_shape_text(NULL, t[i]->ndim, t[i]->shape, shape, sizeof shape));
    }
    return true;
}

static bool derive_tables(const reading *r) {
    const wf_entry *t[WF_TABLES];
    if (!find_tables(r, t)) return false;
    r->c->src_vocab = t[0]->shape[0];
    r->c->tgt_vocab = t[2]->shape[0];
    r->c->d_model = t[0]->shape[1];
    r->c->tie = !wf_same_entries(r->file, t[1], t[2])  ? WF_TIE_NONE
                : wf_same_entries(r->file, t[0], t[1]) ? WF_TIE_ALL
                                                       : WF_TIE_DECODER;
    for (int i = 0; r->c->tie == WF_TIE_NONE && i < WF_TABLES; i++)
        if (!find(r, wf_tables[i]))
            return fail(r->message,
                        "'%s%s' is not in the file, and no tie that weft knows stands for it: save "
                        "the table under its own name, too",
                        r->prefix, wf_tables[i]);
    return true;
}

/* ---- further settings that names and shapes determine ---------------------------------------- */

/* One more than the highest layer number in names that begin with `stack`. If a layer below it is
 * missing, loading the weights fails. */
static int64_t count_layers(const reading *r, const char *stack) {
    int64_t layers = 0;
    for (int i = 0; i < wf_file_count(r->file); i++) {
        const char *name = name_at(r, i);
        if (strncmp(name, stack, strlen(stack)) != 0) continue;
        long last = strtol(name + strlen(stack), NULL, 10);
        if (last >= layers) layers = last < INT32_MAX ? last + 1 : INT32_MAX; /* refused later */
    }
    return layers;
}

static bool has_bias(const reading *r) {
    for (int i = 0; i < wf_file_count(r->file); i++) {
        const char *name = name_at(r, i), *end = name + strlen(name);
        if (strncmp(name, "transformer.", 12) == 0 && strcmp(end - 4, "bias") == 0) return true;
    }
    return false;
}

static void derive_layers(const reading *r) {
    wf_transformer_config *c = r->c;
    c->encoder_layers = count_layers(r, ENCODER "layers.");
    c->decoder_layers = count_layers(r, DECODER "layers.");
    c->encoder_norm = find(r, ENCODER "norm.weight");
    c->decoder_norm = find(r, DECODER "norm.weight");
    c->embedding_norm = find(r, "src_embedding_norm.weight");
    c->bias = has_bias(r);
    c->output_bias = find(r, "output.bias");
    const wf_entry *inner = find(r, ENCODER "layers.0.linear1.weight");
    if (!inner) inner = find(r, DECODER "layers.0.linear1.weight");
    if (inner && inner->ndim == 2) c->dim_feedforward = inner->shape[0];
}

static bool derive_positions(const reading *r) {
    const wf_entry *src = find(r, "src_position.weight"), *tgt = find(r, "tgt_position.weight");
    if (!src && !tgt) return true;
    r->c->positions = WF_POSITIONS_LEARNED;
    if (src && src->ndim) r->c->max_len = src->shape[0];
    if (src && tgt && src->ndim && tgt->ndim && src->shape[0] != tgt->shape[0])
        return fail(r->message,
                    "'src_position.weight' has %lld rows and 'tgt_position.weight' %lld: save both "
                    "with as many",
                    (long long)src->shape[0], (long long)tgt->shape[0]);
    return true;
}

static bool derive(reading *r) {
    if (!find_prefix(r) || !derive_tables(r) || !derive_positions(r)) return false;
    derive_layers(r);
    return r->c->encoder_layers + r->c->decoder_layers > 0 ||
           fail(r->message,
                "there are no layers: '%s" ENCODER "layers.0.linear1.weight' is missing",
                r->prefix);
}

/* Rotary positions are inside attention, where a torch.nn.Transformer has no place for them. It
 * lacks the forms of T5 and of Marian, too. */
static bool has_torch_positions(const wf_transformer_config *c, char *message) {
    if (c->decoder != WF_DECODER_ATTENTION || c->raw_keys || c->zero_start)
        return fail(message,
                    "no torch.nn.Transformer has recurrent units, raw keys or a start of zeros");
    if (c->norm != WF_LAYER_NORM || c->gated || c->head_dim || c->attention_scale != 0 ||
        c->relative_buckets || c->scale_output)
        return fail(message, "no torch.nn.Transformer has a form of T5: write it by --to hf");
    return !wf_rotates(c->positions) ||
           fail(message, "no torch.nn.Transformer has rotary positions: train the model with "
                         "--positions sinusoidal, learned or none");
}

wf_model *wf_transformer_from_state_dict(const wf_file *f, const wf_transformer_config *given,
                                         wf_dtype real, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f)), NULL;
    if (!given) return fail(message, "there is no configuration"), NULL;
    if (!has_torch_positions(given, message)) return NULL;
    wf_transformer_config c = *given;
    reading r = { .file = f, .c = &c, .message = message };
    if (!derive(&r)) return NULL;
    wf_model *m = wf_transformer_new(&c, NULL, real, 0, message);
    if (m && wf_model_load_prefixed(m, f, r.prefix, message)) return m;
    wf_model_free(m);
    return NULL;
}

/* ---- back ------------------------------------------------------------------------------------ */

/* A parameter's values in the file's type, which the caller frees; NULL: out of memory. */
static void *values_of(const wf_tensor *t, bool bf16) {
    size_t n = (size_t)wf_count(t), bytes = wf_bytes(t);
    void *data = malloc(bytes + 1);
    if (!data || !wf_read(t, data, bytes)) return free(data), NULL;
    /* converted in place, because no type is larger than the parameter's */
    for (size_t i = 0; i < n; i++) {
        float value = t->dtype == WF_F64 ? (float)((double *)data)[i] : ((float *)data)[i];
        uint16_t half = wf_to_bf16(value);
        memcpy((char *)data + i * (bf16 ? 2 : 4), bf16 ? (void *)&half : (void *)&value,
               bf16 ? 2 : 4);
    }
    return data;
}

/* Lists every parameter of the Transformer itself, and a tied table under all of its names, as
 * state_dict() does and load_state_dict expects. Returns how many; -1: out of memory. */
static int list_entries(const wf_model *m, bool bf16, wf_entry *entries) {
    int n = 0;
    for (int id = 0; id < m->own_nodes; id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind != WF_PARAM || wf_is_added(m, t)) continue;
        wf_entry *e = &entries[n++];
        *e = (wf_entry){ .name = t->name, .dtype = bf16 ? "BF16" : "F32", .ndim = t->ndim };
        memcpy(e->shape, t->shape, sizeof e->shape);
        e->bytes = (size_t)wf_count(t) * (bf16 ? 2 : 4);
        if (!(e->data = values_of(t, bf16))) return -1;
        if (!m->n_tied || strcmp(t->name, m->tied[0]) != 0) continue;
        for (int i = 1; i < m->n_tied; i++, n++) {
            entries[n] = *e;
            entries[n].name = m->tied[i];
        }
    }
    return n;
}

/* Frees the entries. Copies of a tied table follow it and share its data. */
static void free_entries(wf_entry *entries) {
    for (int i = 0; entries[i].name; i++)
        if (i == 0 || entries[i].data != entries[i - 1].data)
            free((void *)(uintptr_t)entries[i].data);
    free(entries);
}

bool wf_transformer_save_state_dict(const wf_model *m, const char *path, bool bf16, char *message) {
    const wf_meta format = { "format", "pt" };
    if (!path) return fail(message, "no path to save the state_dict to");
    if (!m || !wf_ok(m->graph))
        return fail(message, "%s: %s", path, m ? wf_error(m->graph) : "there is no model");
    if (!wf_transformer_of(m))
        return fail(message, "%s: no torch.nn.Transformer can load this kind of model (%s)", path,
                    m->kind->title);
    if (!has_torch_positions(&wf_transformer_of(m)->config, message)) return false;
    size_t room = (size_t)wf_node_count(m->graph) + WF_TABLES + 1;
    wf_entry *entries = calloc(room, sizeof *entries);
    int n = entries ? list_entries(m, bf16, entries) : -1;
    bool ok = n < 0 ? fail(message, "%s: out of memory", path)
                    : wf_file_save(path, entries, n, &format, 1, message);
    if (entries) free_entries(entries);
    return ok;
}
