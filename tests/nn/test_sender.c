/* tests/nn/test_sender.c - a sender, whose thread makes the rounds of an exchange: in order, none
 * before it is ready, and none after one that failed; and the same without a thread. */
#include "nn/train/sender.h"
#include "tests/suites.h"

#include <pthread.h>

TESTS(sender)

enum { ROUNDS = 5, EXCHANGES = 3 };

/* The rounds that were seen. */
typedef struct seen {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int made, most; /* rounds made so far; rounds that have been declared ready */
    int fails;      /* the round that fails; -1: none does */
    bool early, disordered, elsewhere;
    pthread_t program;
} seen;

static seen new_seen(int fails) {
    return (seen){ .mutex = PTHREAD_MUTEX_INITIALIZER,
                   .changed = PTHREAD_COND_INITIALIZER,
                   .fails = fails,
                   .program = pthread_self() };
}

static bool round_of(void *user, int i) {
    seen *s = user;
    pthread_mutex_lock(&s->mutex);
    s->early |= i >= s->most, s->disordered |= i != s->made % ROUNDS;
    s->elsewhere |= !pthread_equal(pthread_self(), s->program);
    s->made++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return i != s->fails;
}

static void ready(wf_sender *c, seen *s, int rounds) {
    pthread_mutex_lock(&s->mutex);
    s->most = rounds;
    pthread_mutex_unlock(&s->mutex);
    wf_sender_ready(c, rounds);
}

/* Waits until `made` rounds have been made: ready rounds are made without a further call. */
static void wait_for(seen *s, int made) {
    pthread_mutex_lock(&s->mutex);
    while (s->made < made) pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

TEST_ROWS(rounds_are_made_once_in_order, 2) {
    seen s = new_seen(-1);
    wf_sender *c = wf_sender_new(ROUNDS, _i, round_of, &s);
    ck_assert_ptr_nonnull(c);
    ck_assert(wf_sender_threaded(c) == _i);
    for (int exchange = 0; exchange < EXCHANGES; exchange++) {
        ck_assert(!wf_sender_begun(c));
        for (int i = 1; i < ROUNDS - 1; i += 2) {
            ready(c, &s, i);
            ck_assert(wf_sender_begun(c));
            if (_i) wait_for(&s, exchange * ROUNDS + i);
        }
        s.most = ROUNDS;
        ck_assert(wf_sender_finish(c));
        ck_assert_int_eq(s.made, (exchange + 1) * ROUNDS);
        s.most = 0;
    }
    ck_assert(!s.early && !s.disordered && s.elsewhere == _i);
    wf_sender_free(c);
}

TEST_ROWS(none_is_made_after_one_that_failed, 2) {
    seen s = new_seen(2);
    wf_sender *c = wf_sender_new(ROUNDS, _i, round_of, &s);
    ready(c, &s, ROUNDS);
    ck_assert(!wf_sender_finish(c));
    ck_assert_int_eq(s.made, 3);
    ck_assert(!s.disordered && !wf_sender_begun(c));
    s.fails = -1, s.made = 0; /* and then anew */
    ck_assert(wf_sender_finish(c));
    ck_assert_int_eq(s.made, ROUNDS);
    wf_sender_free(c);
}

TEST_ROWS(nothing_to_do_is_done, 2) {
    wf_sender *c = wf_sender_new(0, _i, round_of, NULL);
    ck_assert(wf_sender_finish(c) && wf_sender_finish(c));
    wf_sender_free(c);
    seen s = new_seen(-1);
    c = wf_sender_new(ROUNDS, _i, round_of, &s);
    ready(c, &s, 1); /* and never asked for */
    if (_i) wait_for(&s, 1);
    wf_sender_free(c);
    wf_sender_free(NULL);
}
