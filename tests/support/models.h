/* tests/support/models.h - helpers of the suites of nn and models: small Transformers, batches of
 * sentences, training steps. */
#ifndef WEFT_TESTS_SUPPORT_MODELS_H
#define WEFT_TESTS_SUPPORT_MODELS_H

#include "models/decode.h"
#include "models/transformer.h"
#include "support.h"

enum { MAX_SENTENCES = 64, MAX_WORDS = 128 };

/* A batch: rows right-padded. */
typedef struct sentences {
    int B, S, T;
    int32_t src[MAX_SENTENCES * MAX_WORDS], src_length[MAX_SENTENCES];
    int32_t tgt[MAX_SENTENCES * MAX_WORDS], labels[MAX_SENTENCES * MAX_WORDS];
} sentences;

/* A Transformer of 171,540 parameters that can learn the copy task. */
wf_transformer_config course_config(void);
/* Width 16, 2 heads, 2 + 2 layers, vocabularies of 17: for tests that need no learning. */
wf_transformer_config small_config(void);
wf_training_config with_dropout(double dropout);
/* Adam with clipping. */
wf_optimizer_options adam_options(void);

wf_model *open_model(const wf_transformer_config *c, const wf_training_config *training,
                     wf_dtype real, uint64_t seed);
/* A language model of width 16 with 4 heads and 2 layers, in the form of GPT or, with 2 heads of
 * keys and values, of Llama. */
wf_model *open_language_model(bool llama, const wf_training_config *training, int vocab,
                              int max_len);
void close_model(wf_model *m); /* fails the test if the graph failed */

#define assert_plan(p, call) ck_assert_msg(call, "%s", wf_plan_error(p))

/* Random sentences: source lengths from 1 to S, source ids from 1 up, target ids and labels from 0
 * up, and noise in place of padding. */
void random_sentences(sentences *b, const wf_transformer_config *c, int B, int S, int T,
                      uint64_t key);
/* Sentences of the copy task. start true: the decoder's input is 0 and the source, the labels are
 * the source and 0. start false: the decoder's input is the source, and each label is the token
 * after it, at the end 0. */
void copy_sentences(sentences *b, int B, int least, int most, int vocab, bool start, uint64_t key);

void feed_sentences(wf_plan *p, const wf_model *m, const sentences *b);
values fetched(wf_plan *p, const wf_tensor *t);
/* Runs p on b, and fetches t. */
values run_for(wf_plan *p, const wf_model *m, const sentences *b, const wf_tensor *t);
/* A plan of decoding steps over the encoded sources, bound to one target token a step. */
wf_plan *steps_after_encoding(wf_model *m, const sentences *b);
/* A trainer of all of m's parameters at a constant rate; o NULL: adam_options. */
wf_trainer *open_trainer(const wf_model *m, const wf_optimizer_options *o, double rate,
                         wf_pool *pool);
/* Makes an update from the sentences. Returns the mean loss before it. */
double train_step(wf_trainer *t, const wf_model *m, const sentences *b);
void assert_trainer(const wf_trainer *t, bool ok);
/* Decodes n sources of the copy task, n a multiple of 50. Returns how many outputs are exact
 * copies. */
int exact_copies(wf_model *m, int n, int least, int most, uint64_t key);

/* ---- decoding -------------------------------------------------------------------------------- */

#define assert_decoder(d, call) ck_assert_msg(call, "%s", wf_decoder_error(d))

/* The small model with its output weights multiplied by `by`, so that its probabilities differ. */
wf_model *open_spread(int vocab, wf_dtype real, double by);
wf_decoder *open_decoder(wf_model *m, wf_pool *pool);
/* Decodes the sentences one by one with one thread, then seven at a time and all together, each
 * with one thread and with two. Asserts that each has nbest outputs, with the same bits every
 * time. */
void assert_decoded_alike(wf_model *m, const sentences *b, const wf_decode_options *o);
wf_decode_options sample_options(int draws, int top_k, double top_p, double temperature);

#endif
