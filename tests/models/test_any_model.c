/* tests/models/test_any_model.c - requirements for every architecture in the table of kinds:
 * outputs that are decoded step by step have the same scores in one forced run; impossible sizes
 * and batches are refused with a message. */
#include <math.h>

#include "models/choices.h"
#include "models/decode.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/models.h"

TESTS(any_model)

#define ONE_MORE(id, word) +1
enum { KINDS = 0 WF_MODEL_NAMES(ONE_MORE) };

static wf_model_sizes some_sizes(void) {
    return (wf_model_sizes){ .src_vocab = 13,
                             .tgt_vocab = 13,
                             .longest = 12,
                             .d_model = 16,
                             .num_heads = 2,
                             .dim_feedforward = 24,
                             .encoder_layers = 1,
                             .decoder_layers = 2,
                             .positions = WF_POSITIONS_LEARNED,
                             .start_id = 1,
                             .end_id = 2 };
}

static wf_model *open_any(int kind, const wf_training_config *training) {
    char message[WF_MESSAGE] = "";
    const wf_model_sizes sizes = some_sizes();
    wf_model *m = wf_model_new(wf_model_kind_at(kind), &sizes, training, WF_F64, 7, message);
    ck_assert_msg(m && wf_ok(m->graph), "%s%s", message, m ? wf_error(m->graph) : "");
    return m;
}

TEST_ROWS(what_is_decoded_is_scored_alike, KINDS) {
    enum { B = 3, S = 5 };
    static const int32_t src[B * S] = { 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 11, 12, 3, 0 },
                                 length[B] = { 5, 2, 4 };
    wf_model *m = open_any(_i, NULL);
    char message[WF_MESSAGE] = "";
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    ck_assert_msg(d != NULL, "%s", message);
    for (int beam = 1; beam < 4; beam += 2) {
        wf_decode_options o = wf_decode_defaults();
        o.beam = o.nbest = beam, o.min_len = 3, o.max_len_a = 0, o.max_len_b = 6;
        wf_decoded found[B];
        ck_assert_msg(wf_decode(d, B, S, src, length, NULL, &o, found), "%s", wf_decoder_error(d));
        for (int i = 0; i < B; i++)
            for (int k = 0; k < found[i].n; k++) {
                const wf_hypothesis *h = &found[i].best[k];
                const int32_t n = (int32_t)h->length;
                double total;
                ck_assert_int_ge(n, 3);
                ck_assert_msg(wf_score(d, 1, length[i], src + i * S, &length[i], n, h->tokens, &n,
                                       NULL, &total),
                              "%s", wf_decoder_error(d));
                ck_assert_double_eq_tol(total, h->total, 1e-9);
            }
        wf_decoded_free(found, B);
    }
    wf_decoder_free(d), wf_model_free(m);
}

static wf_batch good_batch(void) {
    static const int32_t src[] = { 3, 4, 5, 6 }, length[] = { 2, 1 }, tgt[] = { 1, 3, 1, 4 },
                         labels[] = { 3, 2, 4, 2 };
    return (wf_batch){ 2, 2, 2, src, length, tgt, labels };
}

TEST_ROWS(batches_that_cannot_be_are_refused, KINDS) {
    static const int32_t negative[] = { 2, -1 }, large[] = { 2, 1 << 30 };
    wf_model *m = open_any(_i, NULL);
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    for (int how = 0; how < 9; how++) {
        wf_batch b = good_batch();
        if (how == 1) b.src = NULL;
        if (how == 2) b.src_length = negative;
        if (how == 3) b.src_length = large;
        if (how == 4) b.B = -1;
        if (how == 5) b.B = 0;
        if (how == 6) b.T = 0;
        if (how == 7) b.tgt = NULL;
        if (how == 8) b.S = -1;
        bool fed = wf_model_feed(m, p, &b) && wf_run(p);
        ck_assert_msg(fed == (how == 0), "%d of kind %d", how, _i);
        ck_assert_msg(fed || wf_plan_error(p)[0], "%d of kind %d is refused without a word", how,
                      _i);
    }
    wf_batch nothing = { .B = 1, .T = 1 };
    ck_assert(!wf_model_feed(m, p, &nothing));
    assert_contains(wf_plan_error(p), "src_length is NULL");
    ck_assert(!wf_model_feed(m, p, NULL) && !wf_model_feed(NULL, p, NULL));
    ck_assert(!wf_model_feed(m, NULL, NULL));
    wf_plan_free(p), wf_model_free(m);
}

/* Feeding a second batch of the same size allocates no memory. */
TEST_ROWS(feeding_a_batch_allocates_nothing, KINDS) {
    wf_model *m = open_any(_i, NULL);
    wf_plan *p = wf_model_plan(m, WF_PLAN_EVALUATE, NULL);
    const wf_batch b = good_batch();
    long left;
    ck_assert(wf_model_feed(m, p, &b) && wf_run(p));
    faults_begin(1, true);
    bool fed = wf_model_feed(m, p, &b) && wf_run(p);
    long asked = faults_end(&left);
    ck_assert(fed);
    ck_assert_int_eq(asked, 0);
    wf_plan_free(p);
    wf_model_free(m);
}

TEST_ROWS(sizes_that_cannot_be_are_refused, KINDS) {
    const wf_model_kind *kind = wf_model_kind_at(_i);
    static const int64_t longest[] = { 0, -7, INT64_MAX, 1 << 30 };
    char message[WF_MESSAGE] = "";
    wf_model_sizes s = some_sizes();
    ck_assert_msg(wf_model_sizes_ok(kind, &s, message), "%s", message);
    for (int i = 0; i < COUNT_OF(longest); i++) {
        s = some_sizes(), s.longest = longest[i], message[0] = '\0';
        ck_assert(!wf_model_sizes_ok(kind, &s, message) && message[0]);
        ck_assert_ptr_null(wf_model_new(kind, &s, NULL, WF_F32, 1, NULL));
    }
    s = some_sizes(), s.tgt_vocab = 0, message[0] = '\0';
    ck_assert(!wf_model_sizes_ok(kind, &s, message) && message[0]);
    ck_assert(!wf_model_sizes_ok(NULL, &s, message) && !wf_model_sizes_ok(kind, NULL, message));
}

TEST(the_table_ends) {
    ck_assert_ptr_null(wf_model_kind_at(-1));
    ck_assert_ptr_null(wf_model_kind_at(KINDS));
    ck_assert_str_eq(wf_model_kind_name(wf_model_kind_at(0)), "transformer");
    ck_assert_str_eq(wf_model_kind_name(NULL), "");
    ck_assert(!wf_model_kind_decoder_only(wf_model_kind_at(0)) &&
              !wf_model_kind_decoder_only(NULL));
}

TEST_ROWS(memory_is_of_what_can_be_decoded, KINDS) {
    wf_model *m = open_any(_i, NULL);
    wf_decoder *d = wf_decoder_new(m, NULL, NULL);
    int longest = (int)wf_model_longest_source(m);
    ck_assert_uint_gt(wf_decoder_memory(d, 2, longest, 4), 0);
    ck_assert_uint_gt(wf_decoder_memory(d, 2, 3, INT64_MAX), 0);
    if (wf_model_kind_decoder_only(m->kind)) {
        ck_assert_uint_eq(wf_decoder_memory(d, 2, longest + 1, 4), 0);
        ck_assert(wf_decoder_error(d)[0]);
    }
    wf_decoder_free(d), wf_model_free(m);
}
