/* models/hf/hf_search.c - reads the settings with which generate() of transformers would search. As
 * in transformers (generation/configuration_utils.py) they are in generation_config.json, or in
 * config.json if there is no such file.
 *
 * Settings that weft supports become options. Unsupported settings that would change a result are
 * reported. Settings that change no result are known by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "folder.h"
#include "models/message.h"

/* DEFAULT_NEW: the most new tokens of an encoder-decoder's output if a file sets no limit. LONGEST:
 * the largest limit that a file may set. */
enum { DEFAULT_NEW = 20, LONGEST = 1000000000 };
/* the most new tokens of a language model without max_new_tokens, as in the program `generate` */
enum { NEW_OF_PROMPT = 200 };

/* ---- what is known --------------------------------------------------------------------------- */

/* Settings that weft supports, which the functions below read. */
static const char *const used[] = {
    "num_beams",
    "max_length",
    "max_new_tokens",
    "min_length",
    "early_stopping",
    "length_penalty",
    "bad_words_ids",
    "suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "renormalize_logits",
    "decoder_start_token_id",
    "eos_token_id",
    "pad_token_id",
    "do_sample",
    "top_k",
    "top_p",
    "temperature",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "begin_suppress_tokens",
    "exponential_decay_length_penalty",
    "force_bos_token_to_be_generated",
    "bos_token_id",
};

/* Settings that weft does not support. The value `neutral` and null change nothing; any other value
 * changes a search. Rows with of_samples matter to sampling alone. */
static const struct {
    const char *name, *neutral;
    bool of_samples;
} neutral[] = {
    { "encoder_no_repeat_ngram_size", "0", false },
    { "encoder_repetition_penalty", "1", false },
    { "num_beam_groups", "1", false },
    { "diversity_penalty", "0", false },
    { "num_return_sequences", "1", false },
    { "remove_invalid_values", "false", false },
    { "forced_decoder_ids", "null", false },
    { "sequence_bias", "null", false },
    { "guidance_scale", "1", false },
    { "constraints", "null", false },
    { "force_words_ids", "null", false },
    { "penalty_alpha", "0", false },
    { "stop_strings", "null", false },
    { "max_time", "null", false },
    { "watermarking_config", "null", false },
    { "token_healing", "false", false },
    { "min_p", "0", true },
    { "top_h", "1", true },
    { "typical_p", "1", true },
    { "epsilon_cutoff", "0", true },
    { "eta_cutoff", "0", true },
};

/* Settings about running the search and returning results. */
static const char *const ignored[] = {
    "_from_model_config",
    "transformers_version",
    "use_cache",
    "cache_implementation",
    "cache_config",
    "max_cache_len",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "return_dict_in_generate",
    "low_memory",
    "disable_compile",
    "compile_config",
    "prefill_chunk_size",
    "is_assistant",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "assistant_early_exit",
    "assistant_lookbehind",
    "target_lookbehind",
    "_commit_hash",
    "transformers_weights",
};

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* The index of a setting in `neutral`, the table of settings that weft does not support; -1: the
 * name is not there. */
static int neutral_row(const char *name) {
    for (int i = 0; i < COUNT_OF(neutral); i++)
        if (strcmp(neutral[i].name, name) == 0) return i;
    return -1;
}

bool wf_hf_is_search_key(const char *name) {
    return HF_LISTED(used, name) || neutral_row(name) >= 0 || HF_LISTED(ignored, name);
}

/* ---- one value ------------------------------------------------------------------------------- */

/* Reads a whole number. If the key is missing, *out does not change. */
static bool whole(const hf_object *o, const char *key, int64_t low, int64_t high, int64_t *out,
                  char *message) {
    const hf_value *v = wf_hf_find(o, key);
    char want[64];
    if (!v || (wf_hf_int(v, out) && *out >= low && *out <= high)) return true;
    snprintf(want, sizeof want, "between %lld and %lld", (long long)low, (long long)high);
    return wf_hf_wrong(o, v, want, message);
}

