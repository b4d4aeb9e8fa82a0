/* tests/tools/test_convert.c - models from PyTorch's state_dicts and back, and the scores of given
 * outputs.
 *
 * The state_dicts are those that record_models.py wrote, without their configuration: `convert`
 * must find it from names and shapes. data/scores.tsv holds PyTorch's log-probabilities of some
 * pairs, in f64; torch_convert.py wrote it, and compares many more variants where PyTorch is
 * installed. WEFT_TOOLS names the folder of the programs. */
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/models.h"

TESTS(convert)

static const struct {
    const char *name, *flags, *prefix;
} cases[] = {
    { "post", "--heads 2 --norm post --positions sinusoidal --scale-embedding --max-len 9", "" },
    { "pre", "--heads 2 --norm pre --scale-embedding --activation gelu", "module." },
    { "tied",
      "--heads 2 --norm post --positions sinusoidal --scale-embedding --activation silu "
      "--max-len 9",
      "model.transformer." },
    { "plain",
      "--heads 2 --norm post --positions learned --activation gelu-tanh --pad-id 3 --start-id 1 "
      "--end-id 2 --layer-norm-eps 1e-3",
      "module.model." },
    { "uneven", "--heads 4 --norm pre --positions none --scale-embedding --max-len 9", "" },
};
enum { MOST = 256, NAME = 128 };

