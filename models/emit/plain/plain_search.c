/* models/emit/plain/plain_search.c - greedy and beam search in the C file of a model
 * (model_emit.c): what models/decode/ does for one sentence, to the bit. embed.sh makes text of
 * this file, and tests compile it with every model that they write.
 *
 * In the C file the model comes first, then constants in capitals and the functions encode_source,
 * run_step, copy_row, penalty and log_sum_exp, then this text, and then plain_generate.c, or
 * plain_batch.c for several sources. A model has BEAM rows of caches for each of BATCH sources, one
 * for each live output. */

/* A token that may come next in an output. log_prob is its logit until all candidates are
 * sorted. */
typedef struct candidate {
    double log_prob;
    int32_t token;
} candidate;

/* A token of an output, and the index of the one before it in the trace; -1: none. */
typedef struct traced {
    int32_t token, before;
} traced;

/* An output that goes on: its row among those of its source, its last token, and the index of that
 * in the trace. */
typedef struct live_output {
    double total;
    int row;
    int32_t token, last;
} live_output;

/* An output that has ended: its score, its number of tokens, and the index of the last one in the
 * trace. */
typedef struct ended_output {
    double score;
    int length;
    int32_t last;
} ended_output;

/* The search for the output of a source. */
typedef struct search {
    candidate top[BEAM][BEAM + 1]; /* of every live output, the likeliest first */
    live_output live[BEAM], next[BEAM];
    ended_output ended[2 * BEAM]; /* the best score first */
    traced trace[BEAM * (model_OUTPUT + 1)];
    int32_t *ids; /* the newest token of each of its rows */
    int32_t source[model_SOURCE + 1], n_source;
    int count[BEAM], head[BEAM]; /* candidates of every live output, and those already taken */
    int n_live, n_next, n_ended, n_trace;
    int begin, limit; /* positions before the output; most tokens of the output */
    int first_row;    /* the first of its BEAM rows of the model */
} search;

/* The searches for all sources, which take their steps together. */
typedef struct searches {
    search at[BATCH];
    int32_t ids[BATCH * BEAM]; /* the newest token of every row */
    float logits[COPIED_LOGITS + 1];
} searches;

_Static_assert(sizeof(searches) <= model_MEMORY - model_ARENA,
               "the memory has room for the search");

static searches *searches_of(const model *m) {
    return (searches *)(void *)(m->arena + model_ARENA);
}

/* ---- the source ------------------------------------------------------------------------- */

/* Positions before the output of a source of n tokens. */
static int begin_of(int n) {
    if (!DECODER_ONLY) return 0;
    return START_IF_EMPTY && n > 0 ? n - 1 : n;
}

/* The most tokens of an output for a source of n tokens. */
static int limit_of(int n) {
    int room = LONGEST - 1 - begin_of(n);
    double limit = LIMIT_A * (double)n + LIMIT_B;
    if (room > model_OUTPUT) room = model_OUTPUT;
    return limit < (double)room ? (int)limit : room;
}

/* The token at a position before the output: START, and the prompt of a decoder-only model. */
static int32_t prompted(const search *s, int position) {
    int start = START_FIRST ? 0 : s->begin;
    if (START_IF_EMPTY && s->n_source) return s->source[position];
    if (position == start) return START;
    return s->source[position < start ? position : position - 1];
}

/* Begin the search for source `number`. Returns 0, without a live output, if the model cannot read
 * the source. */
static int begin_search(searches *all, int number, const int32_t *source, int n) {
    search *s = &all->at[number];
    s->first_row = number * BEAM;
    s->ids = all->ids + s->first_row;
    for (int row = 0; row < BEAM; row++) s->ids[row] = START;
    s->n_live = 0;
    s->n_ended = 0;
    if (n < (DECODER_ONLY ? 0 : 1) || n > model_SOURCE) return 0;
    for (int i = 0; i < n; i++) {
        if (source[i] < 0 || source[i] >= SOURCE_VOCABULARY) return 0;
        s->source[i] = source[i];
    }
    for (int i = n; i < model_SOURCE; i++) s->source[i] = 0;
    s->n_source = (int32_t)n;
    s->begin = begin_of(n);
    s->limit = limit_of(n);
    s->live[0].total = 0;
    s->live[0].row = 0;
    s->live[0].last = -1;
    s->n_live = 1;
    s->n_trace = 0;
    s->ids[0] = prompted(s, 0);
    return 1;
}

