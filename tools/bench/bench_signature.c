/* tools/bench/bench_signature.c - a number that every machine must find: a hash of what two models
 * have learned after a few steps, and of what one of them decodes.
 *
 * Results have the same bits everywhere (ops/kernels/README.md), so the number does not depend on
 * processor, compiler, C library or number of threads. The first 16 digits depend on the training
 * alone, the others also on the decoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_model.h"
#include "core/base/random.h"
#include "models/language_model.h"
#include "nn/trainer.h"

enum { COPY_STEPS = 50, LM_STEPS = 10, ROWS = 32, SOURCE = 10, MOST = 64, DECODED = 16 };

typedef struct signature {
    uint64_t training, decoding;
    wf_pool *pool;
} signature;

static void mix(uint64_t *hash, uint64_t word) {
    *hash = wf_mix64(*hash ^ word);
}

static void mix_real(uint64_t *hash, double x) {
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    mix(hash, x == x ? word : 1); /* all NaNs count as equal */
}

/* A uniform integer in [0, n). */
static int32_t draw_id(uint64_t key, int64_t i, int64_t n) {
    return (int32_t)(wf_philox4x32(key, (uint64_t)i, 0).v[0] % (uint64_t)n);
}

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct pairs {
    int32_t src[ROWS * MOST], length[ROWS], tgt[ROWS * MOST], labels[ROWS * MOST];
    wf_batch batch;
} pairs;

/* A batch of the copy task. Ids 0 and 1 are start and end. Sources have 3 to SOURCE ids, and
 * targets are equal to them. */
static void make_copies(pairs *p, int64_t step, int64_t vocab) {
    *p = (pairs){ .batch = { .B = ROWS, .S = SOURCE, .T = SOURCE + 1 } };
    for (int64_t r = 0; r < ROWS; r++) {
        p->length[r] = 3 + draw_id(1, step * ROWS + r, SOURCE - 2);
        for (int64_t i = 0; i < SOURCE + 1; i++) {
            bool inside = i < p->length[r];
            int32_t id = 2 + draw_id(2, (step * ROWS + r) * MOST + i, vocab - 2);
            if (i < SOURCE) p->src[r * SOURCE + i] = inside ? id : 1;
            if (i < SOURCE) p->tgt[r * (SOURCE + 1) + i + 1] = inside ? id : 1;
            int32_t label = i == p->length[r] ? 1 : -1;
            p->labels[r * (SOURCE + 1) + i] = inside ? id : label;
        }
    }
    p->batch.src = p->src;
    p->batch.src_length = p->length;
    p->batch.tgt = p->tgt;
    p->batch.labels = p->labels;
}

/* Rows of running text, in which an id is mostly the one before it plus 3. */
static void make_text(pairs *p, int64_t step, int64_t vocab) {
    *p = (pairs){ .batch = { .B = ROWS, .T = MOST } };
    for (int64_t r = 0; r < ROWS; r++) {
        int32_t id = 0;
        for (int64_t i = 0; i < MOST; i++) {
            int64_t at = (step * ROWS + r) * MOST + i;
            p->tgt[r * MOST + i] = id;
            id = draw_id(3, at, 8) ? (id + 3) % (int32_t)vocab : draw_id(4, at, vocab);
            p->labels[r * MOST + i] = id;
        }
    }
    p->batch.src = p->src;
    p->batch.src_length = p->length;
    p->batch.tgt = p->tgt;
    p->batch.labels = p->labels;
}

/* ---- training -------------------------------------------------------------------------------- */

static void mix_parameters(uint64_t *hash, const wf_model *m) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *p = wf_node(m->graph, id);
        if (p->kind != WF_PARAM) continue;
        float *values = malloc(wf_bytes(p));
        if (!values || !wf_read(p, values, wf_bytes(p))) fail(&bench_program, "out of memory");
        for (size_t k = 0; k < wf_bytes(p) / sizeof *values; k++) mix_real(hash, (double)values[k]);
        free(values);
    }
}