static wf_file *open_file(const char *path) {
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static wf_file *open_recorded(const char *name) {
    char relative[64], path[512];
    snprintf(relative, sizeof relative, "tests/data/model_%s.safetensors", name);
    return open_file(source_path(relative, path, sizeof path));
}

static wf_model *load(const wf_file *f) {
    char message[WF_MESSAGE];
    wf_model *m = wf_model_load(f, NULL, WF_F32, 1, message);
    ck_assert_msg(m != NULL, "%s", message);
    return m;
}

/* ---- state_dicts ----------------------------------------------------------------------------- */

/* A change of a recorded file. The entry of this name is dropped (all other fields NULL or false),
 * renamed (name), or given another type or shape; or an entry is added. */
typedef struct change {
    const char *entry, *name, *dtype, *added;
    bool flat, cut; /* flat: all axes merged into one; cut: the last row removed */
} change;

static void alter(wf_entry *e, const change *c) {
    int64_t rows = e->shape[0];
    if (c->flat) e->shape[0] *= e->shape[1], e->ndim = 1;
    if (c->cut) e->shape[0]--, e->bytes -= e->bytes / (size_t)rows;
    if (c->dtype) e->dtype = c->dtype;
    if (c->name) e->name = c->name;
}

static void write_state(const wf_file *f, const char *prefix, const change *c) {
    static wf_entry entries[MOST];
    static char names[MOST][NAME];
    char message[WF_MESSAGE];
    static const float one[1];
    int n = 0;
    for (int i = 0; i < wf_file_count(f); i++) {
        wf_entry *e = &entries[n];
        *e = *wf_file_at(f, i);
        bool meant = c->entry && strcmp(e->name, c->entry) == 0;
        if (meant && !c->name && !c->dtype && !c->flat && !c->cut) continue;
        if (meant) alter(e, c);
        snprintf(names[n], NAME, "%s%s", prefix, e->name);
        e->name = names[n++];
    }
    if (c->added) entries[n++] = (wf_entry){ c->added, "F32", 1, { 1 }, one, sizeof one };
    ck_assert_msg(wf_file_save("in", entries, n, NULL, 0, message), "%s", message);
}

static void convert_case(int i, const wf_file *f) {
    write_state(f, cases[i].prefix, &(change){ 0 });
    run("convert %s in -o model", cases[i].flags), expect(0);
    ck_assert_str_eq(result.out, "");
}

static void assert_same_config(const wf_transformer_config *a, const wf_transformer_config *b) {
    ck_assert(a->src_vocab == b->src_vocab && a->tgt_vocab == b->tgt_vocab);
    ck_assert(a->max_len == b->max_len && a->d_model == b->d_model);
    ck_assert(a->num_heads == b->num_heads && a->dim_feedforward == b->dim_feedforward);
    ck_assert(a->encoder_layers == b->encoder_layers && a->decoder_layers == b->decoder_layers);
    ck_assert(a->activation == b->activation && a->positions == b->positions && a->tie == b->tie);
    ck_assert(a->norm_first == b->norm_first && a->scale_embedding == b->scale_embedding);
    ck_assert(a->encoder_norm == b->encoder_norm && a->decoder_norm == b->decoder_norm);
    ck_assert(a->bias == b->bias && a->output_bias == b->output_bias);
    ck_assert(a->layer_norm_eps == b->layer_norm_eps && a->pad_id == b->pad_id);
    ck_assert(a->start_id == b->start_id && a->end_id == b->end_id);
}

static void assert_same_weights(const wf_model *a, const wf_model *b) {
    ck_assert_int_eq(wf_node_count(a->graph), wf_node_count(b->graph));
    for (int id = 0; id < wf_node_count(a->graph); id++) {
        const wf_tensor *t = wf_node(a->graph, id), *u = wf_node(b->graph, id);
        if (t->kind != WF_PARAM) continue;
        values x = { wf_count(t), leaf_values(t) }, y = { wf_count(u), leaf_values(u) };
        ck_assert_str_eq(t->name, u->name);
        ck_assert_msg(same_bits(x, y), "%s differs", t->name);
        free_values(&x, 1), free_values(&y, 1);
    }
}

SETUP(enter_folder, leave_folder)

TEST_ROWS(names_and_shapes_say_the_rest, COUNT_OF(cases)) {
    wf_file *f = open_recorded(cases[_i].name);
    convert_case(_i, f);
    wf_file *made = open_file("model");
    wf_model *a = load(f), *b = load(made);
    assert_same_config(&wf_transformer_of(a)->config, &wf_transformer_of(b)->config);
    assert_same_weights(a, b);
    wf_file_free(f), wf_file_free(made), close_model(a), close_model(b);
}

/* ---- torch.save's files ---------------------------------------------------------------------- */

static const char *const saved[] = { "f32", "f32_old", "f16", "f16_old", "bf16", "f64" };

/* A file of torch.save, in either container, gives the model of a safetensors file with the same
 * tensors, bit for bit. */
TEST_ROWS(a_state_dict_of_torch_save_is_converted, COUNT_OF(saved)) {
    static const char flags[] = "--heads 2 --norm post --positions sinusoidal --max-len 9";
    char relative[64], path[512];
    snprintf(relative, sizeof relative, "tests/data/torch_%s.bin", saved[_i]);
    wf_file *f = open_file(source_path(relative, path, sizeof path));
    write_state(f, "", &(change){ 0 });
    run("convert %s in -o expected", flags), expect(0);
    run("convert %s %s -o model", flags, path), expect(0);
    assert_contains(result.err, strstr(saved[_i], "16_") || strcmp(saved[_i], "f16") == 0 ||
                                        strcmp(saved[_i], "f64") == 0
                                    ? "tables not tied"
                                    : "tables all tied");
    ck_assert(same_files("expected", "model"));
    wf_file_free(f);
}

TEST(a_checkpoint_of_torch_save_says_what_it_is) {
    FILE *file = fopen("checkpoint.bin", "wb");
    static const char bytes[] =
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."
        "\x80\x02}X\x0d\0\0\0little_endian\x88s.\x80\x02}(X\5\0\0\0epochK\3X\5\0\0\0model}u."
        "\x80\x02].";
    ck_assert_uint_eq(fwrite(bytes, 1, sizeof bytes - 1, file), sizeof bytes - 1);
    fclose(file);
    run("convert --heads 2 --norm post checkpoint.bin -o model"), expect(1);
    assert_contains(result.err, "checkpoint.bin: 'epoch' is an integer, not a tensor");
}

/* inspect shows statistics also of values of two bytes, and counts tied tables once. */
TEST(inspect_says_what_is_in_it) {
    char path[512];
    run("inspect %s", source_path("tests/data/torch_types.bin", path, sizeof path)), expect(0);
    assert_contains(result.out, "20 tensors: 85 parameters and 0 optimizer moments in 304 B");
    assert_contains(result.out, "the checksum is right; NOT all values are finite");
    assert_contains(result.out, "f16       F16  [6]                   6   1.31e+04");
    run("inspect %s", source_path("tests/data/torch_f32_old.bin", path, sizeof path)), expect(0);
    assert_contains(result.out, "no checksum; all values are finite");
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Writes the pairs of a case to the file "pairs", and reads their expected log-probabilities. */
static int read_scores(const char *name, double *expected, int *n_pairs) {
    char path[512], line[1024];
    FILE *in = fopen(source_path("tests/data/scores.tsv", path, sizeof path), "r");
    FILE *pairs = fopen("pairs", "w");
    ck_assert(in && pairs);
    int n = 0;
    for (*n_pairs = 0; fgets(line, sizeof line, in);) {
        char *source = strchr(line, '\t'), *tab = strrchr(line, '\t'), *end;
        *source++ = *tab++ = '\0';
        if (strcmp(line, name) != 0) continue;
        fprintf(pairs, "%s\n", source);
        ++*n_pairs;
        for (double value = strtod(tab, &end); end != tab; value = strtod(tab, &end), n++)
            expected[n] = value, tab = end;
    }
    fclose(in), fclose(pairs);
    return n;
}

TEST_ROWS(scores_are_those_of_pytorch, COUNT_OF(cases)) {
    double expected[MOST], worst = 0;
    int n_pairs, n = read_scores(cases[_i].name, expected, &n_pairs), seen = 0, pair = 0;
    ck_assert(n_pairs == 6 && n > 6 && n < MOST);
    wf_file *f = open_recorded(cases[_i].name);
    convert_case(_i, f);
    ok("generate --model model --score --json -i pairs");
    for (char *line = strtok(result.out, "\n"); line; line = strtok(NULL, "\n")) {
        int number;
        double total, sum = 0;
        char *at = strstr(line, "\"log_probs\":");
        ck_assert(sscanf(line, "{\"event\":\"score\",\"line\":%d,\"total\":%lf", &number, &total) ==
                  2);
        ck_assert_int_eq(number, ++pair);
        for (at = strchr(at, '['); *at != ']'; seen++) {
            ck_assert_int_lt(seen, n);
            double value = strtod(at + 1, &at);
            sum += value, worst = fmax(worst, fabs(value - expected[seen]));
        }
        ck_assert_double_eq_tol(total, sum, 1e-6);
    }
    ck_assert_int_eq(seen, n);
    ck_assert_int_eq(pair, n_pairs);
    ck_assert_msg(worst <= 1e-5, "%s: %.3g off", cases[_i].name, worst);
    tally_note(TALLY_TORCH_F32, worst);
    wf_file_free(f);
}

TEST(batches_do_not_change_scores) {
    double expected[MOST];
    static char whole[sizeof result.out];
    int n_pairs;
    read_scores("pre", expected, &n_pairs);
    wf_file *f = open_recorded("pre");
    convert_case(1, f);
    ok("generate --model model --score --json -i pairs");
    strcpy(whole, result.out);
    ok("generate --model model --score --json -i pairs --batch-size 1 --threads 1");
    ck_assert_str_eq(result.out, whole);
    ok("generate --model model --score --json --batch-size 4 --threads 3 -o to < pairs");
    read_text("to", result.out, sizeof result.out);
    ck_assert_str_eq(result.out, whole);
    ok("generate --model model --score < pairs | head -1");
    ck_assert_double_eq_tol(atof(result.out), expected[0],
                            1e-5); /* its target is empty: the end alone */
    wf_file_free(f);
}

static const struct {
    const char *line, *says;
} bad_pairs[] = {
    { "1 2 3", "line 2: there is no tab" },
    { "1 2\t3\t4", "line 2: there is a second tab" },
    { "\t3", "line 2: there is no source" },
    { "1 11\t3", "line 2: token id 11 is outside 0..10" },
    { "1 2\t13", "line 2: token id 13 is outside 0..12" },
    { "1 2\tx", "line 2: 'x' is not a token id" },
    { "1\t1 2 3 4 5 6 7 8 9", "line 2: the target has 9 tokens, and 8 is the most" },
    { "1 2 3 4 5 6 7 8 9 10\t1", "line 2: the source has 10 tokens, and 9 is the most" },
};

TEST_ROWS(a_bad_pair_is_named, COUNT_OF(bad_pairs)) {
    wf_file *f = open_recorded("post");
    convert_case(0, f);
    FILE *in = fopen("pairs", "w");
    fprintf(in, "1\t2\n%s\n3\t4\n", bad_pairs[_i].line);
    fclose(in);
    ck_assert_int_eq(run("generate --model model --score --long-lines stop < pairs")->status, 1);
    assert_contains(result.err, bad_pairs[_i].says);
    const char *end = strchr(result.out, '\n');
    ck_assert_msg(end && !end[1], "the pair before it is scored, no other: %s", result.out);
    wf_file_free(f);
}

/* ---- back ------------------------------------------------------------------------------------ */

/* A state_dict that was converted is written with the names of state_dict() and no others; tied
 * tables have all three names. */
TEST_ROWS(what_came_goes_back, COUNT_OF(cases)) {
    static const char *const tables[] = { "src_embedding.weight", "tgt_embedding.weight",
                                          "output.weight" };
    wf_file *f = open_recorded(cases[_i].name);
    convert_case(_i, f);
    ok("convert --to torch model -o back");
    wf_file *back = open_file("back");
    for (int i = 0; i < 3; i++) ck_assert_ptr_nonnull(wf_file_find(back, tables[i]));
    for (int i = 0; i < wf_file_count(back); i++) {
        const wf_entry *e = wf_file_at(back, i), *was = wf_file_find(f, e->name);
        ck_assert_str_eq(e->dtype, "F32");
        if (!was && strstr(e->name, "embedding")) was = wf_file_find(f, tables[2]);
        if (was)
            ck_assert_mem_eq(e->data, was->data, e->bytes);
        else
            ck_assert_msg(strstr(e->name, "in_proj_weight") || strcmp(e->name, tables[2]) == 0,
                          "%s", e->name);
    }
    wf_model *a = load(f);
    int aliases = wf_transformer_of(a)->config.tie == WF_TIE_ALL
                      ? 2
                      : wf_transformer_of(a)->config.tie == WF_TIE_DECODER;
    ck_assert_int_eq(wf_file_count(back), wf_parameters(a->graph, NULL, NULL, 0) + aliases);
    run("convert %s%s back -o again", cases[_i].flags, ""), expect(0);
    ck_assert_int_eq(system("cmp model again"), 0);
    /* the command that convert printed converts the state_dict back, too */
    ok("convert --to torch model -o 'my back' 2>&1 | sed -n 's/^  convert/convert/p' | sed "
       "'s/MODEL$/printed/' > way; wc -l < way; . ./way");
    ck_assert_int_eq(atoi(result.out), 1);
    ck_assert_int_eq(system("cmp model printed"), 0);
    wf_file_free(f), wf_file_free(back), close_model(a);
}

/* The options of a model that show in names and shapes are found again from its state_dict. */
TEST_ROWS(a_state_dict_says_what_the_model_was, 12) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    c.tie = (wf_tie)(_i / 4);
    c.encoder_norm = _i % 2, c.decoder_norm = !c.encoder_norm;
    c.bias = _i / 2 % 2, c.output_bias = !c.bias;
    c.encoder_layers = _i % 3, c.decoder_layers = 1;
    if (c.tie != WF_TIE_ALL) c.src_vocab = 19;
    if (c.bias) c.positions = WF_POSITIONS_LEARNED, c.max_len = 11;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    ck_assert_msg(wf_transformer_save_state_dict(m, "state", false, message), "%s", message);
    wf_file *f = open_file("state");
    wf_transformer_config given = wf_transformer_defaults();
    given.num_heads = c.num_heads, given.norm_first = c.norm_first, given.max_len = c.max_len;
    wf_model *n = wf_transformer_from_state_dict(f, &given, WF_F32, message);
    ck_assert_msg(n != NULL, "%s", message);
    assert_same_config(&c, &wf_transformer_of(n)->config);
    assert_same_weights(m, n);
    wf_file_free(f), close_model(m), close_model(n);
}

TEST(what_was_understood_is_told) {
    static const char *const told[] = { "no final norms", "a final norm on the encoder",
                                        "a final norm on the decoder", "final norms" };
    char message[WF_MESSAGE], says[100];
    for (int i = 0; i < COUNT_OF(told); i++) {
        wf_transformer_config c = small_config();
        c.encoder_norm = i % 2, c.decoder_norm = i / 2, c.bias = i > 0;
        wf_model *m = open_model(&c, NULL, WF_F32, 3);
        ck_assert_msg(wf_model_save(m, "model", NULL, NULL, 0, message), "%s", message);
        close_model(m);
        ok("convert --to torch model -o state");
        snprintf(says, sizeof says, "), %s%s\n", told[i], i ? "" : ", no biases");
        assert_contains(result.err, says);
        snprintf(says, sizeof says,
                 "--pad-id %d --start-id %d --end-id %d --max-len %d state -o MODEL\n", c.pad_id,
                 c.start_id, c.end_id, (int)c.max_len);
        assert_contains(result.err, says);
    }
}

TEST(bf16_is_rounded_to_nearest) {
    static const float given[] = { 1,        1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1p-7f, -1 - 0x1.1p-8f,
                                   INFINITY, -INFINITY,   NAN,         0x1p-140f,   0x1.fffffep127f,
                                   -0.0f,    0x1.fdp0f,   0x1.ffp0f };
    static const uint16_t expected[] = { 0x3F80, 0x3F80, 0x3F82, 0x3F81, 0xBF81, 0x7F80, 0xFF80,
                                         0x7FC0, 0x0000, 0x7F80, 0x8000, 0x3FFE, 0x4000 };
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    c.tgt_vocab = COUNT_OF(given), c.tie = WF_TIE_DECODER;
    wf_model *m = open_model(&c, NULL, WF_F32, 1);
    ck_assert(wf_write(wf_find(m->graph, "output.bias"), given, sizeof given));
    ck_assert_msg(wf_transformer_save_state_dict(m, "bf16", true, message), "%s", message);
    wf_file *f = open_file("bf16");
    const wf_entry *e = wf_file_find(f, "output.bias"), *tied = wf_file_find(f, "output.weight");
    ck_assert_str_eq(e->dtype, "BF16");
    for (int i = 0; i < COUNT_OF(given); i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)e->data + 2 * i, 2);
        ck_assert_msg(bits == expected[i], "%a: %04x, not %04x", (double)given[i], bits,
                      expected[i]);
    }
    ck_assert_mem_eq(tied->data, wf_file_find(f, "tgt_embedding.weight")->data, tied->bytes);
    wf_file_free(f), close_model(m);
    ok("convert --heads 2 --norm pre --positions none bf16 -o model"); /* and it loads again */
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define LAYER "transformer.encoder.layers.0."

