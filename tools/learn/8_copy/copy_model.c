/* tools/learn/8_copy/copy_model.c - the Transformer of exercise 8. See copy_model.h.
 *
 * weft computes losses, gradients and logits. The learner's code owns the parameters, so they are
 * written into the graph before each run. */
#include "copy_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "models/transformer.h"
#include "nn/optimizer.h"

enum { BATCH = 24, LENGTH = 6, VOCABULARY = 11, LOSSES = 20, MOST_ARRAYS = 128 };
const struct copy_notes *copy_notes;

/* The model of the copy task, with the graph and the plans behind it. */
typedef struct machine {
    struct copier copier;
    wf_model *model;
    wf_plan *gradients, *scores;
    wf_tensor *leaf[MOST_ARRAYS], *grad[MOST_ARRAYS], *mean;
    int size[MOST_ARRAYS];
    float *x[MOST_ARRAYS], *g[MOST_ARRAYS], *m[MOST_ARRAYS], *v[MOST_ARRAYS];
    uint64_t drawn;
    double losses[LOSSES], first;
    int n_losses;
} machine;

static machine *machine_of(struct copier *c) {
    return (machine *)(void *)((char *)c - offsetof(machine, copier));
}

/* Ends the program with the message unless ok. */
static void check(bool ok, const char *message) {
    if (ok) return;
    printf("the model of this exercise failed: %s\n", message);
    exit(1);
}

/* ---- making it ------------------------------------------------------------------------------- */

static bool make_arrays(machine *k) {
    int n = wf_parameters(k->model->graph, NULL, k->leaf, MOST_ARRAYS);
    bool ok = n <= MOST_ARRAYS;
    for (int i = 0; ok && i < n; i++) {
        k->size[i] = (int)wf_count(k->leaf[i]);
        size_t bytes = (size_t)k->size[i];
        k->x[i] = calloc(bytes, sizeof(float));
        k->g[i] = calloc(bytes, sizeof(float));
        k->m[i] = calloc(bytes, sizeof(float));
        k->v[i] = calloc(bytes, sizeof(float));
        ok = k->x[i] && k->g[i] && k->m[i] && k->v[i] &&
             wf_read(k->leaf[i], k->x[i], wf_bytes(k->leaf[i]));
    }
    k->copier = (struct copier){ BATCH, LENGTH, VOCABULARY, n, k->size, k->x, k->g, k->m, k->v };
    return ok;
}

static wf_plan *plan_gradients(machine *k) {
    wf_model *m = k->model;
    wf_tensor *fetch[MOST_ARRAYS + 1], *feed[] = { m->src, m->src_length, m->tgt, m->labels };
    int n = k->copier.arrays;
    k->mean = wf_div(m->loss.loss, m->loss.count);
    wf_grad(k->mean, k->leaf, n, k->grad);
    memcpy(fetch, k->grad, (size_t)n * sizeof *fetch);
    fetch[n] = k->mean;
    return wf_plan_new(m->graph, &(wf_plan_options){
                                     .fetch = fetch, .n_fetch = n + 1, .feed = feed, .n_feed = 4 });
}

bool copy_model_new(struct copier **c, char *message) {
    wf_transformer_config o = wf_transformer_defaults();
    machine *k = calloc(1, sizeof *k);
    if (!k) return false;
    o.src_vocab = o.tgt_vocab = VOCABULARY;
    o.max_len = LENGTH + 4;
    o.d_model = 32;
    o.num_heads = 4;
    o.dim_feedforward = 64;
    o.encoder_layers = o.decoder_layers = 1;
    o.norm_first = o.encoder_norm = o.decoder_norm = true;
    o.pad_id = -1;
    k->model = wf_transformer_new(&o, NULL, WF_F32, 1, message);
    bool ok = k->model && make_arrays(k);
    if (ok) k->gradients = plan_gradients(k);
    if (ok) k->scores = wf_model_plan(k->model, WF_PLAN_SCORE, NULL);
    ok = ok && wf_plan_ok(k->gradients) && wf_plan_ok(k->scores);
    if (!ok && k->gradients) snprintf(message, 256, "%s", wf_plan_error(k->gradients));
    *c = &k->copier;
    if (!ok) copy_model_free(&k->copier);
    return ok;
}

void copy_model_free(struct copier *c) {
    machine *k = machine_of(c);
    wf_plan_free(k->gradients);
    wf_plan_free(k->scores);
    wf_model_free(k->model);
    for (int i = 0; i < MOST_ARRAYS; i++) {
        free(k->x[i]), free(k->g[i]);
        free(k->m[i]), free(k->v[i]);
    }
    free(k);
}