/* Reads the value of a key as an id, or as a list of one id. *out becomes -1 if the key is
 * missing. */
static bool one_id(const hf_object *o, const char *key, int64_t *out, char *message) {
    const hf_value *v = wf_hf_find(o, key);
    *out = -1;
    return !v || wf_hf_id(v, out) ||
           wf_hf_wrong(o, v, *v->text == '[' ? "one token's id" : "a token's id", message);
}

/* ---- parts of a search ----------------------------------------------------------------------- */

static bool is_neutral(const hf_value *v, const char *value) {
    double is, neutral_value;
    if (wf_hf_real(v, &is) && wf_parse_real(value, &neutral_value)) return is == neutral_value;
    return v->bytes == strlen(value) && memcmp(v->text, value, v->bytes) == 0;
}

/* Appends a pair to "name=value; name=value", where values are JSON without spaces outside of
 * strings. A pair that has no room is left out. */
static void keep(char *not_done, const char *name, const hf_value *v) {
    char value[WF_GENERATION_TEXT];
    size_t before = strlen(not_done), n = wf_hf_compact(v, value, sizeof value);
    if (n >= sizeof value || before + strlen(name) + n + 4 > WF_GENERATION_TEXT) return;
    snprintf(not_done + before, WF_GENERATION_TEXT - before, "%s%s=%s", before ? "; " : "", name,
             value);
}

static void tell_not_done(const hf_object *o, const hf_value *v, wf_generation *g, char *notes) {
    char text[HF_SHOWN];
    wf_hf_note(notes, "%s: '%s' is %s, which weft's search does not do", o->file, v->key,
               wf_hf_show(v, text));
    keep(g->not_done, v->key, v);
}

static void tell_what_changes(const hf_object *o, bool samples, wf_generation *g, char *notes) {
    for (int i = 0; i < o->n; i++) {
        const hf_value *v = &o->values[i];
        int row = neutral_row(v->key);
        if (row < 0 || wf_hf_is_null(v) || is_neutral(v, neutral[row].neutral)) continue;
        if (!neutral[row].of_samples || samples) tell_not_done(o, v, g, notes);
    }
}

static bool check_known(const hf_object *o, char *message) {
    for (int i = 0; i < o->n; i++)
        if (!wf_hf_is_search_key(o->values[i].key))
            return fail(message, "%s: '%.60s' is not known: if it changes no search, take it out",
                        o->file, o->values[i].key);
    return true;
}

/* Checks that an id in generation_config.json is that of config.json, if both have it. *of_config
 * becomes the id, if only generation_config.json has it. */
static bool agreed_id(const hf_object *o, const char *key, int64_t *of_config, char *message) {
    int64_t id;
    if (!one_id(o, key, &id, message)) return false;
    if (id >= 0 && *of_config >= 0 && id != *of_config)
        return fail(message, "%s: '%s' is %lld, but %lld in config.json", o->file, key,
                    (long long)id, (long long)*of_config);
    if (id >= 0) *of_config = id;
    return true;
}

/* Reads the end token. For a language model generation_config.json may have a list of them. Then
 * the end token of config.json is used, which must be in the list, or if config.json has none, the
 * first of the list; and the list is reported as unsupported. */
static bool read_end(const hf_object *o, hf_config *c, wf_generation *g, char *notes,
                     char *message) {
    int32_t ids[HF_MOST_ENDS];
    const hf_value *v = wf_hf_find(o, "eos_token_id");
    int n = v && *v->text == '[' ? wf_hf_ids(v, 1, ids, HF_MOST_ENDS) : 0;
    if (!c->decoder_only || n < 2) return agreed_id(o, "eos_token_id", &c->end, message);
    if (c->end < 0) c->end = ids[0];
    for (int i = 0; i < n; i++)
        if (ids[i] == c->end) {
            tell_not_done(o, v, g, notes);
            return true;
        }
    return fail(message, "%s: 'eos_token_id' has not %lld, which it is in config.json", o->file,
                (long long)c->end);
}

