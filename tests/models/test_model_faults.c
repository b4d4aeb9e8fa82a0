/* tests/models/test_model_faults.c - out of memory at every single place of a model's life: an
 * error with a message, no crash, no leak; the model goes on as soon as there is memory again, and
 * the old file is whole.
 *
 * The engine's own allocations are the matter of test_faults.c, whose way this follows. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <unistd.h>

#include "models/language_model.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/models.h"

TESTS(model_faults)

/* An assertion of Check allocates even when it holds, so it is made only when it does not. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

static const wf_training_config training = { .dropout = 0.1,
                                             .optimizer = { .kind = WF_ADAM, ADAM_DEFAULTS } };
static char message[WF_MESSAGE], path[] = "/tmp/weft-model-faults-XXXXXX";

static bool in_one_row; /* the model is one that reads its sources so */

static wf_model *record(bool trains) {
    wf_language_model_config l = wf_language_model_defaults();
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

/* A model and whatever else must not fail. */
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

static bool decode(wf_decoder *d) {
    const int32_t src[] = { 1, 2, 3, 4, 5, 0 }, length[] = { 3, 2 };
    int32_t out[10], n[2];
    return wf_decode_greedy(d, 2, 3, src, length, 5, out, n);
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
        if (ok)
            wf_decoded_free(results, 2);
        else
            return false;
    }
    return wf_score(d, 2, 3, src, length, 3, src, length, NULL, totals);
}

static bool searching(void) {
    wf_model *m = record_safely(false);
    bool was = faults_pause(true);
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    faults_pause(was);
    must(d, "%s", message);
    bool ok = search(d);
    must(ok || wf_decoder_error(d)[0], "searching fails without a message");
    was = faults_pause(true);
    must(search(d), "a decoder is not usable after '%s'", wf_decoder_error(d));
    faults_pause(was);
    wf_decoder_free(d), wf_model_free(m);
    return ok;
}

/* Weights that could not all be packed are whole in the layout that they have. */
static bool packing(void) {
    wf_model *m = record_safely(false);
    bool was = faults_pause(true);
    wf_plan_free(wf_model_eval_plan(m, NULL)); /* every weight has its values */
    faults_pause(was);
    message[0] = '\0';
    bool ok = wf_pack_weights(m->graph, WF_PANELS_BF16, message);
    must(ok || message[0], "packing fails without a message");
    was = faults_pause(true);
    wf_decoder *d = wf_decoder_new(m, NULL, NULL);
    must(d && decode(d), "a model is not usable after packing");
    wf_decoder_free(d), wf_model_free(m);
    faults_pause(was);
    return ok;
}

static bool step(wf_plan *p, const wf_model *m) {
    const int32_t ids[] = { 1, 2, 3, 4 }, length[] = { 2, 1 };
    const double rates[] = { 1e-3, 1, 1 };
    return wf_bind(p, "B", 2) && wf_bind(p, "S", 2) && wf_bind(p, "T", 2) &&
           wf_feed(p, m->src, ids, sizeof ids) &&
           wf_feed(p, m->src_length, length, sizeof length) &&
           wf_feed(p, m->tgt, ids, sizeof ids) && wf_feed(p, m->labels, ids, sizeof ids) &&
           wf_feed_reals(p, m->optimizer.rates, rates, 3) && wf_run(p);
}

static bool planning(void) {
    wf_model *m = record_safely(true);
    wf_plan *p = wf_model_train_plan(m, NULL);
    bool ok = step(p, m);
    must(ok || wf_plan_error(p)[0], "a plan fails without a message");
    bool was = faults_pause(true);
    must(!wf_plan_ok(p) || step(p, m), "a plan is not usable after a failure: %s",
         wf_plan_error(p));
    faults_pause(was);
    wf_plan_free(p), wf_model_free(m);
    return ok;
}

static bool save(const wf_model *m) {
    message[0] = '\0';
    bool ok = wf_model_save(m, path, true, NULL, 0, message);
    must(ok || message[0], "saving fails without a message");
    return ok;
}

static bool load(void) {
    wf_file *f = wf_file_open(path);
    message[0] = '\0';
    wf_model *m = wf_model_load(f, &training, WF_F32, 1, message);
    must(m || message[0], "loading fails without a message");
    wf_file_free(f), wf_model_free(m);
    return m != NULL;
}

static bool files(void) {
    wf_model *m = record_safely(true);
    bool was = faults_pause(true);
    must(save(m), "%s", message);
    faults_pause(was);
    bool ok = save(m) && load();
    was = faults_pause(true);
    must(load(), "the file is not whole: %s", message);
    faults_pause(was);
    wf_model_free(m);
    return ok;
}

/* The model comes back from its state_dict. */
static bool load_state_dict(const wf_model *m) {
    wf_file *f = wf_file_open(path);
    message[0] = '\0';
    wf_model *back =
        wf_transformer_from_state_dict(f, &wf_transformer_of(m)->config, WF_F32, message);
    must(back || message[0], "reading a state_dict fails without a message");
    wf_file_free(f), wf_model_free(back);
    return back != NULL;
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

/* ---- every place ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*run)(void);
    bool in_one_row;
} scenarios[] = {
    { "recording", recording, false },         { "decoding", decoding, false },
    { "searching", searching, false },         { "packing", packing, false },
    { "planning", planning, false },           { "files", files, false },
    { "state_dicts", state_dicts, false },     { "recording in one row", recording, true },
    { "decoding in one row", decoding, true }, { "searching in one row", searching, true },
    { "files in one row", files, true },
};

TEST_ROWS(every_failure_is_survived, 2 * COUNT_OF(scenarios)) {
    bool persistent = _i % 2;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    in_one_row = scenarios[_i / 2].in_one_row;
    for (long at = 1;; at++) {
        long left;
        faults_begin(at, persistent);
        bool ok = scenarios[_i / 2].run();
        long asked = faults_end(&left);
        ck_assert_msg(left == 0, "%s, request %ld: %ld blocks leak", scenarios[_i / 2].name, at,
                      left);
        ck_assert_msg(ok == (asked < at), "%s, request %ld of %ld", scenarios[_i / 2].name, at,
                      asked);
        if (ok) break;
        tally_note(TALLY_FAULTS, 0);
    }
    unlink(path);
}
