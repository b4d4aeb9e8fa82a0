/* tools/train/metadata.c - the metadata in a training's file. See metadata.h. */
#include "metadata.h"

#include "models/model_internal.h"
#include "tools/alignment/links.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* True for a key that the model's file, its vocabularies or its training write themselves. */
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