static int64_t target_vocab(const hf_config *c) {
    return c->c.tgt_vocab ? c->c.tgt_vocab : c->c.src_vocab;
}

static bool read_ban(const hf_object *o, const char *key, int depth, const hf_config *c,
                     wf_generation *g, char *message) {
    const hf_value *v = wf_hf_find(o, key);
    int n = v ? wf_hf_ids(v, depth, g->banned + g->n_banned, WF_MOST_BANNED - g->n_banned) : 0;
    if (n < 0)
        return wf_hf_wrong(o, v,
                           depth == 2 ? "a list of lists of one id each, 64 at most"
                                      : "a list of ids, 64 at most",
                           message);
    for (; n > 0; n--, g->n_banned++)
        if (g->banned[g->n_banned] == c->end || g->banned[g->n_banned] >= target_vocab(c))
            return fail(message, "%s: '%s' has %d, which is the end or in no vocabulary", o->file,
                        key, (int)g->banned[g->n_banned]);
    return true;
}

static bool read_stop(const hf_object *o, wf_decode_options *d, char *message) {
    const hf_value *v = wf_hf_find(o, "early_stopping");
    char text[8];
    bool early = false;
    d->stop = WF_STOP_PRESENT;
    if (!v) return true;
    if (wf_hf_string(v, text, sizeof text) && strcmp(text, "never") == 0) {
        d->stop = WF_STOP_LONGEST;
        return true;
    }
    if (!wf_hf_bool(v, &early)) return wf_hf_wrong(o, v, "true, false or \"never\"", message);
    if (early) d->stop = WF_STOP_FULL;
    return true;
}

static bool read_penalty(const hf_object *o, wf_decode_options *d, char *message) {
    const hf_value *v = wf_hf_find(o, "length_penalty");
    d->penalty = WF_PENALTY_AVERAGE;
    d->alpha = 1;
    return !v || (wf_hf_real(v, &d->alpha) && d->alpha >= 0 && d->alpha <= 10) ||
           wf_hf_wrong(o, v, "between 0 and 10", message);
}

/* Reads the length limits of a language model. Limits that include the prompt are not supported,
 * and are reported. A max_length is not reported if max_new_tokens replaces it, or if it is not
 * below the model's own limit. */
static bool read_own_lengths(const hf_object *o, const hf_config *c, wf_generation *g, char *notes,
                             char *message) {
    int64_t most = c->c.max_len, fresh = 0, least = 0;
    wf_decode_options *d = &g->options;
    if (!whole(o, "max_length", 1, LONGEST, &most, message) ||
        !whole(o, "max_new_tokens", 1, LONGEST - 1, &fresh, message) ||
        !whole(o, "min_length", 0, LONGEST, &least, message) ||
        !whole(o, "min_new_tokens", 0, LONGEST, &d->min_len, message))
        return false;
    if (!fresh && most < c->c.max_len) tell_not_done(o, wf_hf_find(o, "max_length"), g, notes);
    if (least) tell_not_done(o, wf_hf_find(o, "min_length"), g, notes);
    d->max_len_a = 0;
    /* in transformers, a forced end is one of the new tokens */
    if (fresh && d->at_limit != WF_LIMIT_NO_END) fresh--;
    d->max_len_b = wf_hf_find(o, "max_new_tokens") ? (double)fresh : NEW_OF_PROMPT;
    return true;
}

/* Reads the length limits of an encoder-decoder. transformers counts the start token and a forced
 * end token; weft counts neither. */
