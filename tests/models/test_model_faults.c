/* tests/models/test_model_faults.c - every single allocation of a model's functions fails in turn:
 * an error with a message, no crash, no leak; the model is usable as soon as there is memory again,
 * and an old file stays whole.
 *
 * test_faults.c does the same with the engine's functions. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <unistd.h>

#include "models/decode/decoder.h"
#include "models/hf.h"
#include "models/language_model.h"
#include "models/marian_internal.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"
#include "tests/support/shortlists.h"
#include "tests/support/wall.h"
#include "texts.h"

TESTS(model_faults)

static const wf_training_config training = { .dropout = 0.1, .recompute = true };
static const wf_trainer_options adam = { .optimizer = { .kind = WF_ADAM, ADAM_DEFAULTS },
                                         .schedule = { .peak = 1e-3 } };
static char message[WF_MESSAGE], path[] = "/tmp/weft-model-faults-XXXXXX";

static bool in_one_row; /* record() makes a decoder-only model */

static wf_model *record(bool trains) {
    wf_language_model_config l = wf_language_model_defaults(WF_GPT2);
    l.vocab = 17, l.max_len = 32, l.d_model = 8, l.num_heads = 2, l.dim_feedforward = 24;
    l.layers = 1;
    message[0] = '\0';
    if (in_one_row) return wf_language_model_new(&l, trains ? &training : NULL, WF_F32, 3, message);
    wf_transformer_config c = small_config();
    c.d_model = 8, c.encoder_layers = c.decoder_layers = 1;
    return wf_transformer_new(&c, trains ? &training : NULL, WF_F32, 3, message);
}

static bool recorded(const wf_model *m) {
    must(m || message[0], "no model and no message");
    must(!m || wf_ok(m->graph) || wf_error(m->graph)[0], "a failed graph without a message");
    return m && wf_ok(m->graph);
}

/* Records a model while no allocation fails. */
static wf_model *record_safely(bool trains) {
    bool was = faults_pause(true);
    wf_model *m = record(trains);
    must(recorded(m), "%s", message);
    faults_pause(was);
    return m;
}

/* ---- scenarios: true if nothing failed ------------------------------------------------------- */

static bool recording(void) {
    wf_model *m = record(true);
    bool ok = recorded(m);
    wf_model_free(m);
    return ok;
}

/* Records two quantisation-aware models: one of weft's form with weft's int8, and one of Marian's
 * form with Marian's int8. */
static bool recording_rounded(void) {
    wf_transformer_config c = small_config();
    wf_training_config aware = { .quantize_aware = WF_QUANTIZE_INT8 };
    c.encoder_layers = c.decoder_layers = 1;
    message[0] = '\0';
    wf_model *m = wf_transformer_new(&c, &aware, WF_F32, 3, message);
    bool ok = recorded(m);
    wf_model_free(m);
    c.positions = WF_POSITIONS_TENSOR2TENSOR;
    c.zero_start = true;
    c.pad_id = -1;
    c.layer_norm_eps = 1e-6;
    c.norm_first = c.encoder_norm = c.decoder_norm = false;
    aware.quantize_aware = WF_QUANTIZE_MARIAN;
    message[0] = '\0';
    m = wf_transformer_new(&c, &aware, WF_F32, 3, message);
    ok = recorded(m) && ok;
    wf_model_free(m);
    return ok;
}

static bool decode(wf_decoder *d) {
    const int32_t src[] = { 1, 2, 3, 4, 5, 0 }, length[] = { 3, 2 };
    int32_t out[10], n[2];
    bool ok = wf_decode_greedy(d, 2, 3, src, length, 5, out, n);
    if (ok) wall_say(out, sizeof out), wall_say(n, sizeof n);
    return ok;
}

static bool decoding(void) {
    wf_model *m = record_safely(false);
    message[0] = '\0';
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    must(d || message[0], "no decoder and no message");
    bool ok = d && decode(d);
    must(ok || !d || wf_decoder_error(d)[0], "decoding fails without a message");
    bool was = faults_pause(true);
    must(!d || decode(d), "a decoder is not usable after '%s'", wf_decoder_error(d));
    faults_pause(was);
    wf_decoder_free(d), wf_model_free(m);
    return ok;
}