static const struct {
    change c;
    const char *says;
} misfits[] = {
    { { .entry = LAYER "norm1.weight" },
      "'" LAYER "norm1.weight' is in the model but not in the file" },
    { { .entry = LAYER "self_attn.in_proj_weight" },
      "in_proj_weight' is in the model but not in the file" },
    { { .entry = LAYER "linear1.bias" }, "linear1.bias' is in the model but not in the file" },
    { { .entry = LAYER "linear2.weight", .cut = true }, "is [7,12] in the file, not [8,12]" },
    { { .entry = "tgt_embedding.weight", .cut = true }, "is [12,8] in the file, not [13,8]" },
    { { .entry = "src_embedding.weight", .flat = true }, "is [88], not [vocabulary, width]" },
    { { .entry = "src_embedding.weight" },
      "'src_embedding.weight' is not in the file, and no tie" },
    { { .entry = LAYER "norm1.weight", .dtype = "I32" }, "I32 in the file cannot become f32" },
    { { .entry = LAYER "norm1.weight", .dtype = "U32" }, "U32 in the file cannot become f32" },
    { { .added = "positions.pe" }, "'positions.pe' is in the file but not in the model" },
    { { .added = LAYER "norm4.weight" }, "norm4.weight' is in the file but not in the model" },
    { { .added = "ema.src_embedding.weight" }, "are of two models: save one of them alone" },
    { { .added = "transformer.encoder.layers.99999999999999999999.x" }, "not between 0 and 256" },
    { { .added = "transformer.decoder.layers.3.norm1.bias" },
      "'transformer.decoder.layers.2.self_attn.in_proj_weight' is in the model" },
    { { .added = "src_position.weight" }, "is [1] in the file, not [1,8]" },
};

