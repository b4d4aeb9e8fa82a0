/* tests/models/test_ssru.c - Transformers in Marian's forms: a decoder of recurrent units (SSRU),
 * whose state has a constant size; keys that are not normalised; zeros in place of the start token.
 * Their gradients are checked in nn/test_nn.c. */
#include "core/run_internal.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"
#include "tests/support/support.h"

TESTS(ssru)

enum { FORMS = 8 };

/* Forms 0 to 5 have SSRU (even) or self-attention (odd): two are post-norm, two pre-norm, two
 * pre-norm with keys that no norm precedes (raw_keys). Forms 6 and 7 have average attention:
 * post-norm, and pre-norm with raw keys. */
static wf_transformer_config form(int i) {
    wf_transformer_config c = small_config();
    static const wf_decoder_kind kinds[] = { WF_DECODER_SSRU, WF_DECODER_ATTENTION };
    c.decoder = i < 6 ? kinds[i % 2] : WF_DECODER_AVERAGE;
    c.norm_first = i / 2 > 0 && i != 6;
    c.raw_keys = i / 2 > 1 && c.norm_first;
    c.average_width = i == 7 ? c.d_model : 10;
    c.average_activation = WF_SILU;
    c.encoder_norm = c.decoder_norm = false;
    c.zero_start = i != 2;
    c.positions = WF_POSITIONS_TENSOR2TENSOR;
    c.layer_norm_eps = 1e-6;
    return c;
}

static values step(wf_plan *p, wf_state *s, const wf_model *m, const sentences *b, int from,
                   int n) {
    int32_t ids[MAX_SENTENCES];
    for (int i = 0; i < b->B * n; i++) ids[i] = b->tgt[i / n * b->T + from + i % n];
    assert_plan(p, wf_bind(p, "T", n) && wf_bind(p, "P", from));
    assert_plan(p, wf_feed(p, m->tgt, ids, wf_bound_bytes(p, m->tgt)) && wf_run_state(p, s));
    return fetched(p, m->logits);
}

/* Steps of one token, and then of three, with the same state have the bits of the whole
 * sequence. */
TEST_ROWS(steps_have_the_bits_of_the_whole, 2 * FORMS) {
    static sentences b;
    wf_transformer_config c = form(_i / 2);
    wf_model *m = open_model(&c, NULL, _i % 2 ? WF_F64 : WF_F32, 3);
    random_sentences(&b, &c, 4, 6, 12, 5);
    wf_plan *full = wf_model_plan(m, WF_PLAN_SCORE, NULL), *p = steps_after_encoding(m, &b);
    values whole = run_for(full, m, &b, m->logits);
    assert_plan(p, wf_bind(p, "P", 0));
    wf_state *s = wf_state_new(p);
    assert_plan(p, s != NULL);
    for (int n = 1; n <= 3; n += 2)
        for (int from = 0; from < b.T; from += n) {
            values part = step(p, s, m, &b, from, n);
            for (int i = 0; i < b.B * n; i++)
                ck_assert_msg(memcmp(part.data + i * m->tgt_vocab,
                                     whole.data + (i / n * b.T + from + i % n) * m->tgt_vocab,
                                     (size_t)m->tgt_vocab * sizeof *part.data) == 0,
                              "form %d, position %d, %d at a time", _i, from + i % n, n);
            free_values(&part, 1);
        }
    free_values(&whole, 1);
    wf_state_free(s), wf_plan_free(p), wf_plan_free(full), close_model(m);
}

/* The state has D values for each layer and row, at every position. It cannot return to an earlier
 * position but 0. */
