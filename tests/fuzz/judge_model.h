/* tests/fuzz/judge_model.h - what holds of every model that was read from a file. */
#ifndef WEFT_TESTS_FUZZ_JUDGE_MODEL_H
#define WEFT_TESTS_FUZZ_JUDGE_MODEL_H

#include "fuzz.h"
#include "models/decode.h"
#include "models/encoder.h"
#include "models/model_internal.h"
#include "models/text.h"
#include "models/transformer.h"

/* How far a file got. */
typedef enum { JUDGED_REFUSED, JUDGED_FILE, JUDGED_MODEL, JUDGED_STAGES } judged;
judged judge_model(const uint8_t *data, size_t size);      /* fuzz_model.c */
judged judge_state_dict(const uint8_t *data, size_t size); /* fuzz_state_dict.c */

/* A refusal must be a printable message, and not "out of memory": a small file takes little memory.
 * Those words may only appear within a message, where it quotes the file. */
static inline void judge_refusal(const char *message) {
    static const char reason[] = "out of memory";
    size_t n = strlen(message), k = sizeof reason - 1;
    fuzz_must_say(message);
    fuzz_must(n < k || strcmp(message + n - k, reason) != 0);
    fuzz_must(strncmp(message, reason, k) != 0);
}

static inline bool same_bits(const wf_tensor *a, const wf_tensor *b) {
    size_t n = wf_bytes(a);
    char *x = malloc(2 * n + 1), *y = x + n;
    fuzz_must(x && n == wf_bytes(b) && wf_read(a, x, n) && wf_read(b, y, n));
    bool same = memcmp(x, y, n) == 0;
    free(x);
    return same;
}

/* Requires that every parameter has the same bits in both models. */
static inline void judge_same(const wf_model *a, const wf_model *b) {
    fuzz_must(wf_parameters(a->graph, NULL, NULL, 0) == wf_parameters(b->graph, NULL, NULL, 0));
    for (int i = 0; i < a->own_nodes; i++) {
        const wf_tensor *t = wf_node(a->graph, i);
        if (t->kind == WF_PARAM) fuzz_must(same_bits(t, wf_node(b->graph, i)));
    }
}

/* Requires that moments and averages have the same bits in both optimizers. */
static inline void judge_same_state(const wf_optimizer *o, const wf_optimizer *q) {
    fuzz_must(o->n_moments == q->n_moments && o->n == q->n && !o->averages == !q->averages);
    for (int i = 0; i < o->n; i++) {
        for (int k = 0; k < o->n_moments; k++)
            fuzz_must(same_bits(o->moments[i][k], q->moments[i][k]));
        if (o->averages) fuzz_must(same_bits(o->averages[i], q->averages[i]));
    }
}

/* Computes the vectors of two lines with an encoder, which has no outputs to decode. */
static inline void judge_vectors(wf_model *m) {
    const int32_t last = (int32_t)m->src_vocab - 1, src[] = { 0, last }, length[] = { 1, 0 };
    float *vectors = calloc(2, (size_t)wf_encoder_of(m)->vectors->shape[1] * sizeof(double));
    wf_plan *p = wf_encoder_plan(m, NULL);
    fuzz_must(vectors && wf_encoder_run(m, p, 2, 1, src, length, vectors));
    wf_plan_free(p);
    free(vectors);
}

/* Decodes a few tokens of two sentences: their ids are in the vocabulary, or the decoder fails
 * because of the weights. */
static inline void judge_decoding(wf_model *m) {
    char message[256] = "";
    if (wf_encoder_of(m)) {
        judge_vectors(m);
        return;
    }
    if (wf_model_room(m, 1) < 0) return; /* max_len leaves no room for an output token */
    const int32_t last = (int32_t)m->src_vocab - 1, src[] = { 0, last, last, 0 };
    wf_decode_options o = wf_decode_defaults();
    o.max_len_a = 0, o.max_len_b = 3;
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    fuzz_must(d);
    wf_decoded results[2];
    int s = m->max_len < 2 || wf_model_room(m, 2) < 0 ? 1 : 2;
    if (wf_decode(d, 2, s, src, (int32_t[]){ s, 1 }, NULL, &o, results))
        for (int i = 0; i < 2; i++) {
            fuzz_must(results[i].n == 1);
            for (int64_t k = 0; k < results[i].best->length; k++)
                fuzz_must(results[i].best->tokens[k] >= 0 &&
                          results[i].best->tokens[k] < m->tgt_vocab);
        }
    else
        fuzz_must(strstr(wf_decoder_error(d), "not numbers"));
    wf_decoded_free(results, 2);
    wf_decoder_free(d);
}

/* Checks a loaded model (NULL: there is none): it decodes, and judge_saved saves it and loads it
 * again. Frees f and m. */
static inline judged judge_loaded(wf_file *f, wf_model *m, void (*judge_saved)(const wf_model *)) {
    bool file = wf_file_ok(f), model = m != NULL;
    if (m) {
        fuzz_must(wf_ok(m->graph));
        judge_decoding(m), judge_saved(m);
        wf_model_free(m);
    }
    wf_file_free(f);
    return model ? JUDGED_MODEL : file ? JUDGED_FILE : JUDGED_REFUSED;
}

#endif
