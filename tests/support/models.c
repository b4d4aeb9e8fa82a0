/* tests/support/models.c - see models.h. */
#include "models.h"

#include "models/language_model.h"
#include "models/model_internal.h"

wf_transformer_config course_config(void) {
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = 20, c.max_len = 32;
    c.d_model = 64, c.num_heads = 4, c.dim_feedforward = 128,
    c.encoder_layers = c.decoder_layers = 2;
    c.norm_first = c.encoder_norm = c.decoder_norm = true;
    return c;
}

wf_transformer_config small_config(void) {
    wf_transformer_config c = course_config();
    c.src_vocab = c.tgt_vocab = 17;
    c.d_model = 16, c.num_heads = 2, c.dim_feedforward = 24;
    return c;
}

wf_training_config with_dropout(double dropout) {
    return (wf_training_config){ .dropout = dropout,
                                 .attention_dropout = dropout,
                                 .activation_dropout = dropout };
}

wf_optimizer_options adam_options(void) {
    return (wf_optimizer_options){
        .kind = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9, .clip_norm = 1
    };
}

wf_model *open_model(const wf_transformer_config *c, const wf_training_config *training,
                     wf_dtype real, uint64_t seed) {
    char message[WF_MESSAGE] = "";
    wf_model *m = wf_transformer_new(c, training, real, seed, message);
    ck_assert_msg(m != NULL, "%s", message);
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    return m;
}

wf_model *open_language_model(bool llama, const wf_training_config *training, int vocab,
                              int max_len) {
    wf_language_model_config c = wf_language_model_defaults(llama ? WF_LLAMA : WF_GPT2);
    c.vocab = vocab;
    c.max_len = max_len;
    c.d_model = 16;
    c.num_heads = 4;
    c.num_kv_heads = llama ? 2 : 0;
    c.dim_feedforward = 24;
    c.layers = 2;
    wf_model *m = wf_language_model_new(&c, training, WF_F32, 3, NULL);
    ck_assert(m && wf_ok(m->graph));
    return m;
}

void close_model(wf_model *m) {
    ck_assert_msg(wf_ok(m->graph), "%s", wf_error(m->graph));
    wf_model_free(m);
}

/* ---- sentences ------------------------------------------------------------------------------- */

static int32_t draw(uint64_t key, uint64_t i, int64_t from, int64_t to) { /* from..to - 1 */
    return (int32_t)(from + (int64_t)(number(key, i) * (double)(to - from)));
}

void random_sentences(sentences *b, const wf_transformer_config *c, int B, int S, int T,
                      uint64_t key) {
    ck_assert(B <= MAX_SENTENCES && S <= MAX_WORDS && T <= MAX_WORDS);
    b->B = B, b->S = S, b->T = T;
    for (int i = 0; i < B; i++) b->src_length[i] = i == 0 ? S : draw(key, (uint64_t)i, 1, S + 1);
    for (int i = 0; i < B * S; i++) b->src[i] = draw(key + 1, (uint64_t)i, 1, c->src_vocab);
    for (int i = 0; i < B * T; i++) {
        b->tgt[i] = draw(key + 2, (uint64_t)i, 0, c->tgt_vocab);
        b->labels[i] = draw(key + 3, (uint64_t)i, 0, c->tgt_vocab);
    }
}

void copy_sentences(sentences *b, int B, int least, int most, int vocab, bool start, uint64_t key) {
    ck_assert(B <= MAX_SENTENCES && most < MAX_WORDS);
    b->B = B, b->S = most, b->T = most + start;
    memset(b->src, 0, sizeof b->src), memset(b->tgt, 0, sizeof b->tgt);
    for (int i = 0; i < B * b->T; i++) b->labels[i] = WF_IGNORE_LABEL;
    for (int i = 0; i < B; i++) {
        int n = b->src_length[i] = draw(key, (uint64_t)i, least, most + 1);
        for (int t = 0; t < n; t++)
            b->src[i * b->S + t] = draw(key + 1, (uint64_t)(i * most + t), 1, vocab);
        int32_t *tgt = b->tgt + i * b->T, *labels = b->labels + i * b->T;
        const int32_t *src = b->src + i * b->S;
        memcpy(tgt + start, src, (size_t)n * sizeof *src);
        memcpy(labels, src + !start, (size_t)(n - !start) * sizeof *src);
        labels[n - !start] = 0;
    }
}

