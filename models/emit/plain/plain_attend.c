/* models/emit/plain/plain_attend.c - model_attend in the C file of a model, behind the search and
 * the function read_attention: embed.sh makes text of this file. */

/* Compute all attention weights and log-probabilities for the last source and its best output.
 * Writes the model_ATTENDED tokens that the decoder reads, and returns how many of them are not
 * padding; -1: the model cannot read them. */
int model_attend(model *m, int32_t *tokens) {
    const search *s = &searches_of(m)->at[0];
    int n = s->begin + 1 + write_best(s, tokens + s->begin + 1);
    for (int i = 0; i <= s->begin; i++) tokens[i] = prompted(s, i);
    for (int i = n; i < model_ATTENDED; i++) tokens[i] = END;
    return read_attention(m, s, tokens) ? -1 : n;
}
