/* lora.c - loads a translator from its file, and lets it learn a dialect by training low-rank
 * adapters alone (Hu et al. 2021). The adapters are saved to a file of their own.
 *
 * Shows the hook that a graph calls for every weight that a model declares. The tensor that the
 * hook returns is used instead, here W + B A. The model's code does not change, nor do its
 * weights. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#include "sentences.h"

#define ADAPTERS "*lora_*"
enum { RANK = 4, TESTS = 200, DIALECT = 3 };

/* Returns W [out, in] + B [out, RANK] A [RANK, in], or W itself if it is an embedding or no matrix.
 * B is zero at first, so that nothing changes. */
static wf_tensor *adapt(void *user, wf_tensor *w) {
    (void)user;
    if (w->ndim != 2 || strstr(w->name, "embedding")) return w;
    const int64_t down[] = { RANK, w->shape[1] }, up[] = { w->shape[0], RANK };
    wf_tensor *a = wf_param(w->graph, "lora_A", 2, down, wf_init_normal(0.2));
    wf_tensor *b = wf_param(w->graph, "lora_B", 2, up, wf_init_zeros());
    return wf_add(w, wf_matmul(b, a));
}

static bool is_adapter(void *user, const wf_tensor *param) {
    (void)user;
    return wf_name_fits(ADAPTERS, param->name);
}

/* How many of the test sentences are translated correctly into this dialect; 0: into the language
 * of the base model. */
static int right_answers(wf_model *m, int dialect) {
    wf_decoder *d = wf_decoder_new(m, NULL, NULL);
    int right = 0;
    for (int i = 0; i < TESTS; i++) {
        int32_t words[LENGTH], answer[LENGTH] = { 0 }, n;
        const int32_t length = LENGTH;
        make_sentence(words, (uint64_t)i);
        right += wf_decode_greedy(d, 1, LENGTH, words, &length, LENGTH, answer, &n) &&
                 is_right(words, answer, dialect);
    }
    wf_decoder_free(d);
    return right;
}

/* Makes the file of a translator, which could come from elsewhere: trains one and saves it. */
static bool make_base(const char *path) {
    const wf_transformer_config config = small_translator();
    wf_model *m = wf_transformer_new(&config, NULL, WF_F32, 1, NULL);
    bool ok =
        train_translator(m, "*", 400, 0.003, 0) && wf_model_save(m, path, NULL, NULL, 0, NULL);
    wf_model_free(m);
    return ok;
}

int main(void) {
    const char *path = "translator.safetensors", *adapters = "dialect.safetensors";
    char message[256] = "";
    bool ok = make_base(path);
    const wf_training_config training = { .on_param = adapt };
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_model_load(f, &training, WF_F32, 1, message);
    wf_file_free(f);
    if (!m) fprintf(stderr, "%s\n", message);

    int before = right_answers(m, 0), at_first = right_answers(m, DIALECT);
    ok = ok && train_translator(m, ADAPTERS, 600, 0.01, DIALECT);
    int after = right_answers(m, DIALECT);
    const wf_leaves ours = { .parameters = true, .keep = is_adapter };
    ok = ok && wf_save(m->graph, adapters, &ours, NULL, 0, message);
    printf("as loaded: %d of %d right, %d in the dialect\n", before, TESTS, at_first);
    printf("with adapters of rank %d: %d in the dialect\n", RANK, after);
    printf("%d of %d tensors were trained\n", m ? wf_parameters(m->graph, ADAPTERS, NULL, 0) : 0,
           m ? wf_parameters(m->graph, NULL, NULL, 0) : 0);
    wf_model_free(m);
    remove(path);
    remove(adapters);
    return !(ok && before >= TESTS * 9 / 10 && after >= TESTS * 9 / 10);
}
