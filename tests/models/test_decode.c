/* tests/models/test_decode.c - decoding: beam searches against an exhaustive search; and results
 * that may not depend on batches, threads or padding.
 *
 * Draws against their distribution are in test_draws.c, greedy decoding and refusals of bad batches
 * also in test_models.c, failing allocations in test_model_faults.c. */
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(decode)

static wf_decode_options beam_options(int beam, int nbest, wf_length_penalty penalty,
                                      double alpha) {
    wf_decode_options o = wf_decode_defaults();
    o.beam = beam, o.nbest = nbest, o.penalty = penalty, o.alpha = alpha;
    return o;
}

/* ---- beams ----------------------------------------------------------------------------------- */

enum { LETTERS = 4, LONGEST = 4, EVERYTHING = 1 + 4 + 16 + 64 + 256 };

typedef struct output {
    int32_t tokens[LONGEST], length;
    double total, score;
} output;

/* Every output of at most LONGEST of the tokens 1..LETTERS, shorter ones first. */
static void all_outputs(output *all) {
    int n = 0;
    for (int length = 0, count = 1; length <= LONGEST; length++, count *= LETTERS)
        for (int code = 0; code < count; code++, n++) {
            all[n].length = length;
            for (int t = 0, rest = code; t < length; t++, rest /= LETTERS)
                all[n].tokens[t] = 1 + rest % LETTERS;
        }
    ck_assert_int_eq(n, EVERYTHING);
}

static const struct {
    wf_length_penalty penalty;
    double alpha;
} penalties[] = { { WF_PENALTY_NONE, 0 },
                  { WF_PENALTY_GNMT, 0.6 },
                  { WF_PENALTY_AVERAGE, 1 },
                  { WF_PENALTY_AVERAGE, 0.4 } };

static double divisor(int i, double n) {
    if (i == 1) return pow((5 + n) / 6, 0.6);
    return i == 0 ? 1 : i == 2 ? n : pow(n, 0.4);
}

static int by_score(const void *a, const void *b) {
    double x = ((const output *)a)->score, y = ((const output *)b)->score;
    return (x < y) - (x > y);
}

/* Scores all outputs in one batch with wf_score, and sorts them, the best first. */
static void score_all(wf_decoder *d, const int32_t *src, int32_t length, int penalty, output *all) {
    static int32_t sources[EVERYTHING * 8], lengths[EVERYTHING], targets[EVERYTHING * LONGEST],
        n[EVERYTHING];
    static double totals[EVERYTHING];
    memset(targets, 0, sizeof targets);
    for (int i = 0; i < EVERYTHING; i++) {
        memcpy(sources + i * length, src, (size_t)length * sizeof *src);
        memcpy(targets + i * LONGEST, all[i].tokens, (size_t)all[i].length * sizeof *targets);
        lengths[i] = length, n[i] = all[i].length;
    }
    assert_decoder(
        d, wf_score(d, EVERYTHING, length, sources, lengths, LONGEST, targets, n, NULL, totals));
    for (int i = 0; i < EVERYTHING; i++) {
        all[i].total = totals[i];
        all[i].score = totals[i] / divisor(penalty, n[i] + 1.0);
    }
    qsort(all, EVERYTHING, sizeof *all, by_score);
}

static void assert_is(const wf_hypothesis *h, const output *o) {
    ck_assert_int_eq(h->length, o->length);
    for (int t = 0; t < o->length; t++) ck_assert_int_eq(h->tokens[t], o->tokens[t]);
    ck_assert_double_eq_tol(h->total, o->total, 1e-9);
    ck_assert_double_eq_tol(h->score, o->score, 1e-9);
}

/* A beam wide enough for all hypotheses finds all 341 outputs in the order of their scores, and the
 * n best of them if it may stop early. */
