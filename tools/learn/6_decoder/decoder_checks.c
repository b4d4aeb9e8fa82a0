/* tools/learn/6_decoder/decoder_checks.c - checks exercise 6: its task and known mistakes. */
#include <math.h>
#include <stdlib.h>

#include "tools/learn/lesson_blocks.h"
#include "tools/learn/lesson_recipe.h"

enum { Y, MEMORY, KEEP, LAYER };
enum {
    NO_CAUSAL,
    WRONG_TRIANGLE,
    STRICT,
    EXCHANGED,
    SELF_TWICE,
    NO_CROSS,
    CROSS_FIRST,
    NO_RESIDUAL_1,
    NO_RESIDUAL_2,
    NO_RESIDUAL_3,
    NO_PADDING,
    CAUSAL_CROSS,
    SAME_WEIGHTS,
    OLD_RESIDUAL_2,
    OLD_RESIDUAL_3,
    NORMS_EXCHANGED,
    PRE_NORM,
    Y_QUERIES,
    NO_FF,
    SOURCE_MASK_SELF,
    NO_SELF,
    NORM1_TWICE,
    NORM2_TWICE,
    KEEP_TURNED
};

enum { SELF, CROSS, FEED };

static float self_mask(const sample *s, uint64_t m, int i, int j) {
    if (HAS(m, NO_CAUSAL)) return 1;
    if (HAS(m, SOURCE_MASK_SELF)) return j < s->size['S'] ? s->in[KEEP][j] : 1;
    if (HAS(m, WRONG_TRIANGLE)) return j >= i;
    return HAS(m, STRICT) ? j < i : j <= i;
}

static float cross_mask(const sample *s, uint64_t m, int i, int j) {
    if (HAS(m, CAUSAL_CROSS)) return j <= i;
    if (HAS(m, KEEP_TURNED)) return 1 - s->in[KEEP][j];
    return HAS(m, NO_PADDING) ? 1 : s->in[KEEP][j];
}

/* A mask of [T, keys]. The caller frees it. */
static float *mask_of(const sample *s, uint64_t m, int keys,
                      float (*may)(const sample *s, uint64_t m, int i, int j)) {
    int n = s->size['T'] * keys;
    float *mask = calloc((size_t)n + 1, sizeof *mask);
    for (int i = 0; mask && i < n; i++) mask[i] = may(s, m, i / keys, i % keys);
    return mask;
}

/* Lists the parts of the layer in the order of their computation, correct or with mistakes. all:
 * the parts by kind, as they are without mistakes of their order. Returns how many there are. */
static int arrange(const layer_part all[3], uint64_t m, layer_part parts[3]) {
    static const int no_residual[] = { NO_RESIDUAL_1, NO_RESIDUAL_2, NO_RESIDUAL_3 };
    static const int left_out[] = { NO_SELF, NO_CROSS, NO_FF };
    int n = 0;
    for (int k = 0; k < 3; k++) {
        int kind = HAS(m, CROSS_FIRST) && k < 2 ? 1 - k : k;
        int norm = HAS(m, NORMS_EXCHANGED) && kind < 2 ? 1 - kind : kind;
        if (norm == CROSS && HAS(m, NORM1_TWICE)) norm = SELF;
        if (norm == FEED && HAS(m, NORM2_TWICE)) norm = CROSS;
        if (HAS(m, left_out[kind])) continue;
        layer_part *p = &parts[n++];
        *p = all[kind];
        p->norm = all[norm].norm;
        bool old =
            (kind == CROSS && HAS(m, OLD_RESIDUAL_2)) || (kind == FEED && HAS(m, OLD_RESIDUAL_3));
        if (old) p->residual = LAYER_INPUT;
        if (HAS(m, no_residual[kind])) p->residual = NO_INPUT;
    }
    return n;
}

/* ---- the task -------------------------------------------------------------------------------- */

static void run_layer(const sample *s, float *const *out) {
    struct decoder_weights w = decoder_of(s, LAYER, 0);
    decoder_layer(&w, s->in[Y], s->size['T'], s->in[MEMORY], s->in[KEEP], s->size['S'],
                  s->size['D'], s->size['H'], s->size['F'], out[0], out[1]);
}

