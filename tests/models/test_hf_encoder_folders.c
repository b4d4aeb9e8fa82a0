/* tests/models/test_hf_encoder_folders.c - changed copies of the folders with encoders that
 * record_encoder.py recorded: invalid ones are refused, each with its message; a vocab.txt may
 * replace the tokenizer.json; notes name missing parts. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_encoder_files.h"
#include "tests/suites.h"

TESTS(hf_encoder_folders)

SETUP(make_folder, remove_folder)

/* ---- folders that are refused ---------------------------------------------------------------- */

static const changed_folder changed[] = {
    { "enc_distil", "config.json", "\"dim\": 8", "\"dim\": 9", "9 is not divisible by 2 heads" },
    { "enc_dense", "config.json", "\"hidden_size\": 8", "\"hidden_size\": 10",
      "1_Pooling/config.json: 'embedding_dimension' is 8, not 10" },
    { "enc_dense", "config.json", "\"hidden_size\": 8,", "", "'hidden_size' is missing, and" },
    { "enc_dense", "config.json", "\"hidden_size\": 8", "\"hidden_size\": 8, \"hiddn_size\": 8",
      "'hiddn_size' is not known of this family" },
    { "enc_dense", "config.json", "\"intermediate_size\": 12", "\"intermediate_size\": 13",
      "'encoder.layer.0.intermediate.dense.weight' is [12,8] in the file, not [13,8]" },
    { "enc_dense", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
      "'bert.encoder.layer.2.attention.self.query.weight' is missing" },
    { "enc_dense", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
      "'encoder.layer.1.attention.output.LayerNorm.bias' is in the weights but not in" },
    { "enc_dense", "config.json", "\"is_decoder\": false", "\"is_decoder\": true",
      "'is_decoder' is true, not false" },
    { "enc_dense", "config.json", "\"is_decoder\": false",
      "\"position_embedding_type\": \"relative_key\"",
      "'position_embedding_type' is \"relative_key\", not \"absolute\"" },
    { "enc_dense", "config.json", "\"BertModel\"", "\"BertForSequenceClassification\"",
      "'classifier.weight' is missing, as BertForSequenceClassification has it" },
    { "enc_dense", "config.json", "\"BertModel\"", "\"BertForTokenClassification\"",
      "'architectures' is [\"BertForTokenClassification\"], not BertModel, BertForMaskedLM or" },
    { "enc_mpnet", "config.json", "\"relative_attention_num_buckets\": 32",
      "\"relative_attention_num_buckets\": 40", "'relative_attention_num_buckets' is 40, not 32" },
    { "enc_mpnet", "config.json", "\"pad_token_id\": 1", "\"pad_token_id\": 0",
      "'pad_token_id' is 0, not 1, from which MPNet counts positions" },
    { "enc_mpnet", "model.safetensors", "relative_attention_bias", "relative_attention_bi_s",
      "'mpnet.encoder.relative_attention_bias.weight' is missing" },
    { "enc_classes", "config.json", "\"negative\",", "\"a \\\"b\\\"\",",
      "'id2label' has 'a \"b\"' twice" },
    { "enc_classes", "config.json", "\"0\": \"negative\",", "",
      "'id2label' has 2 labels for 3 classes" },
    { "enc_classes", "config.json", "\"0\": \"negative\"", "\"5\": \"negative\"",
      "'id2label' has no label of one line for 0" },
    { "enc_classes", "config.json", "\"dim\": 8",
      "\"dim\": 8, \"problem_type\": \"multi_label_classification\"",
      "'problem_type' is \"multi_label_classification\", not \"single_label_classification\"" },
    { "enc_classes", "model.safetensors", "pre_classifier.weight", "pre_classifier.wight_",
      "'pre_classifier.weight' is missing" },
    { "enc_dense", "config.json", "\"pad_token_id\": 0", "\"pad_token_id\": 100",
      "'pad_token_id' is not in the vocabulary of 100" },
    { "enc_dense", "config.json", "1e-12", "2", "the layer norm's eps is 2" },
    { "enc_dense", "tokenizer.json", "\"WordPiece\"", "\"WordPeace\"", "tokenizer.json: " },
    { "enc_dense", "modules.json", "base.modules.dense.Dense", "models.LSTM",
      "weft has no module 'LSTM' in '2_Dense' at this place" },
    { "enc_dense", "modules.json", "1_Pooling", "2_Pooling",
      "it does not begin with a Transformer in the folder itself and a Pooling" },
    { "enc_dense", "modules.json", "\"idx\": 0", "\"index\": 0", "'index' is not known here" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "\"median\"",
      "'pooling_mode' is \"median\", not some of cls, max, mean" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "[\"mean\", \"cls\"]",
      "'pooling_mode' is [\"mean\",\"cls\"], not some of" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "\"cls\"", NULL },
    { "enc_dense", "1_Pooling/config.json", "\"embedding_dimension\": 8",
      "\"embedding_dimension\": 9", "'embedding_dimension' is 9, not 8" },
    { "enc_dense", "1_Pooling/config.json", "\"include_prompt\": true", "\"include_prompt\": false",
      "'include_prompt' is false, not true" },
    { "enc_dense", "2_Dense/config.json", "\"in_features\": 8", "\"in_features\": 16",
      "'in_features' is 16, not 8" },
    { "enc_dense", "2_Dense/config.json", "activation.Tanh", "activation.Softplus",
      "not Identity, Tanh, ReLU, GELU or SiLU" },
    { "enc_dense", "2_Dense/config.json", "\"out_features\": 6", "\"out_features\": 7",
      "2_Dense/model.safetensors: " },
    { "enc_dense", "2_Dense/config.json", "\"bias\": true", "\"bias\": false",
      "'linear.bias' is in the weights but not in such a layer" },
    { "enc_dense", "2_Dense/config.json", "\"bias\": true", "\"use_residual\": true",
      "'use_residual' is true, not false" },
    { "enc_dense", "3_Normalize/config.json", "\"sentence_embedding\"", "\"token_embeddings\"",
      "'module_input_name' is \"token_embeddings\", not" },
    { "enc_old", "sentence_bert_config.json", "\"do_lower_case\": false", "\"do_lower_case\": true",
      "'do_lower_case' is true, not false" },
    { "enc_old", "sentence_bert_config.json", "20", "0", "'max_seq_length' is no count" },
    { "enc_old", "1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true",
      "\"pooling_mode_mean_tokens\": 1", "'pooling_mode_mean_tokens' is 1, not true or false" },
    { "enc_old", "model.safetensors", "pooler.dense.bias", "pooler.dense.bla_",
      "'bert.pooler.dense.bias' is missing" },
    { "enc_roberta", "config.json", "\"max_position_embeddings\": 24",
      "\"max_position_embeddings\": 2", "is 2, of which 2 are not used" },
    { "enc_roberta", "config.json", "\"tie_word_embeddings\": true",
      "\"tie_word_embeddings\": false", "'lm_head.decoder.weight' is missing" },
    { "enc_roberta", "config.json", "\"type_vocab_size\": 1", "\"type_vocab_size\": 2",
      "token_type_embeddings.weight" },
};

