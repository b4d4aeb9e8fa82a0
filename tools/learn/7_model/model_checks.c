/* tools/learn/7_model/model_checks.c - checks exercise 7: its tasks and known mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_task.h"
#include "nn/loss.h"
#include "tools/learn/lesson_blocks.h"

/* ---- the model ------------------------------------------------------------------------------- */

enum {
    SOURCE,
    TARGET,
    KEEP,
    TABLES,
    OUT = TABLES + 2,
    ENCODER = OUT + 2,
    DECODER = ENCODER + ENCODER_ARRAYS
};
enum { MOST_LAYERS = 3 };
enum {
    NO_SCALE,
    NO_POSITIONS,
    NO_TARGET_POSITIONS,
    ONE_TABLE,
    NO_ENCODER,
    NO_KEEP,
    NO_KEEP_IN_DECODER,
    OUT_TURNED,
    SOFTMAX,
    LOG_SOFTMAX,
    NO_OUT_BIAS,
    TABLE_OUT,
    ONE_LAYER,
    SAME_LAYERS,
    NOT_CHAINED,
    ENCODED_TWICE,
    NO_DECODER
};

static void run_model(const sample *s, float *const *out) {
    struct encoder_weights encoder[MOST_LAYERS];
    struct decoder_weights decoder[MOST_LAYERS];
    int layers = s->size['L'];
    for (int i = 0; i < layers; i++) {
        encoder[i] = encoder_of(s, ENCODER, i);
        decoder[i] = decoder_of(s, DECODER, i);
    }
    struct transformer_weights w = { .V = s->size['V'],
                                     .D = s->size['D'],
                                     .H = s->size['H'],
                                     .F = s->size['F'],
                                     .layers = layers,
                                     .source_table = s->in[TABLES],
                                     .target_table = s->in[TABLES + 1],
                                     .encoder = encoder,
                                     .decoder = decoder,
                                     .wo = s->in[OUT],
                                     .bo = s->in[OUT + 1] };
    transformer(&w, s->ids[SOURCE], s->in[KEEP], s->size['S'], s->ids[TARGET], s->size['T'],
                out[0]);
}

/* Builds the embeddings with their positions: [1, n, D]. */
static wf_tensor *record_input(const sample *s, wf_graph *g, wf_tensor *table, wf_tensor *ids) {
    int D = s->size['D'];
    wf_tensor *rows = wf_mul(wf_embedding(table, ids), wf_constant(g, sqrt(D)));
    return wf_unsqueeze(wf_add(rows, wf_sinusoid(wf_arange(ids, 0), D, WF_SINUSOID_PAIRS)),
                        WF_AXIS(0));
}

static void weft_model(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    wf_tensor *keep = wf_unsqueeze(in[KEEP], WF_AXIS(0) | WF_AXIS(1) | WF_AXIS(2)); /* [1,1,1,S] */
    wf_tensor *memory = record_input(s, g, in[TABLES], in[SOURCE]), *k, *v;
    wf_tensor *y = record_input(s, g, in[TABLES + 1], in[TARGET]);
    wf_mha_options padding = { .mask = keep }, causal = { .causal = true };
    char name[32];
    for (int i = 0; i < s->size['L']; i++) {
        snprintf(name, sizeof name, "encoder.%d", i);
        struct wf_encoder_block b = weft_encoder(s, g, name, ENCODER, i);
        memory = wf_encoder_layer(&b, memory, &padding);
    }
    for (int i = 0; i < s->size['L']; i++) {
        snprintf(name, sizeof name, "decoder.%d", i);
        struct wf_decoder_block b = weft_decoder(s, g, name, DECODER, i);
        wf_mha_keys_values(&b.multihead_attn, memory, &k, &v);
        y = wf_decoder_layer(&b, y, k, v, &causal, &padding);
    }
    out[0] = wf_gemm(y, in[OUT], in[OUT + 1], WF_TRANSPOSE_B);
}

/* ---- the same in double ---------------------------------------------------------------------- */

/* The mask [T, S]: causal, or one that shows the tokens of keep; keep NULL: everything. The caller
 * frees it. */
static float *mask_of(int T, int S, const float *keep, bool causal) {
    float *mask = calloc((size_t)(T * S) + 1, sizeof *mask);
    for (int i = 0; mask && i < T * S; i++)
        mask[i] = causal ? i % S <= i / S : !keep || keep[i % S] != 0;
    return mask;
}

