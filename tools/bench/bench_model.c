/* tools/bench/bench_model.c - costs of a Transformer from its shapes. See bench_model.h.
 *
 * B batch, S source length, T target length, D model width, F feed-forward width, V target
 * vocabulary. */
#include "bench_model.h"

workload workload_of(int preset) {
    wf_transformer_config c = wf_transformer_defaults();
    c.encoder_norm = c.decoder_norm = true; /* as torch.nn.Transformer has them */
    c.start_id = 0;
    c.end_id = 1;
    if (preset == 1) {
        c.src_vocab = 10000;
        c.tgt_vocab = 12000;
        return (workload){ c, 2, 100, 120 };
    }
    c.src_vocab = c.tgt_vocab = 20;
    c.d_model = 64;
    c.num_heads = 4;
    c.dim_feedforward = 128;
    c.encoder_layers = c.decoder_layers = 2;
    return (workload){ c, 32, 10, 11 };
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Multiply-adds count two. [rows, k] x [k, n] */
static double product(double rows, double n, double k) {
    return 2 * rows * n * k;
}

/* Scores and values of all heads: every query with every key, open or not. */
static double attend(double batch, double queries, double keys, double D) {
    return 4 * batch * queries * keys * D;
}

static double feed_forward(double rows, double D, double F) {
    return 2 * product(rows, F, D);
}

double encoding_flops(const workload *w) {
    const wf_transformer_config *c = &w->config;
    double B = (double)w->batch, S = (double)w->src, D = (double)c->d_model,
           F = (double)c->dim_feedforward;
    double layer = product(B * S, 4 * D, D) + attend(B, S, S, D) + feed_forward(B * S, D, F);
    double memory = product(B * S, 2 * D, D); /* keys and values of a decoder layer */
    return (double)c->encoder_layers * layer + (double)c->decoder_layers * memory;
}

double forward_flops(const workload *w) {
    const wf_transformer_config *c = &w->config;
    double B = (double)w->batch, S = (double)w->src, T = (double)w->tgt;
    double D = (double)c->d_model, F = (double)c->dim_feedforward, V = (double)c->tgt_vocab;
    double self = product(B * T, 4 * D, D) + attend(B, T, T, D);
    double cross = product(B * T, 2 * D, D) + attend(B, T, S, D);
    double layer = self + cross + feed_forward(B * T, D, F);
    return encoding_flops(w) + (double)c->decoder_layers * layer + product(B * T, V, D);
}

double training_flops(const workload *w) {
    return 3 * forward_flops(w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { REAL_BYTES = 4 };

double decoding_bytes(const workload *w, double weight_bytes) {
    const wf_transformer_config *c = &w->config;
    double D = (double)c->d_model, F = (double)c->dim_feedforward, V = (double)c->tgt_vocab;
    double matrices = 4 * D * D + 2 * D * D + 2 * D * F;  /* of the other attention two of four */
    double vectors = 4 * D + 2 * D + (F + D) + 3 * 2 * D; /* biases, and three norms */
    double layers = (double)c->decoder_layers;
    return weight_bytes * (layers * matrices + D * V) + REAL_BYTES * (layers * vectors + 2 * D + V);
}

double adam_bytes(double parameters) {
    return REAL_BYTES * 7 * parameters;
}

/* Kept of a layer, in rows of D: its input; q, k, v; what attention gives; the norm's input and
 * result, and so for each sublayer; F wide, the input of linear2. Dropout keeps nothing: its
 * choices can be made again. */
double activation_bytes(const workload *w) {
    const wf_transformer_config *c = &w->config;
    double B = (double)w->batch, n = B * (double)w->src, m = B * (double)w->tgt;
    double D = (double)c->d_model, F = (double)c->dim_feedforward, V = (double)c->tgt_vocab;
    double encoder = n * (8 * D + F); /* x, qkv 3, y, norm 2, norm of the second sublayer 1 */
    double decoder = m * (12 * D + F) +
                     n * 2 * D; /* x, qkv 3, y, norm 2, q, y, norm 2, norm 1; keys and values */
    double ends = 2 * n * D + 2 * m * D + m * V; /* the final norms' inputs and results; logits */
    return REAL_BYTES *
           ((double)c->encoder_layers * encoder + (double)c->decoder_layers * decoder + ends);
}
