/* tools/train/ranks/network.h - how long ranks exchange on a network of so many bits in a second, each of
 * which arrives after a delay.
 *
 * A rank sends to all others at once, and what it sends or receives passes its own link: an
 * exchange takes the time of the bytes in the busier direction, and a delay for as many messages to
 * a rank as mpi.c has on the way at once. What this leaves out: what copying costs, and links that
 * several machines share. */
#ifndef WEFT_TOOLS_TRAIN_NETWORK_H
#define WEFT_TOOLS_TRAIN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum { MPI_PIECE = 60 << 10, MPI_AT_ONCE = 64 }; /* Open MPI's: bytes of a message; messages */

typedef struct network {
    double rate, delay; /* bytes in a second; seconds */
} network;

/* The cost of exchanges, apart from the network: bytes and delays. */
typedef struct traffic {
    int64_t bytes;  /* in the busier direction */
    int64_t delays; /* one after the other */
} traffic;

/* Reads "10Gb,50us": bits in a second with k, M or G, and a delay in s, ms or us. False: it is
 * something else. */
bool network_read(const char *text, network *n);
double network_seconds(const network *n, const traffic *t);

/* Adds an exchange as this rank sees it: wf_alltoallv or wf_allgatherv with these offsets. */
void traffic_alltoallv(traffic *t, const int64_t *send_at, const int64_t *receive_at, int rank,
                       int ranks);
void traffic_allgatherv(traffic *t, const int64_t *receive_at, int rank, int ranks);

#endif