static const char *const files[] = { "config.json",
                                     "model.safetensors",
                                     "pytorch_model.bin",
                                     "tokenizer.json",
                                     "tokenizer_config.json",
                                     "modules.json",
                                     "sentence_bert_config.json",
                                     "config_sentence_transformers.json",
                                     "1_Pooling/config.json",
                                     "2_Dense/config.json",
                                     "2_Dense/model.safetensors",
                                     "3_Normalize/config.json" };

TEST_ROWS(a_changed_folder_is_refused_in_a_sentence, COUNT_OF(changed)) {
    assert_changed(&changed[_i], files, COUNT_OF(files));
}

/* ---- vocab.txt ------------------------------------------------------------------------------- */

/* Copies a recorded folder, with a vocab.txt in place of tokenizer.json: each of its tokens,
 * followed by `ending`. */
static void copy_with_vocabulary(const char *name, const char *ending) {
    char path[512], file[512];
    wf_hf hf = import(recorded(name, path));
    for (int i = 0; i < COUNT_OF(files); i++) {
        place(file, path, files[i]);
        if (access(file, F_OK) != 0 || strcmp(files[i], "tokenizer.json") == 0) continue;
        copy_changed_of(name, files[i], NULL, NULL);
    }
    place(file, folder, "vocab.txt");
    FILE *f = fopen(file, "w");
    for (int32_t id = 0; id < wf_tokenizer_size(hf.src); id++)
        fprintf(f, "%s%s", wf_tokenizer_piece(hf.src, id), ending);
    fclose(f);
    wf_hf_free(&hf);
}

