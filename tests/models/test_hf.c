/* tests/models/test_hf.c - folders of Hugging Face: small models that record_hf.py recorded compute
 * what transformers computed, and are exported and imported again; invalid folders are refused,
 * each with its message.
 *
 * 1,000 searches of larger models are compared by hf_peer.py, which needs transformers. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>

#include "hf_files.h"
#include "hf_wall.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(hf)

SETUP(make_folder, remove_folder)

/* ---- what transformers computed -------------------------------------------------------------- */

/* The first ones have tokenizers. */
static const char *const names[] = {
    "marian",      "mbart",        "m2m",  "nllb",       "bart",
    "t5",          "flan-own",     "umt5", "madlad-own", "marian_separate",
    "marian_half", "marian_shards"
};
enum { WITH_TOKENIZERS = 7 };

static void assert_scores(wf_decoder *d, const wf_file *f) {
    const wf_entry *src = entry(f, "src"), *tgt = entry(f, "tgt");
    int b = (int)src->shape[0], t = (int)tgt->shape[1];
    double *p = calloc((size_t)b * (size_t)(t + 1), sizeof *p);
    const double *want = entry(f, "log_probs")->data;
    ck_assert_msg(wf_score(d, b, (int)src->shape[1], src->data, ids_in(f, "src_length"), t,
                           tgt->data, ids_in(f, "tgt_length"), p, NULL),
                  "%s", wf_decoder_error(d));
    for (int i = 0; i < b * (t + 1); i++) ck_assert_double_eq_tol(p[i], want[i], 2e-5);
    free(p);
}

static void assert_search(wf_decoder *d, const wf_file *f, const wf_generation *g, int beam) {
    const wf_entry *src = entry(f, "src"), *found = entry(f, beam == 1 ? "beam1" : "beam4");
    int b = (int)src->shape[0], width = (int)found->shape[1];
    wf_decode_options o = wf_generation_options(g);
    wf_decoded *results = calloc((size_t)b, sizeof *results);
    o.beam = beam;
    ck_assert_msg(
        wf_decode(d, b, (int)src->shape[1], src->data, ids_in(f, "src_length"), NULL, &o, results),
        "%s", wf_decoder_error(d));
    for (int i = 0; i < b; i++) {
        const wf_hypothesis *h = &results[i].best[0];
        const int32_t *want = (const int32_t *)found->data + i * width;
        for (int k = 0; k < width && (k < h->length || want[k] >= 0); k++)
            ck_assert_msg(k < h->length && h->tokens[k] == want[k],
                          "beam %d, sentence %d: token %d is another", beam, i, k);
        ck_assert_int_le(h->length, width);
    }
    wf_decoded_free(results, b);
    free(results);
}