/* ---- candidates ------------------------------------------------------------------------- */

/* May the token come next in an output of `length` tokens? */
static int is_allowed(int32_t token, int length) {
    for (int i = 0; i < BANNED; i++)
        if (token == banned[i]) return 0;
    return token != END || length >= MIN_LENGTH;
}

/* Find the likeliest tokens, at most BEAM + 1; of equal logits the lower id comes first. */
static int likeliest(const float *logits, int length, candidate *top) {
    int n = 0;
    for (int32_t token = 0; token < VOCABULARY; token++) {
        double logit = (double)logits[token];
        if (n == BEAM + 1 && !(logit > top[n - 1].log_prob)) continue;
        if (!is_allowed(token, length)) continue;
        int at = n < BEAM + 1 ? n++ : n - 1;
        for (; at > 0 && logit > top[at - 1].log_prob; at--) top[at] = top[at - 1];
        top[at].log_prob = logit;
        top[at].token = token;
    }
    return n;
}

/* Find the candidates of live output i. At its limit END is the only one. Returns 0 if the logits
 * are not finite. */
static int choose(search *s, const float *all, int i, int length) {
    const float *logits = all + (s->first_row + s->live[i].row) * VOCABULARY;
    candidate *top = s->top[i];
    double log_total, normaliser = (double)log_sum_exp(VOCABULARY, logits, &log_total);
    normaliser += log_total;
    if (normaliser - normaliser != 0) return 0;
    s->head[i] = 0;
    if (length < s->limit) {
        s->count[i] = likeliest(logits, length, top);
        for (int k = 0; k < s->count[i]; k++) top[k].log_prob -= normaliser;
        return 1;
    }
    s->count[i] = 1;
    top[0].token = END;
    top[0].log_prob = AT_LIMIT == LIMIT_END ? (double)logits[END] - normaliser : 0;
    return 1;
}

/* ---- a step ----------------------------------------------------------------------------- */

static double next_total(const search *s, int i) {
    return s->live[i].total + s->top[i][s->head[i]].log_prob;
}

/* The live output whose next candidate gives the best total, the lower token first if two are
 * equal. -1: no candidate is left. */
static int best_head(const search *s) {
    int best = -1;
    for (int i = 0; i < s->n_live; i++) {
        if (s->head[i] == s->count[i]) continue;
        if (best >= 0) {
            double total = next_total(s, i), most = next_total(s, best);
            int32_t token = s->top[i][s->head[i]].token, other = s->top[best][s->head[best]].token;
            if (total < most || (total == most && token >= other)) continue;
        }
        best = i;
    }
    return best;
}

/* Insert live output i, which ends with this total, among the ended outputs, after equal scores. */
static void end_output(search *s, int i, double total, int length) {
    int end_counts = length < s->limit || AT_LIMIT != LIMIT_NO_END;
    ended_output e;
    e.score = total / penalty(length + end_counts);
    e.length = length;
    e.last = s->live[i].last;
    int at = s->n_ended++;
    for (; at > 0 && e.score > s->ended[at - 1].score; at--) s->ended[at] = s->ended[at - 1];
    s->ended[at] = e;
    if (s->n_ended > BEAM) s->n_ended = BEAM;
}

/* At this length, would every live output score at most as much as ended[place]? */
static int is_hopeless(const search *s, int length, int place) {
    return s->next[0].total / penalty(length) <= s->ended[place].score;
}

/* Is the search over? It is when the best output that has ended stays the best, however long the
 * others become. With STOP_FULL and STOP_SHRINK, BEAM outputs that have ended are enough. With
 * STOP_PRESENT, no live output may be better at its present length than the worst of these. */