#define CLASS "\"tokenizer_class\": \"TokenizersBackend\""

/* With vocab.txt instead of tokenizer.json, lines have the recorded ids. */
TEST_ROWS(a_vocabulary_without_steps_is_read, 2) {
    static const char *const in[] = { "enc_many", "enc_distil" };
    static const char *const endings[] = { "\n", "\r\n" };
    char path[512], message[WF_MESSAGE] = "";
    int32_t ids[16 * 64] = { 0 }, length[16];
    copy_with_vocabulary(in[_i], endings[_i]);
    copy_changed_of(in[_i], "tokenizer_config.json", CLASS,
                    "\"tokenizer_class\": \"BertTokenizer\"");
    wf_hf hf = import(folder);
    ck_assert_str_eq(hf.notes, "");
    wf_file *f = values_of(recorded(in[_i], path));
    ck_assert_int_gt(encode_lines(&hf, path, f, ids, length), 3);
    wf_file_free(f);
    wf_hf_free(&hf);
    /* with do_lower_case false the letters stay capitals, which no token has */
    copy_changed_of(in[_i], "tokenizer_config.json", CLASS, "\"do_lower_case\": false");
    hf = import(folder);
    ck_assert_int_eq(wf_tokenizer_encode(hf.src, "THE", 3, ids, 64, message), 3);
    ck_assert_str_eq(wf_tokenizer_piece(hf.src, ids[1]), "[UNK]");
    wf_hf_free(&hf);
}

static const struct {
    const char *settings, *ending, *says;
} bad_vocabularies[] = {
    { "\"tokenizer_class\": \"BertJapaneseTokenizer\"", "\n",
      "'tokenizer_class' of tokenizer_config.json is not BertTokenizer" },
    { "\"do_lower_case\": 3", "\n", "'do_lower_case' is neither true nor false" },
    { NULL, " \n", "vocab.txt: there is no [UNK]" },
    { NULL, "\n\n", "tokenizer.json: its ids reach" },
};

TEST_ROWS(a_bad_vocabulary_is_refused, COUNT_OF(bad_vocabularies)) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    copy_with_vocabulary("enc_many", bad_vocabularies[_i].ending);
    copy_changed_of("enc_many", "tokenizer_config.json", CLASS,
                    bad_vocabularies[_i].settings ? bad_vocabularies[_i].settings
                                                  : "\"do_lower_case\": true");
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, bad_vocabularies[_i].says);
    wf_hf_free(&hf);
}

/* Notes name a default prompt, and a tokenizer that is missing. */
TEST(differences_are_told) {
    for (int i = 0; i < 2; i++) copy_changed_of("enc_old", files[i], NULL, NULL);
    wf_hf hf = import(folder);
    assert_contains(hf.notes, "no vocab.txt: the model reads token ids");
    ck_assert(!hf.src && wf_encoder_of(hf.model)->config.pooling == WF_POOLING_MEAN);
    ck_assert(!wf_encoder_of(hf.model)->config.normalize);
    wf_hf_free(&hf);
    for (int i = 0; i < COUNT_OF(files); i++) {
        bool prompts = strcmp(files[i], "config_sentence_transformers.json") == 0;
        if (strcmp(files[i], "pytorch_model.bin") == 0) continue;
        copy_changed_of("enc_dense", files[i], prompts ? "\"default_prompt_name\": null" : NULL,
                        "\"default_prompt_name\": \"query\"");
    }
    hf = import(folder);
    assert_contains(hf.notes, "encode() puts the prompt \"query\" before each line");
    wf_hf_free(&hf);
}
