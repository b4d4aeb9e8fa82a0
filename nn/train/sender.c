/* nn/train/sender.c - see sender.h. */
#include "sender.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct wf_sender {
    int rounds;
    wf_round_work round;
    void *user;
    bool threaded;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects all fields below; not held during a round */
    pthread_cond_t changed;
    int ready, made; /* rounds */
    bool failed, stop;
};

/* Called with the mutex held: runs rounds until none is ready, one fails, or the sender stops. */
static void make_rounds(wf_sender *c) {
    while (c->made < c->ready && !c->failed && !c->stop) {
        pthread_mutex_unlock(&c->mutex);
        bool ok = c->round(c->user, c->made);
        pthread_mutex_lock(&c->mutex);
        c->made += ok;
        c->failed = !ok;
        pthread_cond_broadcast(&c->changed);
    }
}

static void *work(void *user) {
    wf_sender *c = user;
    pthread_mutex_lock(&c->mutex);
    while (!c->stop) {
        make_rounds(c);
        if (!c->stop) pthread_cond_wait(&c->changed, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Starts the thread. Signals are blocked in it, so that they go to the program's own threads. */
static bool start(wf_sender *c) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&c->thread, NULL, work, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

wf_sender *wf_sender_new(int rounds, bool thread, wf_round_work round, void *user) {
    assert(rounds >= 0 && round);
    wf_sender *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->rounds = rounds;
    c->round = round;
    c->user = user;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->threaded = thread && start(c);
    return c;
}

bool wf_sender_threaded(const wf_sender *c) {
    return c->threaded;
}

void wf_sender_ready(wf_sender *c, int rounds) {
    assert(rounds >= 0 && rounds <= c->rounds);
    pthread_mutex_lock(&c->mutex);
    if (rounds > c->ready) c->ready = rounds;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

bool wf_sender_begun(wf_sender *c) {
    pthread_mutex_lock(&c->mutex);
    bool begun = c->ready > 0;
    pthread_mutex_unlock(&c->mutex);
    return begun;
}

bool wf_sender_finish(wf_sender *c) {
    wf_sender_ready(c, c->rounds);
    pthread_mutex_lock(&c->mutex);
    if (!c->threaded) make_rounds(c);
    while (c->made < c->rounds && !c->failed) pthread_cond_wait(&c->changed, &c->mutex);
    bool ok = !c->failed;
    assert(c->failed || c->made == c->rounds);
    c->ready = c->made = 0;
    c->failed = false;
    pthread_mutex_unlock(&c->mutex);
    return ok;
}

void wf_sender_free(wf_sender *c) {
    if (!c) return;
    pthread_mutex_lock(&c->mutex);
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    if (c->threaded) pthread_join(c->thread, NULL);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->changed);
    free(c);
}
