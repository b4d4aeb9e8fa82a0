/* tests/models/test_marian.c - files of Marian: recorded models give the ids of Marian's formulas,
 * and are exported with the same bits; damaged files are refused.
 *
 * tests/models/marian_peer.py made the files and the ids, and compares many more. */
#include "marian_files.h"
#include "tests/suites.h"

TESTS(marian)

/* ---- what they compute ----------------------------------------------------------------------- */

TEST_ROWS(recorded_models_give_the_recorded_ids, COUNT_OF(recorded)) {
    size_t bytes, size;
    char *model = recorded_file(_i, "", &size), *text = recorded_file(_i, ".txt", &bytes);
    wf_hf hf;
    import(model, size, &hf);
    ck_assert(!hf.src && !hf.tgt);
    assert_recorded(hf.model, &hf.generation, text);
    wf_hf_free(&hf);
    free(model), free(text);
}

/* ---- out and in ------------------------------------------------------------------------------ */

static void assert_same_parameters(const wf_model *a, const wf_model *b) {
    ck_assert_int_eq(a->own_nodes, b->own_nodes);
    for (int id = 0; id < a->own_nodes; id++) {
        wf_tensor *x = wf_node(a->graph, id), *y = wf_node(b->graph, id);
        if (x->kind != WF_PARAM) continue;
        void *p = malloc(wf_bytes(x) + 1), *q = malloc(wf_bytes(x) + 1);
        ck_assert(wf_read(x, p, wf_bytes(x)) && wf_read(y, q, wf_bytes(x)));
        ck_assert_msg(memcmp(p, q, wf_bytes(x)) == 0, "%s", x->name);
        free(p), free(q);
    }
}

TEST_ROWS(what_goes_out_comes_in, COUNT_OF(recorded)) {
    size_t bytes, size, again;
    char message[WF_MESSAGE] = "", *model = recorded_file(_i, "", &bytes);
    wf_hf first, second;
    import(model, bytes, &first);
    void *npz = wf_marian_export(first.model, &size, message);
    ck_assert_msg(npz != NULL, "%s", message);
    import(npz, size, &second);
    assert_same_parameters(first.model, second.model);
    const wf_transformer_config *a = &wf_transformer_of(first.model)->config;
    const wf_transformer_config *b = &wf_transformer_of(second.model)->config;
    ck_assert(a->tie == b->tie && a->norm_first == b->norm_first && a->raw_keys == b->raw_keys &&
              a->decoder == b->decoder && a->activation == b->activation &&
              a->encoder_norm == b->encoder_norm && a->num_heads == b->num_heads);
    void *other = wf_marian_export(second.model, &again, message);
    ck_assert(other && size == again && memcmp(npz, other, size) == 0);
    wf_hf_free(&first), wf_hf_free(&second);
    free(model), free(npz), free(other);
}

/* ---- other weights --------------------------------------------------------------------------- */

static wf_tensor *any_matrix(const wf_model *m) {
    return wf_find(m->graph, "transformer.encoder.layers.0.linear1.weight");
}

/* Changed weights are exported into a copy of a Marian file. In an int8 file they are rounded with
 * a multiplier of their own; the other tensors keep their bytes. */