static void say_results(const wf_decoded *results, int b) {
    for (int i = 0; i < b; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            wall_say(h->tokens, (size_t)h->length * sizeof *h->tokens);
            wall_say(h->log_probs, (size_t)(h->length + 1) * sizeof *h->log_probs);
        }
}

/* A beam, a sample, and forced scores. */
static bool search(wf_decoder *d) {
    const int32_t src[] = { 1, 2, 3, 4, 5, 0 }, length[] = { 3, 2 };
    double totals[2];
    wf_decode_options o = wf_decode_defaults();
    o.max_len_b = 3;
    for (int sample = 0; sample < 2; sample++) {
        wf_decoded results[2];
        o.sample = sample, o.beam = sample ? 1 : 3, o.nbest = 2, o.top_k = 4;
        bool ok = wf_decode(d, 2, 3, src, length, NULL, &o, results);
        must(ok || (!results[0].best && !results[1].best), "a failure with results");
        if (!ok) return false;
        say_results(results, 2);
        wf_decoded_free(results, 2);
    }
    bool ok = wf_score(d, 2, 3, src, length, 3, src, length, NULL, totals);
    if (ok) wall_say(totals, sizeof totals);
    return ok;
}

static bool searching(void) {
    wf_model *m = record_safely(false);
    bool was = faults_pause(true);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    faults_pause(was);
    must(d, "%s", message);
    int mark = wall_mark();
    bool ok = search(d);
    must(ok || wf_decoder_error(d)[0], "searching fails without a message");
    if (!ok) wall_take_back(mark);
    was = faults_pause(true);
    must(search(d), "a decoder is not usable after '%s'", wf_decoder_error(d));
    faults_pause(was);
    wf_decoder_free(d), wf_model_free(m);
    return ok;
}

/* Reads a shortlist, and searches among its candidates. */
static bool choosing(void) {
    uint8_t bytes[SHORTLIST_BYTES];
    const int32_t src[] = { 1, 2, 3, 1, 2, 0 }, length[] = { 3, 2 };
    wf_decoded results[2];
    bool was = faults_pause(true);
    wf_model *m = record(false);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    must(d, "%s", message);
    int vocab = (int)m->tgt_vocab;
    size_t n = write_shortlist(bytes, 5, vocab, 1, vocab);
    faults_pause(was);
    wf_shortlist *l = wf_shortlist_read(bytes, n, m->src_vocab, vocab, false, message);
    must(l || message[0], "no shortlist and no message");
    wf_decode_options o = wf_decode_defaults();
    o.shortlist = l;
    o.max_len_b = 3;
    bool ok = l && wf_decode(d, 2, 3, src, length, NULL, &o, results);
    must(ok || !l || wf_decoder_error(d)[0], "choosing fails without a message");
    must(!ok || d->running == d->hidden_step, "a step computed the logits of all tokens");
    if (ok) {
        say_results(results, 2);
        wf_decoded_free(results, 2);
    }
    wf_shortlist_free(l);
    wf_decoder_free(d);
    wf_model_free(m);
    return ok;
}

static bool packing(void) {
    wf_model *m = record_safely(false);
    bool was = faults_pause(true);
    wf_plan_free(wf_model_plan(m, WF_PLAN_EVALUATE, NULL)); /* every weight has its values */
    faults_pause(was);
    message[0] = '\0';
    bool ok = wf_pack_weights(m->graph, WF_PANELS_BF16, message);
    must(ok || message[0], "packing fails without a message");
    was = faults_pause(true);
    int mark = wall_mark();
    wf_decoder *d = wf_decoder_new(m, NULL, NULL);
    must(d && decode(d), "a model is not usable after packing");
    if (!ok) wall_take_back(mark); /* if only some weights are bf16, the results are others */
    wf_decoder_free(d), wf_model_free(m);
    faults_pause(was);
    return ok;
}

static bool say_parameters(const wf_model *m) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && !wall_say_leaf(t)) return false;
    }
    return true;
}

