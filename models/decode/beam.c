/* models/decode/beam.c - beam search: the likeliest hypotheses go on, each sentence by itself.
 *
 * Of the K live hypotheses' continuations, ranked by (total, lower token, better parent), those
 * that end among the first K have ended; the first K that do not end go on. A sentence is done
 *
 *   when K hypotheses have ended: so does fairseq (Ott et al. 2019), and so beam 1 is greedy;
 *   or when the n best of them are final: log-probabilities only lower a total, so nothing live
 *   can score more than the best total divided by the largest penalty that its limit allows
 *   (Huang, Zhao and Ma 2017, "When to Finish?"; the bound is exact for every penalty here).
 *
 * Or, by the rules of Hugging Face (generation/utils.py, _beam_search), the K best that have ended
 * are kept, and it is done when there are K and either that is enough, or the best live one would
 * score no more than the worst of them, at its present length or at its longest.
 *
 * Penalties (Wu et al. 2016, eq. 14, and the power of the length) grow with the length and are at
 * least 1; the length counts the end. */
#include "decoder.h"

#include <math.h>

double wf_length_penalty_of(const wf_decode_options *o, int64_t length) {
    switch (o->penalty) {
    case WF_PENALTY_GNMT:
        return pow((5 + (double)length) / 6, o->alpha);
    case WF_PENALTY_AVERAGE:
        return pow((double)length, o->alpha);
    default:
        return 1;
    }
}

static double total_of(const live *h, const candidate *c) {
    return h->total + c->log_prob;
}

/* The live hypothesis whose next candidate is the best of all; -1: none has any left. */
static int best_head(const search *q, const sentence *s) {
    int best = -1;
    double most = 0;
    int32_t token = 0;
    for (int i = 0; i < s->n_live; i++) {
        const live *h = &s->live[i];
        if (q->heads[i] == q->n_candidates[h->row]) continue;
        const candidate *c = &wf_candidates_of(q, h)[q->heads[i]];
        double total = total_of(h, c);
        if (best >= 0 && (total < most || (total == most && c->token >= token))) continue;
        best = i, most = total, token = c->token;
    }
    return best;
}

double wf_end_penalty(const search *q, const sentence *s) {
    int64_t length = wf_length_of(q, s);
    bool end_counts = length < s->limit || q->o->at_limit != WF_LIMIT_NO_END;
    return wf_length_penalty_of(q->o, length + end_counts);
}

/* Where something that scores this much belongs among those that have ended: after its equals. */
static int place_for(sentence *s, double score) {
    int at = s->n_ended++;
    for (; at > 0 && score > s->ended[at - 1].score; at--) s->ended[at] = s->ended[at - 1];
    return at;
}

static void end(const search *q, sentence *s, const live *h, const candidate *c) {
    double score = total_of(h, c) / wf_end_penalty(q, s);
    wf_end_hypothesis(q, s, h, c, place_for(s, score));
    if (q->o->stop != WF_STOP_SURE && s->n_ended > q->o->beam) s->n_ended = q->o->beam;
}

static bool sure(const search *q, const sentence *s) {
    if (s->n_ended < q->o->nbest || q->o->decay != 1) return false; /* an end may add to a total */
    double reach = q->next[0].total / wf_length_penalty_of(q->o, s->limit + 1);
    return reach <= s->ended[q->o->nbest - 1].score;
}

/* Does nothing live score more than the worst that is kept, at so many tokens? */
static bool hopeless(const search *q, const sentence *s, int64_t length) {
    double score = q->next[0].total / wf_length_penalty_of(q->o, length);
    return score <= s->ended[s->n_ended - 1].score;
}

static bool done(const search *q, const sentence *s, int n) {
    bool full = s->n_ended >= q->o->beam, end_counts = q->o->at_limit != WF_LIMIT_NO_END;
    if (n == 0) return true;
    if (q->o->stop == WF_STOP_SURE) return full || sure(q, s);
    if (!full || q->o->stop == WF_STOP_FULL || q->o->beam == 1) return full;
    return hopeless(q, s,
                    q->o->stop == WF_STOP_LONGEST ? s->limit + end_counts : wf_length_of(q, s) + 1);
}

/* Are these the last tokens of all that is live, and no end is forced on it? Then they are ranked
 * together with those that end now, and all of them have ended. */
static bool closes(const search *q, const sentence *s) {
    return q->o->at_limit == WF_LIMIT_NO_END && wf_length_of(q, s) + 1 == s->limit;
}

int wf_beam_advance(search *q, sentence *s) {
    int n = 0;
    bool last = closes(q, s);
    for (int i = 0; i < s->n_live; i++) q->heads[i] = 0;
    for (int rank = 0; n < q->width && !(last && rank == q->width); rank++) {
        int parent = best_head(q, s);
        if (parent < 0) break;
        const live *h = &s->live[parent];
        const candidate *c = &wf_candidates_of(q, h)[q->heads[parent]++];
        if (c->token != q->d->model->end_id)
            q->next[n++] = (child){ parent, 0, c->token, c->log_prob, total_of(h, c) };
        else if (rank < q->width)
            end(q, s, h, c);
    }
    return !last && done(q, s, n) ? 0 : n;
}
