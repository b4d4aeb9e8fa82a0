/* models/hf/export.c - a model of weft as a folder that transformers opens; see hf.h. import.c
 * reads the folder as the same model again, except for differences that the notes list. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "folder.h"
#include "models/choices.h"
#include "models/hf_internal.h"
#include "models/language_model.h"
#include "models/message.h"

/* ---- the configuration as a config.json ------------------------------------------------------ */

const char *wf_hf_activation_name(wf_activation activation) {
    for (int i = 0; i < wf_hf_n_activations; i++)
        if (wf_hf_activations[i].activation == activation) return wf_hf_activations[i].name;
    return NULL;
}

bool wf_hf_has_family(const wf_model *m) {
    const wf_transformer *t = wf_transformer_of(m);
    return !t || wf_hf_family_of(&t->config);
}

static bool describe(const wf_hf *hf, const hf_family **family, hf_config *c, char *message) {
    const wf_transformer_config *t = &wf_transformer_of(hf->model)->config;
    *family = wf_hf_family_of(t);
    if (!*family)
        return fail(message,
                    "no family of %s has these positions, norms, ties and output bias together",
                    wf_hf_family_names());
    if (!(*family)->t5 && (!t->bias || t->layer_norm_eps != 1e-5))
        return fail(message, "a %s model has biases, and 1e-05 inside its norms' roots",
                    (*family)->name);
    char form[32];
    if ((*family)->t5 ? !wf_hf_t5_feed_forward_name(t->gated, t->activation, form)
                      : !wf_hf_activation_name(t->activation))
        return fail(message, "transformers has no activation '%s'",
                    wf_activation_name((int)t->activation));
    *c = (hf_config){ .c = *t, .pad = t->pad_id, .start = t->start_id, .end = t->end_id };
    c->decoder_heads = t->num_heads;
    c->decoder_ffn = t->dim_feedforward;
    c->shared = !(*family)->may_separate || t->tie == WF_TIE_ALL;
    c->tied = t->tie == WF_TIE_ALL || t->tie == WF_TIE_DECODER;
    c->scaled = t->scale_output;
    if ((*family)->t5 && !t->head_dim) c->c.head_dim = t->d_model / t->num_heads;
    if (c->pad < 0 && (*family)->t5) c->pad = c->start;
    if (c->pad < 0 && (*family)->may_separate) c->pad = c->start; /* as Marian has it */
    if (c->pad < 0 && hf->src) c->pad = wf_tokenizer_special(hf->src, WF_PAD_ID);
    if (c->pad < 0 || ((*family)->pad >= 0 && c->pad != (*family)->pad))
        return fail(message, "the padding id is %lld: a %s model needs one%s", (long long)c->pad,
                    (*family)->name, (*family)->pad >= 0 ? ", which is 1" : "");
    return true;
}

/* ---- config.json ----------------------------------------------------------------------------- */

static bool only_of_two(const char *name) {
    return strcmp(name, "decoder_vocab_size") == 0 ||
           strcmp(name, "share_encoder_decoder_embeddings") == 0;
}

static bool write_config(const hf_family *family, const hf_config *c, const wf_hf_writer *to,
                         char *message) {
    wf_text t = { 0 };
    wf_hf_put_type(&t, family->architecture, family->name);
    wf_hf_put_flag(&t, "is_encoder_decoder", true);
    wf_hf_put_name(&t, "dtype", "float32");
    for (const hf_key *row = family->keys; row->name; row++)
        if (family->may_separate || !only_of_two(row->name)) wf_hf_put_row(&t, row, c, NULL);
    return wf_hf_put_object(&t, "config.json", to, message);
}

/* ---- generation_config.json ------------------------------------------------------------------ */

/* Writes a list of ids; nested: each is a list of its own. */
static void put_ids(wf_text *t, const char *name, bool nested, const int32_t *ids, int n) {
    wf_hf_put_key(t, name);
    for (int i = 0; i < n; i++)
        wf_hf_put_as(t, nested ? "%s[%d]" : "%s%d", i ? ", " : "[", (int)ids[i]);
    wf_text_puts(t, "]");
}