TEST_ROWS(a_wide_beam_is_an_exhaustive_search, COUNT_OF(penalties)) {
    static output all[EVERYTHING];
    const int wanted[] = { 1, 3, EVERYTHING };
    wf_model *m = open_spread(1 + LETTERS, WF_F64, 3);
    wf_decoder *d = open_decoder(m, NULL);
    for (int32_t first = 1; first <= LETTERS; first++) {
        const int32_t src[] = { first, 2, 3 }, length = 3;
        all_outputs(all);
        score_all(d, src, length, _i, all);
        for (int k = 0; k < COUNT_OF(wanted); k++) {
            wf_decode_options o =
                beam_options(EVERYTHING, wanted[k], penalties[_i].penalty, penalties[_i].alpha);
            o.max_len_a = 0, o.max_len_b = LONGEST;
            wf_decoded result;
            assert_decoder(d, wf_decode(d, 1, 3, src, &length, NULL, &o, &result));
            ck_assert_int_eq(result.n, wanted[k]);
            for (int i = 0; i < result.n; i++) assert_is(&result.best[i], &all[i]);
            wf_decoded_free(&result, 1);
        }
    }
    wf_decoder_free(d), close_model(m);
}

/* The likeliest next token by the logits of the whole sequence, computed without a cache. */
static int32_t argmax_after(wf_plan *p, const wf_model *m, sentences *b, int row) {
    values logits = run_for(p, m, b, m->logits);
    int64_t vocab = m->tgt_vocab, best = 0;
    const double *x = logits.data + ((int64_t)row * b->T + b->T - 1) * vocab;
    for (int64_t v = 1; v < vocab; v++)
        if (x[v] > x[best]) best = v;
    free_values(&logits, 1);
    return (int32_t)best;
}

TEST(beam_one_takes_the_likeliest_token) {
    static sentences b, one;
    enum { MOST = 9 };
    int32_t out[16 * MOST], length[16];
    wf_decoded results[16];
    wf_model *m = open_spread(17, WF_F64, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 7, 1, 5);
    wf_decode_options o = beam_options(1, 1, WF_PENALTY_AVERAGE, 1);
    o.max_len_a = 0, o.max_len_b = MOST;
    assert_decoder(d, wf_decode(d, 16, 7, b.src, b.src_length, NULL, &o, results));
    assert_decoder(d, wf_decode_greedy(d, 16, 7, b.src, b.src_length, MOST, out, length));
    for (int i = 0; i < 16; i++) {
        const wf_hypothesis *h = results[i].best;
        one.B = 1, one.S = b.src_length[i], one.src_length[0] = one.S, one.tgt[0] = 0;
        memcpy(one.src, b.src + i * b.S, (size_t)one.S * sizeof *one.src);
        ck_assert_int_eq(h->length, length[i]);
        for (one.T = 1; one.T <= h->length; one.T++) {
            int32_t token = argmax_after(p, m, &one, 0);
            ck_assert_int_eq(h->tokens[one.T - 1], token);
            ck_assert_int_eq(out[i * MOST + one.T - 1], token);
            one.tgt[one.T] = token;
        }
        ck_assert((argmax_after(p, m, &one, 0) != 0) == h->cut); /* the end, or cut off */
        ck_assert(!h->cut || h->length == MOST);
        for (int t = length[i]; t < MOST; t++) ck_assert_int_eq(out[i * MOST + t], 0);
    }
    wf_decoded_free(results, 16);
    wf_plan_free(p), wf_decoder_free(d), close_model(m);
}

static void assert_sound(const wf_decoded *r, int penalty, bool sorted) {
    for (int i = 0; i < r->n; i++) {
        const wf_hypothesis *h = &r->best[i];
        double total = 0;
        for (int64_t t = 0; t <= h->length; t++) total += h->log_probs[t];
        ck_assert_double_eq_tol(h->total, total, 1e-12);
        ck_assert_double_eq_tol(h->score, total / divisor(penalty, (double)h->length + 1), 1e-12);
        for (int k = 0; sorted && k < i; k++) {
            const wf_hypothesis *before = &r->best[k];
            ck_assert(before->score >= h->score);
            ck_assert(before->length != h->length ||
                      memcmp(before->tokens, h->tokens, (size_t)h->length * sizeof *h->tokens));
        }
    }
}

