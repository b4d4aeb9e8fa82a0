/* nn/train/sender.h - inside nn/train: an exchange in rounds, by a thread of its own while what goes out in the
 * later ones is still computed. Not installed. */
#ifndef WEFT_NN_TRAIN_SENDER_H
#define WEFT_NN_TRAIN_SENDER_H

#include <stdbool.h>

typedef struct wf_sender wf_sender;
typedef bool (*wf_round_work)(void *user, int round);

/* An exchange is round(user, 0) to round(user, rounds - 1), in order; after one that is false no more
 * of them. thread: by a thread of its own; without, as if it cannot be started, wf_sender_finish
 * makes them all. NULL: out of memory. */
wf_sender *wf_sender_new(int rounds, bool thread, wf_round_work round, void *user);
bool wf_sender_threaded(const wf_sender *c);
/* So many rounds of the next exchange may be made. */
void wf_sender_ready(wf_sender *c, int rounds);
/* Has any of them been said to be ready? */
bool wf_sender_begun(wf_sender *c);
/* All rounds may be made: waits until they are, or one has failed (false). After that the next
 * exchange may begin. */
bool wf_sender_finish(wf_sender *c);
/* Waits for the round that is being made; NULL: nothing. */
void wf_sender_free(wf_sender *c);

#endif
