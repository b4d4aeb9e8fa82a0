/* tools/learn/3_heads/heads_checks.c - checks exercise 3: its tasks and known mistakes. */
#include <math.h>
#include <stdlib.h>

#include "ops/ops.h"
#include "tools/learn/lesson_blocks.h"

/* ---- linear ---------------------------------------------------------------------------------- */

enum { X, W, B };

static void run_linear(const sample *s, float *const *out) {
    linear(s->in[X], s->size['r'], s->size['i'], s->in[W], s->in[B], s->size['o'], out[0]);
}

static void weft_linear(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)s;
    (void)g;
    out[0] = wf_gemm(in[X], in[W], in[B], WF_TRANSPOSE_B);
}

static void model_linear(const sample *s, uint64_t m, double *const *out) {
    double *x = doubles_of(s->in[X], s->count[X]);
    block_linear(x, s->size['r'], s->size['i'], s->in[W], s->in[B], s->size['o'], m, out[0]);
    free(x);
}

static const lesson_task linear_task = {
    .name = "linear",
    .formula = "y[t][o] = b[o] + (the sum of x[t][i] * w[o][i] over all i)",
    .in = { [X] = { "x", "ri", ARRAY_VALUES, 0 }, [W] = { "w", "oi", ARRAY_WEIGHTS, 0 },
            [B] = { "b", "o", ARRAY_VALUES, 0 } },
    .out = { { "y", "ro", 0, 0 } },
    .cases = { "r3 i4 o4", "r2 i6 o3", "r4 i3 o5" },
    .learner = run_linear,
    .weft = weft_linear,
    .model = model_linear,
    .mistakes = {
        [LINEAR_TURNED] = { "weight transposed", "w is [out, in]: the weights of output o are the "
                            "row w[o * in] to w[o * in + in - 1]. Here a column is read." },
        [LINEAR_NO_BIAS] = { "no bias", "b[o] is not added." },
        [LINEAR_BIAS_OF_ROW] = { "the bias of the row",
                                 "b[t] is added. The bias belongs to the output: b[o]." },
        [LINEAR_BIAS_EACH] = { "the bias in each term", "b[o] is added once for each product. It "
                               "is added once, to their sum." },
        [LINEAR_BIAS_TWICE] = { "the bias is added twice", "Does the sum begin with b[o], and is "
                                "b[o] added at the end, too? Once is enough." },
        [LINEAR_FIRST_BIAS] = { "the bias of the first output",
                                "b[0] is added everywhere. Output o has the bias b[o]." },
        [LINEAR_LAST] = { "only the last term",
                          "Each product overwrites the one before it: add with +=." },
    },
};

/* ---- multi_head ------------------------------------------------------------------------------ */

enum { QUERIES, KEYS, MASK, WEIGHTS };

static void run_heads(const sample *s, float *const *out) {
    struct attention_weights w = attention_of(s, WEIGHTS, 0);
    multi_head(&w, s->in[QUERIES], s->size['T'], s->in[KEYS], s->size['S'], s->in[MASK],
               s->size['D'], s->size['H'], out[0], out[1]);
}

static void weft_of_heads(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    struct wf_mha_layer l = weft_heads(s, g, "attention", WEIGHTS);
    wf_mha_options o = { .mask = in[MASK], .weights = &out[0] };
    out[1] =
        wf_mha(&l, wf_unsqueeze(in[QUERIES], WF_AXIS(0)), wf_unsqueeze(in[KEYS], WF_AXIS(0)), &o);
}

static void model_heads(const sample *s, uint64_t m, double *const *out) {
    struct attention_weights w = attention_of(s, WEIGHTS, 0);
    double *x = doubles_of(s->in[QUERIES], s->count[QUERIES]);
    double *kv = doubles_of(s->in[KEYS], s->count[KEYS]);
    block_heads(&w, x, s->size['T'], kv, s->size['S'], s->in[MASK], s->size['D'], s->size['H'], m,
                out[0], out[1]);
    free(x), free(kv);
}

