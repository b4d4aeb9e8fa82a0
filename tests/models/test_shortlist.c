/* tests/models/test_shortlist.c - lexical shortlists: reading and refusing files, the candidates of
 * a source, and searches among them, which do not depend on the batch. */
#include <math.h>

#include "models/decode/decoder.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"
#include "tests/support/shortlists.h"

TESTS(shortlist)

enum { VOCAB = 17, PER = 2, FIRST = 3 };

static uint8_t bytes[SHORTLIST_BYTES];
static char message[256];

static wf_shortlist *read_list(size_t n, bool shared) {
    return wf_shortlist_read(bytes, n, VOCAB, VOCAB, shared, message);
}

static size_t usual(void) {
    return write_shortlist(bytes, FIRST, VOCAB, PER, VOCAB);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The candidates of a source by the rule of models/shortlist.h, computed in another way. Returns
 * their number. */
static int expected(const int32_t *src, int n, bool shared, int32_t *ids) {
    bool chosen[VOCAB] = { false };
    int count = 0, listed = 0;
    for (int i = 0; i < FIRST; i++) chosen[i] = true;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < PER; k++) {
            chosen[shortlist_id(src[i], k, VOCAB)] = true;
            if (shared) chosen[src[i]] = true;
        }
    for (int i = 0; i < VOCAB; i++) count += chosen[i];
    for (int i = FIRST; i < VOCAB && count % 8; i++) {
        if (!chosen[i]) count++;
        chosen[i] = true;
    }
    for (int i = 0; i < VOCAB; i++)
        if (chosen[i]) ids[listed++] = i;
    return listed;
}

TEST_ROWS(candidates_are_those_of_the_source, 2) {
    static const int32_t sources[][4] = { { 3, 4, 5, 0 }, { 16, 16, 16, 16 }, { 1, 2, 9, 13 } };
    int32_t ids[VOCAB], want[VOCAB];
    wf_shortlist *l = read_list(usual(), _i);
    ck_assert_msg(l, "%s", message);
    for (int i = 0; i < COUNT_OF(sources); i++)
        for (int n = 0; n <= 4; n++) {
            int count = expected(sources[i], n, _i, want);
            ck_assert_int_eq(wf_shortlist_candidates(l, sources[i], n, ids, VOCAB), count);
            for (int k = 0; k < count; k++) ck_assert_int_eq(ids[k], want[k]);
            ck_assert_int_eq(wf_shortlist_candidates(l, sources[i], n, NULL, 0), count);
        }
    ck_assert_int_eq(wf_shortlist_candidates(l, (int32_t[]){ VOCAB }, 1, ids, VOCAB), -1);
    ck_assert_int_eq(wf_shortlist_candidates(l, (int32_t[]){ -1 }, 1, ids, VOCAB), -1);
    ck_assert_int_eq(wf_shortlist_candidates(NULL, NULL, 0, NULL, 0), -1);
    wf_shortlist_free(l);
    wf_shortlist_free(NULL);
}

/* The offsets of a file end with the last token that has a list. Tokens after it add no
 * candidates. */
