/* tests/models/test_hf_languages.c - tokenizers of M2M100, NLLB, mBART and BART in folders of
 * Hugging Face: the languages of lines, and invalid folders that are refused, each with its
 * message. Ids and texts of lines are compared in test_hf.c. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_files.h"
#include "tests/suites.h"

TESTS(hf_languages)

SETUP(make_folder, remove_folder)

/* ---- languages ------------------------------------------------------------------------------- */

/* Imports a folder with a changed text in its settings. */
static wf_hf import_changed(const char *in, const char *settings_from, const char *settings_to) {
    static const char *const files[] = { "config.json", "generation_config.json",
                                         "model.safetensors", "sentencepiece.bpe.model" };
    for (int i = 0; i < COUNT_OF(files); i++) copy_changed_of(in, files[i], NULL, NULL);
    if (strcmp(in, "m2m") == 0) copy_changed_of(in, "vocab.json", NULL, NULL);
    if (settings_to) copy_changed_of(in, "tokenizer_config.json", settings_from, settings_to);
    return import(folder);
}

static const char *first_piece(wf_tokenizer *t) {
    int32_t ids[16] = { 0 };
    ck_assert_int_gt(wf_tokenizer_encode(t, "the", 3, ids, 16, NULL), 0);
    return wf_tokenizer_piece(t, ids[0]);
}

TEST(a_language_is_the_folders_or_the_usual_one) {
    wf_hf hf = import_changed("m2m", NULL, NULL);
    ck_assert_str_eq(first_piece(hf.src), "__en__");
    ck_assert_str_eq(first_piece(hf.tgt), "__fr__"); /* forced */
    wf_hf_free(&hf);
    remove_folder(), make_folder();
    hf = import_changed("nllb", NULL, NULL);
    ck_assert_str_eq(first_piece(hf.src), "eng_Latn");
    wf_hf_free(&hf);
    hf = import_changed("nllb", "NllbTokenizer", "NllbTokenizerFast");
    ck_assert_str_eq(first_piece(hf.src), "deu_Latn");
    wf_hf_free(&hf);
}

/* A language that a fine-tuned model has added is imported and exported, too. */
TEST(languages_may_be_the_folders_own) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import_changed("nllb", "\"content\": \"ace_Arab\"", "\"content\": \"tlh_Latn\"");
    ck_assert_str_eq(wf_tokenizer_piece(hf.src, 35), "tlh_Latn");
    remove_folder(), make_folder();
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    ck_assert_str_eq(hf.notes, "");
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

TEST(without_merges_there_are_ids) {
    char path[512];
    static const char *const files[] = { "config.json", "model.safetensors" };
    for (int i = 0; i < 2; i++) copy_changed_of("bart", files[i], NULL, NULL);
    place(path, folder, "tokenizer.json");
    fclose(fopen(path, "w"));
    wf_hf hf = import(folder);
    assert_contains(hf.notes,
                    "there is no vocab.json and no merges.txt, and tokenizer.json is not");
    ck_assert(!hf.src && !hf.tgt);
    wf_hf_free(&hf);
}

/* In bart-large-cnn the last piece of the vocabulary is a mask token, for which the embedding has
 * no row. */
