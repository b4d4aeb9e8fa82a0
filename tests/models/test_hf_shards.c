/* tests/models/test_hf_shards.c - weights of Hugging Face in several files with an index, and
 * weights that contradict config.json. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>

#include "core/file_internal.h"
#include "hf_files.h"
#include "tests/suites.h"

TESTS(hf_shards)

SETUP(make_folder, remove_folder)

/* ---- weights in several files ---------------------------------------------------------------- */

#define INDEX "model.safetensors.index.json"
#define SHARD(i) "model-0000" #i "-of-00003.safetensors"

/* Changes of marian_shards' files. */
static const struct {
    const char *file, *from, *to, *sentence;
} broken_shards[] = {
    { SHARD(2), NULL, NULL, SHARD(2) ": " },
    { INDEX, "\"weight_map\"", "\"wait_map\"", INDEX ": 'weight_map' is missing" },
    { INDEX, "{\n    \"final_logits_bias\": \"" SHARD(1) "\"", "[], \"x\": {\"a\": 1",
      INDEX ": 'weight_map' is no object" },
    { INDEX, "{", "[", INDEX ": byte 0" },
    { INDEX, "\"final_logits_bias\": \"" SHARD(1) "\"",
      "\"final_logits_bias\": \"../" SHARD(1) "\"",
      INDEX ": 'final_logits_bias' is in \"../" SHARD(1) "\", which is no file of the folder" },
    { INDEX, SHARD(1), "..", "is in \"..\", which is no file of the folder" },
    { INDEX, SHARD(1), "", "is in \"\", which is no file of the folder" },
    { INDEX, SHARD(1), "/etc/passwd", "is in \"/etc/passwd\", which is no file" },
    { INDEX, SHARD(1), "model\\u002d00001-of-00003.safetensors", "which is no file of the folder" },
    { INDEX, "\"" SHARD(1) "\"", "1", "'final_logits_bias' is in 1, which is no file" },
    { INDEX, "\"" SHARD(1) "\"", "null", "'final_logits_bias' is in null, which is no file" },
    { INDEX, SHARD(1), SHARD(2),
      INDEX ": it does not say that 'final_logits_bias' is in " SHARD(1) },
    { INDEX, "\"final_logits_bias\": \"" SHARD(1) "\",", "",
      INDEX ": it does not say that 'final_logits_bias' is in " SHARD(1) ", which it is" },
    { INDEX, "\"final_logits_bias\"", "\"model.shared.weight\"",
      "'model.shared.weight' is there twice" },
    { INDEX, "\"final_logits_bias\"", "\"other_bias\"", "'other_bias' is not in " SHARD(1) },
    { SHARD(1), "final_logits_bias", "finale_logit_bias",
      "'final_logits_bias' is not in " SHARD(1) },
    { SHARD(3), "\"dtype\"", "\"dtipe\"", SHARD(3) ": " },
};

static const char *const shard_files[] = { "config.json", "generation_config.json",
                                           INDEX,         SHARD(1),
                                           SHARD(2),      SHARD(3) };

TEST_ROWS(a_broken_index_is_one_sentence, COUNT_OF(broken_shards)) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    for (int i = 0; i < COUNT_OF(shard_files); i++) {
        if (strcmp(shard_files[i], broken_shards[_i].file) != 0)
            copy_changed_of("marian_shards", shard_files[i], NULL, NULL);
        else if (broken_shards[_i].from)
            copy_changed_of("marian_shards", shard_files[i], broken_shards[_i].from,
                            broken_shards[_i].to);
    }
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, broken_shards[_i].sentence);
    wf_hf_free(&hf);
    ck_assert(!wf_hf_import(folder, &hf, NULL));
    wf_hf_free(&hf);
}