/* wf_score of the outputs gives the scores that the search returned. */
static void assert_forced(wf_decoder *d, const sentences *b, const wf_decoded *results) {
    enum { MOST = 31 };
    static double log_probs[MAX_SENTENCES * (MOST + 1)], totals[MAX_SENTENCES];
    static int32_t targets[MAX_SENTENCES * MOST], length[MAX_SENTENCES];
    int n = results[0].n;
    for (int k = 0; k < n; k++) {
        memset(targets, 0, sizeof targets);
        for (int i = 0; i < b->B; i++) {
            const wf_hypothesis *h = &results[i].best[k];
            length[i] = (int32_t)h->length;
            memcpy(targets + i * MOST, h->tokens, (size_t)h->length * sizeof *targets);
        }
        assert_decoder(d, wf_score(d, b->B, b->S, b->src, b->src_length, MOST, targets, length,
                                   log_probs, totals));
        for (int i = 0; i < b->B; i++) {
            const wf_hypothesis *h = &results[i].best[k];
            ck_assert_double_eq_tol(h->total, totals[i], 1e-4);
            for (int64_t t = 0; t <= MOST; t++)
                ck_assert_double_eq_tol(t <= h->length ? h->log_probs[t] : 0,
                                        log_probs[i * (MOST + 1) + t], 1e-5);
        }
    }
}

TEST(scores_are_those_of_forced_scoring) {
    static sentences b;
    wf_decoded results[16];
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    int nodes = wf_node_count(m->graph);
    for (int penalty = 0; penalty < COUNT_OF(penalties); penalty++) {
        wf_decode_options o =
            beam_options(5, 4, penalties[penalty].penalty, penalties[penalty].alpha);
        assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, results));
        for (int i = 0; i < 16; i++) {
            ck_assert_int_eq(results[i].n, 4);
            assert_sound(&results[i], penalty, true);
        }
        assert_forced(d, &b, results);
        wf_decoded_free(results, 16);
    }
    wf_decode_options o = sample_options(6, 5, 0.9, 1.3);
    assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 16; i++) assert_sound(&results[i], 0, false);
    assert_forced(d, &b, results);
    wf_decoded_free(results, 16);
    ck_assert_int_eq(wf_node_count(m->graph), nodes); /* nothing is recorded by decoding */
    wf_decoder_free(d), close_model(m);
}

/* Models without encoder or decoder layers decode, too; without decoder layers nothing is
 * cached. */
TEST_ROWS(any_number_of_layers_decodes, 4) {
    static sentences b;
    wf_decoded results[16];
    wf_transformer_config c = small_config();
    c.encoder_layers = _i & 1, c.decoder_layers = _i >> 1;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_decoder *d = open_decoder(m, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    wf_decode_options o = beam_options(5, 4, WF_PENALTY_NONE, 0);
    assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 16; i++) assert_sound(&results[i], 0, true);
    assert_forced(d, &b, results);
    wf_decoded_free(results, 16);
    wf_decoder_free(d), close_model(m);
}

