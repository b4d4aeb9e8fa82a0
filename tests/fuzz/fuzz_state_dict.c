/* tests/fuzz/fuzz_state_dict.c - any bytes as a state_dict of PyTorch's: refused with a sentence,
 * or a model that decodes, and that is the same when it was saved as a state_dict and read again.
 * Built with the mutator. */
#include "core/file_internal.h"
#include "judge_model.h"
#include "mutator.h"

static wf_model *import(const wf_file *f, char *message) {
    wf_transformer_config given = wf_transformer_defaults();
    given.num_heads = 1, given.max_len = 32;
    return wf_transformer_from_state_dict(f, &given, WF_F32, message);
}

/* Saves the model as a state_dict in f32 and reads it: it must be the same model. That model is
 * saved in bf16, which must be readable, too. */
static void judge_saved(const wf_model *m) {
    char message[256] = "";
    const char *path = fuzz_path();
    wf_model *again[2];
    for (int bf16 = 0; bf16 < 2; bf16++) {
        fuzz_must(wf_transformer_save_state_dict(bf16 ? again[0] : m, path, bf16, message));
        wf_file *f = wf_file_open(path);
        fuzz_must(wf_file_ok(f));
        again[bf16] = import(f, message);
        fuzz_must(again[bf16]);
        wf_file_free(f);
    }
    judge_same(m, again[0]);
    wf_model_free(again[0]), wf_model_free(again[1]);
    remove(path);
}

judged judge_state_dict(const uint8_t *data, size_t size) {
    char message[256] = "";
    wf_file *f = wf_file_parse(data, size);
    wf_model *m = import(f, message);
    if (!m) judge_refusal(message);
    return judge_loaded(f, m, judge_saved);
}

FUZZ_TARGET(state_dict) {
    judge_state_dict(data, size);
    return 0;
}

FUZZ_MUTATOR
