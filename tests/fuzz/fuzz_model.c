/* tests/fuzz/fuzz_model.c - any bytes as a model's file: refused with a message, or a model that
 * decodes, and that is the same, with its moments, after it was saved and loaded again. Its
 * vocabularies are refused with a message, or can be written as metadata. It is built with
 * mutator.h, so most inputs of the fuzzer have a valid checksum. */
#include "core/file_internal.h"
#include "judge_model.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "mutator.h"

static bool has(const wf_file *f, const char *tail) {
    for (int i = 0; i < wf_file_count(f); i++) {
        const char *name = wf_file_at(f, i)->name;
        size_t n = strlen(name), k = strlen(tail);
        if (strncmp(name, "optimizer.", 10) == 0 && n > k && strcmp(name + n - k, tail) == 0)
            return true;
    }
    return false;
}

/* Makes a trainer as `train --resume` would, with the moments and averages that the file has.
 * Returns NULL if it has none, or with a message if they do not fit. */
static wf_trainer *resumed(const wf_file *f, const wf_model *m, char *message) {
    bool moments = has(f, ".m"), averages = has(f, ".average");
    wf_trainer_options o = {
        .optimizer = { .kind = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9, .clip_norm = 1 },
        .schedule = { .peak = 1e-3 }
    };
    o.optimizer.average_decay = averages ? 0.9 : 0;
    if (!moments && !averages) return NULL;
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    if (wf_trainer_ok(t) && wf_trainer_resume(t, f, 1)) return t;
    snprintf(message, 256, "%s", wf_trainer_error(t));
    wf_trainer_free(t);
    return NULL;
}

/* Loads the model, and makes its trainer *t (NULL: the file has no moments). */
static wf_model *load(const wf_file *f, wf_trainer **t, char *message) {
    wf_model *m = wf_model_load(f, NULL, WF_F32, 1, message);
    *t = NULL;
    if (!m) return NULL;
    *message = '\0';
    *t = resumed(f, m, message);
    if (!*message) return m;
    wf_model_free(m);
    return NULL;
}

static void judge_tokenizer(const wf_file *f, const char *prefix) {
    char message[256] = "";
    wf_meta pairs[WF_TOKENIZER_META];
    wf_tokenizer *t = wf_tokenizer_from_meta(f, prefix, message);
    if (!t) {
        fuzz_must_say(message);
        return;
    }
    bool own = wf_tokenizer_kind(t) != WF_SENTENCEPIECE; /* ids */
    fuzz_must(wf_tokenizer_in_file(f, prefix));
    fuzz_must(wf_tokenizer_size(t) >= (own ? WF_SPECIAL_IDS : 1));
    int n = 0;
    fuzz_must(wf_tokenizer_to_meta(t, prefix, pairs, &n, NULL) && n >= 2);
    wf_tokenizer_free(t);
}

static wf_file *saved(const wf_model *m, wf_trainer *t) {
    char message[256] = "";
    fuzz_must(wf_model_save(m, fuzz_path(), t, NULL, 0, message));
    wf_file *f = wf_file_open(fuzz_path());
    remove(fuzz_path());
    fuzz_must(wf_file_checked(f));
    return f;
}

/* The trainer of the model that is judged; NULL: its file has no moments. */
static wf_trainer *trains;

/* Saves the model and loads it again. The checksum must be the same: it covers the configuration,
 * the weights and the moments. */
static void judge_saved(const wf_model *m) {
    static const char sum[] = "weft.checksum";
    char message[256] = "";
    wf_file *f = saved(m, trains);
    wf_trainer *t;
    wf_model *again = load(f, &t, message);
    fuzz_must(again && !t == !trains);
    judge_same(m, again);
    if (t) judge_same_state(wf_trainer_optimizer(trains), wf_trainer_optimizer(t));
    wf_file *g = saved(again, t);
    fuzz_must(strcmp(wf_file_meta(f, sum), wf_file_meta(g, sum)) == 0);
    wf_trainer_free(t), wf_trainer_free(trains), wf_model_free(again);
    trains = NULL;
    wf_file_free(f), wf_file_free(g);
}

judged judge_model(const uint8_t *data, size_t size) {
    static const char *const prefixes[] = { "tokenizer", "src_tokenizer", "tgt_tokenizer" };
    char message[256] = "";
    char text[256];
    wf_file *f = wf_file_parse(data, size);
    bool file = wf_file_ok(f);
    if (!file) judge_refusal(wf_file_error(f));
    for (int i = 0; file && i < 3; i++) judge_tokenizer(f, prefixes[i]);
    bool ok = wf_model_describe(f, text, message);
    if (!ok) judge_refusal(message);
    wf_model *m = ok ? load(f, &trains, message) : NULL;
    if (ok && !m) judge_refusal(message);
    return judge_loaded(f, m, judge_saved);
}

FUZZ_TARGET(model) {
    judge_model(data, size);
    return 0;
}

FUZZ_MUTATOR
