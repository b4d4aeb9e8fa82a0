/* tools/train/settings/settings_data.c - turns settings into options of the data, and fills in a
 * new training's defaults, which depend on the size of its data. See settings.h. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "settings_file.h"

enum { AROUND = 2 }; /* special tokens before and after a window of --task mask and spans */

/* ---- data ------------------------------------------------------------------------------------ */

static wf_token_kind tokenizer_of(const settings *set, int side) {
    assert(side == 0 || side == 1);
    return (wf_token_kind)(side && set->data.tokenizer_tgt ? set->data.tokenizer_tgt - 1
                                                           : set->data.tokenizer);
}

static wf_tokenizer_options tokens_of(const settings *set, int side) {
    wf_tokenizer_options tokens = wf_tokenizer_defaults(tokenizer_of(set, side));
    bool alike = tokens.kind == tokenizer_of(set, 0);
    if (alike || option_seen(&train_program, "vocab-size"))
        tokens.vocab_size = set->data.vocab_size;
    if (alike || option_seen(&train_program, "min-freq")) tokens.min_freq = set->data.min_freq;
    return tokens;
}

bool settings_one_table(const settings *set) {
    return set->model.tie == WF_TIE_ALL || set->model.tie == WF_TIE_INPUTS;
}

/* True if both sides share a vocabulary, because it was asked for, or because the model or its
 * tokenizer has only one. */
static bool shares_vocab(const settings *set) {
    bool byte_level = set->data.tokenizer == WF_BYTE_LEVEL && !set->data.tokenizer_tgt;
    bool t5 = set->model.like == LIKE_T5 && set->data.tokenizer != WF_SENTENCEPIECE;
    bool json = set->data.tokenizer == WF_JSON_TEXT;
    return set->data.share_vocab || set->model.in_one_row || set->data.kind->encoder ||
           byte_level || json || t5 ||
           (settings_one_table(set) && set->data.tokenizer != WF_SENTENCEPIECE);
}

/* The order of the ids that the pieces of a .spm file get, which depends on --like. */
static spm_ids ids_of(const settings *set) {
    if (set->model.like == LIKE_T5) return SPM_PADDING_STARTS;
    return set->model.like == LIKE_FIREFOX ? SPM_END_STARTS : SPM_NEW_IDS;
}

static bool given(const char *name) {
    return option_seen(&train_program, name);
}

__attribute__((format(printf, 2, 3))) static void note(settings *set, const char *format, ...) {
    size_t n = strlen(set->data.chosen);
    va_list arguments;
    va_start(arguments, format);
    if (n) n += (size_t)snprintf(set->data.chosen + n, sizeof set->data.chosen - n, ", ");
    if (n < sizeof set->data.chosen)
        vsnprintf(set->data.chosen + n, sizeof set->data.chosen - n, format, arguments);
    va_end(arguments);
}

/* ---- following the data: vocabularies -------------------------------------------------------- */

/* A shared vocabulary uses the kind of tokens that suits both sides. */
static wf_token_kind joint_kind(wf_token_kind src, wf_token_kind tgt) {
    if (src == tgt) return src;
    return src == WF_BPE || tgt == WF_BPE ? WF_BPE : WF_CHARACTERS;
}

static void choose_kinds(settings *set, const survey *s, bool shared) {
    wf_token_kind src = defaults_tokenizer(&s->side[0], s->pairs);
    wf_token_kind tgt = defaults_tokenizer(&s->side[1], s->pairs);
    if (given("tokenizer")) src = tgt = (wf_token_kind)set->data.tokenizer;
    if (!s->side[0].bytes) src = tgt; /* there are targets alone */
    if (given("tokenizer-tgt")) tgt = tokenizer_of(set, 1);
    if (shared) src = tgt = joint_kind(src, tgt);
    set->data.tokenizer = (int)src;
    set->data.tokenizer_tgt = tgt == src ? 0 : 1 + (int)tgt;
    if (given("tokenizer")) return;
    if (tgt == src)
        note(set, "tokenizer %s", wf_token_kind_name(src));
    else
        note(set, "tokenizer %s, of targets %s", wf_token_kind_name(src), wf_token_kind_name(tgt));
}

static void choose_ids(settings *set, double bytes) {
    bool merges = set->data.tokenizer == WF_BPE || set->data.tokenizer == WF_BYTE_LEVEL;
    if (!given("min-freq")) set->data.min_freq = merges ? 2 : 1;
    if (given("vocab-size")) return;
    set->data.vocab_size = merges ? defaults_ids(bytes) : 0;
    if (merges) note(set, "%lld ids", (long long)set->data.vocab_size);
}

/* Adds rotary positions if sources are characters, because the neighbours of a letter matter
 * wherever it stands. Models of --like have positions of their own, and a rotation needs heads of
 * an even width. */
static void choose_positions(settings *set) {
    bool possible = set->model.d_model / set->model.heads % 2 == 0 && !set->model.in_one_row &&
                    !set->data.kind->encoder;
    if (given("positions") || set->model.like || !possible) return;
    if (set->data.tokenizer != WF_CHARACTERS) return;
    set->model.positions = WF_POSITIONS_SINUSOIDAL_ROTARY;
    note(set, "%s positions", wf_positions_name(set->model.positions));
}