TEST_ROWS(a_state_dict_that_does_not_fit_is_told, COUNT_OF(misfits)) {
    wf_file *f = open_recorded("post");
    write_state(f, "", &misfits[_i].c);
    ok("cp in model");
    ck_assert_int_eq(run("convert %s in -o model", cases[0].flags)->status, 1);
    assert_contains(result.err, misfits[_i].says);
    assert_contains(result.err, "convert: in: ");
    ck_assert_ptr_eq(strchr(result.err, '\n') + 1,
                     result.err + strlen(result.err)); /* one sentence */
    ck_assert(same_files("in", "model"));
    wf_file_free(f);
}

TEST(two_lengths_of_positions_are_refused) {
    wf_file *f = open_recorded("pre");
    write_state(f, "", &(change){ .entry = "tgt_position.weight", .cut = true });
    ck_assert_int_eq(run("convert %s in -o model", cases[1].flags)->status, 1);
    assert_contains(result.err, "'src_position.weight' has 9 rows and 'tgt_position.weight' 8");
    wf_file_free(f);
}

TEST(nothing_recognisable_is_refused) {
    char message[WF_MESSAGE];
    static const float one[1];
    const wf_entry e = { "fc.weight", "F32", 1, { 1 }, one, sizeof one };
    const wf_entry tables[] = { { "src_embedding.weight", "F32", 2, { 1, 1 }, one, sizeof one } };
    ck_assert_msg(wf_file_save("in", &e, 1, NULL, 0, message), "%s", message);
    ck_assert_int_eq(run("convert --heads 2 --norm pre in -o model")->status, 1);
    assert_contains(result.err, "no tensor is named 'transformer.encoder.layers.0...'");
    ck_assert_msg(wf_file_save("in", tables, 1, NULL, 0, message), "%s", message);
    ck_assert_int_eq(run("convert --heads 1 --norm pre in -o model")->status, 1);
    assert_contains(result.err,
                    "there are no layers: 'transformer.encoder.layers.0.linear1.weight'");
    ck_assert_msg(wf_file_save("in", NULL, 0, NULL, 0, message), "%s", message);
    ck_assert_int_eq(run("convert --heads 1 --norm pre in -o model")->status, 1);
    assert_contains(result.err, "no tensor is named");
    ck_assert(!wf_transformer_from_state_dict(NULL, NULL, WF_F32, NULL));
    ck_assert(!wf_transformer_save_state_dict(NULL, "x", false, message));
    assert_contains(message, "there is no model");
}

