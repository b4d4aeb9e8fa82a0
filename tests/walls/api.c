/* tests/walls/api.c - a program that uses most of the library while inject.so lets system calls
 * fail: a model is recorded, trained, saved, loaded, converted, packed and decoded with.
 *
 * A call that fails must say why, and succeed with the same objects as soon as nothing fails any
 * more. The results must then be those of a run without failures. The program prints a hash of
 * them, which faults.py compares.
 *
 * usage: api THREADS      in a folder for its files, "model" and "torch"
 * exit: 0, 3 (something failed, said so, and was made good), 4 (a promise was broken: stderr) */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/picture.h"
#include "models/decode.h"
#include "models/text.h"
#include "models/transformer.h"

int inject_pause(int pause) __attribute__((weak));
long inject_live(void) __attribute__((weak));

enum { SENTENCES = 3, WORDS = 4, VOCABULARY = 12, PARAMETERS = 64 };

static struct {
    wf_tokenizer *words;
    wf_model *model, *loaded, *converted;
    wf_pool *pool;
    wf_trainer *trainer;
    wf_plan *plan; /* the trainer's */
    wf_decoder *decoder;
    wf_file *file;
    wf_graph *graph;
    int threads, round; /* round: the repetition of steps that run several times */
    uint64_t result;    /* hash of the results of the step that ran last */
    char why[256];
} w;

static const int32_t src[SENTENCES * WORDS] = { 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 0, 0 };
static const int32_t tgt[SENTENCES * WORDS] = { 0, 4, 3, 2, 0, 7, 6, 5, 0, 9, 8, 0 };
static const int32_t labels[SENTENCES * WORDS] = { 4, 3, 2, 1, 7, 6, 5, 0, 9, 8, 0, -1 };
static const int32_t length[SENTENCES] = { 4, 3, 2 };

static bool pause(bool on) {
    return inject_pause && inject_pause(on);
}

static void promise(bool kept, const char *what, const char *which) {
    if (kept) return;
    pause(true);
    fprintf(stderr, "api: %s: %s\n", which, what);
    exit(4);
}

static bool because(const char *why) {
    snprintf(w.why, sizeof w.why, "%s", why);
    return false;
}

static void add(const void *data, size_t n) {
    for (const unsigned char *at = data; n > 0; at++, n--)
        w.result = (w.result ^ *at) * UINT64_C(0x100000001B3);
}

/* ---- steps: each can be repeated after it failed --------------------------------------------- */

static int next_line(void *from, const char **line, size_t *bytes) {
    static const char *const lines[] = { "low lower lowest", "new newer newest", "low new" };
    int *n = from;
    if (*n == 3) return 0;
    *line = lines[(*n)++];
    *bytes = strlen(*line);
    return 1;
}

static bool learn(void) {
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_BPE);
    wf_meta pairs[WF_TOKENIZER_META];
    int32_t ids[32];
    char text[64];
    int line = 0;
    wf_tokenizer_free(w.words);
    w.words = wf_tokenizer_learn(&o, next_line, &line, w.why);
    if (!w.words) return false;
    int64_t n = wf_tokenizer_encode(w.words, "lower newest", 12, ids, 32, w.why);
    if (n < 0) return false;
    if (wf_tokenizer_decode(w.words, ids, n, text, sizeof text) < 0) return because("no text");
    int n_pairs = 0;
    if (!wf_tokenizer_to_meta(w.words, "tokenizer", pairs, &n_pairs, w.why)) return false;
    add(ids, (size_t)n * sizeof *ids), add(text, strlen(text));
    for (int i = 0; i < n_pairs; i++) add(pairs[i].value, strlen(pairs[i].value));
    return true;
}

static wf_training_config training(void) {
    return (wf_training_config){ .dropout = 0.1 };
}

static bool ready(const wf_model *m) {
    return m && (wf_ok(m->graph) || because(wf_error(m->graph)));
}

static bool record(void) {
    wf_transformer_config c = wf_transformer_defaults();
    wf_training_config t = training();
    c.src_vocab = c.tgt_vocab = VOCABULARY, c.max_len = 16, c.d_model = 8, c.num_heads = 2;
    c.dim_feedforward = 8, c.encoder_layers = c.decoder_layers = 1, c.tie = WF_TIE_DECODER;
    wf_trainer_free(w.trainer), wf_model_free(w.model);
    w.trainer = NULL;
    w.model = wf_transformer_new(&c, &t, WF_F32, 3, w.why);
    if (!ready(w.model)) return false;
    int n = wf_node_count(w.model->graph);
    add(&n, sizeof n);
    return true;
}

