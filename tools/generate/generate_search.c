/* tools/generate/generate_search.c - chooses search settings: an option overrides the model's file,
 * and the file overrides the defaults for such a model. See generate.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"

void check_options(const program *p, settings *set) {
    const char *nothing = "--score generates nothing";
    if (!set->model) usage_error(p, "say which model: --model FILE");
    option_no_effect(p,
                     "beam|length-penalty-type|length-penalty|nbest|max-len-a|max-len-b|min-len|"
                     "stop|at-limit|sample|top-k|top-p|temperature|seed|reference|attention",
                     set->score, nothing);
    option_no_effect(
        p,
        "prompt|stream|max-new-tokens|raw|no-repeat-ngram-size|repetition-penalty|suppress-tokens|"
        "begin-suppress-tokens|length-decay|length-decay-start|explain|shortlist",
        set->score, nothing);
    option_no_effect(p, "input|reference", set->prompt,
                     "--prompt is all there is to read; quote a prompt of several words");
    option_no_effect(p, "stream", set->json, "--json writes an object when it is whole");
    option_no_effect(p, "raw", set->json, "--json writes all text as it is");
    option_no_effect(p, "nbest|batch-size", set->stream, "--stream makes one output at a time");
    option_no_effect(p, "max-len-a|max-len-b", option_seen(p, "max-new-tokens"),
                     "--max-new-tokens says it all");
    option_no_effect(p, "beam|stop", set->sample, "--sample draws and does not search");
    option_no_effect(p, "length-penalty", set->penalty == WF_PENALTY_NONE,
                     "--length-penalty-type none has no alpha");
    option_no_effect(p, "weights|adapter", set->arithmetic,
                     "--arithmetic marian has the integers of the model's own file");
    if (set->score && set->long_lines == LONG_SPLIT)
        usage_error(p,
                    "--long-lines split makes several outputs of a line, and --score judges one");
    option_no_effect(p, "explain", set->long_lines == LONG_SPLIT,
                     "--long-lines split makes several outputs of a line");
    if (set->alignment && !align_rule_read(set->alignment, &set->align))
        usage_error(p, "--alignment: '%.40s' is neither hard, nor soft, nor a threshold of 0 to 1",
                    set->alignment);
    if (set->alignment && set->long_lines == LONG_SPLIT)
        usage_error(p,
                    "--long-lines split joins outputs, and --alignment aligns one with its line");
    set->scores = option_seen(p, "nbest");
    if (set->scores && set->long_lines == LONG_SPLIT)
        usage_error(p,
                    "--long-lines split joins outputs, and of --nbest there are several to join");
}

/* ---- what the file says ---------------------------------------------------------------------- */

#define RECORDED(option, field, value)                                                             \
    if (!option_seen(p, option)) set->field = value

static void take_recorded_draws(const program *p, settings *set, const wf_decode_options *o) {
    bool searches = option_seen(p, "beam") || set->score;
    if (o->sample && !searches) set->sample = true;
    if (!set->sample) return;
    RECORDED("top-k", top_k, o->top_k);
    RECORDED("top-p", top_p, o->top_p);
    RECORDED("temperature", temperature, o->temperature);
}

/* Takes the settings of the model's file. If --length-penalty-type was given, the file's length
 * penalty is not used, because it may be meant for another type. */
static void take_recorded(const program *p, settings *set, const wf_decode_options *o) {
    RECORDED("beam", beam, o->beam);
    if (!option_seen(p, "length-penalty-type")) {
        set->penalty = (int)o->penalty;
        RECORDED("length-penalty", length_penalty, o->alpha);
    }
    RECORDED("stop", stop, (int)o->stop);
    RECORDED("max-len-a", max_len_a, o->max_len_a);
    RECORDED("max-len-b", max_len_b, o->max_len_b);
    RECORDED("at-limit", at_limit, (int)o->at_limit);
    RECORDED("min-len", min_len, o->min_len);
    RECORDED("no-repeat-ngram-size", no_repeat_ngram, o->no_repeat_ngram);
    RECORDED("repetition-penalty", repetition_penalty, o->repetition_penalty);
    RECORDED("length-decay-start", decay_start, o->decay_start);
    RECORDED("length-decay", decay, o->decay);
    take_recorded_draws(p, set, o);
}

/* Takes the defaults for this kind of model. Translations are searched with a beam, as in
 * "Attention Is All You Need". Token ids, which mostly have one right answer, are decoded greedily.
 * So is running text, because a beam finds the most repetitive text. */
static void choose_defaults(program *p, bool text, bool goes_on, bool score) {
    char penalty[OPTION_TEXT_SIZE];
    if (!text) options_take_defaults(p, TOKEN_IDS);
    if (goes_on) options_take_defaults(p, GOES_ON);
    if (score) options_take_defaults(p, SCORES);
    options_take_defaults(p, option_text(option_find(p, "length-penalty-type"), penalty));
}