/* State_dicts of a few tensors of zeros, and the message that refuses them. */
static const struct {
    const char *name[3];
    int64_t shape[3][2]; /* -1: no such axis */
    wf_meta meta;
    const char *says;
} oddities[] = {
    { { "xsrc_embedding.weight" }, { { 4, 2 } }, { 0 }, "no tensor is named" },
    { { "src_embedding.weight_v" }, { { 4, 2 } }, { 0 }, "no tensor is named" },
    { { LAYER "norm1.weight" }, { { 2, -1 } }, { 0 }, "'src_embedding.weight' is missing" },
    { { "src_embedding.weight" }, { { 4, -1 } }, { 0 }, "is [4], not [vocabulary, width]" },
    { { "output.weight", "src_embedding.weight" },
      { { 4, 2 }, { 2, 4 } },
      { "tgt_embedding.weight", "output.weight" },
      "there are no layers" },
    { { "src_embedding.weight" },
      { { 4, 2 } },
      { "output.weight", "lm_head.weight" }, /* which is not there */
      "there are no layers" },
    { { "a.tgt_embedding.weight", "b.src_embedding.weight" },
      { { 4, 2 }, { 4, 2 } },
      { 0 },
      "are of two models" },
    { { "a.src_embedding.weight", "a." LAYER "linear1.weight", "step" },
      { { 4, 2 }, { 2, 2 }, { 1, -1 } },
      { 0 },
      "'step' is in the file but not in the model" },
    { { "src_embedding.weight", LAYER "linear1.weight" },
      { { 4, 2 }, { 2, -1 } },
      { 0 },
      "is in the model but not in the file" },
    { { "src_embedding.weight", LAYER "linear1.weight", "src_position.weight" },
      { { 4, 2 }, { 2, 2 }, { -1, -1 } },
      { 0 },
      "'src_position.weight' is [] in the file, not [512,2] as in the model" },
    { { "src_embedding.weight", "src_position.weight", "tgt_position.weight" },
      { { 4, 2 }, { 4, 2 }, { -1, -1 } },
      { 0 },
      "there are no layers" },
    { { "src_embedding.weight", "tgt_position.weight" },
      { { 4, 2 }, { 4, 2 } },
      { 0 },
      "there are no layers" },
    { { "tgt_embedding.weight", "output.weight" },
      { { 4, 2 }, { 2, 4 } },
      { 0 },
      "'src_embedding.weight' is not in the file" },
};

