/* server.c - a translator that many threads use at the same time: one graph, one set of weights,
 * and a decoder for each thread.
 *
 * Shows that plans of one graph can run at the same time. Answers are the same with any number of
 * threads. An invalid request gets an error message, and does not affect the others. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#include "sentences.h"

enum { THREADS = 4, REQUESTS = 200, BAD = 7 };

struct request {
    int32_t words[LENGTH], answer[LENGTH], length;
    char refused[256]; /* the error message; "" if the request was answered */
};

struct thread {
    pthread_t id;
    wf_model *model;
    struct request *requests; /* [REQUESTS] */
    int first, step;          /* this thread answers requests first, first + step, ... */
};

/* A thread: answers its requests one after the other. */
static void *serve(void *data) {
    struct thread *t = (struct thread *)data;
    wf_decoder *d = wf_decoder_new(t->model, NULL, NULL);
    const int32_t length = LENGTH;
    for (int i = t->first; i < REQUESTS; i += t->step) {
        struct request *r = &t->requests[i];
        if (!wf_decode_greedy(d, 1, LENGTH, r->words, &length, LENGTH, r->answer, &r->length))
            snprintf(r->refused, sizeof r->refused, "%s", wf_decoder_error(d));
    }
    wf_decoder_free(d);
    return NULL;
}

/* Answers all requests with n threads. Returns how many answers are right. */
static int serve_all(wf_model *m, struct request *requests, int n) {
    struct thread threads[THREADS];
    int right = 0, started = 0;
    for (struct thread *t = threads; t < threads + n; t++) {
        t->model = m;
        t->requests = requests;
        t->first = started;
        t->step = n;
        if (pthread_create(&t->id, NULL, serve, t)) break;
        started++;
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i].id, NULL);
    for (int i = 0; i < REQUESTS; i++) right += is_right(requests[i].words, requests[i].answer, 0);
    return right;
}

int main(void) {
    const wf_transformer_config config = small_translator();
    wf_model *m = wf_transformer_new(&config, NULL, WF_F32, 1, NULL);
    bool ok = train_translator(m, "*", 400, 0.003, 0);

    static struct request alone[REQUESTS], together[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) make_sentence(alone[i].words, (uint64_t)i);
    alone[BAD].words[0] = 999; /* no such word */
    memcpy(together, alone, sizeof alone);
    int right = serve_all(m, alone, 1) + serve_all(m, together, THREADS);
    bool same = memcmp(alone, together, sizeof alone) == 0;

    printf("%d of %d answers are right\n", right, 2 * REQUESTS);
    printf("with %d threads and with one they are %s\n", THREADS, same ? "the same" : "different");
    printf("request %d was refused: %s\n", BAD, together[BAD].refused);
    wf_model_free(m);
    return !(ok && same && right >= 2 * REQUESTS * 9 / 10 && together[BAD].refused[0]);
}
