/* tools/bench/bench_model.c - computes the costs of a Transformer from its shapes. See
 * bench_model.h.
 *
 * B batch, S source length, T target length, D model width, F feed-forward width, V target
 * vocabulary. */
#include "bench_model.h"

workload workload_of(int preset) {
    wf_transformer_config c = wf_transformer_defaults();
    /* final norms on both stacks, as in torch.nn.Transformer */
    c.encoder_norm = c.decoder_norm = true;
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

/* Operations of a product [rows, k] x [k, n]; a multiply-add counts as two. */
static double product(double rows, double n, double k) {
    return 2 * rows * n * k;
}

/* Operations of attention for all heads: every query with every key, masked or not. */
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
    double memory = product(B * S, 2 * D, D); /* the memory's keys and values for a decoder layer */
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
    /* of cross-attention's four matrices, two are applied to the target */
    double matrices = 4 * D * D + 2 * D * D + 2 * D * F;
    double vectors = 4 * D + 2 * D + (F + D) + 3 * 2 * D; /* biases, and three norms */
    double layers = (double)c->decoder_layers;
    return weight_bytes * (layers * matrices + D * V) + REAL_BYTES * (layers * vectors + 2 * D + V);
}

double adam_bytes(double parameters) {
    return REAL_BYTES * 7 * parameters;
}

/* Counts what backward needs of each layer. Rows of width D: the layer's input; q, k, v; the result
 * of attention; and for each sublayer the norm's input and result. Rows of width F: the input of
 * linear2. Dropout needs nothing, because its random bits are drawn again. */
double activation_bytes(const workload *w) {
    const wf_transformer_config *c = &w->config;
    double B = (double)w->batch, n = B * (double)w->src, m = B * (double)w->tgt;
    double D = (double)c->d_model, F = (double)c->dim_feedforward, V = (double)c->tgt_vocab;
    /* 8 rows of width D: the input; q, k, v; the attention's result; two for its norm; one for the
     * norm of the feed-forward layer */
    double encoder = n * (8 * D + F);
    double decoder = m * (12 * D + F) +
                     /* 7 rows as above to the first norm; 4 for cross-attention: q, its result, two
                      * for its norm; one for the last norm. And keys and values of the memory */
                     n * 2 * D;
    /* the inputs and results of the final norms; the logits */
    double ends = 2 * n * D + 2 * m * D + m * V;
    return REAL_BYTES *
           ((double)c->encoder_layers * encoder + (double)c->decoder_layers * decoder + ends);
}
