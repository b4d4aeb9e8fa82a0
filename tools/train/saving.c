/* tools/train/saving.c - writes the files of a training, with its identity. See saving.h. */
#include "saving.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/random.h"
#include "models/model_internal.h"
#include "ranks/ranks.h"
#include "tools/alignment/links.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"

/* ---- the files that will be written ---------------------------------------------------------- */

/* The name of the file with the best weights: "m.safetensors" -> "m.best.safetensors". */
static void name_best(const char *model, char *best, size_t size) {
    const char *dot = strrchr(model, '.'), *slash = strrchr(model, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - model) : strlen(model);
    if (strlen(model) + 6 < size)
        snprintf(best, size, "%.*s.best%s", (int)stem, model, model + stem);
}

static bool is_there(const char *path) {
    struct stat s;
    return path && stat(path, &s) == 0 && s.st_size > 0;
}

/* The training that wrote the model file, the best weights, the page or the log may have taken
 * hours, so only --overwrite replaces them. */
void saving_check(session *s) {
    const settings *set = s->set;
    const run_settings *run = &set->run;
    char *best = s->kept.best_path;
    if (run->model && set->data.kind->text && settings_validates(set))
        name_best(run->model, best, sizeof s->kept.best_path);
    if (!s->leads) return;
    used_file beside = { "the best weights beside --model", best, -1, USE_NEW_MODEL };
    check_uses(&train_program, &beside, *best ? 1 : 0);
    if (run->resume || run->overwrite || run->dry_run) return;
    if (is_there(run->model))
        usage_error(&train_program,
                    "%.150s is there already: --resume goes on with a training, --overwrite "
                    "replaces it",
                    run->model);
    if (is_there(best))
        usage_error(&train_program,
                    "%.150s is there already, best weights without their training: --init takes "
                    "them into a training of another name, --overwrite replaces them",
                    best);
    if (is_there(run->page) || is_there(run->log))
        usage_error(&train_program,
                    "%.150s is there already, from a training: give another name, or "
                    "--overwrite",
                    is_there(run->page) ? run->page : run->log);
}

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

/* True if the text is the identity of a training: 16 hexadecimal digits. Older files have none, and
 * a damaged file may have any text there. */
static bool is_identity(const char *text) {
    return text && strlen(text) == IDENTITY_TEXT - 1 &&
           strspn(text, "0123456789abcdef") == IDENTITY_TEXT - 1;
}

/* The identity stored in a file. If it has none, it is computed from the metadata, whose order does
 * not matter. Pairs of other programs are ignored. */
static const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]) {
    const char *stored = wf_file_meta(f, IDENTITY_KEY);
    uint64_t sum = 0;
    if (is_identity(stored)) return strcpy(text, stored);
    for (int i = 0; i < wf_file_meta_count(f); i++) sum += part(wf_file_meta_at(f, i));
    snprintf(text, IDENTITY_TEXT, "%016" PRIx64, sum);
    return text;
}

