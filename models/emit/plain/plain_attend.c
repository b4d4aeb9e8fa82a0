/* models/emit/plain/plain_attend.c - attention of the last output in the C file of a model:
 * embed.sh makes text of this file. Before it stand the search and read_attention. */

/* Compute all attention weights, and what the model gave every token, for the last source and its
 * best output. Writes the tokens that the decoder reads, model_ATTENDED of them with padding, and
 * returns how many are no padding; -1: the model cannot read them. */
int model_attend(model *m, int32_t *tokens) {
    const search *s = &searches_of(m)->at[0];
    int n = s->begin + 1 + write_best(s, tokens + s->begin + 1);
    for (int i = 0; i <= s->begin; i++) tokens[i] = prompted(s, i);
    for (int i = n; i < model_ATTENDED; i++) tokens[i] = END;
    return read_attention(m, s, tokens) ? -1 : n;
}