static void encode(const sample *s, int layer, const float *keep, double *x) {
    struct encoder_weights w = encoder_of(s, ENCODER, layer);
    int S = s->size['S'];
    float *mask = mask_of(S, S, keep, false);
    const layer_part parts[] = {
        { .attention = &w.self, .norm = &w.norm1, .keys = S, .mask = mask },
        { .ff = &w.ff, .norm = &w.norm2 }
    };
    block_layer(s, parts, 2, NORM_AFTER, x, S, x);
    free(mask);
}

static void decode(const sample *s, int layer, const double *memory, const float *keep, double *y) {
    struct decoder_weights w = decoder_of(s, DECODER, layer);
    int T = s->size['T'], S = s->size['S'];
    float *causal = mask_of(T, T, NULL, true), *mask = mask_of(T, S, keep, false);
    const layer_part parts[] = {
        { .attention = &w.self, .norm = &w.norm1, .keys = T, .mask = causal },
        { .attention = &w.cross, .norm = &w.norm2, .from = memory, .keys = S, .mask = mask },
        { .ff = &w.ff, .norm = &w.norm3 }
    };
    block_layer(s, parts, 3, NORM_AFTER, y, T, y);
    free(causal), free(mask);
}

static double *embedded(const sample *s, int table, int ids, bool scaled, bool placed) {
    int n = (int)s->count[ids], D = s->size['D'];
    double *y = room(n * D);
    for (int i = 0; i < n * D; i++) {
        int t = i / D, j = i % D;
        double angle = t / pow(10000, j / 2 * 2.0 / D);
        y[i] = s->in[table][s->ids[ids][t] * D + j] * (scaled ? sqrt(D) : 1);
        if (placed) y[i] += j % 2 ? cos(angle) : sin(angle);
    }
    return y;
}

static void log_softmax(double *row, int n, bool log_too) {
    double most = row[0], sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, row[i]);
    for (int i = 0; i < n; i++) sum += exp(row[i] - most);
    for (int i = 0; i < n; i++) {
        row[i] -= most + log(sum);
        if (!log_too) row[i] = exp(row[i]);
    }
}

static void model_model(const sample *s, uint64_t m, double *const *out) {
    int D = s->size['D'], T = s->size['T'], V = s->size['V'], layers = s->size['L'];
    int decoded = HAS(m, ONE_LAYER) ? 1 : layers;
    const float *keep = HAS(m, NO_KEEP) ? NULL : s->in[KEEP];
    bool scaled = !HAS(m, NO_SCALE), placed = !HAS(m, NO_POSITIONS);
    double *memory = embedded(s, TABLES, SOURCE, scaled, placed);
    double *y = embedded(s, HAS(m, ONE_TABLE) ? TABLES : TABLES + 1, TARGET, scaled,
                         placed && !HAS(m, NO_TARGET_POSITIONS));
    double *first = room(T * D);
    memcpy(first, y, (size_t)(T * D) * sizeof *y);
    for (int i = 0; i < layers * (HAS(m, ENCODED_TWICE) ? 2 : 1) && !HAS(m, NO_ENCODER); i++)
        encode(s, i % layers, keep, memory);
    for (int i = 0; i < decoded && !HAS(m, NO_DECODER); i++) {
        if (HAS(m, NOT_CHAINED)) memcpy(y, first, (size_t)(T * D) * sizeof *y);
        decode(s, HAS(m, SAME_LAYERS) ? 0 : i, memory, HAS(m, NO_KEEP_IN_DECODER) ? NULL : keep, y);
    }
    uint64_t last = HAS(m, OUT_TURNED) << LINEAR_TURNED | HAS(m, NO_OUT_BIAS) << LINEAR_NO_BIAS;
    block_linear(y, T, D, s->in[HAS(m, TABLE_OUT) ? TABLES + 1 : OUT], s->in[OUT + 1], V, last,
                 out[0]);
    for (int t = 0; t < T && (HAS(m, SOFTMAX) || HAS(m, LOG_SOFTMAX)); t++)
        log_softmax(out[0] + t * V, V, HAS(m, LOG_SOFTMAX));
    free(memory), free(y), free(first);
}