static bool read_lengths(const hf_object *o, const hf_config *c, wf_decode_options *d,
                         char *message) {
    int64_t fresh = 0, least = 0;
    int64_t most = 1 + DEFAULT_NEW < c->c.max_len ? 1 + DEFAULT_NEW : c->c.max_len;
    if (!whole(o, "max_length", 1, LONGEST, &most, message) ||
        !whole(o, "max_new_tokens", 1, LONGEST - 1, &fresh, message) ||
        !whole(o, "min_length", 0, LONGEST, &least, message))
        return false;
    const hf_value *least_new = wf_hf_find(o, "min_new_tokens");
    if (fresh) most = fresh + 1;
    d->max_len_a = 0;
    d->max_len_b = fmax(0, (double)(most - (d->at_limit == WF_LIMIT_FREE_END ? 2 : 1)));
    d->min_len = least > 1 ? least - 1 : 0;
    return !least_new || whole(o, "min_new_tokens", 0, LONGEST, &d->min_len, message);
}

static bool real(const hf_object *o, const char *key, double low, double high, double *out,
                 char *message) {
    const hf_value *v = wf_hf_find(o, key);
    char want[96], least[WF_REAL_TEXT], most[WF_REAL_TEXT];
    if (!v || (wf_hf_real(v, out) && *out >= low && *out <= high)) return true;
    snprintf(want, sizeof want, "between %s and %s", wf_format_real(low, 6, least),
             wf_format_real(high, 6, most));
    return wf_hf_wrong(o, v, want, message);
}

/* Reads exponential_decay_length_penalty, which is an array [start, factor]. */
static bool read_decay(const hf_object *o, wf_decode_options *d, char *message) {
    const hf_value *v = wf_hf_find(o, "exponential_decay_length_penalty");
    double pair[2];
    if (!v) return true;
    bool ok = wf_hf_reals(v, pair, 2) && pair[0] >= 0 && pair[0] <= LONGEST &&
              pair[0] == floor(pair[0]) && pair[1] >= 1e-3 && pair[1] <= 1e3;
    if (!ok) return wf_hf_wrong(o, v, "a length and a factor between 0.001 and 1000", message);
    d->decay_start = (int64_t)pair[0];
    d->decay = pair[1];
    return true;
}

static bool read_repetition(const hf_object *o, wf_decode_options *d, char *message) {
    int64_t ngram = 0;
    bool ok = whole(o, "no_repeat_ngram_size", 0, LONGEST, &ngram, message) &&
              real(o, "repetition_penalty", 1e-3, 1e3, &d->repetition_penalty, message) &&
              read_decay(o, d, message);
    d->no_repeat_ngram = (int)ngram;
    return ok;
}

static bool read_beginning(const hf_object *o, const hf_config *c, wf_generation *g,
                           char *message) {
    const hf_value *v = wf_hf_find(o, "begin_suppress_tokens");
    g->n_begin_banned = v ? wf_hf_ids(v, 1, g->begin_banned, WF_MOST_BANNED) : 0;
    if (g->n_begin_banned < 0) return wf_hf_wrong(o, v, "a list of ids, 64 at most", message);
    for (int i = 0; i < g->n_begin_banned; i++)
        if (g->begin_banned[i] >= target_vocab(c))
            return fail(message, "%s: '%s' has %d, which is in no vocabulary", o->file, v->key,
                        (int)g->begin_banned[i]);
    return true;
}

static const char *const of_samples[] = { "top_k", "top_p", "temperature" };

/* Reports sampling within a beam as unsupported, and adds the settings of sampling to not_done, so
 * that an export writes them again. */
static void tell_sampled_beam(const hf_object *o, wf_generation *g, char *notes) {
    tell_not_done(o, wf_hf_find(o, "do_sample"), g, notes);
    for (int i = 0; i < COUNT_OF(of_samples); i++) {
        const hf_value *v = wf_hf_find(o, of_samples[i]);
        if (v) keep(g->not_done, v->key, v);
    }
}

/* Reads whether to sample, and the settings of sampling. weft does not sample within a beam search.
 * If the file has no top_k, transformers uses the 50 likeliest tokens. */