TEST(tokens_behind_the_last_list_have_none) {
    int32_t ids[VOCAB];
    wf_shortlist *l = read_list(write_shortlist(bytes, 8, 2, PER, VOCAB), false);
    ck_assert_msg(l, "%s", message);
    ck_assert_int_eq(wf_shortlist_candidates(l, (int32_t[]){ 2, VOCAB - 1 }, 2, ids, VOCAB), 8);
    wf_shortlist_free(l);
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST(damaged_lists_are_refused) {
    size_t n = usual();
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(!read_list(i, false), "%zu bytes of %zu are taken", i, n);
        ck_assert_str_ne(message, "");
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* the file has an even number of ids; of an odd number, the checksum omits the last */
        wf_shortlist *l = read_list(n, false);
        ck_assert_msg(!l, "bit %zu is another and is taken", bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_int_eq(bytes[n] = 0, 0);
    ck_assert(!read_list(n + 1, false) && !read_list(n + 4, false));
}

/* Files with a right checksum but contradictory numbers are refused. */
TEST(contradictions_are_refused) {
    enum { HEAD = 48 };
    static const struct {
        size_t at;
        uint64_t value;
        const char *says;
    } rows[] = {
        { 0, 1, "does not begin as a binary shortlist" },
        { 32, 0, "was cut or joined" },
        { 32, UINT64_MAX, "was cut or joined" },
        { 32, UINT64_MAX / 8 + 2, "was cut or joined" },
        { 40, UINT64_MAX, "was cut or joined" },
        { 40, 1, "was cut or joined" },
        { HEAD, 1000, "ends at 1000 of 34 ids" },
        { HEAD + 8, 35, "ends at 35 of 34 ids" },
        { HEAD + 16, 1, "ends at 1 of 34 ids" },
        { HEAD + 8 * VOCAB, 33, "ends at 33 of 34 ids" },
        { HEAD + 8 * VOCAB, UINT64_MAX, "of 34 ids" },
        { HEAD + 8 * (VOCAB + 1), VOCAB, "it has token 17, and the vocabulary has 17" },
        { HEAD + 8 * (VOCAB + 1), (uint64_t)-1, "it has token 4294967295" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        size_t n = usual();
        put_u64(bytes + rows[i].at, rows[i].value);
        seal_shortlist(bytes, n);
        wf_shortlist *l = read_list(n, false);
        ck_assert_msg(!l && strstr(message, rows[i].says), "row %d says: %s", i, message);
    }
    ck_assert(!wf_shortlist_read(bytes, usual(), VOCAB - 1, VOCAB, false, message));
    ck_assert_ptr_nonnull(strstr(message, "17 source tokens, and the vocabulary has 16"));
    ck_assert(!wf_shortlist_read(NULL, 100, VOCAB, VOCAB, false, NULL));
    ck_assert(!wf_shortlist_read(bytes, 100, 0, VOCAB, false, NULL));
    size_t n = write_shortlist(bytes, UINT64_MAX, VOCAB, PER, VOCAB);
    wf_shortlist *all = read_list(n, false); /* all tokens are frequent */
    ck_assert_int_eq(wf_shortlist_candidates(all, NULL, 0, NULL, 0), VOCAB);
    wf_shortlist_free(all);
}

/* ---- searches -------------------------------------------------------------------------------- */

static bool is_candidate(const wf_shortlist *l, const int32_t *src, int64_t n, int32_t token) {
    int32_t ids[VOCAB];
    int64_t count = wf_shortlist_candidates(l, src, n, ids, VOCAB);
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == token) return true;
    return false;
}

static const wf_decode_options searches[] = {
    { .beam = 1, .nbest = 1, .max_len_b = 9 },
    { .beam = 4, .nbest = 4, .max_len_b = 9, .penalty = WF_PENALTY_GNMT, .alpha = 0.6 },
    { .beam = 3, .nbest = 2, .max_len_b = 6, .no_repeat_ngram = 1, .min_len = 3 },
    { .beam = 1, .nbest = 3, .max_len_b = 9, .sample = true, .top_p = 0.9, .seed = 5 },
    { .beam = 1, .nbest = 1, .max_len_b = 40, .no_repeat_ngram = 1, .min_len = 30 },
};

static wf_decode_options with_list(int row, const wf_shortlist *l) {
    wf_decode_options o = wf_decode_defaults(), s = searches[row];
    s.repetition_penalty = o.repetition_penalty;
    s.decay = o.decay;
    s.temperature = o.temperature;
    if (!s.sample) s.top_p = o.top_p;
    s.shortlist = l;
    return s;
}

TEST_ROWS(outputs_have_candidates_alone_in_any_batch, 2 * COUNT_OF(searches)) {
    static sentences b;
    wf_decoded results[12];
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    wf_model *m = open_spread(VOCAB, real, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_shortlist *l = read_list(usual(), false);
    wf_decode_options o = with_list(_i / 2, l);
    random_sentences(&b, &wf_transformer_of(m)->config, 12, 6, 1, 5);
    assert_decoder(d, wf_decode(d, 12, 6, b.src, b.src_length, NULL, &o, results));
    for (int i = 0; i < 12; i++) {
        const int32_t *src = b.src + i * b.S;
        ck_assert_int_ge(results[i].n, 1);
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            for (int64_t t = 0; t < h->length; t++)
                ck_assert(is_candidate(l, src, b.src_length[i], h->tokens[t]));
            for (int64_t t = 0; t <= h->length; t++) ck_assert(isfinite(h->log_probs[t]));
        }
    }
    wf_decoded_free(results, 12);
    wf_decoder_free(d);
    assert_decoded_alike(m, &b, &o);
    wf_shortlist_free(l);
    close_model(m);
}

static void assert_same_results(const wf_decoded *a, const wf_decoded *b, int n) {
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(a[i].n, b[i].n);
        for (int k = 0; k < a[i].n; k++) {
            const wf_hypothesis *x = &a[i].best[k], *y = &b[i].best[k];
            ck_assert_int_eq(x->length, y->length);
            ck_assert_mem_eq(x->tokens, y->tokens, (size_t)x->length * sizeof *x->tokens);
            ck_assert_mem_eq(x->log_probs, y->log_probs,
                             (size_t)(x->length + 1) * sizeof *x->log_probs);
        }
    }
}

/* With a list of all tokens the outputs are those without one, to the bit. */
TEST_ROWS(a_list_of_everything_changes_nothing, COUNT_OF(searches)) {
    static sentences b;
    wf_decoded with[7], without[7];
    wf_model *m = open_spread(VOCAB, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_shortlist *l = read_list(write_shortlist(bytes, VOCAB, 1, 1, VOCAB), false);
    wf_decode_options o = with_list(_i, l), none = with_list(_i, NULL);
    random_sentences(&b, &wf_transformer_of(m)->config, 7, 6, 1, 5);
    assert_decoder(d, wf_decode(d, 7, 6, b.src, b.src_length, NULL, &o, with));
    assert_decoder(d, wf_decode(d, 7, 6, b.src, b.src_length, NULL, &none, without));
    assert_same_results(with, without, 7);
    wf_decoded_free(with, 7);
    wf_decoded_free(without, 7);
    wf_shortlist_free(l);
    wf_decoder_free(d);
    close_model(m);
}

static bool hears(void *user, const wf_search_step *step) {
    (void)step;
    ++*(int *)user;
    return true;
}

enum { KINDS = 5, MANY = 150 };

/* A search with a listener computes all logits, one without only those of the candidates. Both give
 * the same bits, for output matrices in any layout. */
TEST_ROWS(few_logits_have_the_bits_of_all, KINDS *COUNT_OF(searches)) {
    static sentences b;
    wf_decoded few[7], all[7];
    int kind = _i % KINDS, heard = 0;
    wf_dtype real = kind == 4 ? WF_F64 : WF_F32;
    wf_model *m = open_spread(MANY, real, 4);
    ck_assert(kind == 4 || wf_pack_weights(m->graph, (wf_layout)kind, message));
    wf_decoder *d = open_decoder(m, NULL);
    wf_shortlist *l = wf_shortlist_read(bytes, write_shortlist(bytes, FIRST, MANY, PER, MANY), MANY,
                                        MANY, false, message);
    ck_assert_msg(l != NULL, "%s", message);
    wf_decode_options o = with_list(_i / KINDS, l), watched = o;
    watched.watched = hears;
    watched.listener = &heard;
    random_sentences(&b, &wf_transformer_of(m)->config, 7, 6, 1, 5);
    assert_decoder(d, wf_decode(d, 7, 6, b.src, b.src_length, NULL, &o, few));
    ck_assert(d->hidden_step && d->running == d->hidden_step);
    assert_decoder(d, wf_decode(d, 7, 6, b.src, b.src_length, NULL, &watched, all));
    ck_assert(d->running == d->step && heard > 0);
    assert_same_results(few, all, 7);
    wf_decoded_free(few, 7);
    wf_decoded_free(all, 7);
    wf_decoder_free(d);
    if (kind == 0) assert_decoded_alike(m, &b, &o);
    wf_shortlist_free(l);
    close_model(m);
}

TEST(lists_that_do_not_fit_are_told) {
    const int32_t src[] = { 3, 4 }, length = 2;
    wf_decoded result;
    wf_model *m = open_spread(VOCAB, WF_F32, 4);
    wf_decoder *d = open_decoder(m, NULL);
    wf_shortlist *l = wf_shortlist_read(bytes, usual(), VOCAB, VOCAB + 1, false, message);
    wf_decode_options o = with_list(0, l);
    ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, &o, &result));
    ck_assert_str_eq(wf_decoder_error(d), "the shortlist is for vocabularies of another size");
    wf_decoder_free(d);
    close_model(m);
    m = open_language_model(false, NULL, VOCAB, 20);
    d = open_decoder(m, NULL);
    ck_assert(!wf_decode(d, 1, 2, src, &length, NULL, &o, &result));
    ck_assert_ptr_nonnull(strstr(wf_decoder_error(d), "that reads a source of its own"));
    wf_decoder_free(d);
    close_model(m);
    wf_shortlist_free(l);
}