/* ---- what goes together ---------------------------------------------------------------------- */

static void settle_stream(const program *p, settings *set) {
    if (!set->stream) return;
    if (option_seen(p, "beam") && set->beam > 1)
        usage_error(p,
                    "--stream writes tokens that can't change any more, and with a beam of %lld "
                    "they can: --beam 1",
                    (long long)set->beam);
    set->beam = 1;
}

static void settle(const program *p, settings *set) {
    option_no_effect(p, "top-k|top-p|temperature|seed", !set->sample, "only --sample draws");
    option_no_effect(p, "length-penalty", set->penalty == WF_PENALTY_NONE,
                     "the model's length penalty is none");
    option_no_effect(p, "length-decay-start", set->decay == 1, "there is no --length-decay");
    if (option_seen(p, "max-new-tokens")) {
        set->max_len_a = 0;
        set->max_len_b = (double)set->max_new;
    }
    settle_stream(p, set);
    if (set->sample) set->beam = 1;
    if (!set->sample && set->nbest > set->beam)
        usage_error(p, "--nbest %lld is more than a beam of %lld holds: ask for --beam %lld",
                    (long long)set->nbest, (long long)set->beam, (long long)set->nbest);
    option_no_effect(p, "stop", set->beam == 1 && !set->sample,
                     "greedy search ends with the first end token");
    option_no_effect(
        p, "length-penalty|length-penalty-type", set->beam == 1 && !set->scores && !set->json,
        "without a beam it changes the scores alone, and --nbest or --json shows them");
}

static void write_options(const settings *set, wf_decode_options *o) {
    o->beam = (int)set->beam;
    o->penalty = (wf_length_penalty)set->penalty;
    o->alpha = set->length_penalty;
    o->stop = (wf_stop)set->stop;
    o->at_limit = (wf_limit_rule)set->at_limit;
    o->max_len_a = set->max_len_a;
    o->max_len_b = set->max_len_b;
    o->min_len = set->min_len;
    o->no_repeat_ngram = (int)set->no_repeat_ngram;
    o->repetition_penalty = set->repetition_penalty;
    o->decay_start = set->decay_start;
    o->decay = set->decay;
}

/* Reads ids from a text, "5 6 7" or "5,6,7", and appends them to the *n ids of a list, which has
 * room for WF_MOST_BANNED. */
static void read_suppressed(const program *p, const char *name, const char *text, int32_t *ids,
                            int *n) {
    for (const char *at = text; text && *at;) {
        char *end = NULL;
        long long id = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (id < 0 || id > INT32_MAX || *n == WF_MOST_BANNED || !strchr(", ", *end))
            usage_error(p, "--%s: '%.60s' is not a list of at most %d token ids", name, text,
                        WF_MOST_BANNED);
        ids[(*n)++] = (int32_t)id;
        at = end + strspn(end, ", ");
    }
}

void choose_search(job *j, program *p, settings *set, const wf_file *f) {
    char message[WF_MESSAGE];
    wf_generation *g = &j->generation;
    choose_defaults(p, j->language.text, j->model->start_first, set->score);
    g->options = wf_decode_defaults();
    write_options(set, &g->options);
    if (j->language.text) g->n_banned = no_text(j->language.tokenizer[SIDE_TGT], false, g->banned);
    if (!wf_generation_from_meta(f, j->model, g, message)) fail(p, "%s: %s", set->model, message);
    take_recorded(p, set, &g->options);
    if (set->begin_suppress) g->n_begin_banned = 0;
    read_suppressed(p, "suppress-tokens", set->suppress, g->banned, &g->n_banned);
    read_suppressed(p, "begin-suppress-tokens", set->begin_suppress, g->begin_banned,
                    &g->n_begin_banned);
    settle(p, set);
    if (*g->not_done && !set->score)
        warn(p, "%s was made to be searched with settings that are not done here: %s", set->model,
             g->not_done);
    if (set->long_lines == LONG_SPLIT && j->model->start_first)
        usage_error(p,
                    "--long-lines split is for translations: of a prompt that outputs go on from, "
                    "crop keeps the end");
}

wf_decode_options decode_options(const settings *set, const wf_generation *lists) {
    wf_decode_options o = wf_generation_options(lists);
    write_options(set, &o);
    o.nbest = (int)set->nbest;
    o.sample = set->sample;
    o.top_k = (int)set->top_k;
    o.top_p = set->top_p;
    o.temperature = set->temperature;
    o.seed = (uint64_t)set->seed;
    return o;
}
