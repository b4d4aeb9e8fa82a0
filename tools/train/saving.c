/* tools/train/saving.c - writes the files of a training, with its identity. See saving.h. */
#include "saving.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "models/model_internal.h"
#include "ranks/ranks.h"
#include "tools/alignment/links.h"
#include "tools/cli/output.h"

/* ---- identity -------------------------------------------------------------------------------- */

#define IDENTITY_KEY "weft.run" /* its key in the metadata */

/* True if this key is part of the identity. The position ("train.step") is not. */
static bool defines(const char *key) {
    if (strncmp(key, "train.", 6) != 0) return strstr(key, "tokenizer.") != NULL;
    const option *o = option_find(&train_program, key + 6);
    if (o && o->stored) return true;
    static const char *const rows[] = { "train.data", "train.init", "train.freeze", "train.held" };
    for (int i = 0; i < 4; i++)
        if (strcmp(key, rows[i]) == 0) return true;
    return false;
}

static uint64_t part(wf_meta pair) {
    uint64_t key = wf_hash_bytes(0, pair.key, strlen(pair.key));
    return defines(pair.key) ? wf_hash_bytes(key, pair.value, strlen(pair.value)) : 0;
}

static const char *write_down(uint64_t sum, char text[IDENTITY_TEXT]) {
    snprintf(text, IDENTITY_TEXT, "%016" PRIx64, sum);
    return text;
}

/* The identity computed from n pairs of metadata, whose order does not matter. Pairs of other
 * programs are ignored. */
static const char *identity_of(const wf_meta *pairs, int n, char text[IDENTITY_TEXT]) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += part(pairs[i]);
    return write_down(sum, text);
}

/* True if the text is the identity of a training: 16 hexadecimal digits. Older files have none, and
 * a damaged file may have any text there. */
static bool is_identity(const char *text) {
    return text && strlen(text) == IDENTITY_TEXT - 1 &&
           strspn(text, "0123456789abcdef") == IDENTITY_TEXT - 1;
}

const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]) {
    const char *stored = wf_file_meta(f, IDENTITY_KEY);
    uint64_t sum = 0;
    if (is_identity(stored)) return strcpy(text, stored);
    for (int i = 0; i < wf_file_meta_count(f); i++) sum += part(wf_file_meta_at(f, i));
    return write_down(sum, text);
}

bool identity_same(const wf_file *a, const wf_file *b) {
    char texts[2][IDENTITY_TEXT];
    return wf_file_ok(a) && wf_file_ok(b) &&
           strcmp(identity_in(a, texts[0]), identity_in(b, texts[1])) == 0;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* True for a key that a save of the model, its vocabularies or its training writes anew. */
static bool written_anew(const wf_model *m, const char *key) {
    static const char *const own[] = { "weft.",          "train.",         "tokenizer.",
                                       "src_tokenizer.", "tgt_tokenizer.", WF_CLASS_NAMES };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(key, own[i], strlen(own[i])) == 0) return true;
    if (m->alignment && strcmp(key, ALIGNMENT_HEAD) == 0) return true;
    for (int i = 0; i < m->n_tied; i++)
        if (strcmp(key, m->tied[i]) == 0) return true;
    return false;
}

bool metadata_carry(carried *c, const wf_file *f, const wf_model *m) {
    int all = wf_file_meta_count(f);
    c->pairs = calloc((size_t)all + 1, sizeof *c->pairs);
    for (int i = 0; c->pairs && i < all; i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        if (written_anew(m, pair.key)) continue;
        wf_meta *own = &c->pairs[c->n++];
        *own = (wf_meta){ strdup(pair.key), strdup(pair.value) };
        if (!own->key || !own->value) return false;
    }
    return c->pairs;
}

void metadata_drop(carried *c) {
    for (int i = 0; i < c->n; i++)
        free((void *)(uintptr_t)c->pairs[i].key), free((void *)(uintptr_t)c->pairs[i].value);
    free(c->pairs);
    *c = (carried){ 0 };
}

static void add(wf_meta *pairs, int *n, const wf_meta *more, int n_more) {
    if (n_more) memcpy(pairs + *n, more, (size_t)n_more * sizeof *pairs);
    *n += n_more;
}

wf_meta *metadata_new(session *s, settings_meta *kept, int *n) {
    const dataset *m = &s->dataset;
    settings_to_meta(s->set, &s->at, m, kept);
    size_t most = (size_t)kept->n + 2 * WF_TOKENIZER_META + (size_t)s->carried.n + 6;
    wf_meta *pairs = calloc(most, sizeof *pairs);
    if (!pairs) return NULL;
    *n = 0;
    add(pairs, n, kept->pairs, kept->n);
    static const char *const prefixes[] = { "src_tokenizer", "tgt_tokenizer" };
    bool shared = m->tokenizer[0] == m->tokenizer[1];
    int sides = shared ? 1 : 2;
    for (int side = 0; dataset_is_text(m) && side < sides; side++) {
        const char *prefix = shared ? "tokenizer" : prefixes[side];
        if (wf_tokenizer_to_meta(m->tokenizer[side], prefix, pairs, n, NULL)) continue;
        free(pairs);
        return NULL;
    }
    if (!*s->run) identity_of(pairs, *n, s->run);
    pairs[(*n)++] = (wf_meta){ IDENTITY_KEY, s->run };
    add(pairs, n, s->carried.pairs, s->carried.n);
    if (m->classes.text) pairs[(*n)++] = (wf_meta){ WF_CLASS_NAMES, m->classes.text };
    if (s->model->alignment) pairs[(*n)++] = (wf_meta){ ALIGNMENT_HEAD, "0" };
    if (s->set->model.lora) {
        pairs[(*n)++] = (wf_meta){ WF_ADAPTER_BASE, s->set->model.init_hash };
        pairs[(*n)++] = (wf_meta){ WF_ADAPTER_BASE_FILE, s->set->model.init };
    }
    assert((size_t)*n < most);
    return pairs;
}

/* ---- files ----------------------------------------------------------------------------------- */

bool write_model(session *s, const char *path, bool checkpoint) {
    char message[WF_MESSAGE], target[PATH_SIZE];
    settings_meta kept;
    int n = 0;
    wf_meta *pairs = metadata_new(s, &kept, &n);
    if (!pairs) fail(&train_program, "out of memory");
    if (!checkpoint) pairs[n++] = (wf_meta){ "weft.kind", "best" };
    if (s->leads && !output_target(path, target)) snprintf(target, sizeof target, "%s", path);
    bool ok = true;
    if (checkpoint || s->leads)
        ok = wf_model_save(s->model, s->leads ? target : path, checkpoint ? s->trainer : NULL,
                           pairs, n, message);
    free(pairs);
    if (s->transport && s->transport->code) ranks_leave(s);
    if (s->leads && !ok)
        warn(&train_program, "step %lld is not saved: %s", (long long)s->at.step, message);
    return checkpoint ? ok : ranks_agree(s, ok);
}

bool save(session *s) {
    if (!s->set->run.model || s->saved_step == s->at.step) return true;
    if (!write_model(s, s->set->run.model, true)) return false;
    s->saved_step = s->at.step;
    json_int(event(&s->report, "save"), "step", s->at.step);
    event_send(&s->report);
    return true;
}