TEST_ROWS(a_binary_file_takes_other_weights, COUNT_OF(recorded)) {
    size_t bytes;
    char message[WF_MESSAGE] = "", *model = recorded_file(_i, "", &bytes);
    wf_hf hf, again;
    import(model, bytes, &hf);
    char *same = wf_marian_export_like(hf.model, model, bytes, message);
    if (strstr(recorded[_i], ".npz")) {
        ck_assert(!same);
        assert_contains(message, "not a binary file");
    } else {
        ck_assert_msg(same && memcmp(same, model, bytes) == 0, "%s", message);
        wf_tensor *w = any_matrix(hf.model);
        double *before = leaf_values(w);
        for (int64_t i = 0; i < wf_count(w); i++) before[i] = 2.5 * before[i] + (i == 3);
        ck_assert(write_doubles(w, before));
        char *other = wf_marian_export_like(hf.model, model, bytes, message);
        ck_assert_msg(other && memcmp(other, model, bytes) != 0, "%s", message);
        import(other, bytes, &again);
        double *after = leaf_values(any_matrix(again.model)), most = 0, error = 0;
        for (int64_t i = 0; i < wf_count(w); i++) {
            most = fmax(most, fabs(before[i]));
            error = fmax(error, fabs(after[i] - before[i]));
        }
        ck_assert_double_le(error, most / 127 * 0.5001);
        wf_hf_free(&again);
        free(before), free(after), free(other);
    }
    wf_hf_free(&hf);
    free(same), free(model);
}

TEST(a_binary_file_of_another_model_is_refused) {
    size_t bytes;
    char message[WF_MESSAGE] = "", *model = recorded_file(1, "", &bytes), *other;
    wf_hf hf;
    import(model, bytes, &hf);
    other = recorded_file(3, "", &bytes);
    ck_assert(!wf_marian_export_like(hf.model, other, bytes, message));
    assert_contains(message, "another model");
    ck_assert(!wf_marian_export_like(hf.model, NULL, 0, message));
    ck_assert(!wf_marian_export_like(NULL, other, bytes, message));
    ck_assert(!wf_marian_export_like(hf.model, other, bytes / 2, message));
    wf_hf_free(&hf);
    free(model), free(other);
}

/* Other forms than Marian has. */
TEST_ROWS(what_marian_has_not_is_refused, 8) {
    char message[WF_MESSAGE] = "";
    size_t size;
    wf_transformer_config c = small_config();
    c.norm_first = c.encoder_norm = c.decoder_norm = false;
    c.positions = WF_POSITIONS_TENSOR2TENSOR;
    c.layer_norm_eps = 1e-6;
    c.zero_start = _i != 1;
    if (_i == 2) c.positions = WF_POSITIONS_SINUSOIDAL;
    if (_i == 3) c.layer_norm_eps = 1e-5;
    if (_i == 4) c.activation = WF_GELU;
    if (_i == 5) c.norm_first = true;
    if (_i == 6) c.scale_embedding = false;
    if (_i == 7) c.bias = false;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    void *npz = wf_marian_export(m, &size, message);
    ck_assert((npz != NULL) == (_i == 0));
    if (_i) assert_contains(message, "Marian has no such model");
    free(npz);
    close_model(m);
    m = open_language_model(false, NULL, 12, 9);
    ck_assert(!wf_marian_export(m, &size, message) && !wf_marian_export(NULL, &size, message));
    close_model(m);
}

/* ---- vocabularies ---------------------------------------------------------------------------- */

TEST(vocabularies_must_fit_the_model) {
    size_t bytes;
    char message[WF_MESSAGE], *model = recorded_file(0, "", &bytes);
    const char no_model[] = "no model";
    wf_hf hf;
    wf_marian_files files = { .model = model, .model_bytes = bytes, .src = no_model };
    files.src_bytes = sizeof no_model;
    ck_assert(!wf_marian_import(&files, &hf, message));
    assert_contains(message, "none of the other");
    wf_hf_free(&hf);
    files.tgt = no_model;
    files.tgt_bytes = sizeof no_model;
    ck_assert(!wf_marian_import(&files, &hf, message));
    assert_contains(message, "the vocabulary of the source");
    wf_hf_free(&hf);
    ck_assert(!wf_marian_import(NULL, &hf, message) && !wf_marian_import(&files, NULL, message));
    free(model);
}

/* ---- settings -------------------------------------------------------------------------------- */