static void train(signature *s, wf_model *m, int64_t steps, int64_t vocab,
                  void (*make)(pairs *, int64_t, int64_t)) {
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAMW), .pool = s->pool };
    o.schedule =
        (wf_schedule){ .kind = WF_COSINE, .peak = 3e-3, .warmup = steps / 5, .steps = steps };
    o.optimizer.clip_norm = 1;
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    pairs *p = malloc(sizeof *p);
    bool ok = p && wf_trainer_ok(t);
    for (int64_t step = 0; ok && step < steps; step++) {
        make(p, step, vocab);
        ok = wf_trainer_begin(t, 1, NULL, NULL) &&
             wf_model_feed(m, wf_trainer_plan(t), &p->batch) && wf_trainer_add(t, 0) &&
             wf_trainer_update(t, NULL);
    }
    if (!ok) fail(&bench_program, "%s", p ? wf_trainer_error(t) : "out of memory");
    mix_parameters(&s->training, m);
    wf_trainer_free(t);
    free(p);
}

static wf_model *checked(wf_model *m, const char *message) {
    if (!m) fail(&bench_program, "%s", message);
    if (!wf_ok(m->graph)) fail(&bench_program, "%s", wf_error(m->graph));
    return m;
}

static const wf_training_config noise = { .dropout = 0.1, .attention_dropout = 0.1 };

static void train_text(signature *s) {
    char message[WF_MESSAGE] = "";
    wf_language_model_config c = wf_language_model_defaults(WF_LLAMA);
    c.vocab = 96;
    c.d_model = 48;
    c.num_heads = 4;
    c.num_kv_heads = 2;
    c.dim_feedforward = 80;
    c.layers = 2;
    c.max_len = MOST + 1;
    wf_model *m = checked(wf_language_model_new(&c, &noise, WF_F32, 2, message), message);
    train(s, m, LM_STEPS, c.vocab, make_text);
    wf_model_free(m);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void decode(signature *s, wf_decoder *d, const pairs *p, const wf_decode_options *o) {
    wf_decoded results[DECODED] = { { 0 } };
    if (!wf_decode(d, DECODED, SOURCE, p->src, p->length, NULL, o, results))
        fail(&bench_program, "%s", wf_decoder_error(d));
    for (int i = 0; i < DECODED; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            for (int64_t at = 0; at < h->length; at++) mix(&s->decoding, (uint64_t)h->tokens[at]);
            mix_real(&s->decoding, h->score);
        }
    wf_decoded_free(results, DECODED);
}

/* Trains a model to copy, then decodes greedily, with a beam and by sampling, with weights in this
 * layout. */
static void train_and_decode(signature *s, wf_layout layout) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = workload_of(0).config;
    wf_model *m = checked(wf_transformer_new(&c, &noise, WF_F32, 1, message), message);
    train(s, m, COPY_STEPS, c.src_vocab, make_copies);
    if (!wf_pack_weights(m->graph, layout, message)) fail(&bench_program, "%s", message);
    wf_decoder *d = wf_decoder_new(m, s->pool, message);
    pairs *p = malloc(sizeof *p);
    if (!d || !p) fail(&bench_program, "%s", d ? "out of memory" : message);
    make_copies(p, COPY_STEPS, c.src_vocab);
    wf_decode_options greedy = wf_decode_defaults(), beam = greedy, drawn = greedy;
    beam.beam = beam.nbest = 4;
    beam.alpha = 0.6;
    beam.penalty = WF_PENALTY_GNMT;
    drawn.sample = true;
    drawn.nbest = 3;
    drawn.temperature = 0.8;
    drawn.top_p = 0.95;
    drawn.seed = 5;
    decode(s, d, p, &greedy);
    decode(s, d, p, &beam);
    decode(s, d, p, &drawn);
    wf_decoder_free(d);
    wf_model_free(m);
    free(p);
}

void bench_signature(bench_settings *set) {
    signature s = { .pool = wf_pool_new((int)set->threads) };
    train_text(&s);
    train_and_decode(&s, WF_PANELS);
    train_and_decode(&s, WF_PANELS_BF16);
    train_and_decode(&s, WF_PANELS_INT8);
    wf_pool_free(s.pool);
    printf("%016llx%016llx\n", (unsigned long long)s.training, (unsigned long long)s.decoding);
}
