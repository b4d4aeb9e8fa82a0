/* tools/learn/5_encoder/encoder_checks.c - checks exercise 5: its tasks and known mistakes. */
#include <stdlib.h>
#include <string.h>

#include "tools/learn/lesson_blocks.h"
#include "tools/learn/lesson_recipe.h"

enum { X, KEEP, LAYER, MOST_LAYERS = 4 };
enum {
    NO_RESIDUAL_1,
    NO_RESIDUAL_2,
    OLD_RESIDUAL,
    NORMS_EXCHANGED,
    PRE_NORM,
    NO_NORM_1,
    NO_NORM_2,
    NO_MASK,
    MASKED_ROWS,
    NO_FF,
    NO_ATTENTION,
    NORM_OF_F,
    FF_FIRST,
    NORM1_TWICE,
    NORM2_TWICE,
    KEEP_TURNED,
    MASKED_BOTH,
    LAYER_MISTAKES
};

/* ---- a layer --------------------------------------------------------------------------------- */

/* The mask [S, S], correct or with mistakes. The caller frees it. */
static float *mask_of(const sample *s, uint64_t m) {
    int S = s->size['S'];
    const float *keep = s->in[KEEP];
    float *mask = calloc((size_t)(S * S) + 1, sizeof *mask);
    for (int i = 0; mask && i < S * S; i++) {
        int token = HAS(m, MASKED_ROWS) ? i / S : i % S;
        mask[i] = HAS(m, NO_MASK) ? 1 : keep[token];
        if (HAS(m, KEEP_TURNED)) mask[i] = 1 - mask[i];
        if (HAS(m, MASKED_BOTH)) mask[i] *= keep[i / S];
    }
    return mask;
}

/* Layer `number`, correct or with mistakes. Beside PRE_NORM, only mistakes of the mask count. */
static void model_one(const sample *s, int number, uint64_t m, const double *x, double *out) {
    struct encoder_weights w = encoder_of(s, LAYER, number);
    const struct norm_weights *norms[] = { &w.norm1, &w.norm2 };
    norm_order order = HAS(m, NORM_OF_F) ? NORM_OF_RESULT : NORM_AFTER;
    float *mask = mask_of(s, m);
    layer_part parts[2];
    int n = 0;
    if (HAS(m, PRE_NORM)) {
        order = NORM_BEFORE;
        m = 0;
    }
    for (unsigned k = 0; k < 2; k++) {
        bool is_ff = k != HAS(m, FF_FIRST);
        unsigned which = is_ff != HAS(m, NORMS_EXCHANGED);
        if (HAS(m, is_ff ? NO_FF : NO_ATTENTION)) continue;
        if (HAS(m, NORM1_TWICE)) which = 0;
        if (HAS(m, NORM2_TWICE)) which = 1;
        layer_part *p = &parts[n++];
        *p = (layer_part){ .attention = is_ff ? NULL : &w.self,
                           .ff = &w.ff,
                           .norm = norms[which],
                           .keys = s->size['S'],
                           .mask = mask };
        if (is_ff && HAS(m, OLD_RESIDUAL)) p->residual = LAYER_INPUT;
        if (HAS(m, is_ff ? NO_RESIDUAL_2 : NO_RESIDUAL_1)) p->residual = NO_INPUT;
        if (HAS(m, is_ff ? NO_NORM_2 : NO_NORM_1) && order == NORM_AFTER) p->norm = NULL;
    }
    if (mask) block_layer(s, parts, n, order, x, s->size['S'], out);
    free(mask);
}

static void run_layer(const sample *s, float *const *out) {
    struct encoder_weights w = encoder_of(s, LAYER, 0);
    encoder_layer(&w, s->in[X], s->in[KEEP], s->size['S'], s->size['D'], s->size['H'], s->size['F'],
                  out[0]);
}

static wf_tensor *key_mask(wf_tensor *keep) {
    return wf_unsqueeze(keep, WF_AXIS(0) | WF_AXIS(1) | WF_AXIS(2)); /* [1, 1, 1, S] */
}