static const char settings[] = "dim-emb: 8\nenc-depth: 1\ndec-depth: 2\ntransformer-heads: 2\n"
                               "transformer-dim-ffn: 12\ndim-vocabs:\n  - 15\n  - 20\n"
                               "transformer-decoder-autoreg: rnn\ndec-cell: ssru\n"
                               "transformer-postprocess: \"dan\"\ntransformer-preprocess: ''\n"
                               "transformer-tied-layers:\n  []\ntied-embeddings: true\n";

/* Changes of the settings, and the message about each. The first `from` is replaced by `to`; if
 * `from` is "", `to` is appended. */
static const struct {
    const char *from, *to, *sentence; /* NULL: they are read */
} changes[] = {
    { "", "", NULL },
    { "", "# a remark\n---\n\n", NULL },
    { "", "version: v1.9\ndim-rnn: 7\nulr: false\n", NULL },
    { "dim-emb: 8", "dim-emb: 9", "not divisible by 2 heads" },
    { "dim-emb: 8", "dim-emb: 8x", "'dim-emb' is '8x'" },
    { "dim-emb: 8", "dim-emb: 99999999999999999999", "'dim-emb' is" },
    { "dim-emb: 8\n", "", "there is no setting 'dim-emb'" },
    { "dim-emb: 8", "dim-emb", "no list of keys" },
    { "dim-emb: 8", "  - 8", "begin with a value" },
    { "dim-emb: 8", "dim-emb: 8\ndim-emb: 8", "'dim-emb' is there twice" },
    { "  - 20\n", "", "'dim-vocabs' is '15'" },
    { "  - 20\n", "  - 20\n  - 7\n", "'dim-vocabs' is '15 20 7'" },
    { "rnn", "average", "'transformer-decoder-autoreg' is 'average'" },
    { "rnn", "average-attention\ntransformer-aan-depth: 1", "'transformer-aan-depth' is '1'" },
    { "rnn", "average-attention\ntransformer-aan-nogate: true", "'transformer-aan-nogate'" },
    { "rnn", "average-attention\ntransformer-dim-aan: 0", "'transformer-dim-aan' is '0'" },
    { "rnn", "average-attention\ntransformer-aan-activation: gelu", "-aan-activation' is 'gelu'" },
    { "", "transformer-aan-depth: 7\ntransformer-aan-activation: gelu\n", NULL },
    { "ssru", "gru", "'dec-cell' is 'gru'" },
    { "\"dan\"", "dn", "'transformer-postprocess' is 'n'" },
    { "''", "n", "'transformer-postprocess' is 'an'" },
    { "''", "h", "'transformer-preprocess' is 'h'" },
    { "[]", "- 1", "'transformer-tied-layers' is '1'" },
    { "", "transformer-ffn-activation: gelu\n", "'transformer-ffn-activation' is 'gelu'" },
    { "", "transformer-postprocess-top: a\n", "'transformer-postprocess-top' is 'a'" },
    { "", "transformer-decoder-dim-ffn: 13\n", "'transformer-decoder-dim-ffn' is '13'" },
    { "", "transformer-decoder-dim-ffn: 12\n", NULL },
    { "", "type: s2s\n", "'type' is 's2s'" },
    { "", "lemma-dim-emb: 4\n", "'lemma-dim-emb' is '4'" },
    { "", "ulr: true\n", "'ulr' is 'true'" },
    { "", "output-omit-bias: perhaps\n", "'output-omit-bias' is 'perhaps'" },
    { "", "transformer-new: 1\n", "'transformer-new' is not known" },
    { "", "bell: \a\n", "no text" },
    { "tied-embeddings: true", "tied-embeddings-all: true", "vocabularies of one size" },
};