TEST_ROWS(scores_and_searches_are_those_of_transformers, COUNT_OF(names)) {
    char path[512], values_path[512], message[WF_MESSAGE];
    wf_hf hf = import(recorded(names[_i], path));
    place(values_path, path, "values.safetensors");
    wf_file *f = wf_file_open(values_path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    assert_scores(d, f);
    assert_search(d, f, &hf.generation, 1);
    assert_search(d, f, &hf.generation, 4);
    ck_assert_int_eq(hf.generation.options.beam, 4);
    wf_decoder_free(d), wf_file_free(f), wf_hf_free(&hf);
}

TEST_ROWS(lines_are_cut_as_transformers_cuts_them, WITH_TOKENIZERS) {
    char path[512], file[512], message[WF_MESSAGE];
    size_t bytes;
    wf_hf hf = import(recorded(names[_i], path));
    place(file, path, "lines.txt");
    char *text = read_whole(file, &bytes), *line = text;
    place(file, path, "values.safetensors");
    wf_file *f = wf_file_open(file);
    const wf_entry *e = entry(f, "lines");
    ck_assert(hf.src && hf.tgt && !*hf.notes);
    for (int i = 0; i < e->shape[0]; i++, line += strcspn(line, "\n") + 1) {
        const int32_t *want = (const int32_t *)e->data + i * e->shape[1];
        int32_t ids[64];
        int64_t n = wf_tokenizer_encode(hf.src, line, strcspn(line, "\n"), ids, 64, message);
        for (int k = 0; k < e->shape[1]; k++)
            ck_assert_msg(k < n ? ids[k] == want[k] : want[k] < 0, "line %d, id %d", i, k);
    }
    free(text), wf_file_free(f), wf_hf_free(&hf);
}

/* Ids of all kinds decode to the text of transformers, which skips special tokens. */
TEST_ROWS(ids_read_as_transformers_reads_them, WITH_TOKENIZERS - 1) {
    char path[512], file[512], text[256];
    size_t bytes;
    wf_hf hf = import(recorded(names[_i + 1], path));
    place(file, path, "texts.txt");
    char *texts = read_whole(file, &bytes), *want = texts;
    place(file, path, "values.safetensors");
    wf_file *f = wf_file_open(file);
    const wf_entry *e = entry(f, "outputs");
    for (int i = 0; i < e->shape[0]; i++, want += strcspn(want, "\n") + 1) {
        const int32_t *ids = (const int32_t *)e->data + i * e->shape[1];
        int n = 0;
        while (n < e->shape[1] && ids[n] >= 0) n++;
        ck_assert_int_lt(wf_tokenizer_decode(hf.tgt, ids, n, text, sizeof text), sizeof text);
        ck_assert_int_eq(strlen(text), strcspn(want, "\n"));
        ck_assert_msg(memcmp(text, want, strlen(text)) == 0, "row %d: '%s'", i, text);
    }
    free(texts), wf_file_free(f), wf_hf_free(&hf);
}

/* ---- out and in ------------------------------------------------------------------------------ */

TEST_ROWS(what_is_written_is_read_again, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE] = "";
    wf_hf hf = import(recorded(names[_i], path));
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* vocab.json may have an empty piece. Its id has no piece in the tokenizer, but is exported
 * again. */
TEST(an_empty_piece_comes_back) {
    static const char *const files[] = { "config.json",       "generation_config.json",
                                         "model.safetensors", "source.spm",
                                         "target.spm",        "tokenizer_config.json" };
    char message[WF_MESSAGE] = "";
    for (int i = 0; i < COUNT_OF(files); i++) copy_changed_of("marian", files[i], NULL, NULL);
    copy_changed_of("marian", "vocab.json", "\">>fra<<\"", "\"\"");
    wf_hf hf = import(folder);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* Imports and exports of each folder, with every allocation failing in turn, alone or with all
 * later ones: a file that is written nevertheless is right. The last folder has its weights in
 * several files. */
TEST_ROWS(every_failure_is_survived, 4 * (WITH_TOKENIZERS + 1)) {
    survive_failures(_i / 4 < WITH_TOKENIZERS ? names[_i / 4] : "marian_shards", _i % 4);
}

/* ---- what can't be written ------------------------------------------------------------------- */

static void assert_not_written(wf_transformer_config c, const char *sentence) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = { .model = open_model(&c, NULL, WF_F32, 1),
                 .generation.options = wf_decode_defaults() };
    ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
    assert_contains(message, sentence);
    wf_hf_free(&hf);
}

TEST(only_what_a_family_can_say_is_written) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    assert_not_written(c, "no family of marian, bart, mbart, m2m_100");
    c.positions = WF_POSITIONS_HALVES, c.norm_first = c.encoder_norm = c.decoder_norm = false;
    c.bias = false;
    assert_not_written(c, "has biases");
    c.bias = true, c.positions = WF_POSITIONS_LEARNED, c.embedding_norm = true, c.pad_id = -1;
    c.tie = WF_TIE_NONE;
    assert_not_written(c, "the padding id is -1: a bart model needs one");
    ck_assert(!wf_hf_export(NULL, folder, &whole_files, message));
    wf_hf hf = { .model = open_model(&c, NULL, WF_F64, 1),
                 .generation.options = wf_decode_defaults() };
    ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
    assert_contains(message, "only a model in f32");
    wf_hf_free(&hf);
    ck_assert(!wf_hf_import(NULL, &hf, message) && !wf_hf_import(folder, NULL, message));
    wf_hf_free(&hf);
}

/* ---- folders that are refused ---------------------------------------------------------------- */

/* A change of one of marian's files: its first `from` becomes `to`; from NULL: the file is not
 * there. */
