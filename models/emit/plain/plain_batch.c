/* models/emit/plain/plain_batch.c - outputs for several sources at once in the C file of a model,
 * the same as one source at a time. embed.sh makes text of this file. In the C file the search and
 * the function keep_source come before it.
 *
 * Sources are encoded one by one. Then one step computes the rows of all sources together, so that
 * it reads the weights once. Rows of searches that are over, or that never began, are computed too,
 * but nothing reads their logits. */

/* A source of n ids, and its output, which has room for model_OUTPUT. */
typedef struct model_task {
    const int32_t *source;
    int n;
    int32_t *output;
    int length;   /* tokens of output; -1: the source cannot be read, or logits are not finite */
    double score; /* score of output */
} model_task;

static void fail_search(search *s) {
    s->n_live = 0;
    s->n_ended = 0;
}

/* Encode the sources of all searches that have begun. Other slots get the encoder's last result,
 * even if that run failed, so that a step reads no undefined memory: their rows are computed, but
 * nothing reads the result. Returns the number of sources. */
static int encode_sources(model *m, searches *all) {
    int n = 0;
    for (int i = 0; i < BATCH; i++) {
        search *s = &all->at[i];
        if (s->n_live == 0) continue;
        if (encode_source(m, s->source, &s->n_source)) {
            fail_search(s);
            continue;
        }
        keep_source(m, i);
        n++;
    }
    for (int i = 0; n > 0 && i < BATCH; i++)
        if (all->at[i].n_live == 0) keep_source(m, i);
    return n;
}

/* Find the outputs of all searches that have begun. A search that fails has no output. */
static void search_all(model *m) {
    searches *all = searches_of(m);
    int live = encode_sources(m, all);
    for (int position = 0; live > 0; position++) {
        const float *logits = run_step(m, all->ids, position, all->logits);
        live = 0;
        for (int i = 0; i < BATCH; i++) {
            search *s = &all->at[i];
            if (s->n_live == 0) continue;
            if (!logits || !extend(m, s, logits, position)) fail_search(s);
            live += s->n_live;
        }
    }
}

/* Write the outputs of n sources, at most BATCH. */
static void generate_group(model *m, model_task *tasks, int n) {
    searches *all = searches_of(m);
    for (int i = 0; i < BATCH; i++)
        begin_search(all, i, i < n ? tasks[i].source : 0, i < n ? tasks[i].n : -1);
    search_all(m);
    for (int i = 0; i < n; i++) {
        const search *s = &all->at[i];
        tasks[i].length = s->n_ended > 0 ? write_best(s, tasks[i].output) : -1;
        tasks[i].score = s->n_ended > 0 ? s->ended[0].score : 0;
    }
}

/* Write the outputs of n sources, any number: BATCH of them at a time. */
void model_generate_batch(model *m, model_task *tasks, int n) {
    for (int first = 0; first < n; first += BATCH)
        generate_group(m, tasks + first, n - first < BATCH ? n - first : BATCH);
}

int model_generate(model *m, const int32_t *source, int n, int32_t *output) {
    model_task task;
    task.source = source;
    task.n = n;
    task.output = output;
    generate_group(m, &task, 1);
    return task.length;
}