/* transformers divides scores by a power of the length n. The penalty of 'gnmt', ((5 + n) /
 * 6)^alpha, grows like n to the power alpha n / (5 + n), which depends on n. The exponent that is
 * written is that of 20 tokens, 0.8 alpha. */
enum { USUAL_LENGTH = 20, GNMT_OFFSET = 5 };
static double length_penalty(const wf_decode_options *d) {
    if (d->penalty == WF_PENALTY_NONE) return 0;
    if (d->penalty == WF_PENALTY_AVERAGE) return d->alpha;
    return round(1e6 * d->alpha * USUAL_LENGTH / (USUAL_LENGTH + GNMT_OFFSET)) / 1e6;
}

static void tell_what_is_lost(const wf_generation *g, char *notes) {
    const wf_decode_options *d = &g->options;
    if (d->penalty == WF_PENALTY_GNMT && d->beam > 1) {
        char is[WF_REAL_TEXT], was[WF_REAL_TEXT];
        wf_hf_note(notes,
                   "generation_config.json: 'length_penalty' is %s, which weighs outputs of about "
                   "%d tokens as the penalty 'gnmt' of %s, which transformers does not have",
                   wf_hf_real_text(length_penalty(d), is), USUAL_LENGTH,
                   wf_hf_real_text(d->alpha, was));
    }
    if (d->max_len_a > 0)
        wf_hf_note(notes, "generation_config.json: the longest output is that of the model: "
                          "transformers has no limit by the source's length");
    if (d->stop == WF_STOP_SHRINK && d->beam > 1)
        wf_hf_note(notes, "generation_config.json: transformers has no beam that shrinks: "
                          "'early_stopping' is true");
    if (g->n_forced > 1)
        wf_hf_note(notes, "generation_config.json: transformers forces one first token, not %d",
                   g->n_forced);
}

/* The max_length of an exported T5 whose search has no limit. Without max_length, an output that
 * does not end would grow until memory runs out. */
enum { T5_LONGEST = 512 };

static int64_t longest(const hf_config *c, const wf_decode_options *d) {
    int64_t counted = d->at_limit == WF_LIMIT_NO_END ? 1 : 2;
    bool fixed = d->max_len_a == 0 && d->max_len_b < (double)c->c.max_len;
    int64_t most = c->c.relative_buckets && c->c.max_len > T5_LONGEST ? T5_LONGEST : c->c.max_len;
    return fixed ? (int64_t)d->max_len_b + counted : most;
}

/* Writes the settings of beam search. transformers warns if another search has them. */
static void put_beam(wf_text *t, const wf_decode_options *d) {
    wf_hf_put_real(t, "length_penalty", length_penalty(d));
    if (d->stop == WF_STOP_LONGEST) {
        wf_hf_put_name(t, "early_stopping", "never");
    } else
        wf_hf_put_flag(t, "early_stopping", d->stop != WF_STOP_PRESENT);
}

static void put_sample(wf_text *t, const wf_decode_options *d) {
    wf_hf_put_flag(t, "do_sample", true);
    wf_hf_put_int(t, "top_k", d->top_k);
    wf_hf_put_real(t, "top_p", d->top_p);
    wf_hf_put_real(t, "temperature", d->temperature);
}

static void put_rules(wf_text *t, const wf_generation *g) {
    const wf_decode_options *d = &g->options;
    if (d->no_repeat_ngram) wf_hf_put_int(t, "no_repeat_ngram_size", d->no_repeat_ngram);
    if (d->repetition_penalty != 1) wf_hf_put_real(t, "repetition_penalty", d->repetition_penalty);
    if (d->decay != 1) {
        char text[WF_REAL_TEXT];
        wf_hf_put_key(t, "exponential_decay_length_penalty");
        wf_hf_put_as(t, "[%lld, %s]", (long long)d->decay_start, wf_hf_real_text(d->decay, text));
    }
    if (g->n_begin_banned)
        put_ids(t, "begin_suppress_tokens", false, g->begin_banned, g->n_begin_banned);
}

