/* tools/bench/bench_model.h - the two models that are measured, and the costs of their steps as
 * functions of their shapes.
 *
 * Nothing here uses a plan or a profile, because plans are compared with these numbers. */
#ifndef WEFT_TOOLS_BENCH_BENCH_MODEL_H
#define WEFT_TOOLS_BENCH_BENCH_MODEL_H

#include "models/transformer.h"

#define PRESET_WORDS "copy|base"

typedef struct workload {
    wf_transformer_config config;
    int64_t batch, src, tgt; /* number of sentences; length of each source and target in tokens */
} workload;

workload workload_of(int preset); /* preset: an index in PRESET_WORDS */

/* operations of products; all others are a few per cent */
double forward_flops(const workload *w);
double encoding_flops(const workload *w); /* the encoder, and the memory's keys and values */
/* the forward pass, and two products in the gradient for each of its products */
double training_flops(const workload *w);
/* The bytes of weights that one step of decoding reads, each weight once. An element of a matrix
 * has weight_bytes bytes. */
double decoding_bytes(const workload *w, double weight_bytes);
/* Bytes that Adam moves: gradient, value and two moments are read; all but the gradient are
 * written. */
double adam_bytes(double parameters);
double activation_bytes(const workload *w); /* bytes of the forward pass that the gradient needs */

#endif