/* True if both files can be read and belong to the same training. */
static bool identity_same(const wf_file *a, const wf_file *b) {
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

/* Keeps the metadata of the model's file that neither weft nor train writes itself, such as search
 * settings. False: out of memory. */
static bool carry(carried *c, const wf_file *f, const wf_model *m) {
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

static void add(wf_meta *pairs, int *n, const wf_meta *more, int n_more) {
    if (n_more) memcpy(pairs + *n, more, (size_t)n_more * sizeof *pairs);
    *n += n_more;
}

/* All metadata of the file, with room for one more pair; the caller frees the array. Its texts are
 * in `meta` and in s. NULL: out of memory. */
static wf_meta *metadata_new(session *s, settings_meta *meta, int *n) {
    const dataset *m = &s->dataset;
    settings_to_meta(s->set, &s->at, m, meta);
    size_t most = (size_t)meta->n + 2 * WF_TOKENIZER_META + (size_t)s->kept.carried.n + 6;
    wf_meta *pairs = calloc(most, sizeof *pairs);
    if (!pairs) return NULL;
    *n = 0;
    add(pairs, n, meta->pairs, meta->n);
    static const char *const prefixes[] = { "src_tokenizer", "tgt_tokenizer" };
    bool shared = m->tokenizer[0] == m->tokenizer[1];
    int sides = shared ? 1 : 2;
    for (int side = 0; dataset_is_text(m) && side < sides; side++) {
        const char *prefix = shared ? "tokenizer" : prefixes[side];
        if (wf_tokenizer_to_meta(m->tokenizer[side], prefix, pairs, n, NULL)) continue;
        free(pairs);
        return NULL;
    }
    if (!*s->kept.run) {
        uint64_t sum = 0;
        for (int i = 0; i < *n; i++) sum += part(pairs[i]);
        snprintf(s->kept.run, IDENTITY_TEXT, "%016" PRIx64, sum);
    }
    pairs[(*n)++] = (wf_meta){ IDENTITY_KEY, s->kept.run };
    add(pairs, n, s->kept.carried.pairs, s->kept.carried.n);
    if (m->classes.text) pairs[(*n)++] = (wf_meta){ WF_CLASS_NAMES, m->classes.text };
    if (s->model->alignment) pairs[(*n)++] = (wf_meta){ ALIGNMENT_HEAD, "0" };
    if (s->set->model.lora) {
        pairs[(*n)++] = (wf_meta){ WF_ADAPTER_BASE, s->set->model.init_hash };
        pairs[(*n)++] = (wf_meta){ WF_ADAPTER_BASE_FILE, s->set->model.init };
    }
    assert((size_t)*n < most);
    return pairs;
}

const char *saving_identity(session *s) {
    settings_meta meta;
    int n;
    if (*s->kept.run) return s->kept.run;
    wf_meta *pairs = metadata_new(s, &meta, &n);
    free(pairs);
    return pairs ? s->kept.run : NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void saving_open(session *s) {
    const wf_file *f = s->from, *file = f ? f : s->init;
    const run_settings *run = &s->set->run;
    kept *k = &s->kept;
    k->step = -1;
    k->best = INFINITY;
    if (file && !carry(&k->carried, file, s->model)) fail(&train_program, "out of memory");
    if (f) {
        s->at = settings_state(s->set, f);
        k->step = s->at.step;
        identity_in(f, k->run);
    }
    if (s->at.step >= run->max_steps)
        usage_error(&train_program,
                    "%s has done %lld steps already: more --epochs or --max-steps go on",
                    run->model, (long long)s->at.step);
    if (f && *k->best_path) {
        wf_file *best = wf_file_open(k->best_path);
        bool own = identity_same(f, best);
        if (own) k->best = settings_state(s->set, best).best;
        wf_file_free(best);
        if (!own && is_there(k->best_path) && !run->dry_run)
            fail(&train_program,
                 "%.150s is not of this training, which would replace it: move it to another place",
                 k->best_path);
    }
}

void saving_close(kept *k) {
    for (int i = 0; i < k->carried.n; i++)
        free((void *)(uintptr_t)k->carried.pairs[i].key),
            free((void *)(uintptr_t)k->carried.pairs[i].value);
    free(k->carried.pairs);
    k->carried = (carried){ 0 };
}

/* ---- files ----------------------------------------------------------------------------------- */

bool write_model(session *s, const char *path, bool checkpoint) {
    char message[WF_MESSAGE], target[PATH_SIZE];
    settings_meta meta;
    int n = 0;
    wf_meta *pairs = metadata_new(s, &meta, &n);
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
    if (!s->set->run.model || s->kept.step == s->at.step) return true;
    if (!write_model(s, s->set->run.model, true)) return false;
    s->kept.step = s->at.step;
    json_int(event(&s->report, "save"), "step", s->at.step);
    event_send(&s->report);
    return true;
}