static void weft_layer(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    struct wf_encoder_block b = weft_encoder(s, g, "layer", LAYER, 0);
    wf_mha_options o = { .mask = key_mask(in[KEEP]) };
    out[0] = wf_encoder_layer(&b, wf_unsqueeze(in[X], WF_AXIS(0)), &o);
}

static void model_layer(const sample *s, uint64_t m, double *const *out) {
    double *x = doubles_of(s->in[X], s->count[X]);
    model_one(s, 0, m, x, out[0]);
    free(x);
}

#define LAYER_ROWS                                                                                 \
    [NO_RESIDUAL_1] = { "residual missing around the attention",                                   \
                        "Its result is normed without x added." },                                 \
    [NO_RESIDUAL_2] = { "residual missing around the feed-forward",                                \
                        "Its result is normed without its input "                                  \
                        "added." },                                                                \
    [OLD_RESIDUAL] = { "the second residual is the layer's input",                                 \
                       "Behind the feed-forward its own input is "                                 \
                       "added, normed, and not x." },                                              \
    [NORMS_EXCHANGED] = { "norm1 and norm2 exchanged",                                             \
                          "norm1 is behind the attention, norm2 behind the "                       \
                          "feed-forward." },                                                       \
    [PRE_NORM] = { "norm before instead of after",                                                 \
                   "This is a pre-norm layer, x + f(norm(x)). The one asked for "                  \
                   "is norm(x + f(x)), as in the paper." },                                        \
    [NO_NORM_1] = { "no norm behind the attention", "norm1 is not used." },                        \
    [NO_NORM_2] = { "no norm behind the feed-forward", "norm2 is not used." },                     \
    [NO_MASK] = { "padding is not masked",                                                         \
                  "Tokens look at padding: keep does not reach the attention." },                  \
    [MASKED_ROWS] = { "padding masks the queries",                                                 \
                      "Rows of the mask are set by keep[i]. Padding is masked as a "               \
                      "key: mask[i][j] = keep[j], in every row i." },                              \
    [NO_FF] = { "no feed-forward", "The layer ends behind the attention." },                       \
    [NO_ATTENTION] = { "no attention",                                                             \
                       "Only the feed-forward is left: no token looks at another." },              \
    [NORM_OF_F] = { "the norm leaves out the residual",                                            \
                    "This is x + norm(f(x)). The sum is normed: norm(x + "                         \
                    "f(x))." },                                                                    \
    [FF_FIRST] = { "feed-forward before attention", "The attention comes first." },                \
    [NORM1_TWICE] = { "norm1 is used twice", "norm2 is behind the feed-forward." },                \
    [NORM2_TWICE] = { "norm2 is used twice", "norm1 is behind the attention." },                   \
    [KEEP_TURNED] = { "padding alone is looked at",                                                \
                      "keep has 1 for a token, which may be looked at, and 0 for padding." },      \
    [MASKED_BOTH] = { "padding may not look",                                                      \
                      "The mask is 0 in the rows of padding, too. They may look: it is "           \
                      "masked as a key alone, mask[i][j] = keep[j]." }

#define ENCODER_IN(L)                                                                              \
    {                                                                                              \
        [X] = { "x", "SD", ARRAY_VALUES, 0 }, [KEEP] = { "keep", "S", ARRAY_PREFIX, 0 },           \
        ENCODER_ROWS(LAYER, L)                                                                     \
    }

enum { V_X, V_ATTENTION, V_SUM, V_A, V_FF, V_SUM_2 };
static const recipe layer_steps = {
    .in = { { "x", X, 'S' } },
    .inputs = 1,
    .steps = 6,
    .keep = KEEP,
    .step = { { "the attention", STEP_ATTEND, V_X, V_X, LAYER, LOOKS_AT_TOKENS, false },
              { "x + attention", STEP_ADD, V_X, V_ATTENTION, 0, 0, false },
              { "a (norm1)", STEP_NORM, V_SUM, 0, LAYER + 4, 0, false },
              { "the feed-forward", STEP_FF, V_A, 0, LAYER + 6, 0, false },
              { "a + feed-forward", STEP_ADD, V_A, V_FF, 0, 0, false },
              { "out (norm2)", STEP_NORM, V_SUM_2, 0, LAYER + 10, 0, false } },
};

