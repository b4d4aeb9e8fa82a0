/* char_lm.c - a small GPT memorises a sonnet, character by character, and recites it.
 *
 * Shows a decoder-only Transformer made of nn's layers. It is recorded once. One plan trains it on
 * windows of the text. Another plan, with a state, reads a prompt and then one character after the
 * other; the state keeps the keys and values of the past. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

enum { VOCABULARY = 128, WIDTH = 64, LAYERS = 2 };
enum { LONGEST = 128, BATCH = 4, STEPS = 250, PROMPT = 10 };

static const char sonnet[] = /* Shakespeare, 18 */
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date;\n"
    "Sometime too hot the eye of heaven shines,\nAnd often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\n"
    "By chance or nature's changing course untrimm'd;\n";

/* The whole model: ids [B, T] -> logits [B, T, VOCABULARY]. */
static wf_tensor *gpt(wf_graph *g, wf_tensor *ids) {
    const wf_block_options block = { .d_model = WIDTH,
                                     .num_heads = 4,
                                     .dim_feedforward = 4 * WIDTH,
                                     .activation = WF_GELU,
                                     .norm_first = true,
                                     .bias = true,
                                     .layer_norm_eps = 1e-5 };
    const wf_mha_options look_back = { .causal = true, .cache = true };
    struct wf_embedding_layer table = wf_embedding_new(g, "table", VOCABULARY, WIDTH, true);
    struct wf_position_layer position =
        wf_position_new(g, "position", WF_POSITIONS_LEARNED, LONGEST, WIDTH);
    wf_tensor *x = wf_add_positions(&position, wf_embed(&table, ids), NULL); /* [B, T, WIDTH] */
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%d", i);
        struct wf_encoder_block layer = wf_encoder_layer_new(g, name, &block);
        x = wf_encoder_layer(&layer, x, &look_back);
    }
    struct wf_norm_layer norm = wf_norm_new(g, "norm", WF_LAYER_NORM, WIDTH, 1e-5, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", WIDTH, VOCABULARY, true);
    return wf_linear(&output, wf_norm(&norm, x));
}

/* Trains on batches of windows of the text. The first window of each batch begins at the start of
 * the text. The label of a character is the next one. */
static bool train(wf_trainer *trainer, const wf_tensor *ids, const wf_tensor *labels) {
    static int32_t in[BATCH][LONGEST], next[BATCH][LONGEST];
    wf_plan *p = wf_trainer_plan(trainer);
    bool ok = wf_bind(p, "B", BATCH) && wf_bind(p, "T", LONGEST);
    for (int step = 1; ok && step <= STEPS; step++) {
        for (int b = 0; b < BATCH; b++) {
            int from = b ? (step * 31 + b * 43) % (int)(sizeof sonnet - LONGEST - 1) : 0;
            for (int t = 0; t < LONGEST; t++) {
                in[b][t] = sonnet[from + t];
                next[b][t] = sonnet[from + t + 1];
            }
        }
        wf_progress now;
        ok = wf_feed(p, ids, in, sizeof in) && wf_feed(p, labels, next, sizeof next) &&
             wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, &now);
        if (ok && step % 50 == 0) printf("step %d: %.3f nats a character\n", step, now.loss);
    }
    return ok;
}

/* Continues the prompt with the likeliest character each time, up to the maximum length. */
static bool recite(wf_plan *p, const wf_tensor *ids, const wf_tensor *likeliest,
                   char text[LONGEST + 1]) {
    int32_t row[LONGEST];
    bool ok = wf_bind(p, "B", 1) && wf_bind(p, "T", PROMPT);
    wf_state *s = ok ? wf_state_new(p) : NULL;
    for (int at = 0, n = PROMPT; ok && at + n < LONGEST; at += n, n = 1) {
        const size_t bytes = (size_t)n * sizeof *row;
        for (int t = 0; t < n; t++) row[t] = text[at + t];
        ok = wf_bind(p, "T", n) && wf_bind(p, "P", at) && wf_feed(p, ids, row, bytes) &&
             wf_run_state(p, s) && wf_fetch(p, likeliest, row, bytes);
        text[at + n] = (char)row[n - 1];
    }
    wf_state_free(s);
    return ok;
}

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t B = wf_extent(g, "B", BATCH), T = wf_extent(g, "T", LONGEST), shape[] = { B, T };
    wf_extent(g, "P", LONGEST); /* P: the position at which a run begins */
    wf_tensor *ids = wf_input(g, "ids", WF_I32, 2, shape);
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 2, shape);
    wf_tensor *logits = gpt(g, ids), *likeliest = wf_argmax(logits, -1);
    wf_cross_entropy_result loss = wf_cross_entropy(logits, labels, 0, -1);

    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_COSINE, 0.003, 20, STEPS, 0 } };
    const wf_plan_options next = {
        .fetch = &likeliest, .n_fetch = 1, .feed = &ids, .n_feed = 1, .with_state = true
    };
    wf_trainer *trainer = wf_trainer_new(g, loss.loss, loss.count, &options);
    wf_plan *speak = wf_plan_new(g, &next);
    char text[LONGEST + 1] = { 0 };
    memcpy(text, sonnet, PROMPT);
    bool ok = train(trainer, ids, labels) && recite(speak, ids, likeliest, text);
    if (ok)
        printf("%s\n", text);
    else
        fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(speak));
    wf_plan_free(speak), wf_trainer_free(trainer), wf_graph_free(g);
    return !(ok && memcmp(text, sonnet, LONGEST) == 0);
}