/* ---- plans ----------------------------------------------------------------------------------- */

void feed_sentences(wf_plan *p, const wf_model *m, const sentences *b) {
    assert_plan(p, wf_bind(p, "B", b->B) && wf_bind(p, "S", b->S) && wf_bind(p, "T", b->T));
    assert_plan(p, wf_feed(p, m->src, b->src, wf_bound_bytes(p, m->src)) &&
                       wf_feed(p, m->src_length, b->src_length, wf_bound_bytes(p, m->src_length)));
    assert_plan(p, wf_feed(p, m->tgt, b->tgt, wf_bound_bytes(p, m->tgt)) &&
                       wf_feed(p, m->labels, b->labels, wf_bound_bytes(p, m->labels)));
}

values fetched(wf_plan *p, const wf_tensor *t) {
    values v;
    v.data = plan_values(p, t, &v.count);
    return v;
}

values run_for(wf_plan *p, const wf_model *m, const sentences *b, const wf_tensor *t) {
    feed_sentences(p, m, b);
    assert_plan(p, wf_run(p));
    return fetched(p, t);
}

wf_plan *steps_after_encoding(wf_model *m, const sentences *b) {
    wf_plan *encode = wf_model_encode_plan(m, NULL), *p = wf_model_step_plan(m, NULL);
    assert_plan(encode, wf_bind(encode, "B", b->B) && wf_bind(encode, "S", b->S));
    assert_plan(encode, wf_feed(encode, m->src, b->src, wf_bound_bytes(encode, m->src)) &&
                            wf_feed(encode, m->src_length, b->src_length,
                                    wf_bound_bytes(encode, m->src_length)));
    assert_plan(encode, wf_run(encode));
    assert_plan(p, wf_bind(p, "B", b->B) && wf_bind(p, "S", b->S) && wf_bind(p, "T", 1));
    for (int i = 0; i < m->n_memory; i++) {
        size_t bytes = wf_bound_bytes(encode, m->memory[i]);
        void *data = malloc(bytes + 1);
        assert_plan(encode, wf_fetch(encode, m->memory[i], data, bytes));
        assert_plan(p, wf_feed(p, m->memory[i], data, bytes));
        free(data);
    }
    wf_plan_free(encode);
    return p;
}

void assert_trainer(const wf_trainer *t, bool ok) {
    ck_assert_msg(ok, "%s", wf_trainer_error(t));
}

wf_trainer *open_trainer(const wf_model *m, const wf_optimizer_options *o, double rate,
                         wf_pool *pool) {
    wf_trainer *t = wf_trainer_new(
        m->graph, m->loss.loss, m->loss.count,
        &(wf_trainer_options){ .optimizer = o ? *o : adam_options(),
                               .schedule = { .kind = WF_CONSTANT_RATE, .peak = rate },
                               .pool = pool });
    assert_trainer(t, wf_trainer_ok(t));
    return t;
}

double train_step(wf_trainer *t, const wf_model *m, const sentences *b) {
    wf_progress now = { 0 };
    feed_sentences(wf_trainer_plan(t), m, b);
    assert_trainer(t, wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                          wf_trainer_update(t, &now));
    return now.loss;
}

int exact_copies(wf_model *m, int n, int least, int most, uint64_t key) {
    static sentences b;
    int32_t out[MAX_SENTENCES * MAX_WORDS], length[MAX_SENTENCES];
    int right = 0, width = most + 2;
    wf_decoder *d = open_decoder(m, NULL);
    for (int done = 0; done < n; done += 50) {
        copy_sentences(&b, 50, least, most, (int)m->src_vocab, true, key + (uint64_t)done);
        assert_decoder(d, wf_decode_greedy(d, b.B, b.S, b.src, b.src_length, width, out, length));
        for (int i = 0; i < b.B; i++)
            right += length[i] == b.src_length[i] &&
                     memcmp(out + i * width, b.src + i * b.S, (size_t)length[i] * sizeof *out) == 0;
    }
    wf_decoder_free(d);
    return right;
}