static void weft_layer(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    struct wf_decoder_block b = weft_decoder(s, g, "layer", LAYER, 0);
    wf_tensor *k, *v;
    wf_mha_options self = { .causal = true };
    wf_mha_options cross = { .mask = wf_unsqueeze(in[KEEP], WF_AXIS(0) | WF_AXIS(1) | WF_AXIS(2)),
                             .weights = &out[0] };
    wf_mha_keys_values(&b.multihead_attn, wf_unsqueeze(in[MEMORY], WF_AXIS(0)), &k, &v);
    out[1] = wf_decoder_layer(&b, wf_unsqueeze(in[Y], WF_AXIS(0)), k, v, &self, &cross);
}

static void model_layer(const sample *s, uint64_t m, double *const *out) {
    struct decoder_weights w = decoder_of(s, LAYER, 0);
    int T = s->size['T'], S = s->size['S'], n = T * s->size['D'];
    double *y = doubles_of(s->in[Y], s->count[Y]), *turned = room(n);
    double *memory = doubles_of(s->in[MEMORY], s->count[MEMORY]);
    float *causal = mask_of(s, m, T, self_mask), *padding = mask_of(s, m, S, cross_mask);
    const layer_part all[] = {
        [SELF] = { .attention = &w.self, .norm = &w.norm1, .keys = T, .mask = causal },
        [CROSS] = { .attention = HAS(m, SAME_WEIGHTS) ? &w.self : &w.cross,
                    .norm = &w.norm2,
                    .queries = HAS(m, EXCHANGED) || HAS(m, Y_QUERIES) ? turned : NULL,
                    .from = HAS(m, EXCHANGED) || HAS(m, SELF_TWICE) ? NULL : memory,
                    .keys = S,
                    .mask = padding,
                    .weights = out[0] },
        [FEED] = { .ff = &w.ff, .norm = &w.norm3 }
    };
    layer_part parts[3];
    for (int i = 0; i < n; i++) turned[i] = HAS(m, Y_QUERIES) ? y[i] : memory[i % s->count[MEMORY]];
    /* The weights stay NaN if a mistake leaves the cross-attention out. */
    for (int i = 0; i < s->size['H'] * T * S; i++) out[0][i] = NAN;
    block_layer(s, parts, arrange(all, m, parts), HAS(m, PRE_NORM) ? NORM_BEFORE : NORM_AFTER, y, T,
                out[1]);
    free(y), free(turned), free(memory);
    free(causal), free(padding);
}

enum { V_Y, V_MEMORY, V_SELF, V_SUM, V_A, V_CROSS, V_SUM_2, V_B, V_FF, V_SUM_3 };
static const recipe layer_steps = {
    .in = { { "y", Y, 'T' }, { "the memory", MEMORY, 'S' } },
    .inputs = 2,
    .steps = 9,
    .keep = KEEP,
    .step = { { "the self-attention", STEP_ATTEND, V_Y, V_Y, LAYER, LOOKS_BACK, false },
              { "y + self-attention", STEP_ADD, V_Y, V_SELF, 0, 0, false },
              { "a (norm1)", STEP_NORM, V_SUM, 0, LAYER + 4, 0, false },
              { "the cross-attention", STEP_ATTEND, V_A, V_MEMORY, LAYER + 6, LOOKS_AT_TOKENS,
                true },
              { "a + cross-attention", STEP_ADD, V_A, V_CROSS, 0, 0, false },
              { "b (norm2)", STEP_NORM, V_SUM_2, 0, LAYER + 10, 0, false },
              { "the feed-forward", STEP_FF, V_B, 0, LAYER + 12, 0, false },
              { "b + feed-forward", STEP_ADD, V_B, V_FF, 0, 0, false },
              { "out (norm3)", STEP_NORM, V_SUM_3, 0, LAYER + 16, 0, false } },
};