static wf_trainer *new_trainer(const wf_model *m) {
    return wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &adam);
}

static bool step(wf_trainer *t, const wf_model *m) {
    const int32_t ids[] = { 1, 2, 3, 4 }, length[] = { 2, 1 };
    wf_plan *p = wf_trainer_plan(t);
    return wf_bind(p, "B", 2) && wf_bind(p, "S", 2) && wf_bind(p, "T", 2) &&
           wf_feed(p, m->src, ids, sizeof ids) &&
           wf_feed(p, m->src_length, length, sizeof length) &&
           wf_feed(p, m->tgt, ids, sizeof ids) && wf_feed(p, m->labels, ids, sizeof ids) &&
           wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
           wf_trainer_update(t, NULL) && say_parameters(m);
}

static bool planning(void) {
    wf_model *m = record_safely(true);
    wf_trainer *t = new_trainer(m);
    bool ok = wf_trainer_ok(t) && step(t, m);
    must(ok || wf_trainer_error(t)[0] || wf_plan_error(wf_trainer_plan(t))[0],
         "a trainer fails without a message");
    bool was = faults_pause(true);
    must(!wf_trainer_ok(t) || step(t, m), "a trainer is not usable after a failure: %s %s",
         wf_trainer_error(t), wf_plan_error(wf_trainer_plan(t)));
    faults_pause(was);
    wf_trainer_free(t), wf_model_free(m);
    return ok;
}

static bool save(const wf_model *m, wf_trainer *t) {
    message[0] = '\0';
    bool ok = wf_model_save(m, path, t, NULL, 0, message);
    must(ok || message[0], "saving fails without a message");
    if (ok) wall_say_file(path);
    return ok;
}

static bool load(void) {
    wf_file *f = wf_file_open(path);
    message[0] = '\0';
    wf_model *m = wf_model_load(f, &training, WF_F32, 1, message);
    must(m || message[0], "loading fails without a message");
    bool ok = m && say_parameters(m);
    wf_trainer *t = ok ? new_trainer(m) : NULL;
    must(!ok || (t ? wf_trainer_ok(t) || wf_trainer_error(t)[0] : true), "no message");
    ok = ok && wf_trainer_ok(t);
    if (ok) {
        ok = wf_trainer_resume(t, f, 1);
        must(ok || wf_trainer_error(t)[0], "resuming fails without a message");
        ok = ok && wall_say_leaf(wf_trainer_optimizer(t)->moments[0][0]);
    }
    wf_trainer_free(t);
    wf_file_free(f), wf_model_free(m);
    return ok;
}

static bool files(void) {
    wf_model *m = record_safely(true);
    bool was = faults_pause(true);
    wf_trainer *t = new_trainer(m);
    must(wf_trainer_ok(t) && save(m, t), "%s", message);
    faults_pause(was);
    bool ok = save(m, t) && load();
    int mark = wall_mark();
    was = faults_pause(true);
    must(load(), "the file is not whole: %s", message);
    wall_take_back(mark);
    faults_pause(was);
    wf_trainer_free(t), wf_model_free(m);
    return ok;
}

/* Loads the model from its state_dict. */
static bool load_state_dict(const wf_model *m) {
    wf_file *f = wf_file_open(path);
    message[0] = '\0';
    wf_model *back =
        wf_transformer_from_state_dict(f, &wf_transformer_of(m)->config, WF_F32, message);
    must(back || message[0], "reading a state_dict fails without a message");
    bool ok = back && say_parameters(back);
    wf_file_free(f), wf_model_free(back);
    return ok;
}

static bool state_dicts(void) {
    wf_model *m = record_safely(false);
    message[0] = '\0';
    bool ok = wf_transformer_save_state_dict(m, path, true, message);
    must(ok || message[0], "writing a state_dict fails without a message");
    ok = ok && load_state_dict(m);
    wf_model_free(m);
    return ok;
}