TEST_ROWS(a_strange_state_dict_is_told, COUNT_OF(oddities)) {
    char message[WF_MESSAGE] = "";
    static const float zeros[64];
    wf_entry entries[3];
    int n = 0;
    for (; n < 3 && oddities[_i].name[n]; n++) {
        wf_entry *e = &entries[n];
        *e = (wf_entry){ oddities[_i].name[n], "F32", 0, { 0 }, zeros, 4 };
        for (; e->ndim < 2 && oddities[_i].shape[n][e->ndim] >= 0; e->ndim++)
            e->shape[e->ndim] = oddities[_i].shape[n][e->ndim],
            e->bytes *= (size_t)e->shape[e->ndim];
    }
    ck_assert_msg(
        wf_file_save("in", entries, n, &oddities[_i].meta, oddities[_i].meta.key != NULL, message),
        "%s", message);
    wf_file *f = open_file("in");
    wf_transformer_config given = wf_transformer_defaults();
    given.num_heads = 1;
    ck_assert(!wf_transformer_from_state_dict(f, &given, WF_F32, message));
    assert_contains(message, oddities[_i].says);
    wf_file_free(f);
}

/* A state_dict has weights in f32, also if the model computes in f64. */
TEST(f64_is_narrowed) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F64, 3);
    ck_assert_msg(wf_transformer_save_state_dict(m, "state", false, message), "%s", message);
    wf_file *f = open_file("state");
    const wf_entry *e = wf_file_find(f, "src_embedding.weight");
    double *w = leaf_values(wf_find(m->graph, e->name));
    ck_assert_str_eq(e->dtype, "F32");
    for (size_t i = 0; i < e->bytes / 4; i++) {
        float value;
        memcpy(&value, (const char *)e->data + 4 * i, 4);
        ck_assert(value == (float)w[i]);
    }
    free(w), wf_file_free(f), close_model(m);
}

