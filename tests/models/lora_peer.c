/* tests/models/lora_peer.c - trains the adapters of a model on given batches, and prints the loss
 * of each step: the side of weft in lora_peer.py.
 *
 * usage: lora_peer MODEL ADAPTERS BATCHES STEPS B S T RATE DECAY LAYOUT OUTPUT
 *
 * BATCHES has for each step src [B,S] (S 0: none), tgt [B,T] and labels [B,T] as i32. LAYOUT is
 * that of the frozen weights: 0 f32, 2 bf16, 3 int8. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

static void need(bool ok, const char *why) {
    if (ok) return;
    fprintf(stderr, "lora_peer: %s\n", why);
    exit(1);
}

typedef struct sizes {
    int64_t B, S, T;
} sizes;

static void feed(const wf_model *m, wf_plan *p, const sizes *n, FILE *f) {
    size_t source = (size_t)(n->B * n->S), target = (size_t)(n->B * n->T);
    int32_t *src = calloc(source + 1, 4), *tgt = calloc(target, 4), *labels = calloc(target, 4);
    int32_t *length = calloc((size_t)n->B, 4);
    need(src && tgt && labels && length, "out of memory");
    need(fread(src, 4, source, f) == source && fread(tgt, 4, target, f) == target &&
             fread(labels, 4, target, f) == target,
         "too few batches");
    bool ok = wf_bind(p, "B", n->B) && wf_bind(p, "T", n->T);
    for (int64_t i = 0; i < n->B; i++) length[i] = (int32_t)n->S;
    if (m->src)
        ok = ok && wf_bind(p, "S", n->S) && wf_feed(p, m->src, src, source * 4) &&
             wf_feed(p, m->src_length, length, (size_t)n->B * 4);
    ok = ok && wf_feed(p, m->tgt, tgt, target * 4) && wf_feed(p, m->labels, labels, target * 4);
    need(ok, wf_plan_error(p));
    free(src);
    free(tgt);
    free(labels);
    free(length);
}

/* The number of parameters of the base model that differ from its file. */
static int moved(const wf_model *m, const wf_file *f) {
    int n = 0;
    char message[256];
    wf_model *was = wf_model_load(f, NULL, WF_F32, 0, message);
    need(was, message);
    for (int id = 0; id < wf_node_count(was->graph); id++) {
        const wf_tensor *a = wf_node(was->graph, id);
        if (a->kind != WF_PARAM) continue;
        size_t bytes = wf_bytes(a);
        char *x = malloc(bytes), *y = malloc(bytes);
        need(wf_read(a, x, bytes) && wf_read(wf_find(m->graph, a->name), y, bytes), a->name);
        n += memcmp(x, y, bytes) != 0;
        free(x);
        free(y);
    }
    wf_model_free(was);
    return n;
}

int main(int argc, char **argv) {
    char message[256] = "";
    need(argc == 12, "see the comment at its beginning");
    const sizes n = { atoll(argv[5]), atoll(argv[6]), atoll(argv[7]) };
    int steps = atoi(argv[4]), layout = atoi(argv[10]);
    wf_file *base = wf_file_open(argv[1]), *adapters = wf_file_open(argv[2]);
    FILE *batches = fopen(argv[3], "rb");
    wf_training_config training = { 0 };
    need(batches, "no batches");
    need(wf_model_read_adapters(adapters, &training.adapters, message), message);
    wf_model *m = wf_model_load(base, &training, WF_F32, 1, message);
    need(m && wf_model_load_adapters(m, adapters, message), message);
    need(!layout || wf_pack_weights(m->graph, (wf_layout)layout, message), message);

    int count = wf_parameters(m->graph, "*.lora_*", NULL, 0);
    wf_tensor **params = calloc((size_t)count + 1, sizeof *params);
    wf_parameters(m->graph, "*.lora_*", params, count);
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAMW),
                             .schedule = { WF_CONSTANT_RATE, atof(argv[8]), 0, 0, 0 },
                             .params = params,
                             .n_params = count };
    o.optimizer.weight_decay = atof(argv[9]);
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    need(t && wf_trainer_ok(t), t ? wf_trainer_error(t) : "out of memory");
    for (int i = 0; i < steps; i++) {
        wf_progress now;
        feed(m, wf_trainer_plan(t), &n, batches);
        need(wf_trainer_begin(t, 1, NULL, NULL) && wf_trainer_add(t, 0) &&
                 wf_trainer_update(t, &now),
             wf_trainer_error(t));
        printf("%.9g\n", now.loss);
    }
    size_t bytes = 0, arena = wf_plan_memory(wf_trainer_plan(t));
    need(wf_trainer_memory(t, &bytes), wf_trainer_error(t));
    printf("%d %d %zu %zu %" PRId64 "\n", layout ? 0 : moved(m, base),
           wf_trainer_optimizer(t)->n - count, arena, bytes, wf_model_parameter_count(m));
    need(wf_model_save(m, argv[11], NULL, NULL, 0, message), message);
    wf_trainer_free(t);
    wf_model_free(m);
    wf_file_free(base);
    wf_file_free(adapters);
    fclose(batches);
    free(params);
    return 0;
}
