/* nn/courier.h - inside nn: an exchange in rounds, by a thread of its own while what goes out in the
 * later ones is still computed. Not installed. */
#ifndef WEFT_NN_COURIER_H
#define WEFT_NN_COURIER_H

#include <stdbool.h>

typedef struct wf_courier wf_courier;

/* An exchange is round(user, 0) to round(user, rounds - 1), in order; after one that is false no more
 * of them. thread: by a thread of its own; without, as if it cannot be started, wf_courier_finish
 * makes them all. NULL: out of memory. */
wf_courier *wf_courier_new(int rounds, bool thread, bool (*round)(void *user, int i), void *user);
bool wf_courier_threaded(const wf_courier *c);
/* So many rounds of the next exchange may be made. */
void wf_courier_ready(wf_courier *c, int rounds);
/* Has any of them been said to be ready? */
bool wf_courier_begun(wf_courier *c);
/* All rounds may be made: waits until they are, or one has failed (false). After that the next
 * exchange may begin. */
bool wf_courier_finish(wf_courier *c);
/* Waits for the round that is being made; NULL: nothing. */
void wf_courier_free(wf_courier *c);

#endif