static const struct {
    const char *program, *arguments;
    int status;
    const char *says;
} refusals[] = {
    { "convert", "", 2, "say which file to convert" },
    { "convert", "in", 2, "say where to: -o FILE" },
    { "convert", "in -o model", 2, "say how many heads: --heads N" },
    { "convert", "--heads 2 in -o model", 2, "--norm pre|post" },
    { "convert", "--heads 2 --norm post in -o model", 2, "--positions sinusoidal|none" },
    { "convert", "--heads 2 --norm post --positions learned in -o model", 1,
      "'src_position.weight'" },
    { "convert", "--heads 3 --norm post --positions none in -o model", 1,
      "d_model 8 is not divisible by 3 heads" },
    { "convert", "--heads 0 --norm post in -o model", 2, "outside the range 1..65536" },
    { "convert", "--heads 2 --norm post --positions none --pad-id 11 in -o model", 1,
      "the padding id is 11" },
    { "convert", "--heads 2 --norm post --positions none --end-id 13 in -o model", 1,
      "the end id is 13, not between 0 and 12" },
    { "convert", "--heads 2 --norm post --dtype bf16 in -o model", 2,
      "--dtype would have no effect" },
    { "convert", "--to torch --heads 2 in -o model", 2, "--heads would have no effect" },
    { "convert", "--to torch in -o model", 1, "this is not a model that weft has written" },
    { "convert", "--heads 2 --norm post none -o model", 1, "none" },
    { "convert", "--heads 2 --norm post in -o in", 2, "read and written at once" },
    { "convert", "--heads 2 --norm post in -o none/model", 1, "none/model can't be written" },
    { "convert", "--heads 2 --norm post --positions none made -o model", 1,
      "is a model of weft already" },
    { "convert", "--heads 2 --norm pre --positions none learned -o model", 2,
      "has tables of positions: --positions learned" },
    { "convert", "--heads 2 --norm pre --max-len 9 learned -o model", 2,
      "--max-len would have no effect" },
    { "generate", "--model made --score --max-len-a 2", 2, "--max-len-a would have no effect" },
    { "generate", "--model made --score --attention a", 2, "--attention would have no effect" },
};

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    wf_file *f = open_recorded("pre");
    write_state(f, "", &(change){ 0 });
    ck_assert_int_eq(rename("in", "learned"), 0);
    wf_file_free(f);
    f = open_recorded("post");
    convert_case(0, f);
    ck_assert_int_eq(rename("model", "made"), 0);
    int status = run("%s %s < /dev/null", refusals[_i].program, refusals[_i].arguments)->status;
    ck_assert_msg(status == refusals[_i].status, "exit code %d: %s", status, result.err);
    assert_contains(result.err, refusals[_i].says);
    ck_assert_str_eq(result.out, "");
    ck_assert_msg(access("model", F_OK) != 0, "a model was written all the same");
    wf_file_free(f);
}