static const lesson_task heads_task = {
    .name = "multi_head",
    .formula = "out = linear(heads side by side, wo); head h = attention of its columns of q, k "
               "and v",
    .in = { [QUERIES] = { "x", "TD", ARRAY_VALUES, 0 }, [KEYS] = { "kv", "SD", ARRAY_VALUES, 0 },
            [MASK] = { "mask", "TS", ARRAY_CHOICES, 0 }, ATTENTION_ROWS(WEIGHTS, "", "attention") },
    .out = { { "weights", "HTS", 0, 0 }, { "out", "TD", 0, 0 } },
    .cases = { "T4 S4 D8 H2", "T3 S5 D6 H3", "T5 S4 D12 H3" },
    .learner = run_heads,
    .weft = weft_of_heads,
    .model = model_heads,
    .mistakes = {
        [HEADS_OF_MODEL] = { "scaled by the width of the model",
                             "The scores are divided by sqrt(D), and not by sqrt(d): a head's "
                             "products have d = D / H terms." },
        [HEADS_UNSCALED] = { "no 1/sqrt(d)", "The scores are not divided by sqrt(d)." },
        [HEADS_TURNED] = { "wq, wk, wv transposed", "The projections are read by columns. linear "
                           "of this exercise reads w as [out, in]." },
        [HEADS_OUT_TURNED] = { "wo transposed", "The last projection is read by columns." },
        [HEADS_ROWS] = { "heads split along the wrong axis",
                         "q [T, D] is taken as [H, T, d] as it lies in memory, which cuts it by "
                         "tokens. Head h has columns h * d and on of every row." },
        [HEADS_INTERLEAVED] = { "heads take turns by column", "Head h has columns h * d to h * d + "
                                "d - 1, side by side. Here it has every H-th column." },
        [HEADS_NOT_REJOINED] = { "heads are not rejoined in order",
                                 "The results are stored head after head, [H, T, d]. Each row must "
                                 "have those of all heads: [T, H * d]." },
        [HEADS_NO_OUT] = { "no output projection", "The joined heads are the result. They must "
                           "pass through linear with wo and bo, which mixes them." },
        [HEADS_NO_BIAS] = { "no bias in the projections", "bq, bk and bv are not added." },
        [HEADS_NO_OUT_BIAS] = { "no bias in the output", "bo is not added." },
        [HEADS_Q_OF_KEYS] = { "queries come from kv",
                              "Queries are projected from x, keys and values from kv." },
        [HEADS_KV_OF_QUERIES] = { "keys and values come from x", "Keys and values are projected "
                                  "from kv. From x it is self-attention, whatever kv says." },
        [HEADS_K_FOR_V] = { "values use the weights of keys",
                            "Values have weights of their own: wv and bv." },
        [HEADS_FIRST_ONLY] = { "every head is the first one",
                               "All heads read columns 0 to d - 1: is h used in the index?" },
        [HEADS_NO_MASK] = { "the mask is not used", "The mask must be handed on to attention." },
        [HEADS_K_OF_QUERIES] = { "keys come from x", "Keys and values are projected from kv." },
        [HEADS_V_OF_QUERIES] = { "values come from x", "Keys and values are projected from kv." },
        [HEADS_CUT_BY_ROWS] = { "heads are taken along the wrong axis",
                                "take_head reads a head as one piece of memory. It has columns h * "
                                "d and on of every row: x[t * D + h * d + j]." },
        [HEADS_OUT_TWICE] = { "the output projection is used twice",
                              "linear with wo and bo comes once, at the end." },
        [HEADS_ONE_PLACE] = { "every head writes the weights of the first",
                              "The weights of head h begin at weights + h * T * S." },
        [HEADS_FIRST_MASKED] = { "only the first head is masked",
                                 "One mask [T, S] is for all heads." },
    },
};

/* ---- the picture ----------------------------------------------------------------------------- */

/* Draws the attention of twelve positions, given by their waves, for four heads with random
 * weights. */
static bool draw(picture *p) {
    enum { N = 12, D = 32, H = 4 };
    float x[N * D], mask[N * N], out[N * D], w[4 * D * D], zeros[D] = { 0 };
    *p = (picture){ .heads = H, .rows = N, .columns = N };
    snprintf(p->title, sizeof p->title, "Your heads, causal, of positions with their waves");
    p->weights = calloc(H * N * N, sizeof *p->weights);
    if (!p->weights) return false;
    for (int i = 0; i < 4 * D * D; i++)
        w[i] = (float)((lesson_number("picture", i) - 0.5) * 6 / sqrt(D));
    for (int i = 0; i < N * D; i++) {
        double angle = i / D / pow(20, i % D / 2 * 2.0 / D);
        x[i] = (float)(i % 2 ? cos(angle) : sin(angle));
    }
    causal_mask(N, mask);
    struct attention_weights a = { .wq = w,
                                   .bq = zeros,
                                   .wk = w + D * D,
                                   .bk = zeros,
                                   .wv = w + 2 * D * D,
                                   .bv = zeros,
                                   .wo = w + 3 * D * D,
                                   .bo = zeros };
    multi_head(&a, x, N, x, N, mask, D, H, p->weights, out);
    return true;
}

static const lesson_task *const tasks[] = { &linear_task, &heads_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, draw };