static const struct {
    const char *file, *from, *to, *sentence;
} broken[] = {
    { "config.json", NULL, NULL, "config.json: No such file" },
    { "config.json", "{", "[", "config.json: byte 0" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 8,,", "config.json: byte" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 8, \"d_model\": 8",
      "'d_model' is there twice" },
    { "config.json", "\"d_model\": 8", "\"d_model\": \"8\"", "'d_model' is \"8\", not a count" },
    { "config.json", "\"d_model\": 8", "\"d_model\": -8", "'d_model' is -8, not a count" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 9",
      "config.json: d_model 9 is not divisible by 2 heads" },
    { "config.json", "\"d_model\": 8", "\"x_model\": 8", "'x_model' is not known" },
    { "config.json", "\"d_model\": 8,", "", "'d_model' is missing, and nothing is guessed" },
    { "config.json", "\"marian\"", "\"pegasus\"",
      "'model_type' is 'pegasus', which is none of marian" },
    { "config.json", "MarianMTModel", "MarianModel", "'architectures' is [" },
    { "config.json", "\"swish\"", "\"mish\"", "'activation_function' is \"mish\", not one of" },
    { "config.json", "\"decoder_ffn_dim\": 12", "\"decoder_ffn_dim\": 13",
      "'encoder_ffn_dim' is 12 and 'decoder_ffn_dim' 13" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 8, \"static_position_embeddings\": false",
      "'static_position_embeddings' is false, not true" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 8, \"normalize_before\": true",
      "'normalize_before' is true, not false" },
    { "config.json", "\"d_model\": 8", "\"d_model\": 8, \"num_hidden_layers\": 6",
      "'num_hidden_layers' is 6 but 'encoder_layers' is 1" },
    { "config.json", "\"eos_token_id\": 0", "\"eos_token_id\": [0, 1]", "not a token's id" },
    { "config.json", "\"encoder_layers\": 1", "\"encoder_layers\": 2",
      "model.safetensors: 'model.encoder.layers.1.self_attn.q_proj.weight' is missing" },
    { "config.json", "\"encoder_layers\": 1", "\"encoder_layers\": 0",
      "'model.encoder.layers.0.fc1.bias' is in the weights but not in a model" },
    { "config.json", "\"share_encoder_decoder_embeddings\": true",
      "\"share_encoder_decoder_embeddings\": false",
      "model.encoder.embed_tokens.weight' is missing" },
    { "config.json", "\"max_position_embeddings\": 24", "\"max_position_embeddings\": 0",
      "maximum length is 0" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_beams\": 0",
      "'num_beams' is 0, not between 1 and 1024" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_rays\": 4", "'num_rays' is not known" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_beams\": 4, \"early_stopping\": \"now\"",
      "not true, false or \"never\"" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_beams\": 4, \"length_penalty\": -1",
      "'length_penalty' is -1, not between 0 and 10" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_beams\": 4, \"suppress_tokens\": [0]",
      "'suppress_tokens' has 0, which is the end" },
    { "generation_config.json", "\"num_beams\": 4",
      "\"num_beams\": 4, \"forced_bos_token_id\": 999",
      "'forced_bos_token_id' is 999, which is in no vocabulary" },
    { "generation_config.json", "\"num_beams\": 4",
      "\"num_beams\": 4, \"max_new_tokens\": 2000000000",
      "'max_new_tokens' is 2000000000, not between 1 and 999999999" },
    { "generation_config.json", "\"num_beams\": 4", "\"num_beams\": 4, \"forced_bos_token_id\": 0",
      "'forced_bos_token_id' is the end" },
    { "generation_config.json", "\"forced_eos_token_id\": 0", "\"forced_eos_token_id\": 1",
      "'forced_eos_token_id' is 1, not 'eos_token_id' 0" },
    { "generation_config.json", "\"eos_token_id\": 0", "\"eos_token_id\": 3",
      "but 0 in config.json" },
    { "model.safetensors", NULL, NULL, "neither model.safetensors nor pytorch_model.bin" },
    { "model.safetensors", "fc1.bias", "fc9.bias", "fc1.bias' is missing" },
    { "vocab.json", NULL, NULL, "vocab.json: No such file" },
    { "vocab.json", "\"<unk>\": 1", "\"<xxx>\": 1", "the unknown piece '<unk>' is not in it" },
    { "vocab.json", "\"<unk>\": 1", "\"<unk>\": 0", "not an id of its own" },
    { "vocab.json", "\"<unk>\": 1", "\"<unk>\": 99999", "'<unk>' has '99999', not an id" },
    { "target.spm", NULL, NULL, "target.spm: No such file" },
    { "source.spm", "\x0a", "\x07", "source.spm: not a SentencePiece model" },
    { "tokenizer_config.json", "false", "0", "'separate_vocabs' is not true or false" },
    { "tokenizer_config.json", "false", "true", "target_vocab.json: No such file" },
    { "tokenizer_config.json", "\"<unk>\"", "{\"content\": \"<xxx>\", \"lstrip\": false}",
      "the unknown piece '<xxx>' is not in it" },
    { "tokenizer_config.json", "\"<unk>\"", "{\"lstrip\": false}", "tokenizer_config.json: " },
};