/* ---- decoding -------------------------------------------------------------------------------- */

wf_model *open_spread(int vocab, wf_dtype real, double by) {
    wf_transformer_config c = small_config();
    c.src_vocab = c.tgt_vocab = vocab;
    wf_model *m = open_model(&c, NULL, real, 3);
    wf_tensor *weight = wf_find(m->graph, "output.weight");
    double *data = leaf_values(weight);
    for (int64_t i = 0; i < wf_count(weight); i++) data[i] *= by;
    ck_assert(write_doubles(weight, data));
    free(data);
    return m;
}

wf_decoder *open_decoder(wf_model *m, wf_pool *pool) {
    char message[WF_MESSAGE] = "";
    wf_decoder *d = wf_decoder_new(m, pool, message);
    ck_assert_msg(d != NULL, "%s", message);
    return d;
}

wf_decode_options sample_options(int draws, int top_k, double top_p, double temperature) {
    wf_decode_options o = wf_decode_defaults();
    o.sample = true, o.nbest = draws, o.top_k = top_k, o.top_p = top_p;
    o.temperature = temperature, o.seed = 11;
    return o;
}

static void assert_same_output(const wf_hypothesis *a, const wf_hypothesis *b) {
    size_t n = (size_t)a->length;
    ck_assert_int_eq(a->length, b->length);
    ck_assert(memcmp(a->tokens, b->tokens, n * sizeof *a->tokens) == 0);
    ck_assert(memcmp(a->log_probs, b->log_probs, (n + 1) * sizeof *a->log_probs) == 0);
    ck_assert(memcmp(&a->total, &b->total, sizeof a->total) == 0);
    ck_assert(memcmp(&a->score, &b->score, sizeof a->score) == 0);
    ck_assert(a->cut == b->cut);
}

/* Decodes all sentences in batches of n, each padded to the length of its longest sentence. */
static void decode_by(wf_model *m, int n, int threads, const sentences *b,
                      const wf_decode_options *o, wf_decoded *results) {
    int32_t src[MAX_SENTENCES * MAX_WORDS];
    int64_t index[MAX_SENTENCES];
    wf_pool *pool = wf_pool_new(threads);
    wf_decoder *d = open_decoder(m, pool);
    for (int from = 0; from < b->B; from += n) {
        int count = from + n < b->B ? n : b->B - from, longest = m->src ? 1 : 0;
        for (int i = 0; i < count; i++)
            if (b->src_length[from + i] > longest) longest = b->src_length[from + i];
        for (int i = 0; i < count; i++) {
            index[i] = from + i;
            memcpy(src + i * longest, b->src + (from + i) * b->S, (size_t)longest * sizeof *src);
        }
        assert_decoder(
            d, wf_decode(d, count, longest, src, b->src_length + from, index, o, results + from));
    }
    wf_decoder_free(d), wf_pool_free(pool);
}

void assert_decoded_alike(wf_model *m, const sentences *b, const wf_decode_options *o) {
    const int sizes[] = { 7, b->B };
    wf_decoded alone[MAX_SENTENCES], results[MAX_SENTENCES];
    decode_by(m, 1, 1, b, o, alone);
    for (int threads = 1; threads <= 2; threads++)
        for (int k = 0; k < COUNT_OF(sizes); k++) {
            decode_by(m, sizes[k], threads, b, o, results);
            for (int i = 0; i < b->B; i++) {
                ck_assert_int_eq(results[i].n, o->nbest);
                ck_assert_int_eq(alone[i].n, o->nbest);
                for (int n = 0; n < o->nbest; n++)
                    assert_same_output(&alone[i].best[n], &results[i].best[n]);
            }
            wf_decoded_free(results, b->B);
        }
    wf_decoded_free(alone, b->B);
}
