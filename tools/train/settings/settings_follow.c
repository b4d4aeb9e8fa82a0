/* tools/train/settings/settings_follow.c - chooses settings of a new model by the data, by the
 * rules of defaults.h, if they were not given. See settings.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "defaults.h"
#include "models/choices.h"
#include "settings_file.h"

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

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* A shared vocabulary uses the kind of tokens that suits both sides. */
static wf_token_kind joint_kind(wf_token_kind src, wf_token_kind tgt) {
    if (src == tgt) return src;
    return src == WF_BPE || tgt == WF_BPE ? WF_BPE : WF_CHARACTERS;
}

static void choose_kinds(settings *set, const survey *s, bool shared) {
    wf_token_kind src = defaults_tokenizer(&s->side[0], s->pairs);
    wf_token_kind tgt = defaults_tokenizer(&s->side[1], s->pairs);
    if (given("tokenizer")) src = tgt = (wf_token_kind)set->data.tokenizer;
    if (!s->side[0].bytes) src = tgt; /* targets alone */
    if (given("tokenizer-tgt")) tgt = settings_tokenizer(set, 1);
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
 * wherever it stands. Classes of --like have positions of their own, and a rotation needs heads of
 * an even width. */
static void choose_positions(settings *set) {
    bool possible = set->model.d_model / set->model.heads % 2 == 0 && !settings_in_one_row(set) &&
                    !settings_encoder(set);
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
    for (int i = 0; i < 2; i++) o->tokens[i] = settings_tokens(set, i);
}

/* ---- batches and steps ----------------------------------------------------------------------- */

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

/* ---- running text ---------------------------------------------------------------------------- */

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

dataset_follower settings_follower(settings *set) {
    bool follows = !set->run.resume && !set->model.init && settings_text(set);
    if (!follows || (!settings_running(set) && !settings_from_files(set)))
        return (dataset_follower){ 0 };
    return (dataset_follower){ follow_lines, follow_tokens, follow_text, set };
}