static void copy_changed(const char *name, const char *from, const char *to) {
    copy_changed_of("marian", name, from, to);
}

TEST_ROWS(a_broken_folder_is_one_sentence, COUNT_OF(broken)) {
    static const char *const files[] = { "config.json",          "generation_config.json",
                                         "model.safetensors",    "vocab.json",
                                         "source.spm",           "target.spm",
                                         "tokenizer_config.json" };
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    for (int i = 0; i < COUNT_OF(files); i++) {
        bool this_one = strcmp(files[i], broken[_i].file) == 0;
        if (!this_one)
            copy_changed(files[i], NULL, NULL);
        else if (broken[_i].from)
            copy_changed(files[i], broken[_i].from, broken[_i].to);
    }
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, broken[_i].sentence);
    wf_hf_free(&hf);
    ck_assert(!wf_hf_import(folder, &hf, NULL));
    wf_hf_free(&hf);
}

/* A pipe in place of a file is refused, and the import does not wait for the pipe. */
TEST(what_is_no_file_is_told) {
    char message[WF_MESSAGE], path[512];
    wf_hf hf;
    place(path, folder, "config.json");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, "config.json is not a file");
    wf_hf_free(&hf);
}

/* Imports the folder marian with further settings in generation_config.json. */
static wf_hf import_search(const char *more) {
    char settings[512];
    for (int i = 0; i < 2; i++)
        copy_changed_of("marian", i ? "model.safetensors" : "config.json", NULL, NULL);
    snprintf(settings, sizeof settings, "\"num_beams\": 4, %s", more);
    copy_changed_of("marian", "generation_config.json", "\"num_beams\": 4", settings);
    return import(folder);
}

/* Settings of a search that weft does not support are named in the notes and kept in the model's
 * file; the others are read. */
TEST(what_changes_a_search_is_told) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_search("\"num_beam_groups\": 2, \"guidance_scale\": 1.0,\n"
                             "\"stop_strings\": [\n  \"a b\",\n  \"\\\"\"\n],"
                             "\"diversity_penalty\": 0.5");
    assert_contains(hf.notes, "'num_beam_groups' is 2, which weft's search does not do");
    assert_contains(hf.notes, "'stop_strings' is [\"a b\",\"\\\"\"], which weft's search");
    ck_assert_str_eq(hf.generation.not_done, "diversity_penalty=0.5; num_beam_groups=2; "
                                             "stop_strings=[\"a b\",\"\\\"\"]");
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    ck_assert_str_eq(again.generation.not_done, hf.generation.not_done);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* A model's list of settings that weft's search does not support, and the message with which its
 * export is refused; NULL: the settings are exported, and imported again. */
static const struct {
    const char *not_done, *sentence;
} not_done[] = {
    { "stop_strings=[\"a; b=c\",\"\\\"]; \"]; penalty_alpha=0.6", NULL },
    { "sequence_bias={\"a\":[[1],2]}; min_p=0.1", NULL },
    { "num_beams=4", "generate.not-done: 'num_beams' is not a setting of this kind" },
    { "num_beam_groups", "generate.not-done: no list of settings" },
    { "num_beam_groups=2; num_beam_groups=2", "generate.not-done" },
    { "num_beam_groups=2,\"num_beams\":9", "generate.not-done: 'num_beams' is not" },
    { "num_beam_groups=", "generate.not-done" },
    { "stop_strings=\"a", "generate.not-done" },
    { "stop_strings=[1}; min_p=2", "generate.not-done" },
};

TEST_ROWS(what_is_not_done_is_written_back, COUNT_OF(not_done)) {
    char message[WF_MESSAGE] = "", path[512];
    wf_hf hf = import_search("\"do_sample\": false");
    snprintf(hf.generation.not_done, sizeof hf.generation.not_done, "%s", not_done[_i].not_done);
    bool ok = wf_hf_export(&hf, folder, &whole_files, message);
    ck_assert_msg(ok == !not_done[_i].sentence, "%s", message);
    if (!ok) assert_contains(message, not_done[_i].sentence);
    wf_hf_free(&hf);
    if (!ok) return;
    place(path, folder, "generation_config.json");
    hf = import(folder);
    if (_i == 0)
        ck_assert_str_eq(hf.generation.not_done, "penalty_alpha=0.6; "
                                                 "stop_strings=[\"a; b=c\",\"\\\"]; \"]");
    wf_hf_free(&hf);
}

