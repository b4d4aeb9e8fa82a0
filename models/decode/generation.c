/* models/decode/generation.c - the decoding settings in a model's file; see generation.h. */
#include "models/generation.h"
#include "models/generation_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "models/choices.h"
#include "models/file/model_file.h"
#include "models/message.h"

#define BANNED "generate.banned"
#define FORCED "generate.forced"
#define BEGIN_BANNED "generate.begin-banned"
#define NOT_DONE "generate.not-done"

#define CONFIG_OF wf_decode_options
/* clang-format off */
enum { BEAM, TYPE, ALPHA, STOP, MAX_LEN_A, MAX_LEN_B, AT_LIMIT, MIN_LEN, NO_REPEAT, REPETITION,
       DECAY_START, DECAY, RENORMALIZE, SAMPLE, TOP_K, TOP_P, TEMPERATURE, FIELDS };
static const wf_config_field fields[FIELDS] = {
    WF_FIELD_AS("generate.beam", beam)
    WF_FIELD_NAMED_AS("generate.length-penalty-type", wf_length_penalty, penalty, WF_PENALTY_NAMES)
    WF_FIELD_AS("generate.length-penalty", alpha)
    WF_FIELD_NAMED_AS("generate.stop", wf_stop, stop, WF_STOP_NAMES)
    WF_FIELD_AS("generate.max-len-a", max_len_a)
    WF_FIELD_AS("generate.max-len-b", max_len_b)
    WF_FIELD_NAMED_AS("generate.at-limit", wf_limit_rule, at_limit, WF_LIMIT_NAMES)
    WF_FIELD_AS("generate.min-len", min_len)
    WF_FIELD_AS_SINCE("generate.no-repeat-ngram", no_repeat_ngram, "0")
    WF_FIELD_AS_SINCE("generate.repetition-penalty", repetition_penalty, "1")
    WF_FIELD_AS_SINCE("generate.decay-start", decay_start, "0")
    WF_FIELD_AS_SINCE("generate.decay", decay, "1")
    WF_FIELD_AS_SINCE("generate.renormalize", renormalize, "0")
    WF_FIELD_AS_SINCE("generate.sample", sample, "0")
    WF_FIELD_AS_SINCE("generate.top-k", top_k, "0")
    WF_FIELD_AS_SINCE("generate.top-p", top_p, "1")
    WF_FIELD_AS_SINCE("generate.temperature", temperature, "1")
};
/* clang-format on */
_Static_assert(FIELDS + 4 <= WF_GENERATION_META, "a pair for each field, and for what is longer");
_Static_assert((int)WF_GENERATION_TEXT >= (int)WF_CONFIG_TEXT &&
                   WF_GENERATION_TEXT >= 12 * WF_MOST_BANNED,
               "room for a number, and for every id of a list");

/* The settings that are lists of ids. Some may contain the end token. */
static const struct id_list {
    const char *key;
    size_t ids, n; /* offsets of the ids and of their number in a wf_generation */
    int most;
    /* end_allowed: may contain the end token; always: written even if it is empty */
    bool end_allowed, always;
} lists[] = {
    { BANNED, offsetof(wf_generation, banned), offsetof(wf_generation, n_banned), WF_MOST_BANNED,
      false, true },
    { FORCED, offsetof(wf_generation, forced), offsetof(wf_generation, n_forced), WF_MOST_FORCED,
      false, true },
    { BEGIN_BANNED, offsetof(wf_generation, begin_banned), offsetof(wf_generation, n_begin_banned),
      WF_MOST_BANNED, true, false },
};
enum { LISTS = sizeof lists / sizeof *lists };

static int32_t *ids_of(const wf_generation *g, const struct id_list *l) {
    return (int32_t *)((uintptr_t)g + l->ids);
}
static int *count_of(const wf_generation *g, const struct id_list *l) {
    return (int *)((uintptr_t)g + l->n);
}

wf_decode_options wf_generation_options(const wf_generation *g) {
    if (!g) return wf_decode_defaults();
    wf_decode_options o = g->options;
    o.banned = g->banned;
    o.n_banned = g->n_banned;
    o.forced = g->forced;
    o.n_forced = g->n_forced;
    o.begin_banned = g->begin_banned;
    o.n_begin_banned = g->n_begin_banned;
    return o;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *list_text(const int32_t *ids, int n, char text[WF_GENERATION_TEXT]) {
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, WF_GENERATION_TEXT - used, "%s%d", i ? " " : "",
                                 (int)ids[i]);
    return text;
}