/* They are converted, and told. */
TEST(what_is_not_finite_is_told) {
    wf_file *f = open_recorded("pre");
    static wf_entry entries[MOST];
    static float changed[2][4096];
    static const float strange[] = { NAN, INFINITY, -INFINITY, 3.4e38f };
    char message[WF_MESSAGE];
    int n = wf_file_count(f), at = 0;
    for (int i = 0; i < n; i++) {
        entries[i] = *wf_file_at(f, i);
        bool first = strcmp(entries[i].name, "output.bias") == 0;
        if (!first && strcmp(entries[i].name, "transformer.encoder.norm.weight") != 0) continue;
        ck_assert(at < 2 && entries[i].bytes >= sizeof strange);
        ck_assert(entries[i].bytes <= sizeof changed[0]);
        memcpy(changed[at], entries[i].data, entries[i].bytes);
        memcpy(changed[at], strange, sizeof strange);
        entries[i].data = changed[at++];
    }
    ck_assert_int_eq(at, 2);
    ck_assert_msg(wf_file_save("in", entries, n, NULL, 0, message), "%s", message);
    run("convert %s in -o model", cases[1].flags), expect(0);
    assert_contains(result.err, "convert: values that are NaN or infinite: 6, the first in "
                                "'transformer.encoder.norm.weight'\n");
    ok("convert --to torch model -o back");
    assert_contains(result.err, "infinite: 6,");
    ok("convert --to torch --dtype bf16 model -o back"); /* 3.4e38 is none in bf16 */
    assert_contains(result.err, "infinite: 8,");
    convert_case(1, f);
    ck_assert(!strstr(result.err, "infinite"));
    wf_file_free(f);
}