/* ((5 + 7) / 6)^0.6 = 2^0.6, 7^1 and 7^0.5, by a pocket calculator. */
TEST(penalties_by_hand) {
    const struct {
        wf_length_penalty penalty;
        double alpha, value;
    } by_hand[] = { { WF_PENALTY_NONE, 2, 1 },
                    { WF_PENALTY_GNMT, 0.6, 1.515717 },
                    { WF_PENALTY_GNMT, 0, 1 },
                    { WF_PENALTY_AVERAGE, 1, 7 },
                    { WF_PENALTY_AVERAGE, 0.5, 2.645751 } };
    const int32_t src[] = { 1, 2, 3 }, length = 3;
    wf_model *m = open_spread(17, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    for (int i = 0; i < COUNT_OF(by_hand); i++) {
        wf_decode_options o = beam_options(2, 1, by_hand[i].penalty, by_hand[i].alpha);
        o.max_len_a = 2, o.max_len_b = 0.5, o.min_len = 6; /* six tokens and the end */
        wf_decoded result;
        assert_decoder(d, wf_decode(d, 1, 3, src, &length, NULL, &o, &result));
        ck_assert_int_eq(result.best->length, 6);
        ck_assert_double_eq_tol(result.best->total / result.best->score, by_hand[i].value, 1e-5);
        wf_decoded_free(&result, 1);
    }
    wf_decoder_free(d), close_model(m);
}

/* ---- what changes nothing -------------------------------------------------------------------- */

enum { SENTENCES = 32, SOURCE = 9 };

static wf_decode_options setting(int i) {
    wf_decode_options o[] = {
        beam_options(1, 1, WF_PENALTY_NONE, 0),
        beam_options(4, 1, WF_PENALTY_GNMT, 0.6),
        beam_options(3, 3, WF_PENALTY_AVERAGE, 1),
        beam_options(40, 7, WF_PENALTY_AVERAGE, 0.5),
        sample_options(1, 0, 1, 1),
        sample_options(3, 4, 1, 0.7),
        sample_options(2, 0, 0.8, 1.5),
        sample_options(4, 6, 0.7, 1),
    };
    o[i].max_len_a = 1.5, o[i].max_len_b = 1; /* outputs end at many different steps */
    return o[i];
}

TEST_ROWS(batches_and_threads_change_nothing, 16) {
    static sentences b;
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    wf_model *m = open_spread(_i % 2 ? 700 : 17, real, 4); /* 700: rows shared by threads */
    random_sentences(&b, &wf_transformer_of(m)->config, SENTENCES, SOURCE, 1, 5);
    const int32_t banned[] = { 3, 9, 3 };
    wf_decode_options o = setting(_i / 2);
    o.banned = banned, o.n_banned = _i % 2 ? 3 : 0;
    assert_decoded_alike(m, &b, &o);
    close_model(m);
}

TEST(limits_and_bans_hold) {
    static sentences b;
    wf_decoded results[16];
    const int32_t banned[] = { 1, 4, 16 };
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    for (int i = 0; i < 8; i++) {
        wf_decode_options o = setting(i);
        o.max_len_a = 0.5, o.max_len_b = 2.75, o.min_len = 3;
        o.banned = banned, o.n_banned = 3;
        assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, results));
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < results[k].n; n++) {
                const wf_hypothesis *h = &results[k].best[n];
                int64_t most = (int64_t)(0.5 * b.src_length[k] + 2.75);
                ck_assert(h->length >= 3 && h->length <= most);
                ck_assert(!h->cut || h->length == most);
                for (int64_t t = 0; t < h->length; t++) {
                    ck_assert(h->tokens[t] > 0 && h->tokens[t] < 17);
                    for (int j = 0; j < 3; j++) ck_assert_int_ne(h->tokens[t], banned[j]);
                }
            }
        wf_decoded_free(results, 16);
    }
    wf_decode_options o = wf_decode_defaults(); /* the model's max_len limits the output */
    o.min_len = 1000, o.max_len_b = 1000;
    assert_decoder(d, wf_decode(d, 1, 9, b.src, b.src_length, NULL, &o, results));
    ck_assert_int_eq(results[0].best->length, m->max_len - 1);
    wf_decoded_free(results, 1);
    wf_decoder_free(d), close_model(m);
}