/* Encodes a line, decodes it with a beam and as a sample, and writes the outputs as text. */
static bool translate(const wf_hf *hf, wf_decoder *d) {
    const char *line = "eins 3 und eins";
    char text[256];
    int32_t ids[32], length;
    wf_decode_options o = wf_generation_options(&hf->generation);
    o.max_len_b = 6;
    message[0] = '\0';
    int64_t n = wf_tokenizer_encode(hf->src, line, strlen(line), ids, 31, message);
    must(n > 0 || message[0], "a line is not encoded, without a message");
    if (n <= 0) return false;
    wall_say(ids, (size_t)n * sizeof *ids);
    ids[n++] = hf->model->end_id, length = (int32_t)n;
    for (int sample = 0; sample < 2; sample++) {
        wf_decoded result;
        o.sample = sample, o.beam = sample ? 1 : 4, o.nbest = 2;
        if (!wf_decode(d, 1, (int)n, ids, &length, NULL, &o, &result)) return false;
        say_results(&result, 1);
        int64_t bytes = wf_tokenizer_decode(hf->tgt, result.best[0].tokens, result.best[0].length,
                                            text, sizeof text);
        wf_decoded_free(&result, 1);
        if (bytes < 0 || bytes > (int64_t)sizeof text) return false;
        wall_say(text, (size_t)bytes);
    }
    return true;
}

static bool translating(void) {
    char folder[512];
    wf_hf hf;
    bool was = faults_pause(true);
    source_path("tests/data/hf/marian", folder, sizeof folder);
    must(wf_hf_import(folder, &hf, message), "%s", message);
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    must(d, "%s", message);
    faults_pause(was);
    bool ok = translate(&hf, d);
    int mark = wall_mark();
    was = faults_pause(true);
    must(translate(&hf, d), "a decoder is not usable after '%s'", wf_decoder_error(d));
    wall_take_back(mark);
    wf_decoder_free(d), wf_hf_free(&hf);
    faults_pause(was);
    return ok;
}

/* Loads an int8 file of Marian with its own arithmetic. A model that is loaded although an
 * allocation failed has the same integers, and no parameter without values. */
static bool loading_integers(void) {
    char place[512];
    wf_hf hf;
    wf_marian_files files = { .model = NULL };
    bool was = faults_pause(true);
    char *model = file_text(source_path("tests/data/marian/shared.bin", place, sizeof place),
                            &files.model_bytes);
    files.model = model;
    must(wf_marian_import(&files, &hf, message), "%s", message);
    must(wf_model_save(hf.model, path, NULL, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    must(wf_file_ok(f), "%s", wf_file_error(f));
    faults_pause(was);
    message[0] = '\0';
    wf_model *m = wf_marian_load(f, message);
    must(m || message[0], "loading integers fails without a message");
    was = faults_pause(true);
    int rows = 0;
    for (int id = 0; m && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        rows += t->op && strcmp(t->op->name, "marian_rows") == 0;
    }
    must(!m || rows == 2, "%d of 2 embeddings read integers", rows);
    wf_model_free(m), wf_file_free(f), wf_hf_free(&hf);
    free(model);
    faults_pause(was);
    return m != NULL;
}

/* ---- every place ----------------------------------------------------------------------------- */

static const wall_work scenarios[] = {
    { "recording", recording, false },       { "decoding", decoding, false },
    { "searching", searching, false },       { "packing", packing, false },
    { "planning", planning, false },         { "files", files, false },
    { "state_dicts", state_dicts, false },   { "translating", translating, false },
    { "choosing", choosing, false },         { "recording rounded", recording_rounded, false },
    { "integers", loading_integers, false },
};
static const wall_work in_one_row_too[] = {
    { "recording in one row", recording, false },
    { "decoding in one row", decoding, false },
    { "searching in one row", searching, false },
    { "files in one row", files, false },
};

static void make_path(void) {
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_path(void) {
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
}

SETUP(make_path, remove_path)

TEST_ROWS(every_failure_is_survived, 2 * COUNT_OF(scenarios)) {
    wall_fail_each(&scenarios[_i / 2], _i % 2);
}

TEST_ROWS(every_failure_is_survived_in_one_row, 2 * COUNT_OF(in_one_row_too)) {
    in_one_row = true;
    wall_fail_each(&in_one_row_too[_i / 2], _i % 2);
    in_one_row = false;
}