static const lesson_task model_task = {
    .name = "transformer",
    .formula = "logits = linear(decoder layers of input(target), each looking at "
               "encoder(input(source)))",
    .in = { [SOURCE] = { "source", "S", ARRAY_IDS, 'V' },
            [TARGET] = { "target", "T", ARRAY_IDS, 'V' },
            [KEEP] = { "keep", "S", ARRAY_PREFIX, 0 },
            [TABLES] = { "source_table", "VD", ARRAY_WEIGHTS, 0 },
            [TABLES + 1] = { "target_table", "VD", ARRAY_WEIGHTS, 0 },
            [OUT] = { "wo", "VD", ARRAY_WEIGHTS, 0 },
            [OUT + 1] = { "bo", "V", ARRAY_VALUES, 0 },
            ENCODER_ROWS(ENCODER, "L"), DECODER_ROWS(DECODER, "L") },
    .out = { { "logits", "TV", 0, 0 } },
    .cases = { "L2 S4 T4 V9 D8 H2 F12", "L3 S6 T5 V7 D6 H3 F8" },
    .learner = run_model,
    .weft = weft_model,
    .model = model_model,
    .tolerance = 3e-6,
    .mistakes = {
        [NO_SCALE] = { "no embedding scale",
                       "Embeddings are not multiplied by sqrt(D): input of exercise 1 does that." },
        [NO_POSITIONS] = { "no positions", "Embeddings alone do not know their places: input of "
                           "exercise 1 adds positions." },
        [NO_TARGET_POSITIONS] = { "no positions in the target",
                                  "The source has positions, and the target has none." },
        [ONE_TABLE] = { "the target in the source's table", "The target has a table of its own." },
        [NO_ENCODER] = { "no encoder", "The decoder looks at the embedded source. Its memory is "
                         "the encoder's result." },
        [NO_KEEP] = { "padding is not masked", "keep must reach the encoder and the decoder." },
        [NO_KEEP_IN_DECODER] = { "padding is not masked in the decoder",
                                 "The decoder's cross-attention needs keep, too." },
        [OUT_TURNED] = { "wo transposed",
                         "wo is [V, D]: a row of weights for each logit, as linear reads it." },
        [SOFTMAX] = { "a softmax at the end", "These are probabilities. The loss and the search "
                      "take logits, and know how to make one of the other." },
        [LOG_SOFTMAX] = { "a log-softmax at the end",
                          "These are log-probabilities. Logits are asked for." },
        [NO_OUT_BIAS] = { "no bias in the output", "bo is not added." },
        [TABLE_OUT] = { "the target's table for wo",
                        "Some models tie them; this one has wo apart." },
        [ONE_LAYER] = { "only one layer of the decoder", "It has w->layers layers." },
        [SAME_LAYERS] = { "every decoder layer has the weights of the first",
                          "Layer l has the weights w->decoder[l]." },
        [NOT_CHAINED] = { "every decoder layer reads the input",
                          "A layer reads what the one before it has made." },
        [NO_DECODER] = { "no decoder", "The logits are made of the embedded target. The result of "
                         "a decoder layer is the input of the next one, and at last of linear." },
        [ENCODED_TWICE] = { "the encoder runs twice",
                            "It runs once. All decoder layers look at the same memory." },
    },
};

/* ---- cross_entropy --------------------------------------------------------------------------- */

enum { LOGITS, LABELS };
enum {
    SUMMED,
    PADS_IN_MEAN,
    PADS_COUNTED,
    POSITIVE,
    NO_LOG,
    BINARY,
    NO_MAX,
    LOGIT_ONLY,
    NOT_ADDED,
    DECIMAL,
    PLUS_LABEL,
    STOPS_AT_PAD,
    LARGEST_FOR_LABEL,
    MOST_FROM_0,
    ONE_PLUS,
    MINUS_LOG,
    BY_VOCABULARY,
    ONE_MINUS_P,
    LAST_ID_MISSING
};
static const int pad = 2;

static void run_loss(const sample *s, float *const *out) {
    float loss = cross_entropy(s->in[LOGITS], s->ids[LABELS], s->size['n'], s->size['V'], pad);
    /* the exercise with its gaps returns NaN */
    if (!isnan(loss)) out[0][0] = loss;
}

static void weft_loss(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_cross_entropy_loss(in[LOGITS], in[LABELS], NULL, 0, pad, WF_REDUCE_MEAN);
}

static double one_loss(const float *row, int V, int label, uint64_t m) {
    double most = HAS(m, MOST_FROM_0) ? 0 : -INFINITY, sum = HAS(m, ONE_PLUS) ? 1 : 0;
    for (int v = 0; v < V; v++) most = fmax(most, row[v]);
    /* A float has no exponential above exp(88.7), and below exp(-103.3) it is 0. */
    bool overflows = HAS(m, NO_MAX) && most > 88.7;
    bool vanishes = HAS(m, NO_MAX) && most < -103.3;
    for (int v = 0; v < V; v++) sum += row[v] - most < -103.3 ? 0 : exp(row[v] - most);
    if (HAS(m, LAST_ID_MISSING)) sum -= exp(row[V - 1] - most);
    double loss = overflows ? INFINITY : log(sum) + most - row[label];
    if (vanishes) loss = -INFINITY;
    if (HAS(m, MINUS_LOG)) loss = most - log(sum) - row[label];
    if (HAS(m, BY_VOCABULARY)) loss /= V;
    if (HAS(m, DECIMAL)) loss = log10(sum) + most - row[label];
    if (HAS(m, PLUS_LABEL)) loss = log(sum) + most + row[label];
    if (HAS(m, LARGEST_FOR_LABEL)) loss = log(sum);
    if (HAS(m, NOT_ADDED)) loss = log(sum) - row[label];
    if (HAS(m, NO_LOG)) loss = -exp(-loss);
    if (HAS(m, ONE_MINUS_P)) loss = 1 - exp(-loss);
    if (HAS(m, BINARY)) loss /= log(2);
    if (HAS(m, LOGIT_ONLY)) loss = -row[label];
    return HAS(m, POSITIVE) ? -loss : loss;
}