/* A trainer whose making failed has left nodes in the graph, so a retry records the model anew. The
 * number of nodes is then no part of this step's result. */
static bool plan_training(void) {
    if (w.trainer && !record()) return false;
    w.result = 0;
    const wf_model *m = w.model;
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                             .schedule = { .peak = 1e-2 },
                             .pool = w.pool };
    o.optimizer.average_decay = 0.9;
    w.trainer = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    w.plan = wf_trainer_plan(w.trainer);
    return wf_trainer_ok(w.trainer) || because(wf_trainer_error(w.trainer));
}

static bool feed(wf_plan *p, const wf_model *m, int sentences) {
    size_t row = WORDS * sizeof(int32_t), n = (size_t)sentences;
    return wf_bind(p, "B", sentences) && wf_bind(p, "S", WORDS) && wf_bind(p, "T", WORDS) &&
           wf_feed(p, m->src, src, n * row) &&
           wf_feed(p, m->src_length, length, n * sizeof *length) &&
           wf_feed(p, m->tgt, tgt, n * row);
}

static bool train(void) {
    wf_trainer *t = w.trainer;
    wf_progress now = { 0 };
    if (!feed(w.plan, w.model, w.round) ||
        !wf_feed(w.plan, w.model->labels, labels, wf_bound_bytes(w.plan, w.model->labels)))
        return because(wf_plan_error(w.plan));
    bool ok =
        wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) && wf_trainer_update(t, &now);
    add(&now.loss, sizeof now.loss);
    return ok || because(wf_trainer_error(t));
}

/* Swaps the weights and their averages; the next round swaps them back. */
static bool swap(void) {
    return wf_trainer_swap_averages(w.trainer) || because(wf_trainer_error(w.trainer));
}

static bool profile(void) {
    char text[200];
    wf_step step;
    wf_profile(w.plan, true);
    int n = wf_step_count(w.plan);
    wf_profile(w.plan, false);
    bool ok = n > 0 && wf_step_at(w.plan, 0, &step) && wf_plan_memory(w.plan) > 0;
    if (!ok) return because(wf_plan_error(w.plan));
    if (wf_print(w.plan, w.model->loss.loss, text, sizeof text) < 0) return because("no text");
    add(&n, sizeof n), add(text, strlen(text));
    return true;
}

static bool draw(void) {
    char *dot = wf_dot(&w.model->loss.loss, 1, &(wf_dot_options){ .modules = true }, w.why);
    if (!dot) return false;
    add(dot, strlen(dot));
    free(dot);
    return true;
}

static bool check(void) {
    wf_graph_free(w.graph);
    wf_graph *g = w.graph = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    wf_tensor *x = wf_param(g, "x", 1, (const int64_t[]){ 2 }, wf_init_constant(0.5));
    double error = wf_check_gradients(g, wf_sum(wf_tanh(x), WF_ALL_AXES, false), &x, 1, w.why);
    add(&error, sizeof error);
    return error >= 0; /* not a NaN */
}

static bool save(void) {
    const wf_meta meta[] = { { "train.step", "3" }, { "note", "\"tab\t\"" } };
    return wf_model_save(w.model, "model", w.trainer, meta, 2, w.why);
}

static void add_parameters(const wf_model *m) {
    float values[VOCABULARY * 16];
    wf_tensor *parameters[PARAMETERS];
    int n = wf_parameters(m->graph, NULL, parameters, PARAMETERS);
    for (int i = 0; i < n; i++)
        if (wf_read(parameters[i], values, wf_bytes(parameters[i])))
            add(values, wf_bytes(parameters[i]));
}

static bool open_file(const char *path) {
    wf_file_free(w.file);
    w.file = wf_file_open(path);
    return wf_file_ok(w.file) || because(wf_file_error(w.file));
}

static bool load(void) {
    wf_training_config t = training();
    wf_model_free(w.loaded);
    w.loaded = NULL;
    if (!open_file("model")) return false;
    w.loaded = wf_model_load(w.file, &t, WF_F32, 3, w.why);
    return ready(w.loaded);
}

static bool convert(void) {
    if (!wf_transformer_save_state_dict(w.model, "torch", false, w.why)) return false;
    wf_model_free(w.converted);
    w.converted = NULL;
    if (!open_file("torch")) return false;
    w.converted =
        wf_transformer_from_state_dict(w.file, &wf_transformer_of(w.model)->config, WF_F32, w.why);
    return ready(w.converted);
}

