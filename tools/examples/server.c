/* server.c - a translator that many threads ask at once: one graph, one set of weights, and a
 * decoder for each thread.
 *
 * Shows the Transformer of models/, from its training to its service. The language is a toy: to
 * translate a sentence is to say it backwards. Answers are the same with any number of threads; a
 * request that makes no sense is refused with a reason, and harms no other. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

enum { LENGTH = 6, WORDS = 12, BATCH = 32, STEPS = 400, THREADS = 4, REQUESTS = 200, BAD = 7 };
enum { START, END, FIRST_WORD };

struct request {
    int32_t source[LENGTH], answer[LENGTH], length;
    char refused[256]; /* why; "" if it was answered */
};

struct thread {
    pthread_t id;
    wf_model *model;
    struct request *requests; /* [REQUESTS] */
    int first, step;          /* which of them are its own */
};

static void make_sentence(int32_t words[LENGTH], uint64_t *random) {
    for (int i = 0; i < LENGTH; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        words[i] = FIRST_WORD + (int32_t)((*random >> 33) % (WORDS - FIRST_WORD));
    }
}

/* Trains on a batch of new sentences and their translations. */
static bool train_step(wf_model *m, wf_plan *train, int step, uint64_t *random) {
    int32_t src[BATCH][LENGTH], lengths[BATCH], tgt[BATCH][LENGTH + 1], labels[BATCH][LENGTH + 1];
    for (int i = 0; i < BATCH; i++) {
        make_sentence(src[i], random);
        tgt[i][0] = START, labels[i][LENGTH] = END, lengths[i] = LENGTH;
        for (int j = 0; j < LENGTH; j++) tgt[i][j + 1] = labels[i][j] = src[i][LENGTH - 1 - j];
    }
    wf_batch batch = { BATCH, LENGTH, LENGTH + 1, src[0], lengths, tgt[0], labels[0] };
    double rates[3];
    wf_optimizer_rates(&m->training.optimizer, 0.003, step, rates);
    return wf_model_feed(m, train, &batch) && wf_feed_reals(train, m->optimizer.rates, rates, 3) &&
           wf_run(train);
}

/* A thread answers its requests, one after the other. */
static void *serve(void *data) {
    struct thread *t = (struct thread *)data;
    wf_decoder *d = wf_decoder_new(t->model, NULL, NULL);
    const int32_t length = LENGTH;
    for (int i = t->first; i < REQUESTS; i += t->step) {
        struct request *r = &t->requests[i];
        if (!wf_decode_greedy(d, 1, LENGTH, r->source, &length, LENGTH, r->answer, &r->length))
            snprintf(r->refused, sizeof r->refused, "%s", wf_decoder_error(d));
    }
    wf_decoder_free(d);
    return NULL;
}

/* Answers them all with n threads; returns how many answers are right. */
static int serve_all(wf_model *m, struct request *requests, int n) {
    struct thread threads[THREADS];
    int right = 0;
    for (int i = 0; i < n; i++) {
        threads[i].model = m, threads[i].requests = requests;
        threads[i].first = i, threads[i].step = n;
        if (pthread_create(&threads[i].id, NULL, serve, &threads[i])) return 0;
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i].id, NULL);
    for (int i = 0; i < REQUESTS; i++) {
        int same = 0;
        for (int j = 0; j < LENGTH; j++)
            same += requests[i].answer[j] == requests[i].source[LENGTH - 1 - j];
        right += same == LENGTH;
    }
    return right;
}

int main(void) {
    wf_transformer_config config = wf_transformer_defaults();
    config.src_vocab = config.tgt_vocab = WORDS, config.max_len = LENGTH + 2;
    config.d_model = 32, config.num_heads = 4, config.dim_feedforward = 64;
    config.encoder_layers = config.decoder_layers = 1;
    config.start_id = START, config.end_id = END;
    wf_training_config training = { .optimizer = wf_optimizer_defaults(WF_ADAM) };
    wf_model *m = wf_transformer_new(&config, &training, WF_F32, 1, NULL);
    wf_plan *train = wf_model_train_plan(m, NULL);
    uint64_t random = 1;
    bool ok = true;
    for (int step = 1; ok && step <= STEPS; step++) ok = train_step(m, train, step, &random);
    if (!ok) fprintf(stderr, "%s\n", wf_plan_error(train));
    wf_plan_free(train);

    static struct request alone[REQUESTS], together[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) make_sentence(alone[i].source, &random);
    alone[BAD].source[0] = 999; /* no such word */
    memcpy(together, alone, sizeof alone);
    int right = serve_all(m, alone, 1) + serve_all(m, together, THREADS);
    bool same = memcmp(alone, together, sizeof alone) == 0;
    printf("%d of %d requests are answered rightly; with %d threads and with one the answers are "
           "%s\n",
           right, 2 * REQUESTS, THREADS, same ? "the same" : "not the same");
    printf("request %d was refused: %s\n", BAD, together[BAD].refused);
    wf_model_free(m);
    return !(ok && same && right >= 2 * REQUESTS * 9 / 10 && together[BAD].refused[0]);
}
