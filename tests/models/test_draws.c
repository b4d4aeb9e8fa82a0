/* tests/models/test_draws.c - tokens drawn at random, against their distribution: temperature, top
 * k, top p, seeds.
 *
 * That batches, threads and padding change no draw is in test_decode.c. */
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(draws)

enum { DRAWS = 1000, COPIES = 16 };

/* The chi-square statistic: sum of (seen - expected)^2 / expected. NaN if a token of probability 0
 * was drawn. */
static double chi_square(const double *p, const int *seen, int n, int draws) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double expected = p[i] * draws;
        if (expected > 0)
            sum += (seen[i] - expected) * (seen[i] - expected) / expected;
        else if (seen[i])
            return NAN;
    }
    return sum;
}

/* Applies temperature, top k and top p to the first token's distribution, in plain C. */
static void filter(double p[5], const wf_decode_options *o) {
    double total = 0, above[5], rank[5];
    for (int i = 0; i < 5; i++) total += p[i] = pow(p[i], 1 / o->temperature);
    for (int i = 0; i < 5; i++) p[i] /= total;
    double in_k = 0, kept = 0;
    for (int i = 0; i < 5; i++) {
        above[i] = rank[i] = 0;
        for (int k = 0; k < 5; k++)
            if (p[k] > p[i]) above[i] += p[k], rank[i]++;
        if (!o->top_k || rank[i] < o->top_k) in_k += p[i];
    }
    for (int i = 0; i < 5; i++) {
        bool stays = (!o->top_k || rank[i] < o->top_k) && above[i] < o->top_p * in_k;
        p[i] = stays ? p[i] : 0;
        kept += p[i];
    }
    for (int i = 0; i < 5; i++) p[i] /= kept;
}

static void draw_copies(wf_decoder *d, wf_decode_options o, wf_decoded *results) {
    int32_t src[COPIES * 2], length[COPIES];
    int64_t index[COPIES];
    for (int i = 0; i < COPIES; i++)
        src[2 * i] = 1, src[2 * i + 1] = 2, length[i] = 2, index[i] = 1000000 + i;
    o.nbest = DRAWS;
    assert_decoder(d, wf_decode(d, COPIES, 2, src, length, index, &o, results));
}

/* The probabilities of 0 (the end) to 4 as the first token. */
static void first_token(wf_decoder *d, double p[5]) {
    for (int32_t token = 0; token < 5; token++) {
        const int32_t src[] = { 1, 2 }, length = 2, n = token > 0;
        double log_probs[2];
        assert_decoder(d, wf_score(d, 1, 2, src, &length, 1, &token, &n, log_probs, NULL));
        p[token] = exp(log_probs[0]);
    }
}

static const struct {
    int top_k;
    double top_p, temperature;
} filters[] = { { 0, 1, 1 },   { 0, 1, 0.5 },   { 0, 1, 3 },   { 3, 1, 1 },  { 1, 1, 2 },
                { 0, 0.6, 1 }, { 0, 0.05, 10 }, { 4, 0.7, 2 }, { 9, 0.9, 1 } };