/* If fewer outputs are possible than are asked for, the result has only those. */
TEST(there_may_be_fewer_than_wanted) {
    const int32_t src[] = { 1, 2 }, length = 2, banned[] = { 1, 2, 3 };
    wf_model *m = open_spread(5, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = beam_options(8, 8, WF_PENALTY_NONE, 0);
    o.max_len_a = 0, o.max_len_b = 2, o.banned = banned, o.n_banned = 3;
    wf_decoded result;
    assert_decoder(d, wf_decode(d, 1, 2, src, &length, NULL, &o, &result));
    ck_assert_int_eq(result.n, 3); /* nothing; 4; 4 4 */
    assert_sound(&result, 0, true);
    wf_decoded_free(&result, 1);
    wf_decoder_free(d), close_model(m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const int32_t the_end[] = { 3, 0 }, outside[] = { 17 }, below[] = { -1 };
static const struct {
    wf_decode_options o; /* the test sets the other fields */
    const char *says;
} refused[] = {
    { { .beam = 0, .nbest = 1 }, "a beam of 0 is not between 1 and 1024" },
    { { .beam = 1025, .nbest = 1 }, "a beam of 1025 is not between 1 and 1024" },
    { { .beam = 2, .nbest = 3 }, "the 3 best are not to be had from a beam of 2" },
    { { .beam = 2 }, "the 0 best" },
    { { .beam = 1, .nbest = 1, .penalty = (wf_length_penalty)3 }, "no length penalty 3" },
    { { .beam = 1, .nbest = 1, .stop = (wf_stop)4 }, "no rule 4 of when to stop" },
    { { .beam = 1, .nbest = 1, .at_limit = (wf_limit_rule)3 }, "no rule 3 of the longest" },
    { { .beam = 1, .nbest = 1, .n_forced = 1 }, "the forced tokens are NULL" },
    { { .beam = 1, .nbest = 1, .n_forced = 2, .forced = the_end }, "forced token 0 is the end" },
    { { .beam = 1, .nbest = 1, .n_forced = 1, .forced = outside }, "forced token 17 is the end" },
    { { .beam = 1, .nbest = 1, .alpha = -1 }, "alpha is -1, not between 0 and 10" },
    { { .beam = 1, .nbest = 1, .alpha = NAN }, "alpha is" },
    { { .beam = 1, .nbest = 1, .max_len_a = -1 }, "maximum length of -1 n + 0" },
    { { .beam = 1, .nbest = 1, .max_len_b = NAN }, "maximum length" },
    { { .beam = 1, .nbest = 1, .min_len = -2 }, "the minimum length is -2" },
    { { .beam = 1, .nbest = 1, .n_banned = 1 }, "NULL" },
    { { .beam = 1, .nbest = 1, .n_banned = 2, .banned = the_end }, "the end token 0" },
    { { .beam = 1, .nbest = 1, .n_banned = 1, .banned = outside }, "banned token 17 is not in" },
    { { .beam = 1, .nbest = 1, .n_banned = 1, .banned = below }, "banned token -1 is not in" },
    { { .beam = 1, .nbest = 1, .n_banned = -1, .banned = outside }, "their number is below 0" },
    { { .beam = 1, .nbest = 1, .n_begin_banned = 1 }, "at the beginning are NULL" },
    { { .beam = 1, .nbest = 1, .n_begin_banned = 1, .begin_banned = outside },
      "token 17, banned at the beginning, is not in" },
    { { .beam = 1, .nbest = 1, .no_repeat_ngram = -1 }, "n-grams of -1 tokens may not repeat" },
    { { .beam = 1, .nbest = 1 }, "the repetition penalty is 0, not between" },
    { { .beam = 1, .nbest = 1, .repetition_penalty = 1 }, "a decay of 0 after 0 tokens" },
    { { .beam = 1, .nbest = 1, .repetition_penalty = 1, .decay = 1, .decay_start = -1 },
      "a decay of 1 after -1 tokens" },
    { { .beam = 2, .nbest = 1, .sample = true }, "a sample has no beam" },
    { { .beam = 1, .sample = true }, "nbest is 0: a sample draws 1 to 1024 outputs" },
    { { .beam = 1, .nbest = 1, .sample = true, .top_k = -1 }, "the top k is -1" },
    { { .beam = 1, .nbest = 1, .sample = true }, "the top p is 0, not above 0" },
    { { .beam = 1, .nbest = 1, .sample = true, .top_p = 2 }, "the top p is 2" },
    { { .beam = 1, .nbest = 1, .sample = true, .top_p = 1 }, "the temperature is 0, not" },
};

TEST(bad_options_are_refused) {
    const int32_t src[] = { 1, 2 }, length = 2;
    int32_t all[16];
    wf_model *m = open_spread(17, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    wf_decoded result;
    for (int i = 0; i < COUNT_OF(refused); i++) {
        ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, &refused[i].o, &result));
        assert_contains(wf_decoder_error(d), refused[i].says);
        ck_assert(result.n == 0 && result.best == NULL);
    }
    ck_assert(!wf_decode(NULL, 1, 2, src, &length, NULL, &o, &result));
    ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, NULL, &result));
    assert_contains(wf_decoder_error(d), "no options");
    ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, &o, NULL));
    assert_contains(wf_decoder_error(d), "NULL");
    ck_assert(!wf_decode(d, 1, 2, NULL, &length, NULL, &o, &result));
    assert_contains(wf_decoder_error(d), "NULL");
    for (int i = 0; i < 16; i++) all[i] = i + 1;
    o.banned = all, o.n_banned = 16, o.min_len = 1;
    ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, &o, &result));
    assert_contains(wf_decoder_error(d), "every token is banned");
    o.min_len = 0;
    assert_decoder(d, wf_decode(d, 1, 2, src, &length, NULL, &o, &result));
    ck_assert_int_eq(result.best->length, 0);
    wf_decoded_free(&result, 1), wf_decoded_free(NULL, 1);
    wf_decoder_free(d), close_model(m);
}

