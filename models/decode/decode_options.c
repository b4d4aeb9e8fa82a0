/* models/decode/decode_options.c - defaults and checks of the options of wf_decode. */
#include "narrow.h"

#include <stdlib.h>

enum { MOST = 1024, MOST_ROWS = 1 << 20 };

wf_decode_options wf_decode_defaults(void) {
    return (wf_decode_options){
        .beam = 1,
        .nbest = 1,
        .max_len_a = 1,
        .max_len_b = 10,
        .repetition_penalty = 1,
        .decay = 1,
        .top_p = 1,
        .temperature = 1,
    };
}

static bool between(double x, double low, double high) { /* false for NaN */
    return x >= low && x <= high;
}

static bool drawing_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->beam != 1)
        return wf_decoder_fail(d, "a sample has no beam: ask for beam 1, not %d", o->beam);
    if (!between(o->nbest, 1, MOST))
        return wf_decoder_fail(d, "nbest is %d: a sample draws 1 to %d outputs", o->nbest, MOST);
    if (o->top_k < 0)
        return wf_decoder_fail(d, "the top k is %d: ask for 1 or more, or 0 for all", o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return wf_decoder_fail(d, "the top p is %g, not above 0 and at most 1", o->top_p);
    if (!between(o->temperature, 1e-3, 1e3))
        return wf_decoder_fail(d, "the temperature is %g, not between 0.001 and 1000",
                               o->temperature);
    return true;
}

static bool beam_ok(wf_decoder *d, const wf_decode_options *o) {
    if (!between(o->beam, 1, MOST))
        return wf_decoder_fail(d, "a beam of %d is not between 1 and %d", o->beam, MOST);
    if (!between(o->nbest, 1, o->beam))
        return wf_decoder_fail(d,
                               "the %d best are not to be had from a beam of %d: ask for 1 to %d",
                               o->nbest, o->beam, o->beam);
    return true;
}

static bool rules_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->stop < WF_STOP_FULL || o->stop > WF_STOP_SHRINK)
        return wf_decoder_fail(d, "there is no rule %d of when to stop", (int)o->stop);
    return (o->at_limit >= WF_LIMIT_END && o->at_limit <= WF_LIMIT_NO_END) ||
           wf_decoder_fail(d, "there is no rule %d of the longest outputs", (int)o->at_limit);
}

static bool lengths_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->penalty < WF_PENALTY_NONE || o->penalty > WF_PENALTY_AVERAGE)
        return wf_decoder_fail(d, "there is no length penalty %d", (int)o->penalty);
    if (!between(o->alpha, 0, 10))
        return wf_decoder_fail(d, "the length penalty's alpha is %g, not between 0 and 10",
                               o->alpha);
    if (!between(o->max_len_a, 0, 1e6) || !between(o->max_len_b, 0, 1e9))
        return wf_decoder_fail(
            d,
            "a maximum length of %g n + %g: the first number is 0 to 1e6, the second "
            "0 to 1e9",
            o->max_len_a, o->max_len_b);
    if (o->min_len < 0)
        return wf_decoder_fail(d, "the minimum length is %lld, not 0 or more",
                               (long long)o->min_len);
    return true;
}

static bool forced_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->n_forced < 0 || (o->n_forced > 0 && !o->forced))
        return wf_decoder_fail(d, "the forced tokens are NULL, or their number is below 0");
    for (int i = 0; i < o->n_forced; i++)
        if (o->forced[i] < 0 || o->forced[i] >= d->model->tgt_vocab ||
            o->forced[i] == d->model->end_id)
            return wf_decoder_fail(d, "forced token %d is the end, or not in a vocabulary of %lld",
                                   (int)o->forced[i], (long long)d->model->tgt_vocab);
    return true;
}

static bool banned_ok(wf_decoder *d, const wf_decode_options *o) {
    const wf_model *m = d->model;
    if (o->n_banned < 0 || (o->n_banned > 0 && !o->banned))
        return wf_decoder_fail(d, "the banned tokens are NULL, or their number is below 0");
    for (int i = 0; i < o->n_banned; i++) {
        if (o->banned[i] == m->end_id)
            return wf_decoder_fail(d, "the end token %d cannot be banned", (int)m->end_id);
        if (o->banned[i] < 0 || o->banned[i] >= m->tgt_vocab)
            return wf_decoder_fail(d, "banned token %d is not in a vocabulary of %lld",
                                   (int)o->banned[i], (long long)m->tgt_vocab);
    }
    return true;
}

static bool begin_banned_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->n_begin_banned < 0 || (o->n_begin_banned > 0 && !o->begin_banned))
        return wf_decoder_fail(
            d, "the tokens banned at the beginning are NULL, or their number is below 0");
    for (int i = 0; i < o->n_begin_banned; i++)
        if (o->begin_banned[i] < 0 || o->begin_banned[i] >= d->model->tgt_vocab)
            return wf_decoder_fail(d,
                                   "token %d, banned at the beginning, is not in a vocabulary of "
                                   "%lld",
                                   (int)o->begin_banned[i], (long long)d->model->tgt_vocab);
    return true;
}

static bool shortlist_ok(wf_decoder *d, const wf_decode_options *o) {
    if (!o->shortlist) return true;
    if (!d->model->src)
        return wf_decoder_fail(d, "a shortlist is for a model that reads a source of its own");
    return wf_shortlist_fits(o->shortlist, d->model) ||
           wf_decoder_fail(d, "the shortlist is for vocabularies of another size");
}

static bool repetition_ok(wf_decoder *d, const wf_decode_options *o) {
    if (o->no_repeat_ngram < 0)
        return wf_decoder_fail(
            d, "n-grams of %d tokens may not repeat: ask for 1 or more, or 0 to allow all",
            o->no_repeat_ngram);
    if (!between(o->repetition_penalty, 1e-3, 1e3))
        return wf_decoder_fail(d, "the repetition penalty is %g, not between 0.001 and 1000",
                               o->repetition_penalty);
    if (!between(o->decay, 1e-3, 1e3) || o->decay_start < 0)
        return wf_decoder_fail(
            d,
            "a decay of %g after %lld tokens: the first number is 0.001 to 1000, "
            "the second 0 or more",
            o->decay, (long long)o->decay_start);
    return true;
}

bool wf_options_ok(wf_decoder *d, const wf_decode_options *o, int b) {
    if (!o) return wf_decoder_fail(d, "there are no options");
    if (!(o->sample ? drawing_ok(d, o) : beam_ok(d, o))) return false;
    if (!lengths_ok(d, o) || !rules_ok(d, o) || !banned_ok(d, o) || !forced_ok(d, o) ||
        !begin_banned_ok(d, o) || !repetition_ok(d, o) || !shortlist_ok(d, o))
        return false;
    int width = o->sample ? o->nbest : o->beam;
    return (int64_t)b * width <= MOST_ROWS ||
           wf_decoder_fail(
               d, "%d sentences of %d hypotheses are more than %d rows: take fewer at once", b,
               width, MOST_ROWS);
}
