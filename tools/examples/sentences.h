/* sentences.h - a toy language for the examples with a translator: a translation is the sentence
 * backwards. In a dialect, each word is also replaced by the one that is `dialect` places after it
 * in the dictionary. */
#ifndef SENTENCES_H
#define SENTENCES_H

#include <weft/weft.h>

enum { LENGTH = 6, START = 0, END = 1, FIRST_WORD = 2, WORDS = 12 };
enum { MOST_PARAMETERS = 256 };
/* SENTENCES: in a batch. Sentences numbered below FIRST_LEARNED are used for tests alone. */
enum { SENTENCES = 32, FIRST_LEARNED = 10000 };

/* A Transformer small enough to learn the language in a second. */
static inline wf_transformer_config small_translator(void) {
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = WORDS;
    c.max_len = LENGTH + 2;
    c.d_model = 32;
    c.num_heads = 4;
    c.dim_feedforward = 64;
    c.encoder_layers = c.decoder_layers = 1;
    c.start_id = START;
    c.end_id = END;
    return c;
}

/* Make sentence number n. */
static inline void make_sentence(int32_t words[LENGTH], uint64_t n) {
    for (int i = 0; i < LENGTH; i++)
        words[i] = FIRST_WORD +
                   (int32_t)(wf_random_uniform(n, (uint64_t)i) * (double)(WORDS - FIRST_WORD));
}

/* Word i of the translation of these words. */
static inline int32_t translated(const int32_t words[LENGTH], int i, int dialect) {
    return FIRST_WORD + (words[LENGTH - 1 - i] - FIRST_WORD + dialect) % (WORDS - FIRST_WORD);
}

static inline bool is_right(const int32_t words[LENGTH], const int32_t answer[LENGTH],
                            int dialect) {
    int right = 0;
    for (int i = 0; i < LENGTH; i++) right += answer[i] == translated(words, i, dialect);
    return right == LENGTH;
}

/* Train the parameters whose names fit this pattern for `steps` steps. Each step has a batch of new
 * sentences and their translations. */
static inline bool train_translator(wf_model *m, const char *names, int steps, double rate,
                                    int dialect) {
    int32_t src[SENTENCES][LENGTH], lengths[SENTENCES];
    int32_t tgt[SENTENCES][LENGTH + 1], labels[SENTENCES][LENGTH + 1];
    const wf_batch batch = { SENTENCES, LENGTH, LENGTH + 1, src[0], lengths, tgt[0], labels[0] };
    wf_tensor *params[MOST_PARAMETERS];
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .kind = WF_CONSTANT_RATE, .peak = rate },
                             .params = params };
    o.n_params = wf_parameters(m->graph, names, params, MOST_PARAMETERS);
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    bool ok = wf_trainer_ok(t);
    for (int step = 1; ok && step <= steps; step++) {
        for (int i = 0; i < SENTENCES; i++) {
            make_sentence(src[i], (uint64_t)(FIRST_LEARNED + step * SENTENCES + i));
            tgt[i][0] = START;
            labels[i][LENGTH] = END;
            lengths[i] = LENGTH;
            for (int j = 0; j < LENGTH; j++)
                tgt[i][j + 1] = labels[i][j] = translated(src[i], j, dialect);
        }
        ok = wf_trainer_begin(t, 1, NULL, NULL) && wf_model_feed(m, wf_trainer_plan(t), &batch) &&
             wf_trainer_add(t, 0) && wf_trainer_update(t, NULL);
    }
    if (!ok) fprintf(stderr, "%s %s\n", wf_trainer_error(t), wf_plan_error(wf_trainer_plan(t)));
    wf_trainer_free(t);
    return ok;
}

#endif