int wf_generation_to_meta(const wf_generation *g, wf_generation_text *text,
                          wf_meta pairs[WF_GENERATION_META]) {
    int n = 0;
    if (!g || !text || !pairs) return 0;
    for (int i = 0; i < FIELDS; i++) {
        const char *value = wf_field_text(&fields[i], &g->options, text->of[n]);
        const char *before = fields[i].before; /* what files without the field mean */
        if (!before || strcmp(before, value) != 0) pairs[n++] = (wf_meta){ fields[i].key, value };
    }
    for (const struct id_list *l = lists; l < lists + LISTS; l++) {
        int count = *count_of(g, l);
        if (count == 0 && !l->always) continue;
        pairs[n] = (wf_meta){ l->key, list_text(ids_of(g, l), count, text->of[n]) };
        n++;
    }
    if (*g->not_done) pairs[n++] = (wf_meta){ NOT_DONE, g->not_done };
    return n;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool wf_generation_in_file(const wf_file *f) {
    for (int i = 0; i < FIELDS; i++)
        if (wf_file_meta(f, fields[i].key)) return true;
    for (int i = 0; i < LISTS; i++)
        if (wf_file_meta(f, lists[i].key)) return true;
    return wf_file_meta(f, NOT_DONE);
}

/* Reads ids separated by spaces. */
static bool read_list(const char *key, const char *text, int32_t *ids, int most, int *n,
                      char *message) {
    const char *at = text;
    for (*n = 0; *at; (*n)++) {
        char *end = NULL;
        long long id = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (*n == most || id < 0 || id > INT32_MAX || (*end && (*end != ' ' || !end[1])))
            return fail(message, "'%s' is '%.64s', not at most %d token ids", key, text, most);
        ids[*n] = (int32_t)id;
        at = end + (*end == ' ');
    }
    return true;
}

static bool in_range(const wf_decode_options *o, char *message) {
    const struct {
        int field;
        double value, low, high;
    } ranges[] = {
        { BEAM, o->beam, 1, 1024 },
        { ALPHA, o->alpha, 0, 10 },
        { MAX_LEN_A, o->max_len_a, 0, 1e6 },
        { MAX_LEN_B, o->max_len_b, 0, 1e9 },
        { MIN_LEN, (double)o->min_len, 0, 1e9 },
        { NO_REPEAT, (double)o->no_repeat_ngram, 0, 1e9 },
        { REPETITION, o->repetition_penalty, 1e-3, 1e3 },
        { DECAY_START, (double)o->decay_start, 0, 1e9 },
        { DECAY, o->decay, 1e-3, 1e3 },
        { TOP_K, (double)o->top_k, 0, INT32_MAX },
        { TOP_P, o->top_p, 1e-9, 1 },
        { TEMPERATURE, o->temperature, 1e-3, 1e3 },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high))
            return fail(message, "'%s' is not between %g and %g", fields[ranges[i].field].key,
                        ranges[i].low, ranges[i].high);
    return true;
}

static bool in_vocabulary(const struct id_list *l, wf_generation *g, const wf_model *m,
                          char *message) {
    const int32_t *ids = ids_of(g, l);
    for (int i = 0; m && i < *count_of(g, l); i++) {
        if (ids[i] >= m->tgt_vocab)
            return fail(message, "'%s' has %d, which is not in a vocabulary of %lld", l->key,
                        (int)ids[i], (long long)m->tgt_vocab);
        if (ids[i] == m->end_id && !l->end_allowed)
            return fail(message, "'%s' has %d, which is the end", l->key, (int)ids[i]);
    }
    return true;
}

static bool read_lists(const wf_file *f, const wf_model *m, wf_generation *g, char *message) {
    for (const struct id_list *l = lists; l < lists + LISTS; l++) {
        const char *text = wf_file_meta(f, l->key);
        if (text && !read_list(l->key, text, ids_of(g, l), l->most, count_of(g, l), message))
            return false;
        if (!in_vocabulary(l, g, m, message)) return false;
    }
    return true;
}

/* Files written before version 0.2 may have the stopping rule "sure", which gave the same outputs
 * as "full". */
static bool read_settings(const wf_file *f, const wf_model *m, wf_generation *g, char *message) {
    for (int i = 0; i < FIELDS; i++) {
        const char *text = wf_file_meta(f, fields[i].key);
        if (text && i == STOP && strcmp(text, "sure") == 0) text = "full";
        if (text && !wf_field_read(&fields[i], text, &g->options, message)) return false;
    }
    const char *not_done = wf_file_meta(f, NOT_DONE);
    if (not_done) snprintf(g->not_done, sizeof g->not_done, "%s", not_done);
    return in_range(&g->options, message) && read_lists(f, m, g, message);
}

/* Settings are read into a copy, so that invalid ones change nothing. */
bool wf_generation_from_meta(const wf_file *f, const wf_model *m, wf_generation *g, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f));
    if (!g) return fail(message, "there is no room for the settings");
    wf_generation read = *g;
    if (!read_settings(f, m, &read, message)) return false;
    *g = read;
    return true;
}
