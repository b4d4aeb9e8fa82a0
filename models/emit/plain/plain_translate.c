/* models/emit/plain/plain_translate.c - a line of text through the model and its search, in the C
 * file of a model: what the program `generate` does for it, to the byte. embed.sh makes text of
 * this file.
 *
 * In the C file the search, the tokenizers' tables, and the functions encode_line and decode_line
 * come before it. */

/* Copy the n tokens of a line to the source; of more than model_SOURCE keep KEPT. With KEEPS_END 1
 * these are the last ones, which the output continues, else the first ones: the last BEHIND of
 * them become the tokens that end every line. Returns the number of tokens in the source. */
static int take_source(text_work *w, int n) {
    int kept = n > model_SOURCE ? KEPT : n, from = KEEPS_END ? n - kept : 0;
    for (int i = 0; i < kept; i++) w->source[i] = w->tokens[(from + i) % (model_SOURCE + 1)];
    for (int i = 0; n > kept && i < BEHIND; i++) w->source[kept - BEHIND + i] = behind[i];
    return kept;
}

/* Read the ids of a line. Returns their number; below 0: an error. */
static int read_line(text_work *w, const char *line, size_t bytes) {
    id_list ids;
    ids.at = w->tokens;
    ids.room = model_SOURCE + 1;
    ids.n = 0;
    if (bytes > model_LINE) return model_LONG_LINE;
    int status = encode_line(w, line, bytes, &ids);
    return status ? status : take_source(w, ids.n);
}

/* Write the text of an output of n tokens. Returns its bytes, or an error below 0. */
static int write_line(text_work *w, int n, char *out, size_t size) {
    text_out to;
    to.at = out;
    to.size = size ? size - 1 : 0;
    to.n = 0;
    if (n) decode_line(w, w->output, n, &to);
    if (!size || to.n > to.size) return model_NO_ROOM;
    out[to.n] = '\0';
    return (int)to.n;
}

int model_translate(model *m, const char *line, size_t bytes, char *out, size_t size) {
    text_work *w = text_of(m);
    int n = read_line(w, line, bytes);
    searches_of(m)->at[0].n_ended = 0; /* without a search the score is 0 */
    if (n < 0) return n;
    if (!DECODER_ONLY && n == AROUND) return write_line(w, 0, out, size);
    n = model_generate(m, w->source, n, w->output);
    return n < 0 ? model_NO_OUTPUT : write_line(w, n, out, size);
}