/* A single file is preferred to an index, and safetensors to torch's files, as in transformers. */
TEST(one_file_comes_before_several) {
    char path[512];
    for (int i = 0; i < COUNT_OF(shard_files); i++)
        copy_changed_of("marian_shards", shard_files[i], NULL, NULL);
    copy_changed_of("marian_separate", "pytorch_model.bin", NULL, NULL); /* of another model */
    wf_hf first = import(folder), other;
    place(path, folder, INDEX), unlink(path);
    ck_assert(!wf_hf_import(folder, &other, NULL));
    wf_hf_free(&other);
    copy_changed_of("marian_shards", INDEX, NULL, NULL);
    char message[WF_MESSAGE];
    wf_file *files[3];
    wf_entry entries[128];
    int n = 0;
    for (int i = 0; i < 3; i++) {
        place(path, folder, shard_files[3 + i]);
        files[i] = wf_file_open(path);
    }
    wf_file *all = wf_file_join(files, 3);
    ck_assert_msg(wf_file_ok(all), "%s", wf_file_error(all));
    for (; n < wf_file_count(all); n++) entries[n] = *wf_file_at(all, n);
    place(path, folder, "model.safetensors");
    ck_assert(wf_file_save(path, entries, n, NULL, 0, message));
    place(path, folder, SHARD(1)), unlink(path);
    wf_hf one = import(folder);
    assert_same(&first, &one);
    wf_file_free(all), wf_hf_free(&first), wf_hf_free(&one);
}

/* An index may name files of torch. Here it names one, a.bin, and there are no other weights. */
TEST(files_of_torch_may_be_several) {
    char path[512], source[512], text[1 << 13] = "{\"weight_map\": {", message[WF_MESSAGE];
    wf_hf whole = import(recorded("marian_separate", source)), hf;
    copy_changed_of("marian_separate", "config.json", NULL, NULL);
    copy_changed_of("marian_separate", "generation_config.json", NULL, NULL);
    copy_changed_of("marian_separate", "pytorch_model.bin", NULL, NULL);
    place(path, folder, "pytorch_model.bin");
    wf_file *f = wf_file_open(path);
    for (int i = 0; i < wf_file_count(f); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"%s\": \"a.bin\"",
                 i ? ", " : "", wf_file_at(f, i)->name);
    strcat(text, "}}");
    wf_file_free(f);
    place(source, folder, "a.bin");
    ck_assert_int_eq(rename(path, source), 0);
    ck_assert(write_whole(folder, "pytorch_model.bin.index.json", text, strlen(text), NULL));
    ck_assert_msg(wf_hf_import(folder, &hf, message), "%s", message);
    assert_same(&whole, &hf);
    wf_hf_free(&whole), wf_hf_free(&hf);
}

/* ---- weights that are refused ---------------------------------------------------------------- */

/* Writes marian's weights. A copy of the tensor `of`, with another first value, is added under
 * `name`; if that is the same name, it replaces the tensor. */
static void change_weights(const char *of, const char *name, float first) {
    char path[512], source[512], message[WF_MESSAGE];
    wf_entry entries[128], *e = NULL;
    place(path, recorded("marian", source), "model.safetensors");
    wf_file *f = wf_file_open(path);
    int n = wf_file_count(f);
    for (int i = 0; i < n; i++) {
        entries[i] = *wf_file_at(f, i);
        if (strcmp(entries[i].name, of) == 0) e = &entries[i];
    }
    float *data = malloc(e->bytes);
    memcpy(data, e->data, e->bytes), data[0] = first;
    if (strcmp(of, name) != 0) e = &entries[n++], *e = *wf_file_find(f, of);
    e->name = name, e->data = data;
    place(path, folder, "model.safetensors");
    ck_assert_msg(wf_file_save(path, entries, n, NULL, 0, message), "%s", message);
    free(data), wf_file_free(f);
}

TEST(weights_that_contradict_are_refused) {
    static const char shared[] = "model.shared.weight", bias[] = "model.encoder.layers.0.fc1.bias";
    char message[WF_MESSAGE];
    wf_hf hf;
    copy_changed_of("marian", "config.json", NULL, NULL);
    copy_changed_of("marian", "generation_config.json", NULL, NULL);
    change_weights(bias, bias, NAN);
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, "fc1.bias' has 1 values that are NaN or infinite");
    wf_hf_free(&hf);
    change_weights(shared, "model.decoder.embed_tokens.weight", 7);
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, "'model.shared.weight' and 'model.decoder.embed_tokens.weight' "
                             "differ: config.json says that they are one table");
    wf_hf_free(&hf);
}
