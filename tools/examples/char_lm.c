/* char_lm.c - a small GPT learns a sonnet by heart, character by character, and recites it.
 *
 * Shows a decoder-only Transformer put together from nn's layers. It is recorded once: one plan
 * trains it on windows of the text, another, with a state, reads a prompt and then one character
 * after the other; keys and values of the past stay in the state. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

enum { VOCABULARY = 128, WIDTH = 64, LAYERS = 2, LONGEST = 128, BATCH = 4, STEPS = 250 };
enum { MOST_PARAMS = 64, PROMPT = 10 };

static const char sonnet[] = /* Shakespeare, 18 */
    "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date;\n"
    "Sometime too hot the eye of heaven shines,\nAnd often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\nBy chance or nature's changing course "
    "untrimm'd;\n";

/* The whole model: ids [B, T] -> logits [B, T, VOCABULARY]. */
static wf_tensor *gpt(wf_graph *g, wf_tensor *ids) {
    wf_block_options block = { .d_model = WIDTH,
                               .num_heads = 4,
                               .dim_feedforward = 4 * WIDTH,
                               .activation = WF_GELU,
                               .norm_first = true,
                               .bias = true };
    wf_mha_options look_back = { .causal = true, .cache = true };
    block.layer_norm_eps = 1e-5;
    struct wf_embedding_layer table = wf_embedding_new(g, "table", VOCABULARY, WIDTH, true);
    struct wf_position_layer position =
        wf_position_new(g, "position", WF_POSITIONS_LEARNED, LONGEST, WIDTH);
    wf_tensor *x = wf_add_positions(&position, wf_embed(&table, ids)); /* [B, T, WIDTH] */
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layers.%d", i);
        struct wf_encoder_block layer = wf_encoder_layer_new(g, name, &block);
        x = wf_encoder_layer(&layer, x, &look_back);
    }
    struct wf_norm_layer norm = wf_norm_new(g, "norm", WIDTH, 1e-5, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", WIDTH, VOCABULARY, true);
    return wf_linear(&output, wf_norm(&norm, x));
}

/* Trains on windows of the text; the label of each character is the next. */
static bool train(wf_plan *p, wf_tensor *ids, wf_tensor *labels, const wf_optimizer *o,
                  const wf_optimizer_options *adam, wf_tensor *loss) {
    static int32_t in[BATCH][LONGEST], next[BATCH][LONGEST];
    const wf_schedule schedule = { .kind = WF_COSINE, .peak = 0.003, .warmup = 20, .steps = STEPS };
    bool ok = wf_bind(p, "B", BATCH) && wf_bind(p, "T", LONGEST);
    for (int step = 1; ok && step <= STEPS; step++) {
        for (int b = 0; b < BATCH; b++) {
            const char *from = sonnet + (step * 31 + b * 43) % (int)(sizeof sonnet - LONGEST - 1);
            if (b == 0) from = sonnet; /* the beginning, always */
            for (int t = 0; t < LONGEST; t++) in[b][t] = from[t], next[b][t] = from[t + 1];
        }
        double rates[3];
        float sum;
        wf_optimizer_rates(adam, wf_schedule_rate(&schedule, step), step, rates);
        ok = wf_feed(p, ids, in, sizeof in) && wf_feed(p, labels, next, sizeof next) &&
             wf_feed_reals(p, o->rates, rates, 3) && wf_run(p) &&
             wf_fetch(p, loss, &sum, sizeof sum);
        if (ok && step % 50 == 0)
            printf("step %d: %.3f nats a character\n", step,
                   (double)sum / (double)(BATCH * LONGEST));
    }
    return ok;
}

/* Goes on from the prompt, the likeliest character at a time, to the longest text there may be. */
static bool recite(wf_plan *p, wf_tensor *ids, wf_tensor *likeliest, char text[LONGEST + 1]) {
    int32_t row[LONGEST];
    bool ok = wf_bind(p, "B", 1) && wf_bind(p, "T", PROMPT);
    wf_state *s = ok ? wf_state_new(p) : NULL;
    for (int at = 0, n = PROMPT; ok && at + n < LONGEST; at += n, n = 1) {
        for (int t = 0; t < n; t++) row[t] = text[at + t];
        ok = wf_bind(p, "T", n) && wf_bind(p, "P", at) &&
             wf_feed(p, ids, row, (size_t)n * sizeof *row) && wf_run_state(p, s) &&
             wf_fetch(p, likeliest, row, (size_t)n * sizeof *row);
        text[at + n] = (char)row[n - 1];
    }
    wf_state_free(s);
    return ok;
}

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t B = wf_extent(g, "B", BATCH), T = wf_extent(g, "T", LONGEST);
    const int64_t shape[] = { B, T };
    wf_extent(g, "P", LONGEST); /* where in the text a run begins */
    wf_tensor *ids = wf_input(g, "ids", WF_I32, 2, shape);
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 2, shape);
    wf_tensor *logits = gpt(g, ids);
    wf_cross_entropy_result loss = wf_cross_entropy(logits, labels, 0, -1);
    wf_tensor *likeliest = wf_argmax(logits, -1); /* [B, T] */

    wf_tensor *params[MOST_PARAMS], *fetch[1 + MOST_PARAMS] = { loss.loss };
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o = wf_optimizer_new(g, loss.loss, loss.count, params,
                                      wf_parameters(g, params, MOST_PARAMS), &adam);
    for (int i = 0; i < o.n; i++) fetch[1 + i] = o.updates[i];
    wf_tensor *feed[] = { ids, labels, o.rates };
    wf_plan_options what = { .fetch = fetch, .n_fetch = 1 + o.n, .feed = feed, .n_feed = 3 };
    wf_plan_options go_on = {
        .fetch = &likeliest, .n_fetch = 1, .feed = &ids, .n_feed = 1, .with_state = true
    };
    wf_plan *learn = wf_plan_new(g, &what), *speak = wf_plan_new(g, &go_on);

    char text[LONGEST + 1] = { 0 };
    memcpy(text, sonnet, PROMPT);
    bool ok =
        train(learn, ids, labels, &o, &adam, loss.loss) && recite(speak, ids, likeliest, text);
    if (ok)
        printf("%s\n", text);
    else
        fprintf(stderr, "%s%s%s\n", wf_error(g), wf_plan_error(learn), wf_plan_error(speak));
    ok = ok && memcmp(text, sonnet, LONGEST) == 0;
    wf_plan_free(learn), wf_plan_free(speak), wf_optimizer_free(&o), wf_graph_free(g);
    return !ok;
}
