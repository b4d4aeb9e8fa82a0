/* tools/train/ranks/network.h - estimates the time of exchanges on a network with a given bit rate
 * and delay.
 *
 * A rank sends to all others at once over its own link. An exchange takes the time of the bytes in
 * the busier direction, plus one delay for each group of messages to a rank that mpi.c has in
 * flight together. The estimate leaves out the time of copying, and links that several machines
 * share. */
#ifndef WEFT_TOOLS_TRAIN_NETWORK_H
#define WEFT_TOOLS_TRAIN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

/* with Open MPI: bytes of a message; messages in flight */
enum { MPI_PIECE = 60 << 10, MPI_AT_ONCE = 64 };

typedef struct network {
    double rate, delay; /* bytes per second; seconds */
} network;

/* The cost of exchanges, whatever the network: numbers of bytes and of delays. */
typedef struct traffic {
    int64_t bytes;  /* in the busier direction */
    int64_t delays; /* one after the other */
} traffic;

/* Read "10Gb,50us": bits per second with k, M or G, and a delay in s, ms or us. False: the text is
 * invalid. */
bool network_read(const char *text, network *n);
double network_seconds(const network *n, const traffic *t);

/* Add an exchange as this rank sees it: wf_alltoallv or wf_allgatherv with these offsets. */
void traffic_alltoallv(traffic *t, const int64_t *send_at, const int64_t *receive_at, int rank,
                       int ranks);
void traffic_allgatherv(traffic *t, const int64_t *receive_at, int rank, int ranks);

#endif