/* With four degrees of freedom, chi-square exceeds 18.5 with the probability 0.001. */
TEST_ROWS(draws_follow_their_distribution, COUNT_OF(filters)) {
    wf_decoded results[COPIES];
    wf_model *m = open_spread(5, _i % 2 ? WF_F64 : WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    wf_decode_options o =
        sample_options(1, filters[_i].top_k, filters[_i].top_p, filters[_i].temperature);
    double p[5];
    int seen[5] = { 0 };
    first_token(d, p);
    filter(p, &o);
    o.max_len_a = 0, o.max_len_b = 1;
    draw_copies(d, o, results);
    for (int i = 0; i < COPIES; i++)
        for (int k = 0; k < results[i].n; k++)
            seen[results[i].best[k].length ? results[i].best[k].tokens[0] : 0]++;
    double far = chi_square(p, seen, 5, COPIES * DRAWS);
    ck_assert_msg(far < 18.5, "chi-square %g", far);
    wf_decoded_free(results, COPIES);
    wf_decoder_free(d), close_model(m);
}

/* Outputs of at most two tokens: none, v, or v w. Their expected probability is that of wf_score,
 * without the end token that the limit forces. With twenty degrees of freedom, chi-square exceeds
 * 45.3 with the probability 0.001. */
TEST(draws_of_two_steps_are_independent) {
    wf_decoded results[COPIES];
    double p[25] = { 0 }, log_probs[3];
    int seen[25] = { 0 };
    wf_model *m = open_spread(5, WF_F32, 1);
    wf_decoder *d = open_decoder(m, NULL);
    for (int32_t v = 0; v < 5; v++)
        for (int32_t w = 0; w < (v ? 5 : 1); w++) {
            const int32_t src[] = { 1, 2 }, length = 2, tgt[] = { v, w }, n = (v > 0) + (w > 0);
            assert_decoder(d, wf_score(d, 1, 2, src, &length, 2, tgt, &n, log_probs, NULL));
            p[5 * v + w] = exp(log_probs[0] + (v ? log_probs[1] : 0));
        }
    wf_decode_options o = sample_options(1, 0, 1, 1);
    o.max_len_a = 0, o.max_len_b = 2;
    draw_copies(d, o, results);
    for (int i = 0; i < COPIES; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            seen[h->length == 0 ? 0 : 5 * h->tokens[0] + (h->length > 1 ? h->tokens[1] : 0)]++;
        }
    double far = chi_square(p, seen, 25, COPIES * DRAWS);
    ck_assert_msg(far < 45.3, "chi-square %g", far);
    wf_decoded_free(results, COPIES);
    wf_decoder_free(d), close_model(m);
}

/* Returns true if all draws are the same with both sets of options. */
static bool same_draws(wf_decoder *d, const sentences *b, const wf_decode_options *o,
                       const wf_decode_options *other) {
    wf_decoded x[16], y[16];
    bool same = true;
    assert_decoder(d, wf_decode(d, 16, b->S, b->src, b->src_length, NULL, o, x));
    assert_decoder(d, wf_decode(d, 16, b->S, b->src, b->src_length, NULL, other, y));
    for (int i = 0; i < 16; i++) {
        const wf_hypothesis *p = x[i].best, *q = y[i].best;
        same = same && p->length == q->length &&
               memcmp(p->tokens, q->tokens, (size_t)p->length * sizeof *p->tokens) == 0;
    }
    wf_decoded_free(x, 16), wf_decoded_free(y, 16);
    return same;
}

TEST(seeds_and_temperatures) {
    static sentences b;
    wf_model *m = open_spread(17, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 16, 9, 1, 5);
    wf_decode_options o = sample_options(1, 0, 1, 1), other = o;
    ck_assert(same_draws(d, &b, &o, &o));
    other.seed++;
    ck_assert(!same_draws(d, &b, &o, &other));
    wf_decode_options greedy = wf_decode_defaults(), cold = sample_options(1, 0, 1, 1e-3);
    ck_assert(same_draws(d, &b, &greedy, &cold));
    cold.top_k = 5, cold.top_p = 0.9;
    ck_assert(same_draws(d, &b, &greedy, &cold));
    wf_decode_options one = sample_options(1, 1, 1, 100), few = sample_options(1, 0, 1e-9, 100);
    ck_assert(same_draws(d, &b, &greedy, &one) && same_draws(d, &b, &greedy, &few));
    wf_decoder_free(d), close_model(m);
}

/* Marks the likeliest tokens, in their order: at most `most`, until their sum reaches `enough`. */
static int mark_likeliest(const double *p, int n, int most, double enough, bool *in, double *held) {
    int count = 0;
    memset(in, 0, (size_t)n * sizeof *in);
    for (*held = 0; count < most && *held < enough; count++) {
        int best = -1;
        for (int v = 0; v < n; v++)
            if (!in[v] && (best < 0 || p[v] > p[best])) best = v;
        in[best] = true, *held += p[best];
    }
    return count;
}

/* top k and top p for 300 tokens: only tokens are drawn that sorting the distribution would keep,
 * and after many draws each of them was. */
TEST_ROWS(filters_keep_what_sorting_keeps, 6) {
    enum { VOCAB = 300 };
    const struct {
        int top_k;
        double top_p;
    } cases[] = { { 50, 1 }, { 100, 1 }, { 0, 0.5 }, { 100, 0.4 }, { 50, 0.4 }, { 250, 0.999 } };
    wf_decoded results[COPIES];
    wf_model *m = open_spread(VOCAB, WF_F64, 0.5);
    wf_decoder *d = open_decoder(m, NULL);
    double p[VOCAB];
    for (int32_t token = 0; token < VOCAB; token++) {
        const int32_t src[] = { 1, 2 }, length = 2, n = token > 0;
        double log_probs[2];
        assert_decoder(d, wf_score(d, 1, 2, src, &length, 1, &token, &n, log_probs, NULL));
        p[token] = exp(log_probs[0]);
    }
    wf_decode_options o = sample_options(1, cases[_i].top_k, cases[_i].top_p, 1);
    bool in[VOCAB], seen[VOCAB] = { 0 };
    double mass;
    int wanted = mark_likeliest(p, VOCAB, o.top_k ? o.top_k : VOCAB, 2, in, &mass);
    wanted = mark_likeliest(p, VOCAB, wanted, o.top_p * mass, in, &mass);
    o.max_len_a = 0, o.max_len_b = 1;
    draw_copies(d, o, results);
    int found = 0;
    for (int i = 0; i < COPIES; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            int token = h->length ? h->tokens[0] : 0;
            ck_assert_msg(in[token], "token %d of probability %g", token, p[token]);
            found += !seen[token], seen[token] = true;
        }
    ck_assert_int_eq(found, wanted);
    wf_decoded_free(results, COPIES);
    wf_decoder_free(d), close_model(m);
}