static const lesson_task layer_task = {
    .steps = &layer_steps,
    .name = "decoder_layer",
    .formula = "a = norm1(y + self(y, y)); b = norm2(a + cross(a, memory)); out = norm3(b + "
               "feed_forward(b))",
    .in = { [Y] = { "y", "TD", ARRAY_VALUES, 0 }, [MEMORY] = { "memory", "SD", ARRAY_VALUES, 0 },
            [KEEP] = { "keep", "S", ARRAY_PREFIX, 0 }, DECODER_ROWS(LAYER, "") },
    .out = { { "cross_weights", "HTS", 0, 0 }, { "out", "TD", 0, 0 } },
    .cases = { "T4 S4 D8 H2 F12", "T5 S5 D6 H3 F8", "T3 S5 D8 H2 F6" },
    .learner = run_layer,
    .weft = weft_layer,
    .model = model_layer,
    .mistakes = {
        [NO_CAUSAL] = { "no causal mask",
                        "Positions look at later ones: in training the answer would be read off." },
        [WRONG_TRIANGLE] = { "mask of the wrong triangle",
                             "Positions look at themselves and at later ones." },
        [STRICT] = { "positions do not look at themselves",
                     "The causal mask has the diagonal, too." },
        [EXCHANGED] = { "memory and query exchanged", "In the cross-attention the decoder asks: "
                        "queries come from a, keys and values from the memory." },
        [SELF_TWICE] = { "the memory is not used", "The second attention looks at a again. Its "
                         "keys and values come from the memory." },
        [NO_CROSS] = { "no cross-attention",
                       "Between self-attention and feed-forward the decoder looks at the memory." },
        [CROSS_FIRST] = { "cross-attention before self-attention", "Self-attention comes first." },
        [NO_RESIDUAL_1] = { "residual missing around the self-attention",
                            "y is not added before norm1." },
        [NO_RESIDUAL_2] = { "residual missing around the cross-attention",
                            "a is not added before norm2." },
        [NO_RESIDUAL_3] = { "residual missing around the feed-forward",
                            "b is not added before norm3." },
        [NO_PADDING] = { "padding of the memory is not masked",
                         "keep does not reach the cross-attention." },
        [CAUSAL_CROSS] = { "a causal mask in the cross-attention", "The memory is known from the "
                           "beginning: every position may look at all of it but padding." },
        [SAME_WEIGHTS] = { "cross-attention with the weights of self-attention",
                           "It has weights of its own: w->cross." },
        [OLD_RESIDUAL_2] = { "the residual of the cross-attention is y",
                             "What is added is the input of each part: y, then a, then b." },
        [OLD_RESIDUAL_3] = { "the residual of the feed-forward is y",
                             "What is added is the input of each part: y, then a, then b." },
        [KEEP_TURNED] = { "padding alone is looked at",
                          "keep has 1 for a token, which may be looked at, and 0 for padding." },
        [NORM1_TWICE] = { "norm1 is used twice", "norm2 is behind the cross-attention." },
        [NORM2_TWICE] = { "norm2 is used twice", "norm3 is behind the feed-forward." },
        [NORMS_EXCHANGED] = { "norm1 and norm2 exchanged", "norm1 is behind the self-attention, "
                              "norm2 behind the cross-attention." },
        [PRE_NORM] = { "norm before instead of after", "This is a pre-norm layer. The one asked "
                       "for norms the sums, as in the paper." },
        [Y_QUERIES] = { "the cross-attention asks with y",
                        "Its queries come from a, the result of the self-attention." },
        [NO_FF] = { "no feed-forward", "The layer ends behind the cross-attention." },
        [SOURCE_MASK_SELF] = { "the mask of padding in the self-attention",
                               "keep is about the memory. The self-attention is masked causally." },
        [NO_SELF] = { "no self-attention", "The layer begins with the cross-attention." },
    },
};

/* ---- the picture ----------------------------------------------------------------------------- */

/* Draws where each position looks, with random y, memory and weights. */
static bool draw(picture *p) {
    sample s;
    if (!sample_make(&s, &layer_task, "T10 S12 D16 H4 F16")) return false;
    int T = s.size['T'], S = s.size['S'], D = s.size['D'];
    float *out = calloc((size_t)(T * D), sizeof *out);
    *p = (picture){ .heads = s.size['H'], .rows = T, .columns = S };
    snprintf(p->title, sizeof p->title, "Your cross-attention, random weights, padding from 8 on");
    p->weights = calloc((size_t)(p->heads * T * S), sizeof *p->weights);
    bool ok = out && p->weights;
    struct decoder_weights w = decoder_of(&s, LAYER, 0);
    if (ok)
        decoder_layer(&w, s.in[Y], T, s.in[MEMORY], s.in[KEEP], S, D, s.size['H'], s.size['F'],
                      p->weights, out);
    free(out);
    sample_free(&s);
    return ok;
}

static const lesson_task *const tasks[] = { &layer_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, draw };