/* Writes back imported settings that weft does not support. */
static bool put_not_done(wf_text *t, const wf_generation *g, char *message) {
    hf_object o;
    bool ok = wf_hf_not_done(&o, g, message);
    for (int i = 0; ok && i < o.n; i++) {
        wf_hf_put_key(t, o.values[i].key);
        wf_text_add(t, o.values[i].text, o.values[i].bytes);
    }
    wf_hf_object_free(&o);
    return ok;
}

/* Writes special ids, the size of the beam and limits of lengths. In a language model the lengths
 * do not include the prompt. */
static void put_lengths(wf_text *t, const hf_config *c, const wf_generation *g) {
    const wf_decode_options *d = &g->options;
    if (c->decoder_only) {
        wf_hf_put_int(t, "bos_token_id", c->start);
        /* put_not_done writes eos_token_id if the imported folder had a list of end tokens */
        if (!strstr(g->not_done, "eos_token_id=")) wf_hf_put_int(t, "eos_token_id", c->end);
        wf_hf_put_int(t, "num_beams", d->sample ? 1 : d->beam);
        wf_hf_put_int(t, "max_new_tokens",
                      (int64_t)d->max_len_b + (d->at_limit != WF_LIMIT_NO_END));
        if (d->min_len) wf_hf_put_int(t, "min_new_tokens", d->min_len);
        return;
    }
    wf_hf_put_int(t, "decoder_start_token_id", c->start);
    wf_hf_put_int(t, "eos_token_id", c->end);
    wf_hf_put_int(t, "pad_token_id", c->pad);
    wf_hf_put_int(t, "num_beams", d->sample ? 1 : d->beam);
    wf_hf_put_int(t, "max_length", longest(c, d));
    if (d->min_len) wf_hf_put_int(t, "min_length", d->min_len + 1);
}