static bool read_sample(const hf_object *o, bool *samples, wf_generation *g, char *notes,
                        char *message) {
    enum { LIKELIEST = 50 };
    wf_decode_options *d = &g->options;
    int64_t top_k = LIKELIEST;
    if (!wf_hf_flag(o, "do_sample", &d->sample, message)) return false;
    *samples = d->sample;
    if (d->sample && d->beam > 1) {
        d->sample = false;
        tell_sampled_beam(o, g, notes);
    }
    if (!d->sample) return true;
    bool ok = whole(o, "top_k", 0, INT32_MAX, &top_k, message) &&
              real(o, "top_p", 1e-9, 1, &d->top_p, message) &&
              real(o, "temperature", 1e-3, 1e3, &d->temperature, message);
    d->top_k = (int)top_k;
    return ok;
}

static bool read_forced(const hf_object *o, const hf_config *c, wf_generation *g, char *message) {
    int64_t first, end;
    bool older = false;
    if (!one_id(o, "forced_bos_token_id", &first, message) ||
        !one_id(o, "forced_eos_token_id", &end, message) ||
        !wf_hf_flag(o, "force_bos_token_to_be_generated", &older, message))
        return false;
    /* the older name of forced_bos_token_id, in config.json */
    if (first < 0 && older && !one_id(o, "bos_token_id", &first, message)) return false;
    if (end >= 0 && end != c->end)
        return fail(message, "%s: 'forced_eos_token_id' is %lld, not 'eos_token_id' %lld", o->file,
                    (long long)end, (long long)c->end);
    if (first >= target_vocab(c))
        return fail(message, "%s: 'forced_bos_token_id' is %lld, which is in no vocabulary",
                    o->file, (long long)first);
    if (first >= 0 && first == c->end)
        return fail(message, "%s: 'forced_bos_token_id' is the end, %lld", o->file,
                    (long long)first);
    g->options.at_limit = end >= 0 ? WF_LIMIT_FREE_END : WF_LIMIT_NO_END;
    if (first >= 0) g->forced[g->n_forced++] = (int32_t)first;
    return true;
}

bool wf_hf_read_search(const hf_object *o, hf_config *c, hf_search *s, char *notes, char *message) {
    wf_generation *g = &s->g;
    int64_t beam = 1;
    bool samples;
    *s = (hf_search){ .g.options = wf_decode_defaults() };
    if (strcmp(o->file, "config.json") != 0 && !check_known(o, message)) return false;
    bool ok = (c->decoder_only || agreed_id(o, "decoder_start_token_id", &c->start, message)) &&
              read_end(o, c, g, notes, message) &&
              (c->decoder_only || agreed_id(o, "pad_token_id", &c->pad, message)) &&
              whole(o, "num_beams", 1, 1024, &beam, message) &&
              wf_hf_flag(o, "renormalize_logits", &s->renormalize, message) &&
              read_ban(o, "bad_words_ids", 2, c, g, message) &&
              read_ban(o, "suppress_tokens", 1, c, g, message) &&
              read_stop(o, &g->options, message) && read_penalty(o, &g->options, message) &&
              read_forced(o, c, g, message) &&
              (c->decoder_only ? read_own_lengths(o, c, g, notes, message)
                               : read_lengths(o, c, &g->options, message)) &&
              read_repetition(o, &g->options, message) && read_beginning(o, c, g, message);
    g->options.beam = (int)beam;
    g->options.renormalize = s->renormalize;
    if (!ok || !read_sample(o, &samples, g, notes, message)) return false;
    tell_what_changes(o, samples, g, notes);
    return true;
}

/* Unsupported settings of language models: several end tokens, and lengths that include the
 * prompt. */
static const char *const of_prompts[] = { "eos_token_id", "max_length", "min_length" };

/* True if a setting of a folder may be in wf_generation.not_done: weft lacks it, or lacks it for
 * language models, or it is a setting of sampling and this search does not sample (sample false).
 * Marian's word-penalty may be there, too, but no model of Marian is written as a folder. */
bool wf_hf_may_be_not_done(const char *name, bool sample) {
    bool drawn = strcmp(name, "do_sample") == 0 || HF_LISTED(of_samples, name);
    return neutral_row(name) >= 0 || (drawn && !sample) || HF_LISTED(of_prompts, name);
}