TEST_ROWS(each_setting_is_used_or_refused, COUNT_OF(changes)) {
    char text[2048], message[WF_MESSAGE] = "";
    const char *from = changes[_i].from, *at = *from ? strstr(settings, from) : NULL;
    size_t before = at ? (size_t)(at - settings) : sizeof settings - 1;
    snprintf(text, sizeof text, "%.*s%s%s", (int)before, settings, changes[_i].to,
             at ? at + strlen(from) : "");
    wf_transformer_config c;
    bool ok = wf_marian_read_settings(text, strlen(text), &c, message);
    ck_assert_msg(ok == !changes[_i].sentence, "%s", message);
    if (!ok) assert_contains(message, changes[_i].sentence);
    if (ok) ck_assert(c.tie == WF_TIE_DECODER && c.decoder == WF_DECODER_SSRU && c.zero_start);
}

/* ---- hostile files --------------------------------------------------------------------------- */

static bool opens(const void *model, size_t bytes, char *message) {
    wf_hf hf;
    const wf_marian_files files = { .model = model, .model_bytes = bytes };
    bool ok = wf_marian_import(&files, &hf, message);
    wf_hf_free(&hf);
    return ok;
}

TEST_ROWS(every_truncation_is_refused, COUNT_OF(recorded)) {
    size_t bytes;
    char *model = recorded_file(_i, "", &bytes), message[WF_MESSAGE];
    for (size_t n = 0; n < bytes; n++) {
        void *part = malloc(n + 1);
        memcpy(part, model, n);
        ck_assert_msg(!opens(part, n, message), "%zu of %zu bytes", n, bytes);
        ck_assert(*message);
        free(part);
    }
    free(model);
}

/* A flipped bit of a .npz is found by its checksums, or changes nothing. A binary file has none:
 * there it may change a weight. */
TEST_ROWS(flipped_bits_do_no_harm, COUNT_OF(recorded)) {
    size_t bytes;
    char *model = recorded_file(_i, "", &bytes), message[WF_MESSAGE];
    wf_hf right;
    import(model, bytes, &right);
    for (size_t i = 0; i < bytes; i += 1 + i / 97) {
        model[i] = (char)(model[i] ^ 1 << i % 8);
        wf_hf hf;
        const wf_marian_files files = { .model = model, .model_bytes = bytes };
        if (wf_marian_import(&files, &hf, message) && strstr(recorded[_i], ".npz"))
            assert_same_parameters(right.model, hf.model);
        wf_hf_free(&hf);
        model[i] = (char)(model[i] ^ 1 << i % 8);
    }
    wf_hf_free(&right);
    free(model);
}

/* Changes of a binary file, and the message about each. Each occurrence of a text is replaced by
 * another of the same length. */
static const struct {
    const char *from, *to, *sentence;
} renamed[] = {
    { "decoder_l1_rnn_Wf", "decoder_l1_rnn_Wg", "'decoder_l1_rnn_Wf' is missing" },
    { "Wemb_QuantMultA", "Wemb_QuantMultB", "'Wemb_QuantMultB' is in the file but not" },
    { "special:model.yml", "special:model.YML", "no settings" },
    { "enc-depth: 1", "enc-depth: 2", "'encoder_l2_self_Wq' is missing" },
    { "dec-depth: 2", "dec-depth: 1", "is in the file but not in such a model" },
    { "transformer-dim-ffn: 12", "transformer-dim-ffn: 13", "does not hold 13 x" },
    { "\1\1\0\0\0\0\0\0", "\2\1\0\0\0\0\0\0", "is of type 0x0102" },
    { "\1\x41\0\0\0\0\0\0", "\2\x41\0\0\0\0\0\0", "is of type 0x4102" },
};

TEST_ROWS(what_does_not_fit_is_named, COUNT_OF(renamed)) {
    size_t bytes, n = strlen(renamed[_i].from);
    if (n < 4) n = 8; /* a type in a header */
    char *model = recorded_file(1, "", &bytes), message[WF_MESSAGE] = "";
    for (size_t i = 0; i + n <= bytes; i++)
        if (memcmp(model + i, renamed[_i].from, n) == 0) memcpy(model + i, renamed[_i].to, n);
    ck_assert(!opens(model, bytes, message));
    assert_contains(message, renamed[_i].sentence);
    free(model);
}
