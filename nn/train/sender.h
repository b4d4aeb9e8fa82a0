/* nn/train/sender.h - inside nn/train: runs an exchange in rounds on a background thread, while the
 * data of later rounds are still being computed. Not installed. */
#ifndef WEFT_NN_TRAIN_SENDER_H
#define WEFT_NN_TRAIN_SENDER_H

#include <stdbool.h>

typedef struct wf_sender wf_sender;
typedef bool (*wf_round_work)(void *user, int round);

/* An exchange calls round(user, 0) to round(user, rounds - 1) in order, and stops at the first that
 * returns false. With `thread`, a background thread calls them. Without it, or if the thread cannot
 * be started, wf_sender_finish calls them. NULL: out of memory. */
wf_sender *wf_sender_new(int rounds, bool thread, wf_round_work round, void *user);
bool wf_sender_threaded(const wf_sender *c);
/* Says that the first `rounds` rounds of the exchange may run. */
void wf_sender_ready(wf_sender *c, int rounds);
/* True if a round of this exchange was made ready. */
bool wf_sender_begun(wf_sender *c);
/* Makes all rounds ready, and waits until all are done or one has failed (false). Then the next
 * exchange may begin. */
bool wf_sender_finish(wf_sender *c);
/* Waits for the running round, and frees the sender. NULL: does nothing. */
void wf_sender_free(wf_sender *c);

#endif
