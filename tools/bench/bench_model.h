/* tools/bench/bench_model.h - the two models that are measured, and what their steps cost by their
 * shapes alone.
 *
 * Nothing here asks a plan or a profile: these are the numbers that plans are held to. */
#ifndef WEFT_TOOLS_BENCH_BENCH_MODEL_H
#define WEFT_TOOLS_BENCH_BENCH_MODEL_H

#include "models/transformer.h"

#define PRESET_WORDS "copy|base"

typedef struct workload {
    wf_transformer_config config;
    int64_t batch, src, tgt; /* sentences, and tokens of each */
} workload;

workload workload_of(int preset); /* its place in PRESET_WORDS */

double forward_flops(const workload *w);  /* of products: the rest is a few per cent anywhere */
double encoding_flops(const workload *w); /* encoder, and keys and values of the memory */
double training_flops(const workload *w); /* forward, and two products for each in the gradient */
/* The bytes of weights that one step of decoding reads, each once; an element of a matrix has
 * weight_bytes. */
double decoding_bytes(const workload *w, double weight_bytes);
/* Gradient, value and two moments are read; all but the gradient are written. */
double adam_bytes(double parameters);
double activation_bytes(const workload *w); /* what the gradient needs of the forward pass */

#endif
