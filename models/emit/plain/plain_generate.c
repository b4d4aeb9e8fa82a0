/* models/emit/plain/plain_generate.c - model_generate in the C file of a model, behind the search:
 * embed.sh makes text of this file. */

int model_generate(model *m, const int32_t *source, int n, int32_t *output) {
    searches *all = searches_of(m);
    search *s = &all->at[0];
    if (!begin_search(all, 0, source, n) || encode_source(m, s->source, &s->n_source)) return -1;
    for (int position = 0; s->n_live > 0; position++) {
        const float *logits = run_step(m, all->ids, position, all->logits);
        if (!logits || !extend(m, s, logits, position)) {
            s->n_ended = 0; /* an output that ended before has no score */
            return -1;
        }
    }
    return write_best(s, output);
}
