/* models/decode/beam.c - beam search: extends the likeliest hypotheses of each sentence.
 *
 * The continuations of the K live hypotheses are ranked by (total, lower token, better parent).
 * Among the first K, those whose last token is the end are finished. The first K that do not end
 * stay live. The K best finished hypotheses are kept.
 *
 * The search of a sentence is done when its `nbest` results are final. Log-probabilities are at
 * most 0, so a total only falls. So no live hypothesis can score more than its present total
 * divided by the penalty of the greatest length (Huang, Zhao and Ma 2017, "When to Finish?"; the
 * bound is exact for every penalty here).
 *
 * The search may be done earlier, when K hypotheses have finished. With WF_STOP_FULL this is
 * enough, as in fairseq (Ott et al. 2019). By the other rules of Hugging Face (generation/utils.py,
 * _beam_search) the best live hypothesis must also score no more than the worst of these K, at its
 * present length or at the greatest. With beam 1 the first end token is enough: the search is
 * greedy.
 *
 * By Marian's rule (beam_search.h) the beam shrinks: each hypothesis that ends takes one place
 * away. In each step, only as many of the best continuations are examined as there are places.
 *
 * Penalties (Wu et al. 2016, eq. 14, and the power of the length) grow with the length and are at
 * least 1, but for an empty output. The length counts the end token, if there is one. */
#include "ops/base/scalars.h"
#include "search.h"

#include <math.h>

static double total_of(const live *h, const candidate *c) {
    return h->total + c->log_prob;
}

/* The index of the live hypothesis whose next candidate has the best total. -1: no candidates are
 * left. */
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
        best = i;
        most = total;
        token = c->token;
    }
    return best;
}

/* Makes room for a hypothesis with this score among the finished ones, behind equal scores. Returns
 * its index. */
static int place_for(sentence *s, double score) {
    int at = s->n_ended++;
    for (; at > 0 && score > s->ended[at - 1].score; at--) s->ended[at] = s->ended[at - 1];
    return at;
}

static void end(const search *q, sentence *s, const live *h, const candidate *c) {
    double score = total_of(h, c) / wf_end_penalty(q, s);
    wf_end_hypothesis(q, s, h, c, place_for(s, score));
    if (s->n_ended > q->o->beam) s->n_ended = q->o->beam;
}

/* True if at this length no live hypothesis could score more than the finished one of rank `place`,
 * where 1 is the best. */
static bool hopeless(const search *q, const sentence *s, int64_t length, int place) {
    double score = q->next[0].total / wf_length_penalty_of(q->o, length);
    return place <= s->n_ended && score <= s->ended[place - 1].score;
}

static bool done(const search *q, const sentence *s, int n) {
    const wf_decode_options *o = q->o;
    int64_t present = wf_length_of(q, s) + 1;
    int64_t longest = s->limit + (o->at_limit != WF_LIMIT_NO_END);
    /* with these two rules a total may rise: decay raises the end token's log-probability, and a
     * penalty below 1 enlarges one that rounding left above 0. Then no result is final before the
     * length limit */
    bool adds = o->decay != 1 || o->repetition_penalty < 1;
    if (n == 0 || (!adds && hopeless(q, s, longest, o->nbest))) return true;
    if (s->n_ended < o->beam) return false;
    if (o->stop == WF_STOP_FULL || o->stop == WF_STOP_SHRINK || o->beam == 1) return true;
    return hopeless(q, s, o->stop == WF_STOP_LONGEST ? longest : present, o->beam);
}

/* True if all live hypotheses now take their last token and need no end token. Then all of them
 * finish, and are ranked together with those that end in this step. */
static bool closes(const search *q, const sentence *s) {
    return q->o->at_limit == WF_LIMIT_NO_END && wf_length_of(q, s) + 1 == s->limit;
}

/* Reports the best of the continuations that were not examined, if there is a listener. */
static void note_worse(const search *q, const sentence *s) {
    for (int i = 0; wf_watch_wants(q) && i < q->width; i++) {
        int parent = best_head(q, s);
        if (parent < 0) return;
        const candidate *c = &wf_candidates_of(q, &s->live[parent])[q->heads[parent]++];
        wf_watch_note(q, s, parent, c, WF_FATE_WORSE);
    }
}

int wf_beam_advance(search *q, sentence *s) {
    bool last = closes(q, s), shrinks = q->o->stop == WF_STOP_SHRINK;
    int n = 0, places = shrinks ? q->width - s->n_ended : q->width;
    for (int i = 0; i < s->n_live; i++) q->heads[i] = 0;
    for (int rank = 0; n < places && !((last || shrinks) && rank == places); rank++) {
        int parent = best_head(q, s);
        if (parent < 0) break;
        const live *h = &s->live[parent];
        const candidate *c = &wf_candidates_of(q, h)[q->heads[parent]++];
        bool ends = c->token == q->d->model->end_id;
        if (ends)
            wf_watch_note(q, s, parent, c, rank < places ? WF_FATE_ENDED : WF_FATE_WORSE);
        else
            wf_watch_note(q, s, parent, c, WF_FATE_LIVE);
        if (!ends)
            q->next[n++] = (child){ parent, 0, c->token, c->log_prob, total_of(h, c) };
        else if (rank < places)
            end(q, s, h, c);
    }
    note_worse(q, s);
    return !last && done(q, s, n) ? 0 : n;
}