static bool attend(void) {
    wf_plan *p = wf_model_plan(w.loaded, WF_PLAN_ATTENTION, w.pool);
    float weights[SENTENCES * 2 * WORDS * WORDS];
    bool ok = wf_plan_ok(p) && feed(p, w.loaded, SENTENCES) && wf_run(p) &&
              wf_fetch(p, w.loaded->maps[2].weights[0], weights, sizeof weights);
    if (!ok) because(wf_plan_error(p));
    wf_plan_free(p);
    add(weights, sizeof weights);
    return ok;
}

static bool pack(void) {
    return wf_pack_weights(w.loaded->graph, WF_PANELS_BF16, w.why);
}

static bool open_decoder(void) {
    wf_decoder_free(w.decoder);
    return (w.decoder = wf_decoder_new(w.loaded, w.pool, w.why)) != NULL;
}

/* Greedily, with a beam, at random. */
static bool decode(void) {
    wf_decode_options o = wf_decode_defaults();
    wf_decoded results[SENTENCES];
    o.max_len_b = 2, o.sample = w.round == 3, o.beam = w.round == 2 ? 3 : 1;
    o.nbest = w.round > 1 ? 2 : 1, o.top_k = w.round == 3 ? 5 : 0;
    bool ok = wf_decode(w.decoder, SENTENCES, WORDS, src, length, NULL, &o, results);
    if (!ok) because(wf_decoder_error(w.decoder));
    for (int i = 0; ok && i < SENTENCES; i++)
        for (int k = 0; k < results[i].n; k++) {
            const wf_hypothesis *h = &results[i].best[k];
            add(h->tokens, (size_t)h->length * sizeof *h->tokens);
            add(&h->score, sizeof h->score);
        }
    wf_decoded_free(results, SENTENCES);
    return ok;
}

static bool score(void) {
    double totals[SENTENCES];
    bool ok = wf_score(w.decoder, SENTENCES, WORDS, src, length, WORDS, src, length, NULL, totals);
    add(totals, sizeof totals);
    return ok || because(wf_decoder_error(w.decoder));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*take)(void);
    int rounds;
} steps[] = {
    { "learn", learn, 1 }, { "record", record, 1 },     { "plan", plan_training, 1 },
    { "train", train, 3 }, { "swap", swap, 2 },         { "profile", profile, 1 },
    { "draw", draw, 1 },   { "check", check, 1 },       { "save", save, 1 },
    { "load", load, 1 },   { "convert", convert, 1 },   { "attend", attend, 1 },
    { "pack", pack, 1 },   { "open", open_decoder, 1 }, { "decode", decode, 3 },
    { "score", score, 1 },
};

static bool failed;

static uint64_t take(int i) {
    w.why[0] = '\0', w.result = 0;
    if (steps[i].take()) return w.result;
    bool was = pause(true);
    failed = true;
    promise(w.why[0], "fails and does not say why", steps[i].name);
    fprintf(stderr, "api: %s: %s\n", steps[i].name, w.why);
    w.result = 0;
    promise(steps[i].take(), w.why, "still failing");
    pause(was);
    return w.result;
}

static void free_all(void) {
    wf_tokenizer_free(w.words);
    wf_decoder_free(w.decoder);
    wf_trainer_free(w.trainer);
    wf_model_free(w.model), wf_model_free(w.loaded), wf_model_free(w.converted);
    wf_graph_free(w.graph);
    wf_file_free(w.file);
    wf_pool_free(w.pool);
}

/* Allocates what the C library keeps: stacks of threads, for later ones, and a buffer of stdio. */
static void warm_up(void) {
    wf_pool_free(wf_pool_new(w.threads));
    fprintf(stderr, "%s", "");
}

int main(int argc, char **argv) {
    uint64_t results = 0;
    pause(true);
    w.threads = argc > 1 ? atoi(argv[1]) : 1;
    warm_up();
    long before = inject_live ? inject_live() : 0;
    pause(false);
    w.pool = wf_pool_new(w.threads);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (w.round = 1; w.round <= steps[i].rounds; w.round++)
            results = results * 31 + take((int)i);
    pause(true);
    add_parameters(w.model), add_parameters(w.loaded), add_parameters(w.converted);
    free_all();
    promise(!inject_live || inject_live() == before, "blocks of memory are left", "at the end");
    printf("%016llx\n", (unsigned long long)(results ^ w.result));
    return failed ? 3 : 0;
}