/* The penalty gnmt is exported as the length_penalty that weighs outputs of about 20 tokens most
 * nearly alike. */
TEST(a_length_penalty_is_the_nearest_that_there_is) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_search("\"do_sample\": false");
    wf_decode_options *d = &hf.generation.options;
    d->penalty = WF_PENALTY_GNMT, d->alpha = 0.6, d->stop = WF_STOP_LONGEST;
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    assert_contains(hf.notes,
                    "'length_penalty' is 0.48, which weighs outputs of about 20 tokens as "
                    "the penalty 'gnmt' of 0.6");
    wf_hf again = import(folder);
    d = &again.generation.options;
    ck_assert(d->penalty == WF_PENALTY_AVERAGE && d->stop == WF_STOP_LONGEST);
    for (int n = 15; n < 26; n++) {
        double gnmt = pow((5 + n) / 25.0, 0.6), near = pow(n / 20.0, d->alpha);
        ck_assert_double_le(fabs(gnmt / near - 1), 0.01);
        if (n != 20) ck_assert_double_lt(fabs(gnmt - near), fabs(gnmt - pow(n / 20.0, 0.6)));
        if (n != 20) ck_assert_double_lt(fabs(gnmt - near), fabs(gnmt - n / 20.0));
    }
    wf_hf_free(&hf), wf_hf_free(&again);
}

TEST(a_beam_that_shrinks_goes_out_as_a_full_one) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_search("\"do_sample\": false");
    hf.generation.options.stop = WF_STOP_SHRINK;
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    assert_contains(hf.notes, "transformers has no beam that shrinks");
    wf_hf again = import(folder);
    ck_assert_int_eq(again.generation.options.stop, WF_STOP_FULL);
    wf_hf_free(&hf);
    wf_hf_free(&again);
}

/* Rules of a search that weft supports are imported, and exported again. */
TEST(rules_of_a_search_are_read_and_written) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_search("\"no_repeat_ngram_size\": 3, \"repetition_penalty\": 1.25, "
                             "\"min_length\": 9, \"min_new_tokens\": 3, "
                             "\"begin_suppress_tokens\": [0, 5], "
                             "\"exponential_decay_length_penalty\": [\n 4,\n 1.5 ]");
    const wf_generation *g = &hf.generation;
    assert_contains(hf.notes, "there is no source.spm");
    ck_assert_ptr_null(strstr(hf.notes, "does not do"));
    ck_assert_str_eq(g->not_done, "");
    ck_assert(g->options.no_repeat_ngram == 3 && g->options.repetition_penalty == 1.25);
    ck_assert(g->options.min_len == 3 && g->options.renormalize && !g->options.sample);
    ck_assert(g->options.decay_start == 4 && g->options.decay == 1.5);
    ck_assert(g->n_begin_banned == 2 && g->begin_banned[0] == 0 && g->begin_banned[1] == 5);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* Settings of sampling are imported only without num_beams. The default top_k of transformers is
 * 50. */
TEST(samples_are_read_and_written) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_search("\"do_sample\": true, \"top_p\": 0.5");
    ck_assert(!hf.generation.options.sample);
    ck_assert_str_eq(hf.generation.not_done, "do_sample=true; top_p=0.5");
    wf_hf_free(&hf);
    copy_changed_of("marian", "generation_config.json", "\"num_beams\": 4",
                    "\"do_sample\": true, \"top_p\": 0.5, \"temperature\": 0.75");
    hf = import(folder);
    const wf_decode_options *d = &hf.generation.options;
    ck_assert(d->sample && d->beam == 1 && d->top_k == 50 && d->top_p == 0.5);
    ck_assert(d->temperature == 0.75);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* An older setting, force_bos_token_to_be_generated, forces the first token to be bos_token_id, or
 * forced_bos_token_id if there is one. */
TEST(an_older_name_forces_the_first_token) {
    wf_hf hf = import_search("\"force_bos_token_to_be_generated\": true, "
                             "\"forced_bos_token_id\": 3");
    ck_assert_ptr_null(strstr(hf.notes, "does not do"));
    ck_assert(hf.generation.n_forced == 1 && hf.generation.forced[0] == 3);
    wf_hf_free(&hf);
    copy_changed_of("marian", "generation_config.json", "\"bos_token_id\": 0",
                    "\"bos_token_id\": 5, \"force_bos_token_to_be_generated\": true");
    hf = import(folder);
    ck_assert(hf.generation.n_forced == 1 && hf.generation.forced[0] == 5);
    wf_hf_free(&hf);
}