TEST(batches_that_are_none_are_refused) {
    enum { MANY = 1025 };
    static int32_t src[MANY], length[MANY];
    static wf_decoded results[MANY];
    static const struct {
        int b, s;
        int32_t length;
        const char *says;
    } rows[] = { { 0, 1, 1, "a batch and its length are at least 1" },
                 { 1, 0, 1, "a batch and its length are at least 1" },
                 { 1, 1, 0, "sentence 0 has 0 tokens, not 1 to 1" },
                 { 1, 1, 2, "sentence 0 has 2 tokens, not 1 to 1" },
                 { MANY, 1, 1, "1025 sentences of 1024 hypotheses are more than 1048576 rows" } };
    wf_model *m = open_spread(17, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o = wf_decode_defaults();
    o.beam = 1024;
    for (int i = 0; i < COUNT_OF(rows); i++) {
        for (int k = 0; k < MANY; k++) src[k] = 1, length[k] = rows[i].length;
        ck_assert(!wf_decode(d, rows[i].b, rows[i].s, src, length, NULL, &o, results));
        assert_contains(wf_decoder_error(d), rows[i].says);
    }
    ck_assert(!wf_decode_greedy(d, 1, 1, src, length, 0, length, length));
    assert_contains(wf_decoder_error(d), "the longest output is at least 1");
    o.beam = 1, o.max_len_a = o.max_len_b = 0; /* none is shorter than one token */
    assert_decoder(d, wf_decode(d, 1, 1, src, length, NULL, &o, results));
    ck_assert_int_le(results[0].best->length, 1);
    wf_decoded_free(results, 1);
    wf_decoder_free(d), close_model(m);
}

TEST(bad_outputs_are_not_scored) {
    const int32_t src[] = { 1, 2 }, length = 2, n = 2;
    int32_t tgt[40] = { 1, 17 };
    double log_probs[40], total;
    wf_model *m = open_spread(17, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    ck_assert(!wf_score(NULL, 1, 2, src, &length, 2, tgt, &n, log_probs, &total));
    ck_assert(!wf_score(d, 1, 2, src, &length, 2, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "output 0: token 17 is not in a vocabulary of 17");
    tgt[1] = -1;
    ck_assert(!wf_score(d, 1, 2, src, &length, 2, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "token -1");
    ck_assert(!wf_score(d, 1, 2, src, &length, 1, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "output 0 has 2 tokens, not 0 to 1");
    ck_assert(!wf_score(d, 1, 2, src, &length, 32, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "scores 0 to 31");
    ck_assert(!wf_score(d, 1, 2, src, &length, -1, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "outputs of -1 tokens");
    ck_assert(!wf_score(d, 1, 2, src, &length, 1, tgt, &(int32_t){ -1 }, log_probs, &total));
    assert_contains(wf_decoder_error(d), "output 0 has -1 tokens, not 0 to 1");
    ck_assert(!wf_score(d, 1, 2, src, &length, 2, NULL, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "NULL");
    ck_assert(!wf_score(d, 1, 1, src, &length, 2, tgt, &n, log_probs, &total));
    assert_contains(wf_decoder_error(d), "sentence 0 has 2 tokens, not 1 to 1");
    tgt[1] = 2;
    assert_decoder(d, wf_score(d, 1, 2, src, &length, 2, tgt, &n, log_probs, &total));
    ck_assert_double_eq_tol(total, log_probs[0] + log_probs[1] + log_probs[2], 1e-12);
    const int32_t none = 0;
    assert_decoder(d, wf_score(d, 1, 2, src, &length, 0, NULL, &none, NULL, &total));
    ck_assert(total < 0);
    wf_decoder_free(d), close_model(m);
}

/* A logit of minus infinity is legal: the token has the probability 0. */
TEST(impossible_tokens_never_come) {
    static sentences b;
    wf_decoded results[16];
    wf_model *m = open_spread(17, WF_F32, 4);
    double bias[17] = { 0 };
    for (int v = 1; v < 17; v += 2) bias[v] = -INFINITY;
    ck_assert(write_doubles(wf_find(m->graph, "output.bias"), bias));
    wf_decoder *d = open_decoder(m, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    for (int i = 0; i < 8; i++) {
        wf_decode_options o = setting(i);
        assert_decoder(d, wf_decode(d, 16, 9, b.src, b.src_length, NULL, &o, results));
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < results[k].n; n++)
                for (int64_t t = 0; t < results[k].best[n].length; t++)
                    ck_assert_int_eq(results[k].best[n].tokens[t] % 2, 0);
        wf_decoded_free(results, 16);
    }
    wf_decoder_free(d), close_model(m);
}