static const lesson_task layer_task = {
    .steps = &layer_steps,
    .name = "encoder_layer",
    .formula = "a = norm1(x + multi_head(x, x)); out = norm2(a + feed_forward(a))",
    .in = ENCODER_IN(""),
    .out = { { "out", "SD", 0, 0 } },
    .cases = { "S4 D8 H2 F12", "S6 D6 H3 F8" },
    .learner = run_layer,
    .weft = weft_layer,
    .model = model_layer,
    .mistakes = { LAYER_ROWS },
};

/* ---- the stack ------------------------------------------------------------------------------- */

enum { SAME_LAYER = LAYER_MISTAKES, NOT_CHAINED, REVERSED, ONE_LESS, ONE_LAYER, FROM_1 };

static void run_encoder(const sample *s, float *const *out) {
    struct encoder_weights w[MOST_LAYERS];
    int layers = s->size['L'];
    for (int i = 0; i < layers; i++) w[i] = encoder_of(s, LAYER, i);
    encoder(w, layers, s->in[X], s->in[KEEP], s->size['S'], s->size['D'], s->size['H'],
            s->size['F'], out[0]);
}

static void weft_stack(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    wf_mha_options o = { .mask = key_mask(in[KEEP]) };
    out[0] = wf_unsqueeze(in[X], WF_AXIS(0));
    for (int i = 0; i < s->size['L']; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        struct wf_encoder_block b = weft_encoder(s, g, name, LAYER, i);
        out[0] = wf_encoder_layer(&b, out[0], &o);
    }
}

static void model_encoder(const sample *s, uint64_t m, double *const *out) {
    double *first = doubles_of(s->in[X], s->count[X]), *x = doubles_of(s->in[X], s->count[X]);
    int layers = s->size['L'], n = layers;
    if (HAS(m, ONE_LESS)) n = layers - 1;
    if (HAS(m, ONE_LAYER)) n = 1;
    for (int i = HAS(m, FROM_1) ? 1 : 0; i < n; i++) {
        int number = HAS(m, REVERSED) ? layers - 1 - i : i;
        model_one(s, HAS(m, SAME_LAYER) ? 0 : number, m, HAS(m, NOT_CHAINED) ? first : x, out[0]);
        memcpy(x, out[0], (size_t)s->count[X] * sizeof *x);
    }
    free(first), free(x);
}

static const lesson_task encoder_task = {
    .name = "encoder",
    .formula = "out = layer w[layers - 1] of ... of layer w[1] of layer w[0] of x",
    .in = ENCODER_IN("L"),
    .out = { { "out", "SD", 0, 0 } },
    .cases = { "L3 S4 D8 H2 F12", "L4 S6 D6 H3 F8" },
    .learner = run_encoder,
    .weft = weft_stack,
    .model = model_encoder,
    .mistakes = { [SAME_LAYER] = { "every layer has the weights of the first",
                                   "Layer l has the weights w[l]." },
                  [NOT_CHAINED] = { "every layer reads x",
                                    "A layer reads what the one before it has made." },
                  [REVERSED] = { "layers from the last to the first", "w[0] comes first." },
                  [ONE_LESS] = { "one layer too few", "All layers, 0 to layers - 1, are used." },
                  [FROM_1] = { "the first layer is left out",
                               "All layers, 0 to layers - 1, are used." },
                  [ONE_LAYER] = { "only one layer", "All layers, 0 to layers - 1, are used." },
                  LAYER_ROWS },
};

static const lesson_task *const tasks[] = { &layer_task, &encoder_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, NULL };