/* ---- what the learner calls ------------------------------------------------------------------ */

void draw_sources(struct copier *c, int *sources) {
    if (copy_notes) {
        copy_notes->draw(c, sources);
        return;
    }
    machine *k = machine_of(c);
    for (int i = 0; i < BATCH * LENGTH; i++) {
        wf_philox bits = wf_philox4x32(7, k->drawn++, 0);
        sources[i] = 1 + (int)(wf_unit_double(bits.v[0], bits.v[1]) * (VOCABULARY - 1));
    }
}

static void write_parameters(machine *k) {
    for (int i = 0; i < k->copier.arrays; i++)
        check(wf_write(k->leaf[i], k->x[i], wf_bytes(k->leaf[i])), "a parameter can't be written");
}

float compute_gradient(struct copier *c, const int *sources, const int *input, const int *labels) {
    if (copy_notes) return copy_notes->gradient(c, sources, input, labels);
    machine *k = machine_of(c);
    int lengths[BATCH];
    float loss = 0;
    for (int i = 0; i < BATCH; i++) lengths[i] = LENGTH;
    wf_batch batch = { BATCH, LENGTH, LENGTH + 1, sources, lengths, input, labels };
    write_parameters(k);
    bool ok = wf_model_feed(k->model, k->gradients, &batch) && wf_run(k->gradients) &&
              wf_fetch(k->gradients, k->mean, &loss, sizeof loss);
    for (int i = 0; ok && i < c->arrays; i++)
        ok = wf_fetch(k->gradients, k->grad[i], k->g[i], wf_bytes(k->grad[i]));
    check(ok, wf_plan_error(k->gradients));
    if (k->n_losses < LOSSES) k->first += loss / LOSSES;
    k->losses[k->n_losses++ % LOSSES] = loss;
    return loss;
}

void next_logits(struct copier *c, const int *source, const int *tokens, int n, float *logits) {
    if (copy_notes) {
        copy_notes->next(c, source, tokens, n, logits);
        return;
    }
    machine *k = machine_of(c);
    float all[(LENGTH + 4) * VOCABULARY];
    int length = LENGTH, labels[LENGTH + 4] = { 0 };
    check(n >= 1 && n <= LENGTH + 3, "next_logits takes 1 to 9 tokens");
    wf_batch batch = { 1, LENGTH, n, source, &length, tokens, labels };
    write_parameters(k);
    bool ok =
        wf_model_feed(k->model, k->scores, &batch) && wf_run(k->scores) &&
        wf_fetch(k->scores, k->model->logits, all, wf_bound_bytes(k->scores, k->model->logits));
    check(ok, wf_plan_error(k->scores));
    memcpy(logits, all + (n - 1) * VOCABULARY, VOCABULARY * sizeof *logits);
}

/* ---- after the training ---------------------------------------------------------------------- */

void copy_model_losses(const struct copier *c, double *first, double *last) {
    const machine *k = (const machine *)(const void *)((const char *)c - offsetof(machine, copier));
    int n = k->n_losses < LOSSES ? k->n_losses : LOSSES;
    *first = k->first;
    *last = 0;
    for (int i = 0; i < n; i++) *last += k->losses[i] / n;
}

float *copy_model_attention(struct copier *c, const int *source, int *heads, int *rows,
                            int *columns) {
    machine *k = machine_of(c);
    const wf_attention_map *map = &k->model->maps[k->model->n_maps - 1];
    wf_tensor *w = map->weights[map->layers - 1];
    int length = LENGTH, tokens[LENGTH + 1], labels[LENGTH + 1];
    /* -1 is no id, so the model refuses these tokens if the learner's shift does not fill them */
    for (int i = 0; i <= LENGTH; i++) tokens[i] = -1;
    shift(source, LENGTH, tokens, labels);
    wf_batch batch = { 1, LENGTH, LENGTH + 1, source, &length, tokens, NULL };
    wf_plan *p = wf_model_plan(k->model, WF_PLAN_ATTENTION, NULL);
    write_parameters(k);
    bool ok = wf_model_feed(k->model, p, &batch) && wf_run(p);
    size_t bytes = wf_bound_bytes(p, w);
    float *weights = ok ? malloc(bytes) : NULL;
    ok = weights && wf_fetch(p, w, weights, bytes);
    check(ok, wf_plan_error(p));
    wf_plan_free(p);
    *heads = 4;
    *rows = LENGTH + 1;
    *columns = LENGTH;
    return weights;
}