TEST_ROWS(the_state_has_one_size, 2) {
    static sentences b;
    wf_transformer_config c = form(_i ? 6 : 0);
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    random_sentences(&b, &c, 3, 6, 12, 5);
    wf_plan *p = steps_after_encoding(m, &b);
    assert_plan(p, wf_bind(p, "P", 0));
    wf_state *s = wf_state_new(p);
    size_t bytes = wf_state_bytes(s);
    size_t row = (size_t)c.d_model * sizeof(float);
    ck_assert_uint_eq(bytes, 3 * row * (size_t)(c.decoder_layers + 1)); /* and a spare one */
    for (int from = 0; from < 4; from++) {
        values part = step(p, s, m, &b, from, 1);
        free_values(&part, 1);
    }
    ck_assert_uint_eq(wf_state_bytes(s), bytes);
    ck_assert(wf_bind(p, "P", 2) && !wf_run_state(p, s));
    assert_contains(wf_plan_error(p), "cannot go back");
    wf_state_free(s), wf_plan_free(p), close_model(m);
}

TEST_ROWS(a_sentence_decodes_alone_as_in_a_batch, 2 * FORMS) {
    static sentences b;
    wf_transformer_config c = form(_i % FORMS);
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    random_sentences(&b, &c, 16, 9, 1, 5);
    wf_decode_options o = wf_decode_defaults();
    o.beam = _i < FORMS ? 1 : 4;
    o.nbest = o.beam;
    o.max_len_b = 6;
    assert_decoded_alike(m, &b, &o);
    close_model(m);
}

/* With zero_start, the decoder's input begins with zeros: another start token changes nothing. */
TEST_ROWS(the_start_token_is_not_read, 2) {
    static sentences b;
    wf_transformer_config c = form(0);
    c.zero_start = _i;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    random_sentences(&b, &c, 2, 5, 4, 5);
    values before = run_for(p, m, &b, m->logits);
    b.tgt[0] = (b.tgt[0] + 1) % 17;
    values after = run_for(p, m, &b, m->logits);
    ck_assert(same_bits(before, after) == c.zero_start);
    free_values(&before, 1), free_values(&after, 1);
    wf_plan_free(p), close_model(m);
}

/* Keys that no norm precedes (raw_keys) make another model than textbook pre-norm. */
TEST(raw_keys_are_another_model) {
    static sentences b;
    values logits[3];
    for (int i = 0; i < 3; i++) {
        wf_transformer_config c = form(3);
        c.raw_keys = i > 0;
        if (i == 2) c.encoder_layers = 1;
        wf_model *m = open_model(&c, NULL, WF_F32, 3);
        wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
        random_sentences(&b, &c, 2, 5, 4, 5);
        logits[i] = run_for(p, m, &b, m->logits);
        wf_plan_free(p), close_model(m);
    }
    ck_assert(!same_bits(logits[0], logits[1]) && !same_bits(logits[1], logits[2]));
    free_values(logits, 3);
}

TEST_ROWS(it_learns_to_copy, 2) {
    static sentences b;
    wf_transformer_config c = form(_i ? 7 : 0);
    c.average_width = 0;
    c.d_model = 32;
    c.dim_feedforward = 64;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_trainer *t = open_trainer(m, NULL, 3e-3, NULL);
    for (int i = 0; i < 500; i++) {
        copy_sentences(&b, 32, 2, 4, 17, true, (uint64_t)(1000 * i));
        train_step(t, m, &b);
    }
    ck_assert_int_gt(exact_copies(m, 100, 2, 4, 7), 90);
    wf_trainer_free(t), close_model(m);
}

TEST(limits) {
    char message[WF_MESSAGE];
    wf_transformer_config c = form(0);
    c.raw_keys = true;
    ck_assert(!wf_transformer_check(&c, message));
    assert_contains(message, "pre-norm");
    c = form(4);
    c.positions = WF_POSITIONS_ROTARY;
    ck_assert(!wf_transformer_check(&c, message));
    assert_contains(message, "do not rotate");
    c = form(0);
    c.decoder = (wf_decoder_kind)3;
    ck_assert(!wf_transformer_check(&c, message));
    assert_contains(message, "kind of decoder");
}