bool wf_hf_write_search(const hf_config *c, const wf_generation *g, int n_shut_out,
                        const wf_hf_writer *to, char *message) {
    const wf_decode_options *d = &g->options;
    wf_text t = { 0 };
    put_lengths(&t, c, g);
    if (d->sample)
        put_sample(&t, d);
    else if (d->beam > 1)
        put_beam(&t, d);
    put_rules(&t, g);
    if (d->at_limit != WF_LIMIT_NO_END) wf_hf_put_int(&t, "forced_eos_token_id", c->end);
    if (g->n_forced) wf_hf_put_int(&t, "forced_bos_token_id", g->forced[0]);
    if (g->n_banned) put_ids(&t, "bad_words_ids", true, g->banned, g->n_banned);
    if (n_shut_out || d->renormalize) wf_hf_put_flag(&t, "renormalize_logits", true);
    if (!put_not_done(&t, g, message)) {
        free(t.at);
        return false;
    }
    return wf_hf_put_object(&t, "generation_config.json", to, message);
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* The number of banned tokens, if the output's bias rules all of them out; else 0. -1: out of
 * memory. */
static int count_shut_out(const wf_model *m, const wf_generation *g) {
    const wf_tensor *bias = wf_find(m->graph, "output.bias");
    int n = 0;
    if (!bias || !g->n_banned) return 0;
    float *values = malloc(wf_bytes(bias) + 1);
    bool ok = values && wf_read(bias, values, wf_bytes(bias));
    for (int i = 0; ok && i < g->n_banned; i++)
        n += g->banned[i] < wf_count(bias) && values[g->banned[i]] == HF_SHUT_OUT;
    free(values);
    return !ok ? -1 : n == g->n_banned ? n : 0;
}

static bool own_parameters_only(const wf_model *m) {
    for (int id = 0; id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM && wf_is_added(m, wf_node(m->graph, id)))
            return false;
    return true;
}

/* ---- gathered, then written ------------------------------------------------------------------ */

enum { MOST_FILES = 16 };

/* The files of the folder, in the order in which they are written. File 0 is that of the weights,
 * of which only the name is here. */
typedef struct gathered {
    const char *names[MOST_FILES];
    void *bytes[MOST_FILES];
    size_t size[MOST_FILES];
    int n;
} gathered;

static bool gather(void *user, const char *name, const void *bytes, size_t size, char *message) {
    gathered *g = user;
    assert(g->n < MOST_FILES && wf_hf_is_file(name));
    char *copy = wf_copy(bytes, size);
    if (!copy) return fail(message, "out of memory");
    g->names[g->n] = name;
    g->bytes[g->n] = copy;
    g->size[g->n++] = size;
    return true;
}

static void gathered_free(gathered *g) {
    for (int i = 0; i < g->n; i++) free(g->bytes[i]);
}

static bool put_all(const gathered *g, const wf_hf_writer *to, char *message) {
    for (int i = 1; i < g->n; i++)
        if (!wf_hf_put_bytes(to, g->names[i], g->bytes[i], g->size[i], message)) return false;
    return true;
}

/* Makes all files other than the weights. `family` is NULL for a language model or an encoder,
 * which have families of another type. */
static bool make_files(wf_hf *hf, const hf_family *family, const hf_config *c, int n_shut_out,
                       gathered *files, char *message) {
    const wf_hf_writer to = { .put = gather, .user = files };
    if (wf_encoder_of(hf->model)) return wf_hf_bert_write(hf, &to, message);
    if (!family) return wf_hf_lm_write(hf, &to, message);
    return wf_hf_write_tokenizers(hf, family, c, &to, message) &&
           wf_hf_write_search(c, &hf->generation, n_shut_out, &to, message) &&
           write_config(family, c, &to, message);
}

static bool save_weights(const wf_hf *hf, const hf_family *family, int n_shut_out, const char *path,
                         char *message) {
    if (wf_encoder_of(hf->model)) return wf_hf_bert_save_weights(hf->model, path, message);
    if (!family) return wf_hf_lm_save_weights(hf->model, path, message);
    return wf_hf_save_weights(hf->model, family, hf->generation.banned, n_shut_out, path, message);
}

/* Writes the folder. All files other than the weights are made in memory before the first file is
 * written. */
static bool write_folder(wf_hf *hf, const char *folder, const hf_family *family, const hf_config *c,
                         int n_shut_out, const wf_hf_writer *to, char *message) {
    gathered files = { .names = { HF_WEIGHTS }, .n = 1 };
    char path[HF_PATH];
    bool ok = wf_hf_path(path, folder, HF_WEIGHTS) || fail(message, "the path is too long");
    ok = ok && make_files(hf, family, c, n_shut_out, &files, message);
    ok = ok && (!to->begin || to->begin(to->user, files.names, files.n, message)) &&
         save_weights(hf, family, n_shut_out, path, message) && put_all(&files, to, message);
    gathered_free(&files);
    return ok;
}

bool wf_hf_export(wf_hf *hf, const char *folder, const wf_hf_writer *to, char *message) {
    const hf_family *family;
    hf_config c;
    char nobody[WF_MESSAGE];
    /* the writer's functions always get a buffer for their message */
    if (!message) message = nobody;
    if (!hf || !hf->model || !folder || !to || !to->put)
        return fail(message, "there is no model, no folder, or no way to write");
    if (wf_ok(hf->model->graph) && wf_real(hf->model->graph) != WF_F32)
        return fail(message, "only a model in f32 can be written so");
    const wf_transformer *t = wf_transformer_of(hf->model);
    hf->notes[0] = '\0';
    bool whole = wf_language_model_of(hf->model) || wf_encoder_of(hf->model);
    if (whole && wf_ok(hf->model->graph) && own_parameters_only(hf->model))
        return write_folder(hf, folder, NULL, NULL, 0, to, message);
    if (!t || t->model.graph == NULL || !wf_ok(t->model.graph) || !own_parameters_only(hf->model))
        return fail(message,
                    "only an encoder, an encoder-decoder Transformer or a language model without "
                    "added parameters can be written so");
    if (!describe(hf, &family, &c, message)) return false;
    int n = count_shut_out(hf->model, &hf->generation);
    if (n < 0) return fail(message, "out of memory");
    tell_what_is_lost(&hf->generation, hf->notes);
    if (t->config.pad_id < 0 && c.pad == c.start && !family->t5)
        wf_hf_note(hf->notes,
                   "config.json: 'pad_token_id' is %lld, the start: a source that has it "
                   "is read otherwise",
                   (long long)c.pad);
    return write_folder(hf, folder, family, &c, n, to, message);
}
