/* models/emit/plain/plain_translate_batch.c - several lines of text at once through the model and
 * its search, in the C file of a model: embed.sh makes text of this file. In the C file
 * plain_batch.c and plain_translate.c come before it. */

/* A line, and room for its output. */
typedef struct model_line {
    const char *line;
    size_t bytes;
    char *out;
    size_t size;
    int result;   /* what model_translate returns */
    double score; /* of the output; 0 without a search */
} model_line;

/* Write the output of search i, whose line has n tokens. Returns as model_translate. */
static int write_found(const model *m, int i, int n, char *out, size_t size) {
    text_work *w = text_of(m);
    const search *s = &searches_of(m)->at[i];
    if (!DECODER_ONLY && n == AROUND) return write_line(w, 0, out, size);
    if (s->n_ended == 0) return model_NO_OUTPUT;
    return write_line(w, write_best(s, w->output), out, size);
}

/* Translate n lines, at most BATCH. All are read before the model runs, because it may overwrite
 * the text buffers. */
static void translate_group(model *m, model_line *lines, int n) {
    searches *all = searches_of(m);
    text_work *w = text_of(m);
    for (int i = 0; i < BATCH; i++) {
        int tokens = i < n ? read_line(w, lines[i].line, lines[i].bytes) : -1;
        int searched = DECODER_ONLY || tokens != AROUND;
        if (i < n) lines[i].result = tokens;
        begin_search(all, i, w->source, searched ? tokens : -1);
    }
    search_all(m);
    for (int i = 0; i < n; i++) {
        const search *s = &all->at[i];
        lines[i].score = s->n_ended > 0 ? s->ended[0].score : 0;
        if (lines[i].result >= 0)
            lines[i].result = write_found(m, i, lines[i].result, lines[i].out, lines[i].size);
    }
}

/* Write the outputs of n lines, any number: BATCH of them at a time. */
void model_translate_batch(model *m, model_line *lines, int n) {
    for (int first = 0; first < n; first += BATCH)
        translate_group(m, lines + first, n - first < BATCH ? n - first : BATCH);
}