static int is_done(const search *s, int length) {
    int longest = s->limit + (AT_LIMIT != LIMIT_NO_END);
    if (s->n_next == 0) return 1;
    if (s->n_ended > 0 && is_hopeless(s, longest, 0)) return 1;
    if (s->n_ended < BEAM) return 0;
    if (STOP == STOP_FULL || STOP == STOP_SHRINK || BEAM == 1) return 1;
    return STOP == STOP_PRESENT && is_hopeless(s, length + 1, BEAM - 1);
}

/* Copy member by member, because some compilers call memcpy to copy a whole struct. */
static void copy_live(live_output *to, const live_output *from) {
    to->total = from->total;
    to->row = from->row;
    to->token = from->token;
    to->last = from->last;
}

/* Take candidates, the best total first, until BEAM outputs go on. END ends its output if it is
 * among the first BEAM candidates. With STOP_SHRINK, each output that has ended leaves one place
 * less. With LIMIT_NO_END, outputs that take their last token go on, and end in the next step. */
static void advance(search *s, int length) {
    int last = AT_LIMIT == LIMIT_NO_END && length + 1 == s->limit;
    int places = STOP == STOP_SHRINK ? BEAM - s->n_ended : BEAM;
    int takes_places = last || STOP == STOP_SHRINK;
    s->n_next = 0;
    for (int rank = 0; s->n_next < places && !(takes_places && rank == places); rank++) {
        int parent = best_head(s);
        if (parent < 0) break;
        double total = next_total(s, parent);
        int32_t token = s->top[parent][s->head[parent]++].token;
        if (token != END) {
            live_output *next = &s->next[s->n_next++];
            copy_live(next, &s->live[parent]);
            next->total = total;
            next->token = token;
        } else if (rank < places) {
            end_output(s, parent, total, length);
        }
    }
    if (!last && is_done(s, length)) s->n_next = 0;
}

/* Give every output that goes on a row of caches. The first continuation of an output keeps its
 * row. Each further one gets a free row, to which the caches are copied. */
static void settle(const model *m, search *s) {
    int used[BEAM], stays[BEAM], row = 0;
    for (int i = 0; i < BEAM; i++) used[i] = 0;
    for (int i = 0; i < s->n_next; i++) {
        stays[i] = !used[s->next[i].row];
        used[s->next[i].row] = 1;
    }
    for (int i = 0; i < s->n_next; i++) {
        live_output *next = &s->next[i];
        if (!stays[i]) {
            while (used[row] && row + 1 < BEAM) row++;
            used[row] = 1;
            copy_row(m, s->first_row + next->row, s->first_row + row);
            next->row = row;
        }
        s->trace[s->n_trace].token = next->token;
        s->trace[s->n_trace].before = next->last;
        next->last = (int32_t)s->n_trace++;
        s->ids[next->row] = next->token;
        copy_live(&s->live[i], next);
    }
    s->n_live = s->n_next;
}

/* Extend the outputs by a token, from the logits after the token at `position`. Within a prompt the
 * next token is the prompt's. Returns 0 if the logits are not finite. */
static int extend(const model *m, search *s, const float *logits, int position) {
    int length = position - s->begin;
    if (length < 0) {
        s->ids[0] = prompted(s, position + 1);
        return 1;
    }
    for (int i = 0; i < s->n_live; i++)
        if (!choose(s, logits, i, length)) return 0;
    advance(s, length);
    settle(m, s);
    return 1;
}

/* Write the tokens of the best output, from the last to the first. Returns their number. */
static int write_best(const search *s, int32_t *output) {
    int32_t at = s->ended[0].last;
    for (int i = s->ended[0].length; i-- > 0; at = s->trace[at].before)
        output[i] = s->trace[at].token;
    return s->ended[0].length;
}

/* The score of the output that the last call of model_generate or model_translate found. It is 0 if
 * the call found none, or made no search: an encoder-decoder makes none for a line without
 * tokens. */
double model_score(const model *m) {
    const search *s = &searches_of(m)->at[0];
    return s->n_ended > 0 ? s->ended[0].score : 0;
}