static void model_loss(const sample *s, uint64_t m, double *const *out) {
    int n = s->size['n'], V = s->size['V'], counted = 0;
    double total = 0;
    for (int i = 0; i < n; i++) {
        bool is_pad = s->ids[LABELS][i] == pad && !HAS(m, PADS_COUNTED);
        if (is_pad && HAS(m, STOPS_AT_PAD)) break;
        if (!is_pad || HAS(m, PADS_IN_MEAN)) counted++;
        if (!is_pad) total += one_loss(s->in[LOGITS] + i * V, V, s->ids[LABELS][i], m);
    }
    out[0][0] = HAS(m, SUMMED) ? total : total / counted;
}

static const lesson_task loss_task = {
    .name = "cross_entropy",
    .formula = "the mean of log(sum of exp(logits[i])) - logits[i][labels[i]] over rows i that "
               "are no pad",
    .in = { [LOGITS] = { "logits", "nV", ARRAY_VALUES, 0 },
            [LABELS] = { "labels", "n", ARRAY_IDS, 'V' } },
    .out = { { "loss", "", 0, 0 } },
    .cases = { "n6 V5", "n9 V4", "n12 V6", "n8 V5 large", "n5 V6 low" },
    .learner = run_loss,
    .weft = weft_loss,
    .model = model_loss,
    .mistakes = {
        [SUMMED] = { "a sum, not a mean",
                     "The loss grows with the number of tokens. Divide by how many are counted." },
        [PADS_IN_MEAN] = { "padding in the divisor", "The sum leaves padding out, but is divided "
                           "by n. Divide by the number of rows that are counted." },
        [PADS_COUNTED] = { "padding is counted", "Rows whose label is pad have no loss." },
        [POSITIVE] = { "the sign is wrong", "A loss is -log p, which is positive. This is log p." },
        [NO_LOG] = { "no logarithm",
                     "This is minus the probability. The loss is minus its logarithm." },
        [BINARY] = { "a binary logarithm",
                     "The loss is in bits. It is asked for in nats: the natural logarithm." },
        [NO_MAX] = { "no largest number subtracted", "exp of a large logit is infinite. Subtract "
                     "the row's largest logit, and add it again behind the logarithm." },
        [LOGIT_ONLY] = { "the logit alone", "The label's logit is not compared with the others: "
                         "log(sum of exp) is missing." },
        [ONE_MINUS_P] = { "1 - p in the place of -log p", "1 - p is at most 1, however wrong the "
                          "model is, and its slope vanishes there. The loss is -log p." },
        [LAST_ID_MISSING] = { "the last id is not in the sum",
                              "All V logits are compared: v from 0 to V - 1." },
        [DECIMAL] = { "log10 of the sum", "The natural logarithm belongs to exp: log or logf." },
        [MINUS_LOG] = { "the logarithm is subtracted",
                        "The largest logit and the logarithm of the sum are added." },
        [BY_VOCABULARY] = { "divided by V", "It is a mean over rows: what a row has is not divided "
                            "by the number of ids." },
        [PLUS_LABEL] = { "the label's logit is added",
                         "-log p is log(sum of exp) minus the label's logit." },
        [STOPS_AT_PAD] = { "it stops at the first padding", "A row whose label is pad is left out, "
                           "and those behind it are counted: continue, and not break." },
        [LARGEST_FOR_LABEL] = { "the largest logit in the place of the label's",
                                "What counts is how likely the right id was: logits[labels[i]]." },
        [MOST_FROM_0] = { "the search for the largest begins at 0", "A row may have negative "
                          "logits alone: begin with its first one, or with -INFINITY." },
        [ONE_PLUS] = { "the sum does not begin at 0",
                       "The sum of the exponentials is set to 0 for every row." },
        [NOT_ADDED] = { "the largest is not added again", "The row's largest logit was subtracted "
                        "before exp: add it to the logarithm." },
    },
};

static const lesson_task *const tasks[] = { &model_task, &loss_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, NULL };
