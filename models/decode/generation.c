/* models/decode/generation.c - the settings of a search in a model's file; see generation.h. */
#include "models/generation.h"

#include <ctype.h>
#include <stdlib.h>

#include "models/choices.h"
#include "models/file/model_file.h"
#include "models/message.h"

#define BANNED "generate.banned"
#define FORCED "generate.forced"

#define CONFIG_OF wf_decode_options
/* clang-format off */
enum { BEAM, TYPE, ALPHA, STOP, MAX_LEN_A, MAX_LEN_B, AT_LIMIT, MIN_LEN, FIELDS };
static const wf_config_field fields[FIELDS] = {
    WF_FIELD_AS("generate.beam", beam)
    WF_FIELD_NAMED_AS("generate.length-penalty-type", wf_length_penalty, penalty, WF_PENALTY_NAMES)
    WF_FIELD_AS("generate.length-penalty", alpha)
    WF_FIELD_NAMED_AS("generate.stop", wf_stop, stop, WF_STOP_NAMES)
    WF_FIELD_AS("generate.max-len-a", max_len_a)
    WF_FIELD_AS("generate.max-len-b", max_len_b)
    WF_FIELD_NAMED_AS("generate.at-limit", wf_limit_rule, at_limit, WF_LIMIT_NAMES)
    WF_FIELD_AS("generate.min-len", min_len)
};
/* clang-format on */
_Static_assert(FIELDS + 2 == WF_GENERATION_META, "a pair for each field and for both lists");
_Static_assert((int)WF_GENERATION_TEXT >= (int)WF_CONFIG_TEXT &&
                   WF_GENERATION_TEXT >= 12 * WF_MOST_BANNED,
               "room for a number, and for every id of a list");

wf_decode_options wf_generation_options(const wf_generation *g) {
    wf_decode_options o = g->options;
    o.banned = g->banned, o.n_banned = g->n_banned;
    o.forced = g->forced, o.n_forced = g->n_forced;
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
    for (; n < FIELDS; n++)
        pairs[n] = (wf_meta){ fields[n].key, wf_field_text(&fields[n], &g->options, text->of[n]) };
    pairs[n] = (wf_meta){ BANNED, list_text(g->banned, g->n_banned, text->of[n]) }, n++;
    pairs[n] = (wf_meta){ FORCED, list_text(g->forced, g->n_forced, text->of[n]) }, n++;
    return n;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool wf_generation_in_file(const wf_file *f) {
    for (int i = 0; i < FIELDS; i++)
        if (wf_file_meta(f, fields[i].key)) return true;
    return wf_file_meta(f, BANNED) || wf_file_meta(f, FORCED);
}

/* Ids with a blank between them. */
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
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high))
            return fail(message, "'%s' is not between %g and %g", fields[ranges[i].field].key,
                        ranges[i].low, ranges[i].high);
    return true;
}

static bool in_vocabulary(const char *key, const int32_t *ids, int n, const wf_model *m,
                          char *message) {
    for (int i = 0; m && i < n; i++)
        if (ids[i] >= m->tgt_vocab || ids[i] == m->end_id)
            return fail(message, "'%s' has %d, which is the end or not in a vocabulary of %lld",
                        key, (int)ids[i], (long long)m->tgt_vocab);
    return true;
}

static bool read_settings(const wf_file *f, const wf_model *m, wf_generation *g, char *message) {
    for (int i = 0; i < FIELDS; i++) {
        const char *text = wf_file_meta(f, fields[i].key);
        if (text && !wf_field_read(&fields[i], text, &g->options, message)) return false;
    }
    const char *banned = wf_file_meta(f, BANNED), *forced = wf_file_meta(f, FORCED);
    if (banned && !read_list(BANNED, banned, g->banned, WF_MOST_BANNED, &g->n_banned, message))
        return false;
    if (forced && !read_list(FORCED, forced, g->forced, WF_MOST_FORCED, &g->n_forced, message))
        return false;
    return in_range(&g->options, message) &&
           in_vocabulary(BANNED, g->banned, g->n_banned, m, message) &&
           in_vocabulary(FORCED, g->forced, g->n_forced, m, message);
}

/* A file that is wrong changes nothing. */
bool wf_generation_from_meta(const wf_file *f, const wf_model *m, wf_generation *g, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f));
    if (!g) return fail(message, "there is no room for the settings");
    wf_generation read = *g;
    if (!read_settings(f, m, &read, message)) return false;
    *g = read;
    return true;
}