TEST(a_mask_may_have_no_row) {
    static const char *const files[] = { "config.json", "generation_config.json",
                                         "model.safetensors", "merges.txt",
                                         "tokenizer_config.json" };
    char message[WF_MESSAGE] = "";
    for (int i = 0; i < COUNT_OF(files); i++) copy_changed_of("bart", files[i], NULL, NULL);
    copy_changed_of("bart", "vocab.json", "\"<mask>\": 320",
                    "\"x1\": 320, \"x2\": 321, \"x3\": 322, \"<mask>\": 323");
    wf_hf hf = import(folder);
    ck_assert_int_eq(wf_tokenizer_size(hf.src), 323);
    ck_assert_str_eq(wf_tokenizer_piece(hf.src, 322), "x3");
    remove_folder(), make_folder();
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

TEST(without_a_model_of_pieces_there_are_ids) {
    char path[512];
    static const char *const files[] = { "config.json", "model.safetensors" };
    for (int i = 0; i < 2; i++) copy_changed_of("nllb", files[i], NULL, NULL);
    wf_hf hf = import(folder);
    assert_contains(hf.notes, "there is no sentencepiece.bpe.model, which comes with every model");
    ck_assert_ptr_null(strstr(hf.notes, "tokenizer.json"));
    wf_hf_free(&hf);
    place(path, folder, "tokenizer.json");
    fclose(fopen(path, "w"));
    hf = import(folder);
    assert_contains(hf.notes, ", and tokenizer.json is not read: the model reads and writes");
    ck_assert(!hf.src && !hf.tgt);
    wf_hf_free(&hf);
}

/* ---- folders that are refused ---------------------------------------------------------------- */

/* A change of one file of a folder: its first `from` becomes `to`; from NULL: the file is not
 * there. */
static const struct {
    const char *in, *file, *from, *to, *sentence;
} broken[] = {
    { "m2m", "sentencepiece.bpe.model", NULL, NULL, "sentencepiece.bpe.model: No such file" },
    { "m2m", "sentencepiece.bpe.model", "\x0a", "\x07",
      "sentencepiece.bpe.model: not a SentencePiece model" },
    { "m2m", "vocab.json", NULL, NULL, "vocab.json: No such file" },
    { "m2m", "vocab.json", "\"<unk>\"", "\"<xxx>\"", "the unknown piece '<unk>' is not in it" },
    { "m2m", "vocab.json", "\"<pad>\"", "\"<xxx>\"",
      "'pad_token_id' is 1, but that piece is '<xxx>', not '<pad>'" },
    { "m2m", "vocab.json", "\"<unk>\": 3", "\"<unk>\": 300", "'<unk>' has '300', not an id" },
    { "m2m", "vocab.json", "\"<unk>\": 3", "\"<unk>\": 3, \"__fr__\": 35",
      "'__fr__', is there twice" },
    { "m2m", "tokenizer_config.json", "M2M100Tokenizer", "NllbTokenizer",
      "sentencepiece.bpe.model: 35 pieces and 203 added ones are more than the vocabulary in "
      "config.json, 137" },
    { "m2m", "tokenizer_config.json", "M2M100Tokenizer", "MBartTokenizer",
      "the tokenizer 'MBartTokenizer' is none that a m2m_100 model has" },
    { "m2m", "tokenizer_config.json", "\"src_lang\"", "\"language_codes\": \"mine\", \"src_lang\"",
      "'M2M100Tokenizer' with languages mine is none" },
    { "m2m", "tokenizer_config.json", "\"src_lang\": \"de\"", "\"src_lang\": \"tlh\"",
      "'src_lang' is 'tlh', which is none of its languages" },
    { "m2m", "tokenizer_config.json", "\"src_lang\": \"de\"", "\"src_lang\": 1",
      "'src_lang' is no name" },
    { "nllb", "tokenizer_config.json", "\"src_lang\"", "\"tgt_lang\": \"fr\", \"src_lang\"",
      "'tgt_lang' is 'fr', which is none of its languages" },
    { "nllb", "tokenizer_config.json", "\"src_lang\"", "\"legacy_behaviour\": true, \"src_lang\"",
      "'legacy_behaviour' is not false" },
    { "nllb", "tokenizer_config.json", "\"35\"", "\"3400\"", "'ace_Arab' has the id '3400'" },
    { "nllb", "tokenizer_config.json", "\"35\"", "\"34\"", "the token 34 is added as 'ace_Arab'" },
    { "nllb", "tokenizer_config.json", "\"35\"", "\"x\"", "'ace_Arab' has the id 'x'" },
    { "nllb", "tokenizer_config.json", "\"special\": true", "\"special\": false",
      "'ace_Arab' is an added token that is not special" },
    { "nllb", "tokenizer_config.json", "\"content\": \"ace_Arab",
      "\"content\": "
      "\"01234567890123456789012345678901234567890123456789012345678901234567890123456789ace_Arab",
      "0123456789...' is too long for a token" },
    { "nllb", "tokenizer_config.json", "\"content\"", "\"text\"",
      "'added_tokens_decoder' has no token '35'" },
    { "bart", "merges.txt", NULL, NULL, "merges.txt: No such file" },
    { "bart", "merges.txt", "\n", "\n\n", "vocab.json, merges.txt: merges: line 2: two pieces" },
    { "bart", "vocab.json", NULL, NULL, "vocab.json: No such file" },
    { "bart", "vocab.json", "\"A\"", "\"A A\"", "no piece 'A', which is the byte 65" },
    { "bart", "vocab.json", "\"<unk>\"", "\"<xxx>\"",
      "vocab.json: '<unk>', the unk_token, is not in it" },
    { "bart", "vocab.json", "\"<s>\": 0", "\"<s>\": 5000", "'<s>' has '5000', not an id" },
    { "bart", "tokenizer_config.json", "{", "{\"eos_token\": \"<pad>\",",
      "config.json: 'eos_token_id' is 2, but the eos_token is 1 in vocab.json" },
    { "bart", "tokenizer_config.json", "{", "{\"pad_token\": {\"content\": \"<s>\"},",
      "config.json: 'pad_token_id' is 1, but the pad_token is 0 in vocab.json" },
    { "bart", "tokenizer_config.json", "{", "{\"mask_token\": 7,", "'mask_token' is no token" },
    { "bart", "tokenizer_config.json", "{", "{\"add_prefix_space\": 1,",
      "'add_prefix_space' is not true or false" },
    { "mbart", "tokenizer_config.json", "MBartTokenizer", "MBart50Tokenizer",
      "35 pieces and 53 added ones are more than the vocabulary in config.json, 63" },
    { "mbart", "tokenizer_config.json", "\"tokenizer_class\"", "\"class\"",
      "there is no 'tokenizer_class', and the vocabulary of 63 in config.json" },
};

TEST_ROWS(a_broken_folder_is_one_sentence, COUNT_OF(broken)) {
    static const char *const files[] = { "config.json",
                                         "generation_config.json",
                                         "model.safetensors",
                                         "pytorch_model.bin",
                                         "vocab.json",
                                         "merges.txt",
                                         "sentencepiece.bpe.model",
                                         "tokenizer_config.json" };
    char message[512] = "", from[512];
    wf_hf hf;
    for (int i = 0; i < COUNT_OF(files); i++) {
        struct stat s;
        place(from, recorded(broken[_i].in, message), files[i]);
        bool this_one = strcmp(files[i], broken[_i].file) == 0;
        if (!this_one && stat(from, &s) == 0)
            copy_changed_of(broken[_i].in, files[i], NULL, NULL);
        else if (this_one && broken[_i].from)
            copy_changed_of(broken[_i].in, files[i], broken[_i].from, broken[_i].to);
    }
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, broken[_i].sentence);
    wf_hf_free(&hf);
    ck_assert(!wf_hf_import(folder, &hf, NULL));
    wf_hf_free(&hf);
}