static void follow_lines(void *user, const survey *s, dataset_options *o) {
    settings *set = user;
    bool read = set->data.tokenizer == WF_SENTENCEPIECE || set->data.tokenizer == WF_JSON_TEXT,
         fixed = read || set->data.tokenizer == WF_BYTE_LEVEL;
    double bytes = (double)(s->side[0].bytes + s->side[1].bytes);
    if (!fixed) choose_kinds(set, s, o->shared);
    if (!read) choose_ids(set, o->shared ? bytes : bytes / 2);
    choose_positions(set);
    for (int i = 0; i < 2; i++) o->tokens[i] = tokens_of(set, i);
}

/* ---- following the data: batches and steps --------------------------------------------------- */

static void choose_training(settings *set, double epochs, double dropout) {
    char number[OPTION_TEXT_SIZE];
    set->recipe.usual_epochs = llround(epochs) > 1 ? llround(epochs) : 1;
    if (!given("epochs")) set->run.epochs = set->recipe.usual_epochs;
    if (!given("epochs") && !given("max-steps"))
        note(set, "%lld epochs", (long long)set->run.epochs);
    if (!given("dropout")) {
        set->recipe.dropout = round(100 * dropout) / 100;
        note(set, "dropout %s", shortest(set->recipe.dropout, number));
    }
    if (!given("lr")) set->recipe.lr = defaults_rate(set->recipe.lr, (double)set->model.d_model);
}

static void follow_tokens(void *user, const corpus *c, dataset_options *o) {
    settings *set = user;
    pair_defaults d = defaults_for_pairs((double)c->pairs);
    double tokens = (double)(c->total[0] + c->total[1] + c->pairs) / (double)c->pairs;
    if (!given("max-tokens") && !given("batch-size")) {
        int64_t longest = c->longest[0] + c->longest[1] + 1;
        set->data.max_tokens = defaults_batch_tokens(d.batch, tokens);
        if (set->data.max_tokens < longest) set->data.max_tokens = longest;
        o->batches.tokens = set->data.max_tokens;
        note(set, "batches of %lld tokens", (long long)set->data.max_tokens);
    }
    choose_training(set, d.epochs, d.dropout);
}

/* ---- following the data: running text -------------------------------------------------------- */

enum { USUAL_WINDOW = 256 };

static void follow_text(void *user, double bytes, running_options *o) {
    settings *set = user;
    text_defaults d = defaults_for_text(bytes);
    if (set->data.tokenizer == WF_BYTE_BPE && !given("vocab-size")) {
        set->data.vocab_size = llround(d.ids);
        o->tokens.vocab_size = set->data.vocab_size;
        note(set, "%lld ids", (long long)set->data.vocab_size);
    }
    if (!given("max-tokens") && !given("batch-size")) {
        o->rows = llround(fmax(1, d.windows * USUAL_WINDOW / (double)o->window));
        set->data.max_tokens = o->rows * set->data.max_len;
        note(set, "batches of %lld tokens", (long long)set->data.max_tokens);
    }
    choose_training(set, d.epochs, d.dropout);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Defaults of a new model follow the size of text from files, if they were not on the command line.
 * A batch of running text has as many windows as --max-tokens and --batch-size allow. */
source_options settings_source(settings *set) {
    const data_settings *d = &set->data;
    const uint64_t seed = (uint64_t)set->recipe.seed;
    int64_t rows = d->max_tokens / d->max_len;
    if (d->batch_size && (!d->max_tokens || d->batch_size < rows)) rows = d->batch_size;
    dataset_follower follow = { follow_lines, follow_tokens, follow_text, set };
    if (set->run.resume || set->model.init || !(d->kind->running || d->from_files))
        follow = (dataset_follower){ 0 };
    dataset_options pairs = {
        .text_task = d->from_files ? -1 : d->task - LEARN_ADD,
        .train = { d->train ? d->train : d->train_src, d->train_tgt },
        .valid = { d->valid ? d->valid : d->valid_src, d->valid_tgt },
        .alignments = d->alignments,
        .valid_size = d->valid_size,
        .held = d->held,
        .tokens = { tokens_of(set, 0), tokens_of(set, 1) },
        .spm = { d->spm_src, d->spm_tgt },
        .ids = ids_of(set),
        .json = d->tokenizer_json,
        .end_token = d->end_token,
        .shared = shares_vocab(set),
        .targets = set->model.in_one_row,
        .max_tokens = d->max_len,
        .batches = { .sentences = d->batch_size,
                     .tokens = d->max_tokens,
                     .shuffle = true,
                     .seed = seed },
        .follow = follow,
    };
    running_options running = {
        .text = d->text,
        .eval = d->text_eval,
        .eval_bytes = d->text_eval_size,
        .marker = d->document_marker,
        .tokens = tokens_of(set, 0),
        .json = d->tokenizer_json,
        .end_token = d->end_token,
        .window = d->max_len - (d->kind->masks ? AROUND : 0),
        .rows = rows,
        .seed = seed,
        .follow = follow,
    };
    return (source_options){ .numbers = { (task_kind)d->task, d->min_len, d->max_len, seed },
                             .rows = d->batch_size,
                             .held = d->valid_size,
                             .accum = d->accum,
                             .pairs = pairs,
                             .running = running };
}
